//! What is counted of the data of one end, whether packets show it or its stack states it.

use super::episodes::{Episodes, Retransmission};
use super::outstanding::{OutstandingData, Record};
use super::path::{PathWatch, Trouble};
use super::positions::{ORIGIN, Positions};
use super::rtt::RoundTrips;
use super::since;
use super::slow_start::SlowStartWatch;
use super::time::Ledger;
use crate::picture::Artist;
use crate::story::{Acks, Direction, LossDetection, Losses, Window};
use std::net::SocketAddr;

/// Data that one end sends.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) from: SocketAddr,
    pub(super) positions: Positions,
    pub(super) snd_nxt: u64,
    pub(super) snd_una: u64,
    /// The position of the FIN, when it came first, and whether it was acknowledged.
    pub(super) fin: Option<u64>,
    pub(super) fin_ns: Option<u64>,
    pub(super) fin_acked: bool,
    pub(super) outstanding: OutstandingData,
    pub(super) ledger: Ledger,
    pub(super) slow_start: SlowStartWatch,
    pub(super) episodes: Episodes,
    pub(super) rtt: RoundTrips,
    path: PathWatch,
    pub(super) losses: Losses,
    pub(super) acks: Acks,
    pub(super) window: Window,
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) largest: u32,
    pub(super) max_flight: u64,
    pub(super) first_ns: Option<u64>,
    pub(super) last_ns: u64,
    /// When the cumulative ACK advanced last.
    pub(super) progress_ns: u64,
    pub(super) acked_bytes: u64,
    pub(super) uncaptured: u64,
    /// The last octets that ACKs alone prove: from here to there.
    proven: (u64, u64),
    /// The end of an octet beyond the window that a probe had; zero: none.
    pub(super) probed: u64,
    pub(super) keep_alives: u64,
    pub(super) artist: Option<Artist>,
}

impl Tally {
    /// For the data from one end of a connection that begins at `start_ns`: at most `records` of
    /// what is in flight, and `drawn` entries of what is drawn.
    pub(super) fn new(
        from: SocketAddr,
        start_ns: u64,
        records: usize,
        drawn: usize,
        slow_start: SlowStartWatch,
    ) -> Self {
        Self {
            from,
            positions: Positions::default(),
            snd_nxt: ORIGIN,
            snd_una: ORIGIN,
            fin: None,
            fin_ns: None,
            fin_acked: false,
            outstanding: OutstandingData::new(records),
            ledger: Ledger::default(),
            slow_start,
            episodes: Episodes::default(),
            rtt: RoundTrips::default(),
            path: PathWatch::default(),
            losses: Losses::default(),
            acks: Acks::default(),
            window: Window::default(),
            bytes: 0,
            packets: 0,
            largest: 0,
            max_flight: 0,
            first_ns: None,
            last_ns: 0,
            progress_ns: 0,
            acked_bytes: 0,
            uncaptured: 0,
            proven: (0, 0),
            probed: 0,
            keep_alives: 0,
            artist: (drawn > 0).then(|| Artist::new(start_ns, ORIGIN, drawn)),
        }
    }

    /// When a FIN came first, and whether it was acknowledged.
    pub(super) const fn fin(&self) -> (Option<u64>, bool) {
        (self.fin_ns, self.fin_acked)
    }

    /// The position of a sequence number.
    pub(super) fn place(&mut self, seq: u32) -> u64 {
        self.positions.of(seq, self.snd_nxt)
    }

    /// A FIN is behind the data that ends at `end`.
    pub(super) fn finishes(&mut self, at: u64, end: u64) {
        self.fin_ns.get_or_insert(at);
        self.fin.get_or_insert(end);
    }

    /// A packet with data or a FIN was sent.
    pub(super) fn packet(&mut self, at: u64, length: u32) {
        self.packets += u64::from(length > 0);
        self.largest = self.largest.max(length);
        self.first_ns.get_or_insert(at);
        self.last_ns = at;
        self.ledger.begin(at);
    }

    /// Octets that are outstanding from now on, with so many in flight; they have passed so many
    /// times.
    pub(super) fn record(&mut self, start: u64, end: u64, at: u64, times: u32, flight: u64) {
        self.outstanding.push(Record {
            start,
            end,
            first_ns: at,
            last_ns: at,
            times,
            flight,
            again_tsval: None,
            sacked: false,
            overtaken_ns: None,
        });
    }

    /// Everything up to `end` has been sent for the first time, the last of it from `start` on.
    pub(super) fn fresh(&mut self, at: u64, start: u64, end: u64, flight: u64) {
        self.slow_start.sent(flight, end);
        if let Some(artist) = &mut self.artist {
            artist.fresh(at, start, end, flight);
        }
    }

    /// Bytes in flight.
    pub(super) fn in_flight(&mut self, at: u64, flight: u64) {
        self.max_flight = self.max_flight.max(flight);
        self.episodes.flight(at, flight);
    }

    /// Something was sent again, in segments of so many octets; true if an episode begins.
    pub(super) fn again(&mut self, it: &Retransmission, segment: u64) -> bool {
        if let Some(artist) = &mut self.artist {
            artist.again(it.at_ns, it.start, it.end, it.found);
        }
        let losses = &mut self.losses;
        losses.retransmissions += 1;
        losses.segments += (it.end - it.start).div_ceil(segment);
        losses.bytes += it.end - it.start;
        losses.before += u64::from(it.before);
        losses.stated += u64::from(it.stated);
        *match it.found {
            LossDetection::Fast => &mut losses.fast,
            LossDetection::Probe => &mut losses.probes,
            LossDetection::Timeout => &mut losses.timeout,
            LossDetection::Unclear => &mut losses.unclear,
        } += 1;
        self.episodes.again(it, self.snd_nxt, self.progressed_ns(it.at_ns))
    }

    /// When the cumulative ACK advanced last, or what it can acknowledge was sent first.
    fn progressed_ns(&self, at: u64) -> u64 {
        self.progress_ns.max(self.first_ns.unwrap_or(at))
    }

    /// An ACK proves that everything before it was sent.
    pub(super) const fn proves(&mut self, ack: u64) {
        if ack > self.snd_nxt {
            let probed = self.probed == self.snd_nxt + 1;
            let from = self.snd_nxt + probed as u64;
            self.proven = (from, ack);
            self.uncaptured += ack - from;
            self.bytes += ack - self.snd_nxt;
            self.snd_nxt = ack;
        }
    }

    /// A FIN takes a sequence number (RFC 9293, section 3.4). If the last octet of all is one that
    /// an ACK alone proves, it is the FIN.
    pub(super) fn find_fin(&mut self) {
        let (from, end) = self.proven;
        if self.fin.is_none() && end == self.snd_nxt && end - from == 1 {
            (self.fin, self.fin_acked) = (Some(from), true);
            self.uncaptured -= 1;
        }
    }

    /// A round trip of data that was sent with so much in flight, in segments of so many octets.
    pub(super) fn measured(&mut self, at: u64, rtt: u64, flight: u64, segment: u64) {
        self.rtt.add(rtt, flight);
        if self.episodes.open().is_none() {
            let losses = &self.losses;
            let reordered = losses.reordered_before + losses.reordered_after;
            self.path.measured(
                at,
                rtt,
                flight,
                segment,
                Trouble { again: losses.retransmissions, reordered },
            );
        }
        if let Some(artist) = &mut self.artist {
            artist.rtt(at, rtt);
        }
    }

    /// The cumulative ACK advances to `ack`, which a segment without data does if `pure`.
    pub(super) fn advance(&mut self, at: u64, ack: u64, pure: bool, rtt_ns: u64) {
        let progress = self.progressed_ns(at);
        self.acked_bytes += ack - self.snd_una;
        self.acks.advancing += u64::from(pure);
        self.snd_una = ack;
        self.fin_acked |= self.fin.is_some_and(|fin| ack > fin);
        if self.first_ns.is_some() {
            self.last_ns = self.last_ns.max(at);
        }
        if self.episodes.open().is_some() {
            self.path.repairs(at);
        }
        self.episodes.acknowledged(at, ack, since(at, progress), rtt_ns);
        self.progress_ns = at;
    }

    /// What is told of it, but for what packets or statements alone show; `start_ns` is the
    /// connection's begin, `segment` the octets of a full segment.
    pub(super) fn finish(self, start_ns: u64, segment: u64) -> Direction {
        let fin = u64::from(self.fin.is_some());
        let (episodes, episodes_left_out) = self.episodes.finish(start_ns, self.last_ns);
        let (path_changes, path_changes_left_out) = self.path.finish(start_ns);
        Direction {
            bytes: self.bytes.saturating_sub(fin),
            packets: self.packets,
            largest: self.largest,
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
            path_changes,
            path_changes_left_out,
            acks: self.acks.over(self.acked_bytes, segment),
            window: Some(self.window),
            uncaptured: self.uncaptured,
            unacknowledged: self.outstanding.passed().saturating_sub(if self.fin_acked { 0 } else { fin }),
            merged: self.outstanding.is_merged(),
            picture: self.artist.map(Artist::finish),
            ..Direction::between(self.from, start_ns, self.first_ns, self.last_ns)
        }
    }
}
