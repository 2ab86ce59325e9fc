//! `f=auto`: the share with which downloads and uploads meet a goal, whatever ACKs cost and
//! acknowledge.
//!
//! If the uplink is fully used, uploads get `F_i = f` of it, and downloads `F_j = (1 - f) / s` of
//! their own link (equation 6.5), where `s = alpha / beta` is the share of the uplink that ACKs of
//! a full downlink would take. Two goals follow:
//!
//! ```text
//!   goal=equal   F_i = F_j    f = 1 / (1 + s)           ACKs sent     downlink's rate
//!   goal=g       F_j = g      f = 1 - g * s       s = ------------- * ---------------
//!                                                     bytes arrived    uplink's rate
//! ```
//!
//! All four are measured: ACKs and the uplink's rate as packets leave, and what
//! [arrives](super::downlink). If ACKs that wait are merged, `s` falls as `f` grows. A decision
//! that uses the latest `s` then ends where the goal is met, too: `(1 - f) / s` is what downloads
//! got.
//!
//! Where it fails: `f` stays as it was until a second of backlog and some ACKs have been seen; if
//! downloads cannot use their part, because of their windows or their senders, data uses what ACKs
//! leave.

use super::downlink::Downlink;
use super::{Class, Share};
use ackline_tcp_core::{Duration, Instant, Rate};

/// Backlogged time between two decisions.
const INTERVAL: Duration = Duration::from_secs(1);
/// ACKs between two decisions.
const MIN_ACKS: u64 = 16;
/// The finest step of a share, and of a goal.
const WHOLE: u32 = 1_000;
/// Neither class gets less than 2 %.
const SHARES: core::ops::RangeInclusive<u128> = 20..=980;

/// What `f=auto` aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Goal {
    /// Downloads and uploads use the same part of their links.
    #[default]
    Equal,
    /// Downloads get this part of their link, in thousandths from 1 to 999; uploads get the rest of
    /// theirs.
    Download(u32),
}

impl Goal {
    /// Downloads get `part` of their link, 0.001 to 0.999.
    pub(super) fn of(part: f64) -> Self {
        Self::Download((part * f64::from(WHOLE) + 0.5) as u32)
    }

    /// The part of their link that downloads get; `None`: as much as uploads.
    pub(super) fn part(self) -> Option<f64> {
        match self {
            Self::Equal => None,
            Self::Download(thousandths) => Some(f64::from(thousandths) / f64::from(WHOLE)),
        }
    }
}

/// Measurements; each decision halves the weight of the past.
#[derive(Debug, Default)]
pub(super) struct Adaptive {
    pub(super) downlink: Downlink,
    /// ACKs that left, and their bytes.
    acks: u64,
    ack_bytes: u64,
    /// Those of them that left although data waited, and all bytes that left.
    ack_bytes_over_data: u64,
    all_bytes: u64,
    /// Bytes that arrived.
    arrived: u64,
    /// Bytes sent while others waited, and the time they took.
    sent: u64,
    busy: Duration,
    /// When a packet was last popped with others behind it, and its length.
    last: Option<(Instant, u32)>,
    /// Packets of data since the last decision that left although an ACK waited, and those that
    /// left alone.
    preferred: u64,
    alone: u64,
}

impl Adaptive {
    /// A packet of `len` bytes arrives.
    pub(super) fn on_arrival(&mut self, now: Instant, len: u32) {
        self.arrived += u64::from(len);
        self.downlink.on_arrival(now, len);
    }

    /// A packet of `class` and `len` bytes is popped; `alone`: none of the other class waits;
    /// `more`: others wait behind it.
    pub(super) fn on_pop(&mut self, now: Instant, class: Class, len: u32, alone: bool, more: bool) {
        if let Some((at, len)) = self.last.take() {
            self.busy = self.busy + now.since(at);
            self.sent += u64::from(len);
        }
        self.last = more.then_some((now, len));
        self.all_bytes += u64::from(len);
        match class {
            Class::Ack => {
                self.acks += 1;
                self.ack_bytes += u64::from(len);
                self.ack_bytes_over_data += if alone { 0 } else { u64::from(len) };
            }
            Class::Data if alone => self.alone += 1,
            Class::Data => self.preferred += 1,
        }
    }

    /// The ACK popped last left with `len` bytes instead of `popped`.
    pub(super) fn on_repriced(&mut self, popped: u32, len: u32) {
        self.ack_bytes = (self.ack_bytes + u64::from(len)).saturating_sub(u64::from(popped));
    }

    /// The share for `goal`, if there are enough measurements since the last decision. `down`: the
    /// rate of the downlink, if it is given; `share`: the share until now.
    pub(super) fn decide(&mut self, goal: Goal, down: Option<Rate>, share: Share) -> Option<Share> {
        if self.busy < INTERVAL || self.acks < MIN_ACKS || self.arrived == 0 {
            return None;
        }
        let down = down.or(self.downlink.rate())?;
        let up = Rate::from_bytes_over(self.sent, self.busy);
        // s = acks / data.
        let acks = u128::from(down.bytes_per_second()) * u128::from(self.ack_bytes);
        let data = u128::from(up.bytes_per_second()) * u128::from(self.arrived);
        let whole = u128::from(WHOLE);
        let wanted = match goal {
            Goal::Equal => rounded(acks.saturating_mul(whole), data + acks),
            Goal::Download(part) => rounded(acks.saturating_mul(u128::from(part)), data),
        };
        // An ACK that finds nothing before it leaves at once, and its class forgets the debt (step
        // 18), so ACKs can get more than their share. What they are given is corrected by as much.
        let given = u128::from(share.data_weight()) * u128::from(self.all_bytes);
        let got = u128::from(share.data_weight() + share.ack_weight()) * u128::from(self.ack_bytes_over_data);
        let for_acks = if got > given { rounded(wanted.saturating_mul(given), got) } else { wanted };
        let share = whole.saturating_sub(for_acks);
        self.downlink.settle(self.preferred > self.alone);
        (self.preferred, self.alone) = (0, 0);
        self.acks /= 2;
        self.ack_bytes /= 2;
        self.ack_bytes_over_data /= 2;
        self.all_bytes /= 2;
        self.arrived /= 2;
        self.sent /= 2;
        self.busy = Duration::from_nanos(self.busy.as_nanos() / 2);
        Share::new(share.clamp(*SHARES.start(), *SHARES.end()) as u32, WHOLE)
    }
}

/// `a / b`, to the nearest whole number.
const fn rounded(a: u128, b: u128) -> u128 {
    let b = if b == 0 { 1 } else { b };
    a.saturating_add(b / 2) / b
}

#[cfg(test)]
mod tests {
    use super::*;

    const EQUAL: Goal = Goal::Equal;

    /// What is decided on an uplink of 12,500 bytes per second that is never idle, with an ACK of
    /// `ack` bytes for each `data` bytes that arrive on a downlink of `down` bits per second.
    fn share(goal: Goal, ack: u32, data: u32, down: u64, given: bool) -> Option<Share> {
        share_after(Share::new(1, 1000).unwrap(), goal, ack, data, down, given)
    }

    /// The same if the share was `until_now`.
    fn share_after(
        until_now: Share,
        goal: Goal,
        ack: u32,
        data: u32,
        down: u64,
        given: bool,
    ) -> Option<Share> {
        let mut adaptive = Adaptive::default();
        let (mut now, mut decided) = (Instant::ZERO, None);
        let down = Rate::from_bits_per_second(down);
        // A burst at the downlink's rate.
        for number in 0..=8 {
            adaptive.downlink.on_arrival(now + down.time_for(number * 1_000), 1_000);
        }
        for _ in 0..400 {
            adaptive.on_arrival(now + Duration::from_secs(1), data);
            adaptive.on_pop(now, Class::Ack, ack, false, true);
            adaptive.on_pop(now, Class::Data, 125 - ack.min(100), false, true);
            now += Rate::from_bytes_per_second(12_500).time_for((ack + 125 - ack.min(100)).into());
            decided = adaptive.decide(goal, given.then_some(down), until_now).or(decided);
        }
        decided
    }

    #[test]
    fn both_directions_get_the_same_part_of_their_links() {
        for given in [true, false] {
            // alpha = 50, beta = 53.57: beta / (alpha + beta) = 0.517.
            assert_eq!(share(EQUAL, 28, 1500, 5_000_000, given), Share::new(517, 1000), "{given}");
            // An ACK for every second packet: 107.1 / 157.1.
            assert_eq!(share(EQUAL, 28, 3000, 5_000_000, given), Share::new(682, 1000), "{given}");
            // alpha = 50, beta = 37.5: 37.5 / 87.5 = 0.4286.
            assert_eq!(share(EQUAL, 40, 1500, 5_000_000, given), Share::new(429, 1000), "{given}");
        }
        assert_eq!(share(EQUAL, 1500, 40, 1_000_000_000, true), Share::new(20, 1000), "data keeps something");
        assert_eq!(share(EQUAL, 40, 60_000, 100_000, true), Share::new(980, 1000), "so do ACKs");
    }

    #[test]
    fn downloads_get_the_part_that_is_asked_for() {
        for given in [true, false] {
            // s = 50 / 107.1 = 0.4667.
            assert_eq!(share(Goal::Download(900), 28, 3000, 5_000_000, given), Share::new(580, 1000));
            assert_eq!(share(Goal::Download(100), 28, 3000, 5_000_000, given), Share::new(953, 1000));
            // s = 1.333: they cannot have it.
            assert_eq!(share(Goal::Download(900), 40, 1500, 5_000_000, given), Share::new(20, 1000));
        }
    }

    #[test]
    fn what_acks_get_beyond_their_share_is_taken_off() {
        // ACKs get 40 of 125 bytes: 0.32 instead of 0.2. s = 1.333, so they should have 0.571.
        let share = share_after(Share::new(4, 5).unwrap(), EQUAL, 40, 1500, 5_000_000, true);
        // 0.571 * 0.2 / 0.32 = 0.357.
        assert_eq!(share, Share::new(643, 1000));
    }

    #[test]
    fn nothing_is_decided_without_acks_or_without_backlog() {
        let mut adaptive = Adaptive::default();
        let down = Some(Rate::from_bits_per_second(5_000_000));
        for number in 0..1_000_u64 {
            let now = Instant::from_millis(10 * number);
            adaptive.on_arrival(now, 1500);
            adaptive.on_pop(now, Class::Data, 1500, true, false);
            assert_eq!(adaptive.decide(EQUAL, down, Share::default()), None);
        }
        assert_eq!(adaptive.busy, Duration::ZERO, "an idle link tells nothing of its rate");
        for number in 1_000..2_000_u64 {
            adaptive.on_pop(Instant::from_millis(10 * number), Class::Data, 1500, true, true);
            assert_eq!(adaptive.decide(EQUAL, down, Share::default()), None, "no ACKs");
        }
    }

    #[test]
    fn an_ack_counts_as_it_leaves() {
        let mut adaptive = Adaptive::default();
        adaptive.on_pop(Instant::ZERO, Class::Ack, 52, true, false);
        adaptive.on_repriced(52, 64);
        assert_eq!((adaptive.acks, adaptive.ack_bytes), (1, 64));
    }
}
