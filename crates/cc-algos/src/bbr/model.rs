//! The model of the path (sections 2.5 to 2.12, 5.5): bandwidth, round trip, rounds, and the bounds
//! that losses have set.

use super::max_bw::MaxBw;
use super::min_rtt::MinRtt;
use super::{Ack, Bbr, mul_div};
use ackline_tcp_core::policy::cc::CcInit;

/// A bound that is not set (Infinity in the draft).
pub(super) const UNSET: u64 = u64::MAX;

/// What is known of the path. Rates in bytes per second, volumes in bytes.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) max_bw: MaxBw,
    pub(super) min_rtt: MinRtt,
    /// The rate to send at: the least of [`max_bw`](Self::max_bw) and
    /// [`bw_shortterm`](Self::bw_shortterm).
    pub(super) bw: u64,
    /// Safe rate since the last probe (Linux: `bw_lo`); [`UNSET`] without losses.
    pub(super) bw_shortterm: u64,
    /// Safe flight since the last probe (Linux: `inflight_lo`).
    pub(super) inflight_shortterm: u64,
    /// Safe flight by the last probes (Linux: `inflight_hi`).
    pub(super) inflight_longterm: u64,
}

impl Model {
    pub(super) fn new(init: &CcInit) -> Self {
        Self {
            max_bw: MaxBw::default(),
            min_rtt: MinRtt::new(init),
            bw: 0,
            bw_shortterm: UNSET,
            inflight_shortterm: UNSET,
            inflight_longterm: UNSET,
        }
    }

    /// Section 5.5.6, `BBRBoundBWForModel`.
    pub(super) fn bound_bw(&mut self) {
        self.bw = self.max_bw.get().min(self.bw_shortterm);
    }

    /// Section 5.5.10.3, `BBRResetShortTermModel`.
    pub(super) const fn reset_shortterm(&mut self) {
        self.bw_shortterm = UNSET;
        self.inflight_shortterm = UNSET;
    }
}

/// Rounds of packets (section 5.5.1): one ends when data is acknowledged that left after the last
/// one ended.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    pub(super) count: u64,
    /// The last ACK has ended one.
    pub(super) start: bool,
    /// `delivered` at which the present one ends.
    next_delivered: u64,
}

impl Rounds {
    pub(super) const fn new(delivered: u64) -> Self {
        Self { count: 0, start: false, next_delivered: delivered }
    }

    /// Section 5.5.1, `BBRUpdateRound`. True if a round has ended.
    pub(super) fn on_ack(&mut self, ack: &Ack<'_>) -> bool {
        self.start = ack.rs.is_some_and(|rs| rs.prior_delivered >= self.next_delivered);
        if self.start {
            self.count += 1;
            self.begin(ack.view.delivered);
        }
        self.start
    }

    /// Section 5.5.1, `BBRStartRound`.
    pub(super) const fn begin(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }
}

impl Bbr {
    /// The bandwidth-delay product of `bw`; the initial window before there is an RTT sample
    /// (section 5.6.4.2, `BBRBDPMultiple`).
    pub(super) fn bdp(&self, bw: u64) -> u64 {
        match self.model.min_rtt.get() {
            Some(min_rtt) => mul_div(bw, min_rtt.as_nanos(), 1_000_000_000),
            None => self.control.initial_window,
        }
    }

    /// `BBRTargetInflight`: what the path holds, or the window allows.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.model.bw).min(self.cwnd())
    }
}
