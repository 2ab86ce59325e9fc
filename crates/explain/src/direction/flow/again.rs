//! What was sent again, and what for.

use super::{Flow, is_after};
use crate::direction::episodes::Retransmission;
use crate::direction::stated_reason::StatedReason;
use crate::direction::{Context, since};
use crate::story::{Cause, LossDetection, SlowStartEnd};

/// A sender's shortest retransmission timeout (Linux). RFC 6298 has 1 s.
const SHORTEST_RTO_NS: u64 = 200_000_000;

/// Octets that had passed, or lay before some that had.
#[derive(Clone, Copy, Debug)]
pub(super) struct RepeatedRange {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) at: u64,
    /// What their packet says of itself.
    pub(super) stated: Option<StatedReason>,
}

impl Flow {
    /// Octets before the highest that has passed; `tsval` is their packet's timestamp.
    pub(super) fn repeated(&mut self, it: &RepeatedRange, tsval: Option<u32>, context: &Context) {
        let &RepeatedRange { start, end, at, stated } = it;
        let is_older = tsval.zip(self.latest_tsval).map(|(tsval, latest)| is_after(latest, tsval));
        let is_newer = tsval.zip(self.latest_tsval).is_some_and(|(tsval, latest)| is_after(tsval, latest));
        let (mut unseen, mut seen, mut gap_ns) = (false, false, at);
        for record in self.tally.outstanding.range_mut(start, end) {
            if record.times == 0 {
                unseen = true;
                gap_ns = gap_ns.min(record.first_ns);
            } else {
                seen = true;
            }
        }
        // The capture began with a packet that had overtaken this one.
        let first = !seen && !unseen && !self.opened && self.tally.progress_ns == 0;
        let before = unseen && !seen || first;
        let early = since(at, gap_ns) < self.path_ns(context) / 2;
        let late = match stated {
            Some(StatedReason::New) => true,
            Some(_) => false,
            None => is_older == Some(true) || ((early || first) && !is_newer),
        };
        let found = if before && late { None } else { Some(self.class(it, context)) };
        for record in self.tally.outstanding.range_mut(start, end) {
            record.times = record.times.saturating_add(1);
            record.last_ns = at;
            if record.times == 1 {
                // What SACK showed then was the gap.
                (record.first_ns, record.overtaken_ns) = (at, None);
            } else if record.again_tsval.is_none() {
                record.again_tsval = tsval.filter(|_| is_newer || is_older == Some(false));
            }
            if before && found.is_some() {
                // One that repairs a loss before the capture is measured by no ACK.
                record.times = record.times.max(2);
            }
        }
        if first && found.is_none() {
            self.tally.bytes += end - start;
        }
        match found {
            None => self.tally.losses.reordered_before += 1,
            Some(found) => self.again(it, found, before, context),
        }
    }

    /// It is a retransmission; `before`: its original did not pass the capture.
    fn again(&mut self, it: &RepeatedRange, found: LossDetection, before: bool, context: &Context) {
        let &RepeatedRange { start, end, at, stated } = it;
        let follows = self.tally.episodes.open().is_some_and(|open| start < open.timeout_point);
        let silent = since(at, self.sent_ns.max(self.view.heard_ns()));
        let timeout = found == LossDetection::Timeout && (!follows || silent >= SHORTEST_RTO_NS / 2);
        self.tally.losses.timeouts += u64::from(timeout);
        let stall = self.stall_ns(context);
        let by_timer = timeout || found == LossDetection::Probe;
        let cause = if by_timer { Cause::Timer } else { self.repairing(at, stall) };
        self.tally.ledger.write(cause, at, stall);
        let stated = matches!(stated, Some(StatedReason::Again(_)));
        let flight = self.flight();
        let it = Retransmission { at_ns: at, start, end, found, stated, before, flight, timeout };
        self.tally.again(&it, context.segment_size(self.mss));
        // A probe of the tail that finds nothing lost is no end of growth.
        if found != LossDetection::Probe {
            self.tally.slow_start.end(at, SlowStartEnd::Loss);
        }
        if end <= self.tally.snd_una {
            // What is acknowledged already was sent for nothing, unless the ACK is on its way to
            // the sender.
            let heard = since(at, self.tally.progress_ns) > context.to_sender_ns * 2;
            if heard && self.tally.episodes.needless(start, end) == Some(1) {
                self.tally.losses.spurious += 1;
                self.tally.losses.spurious_by_time += 1;
            }
        }
    }

    /// How the loss was found that this packet repairs.
    fn class(&self, it: &RepeatedRange, context: &Context) -> LossDetection {
        let &RepeatedRange { start, end, at, stated } = it;
        if let Some(StatedReason::Again(found)) = stated {
            return found;
        }
        let evidence = self.highest_sacked >= end
            || self.duplicates >= 3
            || (self.duplicates > 0 && self.highest_sacked > 0);
        let silent = since(at, self.sent_ns.max(self.view.heard_ns()));
        let path = self.path_ns(context);
        let timeout = self.tally.rtt.timeout_ns().unwrap_or(0).max(SHORTEST_RTO_NS) + context.to_sender_ns;
        if let Some(open) = self.tally.episodes.open()
            && start < open.timeout_point
            && silent < timeout / 2
        {
            return LossDetection::Timeout;
        }
        // RACK's timer is at most a round trip behind the ACK (RFC 8985, section 6.2).
        if evidence && silent <= (path + path / 2).max(5_000_000) {
            return LossDetection::Fast;
        }
        let again =
            self.tally.episodes.last_again(start, end).is_some_and(|last| last >= self.tally.progress_ns);
        let waited = since(at, self.view.progress_ns().max(self.sent_ns));
        if silent * 10 >= timeout * 9 || (again && silent * 2 >= timeout) {
            return LossDetection::Timeout;
        }
        if end == self.tally.snd_nxt && !again && waited * 2 >= path {
            return LossDetection::Probe;
        }
        if start == self.tally.snd_una && silent > path + path / 2 {
            return LossDetection::Timeout;
        }
        match self.tally.episodes.open() {
            Some(open) if start < open.timeout_point => LossDetection::Timeout,
            Some(_) => LossDetection::Fast,
            None if evidence => LossDetection::Fast,
            None => LossDetection::Unclear,
        }
    }
}
