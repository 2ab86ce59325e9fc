//! `f=auto`: a share with which upload and download use the same fraction of their links.
//!
//! If the uplink is fully used, the upload gets `F_i = f` of it, and the download `F_j = (1 - f) * beta /
//! alpha` of its own link (equation 6.5), where `alpha / beta` is the time of an ACK on the uplink over that
//! of the acknowledged data on the downlink. Both are equal at
//!
//! ```text
//!            beta              U                   U   rate of the uplink, measured while packets wait
//!   f = ------------- = --------------             r   bytes of ACKs over the bytes that they acknowledge, measured
//!        alpha + beta    U + r * DOWN           DOWN   rate of the downlink, given
//! ```
//!
//! Where it fails: `f` stays as it was until a second of backlog and some ACKs have been seen; if the
//! downlink is slower than configured, ACKs get more than they need, which data then uses.

use super::Share;
use ackline_tcp_core::policy::sched::Descriptor;
use ackline_tcp_core::{ConnId, Duration, Instant, Rate, SeqNum};

/// Number of connections whose acknowledgment numbers are tracked; a collision costs a measurement.
const FOLLOWED: usize = 64;
/// Backlogged time between two decisions.
const INTERVAL: Duration = Duration::from_secs(1);
/// ACKs between two decisions.
const MIN_ACKS: u64 = 16;
/// A larger step does not count as an acknowledgment of new data.
const MAX_ADVANCE: u32 = 1 << 24;
/// Shares are whole per cents, and never all for one class.
const PERCENT: core::ops::RangeInclusive<u128> = 5..=95;

/// Measurements; each decision halves the weight of the past.
#[derive(Debug)]
pub(super) struct Adaptive {
    /// Latest acknowledgment number of each connection, by its index.
    numbers: [Option<(ConnId, SeqNum)>; FOLLOWED],
    /// ACKs, their bytes, and the bytes that they acknowledged.
    acks: u64,
    ack_bytes: u64,
    acknowledged: u64,
    /// Bytes sent while others waited, and the time they took.
    sent: u64,
    busy: Duration,
    /// When a packet was last popped with others behind it, and its length.
    last: Option<(Instant, u32)>,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self {
            numbers: [None; FOLLOWED],
            acks: 0,
            ack_bytes: 0,
            acknowledged: 0,
            sent: 0,
            busy: Duration::ZERO,
            last: None,
        }
    }
}

impl Adaptive {
    /// An ACK is queued.
    pub(super) fn on_ack(&mut self, packet: &Descriptor) {
        let Some(conn) = packet.conn else { return };
        let Some(place) = self.numbers.get_mut(conn.index() % FOLLOWED) else { return };
        let before = place.replace((conn, packet.id.seq));
        if let Some((owner, number)) = before
            && owner == conn
        {
            let advance = packet.id.seq.saturating_distance_from(number);
            if advance <= MAX_ADVANCE {
                self.acks += 1;
                self.ack_bytes += u64::from(packet.len);
                self.acknowledged += u64::from(advance);
            }
        }
    }

    /// A packet of `len` bytes is popped; `more`: others wait behind it.
    pub(super) fn on_pop(&mut self, now: Instant, len: u32, more: bool) {
        if let Some((at, len)) = self.last.take() {
            self.busy = self.busy + now.since(at);
            self.sent += u64::from(len);
        }
        self.last = more.then_some((now, len));
    }

    /// The share for a downlink of this rate, if there are enough measurements since the last decision.
    pub(super) fn decide(&mut self, down: Rate) -> Option<Share> {
        if self.busy < INTERVAL || self.acks < MIN_ACKS || self.acknowledged == 0 {
            return None;
        }
        let up = u128::from(Rate::from_bytes_over(self.sent, self.busy).bytes_per_second());
        // U / (U + r * DOWN), both multiplied by the bytes acknowledged.
        let data = up * u128::from(self.acknowledged);
        let acks = u128::from(down.bytes_per_second()) * u128::from(self.ack_bytes);
        let percent = (data.saturating_mul(200) + data + acks) / (2 * (data + acks)).max(1);
        self.acks /= 2;
        self.ack_bytes /= 2;
        self.acknowledged /= 2;
        self.sent /= 2;
        self.busy = Duration::from_nanos(self.busy.as_nanos() / 2);
        Share::new(percent.clamp(*PERCENT.start(), *PERCENT.end()) as u32, 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::policy::sched::{DescriptorId, SegmentClass};

    /// An uplink of 12,500 bytes per second that is never idle, with ACKs of `ack` bytes for each `data` bytes.
    fn share(ack: u32, data: u32, down: u64) -> Option<Share> {
        let mut adaptive = Adaptive::default();
        let conn = Some(ConnId::for_test(3, 1));
        let (mut now, mut decided) = (Instant::ZERO, None);
        for number in 0_u32..400 {
            // It wraps around on the way.
            let seq = SeqNum(u32::MAX - 1000) + number * data;
            let packet =
                Descriptor::new(DescriptorId::new(number.into(), seq, 0), conn, SegmentClass::PureAck, ack);
            adaptive.on_ack(&packet);
            adaptive.on_pop(now, 125, true);
            now += Duration::from_millis(10);
            decided = adaptive.decide(Rate::from_bits_per_second(down)).or(decided);
        }
        decided
    }

    #[test]
    fn both_directions_get_the_same_part_of_their_links() {
        // alpha = 50, beta = 53.57: beta / (alpha + beta) = 0.517.
        assert_eq!(share(28, 1500, 5_000_000), Share::new(52, 100));
        // An ACK for every second packet: 107.1 / 157.1.
        assert_eq!(share(28, 3000, 5_000_000), Share::new(68, 100));
        // alpha = 50, beta = 37.5: 37.5 / 87.5 = 0.4286.
        assert_eq!(share(40, 1500, 5_000_000), Share::new(43, 100));
        assert_eq!(share(1500, 40, 1_000_000_000), Share::new(5, 100), "data always keeps something");
        assert_eq!(share(40, 60_000, 100_000), Share::new(95, 100), "so do ACKs");
    }

    #[test]
    fn nothing_is_decided_without_acks_or_without_backlog() {
        let mut adaptive = Adaptive::default();
        for number in 0..1_000_u64 {
            adaptive.on_pop(Instant::from_millis(10 * number), 1500, false);
            assert_eq!(adaptive.decide(Rate::from_bits_per_second(5_000_000)), None);
        }
        assert_eq!(adaptive.busy, Duration::ZERO, "an idle link tells nothing of its rate");
    }
}
