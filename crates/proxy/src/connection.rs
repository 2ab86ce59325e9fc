//! One connection: the client waits until its destination has answered, or has proved its address
//! and waits connected.

use crate::ends::{Client, OutsideStream, StackStream};
use crate::first_flight::{self, FirstFlight, PendingChoice};
use crate::relay::relay;
use crate::resolution;
use crate::rules::server_name::ServerName;
use crate::shared::{Choice, Config, Shared, Way};
use crate::target::{Protocol, Target};
use crate::throttle::Pace;
use crate::upstream::{ConnectError, Connected, Upstream};
use ackline_runtime::Refusal;
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use tokio::io::Interest;
use tokio::time::timeout;

/// Answers the client as its destination does, and carries the connection on to its end.
pub(crate) async fn carry(shared: &Shared, client: Client) {
    let Some(addresses @ (from, to)) = client.addresses() else { return shared.counters.abandoned.one() };
    let choice = shared.choose(from, to, Protocol::Tcp, &ServerName::Unread);
    if !choice.is_final {
        return Box::pin(carry_as_stated(shared, client, addresses, choice)).await;
    }
    shared.settle(&choice.decision);
    match choice.way {
        Way::Through(upstream, target) => {
            // What opening takes is large, and gone before the connection idles: a box of its own
            // keeps it out of the task.
            let Some(open) = Box::pin(open(shared, client, &upstream, &target)).await else { return };
            open.run(shared, Bytes::new(), &shared.pace(&choice.decision)).await;
        }
        Way::Resolvers(ways) => {
            Box::pin(resolution::serve_connection(shared, client, from.ip(), ways)).await;
        }
        Way::Refuse => client.refuse(Refusal::Rst),
        Way::Drop => client.refuse(Refusal::Drop),
    }
}

/// [`carry`] if the way depends on the server name in the client's first bytes.
async fn carry_as_stated(
    shared: &Shared,
    client: Client,
    (from, to): (SocketAddr, SocketAddr),
    Choice { way, decision, .. }: Choice,
) {
    match way {
        Way::Through(upstream, target) => {
            let mut pending = PendingChoice::new(from, to, upstream.clone());
            let counters = &shared.counters;
            if let Some(mut open) = open(shared, client, &upstream, &target).await {
                let (gauge, is_new) = (counters.open_connections.enter(), open.early.is_empty());
                let pace = shared.pace(&decision);
                let outcome = open.relay(FirstFlight::Awaited(&mut pending), shared, &pace).await;
                drop(gauge);
                match pending.other {
                    None => open.count(shared, &outcome),
                    Some((choice, first)) => return change(shared, open, choice, first, is_new).await,
                }
            }
            if pending.is_open {
                shared.settle(&decision);
            }
        }
        Way::Resolvers(ways) => {
            shared.settle(&decision);
            resolution::serve_connection(shared, client, from.ip(), ways).await;
        }
        // The client is connected to read the name: only a rule by name can let it through.
        Way::Refuse | Way::Drop => {
            let Ok(mut inside) = client.accept().await else { return shared.counters.abandoned.one() };
            let (mut read, _) = inside.stream.split();
            let stated = timeout(shared.config.connect_timeout, first_flight::read(&mut read)).await;
            let (first, server_name) = match stated {
                Ok(Ok(stated)) => stated,
                Ok(Err(_)) => return shared.counters.abandoned.one(),
                Err(_) => (Bytes::new(), ServerName::Absent),
            };
            let choice = shared.choose(from, to, Protocol::Tcp, &server_name);
            shared.settle(&choice.decision);
            if let Way::Through(upstream, target) = choice.way {
                let pace = shared.pace(&choice.decision);
                go_on(shared, inside, &upstream, &target, first, &pace).await;
            }
        }
    }
}

/// Takes another way with what the client has sent, if nothing has come back on the first one:
/// `is_new` if nothing had when it was opened.
async fn change(shared: &Shared, open: Open, choice: Choice, first: Bytes, is_new: bool) {
    let Way::Through(upstream, target) = choice.way else { return };
    let Open { inside, outside, .. } = open;
    drop(outside);
    let has_had_nothing =
        inside.stream.info().is_ok_and(|info| info.bytes_sent == 0 && info.notsent_bytes == 0);
    if !is_new || !has_had_nothing {
        return shared.counters.server_name_late.one();
    }
    let pace = shared.pace(&choice.decision);
    go_on(shared, inside, &upstream, &target, first, &pace).await;
}

/// Connects to the destination for a client that is connected already, and carries the connection
/// on, beginning with `first`.
async fn go_on<'s>(
    shared: &'s Shared,
    inside: StackStream,
    upstream: &Upstream,
    target: &Target,
    first: Bytes,
    pace: &Pace<'s>,
) {
    let connected = tokio::select! {
        connected = connect(shared, upstream, target) => connected,
        _ = inside.stream.ready(Interest::ERROR) => return shared.counters.abandoned.one(),
    };
    // If not, it has been counted, and the client is reset.
    if let Ok(Connected { stream, early, .. }) = connected {
        let outside = OutsideStream { stream, is_over: false };
        Open { inside, outside, early }.run(shared, first, pace).await;
    }
}

/// A connection whose both ends are open.
struct Open {
    inside: StackStream,
    outside: OutsideStream,
    /// Data that the destination has sent already.
    early: Vec<u8>,
}

impl Open {
    /// Copies both ways to the end, beginning with `first`, which the client has sent already.
    async fn run<'s>(mut self, shared: &'s Shared, first: Bytes, pace: &Pace<'s>) {
        let _open = shared.counters.open_connections.enter();
        let outcome = self.relay(FirstFlight::Read(first), shared, pace).await;
        self.count(shared, &outcome);
    }

    async fn relay<'s>(
        &mut self,
        first: FirstFlight<'_>,
        shared: &'s Shared,
        pace: &Pace<'s>,
    ) -> io::Result<()> {
        let early = std::mem::take(&mut self.early);
        relay(&mut self.inside.stream, &mut self.outside.stream, first, early, shared, pace).await
    }

    /// Notes its end. Of one that has failed both ends are reset.
    fn count(mut self, shared: &Shared, outcome: &io::Result<()>) {
        (self.inside.is_over, self.outside.is_over) = (outcome.is_ok(), outcome.is_ok());
        let counters = &shared.counters;
        if outcome.is_ok() { counters.finished.one() } else { counters.reset.one() }
    }
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
