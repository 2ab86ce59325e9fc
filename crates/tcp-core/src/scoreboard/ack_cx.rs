//! The facts of one ACK.
//!
//! The segment gives some of them, its records the others:
//! [`acknowledge`](super::Scoreboard::acknowledge) and [`sack`](super::Scoreboard::sack) add each
//! record that the ACK newly covers. After that pass nothing changes them. Delivery rate, RACK, the
//! path's MTU, undo, probes and loss detection read them; the response to a timeout sees
//! [`AckCx::facts`], congestion control a [sample](AckCx::sample) made of them.
//!
//! It sits below [`recovery`](crate::recovery), because RACK, probes and undo read it as well.

use super::claim::Claim;
use super::record::{Record, Stamp, sent_after};
use crate::policy::cc::{AckSample, RateSample};
use crate::policy::rto::AckFacts;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};

/// What one ACK says.
#[derive(Debug)]
pub(crate) struct AckCx {
    /// When it arrived.
    pub(crate) now: Instant,
    /// What a response to a timeout sees of it.
    pub(crate) facts: AckFacts,
    /// `pipe` before it.
    pub(crate) prior_pipe: u32,
    /// What it acknowledges left while the congestion window was full or held back more.
    pub(crate) cwnd_limited: bool,
    /// It freed send buffer.
    pub(crate) freed: bool,
    /// The smallest RTT before it.
    pub(crate) min_rtt: Option<Duration>,
    /// When the segment left whose timestamp it echoes, in milliseconds.
    pub(crate) echoed: Option<u64>,
    /// RTT of the oldest covered segment never retransmitted, or of the one whose timestamp it
    /// echoes.
    pub(crate) rtt_oldest: Option<Duration>,
    /// RTT of the newest covered segment never retransmitted.
    pub(crate) rtt_newest: Option<Duration>,
    /// Bytes acknowledged or SACKed for the first time.
    pub(crate) delivered: u32,
    /// Segments of them, and of what was sent again after it had been SACKed.
    pub(crate) segments: u32,
    /// Bytes of `delivered` that the peer reports as marked, and segments.
    pub(crate) marked: u32,
    pub(crate) marked_segments: u32,
    /// Departure of the newest of them that was never retransmitted.
    pub(crate) newest_departure: Option<Instant>,
    /// SND.UNA advanced over what left more than once. Without SACK, what lies behind that may have
    /// arrived long before.
    pub(crate) repairs: bool,
    /// The newest transmission that it covers, for the delivery rate.
    pub(crate) newest: Option<Transmission>,
    /// Payload bytes of the largest packet never retransmitted.
    pub(crate) largest_packet: u16,
    /// What RACK learns of it.
    pub(crate) rack: RackFacts,
    /// What ICMP claims of the path, if that is not decided.
    pub(crate) claim: Option<Claim>,
    /// A record shows that the claim is wrong.
    pub(crate) refutes_claim: bool,
    /// A record left after the packet that is claimed not to have arrived.
    pub(crate) is_after_claim: bool,
}

/// One transmission that an ACK covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) stamp: Stamp,
    end: SeqNum,
    pub(crate) app_limited: bool,
    pub(crate) retransmission: bool,
}

/// What RACK learns of one ACK (RFC 8985, section 6.2, steps 2 and 3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RackFacts {
    /// The newest departure that has arrived, and its end.
    pub(crate) newest: Option<(Instant, SeqNum)>,
    /// The oldest departure.
    pub(crate) oldest: Option<Instant>,
    /// The lowest end of a segment that left only once.
    pub(crate) lowest: Option<SeqNum>,
    /// The highest end of all.
    pub(crate) highest: Option<SeqNum>,
}

impl AckCx {
    /// An ACK of `ack` at `now`, while SND.UNA is `prior_una`.
    pub(crate) fn new(now: Instant, prior_una: SeqNum, ack: SeqNum) -> Self {
        Self {
            now,
            facts: AckFacts::new(prior_una, ack),
            prior_pipe: 0,
            cwnd_limited: false,
            freed: false,
            min_rtt: None,
            echoed: None,
            rtt_oldest: None,
            rtt_newest: None,
            delivered: 0,
            segments: 0,
            marked: 0,
            marked_segments: 0,
            newest_departure: None,
            repairs: false,
            newest: None,
            largest_packet: 0,
            rack: RackFacts::default(),
            claim: None,
            refutes_claim: false,
            is_after_claim: false,
        }
    }

    /// Bytes by which it advanced SND.UNA.
    pub(crate) const fn acked(&self) -> u32 {
        self.facts.acked
    }

    /// What congestion control sees of it: `newly_lost` bytes were found lost by it, and `rate` is
    /// its delivery rate.
    pub(crate) fn sample(&self, newly_lost: u32, rate: Option<RateSample>) -> AckSample {
        let mut sample = AckSample::new(self.acked(), self.segments);
        sample.newly_sacked = self.facts.newly_sacked;
        sample.newly_delivered = self.delivered;
        sample.newly_lost = newly_lost;
        sample.duplicate = self.acked() == 0;
        sample.ece = self.facts.ece;
        sample.ce = self.marked;
        sample.rtt = self.rtt_newest;
        sample.rtt_oldest = self.rtt_oldest;
        sample.prior_pipe = self.prior_pipe;
        sample.rate = rate;
        sample
    }

    /// It covers `record`, which is not tagged as SACKed.
    pub(super) fn add(&mut self, record: &Record) {
        let (sent_at, retransmission) = (record.stamp.sent_at, record.ever_retransmitted());
        if record.ever_sacked() {
            // Reported once, and counted then; the tag was cleared since. When the original arrived
            // is not known, so that only a copy that left later can say anything, and that only to
            // RACK, which asks whether the ACK is the copy's.
            if record.left_again() {
                self.segments += record.segments();
                self.add_to_rack(sent_at, record.end, true);
            }
            return;
        }
        self.delivered += record.len();
        self.segments += record.segments();
        self.add_to_rack(sent_at, record.end, retransmission);
        if !retransmission {
            self.newest_departure = Some(self.newest_departure.map_or(sent_at, |at| at.max(sent_at)));
            self.facts.original = Some(self.facts.original.map_or(sent_at, |at| at.min(sent_at)));
            self.largest_packet = self.largest_packet.max(record.packet_len());
            if let Some(claim) = &self.claim {
                self.refutes_claim |= claim.is_refuted_by(record);
                self.is_after_claim |= claim.is_older_than(record);
            }
        }
        let newer = self
            .newest
            .as_ref()
            .is_none_or(|newest| sent_after((sent_at, record.end), (newest.stamp.sent_at, newest.end)));
        if newer {
            self.newest = Some(Transmission {
                stamp: record.stamp,
                end: record.end,
                app_limited: record.app_limited(),
                retransmission,
            });
        }
    }

    /// A segment that left last at `sent_at` and ends at `end` has arrived.
    fn add_to_rack(&mut self, sent_at: Instant, end: SeqNum, retransmitted: bool) {
        let rack = &mut self.rack;
        rack.highest = Some(rack.highest.map_or(end, |highest| highest.max(end)));
        if retransmitted {
            // Step 2: an ACK that echoes an older timestamp, or comes sooner than any before, is
            // that of an earlier copy.
            let early = self.min_rtt.is_some_and(|min| self.now.since(sent_at) < min);
            if early || self.echoed.is_some_and(|echoed| echoed < sent_at.as_millis()) {
                return;
            }
        } else {
            rack.lowest = Some(rack.lowest.map_or(end, |lowest| lowest.min(end)));
        }
        rack.oldest = Some(rack.oldest.map_or(sent_at, |oldest| oldest.min(sent_at)));
        if rack.newest.is_none_or(|newest| sent_after((sent_at, end), newest)) {
            rack.newest = Some((sent_at, end));
        }
    }
}
