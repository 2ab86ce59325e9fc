//! Loss that is written down: these packets, and no others.

use super::{Fate, ImpairCx, Impairment};
use crate::packet::Packet;
use ackline_tcp_core::Instant;
use std::fmt;

/// Drops chosen packets, so that a scenario repeats one exact pattern of loss.
pub struct DropList {
    which: Which,
    /// Packets that the predicate chose from, so far.
    seen: u64,
}

/// Says whether a packet is dropped, by its place among all, counted from 1.
pub type Choose = Box<dyn FnMut(u64, &Packet) -> bool + Send>;

/// Which packets to drop.
pub enum Which {
    /// The n-th packets of the link, counted from 1.
    Nth(Vec<u64>),
    /// The n-th packets that carry payload of a stream, counted from 1.
    NthData(Vec<u64>),
    /// All that leave the link from the first instant up to, and without, the second.
    Between(Instant, Instant),
    /// Those for which a function says so.
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
