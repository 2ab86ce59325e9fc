//! DCLOR's worked examples (draft-swami-tsvwg-tcp-dclor-00, section 7) and the cases at their
//! edges.
//!
//! Names are those of the examples: 20 packets in flight, SS_PTR is the first octet of P21 unless
//! said otherwise.

use crate::bench::{Bench, SMSS, Setup, ms};
use ackline_tcp_core::config::LossDetection;
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::policy::cc::Phase;
use ackline_tcp_core::policy::rto::{RtoPhase, RtoVerdict};

const NOTHING: [&str; 0] = [];

fn paper() -> Setup {
    // Only a literal mode has no limit of undecided timeouts.
    Setup { rto: "dclor:profile=paper", max_undecided: 0, ..Setup::default() }
}

/// A repeated probe is the same segment.
fn same() -> Setup {
    Setup { rto: "dclor:probe_repeat=same", ..Setup::default() }
}

/// The probe's ACK is an RTT sample (C3).
fn sampled() -> Setup {
    Setup { rto: "dclor:probe_rtt=rfc4015", ..Setup::default() }
}

/// 20 packets in flight and no more data.
fn no_new_data(rto: &'static str) -> Setup {
    Setup { rto, packets: 20, ..Setup::default() }
}

/// A timeout sends P21 and closes the window.
#[track_caller]
fn probe_with_new_data(bench: &mut Bench) {
    let left = bench.expire();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].name.as_str(), left[0].reason), ("P21", SendReason::RtoProbe));
    assert_eq!(bench.phase(), RtoPhase::Probe);
    assert_eq!(bench.state(), (0, 40, 21), "cwnd 0, ssthresh unchanged");
}

#[test]
fn example_7_1_timeout_due_to_congestion() {
    for (setup, rto, backoff) in [(paper(), 600, 1), (Setup::default(), 600, 1), (sampled(), 300, 0)] {
        let mut bench = setup.open();
        probe_with_new_data(&mut bench);
        bench.pass(ms(100));
        assert_eq!(bench.ack(0).sack(21, 21).arrives(), ["P1r1", "P2r1"]);
        assert_eq!(bench.state(), (2, 10, 2), "ssthresh = 20 / 2");
        assert_eq!((bench.info().lost, bench.info().sacked), (20 * SMSS, SMSS));
        assert_eq!(bench.phase(), RtoPhase::Repair);
        assert_eq!(bench.verdicts(), [RtoVerdict::Lossy]);
        // The timer is restarted; a sample (100 ms) ends the back-off.
        assert_eq!((bench.time_to_rto(), bench.info().backoff), (ms(rto), backoff));
        // P1: slow start repairs the holes, in order, and new data follows behind the last one.
        assert_eq!(bench.ack(1).sack(21, 21).arrives(), ["P3r1", "P4r1"]);
        assert_eq!(bench.ack(2).sack(21, 21).arrives(), ["P5r1", "P6r1"]);
        assert_eq!(bench.state().1, 10, "no second reduction");
        let mut next = 3;
        while next < 18 {
            bench.ack(next).sack(21, 21).arrives();
            next += 1;
        }
        assert_eq!(bench.phase(), RtoPhase::Repair);
        let left = bench.ack(21).arrives();
        assert!(left.iter().all(|name| !name.contains('r')), "P3: nothing is lost any more: {left:?}");
        assert_eq!((bench.phase(), bench.info().ca_state), (RtoPhase::Open, Phase::Open));
    }
}

#[test]
fn example_7_2_timeout_due_to_pure_packet_stalling() {
    for (setup, rtt, backoff) in
        [(paper(), None, 1), (Setup::default(), None, 1), (sampled(), Some(ms(100)), 0)]
    {
        let mut bench = setup.open();
        probe_with_new_data(&mut bench);
        let srtt = bench.info().rtt;
        for packet in 1..=20 {
            bench.pass(ms(2));
            assert_eq!(bench.ack(packet).arrives(), NOTHING, "A({packet}) is stale");
            assert_eq!(bench.state(), (0, 40, 21 - packet));
            assert_eq!((bench.info().rtt, bench.info().backoff), (srtt, 1), "no sample");
            assert_eq!(bench.time_to_rto(), ms(600), "the timer restarts, backed off");
        }
        assert_eq!(bench.log.lock().unwrap().stale.len(), 20);
        bench.pass(ms(60));
        assert_eq!(bench.ack(21).arrives(), ["P22", "P23"]);
        assert_eq!(bench.state(), (2, 40, 2));
        assert_eq!((bench.phase(), bench.info().ca_state), (RtoPhase::Open, Phase::Open));
        assert_eq!(bench.verdicts(), [RtoVerdict::Spurious]);
        assert_eq!(bench.retransmitted(), 0);
        // C3: the probe's own round trip of 100 ms, and not what the stall added.
        assert_eq!((bench.info().rtt, bench.info().backoff), (rtt.or(srtt), backoff));
        // C2: ordinary slow start follows.
        assert_eq!(bench.ack(22).arrives(), ["P24", "P25"]);
        assert_eq!(bench.state().0, 3);
        assert_eq!(bench.endpoint.counters().tcp_loss_undo, 0, "there is nothing to undo");
        assert_eq!(bench.endpoint.counters().tcp_spurious_rtos, 1);
    }
}

#[test]
fn example_7_3_timeout_due_to_stalling_and_loss() {
    for setup in [paper(), Setup::default()] {
        let mut bench = setup.open();
        probe_with_new_data(&mut bench);
        for packet in 1..=9 {
            assert_eq!(bench.ack(packet).arrives(), NOTHING);
        }
        for last in 11..=20 {
            assert_eq!(bench.ack(9).sack(11, last).arrives(), NOTHING, "tags only");
            assert_eq!(bench.info().lost, 0);
        }
        assert_eq!(bench.ack(9).sack(11, 21).arrives(), ["P10r1", "P22"]);
        assert_eq!(bench.info().lost, SMSS, "P10 and nothing else");
        assert_eq!(bench.state(), (2, 10, 2));
        assert_eq!(bench.phase(), RtoPhase::Repair);
        assert_eq!(bench.ack(21).arrives().first().map(String::as_str), Some("P23"));
        assert_eq!((bench.phase(), bench.retransmitted()), (RtoPhase::Open, 1));
    }
}

#[test]
fn e1_the_probe_is_lost() {
    let mut bench =
        Setup { rto: "dclor:profile=paper,probe_repeat=same,probe_rtt=rfc4015", ..paper() }.open();
    probe_with_new_data(&mut bench);
    assert_eq!(bench.rto(), ["P21r1"]);
    assert_eq!(bench.info().backoff, 2);
    assert_eq!(bench.state().0, 0);
    assert_eq!(bench.ack(0).sack(21, 21).arrives(), ["P1r1", "P2r1"]);
    assert_eq!(bench.state(), (2, 10, 2), "20 were saved, and SS_PTR stayed");
    assert_eq!(bench.info().backoff, 2, "Karn: no sample of a probe that left twice");
}

#[test]
fn e1b_the_probe_is_lost_and_new_data_follows() {
    let mut bench = paper().open();
    probe_with_new_data(&mut bench);
    assert_eq!(bench.rto(), ["P22"]);
    // SS_PTR is P22's: P21 alone is stale, and 20 stay saved.
    assert_eq!(bench.ack(0).sack(21, 21).arrives(), NOTHING);
    assert_eq!(bench.ack(0).sack(21, 22).arrives(), ["P1r1", "P2r1"]);
    assert_eq!(bench.state(), (2, 10, 2));
}

#[test]
fn e2_no_new_data_and_all_is_lost() {
    let mut bench = no_new_data("dclor").open();
    assert_eq!(bench.rto(), ["P20r1"]);
    assert_eq!(bench.ack(0).sack(20, 20).arrives(), ["P1r1", "P2r1"]);
    assert_eq!(bench.state(), (2, 10, 2));
}

/// All of 20 packets is stalled, and the probe is P20 again.
fn e2b(rto: &'static str, timestamps: bool) -> Bench {
    let mut bench = Setup { timestamps, ..no_new_data(rto) }.open();
    bench.pass(ms(5));
    assert_eq!(bench.rto(), ["P20r1"]);
    let original = bench.tsval(20, 0);
    for packet in 1..=19 {
        assert_eq!(bench.ack(packet).tsecr(original).arrives(), NOTHING);
    }
    assert_eq!(bench.phase(), RtoPhase::Probe, "stale up to A(19)");
    assert_eq!(bench.ack(20).tsecr(original).arrives(), NOTHING, "there is nothing to send");
    assert_eq!(bench.phase(), RtoPhase::Open);
    bench
}

#[test]
fn e2b_no_new_data_and_all_is_stalled() {
    assert_eq!(e2b("dclor:profile=paper", false).state(), (2, 40, 0), "literal");
    assert_eq!(e2b("dclor", true).state(), (2, 40, 0), "conservative, and TSecr proves the original");
    assert_eq!(e2b("dclor", false).state(), (2, 10, 0), "conservative, without proof");
}

/// P1 to P19 come late and P20 is lost: the probe repairs it.
fn e2c(rto: &'static str) -> Bench {
    let mut bench = Setup { timestamps: true, ..no_new_data(rto) }.open();
    assert_eq!(bench.rto(), ["P20r1"]);
    let original = bench.tsval(20, 0);
    for packet in 1..=19 {
        assert_eq!(bench.ack(packet).tsecr(original).arrives(), NOTHING);
    }
    let probe = bench.tsval(20, 1);
    assert_eq!(bench.ack(20).tsecr(probe).arrives(), NOTHING);
    assert_eq!(bench.phase(), RtoPhase::Open);
    bench
}

#[test]
fn e2c_the_probe_repairs_the_only_loss() {
    assert_eq!(e2c("dclor:profile=paper").state(), (2, 40, 0), "the draft's flaw: nothing seems lost");
    let mut bench = e2c("dclor");
    assert_eq!(bench.state(), (2, 10, 0));
    // I-14: a DSACK for the probe proves that the original had arrived; `ssthresh` comes back, the
    // window does not.
    assert_eq!(bench.ack(20).sack(20, 20).arrives(), NOTHING);
    assert_eq!(bench.state(), (2, 40, 0));
    assert_eq!(bench.verdicts(), [RtoVerdict::Lossy, RtoVerdict::Spurious]);
}

#[test]
fn a_dsack_with_the_ack_of_the_probe_is_proof() {
    let mut bench = no_new_data("dclor").open();
    bench.rto();
    assert_eq!(bench.ack(20).sack(20, 20).arrives(), NOTHING);
    assert_eq!((bench.state(), bench.phase()), ((2, 40, 0), RtoPhase::Open));
}

#[test]
fn e3_the_receive_window_is_full() {
    for (rto, timestamps, ssthresh) in
        [("dclor:profile=paper", false, 40), ("dclor", true, 40), ("dclor", false, 10)]
    {
        let mut bench = Setup { rto, timestamps, rwnd: 20, ..Setup::default() }.open();
        bench.pass(ms(5));
        assert_eq!(bench.rto(), ["P20r1"], "P21 would lie beyond the window");
        let original = bench.tsval(20, 0);
        assert_eq!(bench.ack(20).tsecr(original).arrives(), ["P21", "P22"]);
        assert_eq!(bench.state(), (2, ssthresh, 2));
    }
}

/// P5 to P20 are SACKed, and the timeout comes before P1 to P4 are found lost: reordering was seen
/// on the connection, so that RACK waits for a quarter of the round trip. Packets are numbered from
/// here.
fn e4(rto: &'static str) -> Bench {
    let mut bench =
        Setup { rto, packets: 0, tune: |config| config.loss = LossDetection::Rack, ..Setup::default() }
            .connect();
    bench.write(4);
    assert_eq!(bench.names().len(), 4);
    bench.pass(ms(100));
    assert_eq!(bench.ack(0).sack(2, 2).arrives(), NOTHING);
    assert_eq!(bench.ack(4).arrives(), NOTHING);
    bench.renumber(4);
    bench.write(20);
    assert_eq!(bench.names().len(), 20);
    let wait = bench.time_to_rto();
    bench.pass(wait - ms(5));
    assert_eq!(bench.ack(0).sack(5, 20).arrives(), NOTHING);
    assert_eq!((bench.state(), bench.info().sacked), ((20, 40, 4), 16 * SMSS));
    // New data comes just before the timer fires: before that the SACKed part of the window would
    // have let it out.
    bench.write(40);
    assert_eq!(bench.rto(), ["P21"]);
    assert_eq!(bench.info().sacked, 0, "R5");
    bench
}

#[test]
fn e4_the_peer_reneged() {
    for (rto, ssthresh) in [("dclor", 2), ("dclor:saved_window=flight", 10)] {
        let mut bench = e4(rto);
        assert_eq!(bench.ack(0).sack(21, 21).arrives(), ["P1r1", "P2r1"]);
        assert_eq!(bench.state(), (2, ssthresh, 2));
        assert_eq!(bench.info().lost - bench.info().retrans, 18 * SMSS, "18 are left");
    }
}

#[test]
fn e4b_the_peer_kept_what_it_had() {
    let mut bench = e4("dclor");
    assert_eq!(bench.ack(0).sack(5, 21).arrives(), ["P1r1", "P2r1"]);
    assert_eq!(bench.info().lost - bench.info().retrans, 2 * SMSS, "P3 and P4");
    assert_eq!(bench.ack(1).sack(5, 21).arrives(), ["P3r1"], "ssthresh is reached");
    assert_eq!(bench.ack(2).sack(5, 21).arrives(), ["P4r1", "P22"]);
    let left = bench.ack(21).arrives();
    assert!(left.iter().all(|name| !name.contains('r')), "nothing SACKed is sent again: {left:?}");
}

#[test]
fn e5_an_ack_of_ss_ptr_is_stale_and_one_octet_more_is_not() {
    let mut bench = Setup::default().open();
    probe_with_new_data(&mut bench);
    assert_eq!(bench.ack_bytes(20_000).arrives(), NOTHING, "E5");
    assert_eq!(bench.phase(), RtoPhase::Probe);
    assert_eq!(bench.ack_bytes(20_400).arrives(), ["P22"], "E5b: the rest of the probe is in the network");
    let info = bench.info();
    assert_eq!((info.snd_cwnd, info.snd_ssthresh, info.pipe), (2_000, Some(40_000), 1_600));
}

#[test]
fn e6_without_sack_it_is_go_back_n() {
    let no_sack = Setup { sack: false, ..Setup::default() };
    let none_seen = Setup { rto: "dclor:require_sack_seen=on", ..Setup::default() };
    for setup in [no_sack, none_seen] {
        let mut bench = setup.open();
        assert_eq!(bench.rto(), ["P1r1"]);
        assert_eq!(bench.state(), (1, 10, 1));
        assert_eq!(bench.phase(), RtoPhase::Repair);
    }
}

#[test]
fn e7_duplicate_acks_do_not_count_in_probe() {
    let mut bench = Setup::default().open();
    probe_with_new_data(&mut bench);
    for last in 2..=6 {
        assert_eq!(bench.ack(0).sack(2, last).arrives(), NOTHING, "no fast retransmit");
    }
    assert_eq!((bench.state().1, bench.info().lost), (40, 0));
    assert_eq!(bench.ack(0).sack(2, 21).arrives(), ["P1r1", "P22"]);
    assert_eq!(bench.state(), (2, 10, 2));
}

#[test]
fn e8_the_stalled_window_arrives_and_the_probe_is_lost() {
    let arrived = |setup: Setup| {
        let mut bench = setup.open();
        probe_with_new_data(&mut bench);
        for packet in 1..=20 {
            assert_eq!(bench.ack(packet).arrives(), NOTHING);
        }
        bench
    };
    let mut bench = arrived(same());
    assert_eq!(bench.rto(), ["P21r1"]);
    assert_eq!(bench.ack(21).arrives(), ["P22", "P23"]);
    assert_eq!(bench.state(), (2, 40, 2));
    // The second probe shows that the first is lost: half of the 20 that were saved.
    let mut bench = arrived(Setup::default());
    assert_eq!(bench.rto(), ["P22"]);
    assert_eq!(bench.ack(20).sack(22, 22).arrives(), ["P21r1", "P23"]);
    assert_eq!(bench.state(), (2, 10, 2));
}

#[test]
fn e8_saves_the_pipe_of_the_first_timeout() {
    // As E8, but the second probe shows a loss: half of the 20 of the first timeout, not of the one
    // packet that was left.
    let mut bench = same().open();
    probe_with_new_data(&mut bench);
    for packet in 1..=18 {
        bench.ack(packet).arrives();
    }
    assert_eq!(bench.rto(), ["P21r1"]);
    assert_eq!(bench.ack(18).sack(21, 21).arrives(), ["P19r1", "P20r1"]);
    assert_eq!(bench.state(), (2, 10, 2));
}

#[test]
fn e9_a_dsack_is_no_evidence() {
    let mut bench = no_new_data("dclor").open();
    assert_eq!(bench.rto(), ["P20r1"]);
    assert_eq!(bench.ack(3).sack(2, 2).arrives(), NOTHING);
    assert_eq!((bench.phase(), bench.state().0), (RtoPhase::Probe, 0));
}

#[test]
fn e10_after_three_probes_go_back_n_takes_over() {
    let mut bench = same().open();
    probe_with_new_data(&mut bench);
    assert_eq!(bench.rto(), ["P21r1"]);
    assert_eq!(bench.rto(), ["P21r2"]);
    assert_eq!(bench.rto(), ["P1r1"]);
    assert_eq!(bench.state(), (1, 10, 1));
    assert_eq!(bench.info().backoff, 4);
    // It stays with go-back-N until what is outstanding is acknowledged.
    assert_eq!(bench.rto(), ["P1r2"]);
    assert_eq!(bench.state().1, 10);
    // Literally, the probes have no end.
    let mut bench = paper().open();
    for probe in ["P21", "P22", "P23", "P24", "P25"] {
        assert_eq!(bench.rto(), [probe]);
    }
}

#[test]
fn e10_the_core_takes_over_where_the_response_does_not() {
    let mut bench = Setup { max_undecided: 3, ..paper() }.open();
    for sent in ["P21", "P22", "P23", "P1r1"] {
        assert_eq!(bench.rto(), [sent]);
    }
    assert_eq!(bench.state(), (1, 10, 1), "congestion control's own rule: half of the window");
    // The response has forgotten the episode: the next timeout is a new one.
    bench.ack(23).arrives();
    bench.ack(24).arrives();
    let next = bench.rto();
    assert_eq!(next.len(), 1);
    assert!(!next[0].contains('r'), "a probe with new data: {next:?}");
}

#[test]
fn e11_one_segment_in_flight() {
    for (rto, ssthresh) in [("dclor:profile=paper", 40), ("dclor", 2)] {
        let mut bench = Setup { rto, packets: 1, ..Setup::default() }.open();
        assert_eq!(bench.rto(), ["P1r1"]);
        assert_eq!(bench.ack(1).arrives(), NOTHING);
        assert_eq!(bench.state(), (2, ssthresh, 0));
        // The original had arrived: nothing is outstanding, and the DSACK is heard all the same.
        assert_eq!(bench.ack(1).sack(1, 1).arrives(), NOTHING);
        assert_eq!(bench.state(), (2, 40, 0));
    }
}

#[test]
fn e12_the_peer_never_sends_sack() {
    let mut bench = Setup::default().open();
    probe_with_new_data(&mut bench);
    assert_eq!(bench.ack(0).arrives(), ["P1r1"]);
    assert_eq!(bench.state(), (1, 10, 1));
    assert_eq!(bench.info().backoff, 1, "it is no expiry");
    // And never again on this connection.
    bench.ack(21).arrives();
    assert_eq!(bench.rto(), ["P22r1"], "the head");
}

/// L4 and C1: the window of an exit is two segments, also if it was one before (RFC 5681, section
/// 3.1, after a SYN that was lost).
#[test]
fn an_exit_raises_a_window_of_one_segment() {
    for rto in ["dclor", "dclor:profile=paper"] {
        let mut bench = Setup { rto, cwnd: 1, ..Setup::default() }.open();
        assert_eq!(bench.rto(), ["P2"]);
        assert_eq!(bench.ack(0).sack(2, 2).arrives(), ["P1r1", "P3"]);
        assert_eq!(bench.state(), (2, 2, 2), "lossy");
        let mut bench = Setup { rto, cwnd: 1, ..Setup::default() }.open();
        assert_eq!(bench.rto(), ["P2"]);
        assert_eq!(bench.ack(2).arrives(), ["P3", "P4"]);
        assert_eq!(bench.state(), (2, 40, 2), "clean");
    }
}

/// I-14 and I-12: without proof `ssthresh` is half of what was saved, as after a loss, also if that
/// is more than before.
#[test]
fn an_unproved_clean_exit_sets_ssthresh_as_a_lossy_one_does() {
    let avoidance = || Setup { ssthresh: 5, ..no_new_data("dclor") };
    let mut lossy = avoidance().open();
    assert_eq!(lossy.rto(), ["P20r1"]);
    lossy.ack(0).sack(20, 20).arrives();
    let mut unproved = avoidance().open();
    assert_eq!(unproved.rto(), ["P20r1"]);
    unproved.ack(20).arrives();
    assert_eq!((lossy.state().1, unproved.state().1), (10, 10));
}

/// I-6: `new` finds the peer's window full, and sends the probe again. It was new data when the
/// episode began, so its ACK proves that nothing from before the timeout was lost; but it left
/// twice, and is no sample.
#[test]
fn a_repeated_probe_of_the_episode_still_counts_as_new() {
    let mut bench = Setup { rwnd: 21, ..sampled() }.open();
    probe_with_new_data(&mut bench);
    assert_eq!(bench.rto(), ["P21r1"], "P22 would lie beyond the window");
    bench.pass(ms(100));
    assert_eq!(bench.ack(21).arrives(), ["P22", "P23"]);
    assert_eq!(bench.state(), (2, 40, 2));
    assert_eq!(bench.verdicts(), [RtoVerdict::Spurious]);
    assert_eq!(bench.info().backoff, 2, "Karn");
}
