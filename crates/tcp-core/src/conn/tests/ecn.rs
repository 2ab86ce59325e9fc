//! ECN on a connection: what the SYNs negotiate (RFC 3168, section 6.1.1), which packets are
//! ECN-capable, and the echo on the wire.

use super::*;
use crate::config::Ecn as Mode;
use crate::info::Info;

const ECE: TcpFlags = TcpFlags::ECE;
const CWR: TcpFlags = TcpFlags::CWR;
const SETUP: TcpFlags = TcpFlags::SYN.union(ECE).union(CWR);
const MODES: [Mode; 2] = [Mode::Classic, Mode::Dctcp];

fn with_ecn(ecn: Mode) -> ConnConfig {
    ConnConfig { ecn, ..config() }
}

fn syn_of(ecn: Mode) -> (Bench, TcpFlags) {
    let mut bench = Bench::with(|ctx| Connection::connect(ctx, tuple(), Arc::new(with_ecn(ecn)), ISS, 0));
    let flags = bench.drain()[0].flags;
    (bench, flags)
}

fn syn_ack_of(ecn: Mode, syn: TcpFlags) -> (Bench, TcpFlags) {
    let syn = segment(syn, IRS, SeqNum(0), &[]);
    let mut bench = Bench::with(|ctx| accepted(ctx, Arc::new(with_ecn(ecn)), 0, &syn));
    let flags = bench.drain()[0].flags;
    (bench, flags)
}

fn in_use(bench: &Bench) -> Mode {
    let mut info = Info::empty(bench.conn.state(), tuple().local(), tuple().remote());
    bench.conn.rcv.info(&mut info);
    info.ecn
}

/// The ECN field of a segment of data that the connection sends.
fn codepoint(bench: &mut Bench) -> Ecn {
    bench.conn.write(b"data").expect("the connection is open");
    let sent = bench.drain();
    let data = sent.iter().find(|sent| sent.len > 0).expect("the window is open");
    assert!(sent.iter().all(|sent| sent.len > 0 || sent.ecn == Ecn::NotEct), "{sent:?}");
    data.ecn
}

#[test]
fn an_active_open_asks_and_takes_the_answer() {
    assert_eq!(syn_of(Mode::Off).1, SYN);
    let table = [
        (SYN | ACK | ECE, true),
        (SYN | ACK, false),
        // A host that reflects bits that it does not know.
        (SYN | ACK | ECE | CWR, false),
        (SYN | ACK | CWR, false),
    ];
    for mode in MODES {
        for (answer, agreed) in table {
            let (mut bench, syn) = syn_of(mode);
            assert_eq!(syn, SETUP);
            bench.arrive(&segment(answer, IRS, ISS + 1, &[]));
            let ack = bench.drain();
            assert_eq!((ack[0].flags, ack[0].ecn), (ACK, Ecn::NotEct));
            assert_eq!(in_use(&bench), if agreed { mode } else { Mode::Off }, "{answer:?}");
            assert_eq!(codepoint(&mut bench), if agreed { Ecn::Ect0 } else { Ecn::NotEct }, "{answer:?}");
        }
    }
    // Not asked for, and answered all the same.
    let (mut bench, _) = syn_of(Mode::Off);
    bench.arrive(&segment(SYN | ACK | ECE, IRS, ISS + 1, &[]));
    assert_eq!((in_use(&bench), codepoint(&mut bench)), (Mode::Off, Ecn::NotEct));
}

#[test]
fn a_passive_open_agrees_where_it_is_asked() {
    let table = [
        (Mode::Classic, SETUP, true),
        (Mode::Dctcp, SETUP, true),
        (Mode::Off, SETUP, false),
        (Mode::Classic, SYN, false),
        (Mode::Classic, SYN | ECE, false),
        (Mode::Classic, SYN | CWR, false),
        // Accurate ECN (RFC 9768, section 3.1.1) falls back to classic.
        (Mode::Classic, SETUP | TcpFlags::AE, true),
    ];
    for (mode, syn, agreed) in table {
        let (mut bench, answer) = syn_ack_of(mode, syn);
        assert_eq!(answer, if agreed { SYN | ACK | ECE } else { SYN | ACK }, "{mode:?} {syn:?}");
        bench.arrive(&segment(ACK, IRS + 1, ISS + 1, &[]));
        assert_eq!(in_use(&bench), if agreed { mode } else { Mode::Off }, "{mode:?} {syn:?}");
        assert_eq!(codepoint(&mut bench) == Ecn::Ect0, agreed, "{mode:?} {syn:?}");
    }
}

#[test]
fn a_syn_without_answer_is_sent_again_without_ecn() {
    let (mut bench, _) = syn_of(Mode::Classic);
    bench.now += Duration::from_secs(1);
    bench.conn.on_timeout(ctx!(bench));
    assert_eq!(bench.drain()[0].flags, SYN);
    // The answer to the first SYN was late: marks are echoed, but RFC 3168, section 6.1.1, forbids
    // to set ECT.
    bench.arrive(&segment(SYN | ACK | ECE, IRS, ISS + 1, &[]));
    assert_eq!(in_use(&bench), Mode::Classic);
    assert_eq!(codepoint(&mut bench), Ecn::NotEct);
}

#[test]
fn a_peer_that_gives_up_on_ecn_gets_none() {
    let (mut bench, answer) = syn_ack_of(Mode::Classic, SETUP);
    assert_eq!(answer, SYN | ACK | ECE);
    bench.arrive(&segment(SYN, IRS, SeqNum(0), &[]));
    assert_eq!(bench.drain()[0].flags, SYN | ACK);
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, &[]));
    // It still echoes marks, in case the peer has received the acceptance.
    assert_eq!((in_use(&bench), codepoint(&mut bench)), (Mode::Classic, Ecn::NotEct));
}

#[test]
fn a_syn_ack_that_is_lost_keeps_its_ece() {
    let (mut bench, _) = syn_ack_of(Mode::Dctcp, SETUP);
    bench.arrive(&segment(SETUP, IRS, SeqNum(0), &[]));
    assert_eq!(bench.drain()[0].flags, SYN | ACK | ECE);
}

#[test]
fn a_simultaneous_open_agrees() {
    let (mut bench, _) = syn_of(Mode::Classic);
    bench.arrive(&segment(SETUP, IRS, SeqNum(0), &[]));
    assert_eq!(bench.drain()[0].flags, SYN | ACK | ECE);
    bench.arrive(&segment(SYN | ACK | ECE, IRS, ISS + 1, &[]));
    assert_eq!((in_use(&bench), codepoint(&mut bench)), (Mode::Classic, Ecn::Ect0));
}

/// An established connection with ECN in use.
fn agreed(mode: Mode) -> Bench {
    let (mut bench, _) = syn_ack_of(mode, SETUP);
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, &[]));
    bench.drain();
    bench
}

/// `n` segments of data arrive from `offset` on, with CE if `marked`.
fn data(bench: &mut Bench, offset: u32, n: u32, marked: bool, flags: TcpFlags) {
    let payload = [0; 500];
    for i in 0..n {
        let seg = segment(ACK | flags, IRS + 1 + offset + 500 * i, ISS + 1, &payload);
        bench.arrive_marked(&seg, if marked { Ecn::Ce } else { Ecn::Ect0 });
    }
}

fn echoes(bench: &mut Bench) -> Vec<(u32, bool)> {
    bench.drain().iter().map(|sent| (sent.ack.distance_from(IRS + 1), sent.flags.contains(ECE))).collect()
}

#[test]
fn a_classic_mark_is_echoed_until_cwr() {
    let mut bench = agreed(Mode::Classic);
    data(&mut bench, 0, 3, true, TcpFlags::NONE);
    assert_eq!(echoes(&mut bench), [(1500, true)]);
    data(&mut bench, 1500, 3, false, TcpFlags::NONE);
    assert_eq!(echoes(&mut bench), [(3000, true)]);
    bench.conn.write(b"data").unwrap();
    assert_eq!(echoes(&mut bench), [(3000, true)], "data carries it too");
    data(&mut bench, 3000, 3, false, CWR);
    assert_eq!(echoes(&mut bench), [(4500, false)]);
}

#[test]
fn a_mark_outside_the_window_is_ignored() {
    for mode in MODES {
        let mut bench = agreed(mode);
        data(&mut bench, 0, 2, false, TcpFlags::NONE);
        echoes(&mut bench);
        data(&mut bench, 0, 1, true, TcpFlags::NONE);
        assert!(echoes(&mut bench).iter().all(|(_, ece)| !ece), "{mode:?}");
    }
}

#[test]
fn dctcp_tells_each_run_apart_and_at_once() {
    let mut bench = agreed(Mode::Dctcp);
    data(&mut bench, 0, 1, false, TcpFlags::NONE);
    assert_eq!(echoes(&mut bench), [], "an ACK is held back");
    data(&mut bench, 500, 1, true, TcpFlags::NONE);
    assert_eq!(echoes(&mut bench), [(500, false), (1000, true)]);
    data(&mut bench, 1000, 1, true, TcpFlags::NONE);
    assert_eq!(echoes(&mut bench), []);
    data(&mut bench, 1500, 1, false, TcpFlags::NONE);
    assert_eq!(echoes(&mut bench), [(1500, true), (2000, false)]);
}

#[test]
fn acks_that_tell_runs_apart_never_take_window_back() {
    let mut bench = agreed(Mode::Dctcp);
    let mut edge = SeqNum(0);
    for i in 0..40 {
        data(&mut bench, 500 * i, 1, i % 3 == 0, TcpFlags::NONE);
        for sent in bench.drain() {
            let shift = bench.conn.rcv.wscale();
            let shown = sent.ack + (u32::from(sent.window) << shift);
            assert!(i == 0 || shown.ge(edge), "segment {i}");
            edge = shown;
        }
    }
}

#[test]
fn a_reduction_is_confirmed_by_cwr_on_new_data_alone() {
    let mut bench = agreed(Mode::Classic);
    bench.conn.write(&[0; 20_000]).unwrap();
    let first = bench.drain();
    assert!(first.len() > 2 && first.iter().all(|sent| sent.ecn == Ecn::Ect0));
    bench.arrive(&segment(ACK | ECE, IRS + 1, first[0].seq + first[0].len, &[]));
    let mut acked = 1;
    let next = loop {
        if let Some(sent) = bench.drain().first() {
            break sent.clone();
        }
        bench.arrive(&segment(ACK, IRS + 1, first[acked].seq + first[acked].len, &[]));
        acked += 1;
    };
    assert!(next.flags.contains(CWR) && next.ecn == Ecn::Ect0, "{next:?}");
    // Three duplicates bring a retransmission.
    let una = first[acked - 1].seq + first[acked - 1].len;
    for _ in 0..3 {
        bench.arrive(&segment(ACK, IRS + 1, una, &[]));
    }
    let again = bench.drain().into_iter().find(|sent| sent.reason == SendReason::FastRetransmit).unwrap();
    assert_eq!((again.seq, again.ecn), (una, Ecn::NotEct), "RFC 3168, section 6.1.5");
}
