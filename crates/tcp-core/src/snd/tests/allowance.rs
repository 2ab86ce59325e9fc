//! How much the application may write.

use super::bench::{Bench, SMSS, Setup, ms};
use crate::packet::SendReason::FastRetransmit;
use crate::policy::cc::Clock;
use crate::snd::WriteSpace;
use std::vec::Vec;

const FLOOR: u32 = 16 * SMSS;
const LIMIT: u32 = 100 * SMSS;

fn bench(lowat: Option<u32>) -> Bench {
    let mut setup = Setup::default();
    setup.config.send_buffer = LIMIT;
    setup.config.min_send_buffer = Some(FLOOR);
    setup.config.notsent_lowat = lowat;
    setup.open()
}

fn allowance(bench: &Bench) -> u32 {
    bench.snd.allowance(&bench.config)
}

fn space(bench: &Bench) -> u32 {
    bench.snd.write_space(&bench.config) as u32
}

#[test]
fn the_allowance_is_twice_the_window_between_floor_and_limit() {
    let mut bench = bench(None);
    for (cwnd, segments) in [(1, 16), (7, 16), (9, 18), (40, 80), (50, 100), (3_000, 100), (4, 16)] {
        bench.set_cwnd(cwnd);
        assert_eq!((allowance(&bench), space(&bench)), (segments * SMSS, segments * SMSS), "cwnd {cwnd}");
    }
    bench.config.cwnd_cap = Some(u64::from(10 * SMSS));
    bench.set_cwnd(40);
    assert_eq!(allowance(&bench), 20 * SMSS);
    bench.config.min_send_buffer = None;
    assert_eq!(allowance(&bench), LIMIT);
    bench.config.min_send_buffer = Some(2 * LIMIT);
    assert_eq!(allowance(&bench), LIMIT);
}

#[test]
fn under_a_departure_clock_the_allowance_is_twice_what_it_lets_out() {
    let mut bench = bench(None);
    bench.decide(|decision| decision.clock = Clock::Departure { max_outstanding: 30 });
    assert_eq!(allowance(&bench), 60 * SMSS);
}

#[test]
fn a_smaller_window_takes_nothing_back() {
    let mut bench = bench(None);
    bench.set_cwnd(20);
    bench.write(40 * SMSS);
    assert_eq!(bench.drain().len(), 20);
    bench.pass(ms(100));
    bench.set_cwnd(10);
    bench.ack(10 * SMSS);
    assert_eq!((allowance(&bench), space(&bench)), (20 * SMSS, 0), "30 segments are held");
    assert_eq!(bench.snd.write(&bench.config, &[1]), 0);
    bench.ack(15 * SMSS);
    assert_eq!(bench.info().notsent_bytes, 20 * SMSS);
    bench.ack(20 * SMSS);
    assert_eq!(space(&bench), 0);
    assert_eq!(bench.drain().len(), 10, "every byte leaves");
    bench.ack(25 * SMSS);
    assert_eq!(space(&bench), 5 * SMSS);
}

/// Twenty of twenty segments are out, the first is lost, the others are SACKed one by one: each
/// SACK must be able to release new data, which the application has to write meanwhile.
#[test]
fn a_hole_does_not_starve_the_sender() {
    let mut bench = bench(None);
    bench.set_cwnd(20);
    bench.write(40 * SMSS);
    assert_eq!(bench.drain().len(), 20);
    bench.pass(ms(100));
    let (mut sent, mut retransmitted) = (20, false);
    for sacked in 2..=70 {
        bench.sack(0, &[(SMSS, sacked * SMSS)]);
        if sacked == 4 {
            bench.set_cwnd(14);
        }
        let room = space(&bench);
        bench.write(room);
        let left = bench.drain();
        retransmitted |= left.iter().any(|packet| packet.2 == FastRetransmit);
        sent += left.iter().filter(|packet| packet.2 != FastRetransmit).count() as u32;
        if sacked + 1 >= sent {
            break;
        }
    }
    assert!(retransmitted && sent > 70, "{sent} segments left");
    let held = bench.info().unacked + bench.info().notsent_bytes;
    assert!(held <= LIMIT, "{held} bytes");
}

/// The window has fallen for the second time, and little is unsent because the writer had to wait:
/// there is something to send all through recovery.
#[test]
fn a_writer_that_waits_goes_on_before_recovery_needs_it() {
    let mut bench = bench(None);
    bench.set_cwnd(20);
    bench.write(25 * SMSS);
    assert_eq!(bench.drain().len(), 20);
    bench.set_cwnd(14);
    let has_space = |bench: &Bench| bench.snd.has_space(&bench.config, WriteSpace::USUAL, u32::MAX);
    assert!(!has_space(&bench), "3 of 28 are free");
    bench.pass(ms(100));
    let (mut told, mut sent) = (0, 20);
    for sacked in 2..=20 {
        bench.sack(0, &[(SMSS, sacked * SMSS)]);
        if sacked == 4 {
            bench.set_cwnd(10);
        }
        if has_space(&bench) {
            told += 1;
            let room = space(&bench);
            bench.write(room);
        }
        sent += bench.drain().iter().filter(|packet| packet.2 != FastRetransmit).count();
        assert!(bench.info().notsent_bytes > 0, "nothing is left after {sent} segments");
    }
    assert!(sent >= 28 && told <= 5, "{sent} segments left, told {told} times");
}

#[test]
fn a_writer_is_told_of_a_third_of_the_present_allowance() {
    let mut bench = bench(None);
    bench.set_cwnd(9);
    bench.write(18 * SMSS);
    assert_eq!(bench.drain().len(), 9);
    let has = |bench: &Bench, wanted| bench.snd.has_space(&bench.config, wanted, u32::MAX);
    bench.pass(ms(100));
    bench.ack(5 * SMSS);
    assert!(!has(&bench, WriteSpace::USUAL));
    bench.ack(6 * SMSS);
    assert!(has(&bench, WriteSpace::USUAL));
    bench.write(6 * SMSS);
    assert!(!has(&bench, WriteSpace::USUAL));
    bench.set_cwnd(13);
    assert!(!has(&bench, WriteSpace::USUAL), "8 of 26");
    bench.set_cwnd(14);
    assert!(has(&bench, WriteSpace::USUAL), "10 of 28: the window has grown");
    assert!(has(&bench, WriteSpace::bytes(10_000)) && !has(&bench, WriteSpace::bytes(10_001)));
    bench.drain();
    bench.pass(ms(100));
    bench.ack(20 * SMSS);
    bench.drain();
    bench.ack(24 * SMSS);
    assert!(has(&bench, WriteSpace::bytes(usize::MAX)), "there is no more space than all");
}

#[test]
fn unsent_data_is_limited_by_the_low_water_mark() {
    let mut bench = bench(Some(2_500));
    bench.set_cwnd(4);
    assert_eq!(space(&bench), 2_500);
    bench.write(2_500);
    assert_eq!(space(&bench), 0);
    assert!(!bench.snd.has_space(&bench.config, WriteSpace::USUAL, u32::MAX));
    assert_eq!(bench.drain().len(), 3, "it leaves, and nothing is acknowledged");
    assert!(bench.snd.has_space(&bench.config, WriteSpace::USUAL, u32::MAX));
    bench.write(2_000);
    assert_eq!(bench.drain().len(), 1);
    assert_eq!(bench.info().notsent_bytes, 1_000);
    assert!(bench.snd.has_space(&bench.config, WriteSpace::USUAL, u32::MAX), "less than half of it");
    bench.write(1_400);
    assert_eq!(space(&bench), SMSS, "a full segment, beyond the mark");
    assert!(!bench.snd.has_space(&bench.config, WriteSpace::USUAL, u32::MAX), "more than half of it");
    assert!(
        bench.snd.has_space(&bench.config, WriteSpace::bytes(1_000), u32::MAX),
        "the application said so"
    );
    bench.write(SMSS);
    assert_eq!(space(&bench), 0);
    for lowat in [0, 1] {
        bench.config.notsent_lowat = Some(lowat);
        assert!(!bench.snd.has_space(&bench.config, WriteSpace::USUAL, u32::MAX));
    }
    bench.set_cwnd(10);
    bench.drain();
    assert_eq!(bench.info().notsent_bytes, 0);
    assert!(bench.snd.has_space(&bench.config, WriteSpace::USUAL, u32::MAX), "all has left");
    assert_eq!(space(&bench), SMSS);
}

/// What the window keeps the application from writing belongs to the same stream of full segments:
/// the end of the buffer is not the end of the data.
#[test]
fn the_end_of_a_full_buffer_is_no_small_segment() {
    for (waits, limited, tail) in [(true, false, false), (false, false, true), (true, true, true)] {
        let mut bench = bench(None);
        bench.config.nagle = crate::config::Nagle::Minshall;
        bench.config.min_send_buffer = Some(5_500);
        if limited {
            bench.config.send_buffer = 5_500;
        }
        bench.set_cwnd(2);
        bench.write(5_500);
        if waits {
            bench.snd.note_write(false);
        }
        bench.drain();
        bench.pass(ms(100));
        bench.set_cwnd(10);
        bench.ack(1_000);
        let left: Vec<u32> = bench.drain().iter().map(|packet| packet.1).collect();
        let expected = if tail { &[1_000, 1_000, 1_000, 500][..] } else { &[1_000; 3] };
        assert_eq!(left, expected, "waits {waits}, limited {limited}");
        bench.ack(5_000);
        assert_eq!(bench.drain().len(), usize::from(!tail), "nothing is outstanding: it must not wait");
    }
}
