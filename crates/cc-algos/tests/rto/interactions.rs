//! What the responses do beside the rest of TCP: FIN, windows, ECN, reneging, fast recovery, RTT
//! samples, and the settings that the worked examples leave at their defaults.

use crate::bench::{Bench, SMSS, Setup, ms};
use ackline_cc_algos::RTO;
use ackline_tcp_core::config::LossDetection;
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::policy::cc::Phase;
use ackline_tcp_core::policy::rto::{RtoPhase, RtoVerdict};
use ackline_tcp_core::{ConnConfig, WakeReason};

const NOTHING: [&str; 0] = [];

fn probing(rto: &'static str) -> Bench {
    let mut bench = Setup { rto, ..Setup::default() }.open();
    assert_eq!(bench.rto(), ["P21"]);
    bench
}

#[test]
fn a_fin_rides_on_a_probe_of_new_data() {
    // I-4, I-5: 21 packets and 300 bytes are to be sent, and the FIN.
    let mut bench = Setup { packets: 20, ..Setup::default() }.open();
    bench.write_bytes(300);
    bench.shutdown();
    // The window of 20 packets is full, so that nothing of this has left.
    assert_eq!(bench.names(), NOTHING);
    let left = bench.expire();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].len, left[0].fin, left[0].reason), (300, true, SendReason::RtoProbe));
    assert_eq!(bench.ack_bytes(20_301).arrives(), NOTHING);
    assert_eq!(bench.phase(), RtoPhase::Open);
}

#[test]
fn a_bare_fin_is_no_probe_while_data_is_outstanding() {
    // 19 packets and the FIN are outstanding.
    let mut bench = Setup { packets: 19, ..Setup::default() }.open();
    bench.shutdown();
    let fin = bench.out();
    assert_eq!((fin.len(), fin[0].len, fin[0].fin), (1, 0, true));
    let left = bench.expire();
    assert_eq!((left[0].name.as_str(), left[0].len, left[0].fin), ("P19r1", SMSS, false));
    // Alone it goes the way of go-back-N.
    let mut bench = Setup { packets: 1, ..Setup::default() }.open();
    bench.shutdown();
    bench.out();
    assert_eq!(bench.ack(1).arrives(), NOTHING);
    let left = bench.expire();
    assert_eq!((left[0].len, left[0].fin, left[0].reason), (0, true, SendReason::RtoRetransmit));
    assert_eq!(bench.phase(), RtoPhase::Repair);
}

#[test]
fn a_window_that_takes_no_whole_probe_gets_none() {
    // I-4: 20,500 bytes of window; P21 does not fit, and half of it is no probe.
    let mut bench = Setup { rwnd: 20, packets: 40, ..Setup::default() }.open();
    bench.window = Some(20_500);
    assert_eq!(bench.ack(0).sack(2, 2).arrives(), NOTHING);
    let mut bench = Setup { rwnd: 20, packets: 40, ..Setup::default() }.open();
    assert_eq!(bench.rto(), ["P20r1"]);
}

#[test]
fn a_window_taken_back_leaves_the_head() {
    // The peer shrinks its window to nothing with 20 packets outstanding: only the head may go, as
    // its probe.
    let mut bench = Setup::default().open();
    bench.window = Some(0);
    assert_eq!(bench.ack(0).arrives(), NOTHING);
    assert_eq!(bench.rto(), ["P1r1"]);
    // All of it was acknowledged in the end: the episode is over although the probe never left as
    // such.
    bench.window = Some(60_000);
    bench.ack(20).arrives();
    assert_eq!(bench.phase(), RtoPhase::Open);
}

#[test]
fn a_window_update_in_probe_sends_nothing() {
    let mut bench = Setup { rwnd: 30, ..Setup::default() }.open();
    assert_eq!(bench.rto(), ["P21"]);
    bench.window = Some(60_000);
    assert_eq!(bench.ack(0).sack(3, 3).arrives(), NOTHING);
    assert_eq!((bench.info().snd_wnd, bench.state().0), (60_000, 0));
}

#[test]
fn ece_in_probe_reduces_at_the_clean_exit() {
    // I-12.
    let mut bench = Setup { ecn: true, ..Setup::default() }.open();
    let probe = bench.expire();
    assert!(probe[0].ect, "new data is ECN-capable, also as a probe");
    for packet in 1..=20 {
        assert_eq!(bench.ack(packet).ece().arrives(), NOTHING);
    }
    let left = bench.ack(21).ece().arrives_in_full();
    assert_eq!(left.iter().map(|left| left.name.as_str()).collect::<Vec<_>>(), ["P22", "P23"]);
    assert!(left[0].cwr && !left[1].cwr, "CWR on the next new data");
    assert_eq!(bench.state(), (2, 10, 2));
    assert_eq!(bench.verdicts(), [RtoVerdict::Spurious]);
}

#[test]
fn a_probe_that_is_sent_again_is_not_ecn_capable() {
    let mut bench = Setup { ecn: true, packets: 20, ..Setup::default() }.open();
    let probe = bench.expire();
    assert_eq!((probe[0].name.as_str(), probe[0].ect), ("P20r1", false));
}

#[test]
fn ece_that_was_answered_reduces_no_more() {
    let mut bench = Setup { ecn: true, cwnd: 20, ..Setup::default() }.open();
    bench.pass(ms(50));
    bench.ack(2).ece().arrives();
    let reduced = bench.state().1;
    assert!(reduced < 40, "the mark before the timeout");
    assert_eq!(bench.rto().len(), 1);
    let ss_ptr = bench.info().unacked / SMSS + 2;
    bench.ack(ss_ptr - 1).ece().arrives();
    bench.ack(ss_ptr).arrives();
    assert_eq!((bench.phase(), bench.state().1), (RtoPhase::Open, reduced));
}

#[test]
fn fast_recovery_ends_with_the_timeout() {
    // P1 is lost, and its retransmission too: the timeout comes in fast recovery.
    let mut bench = Setup { tune: |config| config.limited_transmit = false, ..Setup::default() }.open();
    bench.pass(ms(100));
    for last in 2..=5 {
        bench.ack(0).sack(2, last).arrives();
    }
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    let (_, ssthresh, _) = bench.state();
    let (pipe, nxt) = (bench.info().pipe, bench.info().unacked / SMSS);
    let probe = bench.rto();
    assert_eq!(probe, [format!("P{}", nxt + 1)], "new data above all that is outstanding");
    assert_eq!((bench.info().ca_state, bench.info().snd_ssthresh), (Phase::Loss, Some(ssthresh * 1000)));
    // Lossy: half of the pipe that the timeout found.
    bench.ack(0).sack(nxt + 1, nxt + 1).sack(2, nxt).arrives();
    let half = u64::from(pipe / 2).max(2_000);
    assert_eq!(bench.info().snd_ssthresh, Some(half));
}

#[test]
fn a_timeout_in_repair_does_not_raise_ssthresh() {
    // P4, I-13.
    let mut bench = probing("dclor");
    bench.ack(0).sack(21, 21).arrives();
    assert_eq!(bench.state(), (2, 10, 2));
    // Six packets of pipe would give three; the present `ssthresh` of ten is lower than half of a
    // larger pipe.
    let probe = bench.rto();
    assert_eq!(probe, ["P22"]);
    assert_eq!((bench.phase(), bench.state().0), (RtoPhase::Probe, 0));
    bench.ack(0).sack(21, 22).arrives();
    assert_eq!(bench.state().1, 2, "half of the pipe of two, at least two");
    bench.ack(22).arrives();
    assert_eq!(bench.phase(), RtoPhase::Open);
}

#[test]
fn reverting_lets_new_data_out_on_stale_acks() {
    for (rto, window) in [("dclor:stale_policy=revert", 20), ("dclor:stale_policy=halve", 10)] {
        let mut bench = probing(rto);
        assert_eq!(bench.state().0, 0, "before the first stale ACK");
        // The probe is the first of the window.
        let left = bench.ack(1).arrives();
        let expected: Vec<String> = (22..22 + window - 1).map(|packet| format!("P{packet}")).collect();
        assert_eq!(left, expected, "{rto}");
        assert_eq!(bench.info().snd_cwnd, u64::from(window * SMSS));
        // No retransmission before SS_PTR is covered, whatever SACK says.
        assert_eq!(bench.ack(1).sack(3, 20).arrives(), NOTHING);
        // P2 is lost. What left after the probe is not.
        assert_eq!(bench.ack(1).sack(3, 21).arrives().first().map(String::as_str), Some("P2r1"));
        assert_eq!(bench.info().lost, SMSS);
        assert_eq!((bench.info().snd_cwnd, bench.state().1), (u64::from(window * SMSS), 10));
    }
}

#[test]
fn without_a_stale_ack_nothing_is_reverted() {
    let mut bench = probing("dclor:stale_policy=revert");
    assert_eq!(bench.ack(0).sack(21, 21).arrives(), ["P1r1", "P2r1"]);
    assert_eq!(bench.state(), (2, 10, 2));
}

#[test]
fn decay_halves_the_window_for_each_silent_timeout() {
    let mut bench = probing("dclor:stale_policy=decay");
    assert_eq!(bench.ack(1).arrives(), NOTHING);
    assert_eq!(bench.state().0, 0);
    assert_eq!(bench.ack(21).arrives().len(), 10, "20 / 2");
    let mut bench = probing("dclor:stale_policy=decay");
    assert_eq!(bench.rto(), ["P22"]);
    assert_eq!(bench.ack(22).arrives().len(), 5, "20 / 4");
    // An ACK before the second timeout: that period was not silent.
    let mut bench = probing("dclor:stale_policy=decay");
    bench.ack(1).arrives();
    assert_eq!(bench.rto(), ["P22"]);
    assert_eq!(bench.ack(22).arrives().len(), 10);
}

#[test]
fn tags_can_be_kept() {
    let mut bench = Setup { rto: "dclor:sack_reset_on_rto=off", packets: 20, ..Setup::default() }.open();
    bench.pass(ms(50));
    // One SACKed packet is not enough for a loss.
    assert_eq!(bench.ack(0).sack(20, 20).arrives(), NOTHING);
    let left = bench.expire();
    assert_eq!((left[0].name.as_str(), bench.info().sacked), ("P20r1", SMSS), "the highest, reported or not");
    assert_eq!(bench.ack(0).sack(20, 20).arrives(), ["P1r1", "P2r1"]);
}

#[test]
fn eifel_makes_the_timeout_conservative() {
    let mut bench = Setup { rto: "eifel", timestamps: true, tune: |_| {}, ..Setup::default() }.open();
    bench.pass(ms(10));
    assert_eq!(bench.rto(), ["P1r1"]);
    let original = bench.tsval(1, 0);
    bench.pass(ms(500));
    assert_eq!(bench.ack(1).tsecr(original).arrives(), ["P21"]);
    assert_eq!(bench.info().rtt, Some(ms(100)), "the first ACK is no sample");
    // The first sample of new data (step 11): SRTT := max(100, 400), RTTVAR := max(50, 200).
    bench.pass(ms(400));
    let new = bench.tsval(21, 0);
    bench.ack(21).tsecr(new).arrives();
    assert_eq!((bench.info().rtt, bench.info().rttvar), (Some(ms(400)), Some(ms(200))));
    assert_eq!((bench.info().rto, bench.info().backoff), (ms(1200), 0));
}

#[test]
fn eifel_trusts_no_ack_of_the_copy() {
    let mut bench = Setup { rto: "eifel", timestamps: true, tune: |_| {}, ..Setup::default() }.open();
    bench.pass(ms(10));
    assert_eq!(bench.rto(), ["P1r1"]);
    let copy = bench.tsval(1, 1);
    bench.pass(ms(100));
    assert_eq!(bench.ack(1).tsecr(copy).arrives(), ["P2r1", "P3r1"]);
    assert_eq!((bench.state(), bench.verdicts()), ((2, 10, 2), vec![RtoVerdict::Lossy]));
    // A DSACK for the head comes later: late, so that only the window is reversed.
    assert_eq!(bench.ack(1).sack(1, 1).arrives().first().map(String::as_str), Some("P4r1"));
    assert_eq!((bench.state().0, bench.state().1), (19, 40));
    assert_eq!(bench.phase(), RtoPhase::Repair);
}

#[test]
fn eifel_hears_congestion() {
    let mut bench =
        Setup { rto: "eifel", timestamps: true, ecn: true, tune: |_| {}, ..Setup::default() }.open();
    bench.pass(ms(10));
    bench.rto();
    let original = bench.tsval(1, 0);
    bench.ack(1).ece().tsecr(original).arrives();
    assert_eq!((bench.state().0, bench.state().1), (1, 10), "ECE: the window is not reversed");
    assert_eq!(bench.info().ca_state, Phase::Open);
}

#[test]
fn eifel_without_timestamps_is_go_back_n() {
    let mut bench = Setup { rto: "eifel", ..Setup::default() }.open();
    assert_eq!(bench.rto(), ["P1r1"]);
    assert_eq!(bench.ack(1).arrives(), ["P2r1", "P3r1"]);
}

#[test]
fn frto_falls_back() {
    // Step 2b: nothing new to send.
    let mut bench = Setup { rto: "frto", packets: 20, tune: |_| {}, ..Setup::default() }.open();
    assert_eq!(bench.rto(), ["P1r1"]);
    assert_eq!(bench.ack(1).arrives(), ["P2r1", "P3r1"]);
    // Step 3a: a duplicate without news, and an ACK of the new data.
    for dup in [true, false] {
        let mut bench = Setup { rto: "frto", tune: |_| {}, ..Setup::default() }.open();
        assert_eq!(bench.rto(), ["P1r1"]);
        assert_eq!(bench.ack(0).sack(5, 5).arrives(), NOTHING, "step 2: duplicates only tag");
        assert_eq!(bench.ack(1).sack(5, 5).arrives(), ["P21", "P22"]);
        let left = if dup { bench.ack(1).sack(5, 5).arrives() } else { bench.ack(1).sack(21, 21).arrives() };
        // Two segments of window, and two (one) of new data in the network.
        assert_eq!(left, if dup { vec![] } else { vec!["P2r1".to_owned()] });
        assert_eq!((bench.state().0, bench.verdicts()), (2, vec![RtoVerdict::Lossy]));
        assert_eq!(bench.phase(), RtoPhase::Repair);
    }
    // Not at all in recovery.
    let mut bench = Setup { rto: "frto", tune: |_| {}, ..Setup::default() }.open();
    bench.pass(ms(100));
    bench.ack(0).sack(2, 10).arrives();
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    bench.rto();
    assert_eq!(bench.phase(), RtoPhase::Repair);
}

#[test]
fn frto_starts_again_at_every_timeout() {
    let mut bench = Setup { rto: "frto", tune: |_| {}, ..Setup::default() }.open();
    // However often: it repeats the head, as the core would.
    for copy in ["P1r1", "P1r2", "P1r3", "P1r4", "P1r5"] {
        assert_eq!(bench.rto(), [copy]);
    }
    assert_eq!(bench.ack(1).arrives(), ["P21", "P22"]);
    assert_eq!(bench.ack(2).arrives(), ["P23"]);
    assert_eq!(bench.verdicts(), [RtoVerdict::Spurious]);
}

#[test]
fn settings_change_on_a_running_connection() {
    let mut bench = Setup::default().open();
    let configure = |bench: &mut Bench, text: &str| {
        let mut conn = bench.endpoint.conn(bench.conn).unwrap();
        conn.rto_response().unwrap().configure(&text.parse().unwrap())
    };
    configure(&mut bench, "stale_policy=decay,max_probes=1").unwrap();
    assert!(configure(&mut bench, "stale_policy=loud").is_err());
    assert_eq!(bench.rto(), ["P21"]);
    assert_eq!(bench.rto(), ["P1r1"], "one probe, then go-back-N");
}

/// RACK, tail loss probes and proportional rate reduction, as they are by default.
fn modern(rto: &'static str) -> Setup {
    let tune = |config: &mut ConnConfig| {
        config.loss = LossDetection::Rack;
        config.tlp = true;
        config.prr = true;
    };
    Setup { rto, tune, ..Setup::default() }
}

/// The names of everything that leaves up to the next retransmission timeout, without its segment.
fn before_the_timeout(bench: &mut Bench) -> Vec<(String, SendReason)> {
    let mut left = Vec::new();
    let timeouts = bench.info().timeouts;
    loop {
        let wakeup = bench.endpoint.poll_timeout().expect("a timer runs");
        if wakeup.reason == WakeReason::Rto {
            return left;
        }
        bench.now = bench.now.max(wakeup.at);
        bench.endpoint.handle_timeout(bench.now);
        assert_eq!(bench.info().timeouts, timeouts);
        left.extend(bench.out().into_iter().map(|segment| (segment.name, segment.reason)));
    }
}

#[test]
fn rack_and_tail_loss_probes_are_still_in_probe() {
    let mut bench = modern("dclor").open();
    assert_eq!(before_the_timeout(&mut bench), [("P21".to_owned(), SendReason::TailLossProbe)]);
    assert_eq!(bench.rto(), ["P22"], "the tail loss probe is part of what is outstanding");
    // P1 is lost: RACK would find it at once, and send it again.
    bench.pass(ms(100));
    for last in 2..=10 {
        assert_eq!(bench.ack(0).sack(2, last).arrives(), NOTHING);
        bench.pass(ms(5));
    }
    assert_eq!((bench.info().lost, bench.info().ca_state), (0, Phase::Loss));
    assert_eq!(before_the_timeout(&mut bench), [], "no tail loss probe, no timer of RACK");
    // At the exit RACK's marks would be the same: everything left long before the probe.
    assert_eq!(bench.ack(0).sack(2, 22).arrives(), ["P1r1", "P23"]);
    assert_eq!((bench.info().lost, bench.info().snd_ssthresh), (SMSS, Some(10_500)), "half of 21");
    // P2: a repetition that is lost again is found by RACK, and reduces nothing.
    bench.pass(ms(100));
    bench.ack(0).sack(2, 23).arrives();
    let again: Vec<String> = before_the_timeout(&mut bench).into_iter().map(|(name, _)| name).collect();
    assert!(again.is_empty() || again == ["P1r2"], "{again:?}");
    assert_eq!((bench.info().snd_ssthresh, bench.info().ca_state), (Some(10_500), Phase::Loss));
}

#[test]
fn worked_examples_hold_beside_rack_and_prr() {
    // 7.1
    let mut bench = modern("dclor").open();
    before_the_timeout(&mut bench);
    assert_eq!(bench.rto(), ["P22"]);
    assert_eq!(bench.ack(0).sack(22, 22).arrives(), ["P1r1", "P2r1"]);
    assert_eq!(bench.info().snd_cwnd, 2_000, "no rate reduction outside of fast recovery");
    // 7.2
    let mut bench = modern("dclor").open();
    before_the_timeout(&mut bench);
    bench.rto();
    for packet in 1..=21 {
        assert_eq!(bench.ack(packet).arrives(), NOTHING);
    }
    assert_eq!(bench.ack(22).arrives(), ["P23", "P24"]);
    assert_eq!(bench.retransmitted(), 0);
}

#[test]
fn an_unanswered_tail_loss_probe_can_be_the_probe() {
    let mut bench = modern("dclor:reuse_tlp=on").open();
    assert_eq!(before_the_timeout(&mut bench), [("P21".to_owned(), SendReason::TailLossProbe)]);
    assert_eq!(bench.rto(), ["P21r1"], "no second one");
    // It was new data: its ACK is proof, of whichever copy; but no sample.
    for packet in 1..=20 {
        assert_eq!(bench.ack(packet).arrives(), NOTHING);
    }
    assert_eq!(bench.ack(21).arrives(), ["P22", "P23"]);
    assert_eq!((bench.state().0, bench.state().1), (2, 40));
    assert_eq!((bench.verdicts(), bench.info().backoff), (vec![RtoVerdict::Spurious], 1));
}

#[test]
fn a_tail_loss_probe_may_have_repaired_the_only_loss() {
    // I-14 with the copy of a tail loss probe: its timestamp is older than the timeout's, and
    // proves nothing either.
    for (copy, ssthresh) in [(0, 40_000), (1, 10_500), (2, 10_500)] {
        let mut bench = Setup { packets: 20, timestamps: true, ..modern("dclor") }.open();
        bench.pass(ms(5));
        assert_eq!(before_the_timeout(&mut bench).len(), 1);
        assert_eq!(bench.rto(), ["P20r2"]);
        let tsval = bench.tsval(20, copy);
        bench.ack(20).tsecr(tsval).arrives();
        assert_eq!(bench.info().snd_ssthresh, Some(ssthresh), "copy {copy}");
    }
}

#[test]
fn no_undo_of_the_core_touches_a_timeout_of_dclor() {
    // E2c with the core's undo: the DSACK of the probe gives `ssthresh` back, and not the window.
    let mut bench = Setup { packets: 20, ..modern("dclor") }.open();
    let tail = before_the_timeout(&mut bench);
    assert_eq!(tail, [("P20r1".to_owned(), SendReason::TailLossProbe)]);
    assert_eq!(bench.rto(), ["P20r2"]);
    bench.ack(20).arrives();
    // 20, and the tail loss probe.
    assert_eq!((bench.info().snd_cwnd, bench.info().snd_ssthresh), (2_000, Some(10_500)));
    bench.ack(20).sack(20, 20).arrives();
    assert_eq!(bench.state(), (2, 40, 0));
}

/// What was SACKed before the timeout is acknowledged after it, when the tag is gone: nobody knows
/// any more when it arrived, so that it gives no RTT sample.
#[test]
fn data_that_was_sacked_before_the_timeout_gives_no_sample_after_it() {
    for entry in RTO {
        let mut bench = Setup { rto: entry.name, packets: 20, ..Setup::default() }.open();
        bench.pass(ms(100));
        bench.ack(0).sack(5, 20).arrives();
        assert_eq!(bench.info().rtt, Some(ms(100)), "{}", entry.name);
        // What was lost is lost again, and so is what the first timeout sends.
        bench.rto();
        bench.rto();
        // The peer reports no more than the highest packet; then the head's repair tells that it
        // has the rest.
        bench.pass(ms(100));
        bench.ack(0).sack(20, 20).arrives();
        for packets in [1, 2, 20] {
            bench.pass(ms(100));
            bench.ack(packets).arrives();
        }
        assert_eq!((bench.info().unacked, bench.info().rtt), (0, Some(ms(100))), "{}", entry.name);
    }
}
