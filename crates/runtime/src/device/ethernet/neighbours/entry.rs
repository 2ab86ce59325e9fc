//! One neighbour: the state machine of RFC 4861, section 7.3, for both IP versions, as Linux does
//! it.
//!
//! ```text
//!            asked by a packet          answer                     time is up
//!  (nothing) ───────────────► INCOMPLETE ───────► REACHABLE ───────────────────► STALE ◄── another host's news
//!                                 │ no answer         ▲                            │ packet
//!                                 ▼                   │ answer                     ▼
//!                             (forgotten) ◄─────── PROBE ◄───────────────────── DELAY
//!                                       no answer           nothing was heard
//! ```
//!
//! An ARP reply to a request that is open counts as a solicited advertisement that overrides; any
//! other ARP message with the neighbour's address as sender counts as an unsolicited one (RFC 826's
//! merge).
//!
//! Upper-layer hints of forward progress are not used; RFC 4861, section 7.3.1, permits them but
//! does not demand them. A segment with the ACK bit is no such hint: it does not show that what
//! this host sent *lately* arrived. So a neighbour in use gets one unicast request per reachable
//! time and delay, about every 35 s. Received packets need no lookup, and a path that only works in
//! one direction is noticed.

use super::config::NeighbourConfig;
use crate::mac::MacAddress;
use ackline_tcp_core::{Duration, Instant};

/// State of a neighbour, by RFC 4861's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeighbourState {
    /// `sent` requests have gone to the whole link; `next` is when to ask again or give up.
    Incomplete { sent: u32, next: Instant },
    /// It answered lately.
    Reachable { mac: MacAddress, until: Instant },
    /// It has not answered lately, and no packet has been sent to it since.
    Stale { mac: MacAddress },
    /// A packet was sent to it; wait until `until` for a sign of life.
    Delay { mac: MacAddress, until: Instant },
    /// `sent` unicast probes have been sent.
    Probe { mac: MacAddress, sent: u32, next: Instant },
    /// Its address was configured; received messages do not change it. (Linux's name, not one of
    /// RFC 4861.)
    Permanent { mac: MacAddress },
}

/// What another host said about a neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    /// Its Ethernet address, if given; an advertisement may omit it.
    pub(super) mac: Option<MacAddress>,
    /// It answers a request of this host.
    pub(super) solicited: bool,
    /// It overrides a cached address.
    pub(super) overrides: bool,
}

impl News {
    /// What a request or solicitation says about its sender.
    pub(super) const fn of_sender(mac: MacAddress) -> Self {
        Self { mac: Some(mac), solicited: false, overrides: true }
    }
}

/// What to do when a timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expired {
    /// Ask the whole link.
    AskAll,
    /// Ask the station that last had the address.
    Ask(MacAddress),
    /// Forget it; no packet is waiting for it.
    Forget,
    /// Forget it, and report the failure to the waiting packets.
    Fail,
    /// Nothing yet.
    Wait,
}

/// What a message changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Effect {
    /// The address became known: waiting packets can be sent.
    pub(super) resolved: Option<MacAddress>,
    /// A known address was replaced.
    pub(super) changed: bool,
}

impl NeighbourState {
    pub(super) const fn mac(&self) -> Option<MacAddress> {
        match *self {
            Self::Incomplete { .. } => None,
            Self::Reachable { mac, .. }
            | Self::Stale { mac }
            | Self::Delay { mac, .. }
            | Self::Probe { mac, .. }
            | Self::Permanent { mac } => Some(mac),
        }
    }

    /// When [`expired`](Self::expired) is to be called. A neighbour that is reachable becomes stale
    /// when it is next used, without a timer.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        match *self {
            Self::Incomplete { next, .. } | Self::Probe { next, .. } => Some(next),
            Self::Delay { until, .. } => Some(until),
            Self::Reachable { .. } | Self::Stale { .. } | Self::Permanent { .. } => None,
        }
    }

    /// True if [`used`](Self::used) would change the state.
    pub(super) fn heeds_use(&self, now: Instant) -> bool {
        match *self {
            Self::Reachable { until, .. } => until <= now,
            Self::Stale { .. } => true,
            _ => false,
        }
    }

    /// A packet is sent to the neighbour: RFC 4861, section 7.3.3. If its reachable time is over,
    /// it becomes stale first.
    pub(super) fn used(&mut self, now: Instant, config: &NeighbourConfig) {
        if let Some(mac) = self.mac().filter(|_| self.heeds_use(now)) {
            *self = Self::Delay { mac, until: now + config.delay };
        }
    }

    /// The deadline has passed: RFC 4861, sections 7.2.2 and 7.3.3.
    pub(super) fn expired(&mut self, now: Instant, config: &NeighbourConfig) -> Expired {
        let next = now + config.retransmit;
        match *self {
            Self::Incomplete { sent, next: due } if due <= now => {
                if sent >= config.multicast_requests {
                    return Expired::Fail;
                }
                *self = Self::Incomplete { sent: sent + 1, next };
                Expired::AskAll
            }
            Self::Delay { mac, until } if until <= now => {
                *self = Self::Probe { mac, sent: 1, next };
                Expired::Ask(mac)
            }
            Self::Probe { mac, sent, next: due } if due <= now => {
                if sent >= config.unicast_requests {
                    return Expired::Forget;
                }
                *self = Self::Probe { mac, sent: sent + 1, next };
                Expired::Ask(mac)
            }
            _ => Expired::Wait,
        }
    }

    /// Requests could not be sent until `now`: start counting them again.
    pub(super) fn ask_anew(&mut self, now: Instant) {
        if let Self::Incomplete { .. } = self {
            *self = Self::Incomplete { sent: 0, next: now };
        }
    }

    /// True if a request of this host is outstanding.
    pub(super) const fn is_asked(&self) -> bool {
        matches!(self, Self::Incomplete { .. } | Self::Probe { .. })
    }

    /// An advertisement, or its ARP equivalent: RFC 4861, section 7.2.5. An answer is valid for
    /// `reachable`.
    pub(super) fn heard(&mut self, now: Instant, news: &News, reachable: Duration) -> Effect {
        if matches!(self, Self::Permanent { .. }) {
            return Effect::default();
        }
        let until = now + reachable;
        let Some(known) = self.mac() else {
            // INCOMPLETE: an advertisement without the address is of no use.
            let Some(mac) = news.mac else { return Effect::default() };
            *self = if news.solicited { Self::Reachable { mac, until } } else { Self::Stale { mac } };
            return Effect { resolved: Some(mac), changed: false };
        };
        let mac = news.mac.unwrap_or(known);
        let changed = mac != known;
        if changed && !news.overrides {
            // Rule I: what is known stays, but is doubted.
            if matches!(self, Self::Reachable { .. }) {
                *self = Self::Stale { mac: known };
            }
            return Effect::default();
        }
        // Rule II.
        if news.solicited {
            *self = Self::Reachable { mac, until };
        } else if changed {
            *self = Self::Stale { mac };
        }
        Effect { resolved: None, changed }
    }
}
