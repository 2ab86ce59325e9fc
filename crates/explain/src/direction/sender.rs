//! The data of the stack that wrote a trace: what it sent, what was acknowledged, and what it waited for by its own account.
//!
//! Between two events the cause of a wait follows from what the stack has stated: the phase of loss handling, the congestion window and
//! what is in flight, the peer's window, the pacing rate. It is what the stack's own gate asks before it sends.

use super::episodes::{Episodes, Retransmission};
use super::outstanding::{Outstanding, Record};
use super::positions::{ORIGIN, Positions};
use super::rtt::RoundTrips;
use super::segment_size::SegmentSize;
use super::slow_start::SlowStartWatch;
use super::stated::Stated;
use super::time::Ledger;
use super::{BURST_NS, LONGEST_NS, SHORTEST_STALL_NS, since};
use crate::picture::Artist;
use crate::story::{Acks, Cause, Congestion, Direction, Found, Losses, Marks, SlowStartEnd, Window};
use ackline_observe::trace::Metrics;
use ackline_tcp_core::policy::cc::Phase;
use std::net::SocketAddr;

/// Data that a stack sends.
#[derive(Debug)]
pub(crate) struct Sender {
    from: SocketAddr,
    positions: Positions,
    snd_nxt: u64,
    snd_una: u64,
    fin: Option<u64>,
    fin_ns: Option<u64>,
    fin_acked: bool,
    outstanding: Outstanding,
    ledger: Ledger,
    slow_start: SlowStartWatch,
    episodes: Episodes,
    rtt: RoundTrips,
    losses: Losses,
    acks: Acks,
    window: Window,
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
    bytes: u64,
    packets: u64,
    largest: u32,
    segment: SegmentSize,
    max_flight: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    /// When the cumulative ACK advanced last, and when any came.
    progress_ns: u64,
    heard_ns: u64,
    acked_bytes: u64,
    uncaptured: u64,
    keep_alives: u64,
    artist: Option<Artist>,
}

impl Sender {
    /// For the data from one end of a connection that begins at `start_ns`: at most `records` of what is in flight, and `drawn` entries of
    /// what is drawn.
    pub(crate) fn new(from: SocketAddr, start_ns: u64, records: usize, drawn: usize) -> Self {
        Self {
            from,
            positions: Positions::default(),
            snd_nxt: ORIGIN,
            snd_una: ORIGIN,
            fin: None,
            fin_ns: None,
            fin_acked: false,
            outstanding: Outstanding::new(records),
            ledger: Ledger::default(),
            slow_start: SlowStartWatch::stated(),
            episodes: Episodes::default(),
            rtt: RoundTrips::default(),
            losses: Losses::default(),
            acks: Acks::default(),
            window: Window::default(),
            congestion: Congestion::default(),
            metrics: Metrics::default(),
            sent_since: 0,
            phase: (Phase::Open, start_ns),
            paced_until_ns: 0,
            event_ns: start_ns,
            expired_ns: 0,
            expired: false,
            reduced_ns: 0,
            bytes: 0,
            packets: 0,
            largest: 0,
            segment: SegmentSize::default(),
            max_flight: 0,
            first_ns: None,
            last_ns: 0,
            progress_ns: 0,
            heard_ns: 0,
            acked_bytes: 0,
            uncaptured: 0,
            keep_alives: 0,
            artist: (drawn > 0).then(|| Artist::new(start_ns, ORIGIN, drawn)),
        }
    }

    pub(crate) const fn fin(&self) -> (Option<u64>, bool) {
        (self.fin_ns, self.fin_acked)
    }

    pub(crate) const fn keep_alives(&self) -> u64 {
        self.keep_alives
    }

    /// A SYN with this number was sent.
    pub(crate) const fn opened(&mut self, seq: u32) {
        self.positions.begin(seq.wrapping_add(1));
    }

    /// The stack sent a packet: `length` octets from `seq`, and for what.
    pub(crate) fn sent(&mut self, at: u64, seq: u32, length: u32, fin: bool, trigger: &str) {
        let stated = Stated::of(trigger);
        match stated {
            Some(Stated::WindowProbe) => self.window.probes += 1,
            Some(Stated::KeepAlive) => self.keep_alives += 1,
            _ => {}
        }
        if length == 0 && !fin || stated == Some(Stated::KeepAlive) {
            return;
        }
        let start = self.positions.of(seq, self.snd_nxt);
        let end = start + u64::from(length) + u64::from(fin);
        if fin {
            self.fin_ns.get_or_insert(at);
            self.fin.get_or_insert(start + u64::from(length));
        }
        self.slow_start.acknowledged(at, self.snd_una, self.snd_nxt);
        match stated {
            Some(Stated::Again(Found::Probe)) => self.wait(at, Some(Cause::Timer)),
            Some(Stated::WindowProbe) => self.wait(at, Some(Cause::ZeroWindow)),
            _ => self.wait(at, Some(self.paused(at))),
        }
        self.ledger.begin(at);
        self.first_ns.get_or_insert(at);
        (self.event_ns, self.last_ns) = (at, at);
        self.packets += u64::from(length > 0);
        self.largest = self.largest.max(length);
        self.segment.learn(length);
        if start < self.snd_nxt {
            let found = match stated {
                Some(Stated::Again(found)) => found,
                _ => Found::Unclear,
            };
            self.again(at, start, end.min(self.snd_nxt), found);
        }
        if end > self.snd_nxt {
            self.fresh(at, start.max(self.snd_nxt), end);
        }
        self.sent_since += u64::from(length);
        if let Some(rate) = self.metrics.pacing_rate.filter(|rate| *rate > 0) {
            let gap = (u64::from(length) * 8).saturating_mul(1_000_000_000) / rate;
            self.paced_until_ns = self.paced_until_ns.max(at).saturating_add(gap.min(LONGEST_NS));
        }
        let flight = self.flight();
        self.max_flight = self.max_flight.max(flight);
        self.episodes.flight(at, flight);
    }

    /// Data for the first time.
    fn fresh(&mut self, at: u64, start: u64, end: u64) {
        // What lies between is not in the trace.
        self.uncaptured += start - self.snd_nxt;
        let flight = self.flight() + end - start;
        self.outstanding.push(Record {
            start,
            end,
            first_ns: at,
            last_ns: at,
            times: 1,
            flight,
            again_tsval: None,
            sacked: false,
            overtaken_ns: None,
        });
        self.bytes += end - self.snd_nxt;
        self.snd_nxt = end;
        self.slow_start.sent(flight, end);
        if let Some(artist) = &mut self.artist {
            artist.fresh(at, start, end, flight);
        }
    }

    /// Data that had been sent before.
    fn again(&mut self, at: u64, start: u64, end: u64, found: Found) {
        for record in self.outstanding.range_mut(start, end) {
            record.times = record.times.saturating_add(1);
            record.last_ns = at;
        }
        let losses = &mut self.losses;
        losses.retransmissions += 1;
        losses.stated += u64::from(found != Found::Unclear);
        losses.segments += (end - start).div_ceil(self.segment.octets());
        losses.bytes += end - start;
        match found {
            Found::Fast => losses.fast += 1,
            Found::Probe => losses.probes += 1,
            Found::Timeout => losses.timeout += 1,
            Found::Unclear => losses.unclear += 1,
        }
        if let Some(artist) = &mut self.artist {
            artist.again(at, start, end, found);
        }
        let begins = self.episodes.again(&Retransmission {
            at_ns: at,
            start,
            end,
            found,
            stated: found != Found::Unclear,
            before: false,
            snd_nxt: self.snd_nxt,
            flight: self.flight(),
            progress_ns: self.progress_ns.max(self.first_ns.unwrap_or(at)),
            timeout: found == Found::Timeout && std::mem::take(&mut self.expired),
        });
        if begins {
            self.reduced_ns = at;
        }
    }

    /// The peer acknowledged everything before `ack`; `pure`: by a segment without data.
    pub(crate) fn heard(&mut self, at: u64, ack: u32, pure: bool) {
        if !self.positions.is_known() {
            self.positions.begin(ack);
        }
        let ack = self.positions.of(ack, self.snd_nxt);
        if ack < self.snd_una || self.first_ns.is_none() {
            return;
        }
        self.wait(at, None);
        self.heard_ns = at;
        // What the stack concludes from it follows; if its pipe is the same as before, it says nothing.
        self.sent_since = 0;
        if ack > self.snd_nxt {
            self.uncaptured += ack - self.snd_nxt;
            self.bytes += ack - self.snd_nxt;
            self.snd_nxt = ack;
        }
        if ack == self.snd_una {
            self.acks.duplicates += u64::from(pure && self.snd_una < self.snd_nxt);
            return;
        }
        let mut sample = None;
        self.outstanding.acknowledge(ack, |record| {
            sample = (record.times == 1).then_some((record.first_ns, record.flight));
        });
        // What fills a gap acknowledges what arrived long before.
        if let Some((sent, flight)) = sample.filter(|_| self.phase.0 == Phase::Open) {
            let rtt = since(at, sent);
            self.rtt.add(rtt, flight);
            if let Some(artist) = &mut self.artist {
                artist.rtt(at, rtt);
            }
        }
        self.acked_bytes += ack - self.snd_una;
        self.acks.advancing += u64::from(pure);
        self.snd_una = ack;
        self.fin_acked |= self.fin.is_some_and(|fin| ack > fin);
        self.last_ns = at;
        let progress = self.progress_ns.max(self.first_ns.unwrap_or(at));
        self.episodes.acknowledged(at, ack, since(at, progress), self.round_trip_ns());
        self.progress_ns = at;
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
                self.slow_start.end(at, SlowStartEnd::Plateau);
            }
        }
        (stated.ssthresh, stated.pacing_rate) = (self.metrics.ssthresh, self.metrics.pacing_rate);
        if let Some(window) = changes.peer_window.map(u64::from) {
            self.window.zero += u64::from(window == 0);
            let known = self.window.max > 0;
            self.window.min = if known { self.window.min.min(window) } else { window };
            self.window.max = self.window.max.max(window);
        }
        if let Some(artist) = &mut self.artist {
            let edge = self.metrics.peer_window.map(|window| self.snd_una + u64::from(window));
            artist.ack(at, self.snd_una, edge);
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
            self.slow_start.end(at, SlowStartEnd::Loss);
        }
    }

    const fn end_phase(&mut self, at: u64) {
        let took = at.saturating_sub(self.phase.1);
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
        if self.snd_una == self.snd_nxt {
            // A SYN's.
            return;
        }
        self.wait(at, Some(Cause::Timer));
        self.losses.timeouts += 1;
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
        let news = self.episodes.needless_since(at_ns);
        self.losses.spurious += news;
        self.losses.spurious_by_stack += news;
    }

    /// The window was reduced because of ECE.
    pub(crate) fn marked(&mut self, at: u64) {
        self.congestion.reduced_by_ecn += 1;
        self.slow_start.end(at, SlowStartEnd::Mark);
    }

    /// Octets on the path, as the stack counts them.
    fn flight(&self) -> u64 {
        match self.metrics.bytes_in_flight {
            Some(pipe) => u64::from(pipe) + self.sent_since,
            None => self.snd_nxt - self.snd_una,
        }
    }

    fn round_trip_ns(&self) -> u64 {
        self.metrics.smoothed_rtt.map_or(0, |millis| (millis * 1e6) as u64)
    }

    /// What held back a packet that leaves now.
    fn paused(&self, at: u64) -> Cause {
        match self.cause() {
            // A limit that the stack does not state, such as a cap of the window: an ACK lifted it.
            Cause::Application if self.snd_una < self.snd_nxt && since(at, self.heard_ns) <= BURST_NS => {
                Cause::CongestionWindow
            }
            cause => cause,
        }
    }

    /// The time since the last event went for `cause`; if that is not known, for what the stack's state tells.
    fn wait(&mut self, at: u64, cause: Option<Cause>) {
        if self.first_ns.is_none() || self.fin_acked {
            return;
        }
        // If nothing that is stated holds data back, the next packet tells what did.
        if cause.is_none() && self.cause() == Cause::Application {
            return;
        }
        let waited = since(at, self.event_ns);
        let stall = (self.round_trip_ns() * 2).max(SHORTEST_STALL_NS);
        let cause = match cause.unwrap_or_else(|| self.cause()) {
            Cause::CongestionWindow if waited > stall => Cause::Silence,
            Cause::Application if waited <= BURST_NS => self.ledger.last().unwrap_or(Cause::CongestionWindow),
            Cause::Application => {
                self.ledger.write(Cause::Pacing, self.paced_until_ns.min(at), stall);
                if at > self.paced_until_ns {
                    self.slow_start.application_pauses();
                }
                Cause::Application
            }
            other => other,
        };
        self.ledger.write(cause, at, stall);
        self.event_ns = at;
    }

    /// What holds new data back.
    fn cause(&self) -> Cause {
        let outstanding = self.snd_nxt - self.snd_una;
        let segment = self.segment.octets();
        let repairs = matches!(self.phase.0, Phase::Recovery | Phase::Loss);
        let window = self.metrics.peer_window.map(u64::from);
        match () {
            () if repairs && outstanding > 0 => Cause::Recovery,
            // The application wrote no more.
            () if self.fin.is_some() => Cause::Application,
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
        let segments = self.acked_bytes as f64 / self.segment.octets() as f64;
        let per_ack = if self.acks.advancing > 0 { segments / self.acks.advancing as f64 } else { 0.0 };
        let fin = u64::from(self.fin.is_some());
        let (episodes, episodes_left_out) = self.episodes.finish(start_ns, self.last_ns);
        let first_ns = self.first_ns.unwrap_or(start_ns);
        Direction {
            from: self.from,
            bytes: self.bytes.saturating_sub(fin),
            packets: self.packets,
            largest: self.largest,
            mss: self.segment.seen(),
            first_at_ns: first_ns.saturating_sub(start_ns),
            last_at_ns: self.last_ns.max(first_ns).saturating_sub(start_ns),
            max_flight: self.max_flight,
            slow_start: self.slow_start.finish(start_ns, self.last_ns),
            time: self.ledger.shares(),
            intervals: self.ledger.intervals(start_ns),
            interval_grain_ns: self.ledger.grain_ns(),
            stalls: self.ledger.stalls(start_ns),
            losses: self.losses,
            episodes,
            episodes_left_out,
            rtt: self.rtt.finish(),
            rtt_before: None,
            acks: Acks { segments_per_ack: per_ack, ..self.acks },
            window: Some(self.window),
            congestion: Some(self.congestion),
            received: None,
            marks: Marks::default(),
            uncaptured: self.uncaptured,
            unacknowledged: self.outstanding.passed().saturating_sub(if self.fin_acked { 0 } else { fin }),
            merged: self.outstanding.is_merged(),
            picture: self.artist.map(Artist::finish),
        }
    }
}
