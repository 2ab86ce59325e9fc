//! ECE at the sender: one reduction per window of data, and the CWR that tells of it.

use super::bench::{Bench, SMSS, Setup, ms};
use crate::config::Ecn;
use crate::policy::cc::{CongestionEvent, EcnUse, Phase, Reaction};
use crate::snd::ecn::EcnSender;
use crate::snd::ecn::agreement::EcnAgreement;
use alloc::boxed::Box;

/// Ten segments are out, fifty wait, and ECN is in use.
fn ten_out() -> Bench {
    let mut bench = Setup::default().open();
    let agreed = EcnAgreement::new(Ecn::Classic, true);
    bench.snd.stream.ecn = Some(Box::new(EcnSender::new(&agreed, bench.snd.stream.una)));
    bench.write(60 * SMSS);
    assert_eq!(bench.drain().len(), 10);
    bench.pass(ms(100));
    bench
}

fn ece(bench: &mut Bench, ack: u32, blocks: &[(u32, u32)]) {
    let mut segment = bench.segment(ack, blocks);
    segment.ece = true;
    bench.take(&segment);
}

fn cwr_due(bench: &Bench) -> bool {
    bench.snd.ecn().is_some_and(|ecn| ecn.cwr_due)
}

#[test]
fn one_reduction_per_window_until_cwr_is_answered() {
    let mut bench = ten_out();
    ece(&mut bench, 1000, &[]);
    assert_eq!(bench.events(), [CongestionEvent::Ecn]);
    assert!(cwr_due(&bench));
    // The window of that reduction ends at 10,000; the segment there carries CWR.
    assert_eq!(bench.offsets(), [10_000]);
    assert!(!cwr_due(&bench), "CWR left with the first new data");
    for ack in 2..=10 {
        ece(&mut bench, ack * 1000, &[]);
        assert_eq!(bench.events().len(), 1, "the echo goes on until the peer sees CWR ({ack})");
        bench.drain();
    }
    ece(&mut bench, 11_000, &[]);
    assert_eq!(bench.events().len(), 2, "what left after CWR was marked");
    assert!(cwr_due(&bench));
    assert_eq!(bench.observe.counters.tcp_ecn_reductions, 2);
    assert_eq!((bench.info().ece_received, bench.info().delivered_ce), (11, 11));
}

#[test]
fn a_retransmission_carries_no_cwr() {
    let mut bench = ten_out();
    bench.sack(0, &[(1000, 5000)]);
    bench.set_cwnd(1);
    assert_eq!(bench.offsets(), [0]);
    assert!(cwr_due(&bench), "loss reduced the window, and no new data left");
    bench.ack(5000);
    bench.set_cwnd(10);
    assert_eq!(bench.offsets()[0], 10_000);
    assert!(!cwr_due(&bench));
}

#[test]
fn loss_in_a_reduced_window_does_not_reduce_again() {
    let mut bench = ten_out();
    ece(&mut bench, 1000, &[]);
    bench.sack(1000, &[(2000, 6000)]);
    assert_eq!(bench.info().ca_state, Phase::Recovery, "what is lost is sent again");
    assert_eq!(bench.events(), [CongestionEvent::Ecn]);
    assert_eq!(
        bench.script.lock().unwrap().checkpoints,
        1,
        "an undo must not restore what was before the mark"
    );
    assert!(bench.offsets().contains(&1000));
}

#[test]
fn ece_in_recovery_does_not_reduce_again() {
    let mut bench = ten_out();
    bench.sack(0, &[(1000, 5000)]);
    let loss = [CongestionEvent::Loss { prior_pipe: 10 * SMSS }];
    assert_eq!(bench.events(), loss);
    ece(&mut bench, 5000, &[]);
    assert_eq!(bench.events(), loss);
    bench.drain();
    // The recovery point, and what left before CWR, are acknowledged.
    ece(&mut bench, 10_000, &[]);
    assert_eq!((bench.info().ca_state, bench.events().len()), (Phase::Open, 1));
}

#[test]
fn loss_of_a_later_window_reduces() {
    let mut bench = ten_out();
    ece(&mut bench, 1000, &[]);
    bench.ack(10_000);
    bench.drain();
    bench.sack(10_000, &[(11_000, 15_000)]);
    assert_eq!(bench.events().len(), 2);
}

#[test]
fn an_old_ack_and_one_without_ecn_say_nothing() {
    let mut bench = ten_out();
    bench.ack(5000);
    ece(&mut bench, 4000, &[]);
    assert!(bench.events().is_empty());

    bench.snd.stream.ecn = None;
    ece(&mut bench, 6000, &[]);
    assert!(bench.events().is_empty());
    let script = bench.script.lock().unwrap();
    assert!(script.acks.iter().all(|(_, ack)| !ack.ece && ack.ce == 0));
}

#[test]
fn a_timeout_reduces_whatever_ece_did() {
    let mut bench = ten_out();
    ece(&mut bench, 1000, &[]);
    bench.offsets();
    bench.fire();
    assert!(matches!(bench.events()[..], [CongestionEvent::Ecn, CongestionEvent::Timeout { .. }]));
    assert!(cwr_due(&bench));
}

#[test]
fn congestion_control_that_takes_every_ack_reduces_itself() {
    let mut bench = ten_out();
    bench.decide(|decision| decision.ecn = EcnUse::PerAck);
    bench.script.lock().unwrap().reaction = Reaction::Reduced;
    ece(&mut bench, 1000, &[]);
    assert!(bench.events().is_empty());
    {
        let script = bench.script.lock().unwrap();
        let (_, ack) = script.acks.last().unwrap();
        assert_eq!((ack.ece, ack.ce, ack.acked), (true, SMSS, SMSS));
    }
    assert!(cwr_due(&bench));
    // Loss is told all the same.
    bench.script.lock().unwrap().reaction = Reaction::None;
    bench.sack(1000, &[(2000, 6000)]);
    assert!(matches!(bench.events()[..], [CongestionEvent::Loss { .. }]));
}
