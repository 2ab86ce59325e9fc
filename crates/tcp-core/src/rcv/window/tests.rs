use super::{BACKLOG_WINDOW, MIN_ROUND, Position, RecvWindow, Update};
use crate::policy::ack::WindowHint;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use proptest::prelude::*;

const START: SeqNum = SeqNum(1_000);

fn at(rcv_nxt: u32, unread: u32, rmss: u32, limit: u32) -> Position {
    Position { rcv_nxt: SeqNum(rcv_nxt), unread, rmss, limit }
}

/// A window of `size` bytes that the peer knows in full.
fn open(size: u32, shift: u8, limit: u32) -> RecvWindow {
    let mut window = RecvWindow::new(size);
    window.open(START + size, shift, limit);
    window
}

/// The bytes that the next ACK offers; it is sent.
fn show(window: &mut RecvWindow, at: &Position) -> u32 {
    let (field, edge) = window.offer(at, WindowHint::Sws, false);
    window.advertised(edge);
    u32::from(field) << window.shift
}

/// RFC 9293, section 3.8.6.2.2: the edge moves only when `min(R/2, MSS)` can be added.
#[test]
fn the_edge_stands_until_a_segment_or_half_the_buffer_is_free() {
    // R = 10,000, MSS = 1,000. 9,500 arrive and nothing is read.
    let mut window = open(10_000, 0, 10_000);
    assert_eq!(show(&mut window, &at(10_500, 9_500, 1_000, 10_000)), 500);
    assert_eq!(window.update(&at(10_500, 8_501, 1_000, 10_000), false), Update::No, "999 bytes were read");
    assert_eq!(show(&mut window, &at(10_500, 8_501, 1_000, 10_000)), 500, "the edge stands");
    assert_eq!(window.update(&at(10_500, 8_500, 1_000, 10_000), false), Update::Reopens, "1,000 bytes");
    assert_eq!(show(&mut window, &at(10_500, 8_500, 1_000, 10_000)), 1_500);

    // R = 1,000, MSS = 1,000: half the buffer counts.
    let mut window = open(1_000, 0, 1_000);
    assert_eq!(show(&mut window, &at(2_000, 1_000, 1_000, 1_000)), 0);
    assert_eq!(show(&mut window, &at(2_000, 501, 1_000, 1_000)), 0);
    assert_eq!(window.update(&at(2_000, 500, 1_000, 1_000), false), Update::Reopens);
    assert_eq!(show(&mut window, &at(2_000, 500, 1_000, 1_000)), 500);
}

#[test]
fn a_reader_that_keeps_up_needs_no_window_updates() {
    let mut window = open(64_000, 0, 64_000);
    let mut rcv_nxt = START.0;
    for _ in 0..1_000 {
        // Two segments arrive, are read at once, and one ACK leaves after that.
        rcv_nxt += 2 * 1_448;
        let position = at(rcv_nxt, 0, 1_448, 64_000);
        assert_eq!(window.update(&position, false), Update::No);
        assert_eq!(show(&mut window, &position), 64_000);
    }
}

#[test]
fn a_read_that_doubles_the_window_is_worth_a_segment() {
    let mut window = open(64_000, 0, 64_000);
    assert_eq!(show(&mut window, &at(START.0 + 40_000, 40_000, 1_448, 64_000)), 24_000);
    assert_eq!(window.update(&at(START.0 + 40_000, 20_000, 1_448, 64_000), false), Update::No);
    assert_eq!(window.update(&at(START.0 + 40_000, 10_000, 1_448, 64_000), false), Update::Useful);
    assert_eq!(
        window.update(&at(START.0 + 40_000, 10_000, 1_448, 64_000), true),
        Update::No,
        "while duplicate ACKs count, nothing changes the window"
    );
}

#[test]
fn bsd_shows_all_that_is_free() {
    let window = open(10_000, 0, 10_000);
    let position = at(10_500, 9_400, 1_000, 10_000);
    assert_eq!(window.offer(&position, WindowHint::AllFree, false), (600, SeqNum(11_100)));
    assert_eq!(window.offer(&position, WindowHint::Sws, false), (500, SeqNum(11_000)));
}

#[test]
fn duplicate_acks_show_one_window_unless_it_is_as_good_as_closed() {
    let mut window = open(10_000, 0, 10_000);
    assert_eq!(show(&mut window, &at(6_000, 5_000, 1_000, 10_000)), 5_000);
    assert_eq!(window.offer(&at(6_000, 0, 1_000, 10_000), WindowHint::Sws, true).0, 5_000);
    assert_eq!(show(&mut window, &at(10_500, 9_500, 1_000, 10_000)), 500);
    assert_eq!(window.offer(&at(10_500, 0, 1_000, 10_000), WindowHint::Sws, true).0, 10_000);
}

#[test]
fn without_scaling_the_window_is_at_most_65535() {
    let window = open(1 << 20, 0, 1 << 20);
    assert_eq!(window.size, 65_535);
    let mut window = open(65_535, 4, 1 << 20);
    window.on_read(Instant::ZERO, 1, 1_448, None, 1 << 20, false);
    assert_eq!(window.size, 65_535 << 4, "an unknown round trip opens it fully, as far as the field can say");
}

/// RFC 7323, section 2.4: the scale may force the edge back by less than one unit, and only if the
/// buffer is full. What was promised is remembered.
#[test]
fn the_scale_rounds_up_where_there_is_room() {
    let mut window = open(65_536, 7, 1 << 20);
    assert_eq!(show(&mut window, &at(START.0 + 1, 1, 1_448, 1 << 20)), 65_536, "up: the buffer has room");
    assert_eq!(window.left(START + 1), 65_536);
    let mut full = open(65_536, 7, 65_536);
    assert_eq!(show(&mut full, &at(START.0 + 1, 1, 1_448, 65_536)), 65_536 - 128, "down: it has none");
    assert_eq!(full.left(START + 1), 65_535);
}

/// What the reader takes in a round trip opens the window to four times that.
#[test]
fn the_window_follows_the_reader_up_to_the_limit() {
    let rtt = Duration::from_millis(50);
    let mut window = open(65_535, 7, 6 << 20);
    let mut now = Instant::from_secs(1);
    let mut sizes = std::vec![];
    for _ in 0..6 {
        let size = window.size;
        // A window per round trip, read in ten pieces.
        for _ in 0..10 {
            window.on_read(now, size / 10, 1_448, Some(rtt), 6 << 20, false);
            now += Duration::from_millis(5);
        }
        sizes.push(window.size);
    }
    assert!(sizes.windows(2).all(|pair| pair[1] == 6 << 20 || pair[1] > 3 * pair[0]), "{sizes:?}");
    assert_eq!(window.size, 6 << 20);

    // 100 kB/s over 50 ms are 5 kB: the first window is enough for ever.
    let mut window = open(65_535, 7, 6 << 20);
    for _ in 0..1_000 {
        window.on_read(now, 1_000, 1_448, Some(rtt), 6 << 20, false);
        now += Duration::from_millis(10);
    }
    assert_eq!(window.size, 65_535);
}

/// A queue on the path makes the round trip longer than the handshake's; timestamps show it.
#[test]
fn while_packets_wait_in_the_device_a_window_that_has_grown_shrinks_without_taking_back() {
    let limit = 6 << 20;
    let mut window = open(65_535, 7, limit);
    let mut now = Instant::from_secs(1);
    window.on_read(now, 1, 1_448, None, limit, false);
    let mut rcv_nxt = START.0;
    let position = |rcv_nxt| at(rcv_nxt, 0, 1_448, limit);
    let before = show(&mut window, &position(rcv_nxt));
    assert!(before >= limit - 128);
    let mut shown = std::vec![before];
    for _ in 0..200 {
        now += Duration::from_micros(100);
        let edge = window.edge();
        rcv_nxt += 60_000;
        window.on_read(now, 60_000, 1_448, Some(MIN_ROUND), limit, true);
        shown.push(show(&mut window, &position(rcv_nxt)));
        assert!(window.edge().ge(edge), "promised");
    }
    assert!(shown.windows(2).all(|pair| pair[1] >= pair[0].saturating_sub(60_000)), "{shown:?}");
    assert_eq!(window.size, BACKLOG_WINDOW, "20 ms are enough for any window");
    window.on_read(now + MIN_ROUND, 60_000, 1_448, Some(MIN_ROUND), limit, false);
    assert!(window.size >= 240_000, "it grows again when the host keeps up: {}", window.size);
}

#[test]
fn a_window_of_the_applications_choice_does_not_shrink() {
    let mut window = open(65_535, 7, 1 << 20);
    window.resize(1 << 20);
    window.on_read(Instant::from_secs(1), 60_000, 1_448, Some(MIN_ROUND), 1 << 20, true);
    assert_eq!(window.size, 1 << 20);
    let mut small = open(10_000, 0, 10_000);
    small.on_read(Instant::from_secs(1), 10_000, 1_448, Some(MIN_ROUND), 10_000, true);
    assert_eq!(small.size, 10_000, "nor one that never grew");
}

#[test]
fn the_window_counts_over_the_round_trip_with_its_queue() {
    let grown = |seen: Option<Duration>| {
        let mut window = open(65_535, 7, 6 << 20);
        let mut now = Instant::from_secs(1);
        for _ in 0..1_000 {
            // 5 MB/s.
            if let Some(rtt) = seen {
                window.on_rtt(rtt);
                window.on_rtt(rtt.saturating_mul(3));
            }
            window.on_read(now, 5_000, 1_448, Some(Duration::from_millis(10)), 6 << 20, false);
            now += Duration::from_millis(1);
        }
        window.size
    };
    let headroom = 16 * 1_448;
    assert_eq!(grown(None), 4 * 50_000 + headroom);
    assert_eq!(grown(Some(Duration::from_millis(200))), 4 * 1_000_000 + headroom);
    assert_eq!(grown(Some(Duration::from_millis(2))), 4 * 50_000 + headroom);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(u32),
    Read(u32),
    Ack(bool),
}

proptest! {
    /// Whatever arrives, is read and acknowledged: the edge never moves back, never promises what
    /// the buffer cannot take, and what the wire shows is never past it, nor behind by a unit of
    /// the scale or more.
    #[test]
    fn the_edge_is_a_promise_that_can_be_kept(
        limit in 1u32..1 << 20,
        size in 1u32..1 << 20,
        rmss in 1u32..10_000,
        shift in 0u8..15,
        start: u32,
        steps in proptest::collection::vec(prop_oneof![
            (0u32..100_000).prop_map(Step::Arrive),
            (0u32..100_000).prop_map(Step::Read),
            any::<bool>().prop_map(Step::Ack),
        ], 1..200),
    ) {
        let mut rcv_nxt = SeqNum(start);
        let mut unread = 0;
        let mut window = RecvWindow::new(size);
        window.open(rcv_nxt + size.min(limit).min(65_535), shift, limit);
        for step in steps {
            match step {
                Step::Arrive(n) => {
                    let n = n.min(window.left(rcv_nxt));
                    rcv_nxt += n;
                    unread += n;
                }
                Step::Read(n) => {
                    let n = n.min(unread);
                    unread -= n;
                    window.on_read(Instant::ZERO, n, rmss, Some(Duration::from_millis(1)), limit, false);
                }
                Step::Ack(all) => {
                    let before = window.edge();
                    let hint = if all { WindowHint::AllFree } else { WindowHint::Sws };
                    let position = Position { rcv_nxt, unread, rmss, limit };
                    let (field, edge) = window.offer(&position, hint, false);
                    prop_assert_eq!(edge, rcv_nxt + (u32::from(field) << shift));
                    if edge.lt(before) {
                        prop_assert!(before.distance_from(edge) < 1 << shift);
                        prop_assert!(shift > 0);
                    }
                    window.advertised(edge);
                    prop_assert!(window.edge().ge(before));
                }
            }
            prop_assert!(window.left(rcv_nxt) + unread <= limit, "the buffer can take what was promised");
        }
    }
}
