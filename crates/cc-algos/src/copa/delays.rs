//! What the round trips say of the queue (section 2).

use crate::windowed::{WindowedMax, WindowedMin};
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::{Duration, Instant};

/// Round trips over which the largest RTT is taken (section 2.2).
const MAX_ROUNDS: u64 = 4;

/// The three filters, and what they say.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    standing: WindowedMin,
    min: WindowedMin,
    max: WindowedMax,
    /// As of the last sample; `None` before one.
    pub(super) rtts: Option<Rtts>,
}

/// The round trips of the recent past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rtts {
    /// RTTstanding, the smallest of half a smoothed RTT: what queues for longer than that.
    /// Compressed ACKs and jitter make a round trip longer than the queue does; the smallest is
    /// robust to them.
    pub(super) standing: Duration,
    /// RTTmin, the smallest of ten seconds: the path without a queue.
    pub(super) min: Duration,
    /// RTTmax, the largest of four round trips.
    pub(super) max: Duration,
}

impl Rtts {
    /// d_q, equation 2: RTTstanding - RTTmin.
    pub(super) fn queueing(&self) -> Duration {
        self.standing.saturating_sub(self.min)
    }

    /// Section 2.2: d_q is below so large a part of the RTT's variation. A round trip that never
    /// varies is one without a queue.
    pub(super) fn is_nearly_empty(&self, part: f64) -> bool {
        let varies = self.max.saturating_sub(self.min).as_nanos() as f64;
        self.queueing().as_nanos() as f64 <= part * varies
    }
}

impl Delays {
    /// Until data is acknowledged there is what the handshake has measured. The filters do not take
    /// it: its packets are small, and what a full one takes longer to serialise would count as a
    /// queue that is never empty.
    pub(super) fn new(init: &CcInit) -> Self {
        let rtts = init.srtt.map(|rtt| Rtts { standing: rtt, min: rtt, max: rtt });
        Self { rtts, ..Self::default() }
    }

    /// Adds a sample. The path's RTT is that of the last `min_window`.
    pub(super) fn take(&mut self, now: Instant, rtt: Duration, srtt: Duration, min_window: Duration) {
        let nanos = rtt.as_nanos();
        self.rtts = Some(Rtts {
            standing: Duration::from_nanos(self.standing.update(now, nanos, srtt.div(2))),
            min: Duration::from_nanos(self.min.update(now, nanos, min_window)),
            max: Duration::from_nanos(self.max.update(now, nanos, srtt.saturating_mul(MAX_ROUNDS))),
        });
    }
}
