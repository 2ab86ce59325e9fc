//! The MTU of the device changes while the path is in doubt.

use super::bench::{Bench, Left, SMSS, Setup, ctx, ms};
use crate::config::PathMtuProbing;
use crate::events::WakeReason;
use crate::packet::SendReason::{NewData, PathMtuProbe};
use alloc::vec::Vec;

fn drain(bench: &mut Bench) -> Vec<Left> {
    bench.max_payload = bench.snd.smss();
    bench.drain()
}

/// Without SACK, and without a search. Ten segments of 1,000 bytes have arrived, ten are out.
fn without_sack() -> Bench {
    let mut bench = Setup { sack: false, ..Setup::default() }.open();
    bench.write(1_000_000);
    drain(&mut bench);
    bench.pass(ms(100));
    bench.ack(10 * SMSS);
    drain(&mut bench);
    bench
}

#[test]
fn what_is_out_stays_and_what_follows_is_smaller() {
    let mut bench = without_sack();
    bench.set_full_size(500);
    assert_eq!((bench.info().snd_mss, bench.info().lost, bench.info().pipe), (500, 0, 10 * SMSS));
    assert_eq!(drain(&mut bench), [], "the window is as large as before");
    bench.ack(11 * SMSS);
    assert_eq!(drain(&mut bench), [(20_000, 500, NewData), (20_500, 500, NewData)]);
    assert!(bench.events().is_empty());
}

#[test]
fn what_is_lost_of_it_leaves_in_smaller_segments() {
    let mut bench = without_sack();
    bench.set_full_size(500);
    assert_eq!(bench.fire(), WakeReason::Rto);
    bench.set_cwnd(2);
    let again = drain(&mut bench);
    assert!(!again.is_empty() && again.iter().all(|packet| packet.1 == 500), "{again:?}");
}

#[test]
fn a_probe_that_waits_for_a_smaller_device_is_planned_anew() {
    let mut setup = Setup::rack();
    setup.config.path_mtu_probing = PathMtuProbing::Always;
    setup.config.base_mss = 600;
    let mut bench = setup.open();
    bench.write(100_000);
    let probe = bench.next().unwrap();
    assert_eq!((probe.len, probe.reason), (1_000, PathMtuProbe));
    bench.snd.reserve(&probe, 1);
    bench.set_full_size(900);
    assert_eq!(bench.snd.claim(1), None);
    let left = drain(&mut bench);
    assert_eq!(left[0], (0, 900, PathMtuProbe), "up to what the device carries");
}

#[test]
fn a_probe_takes_its_place_behind_what_waits_in_the_scheduler() {
    let mut setup = Setup::rack();
    setup.config.path_mtu_probing = PathMtuProbing::BlackHole;
    let mut bench = setup.open();
    bench.write(100_000);
    let first = bench.next().unwrap();
    bench.snd.reserve(&first, 1);
    bench.set_full_size(1_500);
    let probe = bench.next().unwrap();
    assert_eq!((probe.seq, probe.len, probe.reason), (first.end(), 1_500, PathMtuProbe));
    bench.snd.reserve(&probe, 2);
    let behind = bench.next().unwrap();
    assert_eq!((behind.seq, behind.reason), (probe.end(), NewData), "one probe at a time");
    let left = [1, 2].map(|serial| bench.snd.claim(serial).inspect(|plan| bench.sent(plan)).unwrap());
    assert_eq!(left, [first, probe]);
    bench.ack(2_500);
    assert_eq!((bench.info().snd_mss, bench.observe.counters.tcp_mtup_success), (1_500, 1));
}

#[test]
fn a_larger_size_that_meets_silence_is_taken_back_at_the_first_timeout() {
    let mut bench = without_sack();
    bench.set_full_size(500);
    bench.ack(20 * SMSS);
    drain(&mut bench);
    bench.pass(ms(100));
    bench.set_full_size(1_000);
    assert_eq!(bench.info().snd_mss, 500, "with the next ACK");
    bench.ack(24 * SMSS);
    assert_eq!((bench.info().snd_mss, bench.observe.counters.tcp_mtu_raised), (1_000, 1));
    assert_eq!(drain(&mut bench)[0].1, 1_000);
    // Before any of them has arrived, the device grows once more.
    bench.set_full_size(2_000);
    for arrived in [26, 28, 30] {
        bench.ack(arrived * SMSS);
        assert_eq!(bench.info().snd_mss, 2_000, "only small ones have");
        drain(&mut bench);
    }
    bench.fire();
    assert_eq!((bench.info().snd_mss, bench.observe.counters.tcp_mtu_reduced), (500, 1));
}

#[test]
fn nothing_is_kept_of_a_doubt_about_larger_sizes() {
    let mut bench = without_sack();
    bench.set_full_size(1_200);
    bench.ack(11 * SMSS);
    assert_eq!(bench.info().snd_mss, 1_200);
    assert!(bench.snd.stream.path_mtu.is_some(), "larger segments may not arrive");
    bench.set_full_size(800);
    assert_eq!(bench.info().snd_mss, 800);
    assert!(bench.snd.stream.path_mtu.is_none());
}

#[test]
fn a_narrow_path_stays_narrow_whatever_the_device_carries() {
    let mut bench = Setup::default().open();
    bench.write(1_000_000);
    drain(&mut bench);
    let mut ctx = ctx!(bench);
    bench.snd.on_packet_too_big(&mut ctx, Bench::seq(0), 500, 0);
    bench.fire();
    for full in [800, 2_000, 501] {
        bench.set_full_size(full);
        assert_eq!(bench.info().snd_mss, 500, "{full}");
    }
    bench.set_full_size(400);
    assert_eq!(bench.info().snd_mss, 400);
    bench.set_full_size(1_000);
    drain(&mut bench);
    bench.ack(10 * SMSS);
    assert_eq!(bench.info().snd_mss, 1_000, "what was known of the path went with the smaller device");
}
