//! `ackline nstat`: its columns are those of the kernel's, and it remembers.

use crate::common::{BackgroundCommand, Exit, ackline, names, noise, scratch, text, until};
use crate::net::*;
use crate::usage::refused;
use ackline::runtime::testing::has_programs;
use rustix::process::Signal;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// Name, value and rate of each line that `nstat` printed.
fn columns(printed: &str) -> Vec<(String, u64, f64)> {
    let mut lines = printed.lines();
    assert!(lines.next().is_some_and(|source| source.starts_with('#')), "{printed}");
    let cells = lines.map(|line| {
        let (name, value, rate) = (&line[..32], &line[32..48], &line[48..]);
        assert!(!name.starts_with(' ') && !value.starts_with(' '), "{line:?}");
        let number = value.trim_end().parse().unwrap_or_else(|_| panic!("{line:?}"));
        (name.trim_end().to_owned(), number, rate.trim_start().parse().expect("a number"))
    });
    cells.collect()
}

fn value(rows: &[(String, u64, f64)], name: &str) -> Option<u64> {
    rows.iter().find(|(known, ..)| known == name).map(|(_, value, _)| *value)
}

/// `ackline nstat` of whoever has this runtime directory.
fn nstat(runtime: &Path, args: &[&str]) -> Exit {
    let mut command = ackline(&[&["nstat"], args].concat());
    BackgroundCommand::start(command.env("XDG_RUNTIME_DIR", runtime)).end()
}

fn printed(runtime: &Path, args: &[&str]) -> String {
    let ended = nstat(runtime, args);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    String::from_utf8(ended.stdout).expect("UTF-8")
}

#[test]
fn the_kernels_nstat_has_the_same_columns() {
    if !has_programs("watchers::nstat::the_kernels_nstat_has_the_same_columns", &["nstat"]) {
        return;
    }
    let output = Command::new("nstat").args(["-asz"]).output().expect("it runs");
    let rows = columns(&String::from_utf8(output.stdout).expect("UTF-8"));
    assert!(value(&rows, "TcpInSegs").is_some());
}

#[test]
fn increments_are_those_since_the_last_call_also_of_a_new_process() {
    with_tun("watchers::nstat::increments_are_those_since_the_last_call_also_of_a_new_process", || {
        let (directory, path) = scratch("copy");
        let runtime = directory.path();
        let start = || {
            let arguments = ["recv", "-q", "-O", text(&path), "-l", "198.18.0.2:5001"];
            BackgroundCommand::start(ackline(&arguments).env("XDG_RUNTIME_DIR", runtime))
        };
        let mut first = start();
        let mut stream = connect();
        let data = noise(500_000, 3);
        stream.write_all(&data).expect("taken");
        let all = |args: &[&str]| columns(&printed(runtime, args));
        let arrived = until("all of it", || {
            let json =
                crate::common::run(&["ss", "-j", "--control", text(&socket(runtime, &mut first))]).json();
            (json[0]["connections"][0]["bytes_received"] == 500_000).then_some(json)
        });
        let segments = arrived[0]["connections"][0]["segs_in"].as_u64().expect("a number");

        let absolute = all(&["-az"]);
        assert_eq!(value(&absolute, "TcpPassiveOpens"), Some(1));
        assert_eq!(value(&absolute, "TcpCurrEstab"), Some(1));
        assert_eq!(value(&absolute, "TcpRetransSegs"), Some(0));
        assert!(value(&absolute, "TcpInSegs") >= Some(segments));
        assert!(value(&absolute, "AcklineControlRequests") >= Some(1));
        assert!(absolute.iter().any(|(name, _, rate)| name == "TcpInSegs" && *rate > 0.0), "{absolute:?}");

        stream.write_all(&data).expect("taken");
        until("more", || value(&all(&["-s"]), "IpInReceives"));
        let increments = all(&["-s", "tcp*"]);
        assert_eq!(value(&increments, "TcpPassiveOpens"), None, "it was counted before");
        assert_eq!(value(&increments, "TcpCurrEstab"), None, "no count of events");
        assert!(increments.iter().all(|(name, ..)| name.starts_with("Tcp")), "{increments:?}");
        assert_eq!(value(&all(&["-sz"]), "TcpPassiveOpens"), Some(0));
        assert_eq!(printed(runtime, &["-n"]), "");
        assert_eq!(value(&all(&["TcpInSegs"]), "TcpPassiveOpens"), None);

        let json: serde_json::Value =
            serde_json::from_str(&printed(runtime, &["-ajs", "TcpPassive*"])).expect("JSON");
        assert_eq!(json, serde_json::json!({ "ackline": { "TcpPassiveOpens": 1 } }));
        assert!(printed(runtime, &["-ajsp", "TcpPassive*"]).contains("\n        \"TcpPassiveOpens\": 1\n"));
        let pid = first.child().id().to_string();
        assert_eq!(value(&all(&["-as", "--pid", &pid]), "TcpPassiveOpens"), Some(1));
        assert_eq!(value(&all(&["-rs"]), "TcpPassiveOpens"), Some(1), "without a history");

        first.signal(Signal::KILL);
        first.end();
        let mut second = start();
        let _stream = connect();
        until("the new process", || (value(&all(&["-s"]), "TcpPassiveOpens") == Some(1)).then_some(()));
        assert_eq!(value(&all(&[]), "TcpPassiveOpens"), Some(1), "it counts from zero");
        assert_eq!(value(&all(&[]), "TcpPassiveOpens"), None);
        let pid = second.child().id();
        let history = std::fs::read_to_string(runtime.join("ackline/nstat.json")).expect("there");
        assert!(
            history.contains(&format!("\"pid\":{pid}")) && history.matches("\"pid\":").count() == 1,
            "{history}"
        );

        std::fs::write(runtime.join("ackline/nstat.json"), "{").expect("written");
        let ended = nstat(runtime, &[]);
        assert!(ended.status == Some(0) && ended.stderr.contains("is not one: ignoring it"), "{ended:?}");
        second.signal(Signal::TERM);
        second.end();
    });
}

#[test]
fn what_captures_and_traces_lose_is_shown_while_the_command_runs() {
    with_tun("watchers::nstat::what_captures_and_traces_lose_is_shown_while_the_command_runs", || {
        let (directory, path) = scratch("copy");
        let [socket, capture, trace] =
            ["c.sock", "out.pcapng", "out.qlog"].map(|name| directory.path().join(name));
        let files =
            ["--pcap", text(&capture), "--pcap-size", "8K", "--trace", text(&trace), "--trace-size", "8K"];
        let at = ["--control", text(&socket)];
        let child = receiver(&[&["-q", "--plain", "-O", text(&path)], &files[..], &at].concat());
        let mut stream = connect();
        let (data, more) = (noise(500_000, 3), noise(10, 4));
        stream.write_all(&data).expect("taken");
        let counted = until("losses", || {
            let all = nstat(directory.path(), &[&["-azsj", "Ackline*"], &at[..]].concat()).json();
            let count = |name: &str| all["ackline"][name].as_u64().expect("a counter");
            let lost = count("AcklineCaptureUnwritten") > 0 && count("AcklineTraceUnwritten") > 0;
            lost.then(|| ["AcklineCapturePackets", "AcklineCaptureDropped", "AcklineTraceRecords"].map(count))
        });
        assert!(counted[0] > 0 && counted[2] > 0, "{counted:?}");
        assert_eq!(counted[1], 0, "the queue had room");
        assert_eq!(deliver(stream, &more).expect("taken"), 0);
        let ended = child.end();
        succeeded(&ended);
        assert_eq!(ended.stderr.matches("is cut short after").count(), 2, "{ended:?}");
        assert_eq!(std::fs::read(&path).expect("the file"), [data, more].concat());
    });
}

fn socket(runtime: &Path, child: &mut BackgroundCommand) -> std::path::PathBuf {
    runtime.join(format!("ackline/{}-recv.sock", child.child().id()))
}

#[test]
fn nothing_runs_and_nothing_is_wrong() {
    let (directory, _) = scratch("unused");
    assert_eq!(printed(directory.path(), &["-s"]), "#ackline\n");
    assert_eq!(names(directory.path()), [] as [&str; 0]);
    assert_eq!(printed(directory.path(), &["-j"]), "{\"ackline\":{}}\n");
    assert_eq!(names(&directory.path().join("ackline")), ["nstat.json"]);
    let complaint = refused(&["nstat", "-s", "["], 2);
    assert!(complaint.contains("\"[\": not a pattern"), "{complaint}");
}
