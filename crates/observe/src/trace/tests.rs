//! Traces, read by a JSON parser and by the crate's own reader.

use super::*;
use crate::background::meter::RecordCounts;
use crate::background::queue::QueueEntry as _;
use crate::background::run;
use ackline_tcp_core::info::Blocked;
use ackline_tcp_core::{ConnId, Duration};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

const ORIGIN: Instant = Instant::from_millis(5);
/// 2023-11-14T22:13:20Z.
const UNIX_NS: u64 = 1_700_000_000_000_000_000;

/// The path of a trace in a folder of its own, and its options.
fn place() -> (tempfile::TempDir, PathBuf, TraceOptions) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.qlog");
    (folder, path, TraceOptions::new("ack0", ORIGIN, UNIX_NS))
}

/// The JSON texts of a sequence, each of which begins and ends as RFC 7464 asks.
fn texts(file: &[u8]) -> Vec<Value> {
    let file = str::from_utf8(file).expect("UTF-8");
    let (before, rest) = file.split_once('\x1e').expect("a separator");
    assert_eq!(before, "");
    let parse = |text: &str| {
        assert!(text.ends_with('\n'), "{text}");
        serde_json::from_str(text).expect("JSON")
    };
    rest.split('\x1e').map(parse).collect()
}

/// What the crate's reader makes of it: all records, all of which it understands.
fn read(file: &[u8]) -> Vec<Record> {
    let mut reader = Reader::new(file).expect("a trace");
    let records: Vec<_> = reader.by_ref().map(|record| record.expect("readable")).collect();
    assert_eq!((reader.unknown(), reader.damaged(), reader.is_truncated()), (0, 0, false));
    records
}

fn congestion(cwnd: u64, srtt_ms: Option<u64>) -> TraceEvent {
    TraceEvent::Congestion {
        cwnd,
        ssthresh: ackline_tcp_core::Window::MAX.bytes(),
        pipe: 1_000,
        snd_wnd: 65_535,
        srtt: srtt_ms.map(Duration::from_millis),
        min_rtt: None,
        pacing_rate: None,
    }
}

/// Traces these events, one per millisecond.
fn trace(events: &[(ConnId, TraceEvent)], options: TraceOptions, path: &Path) -> (Vec<u8>, TraceSummary) {
    let trace = Trace::start(path, options).expect("started");
    let mut tracer = trace.tracer();
    for (number, (conn, event)) in events.iter().enumerate() {
        tracer.trace(ORIGIN + Duration::from_micros(1_500 * number as u64), *conn, event);
    }
    let summary = trace.finish();
    (fs::read(path).expect("a file"), summary)
}

#[test]
fn every_event_of_the_core_has_a_record_and_is_read_as_it_was_written() {
    let (_folder, path, options) = place();
    let conn = ConnId::for_test(3, 1);
    let events: Vec<_> = TraceEvent::each_for_test().map(|event| (conn, event)).collect();
    let (file, summary) = trace(&events, options, &path);
    let expected: Vec<_> =
        events.iter().map(|(_, event)| Event::of(event).expect("every event has a record")).collect();
    assert!(summary.cut_short.is_none());
    assert_eq!((summary.records, summary.dropped), (events.len() as u64, 0));

    let mut records = read(&file);
    let last = records.pop().expect("records");
    assert_eq!(
        last.event,
        Event::TraceEnded { records: summary.records, dropped: 0, unwritten: 0, cut_short: None }
    );
    for (number, (record, expected)) in records.iter().zip(&expected).enumerate() {
        assert_eq!(record.event, *expected);
        assert_eq!(record.at, Duration::from_micros(1_500 * number as u64));
        assert_eq!(record.group.expect("a connection").to_string(), "conn 3.1");
    }
    assert_eq!(records.len(), expected.len());

    let names: BTreeSet<_> =
        texts(&file)[1..].iter().map(|record| record["name"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(names.len(), events.len() + 1, "each kind has a name of its own");
    let ours = |name: &String| name.starts_with("ackline:") || name.starts_with("recovery:");
    assert!(names.iter().all(ours), "{names:?}");
}

#[test]
fn the_first_record_is_the_header_of_qlog() {
    let (_folder, path, mut options) = place();
    options.description = "policies: built in".to_owned();
    let (file, _) = trace(&[], options, &path);
    let header = &texts(&file)[0];
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(header["serialization_format"], "application/qlog+json-seq");
    assert_eq!(header["description"], "policies: built in");
    assert_eq!(header["trace"]["vantage_point"]["name"], "ack0");
    let time = &header["trace"]["common_fields"]["reference_time"];
    assert_eq!((&time["clock_type"], &time["epoch"]), (&"monotonic".into(), &"unknown".into()));
    assert_eq!(time["wall_clock_time"], "2023-11-14T22:13:20.000000000Z");
    assert_eq!(
        serde_json::to_value(Reader::new(&file[..]).expect("a trace").header()).ok().as_ref(),
        Some(header)
    );
}

#[test]
fn metrics_tell_only_what_has_changed() {
    let (_folder, path, options) = place();
    let (a, b, a_again) = (ConnId::for_test(0, 0), ConnId::for_test(1, 0), ConnId::for_test(0, 1));
    let events = [
        (a, congestion(10_000, None)),
        (b, congestion(10_000, None)),
        (a, congestion(10_000, None)),
        (a, congestion(11_000, Some(20))),
        (a, congestion(11_000, Some(25))),
        (a_again, congestion(11_000, Some(25))),
    ];
    let (file, _) = trace(&events, options, &path);
    let said: Vec<_> = texts(&file)[1..7].iter().map(|record| record["data"].to_string()).collect();
    let all = r#"{"bytes_in_flight":1000,"congestion_window":10000,"peer_window":65535}"#;
    assert_eq!(said[0], all);
    assert_eq!(said[1], all);
    assert_eq!(said[2], r#"{"congestion_window":11000,"smoothed_rtt":20.0}"#);
    assert_eq!(said[3], r#"{"smoothed_rtt":25.0}"#);
    let renewed =
        r#"{"bytes_in_flight":1000,"congestion_window":11000,"peer_window":65535,"smoothed_rtt":25.0}"#;
    assert_eq!(said[4], renewed, "another connection at the same index");
    assert!(said[5].contains("\"cut_short\":null"), "the third had nothing to say: {said:?}");

    let mut metrics = Metrics::default();
    for record in read(&file) {
        if let (Event::MetricsUpdated(changes), Some(Group { index: 0, generation: 0 })) =
            (record.event, record.group)
        {
            metrics.update(&changes);
        }
    }
    assert_eq!((metrics.congestion_window, metrics.smoothed_rtt), (Some(11_000), Some(25.0)));
    assert_eq!(metrics.ssthresh, None, "there is none");
}

#[test]
fn what_blocks_a_connection_is_said_when_it_changes() {
    let (_folder, path, options) = place();
    let (a, b, a_again) = (ConnId::for_test(0, 0), ConnId::for_test(1, 0), ConnId::for_test(0, 1));
    let blocked = |conn, cause| (conn, TraceEvent::Blocked { cause });
    let events = [
        blocked(a, Blocked::Pacing),
        blocked(b, Blocked::Pacing),
        blocked(a, Blocked::Pacing),
        (a, TraceEvent::Undo),
        blocked(a, Blocked::Pacing),
        blocked(a, Blocked::App),
        blocked(b, Blocked::Pacing),
        blocked(a, Blocked::Pacing),
        blocked(a_again, Blocked::Pacing),
    ];
    let (file, _) = trace(&events, options, &path);
    let said: Vec<_> = read(&file)
        .into_iter()
        .filter_map(|record| match record.event {
            Event::SendingBlocked { trigger } => Some(format!("{}: {trigger}", record.group?)),
            _ => None,
        })
        .collect();
    assert_eq!(
        said,
        ["conn 0.0: pacing", "conn 1.0: pacing", "conn 0.0: app", "conn 0.0: pacing", "conn 0.1: pacing"]
    );
}

#[test]
fn a_full_queue_takes_no_more_and_the_file_says_where() {
    // Before the thread runs, so that what fits does not depend on it.
    let (_folder, path, options) = place();
    let queue = Queue::new(10 * size_of::<QueuedEvent>());
    let conn = ConnId::for_test(0, 0);
    for _ in 0..100 {
        queue.push(QueuedEvent::Event(ORIGIN, conn, TraceEvent::Undo), 1, 0, |_| {});
    }
    queue.close();
    queue.push(QueuedEvent::Event(ORIGIN, conn, TraceEvent::Undo), 1, 0, |_| {});
    let summary = run(Writer::create(&path, options).expect("created"), &queue);
    // The last place is the gap's.
    assert_eq!((summary.records, summary.dropped, summary.unwritten), (10, 91, 0));
    assert_eq!(queue.meter().read(), RecordCounts { written: 10, dropped: 91, unwritten: 0 });
    let records = read(&fs::read(&path).expect("a file"));
    assert_eq!(records[9].event, Event::EventsDropped { count: 91 });
    assert_eq!(
        records[10].event,
        Event::TraceEnded { records: 10, dropped: 91, unwritten: 0, cut_short: None }
    );
    assert!(matches!(QueuedEvent::gap(3), QueuedEvent::Gap(3)));
}

#[test]
fn a_file_ends_at_its_size_with_a_whole_record_that_says_so() {
    let (_folder, path, mut options) = place();
    options.file_size = NonZeroU64::new(8192);
    let events = vec![(ConnId::for_test(0, 0), TraceEvent::Undo); 1_000];
    let (file, summary) = trace(&events, options, &path);
    assert!(file.len() <= 8192 && file.len() > 7_000, "{}", file.len());
    assert!(matches!(summary.cut_short, Some(EarlyEnd::FileSize)), "{summary:?}");
    assert_eq!(summary.records + summary.unwritten, 1_000);
    let records = read(&file);
    assert_eq!(records.len() as u64, summary.records + 1);
    let Some(Event::TraceEnded { cut_short: Some(why), .. }) = records.last().map(|last| &last.event) else {
        panic!("{:?}", records.last());
    };
    assert_eq!(why, "the file has reached its size");
}

#[test]
fn a_full_disk_at_the_start_is_an_error() {
    if Path::new("/dev/full").exists() {
        let options = TraceOptions::new("ack0", ORIGIN, UNIX_NS);
        let error = Trace::start("/dev/full", options).map(drop).expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_file_that_is_cut_anywhere_gives_the_records_before() {
    let (_folder, path, options) = place();
    let conn = ConnId::for_test(0, 0);
    let events: Vec<_> = TraceEvent::each_for_test().map(|event| (conn, event)).collect();
    let (file, _) = trace(&events, options, &path);
    let whole = read(&file);
    let header = file.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
    for length in header..file.len() {
        let mut reader = Reader::new(&file[..length]).expect("a header");
        let records: Vec<_> = reader.by_ref().map(|record| record.expect("readable")).collect();
        assert_eq!(records, whole[..records.len()]);
        assert_eq!((reader.unknown(), reader.damaged()), (0, 0), "{length}");
        // A record without its line end is whole, too; one without any of its bytes is none.
        let texts = file[header..length].split(|byte| *byte == 0x1e).filter(|text| !text.is_empty()).count();
        assert_eq!(records.len() + usize::from(reader.is_truncated()), texts, "{length}");
    }
}

#[test]
fn what_is_damaged_unknown_or_too_long_is_skipped_and_counted() {
    let (_folder, path, options) = place();
    let (file, _) = trace(&[(ConnId::for_test(0, 0), TraceEvent::Undo)], options, &path);
    let mut parts: Vec<_> = file.split(|byte| *byte == 0x1e).skip(1).map(<[u8]>::to_vec).collect();
    let long = format!("{{\"time\":1,\"name\":\"{}\",\"data\":{{}}}}\n", "x".repeat(1 << 20));
    for odd in [
        "",
        "{\"time\":1,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{}}}\n",
        "{\"time\":1,\"na\n",
        "{\"time\":1,\"name\":\"ackline:segment_received\",\"data\":{\"seq\":-1}}\n",
        "\u{0}\u{0}\n",
        &long,
    ] {
        parts.insert(1, odd.as_bytes().to_vec());
    }
    let file = parts.iter().flat_map(|part| [&[0x1e], &part[..]].concat()).collect::<Vec<_>>();
    let mut reader = Reader::new(&file[..]).expect("a trace");
    let records: Vec<_> = reader.by_ref().map(|record| record.expect("readable")).collect();
    assert_eq!(records.len(), 2);
    assert_eq!((reader.unknown(), reader.damaged(), reader.is_truncated()), (2, 3, false));
}

#[test]
fn what_is_no_trace_is_an_error_that_says_so() {
    let not_a_trace = |bytes: &[u8]| matches!(Reader::new(bytes), Err(ReadError::NotATrace));
    assert!(not_a_trace(b""));
    assert!(not_a_trace(&[0x0a, 0x0d, 0x0d, 0x0a]));
    assert!(not_a_trace(b"\x1e"));
    assert!(not_a_trace(b"\x1e{\"time\":1}\n"));
    let other =
        b"\x1e{\"file_schema\":\"urn:x\",\"serialization_format\":\"\",\"trace\":{\"event_schemas\":[]}}\n";
    let error = Reader::new(&other[..]).map(drop).expect_err("another schema").to_string();
    assert_eq!(error, "a qlog file of \"urn:x\"; \"urn:ietf:params:qlog:file:sequential\" is needed");
}

#[test]
fn flags_are_read_as_the_core_prints_them() {
    for bits in 0..1 << 9 {
        let event = Event::SegmentReceived {
            seq: 0,
            length: 0,
            ack: 0,
            flags: ackline_tcp_core::wire::TcpFlags::from_bits(bits),
        };
        let text = serde_json::to_string(&event).expect("JSON");
        assert_eq!(serde_json::from_str::<Event>(&text).ok(), Some(event), "{text}");
    }
}
