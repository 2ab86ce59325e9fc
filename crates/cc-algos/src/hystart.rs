//! HyStart++ (RFC 9406): leave the first slow start before it overflows the bottleneck's queue.
//!
//! The minimum RTT of each round is compared with that of the round before. A rise by an eighth
//! means that a queue is building: the flow continues in *conservative slow start* (CSS), at a
//! quarter of the growth. If the RTT falls again within five rounds, the rise was jitter and slow
//! start resumes; otherwise slow start ends.
//!
//! ```text
//!            min RTT rose by eta                   5 rounds in CSS
//!  slow start ────────────────► conservative ─────────────────────► congestion avoidance
//!            ◄──────────────── slow start
//!              min RTT below what it was at the entry
//! ```
//!
//! Fails if RTT samples are rare (no check with fewer than eight per round) or if another flow
//! keeps the queue full from the start (the RTT does not rise).

pub mod linux;

use ackline_tcp_core::policy::cc::Phase;
use ackline_tcp_core::policy::window::{GrowthCx, Windows};
use ackline_tcp_core::{Duration, SeqNum, Window};

/// RFC 9406, section 4.3: least RTT rise that counts.
pub const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// RFC 9406, section 4.3: RTT rise that always counts.
pub const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// RFC 9406, section 4.3: the threshold is this fraction of the last round's minimum RTT.
pub const MIN_RTT_DIVISOR: u64 = 8;
/// RFC 9406, section 4.3: minimum RTT samples in a round for a check.
pub const N_RTT_SAMPLE: u32 = 8;
/// RFC 9406, section 4.3: growth in CSS is divided by this.
pub const CSS_GROWTH_DIVISOR: u32 = 4;
/// RFC 9406, section 4.3: maximum rounds of CSS.
pub const CSS_ROUNDS: u32 = 5;
/// RFC 9406, section 4.3: maximum segments by which one ACK may open the window of a flow that is
/// not paced.
pub const L: u32 = 8;

/// True in the first slow start, the only one that HyStart++ is for (RFC 9406, section 4.3).
pub(crate) fn is_first(w: &Windows) -> bool {
    w.in_slow_start() && w.ssthresh() == Window::MAX
}

/// The detector, for the first slow start of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HyStart {
    /// SND.NXT when the round began; the round ends when it is acknowledged. `None` before the
    /// first ACK.
    window_end: Option<SeqNum>,
    /// Minimum RTT of the round before this one; [`UNKNOWN`] without a sample.
    last_round_min: Duration,
    /// Minimum RTT of this round; [`UNKNOWN`] without a sample.
    current_round_min: Duration,
    /// Minimum RTT of the round in which CSS began.
    baseline: Duration,
    /// RTT samples in this round, counted up to 255.
    samples: u8,
    /// Completed rounds of CSS; the partial one at its start counts.
    css_rounds: u8,
    stage: Stage,
}

/// No sample is that long: half the size of an `Option`.
const UNKNOWN: Duration = Duration::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    SlowStart,
    Conservative,
    Over,
}

impl Default for HyStart {
    fn default() -> Self {
        Self {
            window_end: None,
            last_round_min: UNKNOWN,
            current_round_min: UNKNOWN,
            baseline: UNKNOWN,
            samples: 0,
            css_rounds: 0,
            stage: Stage::SlowStart,
        }
    }
}

/// How the window grows on an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// As in slow start.
    Full,
    /// At 1/[`CSS_GROWTH_DIVISOR`] of it.
    Conservative,
    /// Slow start is over: `ssthresh` becomes the window.
    Exit,
}

impl Growth {
    /// Opens the window, or ends slow start by setting `ssthresh` to it, and returns the bytes left
    /// for congestion avoidance; see [`HyStart::slow_start`].
    pub(crate) fn apply(self, cx: &GrowthCx<'_>, w: &mut Windows, step: f64, paced: bool) -> u32 {
        let share = match self {
            Self::Full => 1.0,
            Self::Conservative => 1.0 / f64::from(CSS_GROWTH_DIVISOR),
            Self::Exit => {
                w.set_ssthresh(w.cwnd());
                return cx.ack.acked;
            }
        };
        // RFC 9406, section 4.3; after a timeout RFC 3465, section 2.3.
        let used = cx.at_most(match cx.view.phase {
            Phase::Loss => 1,
            _ if paced => u32::MAX,
            _ => L,
        });
        w.open(f64::from(used) * share * step) as u32
    }
}

impl HyStart {
    /// An ACK arrived in slow start; `snd_una` and `snd_nxt` are those after it, `rtt` its sample.
    pub fn on_ack(&mut self, snd_una: SeqNum, snd_nxt: SeqNum, rtt: Option<Duration>) -> Growth {
        if let Some(rtt) = rtt {
            self.samples = self.samples.saturating_add(1);
            self.current_round_min = self.current_round_min.min(rtt);
            self.check();
        }
        if self.window_end.is_none_or(|end| snd_una.ge(end)) {
            self.end_round(snd_nxt);
        }
        match self.stage {
            Stage::SlowStart => Growth::Full,
            Stage::Conservative => Growth::Conservative,
            Stage::Over => Growth::Exit,
        }
    }

    /// An ACK in the first slow start: opens the window, or ends slow start by setting `ssthresh`
    /// to it. Returns the bytes left for congestion avoidance. `step`: the part of a segment by
    /// which slow start grows for each one acknowledged, 1 unless it is limited. `paced`:
    /// departures are spread, so an ACK may open the window by any number of segments.
    pub(crate) fn slow_start(&mut self, cx: &GrowthCx<'_>, w: &mut Windows, step: f64, paced: bool) -> u32 {
        let growth = self.on_ack(cx.view.snd_una, cx.view.snd_nxt, cx.ack.rtt);
        growth.apply(cx, w, step, paced)
    }

    /// True in conservative slow start.
    #[must_use]
    pub const fn is_conservative(&self) -> bool {
        matches!(self.stage, Stage::Conservative)
    }

    fn check(&mut self) {
        if u32::from(self.samples) < N_RTT_SAMPLE {
            return;
        }
        let (current, last) = (self.current_round_min, self.last_round_min);
        match self.stage {
            Stage::SlowStart => {
                let eta = last.div(MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if last != UNKNOWN && current >= last + eta {
                    (self.stage, self.baseline, self.css_rounds) = (Stage::Conservative, current, 0);
                }
            }
            Stage::Conservative => {
                if current < self.baseline {
                    self.stage = Stage::SlowStart;
                }
            }
            Stage::Over => {}
        }
    }

    fn end_round(&mut self, snd_nxt: SeqNum) {
        if self.window_end.is_some() && self.is_conservative() {
            self.css_rounds += 1;
            if u32::from(self.css_rounds) >= CSS_ROUNDS {
                self.stage = Stage::Over;
            }
        }
        self.window_end = Some(snd_nxt);
        self.last_round_min = core::mem::replace(&mut self.current_round_min, UNKNOWN);
        self.samples = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow of ten segments of one byte per round.
    struct Rounds {
        hystart: HyStart,
        una: SeqNum,
    }

    const WINDOW: u32 = 10;

    impl Rounds {
        fn new() -> Self {
            let mut rounds = Self { hystart: HyStart::default(), una: SeqNum(u32::MAX - 25) };
            rounds.hystart.on_ack(rounds.una, rounds.una + WINDOW, None);
            rounds
        }

        /// One round whose `n` first ACKs have the given RTT and the others none; the answers to
        /// its ACKs.
        fn round(&mut self, n: u32, rtt_us: u64) -> std::vec::Vec<Growth> {
            (0..WINDOW)
                .map(|ack| {
                    self.una += 1;
                    let rtt = (ack < n).then(|| Duration::from_micros(rtt_us));
                    self.hystart.on_ack(self.una, self.una + WINDOW, rtt)
                })
                .collect()
        }
    }

    #[test]
    fn a_steady_rtt_never_leaves_slow_start() {
        let mut flow = Rounds::new();
        for _ in 0..50 {
            assert!(flow.round(10, 30_000).iter().all(|growth| *growth == Growth::Full));
        }
    }

    #[test]
    fn the_threshold_is_an_eighth_between_4_and_16_ms() {
        // RFC 9406, section 4.2: RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms)).
        for (base_us, eta_us) in [(8_000, 4_000), (80_000, 10_000), (800_000, 16_000)] {
            let mut flow = Rounds::new();
            flow.round(10, base_us);
            flow.round(10, base_us + eta_us - 1);
            assert!(!flow.hystart.is_conservative(), "{base_us} + {eta_us} - 1");
            let mut flow = Rounds::new();
            flow.round(10, base_us);
            flow.round(10, base_us + eta_us);
            assert!(flow.hystart.is_conservative(), "{base_us} + {eta_us}");
        }
    }

    #[test]
    fn eight_samples_are_needed() {
        let mut flow = Rounds::new();
        flow.round(10, 30_000);
        assert!(flow.round(7, 60_000).iter().all(|growth| *growth == Growth::Full));

        let mut flow = Rounds::new();
        flow.round(10, 30_000);
        let growth = flow.round(8, 60_000);
        assert_eq!(growth.iter().position(|growth| *growth == Growth::Conservative), Some(7));
    }

    #[test]
    fn css_lasts_five_rounds_with_the_partial_one() {
        let mut flow = Rounds::new();
        flow.round(10, 30_000);
        flow.round(10, 40_000);
        for _ in 1..CSS_ROUNDS - 1 {
            assert!(flow.round(10, 40_000).iter().all(|growth| *growth == Growth::Conservative));
        }
        let growth = flow.round(10, 40_000);
        assert_eq!(growth.iter().position(|growth| *growth == Growth::Exit), Some(9));
    }

    #[test]
    fn a_falling_rtt_resumes_slow_start() {
        let mut flow = Rounds::new();
        flow.round(10, 30_000);
        flow.round(10, 40_000);
        let growth = flow.round(10, 39_999);
        // Eight samples are needed for this verdict too.
        assert_eq!(growth.iter().position(|growth| *growth == Growth::Full), Some(7));
        // And a second rise counts from the last round's minimum again.
        flow.round(10, 39_999 + 5_000);
        assert!(flow.hystart.is_conservative());
    }
}
