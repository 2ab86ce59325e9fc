//! Requests and answers, as lines of JSON.

use crate::watchers::summary::Summary;
use ackline::core::info::Blocked;
use ackline::core::{ConnId, Duration, Instant, State};
use ackline::runtime::Info;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// What a client asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Connections and listeners that `filter` selects, in the words of `ackline ss`.
    Show { filter: Vec<String> },
    /// Sets options of the connections that `filter` selects.
    Set { options: String, filter: Vec<String> },
    /// The stack as a whole.
    Summary,
    /// The stack as a whole, and the connections that `filter` selects, in short.
    Top { filter: Vec<String> },
    /// Every counter.
    Count,
    /// What a proxy publishes, after these changes.
    Publish { add: Vec<String>, remove: Vec<String> },
}

/// One line of an answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    /// Comes first: who answers.
    Stack(About),
    Listener(Listening),
    Connection(Box<ConnectionReport>),
    Brief(Brief),
    Summary(Box<Summary>),
    /// Name and value of each counter, in a fixed order.
    Counters(Vec<(&'static str, u64)>),
    Published(Publishes),
    /// Comes last: how many connections, listeners, counters or ports were shown, or connections changed.
    Done(usize),
    /// Comes last: why there is no more.
    Error(String),
}

/// A published port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Publishes {
    /// As `--publish` has it, with the guest.
    pub(crate) publish: String,
    /// Where it listens, port by port.
    pub(crate) listens: Vec<SocketAddr>,
}

/// The process that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) pid: u32,
    pub(crate) command: String,
    /// When it began to answer, in microseconds since 1970. With `pid`, it tells this stack from
    /// all others.
    pub(crate) started: u64,
}

/// A listener.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Listening {
    pub(super) local: SocketAddr,
    /// Connections that wait to be accepted.
    pub(super) queued: usize,
}

/// A connection. Instants are nanoseconds of the clock that `now` is of.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ConnectionReport {
    pub(super) id: String,
    pub(super) now: Instant,
    /// The next timer and its instant.
    pub(super) timer: Option<(&'static str, Instant)>,
    #[serde(flatten)]
    pub(super) info: Info,
}

/// A connection in short.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Brief {
    pub(super) id: String,
    pub(super) state: State,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) cc: &'static str,
    pub(super) rtt: Option<Duration>,
    pub(super) snd_cwnd: u64,
    pub(super) unacked: u32,
    pub(super) notsent_bytes: u32,
    pub(super) unread_bytes: u32,
    pub(super) bytes_acked: u64,
    pub(super) bytes_received: u64,
    pub(super) total_retrans: u64,
    pub(super) blocked: Blocked,
}

impl Brief {
    pub(super) fn new(id: ConnId, info: &Info) -> Self {
        Self {
            id: format!("{id:?}"),
            state: info.state,
            local: info.local,
            remote: info.remote,
            cc: info.cc,
            rtt: info.rtt,
            snd_cwnd: info.snd_cwnd,
            unacked: info.unacked,
            notsent_bytes: info.notsent_bytes,
            unread_bytes: info.unread_bytes,
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
            total_retrans: info.total_retrans,
            blocked: info.blocked,
        }
    }
}
