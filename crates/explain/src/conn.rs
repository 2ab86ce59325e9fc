//! One connection: its handshake, the data of both ends, its end, and where it was captured.

use crate::copies::Copies;
use crate::direction::{Context, Flow, LONGEST_NS};
use crate::segment::Segment;
use crate::story::{Anomaly, Connection, End, Handshake, Offer, PathPosition, Reset, Source, Vantage};
use ackline_tcp_core::wire::{Ecn, TcpFlags};
use std::net::SocketAddr;

/// The client's place in pairs; the server's is 1.
const CLIENT: usize = 0;
/// Octets of the timestamps option with its padding (RFC 7323, appendix A).
const TIMESTAMPS_OCTETS: u32 = 12;
/// Packets of several queues of a device may be out of order by less.
pub(crate) const STEP_BACK_NS: u64 = 1_000_000;
/// If a path is shorter, its ends look alike.
const SHORT_PATH_NS: u64 = 200_000;

/// A connection whose packets still pass.
#[derive(Debug)]
pub(crate) struct Conn {
    number: u64,
    ends: [SocketAddr; 2],
    start_ns: u64,
    last_ns: u64,
    flows: [Flow; 2],
    handshake: Handshake,
    /// Sequence number of the SYN, and of the SYN-ACK; when they passed last.
    syn: Option<(u32, u64)>,
    syn_ack: Option<(u32, u64)>,
    /// The client's ACK of the SYN-ACK has passed.
    established: bool,
    /// Smallest round trips from the capture to each end.
    distance: [Option<u64>; 2],
    /// A timestamp of each end whose echo is awaited, and when it passed first.
    echoes: [Option<(u32, u64)>; 2],
    /// The newest timestamp of each end.
    newest: [Option<u32>; 2],
    /// The interface on which each end's packets are looked at.
    interfaces: [Option<(u32, u32)>; 2],
    /// The capture was made at this end, by its own words.
    host: Option<usize>,
    reset: Option<Reset>,
    copies: Copies,
    steps_back: bool,
    several_interfaces: bool,
    stripped: bool,
    refused: bool,
}

impl Conn {
    /// A connection that begins with `segment`; each direction keeps `records` of what is in
    /// flight, and `drawn` entries of what is drawn.
    pub(crate) fn new(number: u64, segment: &Segment<'_>, records: usize, drawn: usize) -> Self {
        let reversed = match (segment.has(TcpFlags::SYN), segment.has(TcpFlags::ACK)) {
            (true, false) => false,
            (true, true) => true,
            // In the middle of a connection: servers mostly have the smaller port.
            _ => segment.from.port() < segment.to.port(),
        };
        let ends = if reversed { [segment.to, segment.from] } else { [segment.from, segment.to] };
        Self {
            number,
            ends,
            start_ns: segment.at_ns,
            last_ns: segment.at_ns,
            flows: ends.map(|end| Flow::new(end, segment.at_ns, records, drawn)),
            handshake: Handshake::default(),
            syn: None,
            syn_ack: None,
            established: false,
            distance: [None; 2],
            echoes: [None; 2],
            newest: [None; 2],
            interfaces: [None; 2],
            host: None,
            reset: None,
            copies: Copies::new(records),
            steps_back: false,
            several_interfaces: false,
            stripped: false,
            refused: false,
        }
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// True if `segment` opens another connection between the same ports.
    pub(crate) fn is_succeeded_by(&self, segment: &Segment<'_>) -> bool {
        let opens = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK);
        // The same SYN on another interface, or sent again, has the same number; so has a
        // simultaneous open's.
        let known = self.syn.is_some_and(|(seq, _)| seq == segment.seq);
        opens && !known && (self.established || self.reset.is_some() || self.is_closed())
    }

    fn is_closed(&self) -> bool {
        self.flows.iter().all(|flow| flow.fin().0.is_some())
    }

    pub(crate) fn take(&mut self, segment: &Segment<'_>) {
        let sender = usize::from(segment.from != self.ends[CLIENT]);
        let receiver = 1 - sender;
        if segment.comment.starts_with("dropped: ") && segment.comment.contains("; sent: ") {
            // The simulator shows what it drops.
            self.flows[sender].dropped();
            return;
        }
        if *self.interfaces[sender].get_or_insert(segment.interface) != segment.interface {
            self.several_interfaces = true;
            return;
        }
        let at = segment.at_ns;
        self.steps_back |= self.last_ns.saturating_sub(at) >= STEP_BACK_NS;
        self.last_ns = self.last_ns.max(at);
        // From here to the receiver, back, to the sender, and back.
        let round_trip = self.distance[0].zip(self.distance[1]).map(|(client, server)| client + server);
        if self.copies.is_copy(sender, segment, round_trip) {
            return;
        }
        if let Some(outbound) = segment.outbound {
            self.host = Some(if outbound { sender } else { receiver });
        }
        self.shake(segment, sender);
        self.measure_distance(segment, sender);
        if segment.has(TcpFlags::RST) {
            self.refused |= !self.established && self.syn_ack.is_none() && sender != CLIENT;
            self.reset.get_or_insert(Reset {
                by_client: sender == CLIENT,
                at_ns: at.saturating_sub(self.start_ns),
            });
        }
        let contexts = [self.context(CLIENT), self.context(1 - CLIENT)];
        // The ACK first: what the packet brings is sent after what it has heard.
        self.flows[receiver].heard(segment, &contexts[receiver]);
        self.flows[sender].sent(segment, &contexts[sender]);
    }

    fn shake(&mut self, segment: &Segment<'_>, sender: usize) {
        let at = segment.at_ns;
        let syn = segment.has(TcpFlags::SYN);
        let ack = segment.has(TcpFlags::ACK);
        match (syn, ack) {
            (true, false) if sender == CLIENT => {
                self.handshake.syn_retransmissions += u32::from(self.syn.is_some());
                self.syn = Some((segment.seq, at));
                self.handshake.syn.get_or_insert(offer(segment, false));
                self.handshake.data_on_syn = self.handshake.data_on_syn.max(segment.length);
            }
            (true, true) if sender != CLIENT => {
                let again = self.syn_ack.is_some();
                self.handshake.syn_ack_retransmissions += u32::from(again);
                if let Some((_, sent)) =
                    self.syn.filter(|_| !again && self.handshake.syn_retransmissions == 0)
                {
                    self.near(1 - CLIENT, at.saturating_sub(sent));
                }
                if let Some((seq, _)) = self.syn {
                    self.handshake.data_on_syn_accepted = segment.ack.wrapping_sub(seq).saturating_sub(1);
                }
                self.syn_ack = Some((segment.seq, at));
                self.handshake.syn_ack.get_or_insert(offer(segment, true));
            }
            (false, true) if sender == CLIENT && !self.established && !segment.has(TcpFlags::RST) => {
                if let Some((seq, sent)) = self.syn_ack
                    && segment.ack.wrapping_sub(seq.wrapping_add(1)).cast_signed() >= 0
                {
                    self.established = true;
                    if self.handshake.syn_ack_retransmissions == 0 {
                        self.near(CLIENT, at.saturating_sub(sent));
                    }
                    self.handshake.took_ns = self.syn.map(|_| at.saturating_sub(self.start_ns));
                } else if self.syn_ack.is_none() && self.syn.is_none() {
                    self.established = true;
                }
            }
            (false, true) if self.syn.is_none() => self.established = true,
            _ => {}
        }
        if !syn && !segment.has(TcpFlags::RST) {
            let agreed = |offer: Option<Offer>| offer.is_some_and(|offer| offer.timestamps);
            let both = agreed(self.handshake.syn) && agreed(self.handshake.syn_ack);
            self.stripped |= both && segment.options.timestamps.is_none();
        }
    }

    /// Timestamps show how far away an end is: it cannot echo what has not reached it.
    fn measure_distance(&mut self, segment: &Segment<'_>, sender: usize) {
        let Some(timestamps) = segment.options.timestamps else { return };
        if segment.has(TcpFlags::ACK)
            && let Some((awaited, passed)) = self.echoes[1 - sender]
        {
            let behind = timestamps.ecr.wrapping_sub(awaited).cast_signed();
            if behind == 0 {
                let took = segment.at_ns.saturating_sub(passed);
                self.near(sender, took);
                if segment.length > 0 {
                    let context = self.context(sender);
                    self.flows[sender].echoed(took, &context);
                }
            }
            if behind >= 0 {
                self.echoes[1 - sender] = None;
            }
        }
        // Only the first packet with a value tells when it passed.
        let newest = &mut self.newest[sender];
        if newest.is_none_or(|newest| timestamps.val.wrapping_sub(newest).cast_signed() > 0) {
            *newest = Some(timestamps.val);
            self.echoes[sender].get_or_insert((timestamps.val, segment.at_ns));
        }
    }

    fn near(&mut self, end: usize, distance: u64) {
        let distance = distance.min(LONGEST_NS);
        self.distance[end] = Some(self.distance[end].map_or(distance, |known| known.min(distance)));
    }

    /// What the data of an end is looked at with.
    fn context(&self, sender: usize) -> Context {
        let offers = [self.handshake.syn, self.handshake.syn_ack];
        let both = |have: fn(Offer) -> bool| offers.iter().all(|offer| offer.is_some_and(have));
        let scale = match offers {
            [Some(Offer { window_scale: Some(_), .. }), Some(Offer { window_scale: Some(_), .. })] => {
                offers[1 - sender].and_then(|offer| offer.window_scale)
            }
            [Some(_), Some(_)] => Some(0),
            _ => None,
        };
        let mss = offers.iter().filter_map(|offer| offer.and_then(|offer| offer.mss)).min();
        let options = if both(|offer| offer.timestamps) { TIMESTAMPS_OCTETS } else { 0 };
        let distance = |end: usize| match self.host {
            Some(host) if host == end => 0,
            _ => self.distance[end].unwrap_or(0),
        };
        Context {
            to_sender_ns: distance(sender),
            to_receiver_ns: distance(1 - sender),
            scale,
            agreed_mss: mss.map(|mss| u32::from(mss).saturating_sub(options)),
            accurate_ecn: both(|offer| offer.accurate_ecn),
        }
    }

    fn vantage(&self) -> Vantage {
        let [to_client_ns, to_server_ns] = self.distance;
        let place = match (self.host, to_client_ns, to_server_ns) {
            (Some(CLIENT), ..) => PathPosition::Client,
            (Some(_), ..) => PathPosition::Server,
            (None, Some(client), Some(server)) if client + server < SHORT_PATH_NS => PathPosition::Both,
            (None, Some(client), Some(server)) if client * 9 < server => PathPosition::Client,
            (None, Some(client), Some(server)) if server * 9 < client => PathPosition::Server,
            (None, Some(_), Some(_)) => PathPosition::Middle,
            _ => PathPosition::Unknown,
        };
        Vantage { place, stated: self.host.is_some(), to_client_ns, to_server_ns }
    }

    fn anomalies(&self) -> Vec<Anomaly> {
        let mut found = vec![];
        if let (Some(syn), Some(answer)) = (self.handshake.syn, self.handshake.syn_ack) {
            let mut refused = |wanted: bool, given: bool, anomaly| {
                if wanted && !given {
                    found.push(anomaly);
                }
            };
            refused(syn.window_scale.is_some(), answer.window_scale.is_some(), Anomaly::NoWindowScale);
            refused(syn.sack, answer.sack, Anomaly::NoSack);
            refused(syn.timestamps, answer.timestamps, Anomaly::NoTimestamps);
            refused(syn.ecn, answer.ecn, Anomaly::NoEcn);
        }
        let ended = self.reset.is_some() || self.flows.iter().any(|flow| flow.fin().0.is_some());
        let answered = self.syn_ack.is_some() || self.established;
        let rest = [
            (self.stripped, Anomaly::TimestampsStripped),
            (self.refused, Anomaly::Refused),
            (!answered && !self.refused, Anomaly::NoAnswer),
            (answered && !self.established, Anomaly::HalfOpen),
            (self.established && !ended, Anomaly::NoEnd),
            (self.several_interfaces, Anomaly::SeveralInterfaces),
            (self.copies.is_all(), Anomaly::EachPacketTwice),
            (self.steps_back, Anomaly::ClockStepsBack),
        ];
        found.extend(rest.into_iter().filter(|(is, _)| *is).map(|(_, anomaly)| anomaly));
        found
    }

    /// What is told of it. `evicted`: it may go on.
    pub(crate) fn finish(self, evicted: bool) -> Connection {
        let (vantage, anomalies) = (self.vantage(), self.anomalies());
        let contexts = [self.context(CLIENT), self.context(1 - CLIENT)];
        let fins = [self.flows[0].fin(), self.flows[1].fin()];
        let end = End {
            fin_at_ns: fins.map(|(at, _)| at.map(|at| at.saturating_sub(self.start_ns))),
            fin_acked: fins.map(|(_, acked)| acked),
            reset: self.reset,
            keep_alives: self.flows.iter().map(Flow::keep_alives).sum(),
        };
        let stated = self.flows.iter().any(Flow::is_stated);
        let copies = self.copies.count();
        let [client, server] = self.flows;
        Connection {
            number: self.number,
            source: Source::Capture,
            client: self.ends[0],
            server: self.ends[1],
            start_ns: self.start_ns,
            duration_ns: self.last_ns - self.start_ns,
            vantage,
            handshake: self.handshake,
            directions: [
                client.finish(self.start_ns, &contexts[0]),
                server.finish(self.start_ns, &contexts[1]),
            ],
            end,
            error: None,
            stated,
            evicted,
            copies,
            anomalies,
        }
    }
}

/// What a SYN or, if `answers`, a SYN-ACK offers.
fn offer(segment: &Segment<'_>, answers: bool) -> Offer {
    let options = &segment.options;
    // RFC 3168, section 6.1.1: ECE and CWR ask, ECE alone agrees. RFC 9768, section 3.1.1: with AE
    // they ask for accurate ECN, and a codepoint agrees; 101 is reserved, and counts as agreement,
    // and 111 comes from a host that reflects all bits.
    let (ece, cwr) = (segment.has(TcpFlags::ECE), segment.has(TcpFlags::CWR));
    let ace = segment.flags.ace();
    let accurate = if answers { (0b010..=0b110).contains(&ace) } else { ace == 0b111 };
    let arrived = Ecn::of_ace_code(ace).filter(|_| answers).map(|ecn| match ecn {
        Ecn::NotEct => "Not-ECT",
        Ecn::Ect0 => "ECT(0)",
        Ecn::Ect1 => "ECT(1)",
        Ecn::Ce => "CE",
    });
    Offer {
        mss: options.mss,
        window_scale: options.window_scale,
        sack: options.sack_permitted,
        timestamps: options.timestamps.is_some(),
        ecn: if answers { accurate || ece && !cwr } else { ece && cwr },
        accurate_ecn: accurate,
        syn_arrived_as: arrived,
        fast_open: segment.fast_open.map(|cookie| cookie.as_slice().len() as u8),
        window: segment.window,
    }
}
