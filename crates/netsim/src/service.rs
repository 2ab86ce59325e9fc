//! How fast a link serialises: at a rate, or by a recorded trace of deliveries.

use ackline_tcp_core::{Duration, Instant};
use thiserror::Error;

/// Determines when the last bit of a packet leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Bits per second.
    Rate(u64),
    /// No time at all.
    Instant,
    /// A recorded trace.
    Trace(Trace),
}

impl Service {
    /// The rate in bits per second, over a whole period of a trace; `u64::MAX` if it takes no time.
    #[inline]
    #[must_use]
    pub fn rate(&self) -> u64 {
        match self {
            Self::Rate(rate) => *rate,
            Self::Instant => u64::MAX,
            Self::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// The time that a link of `rate` bits per second takes for `bytes`, rounded up to the nanosecond.
#[must_use]
pub fn serialisation(rate: u64, bytes: u64) -> Duration {
    if rate == 0 {
        return Duration::MAX;
    }
    // What a packet takes fits; the longer division is for others.
    if let Some(bits) = bytes.checked_mul(8_000_000_000) {
        return Duration::from_nanos(bits.div_ceil(rate));
    }
    let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(rate));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Bytes that one line of a trace delivers: an Ethernet MTU. mahimahi's own constant is 1,504,
/// because its packets come from a TUN device with four octets before each IP header; here packets
/// have none.
pub const DELIVERY: u64 = 1_500;

/// A packet-delivery trace in mahimahi's format: each line is a time in milliseconds at which 1,500
/// bytes can leave. Small packets share a delivery, and a packet takes the following deliveries for
/// what the first one has no room for. The last line is the period after which the trace repeats.
/// Unused deliveries are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    lines: Vec<u64>,
    /// Deliveries used up so far, over all periods.
    position: u64,
    /// Bytes left of the delivery at `left_at`.
    left: u64,
    left_at: Instant,
}

/// Why a trace is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TraceError {
    /// A line is not a number.
    #[error("line {line}: `{text}` is no time in whole milliseconds")]
    NotANumber {
        /// Line number, from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// A time is before the previous one.
    #[error("line {line}: {time} ms comes after {before} ms; times must not go back")]
    Backwards {
        /// Line number, from 1.
        line: usize,
        /// The line's time.
        time: u64,
        /// The previous time.
        before: u64,
    },
    /// There is no delivery, or the period is zero.
    #[error("the trace needs a delivery later than 0 ms")]
    Empty,
}

impl Trace {
    /// Parses a trace.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut lines: Vec<u64> = vec![];
        for (index, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let line = index + 1;
            let time = text.trim();
            let time: u64 =
                time.parse().map_err(|_| TraceError::NotANumber { line, text: time.to_owned() })?;
            if let Some(&before) = lines.last().filter(|before| **before > time) {
                return Err(TraceError::Backwards { line, time, before });
            }
            lines.push(time);
        }
        if lines.last().is_none_or(|period| *period == 0) {
            return Err(TraceError::Empty);
        }
        Ok(Self { lines, position: 0, left: 0, left_at: Instant::ZERO })
    }

    fn period(&self) -> u64 {
        self.lines.last().copied().unwrap_or(1)
    }

    fn mean_rate(&self) -> u64 {
        self.lines.len() as u64 * DELIVERY * 8 * 1_000 / self.period()
    }

    fn time_of(&self, position: u64) -> Instant {
        let count = self.lines.len() as u64;
        let line = self.lines[(position % count) as usize];
        Instant::from_millis((position / count).saturating_mul(self.period()).saturating_add(line))
    }

    /// When the last bit of a packet of `bytes` leaves, if its first bit is ready at `now`.
    pub(crate) fn deliver(&mut self, now: Instant, bytes: u64) -> Instant {
        let mut need = bytes;
        if self.left_at == now {
            let used = need.min(self.left);
            self.left -= used;
            need -= used;
        }
        let mut done = now;
        while need > 0 {
            // Deliveries of the past are lost; whole periods are skipped at once.
            let periods = now.as_millis() / self.period();
            self.position = self.position.max(periods.saturating_sub(1) * self.lines.len() as u64);
            while self.time_of(self.position) < now {
                self.position += 1;
            }
            done = self.time_of(self.position);
            self.position += 1;
            let used = need.min(DELIVERY);
            need -= used;
            (self.left, self.left_at) = (DELIVERY - used, done);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialises_to_the_nanosecond() {
        assert_eq!(serialisation(10_000_000, 1_500), Duration::from_nanos(1_200_000));
        assert_eq!(serialisation(3, 1), Duration::from_nanos(2_666_666_667));
    }

    #[test]
    fn trace_delivers_when_it_says() {
        let mut trace = Trace::parse("1\n1\n5\n").unwrap();
        let at = |ms| Instant::from_millis(ms);
        assert_eq!(trace.deliver(at(0), 1_500), at(1));
        assert_eq!(trace.deliver(at(1), 1_000), at(1));
        assert_eq!(trace.deliver(at(1), 500), at(1), "the rest of the second delivery");
        assert_eq!(trace.deliver(at(1), 3_000), at(6), "one at 5 ms, one in the next period");
        assert_eq!(trace.deliver(at(1_000_002), 10), at(1_000_005), "what nothing used is lost");
        assert_eq!(trace.mean_rate(), 3 * 1_500 * 8 * 200);
    }

    /// Always a packet ready: 1 ms of a trace with one line a millisecond is 1,500 bytes, in
    /// packets of any size.
    #[test]
    fn a_delivery_carries_1500_bytes_whatever_the_size_of_packets() {
        for size in [40, 52, 100, 576, 749, 751, 1_499, 1_500, 1_501, 4_000, 9_000, 65_535] {
            let mut trace = Trace::parse("1\n").unwrap();
            let (mut now, mut sent) = (Instant::ZERO, 0);
            for number in 0..10_000 {
                now = trace.deliver(now, size);
                sent += size;
                assert_eq!(now.as_millis(), sent.div_ceil(1_500), "packet {number} of {size} bytes");
            }
        }
    }

    /// mahimahi's LinkQueue::rationalize with packets of 1,000, 1,000, 400, 700 and 1,500 bytes:
    /// what a packet leaves of a delivery goes to the next packet, if one waits. The pause after
    /// the fourth one loses the rest.
    #[test]
    fn packets_share_deliveries_only_while_they_wait() {
        let mut trace = Trace::parse("2\n3\n7\n").unwrap();
        let at = |ms| Instant::from_millis(ms);
        assert_eq!(trace.deliver(at(0), 1_000), at(2));
        assert_eq!(trace.deliver(at(2), 1_000), at(3), "500 bytes at 2 ms, 500 at 3 ms");
        assert_eq!(trace.deliver(at(3), 400), at(3));
        assert_eq!(trace.deliver(at(3), 700), at(7), "600 bytes at 3 ms, 100 at 7 ms");
        assert_eq!(trace.deliver(at(8), 1_500), at(9), "1,400 bytes at 7 ms were for nobody");
    }

    #[test]
    fn a_trace_of_the_longest_period_ends_with_time() {
        let mut trace = Trace::parse("1\n18446744073709551615\n").unwrap();
        assert_eq!(trace.deliver(Instant::ZERO, 9_000), Instant::FAR_FUTURE);
    }

    #[test]
    fn trace_says_what_is_wrong() {
        assert_eq!(Trace::parse("1\nx"), Err(TraceError::NotANumber { line: 2, text: "x".to_owned() }));
        assert_eq!(Trace::parse("3\n2"), Err(TraceError::Backwards { line: 2, time: 2, before: 3 }));
        assert_eq!(Trace::parse("0\n"), Err(TraceError::Empty));
    }
}
