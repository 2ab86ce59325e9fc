//! The round trip without a queue (section 5.5.7): the lowest sample of ten seconds, and the lowest
//! of five, whose age says when to probe for it.

use super::{Ack, Bbr};
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::{Duration, Instant};

/// Both minima, and when each was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// `BBR.min_rtt`; `None` before a sample.
    min_rtt: Option<Duration>,
    stamp: Instant,
    /// `BBR.probe_rtt_min_delay`.
    probe_min: Option<Duration>,
    probe_stamp: Instant,
    /// `probe_min` was older than its interval when the last ACK came.
    expired: bool,
}

impl MinRtt {
    /// Both start from the handshake's sample.
    pub(super) fn new(init: &CcInit) -> Self {
        let first = init.min_rtt.or(init.srtt);
        Self { min_rtt: first, stamp: init.now, probe_min: first, probe_stamp: init.now, expired: false }
    }

    pub(super) const fn get(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// No sample as low has come for the interval of ProbeRTT.
    pub(super) const fn is_probe_due(&self) -> bool {
        self.expired
    }

    /// ProbeRTT has ended.
    pub(super) const fn on_probed(&mut self, now: Instant) {
        self.probe_stamp = now;
    }

    /// `BBRUpdateMinRTT`. An equal sample renews nothing.
    fn on_ack(&mut self, now: Instant, rtt: Option<Duration>, interval: Duration, window: Duration) {
        self.expired = now > self.probe_stamp + interval;
        if let Some(rtt) = rtt
            && (self.expired || self.probe_min.is_none_or(|min| rtt < min))
        {
            (self.probe_min, self.probe_stamp) = (Some(rtt), now);
        }
        let Some(probe_min) = self.probe_min else { return };
        if now > self.stamp + window || self.min_rtt.is_none_or(|min| probe_min < min) {
            (self.min_rtt, self.stamp) = (Some(probe_min), self.probe_stamp);
        }
    }
}

impl Bbr {
    pub(super) fn update_min_rtt(&mut self, ack: &Ack<'_>) {
        let (interval, window) = (self.params.probe_rtt_interval, self.params.min_rtt_window);
        self.model.min_rtt.on_ack(ack.view.now, ack.seen.rtt, interval, window);
    }
}
