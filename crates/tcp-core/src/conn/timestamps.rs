//! RFC 7323: timestamps and protection against wrapped sequence numbers (PAWS).

use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::Timestamps;

/// TS.Recent expires after this long without a segment (RFC 7323, section 5.5), or two seconds
/// later.
const RECENT_VALID: Duration = Duration::from_secs(24 * 24 * 3_600);

/// Its age is counted in units of 2^30 ns, about a second: 32 bits of them are 146 years.
const fn units(nanos: u64) -> u32 {
    (nanos >> 30) as u32
}

/// The timestamp state of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimestampClock {
    /// Random offset of this connection's clock (RFC 7323, section 5.4).
    offset: u32,
    /// TS.Recent: the TSval to echo.
    recent: u32,
    /// The newest TSval of a segment whose ACK was not an old one.
    newest: u32,
    /// When `recent` was updated, in [`units`]; [`DISABLED`] unless both sides sent the option in
    /// their SYN.
    recent_at: u32,
}

/// No instant.
const DISABLED: u32 = u32::MAX;

impl TimestampClock {
    pub(crate) const fn new(offset: u32) -> Self {
        Self { offset, recent: 0, newest: 0, recent_at: DISABLED }
    }

    /// Both SYNs carried the option.
    pub(crate) const fn enable(&mut self, now: Instant, recent: u32) {
        self.recent = recent;
        self.newest = recent;
        self.recent_at = units(now.as_nanos());
    }

    pub(crate) const fn enabled(&self) -> bool {
        self.recent_at != DISABLED
    }

    /// TS.Recent.
    pub(crate) const fn recent(&self) -> u32 {
        self.recent
    }

    /// The clock: milliseconds (RFC 7323, section 5.4 asks for a tick between 1 ms and 1 s) plus
    /// the offset.
    pub(crate) const fn value(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(self.offset)
    }

    /// A number of this connection that others cannot know.
    pub(crate) const fn offset(&self) -> u32 {
        self.offset
    }

    /// The option for an outgoing segment.
    pub(crate) const fn option(&self, now: Instant) -> Timestamps {
        Timestamps { val: self.value(now), ecr: self.recent }
    }

    /// The age of the segment whose TSval `ecr` echoes; `None` for values that this clock never
    /// had.
    pub(crate) fn age(&self, now: Instant, ecr: u32) -> Option<Duration> {
        let age = self.value(now).wrapping_sub(ecr);
        (ecr != 0 && age < 1 << 31).then(|| Duration::from_millis(u64::from(age)))
    }

    /// RFC 7323, section 5.3, R1: true if the segment is older than one received before it.
    pub(crate) fn rejects(&self, now: Instant, val: u32) -> bool {
        let age = units(now.as_nanos()).wrapping_sub(self.recent_at);
        (val.wrapping_sub(self.recent) as i32) < 0 && age <= units(RECENT_VALID.as_nanos()) + 1
    }

    /// By how much a segment with `val` left later than every one received before it.
    pub(crate) const fn ahead(&self, val: u32) -> i32 {
        val.wrapping_sub(self.newest) as i32
    }

    /// RFC 7323, section 4.3, (2): TS.Recent is taken from segments that start at or before the
    /// last ACK sent. `val` is of a segment that is not [rejected](Self::rejects); `old_ack`: what
    /// it acknowledges, a segment before it has acknowledged and more.
    ///
    /// The peer sent one with an old ACK before the one with the newer, so its clock was not ahead
    /// of that one's: this bounds what an old ACK, which is easier to guess, can do to PAWS. (Linux
    /// takes no timestamp with it, and then measures a segment that fills a gap from the one before
    /// the gap.)
    #[inline]
    pub(crate) fn update(
        &mut self,
        now: Instant,
        val: u32,
        seq: SeqNum,
        last_ack_sent: SeqNum,
        old_ack: bool,
    ) {
        let ahead = self.ahead(val) > 0;
        if ahead && old_ack {
            return;
        }
        if ahead {
            self.newest = val;
        }
        if seq.le(last_ack_sent) {
            self.recent = val;
            self.recent_at = units(now.as_nanos());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TimestampClock;
    use crate::seq::SeqNum;
    use crate::time::{Duration, Instant};

    #[test]
    fn an_echo_tells_its_age() {
        let clock = TimestampClock::new(u32::MAX - 99);
        let now = Instant::from_secs(1);
        let value = clock.value(now);
        assert_eq!(value, 900, "the clock has wrapped");
        let age = |ecr| clock.age(now, ecr).map(Duration::as_millis);
        assert_eq!(age(value), Some(0));
        assert_eq!(age(value - 10), Some(10));
        assert_eq!(age(u32::MAX), Some(901));
        assert_eq!(age(0), None, "no echo");
        assert_eq!(age(value + 1), None, "was never shown");
        assert_eq!(age(value.wrapping_sub((1 << 31) - 1)), Some((1 << 31) - 1));
        assert_eq!(age(value.wrapping_sub(1 << 31)), None, "as far ahead as behind");
    }

    #[test]
    fn recent_follows_what_reaches_back_to_the_last_ack() {
        let (start, last_ack) = (Instant::from_secs(1), SeqNum(500));
        let mut clock = TimestampClock::new(0);
        clock.enable(start, 10);
        clock.update(start, 20, last_ack + 1, last_ack, false);
        assert_eq!(clock.recent(), 10, "beyond the last ACK sent");
        clock.update(start, 21, last_ack, last_ack, true);
        assert_eq!(clock.recent(), 10, "with an old ACK, but ahead of what came with the newest");
        clock.update(start, 15, last_ack, last_ack, true);
        assert_eq!(clock.recent(), 15);
        clock.update(start, 20, last_ack, last_ack, false);
        assert_eq!(clock.recent(), 20);
        assert!(clock.rejects(start, 19) && !clock.rejects(start, 20));
        let days = |n: u64| start + Duration::from_secs(n * 86_400);
        assert!(clock.rejects(days(24), 19));
        assert!(!clock.rejects(days(24) + Duration::from_secs(3), 19));
    }
}
