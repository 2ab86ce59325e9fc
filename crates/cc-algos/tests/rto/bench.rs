//! A real connection on a bench: an [`Endpoint`] sends, and the test is its peer, segment by
//! segment.
//!
//! Segments have 1,000 bytes. Packet k is bytes (k-1)*1000 to k*1000 of the stream; `P7` is its
//! first transmission, `P7r1` the first repetition, and `A(i)[x,y]` an ACK of packets 1 to i with a
//! SACK block of packets x to y.

use ackline_cc_algos::{CC, RTO};
use ackline_tcp_core::events::{TraceEvent, Tracer};
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::policy::builtin::{Fifo, NewReno};
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::policy::rto::{RtoPhase, RtoVerdict};
use ackline_tcp_core::policy::spec::{PolicyKind, resolve};
use ackline_tcp_core::wire::{
    Ecn, HeaderBuf, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps, Transport, TxChecksumMode,
    emit_tcp, parse,
};
use ackline_tcp_core::{
    ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Instant, RxPacket, SeqNum, TxBudget, WakeReason,
    Window,
};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

pub(crate) const SMSS: u32 = 1_000;
/// The peer's first sequence number.
const PEER_ISS: u32 = 77_000;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What a connection begins with. The defaults are those of the worked examples: 20 packets in
/// flight, `ssthresh` of 40.
pub(crate) struct Setup {
    pub(crate) rto: &'static str,
    /// The congestion control, with `ssthresh`; none: NewReno.
    pub(crate) cc: Option<&'static str>,
    /// Packets that are written at first.
    pub(crate) packets: u32,
    /// Window in packets.
    pub(crate) cwnd: u32,
    /// In packets; [`u32::MAX`]: none yet.
    pub(crate) ssthresh: u32,
    /// The peer's window in packets, in every ACK.
    pub(crate) rwnd: u32,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: bool,
    /// [`ConnConfig::max_undecided_rtos`].
    pub(crate) max_undecided: u32,
    /// Further settings.
    pub(crate) tune: fn(&mut ConnConfig),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            rto: "dclor",
            cc: None,
            packets: 60,
            cwnd: 20,
            ssthresh: 40,
            rwnd: 60,
            sack: true,
            timestamps: false,
            ecn: false,
            max_undecided: 3,
            tune: |_| {},
        }
    }
}

/// Tells the test what the connection's responses did.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) phases: Vec<(RtoPhase, RtoPhase)>,
    pub(crate) verdicts: Vec<RtoVerdict>,
    pub(crate) stale: Vec<SeqNum>,
}

#[derive(Debug)]
struct Listener(Arc<Mutex<Log>>);

impl Tracer for Listener {
    fn trace(&mut self, _now: Instant, _conn: ConnId, event: &TraceEvent) {
        let mut log = self.0.lock().unwrap();
        match *event {
            TraceEvent::RtoPhase { from, to } => log.phases.push((from, to)),
            TraceEvent::RtoVerdict { verdict } => log.verdicts.push(verdict),
            TraceEvent::StaleAck { ack } => log.stale.push(ack),
            _ => {}
        }
    }
}

/// One segment as it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentSegment {
    pub(crate) name: String,
    pub(crate) packet: u32,
    pub(crate) len: u32,
    pub(crate) reason: SendReason,
    pub(crate) fin: bool,
    pub(crate) ect: bool,
    pub(crate) cwr: bool,
}

pub(crate) struct Bench {
    pub(crate) endpoint: Endpoint,
    pub(crate) conn: ConnId,
    pub(crate) now: Instant,
    pub(crate) log: Arc<Mutex<Log>>,
    local: SocketAddr,
    remote: SocketAddr,
    setup: Setup,
    /// Sequence number of the first byte of packet 1.
    base: SeqNum,
    /// Transmissions of each packet, and their TSval.
    sent: BTreeMap<u32, Vec<u32>>,
    /// The last TSval of the connection.
    last_tsval: u32,
    /// The window in bytes that the peer's ACKs show; none: `rwnd` packets.
    pub(crate) window: Option<u32>,
}

impl Setup {
    /// Handshake with an RTT of 100 ms, so that the RTO is 300 ms; then what the window lets out.
    pub(crate) fn open(self) -> Bench {
        let mut bench = self.connect();
        bench.write(bench.setup.packets);
        let out = bench.out();
        let expected = bench.setup.packets.min(bench.setup.cwnd).min(bench.setup.rwnd);
        assert_eq!(out.len() as u32, expected, "{out:?}");
        bench
    }

    /// The same without any data.
    pub(crate) fn connect(self) -> Bench {
        let (local, remote): (SocketAddr, SocketAddr) =
            ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
        let mut host = EndpointConfig::default();
        host.addresses = vec![local.ip()];
        let mut endpoint = Endpoint::new(host, Box::new(Fifo::default()), [3; 32]);
        let log = Arc::new(Mutex::new(Log::default()));
        endpoint.set_tracer(Some(Box::new(Listener(log.clone()))));
        let mut config = ConnConfig::default();
        // The tests write before there is a window for it.
        config.min_send_buffer = None;
        // Losses before and after the timeout are counted, as in the draft: between many of these
        // steps no time passes.
        config.loss = ackline_tcp_core::config::LossDetection::DupAck;
        config.tlp = false;
        // The window alone bounds what is in flight.
        config.prr = false;
        config.policies.rto = resolve(RTO, PolicyKind::Rto, self.rto).unwrap();
        let ssthresh = if self.ssthresh == u32::MAX {
            Window::MAX
        } else {
            Window::from_bytes(u64::from(self.ssthresh * SMSS))
        };
        let make = self.cc.map(|cc| resolve(CC, PolicyKind::Cc, cc).unwrap());
        config.policies.cc = Arc::new(move |init: &CcInit| {
            let mut init = *init;
            init.ssthresh = ssthresh;
            match &make {
                Some(make) => make(&init),
                None => Box::new(NewReno::new(&init)),
            }
        });
        config.initial_window = self.cwnd;
        config.sack = self.sack;
        config.timestamps = self.timestamps;
        config.window_scale = false;
        config.mss = Some(SMSS as u16 + if self.timestamps { 12 } else { 0 });
        config.nagle = ackline_tcp_core::config::Nagle::Off;
        config.max_undecided_rtos = self.max_undecided;
        if self.ecn {
            config.ecn = ackline_tcp_core::config::Ecn::Classic;
        }
        (self.tune)(&mut config);
        let mut target = ackline_tcp_core::Target::new(remote);
        target.local_port = Some(local.port());
        let now = Instant::from_secs(1);
        let conn = endpoint.connect(now, target, Arc::new(config)).unwrap();
        let mut bench = Bench {
            endpoint,
            conn,
            now,
            log,
            local,
            remote,
            setup: self,
            base: SeqNum(0),
            sent: BTreeMap::new(),
            last_tsval: 0,
            window: None,
        };
        let syn = bench.take_syn();
        bench.base = syn.0 + 1;
        bench.last_tsval = syn.1;
        bench.now += ms(100);
        bench.syn_ack();
        assert!(bench.out().is_empty(), "the handshake's ACK carries nothing");
        assert_eq!(bench.info().snd_mss, SMSS);
        bench
    }
}

impl Bench {
    fn take_syn(&mut self) -> (SeqNum, u32) {
        let mut found = None;
        self.endpoint
            .transmit(self.now, TxBudget::UNLIMITED, |packet| {
                let bytes = packet.header.to_vec();
                let datagram = parse(&RxPacket::new(&bytes)).unwrap();
                let Transport::Tcp(segment) = datagram.transport else { panic!("not TCP") };
                found = Some((segment.seq, segment.options.timestamps.map_or(0, |ts| ts.val)));
                Ok::<_, Infallible>(())
            })
            .unwrap();
        found.expect("a SYN")
    }

    fn syn_ack(&mut self) {
        let mut header = TcpHeader::new(self.remote, self.local);
        header.seq = SeqNum(PEER_ISS);
        header.ack = self.base;
        header.flags = TcpFlags::SYN.union(TcpFlags::ACK);
        if self.setup.ecn {
            header.flags = header.flags.union(TcpFlags::ECE);
        }
        header.window = (self.setup.rwnd * SMSS) as u16;
        header.options = TcpOptions::NONE;
        header.options.mss = Some(SMSS as u16 + if self.setup.timestamps { 12 } else { 0 });
        header.options.sack_permitted = self.setup.sack;
        if self.setup.timestamps {
            header.options.timestamps = Some(Timestamps { val: 1, ecr: self.last_tsval });
        }
        self.inject(&header);
    }

    fn inject(&mut self, header: &TcpHeader<'_>) {
        let mut buf = HeaderBuf::new();
        emit_tcp(header, [&[], &[]], TxChecksumMode::Complete, &mut buf).unwrap();
        self.endpoint.ingest(self.now, RxPacket::new(buf.as_slice()));
    }

    /// The application writes so many packets.
    pub(crate) fn write(&mut self, packets: u32) {
        self.write_bytes(packets * SMSS);
    }

    pub(crate) fn write_bytes(&mut self, bytes: u32) {
        let data = vec![0x5a; bytes as usize];
        let mut conn = self.endpoint.conn(self.conn).unwrap();
        assert_eq!(conn.write(self.now, &data).unwrap(), data.len());
    }

    /// The packet after the `packets`-th is P1 from here on.
    pub(crate) fn renumber(&mut self, packets: u32) {
        self.base += packets * SMSS;
        self.sent.clear();
    }

    /// The application is done.
    pub(crate) fn shutdown(&mut self) {
        let now = self.now;
        self.endpoint.conn(self.conn).unwrap().shutdown(now);
    }

    /// Everything that leaves now.
    pub(crate) fn out(&mut self) -> Vec<SentSegment> {
        let mut packets = Vec::new();
        self.endpoint
            .transmit(self.now, TxBudget::UNLIMITED, |packet| {
                let bytes = [packet.header, packet.payload[0], packet.payload[1]].concat();
                packets.push((bytes, packet.reason));
                Ok::<_, Infallible>(())
            })
            .unwrap();
        let mut left = Vec::new();
        for (bytes, reason) in packets {
            let datagram = parse(&RxPacket::new(&bytes)).unwrap();
            let Transport::Tcp(segment) = datagram.transport else { panic!("not TCP") };
            let len = segment.payload.len() as u32;
            let fin = segment.flags.contains(TcpFlags::FIN);
            if len == 0 && !fin {
                continue;
            }
            let packet = segment.seq.distance_from(self.base) / SMSS + 1;
            let tsval = segment.options.timestamps.map_or(0, |ts| ts.val);
            self.last_tsval = tsval;
            let copies = self.sent.entry(packet).or_default();
            let name = match copies.len() {
                0 => format!("P{packet}"),
                n => format!("P{packet}r{n}"),
            };
            copies.push(tsval);
            let ect = datagram.ip.ecn != Ecn::NotEct;
            let cwr = segment.flags.contains(TcpFlags::CWR);
            left.push(SentSegment { name, packet, len, reason, fin, ect, cwr });
        }
        left
    }

    /// The names of what leaves now.
    pub(crate) fn names(&mut self) -> Vec<String> {
        self.out().into_iter().map(|left| left.name).collect()
    }

    /// An ACK to come, of packets 1 to `packets`.
    pub(crate) fn ack(&mut self, packets: u32) -> Ack<'_> {
        self.ack_bytes(packets * SMSS)
    }

    /// An ACK to come, of so many bytes.
    pub(crate) fn ack_bytes(&mut self, bytes: u32) -> Ack<'_> {
        let tsecr = self.last_tsval;
        Ack { bytes, blocks: vec![], ece: false, tsecr, bench: self }
    }

    /// TSval of the `copy`-th transmission of the packet; 0: the first.
    pub(crate) fn tsval(&self, packet: u32, copy: usize) -> u32 {
        self.sent[&packet][copy]
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Time passes up to the retransmission timeout, which expires. Names what leaves.
    pub(crate) fn rto(&mut self) -> Vec<String> {
        self.expire().into_iter().map(|left| left.name).collect()
    }

    /// The same with all that leaves.
    pub(crate) fn expire(&mut self) -> Vec<SentSegment> {
        let timeouts = self.info().timeouts;
        for _ in 0..20 {
            let wakeup = self.endpoint.poll_timeout().expect("a timer runs");
            self.now = self.now.max(wakeup.at);
            self.endpoint.handle_timeout(self.now);
            let left = self.out();
            if wakeup.reason == WakeReason::Rto && self.info().timeouts > timeouts {
                return left;
            }
        }
        panic!("no retransmission timeout");
    }

    /// Time until the retransmission timeout.
    pub(crate) fn time_to_rto(&mut self) -> Duration {
        let wakeup = self.endpoint.poll_timeout().expect("a timer runs");
        assert_eq!(wakeup.reason, WakeReason::Rto);
        wakeup.at.since(self.now)
    }

    pub(crate) fn info(&mut self) -> ackline_tcp_core::info::Info {
        self.endpoint.conn(self.conn).unwrap().info()
    }

    /// Window, `ssthresh` and pipe in packets.
    pub(crate) fn state(&mut self) -> (u64, u64, u32) {
        let info = self.info();
        let packets = |bytes: u64| {
            assert_eq!(bytes % u64::from(SMSS), 0, "{bytes} bytes are no packets");
            bytes / u64::from(SMSS)
        };
        (packets(info.snd_cwnd), packets(info.snd_ssthresh.unwrap()), info.pipe.div_ceil(SMSS))
    }

    /// Where the response stands.
    pub(crate) fn phase(&mut self) -> RtoPhase {
        self.endpoint.conn(self.conn).unwrap().rto_response().unwrap().phase()
    }

    pub(crate) fn verdicts(&self) -> Vec<RtoVerdict> {
        self.log.lock().unwrap().verdicts.clone()
    }

    /// Segments retransmitted so far.
    pub(crate) fn retransmitted(&mut self) -> u64 {
        self.info().total_retrans
    }
}

/// A pure ACK of the peer.
pub(crate) struct Ack<'a> {
    bench: &'a mut Bench,
    bytes: u32,
    blocks: Vec<(u32, u32)>,
    ece: bool,
    tsecr: u32,
}

impl Ack<'_> {
    /// With a block of packets `first` to `last`; a DSACK if it comes first and lies below the ACK.
    pub(crate) fn sack(mut self, first: u32, last: u32) -> Self {
        self.blocks.push(((first - 1) * SMSS, last * SMSS));
        self
    }

    pub(crate) fn ece(mut self) -> Self {
        self.ece = true;
        self
    }

    /// Echoes this TSval instead of the last one.
    pub(crate) fn tsecr(mut self, tsecr: u32) -> Self {
        self.tsecr = tsecr;
        self
    }

    /// It arrives; the names of what leaves in answer.
    pub(crate) fn arrives(self) -> Vec<String> {
        self.arrives_in_full().into_iter().map(|left| left.name).collect()
    }

    /// The same with all that leaves.
    pub(crate) fn arrives_in_full(self) -> Vec<SentSegment> {
        let Self { bench, bytes, blocks, ece, tsecr } = self;
        let mut header = TcpHeader::new(bench.remote, bench.local);
        header.seq = SeqNum(PEER_ISS + 1);
        header.ack = bench.base + bytes;
        header.flags = if ece { TcpFlags::ACK.union(TcpFlags::ECE) } else { TcpFlags::ACK };
        header.window = bench.window.unwrap_or(bench.setup.rwnd * SMSS) as u16;
        header.options = TcpOptions::NONE;
        let blocks: Vec<_> = blocks.iter().map(|&(a, b)| (bench.base + a, bench.base + b)).collect();
        header.options.sack = SackBlocks::from_slice(&blocks);
        if bench.setup.timestamps {
            let val = (bench.now.as_millis() as u32).wrapping_add(1);
            header.options.timestamps = Some(Timestamps { val, ecr: tsecr });
        }
        bench.inject(&header);
        bench.out()
    }
}
