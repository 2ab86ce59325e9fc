//! Segment arrival: for each state and each kind of segment, what RFC 9293, section 3.10.7 demands,
//! with the amendments of RFC 5961, RFC 7323, RFC 6191 and RFC 1337.

use super::{Connection, Disposition, HalfOpen, IcmpError, Notices, Offer, RstSpec, Syns};
use crate::State;
use crate::config::{ConnConfig, EndpointConfig};
use crate::ctx::Ctx;
use crate::ctx::{Observe, host_for_test};
use crate::error::ConnError;
use crate::events::WakeReason;
use crate::four_tuple::FourTuple;
use crate::packet::SendReason;
use crate::plan::Plan;
use crate::rate_limit::RateLimit;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::{
    Ecn, HeaderBuf, IpInfo, IpVersion, Payload, RxChecksum, RxPacket, TcpFlags, TcpOptions, TcpSegment,
    Timestamps, Transport, parse,
};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use std::format;
use std::string::String;

const ISS: SeqNum = SeqNum(1_000);
const IRS: SeqNum = SeqNum(9_000);
const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;
const FIN: TcpFlags = TcpFlags::FIN;
const RST: TcpFlags = TcpFlags::RST;

/// One connection between scripted peers: ours at 192.0.2.1, theirs at 192.0.2.2.
struct Bench {
    conn: Connection,
    observe: Observe,
    host: EndpointConfig,
    challenge: RateLimit,
    now: Instant,
}

/// A segment that the connection sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SentSegment {
    flags: TcpFlags,
    seq: SeqNum,
    ack: SeqNum,
    len: u32,
    window: u16,
    options: TcpOptions,
    reason: SendReason,
    ecn: Ecn,
}

fn ip() -> IpInfo {
    IpInfo {
        src: [192, 0, 2, 2].into(),
        dst: [192, 0, 2, 1].into(),
        version: IpVersion::V4,
        ttl: 64,
        dscp: 0,
        ecn: Ecn::NotEct,
        flow_label: 0,
        header_len: 20,
        total_len: 40,
    }
}

fn tuple() -> FourTuple {
    let local: SocketAddr = "192.0.2.1:80".parse().unwrap();
    let remote: SocketAddr = "192.0.2.2:4000".parse().unwrap();
    FourTuple::new(local, remote)
}

fn segment<'a>(flags: TcpFlags, seq: SeqNum, ack: SeqNum, data: &'a [u8]) -> TcpSegment<'a> {
    TcpSegment {
        src_port: 4000,
        dst_port: 80,
        seq,
        ack,
        flags,
        window: 60_000,
        urgent: 0,
        options: TcpOptions::NONE,
        options_malformed: false,
        raw_options: &[],
        payload: Payload::new([data, &[], &[]]),
        wire_segments: 1,
    }
}

fn config() -> ConnConfig {
    ConnConfig { timestamps: false, ..ConnConfig::default() }
}

/// SYN-RECEIVED, with the SYN-ACK to be transmitted.
fn accepted(ctx: &mut Ctx<'_>, config: Arc<ConnConfig>, ts_offset: u32, syn: &TcpSegment<'_>) -> Connection {
    let half_open = HalfOpen {
        syns: Syns::passive(ISS, syn.seq, Offer::of(syn, Ecn::NotEct)),
        first_sent: None,
        segs_in: 1,
    };
    Connection::accept(ctx, tuple(), config, ts_offset, half_open)
}

macro_rules! ctx {
    ($bench:expr) => {
        &mut Ctx {
            now: $bench.now,
            id: crate::ConnId::for_test(0, 0),
            host: &$bench.host,
            observe: &mut $bench.observe,
        }
    };
}

mod accecn;
mod ecn;
mod endings;
mod forged;
mod opening;
mod path;
mod settings;

impl Bench {
    fn with(make: impl FnOnce(&mut Ctx<'_>) -> Connection) -> Self {
        let mut observe = Observe::for_test();
        let host = host_for_test();
        let now = Instant::from_secs(1);
        let conn =
            make(&mut Ctx { now, id: crate::ConnId::for_test(0, 0), host: &host, observe: &mut observe });
        Self { conn, observe, host, challenge: RateLimit::new(1_000, Duration::from_secs(1)), now }
    }

    fn active(config: ConnConfig) -> Self {
        let mut bench = Self::with(|ctx| Connection::connect(ctx, tuple(), Arc::new(config), ISS, 0));
        assert_eq!(bench.drain().len(), 1, "the SYN");
        bench
    }

    fn passive(config: ConnConfig, syn: &TcpSegment<'_>) -> Self {
        let mut bench = Self::with(|ctx| accepted(ctx, Arc::new(config), 0, syn));
        assert_eq!(bench.drain().len(), 1, "the SYN-ACK");
        bench
    }

    /// A connection in `state`, reached by segments and calls alone.
    fn in_state(state: State) -> Self {
        let established = || {
            let mut bench = Self::active(config());
            bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
            bench.drain();
            bench
        };
        let close = |bench: &mut Self| {
            bench.conn.shutdown(ctx!(bench));
            assert_eq!(bench.drain().len(), 1, "the FIN");
        };
        let fin = |bench: &mut Self, ack| {
            bench.arrive(&segment(FIN | ACK, IRS + 1, ack, &[]));
            bench.drain();
        };
        let mut bench = match state {
            State::SynSent => Self::active(config()),
            State::SynReceived => Self::passive(config(), &segment(SYN, IRS, SeqNum(0), &[])),
            State::Established => established(),
            State::FinWait1 => {
                let mut bench = established();
                close(&mut bench);
                bench
            }
            State::FinWait2 => {
                let mut bench = Self::in_state(State::FinWait1);
                bench.arrive(&segment(ACK, IRS + 1, ISS + 2, &[]));
                bench
            }
            State::CloseWait => {
                let mut bench = established();
                fin(&mut bench, ISS + 1);
                bench
            }
            State::Closing => {
                let mut bench = Self::in_state(State::FinWait1);
                fin(&mut bench, ISS + 1);
                bench
            }
            State::LastAck => {
                let mut bench = Self::in_state(State::CloseWait);
                close(&mut bench);
                bench
            }
            State::TimeWait => {
                let mut bench = Self::in_state(State::FinWait2);
                fin(&mut bench, ISS + 2);
                bench
            }
            State::Closed | State::Listen => unreachable!("not states of a live connection"),
        };
        assert_eq!(bench.conn.state(), state);
        bench.conn.take_notices();
        bench
    }

    fn arrive(&mut self, seg: &TcpSegment<'_>) -> Disposition {
        self.arrive_marked(seg, Ecn::NotEct)
    }

    fn arrive_marked(&mut self, seg: &TcpSegment<'_>, ecn: Ecn) -> Disposition {
        let ip = IpInfo { ecn, ..ip() };
        self.conn.on_segment(ctx!(self), &mut self.challenge, &ip, seg)
    }

    /// Sends everything that may leave, through the real builder and the real parser.
    fn drain(&mut self) -> Vec<SentSegment> {
        let mut sent = Vec::new();
        let mut buf = HeaderBuf::new();
        while let Some(plan) = self.conn.next(self.now, &self.host, self.host.max_super_packet, false, 1) {
            sent.push(self.emit(&plan, &mut buf));
            assert!(sent.len() < 1_000, "the connection never falls silent");
        }
        sent
    }

    fn emit(&mut self, plan: &Plan, buf: &mut HeaderBuf) -> SentSegment {
        let built = self
            .conn
            .build(self.now, &self.host, plan, self.host.tx_checksum, buf)
            .expect("a plan can be built");
        let mut bytes = buf.as_slice().to_vec();
        for piece in self.conn.payload(plan) {
            bytes.extend_from_slice(piece);
        }
        let packet = RxPacket::new(&bytes).with_checksum(RxChecksum::Verify);
        let datagram = parse(&packet).expect("a well-formed packet");
        let Transport::Tcp(seg) = datagram.transport else { panic!("not a TCP segment: {bytes:02x?}") };
        let sent = SentSegment {
            flags: seg.flags,
            seq: seg.seq,
            ack: seg.ack,
            len: seg.payload.len() as u32,
            window: seg.window,
            options: seg.options,
            reason: plan.reason,
            ecn: datagram.ip.ecn,
        };
        self.conn.sent(ctx!(self), plan, &built);
        sent
    }

    fn rcv_nxt(&self) -> SeqNum {
        match self.conn.state() {
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait => IRS + 2,
            _ => IRS + 1,
        }
    }

    /// SND.NXT as the scripts of [`in_state`](Self::in_state) leave it.
    fn snd_nxt(&self) -> SeqNum {
        match self.conn.state() {
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait => ISS + 2,
            _ => ISS + 1,
        }
    }

    /// What one segment does, in words: disposition, state after it, and what is sent.
    fn reaction(mut self, seg: &TcpSegment<'_>) -> String {
        let disposition = match self.arrive(seg) {
            Disposition::Handled => "",
            Disposition::Reset(_) => "reset ",
            Disposition::NewSyn { .. } => "new ",
            Disposition::FastOpen { .. } => "fast open ",
        };
        let replies: Vec<String> = self.drain().iter().map(|sent| format!("{:?}", sent.reason)).collect();
        format!("{disposition}{} {}", self.conn.state(), replies.join("+"))
    }
}

/// States in which the sequence number is checked.
const SYNCHRONIZED: [State; 7] = [
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

#[test]
fn syn_sent_follows_section_3_10_7_3() {
    let unacceptable = RstSpec { seq: ISS + 7, ack: None };
    let mut bench = Bench::in_state(State::SynSent);
    assert_eq!(bench.arrive(&segment(ACK, IRS, ISS + 7, &[])), Disposition::Reset(unacceptable));
    assert_eq!(bench.arrive(&segment(RST | ACK, IRS, ISS + 7, &[])), Disposition::Handled);
    assert_eq!(bench.arrive(&segment(RST, IRS, SeqNum(0), &[])), Disposition::Handled, "RST without ACK");
    assert_eq!(bench.arrive(&segment(ACK, IRS, ISS + 1, &[])), Disposition::Handled, "neither SYN nor RST");
    assert_eq!(bench.conn.state(), State::SynSent);
    assert!(bench.drain().is_empty());

    assert_eq!(bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[])), Disposition::Handled);
    assert_eq!(bench.conn.state(), State::Established);
    let reply = bench.drain();
    assert_eq!(reply.len(), 1);
    assert_eq!((reply[0].flags, reply[0].seq, reply[0].ack), (ACK, ISS + 1, IRS + 1));
    assert!(bench.conn.take_notices().contains(Notices::CONNECTED));
}

#[test]
fn a_reset_that_acknowledges_the_syn_refuses_the_connection() {
    let mut bench = Bench::in_state(State::SynSent);
    bench.arrive(&segment(RST | ACK, IRS, ISS + 1, &[]));
    assert_eq!(bench.conn.state(), State::Closed);
    assert_eq!(bench.conn.error(), Some(ConnError::Refused));
    assert!(bench.conn.is_over() && bench.drain().is_empty());
}

#[test]
fn simultaneous_open_establishes_both_sides() {
    let mut bench = Bench::in_state(State::SynSent);
    bench.arrive(&segment(SYN, IRS, SeqNum(0), &[]));
    assert_eq!(bench.conn.state(), State::SynReceived);
    let reply = bench.drain();
    assert_eq!((reply[0].flags, reply[0].seq, reply[0].ack), (SYN | ACK, ISS, IRS + 1));
    bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
    assert_eq!(bench.conn.state(), State::Established);
    assert!(bench.conn.take_notices().contains(Notices::CONNECTED));
}

#[test]
fn syn_received_follows_section_3_10_7_4() {
    let reaction =
        |flags, seq, ack| Bench::in_state(State::SynReceived).reaction(&segment(flags, seq, ack, &[]));
    assert_eq!(reaction(ACK, IRS + 1, ISS + 1), "ESTABLISHED ");
    assert_eq!(reaction(ACK, IRS + 1, ISS + 2), "reset SYN-RECEIVED ");
    assert_eq!(reaction(ACK, IRS + 1, ISS), "reset SYN-RECEIVED ");
    assert_eq!(reaction(RST, IRS + 1, SeqNum(0)), "CLOSED ", "a passive open returns to LISTEN");
    assert_eq!(reaction(RST, IRS + 5, SeqNum(0)), "SYN-RECEIVED ChallengeAck");
    assert_eq!(reaction(RST, IRS - 5, SeqNum(0)), "SYN-RECEIVED ");
    assert_eq!(reaction(SYN, IRS, SeqNum(0)), "SYN-RECEIVED SynAck", "the SYN once more");
    assert_eq!(reaction(SYN, IRS + 5, SeqNum(0)), "CLOSED ");
    assert_eq!(reaction(ACK, IRS - 100, ISS + 1), "SYN-RECEIVED ChallengeAck");
    assert_eq!(reaction(FIN | ACK, IRS + 1, ISS + 1), "CLOSE-WAIT AckByObligation");
    assert_eq!(reaction(TcpFlags::NONE, IRS + 1, ISS + 1), "SYN-RECEIVED ");
}

#[test]
fn a_listener_is_told_only_of_established_connections() {
    let mut bench = Bench::in_state(State::SynReceived);
    assert!(bench.conn.take_notices().is_empty());
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, &[]));
    assert!(bench.conn.take_notices().contains(Notices::ACCEPTED));
}

#[test]
fn a_reset_at_rcv_nxt_ends_every_synchronized_state_but_time_wait() {
    for state in SYNCHRONIZED {
        let mut bench = Bench::in_state(state);
        bench.arrive(&segment(RST, bench.rcv_nxt(), SeqNum(0), &[]));
        let (after, error) = match state {
            State::TimeWait => (State::TimeWait, None),
            _ => (State::Closed, Some(ConnError::Reset)),
        };
        assert_eq!((bench.conn.state(), bench.conn.error()), (after, error), "{state}");
        assert!(bench.drain().is_empty(), "{state}: nothing answers an RST");
    }
}

#[test]
fn a_reset_elsewhere_in_the_window_is_challenged() {
    for state in SYNCHRONIZED.into_iter().filter(|state| *state != State::TimeWait) {
        let bench = Bench::in_state(state);
        let seq = bench.rcv_nxt() + 10;
        let expected = format!("{state} ChallengeAck");
        assert_eq!(bench.reaction(&segment(RST, seq, SeqNum(0), &[])), expected, "RFC 5961, section 3.2");
        let bench = Bench::in_state(state);
        let seq = bench.rcv_nxt() - 10;
        assert_eq!(
            bench.reaction(&segment(RST, seq, SeqNum(0), &[])),
            format!("{state} "),
            "outside the window"
        );
    }
}

#[test]
fn a_syn_is_challenged_in_every_synchronized_state() {
    for state in SYNCHRONIZED.into_iter().filter(|state| *state != State::TimeWait) {
        for offset in [0, 10, u32::MAX - 10] {
            let bench = Bench::in_state(state);
            let seq = bench.rcv_nxt() + offset;
            let expected = format!("{state} ChallengeAck");
            assert_eq!(bench.reaction(&segment(SYN, seq, SeqNum(0), &[])), expected, "RFC 5961, section 4.2");
        }
    }
}

#[test]
fn challenge_acks_are_limited() {
    let mut bench = Bench::in_state(State::Established);
    bench.challenge = RateLimit::new(3, Duration::from_secs(1));
    let mut answers = 0;
    for _ in 0..10 {
        bench.arrive(&segment(SYN, IRS + 1, SeqNum(0), &[]));
        answers += bench.drain().len();
    }
    assert!((1..=3).contains(&answers), "{answers} challenge ACKs");
    assert_eq!(bench.observe.counters.tcp_ack_skipped_challenge, 10 - answers as u64);
}

#[test]
fn segments_without_ack_are_dropped() {
    for state in SYNCHRONIZED {
        let bench = Bench::in_state(state);
        let seq = bench.rcv_nxt();
        assert_eq!(bench.reaction(&segment(TcpFlags::NONE, seq, SeqNum(0), b"x")), format!("{state} "));
    }
}

#[test]
fn acks_outside_the_acceptable_range_are_challenged() {
    for state in SYNCHRONIZED.into_iter().filter(|state| *state != State::TimeWait) {
        for far in [1u32, 1_000_000, 0x8000_0000] {
            let bench = Bench::in_state(state);
            let (seq, ack) = (bench.rcv_nxt(), bench.snd_nxt() + far);
            let expected = format!("{state} ChallengeAck");
            assert_eq!(
                bench.reaction(&segment(ACK, seq, ack, b"x")),
                expected,
                "RFC 5961, section 5.2: {far}"
            );
        }
    }
}

#[test]
fn unacceptable_segments_are_answered_with_an_ack() {
    for state in SYNCHRONIZED {
        // Old data and data beyond the window, whether the policy or the core speaks first.
        for seq in [IRS + 1 - 100, IRS + 0x1000_0000] {
            let bench = Bench::in_state(state);
            let ack = bench.snd_nxt();
            let reaction = bench.reaction(&segment(ACK, seq, ack, b"lost"));
            assert!(reaction.starts_with(&format!("{state} AckBy")), "{reaction}");
        }
    }
}

#[test]
fn two_confused_hosts_do_not_exchange_acks_for_ever() {
    let mut bench = Bench::in_state(State::Established);
    let (seq, ack) = (bench.rcv_nxt() - 100, bench.snd_nxt());
    let mut answers = 0;
    for _ in 0..1_000 {
        bench.arrive(&segment(ACK, seq, ack, &[]));
        answers += bench.drain().len();
        bench.now += Duration::from_millis(1);
    }
    assert!((1..=3).contains(&answers), "{answers} answers in a second");
    assert_eq!(bench.observe.counters.tcp_ack_skipped_seq, 1_000 - answers as u64);
}

#[test]
fn the_last_arrival_of_data_is_remembered_to_a_millisecond() {
    let mut bench = Bench::in_state(State::Established);
    let first = IRS + 1;
    assert_eq!(bench.conn.info(bench.now).last_data_recv, None);
    let mut arrived = bench.now;
    // Predicted, past a hole, in the hole with a FIN; and what is not data.
    for (seq, data, flags) in [
        (first, &b"abcd"[..], ACK),
        (first + 4, b"", ACK),
        (first + 6, b"gh", ACK),
        (first + 4, b"", ACK),
        (first + 4, b"efgh", ACK | FIN),
    ] {
        bench.now += Duration::from_micros(777_777);
        bench.arrive(&segment(flags, seq, ISS + 1, data));
        arrived = if data.is_empty() { arrived } else { bench.now };
        let last = bench.conn.info(bench.now).last_data_recv.expect("data has arrived");
        assert!(
            last <= arrived && arrived.since(last) < Duration::from_micros(1_049),
            "{last:?} for {arrived:?}"
        );
    }
}

#[test]
fn data_is_taken_while_the_peer_may_send() {
    for state in SYNCHRONIZED {
        let mut bench = Bench::in_state(state);
        let (seq, ack) = (
            bench.rcv_nxt(),
            if state == State::Closing || state == State::FinWait1 || state == State::LastAck {
                ISS + 1
            } else {
                bench.snd_nxt()
            },
        );
        bench.arrive(&segment(ACK, seq, ack, b"data"));
        let taken = matches!(state, State::Established | State::FinWait1 | State::FinWait2);
        assert_eq!(bench.conn.peek()[0], if taken { &b"data"[..] } else { b"" }, "{state}");
        assert_eq!(bench.conn.take_notices().contains(Notices::READABLE), taken, "{state}");
    }
}

#[test]
fn fin_moves_along_the_state_diagram_and_is_acknowledged_at_once() {
    for (state, after) in [
        (State::Established, State::CloseWait),
        (State::FinWait1, State::Closing),
        (State::FinWait2, State::TimeWait),
        (State::CloseWait, State::CloseWait),
        (State::Closing, State::Closing),
        (State::LastAck, State::LastAck),
        (State::TimeWait, State::TimeWait),
    ] {
        let mut bench = Bench::in_state(state);
        let ack = if matches!(state, State::FinWait1 | State::Closing | State::LastAck) {
            ISS + 1
        } else {
            bench.snd_nxt()
        };
        bench.arrive(&segment(FIN | ACK, IRS + 1, ack, &[]));
        let replies = bench.drain();
        assert_eq!(bench.conn.state(), after, "{state}");
        assert_eq!(replies.len(), 1, "{state}: {replies:?}");
        assert_eq!(replies[0].ack, IRS + 2, "{state}");
    }
}

#[test]
fn the_ack_of_our_fin_moves_along_the_state_diagram() {
    for (state, after) in [
        (State::FinWait1, State::FinWait2),
        (State::Closing, State::TimeWait),
        (State::LastAck, State::Closed),
    ] {
        let mut bench = Bench::in_state(state);
        bench.arrive(&segment(ACK, bench.rcv_nxt(), ISS + 2, &[]));
        assert_eq!(bench.conn.state(), after, "{state}");
        assert_eq!(bench.conn.error(), None);
        assert!(bench.conn.take_notices().contains(Notices::FLUSHED), "{state}");
    }
}

#[test]
fn fin_and_ack_of_ours_in_one_segment_lead_to_time_wait() {
    let mut bench = Bench::in_state(State::FinWait1);
    bench.arrive(&segment(FIN | ACK, IRS + 1, ISS + 2, &[]));
    assert_eq!(bench.conn.state(), State::TimeWait);
}

#[test]
fn a_fin_beyond_a_gap_waits_for_the_gap() {
    let mut bench = Bench::in_state(State::Established);
    bench.arrive(&segment(FIN | ACK, IRS + 5, ISS + 1, b"last"));
    assert_eq!(bench.conn.state(), State::Established);
    bench.drain();
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, b"frst"));
    assert_eq!(bench.conn.state(), State::CloseWait);
    assert_eq!(bench.drain()[0].ack, IRS + 10);
    assert_eq!(bench.conn.peek().concat(), b"frstlast");
}

#[test]
fn time_wait_lasts_its_time_and_restarts_on_a_fin() {
    let mut bench = Bench::in_state(State::TimeWait);
    let wait = bench.conn.config.time_wait;
    let first = bench.now + wait;
    assert_eq!(bench.conn.next_deadline(), Some((first, WakeReason::TimeWait)));
    bench.now += Duration::from_secs(10);
    bench.arrive(&segment(FIN | ACK, IRS + 1, ISS + 2, &[]));
    assert_eq!(bench.drain().len(), 1);
    assert_eq!(bench.conn.next_deadline(), Some((first + Duration::from_secs(10), WakeReason::TimeWait)));
    bench.now = first + Duration::from_secs(10);
    bench.conn.on_timeout(ctx!(bench));
    assert!(bench.conn.is_over() && bench.conn.error().is_none());
}

#[test]
fn the_end_is_told_once() {
    let mut bench = Bench::in_state(State::FinWait2);
    bench.arrive(&segment(FIN | ACK, IRS + 1, ISS + 2, &[]));
    assert_eq!(bench.conn.state(), State::TimeWait);
    assert!(bench.conn.take_notices().contains(Notices::CLOSED));
    bench.now += bench.conn.config.time_wait;
    bench.conn.on_timeout(ctx!(bench));
    assert_eq!((bench.conn.state(), bench.conn.take_notices()), (State::Closed, Notices::default()));

    let mut bench = Bench::in_state(State::LastAck);
    bench.arrive(&segment(ACK, IRS + 2, ISS + 2, &[]));
    assert_eq!(bench.conn.state(), State::Closed);
    assert!(bench.conn.take_notices().contains(Notices::CLOSED));

    for state in [State::SynSent, State::Established, State::LastAck] {
        let mut bench = Bench::in_state(state);
        for told in [true, false] {
            bench.conn.abort(ctx!(bench), ConnError::Aborted);
            assert_eq!(bench.conn.take_notices().contains(Notices::CLOSED), told, "{state}");
        }
    }
}

#[test]
fn a_fin_that_is_not_the_peers_own_does_not_prolong_time_wait() {
    let mut bench = Bench::in_state(State::TimeWait);
    let before = bench.conn.next_deadline();
    bench.now += Duration::from_secs(10);
    for seq in [IRS + 5, IRS - 100_000] {
        bench.arrive(&segment(FIN | ACK, seq, ISS + 2, &[]));
    }
    for (flags, ack) in [(FIN | ACK, ISS + 3), (FIN | ACK, ISS - 100_000), (FIN, ISS + 2)] {
        bench.arrive(&segment(flags, IRS + 1, ack, &[]));
    }
    assert_eq!(bench.conn.next_deadline(), before);
}

#[test]
fn a_syn_ack_must_echo_the_timestamp_of_our_syn() {
    let mut bench =
        Bench::with(|ctx| Connection::connect(ctx, tuple(), Arc::new(ConnConfig::default()), ISS, 5));
    let val = bench.drain()[0].options.timestamps.unwrap().val;
    bench.now += Duration::from_millis(30);
    let syn_ack = |ecr| TcpSegment {
        options: TcpOptions { timestamps: Some(Timestamps { val: 77, ecr }), ..TcpOptions::NONE },
        ..segment(SYN | ACK, IRS, ISS + 1, &[])
    };
    for ecr in [val - 10, val + 40, val.wrapping_add(1 << 31)] {
        assert!(matches!(bench.arrive(&syn_ack(ecr)), Disposition::Reset(_)), "{ecr}");
        assert_eq!(bench.conn.state(), State::SynSent);
    }
    assert_eq!(bench.observe.counters.tcp_paws_active, 3);
    assert_eq!(bench.arrive(&syn_ack(val)), Disposition::Handled);
    assert_eq!(bench.conn.state(), State::Established);
}

#[test]
fn a_newer_syn_reuses_time_wait() {
    let mut bench = Bench::in_state(State::TimeWait);
    let newer = segment(SYN, IRS + 1_000, SeqNum(0), &[]);
    assert_eq!(bench.arrive(&newer), Disposition::NewSyn { iss_floor: ISS + 2 });
    let mut bench = Bench::in_state(State::TimeWait);
    assert_eq!(bench.arrive(&segment(SYN, IRS, SeqNum(0), &[])), Disposition::Handled, "older: RFC 6191");
    assert_eq!(bench.conn.state(), State::TimeWait);
}

#[test]
fn close_sends_a_fin_after_the_data() {
    let mut bench = Bench::in_state(State::Established);
    bench.conn.write(b"bye").unwrap();
    bench.conn.shutdown(ctx!(bench));
    let sent = bench.drain();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].flags.contains(FIN) && sent[0].len == 3);
    assert_eq!(bench.conn.state(), State::FinWait1);
    assert!(bench.conn.write(b"more").is_err());
}

#[test]
fn a_writer_is_told_when_the_space_that_it_wants_is_free() {
    let mut bench = Bench::in_state(State::Established);
    let space = bench.conn.write_space();
    bench.conn.take_notices();
    bench.conn.want_space(space);
    assert!(bench.conn.take_notices().take_first() == Some(Notices::WRITABLE), "at once");

    bench.conn.write(&[1; 2_000]).unwrap();
    bench.drain();
    bench.conn.want_space(space - 1_000);
    let ack = |bench: &mut Bench, acked| {
        let (seq, ack) = (bench.rcv_nxt(), ISS + 1 + acked);
        bench.arrive(&segment(ACK, seq, ack, &[]));
        bench.conn.take_notices().take_first() == Some(Notices::WRITABLE)
    };
    assert!(!ack(&mut bench, 999));
    assert!(ack(&mut bench, 1_000));
    assert!(!ack(&mut bench, 2_000), "once");
}

#[test]
fn data_written_before_the_handshake_leaves_after_it() {
    let mut bench = Bench::in_state(State::SynSent);
    assert_eq!(bench.conn.write(b"early"), Ok(5));
    bench.conn.shutdown(ctx!(bench));
    assert!(bench.drain().is_empty());
    bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
    let sent = bench.drain();
    assert_eq!((sent[0].len, sent[0].flags.contains(FIN), sent[0].ack), (5, true, IRS + 1));
    assert_eq!(bench.conn.state(), State::FinWait1);
}

#[test]
fn abort_sends_one_reset_that_the_peer_accepts() {
    let states = SYNCHRONIZED.into_iter().filter(|state| *state != State::TimeWait);
    for state in states.chain([State::SynReceived]) {
        let mut bench = Bench::in_state(state);
        let (snd_nxt, rcv_nxt) = (bench.snd_nxt(), bench.rcv_nxt());
        bench.conn.abort(ctx!(bench), ConnError::Aborted);
        let sent = bench.drain();
        assert_eq!(sent.len(), 1, "{state}");
        assert_eq!((sent[0].flags, sent[0].seq, sent[0].ack), (RST | ACK, snd_nxt, rcv_nxt), "{state}");
        assert!(bench.conn.is_over(), "{state}");
    }
}

/// RFC 7323, section 3.2.
#[test]
fn a_reset_carries_timestamps() {
    let stamps = TcpOptions { timestamps: Some(Timestamps { val: 5_000, ecr: 0 }), ..TcpOptions::NONE };
    let syn = TcpSegment { options: stamps, ..segment(SYN, IRS, SeqNum(0), &[]) };
    for established in [false, true] {
        let mut bench = Bench::with(|ctx| accepted(ctx, Arc::new(ConnConfig::default()), 5, &syn));
        bench.drain();
        if established {
            bench.arrive(&TcpSegment { options: stamps, ..segment(ACK, IRS + 1, ISS + 1, &[]) });
        }
        bench.now += Duration::from_millis(70);
        let val = bench.conn.ts.value(bench.now);
        bench.conn.abort(ctx!(bench), ConnError::Aborted);
        let sent = bench.drain();
        assert!(sent[0].flags.contains(RST));
        assert_eq!(sent[0].options.timestamps, Some(Timestamps { val, ecr: 5_000 }), "{established}");
    }
    let mut bench = Bench::in_state(State::Established);
    bench.conn.abort(ctx!(bench), ConnError::Aborted);
    assert_eq!(bench.drain()[0].options, TcpOptions::NONE, "not agreed on");
}

/// RFC 9293, section 3.10.7.4: in TIME-WAIT, too, a segment that is not what this side expects is
/// answered.
#[test]
fn time_wait_answers_everything_but_the_ack_of_its_fin() {
    let reaction =
        |flags, seq, ack, data| Bench::in_state(State::TimeWait).reaction(&segment(flags, seq, ack, data));
    let answered = "TIME-WAIT AckByObligation";
    assert_eq!(
        reaction(ACK, IRS + 2, ISS + 2, b""),
        "TIME-WAIT ",
        "or two in TIME-WAIT would never fall silent"
    );
    assert_eq!(reaction(ACK, IRS + 3, ISS + 2, b""), answered, "beyond RCV.NXT");
    assert_eq!(reaction(FIN | ACK, IRS + 2, ISS + 2, b""), answered, "a second FIN");
    assert_eq!(reaction(FIN | ACK, IRS + 1, ISS + 2, b""), answered, "the FIN once more");
    assert_eq!(reaction(ACK, IRS + 2, ISS + 2, b"data"), answered, "data behind the FIN");
    assert_eq!(reaction(ACK, IRS - 9, ISS + 2, b""), answered, "from before the window");
    assert_eq!(reaction(ACK, IRS + 2, ISS + 3, b""), "TIME-WAIT ChallengeAck", "an ACK of nothing");
    assert_eq!(reaction(SYN, IRS, SeqNum(0), b""), "TIME-WAIT ChallengeAck", "an old SYN");
    assert_eq!(reaction(SYN | ACK, IRS + 9, ISS + 2, b""), "TIME-WAIT ChallengeAck");
    assert_eq!(reaction(RST, IRS + 2, SeqNum(0), b""), "TIME-WAIT ", "RFC 1337");
    assert_eq!(reaction(TcpFlags::NONE, IRS + 2, SeqNum(0), b"data"), "TIME-WAIT ");
}

#[test]
fn two_hosts_in_time_wait_do_not_exchange_acks_for_ever() {
    let mut bench = Bench::in_state(State::TimeWait);
    let mut answers = 0;
    for _ in 0..1_000 {
        bench.arrive(&segment(ACK, IRS + 3, ISS + 2, &[]));
        answers += bench.drain().len();
        bench.now += Duration::from_millis(1);
    }
    assert!((1..=3).contains(&answers), "{answers} answers in a second");
}

#[test]
fn letting_go_with_unread_data_resets() {
    let mut bench = Bench::in_state(State::Established);
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, b"unread"));
    bench.drain();
    bench.conn.release(ctx!(bench));
    let sent = bench.drain();
    assert!(sent[0].flags.contains(RST));
    assert_eq!(bench.observe.counters.tcp_abort_on_close, 1);
}

#[test]
fn letting_go_closes_in_the_background_and_fin_wait_2_ends() {
    let mut bench = Bench::in_state(State::Established);
    bench.conn.release(ctx!(bench));
    assert!(bench.drain()[0].flags.contains(FIN));
    bench.arrive(&segment(ACK, IRS + 1, ISS + 2, &[]));
    assert_eq!(bench.conn.state(), State::FinWait2);
    let closed = bench.now;
    while let Some((at, _)) = bench.conn.next_deadline() {
        bench.now = at;
        bench.conn.on_timeout(ctx!(bench));
    }
    assert!(bench.conn.is_over());
    assert_eq!(bench.now.since(closed), bench.conn.config.fin_wait_2);
}

/// Only an orphan in FIN-WAIT-2 is forgotten; what the application holds, or what still sends, is
/// not.
#[test]
fn fin_wait_2_ends_only_for_an_orphan() {
    let mut bench = Bench::in_state(State::FinWait2);
    // Memory is given back first.
    bench.now += Duration::from_secs(1);
    bench.conn.on_timeout(ctx!(bench));
    assert_eq!(bench.conn.next_deadline(), None);
    bench.conn.release(ctx!(bench));
    let end = bench.now + bench.conn.config.fin_wait_2;
    assert_eq!(bench.conn.next_deadline(), Some((end, WakeReason::FinWait2)));

    let mut bench = Bench::in_state(State::Established);
    bench.conn.release(ctx!(bench));
    bench.drain();
    bench.arrive(&segment(FIN | ACK, IRS + 1, ISS + 1, &[]));
    assert_eq!(bench.conn.state(), State::Closing);
    bench.now += bench.conn.config.fin_wait_2;
    bench.conn.on_timeout(ctx!(bench));
    assert_eq!(bench.conn.state(), State::Closing);
}

#[test]
fn a_close_before_the_handshake_ends_an_attempt_that_has_nothing_to_send() {
    let mut bench = Bench::in_state(State::SynSent);
    bench.conn.shutdown(ctx!(bench));
    assert_eq!((bench.conn.state(), bench.conn.error()), (State::Closed, None), "RFC 9293, section 3.10.4");
}

#[test]
fn data_for_nobody_is_answered_with_a_reset() {
    let mut bench = Bench::in_state(State::Established);
    bench.conn.release(ctx!(bench));
    bench.drain();
    bench.arrive(&segment(ACK, IRS + 1, ISS + 2, b"late"));
    let sent = bench.drain();
    assert!(sent[0].flags.contains(RST), "RFC 9293, section 3.6.1");
    assert_eq!(bench.conn.error(), Some(ConnError::DataAfterClose));
    assert_eq!(bench.observe.counters.tcp_abort_on_data, 1);
    // What was received before is no new data, nor is a FIN.
    let mut bench = Bench::in_state(State::Established);
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, b"read"));
    assert_eq!(bench.conn.read(ctx!(bench), &mut [0; 10]), Ok(4));
    bench.conn.release(ctx!(bench));
    bench.drain();
    bench.arrive(&segment(ACK, IRS + 1, ISS + 2, b"read"));
    bench.arrive(&segment(FIN | ACK, IRS + 5, ISS + 2, &[]));
    assert_eq!((bench.conn.state(), bench.conn.error()), (State::TimeWait, None));
    assert_eq!(bench.observe.counters.tcp_tw, 1);
}

#[test]
fn the_syn_is_retransmitted_with_back_off_and_given_up() {
    let mut bench = Bench::with(|ctx| {
        let config = ConnConfig { syn_retries: 3, ..config() };
        Connection::connect(ctx, tuple(), Arc::new(config), ISS, 0)
    });
    let start = bench.now;
    let mut departures = Vec::new();
    for _ in 0..4 {
        assert_eq!(bench.drain().len(), 1);
        departures.push(bench.now.since(start).as_millis());
        bench.now = bench.conn.next_deadline().unwrap().0;
        bench.conn.on_timeout(ctx!(bench));
    }
    assert_eq!(departures, [0, 1_000, 3_000, 7_000], "RFC 6298: 1 s, doubled each time");
    assert_eq!(bench.conn.error(), Some(ConnError::TimedOut));
}

/// Copies of a SYN are no evidence that the SYN-ACK is lost, and whoever sends them may not be the
/// peer.
#[test]
fn answers_to_repeated_syns_do_not_wear_out_the_handshake() {
    let syn = segment(SYN, IRS, SeqNum(0), &[]);
    let mut bench = Bench::with(|ctx| {
        let config = ConnConfig { syn_ack_retries: 3, ..config() };
        accepted(ctx, Arc::new(config), 5, &syn)
    });
    let start = bench.now;
    assert_eq!(bench.drain().len(), 1);
    let mut answers = 0;
    for _ in 0..10 {
        bench.arrive(&syn);
        answers += bench.drain().len();
    }
    assert_eq!((answers, bench.observe.counters.tcp_ack_skipped_syn_recv), (1, 9), "one in 500 ms");
    let mut departures = Vec::new();
    while bench.conn.error().is_none() {
        bench.now = bench.conn.next_deadline().unwrap().0;
        bench.conn.on_timeout(ctx!(bench));
        if !bench.drain().is_empty() {
            departures.push(bench.now.since(start).as_millis());
        }
    }
    assert_eq!(departures, [1_000, 3_000, 7_000]);
    assert_eq!(bench.conn.error(), Some(ConnError::TimedOut));
}

#[test]
fn options_are_used_only_where_both_sides_offer_them() {
    let offers = [
        TcpOptions { mss: Some(1_000), ..TcpOptions::NONE },
        TcpOptions { mss: Some(1_400), sack_permitted: true, ..TcpOptions::NONE },
        TcpOptions { window_scale: Some(20), ..TcpOptions::NONE },
        TcpOptions { timestamps: Some(Timestamps { val: 77, ecr: 0 }), ..TcpOptions::NONE },
    ];
    for offer in offers {
        let syn = TcpSegment { options: offer, ..segment(SYN, IRS, SeqNum(0), &[]) };
        let mut bench = Bench::with(|ctx| accepted(ctx, Arc::new(ConnConfig::default()), 5, &syn));
        let answer = bench.drain()[0].options;
        assert_eq!(answer.mss, Some(1_460));
        assert_eq!(answer.sack_permitted, offer.sack_permitted);
        assert_eq!(answer.window_scale.is_some(), offer.window_scale.is_some());
        assert_eq!(answer.timestamps.map(|ts| ts.ecr), offer.timestamps.map(|ts| ts.val));

        let timestamps =
            offer.timestamps.map(|ts| Timestamps { val: ts.val + 1, ecr: answer.timestamps.unwrap().val });
        let ack = TcpSegment {
            options: TcpOptions { timestamps, ..TcpOptions::NONE },
            ..segment(ACK, IRS + 1, ISS + 1, &[])
        };
        bench.arrive(&ack);
        let info = bench.conn.info(bench.now);
        assert_eq!(info.state, State::Established);
        let mss = u32::from(offer.mss.unwrap_or(536).min(1_460));
        assert_eq!(info.snd_mss, mss - if offer.timestamps.is_some() { 12 } else { 0 }, "RFC 6691");
        assert_eq!((info.sack, info.timestamps), (offer.sack_permitted, offer.timestamps.is_some()));
        // RFC 7323, section 2.3: a shift above 14 counts as 14.
        assert_eq!(info.wscale.map(|(peer, _)| peer), offer.window_scale.map(|_| 14));
    }
}

#[test]
fn paws_drops_old_segments_and_answers_them() {
    let stamped = |flags, seq, ack, val: u32, ecr: u32| TcpSegment {
        options: TcpOptions { timestamps: Some(Timestamps { val, ecr }), ..TcpOptions::NONE },
        ..segment(flags, seq, ack, b"")
    };
    let syn = stamped(SYN, IRS, SeqNum(0), 5_000, 0);
    let mut bench = Bench::with(|ctx| accepted(ctx, Arc::new(ConnConfig::default()), 5, &syn));
    let ecr = bench.drain()[0].options.timestamps.unwrap().val;
    bench.arrive(&stamped(ACK, IRS + 1, ISS + 1, 5_001, ecr));
    let old = TcpSegment {
        payload: Payload::new([b"old", &[], &[]]),
        ..stamped(ACK, IRS + 1, ISS + 1, 4_000, ecr)
    };
    bench.arrive(&old);
    assert_eq!(bench.observe.counters.tcp_paws_estab, 1);
    assert!(bench.conn.peek()[0].is_empty());
    let reply = bench.drain();
    assert_eq!((reply.len(), reply[0].ack), (1, IRS + 1));
    assert_eq!(reply[0].options.timestamps.unwrap().ecr, 5_001);
    // R1 does not apply to RST (RFC 7323, section 5.2).
    bench.arrive(&stamped(RST, IRS + 1, SeqNum(0), 1, 0));
    assert_eq!(bench.conn.error(), Some(ConnError::Reset));
}

#[test]
fn icmp_errors_must_quote_outstanding_data() {
    let mut bench = Bench::in_state(State::SynSent);
    bench.conn.on_icmp(ctx!(bench), IcmpError::Refused, ISS + 500);
    assert_eq!(bench.observe.counters.out_of_window_icmps, 1);
    assert_eq!(bench.conn.state(), State::SynSent);
    bench.conn.on_icmp(ctx!(bench), IcmpError::Unreachable, ISS);
    assert_eq!(bench.conn.error(), Some(ConnError::Unreachable), "RFC 5461: an attempt ends");

    let mut bench = Bench::in_state(State::Established);
    bench.conn.write(&[0; 100]).unwrap();
    bench.drain();
    bench.conn.on_icmp(ctx!(bench), IcmpError::Unreachable, ISS + 1);
    assert_eq!(bench.conn.state(), State::Established, "RFC 5927, section 5.2: soft");
}

/// A claim is believed when its time has come.
fn believe(bench: &mut Bench, mtu: u32) -> u32 {
    let una = bench.conn.snd.snd_una();
    bench.conn.on_icmp(ctx!(bench), IcmpError::TooBig(mtu), una);
    if let Some((at, WakeReason::PathMtu)) = bench.conn.next_deadline() {
        bench.now = at;
        bench.conn.on_timeout(ctx!(bench));
    }
    bench.drain();
    bench.conn.info(bench.now).snd_mss
}

#[test]
fn packet_too_big_lowers_the_segment_size_down_to_a_floor() {
    let established = || {
        let mut bench = Bench::active(config());
        let mss = TcpOptions { mss: Some(1_460), ..TcpOptions::NONE };
        bench.arrive(&TcpSegment { options: mss, ..segment(SYN | ACK, IRS, ISS + 1, &[]) });
        bench.conn.write(&[0; 20_000]).unwrap();
        bench.drain();
        bench
    };
    let mut bench = established();
    assert_eq!(believe(&mut bench, 67), 1_460, "RFC 1191, section 3: never below 68");
    assert_eq!(believe(&mut bench, 1_000), 960);
    assert_eq!(believe(&mut bench, 68), 552 - 40);
    assert_eq!(believe(&mut bench, 9_000), 552 - 40, "ICMP never raises it");
    assert_eq!((bench.observe.counters.tcp_mtu_reduced, bench.observe.counters.tcp_mtu_refused), (2, 2));

    // RFC 1191, section 7: a router that does not say, and is asked again.
    let mut bench = established();
    let sizes = [0; 4].map(|mtu| believe(&mut bench, mtu) + 40);
    assert_eq!(sizes, [1_492, 1_006, 552, 552]);
}

#[test]
fn a_forged_packet_too_big_within_the_flight_changes_nothing() {
    let mut bench = Bench::in_state(State::Established);
    let mss = bench.conn.info(bench.now).snd_mss as usize;
    let mut una = ISS + 1;
    // Each segment of a stream is quoted while it is on its way, and is then acknowledged.
    for round in 0..20 {
        bench.conn.write(&[0; 2_000][..mss]).unwrap();
        bench.drain();
        for mtu in [0, 68, 296, 552, 575] {
            bench.conn.on_icmp(ctx!(bench), IcmpError::TooBig(mtu), una);
        }
        bench.now += Duration::from_millis(20);
        una += mss as u32;
        bench.arrive(&segment(ACK, IRS + 1, una, &[]));
        bench.drain();
        assert_eq!(bench.conn.info(bench.now).snd_mss as usize, mss, "round {round}");
    }
    assert_eq!(bench.observe.counters.tcp_mtu_reduced, 0);
}

#[test]
fn keep_alive_probes_an_idle_peer_and_gives_up() {
    let keep_alive = crate::config::KeepAlive {
        idle: Duration::from_secs(10),
        interval: Duration::from_secs(2),
        count: 3,
        ..Default::default()
    };
    let mut bench = Bench::active(ConnConfig { keep_alive: Some(keep_alive), ..config() });
    bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
    bench.drain();
    let start = bench.now;
    let mut probes = Vec::new();
    while bench.conn.state() == State::Established {
        bench.now = bench.conn.next_deadline().unwrap().0;
        bench.conn.on_timeout(ctx!(bench));
        for sent in bench.drain().iter().filter(|sent| sent.reason == SendReason::KeepAlive) {
            assert_eq!((sent.seq, sent.len), (ISS, 0), "SEG.SEQ = SND.NXT - 1");
            probes.push(bench.now.since(start).as_millis());
        }
    }
    assert_eq!(probes, [10_000, 12_000, 14_000]);
    assert_eq!(bench.conn.error(), Some(ConnError::TimedOut));
    assert_eq!(bench.now.since(start).as_millis(), 16_000);
}

/// A path that works for 2 s of every 5 s: probes at distances of 10 s would meet the same phase
/// again and again.
#[test]
fn spread_probes_find_the_phase_in_which_a_path_works() {
    let seconds = Duration::from_secs;
    let probes = |keep_alive: crate::config::KeepAlive| {
        let mut bench = Bench::active(ConnConfig { keep_alive: Some(keep_alive), ..config() });
        bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
        bench.drain();
        let start = bench.now;
        let mut probes = Vec::new();
        while let Some((at, WakeReason::KeepAlive)) = bench.conn.next_deadline() {
            bench.now = at;
            bench.conn.on_timeout(ctx!(bench));
            bench.drain();
            if bench.conn.state() == State::Established {
                probes.push(at.since(start).as_millis());
            }
        }
        (probes, bench.conn.state())
    };
    let equal =
        crate::config::KeepAlive { idle: seconds(60), interval: seconds(10), count: 6, ..Default::default() };
    let spread = crate::config::KeepAlive { spread: seconds(5), ..equal };
    let works = |probes: &[u64], begin: u64| probes.iter().any(|at| (at + begin) % 5_000 < 2_000);
    let (at, end) = probes(equal);
    assert_eq!((at.len(), end), (6, State::Closed));
    assert!(!works(&at, 2_000), "they all meet a broken path");
    let (at, end) = probes(spread);
    assert_eq!((at.len(), at[0], end), (6, 60_000, State::Closed));
    for begin in 0..5_000 {
        assert!(works(&at, begin), "{begin}: {at:?}");
    }
    // Without a limit the connection stays, and the probes end.
    let (at, end) = probes(crate::config::KeepAlive { count: 0, ..spread });
    assert_eq!((at.len(), end), (255, State::Established));
    assert!(
        at.is_sorted() && at.windows(2).all(|pair| (5_000..=15_000).contains(&(pair[1] - pair[0]))),
        "{at:?}"
    );
}

/// A peer that sends a byte now and then keeps no memory that it does not fill.
#[test]
fn a_busy_connection_gives_back_what_it_does_not_need() {
    // A ring, and a block that one byte holds.
    for (size, left) in [(1_000, 0), (40_000, 1)] {
        let mut bench = Bench::in_state(State::Established);
        let before = bench.conn.memory();
        for at in (0..40_000).step_by(size) {
            bench.arrive(&segment(ACK, IRS + 1 + at, ISS + 1, &[1; 40_000][..size]));
        }
        bench.conn.consume(ctx!(bench), 40_000 - left);
        bench.drain();
        let began = bench.now;
        assert!(bench.conn.memory() >= before + 65_536);
        for at in 0.. {
            bench.now += Duration::from_millis(500);
            if bench.conn.next_deadline().is_some_and(|(at, _)| at <= bench.now) {
                bench.conn.on_timeout(ctx!(bench));
            }
            bench.arrive(&segment(ACK, IRS + 40_001 + at, ISS + 1, &[1]));
            bench.conn.consume(ctx!(bench), usize::from(at % 2 == 1));
            bench.drain();
            if bench.conn.memory() <= before + 256 {
                break;
            }
            assert!(
                bench.now.since(began) < Duration::from_secs(11),
                "it holds {:?}",
                bench.conn.info(bench.now)
            );
        }
        assert!(bench.now.since(began) >= Duration::from_secs(9), "and not at the first opportunity");
    }
}

#[test]
fn an_idle_connection_gives_its_receive_buffer_back() {
    let mut bench = Bench::in_state(State::Established);
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, b"data"));
    bench.drain();
    let rest = |bench: &mut Bench| {
        while let Some((at, _)) = bench.conn.next_deadline() {
            bench.now = bench.now.max(at);
            bench.conn.on_timeout(ctx!(bench));
            bench.drain();
        }
    };
    rest(&mut bench);
    assert_eq!(bench.conn.peek()[0], b"data", "not what is unread");

    bench.arrive(&segment(ACK, IRS + 5, ISS + 1, b"more"));
    bench.conn.consume(ctx!(bench), 8);
    let arrived = bench.now;
    assert!(bench.conn.rcv.has_spare_memory());
    rest(&mut bench);
    assert!(!bench.conn.rcv.has_spare_memory());
    assert_eq!(bench.now.since(arrived), Duration::from_secs(1));
}
