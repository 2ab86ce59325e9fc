//! ACKs that wait: for the answers of applications, to go along with them, or for more data, so
//! that one of them covers it.
//!
//! After small packets (handshakes, requests, ends) those of a turn wait until the tasks that it
//! woke have run. After bulk data they wait for some microseconds, in which the driver polls the
//! device.

use ackline_tcp_core::{Duration, Instant};

/// Longest time that the ACK of bulk data waits for more of it. It is worth that much to save an
/// ACK, which the kernel's sender processes inside the write that carries it, and to save going to
/// sleep and being woken.
const GATHER_TIME: Duration = Duration::from_micros(20);
/// Bytes that justify all of [`GATHER_TIME`], so that a slow stream of single packets does not keep
/// the driver awake.
const GATHER_WORTH: usize = 1 << 16;
/// Bytes after which the ACK waits no longer.
const GATHER_BYTES: usize = 1 << 18;

/// Mean packet size of a turn up to which ACKs may wait for the application's answer.
const SMALL_PACKET: usize = 512;

/// Packets that a turn received from the device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    pub(super) packets: usize,
    pub(super) bytes: usize,
    /// Packets of other shards, which are not among these.
    pub(super) handed: usize,
    /// The batch is full, and more packets may be waiting; otherwise the device is empty, and will
    /// wake the driver.
    pub(super) more: bool,
}

impl Received {
    /// Only small packets: handshakes, requests, ends of connections.
    const fn is_small(&self) -> bool {
        self.packets > 0 && self.bytes <= self.packets * SMALL_PACKET
    }
}

/// The ACKs that wait, and those that would.
#[derive(Debug, Default)]
pub(crate) struct HeldAcks {
    /// Pure ACKs are held until the driver's next turn.
    pub(super) keeps: bool,
    /// Some are.
    pub(super) kept: bool,
    /// Bulk data whose ACKs are among them.
    gathering: BulkHold,
}

impl HeldAcks {
    /// A turn received `received`: its ACKs wait if that may be worth it.
    pub(super) fn on_received(&mut self, now: Instant, received: &Received) {
        self.gathering.add(now, received);
        self.keeps = self.gathers(now) || received.is_small();
    }

    /// More bulk data is waited for.
    pub(super) fn gathers(&self, now: Instant) -> bool {
        self.gathering.goes_on(now)
    }

    /// The applications have run, and no more data came in time.
    pub(super) fn are_overdue(&self, now: Instant) -> bool {
        self.kept && !self.gathers(now)
    }

    /// They wait no longer.
    pub(super) fn let_go(&mut self) {
        self.gathering = BulkHold::default();
        self.keeps = false;
    }
}

/// Bulk data whose ACK is held back for more of it.
#[derive(Clone, Copy, Debug, Default)]
struct BulkHold {
    bytes: usize,
    /// The end of the wait; `None` if nothing waits.
    until: Option<Instant>,
}

impl BulkHold {
    /// A turn received `received`. The first turn sets the time: the more data, the longer.
    fn add(&mut self, now: Instant, received: &Received) {
        if received.more {
            // No need to wait: the next turn brings the rest.
            *self = Self::default();
        } else if received.packets > 0 && !received.is_small() {
            self.bytes += received.bytes;
            let worth = GATHER_TIME.mul_ratio(received.bytes.min(GATHER_WORTH) as u64, GATHER_WORTH as u64);
            self.until.get_or_insert(now + worth);
        }
    }

    fn goes_on(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until) && self.bytes < GATHER_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_millis(1);

    /// How long the ACK of one turn waits.
    fn waits(packets: usize, bytes: usize, more: bool) -> Duration {
        let mut gathering = BulkHold::default();
        gathering.add(START, &Received { packets, bytes, more, ..Received::default() });
        gathering.until.map_or(Duration::ZERO, |until| until.since(START))
    }

    #[test]
    fn an_ack_waits_as_long_as_what_came_is_worth() {
        assert_eq!(waits(1, GATHER_WORTH, false), GATHER_TIME);
        assert_eq!(waits(3, 3 * GATHER_WORTH, false), GATHER_TIME);
        assert!(waits(1, 1_500, false) < Duration::from_micros(1));
        assert_eq!(waits(10, 600, false), Duration::ZERO, "small packets are not bulk data");
        assert_eq!(waits(128, 190_000, true), Duration::ZERO, "the rest is there already");
        assert_eq!(waits(0, 0, false), Duration::ZERO);
    }

    #[test]
    fn an_ack_waits_neither_longer_nor_for_more_than_agreed() {
        let packet = Received { packets: 1, bytes: GATHER_WORTH, ..Received::default() };
        let mut gathering = BulkHold::default();
        assert!(!gathering.goes_on(START));
        gathering.add(START, &packet);
        assert!(gathering.goes_on(START));
        let late = START + GATHER_TIME.div(2);
        gathering.add(late, &packet);
        assert!(gathering.goes_on(late));
        assert!(!gathering.goes_on(START + GATHER_TIME), "the first packet sets the time");
        gathering.add(late, &packet);
        gathering.add(late, &packet);
        assert!(!gathering.goes_on(late), "so much is acknowledged at once");
    }
}
