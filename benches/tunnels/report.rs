//! The tables of results, and what is wanted.

use crate::case::{Act, Case, Device, Stack, Who};
use crate::ending::Ending;
pub(crate) use crate::no_pictures::Pictures;
use crate::results::{Metric, Results, Summary};
use crate::section::Section;
pub(crate) use crate::section::{marked, plain, update};
use crate::text::{Table, median, with_range};
use crate::wanted::{self, Bound, Target};

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let section = |name, title, text| Section { name, title, text };
    let all = [
        section("tunnels-setting", "Setting", setting(results)),
        section("tunnels-targets", "Targets", wanted::table(targets(results))),
        section("tunnels-throughput", "Throughput, Gbit/s", throughput(results)),
        section("tunnels-processors", "Processor time, s per GB", processors(results)),
        section("tunnels-connections", "Connections", connections(results)),
        section("tunnels-memory", "Memory of the terminator", memory(results)),
        section("tunnels-endings", "Connections that did not end as they should", endings(results)),
    ];
    all.into_iter().filter(|section| !section.text.is_empty()).collect()
}

fn setting(results: &Results) -> String {
    let setting = &results.setting;
    let (rounds, seconds, place) = (setting.rounds, setting.seconds, setting.place());
    format!("{rounds} rounds of {seconds} s for each case; {place}. Medians of the rounds.\n")
}

/// Uploads and downloads, in the order of the columns.
fn bulk() -> impl Iterator<Item = Act> {
    let flows = |flows| [Act::Upload { flows }, Act::Download { flows }];
    Act::FLOWS.into_iter().flat_map(flows)
}

fn throughput(results: &Results) -> String {
    let mut table = Table::new(&[
        "Gbit/s",
        "upload",
        "to best rival",
        "download",
        "to best rival",
        "100 uploads",
        "to best rival",
        "100 downloads",
        "to best rival",
        "flows served, %",
    ]);
    for who in Who::ALL {
        let mut cells: Vec<_> = bulk()
            .flat_map(|act| {
                let rate = results.summary(&Case { who, act }, Metric::GbitPerSecond);
                [with_range(rate), to_best(results, who, act, Metric::GbitPerSecond, Best::Most)]
            })
            .collect();
        let served = bulk().filter_map(|act| results.summary(&Case { who, act }, Metric::Served));
        cells.push(median(served.min_by(|one, other| one.median.total_cmp(&other.median))));
        some_row(&mut table, who, cells);
    }
    table.render()
}

fn processors(results: &Results) -> String {
    let mut table = Table::new(&[
        "processor time, s per GB",
        "upload",
        "of the machine",
        "download",
        "of the machine",
        "100 uploads",
        "of the machine",
        "100 downloads",
        "of the machine",
    ]);
    for who in Who::ALL {
        let cells = bulk().flat_map(|act| {
            [Metric::TerminatorPerGigabyte, Metric::AllPerGigabyte]
                .map(|metric| median(results.summary(&Case { who, act }, metric)))
        });
        some_row(&mut table, who, cells);
    }
    table.render()
}

fn connections(results: &Results) -> String {
    let mut table = Table::new(&[
        "connections",
        "per second",
        "to best rival",
        "served, %",
        "p50, ms",
        "p99, ms",
        "1,000 at once: served, %",
        "p99, ms",
        "5,000 at once: served, %",
        "p99, ms",
    ]);
    for who in Who::ALL {
        let cell = |act, metric| with_range(results.summary(&Case { who, act }, metric));
        let millis = |act, metric| median(results.summary(&Case { who, act }, metric).map(from_micros));
        let mut cells = vec![
            cell(Act::CONNECTS, Metric::PerSecond),
            to_best(results, who, Act::CONNECTS, Metric::PerSecond, Best::Most),
            median(results.summary(&Case { who, act: Act::CONNECTS }, Metric::Served)),
            millis(Act::CONNECTS, Metric::MedianMicros),
            millis(Act::CONNECTS, Metric::P99Micros),
        ];
        for clients in Act::CLIENTS {
            let act = Act::Burst { clients };
            cells.extend([cell(act, Metric::Served), millis(act, Metric::P99Micros)]);
        }
        some_row(&mut table, who, cells);
    }
    table.render()
}

fn memory(results: &Results) -> String {
    let mut table = Table::new(&[
        "memory",
        "of an idle connection, bytes",
        "to best rival",
        "idle ones served, %",
        "1,000 downloads, MB at most",
        "to best rival",
        "flows served, %",
        "Gbit/s",
    ]);
    for who in Who::ALL {
        let cell = |act, metric| with_range(results.summary(&Case { who, act }, metric));
        let ratio = |act, metric| to_best(results, who, act, metric, Best::Least);
        let cells = [
            cell(Act::IDLE, Metric::BytesEach),
            ratio(Act::IDLE, Metric::BytesEach),
            median(results.summary(&Case { who, act: Act::IDLE }, Metric::Served)),
            cell(Act::BUSY, Metric::Resident),
            ratio(Act::BUSY, Metric::Resident),
            median(results.summary(&Case { who, act: Act::BUSY }, Metric::Served)),
            cell(Act::BUSY, Metric::GbitPerSecond),
        ];
        some_row(&mut table, who, cells);
    }
    table.render()
}

fn endings(results: &Results) -> String {
    let mut columns = vec![format!("of {}", Ending::EACH)];
    columns.extend(Ending::ALL.iter().map(Ending::to_string));
    columns.push("acts in which the terminator itself ended".to_owned());
    let mut table = Table::new(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    for who in Who::ALL {
        let mut cells: Vec<_> = Ending::ALL
            .iter()
            .map(|ending| whole(results.summary(&Case { who, act: Act::HalfClose }, ending.metric())))
            .collect();
        if cells.iter().all(String::is_empty) {
            continue;
        }
        // Of all acts, those in which it happened in any round.
        let cases = Case::all().into_iter().filter(|case| case.who == who);
        let crashes = cases.filter_map(|case| results.summary(&case, Metric::Crashed));
        cells.push(crashes.filter(|crash| crash.max > 0.0).count().to_string());
        some_row(&mut table, who, cells);
    }
    table.render()
}

/// The most of any round: one that hangs is one too many.
fn whole(count: Option<Summary>) -> String {
    count.map_or_else(String::new, |Summary { max, .. }| format!("{max:.0}"))
}

fn from_micros(Summary { median, min, max }: Summary) -> Summary {
    Summary { median: median / 1e3, min: min / 1e3, max: max / 1e3 }
}

/// Which value is the best one.
#[derive(Clone, Copy)]
enum Best {
    Most,
    Least,
}

/// Compared with the best of rivals; `None` if there is none.
fn ratio(
    results: &Results,
    who: Who,
    rivals: impl Iterator<Item = Who>,
    act: Act,
    metric: Metric,
    best: Best,
) -> Option<Summary> {
    let case = |who| Case { who, act };
    let value = |who| results.summary(&case(who), metric).map(|summary| (summary.median, who));
    let rivals = rivals.filter_map(value);
    let rival = match best {
        Best::Most => rivals.max_by(|one, other| one.0.total_cmp(&other.0)),
        Best::Least => rivals.min_by(|one, other| one.0.total_cmp(&other.0)),
    };
    results.ratio(&case(who), &case(rival?.1), metric)
}

/// With the best rival on a device of the same kind.
fn ratio_to_best(results: &Results, who: Who, act: Act, metric: Metric, best: Best) -> Option<Summary> {
    ratio(results, who, who.rivals(), act, metric, best)
}

fn to_best(results: &Results, who: Who, act: Act, metric: Metric, best: Best) -> String {
    median(ratio_to_best(results, who, act, metric, best))
}

/// A row, unless it would be empty.
fn some_row(table: &mut Table, who: Who, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<_> = cells.into_iter().collect();
    if cells.iter().any(|cell| !cell.is_empty()) {
        table.row(std::iter::once(who.to_string()).chain(cells));
    }
}

fn targets(results: &Results) -> Vec<Target> {
    let mut targets = Vec::new();
    for device in Device::ALL {
        let who = Who::ackline(device);
        let mut wanted = |what: &str, act: Act, bound, found| {
            targets.push(Target { what: format!("{}: {act}, {what}", device.name()), bound, found });
        };
        // First; and with offload by a distance.
        let rate = Bound::AtLeast(if device == Device::Offload { 3.0 } else { 1.0 });
        for act in bulk() {
            let found = ratio_to_best(results, who, act, Metric::GbitPerSecond, Best::Most);
            wanted("to best rival", act, rate, found);
        }
        let found = ratio_to_best(results, who, Act::CONNECTS, Metric::PerSecond, Best::Most);
        wanted("to best rival", Act::CONNECTS, Bound::AtLeast(1.5), found);
        for act in Act::CLIENTS.map(|clients| Act::Burst { clients }) {
            let served = results.summary(&Case { who, act }, Metric::Served);
            wanted("served, %", act, Bound::AtLeast(100.0), served);
            let found = ratio_to_best(results, who, act, Metric::P99Micros, Best::Least);
            wanted("p99, to best rival", act, Bound::AtMost(1.0), found);
        }
        for (act, metric) in [(Act::IDLE, Metric::BytesEach), (Act::BUSY, Metric::Resident)] {
            let found = ratio_to_best(results, who, act, metric, Best::Least);
            wanted("memory, to best rival", act, Bound::AtMost(1.0), found);
            let big = who.rivals().filter(|rival| rival.stack != Stack::Lwip);
            let found = ratio(results, who, big, act, metric, Best::Least);
            wanted("memory, to best rival but lwip", act, Bound::AtMost(0.25), found);
        }
        for ending in Ending::ALL {
            let found = results.summary(&Case { who, act: Act::HalfClose }, ending.metric());
            wanted(&format!("{ending}, that did not end"), Act::HalfClose, Bound::AtMost(0.0), found);
        }
    }
    targets
}
