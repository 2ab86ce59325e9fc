//! What `cargo bench --bench compare` makes of its measurements: the benchmark itself has no test harness.

#[path = "../benches/compare/case.rs"]
mod case;
#[path = "../benches/compare/metric.rs"]
mod metric;
#[path = "../benches/compare/report/mod.rs"]
mod report;
#[path = "../benches/compare/results.rs"]
#[expect(dead_code, reason = "measuring and writing files is the benchmark's")]
mod results;

use case::{Act, Case, KERNEL, TUN};
use results::{Metric, Results};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Results with one metric of two cases, a value for each round.
fn results(metric: &str, first: (&Case, [f64; 4]), second: (&Case, [f64; 4])) -> Results {
    let samples = |values: [f64; 4]| values.map(|value| format!("{{\"{metric}\": {value}}}")).join(", ");
    let text = format!(
        r#"{{
            "setting": {{"processors": 2, "processor": "P", "kernel": "6.18", "congestion_control": "bbr", "seconds": 1.0, "rounds": 5}},
            "cases": {{"{}": [{}, null], "{}": [{}, null]}}
        }}"#,
        first.0,
        samples(first.1),
        second.0,
        samples(second.1),
    );
    Results::parse(&text).expect("results")
}

const SEND: Act = Act::Send { flows: 1 };
const OURS: Case = Case { contestant: TUN, act: SEND };
const THEIRS: Case = Case { contestant: KERNEL, act: SEND };

#[test]
fn every_case_is_found_by_its_name() {
    let cases = Case::all();
    assert!(cases.len() > 40);
    for case in cases {
        assert_eq!(case.to_string().parse(), Ok(case));
    }
    assert!("kernel/receive-1".parse::<Case>().is_err(), "the same at both ends");
}

#[test]
fn medians_and_ratios_are_of_the_rounds_that_have_results() {
    let results =
        results("gbit_per_second", (&OURS, [30.0, 10.0, 20.0, 40.0]), (&THEIRS, [60.0, 10.0, 10.0, 10.0]));
    let ours = results.summary(&OURS, Metric::GbitPerSecond).expect("four values");
    assert_eq!((ours.median, ours.min, ours.max), (25.0, 10.0, 40.0));
    let ratio = results.ratio(&OURS, &THEIRS, Metric::GbitPerSecond).expect("four pairs");
    assert_eq!((ratio.median, ratio.min, ratio.max), (2.5, 0.5, 4.0));
    assert_eq!(results.summary(&OURS, Metric::MedianMicros), None);
}

#[test]
fn a_target_is_met_or_missed_by_the_ratio_of_medians() {
    let row = |ours| {
        let results = results("gbit_per_second", (&OURS, [ours; 4]), (&THEIRS, [10.0; 4]));
        let text = report::plain(&report::sections(&results));
        let row = text.lines().find(|line| line.contains("send, to kernel veth")).map(str::to_owned);
        row.expect("a row for the target")
    };
    assert!(row(8.0).ends_with(" met |"), "{}", row(8.0));
    assert!(row(7.9).ends_with(" **missed** |"), "{}", row(7.9));
}

#[test]
fn tables_replace_those_between_their_marks() {
    let results = results("gbit_per_second", (&OURS, [8.0; 4]), (&THEIRS, [10.0; 4]));
    let sections = report::sections(&results);
    let marked = report::marked(&sections);
    let stale: String = ["setting", "targets", "bulk", "cpu", "default-cc", "acks"]
        .map(|name| format!("<!-- compare:begin {name} -->\nold\n<!-- compare:end {name} -->\n\n"))
        .concat();
    let updated = report::update(&stale, &sections).expect("all marks are there");
    assert!(!updated.contains("\nold\n<!-- compare:end bulk"), "{updated}");
    assert!(updated.contains("\nold\n<!-- compare:end acks"), "nothing was measured for it: {updated}");
    for line in marked.lines() {
        assert!(updated.contains(line), "{line}");
    }
    assert_eq!(report::update(&updated, &sections), Ok(updated.clone()), "again changes nothing");
    let error = report::update("no marks", &sections).expect_err("no place");
    assert!(error.contains("compare:begin setting"), "{error}");
}

#[test]
fn the_page_has_a_place_for_every_table() {
    let page = include_str!("../docs/performance.md");
    for name in ["setting", "targets", "bulk", "cpu", "default-cc", "acks", "latency", "connections"] {
        for end in ["begin", "end"] {
            let mark = format!("<!-- compare:{end} {name} -->");
            assert_eq!(page.matches(&mark).count(), 1, "{mark}");
        }
    }
}
