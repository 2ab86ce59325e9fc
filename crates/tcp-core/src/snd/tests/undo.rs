//! Taking back a fast recovery that was needless: RFC 3522's test by timestamps, and DSACK. And PRR
//! in a connection.

use super::bench::{Bench, SMSS, Setup, ms};
use crate::packet::SendReason::FastRetransmit;
use crate::policy::cc::{Phase, Recovery, Undo};
use crate::snd::AckSegment;
use std::vec::Vec;

/// Ten segments left at 1.000 s; at 1.101 s four of them are SACKed, and the first one is
/// retransmitted at 1.102 s.
fn recovering(dupack: bool, undo: bool) -> Bench {
    let mut setup = if dupack { Setup::default() } else { Setup::rack() };
    setup.cwnd = Some(20);
    setup.config.undo = undo;
    let mut bench = setup.open();
    bench.write(10 * SMSS);
    bench.drain();
    bench.pass(ms(101));
    bench.sack(0, &[(1000, 5000)]);
    bench.pass(ms(1));
    assert_eq!(bench.step(), Some((0, 1000, FastRetransmit)));
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    bench.pass(ms(20));
    bench
}

fn echoing(bench: &Bench, ack: u32, blocks: &[(u32, u32)], tsecr: u32) -> AckSegment {
    let mut segment = bench.segment(ack, blocks);
    (segment.ts_now, segment.tsecr) = (bench.now.as_millis() as u32, Some(tsecr));
    segment
}

fn undos(bench: &Bench) -> Vec<Undo> {
    bench.script.lock().unwrap().undos.clone()
}

/// The original of the first segment was late.
#[test]
fn an_ack_of_the_original_undoes() {
    for dupack in [false, true] {
        let mut bench = recovering(dupack, true);
        let segment = echoing(&bench, 5000, &[], 1_000);
        bench.take(&segment);
        assert_eq!(undos(&bench), [Undo::All]);
        assert_eq!((bench.info().ca_state, bench.info().lost), (Phase::Open, 0));
        assert_eq!((bench.observe.counters.tcp_partial_undo, bench.observe.counters.tcp_ts_reorder), (1, 1));
        assert_eq!(bench.script.lock().unwrap().checkpoints, 1);
        bench.pass(ms(50));
        let segment = echoing(&bench, 10_000, &[(0, 1000)], 1_000);
        bench.take(&segment);
        assert_eq!(undos(&bench).len(), 1, "once");
    }
}

#[test]
fn an_ack_of_everything_is_a_full_undo() {
    let mut bench = recovering(false, true);
    let segment = echoing(&bench, 10_000, &[], 1_000);
    bench.take(&segment);
    assert_eq!((undos(&bench).len(), bench.observe.counters.tcp_full_undo), (1, 1));
    assert_eq!(bench.script.lock().unwrap().exits, 0, "nothing was to be left");
}

#[test]
fn an_ack_of_the_retransmission_undoes_nothing() {
    let mut bench = recovering(false, true);
    bench.pass(ms(80));
    let segment = echoing(&bench, 10_000, &[], 1_102);
    bench.take(&segment);
    assert_eq!((undos(&bench).len(), bench.info().ca_state), (0, Phase::Open));
    assert_eq!(bench.script.lock().unwrap().exits, 1);
}

/// RFC 7323: TSecr of an ACK that does not advance is that of the last segment in order.
#[test]
fn duplicate_acks_undo_nothing() {
    let mut bench = recovering(false, true);
    let segment = echoing(&bench, 0, &[(1000, 7000)], 1_000);
    bench.take(&segment);
    assert_eq!((undos(&bench).len(), bench.info().ca_state), (0, Phase::Recovery));
}

/// Without timestamps, DSACK tells, even after the end of the recovery.
#[test]
fn dsack_of_every_retransmission_undoes() {
    let mut bench = recovering(false, true);
    bench.ack(10_000);
    assert_eq!((undos(&bench).len(), bench.info().ca_state), (0, Phase::Open));
    bench.pass(ms(80));
    bench.sack(10_000, &[(0, 1000)]);
    assert_eq!(
        (undos(&bench).len(), bench.observe.counters.tcp_dsack_undo),
        (1, 1),
        "with nothing outstanding"
    );
    bench.sack(10_000, &[(0, 1000)]);
    assert_eq!(undos(&bench).len(), 1);
}

#[test]
fn dsack_of_some_retransmissions_does_not() {
    let mut bench = recovering(false, true);
    bench.sack(0, &[(7000, 10_000), (1000, 5000)]);
    assert_eq!(bench.offsets(), [5000, 6000]);
    bench.pass(ms(80));
    bench.sack(5000, &[(0, 1000), (7000, 10_000)]);
    bench.sack(6000, &[(5000, 6000), (7000, 10_000)]);
    assert_eq!(undos(&bench).len(), 0);
    bench.sack(10_000, &[(6000, 7000)]);
    assert_eq!(undos(&bench).len(), 1);
}

#[test]
fn switched_off_nothing_is_undone() {
    let mut bench = recovering(false, false);
    let segment = echoing(&bench, 10_000, &[(0, 1000)], 1_000);
    bench.take(&segment);
    assert!(undos(&bench).is_empty());
}

/// Losses found after the undo begin another episode, with another checkpoint.
#[test]
fn another_loss_after_an_undo_reduces_again() {
    let mut bench = recovering(false, true);
    let segment = echoing(&bench, 5000, &[], 1_000);
    bench.take(&segment);
    bench.pass(ms(100));
    bench.sack(5000, &[(7000, 10_000)]);
    assert_eq!(bench.info().ca_state, Phase::Disorder, "this path reorders");
    assert_eq!(bench.fire(), crate::WakeReason::Reorder);
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    assert_eq!(bench.script.lock().unwrap().checkpoints, 2);
    assert_eq!(bench.offsets(), [5000, 6000]);
}

/// Twenty segments are out, the first is lost, and the window falls to ten.
fn reduced(prr: bool, own: bool) -> Bench {
    let mut setup = Setup { cwnd: Some(20), ..Setup::rack() };
    setup.config.prr = prr;
    let mut bench = setup.open();
    if own {
        bench.decide(|decision| decision.recovery = Recovery::Own);
    }
    bench.write(100 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.set_cwnd(10);
    bench.sack(0, &[(1000, 4000)]);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
    bench
}

/// The bursts that leave while the rest of the flight is reported segment by segment.
fn bursts(bench: &mut Bench) -> Vec<usize> {
    (5..=20)
        .map(|i| {
            bench.sack(0, &[(1000, i * 1000)]);
            bench.drain().len()
        })
        .collect()
}

/// RFC 9937: half of what arrives, from the start; the flight ends at the window.
#[test]
fn prr_sends_in_proportion_from_the_start() {
    let mut bench = reduced(true, false);
    let sent = bursts(&mut bench);
    assert!(sent.iter().all(|burst| *burst <= 1), "{sent:?}");
    assert_eq!(sent[..8].iter().sum::<usize>(), 4, "one for two: {sent:?}");
    let pipe = bench.info().pipe / SMSS;
    assert!((9..=10).contains(&pipe), "{pipe}");
}

/// RFC 6675: nothing while more than the window is in flight.
#[test]
fn without_prr_the_first_half_sends_nothing() {
    for mut bench in [reduced(false, false), reduced(true, true)] {
        let sent = bursts(&mut bench);
        assert_eq!(sent[..6].iter().sum::<usize>(), 0, "{sent:?}");
        assert!(sent[8..].iter().all(|burst| *burst == 1), "{sent:?}");
        assert_eq!(bench.info().pipe, 10 * SMSS);
    }
}

/// Heavy loss: 15 of 20 are lost. PRR sends no burst for what is missing.
#[test]
fn prr_sends_no_burst_after_heavy_loss() {
    let lost = |prr| {
        let mut setup = Setup { cwnd: Some(20), ..Setup::rack() };
        setup.config.prr = prr;
        let mut bench = setup.open();
        bench.write(100 * SMSS);
        bench.drain();
        bench.pass(ms(100));
        bench.set_cwnd(10);
        bench.sack(0, &[(15_000, 20_000)]);
        bench.drain().len()
    };
    assert_eq!(lost(false), 10, "the whole window at once");
    // DeliveredData is 5 segments, and the ACK shows losses: CRB.
    assert_eq!(lost(true), 5);
}

/// A recovery that the reordering timer begins repairs at least one segment.
#[test]
fn prr_lets_the_first_retransmission_of_a_timer_leave() {
    let mut setup = Setup { cwnd: Some(2), ..Setup::rack() };
    setup.config.prr = true;
    let mut bench = setup.open();
    bench.write(2 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.sack(0, &[(1000, 2000)]);
    assert_eq!(bench.fire(), crate::WakeReason::Reorder);
    bench.set_cwnd(1);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
}

/// Without SACK: six segments have overtaken the head, which was retransmitted in vain; the first
/// 7,000 bytes are acknowledged.
fn overtaken_by_six() -> Bench {
    let mut setup = Setup { sack: false, ..Setup::default() };
    setup.cwnd = Some(20);
    setup.config.undo = true;
    let mut bench = setup.open();
    bench.write(100 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    for _ in 0..6 {
        bench.ack(0);
    }
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    bench.pass(ms(2));
    assert_eq!(bench.step(), Some((0, 1000, FastRetransmit)));
    bench.pass(ms(2));
    let segment = echoing(&bench, 7000, &[], 1_000);
    bench.take(&segment);
    assert_eq!(undos(&bench), [Undo::All]);
    bench.drain();
    bench
}

/// Everything is acknowledged; then as many as six segments overtake the head.
fn overtaken_again(bench: &mut Bench) {
    bench.pass(ms(100));
    let end = Bench::offset(bench.snd.snd_nxt());
    bench.ack(end);
    bench.set_cwnd(20);
    bench.drain();
    for _ in 0..7 {
        bench.ack(end + SMSS);
    }
}

/// Without SACK: a segment that six others overtake is taken for lost once. The next time so many
/// duplicate ACKs prove nothing, each lets a new segment go, and a timeout that has to repair a
/// loss brings the usual threshold back.
#[test]
fn without_sack_the_duplicate_ack_threshold_follows_the_path() {
    let mut bench = overtaken_by_six();
    let retransmitted = bench.info().total_retrans;
    for _ in 0..6 {
        bench.ack(7000);
    }
    assert_eq!(bench.info().ca_state, Phase::Disorder);
    assert!(!bench.drain().is_empty(), "RFC 4653: limited transmit goes on");
    assert_eq!(bench.info().total_retrans, retransmitted);
    // It is lost, and nothing but the timeout tells.
    assert_eq!(bench.fire(), crate::events::WakeReason::Rto);
    assert_eq!(bench.step().unwrap().0, 7000);
    overtaken_again(&mut bench);
    assert_eq!(bench.info().ca_state, Phase::Recovery, "three again");
}

/// Behind an episode that is over, duplicate ACKs prove nothing before the ACK covers more (RFC
/// 6582, section 3.2, step 2). A timeout that repairs the head there says nothing of the threshold.
#[test]
fn a_timeout_behind_a_recovery_leaves_the_duplicate_ack_threshold() {
    let mut bench = overtaken_by_six();
    let point = Bench::offset(bench.snd.snd_nxt());
    for _ in 0..7 {
        bench.ack(7000);
    }
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    bench.drain();
    bench.set_cwnd(40);
    bench.drain();
    assert!(Bench::offset(bench.snd.snd_nxt()) > point);
    bench.pass(ms(100));
    for _ in 0..9 {
        bench.ack(point);
    }
    assert_eq!(bench.info().ca_state, Phase::Disorder);
    assert_eq!(bench.fire(), crate::events::WakeReason::Rto);
    assert_eq!(bench.step().unwrap().0, point);
    overtaken_again(&mut bench);
    assert_eq!(bench.info().ca_state, Phase::Disorder);
}

/// The threshold belongs to the path, not to one flight of data.
#[test]
fn an_idle_connection_keeps_its_duplicate_ack_threshold() {
    let mut bench = overtaken_by_six();
    bench.set_cwnd(100);
    bench.drain();
    bench.ack(Bench::offset(bench.snd.snd_nxt()));
    assert_eq!(bench.fire(), crate::events::WakeReason::Trim);
    assert!(bench.snd.flight.is_none());
    bench.set_cwnd(20);
    bench.write(100 * SMSS);
    bench.drain();
    overtaken_again(&mut bench);
    assert_eq!(bench.info().ca_state, Phase::Disorder);
}
