//! Retransmission, persist, override and pacing timers; giving memory back.

use super::bench::{Bench, SMSS, Setup, ctx, ms};
use crate::events::WakeReason::{Pace, Persist, Rto, SwsOverride, Trim};
use crate::info::Blocked;
use crate::packet::SendReason::{FastRetransmit, NewData, RtoProbe, RtoRetransmit, WindowProbe};
use crate::policy::cc::{Clock, CongestionEvent, Pacing, Phase, RestartCause, Revise, SsthreshRule, Undo};
use crate::policy::rto::{
    AckFacts, RtoCc, RtoGate, RtoPhase, RtoResponse, RtoRtt, RtoSend, RtoStep, RtoTags, RtoTimer, RtoVerdict,
    RtoView,
};
use crate::time::{Duration, Instant};
use crate::units::{Rate, Window};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// RTT 100 ms, so RTO = 100 + 4 * 50 ms.
#[test]
fn rto_runs_from_the_first_departure_and_restarts_on_progress() {
    let mut bench = Setup::default().open();
    assert_eq!(bench.timer(), None);
    bench.write(20 * SMSS);
    bench.drain();
    assert_eq!(bench.timer(), Some((ms(300), Rto)), "RFC 6298, 5.1");
    bench.pass(ms(50));
    bench.sack(0, &[(1000, 2000)]);
    assert_eq!(bench.timer(), Some((ms(250), Rto)), "a duplicate is no progress");
    bench.pass(ms(50));
    bench.ack(2000);
    // SRTT 100 ms, RTTVAR 3/4 * 50 ms: its floor of 200 ms holds.
    assert_eq!(bench.timer(), Some((ms(300), Rto)), "RFC 6298, 5.3");
    bench.ack(10_000);
    bench.drain();
    bench.ack(20_000);
    assert!(!matches!(bench.timer(), Some((_, Rto))), "RFC 6298, 5.2");
}

#[test]
fn rto_backs_off_and_waits_for_the_device() {
    let mut bench = Setup::default().open();
    bench.write(SMSS);
    bench.drain();
    let mut waits = Vec::new();
    for _ in 0..4 {
        waits.push(bench.timer().unwrap().0);
        assert_eq!(bench.fire(), Rto);
        assert_eq!(bench.drain(), [(0, 1000, RtoRetransmit)]);
    }
    assert_eq!(waits, [ms(300), ms(600), ms(1200), ms(2400)]);
    assert_eq!(bench.observe.counters.tcp_timeouts, 4);
    assert_eq!((bench.info().timeouts, bench.info().total_rto_recoveries), (4, 1));
    assert_eq!(
        bench.observe.counters.tcp_slow_start_retrans, 0,
        "the timer's own segments are counted as timeouts"
    );
    // The device is full: what the expiry wants is not sent twice, and does not back off twice.
    bench.fire();
    let waiting = bench.next().unwrap();
    bench.fire();
    assert_eq!((bench.observe.counters.tcp_timeouts, bench.next()), (5, Some(waiting)));
    assert_eq!(bench.info().backoff, 5);
    // Karn: the ACK of a retransmission is no sample, and the back-off stays until there is one.
    bench.ack(1000);
    assert_eq!(bench.info().backoff, 5);
    bench.write(SMSS);
    bench.drain();
    assert_eq!(bench.timer(), Some((ms(9600), Rto)));
    bench.pass(ms(100));
    bench.ack(2000);
    assert_eq!(bench.info().backoff, 0);
}

/// Minshall's rule counts small segments that left, not one that was reserved and given up.
#[test]
fn a_small_segment_that_was_given_up_blocks_nothing() {
    let mut setup = Setup::default();
    setup.config.nagle = crate::config::Nagle::Minshall;
    let mut bench = setup.open();
    bench.write(SMSS + 500);
    bench.step().unwrap();
    let small = bench.next().unwrap();
    assert_eq!(small.len, 500);
    bench.snd.reserve(&small, 1);
    // The peer takes its window back.
    bench.wnd = 1_100;
    bench.ack(0);
    assert_eq!(bench.snd.claim(1), None);
    bench.wnd = 1 << 20;
    bench.ack(SMSS);
    assert_eq!(bench.drain(), [(1000, 500, NewData)]);
}

/// RFC 7323: with timestamps the ACK of a retransmission is a sample.
#[test]
fn timestamps_give_samples_of_retransmissions() {
    let mut bench = Setup::default().open();
    bench.write(SMSS);
    bench.drain();
    bench.fire();
    bench.drain();
    bench.pass(ms(80));
    let mut segment = bench.segment(1000, &[]);
    (segment.ts_now, segment.tsecr) = (5_080, Some(5_000));
    bench.take(&segment);
    assert_eq!(bench.info().backoff, 0);
    assert_eq!(bench.info().rtt, Some(Duration::from_micros(97_500)));
    assert_eq!(bench.info().min_rtt, Some(ms(100)), "a tick is too coarse for a minimum");
}

#[test]
fn closed_window_is_probed_with_back_off_for_ever() {
    let mut bench = Setup { wnd: 3000, ..Setup::default() }.open();
    bench.write(10 * SMSS);
    assert_eq!(bench.drain().len(), 3);
    assert_eq!(bench.blocked(), Blocked::ReceiveWindow);
    bench.wnd = 0;
    bench.pass(ms(100));
    bench.ack(3000);
    assert_eq!(bench.drain(), []);
    assert_eq!(bench.observe.counters.tcp_peer_zero_window, 1);
    let mut waits = Vec::new();
    for _ in 0..5 {
        let (wait, reason) = bench.timer().unwrap();
        assert_eq!(reason, Persist);
        waits.push(wait.as_millis());
        bench.fire();
        let probes = bench.drain();
        assert_eq!(probes.len(), 1);
        assert_eq!((probes[0].1, probes[0].2), (0, WindowProbe));
        // The peer answers: it lives, so that the connection is not given up.
        bench.ack(3000);
        bench.drain();
        assert_eq!(bench.snd.stalled_since(), Some(bench.now));
    }
    assert_eq!(waits, [300, 600, 1200, 2400, 4800]);
    assert_eq!(bench.observe.counters.tcp_win_probe, 5);
    bench.wnd = 5000;
    bench.ack(3000);
    assert_eq!(bench.drain().len(), 5);
    bench.pass(ms(100));
    bench.wnd = 0;
    bench.ack(8000);
    bench.drain();
    assert_eq!(bench.timer(), Some((ms(300), Persist)), "the next closing starts anew");
}

#[test]
fn a_path_that_is_back_ends_the_wait_and_not_the_back_off() {
    let mut bench = Setup::default().open();
    bench.write(SMSS);
    bench.drain();
    assert!(!bench.snd.waits_for_a_backed_off_timer(), "the first timeout comes by itself");
    for _ in 0..3 {
        bench.fire();
        bench.drain();
    }
    bench.pass(ms(10));
    assert_eq!(bench.timer(), Some((ms(2390), Rto)));
    assert!(bench.snd.waits_for_a_backed_off_timer());
    bench.snd.end_back_off(bench.now);
    assert_eq!(bench.fire(), Rto);
    assert_eq!(bench.drain(), [(0, 1000, RtoRetransmit)]);
    assert_eq!(bench.timer(), Some((ms(4800), Rto)), "the path may have been good for one packet only");
}

#[test]
fn unanswered_probes_count_as_a_stall() {
    let mut bench = Setup { wnd: 0, ..Setup::default() }.open();
    bench.write(10);
    bench.drain();
    let start = bench.now;
    for _ in 0..3 {
        assert_eq!(bench.fire(), Persist);
        bench.drain();
    }
    assert_eq!(bench.snd.stalled_since(), Some(start));
}

/// RFC 9293, section 3.8.6.2.1.
#[test]
fn small_window_is_used_after_the_override() {
    let mut bench = Setup { wnd: 4000, ..Setup::default() }.open();
    bench.write(10 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.wnd = 500;
    bench.ack(4000);
    assert_eq!(bench.drain(), []);
    assert_eq!(bench.timer(), Some((ms(200), SwsOverride)));
    bench.fire();
    assert_eq!(bench.drain(), [(4000, 500, NewData)]);
    // Half the largest window that the peer ever had is enough without waiting.
    let mut bench = Setup { wnd: 900, ..Setup::default() }.open();
    bench.write(10 * SMSS);
    assert_eq!(bench.drain(), [(0, 900, NewData)]);
}

/// A receiver whose largest window is odd, and less than two segments, frees half of it at a time:
/// the smaller half.
#[test]
fn half_of_an_odd_window_is_used_without_waiting() {
    for (largest, freed, leaves) in
        [(1_501, 750, true), (1_501, 749, false), (1_500, 750, true), (1_500, 749, false)]
    {
        let mut bench = Setup { wnd: largest, ..Setup::default() }.open();
        bench.write(20 * SMSS);
        assert_eq!(bench.offsets(), [0]);
        bench.wnd = freed;
        bench.ack(1_000);
        let left = bench.drain();
        assert_eq!(left == [(1_000, freed, NewData)], leaves, "{freed} of {largest}: {left:?}");
        assert_eq!(left.is_empty(), !leaves);
    }
}

#[test]
fn idle_memory_is_given_back() {
    let mut bench = Setup::default().open();
    bench.write(SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.ack(1000);
    assert_eq!(bench.timer(), Some((ms(1000), Trim)));
    bench.fire();
    assert!(bench.snd.flight.is_none());
    assert_eq!(bench.timer(), None);
    bench.write(SMSS);
    assert_eq!(bench.drain().len(), 1);
}

#[test]
fn restart_after_idle() {
    let mut bench = Setup::default().open();
    bench.write(SMSS);
    bench.drain();
    bench.pass(ms(100));
    bench.ack(1000);
    bench.pass(ms(100));
    bench.write(SMSS);
    bench.drain();
    assert!(bench.script.lock().unwrap().restarts.is_empty(), "no longer than the RTO");
    bench.pass(ms(100));
    bench.ack(2000);
    bench.pass(ms(400));
    bench.write(SMSS);
    bench.drain();
    let restarts = bench.script.lock().unwrap().restarts.clone();
    assert_eq!(restarts.len(), 1);
    assert_eq!((restarts[0].cause, restarts[0].idle), (RestartCause::Idle, ms(500)));
    assert_eq!(restarts[0].window, Window::from_bytes(10_000), "RFC 6928: min(10 SMSS, max(2 SMSS, 14600))");
}

#[test]
fn the_pace_after_a_long_idle_is_the_first_samples_with_or_without_a_restart() {
    for restart in [true, false] {
        let mut setup = Setup::default();
        setup.config.restart_after_idle = restart;
        let mut bench = setup.open();
        bench.write(SMSS);
        bench.drain();
        bench.pass(ms(100));
        bench.ack(1000);
        bench.pass(Duration::from_secs(11));
        bench.write(SMSS);
        bench.drain();
        bench.pass(ms(300));
        bench.ack(2000);
        assert_eq!(bench.snd.stream.rtt.srtt_pace(), Some(ms(300)), "restart_after_idle = {restart}");
    }
}

fn departures(bench: &mut Bench, count: usize) -> Vec<u64> {
    let start = bench.now;
    let mut times = Vec::new();
    while times.len() < count {
        if bench.step().is_some() {
            times.push(bench.now.since(start).as_micros());
        } else {
            assert_eq!(bench.blocked(), Blocked::Pacing);
            assert_eq!(bench.fire(), Pace);
        }
    }
    times
}

#[test]
fn paced_departures_keep_their_distance() {
    let mut bench = Setup::default().open();
    bench.write(100 * SMSS);
    bench.decide(|d| d.pacing = Pacing::AtRate(Rate::from_bytes_per_second(3_000_000)));
    // 1000 bytes take 333.3 us; the thirds are carried.
    assert_eq!(departures(&mut bench, 4), [0, 333, 666, 1000]);

    let mut bench = Setup::default().open();
    bench.write(100 * SMSS);
    bench.decide(|d| d.pacing = Pacing::WindowOverRtt { gain: 512 });
    // Two windows of ten segments in 100 ms.
    assert_eq!(departures(&mut bench, 3), [0, 5000, 10_000]);
}

/// A path of 100 ms stands still for ten minutes, of which an ACK then gives a sample. Thereafter a
/// paced window leaves as before: the pace does not remember the stall, nor does a departure that
/// became pending while it was in force.
#[test]
fn a_stall_of_minutes_does_not_set_the_pace() {
    for revise in [Revise::Retroactive, Revise::NextDeparture, Revise::Banked] {
        let mut bench = Setup::default().open();
        bench.decide(|d| {
            d.pacing = Pacing::WindowOverRtt { gain: 256 };
            d.revise = revise;
        });
        bench.write(SMSS);
        bench.drain();
        // The sample is of an original: its timeouts found the device full.
        bench.pass(ms(600_000));
        bench.ack(SMSS);
        assert_eq!(bench.info().rtt.unwrap().as_millis(), 75_087, "the timeout's estimator keeps it");
        bench.write(100 * SMSS);
        let stalled = bench.now;
        let (mut left, mut acked) = (Vec::new(), 1);
        while left.len() < 100 {
            left.extend(core::iter::repeat_n(bench.now, bench.drain().len()));
            bench.pass(ms(10));
            while left.get(acked - 1).is_some_and(|at: &Instant| bench.now.since(*at) >= ms(100)) {
                acked += 1;
                bench.ack(acked as u32 * SMSS);
            }
        }
        let took = bench.now.since(stalled);
        assert!(took < ms(3_000), "{revise:?}: a hundred segments, ten per round trip, took {took:?}");
    }
}

#[test]
fn as_many_segments_leave_at_once_as_the_driver_cannot_tell_apart() {
    // 4500 bytes in a millisecond.
    for (tick, len) in [(ms(1), 4000), (Duration::from_micros(50), 1000), (Duration::from_nanos(1), 1000)] {
        let mut bench = Setup::default().open();
        bench.set_cwnd(100);
        bench.max_payload = 60 * SMSS;
        bench.departure_tick = tick;
        bench.write(100 * SMSS);
        bench.decide(|d| d.pacing = Pacing::AtRate(Rate::from_bytes_per_second(4_500_000)));
        assert_eq!(bench.drain(), [(0, len, NewData)], "{tick:?}");
    }
}

/// What an algorithm is told on an ACK: that its window (here by way of the pace that follows from
/// it) held data back.
#[test]
fn a_pace_that_follows_from_the_window_limits_as_the_window_does() {
    let paced = Pacing::Gap { time: ms(100), over: Window::from_bytes(10 * u64::from(SMSS)) };
    let rate = Pacing::AtRate(Rate::from_bytes_per_second(100_000));
    // Bytes written, the pace, and whether the window counts as the limit; its room is ten
    // segments.
    for (written, pacing, limited) in [(100, paced, true), (5, paced, false), (100, rate, false)] {
        let mut bench = Setup::default().open();
        bench.write(written * SMSS);
        bench.decide(|d| d.pacing = pacing);
        assert_eq!(departures(&mut bench, 3), [0, 10_000, 20_000]);
        bench.drain();
        bench.ack(1000);
        let told = bench.script.lock().unwrap().acks.last().map(|(view, _)| view.cwnd_limited);
        assert_eq!(told, Some(limited), "{written} segments, {pacing:?}");
    }
}

#[test]
fn revise_decides_about_a_pending_departure() {
    let gap = |millis| Pacing::Gap { time: ms(millis), over: Window::from_bytes(u64::from(SMSS)) };
    for (revise, wait) in [(Revise::Retroactive, 4), (Revise::NextDeparture, 10), (Revise::Banked, 10)] {
        let mut bench = Setup::default().open();
        bench.write(100 * SMSS);
        bench.decide(|d| (d.pacing, d.revise) = (gap(10), revise));
        bench.drain();
        assert_eq!(bench.timer(), Some((ms(10), Pace)));
        bench.decide(|d| d.pacing = gap(4));
        bench.drain();
        assert_eq!(bench.timer(), Some((ms(wait), Pace)), "{revise:?}");
    }
}

#[test]
fn departure_clock_ignores_the_window() {
    let mut bench = Setup::default().open();
    bench.write(100 * SMSS);
    bench.decide(|d| {
        d.window = Window::from_raw(1);
        d.clock = Clock::Departure { max_outstanding: 3 };
        d.pacing = Pacing::Gap { time: ms(10), over: Window::from_bytes(u64::from(SMSS)) };
    });
    assert_eq!(departures(&mut bench, 3), [0, 10_000, 20_000]);
    bench.drain();
    assert_eq!(bench.blocked(), Blocked::CongestionWindow);
    // From the latest departure: SRTT, two gaps, 4 RTTVAR.
    assert_eq!(bench.timer(), Some((ms(320), Rto)));
    bench.pass(ms(5));
    bench.ack(1000);
    assert_eq!(bench.drain(), []);
    assert_eq!(bench.fire(), Pace);
    assert_eq!(bench.drain().len(), 1);
}

/// The departure clock at half a segment per round trip, with a receiver that acknowledges every
/// second segment: its wait for the second one must not enter the clock's RTT, which would then
/// grow by a round trip with each round (Ahmed 2019, section 6.3: 400, 600, 800 us instead of 200).
#[test]
fn the_receivers_wait_does_not_enter_the_clocks_rtt() {
    let rtt = Duration::from_micros(200);
    let mut bench = Setup { rtt: Some(rtt), ..Setup::default() }.open();
    bench.write(100 * SMSS);
    let half = Window::from_bytes(u64::from(SMSS / 2));
    for round in 1..=6 {
        let srtt = bench.snd.flow_view(bench.now).srtt_pace.unwrap();
        assert_eq!(srtt, rtt, "round {round}");
        bench.decide(|d| {
            d.clock = Clock::Departure { max_outstanding: 2 };
            d.pacing = Pacing::Gap { time: srtt, over: half };
            d.revise = Revise::Retroactive;
        });
        // Two segments, two round trips apart; the ACK of both comes a round trip after the second.
        let mut left = bench.drain().len();
        while left < 2 {
            assert_eq!(bench.fire(), Pace);
            left += bench.drain().len();
        }
        bench.pass(rtt);
        bench.ack(round * 2 * SMSS);
    }
    assert!(bench.info().rtt.unwrap() > rtt, "it does enter the one that feeds the RTO");
}

/// A path of 1 ms, a minimum of the timeout of 1 ms, half a segment per round trip, a peer that
/// waits for two segments or 40 ms: the timeout has room for the second segment's departure, and
/// for the timer if no second one comes.
#[test]
fn the_timeout_waits_for_what_the_clock_and_the_peers_timer_hold() {
    for (written, outstanding, rto) in [(1, 1, 45), (2, 2, 5)] {
        let mut setup = Setup { rtt: Some(ms(1)), ..Setup::default() };
        setup.config.min_rto = ms(1);
        let mut bench = setup.open();
        bench.decide(|d| {
            d.clock = Clock::Departure { max_outstanding: 2 };
            d.pacing = Pacing::Gap { time: ms(1), over: Window::from_bytes(u64::from(SMSS / 2)) };
        });
        bench.write(written * SMSS);
        let mut left = bench.drain().len();
        while left < outstanding {
            assert_eq!(bench.timer(), Some((ms(2), Pace)));
            assert_eq!(bench.fire(), Pace);
            left += bench.drain().len();
        }
        // A round trip, a gap of two, 4 RTTVAR of two.
        assert_eq!(bench.timer(), Some((ms(rto), Rto)), "{written}");
    }
}

/// A peer that acknowledges every second segment holds the ACK of a single one for 40 ms. The pace
/// does not follow.
#[test]
fn the_peers_timer_does_not_set_the_pace() {
    let mut bench = Setup { rtt: Some(ms(1)), ..Setup::default() }.open();
    bench.write(20 * SMSS);
    bench.drain();
    bench.pass(ms(1));
    bench.ack(2 * SMSS);
    bench.pass(ms(40));
    let delivered = |bench: &Bench| bench.script.lock().unwrap().acks.last().unwrap().1.newly_delivered;
    bench.ack(3 * SMSS);
    let view = bench.snd.flow_view(bench.now);
    assert_eq!(view.srtt_pace, Some(ms(1)));
    assert_eq!(delivered(&bench), SMSS, "the ACK counts otherwise");
    bench.ack(5 * SMSS);
    assert!(bench.snd.flow_view(bench.now).srtt_pace > Some(ms(1)), "two segments: the path is slower");
}

#[test]
fn window_below_a_segment_does_not_stop_the_flow() {
    let mut bench = Setup::default().open();
    bench.decide(|d| d.window = Window::from_raw(1));
    bench.write(2 * SMSS);
    assert_eq!(bench.drain(), [(0, 1000, NewData)]);
    bench.ack(1000);
    assert_eq!(bench.drain(), [(1000, 1000, NewData)]);
}

/// A response that waits for evidence, as F-RTO and DCLOR do.
#[derive(Debug, Default)]
struct Prober {
    phase: RtoPhase,
    probed: Option<crate::SeqNum>,
}

impl RtoResponse for Prober {
    fn name(&self) -> &'static str {
        "prober"
    }
    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        self.phase = RtoPhase::Probe;
        self.probed = Some(view.flow.snd_nxt);
        let mut step = RtoStep::consume();
        step.send = RtoSend::NewElseHighest;
        step.tags = RtoTags::ClearSack;
        step.gate = RtoGate::Closed;
        step.timer = RtoTimer::Backoff;
        step
    }
    fn on_ack(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        if self.phase != RtoPhase::Probe {
            return None;
        }
        let mut step = RtoStep::consume();
        step.gate = RtoGate::Closed;
        if ack.covers(self.probed?) {
            self.phase = RtoPhase::Open;
            step.gate = RtoGate::ByCc;
            if ack.ack.gt(self.probed?) {
                step.tags = RtoTags::Unmark;
                step.cc = RtoCc::Undo(Undo::All);
                step.rtt = RtoRtt::Take;
                step.verdict = Some(RtoVerdict::Spurious);
            } else {
                self.phase = RtoPhase::Repair;
                step.tags = RtoTags::AllLost;
                step.cc = RtoCc::Timeout {
                    window: Window::from_bytes(u64::from(2 * view.flow.smss)),
                    ssthresh: SsthreshRule::To(Window::from_bytes(5_000)),
                };
                step.verdict = Some(RtoVerdict::Lossy);
            }
        }
        Some(step)
    }
    fn phase(&self) -> RtoPhase {
        self.phase
    }
}

fn probing() -> Bench {
    let mut setup = Setup::default();
    setup.config.policies.rto = Arc::new(|| Box::new(Prober::default()));
    let mut bench = setup.open();
    bench.write(60 * SMSS);
    bench.drain();
    bench.fire();
    assert_eq!(bench.drain(), [(10_000, 1000, RtoProbe)], "new data, and nothing else");
    bench
}

#[test]
fn response_finds_a_timeout_spurious() {
    let mut bench = probing();
    for i in 1..=10 {
        bench.pass(ms(10));
        bench.ack(i * 1000);
        assert_eq!(bench.drain(), [], "the gate is closed");
    }
    assert!(bench.script.lock().unwrap().acks.is_empty(), "no growth on consumed ACKs");
    assert_eq!(bench.info().rtt, Some(ms(100)), "no sample while it probes");
    bench.ack(11_000);
    assert_eq!(bench.script.lock().unwrap().undos, [Undo::All]);
    assert_eq!(bench.info().ca_state, Phase::Open);
    assert_eq!(bench.observe.counters.tcp_loss_undo, 1);
    assert_eq!(bench.drain().len(), 10);
    assert_eq!(bench.info().total_retrans, 0);
}

#[test]
fn response_finds_a_timeout_genuine() {
    let mut bench = probing();
    bench.sack(0, &[(10_000, 11_000)]);
    assert_eq!(bench.info().ca_state, Phase::Loss);
    assert!(matches!(bench.events()[..], [CongestionEvent::Timeout { first: true, .. }]));
    bench.set_cwnd(2);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit), (1000, 1000, FastRetransmit)]);
    // Losses below the recovery point reduce nothing again.
    bench.sack(2000, &[(5000, 10_000)]);
    assert_eq!(bench.events().len(), 1);
}

/// The core's rule: after three undecided timeouts the conventional response takes over, head
/// first.
#[test]
fn undecided_response_is_replaced() {
    let mut bench = probing();
    for _ in 0..2 {
        bench.fire();
        assert_eq!(bench.drain().len(), 1);
    }
    bench.fire();
    bench.set_cwnd(1);
    assert_eq!(bench.drain(), [(0, 1000, RtoRetransmit)]);
    assert!(matches!(bench.events()[..], [CongestionEvent::Timeout { .. }]));
    bench.set_cwnd(2);
    bench.ack(1000);
    assert_eq!(bench.drain(), [(1000, 1000, FastRetransmit), (2000, 1000, FastRetransmit)]);
    assert_eq!(bench.script.lock().unwrap().acks.len(), 1, "the window grows again");
}

/// A response that counts what it is asked.
#[derive(Debug)]
struct Witness(Arc<core::sync::atomic::AtomicU32>);

impl RtoResponse for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }
    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        self.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        RtoStep::conventional(view.flow.smss)
    }
    fn on_ack(&mut self, _: &RtoView, _: &AckFacts) -> Option<RtoStep> {
        self.0.fetch_add(100, core::sync::atomic::Ordering::Relaxed);
        None
    }
    fn phase(&self) -> RtoPhase {
        RtoPhase::Open
    }
}

/// Puts a witness in the place of the response; what it is asked.
fn swap(bench: &mut Bench) -> Arc<core::sync::atomic::AtomicU32> {
    let asked = Arc::new(core::sync::atomic::AtomicU32::new(0));
    let shared = asked.clone();
    let mut ctx = ctx!(bench);
    bench.snd.swap_rto_response(&mut ctx, &bench.config, &move || Box::new(Witness(shared.clone())));
    asked
}

fn asked(witness: &core::sync::atomic::AtomicU32) -> u32 {
    witness.load(core::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_swap_while_the_old_response_probes_repairs_conventionally() {
    let mut bench = probing();
    let witness = swap(&mut bench);
    assert!(matches!(bench.events()[..], [CongestionEvent::Timeout { first: true, .. }]));
    bench.set_cwnd(1);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit)], "the head, and the timer goes on");
    assert_eq!(bench.info().backoff, 1, "the swap is no expiry");
    bench.set_cwnd(2);
    bench.ack(1000);
    assert_eq!(bench.drain(), [(1000, 1000, FastRetransmit), (2000, 1000, FastRetransmit)]);
    bench.ack(11_000);
    assert_eq!(bench.info().ca_state, Phase::Open);
    assert_eq!(bench.events().len(), 1);
    assert_eq!(asked(&witness), 0, "the episode was not its own");
    bench.drain();
    bench.fire();
    assert_eq!(asked(&witness), 1, "the next one is");
}

#[test]
fn a_swap_while_losses_are_repaired_reduces_nothing_again() {
    let mut bench = probing();
    bench.sack(0, &[(10_000, 11_000)]);
    assert_eq!(bench.events().len(), 1);
    let witness = swap(&mut bench);
    bench.set_cwnd(2);
    assert_eq!(bench.drain(), [(0, 1000, FastRetransmit), (1000, 1000, FastRetransmit)]);
    bench.sack(2000, &[(5000, 10_000)]);
    assert_eq!(bench.info().ca_state, Phase::Loss);
    bench.ack(11_000);
    assert_eq!(bench.info().ca_state, Phase::Open);
    assert_eq!((bench.events().len(), asked(&witness)), (1, 0));
}

#[test]
fn a_swap_between_episodes_changes_nothing_before_the_next() {
    let mut bench = Setup::default().open();
    bench.write(60 * SMSS);
    bench.drain();
    let witness = swap(&mut bench);
    assert_eq!(bench.drain(), []);
    bench.ack(1000);
    assert_eq!((bench.events().len(), asked(&witness)), (0, 0));
    bench.drain();
    bench.fire();
    assert_eq!(asked(&witness), 1);
    assert_eq!(bench.step(), Some((1000, 1000, RtoRetransmit)));
}

/// A response that wants nothing sent, ever, and takes every ACK for itself.
#[derive(Debug)]
struct Mute;

impl RtoResponse for Mute {
    fn name(&self) -> &'static str {
        "mute"
    }
    fn on_rto(&mut self, _: &RtoView) -> RtoStep {
        let mut step = RtoStep::consume();
        (step.gate, step.timer) = (RtoGate::Closed, RtoTimer::Stop);
        step
    }
    fn on_ack(&mut self, _: &RtoView, _: &AckFacts) -> Option<RtoStep> {
        Some(RtoStep::consume())
    }
    fn phase(&self) -> RtoPhase {
        RtoPhase::Open
    }
}

#[test]
fn mute_response_cannot_stop_the_flow() {
    let mut setup = Setup::default();
    setup.config.policies.rto = Arc::new(|| Box::new(Mute));
    let mut bench = setup.open();
    bench.write(60 * SMSS);
    bench.drain();
    for _ in 0..3 {
        assert_eq!(bench.fire(), Rto);
        assert_eq!(bench.drain(), []);
    }
    assert_eq!(bench.info().backoff, 3);
    bench.fire();
    assert_eq!(bench.step(), Some((0, 1000, RtoRetransmit)));
}

#[test]
fn timers_survive_the_end() {
    let mut bench = Setup::default().open();
    bench.write(20 * SMSS);
    bench.drain();
    bench.snd.discard(bench.now);
    assert_eq!(bench.timer(), None);
    let mut ctx = ctx!(bench);
    ctx.now = Instant::from_secs(1_000);
    bench.snd.on_timeout(&mut ctx, &bench.config);
    assert_eq!(bench.snd.stalled_since(), None);
}

/// A peer may agree to SACK and still send duplicate ACKs without blocks, as gVisor's stack does
/// after its FIN. What waited behind the hole is no measure then, either, or the timeouts, which are
/// all that repairs such holes, would come ever later.
#[test]
fn what_waited_unreported_behind_a_hole_gives_no_sample() {
    let mut bench = Setup::default().open();
    bench.write(10 * SMSS);
    bench.drain();
    bench.pass(ms(100));
    for _ in 0..3 {
        bench.sack(0, &[]);
    }
    assert_eq!(bench.drain(), [], "RFC 6675: only SACK blocks tell of what left the network");
    assert_eq!(bench.fire(), Rto);
    assert_eq!(bench.step(), Some((0, 1_000, RtoRetransmit)));
    bench.pass(ms(80));
    let mut segment = bench.segment(10_000, &[]);
    (segment.ts_now, segment.tsecr) = (5_080, Some(5_000));
    bench.take(&segment);
    assert_eq!(bench.info().rtt, Some(Duration::from_micros(97_500)), "by timestamps");
    assert_eq!(bench.info().backoff, 0);
}

/// Data that had arrived and comes again is answered by a duplicate ACK without blocks, from a
/// receiver without DSACK: that is no more than there were retransmissions, and hides nothing.
#[test]
fn duplicate_acks_of_needless_retransmissions_hide_nothing() {
    let mut bench = Setup::default().open();
    bench.write(10 * SMSS);
    bench.drain();
    assert_eq!(bench.fire(), Rto);
    assert_eq!(bench.step(), Some((0, 1_000, RtoRetransmit)));
    bench.sack(0, &[]);
    bench.pass(ms(100));
    bench.ack(10_000);
    // The originals, 400 ms ago: SRTT 7/8 of 100 and 1/8 of 400.
    assert_eq!(bench.info().rtt, Some(Duration::from_micros(137_500)));
}

/// Karn's algorithm, RFC 6298, section 3: the ACK of a repaired hole covers what had waited behind
/// it at the peer, and is no measure of that. With SACK, what waited was reported when it came.
#[test]
fn what_waited_behind_a_repaired_hole_gives_no_sample() {
    for (sack, part) in [(false, 10_000), (false, 1_500), (true, 10_000)] {
        let mut bench = Setup { sack, ..Setup::default() }.open();
        bench.write(10 * SMSS);
        bench.drain();
        bench.pass(ms(100));
        for block in [2_000, 3_000, 10_000] {
            bench.sack(0, &[(1_000, block)][..usize::from(sack)]);
        }
        assert_eq!(bench.drain()[0].2, FastRetransmit);
        bench.pass(ms(100));
        bench.ack(part);
        assert_eq!(bench.info().rtt, Some(ms(100)), "SACK {sack}, an ACK of {part}");
    }
}
