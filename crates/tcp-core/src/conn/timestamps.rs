//! RFC 7323: timestamps and protection against wrapped sequence numbers (PAWS).

use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::Timestamps;

/// TS.Recent is not trusted after this long without a segment (RFC 7323, section 5.5).
const RECENT_VALID: Duration = Duration::from_secs(24 * 24 * 3_600);

/// The timestamp state of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimestampClock {
    /// Random offset of this connection's clock (RFC 7323, section 5.4).
    offset: u32,
    /// TS.Recent: the TSval to echo.
    recent: u32,
    /// When `recent` was taken; [`Instant::FAR_FUTURE`] unless both sides sent the option in their SYN.
    recent_at: Instant,
}

impl TimestampClock {
    pub(crate) const fn new(offset: u32) -> Self {
        Self { offset, recent: 0, recent_at: Instant::FAR_FUTURE }
    }

    /// Both SYNs carried the option.
    pub(crate) const fn enable(&mut self, now: Instant, recent: u32) {
        self.recent = recent;
        self.recent_at = now;
    }

    pub(crate) const fn enabled(&self) -> bool {
        self.recent_at.as_nanos() != Instant::FAR_FUTURE.as_nanos()
    }

    /// TS.Recent.
    pub(crate) const fn recent(&self) -> u32 {
        self.recent
    }

    /// The clock: milliseconds (RFC 7323, section 5.4 asks for a tick between 1 ms and 1 s) plus the offset.
    pub(crate) const fn value(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(self.offset)
    }

    /// The option for an outgoing segment.
    pub(crate) const fn option(&self, now: Instant) -> Timestamps {
        Timestamps { val: self.value(now), ecr: self.recent }
    }

    /// How long ago the segment left whose TSval `ecr` echoes; `None` for values this clock never showed.
    pub(crate) fn age(&self, now: Instant, ecr: u32) -> Option<Duration> {
        let age = self.value(now).wrapping_sub(ecr);
        (ecr != 0 && age < 1 << 31).then(|| Duration::from_millis(u64::from(age)))
    }

    /// RFC 7323, section 5.3, R1: the segment is older than one that arrived before it.
    pub(crate) fn rejects(&self, now: Instant, val: u32) -> bool {
        (val.wrapping_sub(self.recent) as i32) < 0 && now.since(self.recent_at) <= RECENT_VALID
    }

    /// RFC 7323, section 4.3, (2): TS.Recent follows segments that reach back to the last ACK sent.
    pub(crate) fn update(&mut self, now: Instant, val: u32, seq: SeqNum, last_ack_sent: SeqNum) {
        if seq.le(last_ack_sent) && ((val.wrapping_sub(self.recent) as i32) >= 0 || self.rejects_nothing(now))
        {
            self.recent = val;
            self.recent_at = now;
        }
    }

    fn rejects_nothing(&self, now: Instant) -> bool {
        now.since(self.recent_at) > RECENT_VALID
    }
}
