//! Windows and buffers when the endpoint's memory is short.

use super::*;
use crate::memory::budget::{Grant, PACKET};

/// Holds all that there may be.
fn exhausted() -> Budget {
    let mut budget = Budget::new(Some(100_000), 50, 66);
    budget.charge(0, 100_000);
    budget.settle(Instant::ZERO, 10, 0, &mut Counters::default());
    budget
}

fn edge(numbers: &AckNumbers) -> u32 {
    (numbers.ack + u32::from(numbers.window)).distance_from(START)
}

#[test]
fn a_window_closes_without_being_taken_back_and_reopens() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive(0, 2_000);
    let promised = edge(&bench.drain()[0].1);
    assert_eq!(promised, 20_000);
    let tight = exhausted().grant();
    assert_eq!(tight.bytes() as usize, PACKET);
    bench.rcv.heed(&bench.config, tight);
    for from in (2_000..20_000).step_by(1_000) {
        bench.arrive(from, from + 1_000);
        bench.read(1_000);
        for (_, numbers) in bench.drain() {
            assert_eq!(edge(&numbers), promised, "neither taken back nor moved on");
        }
    }
    // All but the last 2,000 bytes are read: less than a packet would be too small a window.
    assert_eq!(bench.rcv.window(), 0);
    bench.read(600);
    assert_eq!(bench.drain(), [], "SWS avoidance");
    bench.read(1_400);
    let opened = bench.drain();
    assert_eq!((opened[0].0, edge(&opened[0].1)), (SendReason::WindowUpdate, promised + PACKET as u32));

    // There is memory again: the peer is told at once.
    bench.rcv.heed(&bench.config, Grant::UNLIMITED);
    let opened = bench.drain();
    assert_eq!((opened[0].0, edge(&opened[0].1)), (SendReason::WindowUpdate, 40_000));
}

#[test]
fn data_without_memory_is_dropped_and_comes_again() {
    let mut bench = Bench::delayed(config(), params());
    bench.observe.budget = exhausted();
    bench.arrive(0, 1_000);
    assert!(bench.arrive(1_000, 2_000).readable, "a packet's worth there always is");
    bench.drain();
    assert!(bench.arrive(2_000, 3_000).readable, "and what fits into that");
    assert_eq!((bench.offset(), bench.observe.counters.tcp_rcv_q_drop), (2_048, 1));
    assert_eq!(bench.drain().len(), 1, "the sender is told at once");
    assert!(!bench.arrive(2_048, 3_048).readable);
    bench.arrive(5_000, 6_000);
    assert_eq!(
        (bench.offset(), bench.observe.counters.tcp_rcv_q_drop, bench.observe.counters.tcp_ofo_drop),
        (2_048, 2, 1)
    );
    assert_eq!(bench.rcv.reassembly.out_of_order_bytes(), 0);
    assert_eq!(bench.read(5_000), stream(0, 2_048));
    bench.arrive(2_048, 3_048);
    bench.observe.budget = Budget::new(None, 50, 66);
    bench.arrive(3_048, 9_000);
    assert_eq!(bench.read(10_000), stream(2_048, 9_000));
}

#[test]
fn what_is_pruned_is_not_reported_and_comes_again() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive(0, 1_000);
    bench.drain();
    bench.arrive(3_000, 9_000);
    assert_eq!(bench.blocks(), [(3_000, 9_000)]);
    let before = bench.rcv.memory();
    assert!(bench.rcv.prune() && !bench.rcv.prune());
    assert!(bench.rcv.memory() + 4_096 < before);
    assert_eq!(bench.read(5_000), stream(0, 1_000), "what was acknowledged stays");
    bench.arrive(1_000, 2_000);
    bench.arrive(5_000, 6_000);
    assert_eq!(bench.blocks(), [(5_000, 6_000)]);
    bench.arrive(2_000, 9_000);
    assert_eq!(bench.read(10_000), stream(1_000, 9_000));
}

#[test]
fn a_stream_that_was_forfeited_is_not_complete() {
    let mut bench = Bench::delayed(config(), params());
    assert!(bench.arrive_with(0, 1_000, true, 1).fin);
    bench.rcv.forfeit();
    assert!(bench.rcv.readable() == 0 && !bench.rcv.fin_received());
}
