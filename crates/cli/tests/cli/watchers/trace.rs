//! `--trace`, read by the reader of `ackline-observe`.

use crate::common::{run, scratch, text};
use crate::net::succeeded;
use crate::watchers::capture::demo_on_a_small_disk;
use ackline::core::events::TraceEvent;
use ackline_observe::trace::{Event, Group, Reader, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// All records of a file in which nothing is damaged.
fn records(file: &[u8]) -> Vec<Record> {
    let mut reader = Reader::new(file).expect("a trace");
    let records: Vec<_> = reader.by_ref().map(|record| record.expect("readable")).collect();
    assert_eq!((reader.unknown(), reader.damaged(), reader.is_truncated()), (0, 0, false));
    records
}

#[test]
fn a_trace_tells_the_life_of_each_connection_and_a_capture_may_run_beside_it() {
    let (directory, path) = scratch("out.qlog");
    let capture = directory.path().join("out.pcapng");
    let args = ["demo", "--device", "channel", "--size", "3M", "--plain", "--trace-buffer", "256M"];
    let ended = run(&[&args[..], &["--trace", text(&path), "--pcap", text(&capture)]].concat());
    succeeded(&ended);
    let file = std::fs::read(&path).expect("a file");
    let records = records(&file);
    let Some((last, rest)) = records.split_last() else { panic!("no records") };
    assert!(
        matches!(last.event, Event::TraceEnded { dropped: 0, unwritten: 0, cut_short: None, .. }),
        "{last:?}"
    );
    assert!(ended.stderr.contains(&format!("traced {} events in ", rest.len())), "{ended:?}");
    assert!(ended.stderr.contains("captured "), "{ended:?}");
    assert!(rest.is_sorted_by_key(|record| record.at));

    let mut connections: BTreeMap<Group, Vec<&Event>> = BTreeMap::new();
    for record in rest {
        connections.entry(record.group.expect("a connection")).or_default().push(&record.event);
    }
    let (mut sent, mut received) = (0, 0);
    for events in connections.values() {
        assert!(matches!(events[0], Event::ConnectionOpened { .. }), "{:?}", events[0]);
        assert!(events.iter().any(|event| matches!(event, Event::ConnectionClosed { error: None })));
        let reaches = |state: &str| {
            events.iter().any(|event| matches!(event, Event::StateUpdated { new, .. } if new == state))
        };
        assert!(reaches("ESTABLISHED"));
        assert!(events.iter().any(|event| matches!(event, Event::MetricsUpdated(_))));
        for event in events {
            match event {
                Event::SegmentSent { length, .. } => sent += length,
                Event::SegmentReceived { length, .. } => received += length,
                _ => {}
            }
        }
    }
    assert!(sent >= 3 << 20 && received >= 3 << 20, "3 MiB in each direction: {sent}, {received}");
    assert!(!std::fs::read(&capture).expect("a file").is_empty());
}

#[test]
fn a_full_disk_cuts_the_trace_short_and_not_the_transfer() {
    const NAME: &str = "watchers::trace::a_full_disk_cuts_the_trace_short_and_not_the_transfer";
    let Some((ended, file)) = demo_on_a_small_disk(NAME, "--trace", "") else { return };
    succeeded(&ended);
    assert_eq!(ended.json()["ok"], true);
    let warning = ended.stderr.lines().find(|line| line.starts_with("warning: ")).expect("a warning");
    assert!(warning.contains("the trace in ") && warning.ends_with("no space left on device"), "{warning}");
    assert!(file.len() <= 256 << 10, "{}", file.len());
    let records = records(&file);
    assert!(records.len() > 100, "{}", records.len());
    let last = &records.last().expect("records").event;
    assert!(
        matches!(last, Event::TraceEnded { cut_short: Some(why), .. } if why.to_lowercase().contains("no space left")),
        "{last:?}"
    );
}

#[test]
fn the_page_lists_every_event_and_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traces.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let listed: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .filter(|name| name.contains(':'))
        .collect();
    let of_the_file = [
        Event::EventsDropped { count: 1 },
        Event::TraceEnded { records: 0, dropped: 0, unwritten: 0, cut_short: None },
    ];
    let all = TraceEvent::each_for_test().filter_map(|event| Event::of(&event)).chain(of_the_file);
    let mut names = BTreeSet::new();
    for event in all {
        let json = serde_json::to_value(&event).expect("JSON");
        let name = json["name"].as_str().expect("a name").to_owned();
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}`"))).unwrap_or_default();
        for field in json["data"].as_object().expect("fields").keys() {
            assert!(row.contains(&format!("`{field}`")), "the row of {name} lacks {field}: {row}");
        }
        names.insert(name);
    }
    assert_eq!(listed, names.iter().map(String::as_str).collect());
}
