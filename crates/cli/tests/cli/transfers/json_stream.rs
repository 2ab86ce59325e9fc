//! `--json-stream` of `send`, `recv` and `bench`.

use crate::common::{BackgroundCommand, Exit, ackline, noise, run, scratch, text};
use crate::net::*;
use rustix::process::Signal;
use serde_json::Value;

/// The events of a stream and their data.
fn events(lines: &[u8]) -> Vec<(String, Value)> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let parse = |line| {
        let mut line: Value = serde_json::from_slice(line).expect("a line is a JSON object");
        let object = line.as_object().expect("an object");
        assert_eq!(object.keys().collect::<Vec<_>>(), ["data", "event"]);
        (line["event"].as_str().expect("text").to_owned(), line["data"].take())
    };
    lines.map(parse).collect()
}

/// What the intervals add up to, which follow one another without a gap.
fn sum(events: &[(String, Value)]) -> u64 {
    let mut end = 0.0;
    let mut sum = 0;
    for (_, data) in events.iter().filter(|(event, _)| event == "interval") {
        assert_eq!(data["start"].as_f64(), Some(end), "{data}");
        end = data["end"].as_f64().expect("a number");
        sum += data["bytes"].as_u64().expect("a number");
    }
    sum
}

fn last_is_an_error(ended: &Exit, status: i32) {
    assert_eq!(ended.status, Some(status), "{ended:?}");
    let events = events(&ended.stdout);
    let (event, data) = events.last().expect("lines");
    assert_eq!(event, "error");
    assert!(data.is_string() || data["exit"] == status, "{data}");
}

#[test]
fn a_sender_tells_of_its_transfer_while_it_runs() {
    with_tun("transfers::json_stream::a_sender_tells_of_its_transfer_while_it_runs", || {
        let (_directory, path) = scratch("data");
        std::fs::write(&path, noise(1_000_001, 3)).expect("written");
        let (listener, to) = kernel_listener();
        let paced = ["--egress-rate", "16mbit", "--interval", "100ms"];
        let args = [&["send", "--json-stream", text(&path), &to][..], &paced].concat();
        let child = BackgroundCommand::start(&mut ackline(&args));
        let (stream, _) = accept(&listener);
        assert_eq!(read_all(stream).expect("read to the end").len(), 1_000_001);
        let ended = child.end();
        succeeded(&ended);
        let events = events(&ended.stdout);
        let [(first, start), .., (last, end)] = &events[..] else { panic!("{events:?}") };
        assert_eq!((&**first, &**last), ("start", "end"));
        // Half a second.
        assert!(events.len() > 4 && events[1].0 == "interval", "{events:?}");
        assert_eq!((sum(&events), end["bytes"].as_u64()), (1_000_001, Some(1_000_001)));
        for field in ["command", "file", "peer", "local", "offload"] {
            assert!(!start[field].is_null() && start[field] == end[field], "{field}: {start} {end}");
        }
        assert_eq!((&end["ok"], &end["error"]), (&true.into(), &Value::Null));
    });
}

#[test]
fn a_receiver_tells_of_one_transfer_and_of_many() {
    with_tun("transfers::json_stream::a_receiver_tells_of_one_transfer_and_of_many", || {
        let (_directory, path) = scratch("copy");
        let child = receiver(&["--json-stream", "--interval", "100ms", "-O", text(&path)]);
        assert_eq!(deliver(connect(), &noise(500_000, 4)).expect("taken"), 0);
        let ended = child.end();
        succeeded(&ended);
        let one = events(&ended.stdout);
        let [(first, start), .., (last, end)] = &one[..] else { panic!("{one:?}") };
        assert_eq!((&**first, &**last), ("start", "end"));
        assert_eq!((sum(&one), end["bytes"].as_u64()), (500_000, Some(500_000)));
        assert_eq!((&start["listen"], &start["peer"]), (&"198.18.0.2:5001".into(), &end["peer"]));
    });
    with_tun("transfers::json_stream::a_receiver_tells_of_one_transfer_and_of_many", || {
        let (directory, _) = scratch("");
        let args = ["--keep", "--json-stream", "--interval", "100ms", "-O", text(directory.path())];
        let child = receiver(&args);
        for size in [200_000, 300_000] {
            assert_eq!(deliver(connect(), &noise(size, 5)).expect("taken"), 0);
        }
        child.signal(Signal::TERM);
        let ended = child.end();
        succeeded(&ended);
        let many = events(&ended.stdout);
        assert_eq!(many[0].0, "start");
        let sizes = many.iter().filter(|(event, _)| event == "transfer").map(|(_, data)| &data["bytes"]);
        assert_eq!(sizes.collect::<Vec<_>>(), [200_000, 300_000]);
        let (last, end) = many.last().expect("lines");
        assert_eq!((&**last, sum(&many), end["bytes"].as_u64()), ("end", 500_000, Some(500_000)));
        assert_eq!(end["complete"], 2);
    });
}

#[test]
fn a_wrong_host_is_the_last_line_and_the_exit_status() {
    for args in [
        &["send", "--json-stream", "/dev/null", "no.such.host.invalid:9"][..],
        &["bench", "--json-stream", "-c", "no.such.host.invalid"],
    ] {
        last_is_an_error(&run(args), 4);
    }
    with_tun("transfers::json_stream::a_wrong_host_is_the_last_line_and_the_exit_status", || {
        last_is_an_error(&run(&["send", "--json-stream", "/dev/null", "198.18.0.1:9"]), 4);
        last_is_an_error(&run(&["bench", "--json-stream", "-c", "198.18.0.1"]), 4);
        let ended =
            run(&["recv", "--json-stream", "-l", "198.18.0.2:5001", "--timeout", "100ms", "-O", "/dev/null"]);
        last_is_an_error(&ended, 4);
    });
}

#[test]
fn intervals_need_a_stream() {
    let ended = run(&["send", "--interval", "1", "/dev/null", "198.18.0.1:9"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    let ended = run(&["send", "--json-stream", "--interval", "0.01", "/dev/null", "198.18.0.1:9"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
}
