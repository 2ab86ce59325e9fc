//! Without SACK: what duplicate ACKs stand for.

use super::Scoreboard;

impl Scoreboard {
    /// Bytes that left the network without anybody knowing which
    /// ([`add_unnamed`](Self::add_unnamed)).
    pub(crate) const fn unnamed(&self) -> u32 {
        self.unnamed
    }

    /// A duplicate ACK without SACK: `bytes` more have left the network. Bounded by what is
    /// outstanding beyond the head.
    pub(crate) fn add_unnamed(&mut self, bytes: u32) {
        let most = self.tally.outstanding.saturating_sub(self.tally.lost.max(bytes));
        self.unnamed = self.unnamed.saturating_add(bytes).min(most);
    }

    /// A cumulative ACK of `acked` bytes without SACK: one segment of `smss` was the hole, the rest
    /// is what earlier duplicate ACKs stood for.
    pub(crate) fn resolve_unnamed(&mut self, acked: u32, smss: u32) {
        let most = self.tally.outstanding.saturating_sub(self.tally.lost);
        self.unnamed = self.unnamed.saturating_sub(acked.saturating_sub(smss)).min(most);
    }

    pub(crate) fn clear_unnamed(&mut self) {
        self.unnamed = 0;
    }
}
