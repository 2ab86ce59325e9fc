//! Reports beside what iperf 3.12 shows for the same numbers.

use super::record::*;
use super::*;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECOND: u64 = 1_000_000;
const MEGABYTE_AND_A_QUARTER: u64 = 1_310_720;

fn software() -> Software {
    Software { version: "ackline 0.1.0".to_owned(), system: "Linux host 6.1.0 x86_64".to_owned() }
}

fn started_at() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_270_491)
}

fn client() -> Contact {
    Contact::ConnectingTo { host: "127.0.0.1".to_owned(), port: 5301 }
}

fn server(port: u16) -> Contact {
    Contact::AcceptedFrom(([127, 0, 0, 1], port).into())
}

fn setup(contact: Contact, direction: Direction, streams: u32) -> Setup {
    Setup {
        contact,
        time: started_at(),
        cookie: "qzriy5yyu5qnp5p4qqrprljc7vnnfxxdgh7a".to_owned(),
        control_mss: 32_768,
        buffers: Buffers { requested: 0, send: 16_384, receive: 131_072 },
        parameters: Parameters {
            direction,
            streams,
            block_size: 131_072,
            omit: 0,
            length: Length::Seconds(1),
            tos: 0,
            target_bitrate: 10_000_000,
            mss: None,
        },
    }
}

fn stream(id: u32, sends: bool, local: u16, remote: u16) -> Connected {
    let at = |port| ([127, 0, 0, 1], port).into();
    Connected { id, sends, local: at(local), remote: at(remote) }
}

fn state() -> SenderState {
    SenderState {
        retransmits: 0,
        snd_cwnd: 1_178_694,
        snd_wnd: 328_704,
        rtt: Duration::from_micros(80),
        rttvar: Duration::from_micros(46),
        pmtu: 65_535,
    }
}

/// One interval of streams with an id and who sends; times in microseconds.
fn interval(omitted: bool, from: u64, to: u64, bytes: u64, streams: &[(u32, bool)]) -> Interval {
    let streams = streams
        .iter()
        .map(|&(id, sends)| StreamInterval {
            id,
            start: Duration::from_micros(from),
            end: Duration::from_micros(to),
            bytes,
            sender: sends.then(state),
        })
        .collect();
    Interval { omitted, streams }
}

fn total(bytes: u64, micros: u64, retransmits: Option<u64>) -> Option<Total> {
    Some(Total { bytes, time: Duration::from_micros(micros), retransmits })
}

fn end(streams: Vec<StreamTotal>) -> End {
    End {
        streams,
        local_cpu: Cpu { total: 3.6, user: 3.6, system: 0.0 },
        remote_cpu: Some(Cpu { total: 0.1, user: 0.0, system: 0.1 }),
        sender_congestion: Some("cubic".to_owned()),
        receiver_congestion: Some("bbr".to_owned()),
        policies: vec![],
    }
}

#[test]
fn a_client_with_all_details() {
    let style = Style { verbose: true, ..Style::default() };
    let mut report = Reporter::new(style, software());
    let mut said = report.opening();
    said += &report.begin(setup(client(), Direction::Forward, 1));
    said += &report.connected(stream(5, true, 42822, 5301));
    said += &report.started();
    said += &report.interval(interval(false, 0, SECOND, MEGABYTE_AND_A_QUARTER, &[(5, true)]));
    said += &report.end(end(vec![StreamTotal {
        id: 5,
        sent: total(MEGABYTE_AND_A_QUARTER, SECOND, Some(0)),
        received: total(MEGABYTE_AND_A_QUARTER, SECOND, None),
    }]));
    said += &report.done();
    let expected = "\
ackline 0.1.0
Linux host 6.1.0 x86_64
Control connection MSS 32768
Time: Sat, 21 Nov 2026 14:14:51 GMT
Connecting to host 127.0.0.1, port 5301
      Cookie: qzriy5yyu5qnp5p4qqrprljc7vnnfxxdgh7a
      TCP MSS: 32768 (default)
      Target Bitrate: 10000000
[  5] local 127.0.0.1 port 42822 connected to 127.0.0.1 port 5301
Starting Test: protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 1 second test, tos 0
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd                RTT
[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   1.12 MBytes      80 us       
- - - - - - - - - - - - - - - - - - - - - - - - -
Test Complete. Summary Results:
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0             sender
[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  receiver
[  5] largest Cwnd 1.12 MBytes, RTT min/mean/max 80/80/80 us
CPU Utilization: local/sender 3.6% (3.6%u/0.0%s), remote/receiver 0.1% (0.0%u/0.1%s)
snd_tcp_congestion cubic
rcv_tcp_congestion bbr

iperf Done.
";
    assert_eq!(said, expected);
}

#[test]
fn parallel_streams_have_sums_and_rules() {
    let mut report = Reporter::new(Style::default(), software());
    report.begin(setup(client(), Direction::Forward, 2));
    for id in [5, 7] {
        report.connected(stream(id, true, 37_261 + u16::try_from(id).expect("small"), 5301));
    }
    let ids = [(5, true), (7, true)];
    let mut said = report.interval(interval(false, 0, SECOND, MEGABYTE_AND_A_QUARTER, &ids));
    said += &report.interval(interval(false, SECOND, 2 * SECOND, MEGABYTE_AND_A_QUARTER, &ids));
    let both = |id| StreamTotal {
        id,
        sent: total(2 * MEGABYTE_AND_A_QUARTER, 2 * SECOND, Some(0)),
        received: total(2 * MEGABYTE_AND_A_QUARTER, 2 * SECOND, None),
    };
    said += &report.end(end(vec![both(5), both(7)]));
    let expected = "\
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd                RTT
[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   1.12 MBytes      80 us       
[  7]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   1.12 MBytes      80 us       
[SUM]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0             
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   1.00-2.00   sec  1.25 MBytes  10.5 Mbits/sec    0   1.12 MBytes      80 us       
[  7]   1.00-2.00   sec  1.25 MBytes  10.5 Mbits/sec    0   1.12 MBytes      80 us       
[SUM]   1.00-2.00   sec  2.50 MBytes  21.0 Mbits/sec    0             
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  2.50 MBytes  10.5 Mbits/sec    0             sender
[  5]   0.00-2.00   sec  2.50 MBytes  10.5 Mbits/sec                  receiver
[  7]   0.00-2.00   sec  2.50 MBytes  10.5 Mbits/sec    0             sender
[  7]   0.00-2.00   sec  2.50 MBytes  10.5 Mbits/sec                  receiver
[SUM]   0.00-2.00   sec  5.00 MBytes  21.0 Mbits/sec    0             sender
[SUM]   0.00-2.00   sec  5.00 MBytes  21.0 Mbits/sec                  receiver
";
    assert_eq!(said, expected);
}

#[test]
fn a_server_of_both_directions_shows_its_own_half() {
    let mut report = Reporter::new(Style::default(), software());
    let mut said = report.listening(5301, 1);
    said += &report.begin(setup(server(37_330), Direction::Bidirectional, 2));
    let streams = [(5, false, 37_338), (8, false, 37_350), (11, true, 37_360), (13, true, 37_362)];
    for (id, sends, remote) in streams {
        said += &report.connected(stream(id, sends, 5301, remote));
    }
    let ids = streams.map(|(id, sends, _)| (id, sends));
    said += &report.interval(interval(false, 0, SECOND, MEGABYTE_AND_A_QUARTER, &ids));
    let own = ids.map(|(id, sends)| {
        let own = total(MEGABYTE_AND_A_QUARTER, SECOND, sends.then_some(0));
        if sends {
            StreamTotal { id, sent: own, received: None }
        } else {
            StreamTotal { id, sent: None, received: own }
        }
    });
    said += &report.end(end(own.to_vec()));
    said += &report.done();
    let expected = "\
-----------------------------------------------------------
Server listening on 5301 (test #1)
-----------------------------------------------------------
Accepted connection from 127.0.0.1, port 37330
[  5] local 127.0.0.1 port 5301 connected to 127.0.0.1 port 37338
[  8] local 127.0.0.1 port 5301 connected to 127.0.0.1 port 37350
[ 11] local 127.0.0.1 port 5301 connected to 127.0.0.1 port 37360
[ 13] local 127.0.0.1 port 5301 connected to 127.0.0.1 port 37362
[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd                RTT
[  5][RX-S]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  
[  8][RX-S]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  
[SUM][RX-S]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec                  
[ 11][TX-S]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   1.12 MBytes      80 us       
[ 13][TX-S]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   1.12 MBytes      80 us       
[SUM][TX-S]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0             
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID][Role] Interval           Transfer     Bitrate         Retr
[  5][RX-S]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  receiver
[  8][RX-S]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  receiver
[SUM][RX-S]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec                  receiver
[ 11][TX-S]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0             sender
[ 13][TX-S]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0             sender
[SUM][TX-S]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0             sender
";
    assert_eq!(said, expected);
}

#[test]
fn omitted_intervals_are_marked_and_titles_stand_before_each_line() {
    let style = Style { title: Some("mytitle".to_owned()), ..Style::default() };
    let mut report = Reporter::new(style, software());
    let mut said = report.begin(setup(client(), Direction::Reverse, 1));
    report.connected(stream(5, false, 42_804, 5301));
    said += &report.interval(interval(true, 0, SECOND, MEGABYTE_AND_A_QUARTER, &[(5, false)]));
    said += &report.interval(interval(false, 0, SECOND, MEGABYTE_AND_A_QUARTER, &[(5, false)]));
    let expected = "\
mytitle:  Connecting to host 127.0.0.1, port 5301
mytitle:  Reverse mode, remote host 127.0.0.1 is sending
mytitle:  [ ID] Interval           Transfer     Bitrate
mytitle:  [  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  (omitted)
mytitle:  [  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  
";
    assert_eq!(said, expected);
}

#[test]
fn json_says_nothing_before_the_end() {
    let style = Style { json: Some(Json::Document), ..Style::default() };
    let mut report = Reporter::new(style, software());
    assert_eq!(report.listening(5301, 1), "");
    assert_eq!(report.begin(setup(client(), Direction::Bidirectional, 1)), "");
    assert_eq!(report.connected(stream(5, true, 1, 5301)), "");
    assert_eq!(report.connected(stream(7, false, 2, 5301)), "");
    let ids = [(5, true), (7, false)];
    assert_eq!(report.interval(interval(true, 0, SECOND, 7, &ids)), "");
    assert_eq!(report.interval(interval(false, 0, SECOND, 1000, &ids)), "");
    let stream = |id, sent, received| StreamTotal {
        id,
        sent: total(sent, SECOND, Some(3)),
        received: total(received, 2 * SECOND, None),
    };
    assert_eq!(report.end(end(vec![stream(5, 1000, 900), stream(7, 2000, 1900)])), "");
    let document: serde_json::Value = serde_json::from_str(&report.done()).expect("JSON");

    let start = &document["start"];
    assert_eq!(start["timestamp"]["timesecs"], 1_795_270_491);
    assert_eq!(start["connecting_to"]["port"], 5301);
    assert_eq!(start["tcp_mss_default"], 32_768);
    assert_eq!((&start["test_start"]["duration"], &start["test_start"]["bytes"]), (&1.into(), &0.into()));
    assert_eq!(start["connected"][1]["remote_port"], 5301);

    let counted = &document["intervals"][1];
    assert_eq!(document["intervals"][0]["sum"]["omitted"], true);
    assert_eq!(counted["sum"]["bits_per_second"], 8000.0);
    assert_eq!(
        (&counted["sum"]["sender"], &counted["sum_bidir_reverse"]["sender"]),
        (&true.into(), &false.into())
    );
    assert_eq!(counted["streams"][0]["rtt"], 80);
    assert!(counted["streams"][1].get("rtt").is_none(), "{counted}");

    let end = &document["end"];
    assert_eq!((&end["sum_sent"]["bytes"], &end["sum_received"]["bytes"]), (&1000.into(), &900.into()));
    assert_eq!(end["sum_received_bidir_reverse"]["bytes"], 1900);
    assert_eq!(end["sum_received"]["bits_per_second"], 3600.0);
    assert_eq!(end["streams"][0]["sender"]["mean_rtt"], 80);
    assert_eq!(end["streams"][1]["sender"]["max_rtt"], 0, "the other end's is not told");
    assert!(document.get("error").is_none());
}

/// The events of a stream, with their data.
fn lines(text: &str) -> Vec<(String, serde_json::Value)> {
    let parse = |line| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        (line["event"].as_str().expect("text").to_owned(), line["data"].take())
    };
    text.lines().map(parse).collect()
}

#[test]
fn a_stream_has_the_parts_of_the_document_as_they_come() {
    let [document, stream] = [Json::Document, Json::Stream].map(|json| {
        let mut report = Reporter::new(Style { json: Some(json), ..Style::default() }, software());
        report.labels(Some("title".to_owned()), None);
        let begun = report.begin(setup(client(), Direction::Forward, 1));
        let connected = report.connected(stream(5, true, 1, 5301));
        assert_eq!((&*begun, &*connected), ("", ""));
        let mut said = vec![report.started()];
        for second in 0..3 {
            let time = second * SECOND;
            said.push(report.interval(interval(false, time, time + SECOND, 1000, &[(5, true)])));
        }
        let total = StreamTotal {
            id: 5,
            sent: total(3000, 3 * SECOND, Some(3)),
            received: total(3000, 3 * SECOND, None),
        };
        assert_eq!(report.end(end(vec![total])), "");
        assert!(json == Json::Document || report.record.intervals.is_empty(), "a client keeps none");
        said.push(report.done());
        said
    });
    let document: serde_json::Value = serde_json::from_str(&document.concat()).expect("one document");
    assert!(stream.iter().all(|said| said.ends_with('\n')), "{stream:?}");
    let events = lines(&stream.concat());
    let names: Vec<_> = events.iter().map(|(event, _)| &**event).collect();
    assert_eq!(names, ["start", "interval", "interval", "interval", "title", "end"]);
    assert_eq!(events[0].1, document["start"]);
    for (place, (_, data)) in events[1..4].iter().enumerate() {
        assert_eq!(*data, document["intervals"][place]);
    }
    assert_eq!(events[5].1, document["end"]);
    let sum: u64 = events[1..4].iter().filter_map(|(_, data)| data["sum"]["bytes"].as_u64()).sum();
    assert_eq!(document["end"]["sum_sent"]["bytes"], sum);
}

#[test]
fn a_stream_that_fails_ends_with_its_error() {
    let mut report = Reporter::new(Style { json: Some(Json::Stream), ..Style::default() }, software());
    report.failed("unable to connect to server: Connection refused");
    let expected = ("error".to_owned(), "unable to connect to server: Connection refused".into());
    assert_eq!(lines(&report.done()), [expected]);
}

#[test]
fn a_failure_before_anything_is_a_document_with_an_error() {
    let style = Style { json: Some(Json::Document), ..Style::default() };
    let mut report = Reporter::new(style, software());
    report.failed("unable to connect to server: Connection refused");
    let document: serde_json::Value = serde_json::from_str(&report.done()).expect("JSON");
    let expected = serde_json::json!({
        "start": { "connected": [], "version": "ackline 0.1.0", "system_info": "Linux host 6.1.0 x86_64" },
        "intervals": [],
        "end": {},
        "error": "unable to connect to server: Connection refused",
    });
    assert_eq!(document, expected);
}

#[test]
fn a_server_that_knows_only_its_half_counts_the_other_as_nothing() {
    let style = Style { json: Some(Json::Document), ..Style::default() };
    let mut report = Reporter::new(style, software());
    report.begin(setup(server(9), Direction::Forward, 1));
    report.connected(stream(5, false, 5301, 1));
    report.end(End {
        remote_cpu: None,
        sender_congestion: None,
        ..end(vec![StreamTotal { id: 5, sent: None, received: total(1000, SECOND, None) }])
    });
    let ServerOutput::Json(document) = report.server_output() else { panic!("JSON") };
    let sender = &document["end"]["streams"][0]["sender"];
    assert_eq!((&sender["bytes"], &sender["seconds"]), (&0.into(), &1.0.into()));
    assert!(sender.get("retransmits").is_none(), "{sender}");
    assert!(document["end"].get("sender_tcp_congestion").is_none());
    assert_eq!(document["end"]["receiver_tcp_congestion"], "bbr");
    assert_eq!(document["end"]["sum_received"]["bytes"], 1000);
    assert_eq!(document["start"]["accepted_connection"]["host"], "127.0.0.1");
}

#[test]
fn what_is_kept_is_bounded() {
    let mut json = Reporter::new(Style { json: Some(Json::Document), ..Style::default() }, software());
    let mut text = Reporter::new(Style::default(), software());
    let ids: Vec<(u32, bool)> = (0..128).map(|id| (id, false)).collect();
    for (report, seconds) in [(&mut json, 10_000), (&mut text, 200)] {
        report.begin(setup(server(9), Direction::Forward, 128));
        for second in 0..seconds {
            report.interval(interval(false, second * SECOND, (second + 1) * SECOND, 1000, &ids));
        }
    }
    assert_eq!(json.record.intervals.len(), (1 << 20) / 128);
    assert!(text.record.intervals.is_empty());
    let ServerOutput::Text(shown) = text.server_output() else { panic!("text") };
    assert!((1_000_000..=1 << 20).contains(&shown.len()), "{}", shown.len());
}
