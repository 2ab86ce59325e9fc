//! Polling the device for a while after the last packet, in place of sleeping.

use ackline_tcp_core::{Duration, Instant};

/// Whether a packet was sent or received so recently that the driver should not sleep.
#[derive(Debug)]
pub(crate) struct BusyPoll {
    /// Time after the last packet for which it does not.
    time: Duration,
    /// When that time ends.
    until: Instant,
}

impl BusyPoll {
    pub(super) const fn new(time: Duration) -> Self {
        Self { time, until: Instant::ZERO }
    }

    /// A packet was sent or received.
    pub(super) fn on_packet(&mut self, now: Instant) {
        self.until = now + self.time;
    }

    /// The driver does not sleep.
    pub(super) fn goes_on(&self, now: Instant) -> bool {
        now < self.until
    }
}
