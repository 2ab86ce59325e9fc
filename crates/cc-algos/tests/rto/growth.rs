//! When a window grows: what a flight used of it decides, for every congestion control whose window
//! must be used.

use crate::bench::{Bench, SMSS, Setup, ms};
use ackline_cc_algos::CC;
use ackline_tcp_core::config::{ConnConfig, DecreaseFrom};
use ackline_tcp_core::policy::NewCongestionControl;
use ackline_tcp_core::policy::cc::{CcInit, Validation};
use ackline_tcp_core::policy::spec::Entry;
use ackline_tcp_core::{Instant, WakeReason, Window};

/// The controls whose window grows by use, and as Reno's while it is small. Others follow a model
/// of the path, at a pace that keeps an unused window from leaving at once, or grow slower or
/// faster, and shrink as queueing delay says.
fn grown_by_use() -> impl Iterator<Item = &'static Entry<NewCongestionControl>> {
    let init = CcInit::new(Instant::ZERO, SMSS, Window::from_bytes(10 * u64::from(SMSS)));
    CC.iter().filter(move |entry| {
        let make = (entry.make)(&"".parse().unwrap()).unwrap();
        let grows_otherwise = ["copa", "ledbat"].contains(&entry.name);
        make(&init).decision().validation == Validation::ByUse && !grows_otherwise
    })
}

fn open(cc: &'static str, cwnd: u32, ssthresh: u32) -> Bench {
    Setup { rto: "linux", cc: Some(cc), cwnd, ssthresh, ..Setup::default() }.connect()
}

/// The application writes a flight of so many packets, and all of it leaves before anything comes
/// back.
fn flight(bench: &mut Bench, packets: u32) {
    bench.write(packets);
    let mut left = bench.out().len();
    while left < packets as usize {
        let wakeup = bench.endpoint.poll_timeout().expect("the pacer's timer");
        assert_eq!(wakeup.reason, WakeReason::Pace, "{left} of {packets} packets have left");
        bench.now = bench.now.max(wakeup.at);
        bench.endpoint.handle_timeout(bench.now);
        left += bench.out().len();
    }
}

/// One ACK for each packet of it, a round trip later; the window after that in packets.
fn acked(bench: &mut Bench, from: u32, packets: u32) -> f64 {
    bench.pass(ms(100));
    for packet in from + 1..=from + packets {
        bench.ack(packet).arrives();
    }
    cwnd(bench)
}

fn cwnd(bench: &mut Bench) -> f64 {
    bench.info().snd_cwnd as f64 / f64::from(SMSS)
}

/// Slow start grows while the window is less than twice the flight: window, flight, and what
/// becomes of the window.
const SLOW_START: &[(u32, u32, u32)] = &[
    (10, 10, 20),
    (10, 9, 18),
    (10, 6, 12),
    // Twice the flight, exactly.
    (10, 5, 10),
    (10, 4, 10),
    (10, 1, 10),
    (20, 20, 40),
    (20, 11, 22),
    (20, 10, 20),
    (4, 4, 8),
    (4, 3, 6),
    (4, 2, 4),
    (3, 2, 4),
    (2, 2, 4),
];

#[test]
fn slow_start_grows_to_twice_the_flight() {
    for entry in grown_by_use() {
        for &(window, packets, after) in SLOW_START {
            let mut bench = open(entry.name, window, u32::MAX);
            flight(&mut bench, packets);
            assert_eq!(bench.info().snd_cwnd, u64::from(window * SMSS));
            let grown = acked(&mut bench, 0, packets);
            let case = format!("{}: a flight of {packets} in a window of {window}", entry.name);
            assert!((grown - f64::from(after)).abs() < 0.01, "{case}: {grown} instead of {after}");
            // The same flight again shows nothing new, unless it fills the window.
            if packets * 2 <= after {
                flight(&mut bench, packets);
                let again = acked(&mut bench, packets, packets);
                assert!((again - f64::from(after)).abs() < 0.01, "{case}, again: {again}");
            }
        }
    }
}

/// In congestion avoidance the window must have been the limit, and a flight that fills it is
/// limited by it.
#[test]
fn congestion_avoidance_grows_only_from_a_full_window() {
    for entry in grown_by_use() {
        for (window, packets, grows) in
            [(10, 10, true), (10, 9, false), (10, 6, false), (20, 20, true), (20, 19, false)]
        {
            let mut bench = open(entry.name, window, window);
            let mut grown = 0.0;
            for round in 0..3 {
                flight(&mut bench, packets);
                grown = acked(&mut bench, round * packets, packets);
            }
            let case = format!("{}: flights of {packets} in a window of {window}", entry.name);
            assert_eq!(grown > f64::from(window), grows, "{case}: {grown}");
            assert!(grown < f64::from(window) + 4.0, "{case}: {grown}");
        }
    }
}

/// RFC 5681, section 3.1: from the loss window of one segment on, slow start doubles. The head's
/// retransmission is acknowledged, whatever else was outstanding.
#[test]
fn the_ack_of_the_first_retransmission_after_a_timeout_doubles_the_window() {
    for entry in grown_by_use() {
        for packets in [1, 2, 3, 4, 9, 10] {
            let mut bench = open(entry.name, 10, u32::MAX);
            flight(&mut bench, packets);
            assert_eq!(bench.rto(), ["P1r1"]);
            let case = format!("{}: a flight of {packets}", entry.name);
            assert!((cwnd(&mut bench) - 1.0).abs() < 0.01, "{case}: {}", cwnd(&mut bench));
            bench.pass(ms(100));
            bench.ack(1).arrives();
            assert!((cwnd(&mut bench) - 2.0).abs() < 0.01, "{case}: {}", cwnd(&mut bench));
        }
    }
}

/// One lost request in a window of ten. Linux's CUBIC keeps seven (`bictcp_recalc_ssthresh`: 10 *
/// 717 / 1024), and its Reno five (`tcp_reno_ssthresh`); the flight of RFC 5681, equation 4, leaves
/// the minimum of two.
#[test]
fn a_request_that_times_out_alone_lowers_ssthresh_from_the_window_or_from_the_flight() {
    for (cc, from, left) in [
        ("cubic", DecreaseFrom::Window, 7),
        ("cubic", DecreaseFrom::Flight, 2),
        ("reno", DecreaseFrom::Window, 5),
        ("reno", DecreaseFrom::Flight, 2),
        ("dctcp", DecreaseFrom::Window, 5),
        ("dctcp", DecreaseFrom::Flight, 2),
        ("hstcp", DecreaseFrom::Window, 5),
        ("hstcp", DecreaseFrom::Flight, 2),
        ("ls-aimd-reno", DecreaseFrom::Window, 5),
    ] {
        let tune: fn(&mut ConnConfig) = match from {
            DecreaseFrom::Window => |_| {},
            DecreaseFrom::Flight => |config| config.decrease_from = DecreaseFrom::Flight,
        };
        let setup =
            Setup { rto: "linux", cc: Some(cc), cwnd: 10, ssthresh: u32::MAX, tune, ..Setup::default() };
        let mut bench = setup.connect();
        flight(&mut bench, 1);
        assert_eq!(bench.rto(), ["P1r1"]);
        assert_eq!(bench.info().snd_ssthresh, Some(u64::from(left * SMSS)), "{cc}, {from:?}");
    }
}

/// What the peer's window holds back is not used.
#[test]
fn the_peers_window_bounds_the_growth() {
    for entry in grown_by_use() {
        let setup = Setup { rto: "linux", cc: Some(entry.name), cwnd: 10, rwnd: 8, ..Setup::default() };
        let mut bench = Setup { ssthresh: u32::MAX, ..setup }.connect();
        flight(&mut bench, 8);
        bench.write(40);
        assert!(bench.out().is_empty());
        bench.pass(ms(100));
        for packet in 1..=32 {
            bench.ack(packet).arrives();
            bench.pass(ms(13));
            bench.endpoint.handle_timeout(bench.now);
            bench.out();
        }
        assert!((cwnd(&mut bench) - 16.0).abs() < 0.01, "{}: {}", entry.name, cwnd(&mut bench));
    }
}
