//! Step 40: the round trip as far as a receiver can measure it. The paper needs one and names no
//! source.
//!
//! | source | error |
//! |---|---|
//! | the handshake | no queue yet |
//! | TSecr of data (RFC 7323), once per window; the least of eight | data that waited at the sender |
//! | from an edge of the window to the first byte beyond it, smoothed by 1/8 | an upper bound: the sender need not fill the window |
//! | this side's own SRTT, if it sends | |
//!
//! The smallest is used: arrivals prolong a sampling that is too short, while one that is too long
//! costs throughput.

use ackline_tcp_core::policy::ack::{DataArrival, RecvView};
use ackline_tcp_core::{Duration, Instant, SeqNum};

/// The default before the first sample.
pub(super) const UNKNOWN: Duration = Duration::from_millis(200);
/// Keeps one and a half round trips below 500 ms.
const MOST: Duration = Duration::from_millis(333);
/// Number of samples whose minimum is used.
const SAMPLES: usize = 8;

/// Which round trip a policy uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The smallest known one.
    Auto,
    /// That of the handshake.
    Handshake,
    /// That of the timestamps.
    Timestamps,
    /// This one.
    Fixed(Duration),
}

/// Round-trip estimates from arrivals.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    /// The window being measured: its edge, and when it was opened.
    window: Option<(SeqNum, Instant)>,
    /// From an edge to the first byte beyond it, smoothed; `MAX` before the first sample.
    windows: Duration,
    /// Samples from TSecr; `MAX` if there are none yet.
    samples: [Duration; SAMPLES],
    /// Index of the next one.
    next: usize,
    /// The smallest of them.
    least: Duration,
}

impl Default for Rtt {
    fn default() -> Self {
        Self {
            window: None,
            windows: Duration::MAX,
            samples: [Duration::MAX; SAMPLES],
            next: 0,
            least: Duration::MAX,
        }
    }
}

impl Rtt {
    /// A segment with data arrived.
    pub(super) fn on_data(&mut self, view: &RecvView, data: &DataArrival) {
        if let Some((edge, began)) = self.window {
            if view.rcv_nxt.le(edge) {
                return;
            }
            let time = view.now.since(began);
            self.windows = match self.windows {
                Duration::MAX => time,
                smoothed => smoothed - smoothed.div(8) + time.div(8),
            };
        }
        self.window = Some((view.edge, view.now));
        if let Some(rtt) = data.ts_rtt
            && let Some(slot) = self.samples.get_mut(self.next)
        {
            *slot = rtt;
            self.next = (self.next + 1) % SAMPLES;
            self.least = self.samples.iter().copied().min().unwrap_or(Duration::MAX);
        }
    }

    /// The round trip from `source`, between `least` and 333 ms.
    pub(super) fn current(&self, view: &RecvView, source: Source, least: Duration) -> Duration {
        let known = match source {
            Source::Fixed(rtt) => Some(rtt),
            Source::Handshake => view.handshake_rtt,
            Source::Timestamps => measured(self.least),
            Source::Auto => [view.handshake_rtt, measured(self.least), measured(self.windows), view.srtt]
                .into_iter()
                .flatten()
                .min(),
        };
        known.unwrap_or(UNKNOWN).clamp(least, MOST)
    }
}

fn measured(rtt: Duration) -> Option<Duration> {
    (rtt != Duration::MAX).then_some(rtt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::policy::ack::DataClass;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn current(rtt: &Rtt, view: &RecvView, source: Source) -> Duration {
        rtt.current(view, source, ms(1))
    }

    /// Data up to `end` arrives at `at` ms; the window's edge is `edge`.
    fn arrive(rtt: &mut Rtt, at: u64, end: u32, edge: u32, ts: Option<u64>) -> RecvView {
        let mut view = RecvView::new(Instant::from_millis(at), SeqNum(end), 10_000, 1_000);
        view.edge = SeqNum(edge);
        let mut data = DataArrival::new(SeqNum(end - 1_000), SeqNum(end), DataClass::New);
        data.ts_rtt = ts.map(ms);
        rtt.on_data(&view, &data);
        view
    }

    #[test]
    fn the_smallest_that_is_known_counts_within_bounds() {
        let mut rtt = Rtt::default();
        let mut view = arrive(&mut rtt, 0, 1_000, 10_000, None);
        assert_eq!(current(&rtt, &view, Source::Auto), ms(200), "nothing is known");
        view.handshake_rtt = Some(ms(90));
        assert_eq!(current(&rtt, &view, Source::Auto), ms(90));
        assert_eq!(current(&rtt, &view, Source::Timestamps), ms(200));
        view.srtt = Some(ms(50));
        assert_eq!(current(&rtt, &view, Source::Auto), ms(50));
        assert_eq!(current(&rtt, &view, Source::Handshake), ms(90));
        assert_eq!(current(&rtt, &view, Source::Fixed(ms(70))), ms(70));
        view.srtt = Some(Duration::from_micros(10));
        assert_eq!(current(&rtt, &view, Source::Auto), ms(1));
        assert_eq!(current(&rtt, &view, Source::Fixed(ms(1_000))), ms(333));
    }

    #[test]
    fn a_window_takes_at_least_a_round_trip() {
        let mut rtt = Rtt::default();
        arrive(&mut rtt, 0, 1_000, 10_000, None);
        let view = arrive(&mut rtt, 100, 10_000, 15_000, None);
        assert_eq!(current(&rtt, &view, Source::Auto), ms(200), "the edge itself is still the first window");
        let view = arrive(&mut rtt, 160, 11_000, 16_000, None);
        assert_eq!(current(&rtt, &view, Source::Auto), ms(160));
        let view = arrive(&mut rtt, 240, 17_000, 20_000, None);
        assert_eq!(current(&rtt, &view, Source::Auto), ms(150), "160 - 160/8 + 80/8");
    }

    #[test]
    fn timestamps_count_once_per_window_and_the_least_of_eight() {
        let mut rtt = Rtt::default();
        arrive(&mut rtt, 0, 1_000, 10_000, Some(30));
        let mut view = arrive(&mut rtt, 1, 2_000, 11_000, Some(5));
        assert_eq!(current(&rtt, &view, Source::Timestamps), ms(30), "the second of a window does not count");
        for i in 1..=8 {
            let end = 1_000 + i * 20_000;
            view = arrive(&mut rtt, 100, end, end + 10_000, Some(40 + u64::from(i)));
            let expected = if i < 8 { 30 } else { 41 };
            assert_eq!(current(&rtt, &view, Source::Timestamps), ms(expected));
        }
    }
}
