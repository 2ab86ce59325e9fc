//! A trace, as `--trace` writes it: JSON texts (RFC 7464) of qlog.
//!
//! Any octets are read to their end, damaged records are skipped and counted, and what was read has
//! a story. A record that was read is written, read again, and is written alike.
#![cfg_attr(feature = "link", no_main)]

use ackline_explain::{Explainer, Limits, text};
use ackline_observe::trace::{RECORD_SEPARATOR, Reader, Record};

ackline_fuzz::target!(run);

fn run(octets: &[u8]) {
    let Ok(mut reader) = Reader::new(octets) else { return };
    let separators = octets.iter().filter(|octet| **octet == RECORD_SEPARATOR).count() as u64;
    let mut records = 0;
    for record in reader.by_ref() {
        write_and_read(&record.expect("octets in memory can be read"));
        records += 1;
    }
    let skipped = reader.unknown() + reader.damaged() + u64::from(reader.is_truncated());
    assert!(records + skipped < separators, "{records} and {skipped} of {separators}");

    let mut reader = Reader::new(octets).expect("it was read before");
    let mut limits = Limits::default();
    (limits.open, limits.stories, limits.records, limits.drawn) = (3, 2, 100, 20);
    let mut explainer = Explainer::new(limits);
    explainer.read_trace(&mut reader).expect("octets in memory can be read");
    let story = explainer.finish();
    assert!(!text::summary(&story).is_empty());
    for connection in &story.connections {
        assert!(!text::page(connection).is_empty());
    }
}

fn write_and_read(record: &Record) {
    let written = serde_json::to_string(record).expect("a record can be written");
    let again: Record = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(serde_json::to_string(&again).expect("a record can be written"), written);
}
