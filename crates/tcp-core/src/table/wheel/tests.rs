use super::{Node, TimingWheel};
use crate::time::{Duration, Instant};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn drain(wheel: &mut TimingWheel, now: Instant) -> Vec<u32> {
    core::iter::from_fn(|| wheel.pop_expired(now)).collect()
}

#[test]
fn memory_per_key_is_bounded() {
    assert_eq!(size_of::<Node>(), 24);
}

#[test]
fn equal_deadlines_expire_by_key() {
    let mut wheel = TimingWheel::new();
    for key in [5, 3, 9, 0, 7] {
        wheel.set(key, at(1_000_000));
    }
    assert_eq!(wheel.next(), Some((at(1_000_000), 0)));
    assert_eq!(drain(&mut wheel, at(999_999)), []);
    assert_eq!(drain(&mut wheel, at(1_000_000)), [0, 3, 5, 7, 9]);
    assert_eq!(wheel.next(), None);
}

#[test]
fn deadlines_in_the_past_expire_at_once_and_in_order() {
    let mut wheel = TimingWheel::new();
    assert_eq!(wheel.pop_expired(Instant::from_secs(100)), None);
    wheel.set(1, Instant::from_secs(99));
    wheel.set(2, Instant::from_secs(3));
    wheel.set(3, Instant::from_secs(100));
    wheel.set(4, Instant::from_secs(101));
    assert_eq!(wheel.next(), Some((Instant::from_secs(3), 2)));
    assert_eq!(drain(&mut wheel, Instant::from_secs(100)), [2, 1, 3]);
    assert_eq!(wheel.next(), Some((Instant::from_secs(101), 4)));
}

#[test]
fn extremes_of_time_can_be_set() {
    let mut wheel = TimingWheel::new();
    wheel.set(0, Instant::FAR_FUTURE);
    wheel.set(1, Instant::ZERO);
    assert_eq!(drain(&mut wheel, at(u64::MAX - 1)), [1]);
    assert_eq!(wheel.next(), Some((Instant::FAR_FUTURE, 0)));
    assert_eq!(drain(&mut wheel, Instant::FAR_FUTURE), [0]);
}

#[test]
fn a_timer_set_while_others_expire_takes_its_turn() {
    let mut wheel = TimingWheel::new();
    wheel.set(0, Instant::from_millis(10));
    wheel.set(1, Instant::from_millis(30));
    let now = Instant::from_millis(30);
    assert_eq!(wheel.pop_expired(now), Some(0));
    wheel.set(0, Instant::from_millis(20));
    wheel.set(2, Instant::from_millis(5));
    assert_eq!(drain(&mut wheel, now), [2, 0, 1]);
}

/// Comparisons that one connection's timer costs in each of `rounds` round trips: its RTO moves,
/// fires never, and is stopped and started as data runs out and comes back.
fn work_of_one_among(idle: u32, rounds: u64) -> u64 {
    let mut wheel = TimingWheel::new();
    // Keep-alive timers, spread over two hours in an order that is not the order of time.
    for key in 1..=idle {
        let spread = u64::from(key.wrapping_mul(2_654_435_761)) * 1676;
        wheel.set(key, at(1_000_000_000_000 + spread));
    }
    // The first removal pays for the unsorted insertions before it.
    wheel.set(0, at(500));
    wheel.cancel(0);
    let before = wheel.comparisons;
    let mut now = Instant::from_secs(900);
    for round in 0..rounds {
        now += Duration::from_micros(50);
        while wheel.pop_expired(now).is_some() {}
        wheel.set(0, now + Duration::from_millis(200));
        assert_eq!(wheel.next(), Some((now + Duration::from_millis(200), 0)));
        if round % 4 == 3 {
            wheel.cancel(0);
        }
    }
    wheel.comparisons - before
}

#[test]
fn idle_timers_do_not_slow_an_active_one() {
    let (alone, crowded) = (work_of_one_among(0, 100_000), work_of_one_among(100_000, 100_000));
    assert_eq!(alone, 0);
    assert!(crowded < 100_000 / 50, "{crowded} comparisons for 100000 rearms");
}

#[test]
fn crossing_into_a_crowded_slot_costs_once() {
    // The active timer lies among 100,000 others in one far slot, and is its earliest.
    let mut wheel = TimingWheel::new();
    let boundary = 1 << 42;
    for key in 1..=100_000u32 {
        wheel.set(key, at(boundary + 1_000_000_000 + u64::from(key.wrapping_mul(2_654_435_761))));
    }
    wheel.set(0, at(boundary));
    wheel.cancel(0);
    let before = wheel.comparisons;
    for round in 0..100_000 {
        wheel.set(0, at(boundary + round));
        assert_eq!(wheel.next(), Some((at(boundary + round), 0)));
        if round % 2 == 1 {
            wheel.cancel(0);
        }
    }
    let each = (wheel.comparisons - before) as f64 / 100_000.0;
    assert!(each < 4.0, "{each} comparisons per rearm");
}

#[derive(Clone, Debug)]
enum Op {
    Set(u32, u64),
    Cancel(u32),
    Advance(u64),
    PopOne,
}

/// Times whose distances are spread over all levels, with many that collide.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..4, (0u32..46, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1))]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0u32..40, span()).prop_map(|(key, after)| Op::Set(key, after)),
        2 => (0u32..50).prop_map(Op::Cancel),
        2 => span().prop_map(Op::Advance),
        1 => Just(Op::PopOne),
    ]
}

proptest! {
    #[test]
    fn agrees_with_an_ordered_set(start in span(), ops in prop::collection::vec(op(), 1..300)) {
        let mut wheel = TimingWheel::new();
        let mut deadlines = BTreeMap::new();
        let mut order = BTreeSet::new();
        let mut now = start;
        for op in ops {
            match op {
                Op::Set(key, after) => {
                    // Some lie in the past.
                    let deadline = (now + after).saturating_sub(100);
                    wheel.set(key, at(deadline));
                    if let Some(old) = deadlines.insert(key, deadline) {
                        order.remove(&(old, key));
                    }
                    order.insert((deadline, key));
                }
                Op::Cancel(key) => {
                    let old = deadlines.remove(&key);
                    prop_assert_eq!(wheel.cancel(key), old.is_some());
                    if let Some(old) = old {
                        order.remove(&(old, key));
                    }
                }
                Op::Advance(by) => {
                    now += by;
                    while let Some(key) = wheel.pop_expired(at(now)) {
                        prop_assert_eq!(order.pop_first(), Some((deadlines[&key], key)));
                        deadlines.remove(&key);
                    }
                    prop_assert!(order.first().is_none_or(|first| first.0 > now));
                }
                Op::PopOne => {
                    let expected = order.first().filter(|first| first.0 <= now).copied();
                    prop_assert_eq!(wheel.pop_expired(at(now)), expected.map(|first| first.1));
                    if let Some((deadline, key)) = expected {
                        order.remove(&(deadline, key));
                        deadlines.remove(&key);
                    }
                }
            }
            prop_assert_eq!(wheel.next(), order.first().map(|first| (at(first.0), first.1)));
            for key in 0..50 {
                prop_assert_eq!(wheel.deadline(key), deadlines.get(&key).map(|deadline| at(*deadline)));
            }
        }
    }

    #[test]
    fn many_timers_expire_in_order(seed: u64, steps in prop::collection::vec(1u64..1 << 34, 1..60)) {
        let mut wheel = TimingWheel::new();
        let mut random = seed | 1;
        for key in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            wheel.set(key, at(random >> 27));
        }
        let deadlines: Vec<_> = (0..2000).map(|key| wheel.deadline(key)).collect();
        let (mut now, mut last) = (0, None);
        for step in steps {
            now += step;
            while let Some(key) = wheel.pop_expired(at(now)) {
                let this = (deadlines[key as usize].expect("armed"), key);
                prop_assert!(last.is_none_or(|last| last < this) && this.0 <= at(now));
                last = Some(this);
            }
            prop_assert!(wheel.next().is_none_or(|next| next.0 > at(now)));
        }
    }
}
