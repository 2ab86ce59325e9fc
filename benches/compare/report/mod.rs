//! Results as Markdown: a section per table, which can replace the one in a document.

mod tables;
mod targets;
mod text;

use crate::results::Results;
use std::fmt::Write as _;

/// A table with the name that its place in a document has.
pub(crate) struct Section {
    name: &'static str,
    title: &'static str,
    text: String,
}

/// Those that have any result.
pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let section = |name, title, text| Section { name, title, text };
    let all = [
        section("setting", "Setting", tables::setting(&results.setting)),
        section("targets", "Targets", targets::table(results)),
        section("bulk", "Bulk data, Gbit/s: median (range)", tables::bulk(results)),
        section("cpu", "Processor seconds per 10^9 bytes", tables::cpu(results)),
        section("acks", "Fewer ACKs", tables::acks(results)),
        section("latency", "Round trip of one byte, µs", tables::latency(results)),
        section("connections", "Connections per second", tables::connections(results)),
    ];
    all.into_iter().filter(|section| !section.text.is_empty()).collect()
}

/// For reading.
pub(crate) fn plain(sections: &[Section]) -> String {
    let mut out = String::new();
    for Section { title, text, .. } in sections {
        // Writing to a string does not fail.
        let _ = writeln!(out, "## {title}\n\n{text}");
    }
    out
}

/// For copying, with the marks of the places.
pub(crate) fn marked(sections: &[Section]) -> String {
    let mut out = String::new();
    for Section { name, text, .. } in sections {
        let _ = writeln!(out, "{}\n{text}{}\n", begin(name), end(name));
    }
    out
}

/// A document with the sections at their places. Places of other sections stay as they are.
///
/// # Errors
/// Where a section has no place, or a place has no end.
pub(crate) fn update(document: &str, sections: &[Section]) -> Result<String, String> {
    let mut out = document.to_owned();
    for Section { name, text, .. } in sections {
        let (begin, end) = (begin(name), end(name));
        let start = out.find(&begin).ok_or_else(|| format!("no line {begin}"))? + begin.len();
        let length = out[start..].find(&end).ok_or_else(|| format!("no line {end} after {begin}"))?;
        out.replace_range(start..start + length, &format!("\n{text}"));
    }
    Ok(out)
}

fn begin(name: &str) -> String {
    format!("<!-- compare:begin {name} -->")
}

fn end(name: &str) -> String {
    format!("<!-- compare:end {name} -->")
}
