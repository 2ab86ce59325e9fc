//! HSTCP against the numbers of RFC 3649 and RFC 3742, and against an independent model's.

use super::response::LOW_P;
use super::table::ROWS;
use super::*;
use crate::aimd::AimdParams;
use crate::aimd::tests::Flow;
use ackline_tcp_core::policy::conformance;
use proptest::prelude::*;

const MODES: [AwMode; 4] = [AwMode::LogLog, AwMode::Rfc, AwMode::TableFloor, AwMode::TableCeil];

fn loglog() -> Hstcp {
    Hstcp::new(HstcpParams { aw: AwMode::LogLog, ..HstcpParams::default() })
}

#[track_caller]
fn assert_near(value: f64, expected: f64, relative: f64) {
    assert!((value - expected).abs() <= relative * expected.abs(), "{value}, expected {expected}");
}

/// The program of RFC 3649, appendix B: a row wherever a has grown by more than one since the last.
#[test]
fn the_table_is_what_the_program_of_the_rfc_prints() {
    let mut rows = std::vec![(38, 50)];
    let mut last = 1.0;
    for w in 38..100_000_u32 {
        let ln = |x: f64| libm::log(x);
        let num = f64::from(w);
        let b = (0.1 - 0.5) * (ln(num) - ln(38.0)) / (ln(83_000.0) - ln(38.0)) + 0.5;
        let a = num * num * 2.0 * b / ((2.0 - b) * libm::pow(num, 1.2) * 12.8);
        if a > last + 1.0 {
            rows.push((w, (b * 100.0).round() as u32));
            last = a;
        }
    }
    assert_eq!(rows.len(), ROWS.len());
    for (row, (w, b)) in ROWS.iter().zip(rows) {
        assert_eq!(row.0, w);
        assert!(row.1.abs_diff(b) <= 1, "w {w}: b {b}, table {}", row.1);
    }
}

#[test]
fn each_row_of_the_table_is_where_a_steps_up() {
    for (i, &(w, b)) in ROWS.iter().enumerate() {
        let (w, a) = (f64::from(w), (i + 1) as f64);
        assert_eq!(increase(AwMode::TableFloor, LOW_P, w), a);
        assert_eq!(increase(AwMode::TableCeil, LOW_P, w), a);
        if i > 0 {
            assert_eq!(increase(AwMode::TableFloor, LOW_P, w - 1.0), a - 1.0);
            assert_eq!(increase(AwMode::TableCeil, LOW_P, w - 1.0), a);
        }
        assert!((decrease(w) - f64::from(b) / 100.0).abs() <= 0.0105, "w {w}: {}", decrease(w));
    }
}

/// w: a by formula, by the rounded formula, by the table read down and up; b.
#[test]
fn a_and_b_of_the_model() {
    let rows = [
        (1.0, 1.0, 1.0, 1.0, 1.0, 0.5),
        (38.0, 1.0, 1.0, 1.0, 1.0, 0.5),
        (39.0, 1.017248, 1.0, 1.0, 2.0, 0.498649),
        (118.0, 2.094495, 2.009027, 2.0, 2.0, 0.441054),
        (119.0, 2.105941, 2.020054, 2.0, 3.0, 0.440615),
        (221.0, 3.132772, 3.010232, 3.0, 3.0, 0.408411),
        (347.0, 4.169339, 4.011330, 4.0, 4.0, 0.384940),
        (1000.0, 8.033681, 7.752211, 7.0, 8.0, 0.329878),
        (1058.0, 8.313687, 8.023677, 8.0, 8.0, 0.326945),
        (8400.0, 27.307456, 26.508550, 26.0, 27.0, 0.219163),
        (10_000.0, 29.928348, 29.066983, 29.0, 30.0, 0.210092),
        (38_000.0, 55.905805, 54.500577, 54.0, 55.0, 0.140643),
        (83_000.0, 72.515789, 70.848213, 70.0, 71.0, 0.1),
        (100_000.0, 75.588026, 73.888424, 73.0, 73.0, 0.090307),
    ];
    for (w, line, rfc, floor, ceil, b) in rows {
        assert_near(increase(AwMode::LogLog, LOW_P, w), line, 1e-5);
        assert_near(increase(AwMode::Rfc, LOW_P, w), rfc, 1e-5);
        assert_eq!(increase(AwMode::TableFloor, LOW_P, w), floor, "w {w}");
        assert_eq!(increase(AwMode::TableCeil, LOW_P, w), ceil, "w {w}");
        assert_near(decrease(w), b, 1e-5);
    }
}

/// The RFC's 10^-3 at 38 segments gives other values than Reno's 1.5 / 38^2.
#[test]
fn a_with_the_loss_rate_that_the_text_of_the_rfc_gives() {
    let rows = [
        (38.0, 1.0),
        (118.0, 2.028),
        (293.0, 3.644),
        (347.0, 4.058),
        (1007.0, 7.894),
        (1946.0, 11.756),
        (6653.0, 23.796),
        (7219.0, 24.880),
        (8400.0, 27.000),
        (83_000.0, 72.516),
    ];
    for (w, a) in rows {
        assert!((increase(AwMode::LogLog, 1e-3, w) - a).abs() < 6e-4, "w {w}");
    }
}

#[test]
fn one_ack_in_congestion_avoidance() {
    let rows = [
        (10.0, 10.1),
        (38.0, 38.026315789),
        (39.0, 39.026083277),
        (118.0, 118.017749955),
        (347.0, 347.012015387),
        (8400.0, 8400.003250888),
        (83_000.0, 83_000.000873684),
    ];
    for (w, after) in rows {
        let mut flow = Flow::avoiding(w, loglog());
        flow.ack(1, None);
        assert!((flow.w() - after).abs() < 1e-9, "{w} grew to {:.9}, expected {after:.9}", flow.w());
    }
}

#[test]
fn one_loss() {
    let rows = [
        (10.0, 5.0),
        (38.0, 19.0),
        (39.0, 19.552701),
        (118.0, 65.955674),
        (347.0, 213.425729),
        (8400.0, 6559.032882),
        (83_000.0, 74_700.0),
    ];
    for (w, after) in rows {
        let mut flow = Flow::avoiding(w, loglog());
        flow.lose();
        assert!((flow.w() - after).abs() < 1e-6, "{w} fell to {:.6}, expected {after:.6}", flow.w());
        assert_eq!(flow.ssthresh(), after.floor());
    }
}

/// RFC 3742, section 2, with max_ssthresh 100.
#[test]
fn limited_slow_start() {
    for (w, k) in [(101.0, 2.0), (150.0, 3.0), (200.0, 4.0), (1000.0, 20.0), (8400.0, 168.0)] {
        let mut flow = Flow::new(w, AimdParams::default(), loglog());
        flow.ack(1, None);
        assert!((flow.w() - w - 1.0 / k).abs() < 1e-8, "{w} grew to {}", flow.w());
    }
    for w in [10.0, 100.0] {
        let mut flow = Flow::new(w, AimdParams::default(), loglog());
        flow.ack(1, None);
        assert_eq!(flow.w(), w + 1.0);
    }
    let mut flow = Flow::new(8400.0, AimdParams { max_ssthresh: None, ..AimdParams::default() }, loglog());
    flow.ack(1, None);
    assert_eq!(flow.w(), 8401.0);
}

#[test]
fn no_round_trip_of_limited_slow_start_adds_more_than_half_of_max_ssthresh() {
    let mut flow = Flow::new(100.0, AimdParams::default(), loglog());
    while flow.w() < 2000.0 {
        let before = flow.w();
        for _ in 0..before as u32 {
            flow.ack(1, None);
        }
        // K rounds down, by at most a third.
        assert!(flow.w() - before <= 75.0, "from {before} to {}", flow.w());
    }
}

/// RFC 3649, section 5: W = 0.12 / p^0.835.
#[test]
fn the_response_function_of_the_rfc() {
    for exponent in 4..=10 {
        let p = libm::pow(10.0, -f64::from(exponent));
        assert_near(response(1e-3, p), 0.12 / libm::pow(p, 0.835), 0.02);
        assert_near(response(LOW_P, p), 0.12 / libm::pow(p, 0.835), 0.05);
    }
    assert_near(response(LOW_P, HIGH_P), HIGH_WINDOW, 1e-9);
    assert_near(response(LOW_P, LOW_P), LOW_WINDOW, 1e-9);
    assert_near(response(LOW_P, 0.01), libm::sqrt(150.0), 1e-9);
}

/// A loss per b w window / a round trips is a loss rate of p: then the sawtooth around w has the
/// mean that the response function names.
#[test]
fn growth_and_decrease_meet_the_response_function() {
    for w in [100.0, 1000.0, 8400.0, 50_000.0] {
        let (a, b) = (increase(AwMode::LogLog, LOW_P, w), decrease(w));
        // RFC 3649, section 5: a = w^2 p 2 b / (2 - b).
        let p = a * (2.0 - b) / (w * w * 2.0 * b);
        assert_near(response(LOW_P, p), w, 1e-6);
    }
}

proptest! {
    #[test]
    fn a_rises_and_b_falls_with_the_window(w in 1.0..100_000.0_f64, more in 0.0..1000.0_f64) {
        for mode in MODES {
            let (low, high) = (increase(mode, LOW_P, w), increase(mode, LOW_P, w + more));
            prop_assert!((1.0..=100.0).contains(&low), "{mode:?} {w}: {low}");
            prop_assert!(low <= high, "{mode:?} {w} + {more}: {low}, {high}");
        }
        prop_assert!(decrease(w) >= decrease(w + more));
        prop_assert!((0.05..=0.5).contains(&decrease(w)));
        let (floor, ceil) = (increase(AwMode::TableFloor, LOW_P, w), increase(AwMode::TableCeil, LOW_P, w));
        prop_assert!(floor <= ceil && ceil <= floor + 1.0);
    }
}

#[test]
fn b_has_a_floor_however_large_the_window() {
    assert!(decrease(100_000.0) > 0.05);
    assert_eq!(decrease(1e9), 0.05);
}

#[test]
fn keeps_the_rules() {
    for spec in ["", "aw=loglog", "aw=rfc,rto=b", "aw=table-ceil,max_ssthresh=off", "aw=loglog,low_p=0.001"] {
        let make = (ENTRY.make)(&spec.parse().unwrap()).unwrap();
        for seed in 0..30 {
            conformance::congestion_control(&*make, seed);
        }
    }
}

#[test]
fn wrong_parameters_are_refused() {
    for wrong in ["aw=floor", "low_p=1", "max_ssthresh=1", "rto=full", "beta=0.8"] {
        assert!((ENTRY.make)(&wrong.parse().unwrap()).is_err(), "{wrong}");
    }
}
