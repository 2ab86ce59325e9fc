//! RACK (RFC 8985, section 6). The RTT is 100 ms, so that the reordering window is 25 ms if there
//! is one.

use super::bench::{Bench, SMSS, Setup, ms};
use crate::events::WakeReason::Reorder;
use crate::packet::SendReason::{FastRetransmit, LimitedTransmit, NewData, RtoRetransmit};
use crate::policy::cc::{CongestionEvent, Phase};
use crate::scoreboard::LostRange;
use std::vec;
use std::vec::Vec;

/// `n` segments are out, the first at 1.000 s and one every millisecond, and nothing waits.
fn out(n: u32) -> Bench {
    let mut bench = Setup { cwnd: Some(100), ..Setup::rack() }.open();
    for _ in 0..n {
        bench.write(SMSS);
        assert_eq!(bench.drain().len(), 1);
        bench.pass(ms(1));
    }
    bench
}

/// Time passes to `at`, counted from the first departure.
fn at(bench: &mut Bench, at: u64) {
    bench.now = crate::time::Instant::from_secs(1) + ms(at);
}

/// Section 6.2, step 4: without reordering so far, and three segments SACKed, the window is zero.
#[test]
fn three_sacked_segments_prove_the_loss_at_once() {
    let mut bench = out(10);
    at(&mut bench, 101);
    bench.sack(0, &[(1000, 2000)]);
    assert_eq!(bench.info().ca_state, Phase::Disorder);
    at(&mut bench, 102);
    bench.sack(0, &[(1000, 3000)]);
    assert_eq!((bench.info().lost, bench.drain()), (0, vec![]));
    at(&mut bench, 103);
    bench.sack(0, &[(1000, 4000)]);
    assert_eq!((bench.info().lost, bench.info().ca_state), (1000, Phase::Recovery));
    assert_eq!(bench.events(), [CongestionEvent::Loss { prior_pipe: 8 * SMSS }]);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
    assert_eq!(bench.observe.counters.tcp_sack_recovery, 1);
}

/// Section 6.2, step 5: fewer than three are SACKed; the timer declares the loss a quarter of the
/// smallest RTT after a round trip has passed.
#[test]
fn the_reordering_timer_proves_the_loss_of_a_short_flight() {
    let mut bench = out(2);
    at(&mut bench, 101);
    bench.sack(0, &[(1000, 2000)]);
    // Left at 0 ms, RACK.rtt 100 ms, window 25 ms.
    assert_eq!(bench.timer(), Some((ms(24), Reorder)));
    assert_eq!((bench.info().lost, bench.drain()), (0, vec![]));
    assert_eq!(bench.fire(), Reorder);
    assert_eq!((bench.info().lost, bench.info().ca_state), (1000, Phase::Recovery));
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
    assert_eq!(bench.events().len(), 1);
    at(&mut bench, 230);
    bench.ack(2000);
    assert_eq!(bench.info().ca_state, Phase::Open);
}

/// Each segment is lost when its own window has passed.
#[test]
fn the_timer_follows_each_departure() {
    let mut bench = out(3);
    bench.pass(ms(7));
    bench.write(SMSS);
    bench.drain();
    at(&mut bench, 110);
    bench.sack(0, &[(3000, 4000)]);
    let mut lost = Vec::new();
    for _ in 0..3 {
        assert_eq!(bench.fire(), Reorder);
        lost.push((bench.now.since(crate::time::Instant::from_secs(1)), bench.info().lost));
        // In recovery, without reordering seen, what is left is not granted a window (step 4).
        if bench.timer().is_none_or(|(_, reason)| reason != Reorder) {
            break;
        }
    }
    assert_eq!(lost.first(), Some(&(ms(125), 1000)));
    assert_eq!(bench.info().lost, 3000, "{lost:?}");
}

/// What was delayed by less than the window is not retransmitted, and from then on the window
/// stays.
#[test]
fn reordering_within_the_window_is_no_loss() {
    let mut bench = out(10);
    at(&mut bench, 101);
    bench.sack(0, &[(1000, 2000)]);
    at(&mut bench, 110);
    bench.ack(2000);
    assert_eq!((bench.observe.counters.tcp_sack_reorder, bench.info().reord_seen), (1, 1));
    assert_eq!((bench.drain(), bench.events().len()), (vec![], 0));
    // Now three SACKed segments are no proof: the window of 25 ms is granted.
    at(&mut bench, 111);
    bench.sack(2000, &[(3000, 9000)]);
    assert_eq!((bench.info().lost, bench.drain()), (0, vec![]));
    assert_eq!(bench.fire(), Reorder);
    assert_eq!(bench.drain(), [(2000, 1000, FastRetransmit)]);
}

/// Step 3: what one ACK reports in several blocks is no reordering, in whatever order the blocks
/// come.
#[test]
fn holes_reported_at_once_are_no_reordering() {
    let mut bench = out(10);
    at(&mut bench, 105);
    bench.sack(0, &[(4000, 5000), (2000, 3000)]);
    assert_eq!(bench.observe.counters.tcp_sack_reorder, 0);
    bench.sack(0, &[(6000, 7000), (4000, 5000), (2000, 3000)]);
    assert_eq!(bench.observe.counters.tcp_sack_reorder, 0);
    bench.sack(0, &[(1000, 3000), (6000, 7000), (4000, 5000)]);
    assert_eq!((bench.observe.counters.tcp_sack_reorder, bench.info().reord_seen), (1, 1));
    bench.sack(0, &[(1000, 3000), (6000, 7000), (3000, 5000)]);
    let seen = (bench.observe.counters.tcp_sack_reorder, bench.info().reord_seen);
    assert_eq!(seen, (1, 2), "each ACK that shows it, and each connection");
}

/// Only what left before the newest arrival can be lost: one departure with what follows it in the
/// stream, too.
#[test]
fn what_left_later_is_not_lost() {
    let mut bench = Setup { cwnd: Some(10), ..Setup::rack() }.open();
    bench.write(10 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.sack(0, &[(4000, 7000)]);
    assert_eq!(bench.info().lost, 4000, "all ten left at once: those below the highest SACKed");
}

/// The point of time over counts: a retransmission that is lost is found when something that left
/// after it arrives.
#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let mut bench = out(10);
    at(&mut bench, 104);
    bench.sack(0, &[(1000, 5000)]);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
    bench.write(2 * SMSS);
    at(&mut bench, 105);
    bench.sack(0, &[(1000, 6000)]);
    assert_eq!(bench.drain(), [(10_000, 1000, NewData), (11_000, 1000, NewData)]);
    at(&mut bench, 120);
    bench.sack(0, &[(1000, 10_000)]);
    assert_eq!(bench.drain(), [], "the retransmission may still arrive");
    // New data that left after the retransmission arrives, a round trip after it.
    at(&mut bench, 206);
    bench.sack(0, &[(1000, 11_000)]);
    assert_eq!(bench.observe.counters.tcp_lost_retransmit, 1);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
    assert_eq!(bench.events().len(), 1, "one reduction in an episode");
    assert_eq!(bench.observe.counters.tcp_timeouts, 0);
    at(&mut bench, 310);
    bench.ack(12_000);
    assert_eq!((bench.info().ca_state, bench.info().pipe), (Phase::Open, 0));
}

/// With a duplicate-ACK threshold only the timeout finds it.
#[test]
fn counting_does_not_find_a_lost_retransmission() {
    let mut bench = Setup { cwnd: Some(20), ..Setup::default() }.open();
    bench.write(10 * SMSS);
    bench.drain();
    bench.write(2 * SMSS);
    bench.pass(ms(100));
    bench.sack(0, &[(1000, 5000)]);
    bench.drain();
    bench.pass(ms(100));
    bench.sack(0, &[(1000, 12_000)]);
    assert_eq!(bench.drain(), []);
    assert_eq!(bench.fire(), crate::WakeReason::Rto);
}

/// Step 2: an ACK that echoes a timestamp from before the retransmission is that of the original,
/// and says nothing about what left before the retransmission.
#[test]
fn the_ack_of_an_original_is_not_taken_for_that_of_its_copy() {
    let late = |tsecr| {
        let mut bench = out(10);
        at(&mut bench, 104);
        bench.sack(0, &[(1000, 5000)]);
        assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
        at(&mut bench, 209);
        let mut segment = bench.segment(5000, &[]);
        (segment.ts_now, segment.tsecr) = (1_209, Some(tsecr));
        bench.take(&segment);
        bench.info().lost
    };
    assert_eq!(late(1_000), 0, "the original left first: the others may be under way");
    assert_eq!(late(1_104), 5000, "the copy left after all others, a round trip ago");
}

/// Step 2: RACK.rtt is that of every segment newly acknowledged. The copy of the first segment and
/// originals that were late arrive together: the originals that left next are as late as these, and
/// not lost.
#[test]
fn originals_as_late_as_others_are_not_lost_when_a_copy_arrives() {
    let mut bench = out(10);
    at(&mut bench, 104);
    bench.sack(0, &[(1000, 4000)]);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
    at(&mut bench, 209);
    bench.ack(7000);
    assert_eq!((bench.info().lost, bench.drain()), (0, vec![]));
    // What left at 7 ms may take the 205 ms that the one of 4 ms took, and no longer.
    assert_eq!(bench.timer(), Some((ms(3), Reorder)));
    at(&mut bench, 211);
    bench.ack(10_000);
    assert_eq!((bench.info().total_retrans, bench.info().ca_state), (1, Phase::Open));

    let mut bench = out(10);
    at(&mut bench, 104);
    bench.sack(0, &[(1000, 4000)]);
    bench.drain();
    at(&mut bench, 209);
    bench.ack(7000);
    assert_eq!(bench.fire(), Reorder);
    assert_eq!(bench.drain(), [(7000, 1000, FastRetransmit)]);
}

/// The same if what is newer than the late originals is SACKed by the ACK that covers them.
#[test]
fn originals_as_late_as_others_are_not_lost_when_newer_data_is_sacked() {
    let mut bench = out(10);
    at(&mut bench, 60);
    bench.write(SMSS);
    bench.drain();
    at(&mut bench, 160);
    bench.sack(3000, &[(10_000, 11_000)]);
    assert_eq!((bench.info().lost, bench.drain()), (0, vec![]));
    // Left at 3 ms, RACK.rtt 160 ms, window 25 ms.
    assert_eq!(bench.timer(), Some((ms(28), Reorder)));
    at(&mut bench, 187);
    bench.ack(11_000);
    assert_eq!((bench.info().total_retrans, bench.info().ca_state), (0, Phase::Open));
}

/// Step 2, without timestamps: an ACK within less than the smallest RTT cannot be that of the copy.
#[test]
fn an_ack_too_early_for_the_copy_is_not_taken_for_it() {
    let mut bench = out(10);
    at(&mut bench, 104);
    bench.sack(0, &[(1000, 5000)]);
    bench.drain();
    at(&mut bench, 150);
    bench.ack(5000);
    assert_eq!(bench.info().lost, 0);
}

/// Step 4: each round trip with a DSACK widens the window by a quarter of the smallest RTT, at most
/// to SRTT; after 16 recoveries without one it falls back.
#[test]
fn dsack_widens_the_window() {
    let mut setup = Setup { cwnd: Some(100), ..Setup::rack() };
    setup.config.min_rto = ms(1_000);
    let mut bench = setup.open();
    let mut una = 0;
    // One round: two segments, the second SACKed after 100 ms; gives the window, repairs, and
    // reports a DSACK or not.
    let mut round = |bench: &mut Bench, dsack: bool| {
        bench.write(2 * SMSS);
        bench.drain();
        bench.pass(ms(100));
        bench.sack(una, &[(una + 1000, una + 2000)]);
        let window = bench.timer().filter(|(_, reason)| *reason == Reorder).unwrap().0;
        bench.fire();
        assert_eq!(bench.offsets(), [una]);
        bench.pass(ms(100));
        una += 2000;
        if dsack {
            bench.sack(una, &[(una - 2000, una - 1000)]);
        } else {
            bench.ack(una);
        }
        window
    };
    let mut seen = Vec::new();
    for dsack in [true, true, true, true, false] {
        seen.push(round(&mut bench, dsack));
    }
    assert_eq!(seen[..4], [ms(25), ms(50), ms(75), ms(100)]);
    assert!(seen[4] <= bench.snd.srtt().unwrap(), "bounded by SRTT: {seen:?}");
    let widened = (0..14).map(|_| round(&mut bench, false)).all(|window| window > ms(90));
    assert!(widened, "it persists");
    round(&mut bench, false);
    assert_eq!(round(&mut bench, false), ms(25), "16 recoveries without DSACK");
}

/// A reordering path clocks out new data for each SACK, not two segments in all.
#[test]
fn disorder_keeps_the_flow_going() {
    let mut bench = Setup { cwnd: Some(10), ..Setup::rack() }.open();
    bench.write(60 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.sack(0, &[(1000, 2000)]);
    bench.ack(2000);
    assert_eq!(bench.observe.counters.tcp_sack_reorder, 1);
    bench.drain();
    for i in 4..9 {
        bench.sack(2000, &[(3000, i * 1000)]);
        assert_eq!(bench.drain().len(), 1, "{i}");
    }
    assert_eq!(bench.info().ca_state, Phase::Disorder);
}

#[test]
fn without_limited_transmit_disorder_sends_nothing_beyond_the_window() {
    let mut setup = Setup { cwnd: Some(10), ..Setup::rack() };
    setup.config.limited_transmit = false;
    let mut bench = setup.open();
    bench.write(60 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.sack(0, &[(1000, 2000)]);
    assert_eq!(bench.drain(), []);
}

#[test]
fn limited_transmit_is_named() {
    let mut bench = Setup { cwnd: Some(10), ..Setup::rack() }.open();
    bench.write(60 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.sack(0, &[(1000, 2000)]);
    assert_eq!(bench.drain(), [(10_000, 1000, LimitedTransmit)]);
}

/// Section 6.3: after a timeout RACK goes on; the timer of the reordering window does not survive
/// it.
#[test]
fn after_a_timeout_time_finds_the_next_loss() {
    let mut bench = out(4);
    at(&mut bench, 101);
    bench.sack(0, &[(1000, 2000)]);
    bench.pass(ms(1));
    // The driver is very late: both timers are due.
    bench.now += ms(2_000);
    bench.fire();
    bench.fire();
    assert_eq!(bench.info().ca_state, Phase::Loss);
    let left = bench.drain();
    assert_eq!(left[0], (0, 1000, RtoRetransmit));
    assert!(bench.timer().is_some_and(|(_, reason)| reason != Reorder));
    let again: Vec<u32> = left.iter().map(|packet| packet.0).collect();
    assert_eq!(again, [0, 2000, 3000]);
    bench.pass(ms(100));
    bench.sack(0, &[(1000, 4000)]);
    assert_eq!(bench.observe.counters.tcp_lost_retransmit, 1, "the head's copy left with those that arrived");
    assert_eq!(bench.offsets(), [0]);
}

#[test]
fn without_sack_duplicate_acks_are_counted() {
    let mut bench = Setup { sack: false, cwnd: Some(20), ..Setup::rack() }.open();
    bench.write(10 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    for _ in 0..3 {
        bench.ack(0);
    }
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    assert_eq!(bench.observe.counters.tcp_reno_recovery, 1);
}

/// A part of a super-packet is lost when what left with it and behind it has arrived.
#[test]
fn parts_of_super_packets_are_told_apart() {
    let mut bench = Setup { cwnd: Some(40), ..Setup::rack() }.open();
    bench.max_payload = 20 * SMSS;
    bench.write(40 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.sack(2000, &[(3000, 20_000)]);
    assert_eq!(bench.info().lost, 1000);
    assert_eq!(bench.drain(), [(2000, 1000, FastRetransmit)]);
    bench.sack(2000, &[(24_000, 30_000), (3000, 20_000)]);
    assert_eq!(bench.info().lost, 5000);
    assert_eq!(bench.drain(), [(20_000, 4000, FastRetransmit)]);
    bench.pass(ms(100));
    bench.ack(40_000);
    assert_eq!((bench.info().pipe, bench.info().lost), (0, 0));
}

/// What a smaller path MTU has dropped leaves also while ACKs tell of disorder and the flight fills
/// the window.
#[test]
fn a_smaller_path_mtu_is_repaired_in_disorder() {
    for setup in [Setup::rack(), Setup::default()] {
        let mut bench = setup.open();
        bench.write(60 * SMSS);
        bench.drain();
        bench.pass(ms(100));
        bench.sack(0, &[(1000, 2000)]);
        bench.drain();
        assert_eq!(bench.info().ca_state, Phase::Disorder);
        bench.set_smss(500);
        bench.max_payload = 500;
        let left = bench.drain();
        assert!(left.len() >= 18 && left[..18].iter().all(|packet| packet.2 == FastRetransmit), "{left:?}");
    }
}

/// What was SACKed before the tags were cleared is no arrival when it is reported again: only a
/// copy that left since is.
#[test]
fn what_was_sacked_before_is_no_arrival_but_its_copy_is() {
    let mut bench = out(10);
    at(&mut bench, 101);
    bench.sack(0, &[(9000, 10_000)]);
    // Left at 0 ms, RACK.rtt 92 ms, window 23 ms: the smallest RTT is that of the SACKed segment.
    assert_eq!(bench.timer(), Some((ms(14), Reorder)));
    bench.snd.flight.as_deref_mut().unwrap().board.forget_sacked();
    at(&mut bench, 111);
    bench.sack(0, &[(9000, 10_000)]);
    assert_eq!((bench.info().sacked, bench.snd.stream.delivery.delivered), (1000, 1000));
    assert_eq!(bench.timer(), Some((ms(4), Reorder)));

    let mut bench = out(10);
    at(&mut bench, 105);
    bench.sack(0, &[(5000, 10_000)]);
    let board = &mut bench.snd.flight.as_deref_mut().unwrap().board;
    board.retag(false, LostRange::All, &mut |_| {});
    assert_eq!(bench.drain().len(), 10);
    assert_eq!(bench.observe.counters.tcp_lost_retransmit, 0);
    at(&mut bench, 205);
    bench.sack(0, &[(5000, 8000)]);
    assert_eq!(
        bench.observe.counters.tcp_lost_retransmit, 5,
        "five left before the copies that have arrived"
    );
    assert_eq!(bench.snd.stream.delivery.delivered, 5000, "once each");
}
