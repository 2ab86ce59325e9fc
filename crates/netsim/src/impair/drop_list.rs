//! Scripted loss: drops exactly the chosen packets.

use super::{Fate, ImpairCx, Impairment};
use crate::packet::Packet;
use ackline_tcp_core::Instant;
use std::fmt;

/// Drops chosen packets, so that a scenario can repeat one exact loss pattern.
pub struct DropList {
    which: Which,
    /// Number of packets the predicate has seen.
    seen: u64,
}

/// Decides whether to drop a packet, given its number among all, counted from 1.
pub type Choose = Box<dyn FnMut(u64, &Packet) -> bool + Send>;

/// Which packets to drop.
pub enum Which {
    /// The n-th packets of the link, counted from 1.
    Nth(Vec<u64>),
    /// The n-th packets with stream payload, counted from 1.
    NthData(Vec<u64>),
    /// All packets that leave the link from the first instant until before the second.
    Between(Instant, Instant),
    /// Those selected by a function.
    Predicate(Choose),
}

impl fmt::Debug for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nth(list) => f.debug_tuple("Nth").field(list).finish(),
            Self::NthData(list) => f.debug_tuple("NthData").field(list).finish(),
            Self::Between(from, to) => f.debug_tuple("Between").field(from).field(to).finish(),
            Self::Predicate(_) => f.write_str("Predicate"),
        }
    }
}

impl fmt::Debug for DropList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropList").field("which", &self.which).field("seen", &self.seen).finish()
    }
}

impl DropList {
    /// Drops `which`.
    #[must_use]
    pub const fn new(which: Which) -> Self {
        Self { which, seen: 0 }
    }
}

impl Impairment for DropList {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, packet: &mut Packet, fate: &mut Fate) {
        let counts = !matches!(self.which, Which::NthData(_)) || packet.origin.class.is_data();
        self.seen += u64::from(counts);
        fate.lost |= match &mut self.which {
            Which::Nth(list) => list.contains(&self.seen),
            Which::NthData(list) => counts && list.contains(&self.seen),
            Which::Between(from, to) => (*from..*to).contains(&cx.now),
            Which::Predicate(choose) => choose(self.seen, packet),
        };
    }
}
