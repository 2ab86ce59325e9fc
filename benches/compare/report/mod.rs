//! Results as Markdown: a section per table.

mod section;
mod tables;
mod targets;
mod text;

use crate::results::Results;
pub(crate) use section::{Section, marked, plain, update};

/// Those that have any result.
pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let section = |name, title, text| Section { name, title, text };
    let all = [
        section("setting", "Setting", tables::setting(&results.setting)),
        section("targets", "Targets", targets::table(results)),
        section("bulk", "Bulk data, Gbit/s: median (range)", tables::bulk(results)),
        section("cpu", "Processor seconds per 10^9 bytes", tables::cpu(results)),
        section("default-cc", "The kernel's congestion control", tables::system_cc(results)),
        section("acks", "Fewer ACKs", tables::acks(results)),
        section("latency", "Round trip of one byte, µs", tables::latency(results)),
        section("connections", "Connections per second", tables::connections(results)),
    ];
    all.into_iter().filter(|section| !section.text.is_empty()).collect()
}
