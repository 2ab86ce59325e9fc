//! One connection: the client waits until its destination has answered.

use crate::outside::Stream;
use crate::proxy::{Config, Shared, Way};
use crate::relay::relay;
use crate::target::Protocol;
use crate::upstream::{ConnectError, Connected};
use ackline_runtime::{HeldSyn, Refusal, TcpStream};
use tokio::time::timeout;

/// Answers the client as its destination does, and carries the connection on to its end.
pub(crate) async fn carry(shared: &Shared, syn: HeldSyn) {
    // What opening takes is large, and gone before the connection idles: a box of its own keeps it out of the task.
    let Some(open) = Box::pin(open(shared, syn)).await else { return };
    let Open { mut inside, mut outside, early } = open;
    let counters = &shared.counters;
    let _open = counters.open_connections.enter();
    let outcome = relay(&mut inside.stream, &mut outside.stream, early, shared).await;
    (inside.is_over, outside.is_over) = (outcome.is_ok(), outcome.is_ok());
    if outcome.is_ok() { counters.finished.one() } else { counters.reset.one() }
}

/// A connection whose both ends are open.
struct Open {
    inside: Inside,
    outside: Outside,
    /// What the destination has sent already.
    early: Vec<u8>,
}

/// Connects to the destination, and answers the client. Without a connection it has been counted, and the client told.
async fn open(shared: &Shared, syn: HeldSyn) -> Option<Open> {
    let counters = &shared.counters;
    let (upstream, out, target) = match shared.way(syn.peer_addr().ip(), syn.local_addr(), Protocol::Tcp) {
        Way::Through(upstream, target) => (upstream, &shared.out, target),
        Way::Resolver(upstream, resolver) => (upstream, shared.out_to_resolver(), resolver.address.into()),
        Way::Refuse => {
            syn.refuse(Refusal::Rst);
            return None;
        }
        Way::Drop => {
            syn.refuse(Refusal::Drop);
            return None;
        }
    };
    let Config { connect_timeout, server_timeout, .. } = shared.config;
    let connect = timeout(connect_timeout, upstream.connect(out, &target, server_timeout));
    let Ok(connected) = syn.hold(connect).await else {
        counters.abandoned.one();
        return None;
    };
    let Connected { stream: outside, early } = match connected.unwrap_or(Err(ConnectError::TimedOut)) {
        Ok(connected) => connected,
        Err(error) => {
            syn.refuse(shared.refusal(&upstream, &error));
            return None;
        }
    };
    // If this fails the client has gone, and the destination is told.
    let outside = Outside { stream: outside, is_over: false };
    let Ok(inside) = syn.accept().await else {
        counters.abandoned.one();
        return None;
    };
    Some(Open { inside: Inside { stream: inside, is_over: false }, outside, early })
}

/// A client's end, which is reset unless all has been passed on.
struct Inside {
    stream: TcpStream,
    is_over: bool,
}

impl Drop for Inside {
    fn drop(&mut self) {
        if !self.is_over {
            self.stream.abort();
        }
    }
}

/// The other end.
struct Outside {
    stream: Stream,
    is_over: bool,
}

impl Drop for Outside {
    fn drop(&mut self) {
        if !self.is_over {
            self.stream.abort();
        }
    }
}

impl Shared {
    /// Counts why a connection or flow could not be carried on, says what concerns who runs the proxy, and returns what a client is told.
    pub(crate) fn refusal(&self, upstream: &impl std::fmt::Display, error: &ConnectError) -> Refusal {
        let counters = &self.counters;
        let (counter, refusal) = match error {
            ConnectError::Refused => (&counters.upstream_refused, Refusal::Rst),
            ConnectError::Unreachable => (&counters.upstream_unreachable, Refusal::Unreachable),
            ConnectError::TimedOut => (&counters.upstream_timeouts, Refusal::Drop),
            ConnectError::Exhausted(error) => {
                self.notices.trouble(
                    "sockets",
                    format_args!("{error}; connections and flows wait until some have ended"),
                );
                (&counters.no_descriptor, Refusal::Drop)
            }
            ConnectError::Server(what) => {
                self.notices.trouble(&upstream.to_string(), what);
                (&counters.upstream_failed, Refusal::Unreachable)
            }
        };
        counter.one();
        refusal
    }
}
