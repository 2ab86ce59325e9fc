//! `ackline recv` from kernel sockets.

use crate::common::{names, noise, run, said, scratch, text, until};
use crate::net::*;
use rustix::process::Signal;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

#[test]
fn recv_gives_a_complete_file_its_name() {
    with_tun("transfers::recv::recv_gives_a_complete_file_its_name", || {
        for options in [&[][..], &["--plain"], &["--mtu", "9000", "--ack", "csa3"]] {
            let (directory, path) = scratch("copy");
            let child = receiver(&[&["--json", "-O", text(&path)], options].concat());
            let mut stream = connect();
            let data = noise(3_000_001, 4);
            stream.write_all(&data).expect("taken");
            assert!(!path.exists(), "the sender has not finished");
            assert_eq!(deliver(stream, b"!").expect("taken"), 0);
            // The stack's end of the stream means that the file is there.
            let written = std::fs::read(&path).expect("the file");
            assert!(written[..data.len()] == data && written[data.len()..] == *b"!");
            let ended = child.end();
            succeeded(&ended);
            assert_eq!(names(directory.path()), ["copy"]);
            let report = ended.json();
            assert_eq!(
                (&report["ok"], &report["bytes"]),
                (&true.into(), &(data.len() + 1).into()),
                "{report}"
            );
            let of_policy = if options.contains(&"csa3") { "muds" } else { "interactive" };
            assert!(report["metrics"]["ack"][of_policy].is_number(), "{report}");
            assert_eq!(Path::new(report["file"].as_str().expect("text")), path);
        }
    });
}

#[test]
fn recv_writes_to_standard_output() {
    with_tun("transfers::recv::recv_writes_to_standard_output", || {
        let child = receiver(&["--json"]);
        let data = noise(400_000, 5);
        let ended = child.end_while(|| assert_eq!(deliver(connect(), &data).expect("taken"), 0));
        succeeded(&ended);
        assert!(ended.stdout == data);
        let report: serde_json::Value = serde_json::from_str(&ended.stderr).expect("one JSON document");
        assert_eq!(report["bytes"], data.len());
    });
}

#[test]
fn an_empty_stream_is_an_empty_file() {
    with_tun("transfers::recv::an_empty_stream_is_an_empty_file", || {
        let (_directory, path) = scratch("copy");
        let child = receiver(&["-q", "-O", text(&path)]);
        assert_eq!(deliver(connect(), b"").expect("taken"), 0);
        succeeded(&child.end());
        assert_eq!(std::fs::read(&path).expect("the file"), b"");
    });
}

#[test]
fn a_reset_transfer_leaves_no_file() {
    with_tun("transfers::recv::a_reset_transfer_leaves_no_file", || {
        let (directory, path) = scratch("copy");
        std::fs::write(&path, "old").expect("written");
        let child = receiver(&["-O", text(&path)]);
        let mut stream = connect();
        stream.write_all(&noise(100_000, 6)).expect("taken");
        reset(stream);
        let ended = child.end();
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert!(ended.complaint().contains(&format!("{KERNEL}:")), "{ended:?}");
        assert!(ended.complaint().contains("reset the connection after"), "{ended:?}");
        assert_eq!(names(directory.path()), ["copy"]);
        assert_eq!(std::fs::read(&path).expect("the file"), b"old");
    });
}

#[test]
fn a_full_disk_is_told_and_the_sender_is_reset() {
    with_tun("transfers::recv::a_full_disk_is_told_and_the_sender_is_reset", || {
        let child = receiver(&["-O", "/dev/full"]);
        let outcome = deliver(connect(), &noise(1_000_000, 7));
        assert!(outcome.is_err(), "the sender must not believe that all is well");
        let ended = child.end();
        assert_eq!(ended.status, Some(5), "{ended:?}");
        assert_eq!(ended.complaint(), "ackline: cannot write /dev/full: no space left on device");
    });
}

#[test]
fn an_interrupted_receiver_leaves_no_file() {
    with_tun("transfers::recv::an_interrupted_receiver_leaves_no_file", || {
        let (directory, path) = scratch("copy");
        let child = receiver(&["-O", text(&path)]);
        let mut stream = connect();
        stream.write_all(&noise(100_000, 8)).expect("taken");
        until("data in a file", || child.written(directory.path()));
        child.signal(Signal::INT);
        let ended = child.end();
        assert_eq!(ended.status, Some(130), "{ended:?}");
        assert!(ended.complaint().starts_with("ackline: SIGINT: stopped after "), "{ended:?}");
        assert!(names(directory.path()).is_empty());
        // What was sent into the void is answered by a reset, or by nothing: the host is gone.
        drop(stream);
    });
}

#[test]
fn keep_serves_many_at_once_until_a_signal() {
    with_tun("transfers::recv::keep_serves_many_at_once_until_a_signal", || {
        const SENDERS: usize = 24;
        let (directory, _) = scratch("");
        let child = receiver(&["--keep", "--json", "-O", text(directory.path())]);
        let mut streams: Vec<TcpStream> = (0..SENDERS).map(|_| connect()).collect();
        // All are under way before the first one ends.
        for (index, stream) in streams.iter_mut().enumerate() {
            stream.write_all(&noise(10_000, index as u64)).expect("taken");
        }
        until("24 open files", || (child.open_files(directory.path()).len() == SENDERS).then_some(()));
        assert!(names(directory.path()).is_empty(), "a file has its name when it is complete");
        let mut expected = Vec::new();
        for (index, stream) in streams.into_iter().enumerate() {
            let from = stream.local_addr().expect("bound").port();
            let more = noise(20_000 + index, 99);
            assert_eq!(deliver(stream, &more).expect("taken"), 0);
            expected.push((format!("{KERNEL}-{from}-1.data"), [noise(10_000, index as u64), more].concat()));
        }
        child.signal(Signal::TERM);
        let ended = child.end();
        succeeded(&ended);
        for (name, data) in &expected {
            assert!(std::fs::read(directory.path().join(name)).expect("a file") == *data, "{name}");
        }
        assert_eq!(names(directory.path()).len(), SENDERS);
        let lines: Vec<serde_json::Value> = ended
            .stdout
            .split(|&b| b == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).expect("JSON"))
            .collect();
        assert_eq!(lines.len(), SENDERS + 1);
        let total: usize = expected.iter().map(|(_, data)| data.len()).sum();
        let summary = &lines[SENDERS];
        assert_eq!((&summary["event"], &summary["ok"]), (&"summary".into(), &true.into()), "{summary}");
        assert_eq!((&summary["complete"], &summary["aborted"]), (&SENDERS.into(), &0.into()), "{summary}");
        assert_eq!(summary["bytes"], total);
    });
}

#[test]
fn keep_tells_what_a_signal_cut_short() {
    with_tun("transfers::recv::keep_tells_what_a_signal_cut_short", || {
        let (directory, _) = scratch("");
        let child = receiver(&["--keep", "--grace", "200ms", "-O", text(directory.path())]);
        assert_eq!(deliver(connect(), b"whole").expect("taken"), 0);
        let mut slow = connect();
        slow.write_all(b"part").expect("taken");
        until("data in a file", || child.written(directory.path()));
        child.signal(Signal::INT);
        let error = slow.read(&mut [0; 16]).expect_err("the slow one is reset");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let ended = child.end();
        assert_eq!(ended.status, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("1 complete, 1 aborted"), "{ended:?}");
        assert!(ended.stderr.contains("was reset after 4 B; nothing of it was kept"), "{ended:?}");
        let names = names(directory.path());
        assert!(names.len() == 1 && names[0].ends_with("-1.data"), "{names:?}");
    });
}

#[test]
fn a_late_sender_finishes_after_the_signal() {
    with_tun("transfers::recv::a_late_sender_finishes_after_the_signal", || {
        let (directory, _) = scratch("");
        let (_other, socket) = scratch("control");
        let control = ["--control", text(&socket)];
        let child =
            receiver(&[&["--keep", "--grace", "20", "-O", text(directory.path())], &control[..]].concat());
        let mut late = connect();
        late.write_all(b"first half, ").expect("taken");
        until("data in a file", || child.written(directory.path()));
        child.signal(Signal::TERM);
        // A sender that tries could come before the end of listening.
        until("the end of listening", || {
            (!said(&[&["ss", "-ltn"], &control[..]].concat()).contains("LISTEN")).then_some(())
        });
        assert_eq!(deliver(late, b"second half").expect("taken"), 0);
        let ended = child.end();
        succeeded(&ended);
        assert!(ended.stderr.contains("1 complete, 0 aborted"), "{ended:?}");
        let file = directory.path().join(&names(directory.path())[0]);
        assert_eq!(std::fs::read(file).expect("the file"), b"first half, second half");
    });
}

#[test]
fn a_name_in_use_is_told() {
    with_tun("transfers::recv::a_name_in_use_is_told", || {
        let first = receiver(&["-q"]);
        let ended = run(&["send", "/dev/null", "198.18.0.1:9"]);
        assert_eq!(ended.status, Some(3), "{ended:?}");
        assert!(ended.complaint().contains("the interface name \"ack0\" is in use"), "{ended:?}");
        let ended = run(&["send", "--tun", "lo", "/dev/null", "198.18.0.1:9"]);
        assert_eq!(ended.status, Some(3), "{ended:?}");
        first.signal(Signal::INT);
        assert_eq!(first.end().status, Some(130));
    });
}
