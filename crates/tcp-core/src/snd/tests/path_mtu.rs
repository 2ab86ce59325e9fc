//! ICMP says that a packet was too big, or nobody says it: when that is believed, and for how long.

use super::bench::{Bench, Left, SMSS, Setup, ctx, ms};
use crate::config::PathMtuProbing;
use crate::events::WakeReason;
use crate::packet::SendReason::{FastRetransmit, NewData, PathMtuProbe, RtoProbe, RtoRetransmit};
use crate::policy::cc::Phase;
use crate::policy::rto::{
    AckFacts, RtoGate, RtoPhase, RtoResponse, RtoSend, RtoStep, RtoTags, RtoTimer, RtoVerdict, RtoView,
};
use crate::time::Duration;
use crate::units::Window;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Ten segments of 1,000 bytes are out, and none of their size has arrived yet. RTT 100 ms.
fn first_flight(setup: Setup) -> Bench {
    let mut bench = setup.open();
    bench.write(1_000_000);
    assert_eq!(drain(&mut bench).len(), 10);
    bench
}

/// The same, after segments of this size have arrived.
fn later_flight(setup: Setup) -> Bench {
    let mut bench = first_flight(setup);
    bench.pass(ms(100));
    bench.ack(10 * SMSS);
    assert_eq!(drain(&mut bench).len(), 10);
    bench
}

/// What leaves in packets of one segment.
fn drain(bench: &mut Bench) -> Vec<Left> {
    bench.max_payload = bench.snd.smss();
    bench.drain()
}

fn step(bench: &mut Bench) -> Option<Left> {
    bench.max_payload = bench.snd.smss();
    bench.step()
}

fn offsets(bench: &mut Bench) -> Vec<u32> {
    drain(bench).iter().map(|packet| packet.0).collect()
}

/// A Packet Too Big message that quotes the packet at `offset`.
fn too_big(bench: &mut Bench, offset: u32, payload: u32) {
    let mut ctx = ctx!(bench);
    bench.snd.on_packet_too_big(&mut ctx, Bench::seq(offset), payload, 0);
}

fn counts(bench: &Bench) -> (u64, u64, u64, u64) {
    let counters = &bench.observe.counters;
    (counters.tcp_mtu_reduced, counters.tcp_mtu_refused, counters.tcp_mtu_refuted, counters.tcp_mtu_raised)
}

#[test]
fn the_first_message_is_believed_after_two_silent_round_trips() {
    let mut bench = first_flight(Setup::rack());
    bench.pass(ms(30));
    too_big(&mut bench, 0, 500);
    assert_eq!(bench.info().snd_mss, 1000, "a claim");
    assert_eq!(bench.timer(), Some((ms(170), WakeReason::PathMtu)));
    bench.fire();
    assert_eq!(bench.info().snd_mss, 500);
    let again = drain(&mut bench);
    assert_eq!(again.len(), 20);
    assert!(again.iter().all(|packet| packet.1 == 500 && packet.2 == FastRetransmit));
    assert!(bench.events().is_empty(), "RFC 1191, section 5: no congestion");
}

#[test]
fn a_small_packet_that_arrives_confirms_the_first_message() {
    let mut bench = Setup::rack().open();
    bench.write(3_100);
    drain(&mut bench);
    bench.pass(ms(50));
    for segment in 0..3 {
        too_big(&mut bench, segment * SMSS, 500);
    }
    bench.pass(ms(50));
    bench.sack(0, &[(3_000, 3_100)]);
    assert_eq!((bench.info().snd_mss, bench.info().ca_state), (500, Phase::Disorder));
    assert_eq!(offsets(&mut bench), [0, 500, 1000, 1500, 2000, 2500]);
    assert!(bench.events().is_empty());
    assert_eq!(counts(&bench), (1, 0, 0, 0));
}

#[test]
fn an_ack_of_the_packet_refutes_the_message() {
    for later in [false, true] {
        let (mut bench, una) =
            if later { (later_flight(Setup::rack()), 10 * SMSS) } else { (first_flight(Setup::rack()), 0) };
        bench.pass(ms(50));
        too_big(&mut bench, una + 2 * SMSS, 500);
        bench.ack(una + 2 * SMSS);
        assert_eq!(counts(&bench), (0, 0, 0, 0), "what left before it tells nothing");
        bench.ack(una + 3 * SMSS);
        assert_eq!(counts(&bench), (0, 0, 1, 0));
        assert_eq!(bench.info().snd_mss, 1000);
        let timer = bench.timer().unwrap();
        assert!(timer.1 != WakeReason::PathMtu, "it is forgotten: {timer:?}");
    }
}

#[test]
fn a_packet_as_large_that_left_later_refutes_the_message() {
    let mut bench = later_flight(Setup::rack());
    let una = 10 * SMSS;
    too_big(&mut bench, una, 500);
    bench.pass(ms(100));
    // The packet is lost, by chance.
    bench.sack(una, &[(una + 5 * SMSS, una + 6 * SMSS)]);
    assert_eq!((counts(&bench), bench.info().snd_mss), ((0, 0, 1, 0), 1000));
    bench.fire();
    assert_eq!(bench.info().snd_mss, 1000);
}

#[test]
fn once_packets_of_the_size_have_arrived_only_a_loss_makes_believe() {
    let mut bench = later_flight(Setup::rack());
    bench.pass(ms(10));
    too_big(&mut bench, 10 * SMSS, 500);
    assert_eq!(bench.timer().unwrap().1, WakeReason::Rto, "two round trips are not enough");
    bench.fire();
    assert_eq!((counts(&bench), bench.info().snd_mss), ((1, 0, 0, 0), 500));
    assert_eq!(step(&mut bench), Some((10_000, 500, RtoRetransmit)));

    // A smaller packet behind them arrives.
    let mut bench = Setup::rack().open();
    bench.write(10_100);
    drain(&mut bench);
    bench.pass(ms(100));
    bench.ack(5_000);
    drain(&mut bench);
    too_big(&mut bench, 5_000, 500);
    bench.sack(5_000, &[(10_000, 10_100)]);
    bench.fire();
    assert_eq!((counts(&bench), bench.info().snd_mss), ((1, 0, 0, 0), 500));
}

#[test]
fn a_message_about_no_packet_that_large_is_refused() {
    let mut bench = Setup::default().open();
    bench.write(1_400);
    drain(&mut bench);
    // Not where a packet began; not larger; no larger than what it names; acknowledged; never sent.
    too_big(&mut bench, 1, 500);
    too_big(&mut bench, 1_000, 500);
    too_big(&mut bench, 0, 1_001);
    too_big(&mut bench, 1_400, 500);
    assert_eq!(counts(&bench), (0, 4, 0, 0));
    bench.sack(0, &[(1_000, 1_400)]);
    too_big(&mut bench, 1_000, 300);
    assert_eq!(counts(&bench), (0, 5, 0, 0));
    // The rest of a flight whose first packet was complained of.
    too_big(&mut bench, 0, 1_000);
    assert_eq!(counts(&bench), (0, 5, 0, 0));
}

#[test]
fn of_two_messages_the_larger_size_is_believed_first() {
    let mut bench = first_flight(Setup::default());
    too_big(&mut bench, 0, 500);
    too_big(&mut bench, 1_000, 800);
    too_big(&mut bench, 2_000, 300);
    bench.fire();
    assert_eq!((counts(&bench), bench.info().snd_mss), ((1, 0, 0, 0), 800));
}

#[test]
fn after_ten_minutes_the_full_size_is_tried_again() {
    let mut bench = first_flight(Setup::default());
    too_big(&mut bench, 0, 500);
    bench.fire();
    drain(&mut bench);
    bench.ack(10 * SMSS);
    drain(&mut bench);
    bench.pass(Duration::from_secs(599));
    bench.ack(11 * SMSS);
    drain(&mut bench);
    assert_eq!(bench.info().snd_mss, 500, "RFC 1191, section 6.3: not within minutes");
    bench.pass(Duration::from_secs(1));
    bench.ack(12 * SMSS);
    assert_eq!((counts(&bench), bench.info().snd_mss), ((1, 0, 0, 1), 1000));
    let first_large = drain(&mut bench)[0].0;
    // An attacker had lied: it stays.
    bench.pass(ms(100));
    bench.ack(first_large + SMSS);
    drain(&mut bench);
    bench.fire();
    assert_eq!((counts(&bench), bench.info().snd_mss), ((1, 0, 0, 1), 1000));
}

#[test]
fn if_the_full_size_meets_silence_the_smaller_one_comes_back() {
    let mut bench = first_flight(Setup::default());
    too_big(&mut bench, 0, 500);
    bench.fire();
    drain(&mut bench);
    bench.pass(Duration::from_secs(600));
    bench.ack(10 * SMSS);
    let first_large = drain(&mut bench)[0].0;
    assert_eq!((first_large, bench.info().snd_mss), (10 * SMSS, 1000));
    bench.fire();
    assert_eq!((counts(&bench), bench.info().snd_mss), ((2, 0, 0, 1), 500));
    assert_eq!(step(&mut bench), Some((first_large, 500, RtoRetransmit)));
    bench.pass(Duration::from_secs(599));
    bench.ack(first_large + 500);
    assert_eq!(bench.info().snd_mss, 500);
    bench.pass(Duration::from_secs(1));
    bench.ack(first_large + SMSS);
    assert_eq!(bench.info().snd_mss, 1000);
}

/// Black holes are detected.
fn detecting() -> Setup {
    let mut setup = Setup::rack();
    setup.config.path_mtu_probing = PathMtuProbing::BlackHole;
    setup
}

/// What the retransmission timer sends next: one segment (RFC 6298, 5.4), whatever was cut off it.
fn expire(bench: &mut Bench) -> Left {
    assert_eq!(bench.fire(), WakeReason::Rto);
    let window = Window::from_bytes(u64::from(bench.snd.smss()));
    bench.decide(|decision| decision.window = window);
    let left = drain(bench);
    assert_eq!(left.len(), 1, "{left:?}");
    left[0]
}

#[test]
fn from_the_third_expiry_on_the_head_is_cut() {
    let mut setup = detecting();
    setup.config.base_mss = 800;
    setup.config.mtu_probe_floor = 150;
    let mut bench = first_flight(setup);
    let sizes = [(); 7].map(|()| expire(&mut bench).1);
    assert_eq!(sizes, [1000, 1000, 800, 400, 200, 150, 150], "RFC 4821, section 7.7");
    assert_eq!((bench.info().snd_mss, counts(&bench)), (1000, (0, 0, 0, 0)), "a suspicion");

    // What is cut arrives, but the full segments behind it do not.
    bench.ack(150);
    let again = drain(&mut bench);
    assert!(again.iter().all(|packet| packet.1 == 1000), "it may have been an outage: {again:?}");
    let mut sizes = Vec::new();
    for _ in 0..2 {
        sizes.push((expire(&mut bench).1, bench.info().snd_mss));
    }
    assert_eq!(sizes, [(800, 800), (150, 150)], "by way of the base");
    assert_eq!((counts(&bench).0, bench.observe.counters.tcp_mtu_black_holes), (2, 2));
    assert_eq!(expire(&mut bench).1, 150, "not below what has arrived");
}

#[test]
fn after_an_outage_the_segment_size_is_what_it_was() {
    let mut bench = first_flight(detecting());
    for _ in 0..5 {
        expire(&mut bench);
    }
    bench.ack(500);
    drain(&mut bench);
    bench.ack(10 * SMSS);
    drain(&mut bench);
    bench.ack(11 * SMSS);
    drain(&mut bench);
    // Congestion, from here on.
    expire(&mut bench);
    expire(&mut bench);
    assert_eq!((bench.info().snd_mss, counts(&bench)), (1000, (0, 0, 0, 0)));
}

#[test]
fn a_head_that_is_lost_while_others_arrive_is_not_cut() {
    let mut bench = first_flight(detecting());
    bench.sack(0, &[(3_000, 4_000)]);
    drain(&mut bench);
    let sizes = [(); 5].map(|()| expire(&mut bench).1);
    assert_eq!(sizes, [1000; 5], "packets as large have arrived");

    // Smaller ones have: that is what a black hole looks like.
    let mut bench = detecting().open();
    bench.write(3_100);
    drain(&mut bench);
    bench.sack(0, &[(3_000, 3_100)]);
    drain(&mut bench);
    let sizes = [(); 3].map(|()| expire(&mut bench).1);
    assert_eq!(sizes, [1000, 1000, 500]);
}

/// RFC 9293, section 3.10.7.4: what lies beyond its window a peer answers with an ACK. RFC 4821,
/// section 7.7, counts timeouts that nothing answers.
#[test]
fn a_window_taken_back_below_the_flight_is_no_black_hole() {
    for wnd in [0, 256] {
        for sack in [true, false] {
            let mut bench = first_flight(Setup { sack, ..detecting() });
            bench.wnd = wnd;
            bench.ack(4 * SMSS);
            let whole = if wnd == 0 { SMSS } else { wnd };
            let mut sizes = Vec::new();
            for _ in 0..8 {
                sizes.push(expire(&mut bench).1);
                bench.pass(ms(100));
                bench.ack(4 * SMSS);
                assert_eq!(drain(&mut bench), []);
            }
            assert_eq!(sizes, [whole; 8], "a window of {wnd}");

            // The peer falls silent.
            let sizes = [(); 4].map(|()| expire(&mut bench).1);
            assert_eq!(sizes, [whole, whole, whole.min(500), whole.min(500)]);
            // It was an outage. What arrives now is of the smaller size, and shows nothing of
            // others.
            for _ in 0..4 {
                bench.ack(4 * SMSS);
                assert_eq!(expire(&mut bench).1, whole.min(500));
            }
            bench.wnd = 1 << 20;
            bench.ack(4 * SMSS);
            drain(&mut bench);
            bench.ack(10 * SMSS);
            drain(&mut bench);
            expire(&mut bench);
            expire(&mut bench);
            assert_eq!((bench.info().snd_mss, counts(&bench)), (1000, (0, 0, 0, 0)));
        }
    }
}

/// Of a peer that sends data itself ACKs come anyway, and those with SACK blocks may answer smaller
/// packets.
#[test]
fn acks_that_answer_nothing_do_not_hide_a_black_hole() {
    let mut bench = first_flight(detecting());
    let mut sizes = Vec::new();
    for _ in 0..3 {
        sizes.push(expire(&mut bench).1);
        let mut data = bench.segment(0, &[]);
        data.payload_len = 100;
        bench.take(&data);
        bench.sack(0, &[(9_900, 10_000)]);
    }
    assert_eq!(sizes, [1000, 1000, 500]);
}

#[test]
fn a_closed_window_does_not_bring_the_smaller_size_back() {
    for closed in [true, false] {
        let mut bench = first_flight(detecting());
        let sizes = [(); 3].map(|()| expire(&mut bench).1);
        assert_eq!(sizes, [1000, 1000, 500]);
        // The cut segment arrives; full ones are tried, and the window closes over them.
        if closed {
            bench.wnd = 0;
        }
        bench.ack(500);
        drain(&mut bench);
        expire(&mut bench);
        assert_eq!(bench.info().snd_mss, if closed { 1000 } else { 500 });
    }
}

#[test]
fn an_ack_of_the_whole_segment_ends_the_suspicion() {
    let mut bench = first_flight(detecting());
    let sizes = [(); 3].map(|()| expire(&mut bench).1);
    assert_eq!(sizes, [1000, 1000, 500]);
    // The first copy was late.
    bench.ack(SMSS);
    drain(&mut bench);
    for _ in 0..2 {
        expire(&mut bench);
    }
    assert_eq!((bench.info().snd_mss, counts(&bench)), (1000, (0, 0, 0, 0)));
}

/// Asks for the highest outstanding segment at each expiry, and has everything repaired once that
/// is reported.
#[derive(Debug, Default)]
struct FromAbove(RtoPhase);

impl RtoResponse for FromAbove {
    fn name(&self) -> &'static str {
        "from above"
    }
    fn on_rto(&mut self, _: &RtoView) -> RtoStep {
        self.0 = RtoPhase::Probe;
        let mut step = RtoStep::consume();
        (step.send, step.gate) = (RtoSend::NewElseHighest, RtoGate::Closed);
        (step.tags, step.timer) = (RtoTags::ClearSack, RtoTimer::Backoff);
        step
    }
    fn on_ack(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        if self.0 != RtoPhase::Probe || ack.sack_count == 0 {
            return None;
        }
        self.0 = RtoPhase::Repair;
        let mut step = RtoStep::conventional(view.flow.smss);
        (step.send, step.tags, step.timer) = (RtoSend::Nothing, RtoTags::UnsackedLost, RtoTimer::Restart);
        step.verdict = Some(RtoVerdict::Lossy);
        Some(step)
    }
    fn phase(&self) -> RtoPhase {
        self.0
    }
}

/// As DCLOR does: its probe is the small segment at the end, which arrives each time. What it
/// repairs does not.
#[test]
fn a_response_that_never_sends_the_head_by_timer_finds_a_black_hole() {
    let mut setup = detecting();
    setup.config.policies.rto = Arc::new(|| Box::new(FromAbove::default()));
    let mut bench = setup.open();
    bench.write(3_100);
    assert_eq!(drain(&mut bench).len(), 4);
    bench.sack(0, &[(3_000, 3_100)]);
    let mut repairs = Vec::new();
    for _ in 0..3 {
        assert_eq!(expire(&mut bench), (3_000, 100, RtoProbe));
        bench.set_cwnd(2);
        bench.sack(0, &[(3_000, 3_100)]);
        repairs.push(drain(&mut bench));
    }
    let full = [(0, 1000, FastRetransmit), (1000, 1000, FastRetransmit)];
    assert_eq!(repairs[..2], [full, full]);
    assert_eq!(repairs[2], [(0, 500, FastRetransmit)]);
    bench.sack(500, &[(3_000, 3_100)]);
    assert_eq!(drain(&mut bench)[0], (500, 1000, FastRetransmit), "it may have been an outage");
    bench.fire();
    assert_eq!((bench.info().snd_mss, bench.observe.counters.tcp_mtu_black_holes), (500, 1));
}

#[test]
fn probing_can_be_switched_off() {
    let mut bench = first_flight(Setup::rack());
    assert_eq!([(); 5].map(|()| expire(&mut bench).1), [1000; 5]);
}

/// Segments begin with 600 bytes, of a full size of 1,000.
fn searching() -> Setup {
    let mut setup = Setup::rack();
    setup.config.path_mtu_probing = PathMtuProbing::Always;
    setup.config.base_mss = 600;
    setup
}

fn probes(bench: &Bench) -> (u64, u64) {
    (bench.observe.counters.tcp_mtup_success, bench.observe.counters.tcp_mtup_fail)
}

#[test]
fn the_first_probe_has_the_full_size_and_ends_the_search_if_it_arrives() {
    let mut bench = searching().open();
    bench.write(1_000_000);
    let first = drain(&mut bench);
    assert_eq!(first[0], (0, 1000, PathMtuProbe));
    assert!(
        first[1..].iter().all(|packet| packet.1 == 600 && packet.2 == NewData),
        "one at a time: {first:?}"
    );
    bench.pass(ms(100));
    bench.ack(1000);
    assert_eq!((bench.info().snd_mss, probes(&bench)), (1000, (1, 0)));
    assert!(drain(&mut bench).iter().all(|packet| packet.1 == 1000 && packet.2 == NewData));
    assert!(bench.events().is_empty());
}

#[test]
fn a_probe_that_alone_is_lost_halves_the_range_and_is_no_congestion() {
    let mut bench = searching().open();
    bench.write(1_000_000);
    drain(&mut bench);
    bench.pass(ms(100));
    bench.sack(0, &[(1_000, 2_800)]);
    assert_eq!(probes(&bench), (0, 1));
    assert_eq!((bench.info().snd_mss, bench.info().ca_state), (600, Phase::Disorder));
    let again: Vec<Left> = drain(&mut bench).into_iter().filter(|packet| packet.0 < 1_000).collect();
    assert_eq!(again, [(0, 600, FastRetransmit), (600, 400, FastRetransmit)]);
    let end = Bench::offset(bench.snd.snd_nxt());
    bench.pass(ms(100));
    bench.ack(end);
    assert_eq!(drain(&mut bench)[0], (end, 800, PathMtuProbe), "between 600 and 999");
    assert!(bench.events().is_empty(), "{:?}", bench.events());
}

#[test]
fn a_probe_that_is_lost_with_others_says_nothing() {
    let mut bench = searching().open();
    bench.write(1_000_000);
    drain(&mut bench);
    bench.pass(ms(100));
    bench.sack(0, &[(1_600, 4_000)]);
    assert_eq!(bench.events().len(), 1);
    assert_eq!((probes(&bench), bench.info().ca_state), ((0, 0), Phase::Recovery));
    drain(&mut bench);
    let end = Bench::offset(bench.snd.snd_nxt());
    bench.pass(ms(100));
    bench.ack(end);
    assert_eq!(drain(&mut bench)[0], (end, 1000, PathMtuProbe), "it is tried again");
}

#[test]
fn a_probe_needs_data_and_windows_behind_it() {
    let opened = |wnd, cwnd| Setup { wnd, cwnd: Some(cwnd), ..searching() }.open();
    for (data, wnd, cwnd, probe) in [
        (2_800, 1 << 20, 10, true),
        (2_799, 1 << 20, 10, false),
        (100_000, 2_800, 10, true),
        (100_000, 2_799, 10, false),
        (100_000, 1 << 20, 3, true),
        (100_000, 1 << 20, 2, false),
    ] {
        let mut bench = opened(wnd, cwnd);
        bench.write(data);
        let first = drain(&mut bench)[0];
        assert_eq!(
            first.2 == PathMtuProbe,
            probe,
            "{data} bytes, {wnd} of window, {cwnd} segments: {first:?}"
        );
    }
    let mut bench = Setup { sack: false, ..searching() }.open();
    bench.write(100_000);
    assert_eq!(
        (drain(&mut bench)[0].1, bench.info().snd_mss),
        (1000, 1000),
        "without SACK nothing is searched"
    );
}

#[test]
fn only_what_packets_have_shown_is_told() {
    // The first flight vanishes, and ICMP says why: what is sent then arrives.
    let mut bench = first_flight(Setup::rack());
    too_big(&mut bench, 0, 500);
    bench.fire();
    drain(&mut bench);
    bench.ack(10 * SMSS);
    assert_eq!(bench.snd.take_path_news(), None, "what was sent twice shows nothing");
    drain(&mut bench);
    bench.ack(11 * SMSS);
    assert_eq!(bench.snd.take_path_news(), Some((500, 1000)));
    drain(&mut bench);
    bench.ack(12 * SMSS);
    assert_eq!(bench.snd.take_path_news(), None, "once");

    // Such packets have arrived before, one is lost by chance, and a stranger has claimed that it
    // is too large.
    let mut bench = later_flight(Setup::rack());
    too_big(&mut bench, 10 * SMSS, 500);
    bench.fire();
    assert_eq!(bench.info().snd_mss, 500);
    for acked in 20..30 {
        drain(&mut bench);
        bench.ack(acked * SMSS);
        assert_eq!(bench.snd.take_path_news(), None);
    }
}
