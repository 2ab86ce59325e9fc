//! The tables of results, and what is wanted.

use crate::case::{Case, Load, Wait};
pub(crate) use crate::no_pictures::Pictures;
use crate::results::{Metric, Results};
use crate::section::Section;
pub(crate) use crate::section::{marked, plain, update};
use crate::text::{Table, median, with_range};
use crate::wanted::{self, Bound, Target};

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let section = |name, title, text| Section { name, title, text };
    let all = [
        section("emulator-setting", "Setting", setting(results)),
        section("emulator-targets", "Targets", targets(results)),
        section("emulator-times", "A path of 1 Gbit/s and 10 ms each way", times(results)),
    ];
    all.into_iter().filter(|section| !section.text.is_empty()).collect()
}

fn setting(results: &Results) -> String {
    let setting = &results.setting;
    let (rounds, seconds, place) = (setting.rounds, setting.seconds, setting.place());
    format!(
        "{rounds} rounds of {seconds} s for each case; {place}. Medians of the rounds, of the worse direction.\n"
    )
}

fn times(results: &Results) -> String {
    let mut table = Table::new(&[
        "emulator, load",
        "late p50, µs",
        "p99",
        "most",
        "more delay p50, µs",
        "p99",
        "rate error, %",
        "lost",
        "processor",
        "to asleep",
    ]);
    for case in Case::all() {
        let late = with_range(results.summary(&case, Metric::LateP50));
        if late.is_empty() {
            continue;
        }
        let value = |metric| median(results.summary(&case, metric));
        let more = with_range(results.summary(&case, Metric::DelayP50));
        let cpu = results.summary(&case, Metric::Cpu);
        let cpu = cpu.map_or_else(String::new, |cpu| format!("{:.0} %", cpu.median * 100.0));
        let rate = results.summary(&case, Metric::Rate);
        let rate = rate.map_or_else(String::new, |rate| format!("{:+.4}", (rate.median - 1.0) * 100.0));
        let asleep = Case { wait: Wait::Asleep, ..case };
        table.row([
            case.to_string(),
            late,
            value(Metric::LateP99),
            value(Metric::LateMost),
            more,
            value(Metric::DelayP99),
            rate,
            value(Metric::Lost),
            cpu,
            median(results.ratio(&case, &asleep, Metric::Cpu)),
        ]);
    }
    table.render()
}

/// One row for each target that there are results for.
fn targets(results: &Results) -> String {
    let mut targets = vec![];
    for (wait, limit) in [(Wait::Asleep, 50.0), (Wait::Spinning, 5.0)] {
        let (full, sparse) = (Case { wait, load: Load::Full }, Case { wait, load: Load::Sparse });
        for (case, metric, what, bound) in [
            (full, Metric::LateP50, "late p50, µs", Bound::AtMost(limit)),
            (sparse, Metric::DelayP50, "more delay p50, µs", Bound::AtMost(limit)),
            (full, Metric::Rate, "rate, to the path's", Bound::AtLeast(0.999)),
            (full, Metric::Rate, "rate, to the path's", Bound::AtMost(1.001)),
            (full, Metric::Lost, "packets lost by the emulator", Bound::AtMost(0.0)),
        ] {
            let found = results.summary(&case, metric);
            targets.push(Target { what: format!("{case}: {what}"), bound, found });
        }
    }
    wanted::table(targets)
}
