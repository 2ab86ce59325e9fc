//! What rate-based congestion control is told: each lost transmission, what was in flight with a
//! sampled one, restarts from idle, and when the application limits the flow (draft-ietf-ccwg-bbr,
//! section 4.1). The RTT is 100 ms.

use super::bench::{Bench, SMSS, Setup, ms};
use crate::events::WakeReason;
use crate::info::Blocked;
use crate::policy::cc::{FlowView, LostRecord, Pacing, RateSample, Restart, SentSegment, Validation};
use crate::units::Rate;
use std::vec::Vec;

fn losses(bench: &Bench) -> Vec<(u32, u32, u32, u32)> {
    let script = bench.script.lock().unwrap();
    let shown =
        |lost: &LostRecord| (Bench::offset(lost.seq), lost.len, lost.tx_in_flight, lost.lost_since_sent);
    script.lost.iter().map(shown).collect()
}

fn last_sample(bench: &Bench) -> (FlowView, RateSample) {
    let script = bench.script.lock().unwrap();
    let (view, sample) = script.acks.last().unwrap();
    (*view, sample.rate.unwrap())
}

/// `n` segments are out, one every millisecond from 1.000 s on.
fn out(setup: Setup, n: u32) -> Bench {
    let mut bench = Setup { cwnd: Some(100), ..setup }.open();
    for _ in 0..n {
        bench.write(SMSS);
        assert_eq!(bench.drain().len(), 1);
        bench.pass(ms(1));
    }
    bench
}

#[test]
fn each_lost_record_is_told_with_the_flight_it_left_in() {
    let mut bench = out(Setup::rack(), 10);
    bench.pass(ms(93));
    // The first three of ten are missing.
    bench.sack(0, &[(3000, 6000)]);
    let first = [(0, 1000, 1000, 1000), (1000, 1000, 2000, 2000), (2000, 1000, 3000, 3000)];
    assert_eq!(losses(&bench), first);
    let (view, rate) = last_sample(&bench);
    // The newest that has arrived is the sixth: six were out with it, and three were lost since.
    assert_eq!((rate.tx_in_flight, rate.lost, rate.prior_delivered), (6000, 3000, 0));
    assert!(view.has_sack);
    // The repairs leave, and are lost, too: each transmission is told once.
    assert_eq!(bench.drain().len(), 3);
    bench.pass(ms(5));
    bench.sack(0, &[(3000, 10_000)]);
    bench.pass(ms(96));
    bench.write(SMSS);
    bench.drain();
    bench.pass(ms(101));
    bench.sack(0, &[(10_000, 11_000), (3000, 10_000)]);
    // Four segments were out before the first repair.
    let again = [(0, 1000, 5000, 1000), (1000, 1000, 6000, 2000), (2000, 1000, 7000, 3000)];
    assert_eq!(losses(&bench)[3..], again);
}

#[test]
fn a_timeout_tells_of_everything_that_it_gives_up() {
    let mut bench = out(Setup::default(), 3);
    while bench.fire() != WakeReason::Rto {}
    let told = losses(&bench);
    assert_eq!(told.iter().map(|lost| lost.0).collect::<Vec<_>>(), [0, 1000, 2000]);
    // What left again since is lost again.
    assert_eq!(bench.drain().len(), 3);
    while bench.fire() != WakeReason::Rto {}
    let again = [(0, 1000, 1000, 1000), (1000, 1000, 2000, 2000), (2000, 1000, 3000, 3000)];
    assert_eq!(losses(&bench)[3..], again);
}

#[test]
fn a_departure_tells_what_was_in_flight_before() {
    let mut bench = out(Setup::rack(), 2);
    bench.pass(ms(100));
    bench.ack(2000);
    bench.write(SMSS);
    bench.drain();
    let sent: Vec<u32> =
        bench.script.lock().unwrap().sent.iter().map(|sent: &SentSegment| sent.prior_pipe).collect();
    assert_eq!(sent, [0, 1000, 0]);
}

/// One segment per 10 ms: until the next slot of the pacer, an application that has written nothing
/// is not what limits the flow.
#[test]
fn a_paced_flow_is_limited_by_the_application_from_its_next_slot_on() {
    let limited_after = |pause| {
        let mut bench = Setup { cwnd: Some(100), ..Setup::rack() }.open();
        bench.decide(|decision| decision.pacing = Pacing::AtRate(Rate::from_bytes_per_second(100_000)));
        bench.write(SMSS);
        assert_eq!((bench.drain().len(), bench.blocked()), (1, Blocked::App));
        assert!(!bench.info().app_limited, "the slot has not come");
        bench.pass(ms(pause));
        bench.write(SMSS);
        bench.drain();
        bench.pass(ms(10));
        bench.drain();
        bench.pass(ms(100));
        bench.ack(2000);
        last_sample(&bench).1.app_limited
    };
    assert!(!limited_after(5), "it wrote before the slot");
    assert!(!limited_after(10), "it wrote at the slot");
    assert!(limited_after(11), "the slot passed unused");
}

#[test]
fn a_window_that_the_pace_validates_is_not_restarted() {
    for (validation, of_the_core, restarts) in [
        (Validation::ByUse, true, 1),
        (Validation::ByUse, false, 0),
        (Validation::ByPhase, false, 1),
        (Validation::ByPace, true, 0),
    ] {
        let mut setup = Setup::rack();
        setup.config.restart_after_idle = of_the_core;
        let mut bench = out(setup, 1);
        bench.decide(|decision| decision.validation = validation);
        bench.pass(ms(100));
        bench.ack(1000);
        bench.pass(ms(20_000));
        bench.write(SMSS);
        bench.drain();
        let told: Vec<Restart> = bench.script.lock().unwrap().restarts.clone();
        assert_eq!(told.len(), restarts, "{validation:?}");
    }
}

#[test]
fn a_quantum_leaves_in_one_run() {
    let mut bench = Setup { cwnd: Some(100), ..Setup::rack() }.open();
    bench.max_payload = 10 * SMSS;
    bench.decide(|decision| decision.pacing = Pacing::AtRate(Rate::from_bytes_per_second(100_000)));
    bench.write(20 * SMSS);
    assert_eq!(bench.step().unwrap().1, SMSS, "by the driver's resolution");
    bench.decide(|decision| decision.quantum = 2_999);
    bench.pass(ms(10));
    assert_eq!(bench.step().unwrap().1, 2 * SMSS, "whole segments");
    bench.pass(ms(19));
    assert_eq!(bench.step(), None, "the gap is that of both");
}
