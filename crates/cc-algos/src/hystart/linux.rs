//! HyStart as Linux has it (Ha and Rhee, "Taming the elephants: New TCP slow start", 2011;
//! `tcp_cubic.c`): slow start ends at once when one of two signs shows that the window fills the
//! path.
//!
//! ```text
//!  ACK train:  ACKs at most 2 ms apart arrive since the round began, for half of the least RTT
//!  delay:      the least RTT of the round's first samples is an eighth above the least RTT, 4 to 16 ms
//! ```
//!
//! [`HyStart`](super::HyStart), the rule of RFC 9406, compares with the round before instead of
//! with the least RTT, grows on for five rounds, and has no ACK train. The train ends slow start of
//! a sender whose ACKs come evenly: with half of the path's product in flight, before a queue is
//! there. Jitter or another flow's packets between the ACKs end it too early.

use super::{MAX_RTT_THRESH, MIN_RTT_DIVISOR, MIN_RTT_THRESH, N_RTT_SAMPLE};
use ackline_tcp_core::policy::cc::FlowView;
use ackline_tcp_core::policy::window::Windows;
use ackline_tcp_core::{Duration, Instant, SeqNum};

/// Segments below which no sign counts (`hystart_low_window`).
pub const LOW_WINDOW: u32 = 16;
/// Between two ACKs of a train (`hystart_ack_delta_us`).
pub const ACK_DELTA: Duration = Duration::from_millis(2);
/// What the receiver's aggregation may add to a train (`hystart_ack_delay`), for flows of up to 2
/// Gbit/s.
pub const ACK_DELAY: Duration = Duration::from_millis(1);

/// The detector, for one slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxHyStart {
    round: Option<Round>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    /// SND.NXT when the round began; an ACK beyond it begins the next one.
    end: SeqNum,
    began: Instant,
    /// The last ACK of the train.
    last: Instant,
    /// The least RTT of the round.
    rtt: Duration,
    /// RTT samples, counted up to [`N_RTT_SAMPLE`].
    samples: u8,
}

impl LinuxHyStart {
    /// An ACK arrived in slow start; true if slow start is over. `paced`: departures are spread, so
    /// a train may last a whole round trip.
    pub(crate) fn is_over(
        &mut self,
        view: &FlowView,
        rtt: Option<Duration>,
        w: &Windows,
        paced: bool,
    ) -> bool {
        let Some(rtt) = rtt else { return false };
        let least = view.min_rtt.map_or(rtt, |least| least.min(rtt));
        let now = view.now;
        let new = Round { end: view.snd_nxt, began: now, last: now, rtt: Duration::MAX, samples: 0 };
        let round = self.round.get_or_insert(new);
        if view.snd_una.gt(round.end) {
            *round = new;
        }
        if w.segments() < f64::from(LOW_WINDOW) {
            return false;
        }
        round.has_train(now, least, paced) || round.has_delay(rtt, least)
    }
}

impl Round {
    fn has_train(&mut self, now: Instant, least: Duration, paced: bool) -> bool {
        if now.since(self.last) > ACK_DELTA {
            return false;
        }
        self.last = now;
        let whole = least + ACK_DELAY;
        now.since(self.began) > if paced { whole } else { whole.div(2) }
    }

    fn has_delay(&mut self, rtt: Duration, least: Duration) -> bool {
        self.rtt = self.rtt.min(rtt);
        if u32::from(self.samples) < N_RTT_SAMPLE {
            self.samples += 1;
            return false;
        }
        self.rtt > least + least.div(MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::Window;
    use ackline_tcp_core::policy::cc::CcInit;

    const SMSS: u32 = 1000;

    /// A flow of `window` segments per round of 40 ms.
    struct Flow {
        hystart: LinuxHyStart,
        view: FlowView,
        windows: Windows,
    }

    impl Flow {
        fn new(window: u32) -> Self {
            let mut view = FlowView::new(Instant::from_secs(100), SMSS);
            view.snd_una = SeqNum(u32::MAX - 5 * SMSS);
            view.min_rtt = Some(Duration::from_millis(40));
            let windows =
                Windows::new(&CcInit::new(view.now, SMSS, Window::from_bytes(u64::from(window * SMSS))));
            Self { hystart: LinuxHyStart::default(), view, windows }
        }

        /// A round: ACKs of one segment each, `gap_us` apart, with this RTT. The ACK at which slow
        /// start is over.
        fn round(&mut self, gap_us: u64, rtt_us: u64, paced: bool) -> Option<u32> {
            let window = self.windows.cwnd().bytes() as u32;
            let begun = self.view.now;
            let mut over = None;
            for ack in 0..window / SMSS {
                self.view.snd_una += SMSS;
                self.view.snd_nxt = self.view.snd_una + window;
                let rtt = Some(Duration::from_micros(rtt_us));
                if self.hystart.is_over(&self.view, rtt, &self.windows, paced) {
                    over = over.or(Some(ack));
                }
                self.view.now += Duration::from_micros(gap_us);
            }
            self.view.now = begun + Duration::from_micros(rtt_us.max(gap_us * u64::from(window / SMSS)));
            over
        }
    }

    #[test]
    fn a_train_of_half_the_least_rtt_ends_slow_start() {
        // 20.5 ms are half of 40 ms and of the delay that is allowed for: 41 gaps of 0.5 ms.
        assert_eq!(Flow::new(42).round(500, 40_000, false), None);
        assert_eq!(Flow::new(60).round(500, 40_000, false), Some(42));
        // A sender that paces may spread a window over that time by itself.
        assert_eq!(Flow::new(79).round(500, 40_000, true), None);
        assert_eq!(Flow::new(90).round(500, 40_000, true), Some(83));
    }

    #[test]
    fn a_gap_breaks_the_train() {
        assert_eq!(Flow::new(16).round(2_000, 40_000, false), Some(11));
        assert_eq!(Flow::new(16).round(2_001, 40_000, false), None);
    }

    #[test]
    fn a_rise_by_an_eighth_of_the_least_rtt_ends_slow_start_with_the_ninth_sample() {
        let mut flow = Flow::new(20);
        assert_eq!(flow.round(10, 45_000, false), None);
        assert_eq!(flow.round(10, 45_001, false), Some(9), "the first ACK still is of the round before");
    }

    #[test]
    fn small_windows_are_left_alone() {
        assert_eq!(Flow::new(15).round(2_000, 80_000, false), None);
    }
}
