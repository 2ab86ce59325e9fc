//! Delivery-rate samples (draft-ietf-ccwg-bbr, section 4.1).
//!
//! Each transmission remembers how much had been delivered when it left. When an ACK covers it, the
//! difference is what was delivered over one flight, and the longer of the time it took to send and
//! the time it took to be acknowledged is the interval: an ACK that was compressed or held on its
//! way cannot show a rate above the sending rate.

use crate::policy::cc::RateSample;
use crate::scoreboard::{AckCx, Stamp};
use crate::time::Instant;
use crate::units::Rate;

/// The connection's counts (`C.*` of the draft).
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Bytes acknowledged or SACKed since the connection began.
    pub(crate) delivered: u64,
    /// `delivered` at which the last bubble caused by the application is over; 0: none.
    app_limited: u64,
    /// The last sample's rate.
    pub(crate) last: Rate,
}

/// The instants between which the next sample is taken; part of the flight, because the first
/// departure sets both.
#[derive(Debug, Default)]
pub(crate) struct DeliveryClock {
    /// When `delivered` last grew.
    delivered_at: Instant,
    /// Departure of the segment that was most recently delivered, or of the first of the flight.
    first_sent_at: Instant,
}

impl DeliveryClock {
    /// A segment leaves at `now`, after which `in_flight` bytes are in the network; `idle` if
    /// nothing was outstanding. `lost`: bytes declared lost so far.
    pub(crate) fn on_sent(
        &mut self,
        delivery: &Delivery,
        now: Instant,
        idle: bool,
        in_flight: u32,
        lost: u32,
    ) -> Stamp {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Stamp {
            sent_at: now,
            delivered: delivery.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight,
            lost,
        }
    }
}

impl Delivery {
    pub(crate) const fn new() -> Self {
        Self { delivered: 0, app_limited: 0, last: Rate::ZERO }
    }

    /// The application has nothing to send while `pipe` bytes are out, below the window.
    pub(crate) fn on_app_limited(&mut self, pipe: u32) {
        self.app_limited = (self.delivered + u64::from(pipe)).max(1);
    }

    /// The flow is in a bubble that the application caused.
    pub(crate) const fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }

    /// Closes the sample of one ACK, before the losses that it shows are marked. None if it covered
    /// nothing, or if the interval is too short to be believed (below the smallest RTT). `lost`:
    /// bytes declared lost so far.
    pub(crate) fn on_ack(&mut self, clock: &mut DeliveryClock, ack: &AckCx, lost: u32) -> Option<RateSample> {
        if ack.delivered == 0 {
            return None;
        }
        self.delivered += u64::from(ack.delivered);
        clock.delivered_at = ack.now;
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let newest = ack.newest.as_ref()?;
        clock.first_sent_at = newest.stamp.sent_at;
        let send_elapsed = newest.stamp.sent_at.since(newest.stamp.first_sent_at);
        let ack_elapsed = ack.now.since(newest.stamp.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || ack.min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        let mut sample =
            RateSample::new(self.delivered - newest.stamp.delivered, interval, newest.stamp.delivered);
        sample.tx_in_flight = newest.stamp.in_flight;
        sample.lost = lost.wrapping_sub(newest.stamp.lost);
        sample.app_limited = newest.app_limited;
        sample.retransmission = newest.retransmission;
        self.last = sample.rate();
        Some(sample)
    }
}
