//! TCP Westwood+ (Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New
//! Reno, and Vegas TCP congestion control", CCR 34(2), 2004): grows as Reno, and after a loss keeps
//! what the path has carried: the estimated bandwidth times the smallest RTT.
//!
//! ```text
//!   each round trip of at least 50 ms:  b = bytes delivered / its time;  BWE = 7/8 BWE + 1/8 b
//!   loss, mark, timeout:               ssthresh = max(2, BWE * RTTmin), cwnd = min(cwnd, ssthresh)
//! ```
//!
//! Where it fails: RTTmin is that of the whole connection: if the path becomes longer, each loss
//! costs too much. The estimate lags in slow start, so an early loss costs much, and a receiver that
//! pretends losses before it by repeated ACKs loses less. A loss before the first estimate is
//! answered as Reno does.

use ackline_tcp_core::policy::builtin::NewReno;
use ackline_tcp_core::policy::spec::Entry;
use ackline_tcp_core::policy::window::{DecreaseCx, GrowthCx, MovedBy, WindowGrowth, Windows};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl};
use ackline_tcp_core::{Duration, Instant, Rate, Window};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    source: "Grieco and Mascolo 2004",
    ..Entry::growth::<Westwood>("Reno that keeps the estimated bandwidth times the smallest RTT after a loss")
};

/// The shortest time that a sample covers (Linux, `TCP_WESTWOOD_RTT_MIN`).
const LEAST_TIME: Duration = Duration::from_millis(50);

/// The state of one connection.
#[derive(Clone, Debug, Default)]
struct Westwood {
    reno: NewReno,
    min_rtt: Option<Duration>,
    /// Bytes per second; zero before a sample.
    bandwidth: f64,
    /// When the sample under way began, and bytes delivered in it.
    since: Option<Instant>,
    delivered: u64,
}

impl Westwood {
    /// What the path carries without a queue, in bytes; `None` before an estimate.
    fn carried(&self) -> Option<f64> {
        let min_rtt = self.min_rtt?;
        (self.bandwidth > 0.0).then(|| self.bandwidth * min_rtt.as_secs_f64())
    }
}

impl WindowGrowth for Westwood {
    const NAME: &'static str = "westwood";

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        self.reno.increase(cx, w);
    }

    fn observe(&mut self, cx: &GrowthCx<'_>, _w: &Windows) {
        let now = cx.view.now;
        if let Some(rtt) = cx.ack.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        self.delivered += u64::from(cx.ack.newly_delivered);
        let since = *self.since.get_or_insert(now);
        let time = now.since(since);
        if time < cx.view.srtt.unwrap_or(LEAST_TIME).max(LEAST_TIME) {
            return;
        }
        let sample = self.delivered as f64 / time.as_secs_f64();
        // The first sample is the estimate.
        let past = if self.bandwidth > 0.0 { self.bandwidth } else { sample };
        self.bandwidth = (7.0 * past + sample) / 8.0;
        (self.since, self.delivered) = (Some(now), 0);
    }

    /// Idle time is no sample.
    fn idle(&mut self, now: Instant) {
        (self.since, self.delivered) = (Some(now), 0);
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        match self.carried() {
            Some(bytes) => self.reno.reduce_to(Window::from_f64(bytes), w),
            None => self.reno.decrease(cx, w),
        }
    }

    fn moved(&mut self, by: MovedBy, before: &Windows, w: &Windows) {
        self.reno.moved(by, before, w);
    }

    /// What was measured in the meantime still counts.
    fn undo(&mut self, before: &Self) {
        self.reno.undo(&before.reno);
    }

    fn metrics(&self, _w: &Windows, report: &mut Metrics<'_>) {
        report.rate("bwe_bit", Rate::from_bytes_per_second(self.bandwidth as u64));
        if let Some(min_rtt) = self.min_rtt {
            report.micros("rtt_min_us", min_rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::policy::cc::{AckSample, CcInit, CongestionControl, CongestionEvent, FlowView};
    use ackline_tcp_core::policy::window::WindowControl;

    /// 1 MB/s over 100 ms holds 100 kB, whatever the window and the queue were.
    #[test]
    fn a_loss_leaves_what_the_path_carries() {
        let init = CcInit::new(Instant::ZERO, 1_000, Window::from_bytes(400_000));
        let mut flow = WindowControl::new(&init, Westwood::default());
        let mut view = FlowView::new(Instant::ZERO, 1_000);
        view.srtt = Some(Duration::from_millis(300));
        view.cwnd_limited = false;
        for i in 0..3_000 {
            view.now += Duration::from_millis(1);
            let mut ack = AckSample::new(1_000, 1);
            ack.rtt = Some(Duration::from_millis(if i == 0 { 100 } else { 300 }));
            flow.on_ack(&view, &ack);
        }
        flow.on_congestion(&view, &CongestionEvent::Loss { prior_pipe: 400_000 });
        let left = flow.windows().bytes();
        assert!((left - 100_000.0).abs() < 2_000.0, "{left}");
    }
}
