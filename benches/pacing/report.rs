//! The tables of results, and what is wanted.

use crate::case::{Case, GAPS, Who};
pub(crate) use crate::no_pictures::Pictures;
use crate::results::{Metric, Results, Summary};
use crate::section::Section;
pub(crate) use crate::section::{marked, plain, update};
use crate::text::{Table, median, number, with_range};
use ackline_tcp_core::Duration;

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let section = |name, title, text| Section { name, title, text };
    let all = [
        section("pacing-setting", "Setting", setting(results)),
        section("pacing-targets", "Targets", targets(results)),
        section("pacing-lateness", "Lateness in µs", lateness(results)),
        section("pacing-flow", "Rate, gaps and bursts", flow(results)),
    ];
    all.into_iter().filter(|section| !section.text.is_empty()).collect()
}

fn setting(results: &Results) -> String {
    let setting = &results.setting;
    let (rounds, seconds, place) = (setting.rounds, setting.seconds, setting.place());
    format!("{rounds} rounds of {seconds} s for each case; {place}. Medians of the rounds.\n")
}

fn lateness(results: &Results) -> String {
    let mut table = Table::new(&["late, µs", "p50", "p90", "p99", "p99.9", "most", "processor"]);
    for case in Case::all() {
        let p50 = with_range(results.summary(&case, Metric::P50));
        if p50.is_empty() {
            continue;
        }
        let rest = [Metric::P90, Metric::P99, Metric::P999, Metric::Longest];
        let rest = rest.map(|metric| median(results.summary(&case, metric)));
        let cpu = percent(results.summary(&case, Metric::Cpu), 0);
        table.row([label(&case), p50].into_iter().chain(rest).chain([cpu]));
    }
    table.render()
}

fn flow(results: &Results) -> String {
    let mut table = Table::new(&[
        "what leaves",
        "of the asked rate",
        "gap p50, µs",
        "gap p99, µs",
        "segments per burst: p50",
        "p99",
        "most",
    ]);
    for case in Case::all() {
        let value = |metric| median(results.summary(&case, metric));
        let rate = percent(results.summary(&case, Metric::Rate), 2);
        if rate.is_empty() {
            continue;
        }
        let rest = [Metric::GapP50, Metric::GapP99, Metric::BurstP50, Metric::BurstP99, Metric::BurstMost];
        table.row([label(&case), rate].into_iter().chain(rest.map(value)));
    }
    table.render()
}

fn label(case: &Case) -> String {
    let micros = number(case.gap.as_nanos() as f64 / 1e3);
    let rate = case.bits_per_second();
    let rate =
        if rate < 1e9 { format!("{:.0} Mbit/s", rate / 1e6) } else { format!("{:.0} Gbit/s", rate / 1e9) };
    format!("{micros} µs ({rate}): {}", case.who.label())
}

fn percent(summary: Option<Summary>, digits: usize) -> String {
    summary.map_or_else(String::new, |summary| format!("{:.digits$} %", summary.median * 100.0))
}

/// One row for each target that there are results for.
fn targets(results: &Results) -> String {
    let mut table = Table::new(&["target", "wanted", "measured", "range over the rounds", "met"]);
    let mut judge =
        |what: String, wanted: String, found: Option<Summary>, met: fn(f64, f64) -> bool, limit: f64| {
            if let Some(Summary { median, min, max }) = found {
                let range = format!("{} to {}", number(min), number(max));
                let met = if met(median, limit) { "met" } else { "**missed**" };
                table.row([what, wanted, number(median), range, met.to_owned()]);
            }
        };
    let at_most = |value: f64, limit: f64| value <= limit;
    for gap in GAPS {
        let case = |who| Case { who, gap };
        let words = |what: &str| format!("{}: {what}", name(gap));
        let (timer, spin) = (case(Who::Timer), case(Who::Spin));
        let ratio = results.ratio(&timer, &case(Who::BareTimer), Metric::P50);
        judge(words("asleep, p50 late, to bare timerfd"), "at most 1.1".to_owned(), ratio, at_most, 1.1);
        let late = results.summary(&spin, Metric::P50);
        judge(words("spinning, p50 late, µs"), "at most 1".to_owned(), late, at_most, 1.0);
        let ratio = results.ratio(&spin, &case(Who::BareSpin), Metric::P99);
        judge(words("spinning, p99 late, to bare spinning"), "at most 2".to_owned(), ratio, at_most, 2.0);
        for (mode, case) in [("asleep", timer), ("spinning", spin)] {
            let limit = timer.segments() as f64;
            let bursts = results.summary(&case, Metric::BurstMost);
            let what = words(&format!("{mode}, most segments in a burst"));
            judge(what, format!("at most {limit}"), bursts, at_most, limit);
            let rate = results.summary(&case, Metric::Rate);
            let near = |value: f64, limit: f64| (value - 1.0).abs() <= limit;
            judge(words(&format!("{mode}, of the asked rate")), "0.99 to 1.01".to_owned(), rate, near, 0.01);
        }
    }
    table.render()
}

fn name(gap: Duration) -> String {
    format!("{} µs", number(gap.as_nanos() as f64 / 1e3))
}
