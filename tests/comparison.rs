//! What `cargo bench --bench compare` makes of its measurements: the benchmark itself has no test
//! harness.

#[path = "../benches/compare/answer.rs"]
mod answer;
#[path = "../benches/compare/case.rs"]
mod case;
#[path = "../benches/support/machine.rs"]
#[expect(dead_code, reason = "looking at the machine is the benchmark's")]
mod machine;
#[path = "../benches/compare/metric.rs"]
mod metric;
#[path = "../benches/compare/report/mod.rs"]
mod report;
#[path = "../benches/compare/results.rs"]
#[expect(dead_code, reason = "measuring and writing files is the benchmark's")]
mod results;
#[path = "../benches/support/summary.rs"]
mod summary;

use ackline_tcp_core::Duration;
use answer::Answer;
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
fn the_first_table_compares_both_directions_with_the_kernels_one() {
    let receive = Case { contestant: TUN, act: Act::Receive { flows: 1 } };
    let results = results("gbit_per_second", (&receive, [30.0; 4]), (&THEIRS, [20.0; 4]));
    let text = report::plain(&report::sections(&results));
    let row = text.lines().find(|line| line.starts_with("| ackline, TUN, to kernel")).expect("a row");
    let cells: Vec<_> = row.split('|').map(str::trim).collect();
    assert_eq!(cells[2..4], ["", "1.50 (1.50 to 1.50)"], "{row}");
    assert!(!text.contains("to gVisor"), "nothing was measured for it: {text}");
}

#[test]
fn tables_replace_those_between_their_marks() {
    let results = results("gbit_per_second", (&OURS, [8.0; 4]), (&THEIRS, [10.0; 4]));
    let sections = report::sections(&results);
    let marked = report::marked(&sections);
    let stale: String = ["setting", "ratios", "targets", "bulk", "cpu", "default-cc", "acks"]
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
    let names =
        ["setting", "ratios", "targets", "bulk", "cpu", "default-cc", "acks", "latency", "connections"];
    for name in names {
        for end in ["begin", "end"] {
            let mark = format!("<!-- compare:{end} {name} -->");
            assert_eq!(page.matches(&mark).count(), 1, "{mark}");
        }
    }
}

/// The first number behind each `attribute="` in lines with `with`.
fn numbers(svg: &str, with: &str, attribute: &str) -> Vec<f64> {
    let lines = svg.lines().filter(|line| line.contains(with));
    let value = |line: &str| line.split(attribute).nth(1)?.split(['"', 'V', 'H', ' ']).next()?.parse().ok();
    lines.map(|line| value(line).unwrap_or_else(|| panic!("{attribute} in {line}"))).collect()
}

#[test]
fn bars_are_as_long_as_the_medians_and_show_the_range() {
    let results = results("gbit_per_second", (&OURS, [20.0, 40.0, 40.0, 80.0]), (&THEIRS, [20.0; 4]));
    let svg = report::throughput(&results).expect("there are results");
    // The kernel is above ackline.
    let lengths = numbers(&svg, "class=\"a\" x=\"176\"", " width=\"");
    assert_eq!(lengths.len(), 2, "{svg}");
    assert!((lengths[1] / lengths[0] - 2.0).abs() < 1e-9, "{lengths:?}");
    // The scale goes to 80: a whisker from a quarter of it to its end.
    assert!(svg.contains("H616.0\"/>") && svg.contains("M286.0 "), "{svg}");
    assert!(svg.contains(">40.0</text>") && svg.contains(">20.0</text>"), "numbers beside bars: {svg}");
    assert!(svg.contains("prefers-color-scheme:dark") && !svg.contains("smoltcp"), "{svg}");
    assert_eq!(Some(svg), report::throughput(&results), "the same bytes");
}

/// The benchmark's options for pictures.
#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    pictures: report::Pictures,
}

#[test]
fn a_picture_is_drawn_if_it_is_asked_for_and_has_results() {
    let bulk = results("gbit_per_second", (&OURS, [1.0; 4]), (&THEIRS, [1.0; 4]));
    let latency = results("median_micros", (&OURS, [1.0; 4]), (&THEIRS, [1.0; 4]));
    let draw = |words: &[&str], results| {
        let options = <Options as clap::Parser>::parse_from(words);
        let drawn = options.pictures.draw(results);
        drawn.map(|files| files.into_iter().map(|(file, svg)| (file.to_owned(), svg)).collect::<Vec<_>>())
    };
    assert_eq!(draw(&["compare"], &bulk), Ok(Vec::new()));
    let svg = report::throughput(&bulk).expect("there are results");
    assert_eq!(draw(&["compare", "--plot", "a.svg"], &bulk), Ok(vec![("a.svg".into(), svg)]));
    let error = draw(&["compare", "--plot", "a.svg"], &latency).expect_err("nothing to draw");
    assert!(error.starts_with("--plot") && error.contains("send-1"), "{error}");
}

#[test]
fn an_answer_is_a_total_and_times() {
    let times = [1_500, 9].map(Duration::from_nanos).to_vec();
    assert_eq!(Answer::parse("7 1500 9\n"), Ok(Answer { total: 7, times }));
    assert_eq!(Answer::parse("7\n"), Ok(Answer { total: 7, times: Vec::new() }));
    for wrong in ["", "seven", "7 -1", "7 x"] {
        assert!(Answer::parse(wrong).is_err(), "{wrong:?}");
    }
}
