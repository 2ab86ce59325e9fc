//! Address ownership: probing an address before use, announcing it and defending it.
//!
//! RFC 5227 for IPv4; RFC 4862, section 5.4, for IPv6, with the same schedule. Both differ from
//! their RFC in the times only, which [`ClaimConfig`](super::ClaimConfig) holds.

use super::config::ClaimConfig;
use ackline_tcp_core::Instant;

/// Ownership of one of the host's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing was done yet.
    Unclaimed,
    /// `sent` probes are out. The address is not used (RFC 5227, section 2.1; "tentative" in RFC
    /// 4862).
    Probing { sent: u32, next: Instant },
    /// The address is this host's and has been announced `announced` times.
    Ours { announced: u32, next: Option<Instant>, defended: Option<Instant> },
    /// Another host has it.
    Taken,
}

/// What to do when a timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Probe,
    Announce,
    /// No answer came: the address is this host's. Announce it.
    Claimed,
    Wait,
}

/// What to do when another host uses the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conflict {
    /// The address cannot be used.
    Lost,
    /// Announce that it is this host's.
    Defend,
    /// Do nothing: it was announced a moment ago.
    Endure,
}

impl Claim {
    pub(super) fn begin(&mut self, now: Instant) {
        *self = Self::Probing { sent: 0, next: now };
    }

    pub(super) const fn is_ours(&self) -> bool {
        matches!(self, Self::Ours { .. })
    }

    pub(super) const fn is_probing(&self) -> bool {
        matches!(self, Self::Probing { .. })
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        match *self {
            Self::Probing { next, .. } => Some(next),
            Self::Ours { next, .. } => next,
            Self::Unclaimed | Self::Taken => None,
        }
    }

    pub(super) fn expired(&mut self, now: Instant, config: &ClaimConfig) -> Due {
        match *self {
            Self::Probing { sent, next } if next <= now => {
                if sent < config.probes {
                    *self = Self::Probing { sent: sent + 1, next: now + config.probe_interval };
                    return Due::Probe;
                }
                let next = (config.announcements > 1).then(|| now + config.announce_interval);
                *self = Self::Ours { announced: 1, next, defended: None };
                Due::Claimed
            }
            Self::Ours { announced, next: Some(next), defended } if next <= now => {
                let announced = announced + 1;
                let next = (announced < config.announcements).then(|| now + config.announce_interval);
                *self = Self::Ours { announced, next, defended };
                Due::Announce
            }
            _ => Due::Wait,
        }
    }

    /// Another host uses the address, or is about to while this one is, too.
    ///
    /// An address in use is never given up, since connections depend on it: RFC 5227, section 2.4,
    /// (c). It is defended at most once per interval, so that two such hosts do not storm.
    pub(super) fn conflict(&mut self, now: Instant, config: &ClaimConfig) -> Conflict {
        match self {
            Self::Ours { defended, .. } => {
                if defended.is_some_and(|at| now.since(at) < config.defend_interval) {
                    return Conflict::Endure;
                }
                *defended = Some(now);
                Conflict::Defend
            }
            Self::Probing { .. } => {
                *self = Self::Taken;
                Conflict::Lost
            }
            Self::Unclaimed | Self::Taken => Conflict::Endure,
        }
    }
}
