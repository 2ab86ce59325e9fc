//! The long-term bandwidth (section 5.5.5): the highest sample of the present cycle of ProbeBW and
//! of the one before.

use super::Ack;

/// The highest samples of two cycles, in bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBw {
    previous: u64,
    current: u64,
}

impl MaxBw {
    pub(super) fn get(self) -> u64 {
        self.previous.max(self.current)
    }

    /// `BBRUpdateMaxBw`. A sample of a flow that the application limited only counts if it is
    /// higher than what is known.
    pub(super) fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Some(rs) = &ack.rs
            && (!rs.app_limited || rs.rate >= self.get())
        {
            self.current = self.current.max(rs.rate);
        }
    }

    /// `BBRAdvanceMaxBwFilter`: a cycle begins. One without a sample does not end: a bandwidth is
    /// not forgotten for want of data to send.
    pub(super) const fn advance(&mut self) {
        if self.current > 0 {
            self.previous = self.current;
            self.current = 0;
        }
    }
}
