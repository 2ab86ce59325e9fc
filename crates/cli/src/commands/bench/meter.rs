//! What the streams of a test do in each interval and in all, from their counters and their
//! connections' state.
//!
//! ```text
//! start ─────── omit ──────► restart ─── interval ─── interval ─── … ─── end
//!        nothing counts              everything counts from here on
//! ```

use super::cpu::CpuWatch;
use super::report::record::{Cpu, Interval, SenderState, StreamInterval, Total};
use super::stream::DataStream;
use ackline::core::info::Info;
use ackline::core::{Duration, Instant};

/// Headers of IP and TCP without options, in bytes.
const HEADERS_V4: u32 = 40;
const HEADERS_V6: u32 = 60;
/// The timestamps option with its padding (RFC 7323, section 3.2), in bytes.
const TIMESTAMPS: u32 = 12;

/// Looks at the streams of one test.
pub(super) struct Meter {
    /// Between two intervals; `None`: there are none.
    interval: Option<Duration>,
    /// What does not count yet is still under way.
    omitting: bool,
    /// The beginning of what counts (or, while omitting, of what does not).
    start: Instant,
    last: Instant,
    marks: Vec<Marks>,
    cpu: CpuWatch,
}

/// A stream as it was.
#[derive(Clone, Copy, Default)]
struct Marks {
    at_start: Sample,
    last: Sample,
}

/// A stream as it is.
#[derive(Clone, Copy, Default)]
struct Sample {
    bytes: u64,
    retransmits: u64,
    state: SenderState,
}

impl Meter {
    /// Begins with streams that have not done anything yet.
    pub(super) fn start(
        now: Instant,
        interval: Option<Duration>,
        omitting: bool,
        streams: &[DataStream],
    ) -> Self {
        let marks = vec![Marks::default(); streams.len()];
        let mut meter = Self { interval, omitting, start: now, last: now, marks, cpu: CpuWatch::start() };
        meter.rebase(now, streams);
        meter
    }

    /// From here on everything counts.
    pub(super) fn restart(&mut self, now: Instant, streams: &[DataStream]) {
        self.omitting = false;
        self.rebase(now, streams);
    }

    fn rebase(&mut self, now: Instant, streams: &[DataStream]) {
        for (marks, stream) in self.marks.iter_mut().zip(streams) {
            marks.last.take(stream);
            marks.at_start = marks.last;
        }
        (self.start, self.last) = (now, now);
    }

    /// When the current interval is over.
    pub(super) fn next(&self) -> Option<Instant> {
        // In steps from the start, so that what timers are late does not add up.
        let interval = self.interval?;
        let passed = self.last.since(self.start).as_nanos() / interval.as_nanos().max(1);
        // An interval that ended a little early must not be followed by a very short one.
        let half = Duration::from_nanos(interval.as_nanos() / 2);
        let next = self.start + Duration::from_nanos(interval.as_nanos().saturating_mul(passed + 1));
        Some(if next.since(self.last) < half { next + interval } else { next })
    }

    /// Ends the current interval.
    pub(super) fn tick(&mut self, now: Instant, streams: &[DataStream]) -> Interval {
        let (start, end) = (self.last.since(self.start), now.since(self.start));
        self.last = now;
        let measure = |(marks, stream): (&mut Marks, &DataStream)| {
            let before = marks.last;
            marks.last.take(stream);
            let retransmits = marks.last.retransmits.saturating_sub(before.retransmits);
            StreamInterval {
                id: stream.shown(),
                start: start.into(),
                end: end.into(),
                bytes: marks.last.bytes.saturating_sub(before.bytes),
                sender: stream.sends.then_some(SenderState { retransmits, ..marks.last.state }),
            }
        };
        let streams = self.marks.iter_mut().zip(streams).map(measure).collect();
        Interval { omitted: self.omitting, streams }
    }

    /// The rest since the last interval, if it is worth a line: as iperf3, not if it is short and
    /// empty. If there are no intervals, all that counts is one.
    pub(super) fn rest(&mut self, now: Instant, streams: &[DataStream]) -> Option<Interval> {
        if self.interval.is_none() && self.omitting {
            return None;
        }
        let elapsed = now.since(self.last);
        let rest = (elapsed > Duration::ZERO).then(|| self.tick(now, streams))?;
        let moved = rest.streams.iter().any(|stream| stream.bytes > 0);
        let long = self.interval.is_none_or(|interval| elapsed.as_nanos() >= interval.as_nanos() / 10 * 9);
        (moved || long).then_some(rest)
    }

    /// What each stream did in all that counts.
    pub(super) fn totals(&mut self, now: Instant, streams: &[DataStream]) -> Vec<Total> {
        let time = now.since(self.start).into();
        let total = |(marks, stream): (&mut Marks, &DataStream)| {
            marks.last.take(stream);
            let (last, first) = (marks.last, marks.at_start);
            Total {
                bytes: last.bytes.saturating_sub(first.bytes),
                time,
                retransmits: stream.sends.then(|| last.retransmits.saturating_sub(first.retransmits)),
            }
        };
        self.marks.iter_mut().zip(streams).map(total).collect()
    }

    /// Since the start, what was omitted included.
    pub(super) fn cpu(&self) -> Cpu {
        self.cpu.read()
    }
}

impl Sample {
    /// What a sender has in its buffer and never sent does not count: a buffer may hold seconds of
    /// a slow path's time.
    fn take(&mut self, stream: &DataStream) {
        // If the connection is gone it has come as far as it will.
        let Ok(info) = stream.info() else { return };
        let moved = stream.moved();
        self.bytes = if stream.sends { moved.saturating_sub(info.notsent_bytes.into()) } else { moved };
        self.retransmits = info.total_retrans;
        self.state = state(&info);
    }
}

fn state(info: &Info) -> SenderState {
    let headers = if info.remote.is_ipv6() { HEADERS_V6 } else { HEADERS_V4 };
    let options = if info.timestamps { TIMESTAMPS } else { 0 };
    SenderState {
        retransmits: 0,
        snd_cwnd: info.snd_cwnd,
        snd_wnd: info.snd_wnd.into(),
        rtt: info.rtt.unwrap_or(Duration::ZERO).into(),
        rttvar: info.rttvar.unwrap_or(Duration::ZERO).into(),
        pmtu: info.snd_mss.saturating_add(headers + options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(10_000 + ms)
    }

    fn second() -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn bounds(interval: &Meter) -> (u64, u64) {
        (interval.start.as_millis(), interval.last.as_millis())
    }

    #[test]
    fn intervals_end_at_multiples_whatever_timers_are_late() {
        let mut meter = Meter::start(at(0), second(), false, &[]);
        assert_eq!(meter.next(), Some(at(1000)));
        meter.tick(at(1020), &[]);
        assert_eq!(meter.next(), Some(at(2000)));
        // So late that half of the next interval has passed: that one is left out.
        meter.tick(at(2700), &[]);
        assert_eq!(meter.next(), Some(at(4000)));
        assert_eq!(bounds(&meter), (10_000, 12_700));
        assert_eq!(Meter::start(at(0), None, false, &[]).next(), None);
    }

    #[test]
    fn what_is_omitted_is_marked_and_times_begin_anew_behind_it() {
        let mut meter = Meter::start(at(0), second(), true, &[]);
        assert!(meter.tick(at(1000), &[]).omitted);
        meter.restart(at(1500), &[]);
        assert_eq!(meter.next(), Some(at(2500)));
        assert!(!meter.tick(at(2500), &[]).omitted);
        assert_eq!(bounds(&meter), (11_500, 12_500));
    }

    #[test]
    fn a_short_and_empty_rest_is_no_interval() {
        let mut meter = Meter::start(at(0), second(), false, &[]);
        meter.tick(at(1000), &[]);
        assert!(meter.rest(at(1000), &[]).is_none());
        assert!(meter.rest(at(1003), &[]).is_none());
        assert!(meter.rest(at(1950), &[]).is_some());
    }
}
