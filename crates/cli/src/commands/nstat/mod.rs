//! `ackline nstat`: the counters of running stacks, as `nstat` shows those of the kernel.

mod history;
mod increments;

use crate::args::control::NstatArgs;
use crate::failure::Failure;
use crate::output::{self, clock};
use crate::watchers::control::client;
use crate::watchers::control::protocol::Request;
use glob::{MatchOptions, Pattern};
use history::{History, Sample};
use increments::Row;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::PrettyFormatter;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What the first line and the JSON name as the source; nstat's is `kernel`.
const SOURCE: &str = "ackline";

pub(crate) fn run(args: &NstatArgs) -> Result<(), Failure> {
    let patterns = args.patterns.iter().map(|text| pattern(text)).collect::<Result<Vec<_>, _>>()?;
    let replies = client::ask(&args.at, &Request::Count)?;
    let at = clock::micros_since_1970();
    let samples: Vec<Sample> =
        replies.into_iter().map(|reply| Sample::new(reply.stack, at, reply.counters)).collect();
    let history = History::open(!args.no_update)?;
    if !args.no_output {
        let before: &[Sample] = if args.absolute || args.reset { &[] } else { history.samples() };
        let mut rows = increments::rows(before, &samples, !args.absolute);
        rows.retain(|row| (args.zeros || row.value > 0) && selected(&patterns, &row.name));
        let text = if args.json { document(&rows, args.pretty) } else { table(&rows) };
        output::print(&text)?;
    }
    if args.no_update { Ok(()) } else { history.replace(samples, args.reset) }
}

fn pattern(text: &str) -> Result<Pattern, Failure> {
    Pattern::new(text).map_err(|error| {
        let at = error.pos;
        Failure::usage(format!(
            "{text:?}: not a pattern (at {at}: {}); write 'TcpExt*' or '*retrans*'",
            error.msg
        ))
    })
}

/// Without patterns, everything is.
fn selected(patterns: &[Pattern], name: &str) -> bool {
    let options = MatchOptions { case_sensitive: false, ..MatchOptions::new() };
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches_with(name, options))
}

fn table(rows: &[Row]) -> String {
    let mut text = format!("#{SOURCE}\n");
    for Row { name, value, rate } in rows {
        let _ = writeln!(text, "{name:<32}{value:<16}{rate:6.1}");
    }
    text
}

/// Counters as a map in their own order.
struct Values<'a>(&'a [Row]);

impl Serialize for Values<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|row| (&row.name, row.value)))
    }
}

fn document(rows: &[Row], pretty: bool) -> String {
    let document = BTreeMap::from([(SOURCE, Values(rows))]);
    if !pretty {
        return output::json_line(&document);
    }
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"    "));
    // Fails only if the writer does, and that is memory.
    let _ = document.serialize(&mut serializer);
    text.push(b'\n');
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline::core::counters::Counters;

    fn row(name: &str, value: u64, rate: f64) -> Row {
        Row { name: name.to_owned(), value, rate }
    }

    #[test]
    fn columns_are_those_of_nstat() {
        let rows = [row("TcpInSegs", 52_803, 0.0), row("TcpExtTCPFastOpenListenOverflow", 7, 1234.56)];
        let expected = "#ackline\n\
            TcpInSegs                       52803              0.0\n\
            TcpExtTCPFastOpenListenOverflow 7               1234.6\n";
        assert_eq!(table(&rows), expected);
        assert_eq!(document(&rows[..1], false), "{\"ackline\":{\"TcpInSegs\":52803}}\n");
        let pretty = "{\n    \"ackline\": {\n        \"TcpInSegs\": 52803\n    }\n}\n";
        assert_eq!(document(&rows[..1], true), pretty);
    }

    #[test]
    fn a_name_leaves_room_for_its_number() {
        for (name, _) in Counters::new().iter() {
            assert!(name.len() < 32, "{name}");
        }
    }

    #[test]
    fn patterns_do_not_tell_capitals_apart() {
        let patterns = ["tcpin*", "*RETRANS?egs"].map(|text| pattern(text).expect("right"));
        for (name, expected) in [("TcpInSegs", true), ("TcpRetransSegs", true), ("TcpOutSegs", false)] {
            assert_eq!(selected(&patterns, name), expected, "{name}");
        }
        assert!(selected(&[], "TcpOutSegs"));
        assert!(pattern("[").expect_err("wrong").to_string().contains("\"[\": not a pattern"));
    }
}
