//! What out-of-order data costs, and what is given back.

use super::{Bench, config, info, params, stream};
use crate::config::ConnConfig;
use crate::rcv::assembler::Assembler;

/// Memory of the receiver without buffers: the ranges, and the box around them.
const RANGES: usize = 256;

fn wide(max_out_of_order_ranges: u16) -> Bench {
    let config = ConnConfig { recv_buffer: 60_000, max_out_of_order_ranges, ..config() };
    Bench::delayed(config, params())
}

#[test]
fn a_byte_at_the_end_of_the_window_costs_a_byte() {
    let mut bench = wide(512);
    bench.arrive(59_999, 60_000);
    assert!(bench.allocated() < 512, "{} bytes", bench.allocated());
    assert!(!bench.rcv.has_spare_memory(), "there is nothing to give back");
    bench.arrive(0, 59_999);
    assert_eq!(bench.read(60_000), stream(0, 60_000));
}

/// Hoarding: as many ranges as there may be, a byte each, all over the window.
#[test]
fn scattered_bytes_cost_what_their_ranges_do() {
    let mut bench = wide(512);
    for range in (1..=512).rev() {
        bench.arrive(117 * range - 1, 117 * range);
    }
    assert_eq!(bench.observe.counters.tcp_ofo_drop, 0);
    assert!(bench.allocated() < 512 * 128, "{} bytes", bench.allocated());
    assert!(bench.buffer_memory() <= 2_048, "four times what is held");
    bench.arrive(59_990, 59_991);
    assert_eq!(bench.observe.counters.tcp_ofo_drop, 1);
    bench.arrive(0, 60_000);
    assert_eq!(bench.read(60_000), stream(0, 60_000));
    assert_eq!(
        bench.allocated() - bench.buffer_memory(),
        size_of::<Assembler>() + 512 * 12,
        "only the ranges' memory"
    );
}

/// A range that grows backwards, a byte at a time, is a piece for each byte: their number is
/// limited, too.
#[test]
fn a_range_that_grows_backwards_is_bounded() {
    let mut bench = wide(10);
    for at in (50_000..59_000).rev() {
        bench.arrive(at, at + 1);
    }
    assert_eq!(bench.observe.counters.tcp_ofo_drop, 9_000 - 20);
    assert!(bench.allocated() < 4_096, "{} bytes", bench.allocated());
    bench.arrive(0, 58_980);
    assert_eq!(bench.read(60_000), stream(0, 59_000), "what was not dropped");
}

/// The usual hole is small compared with what waits behind it: the buffer takes that, without
/// memory for each segment.
#[test]
fn behind_a_small_hole_the_buffer_takes_everything() {
    let mut bench = wide(512);
    for segment in 1..30 {
        bench.arrive(segment * 2_000, (segment + 1) * 2_000);
    }
    assert_eq!(
        bench.allocated() - bench.buffer_memory(),
        size_of::<Assembler>() + 4 * 12,
        "a range, and no piece"
    );
    bench.arrive(0, 2_000);
    assert_eq!(bench.read(60_000), stream(0, 60_000));
}

/// Behind a large hole data waits apart, until there is enough of it for the buffer.
#[test]
fn behind_a_large_hole_memory_follows_the_data() {
    let mut bench = wide(512);
    for segment in 20..30 {
        bench.arrive(segment * 2_000, (segment + 1) * 2_000);
        let held = ((segment - 19) * 2_000) as usize;
        let allocated = bench.allocated();
        assert!(allocated <= 16 * held + RANGES, "{allocated} bytes for {held}");
    }
    assert!(bench.buffer_memory() > 0, "the last ones are in the buffer");
    bench.arrive(0, 40_000);
    assert_eq!(bench.read(60_000), stream(0, 60_000));
}

#[test]
fn what_was_dense_and_is_sparse_moves_apart() {
    let mut bench = wide(512);
    // Half of the window waits behind a hole, and for its sake a byte far away came into the
    // buffer.
    bench.arrive(1_000, 30_000);
    bench.arrive(50_000, 50_001);
    assert_eq!(bench.buffer_memory(), 65_536);
    bench.arrive(0, 1_000);
    assert_eq!(bench.read(30_000), stream(0, 30_000));
    assert!(bench.rcv.has_spare_memory());
    bench.rcv.trim();
    assert!(bench.allocated() < 512, "{} bytes", bench.allocated());
    assert!(!bench.rcv.has_spare_memory());
    let mut shown = info();
    bench.rcv.info(&mut shown);
    assert_eq!(shown.ooo_bytes, 1);
    bench.arrive(30_000, 50_000);
    assert_eq!(bench.read(30_000), stream(30_000, 50_001), "the byte is still there");
}

#[test]
fn a_nearly_empty_buffer_shrinks_around_what_is_unread() {
    let mut bench = wide(512);
    bench.arrive(0, 50_000);
    assert_eq!(bench.read(49_900), stream(0, 49_900));
    assert!(bench.rcv.has_spare_memory());
    bench.rcv.trim();
    assert_eq!((bench.buffer_memory(), bench.rcv.has_spare_memory()), (256, false));
    assert_eq!(bench.read(1_000), stream(49_900, 50_000));
}
