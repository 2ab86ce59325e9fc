//! What a finished transfer is measured by.

use crate::output::numbers::gbit_s;
use ackline::core::info::Info;
use ackline::core::{Duration as CoreDuration, Instant};
use ackline::runtime::timer;
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::Serialize;
use std::time::Duration;

/// Time between two looks at a connection's round-trip time.
const SAMPLE_EVERY: CoreDuration = CoreDuration::from_millis(5);

/// A clock that is read at the start and at the end.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch {
    wall: Instant,
    cpu: Duration,
    clock: ClockId,
}

impl Stopwatch {
    /// Counts the CPU time of the calling thread, in user and kernel mode.
    pub(crate) fn of_thread() -> Self {
        Self::start(ClockId::ThreadCPUTime)
    }

    /// Counts the CPU time of all threads of the process.
    pub(crate) fn of_process() -> Self {
        Self::start(ClockId::ProcessCPUTime)
    }

    fn start(clock: ClockId) -> Self {
        Self { wall: timer::now(), cpu: cpu_time(clock), clock }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        timer::now().since(self.wall).into()
    }

    /// CPU time since the start. A thread's own must be asked for on that thread.
    pub(crate) fn cpu(&self) -> Duration {
        cpu_time(self.clock).saturating_sub(self.cpu)
    }
}

fn cpu_time(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    // These clocks count up from zero, so neither part is negative.
    Duration::new(tv_sec.unsigned_abs(), u32::try_from(tv_nsec).unwrap_or(0))
}

/// What the sending side of a connection knows about its path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Path {
    /// Wire segments retransmitted.
    pub(crate) retransmits: u64,
    /// Smallest round-trip time.
    pub(crate) rtt_min: Option<Duration>,
    /// Mean of the smoothed round-trip time over the samples.
    pub(crate) rtt_mean: Option<Duration>,
    /// Congestion window at the end, in bytes.
    pub(crate) cwnd: u64,
    /// Pacing rate at the end in bits per second; `None` if nothing is paced.
    pub(crate) pacing: Option<u64>,
}

/// Follows a connection's round-trip time.
#[derive(Debug, Default)]
pub(crate) struct PathSampler {
    next: Instant,
    sum: Duration,
    samples: u32,
    last: Path,
}

impl PathSampler {
    /// True if it is time for another [`take`](Self::take).
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Takes a sample: the smoothed round-trip time, and what else is known.
    pub(crate) fn take(&mut self, now: Instant, rtt: Option<Duration>, known: Path) {
        self.next = now + SAMPLE_EVERY;
        if let Some(rtt) = rtt {
            self.sum += rtt;
            self.samples = self.samples.saturating_add(1);
        }
        self.last = known;
    }

    /// Takes a sample of one of ackline's connections.
    pub(crate) fn take_info(&mut self, now: Instant, info: &Info) {
        let known = Path {
            retransmits: info.total_retrans,
            rtt_min: info.min_rtt.map(Duration::from),
            rtt_mean: None,
            cwnd: info.snd_cwnd,
            pacing: info.pacing_rate.map(ackline::core::Rate::bits_per_second),
        };
        self.take(now, info.rtt.map(Duration::from), known);
    }

    /// The last state, with the mean over all samples.
    pub(crate) fn path(&self) -> Path {
        Path { rtt_mean: self.sum.checked_div(self.samples), ..self.last }
    }
}

/// The numbers of a transfer that every report has, in JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) gbit_s: f64,
}

impl Figures {
    pub(crate) fn new(bytes: u64, time: Duration) -> Self {
        Self { bytes, seconds: time.as_secs_f64(), gbit_s: gbit_s(bytes, time) }
    }
}

/// [`Path`] in JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct PathFigures {
    pub(crate) retransmits: u64,
    pub(crate) rtt_min_ms: Option<f64>,
    pub(crate) rtt_mean_ms: Option<f64>,
    pub(crate) cwnd_bytes: u64,
    pub(crate) pacing_bit_s: Option<u64>,
}

impl From<Path> for PathFigures {
    fn from(path: Path) -> Self {
        let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        Self {
            retransmits: path.retransmits,
            rtt_min_ms: ms(path.rtt_min),
            rtt_mean_ms: ms(path.rtt_mean),
            cwnd_bytes: path.cwnd,
            pacing_bit_s: path.pacing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_all_samples_and_the_rest_is_the_last() {
        let mut sampler = PathSampler::default();
        let now = Instant::from_millis(1);
        assert!(sampler.is_due(now));
        for (ms, retransmits) in [(10, 0), (30, 2)] {
            let known = Path { retransmits, ..Path::default() };
            sampler.take(now, Some(Duration::from_millis(ms)), known);
        }
        assert!(!sampler.is_due(Instant::from_millis(2)));
        assert!(sampler.is_due(Instant::from_millis(6)));
        let path = sampler.path();
        assert_eq!((path.rtt_mean, path.retransmits), (Some(Duration::from_millis(20)), 2));
        assert_eq!(PathSampler::default().path().rtt_mean, None);
    }

    #[test]
    fn a_thread_that_works_uses_cpu_time() {
        let watch = Stopwatch::of_thread();
        let mut sum = 0u64;
        while watch.cpu() < Duration::from_millis(2) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(watch.elapsed() >= Duration::from_millis(2), "{sum}");
    }
}
