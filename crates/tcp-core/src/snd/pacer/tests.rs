//! The pacer's promises: no drift, no burst beyond the slack, and what a new decision does to a
//! pending departure.

use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const START: Instant = Instant::from_secs(7);
const TICK: Duration = Duration::from_micros(50);

fn decide(time: Duration, over: Window, revise: Revise) -> SendDecision {
    let mut decision = SendDecision::window(Window::MAX, Window::MAX).paced(Pacing::Gap { time, over });
    decision.revise = revise;
    decision
}

fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// r_c in ns and w in segments: the interval of a segment, rounded down.
#[test]
fn intervals_of_a_window_over_a_round_trip() {
    let vectors = [
        (135_900_000, 8400, 16_178),
        (120_000_000, 6558, 18_298),
        (60_000_000, 2, 30_000_000),
        (200_000_000, 1, 200_000_000),
        (139_800_000, 83_000, 1_684),
    ];
    for (r_c, w, interval) in vectors {
        for smss in [536, 1000, 1460] {
            let decision = decide(nanos(r_c), Window::from_bytes(w * u64::from(smss)), Revise::NextDeparture);
            let mut pacer = Pacer::default();
            pacer.on_departure(START, smss, &decision, None, TICK);
            assert_eq!(pacer.earliest(&decision, None), START + nanos(interval));
        }
    }
}

/// The packet conservation clock of LS-AIMD (Ahmed 2019, sections 7.3.1 and 7.3.2): a segment of
/// 1,448 bytes left at 1,000,000 ns, and the window (in 1/512 byte) or the RTT changes while the
/// next one is pending. What may leave is `max(now, last + I)`.
#[test]
fn a_pending_departure_moves_with_window_and_rtt() {
    let left = Instant::from_nanos(1_000_000);
    // (name, now, window, srtt, next departure), ns
    let vectors = [
        ("initial schedule", 1_000_000, 370_688, 200_000, 1_400_000),
        ("queue drains, earlier", 1_250_000, 370_688, 150_000, 1_300_000),
        ("queue builds, later", 1_250_000, 370_688, 260_000, 1_520_000),
        ("earlier than now: at once", 1_320_000, 370_688, 150_000, 1_320_000),
        ("a decrease halves the window: later", 1_250_000, 185_344, 200_000, 1_800_000),
        ("an increase by a tenth: earlier", 1_250_000, 407_756, 200_000, 1_363_637),
    ];
    let mut pacer = Pacer::default();
    let clock = |w: u64, srtt| decide(nanos(srtt), Window::from_raw(w << 7), Revise::Retroactive);
    pacer.on_departure(left, 1448, &clock(370_688, 200_000), None, TICK);
    for (name, now, w, srtt, next) in vectors {
        let earliest = pacer.earliest(&clock(w, srtt), None).max(Instant::from_nanos(now));
        assert_eq!(earliest, Instant::from_nanos(next), "{name}");
    }
    // Two and a half segments are on the ACK clock again: the pending departure goes.
    let acked = SendDecision::window(Window::from_raw(1_853_440 << 7), Window::MAX);
    assert_eq!(pacer.earliest(&acked, None), Instant::ZERO, "leaves while a departure is pending");
}

#[test]
fn nothing_waits_before_the_first_departure_or_without_a_pace() {
    let paced = decide(Duration::from_secs(1), Window::from_bytes(1), Revise::Retroactive);
    let mut pacer = Pacer::default();
    assert_eq!(pacer.earliest(&paced, None), Instant::ZERO);
    let unpaced = SendDecision::window(Window::MAX, Window::MAX);
    pacer.on_departure(START, 1000, &unpaced, None, TICK);
    assert_eq!(pacer.earliest(&unpaced, None), Instant::ZERO);
    let by_window = unpaced.paced(Pacing::WindowOverRtt { gain: 256 });
    assert_eq!(pacer.earliest(&by_window, None), Instant::ZERO, "no RTT is known");
}

#[test]
fn an_empty_window_or_a_rate_of_zero_never_lets_go() {
    for pacing in [Pacing::Gap { time: nanos(1), over: Window::ZERO }, Pacing::AtRate(Rate::ZERO)] {
        let decision = SendDecision::window(Window::MAX, Window::MAX).paced(pacing);
        let mut pacer = Pacer::default();
        pacer.on_departure(START, 1000, &decision, None, TICK);
        assert_eq!(pacer.earliest(&decision, None), Instant::FAR_FUTURE);
    }
}

#[test]
fn a_quantum_is_a_tick_of_the_timers_in_whole_segments() {
    let gap = |bytes_per_ms| Gap { time: Duration::from_millis(1), over: Window::from_bytes(bytes_per_ms) };
    assert_eq!(gap(125_000).quantum(1000, TICK), 6000, "1 Gbit/s: 6250 bytes in 50 us");
    assert_eq!(gap(125_000).quantum(1000, nanos(1)), 1000);
    assert_eq!(gap(1).quantum(1460, TICK), 1460);
    assert_eq!(gap(u64::MAX >> 16).quantum(65_483, Duration::from_secs(3600)), u32::MAX / 65_483 * 65_483);
}

/// What an RTO sends does not wait; what follows waits as if it had.
#[test]
fn what_leaves_before_its_time_is_charged() {
    let decision = decide(Duration::from_millis(10), Window::from_bytes(1000), Revise::NextDeparture);
    let mut pacer = Pacer::default();
    pacer.on_departure(START, 1000, &decision, None, TICK);
    pacer.on_departure(START + Duration::from_millis(4), 1000, &decision, None, TICK);
    assert_eq!(pacer.earliest(&decision, None), START + Duration::from_millis(20));
}

#[test]
fn only_banked_makes_up_for_lateness_and_only_up_to_the_slack() {
    let (ms, us) = (Duration::from_millis, Duration::from_micros);
    // So late is the second departure; then comes the third.
    let cases = [
        (Revise::NextDeparture, ms(3), ms(23)),
        (Revise::Banked, ms(3), ms(20)),
        (Revise::Banked, ms(5), ms(20)),
        // A quarter of a gap after what left late.
        (Revise::Banked, ms(10), us(22_500)),
        (Revise::Banked, ms(15), us(27_500)),
        (Revise::Banked, ms(500), us(512_500)),
        (Revise::Retroactive, ms(3), ms(23)),
    ];
    for (revise, late, third) in cases {
        let decision = decide(ms(10), Window::from_bytes(1000), revise);
        let mut pacer = Pacer::default();
        pacer.on_departure(START, 1000, &decision, None, TICK);
        pacer.hold();
        pacer.on_departure(START + ms(10) + late, 1000, &decision, None, TICK);
        assert_eq!(pacer.earliest(&decision, None), START + third, "{revise:?}, {late:?} late");
    }
}

/// Thirteen milliseconds late with 8 ms gaps: departures come at four times the rate until the
/// schedule has them again.
#[test]
fn lateness_is_made_up_for_without_a_burst() {
    let ms = Duration::from_millis;
    let decision = decide(ms(8), Window::from_bytes(1000), Revise::Banked);
    let mut pacer = Pacer::default();
    pacer.on_departure(START, 1000, &decision, None, Duration::from_millis(1));
    let mut left = vec![];
    for late in [13, 0, 0, 0, 0] {
        pacer.hold();
        let now = pacer.earliest(&decision, None) + ms(late);
        pacer.on_departure(now, 1000, &decision, None, Duration::from_millis(1));
        left.push(now.since(START).as_millis());
    }
    assert_eq!(left, [21, 23, 25, 32, 40]);
}

#[test]
fn a_pause_of_the_application_or_the_window_earns_nothing() {
    let decision = decide(Duration::from_millis(10), Window::from_bytes(1000), Revise::Banked);
    let mut pacer = Pacer::default();
    pacer.on_departure(START, 1000, &decision, None, TICK);
    pacer.on_departure(START + Duration::from_millis(13), 1000, &decision, None, TICK);
    assert_eq!(pacer.earliest(&decision, None), START + Duration::from_millis(23));
}

/// A window of any fraction, a round trip, and what leaves.
fn paths() -> impl Strategy<Value = (Duration, Window, Vec<u32>)> {
    (1_u64..10_000_000_000, 1_u64..1 << 46, prop::collection::vec(1_u32..70_000, 1..300))
        .prop_map(|(time, over, lens)| (nanos(time), Window::from_raw(over), lens))
}

proptest! {
    /// The instant after n departures is that of all their bytes at once, to the nanosecond.
    #[test]
    fn a_constant_rate_does_not_drift((time, over, lens) in paths(), banked: bool) {
        let revise = if banked { Revise::Banked } else { Revise::NextDeparture };
        let decision = decide(time, over, revise);
        let mut pacer = Pacer::default();
        let (mut now, mut bytes) = (START, 0_u128);
        for len in lens {
            pacer.on_departure(now, len, &decision, None, TICK);
            bytes += u128::from(len);
            now = pacer.earliest(&decision, None);
            let exact = (bytes << Window::FRACTION_BITS) * u128::from(time.as_nanos()) / u128::from(over.raw());
            prop_assume!(exact < u128::from(u64::MAX / 2));
            prop_assert_eq!(u128::from(now.since(START).as_nanos()), exact);
        }
    }

    /// The same if the window moves before every departure; each change costs less than a millionth
    /// of a nanosecond, for windows of a byte and more.
    #[test]
    fn a_moving_rate_does_not_drift(
        time in 1_000_000_u64..1_000_000_000,
        windows in prop::collection::vec(1_u64 << 24..1 << 44, 1..300),
    ) {
        let mut pacer = Pacer::default();
        let (mut now, mut exact) = (START, 0.0_f64);
        for over in windows {
            let decision = decide(nanos(time), Window::from_raw(over), Revise::NextDeparture);
            pacer.on_departure(now, 1000, &decision, None, TICK);
            now = pacer.earliest(&decision, None);
            exact += 65_536_000.0 * time as f64 / over as f64;
            let paced = now.since(START).as_nanos() as f64;
            // One for the fraction that is being carried, and what the sum of doubles is worth.
            prop_assert!((paced - exact).abs() < 1.001 + 1e-9 * exact, "{paced}, exactly {exact}");
        }
    }

    /// However late the timers and however long the pauses: between any two departures no more
    /// leaves than the rate allows for the time and the slack, and the first one's bytes.
    #[test]
    fn no_burst_exceeds_the_slack(
        late in prop::collection::vec((0_u64..40_000_000, any::<bool>()), 1..120),
        banked: bool,
    ) {
        let revise = if banked { Revise::Banked } else { Revise::NextDeparture };
        // A byte per microsecond; slack: 1000 us for one segment, which is as much as 20 ticks of
        // 50 us.
        let decision = decide(Duration::from_micros(1), Window::from_bytes(1), revise);
        let mut pacer = Pacer::default();
        let mut left: Vec<(Instant, u64)> = Vec::new();
        for (late, held) in late {
            if held {
                pacer.hold();
            }
            let now = pacer.earliest(&decision, None).max(START) + nanos(late);
            pacer.on_departure(now, 1000, &decision, None, TICK);
            left.push((now, 1000));
        }
        for (i, first) in left.iter().enumerate() {
            let mut bytes = 0;
            for (at, len) in left.iter().skip(i) {
                bytes += len;
                let slack = if banked { 1000 } else { 0 };
                prop_assert!(bytes <= at.since(first.0).as_micros() + 1000 + slack, "{bytes} from {first:?} to {at:?}");
            }
        }
    }

    /// Whatever the timers do, a departure that was late is followed by no burst.
    #[test]
    fn a_quarter_of_a_gap_always_lies_between_departures(
        late in prop::collection::vec(0_u64..4_000_000, 2..120),
        segments in 1_u32..5,
    ) {
        let decision = decide(Duration::from_micros(1), Window::from_bytes(1), Revise::Banked);
        let mut pacer = Pacer::default();
        let mut last = None;
        for late in late {
            pacer.hold();
            let now = pacer.earliest(&decision, None).max(START) + nanos(late);
            if let Some(last) = last.replace(now) {
                prop_assert!(now.since(last) >= Duration::from_micros(250 * u64::from(segments)));
            }
            pacer.on_departure(now, 1000 * segments, &decision, None, TICK);
        }
    }

    /// Retroactive: the pending departure is where the newest gap puts it, earlier or later; with
    /// the others it stays, but waits for no more than eight of the newest gaps.
    #[test]
    fn a_new_gap_moves_a_pending_departure_or_leaves_it(
        (time, over, _) in paths(),
        changes in prop::collection::vec((1_u64..10_000_000_000, 1_u64..1 << 46), 1..20),
        len in 1_u32..70_000,
    ) {
        for revise in [Revise::Retroactive, Revise::NextDeparture, Revise::Banked] {
            let first = decide(time, over, revise);
            let mut pacer = Pacer::default();
            pacer.on_departure(START, len, &first, None, TICK);
            let pending = pacer.earliest(&first, None);
            for (time, over) in &changes {
                let changed = decide(nanos(*time), Window::from_raw(*over), revise);
                let gap = (u128::from(len) << 16) * u128::from(*time) / u128::from(*over);
                let gap = nanos(u64::try_from(gap).unwrap_or(u64::MAX));
                let expected = match revise {
                    Revise::Retroactive => START + gap,
                    // A gap of less than a nanosecond is held for one: its fraction may have been
                    // carried over.
                    Revise::NextDeparture | Revise::Banked => {
                        pending.min(START + gap.saturating_mul(8).max(gap.saturating_add(nanos(1))))
                    }
                };
                prop_assert_eq!(pacer.earliest(&changed, None), expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Timers that are late by a part of a tick, and now and then by many ticks, as those of a
    /// sleeping driver are: the rate holds nevertheless, for one segment in 100 us as for four in
    /// 48 us.
    #[test]
    fn late_timers_do_not_cost_rate(
        draws in prop::collection::vec((0_u64..20_000, 0_u64..1_000), 10_000),
        gap in prop::sample::select(vec![(100_u64, 1_u32), (48, 4)]),
    ) {
        let (micros, segments) = gap;
        let over = Window::from_bytes(1500 * u64::from(segments));
        let decision = decide(Duration::from_micros(micros), over, Revise::Banked);
        let mut pacer = Pacer::default();
        let (mut now, mut departures) = (START, 0);
        for (late, seldom) in draws {
            pacer.on_departure(now, 1500 * segments, &decision, None, TICK);
            pacer.hold();
            departures += 1;
            // Twice in a thousand times nothing runs for 600 us.
            let stall = if seldom < 2 { 600_000 } else { 0 };
            now = pacer.earliest(&decision, None) + nanos(late + stall);
        }
        let due = now.since(START).as_micros() / micros;
        prop_assert!(departures * 100 >= due * 99, "{departures} left, {due} were due");
        prop_assert!(departures * 100 <= due * 101 + 100, "{departures} left, {due} were due");
    }
}

/// The first retransmission has a slot of the reduced window over the round trip, and none of more
/// than a round trip.
#[test]
fn the_slot_of_a_repair() {
    let decision = decide(nanos(1_000_000), Window::from_bytes(10_000), Revise::NextDeparture);
    let (window, srtt) = (Window::from_bytes(5000), Duration::from_millis(10));
    for (len, wait) in [(1000, 2), (4000, 8), (5000, 10), (64_000, 10)] {
        let mut pacer = Pacer::default();
        pacer.on_departure(START, len, &decision, None, TICK);
        assert_eq!(pacer.earliest_repair(window, srtt), START + Duration::from_millis(wait), "{len} bytes");
    }
}
