//! What one ACK covers, gathered record by record.

use super::claim::Claim;
use super::record::{Record, Stamp, sent_after};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};

/// The newest transmission that an ACK covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub(crate) stamp: Stamp,
    end: SeqNum,
    pub(crate) app_limited: bool,
    pub(crate) retransmission: bool,
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
    pub(crate) newest: Option<Newest>,
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

/// What one ACK newly covers, gathered record by record (steps 2 and 3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    /// The time of the ACK.
    pub(crate) now: Instant,
    min_rtt: Option<Duration>,
    /// When the segment left that the ACK echoes, in milliseconds.
    echoed: Option<u64>,
    pub(crate) newest: Option<(Instant, SeqNum)>,
    /// The oldest departure.
    pub(crate) oldest: Option<Instant>,
    /// The lowest end of a segment that left only once.
    pub(crate) lowest: Option<SeqNum>,
    pub(crate) highest: Option<SeqNum>,
}

impl Arrived {
    /// Nothing so far. `echoed`: when, in milliseconds, the segment left whose timestamp the ACK echoes.
    pub(crate) const fn new(now: Instant, min_rtt: Option<Duration>, echoed: Option<u64>) -> Self {
        Self { now, min_rtt, echoed, newest: None, oldest: None, lowest: None, highest: None }
    }

    /// A segment that left last at `sent_at` and ends at `end` has arrived.
    pub(crate) fn add(&mut self, sent_at: Instant, end: SeqNum, retransmitted: bool) {
        self.highest = Some(self.highest.map_or(end, |highest| highest.max(end)));
        if retransmitted {
            // Step 2: an ACK that echoes an older timestamp, or comes sooner than any before, is that of an
            // earlier copy.
            let early = self.min_rtt.is_some_and(|min| self.now.since(sent_at) < min);
            if early || self.echoed.is_some_and(|echoed| echoed < sent_at.as_millis()) {
                return;
            }
        } else {
            self.lowest = Some(self.lowest.map_or(end, |lowest| lowest.min(end)));
        }
        self.oldest = Some(self.oldest.map_or(sent_at, |oldest| oldest.min(sent_at)));
        if self.newest.is_none_or(|newest| sent_after((sent_at, end), newest)) {
            self.newest = Some((sent_at, end));
        }
    }
}
