//! `ackline explain`: captures of `sim` and traces from the command line, and what is said of files
//! that are none.

use crate::common::{BackgroundCommand, ackline, run, scratch, text};
use crate::net::*;
use crate::usage::refused;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A capture of the scenario recovery, with one loss in a thousand: headers of three seconds.
fn captured(folder: &Path) -> PathBuf {
    let file = folder.join("recovery.toml");
    let example = run(&["sim", "--example", "recovery"]);
    fs::write(&file, &example.stdout).expect("written");
    let out = folder.join("results");
    let more = ["--points", "0", "--set", "repeat=1", "--set", "duration=3s", "--set", "measure.from=1s"];
    let ended =
        run(&[&["sim", text(&file), "-q", "--pcap", "--snaplen", "128", "-o", text(&out)], &more[..]]
            .concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    out
}

#[test]
fn a_run_of_sim_is_explained_from_its_folder_and_its_file_alike() {
    let (folder, _) = scratch("");
    let out = captured(folder.path());
    let page = run(&["explain", text(&out)]);
    assert_eq!(page.status, Some(0), "{page:?}");
    let shown = String::from_utf8(page.stdout).expect("UTF-8");
    for part in [
        "Connection 1: 10.0.0.1:",
        "Slow start",
        "congestion window",
        "by SACK or duplicate ACKs",
        "(stated)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.lines().all(|line| line.chars().count() <= 110), "{shown}");
    let file =
        fs::read_dir(out.join("pcap")).expect("a folder").next().expect("a file").expect("readable").path();
    let again = run(&["explain", text(&file)]);
    assert_eq!(String::from_utf8(again.stdout).expect("UTF-8"), shown);

    let json = run(&["explain", text(&file), "--json"]);
    let story: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let losses = &story["connections"][0]["directions"][0]["losses"];
    assert_eq!(losses["retransmissions"], losses["stated"], "{losses}");
    assert!(losses["dropped"].as_u64() > Some(0), "{losses}");
}

#[test]
fn connections_are_chosen_by_number_and_filter() {
    let (folder, _) = scratch("");
    let out = captured(folder.path());
    let file = text(&out);
    assert_eq!(run(&["explain", file, "--filter", "dport = :1024"]).status, Some(0));
    let none = "ackline: there is no connection that the filter selects; there are 1 (ackline explain FILE lists them)";
    assert_eq!(refused(&["explain", file, "--filter", "sport = :1024"], 2), none);
    assert!(refused(&["explain", file, "--conn", "2"], 2).contains("no connection 2; there are 1"));
    assert!(
        refused(&["explain", file, "--filter", "state established"], 2).contains("connections that are open")
    );
}

#[test]
fn plots_are_in_one_file_that_needs_no_network() {
    let (folder, _) = scratch("");
    let file = folder.path().join("story.html");
    let ended = run(&["explain", text(&captured(folder.path())), "--html", text(&file)]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let html = fs::read_to_string(&file).expect("written");
    for part in [
        "<h2>Connection 1: 10.0.0.1:",
        "<p><strong>The client waited most for ",
        "Time-sequence diagram",
        "again, by SACK or duplicate ACKs",
        "drag to zoom",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("Time-sequence diagram of the server"), "it sent no data");
    let elsewhere = |part: &str| html.replace("http://www.w3.org/", "").contains(part);
    assert!(!["http://", "https://", "src=", "href="].into_iter().any(elsewhere));
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
    assert!(
        refused(&["explain", text(&folder.path().join("results")), "--html", "/nowhere/x.html"], 5)
            .contains("cannot write")
    );
}

#[test]
fn a_live_transfer_to_the_kernel_is_explained() {
    with_tun("explain::a_live_transfer_to_the_kernel_is_explained", || {
        let (directory, path) = scratch("data");
        let capture = directory.path().join("out.pcapng");
        fs::write(&path, vec![b'Z'; 3_000_001]).expect("written");
        let (listener, to) = kernel_listener();
        let args = ["send", text(&path), &to, "--pcap", text(&capture), "--pcap-buffer", "256M"];
        let child = BackgroundCommand::start(&mut ackline(&args));
        let (stream, _) = accept(&listener);
        read_all(stream).expect("read to the end");
        succeeded(&child.end());
        let story = run(&["explain", text(&capture), "--json"]).json();
        let connection = &story["connections"][0];
        assert_eq!(connection["vantage"]["place"], "client", "{connection}");
        assert_eq!(connection["vantage"]["stated"], true);
        let direction = &connection["directions"][0];
        assert_eq!(direction["bytes"], 3_000_001, "{direction}");
        assert_eq!((&direction["uncaptured"], &direction["unacknowledged"]), (&0.into(), &0.into()));
        let losses = &direction["losses"];
        assert_eq!(losses["retransmissions"], losses["stated"], "{losses}");
        assert!(connection["end"]["fin_at_ns"][0].is_u64() && connection["end"]["reset"].is_null());
    });
}

#[test]
fn a_trace_of_a_transfer_to_the_kernel_is_explained_also_from_standard_input() {
    with_tun("explain::a_trace_of_a_transfer_to_the_kernel_is_explained_also_from_standard_input", || {
        let (directory, path) = scratch("data");
        let trace = directory.path().join("out.qlog");
        fs::write(&path, vec![b'Z'; 3_000_001]).expect("written");
        let (listener, to) = kernel_listener();
        let args = ["send", text(&path), &to, "--trace", text(&trace), "--trace-buffer", "256M"];
        let child = BackgroundCommand::start(&mut ackline(&args));
        let (stream, _) = accept(&listener);
        read_all(stream).expect("read to the end");
        succeeded(&child.end());
        let story = run(&["explain", text(&trace), "--json"]).json();
        assert_eq!((&story["cut_short"], &story["traces"]["missed"]), (&false.into(), &0.into()));
        let connection = &story["connections"][0];
        assert_eq!((&connection["source"], &connection["stated"]), (&"trace".into(), &true.into()));
        let direction = &connection["directions"][0];
        assert_eq!(direction["bytes"], 3_000_001, "{direction}");
        assert_eq!((&direction["uncaptured"], &direction["unacknowledged"]), (&0.into(), &0.into()));
        assert!(direction["congestion"]["cwnd_max"].as_u64() > Some(0), "{direction}");
        assert!(connection["end"]["fin_at_ns"][0].is_u64() && connection["error"].is_null());

        let page = run(&["explain", text(&trace)]);
        let mut piped = ackline(&["explain", "-"]);
        piped.stdin(fs::File::open(&trace).expect("it is there"));
        let piped = piped.output().expect("it runs");
        assert_eq!(String::from_utf8(piped.stdout).ok(), String::from_utf8(page.stdout).ok());

        // A command that was killed leaves such a file.
        let whole = fs::read(&trace).expect("it is there");
        // Within an event: each begins with a record separator (RFC 7464, section 2.2).
        let event = whole[..whole.len() / 2].iter().rposition(|octet| *octet == 0x1e).expect("an event");
        fs::write(&trace, &whole[..event + 10]).expect("written");
        let cut = run(&["explain", text(&trace)]);
        assert_eq!(cut.status, Some(0), "{cut:?}");
        let shown = String::from_utf8(cut.stdout).expect("UTF-8");
        for part in
            ["of the client's stack", "open at the end of the trace", "ends within a packet or an event"]
        {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let html = directory.path().join("story.html");
        assert_eq!(run(&["explain", text(&trace), "--html", text(&html)]).status, Some(0));
        assert!(fs::read_to_string(&html).expect("written").contains("congestion window"));
    });
}

/// The stack opens the connection for the upload, and the far end the one for the download.
#[test]
fn the_ends_of_the_demo_are_told_by_who_sent_the_syn() {
    let (folder, _) = scratch("");
    let file = folder.path().join("demo.pcapng");
    let args = ["demo", "--json", "--device", "channel", "--size", "1M", "--pcap", text(&file)];
    succeeded(&run(&args));
    let story = run(&["explain", text(&file), "--json"]).json();
    let connections = story["connections"].as_array().expect("a list");
    let ends: Vec<_> = connections.iter().map(|it| (&it["client"], &it["server"], &it["vantage"])).collect();
    let [(up_client, up_server, up), (down_client, down_server, down)] = ends[..] else {
        panic!("two connections: {story}")
    };
    let is = |end: &Value, address: &str| end.as_str().is_some_and(|end| end.starts_with(address));
    assert!(is(up_client, "198.18.0.2:") && is(up_server, "198.18.0.1:"), "{up_client} > {up_server}");
    assert!(
        is(down_client, "198.18.0.1:") && is(down_server, "198.18.0.2:"),
        "{down_client} > {down_server}"
    );
    assert_eq!((&up["place"], &down["place"]), (&"client".into(), &"server".into()));
    for connection in connections {
        let bytes = connection["directions"].as_array().expect("two").iter().map(|it| it["bytes"].as_u64());
        assert_eq!(bytes.collect::<Vec<_>>(), [Some(1 << 20), Some(0)], "{connection}");
    }
}

#[test]
fn what_is_no_capture_is_refused() {
    let (folder, _) = scratch("");
    let at = |name: &str, content: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, content).expect("written");
        file
    };
    let file = at("scenario.toml", b"duration = \"3s\"");
    let said = refused(&["explain", text(&file)], 5);
    assert!(
        said.contains(
            "scenario.toml: neither a capture nor a trace: it begins with 64 75 72 61; pcap and pcapng"
        ),
        "{said}"
    );
    let other =
        b"\x1e{\"file_schema\":\"urn:x\",\"serialization_format\":\"\",\"trace\":{\"event_schemas\":[]}}\n";
    assert!(refused(&["explain", text(&at("other.qlog", other))], 5).contains("a qlog file of \"urn:x\""));
    assert!(refused(&["explain", text(&at("empty", b""))], 5).contains("the file is empty"));
    assert!(refused(&["explain", text(&folder.path().join("none"))], 5).contains("no such file"));
    assert!(refused(&["explain", text(folder.path())], 5).contains("a folder without captures"));
    at("one.pcap", b"");
    at("two.pcap", b"");
    assert!(refused(&["explain", text(folder.path())], 2).contains("a folder with 2 captures"));
}
