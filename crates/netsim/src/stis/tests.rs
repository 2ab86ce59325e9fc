//! Each step of the path by hand, and its random processes against what their probabilities say.

use super::*;
use crate::packet::test_packets::ipv4;

/// A path whose clock is in the test's hand.
struct Bench {
    stis: Stis,
    seed: u64,
    sent: u64,
    /// When which packet came out.
    out: Vec<(Instant, u64)>,
    dropped: Vec<u64>,
}

/// Direction of a packet.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    There,
    Back,
}
use Way::{Back, There};

const CALM: &[StallKind] = &[];
/// A stall at every draw: from 1 s to 6 s, from 7 s to 12 s, and so on.
const ALWAYS: &[StallKind] = &[StallKind { probability: 1.0, lasts: Duration::from_secs(5) }];

/// The draft's path, with these stalls and one route.
fn plain(stalls: &[StallKind]) -> StisParams {
    StisParams { stalls: stalls.to_vec(), route_switch: 0.0, ..StisParams::default() }
}

fn packet(number: u64, bytes: usize, client: u16, way: Way) -> Packet {
    let mut packet = ipv4(number, bytes.max(24), false);
    packet.price = bytes as u32;
    let (ours, theirs) =
        if way == There { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
    packet.octets_mut()[12..16].copy_from_slice(&ours);
    packet.octets_mut()[16..20].copy_from_slice(&theirs);
    let (service, client) = (80_u16.to_be_bytes(), client.to_be_bytes());
    let (from, to) = if way == There { (service, client) } else { (client, service) };
    packet.octets_mut()[20..22].copy_from_slice(&from);
    packet.octets_mut()[22..24].copy_from_slice(&to);
    packet
}

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn us(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

impl Bench {
    fn new(params: StisParams) -> Self {
        Self { stis: Stis::new(params), seed: 1, sent: 0, out: vec![], dropped: vec![] }
    }

    fn call(&mut self, now: Instant, call: impl FnOnce(&mut Stis, &mut MiddleboxCx<'_>)) {
        let (mut out, mut dropped) = (vec![], vec![]);
        call(&mut self.stis, &mut MiddleboxCx { now, seed: self.seed, out: &mut out, dropped: &mut dropped });
        self.out.extend(out.iter().map(|packet| (now, packet.number)));
        self.dropped.extend(dropped.iter().map(|(packet, _)| packet.number));
    }

    fn run_until(&mut self, end: Instant) {
        while let Some(at) = self.stis.next_timeout().filter(|at| *at <= end) {
            self.call(at, |stis, cx| stis.timeout(cx));
        }
    }

    fn send_of(&mut self, at: Instant, bytes: usize, client: u16, way: Way) {
        self.run_until(at);
        let packet = packet(self.sent, bytes, client, way);
        self.sent += 1;
        self.call(at, |stis, cx| stis.arrive(cx, packet));
    }

    fn send(&mut self, at: Instant, bytes: usize) {
        self.send_of(at, bytes, 40_000, There);
    }

    /// Times at which packets came out, in the order in which they were sent.
    fn times(&mut self) -> Vec<Instant> {
        self.run_until(Instant::from_secs(10_000));
        let mut out = self.out.clone();
        out.sort_by_key(|(_, number)| *number);
        out.into_iter().map(|(at, _)| at).collect()
    }
}

#[test]
fn step_4_each_flow_and_direction_has_its_own_rate() {
    let mut bench = Bench::new(StisParams { flow: FlowBy::Connection, ..plain(CALM) });
    bench.send_of(ms(0), 1_500, 40_000, There);
    bench.send_of(ms(0), 1_500, 40_000, There);
    bench.send_of(ms(0), 1_500, 40_001, There);
    bench.send_of(ms(0), 40, 40_000, Back);
    bench.send_of(ms(1_000), 1_500, 40_000, There);
    // 8 * 1,500 / 50,000 = 240 ms, 8 * 40 / 50,000 = 6.4 ms; then 200 ms.
    assert_eq!(bench.times(), [ms(440), ms(680), ms(440), us(206_400), ms(1_440)]);
}

#[test]
fn a_round_trip_of_a_full_segment_takes_646_ms() {
    let mut bench = Bench::new(plain(CALM));
    bench.send(ms(0), 1_500);
    let there = bench.times()[0];
    bench.send_of(there, 40, 40_000, Back);
    assert_eq!(bench.times()[1], us(646_400));
}

#[test]
fn step_3_admits_by_what_all_flows_had_in_the_buffer_before() {
    let mut bench = Bench::new(StisParams { flow: FlowBy::Connection, buffer: 3_001, ..plain(CALM) });
    bench.send_of(ms(0), 1_500, 40_000, There);
    bench.send_of(ms(0), 1_500, 40_001, Back);
    // 3,000 bytes are fewer than 3,001: this one is accepted whatever its size.
    bench.send_of(ms(0), 1_499, 40_002, There);
    bench.send_of(ms(0), 40, 40_003, There);
    assert_eq!(bench.dropped, [3]);
    assert_eq!(bench.stis.stats().peak, 4_499);
    // The third one leaves the buffer when it leaves its queue, not when it arrives.
    bench.send_of(us(239_839), 40, 40_003, There);
    bench.send_of(us(239_840), 40, 40_003, There);
    assert_eq!(bench.dropped, [3, 4]);
    assert_eq!(bench.times().len(), 4);
    assert_eq!(bench.stis.stats(), StisStats { arrived: 6, held: 0, dropped: 2, left: 4, peak: 4_499 });
}

#[test]
fn step_2_what_arrives_in_a_stall_arrives_at_its_end_in_order() {
    let mut bench = Bench::new(plain(ALWAYS));
    bench.send(us(999_999), 40);
    bench.send(ms(1_000), 40);
    bench.send(ms(3_500), 40);
    bench.send(ms(6_000), 40);
    // The first one has had a microsecond of its 6.4 ms when the stall begins.
    assert_eq!(bench.times(), [us(6_206_399), us(6_212_799), us(6_219_199), us(6_225_599)]);
    assert_eq!(bench.stis.stats().held, 2);
}

#[test]
fn step_2_what_waits_for_the_end_of_a_stall_is_not_in_the_buffer() {
    let mut bench = Bench::new(StisParams { buffer: 1_000, ..plain(ALWAYS) });
    (0..3).for_each(|_| bench.send(ms(1_500), 1_000));
    assert_eq!(bench.stis.stats().peak, 0);
    assert_eq!(bench.times(), [ms(6_360)], "the first fills the buffer when the stall is over");
    assert_eq!(bench.dropped, [1, 2]);
}

#[test]
fn step_2_holds_back_both_directions_of_a_flow() {
    let mut bench = Bench::new(plain(ALWAYS));
    bench.send_of(ms(2_000), 40, 40_000, There);
    bench.send_of(ms(2_000), 40, 40_000, Back);
    assert_eq!(bench.times(), [us(6_206_400); 2]);
}

#[test]
fn a_stall_stops_the_service_only_where_it_shall() {
    for (stops, departures) in [(true, [6_140, 6_380]), (false, [1_140, 1_380])] {
        let mut bench = Bench::new(StisParams { stall_stops_service: stops, ..plain(ALWAYS) });
        bench.send(ms(900), 1_500);
        bench.send(ms(900), 1_500);
        assert_eq!(bench.times(), departures.map(|millis| ms(millis + 200)), "{stops}");
    }
}

#[test]
fn step_5_the_longer_route_adds_its_delay_and_lets_packets_overtake() {
    let mut bench = Bench::new(StisParams { route_switch: 1.0, ..plain(CALM) });
    bench.send(ms(0), 40);
    bench.send(ms(0), 40);
    bench.send_of(ms(0), 40, 40_000, Back);
    assert_eq!(bench.times(), [us(226_400), us(212_800), us(226_400)]);
    assert_eq!(bench.out[0].1, 1, "the second packet comes first");
}

#[test]
fn what_is_a_flow_can_be_chosen() {
    // One host opens connections from two ports to one service.
    for (flow, second) in [(FlowBy::Hosts, 680), (FlowBy::Service, 680), (FlowBy::Connection, 440)] {
        let mut bench = Bench::new(StisParams { flow, ..plain(CALM) });
        bench.send_of(ms(0), 1_500, 40_000, There);
        bench.send_of(ms(0), 1_500, 40_001, There);
        assert_eq!(bench.times(), [ms(440), ms(second)], "{flow:?}");
    }
}

#[test]
fn flows_meet_the_same_stalls_whatever_else_happens() {
    let sends = |others: u16| {
        let mut bench = Bench::new(StisParams { flow: FlowBy::Connection, ..StisParams::default() });
        for second in 0..300 {
            (0..others).for_each(|other| bench.send_of(ms(second * 1_000 + 10), 40, 50_000 + other, There));
            bench.send_of(ms(second * 1_000 + 20), 40, 40_000, There);
        }
        let times = bench.times();
        let step = usize::from(others) + 1;
        times.into_iter().skip(step - 1).step_by(step).collect::<Vec<_>>()
    };
    assert_eq!(sends(0), sends(2));
}

/// Long-run shares of the default stalls. A cycle is a time up, geometric with mean 1 / 0.055 s =
/// 18.18 s, and a stall of 5 or 8 s.
#[test]
fn stalls_have_their_long_run_shares() {
    for seed in 1..=3 {
        let mut stalls =
            Stalls::new(StisParams::default().stalls, Duration::from_secs(1), SimRng::new(seed, 0));
        let end = Instant::from_secs(2_000_000);
        stalls.draw_until(end);
        let count = stalls.drawn.len() as f64;
        let stalled: f64 = stalls.drawn.iter().map(|(begin, end)| end.since(*begin).as_secs_f64()).sum();
        let long =
            stalls.drawn.iter().filter(|(begin, end)| end.since(*begin) == Duration::from_secs(8)).count();
        let fraction = stalled / end.since(Instant::ZERO).as_secs_f64();
        let up = (end.since(Instant::ZERO).as_secs_f64() - stalled) / count;
        // About 85,000 cycles; standard errors: 0.0006 of the share, 0.06 s up, 0.003 s and 0.001
        // of the long ones.
        assert!((fraction - 0.2248).abs() < 0.003, "seed {seed}: {fraction}");
        assert!((up - 18.18).abs() < 0.3, "seed {seed}: {up}");
        assert!((stalled / count - 5.273).abs() < 0.015, "seed {seed}");
        assert!((long as f64 / count - 1.0 / 11.0).abs() < 0.005, "seed {seed}");
        assert!(stalls.drawn.iter().all(|(begin, _)| begin.as_nanos() % 1_000_000_000 == 0));
        let mut gaps = stalls.drawn.iter().zip(stalls.drawn.iter().skip(1));
        assert!(gaps.all(|((_, end), (begin, _))| begin.since(*end) >= Duration::from_secs(1)));
    }
}

/// The route changes before 12 % of the packets, and so each one is taken by half of them.
#[test]
fn routes_change_as_often_as_they_shall() {
    let mut bench = Bench::new(StisParams { stalls: vec![], ..StisParams::default() });
    let packets = 20_000;
    (0..packets).for_each(|number| bench.send(ms(number * 500), 40));
    let times = bench.times();
    let longer: Vec<bool> = times
        .iter()
        .enumerate()
        .map(|(number, at)| *at == ms(number as u64 * 500 + 20) + Duration::from_micros(206_400))
        .collect();
    let changes = longer.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    let share = longer.iter().filter(|longer| **longer).count() as f64 / packets as f64;
    // Standard errors: 0.0023 and 0.0096 (the correlation of neighbours is 0.76).
    assert!((changes / packets as f64 - 0.12).abs() < 0.012, "{changes}");
    assert!((share - 0.5).abs() < 0.05, "{share}");
}
