//! What `cargo bench --bench pacing` makes of departures: the benchmark itself has no test harness.

#[path = "../benches/pacing/case.rs"]
#[expect(dead_code, reason = "reporting is the benchmark's")]
mod case;
#[path = "../benches/pacing/log.rs"]
#[expect(dead_code, reason = "recording is the benchmark's")]
mod log;

use ackline_tcp_core::{Duration, Instant};
use case::{Case, Who};
use log::{Departure, bursts};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Packets at so many microseconds, each of so many segments.
fn passed(packets: &[(u64, u64)]) -> Vec<Departure> {
    packets.iter().map(|&(at, segments)| Departure { at: Instant::from_micros(at), segments }).collect()
}

#[test]
fn every_case_is_found_by_its_name() {
    for case in Case::all() {
        assert_eq!(case.to_string().parse::<Case>().expect("its own name"), case);
    }
    assert!("timer/7us".parse::<Case>().is_err());
}

#[test]
fn a_burst_is_what_leaves_close_to_the_one_before_it() {
    let within = Duration::from_micros(10);
    assert_eq!(bursts(&passed(&[]), within), Vec::<u64>::new());
    // The third is close to the second, and so is of the first one's burst; the fourth is a tenth
    // of the gap away.
    let packets = [(0, 1), (9, 1), (18, 2), (28, 1), (100, 4)];
    assert_eq!(bursts(&passed(&packets), within), [4, 1, 4]);
}

#[test]
fn a_loop_sends_as_many_segments_at_once_as_a_sleeping_driver() {
    let segments = |who, micros| Case { who, gap: Duration::from_micros(micros) }.segments();
    assert_eq!([1000, 100, 12].map(|micros| segments(Who::BareTimer, micros)), [1, 1, 4]);
    assert_eq!(segments(Who::BareSpin, 12), 1);
}

#[test]
fn rates_are_those_of_full_packets() {
    let rates =
        Case::all().into_iter().filter(|case| case.who == Who::Timer).map(|case| case.bits_per_second());
    assert_eq!(rates.collect::<Vec<_>>(), [12e6, 120e6, 1e9]);
}
