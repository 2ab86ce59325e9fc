//! What is held to be lost.

use super::Scoreboard;
use super::record::{Record, Tally, sent_after, tag};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};

/// What was found overdue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OverdueData {
    /// Bytes newly marked lost.
    pub(crate) bytes: u32,
    /// Segments among them that had been retransmitted.
    pub(crate) lost_again: u32,
    /// When the oldest segment that is not yet lost will be.
    pub(crate) next: Option<Instant>,
}

/// What [`Scoreboard::retag`] holds to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostRange {
    /// Everything that is not SACKed.
    All,
    /// Of that, what begins before this sequence number.
    Before(SeqNum),
    /// Nothing.
    None,
}

/// Hears of each record when it is marked lost: its last transmission is given up.
pub(crate) type OnLost<'a> = &'a mut dyn FnMut(&Record);

impl Scoreboard {
    /// RFC 6675, Update and IsLost: marks what the SACK blocks prove lost, and returns the bytes
    /// newly marked.
    pub(crate) fn mark_lost_by_sack(&mut self, dup_thresh: u32, smss: u32, on_lost: OnLost<'_>) -> u32 {
        let Some(edge) = self.sacked.loss_edge(dup_thresh, smss) else { return 0 };
        if edge.le(self.lost_edge) {
            return 0;
        }
        let mut newly = 0;
        let mut i = self.index_of(self.lost_edge);
        while let Some(record) = self.records.get_mut(i)
            && record.end.le(edge)
        {
            newly += Self::mark_lost(&mut self.tally, record, on_lost);
            i += 1;
        }
        if newly > 0 {
            self.next_lost = self.next_lost.min(self.lost_edge);
        }
        self.lost_edge = edge;
        newly
    }

    /// Marks the segment at the head lost, whatever its size up to `smss`. Returns the bytes newly
    /// marked.
    pub(crate) fn mark_head_lost(&mut self, smss: u32, on_lost: OnLost<'_>) -> u32 {
        self.split_after(0, smss);
        let Some(record) = self.records.front_mut() else { return 0 };
        // A head that was sent again is lost again only if the caller has proof.
        self.next_lost = self.next_lost.min(record.start);
        Self::mark_lost(&mut self.tally, record, on_lost)
    }

    /// RFC 8985, section 6.2, step 5: marks lost what is in the network, left before `latest`
    /// (departure and end of what arrived), and for longer than `window`.
    pub(crate) fn mark_overdue(
        &mut self,
        latest: (Instant, SeqNum),
        now: Instant,
        window: Duration,
        on_lost: OnLost<'_>,
    ) -> OverdueData {
        let mut found = OverdueData::default();
        while let Some(i) = self.oldest_in_network()
            && let Some(record) = self.records.get_mut(i)
        {
            let sent_at = record.stamp.sent_at;
            if !sent_after(latest, (sent_at, record.end)) {
                break;
            }
            if sent_at + window > now {
                found.next = Some(sent_at + window);
                break;
            }
            self.tally.remove(record);
            if record.is(tag::AGAIN) {
                found.lost_again += record.segments();
            }
            record.set(tag::LOST, true);
            record.set(tag::AGAIN, false);
            self.tally.add(record);
            on_lost(record);
            found.bytes += record.len();
            self.next_lost = self.next_lost.min(record.start);
        }
        found
    }

    /// Marks lost what left in segments larger than `smss`: the path does not carry it (RFC 1191,
    /// section 5).
    pub(crate) fn mark_larger_than(&mut self, smss: u32) {
        let Some(una) = self.records.front().map(|record| record.start) else { return };
        for record in &mut self.records {
            if u32::from(record.mss) > smss && record.len() > smss {
                self.tally.remove(record);
                if !record.is(tag::SACKED) {
                    record.set(tag::LOST, true);
                    record.set(tag::AGAIN, false);
                }
                self.tally.add(record);
            }
        }
        self.next_lost = una;
    }

    /// Nothing is held to be lost any more; copies that left again stay in the network.
    pub(crate) fn unmark_lost(&mut self) {
        let Some(una) = self.records.front().map(|record| record.start) else { return };
        for record in &mut self.records {
            if record.is(tag::LOST) {
                self.tally.remove(record);
                record.set(tag::LOST, false);
                self.tally.add(record);
            }
        }
        self.unnamed = 0;
        self.lost_edge = una;
        self.reorder();
    }

    /// Every tag but those of Karn's algorithm is set anew: what is SACKed stays so if
    /// `keep_sacked`, what is lost becomes so by `lost`, and no copy is held to be in the network
    /// any more.
    pub(crate) fn retag(&mut self, keep_sacked: bool, lost: LostRange, on_lost: OnLost<'_>) {
        let Some(una) = self.records.front().map(|record| record.start) else { return };
        for record in &mut self.records {
            let was_in_network = record.in_network();
            self.tally.remove(record);
            if !keep_sacked {
                record.set(tag::SACKED, false);
            }
            let is_lost = match lost {
                LostRange::All => true,
                LostRange::Before(limit) => record.start.lt(limit),
                LostRange::None => false,
            };
            record.set(tag::LOST, is_lost && !record.is(tag::SACKED));
            record.set(tag::AGAIN, false);
            self.tally.add(record);
            if was_in_network && record.is(tag::LOST) {
                on_lost(record);
            }
        }
        if !keep_sacked {
            self.sacked.clear();
        }
        self.unnamed = 0;
        self.next_lost = una;
        self.lost_edge = match lost {
            LostRange::All => self.records.back().map_or(una, |record| record.end),
            LostRange::Before(limit) => {
                let end = self.records.back().map_or(una, |record| record.end);
                limit.max(una).min(end)
            }
            LostRange::None => una,
        };
        self.reorder();
    }

    fn mark_lost(tally: &mut Tally, record: &mut Record, on_lost: OnLost<'_>) -> u32 {
        if record.is(tag::SACKED) || record.is(tag::LOST) {
            return 0;
        }
        tally.remove(record);
        record.set(tag::LOST, true);
        tally.add(record);
        on_lost(record);
        record.len()
    }
}
