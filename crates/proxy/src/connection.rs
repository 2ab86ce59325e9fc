//! One connection: the client waits until its destination has answered, or has proved its address
//! and waits connected.

use crate::ends::{Client, OutsideStream, StackStream};
use crate::relay::relay;
use crate::resolution;
use crate::shared::{Config, Shared, Way};
use crate::target::{Protocol, Target};
use crate::upstream::{ConnectError, Connected, Upstream};
use ackline_runtime::Refusal;
use tokio::time::timeout;

/// Answers the client as its destination does, and carries the connection on to its end.
pub(crate) async fn carry(shared: &Shared, client: Client) {
    let Some((from, to)) = client.addresses() else { return shared.counters.abandoned.one() };
    let (upstream, target) = match shared.way(from, to, Protocol::Tcp) {
        Way::Through(upstream, target) => (upstream, target),
        Way::Resolvers(ways) => {
            return Box::pin(resolution::serve_connection(shared, client, from, ways)).await;
        }
        Way::Refuse => return client.refuse(Refusal::Rst),
        Way::Drop => return client.refuse(Refusal::Drop),
    };
    // What opening takes is large, and gone before the connection idles: a box of its own keeps it
    // out of the task.
    let Some(open) = Box::pin(open(shared, client, &upstream, &target)).await else { return };
    let Open { mut inside, mut outside, early } = open;
    let counters = &shared.counters;
    let _open = counters.open_connections.enter();
    let outcome = relay(&mut inside.stream, &mut outside.stream, early, shared).await;
    (inside.is_over, outside.is_over) = (outcome.is_ok(), outcome.is_ok());
    if outcome.is_ok() { counters.finished.one() } else { counters.reset.one() }
}

/// A connection whose both ends are open.
struct Open {
    inside: StackStream,
    outside: OutsideStream,
    /// Data that the destination has sent already.
    early: Vec<u8>,
}

/// Connects to the destination, and answers the client. Without a connection it has been counted,
/// and the client told.
async fn open(shared: &Shared, client: Client, upstream: &Upstream, target: &Target) -> Option<Open> {
    let outcome = match client.hold(connect(shared, upstream, target)).await {
        Ok(Ok(connected)) => {
            // If this fails the client has gone, and the destination is told.
            let outside = OutsideStream { stream: connected.stream, is_over: false };
            client.accept().await.map(|inside| (inside, outside, connected.early))
        }
        Ok(Err(refusal)) => {
            client.refuse(refusal);
            return None;
        }
        Err(gone) => Err(gone),
    };
    let Ok((inside, outside, early)) = outcome else {
        shared.counters.abandoned.one();
        return None;
    };
    Some(Open { inside, outside, early })
}

/// A connection to the destination, or what the client is told.
async fn connect(shared: &Shared, upstream: &Upstream, target: &Target) -> Result<Connected, Refusal> {
    let Config { connect_timeout, server_timeout, .. } = shared.config;
    let connected = timeout(connect_timeout, upstream.connect(&shared.out, target, server_timeout)).await;
    connected.unwrap_or(Err(ConnectError::TimedOut)).map_err(|error| shared.refusal(upstream, &error))
}
