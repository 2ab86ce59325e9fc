//! One connection as a trace of its stack states it.

use crate::direction::{ReceivedData, Sender};
use crate::story::{Anomaly, Connection, End, Handshake, PathPosition, Reset, Source, Vantage};
use ackline_observe::labels;
use ackline_observe::trace::Event;
use ackline_tcp_core::policy::cc::Phase;
use ackline_tcp_core::policy::rto::RtoVerdict;
use ackline_tcp_core::wire::TcpFlags;
use std::net::SocketAddr;

/// A connection whose events still come.
#[derive(Debug)]
pub(crate) struct TracedConnection {
    number: u64,
    /// This side, and the peer.
    local: SocketAddr,
    remote: SocketAddr,
    passive: bool,
    start_ns: u64,
    last_ns: u64,
    sender: Sender,
    received: ReceivedData,
    handshake: Handshake,
    syns: u32,
    established: bool,
    reset: Option<(bool, u64)>,
    error: Option<String>,
}

impl TracedConnection {
    /// A connection that begins at `at`, as its number says; it keeps `records` of what is in
    /// flight, and `drawn` entries of what is drawn.
    pub(crate) fn new(number: u64, at: u64, opened: &ConnectionStart, records: usize, drawn: usize) -> Self {
        Self {
            number,
            local: opened.local,
            remote: opened.remote,
            passive: opened.passive,
            start_ns: at,
            last_ns: at,
            sender: Sender::new(opened.local, at, records, drawn),
            received: ReceivedData::new(opened.remote),
            handshake: Handshake::default(),
            syns: 0,
            // A passive one exists from the end of its handshake on.
            established: opened.passive,
            reset: None,
            error: None,
        }
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Takes in an event.
    pub(crate) fn take(&mut self, at: u64, event: &Event) {
        self.last_ns = self.last_ns.max(at);
        match event {
            Event::SegmentSent { seq, length, ack, flags, trigger } => {
                let segment = Segment { seq: *seq, length: *length, ack: *ack, flags: *flags };
                self.sent(at, &segment, trigger);
            }
            Event::SegmentReceived { seq, length, ack, flags } => {
                self.came(at, &Segment { seq: *seq, length: *length, ack: *ack, flags: *flags });
            }
            Event::SegmentDropped { .. } => self.received.dropped(),
            Event::StateUpdated { new, .. } if new == "ESTABLISHED" && !self.established => {
                self.established = true;
                self.handshake.took_ns = Some(at.saturating_sub(self.start_ns));
            }
            Event::MetricsUpdated(changes) => self.sender.measured(at, changes),
            Event::CongestionStateUpdated { new, .. } => {
                const PHASES: [Phase; 4] = [Phase::Open, Phase::Disorder, Phase::Recovery, Phase::Loss];
                if let Some(to) = PHASES.into_iter().find(|phase| labels::phase(*phase) == new) {
                    self.sender.phase(at, to);
                }
            }
            Event::PacketLost { length, retransmissions, trigger } => {
                self.sender.lost(*length, *retransmissions, trigger == "reordering_timer");
            }
            Event::LossTimerUpdated { expiries, .. } => self.sender.expired(at, *expiries),
            Event::RtoClassified { verdict } => {
                self.sender.classified(verdict == labels::rto_verdict(RtoVerdict::Spurious));
            }
            Event::CongestionUndone {} => self.sender.undone(),
            Event::EcnReduced { .. } => self.sender.marked(at),
            Event::ConnectionClosed { error } => self.error = error.as_deref().map(str::to_owned),
            _ => {}
        }
    }

    fn sent(&mut self, at: u64, segment: &Segment, trigger: &str) {
        if segment.has(TcpFlags::RST) {
            self.reset.get_or_insert((true, at));
            return;
        }
        if segment.has(TcpFlags::SYN) {
            self.syns += 1;
            self.sender.opened(segment.seq);
        }
        if segment.has(TcpFlags::ACK) {
            self.received.acknowledged(segment.ack, segment.is_pure());
        }
        let first = segment.seq.wrapping_add(u32::from(segment.has(TcpFlags::SYN)));
        self.sender.sent(at, first, segment.length, segment.has(TcpFlags::FIN), trigger);
    }

    fn came(&mut self, at: u64, segment: &Segment) {
        if segment.has(TcpFlags::RST) {
            self.reset.get_or_insert((false, at));
            return;
        }
        let (syn, fin) = (segment.has(TcpFlags::SYN), segment.has(TcpFlags::FIN));
        self.received.came(at, segment.seq, segment.length, syn, fin);
        if segment.has(TcpFlags::ACK) {
            self.sender.heard(at, segment.ack, segment.is_pure());
        }
    }

    /// What is told of it. `evicted`: it may go on.
    pub(crate) fn finish(self, evicted: bool) -> Connection {
        let ends = [self.sender.fin(), self.received.fin()];
        let in_order = |mut pair: [_; 2]| {
            // This side stands first; the client shall.
            if self.passive {
                pair.reverse();
            }
            pair
        };
        let after = |at: u64| at.saturating_sub(self.start_ns);
        let fins = in_order(ends);
        let end = End {
            fin_at_ns: fins.map(|(at, _)| at.map(after)),
            fin_acked: fins.map(|(_, acked)| acked),
            reset: self.reset.map(|(by_us, at)| Reset { by_client: by_us != self.passive, at_ns: after(at) }),
            keep_alives: self.sender.keep_alives(),
        };
        let ended = self.reset.is_some() || self.error.is_some() || ends.iter().any(|(at, _)| at.is_some());
        let anomalies = [
            (self.error.as_deref() == Some("refused"), Anomaly::Refused),
            (
                !self.established && !self.passive && self.error.as_deref() != Some("refused"),
                Anomaly::NoAnswer,
            ),
            (self.established && !ended, Anomaly::NoEnd),
        ];
        let (client, server) =
            if self.passive { (self.remote, self.local) } else { (self.local, self.remote) };
        let mut directions =
            [self.sender.finish(self.start_ns, self.last_ns), self.received.finish(self.start_ns)];
        if self.passive {
            directions.reverse();
        }
        Connection {
            number: self.number,
            source: Source::Trace,
            client,
            server,
            start_ns: self.start_ns,
            duration_ns: self.last_ns - self.start_ns,
            vantage: Vantage {
                place: if self.passive { PathPosition::Server } else { PathPosition::Client },
                stated: true,
                to_client_ns: None,
                to_server_ns: None,
            },
            handshake: Handshake { syn_retransmissions: self.syns.saturating_sub(1), ..self.handshake },
            directions,
            end,
            error: self.error,
            stated: true,
            evicted,
            copies: 0,
            anomalies: anomalies.into_iter().filter(|(is, _)| *is).map(|(_, anomaly)| anomaly).collect(),
        }
    }
}

/// How a connection began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionStart {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) passive: bool,
}

impl ConnectionStart {
    /// What `event` says of it, if it is the first of a connection.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let Event::ConnectionOpened { local, remote, role } = event else { return None };
        Some(Self { local: *local, remote: *remote, passive: role == "passive" })
    }
}

/// What a trace has of a segment.
struct Segment {
    seq: u32,
    length: u32,
    ack: u32,
    flags: TcpFlags,
}

impl Segment {
    const fn has(&self, flag: TcpFlags) -> bool {
        self.flags.contains(flag)
    }

    /// It only acknowledges.
    const fn is_pure(&self) -> bool {
        self.length == 0 && !self.has(TcpFlags::SYN) && !self.has(TcpFlags::FIN)
    }
}
