//! Requests and answers, as lines of JSON.

use ackline::core::Instant;
use ackline::runtime::Info;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Longest request, in bytes, with its line end.
pub(super) const MAX_REQUEST: u64 = 64 << 10;

/// What a client asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Connections and listeners that `filter` selects, in the words of `ackline ss`.
    Show { filter: Vec<String> },
    /// Sets options of the connections that `filter` selects.
    Set { options: String, filter: Vec<String> },
}

/// One line of an answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    /// Comes first: who answers.
    Stack(About),
    Listener(Listening),
    Connection(Box<Shown>),
    /// Comes last: how many connections and listeners were shown, or connections changed.
    Done(usize),
    /// Comes last: why there is no more.
    Error(String),
}

/// The process that answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) pid: u32,
    pub(crate) command: String,
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
pub(super) struct Shown {
    pub(super) id: String,
    pub(super) now: Instant,
    /// The next timer and its instant.
    pub(super) timer: Option<(&'static str, Instant)>,
    #[serde(flatten)]
    pub(super) info: Info,
}
