//! Delivery-rate samples (draft-ietf-ccwg-bbr, section 4.1).
//!
//! Each transmission remembers how much had been delivered when it left. When an ACK covers it, the difference
//! is what was delivered over one flight, and the longer of the time it took to send and the time it took to
//! be acknowledged is the interval: an ACK that was compressed or held on its way cannot show a rate above the
//! sending rate.

use super::path_mtu::Claim;
use super::scoreboard::Record;
use crate::policy::cc::RateSample;
use crate::recovery::rack::Arrived;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// The connection's counts (`C.*` of the draft).
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Bytes acknowledged or SACKed since the connection began.
    pub(crate) delivered: u64,
    /// When `delivered` last grew.
    delivered_at: Instant,
    /// Departure of the segment that was most recently delivered, or of the first of the flight.
    first_sent_at: Instant,
    /// `delivered` at which the last bubble caused by the application is over; 0: none.
    app_limited: u64,
    /// The last sample's rate.
    pub(crate) last: Rate,
}

/// What a transmission remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    /// When it left.
    pub(crate) sent_at: Instant,
    /// `delivered` then.
    pub(crate) delivered: u64,
    /// `delivered_at` then.
    pub(crate) delivered_at: Instant,
    /// `first_sent_at` then.
    pub(crate) first_sent_at: Instant,
}

/// The newest transmission that an ACK covers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    stamp: Stamp,
    end: SeqNum,
    app_limited: bool,
    retransmission: bool,
}

/// What one ACK covers, gathered record by record.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    /// Bytes acknowledged or SACKed for the first time.
    pub(crate) bytes: u32,
    /// Segments of them, and of what was sent again after it had been SACKed.
    pub(crate) segments: u32,
    /// Departure of the newest of them that was never retransmitted.
    pub(crate) newest_departure: Option<Instant>,
    /// Departure of the oldest one.
    pub(crate) oldest_departure: Option<Instant>,
    /// SND.UNA advanced over what left more than once. Without SACK, what lies behind that may have arrived long before.
    pub(crate) repairs: bool,
    newest: Option<Newest>,
    /// As RACK sees it.
    pub(crate) arrived: Arrived,
    /// What ICMP claims of the path, if that is not decided.
    pub(crate) claim: Option<Claim>,
    /// A record shows that the claim is wrong.
    pub(crate) refutes_claim: bool,
    /// A record left after the packet that is claimed not to have arrived.
    pub(crate) is_after_claim: bool,
    /// Payload bytes of the largest packet never retransmitted.
    pub(crate) largest_packet: u16,
}

impl Covered {
    /// The ACK covers `record`, which is not tagged as SACKed.
    pub(crate) fn add(&mut self, record: &Record) {
        let (sent_at, retransmission) = (record.stamp.sent_at, record.ever_retransmitted());
        if record.ever_sacked() {
            // Reported once, and counted then; the tag was cleared since. When the original arrived is not known, so that
            // only a copy that left later can say anything, and that only to RACK, which asks whether the ACK is the
            // copy's.
            if record.left_again() {
                self.segments += record.segments();
                self.arrived.add(sent_at, record.end, true);
            }
            return;
        }
        self.bytes += record.len();
        self.segments += record.segments();
        self.arrived.add(sent_at, record.end, retransmission);
        if !retransmission {
            self.newest_departure = Some(self.newest_departure.map_or(sent_at, |at| at.max(sent_at)));
            self.oldest_departure = Some(self.oldest_departure.map_or(sent_at, |at| at.min(sent_at)));
            self.largest_packet = self.largest_packet.max(record.packet_len());
            if let Some(claim) = &self.claim {
                self.refutes_claim |= claim.is_refuted_by(record);
                self.is_after_claim |= claim.is_older_than(record);
            }
        }
        let newer = match &self.newest {
            None => true,
            Some(newest) => {
                sent_at > newest.stamp.sent_at
                    || (sent_at == newest.stamp.sent_at && record.end.gt(newest.end))
            }
        };
        if newer {
            self.newest = Some(Newest {
                stamp: record.stamp,
                end: record.end,
                app_limited: record.app_limited(),
                retransmission,
            });
        }
    }
}

impl Delivery {
    pub(crate) const fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            app_limited: 0,
            last: Rate::ZERO,
        }
    }

    /// A segment leaves at `now`; `idle` where nothing is outstanding.
    pub(crate) fn on_sent(&mut self, now: Instant, idle: bool) -> Stamp {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Stamp {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
        }
    }

    /// The application has nothing to send while `pipe` bytes are out, below the window.
    pub(crate) fn on_app_limited(&mut self, pipe: u32) {
        self.app_limited = (self.delivered + u64::from(pipe)).max(1);
    }

    /// The flow is in a bubble that the application caused.
    pub(crate) const fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }

    /// Closes the sample of one ACK. None where it covered nothing, or where the interval is too short to be
    /// believed (below the smallest RTT).
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        covered: &Covered,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        if covered.bytes == 0 {
            return None;
        }
        self.delivered += u64::from(covered.bytes);
        self.delivered_at = now;
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let newest = covered.newest.as_ref()?;
        self.first_sent_at = newest.stamp.sent_at;
        let send_elapsed = newest.stamp.sent_at.since(newest.stamp.first_sent_at);
        let ack_elapsed = now.since(newest.stamp.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        let mut sample =
            RateSample::new(self.delivered - newest.stamp.delivered, interval, newest.stamp.delivered);
        sample.app_limited = newest.app_limited;
        sample.retransmission = newest.retransmission;
        Some(sample)
    }
}
