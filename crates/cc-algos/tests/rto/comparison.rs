//! The five responses on the worked example 7.2: 20 packets are stalled, none is lost, and the path
//! keeps their order.

use crate::bench::{Bench, Setup};
use ackline_tcp_core::policy::rto::{RtoPhase, RtoVerdict};
use std::collections::VecDeque;

/// A timeout comes, and then the ACKs of the originals; they echo the originals' timestamps.
fn stalled(rto: &'static str, timestamps: bool) -> Bench {
    let mut bench = Setup { rto, timestamps, tune: |_| {}, ..Setup::default() }.open();
    bench.pass(crate::bench::ms(5));
    bench
}

fn names(packets: &[u32]) -> Vec<String> {
    packets.iter().map(|packet| format!("P{packet}")).collect()
}

fn again(packets: &[u32]) -> Vec<String> {
    packets.iter().map(|packet| format!("P{packet}r1")).collect()
}

/// Every packet sent again was one too many: nothing is lost.
fn redundant(bench: &mut Bench) -> u64 {
    bench.retransmitted()
}

#[test]
fn go_back_n_sends_all_20_again() {
    for rto in ["go-back-n", "conventional"] {
        let mut bench = stalled(rto, false);
        assert_eq!(bench.rto(), ["P1r1"]);
        assert_eq!(bench.state(), (1, 10, 1));
        for ack in 1..=9 {
            assert_eq!(bench.ack(ack).arrives(), again(&[2 * ack, 2 * ack + 1]), "A({ack})");
        }
        assert_eq!(bench.ack(10).arrives(), again(&[20]));
        assert_eq!(bench.ack(11).arrives(), names(&[21]));
        assert_eq!(redundant(&mut bench), 20);
        assert_eq!(bench.state().1, 10);
    }
}

#[test]
fn frto_sends_one_again() {
    let mut bench = stalled("frto", false);
    assert_eq!(bench.rto(), ["P1r1"]);
    assert_eq!(bench.state(), (1, 10, 1));
    assert_eq!(bench.ack(1).arrives(), names(&[21, 22]), "step 2b");
    assert_eq!(bench.ack(2).arrives(), names(&[23]), "FlightSize 20, window 21");
    assert_eq!(bench.state(), (21, 40, 21));
    assert_eq!((bench.phase(), bench.verdicts()), (RtoPhase::Open, vec![RtoVerdict::Spurious]));
    for ack in 3..=20 {
        assert!(bench.ack(ack).arrives().iter().all(|name| !name.contains('r')));
    }
    assert_eq!(redundant(&mut bench), 1);
}

#[test]
fn frto_of_2002_halves() {
    let mut bench = stalled("frto:response=halve", false);
    assert_eq!(bench.rto(), ["P1r1"]);
    assert_eq!(bench.ack(1).arrives(), names(&[21, 22]));
    assert_eq!(bench.ack(2).arrives(), names(&[]), "20 are in the network, 10 may be");
    assert_eq!(bench.state(), (10, 10, 20));
}

#[test]
fn eifel_sends_one_again() {
    let mut bench = stalled("eifel", true);
    assert_eq!(bench.rto(), ["P1r1"]);
    let original = bench.tsval(1, 0);
    assert_eq!(bench.ack(1).tsecr(original).arrives(), names(&[21]));
    assert_eq!(bench.state(), (20, 40, 20), "FlightSize 19 + 1");
    assert_eq!((bench.phase(), bench.verdicts()), (RtoPhase::Open, vec![RtoVerdict::Spurious]));
    for ack in 2..=20 {
        assert!(bench.ack(ack).tsecr(original).arrives().iter().all(|name| !name.contains('r')));
    }
    assert_eq!(redundant(&mut bench), 1);
}

#[test]
fn eifel_of_2002_restores_all() {
    let mut bench = stalled("eifel:restore=full", true);
    assert_eq!(bench.rto(), ["P1r1"]);
    let original = bench.tsval(1, 0);
    bench.ack(20).tsecr(original).arrives();
    assert_eq!(
        bench.verdicts(),
        [RtoVerdict::Lossy],
        "an ACK of everything proves nothing (RFC 3522, section 3.3)"
    );
    // One that covers most of the window opens as large a burst.
    let mut bench = stalled("eifel:restore=full", true);
    bench.rto();
    let left = bench.ack(15).tsecr(original).arrives();
    assert_eq!(left, names(&(21..=35).collect::<Vec<_>>()));
    assert_eq!(bench.state(), (20, 40, 20));
}

#[test]
fn linux_takes_it_back_by_timestamps_dsack_or_frto() {
    // Timestamps: the first ACK is enough.
    let mut bench = stalled("linux", true);
    assert_eq!(bench.rto(), ["P1r1"]);
    assert_eq!(bench.state(), (1, 10, 1));
    let original = bench.tsval(1, 0);
    assert_eq!(bench.ack(1).tsecr(original).arrives(), names(&[21, 22]));
    assert_eq!((bench.state().0, bench.state().1), (21, 40), "restored, and the ACK counts as any other");
    assert_eq!(redundant(&mut bench), 1);
    assert_eq!(bench.endpoint.counters().tcp_loss_undo, 1);

    // F-RTO without timestamps: new data is sent after the first ACK, the second one decides.
    let mut bench = stalled("linux", false);
    assert_eq!(bench.rto(), ["P1r1"]);
    assert_eq!(bench.ack(1).arrives(), names(&[21, 22]));
    bench.ack(2).arrives();
    assert_eq!((bench.state().0, bench.state().1, bench.phase()), (21, 40, RtoPhase::Open));
    assert_eq!(redundant(&mut bench), 1);

    // And if the first ACK covers more than the head, at once.
    let mut bench = stalled("linux", false);
    assert_eq!(bench.rto(), ["P1r1"]);
    assert_eq!(bench.ack(2).arrives().first().map(String::as_str), Some("P21"));
    assert_eq!(bench.verdicts(), [RtoVerdict::Spurious]);
    assert_eq!(bench.state().1, 40);

    // Neither: DSACKs for every retransmission.
    let mut bench = stalled("linux:frto=off", false);
    assert_eq!(bench.rto(), ["P1r1"]);
    assert_eq!(bench.ack(1).arrives(), again(&[2, 3]));
    assert_eq!(bench.ack(20).arrives().len(), 11, "slow start");
    assert_eq!(bench.ack(20).sack(1, 1).arrives(), names(&[]));
    assert_eq!((bench.state().0, bench.state().1), (11, 10), "one of three");
    assert_eq!(bench.ack(20).sack(2, 3).arrives().len(), 20 - 11, "the window of 20 is back");
    assert_eq!((bench.state().0, bench.state().1), (20, 40));
    assert_eq!(bench.verdicts(), [RtoVerdict::Spurious]);
}

#[test]
fn linux_keeps_a_reduction_that_was_due() {
    // Everything was lost: ACKs answer the retransmissions.
    for timestamps in [false, true] {
        let mut bench = stalled("linux", timestamps);
        assert_eq!(bench.rto(), ["P1r1"]);
        bench.pass(crate::bench::ms(50));
        let copy = bench.tsval(1, 1);
        assert_eq!(bench.ack(1).tsecr(copy).arrives(), names(&[21, 22]), "F-RTO's test");
        let new = bench.tsval(21, 0);
        assert_eq!(bench.ack(1).sack(21, 21).tsecr(new).arrives(), again(&[2]));
        assert_eq!(bench.ack(1).sack(21, 22).tsecr(new).arrives(), again(&[3]));
        assert_eq!(bench.state().1, 10);
        assert_eq!(bench.verdicts(), [RtoVerdict::Lossy]);
    }
}

/// RFC 5682, section 2.1, step 3a: without SACK everything that is not acknowledged goes again,
/// also what F-RTO sent to find out. Or else each timeout leaves two segments behind that only the
/// next one repairs.
#[test]
fn a_peer_that_keeps_nothing_out_of_order_costs_one_timeout() {
    for rto in ["linux", "frto"] {
        let setup = Setup { rto, sack: false, cwnd: 8, tune: |_| {}, ..Setup::default() };
        let mut bench = setup.open();
        let (mut expected, mut timeouts, mut arriving) = (1, 0, VecDeque::new());
        while expected <= 60 {
            let Some(name): Option<String> = arriving.pop_front() else {
                timeouts += 1;
                arriving.extend(bench.rto());
                continue;
            };
            let packet = name.trim_start_matches('P').split('r').next().map(str::parse::<u32>);
            expected += u32::from(packet == Some(Ok(expected)));
            bench.pass(crate::bench::ms(1));
            arriving.extend(bench.ack(expected - 1).arrives());
        }
        assert_eq!(timeouts, 1, "{rto}");
    }
}

#[test]
fn dclor_sends_nothing_again() {
    let mut bench = stalled("dclor", false);
    assert_eq!(bench.rto(), ["P21"]);
    for ack in 1..=20 {
        assert_eq!(bench.ack(ack).arrives(), names(&[]));
    }
    assert_eq!(bench.ack(21).arrives(), names(&[22, 23]));
    assert_eq!(redundant(&mut bench), 0);
}
