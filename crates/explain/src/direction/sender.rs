//! The data of the stack that wrote a trace: what it sent, what was acknowledged, and what it
//! waited for by its own account.
//!
//! Between two events the cause of a wait follows from what the stack has stated: the phase of loss
//! handling, the congestion window and what is in flight, the peer's window, the pacing rate. It is
//! what the stack's own gate asks before it sends.

use super::episodes::Retransmission;
use super::segment_size::SegmentSize;
use super::slow_start::SlowStartWatch;
use super::stated_reason::StatedReason;
use super::tally::Tally;
use super::{BURST_NS, LONGEST_NS, SHORTEST_STALL_NS, since};
use crate::story::{Cause, Congestion, Direction, LossDetection, SlowStartEnd};
use ackline_observe::trace::Metrics;
use ackline_tcp_core::policy::cc::Phase;
use std::net::SocketAddr;

/// Data that a stack sends.
#[derive(Debug)]
pub(crate) struct Sender {
    tally: Tally,
    congestion: Congestion,
    metrics: Metrics,
    /// Octets sent since the pipe was stated.
    sent_since: u64,
    phase: (Phase, u64),
    /// Up to when the pacing rate explains a wait.
    paced_until_ns: u64,
    /// Up to where causes are known.
    event_ns: u64,
    /// When the timer fired first of those in a row, and whether nothing has been sent again since.
    expired_ns: u64,
    expired: bool,
    /// When the window was reduced last.
    reduced_ns: u64,
    segment: SegmentSize,
    /// When any ACK came last.
    heard_ns: u64,
}

impl Sender {
    /// For the data from one end of a connection that begins at `start_ns`: at most `records` of
    /// what is in flight, and `drawn` entries of what is drawn.
    pub(crate) fn new(from: SocketAddr, start_ns: u64, records: usize, drawn: usize) -> Self {
        Self {
            tally: Tally::new(from, start_ns, records, drawn, SlowStartWatch::stated()),
            congestion: Congestion::default(),
            metrics: Metrics::default(),
            sent_since: 0,
            phase: (Phase::Open, start_ns),
            paced_until_ns: 0,
            event_ns: start_ns,
            expired_ns: 0,
            expired: false,
            reduced_ns: 0,
            segment: SegmentSize::default(),
            heard_ns: 0,
        }
    }

    pub(crate) const fn fin(&self) -> (Option<u64>, bool) {
        self.tally.fin()
    }

    pub(crate) const fn keep_alives(&self) -> u64 {
        self.tally.keep_alives
    }

    /// A SYN with this number was sent.
    pub(crate) const fn opened(&mut self, seq: u32) {
        self.tally.positions.begin(seq.wrapping_add(1));
    }

    /// The stack sent a packet: `length` octets from `seq`, and for what.
    pub(crate) fn sent(&mut self, at: u64, seq: u32, length: u32, fin: bool, trigger: &str) {
        let stated = StatedReason::of(trigger);
        match stated {
            Some(StatedReason::WindowProbe) => self.tally.window.probes += 1,
            Some(StatedReason::KeepAlive) => self.tally.keep_alives += 1,
            _ => {}
        }
        if length == 0 && !fin || stated == Some(StatedReason::KeepAlive) {
            return;
        }
        let start = self.tally.place(seq);
        let end = start + u64::from(length) + u64::from(fin);
        if fin {
            self.tally.finishes(at, start + u64::from(length));
        }
        self.tally.slow_start.acknowledged(at, self.tally.snd_una, self.tally.snd_nxt);
        match stated {
            Some(StatedReason::Again(LossDetection::Probe)) => self.wait(at, Some(Cause::Timer)),
            Some(StatedReason::WindowProbe) => self.wait(at, Some(Cause::ZeroWindow)),
            _ => self.wait(at, Some(self.paused(at))),
        }
        self.tally.packet(at, length);
        self.event_ns = at;
        self.segment.learn(length);
        let sent = self.tally.snd_nxt;
        if start < sent {
            let found = match stated {
                Some(StatedReason::Again(found)) => found,
                _ => LossDetection::Unclear,
            };
            self.again(at, start, end.min(sent), found);
        }
        if end > sent {
            self.fresh(at, start.max(sent), end);
        }
        self.sent_since += u64::from(length);
        if let Some(rate) = self.metrics.pacing_rate.filter(|rate| *rate > 0) {
            let gap = (u64::from(length) * 8).saturating_mul(1_000_000_000) / rate;
            self.paced_until_ns = self.paced_until_ns.max(at).saturating_add(gap.min(LONGEST_NS));
        }
        let flight = self.flight();
        self.tally.in_flight(at, flight);
    }

    /// Data for the first time.
    fn fresh(&mut self, at: u64, start: u64, end: u64) {
        let flight = self.flight() + end - start;
        let tally = &mut self.tally;
        // What lies between is not in the trace.
        tally.uncaptured += start - tally.snd_nxt;
        tally.record(start, end, at, 1, flight);
        tally.bytes += end - tally.snd_nxt;
        tally.snd_nxt = end;
        tally.fresh(at, start, end, flight);
    }

    /// Data that had been sent before.
    fn again(&mut self, at: u64, start: u64, end: u64, found: LossDetection) {
        for record in self.tally.outstanding.range_mut(start, end) {
            record.times = record.times.saturating_add(1);
            record.last_ns = at;
        }
        let timeout = found == LossDetection::Timeout && std::mem::take(&mut self.expired);
        let (stated, flight) = (found != LossDetection::Unclear, self.flight());
        let it = Retransmission { at_ns: at, start, end, found, stated, before: false, flight, timeout };
        if self.tally.again(&it, self.segment.octets()) {
            self.reduced_ns = at;
        }
    }

    /// The peer acknowledged everything before `ack`; `pure`: by a segment without data.
    pub(crate) fn heard(&mut self, at: u64, ack: u32, pure: bool) {
        if !self.tally.positions.is_known() {
            self.tally.positions.begin(ack);
        }
        let ack = self.tally.place(ack);
        if ack < self.tally.snd_una || self.tally.first_ns.is_none() {
            return;
        }
        self.wait(at, None);
        self.heard_ns = at;
        // What the stack concludes from it follows; if its pipe is the same as before, it says
        // nothing.
        self.sent_since = 0;
        self.tally.proves(ack);
        if ack == self.tally.snd_una {
            self.tally.acks.duplicates += u64::from(pure && self.tally.snd_una < self.tally.snd_nxt);
            return;
        }
        let mut sample = None;
        self.tally.outstanding.acknowledge(ack, |record| {
            sample = (record.times == 1).then_some((record.first_ns, record.flight));
        });
        // What fills a gap acknowledges what arrived long before.
        if let Some((sent, flight)) = sample.filter(|_| self.phase.0 == Phase::Open) {
            self.tally.measured(at, since(at, sent), flight, self.segment.octets());
        }
        self.tally.advance(at, ack, pure, self.round_trip_ns());
    }

    /// The stack states its congestion state: what has changed.
    pub(crate) fn measured(&mut self, at: u64, changes: &Metrics) {
        self.wait(at, None);
        self.metrics.update(changes);
        self.sent_since = 0;
        let stated = &mut self.congestion;
        if let Some(cwnd) = self.metrics.congestion_window {
            stated.cwnd_min = if stated.cwnd_max == 0 { cwnd } else { stated.cwnd_min.min(cwnd) };
            stated.cwnd_max = stated.cwnd_max.max(cwnd);
            stated.cwnd_last = cwnd;
            if self.phase.0 == Phase::Open && self.metrics.ssthresh.is_some_and(|ssthresh| cwnd >= ssthresh) {
                self.tally.slow_start.end(at, SlowStartEnd::Plateau);
            }
        }
        (stated.ssthresh, stated.pacing_rate) = (self.metrics.ssthresh, self.metrics.pacing_rate);
        if let Some(window) = changes.peer_window.map(u64::from) {
            self.tally.window.zero += u64::from(window == 0);
            let known = self.tally.window.max > 0;
            self.tally.window.min = if known { self.tally.window.min.min(window) } else { window };
            self.tally.window.max = self.tally.window.max.max(window);
        }
        if let Some(artist) = &mut self.tally.artist {
            let edge = self.metrics.peer_window.map(|window| self.tally.snd_una + u64::from(window));
            artist.ack(at, self.tally.snd_una, edge);
            if let Some(cwnd) = self.metrics.congestion_window {
                artist.cwnd(at, cwnd);
            }
        }
    }

    /// Another phase of loss handling.
    pub(crate) fn phase(&mut self, at: u64, to: Phase) {
        self.wait(at, None);
        self.end_phase(at);
        self.phase = (to, at);
        if matches!(to, Phase::Recovery | Phase::Loss) {
            self.tally.slow_start.end(at, SlowStartEnd::Loss);
        }
    }

    fn end_phase(&mut self, at: u64) {
        let took = since(at, self.phase.1);
        match self.phase.0 {
            Phase::Open => {}
            Phase::Disorder => self.congestion.disorder_ns += took,
            Phase::Recovery => self.congestion.recovery_ns += took,
            Phase::Loss => self.congestion.loss_ns += took,
        }
    }

    /// Octets were declared lost, of which so many segments had been sent again.
    pub(crate) fn lost(&mut self, bytes: u32, again: u32, by_timer: bool) {
        let stated = &mut self.congestion;
        stated.lost_bytes += u64::from(bytes);
        stated.lost_again += u64::from(again);
        *(if by_timer { &mut stated.losses_by_timer } else { &mut stated.losses_by_ack }) += 1;
    }

    /// The retransmission timer fired, so many times in a row.
    pub(crate) fn expired(&mut self, at: u64, in_a_row: u32) {
        if self.tally.snd_una == self.tally.snd_nxt {
            // A SYN's.
            return;
        }
        self.wait(at, Some(Cause::Timer));
        self.tally.losses.timeouts += 1;
        self.expired = true;
        if in_a_row <= 1 {
            // The verdict is on all that follow.
            (self.expired_ns, self.reduced_ns) = (at, at);
        }
    }

    /// The verdict on the last timeout.
    pub(crate) fn classified(&mut self, spurious: bool) {
        if spurious {
            self.congestion.timeouts_spurious += 1;
            self.needless_since(self.expired_ns);
        } else {
            self.congestion.timeouts_lossy += 1;
        }
    }

    /// The last reduction was undone.
    pub(crate) fn undone(&mut self) {
        self.congestion.undone += 1;
        self.needless_since(self.reduced_ns);
    }

    fn needless_since(&mut self, at_ns: u64) {
        let news = self.tally.episodes.needless_since(at_ns);
        self.tally.losses.spurious += news;
        self.tally.losses.spurious_by_stack += news;
    }

    /// The window was reduced because of ECE.
    pub(crate) fn marked(&mut self, at: u64) {
        self.congestion.reduced_by_ecn += 1;
        self.tally.slow_start.end(at, SlowStartEnd::Mark);
    }

    /// Octets on the path, as the stack counts them.
    fn flight(&self) -> u64 {
        match self.metrics.bytes_in_flight {
            Some(pipe) => u64::from(pipe) + self.sent_since,
            None => self.tally.snd_nxt - self.tally.snd_una,
        }
    }

    fn round_trip_ns(&self) -> u64 {
        self.metrics.smoothed_rtt.map_or(0, |millis| (millis * 1e6) as u64)
    }

    /// What held back a packet that leaves now.
    fn paused(&self, at: u64) -> Cause {
        match self.cause() {
            // A limit that the stack does not state, such as a cap of the window: an ACK lifted it.
            Cause::Application
                if self.tally.snd_una < self.tally.snd_nxt && since(at, self.heard_ns) <= BURST_NS =>
            {
                Cause::CongestionWindow
            }
            cause => cause,
        }
    }

    /// The time since the last event went for `cause`; if that is not known, for what the stack's
    /// state tells.
    fn wait(&mut self, at: u64, cause: Option<Cause>) {
        if self.tally.first_ns.is_none() || self.tally.fin_acked {
            return;
        }
        // If nothing that is stated holds data back, the next packet tells what did.
        if cause.is_none() && self.cause() == Cause::Application {
            return;
        }
        let waited = since(at, self.event_ns);
        let stall = self.round_trip_ns().saturating_mul(2).max(SHORTEST_STALL_NS);
        let cause = match cause.unwrap_or_else(|| self.cause()) {
            Cause::CongestionWindow | Cause::Recovery if waited > stall => Cause::Silence,
            Cause::Application if waited <= BURST_NS => {
                self.tally.ledger.last().unwrap_or(Cause::CongestionWindow)
            }
            Cause::Application => {
                self.tally.ledger.write(Cause::Pacing, self.paced_until_ns.min(at), stall);
                if at > self.paced_until_ns {
                    self.tally.slow_start.application_pauses();
                }
                Cause::Application
            }
            other => other,
        };
        self.tally.ledger.write(cause, at, stall);
        self.event_ns = at;
    }

    /// What holds new data back.
    fn cause(&self) -> Cause {
        let outstanding = self.tally.snd_nxt - self.tally.snd_una;
        let segment = self.segment.octets();
        let repairs = matches!(self.phase.0, Phase::Recovery | Phase::Loss);
        let window = self.metrics.peer_window.map(u64::from);
        match () {
            () if repairs && outstanding > 0 => Cause::Recovery,
            // The application wrote no more.
            () if self.tally.fin.is_some() => Cause::Application,
            () if window == Some(0) => Cause::ZeroWindow,
            () if window.is_some_and(|window| outstanding + segment > window) && outstanding > 0 => {
                Cause::ReceiverWindow
            }
            () if outstanding == 0 => Cause::Application,
            () if self.metrics.congestion_window.is_none_or(|cwnd| self.flight() + segment > cwnd) => {
                Cause::CongestionWindow
            }
            () => Cause::Application,
        }
    }

    /// What is told of it; `start_ns` is the connection's begin, `end_ns` its last event.
    pub(crate) fn finish(mut self, start_ns: u64, end_ns: u64) -> Direction {
        self.end_phase(end_ns);
        Direction {
            mss: self.segment.seen(),
            congestion: Some(self.congestion),
            ..self.tally.finish(start_ns, self.segment.octets())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a trace states is text of whoever wrote it.
    #[test]
    fn no_stated_time_makes_a_sum_overflow() {
        let mut sender = Sender::new(([192, 0, 2, 1], 80).into(), 0, 64, 0);
        sender.opened(0);
        for (number, millis) in [1e300, f64::MAX, -1.0, 0.0].into_iter().enumerate() {
            let mut stated = Metrics::default();
            (stated.smoothed_rtt, stated.congestion_window) = (Some(millis), Some(u64::MAX));
            stated.pacing_rate = Some(1);
            for at in [0, u64::MAX, 1, u64::MAX] {
                sender.measured(at, &stated);
                sender.sent(at, 1 + number as u32 * 100, 100, false, "");
                sender.phase(at, Phase::Recovery);
                sender.heard(at, 1 + number as u32 * 100 + 100, true);
                sender.phase(at, Phase::Loss);
            }
        }
        let told = sender.finish(0, u64::MAX);
        assert_eq!((told.bytes, told.uncaptured), (400, 0));
    }
}
