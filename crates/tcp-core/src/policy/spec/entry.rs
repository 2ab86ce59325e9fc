//! Tables of policies, and lookup by name.

use super::{ParamRow, Params, PolicySpec, SpecError, nearest};
use crate::ecn::Ecn;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Display};

/// On which networks a congestion control is meant to run: what a comparison with others may ask of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Deployment {
    /// The Internet, as an equal of other traffic.
    #[default]
    General,
    /// The Internet, behind other traffic: it yields (RFC 6817).
    Scavenger,
    /// Networks of one operator, where all senders are alike and queues are set up for it (RFC
    /// 8257, section 6).
    Controlled,
}

/// A policy in a table. `T` is the type of its maker, such as
/// [`NewCongestionControl`](crate::policy::NewCongestionControl).
///
/// A policy whose parameters are [keys](super::Keyed) is an entry in one line, and what is printed
/// of its parameters is what is checked:
///
/// ```
/// use ackline_tcp_core::policy::NewAckPolicy;
/// use ackline_tcp_core::policy::builtin::DelayedAck;
/// use ackline_tcp_core::policy::spec::Entry;
///
/// const MINE: Entry<NewAckPolicy> = Entry::ack::<DelayedAck>("mine", "delays ACKs");
/// ```
///
/// So are congestion controls that are a
/// [`WindowGrowth`](crate::policy::window::WindowGrowth) and RTO responses. Otherwise only a name
/// and a maker are required, and [`keys`](Self::keys) if there are parameters:
///
/// ```
/// use ackline_tcp_core::policy::builtin::DelayedAck;
/// use ackline_tcp_core::policy::spec::Entry;
/// use ackline_tcp_core::policy::NewAckPolicy;
/// use std::sync::Arc;
///
/// const MINE: Entry<NewAckPolicy> = Entry {
///     summary: "an ACK for every second segment",
///     ..Entry::new("mine", |params| {
///         params.reject_all("mine")?;
///         Ok(Arc::new(|_| Box::new(DelayedAck::default())))
///     })
/// };
/// ```
pub struct Entry<T: ?Sized> {
    /// The name.
    pub name: &'static str,
    /// Aliases of the name.
    pub aliases: &'static [&'static str],
    /// A description in one line.
    pub summary: &'static str,
    /// Its source: RFC or paper.
    pub source: &'static str,
    /// Its parameters with their defaults and ranges, usually [`ParamRow::of`] the type that has
    /// them as [keys](super::Key).
    pub keys: fn() -> Vec<ParamRow>,
    /// For congestion controls: the ECN feedback that the algorithm is designed for. Connections
    /// request it unless [`ConnConfig::ecn`](crate::ConnConfig::ecn) is set explicitly.
    pub ecn: Ecn,
    /// For congestion controls: on which networks it is meant to run.
    pub deployment: Deployment,
    /// Checks the parameters and returns the maker.
    pub make: fn(&Params) -> Result<Arc<T>, SpecError>,
}

impl<T: ?Sized> Entry<T> {
    /// An entry with only a name and a maker.
    #[must_use]
    pub const fn new(name: &'static str, make: fn(&Params) -> Result<Arc<T>, SpecError>) -> Self {
        Self {
            name,
            aliases: &[],
            summary: "",
            source: "",
            keys: Vec::new,
            ecn: Ecn::Off,
            deployment: Deployment::General,
            make,
        }
    }

    /// Its parameters.
    #[must_use]
    pub fn rows(&self) -> Vec<ParamRow> {
        (self.keys)()
    }

    /// Whether `name` is the policy's name or one of its aliases.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

impl<T: ?Sized> Clone for Entry<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Entry<T> {}

impl<T: ?Sized> fmt::Debug for Entry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The entry of `entries` named by `spec`; also checks that its parameters exist. `kind` is for
/// error messages.
///
/// # Errors
/// Names the nearest known name or parameter if one is unknown.
pub fn find<'a, T: ?Sized>(
    entries: &'a [Entry<T>],
    kind: PolicyKind,
    spec: &PolicySpec,
) -> Result<&'a Entry<T>, SpecError> {
    let Some(entry) = entries.iter().find(|entry| entry.is_called(&spec.name)) else {
        let mut message = format!("unknown {kind} {:?}", spec.name);
        if let Some(near) = nearest(&spec.name, entries.iter().map(|entry| entry.name)) {
            message += &format!("; did you mean {near:?}?");
        }
        message += &format!(" (ackline list {})", kind.keyword());
        return Err(SpecError::new(message));
    };
    for param in spec.params.iter() {
        let rows = entry.rows();
        if !rows.iter().any(|row| row.name == param.key) {
            return Err(param.unknown(entry.name, rows.iter().map(|row| row.name)));
        }
    }
    Ok(entry)
}

/// The maker of the policy described by `text`, with its parameters.
///
/// # Errors
/// As [`find`]; also if the text or a parameter's value is invalid.
pub fn resolve<T: ?Sized>(entries: &[Entry<T>], kind: PolicyKind, text: &str) -> Result<Arc<T>, SpecError> {
    let spec: PolicySpec = text.parse()?;
    (find(entries, kind, &spec)?.make)(&spec.params)
}

/// The four kinds of policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// Congestion control.
    Cc,
    /// ACK policy.
    Ack,
    /// Egress scheduler.
    Sched,
    /// Response to a retransmission timeout.
    Rto,
}

impl PolicyKind {
    /// The keyword for the kind on a command line.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Cc => "cc",
            Self::Ack => "ack",
            Self::Sched => "sched",
            Self::Rto => "rto",
        }
    }
}

impl Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cc => "congestion control",
            Self::Ack => "ACK policy",
            Self::Sched => "egress scheduler",
            Self::Rto => "RTO response",
        })
    }
}
