//! Tail loss probes (RFC 8985, section 7). The RTT is 100 ms: SRTT 100 ms, RTO 300 ms.

use super::bench::{Bench, SMSS, Setup, ms};
use crate::config::RtoFloor;
use crate::events::WakeReason::{Reorder, Rto, Tlp};
use crate::info::Blocked;
use crate::packet::SendReason::{FastRetransmit, NewData, RtoRetransmit, TailLossProbe};
use crate::policy::cc::{CongestionEvent, Pacing, Phase, Revise};
use crate::time::Duration;
use crate::units::Window;

fn setup() -> Setup {
    let mut setup = Setup::rack();
    setup.config.tlp = true;
    setup
}

/// Ten segments are out, and nothing waits.
fn ten_out() -> Bench {
    let mut bench = setup().open();
    bench.write(10 * SMSS);
    assert_eq!(bench.drain().len(), 10);
    bench
}

/// Section 7.2: PTO = 2 * SRTT; section 7.3: without new data, the highest segment; then the RTO
/// starts anew.
#[test]
fn the_last_segment_goes_again_after_two_round_trips() {
    let mut bench = ten_out();
    assert_eq!(bench.timer(), Some((ms(200), Tlp)));
    assert_eq!(bench.fire(), Tlp);
    assert_eq!(bench.drain(), [(9000, 1000, TailLossProbe)]);
    assert_eq!(bench.observe.counters.tcp_loss_probes, 1);
    assert_eq!(bench.timer(), Some((ms(300), Rto)), "one probe, then the timeout");
    assert_eq!((bench.events().len(), bench.info().ca_state), (0, Phase::Open));
    assert_eq!(bench.fire(), Rto);
    assert_eq!(bench.step(), Some((0, 1000, RtoRetransmit)));
}

/// A host may give its peers more time, but no more than until the retransmission timeout.
#[test]
fn a_margin_comes_on_top() {
    for (margin, due) in [(2, (ms(202), Tlp)), (500, (ms(300), Tlp))] {
        let mut bench = setup().open();
        bench.host.probe_margin = Duration::from_millis(margin);
        bench.write(10 * SMSS);
        bench.drain();
        assert_eq!(bench.timer(), Some(due));
    }
}

/// New data is preferred, whatever the congestion window.
#[test]
fn the_probe_is_new_data_where_there_is_some() {
    let mut bench = setup().open();
    bench.write(13 * SMSS);
    bench.drain();
    assert_eq!(bench.blocked(), Blocked::CongestionWindow);
    bench.fire();
    assert_eq!(bench.drain(), [(10_000, 1000, TailLossProbe)]);
    // It arrives: the tail before it was lost. What left with it took 300 ms; after a reordering
    // window beyond that RACK repairs it in recovery.
    bench.pass(ms(100));
    bench.sack(8000, &[(10_000, 11_000)]);
    assert_eq!(bench.timer(), Some((ms(25), Reorder)));
    bench.fire();
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    bench.set_cwnd(10);
    let left = bench.drain();
    assert_eq!(left[..2], [(8000, 1000, FastRetransmit), (9000, 1000, FastRetransmit)]);
    assert_eq!(bench.observe.counters.tcp_timeouts, 0);
}

/// New data that does not fit the peer's window is no probe.
#[test]
fn the_peers_window_bounds_the_probe() {
    let mut bench = Setup { wnd: 10 * SMSS + 500, ..setup() }.open();
    bench.write(20 * SMSS);
    bench.drain();
    bench.fire();
    assert_eq!(bench.step(), Some((9000, 1000, TailLossProbe)));
}

/// Section 7.2: a single segment waits for the peer's delayed ACK, too, but not beyond the timeout.
#[test]
fn a_single_segment_waits_for_a_delayed_ack() {
    let mut setup = setup();
    setup.config.min_rto = ms(1_000);
    let mut bench = setup.open();
    bench.write(SMSS);
    bench.drain();
    assert_eq!(bench.timer(), Some((ms(400), Tlp)), "2 * SRTT + 200 ms");
    let mut bench = Setup { ..self::setup() }.open();
    bench.write(SMSS);
    bench.drain();
    assert_eq!(bench.timer(), Some((ms(300), Tlp)), "no later than the timeout");
    assert_eq!(bench.fire(), Tlp);
    assert_eq!(bench.drain(), [(0, 1000, TailLossProbe)]);
    assert_eq!(bench.observe.counters.tcp_timeouts, 0);
    assert_eq!(bench.timer(), Some((ms(300), Rto)));
}

/// A path of 300 ms whose RTT has not varied for a hundred segments, all of which are acknowledged.
fn steady(rto_floor: RtoFloor) -> Bench {
    let mut setup = Setup { rtt: Some(ms(300)), ..setup() };
    setup.config.rto_floor = rto_floor;
    let mut bench = setup.open();
    for round in 1..=100 {
        bench.write(SMSS);
        bench.drain();
        bench.pass(ms(300));
        bench.ack(round * SMSS);
    }
    bench
}

/// A path whose RTT does not vary, and a single segment: its ACK may come 200 ms late, and neither
/// the probe nor the timeout is sooner, whatever the floor of the RTO applies to (RFC 8985,
/// sections 7.2 and 8).
#[test]
fn neither_probe_nor_timeout_overtakes_a_delayed_ack() {
    for rto_floor in [RtoFloor::Variance, RtoFloor::Sum] {
        let mut bench = steady(rto_floor);
        bench.write(SMSS);
        bench.drain();
        assert_eq!(bench.timer(), Some((ms(500), Tlp)), "{rto_floor:?}");
        bench.pass(ms(499));
        bench.ack(101 * SMSS);
        assert_eq!((bench.info().total_retrans, bench.info().timeouts), (0, 0), "{rto_floor:?}");
    }
}

/// Small segments that follow each other do not put the timeout of the oldest one off.
#[test]
fn a_single_segment_is_as_old_as_its_first_byte() {
    let mut bench = steady(RtoFloor::Sum);
    for _ in 0..4 {
        bench.write(10);
        bench.drain();
        bench.pass(ms(100));
    }
    assert_eq!(bench.timer(), Some((ms(100), Tlp)));
}

/// Linux: a floor below 200 ms says that the peers hold no ACK so long.
#[test]
fn a_low_floor_shortens_the_wait_for_a_delayed_ack() {
    let mut setup = Setup { rtt: Some(ms(1)), ..setup() };
    setup.config.min_rto = ms(5);
    let mut bench = setup.open();
    bench.write(SMSS);
    bench.drain();
    assert_eq!(bench.timer(), Some((ms(6), Tlp)));
}

#[test]
fn before_a_sample_the_probe_waits_one_second() {
    let mut setup = Setup { rtt: None, ..setup() };
    setup.config.initial_rto = ms(3_000);
    let mut bench = setup.open();
    bench.write(2 * SMSS);
    bench.drain();
    assert_eq!(bench.timer(), Some((ms(1_000), Tlp)));
}

/// Each ACK that reports something starts the timer anew; SACKed data and recovery stop it.
#[test]
fn the_timer_runs_only_where_nothing_else_would_tell() {
    let mut bench = ten_out();
    bench.pass(ms(100));
    bench.ack(5000);
    assert_eq!(bench.timer().unwrap().1, Tlp);
    bench.sack(5000, &[(6000, 7000)]);
    assert_ne!(bench.timer().unwrap().1, Tlp, "section 7.2: no SACKed data");
    bench.sack(5000, &[(6000, 9000)]);
    assert_eq!(bench.info().ca_state, Phase::Recovery);
    bench.drain();
    assert_ne!(bench.timer().unwrap().1, Tlp, "section 7.2: not in recovery");
    let mut bench = Setup { sack: false, ..setup() }.open();
    bench.write(SMSS);
    bench.drain();
    assert_eq!(bench.timer(), Some((ms(300), Rto)), "section 7.2: only with SACK");
}

/// Section 7.3: one probe in flight, and an RTT sample since the last one.
#[test]
fn one_probe_at_a_time_and_a_sample_between_two() {
    let mut bench = ten_out();
    bench.fire();
    bench.drain();
    bench.pass(ms(10));
    bench.write(SMSS);
    bench.set_cwnd(20);
    bench.drain();
    assert_eq!(bench.timer().unwrap().1, Rto, "the first one is not answered");
    bench.pass(ms(90));
    bench.ack(11_000);
    bench.write(SMSS);
    bench.drain();
    assert_eq!(bench.timer().unwrap().1, Tlp, "the new data gave a sample, and answered");
}

/// Section 7.4: the probe repaired the only loss. Congestion control hears of it once more is
/// acknowledged.
#[test]
fn a_loss_that_the_probe_repaired_is_reported() {
    let mut bench = ten_out();
    bench.pass(ms(100));
    bench.ack(9000);
    bench.fire();
    assert_eq!(bench.drain(), [(9000, 1000, TailLossProbe)]);
    bench.pass(ms(100));
    bench.ack(10_000);
    assert!(bench.events().is_empty(), "perhaps both copies arrived: a DSACK would follow");
    bench.write(2 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.ack(12_000);
    assert!(matches!(bench.events()[..], [CongestionEvent::Loss { .. }]));
    assert_eq!((bench.info().ca_state, bench.script.lock().unwrap().exits), (Phase::Open, 1));
    assert_eq!(bench.observe.counters.tcp_loss_probe_recovery, 1);
}

/// Section 7.4: both copies arrived, as DSACK tells, or a duplicate ACK of a peer that sends none.
#[test]
fn a_needless_probe_is_no_loss() {
    for dsack in [true, false] {
        let mut bench = ten_out();
        bench.pass(ms(100));
        bench.ack(9000);
        bench.fire();
        bench.drain();
        bench.ack(10_000);
        bench.pass(ms(100));
        // Nothing is outstanding.
        bench.sack(10_000, if dsack { &[(9000, 10_000)] } else { &[] });
        bench.write(2 * SMSS);
        bench.drain();
        bench.pass(ms(100));
        bench.ack(12_000);
        assert!(bench.events().is_empty(), "DSACK {dsack}");
        assert_eq!(bench.observe.counters.tcp_loss_probe_recovery, 0);
        // It is no sign of reordering either.
        assert_eq!(bench.observe.counters.tcp_sack_reorder, 0);
    }
}

/// Section 7.4: the ACK of a probe with new data ends the episode without consequence.
#[test]
fn a_probe_of_new_data_reports_no_loss() {
    let mut bench = setup().open();
    bench.write(11 * SMSS);
    bench.drain();
    bench.fire();
    assert_eq!(bench.drain(), [(10_000, 1000, TailLossProbe)]);
    bench.ack(11_000);
    bench.write(SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.ack(12_000);
    assert!(bench.events().is_empty());
}

/// What the pacer holds back will probe by itself.
#[test]
fn no_probe_while_a_departure_is_pending() {
    let mut setup = setup();
    setup.config.min_rto = ms(1_000);
    let mut bench = setup.open();
    bench.decide(|decision| {
        decision.pacing = Pacing::Gap { time: ms(900), over: Window::from_bytes(u64::from(SMSS)) };
        decision.revise = Revise::NextDeparture;
    });
    bench.write(3 * SMSS);
    assert_eq!(bench.drain(), [(0, 1000, NewData)]);
    assert_eq!(bench.fire(), Tlp);
    assert_eq!(bench.drain(), []);
    assert_eq!(bench.observe.counters.tcp_loss_probes, 0);
}

#[test]
fn the_probe_waits_for_the_device_once() {
    let mut bench = ten_out();
    bench.fire();
    let probe = bench.next().unwrap();
    bench.snd.reserve(&probe, 7);
    assert_eq!(bench.next(), None, "it is queued");
    let out = bench.snd.claim(7).unwrap();
    assert_eq!(out.reason, TailLossProbe);
    bench.sent(&out);
    assert_eq!(bench.observe.counters.tcp_loss_probes, 1);
    assert_eq!(bench.drain(), []);
}

/// The FIN is the tail as well.
#[test]
fn a_lost_fin_is_probed() {
    let mut bench = setup().open();
    bench.write(2 * SMSS);
    bench.snd.queue_fin();
    bench.drain();
    assert_eq!(bench.fire(), Tlp);
    let probe = bench.next().unwrap();
    assert!(probe.fin, "{probe:?}");
    assert_eq!(Bench::offset(probe.end()), 2001);
}

#[test]
fn switched_off() {
    let mut bench = Setup::rack().open();
    bench.write(2 * SMSS);
    bench.drain();
    assert_eq!(bench.timer(), Some((ms(300), Rto)));
}
