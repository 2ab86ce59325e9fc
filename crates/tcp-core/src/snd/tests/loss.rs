//! Loss detection and recovery.

use super::bench::{Bench, SMSS, Setup, ms};
use crate::events::WakeReason;
use crate::packet::SendReason::{FastRetransmit, LimitedTransmit, NewData, RtoRetransmit};
use crate::policy::cc::{CongestionEvent, Pacing, Phase, Revise};
use crate::units::Window;

/// Ten segments are out, fifty wait.
fn ten_out(sack: bool) -> Bench {
    let mut bench = Setup { sack, ..Setup::default() }.open();
    bench.write(60 * SMSS);
    assert_eq!(bench.drain().len(), 10);
    bench.pass(ms(100));
    bench
}

#[test]
fn one_loss_with_sack() {
    let mut bench = ten_out(true);
    bench.sack(0, &[(1000, 2000)]);
    assert_eq!(bench.info().ca_state, Phase::Disorder);
    assert_eq!(bench.drain(), [(10_000, 1000, LimitedTransmit)]);
    bench.sack(0, &[(1000, 3000)]);
    assert_eq!(bench.drain(), [(11_000, 1000, LimitedTransmit)]);
    assert!(bench.events().is_empty());
    // The third duplicate: more than (DupThresh - 1) * SMSS bytes are SACKed.
    bench.sack(0, &[(1000, 4000)]);
    assert_eq!(bench.events(), [CongestionEvent::Loss { prior_pipe: 10 * SMSS }]);
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    bench.set_cwnd(5);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)], "the first one ignores the window");
    // pipe = 12 - 3 SACKed - 1 lost + 1 again
    assert_eq!(bench.info().pipe, 9 * SMSS);
    for (i, pipe) in [(5, 8), (6, 7), (7, 6), (8, 5)] {
        bench.sack(0, &[(1000, i * 1000)]);
        assert_eq!(bench.info().pipe, pipe * SMSS);
        assert_eq!(bench.drain(), [], "pipe has not fallen below the window");
    }
    bench.sack(0, &[(1000, 9000)]);
    assert_eq!(bench.drain(), [(12_000, 1000, NewData)]);
    // The retransmission arrives; 10 and 11 are reported as well.
    bench.ack(12_000);
    assert_eq!((bench.info().ca_state, bench.script.lock().unwrap().exits), (Phase::Open, 1));
    assert_eq!(bench.info().pipe, SMSS);
    assert_eq!(bench.events().len(), 1);
    assert_eq!(bench.observe.counters.tcp_sack_recovery, 1);
    assert_eq!(bench.observe.counters.tcp_fast_retrans, 1);
}

/// The round trip is 100 ms: ten segments in it are one per 10 ms, and the five that a loss leaves
/// one per 20 ms, from the last departure on. That holds whatever the algorithm makes of the pace:
/// here it stays, or becomes faster because the algorithm expects an empty queue.
#[test]
fn the_first_retransmission_leaves_at_the_pace_of_the_reduced_window() {
    let gap = |time| Pacing::Gap { time, over: Window::from_bytes(u64::from(SMSS)) };
    for (reduced, wait) in
        [(gap(ms(10)), 20), (gap(ms(6)), 20), (Pacing::WindowOverRtt { gain: 307 }, 20), (Pacing::Unpaced, 0)]
    {
        for revise in [Revise::NextDeparture, Revise::Banked] {
            let mut bench = ten_out(true);
            bench.decide(|d| (d.pacing, d.revise) = (gap(ms(10)), revise));
            bench.sack(0, &[(1000, 3000)]);
            assert_eq!(bench.drain(), [(10_000, 1000, LimitedTransmit)]);
            bench.sack(0, &[(1000, 4000)]);
            bench.set_cwnd(5);
            bench.decide(|d| d.pacing = reduced);
            if wait > 0 {
                assert_eq!(bench.drain(), []);
                assert_eq!(bench.timer(), Some((ms(wait), WakeReason::Pace)), "{reduced:?}, {revise:?}");
                bench.fire();
            }
            assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
        }
    }
}

/// A rate below that of the reduced window is kept.
#[test]
fn the_first_retransmission_keeps_to_a_slower_pace() {
    let mut bench = ten_out(true);
    bench.decide(|d| d.pacing = Pacing::AtRate(crate::Rate::from_bytes_per_second(20_000)));
    bench.sack(0, &[(1000, 3000)]);
    assert_eq!(bench.drain(), [(10_000, 1000, LimitedTransmit)]);
    bench.sack(0, &[(1000, 4000)]);
    bench.set_cwnd(5);
    assert_eq!(bench.drain(), []);
    assert_eq!(bench.timer(), Some((ms(50), WakeReason::Pace)));
    bench.fire();
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
}

#[test]
fn limited_transmit_can_be_off() {
    let mut setup = Setup::default();
    setup.config.limited_transmit = false;
    let mut bench = setup.open();
    bench.write(60 * SMSS);
    bench.drain();
    bench.sack(0, &[(1000, 2000)]);
    bench.sack(0, &[(1000, 3000)]);
    assert_eq!(bench.drain(), []);
}

#[test]
fn limited_transmit_without_sack() {
    let mut bench = ten_out(false);
    bench.ack(0);
    assert_eq!(bench.drain(), [(10_000, 1000, LimitedTransmit)]);
    bench.ack(0);
    assert_eq!(bench.drain(), [(11_000, 1000, LimitedTransmit)]);
}

/// RFC 6582: segments 0 and 4 of ten are lost.
#[test]
fn timeouts_in_recovery_are_counted_by_its_kind() {
    for sack in [true, false] {
        let mut bench = ten_out(sack);
        for acks in 1..=3 {
            let blocks = [(1000, 1000 + 1000 * acks)];
            bench.sack(0, if sack { &blocks } else { &[] });
        }
        bench.drain();
        assert_eq!(bench.info().ca_state, Phase::Recovery);
        bench.fire();
        let counters = &bench.observe.counters;
        assert_eq!(counters.tcp_timeouts, 1);
        let failures = (counters.tcp_sack_recovery_fail, counters.tcp_reno_recovery_fail);
        assert_eq!(failures, if sack { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn new_reno_repairs_one_hole_per_partial_ack() {
    let mut bench = ten_out(false);
    for _ in 0..3 {
        bench.ack(0);
    }
    assert_eq!(bench.events(), [CongestionEvent::Loss { prior_pipe: 8 * SMSS }]);
    bench.set_cwnd(5);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)]);
    for _ in 0..5 {
        bench.ack(0);
        bench.drain();
    }
    // Segment 4 is missing: a partial ACK.
    bench.pass(ms(100));
    bench.ack(4000);
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    assert_eq!(bench.step(), Some((4000, 1000, FastRetransmit)));
    bench.drain();
    bench.pass(ms(100));
    bench.ack(10_000);
    assert_eq!(bench.info().ca_state, Phase::Open);
    assert_eq!(bench.events().len(), 1, "one reduction for the window of data");
    assert_eq!(bench.observe.counters.tcp_reno_recovery, 1);
}

/// RFC 6582, section 3.2, step 2.
#[test]
fn duplicates_below_recover_start_no_second_recovery_without_sack() {
    let mut bench = ten_out(false);
    assert_eq!(bench.fire(), crate::WakeReason::Rto);
    bench.drain();
    bench.pass(ms(100));
    // The retransmissions of what had arrived make duplicate ACKs.
    bench.ack(5000);
    for _ in 0..4 {
        bench.ack(5000);
    }
    assert!(bench.events().iter().all(|event| !matches!(event, CongestionEvent::Loss { .. })));
    assert_eq!(bench.info().ca_state, Phase::Loss);
}

#[test]
fn duplicate_acks_with_data_or_a_new_window_do_not_count_without_sack() {
    let mut bench = ten_out(false);
    for i in 0..6 {
        let mut segment = bench.segment(0, &[]);
        if i % 2 == 0 {
            segment.payload_len = 10;
        } else {
            segment.window = bench.wnd + i;
        }
        bench.take(&segment);
    }
    assert_eq!(bench.info().ca_state, Phase::Open);
}

/// RFC 6675, section 4, IsLost: three discontiguous ranges suffice, however small.
#[test]
fn three_ranges_prove_a_loss() {
    let mut setup = Setup::default();
    setup.config.nagle = crate::config::Nagle::Off;
    let mut bench = setup.open();
    // Ten small segments.
    for _ in 0..10 {
        bench.write(10);
        bench.drain();
    }
    bench.sack(0, &[(10, 20), (30, 40), (50, 60)]);
    assert_eq!(bench.info().lost, 10, "only what lies below all three");
    assert_eq!(bench.info().ca_state, Phase::Recovery);
}

#[test]
fn bytes_above_prove_a_loss() {
    let mut bench = ten_out(true);
    bench.sack(0, &[(4000, 6000)]);
    assert_eq!(bench.info().lost, 0, "exactly (DupThresh - 1) * SMSS is not more");
    bench.sack(0, &[(4000, 7000)]);
    assert_eq!(bench.info().lost, 4000);
    bench.set_cwnd(20);
    assert_eq!(bench.offsets()[..4], [0, 1000, 2000, 3000]);
}

/// RFC 6675, NextSeg: lost data, then new data, then rule 3, then one rescue.
#[test]
fn next_seg_order() {
    let mut bench = Setup { cwnd: Some(20), ..Setup::default() }.open();
    bench.write(12 * SMSS);
    assert_eq!(bench.drain().len(), 12);
    bench.pass(ms(100));
    // 0 is lost. 5 is a hole that only two segments lie above; 8..12 are silent.
    bench.sack(0, &[(1000, 5000), (6000, 8000)]);
    bench.write(SMSS);
    assert_eq!(
        bench.drain(),
        [
            (0, 1000, FastRetransmit),
            (12_000, 1000, NewData),
            (5000, 1000, FastRetransmit),
            (12_000, 1000, FastRetransmit),
        ]
    );
    assert_eq!(bench.drain(), [], "one rescue per episode");
}

#[test]
fn sack_of_part_of_a_super_packet_splits_it() {
    let mut bench = Setup { cwnd: Some(40), ..Setup::default() }.open();
    bench.max_payload = 20 * SMSS;
    bench.write(41 * SMSS);
    assert_eq!(bench.drain(), [(0, 20_000, NewData), (20_000, 20_000, NewData)]);
    bench.pass(ms(100));
    bench.set_cwnd(4);
    bench.sack(2000, &[(3000, 20_000)]);
    assert_eq!(bench.info().lost, 1000);
    assert_eq!(bench.drain(), [(2000, 1000, FastRetransmit)]);
    bench.set_cwnd(5);
    bench.sack(2000, &[(24_000, 40_000), (3000, 20_000)]);
    assert_eq!(bench.drain(), [(20_000, 4000, FastRetransmit)], "a run leaves as one packet");
    bench.ack(40_000);
    assert_eq!((bench.info().pipe, bench.info().unacked), (0, 0));
}

#[test]
fn crumbs_of_sack_do_not_break_records() {
    let mut bench = ten_out(true);
    for i in 1..9 {
        bench.sack(0, &[(i * 1000 + 100, i * 1000 + 900)]);
    }
    assert_eq!(bench.info().sacked, 0);
    bench.sack(0, &[(1100, 4900)]);
    assert_eq!(bench.info().sacked, 2000);
}

#[test]
fn impossible_blocks_are_ignored_and_counted() {
    let mut bench = ten_out(true);
    bench.ack(1000);
    bench.sack(1000, &[(3000, 4000), (9000, 8000), (9000, 30_000), (1000, 2000)]);
    assert_eq!(bench.info().sacked, 1000);
    assert_eq!(bench.observe.counters.tcp_sack_discard, 3);
}

#[test]
fn dsack_is_told_from_sack() {
    let mut bench = ten_out(true);
    bench.ack(5000);
    bench.sack(5000, &[(1000, 2000)]);
    bench.sack(5000, &[(7000, 8000), (6000, 9000)]);
    assert_eq!((bench.observe.counters.tcp_dsack_recv, bench.observe.counters.tcp_dsack_ofo_recv), (1, 1));
    assert_eq!(bench.info().dsack_dups, 2);
    assert_eq!(bench.info().sacked, 3000);
}

#[test]
fn late_acks_still_bring_sack_information() {
    let mut bench = ten_out(true);
    bench.ack(2000);
    bench.sack(1000, &[(4000, 5000)]);
    assert_eq!(bench.info().sacked, 1000);
}

/// At 1.000 the peer SACKs what it drops before 1.020. RTT 100 ms.
#[test]
fn reneging_is_acted_upon_after_half_a_round_trip() {
    for setup in [Setup::default(), Setup::rack()] {
        let mut bench = setup.open();
        bench.write(100_000);
        bench.drain();
        bench.sack(0, &[(1000, 3000)]);
        bench.pass(ms(20));
        bench.ack(1000);
        assert_eq!((bench.observe.counters.tcp_sack_reneging, bench.info().sacked), (0, 2000));
        assert_eq!(bench.timer(), Some((ms(50), WakeReason::Rto)), "SRTT / 2");
        bench.fire();
        assert_eq!((bench.observe.counters.tcp_sack_reneging, bench.observe.counters.tcp_timeouts), (1, 1));
        assert_eq!((bench.info().sacked, bench.info().lost), (0, bench.info().unacked));
        assert_eq!(bench.step(), Some((1000, 1000, RtoRetransmit)));
        // What the timeout holds to be lost goes out again, and all of it arrives.
        bench.set_cwnd(100);
        let again = bench.offsets();
        assert!(again.contains(&2000) && again.contains(&3000), "{again:?}");
        let end = bench.info().unacked + 1000;
        bench.ack(end);
        assert_eq!(bench.info().unacked, 0);
    }
}

#[test]
fn an_ack_that_passes_what_was_sacked_shows_that_nobody_reneged() {
    let mut bench = ten_out(true);
    bench.sack(0, &[(1000, 3000)]);
    bench.ack(1000);
    bench.pass(ms(9));
    // The SACKed head was a delay between two ACKs of the peer, or the middle of what it holds.
    bench.ack(2000);
    assert_eq!(bench.timer(), Some((ms(50), WakeReason::Rto)), "it moves with the head");
    bench.pass(ms(9));
    bench.ack(3000);
    assert!(bench.timer().is_some_and(|(at, _)| at >= ms(200)));
    assert_eq!((bench.observe.counters.tcp_sack_reneging, bench.info().sacked), (0, 0));
}

#[test]
fn a_timeout_at_a_sacked_head_relies_on_nothing_that_was_sacked() {
    let mut bench = ten_out(true);
    bench.sack(0, &[(1000, 3000), (5000, 6000)]);
    bench.ack(1500);
    bench.fire();
    assert_eq!((bench.observe.counters.tcp_sack_reneging, bench.info().sacked), (1, 0));
    assert_eq!(bench.step(), Some((1500, 500, RtoRetransmit)));
}

/// Each ACK SACKs everything but the head, and the next one acknowledges the head alone: the window
/// is full of small segments, and the peer makes believe that it dropped them.
#[test]
fn a_peer_that_seems_to_renege_with_each_ack_causes_no_walk_over_the_window() {
    const SEGMENTS: u32 = 2_000;
    for setup in [Setup::default(), Setup::rack()] {
        let mut bench = Setup { cwnd: Some(SEGMENTS), wnd: 1 << 22, ..setup }.open();
        bench.write(SEGMENTS * SMSS);
        bench.drain();
        for i in 0..SEGMENTS - 2 {
            bench.pass(ms(1));
            bench.sack(i * SMSS, &[((i + 1) * SMSS, SEGMENTS * SMSS)]);
            bench.sack((i + 1) * SMSS, &[((i + 2) * SMSS, SEGMENTS * SMSS)]);
        }
        let work = bench.snd.flight.as_deref().unwrap().board.work.get();
        let acks = u64::from(2 * SEGMENTS);
        assert!(work <= 2 * acks, "{work} records for {acks} ACKs");
    }
}

#[test]
fn timeout_is_conventional() {
    let mut bench = ten_out(true);
    bench.sack(0, &[(1000, 3000)]);
    bench.drain();
    bench.fire();
    let flight_size = 12 * SMSS;
    assert!(matches!(
        bench.events()[..],
        [CongestionEvent::Timeout { flight_size: size, first: true, .. }] if size == flight_size
    ));
    bench.set_cwnd(1);
    assert_eq!(bench.info().pipe, 0);
    assert_eq!(bench.drain(), [(0, 1000, RtoRetransmit)], "one segment per expiry");
    bench.fire();
    assert_eq!(bench.drain(), [(0, 1000, RtoRetransmit)]);
    assert!(matches!(bench.events()[..], [_, CongestionEvent::Timeout { first: false, .. }]));
    assert_eq!(bench.script.lock().unwrap().checkpoints, 1);
    // What was SACKed is not sent again; the rest is, in slow start.
    bench.set_cwnd(2);
    bench.pass(ms(100));
    bench.ack(3000);
    assert_eq!(bench.drain(), [(3000, 1000, FastRetransmit), (4000, 1000, FastRetransmit)]);
    bench.set_cwnd(20);
    bench.ack(12_000);
    assert_eq!(bench.info().ca_state, Phase::Open);
}

#[test]
fn losses_in_one_window_reduce_once_and_later_ones_again() {
    let mut bench = ten_out(true);
    bench.sack(0, &[(1000, 4000)]);
    bench.drain();
    bench.sack(0, &[(1000, 4000), (5000, 9000)]);
    assert_eq!(bench.info().lost, 2000);
    assert_eq!(bench.events().len(), 1);
    bench.drain();
    bench.set_cwnd(20);
    bench.drain();
    let end = bench.info().unacked;
    // New data beyond the recovery point is lost too: a second episode once the first is over.
    bench.sack(4000, &[(13_000, end), (5000, 9000)]);
    bench.sack(10_000, &[(13_000, end)]);
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    assert_eq!(bench.events().len(), 2);
}

#[test]
fn smaller_path_mtu_sends_again_without_reduction() {
    let mut bench = ten_out(true);
    bench.set_smss(500);
    bench.max_payload = 500;
    let left = bench.drain();
    assert_eq!(left.len(), 20);
    assert!(left.iter().all(|packet| packet.1 == 500 && packet.2 == FastRetransmit));
    assert!(bench.events().is_empty());
}

#[test]
fn packets_that_wait_are_cut_anew_after_a_smaller_path_mtu() {
    let mut bench = ten_out(true);
    bench.sack(0, &[(1000, 10_000)]);
    bench.set_cwnd(20);
    let lost = bench.next().unwrap();
    bench.snd.reserve(&lost, 0);
    let new = bench.next().unwrap();
    bench.snd.reserve(&new, 1);
    assert_eq!((Bench::offset(lost.seq), lost.len), (0, 1000));
    assert_eq!((Bench::offset(new.seq), new.len), (10_000, 1000));
    bench.set_smss(500);
    bench.max_payload = 500;
    assert_eq!(bench.snd.claim(0), None);
    assert_eq!(bench.snd.claim(1), None);
    let left = bench.drain().into_iter().map(|packet| (packet.0, packet.1));
    assert!(left.take(4).eq([(0, 500), (500, 500), (10_000, 500), (10_500, 500)]));
}
