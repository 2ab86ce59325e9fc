//! Decisions about connections and flows, for a log.

use crate::rules::Action;
use crate::rules::rate::RateLimit;
use crate::target::Protocol;
use serde::{Serialize, Serializer};
use std::net::SocketAddr;
use std::sync::Arc;

/// Decision about one connection or flow, as it is logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// Transport protocol.
    pub protocol: Protocol,
    /// The client.
    pub client: SocketAddr,
    /// The destination that the client has written into its packets.
    pub destination: SocketAddr,
    /// Names by which the client knows the destination, from answers of the resolver. Whoever owns
    /// a zone chooses what they are.
    pub names: Vec<Arc<str>>,
    /// The client knows the destination by exactly one name.
    #[serde(skip)]
    pub(crate) has_only_name: bool,
    /// The server's name that the client has stated, if a rule asked for it.
    pub server_name: Option<Arc<str>>,
    /// The rule that decided, counted from 1; `None` if none did.
    pub rule: Option<usize>,
    /// The action: `direct`, an upstream's URL without user and password, `resolver`, `refuse` or
    /// `drop`.
    #[serde(serialize_with = "as_text")]
    pub action: Action,
    /// The rate of the rule, in bits per second in each direction, that it shares with all else
    /// that the rule lets through.
    pub rate: Option<RateLimit>,
    /// The reason.
    pub reason: Reason,
    /// False if it was only logged: what a [dry run](crate::Config::dry_run) does not refuse, and
    /// rates to which it holds nothing.
    pub enforced: bool,
}

/// Reason for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// A rule.
    Rule,
    /// No rule matches.
    Default,
    /// The address is one of the proxy's own.
    OwnAddress,
    /// The address is never carried on: loopback, link-local, multicast, unspecified, or this
    /// machine's own.
    NotCarried,
    /// A rule by domain could have matched a name that was forgotten.
    NamesForgotten,
    /// A rule by server name could have matched, but the client's first message is not valid TLS or
    /// HTTP.
    ServerNameUnreadable,
}

/// Receiver of decisions. Returns whether it has taken one; others are counted as lost.
pub type Log = Arc<dyn Fn(&Decision) -> bool + Send + Sync>;

fn as_text<S: Serializer>(action: &Action, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(action)
}
