//! The tables of results, and what is wanted.

use crate::case::{Act, Asker, CHUNK, Case, SMALL, Who};
pub(crate) use crate::no_pictures::Pictures;
use crate::results::{Metric, Results};
use crate::section::Section;
pub(crate) use crate::section::{marked, plain, update};
use crate::text::{Table, median, with_range};
use crate::wanted::{self, Bound, Target};

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let section = |name, title, text| Section { name, title, text };
    let all = [
        section("crowd-setting", "Setting", setting(results)),
        section("crowd-targets", "Targets", wanted::table(targets(results))),
        section("crowd-flows", "Many flows", flows(results)),
        section("crowd-shards", "Two shards beside one", shards(results)),
        section("crowd-round-trip", "Round trip of one byte beside senders, µs", round_trip(results)),
        section("crowd-serving", "Clients, 100 at once", serving(results)),
        section("crowd-syn-flood", "Clients amid forged SYNs", flood(results)),
        section("crowd-writes", "Small writes, Gbit/s", writes(results)),
    ];
    all.into_iter().filter(|section| !section.text.is_empty()).collect()
}

fn setting(results: &Results) -> String {
    let setting = &results.setting;
    let (rounds, seconds, place) = (setting.rounds, setting.seconds, setting.place());
    let crowd = Act::CROWD;
    format!(
        "{rounds} rounds of {seconds} s for each case, six times as long for {crowd} flows; {place}. Medians of the rounds.\n"
    )
}

fn flows(results: &Results) -> String {
    let mut table = Table::new(&[
        "busy flows",
        "Gbit/s",
        "to kernel",
        "Jain's index",
        "longest wait, ms",
        "process, MB",
        "kernel's TCP, MB",
    ]);
    for flows in Act::FLOWS {
        for (act, does) in [(Act::Send { flows }, "sends"), (Act::Receive { flows }, "receives")] {
            for who in Who::ALL {
                // It has a table of its own.
                if who == Who::TunShardsApart {
                    continue;
                }
                let case = Case::traffic(who, act);
                let rate = with_range(results.summary(&case, Metric::GbitPerSecond));
                if rate.is_empty() {
                    continue;
                }
                let ratio = median(results.ratio(&case, &case.kernels(), Metric::GbitPerSecond));
                let rest = [Metric::Jain, Metric::LongestWait, Metric::Resident, Metric::KernelMemory];
                let rest = rest.map(|metric| median(results.summary(&case, metric)));
                let label = format!("{flows}: {} {does}", who.label());
                table.row([label, rate, ratio].into_iter().chain(rest));
            }
        }
    }
    table.render()
}

/// One table with its setting, for a page of its own.
fn shards(results: &Results) -> String {
    let mut table = Table::new(&[
        "busy flows",
        "Gbit/s",
        "to one shard",
        "Jain's index",
        "longest wait, ms",
        "processors: stack's threads",
        "peer's thread",
        "whole machine",
    ]);
    let mut is_empty = true;
    for flows in Act::DIVIDED {
        for (act, does) in [(Act::Send { flows }, "sends"), (Act::Receive { flows }, "receives")] {
            for (who, whole) in [
                (Who::Tun, Who::Tun),
                (Who::TunShards, Who::Tun),
                (Who::TunShardsApart, Who::Tun),
                (Who::Packet, Who::Packet),
                (Who::PacketShards, Who::Packet),
            ] {
                let case = Case::traffic(who, act);
                let ratio = results.ratio(&case, &Case::traffic(whole, act), Metric::GbitPerSecond);
                let rate = with_range(results.summary(&case, Metric::GbitPerSecond));
                is_empty &= who == whole || rate.is_empty();
                if rate.is_empty() {
                    continue;
                }
                let rest = [Metric::Jain, Metric::LongestWait, Metric::Here, Metric::Peer, Metric::Machine];
                let rest = rest.map(|metric| median(results.summary(&case, metric)));
                let label = format!("{flows}: {} {does}", who.label());
                table.row([label, rate, with_range(ratio)].into_iter().chain(rest));
            }
        }
    }
    if is_empty { String::new() } else { format!("{}\n{}", setting(results), table.render()) }
}

/// With its setting, as [`shards`].
fn round_trip(results: &Results) -> String {
    let mut table = Table::new(&["who", "p50", "to kernel", "p99", "to kernel", "the senders, Gbit/s"]);
    for (asker, what) in
        [(Asker::Task, "a task beside ten senders"), (Asker::Main, "`main` beside one sender")]
    {
        for who in Who::ALL {
            let case = Case::traffic(who, Act::RoundTrip { asker });
            let p50 = with_range(results.summary(&case, Metric::MedianMicros));
            if p50.is_empty() {
                continue;
            }
            let ratio = |metric| median(results.ratio(&case, &case.kernels(), metric));
            table.row([
                format!("{}: {what}", who.label()),
                p50,
                ratio(Metric::MedianMicros),
                with_range(results.summary(&case, Metric::P99Micros)),
                ratio(Metric::P99Micros),
                median(results.summary(&case, Metric::GbitPerSecond)),
            ]);
        }
    }
    let table = table.render();
    if table.is_empty() { table } else { format!("{}\n{table}", setting(results)) }
}

fn writes(results: &Results) -> String {
    let mut table = Table::new(&["one flow", "8 KiB writes", "to kernel", "64 KiB writes", "8 to 64 KiB"]);
    for who in Who::ALL {
        let case = |bytes| Case::traffic(who, Act::Write { bytes });
        let rate = |bytes| with_range(results.summary(&case(bytes), Metric::GbitPerSecond));
        let ratio = |above: Case, below: Case| median(results.ratio(&above, &below, Metric::GbitPerSecond));
        let small = rate(SMALL);
        if !small.is_empty() {
            table.row([
                who.label().to_owned(),
                small,
                ratio(case(SMALL), case(SMALL).kernels()),
                rate(CHUNK),
                ratio(case(SMALL), case(CHUNK)),
            ]);
        }
    }
    table.render()
}

fn serving(results: &Results) -> String {
    let mut table = Table::new(&[
        "who serves",
        "connections per second",
        "to kernel",
        "processor time each, µs",
        "p50, µs",
        "p99, µs",
        "process, MB",
    ]);
    for who in Who::ALL {
        let case = Case::serve(who);
        let rate = with_range(results.summary(&case, Metric::PerSecond));
        if rate.is_empty() {
            continue;
        }
        let ratio = with_range(results.ratio(&case, &case.kernels(), Metric::PerSecond));
        let rest = [Metric::MicrosEach, Metric::MedianMicros, Metric::P99Micros, Metric::Resident]
            .map(|metric| median(results.summary(&case, metric)));
        table.row([who.label().to_owned(), rate, ratio].into_iter().chain(rest));
    }
    table.render()
}

fn flood(results: &Results) -> String {
    let mut table = Table::new(&[
        "who listens",
        "forged SYNs, 1,000/s",
        "connected within 1 s, %",
        "p50, µs",
        "p99, µs",
        "process before, MB",
        "grew by, MB",
        "kernel's TCP, MB",
    ]);
    for who in Who::ALL {
        let case = Case::flood(who);
        let forged = with_range(results.summary(&case, Metric::Forged));
        if forged.is_empty() {
            continue;
        }
        let times = [Metric::InTime, Metric::MedianMicros, Metric::P99Micros]
            .map(|metric| with_range(results.summary(&case, metric)));
        let memory = [Metric::ResidentBefore, Metric::Resident, Metric::KernelMemory]
            .map(|metric| median(results.summary(&case, metric)));
        table.row([who.label().to_owned(), forged].into_iter().chain(times).chain(memory));
    }
    table.render()
}

fn targets(results: &Results) -> Vec<Target> {
    let mut targets = Vec::new();
    for who in Who::OURS {
        let label = who.label();
        for flows in Act::FLOWS {
            for (act, does) in [(Act::Send { flows }, "send"), (Act::Receive { flows }, "receive")] {
                let case = Case::traffic(who, act);
                let name = format!("{label}: {flows} flows {does}");
                let mut wanted = |what, bound, found| {
                    targets.push(Target { what: format!("{name}, {what}"), bound, found });
                };
                if let Some(least) = least_rate(flows) {
                    let ratio = results.ratio(&case, &case.kernels(), Metric::GbitPerSecond);
                    wanted("to kernel", Bound::AtLeast(least), ratio);
                }
                if flows == Act::CROWD {
                    let found = |metric| results.summary(&case, metric);
                    wanted("Jain's index", Bound::AtLeast(0.95), found(Metric::Jain));
                    wanted("longest wait, ms", Bound::AtMost(10_000.0), found(Metric::LongestWait));
                    wanted("process, MB", Bound::AtMost(1_000.0), found(Metric::Resident));
                }
            }
        }
        let case = |act| Case::traffic(who, act);
        let trip = case(Act::RoundTrip { asker: Asker::Task });
        let trip = |metric| results.ratio(&trip, &trip.kernels(), metric);
        let of_main = case(Act::RoundTrip { asker: Asker::Main });
        let (small, large) = (Act::Write { bytes: SMALL }, Act::Write { bytes: CHUNK });
        for (what, bound, found) in [
            ("round trip beside ten senders, p50, to kernel", Bound::AtMost(1.0), trip(Metric::MedianMicros)),
            ("round trip beside ten senders, p99, to kernel", Bound::AtMost(0.5), trip(Metric::P99Micros)),
            (
                "round trip of `main` beside one sender, p50, µs",
                Bound::AtMost(1_000.0),
                results.summary(&of_main, Metric::MedianMicros),
            ),
            (
                "8 KiB writes, to 64 KiB writes",
                Bound::AtLeast(0.45),
                results.ratio(&case(small), &case(large), Metric::GbitPerSecond),
            ),
        ] {
            targets.push(Target { what: format!("{label}: {what}"), bound, found });
        }
        let found = |metric| results.summary(&Case::flood(who), metric);
        for (what, bound, metric) in [
            ("connected within 1 s, %", Bound::AtLeast(99.0), Metric::InTime),
            ("process grew by, MB", Bound::AtMost(10.0), Metric::Resident),
        ] {
            let what = format!("{label}: clients amid forged SYNs, {what}");
            targets.push(Target { what, bound, found: found(metric) });
        }
    }
    targets
}

/// Of the kernel's.
fn least_rate(flows: usize) -> Option<f64> {
    match flows {
        100 => Some(0.95),
        1_000 => Some(0.9),
        _ => None,
    }
}
