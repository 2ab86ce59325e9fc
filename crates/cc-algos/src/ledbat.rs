//! LEDBAT (RFC 6817) with the changes of LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): takes what
//! others leave, and keeps the queue that it makes below a target.
//!
//! ```text
//!   delay = min(last 4 RTTs) - base,  base: smallest RTT of ten minutes
//!   GAIN  = 1 / min(16, ceil(2 TARGET / base))
//!   delay <= TARGET:  W += GAIN                                            per round trip
//!   delay >  TARGET:  W += max(GAIN - W (delay / TARGET - 1), -W / 2)
//!   slow start:       W += GAIN per segment; the first one ends at 3/4 TARGET
//!   slowdown:         W = 2 for two round trips, then slow start to the old W;
//!                     begins two round trips after slow start, then again after 9 times its length
//!   loss, mark:       W /= 2
//! ```
//!
//! LEDBAT++ measures round trips, since clocks of two hosts drift, grows slower than Reno, shrinks
//! in proportion, so that a second flow gets its share, and slows down from time to time, so that
//! the base is measured without a queue of its own.
//!
//! Where it fails: a queue shorter than the target never shows enough delay; then it is a slow
//! Reno. Congestion on the way back delays it as well.

use crate::round_trip::RoundTrip;
use ackline_tcp_core::policy::spec::{Deployment, Entry, Key};
use ackline_tcp_core::policy::window::{DecreaseCx, GrowthCx, MovedBy, WindowGrowth, Windows};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl};
use ackline_tcp_core::{Duration, Instant, Window};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    source: "RFC 6817, draft-irtf-iccrg-ledbat-plus-plus",
    deployment: Deployment::Scavenger,
    ..Entry::growth::<Ledbat>("takes what others leave, and makes a queue of at most 60 ms")
};

/// Minutes of the base's history (RFC 6817, `BASE_HISTORY`).
const HISTORY: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// Samples of which the smallest is the delay (RFC 6817, `CURRENT_FILTER`).
const FILTER: usize = 4;
/// The largest divisor of the growth.
const LEAST_GAIN: u64 = 16;
/// Round trips from slow start to the first slowdown, and for which one keeps the window small.
const SLOW_ROUNDS: u32 = 2;
/// A slowdown takes at most one part in ten of the time.
const PAUSE: u64 = 9;
/// Segments in flight in a slowdown.
const SLOW_WINDOW: f64 = 2.0;

/// Where the flow is between two slowdowns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slowdown {
    /// None before slow start has ended.
    None,
    /// Round trips until the next one.
    After(u32),
    /// One comes at this instant.
    At(Instant),
    /// The window is small for so many round trips yet; it began then.
    Small { rounds: u32, since: Instant },
    /// Slow start to the old window; it began then.
    Rising { since: Instant },
}

/// The state of one connection.
#[derive(Clone, Debug)]
struct Ledbat {
    target: Duration,
    slows_down: bool,
    /// Smallest RTT of each of the last minutes, the newest first, and when that began.
    base: [Option<Duration>; HISTORY],
    minute: Instant,
    last: [Option<Duration>; FILTER],
    next: usize,
    round: RoundTrip,
    slowdown: Slowdown,
}

impl Default for Ledbat {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(60),
            slows_down: true,
            base: [None; HISTORY],
            minute: Instant::ZERO,
            last: [None; FILTER],
            next: 0,
            round: RoundTrip::default(),
            slowdown: Slowdown::None,
        }
    }
}

impl Ledbat {
    fn base(&self) -> Option<Duration> {
        self.base.iter().flatten().min().copied()
    }

    /// Queueing delay; zero before a sample.
    fn delay(&self) -> Duration {
        match (self.last.iter().flatten().min(), self.base()) {
            (Some(now), Some(base)) => now.saturating_sub(base),
            _ => Duration::ZERO,
        }
    }

    /// Segments by which the window grows per round trip.
    fn gain(&self) -> f64 {
        let Some(base) = self.base().filter(|base| !base.is_zero()) else { return 1.0 / LEAST_GAIN as f64 };
        let divisor = (2 * self.target.as_nanos()).div_ceil(base.as_nanos());
        1.0 / divisor.clamp(1, LEAST_GAIN) as f64
    }

    fn take(&mut self, now: Instant, rtt: Duration) {
        if now.since(self.minute) >= MINUTE {
            self.base.rotate_right(1);
            self.base[0] = None;
            self.minute = now;
        }
        self.base[0] = Some(self.base[0].map_or(rtt, |base| base.min(rtt)));
        if let Some(slot) = self.last.get_mut(self.next) {
            *slot = Some(rtt);
        }
        self.next = (self.next + 1) % FILTER;
    }

    /// A round trip has ended in which the flow was out of slow start. True if a slowdown begins.
    fn on_round(&mut self, now: Instant) -> bool {
        match self.slowdown {
            Slowdown::None => self.slowdown = Slowdown::After(SLOW_ROUNDS),
            Slowdown::After(rounds) if rounds > 1 => self.slowdown = Slowdown::After(rounds - 1),
            Slowdown::Rising { since } => {
                self.slowdown = Slowdown::At(now + now.since(since).saturating_mul(PAUSE));
            }
            Slowdown::At(at) if now < at => {}
            Slowdown::After(_) | Slowdown::At(_) => {
                self.slowdown = Slowdown::Small { rounds: SLOW_ROUNDS, since: now };
                return true;
            }
            Slowdown::Small { .. } => {}
        }
        false
    }
}

impl WindowGrowth for Ledbat {
    const NAME: &'static str = "ledbat";
    const KEYS: &'static [Key<Self>] = &[
        Key::time(
            "target",
            Duration::from_millis(1)..=Duration::from_millis(100),
            "queueing delay that it makes at most (RFC 6817: 100 ms or less)",
            |it| &mut it.target,
        ),
        Key::switch("slowdown", "slow down from time to time, to see the path without a queue", |it| {
            &mut it.slows_down
        }),
    ];

    fn slow_start(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) -> u32 {
        if let Some(rtt) = cx.ack.rtt {
            self.take(cx.view.now, rtt);
        }
        if let Slowdown::Small { rounds, since } = self.slowdown {
            if self.round.ends(cx.view) {
                self.slowdown = match rounds {
                    0 | 1 => Slowdown::Rising { since },
                    rounds => Slowdown::Small { rounds: rounds - 1, since },
                };
            }
            return 0;
        }
        let late = self.delay() > self.target.mul_ratio(3, 4);
        if self.slowdown == Slowdown::None && late {
            w.set_ssthresh(w.cwnd());
            return cx.acked;
        }
        let gain = self.gain();
        (w.open(f64::from(cx.acked) * gain) / gain) as u32
    }

    fn observe(&mut self, cx: &GrowthCx<'_>, w: &Windows) {
        if let Some(rtt) = cx.ack.rtt
            && !w.in_slow_start()
        {
            self.take(cx.view.now, rtt);
        }
    }

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        let smss = f64::from(w.smss());
        if self.round.ends(cx.view) && self.on_round(cx.view.now) && self.slows_down {
            let before = w.cwnd();
            w.set_bytes((SLOW_WINDOW * smss).min(w.bytes()));
            w.set_ssthresh(before);
            return;
        }
        let share = f64::from(cx.acked).min(w.bytes()) / w.bytes();
        let over = self.delay().as_nanos() as f64 / self.target.as_nanos() as f64 - 1.0;
        let gain = self.gain() * smss;
        if over <= 0.0 {
            w.grow(gain * share);
        } else {
            let step = (gain - w.bytes() * over).max(-w.bytes() / 2.0) * share;
            w.set_bytes((w.bytes() + step).max(SLOW_WINDOW * smss).min(w.bytes() + gain));
            w.set_ssthresh(w.cwnd().min(w.ssthresh()));
        }
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        w.reduce_to(cx.base(w) / 2.0);
    }

    fn moved(&mut self, by: MovedBy, _before: &Windows, _w: &Windows) {
        if matches!(by, MovedBy::Timeout { .. } | MovedBy::Restart) {
            self.slowdown = Slowdown::After(SLOW_ROUNDS);
        }
    }

    fn ssthresh_after_idle(&self, w: &Windows) -> Window {
        w.ssthresh()
    }

    fn metrics(&self, _w: &Windows, report: &mut Metrics<'_>) {
        if let Some(base) = self.base() {
            report.micros("base_rtt_us", base);
            report.micros("queue_us", self.delay());
        }
        report.number("gain", self.gain());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn it_grows_slower_over_short_paths() {
        for (base, gain) in [(120, 1.0), (100, 0.5), (40, 1.0 / 3.0), (5, 1.0 / 16.0)] {
            let mut ledbat = Ledbat::default();
            ledbat.take(Instant::from_secs(1), ms(base));
            assert!((ledbat.gain() - gain).abs() < 1e-9, "{base} ms: {}", ledbat.gain());
        }
    }

    #[test]
    fn the_delay_is_that_of_the_last_samples_above_that_of_ten_minutes() {
        let mut ledbat = Ledbat::default();
        let mut now = Instant::from_secs(1);
        ledbat.take(now, ms(20));
        for _ in 0..4 {
            ledbat.take(now, ms(70));
        }
        ledbat.take(now, ms(90));
        assert_eq!(ledbat.delay(), ms(50));
        for _ in 0..11 {
            now += MINUTE;
            ledbat.take(now, ms(70));
        }
        assert_eq!(ledbat.delay(), ms(0), "the path has become longer");
    }

    #[test]
    fn a_slowdown_takes_at_most_a_tenth_of_the_time() {
        let mut ledbat = Ledbat::default();
        let at = |seconds| Instant::from_secs(seconds);
        assert!(!ledbat.on_round(at(10)) && !ledbat.on_round(at(11)));
        assert!(ledbat.on_round(at(12)), "two round trips after slow start");
        ledbat.slowdown = Slowdown::Rising { since: at(12) };
        assert!(!ledbat.on_round(at(14)));
        assert_eq!(ledbat.slowdown, Slowdown::At(at(32)));
        assert!(!ledbat.on_round(at(31)) && ledbat.on_round(at(32)));
    }
}
