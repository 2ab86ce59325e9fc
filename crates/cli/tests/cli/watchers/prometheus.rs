//! `--metrics`: what Prometheus scrapes.

use crate::common::{BackgroundCommand, ackline, noise, scratch, text, until};
use crate::net::*;
use crate::usage::refused;
use ackline::runtime::testing::has_programs;
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Asks like a browser, and returns head and body.
fn get(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("an option");
    stream
        .write_all(format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
        .expect("taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and the end");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

/// The value of a series.
fn value(page: &str, series: &str) -> f64 {
    let found = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{series} in {page}")).parse().expect("a number")
}

/// A receiver with metrics and other options, and where they are.
fn measured(output: &str, others: &[&str]) -> (BackgroundCommand, SocketAddr) {
    let args = ["recv", "-l", "198.18.0.2:5001", "-O", output, "--no-control", "--metrics", "127.0.0.1:0"];
    let mut child = BackgroundCommand::start(&mut ackline(&[&args, others].concat()));
    let stderr = child.child().stderr.take().expect("a pipe");
    let mut lines = BufReader::new(stderr).lines();
    let address = lines.find_map(|line| {
        line.ok()?.strip_prefix("metrics at http://")?.strip_suffix("/metrics")?.parse().ok()
    });
    // What it says later is read to the end.
    std::thread::spawn(move || lines.for_each(drop));
    (child, address.expect("it says where"))
}

#[test]
fn a_scrape_has_what_the_stack_counts() {
    with_tun("watchers::prometheus::a_scrape_has_what_the_stack_counts", || {
        let (directory, path) = scratch("copy");
        let capture = directory.path().join("out.pcapng");
        // It ends before the transfer.
        let (child, address) = measured(text(&path), &["--pcap", text(&capture), "--pcap-size", "8K"]);
        let mut stream = connect();
        stream.write_all(&noise(300_000, 1)).expect("taken");
        let page = until("all of it", || {
            let (head, page) = get(address, "GET /metrics");
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
            let arrived = value(&page, "ackline_device_bytes_total{direction=\"received\"}") > 300_000.0;
            // A thread of its own counts them.
            let lost = value(&page, "ackline_capture_unwritten_total") > 0.0;
            (arrived && lost).then_some(page)
        });
        assert_eq!(value(&page, "ackline_connections{state=\"established\"}"), 1.0);
        assert_eq!(
            value(&page, "ackline_connections{state=\"listening\"}"),
            0.0,
            "one connection was wanted"
        );
        assert_eq!(value(&page, "ackline_tcp_passive_opens_total"), 1.0);
        assert_eq!(value(&page, "ackline_tcp_curr_estab"), 1.0);
        assert!(value(&page, "ackline_memory_limit_bytes") > value(&page, "ackline_curr_memory"));
        assert!(page.contains("# HELP ackline_tcp_in_segs_total TcpInSegs: TCP segments received"), "{page}");
        assert!(page.contains("# TYPE ackline_timer_lateness_seconds histogram"), "{page}");
        let info = page.lines().find(|line| line.starts_with("ackline_stack_info{")).expect("policies");
        assert!(info.contains("cc=\"cubic\"") && info.contains("command=\"recv\""), "{info}");
        for (name, all) in page.lines().filter_map(|line| line.split_once("_bucket{le=\"+Inf\"} ")) {
            let all: f64 = all.parse().expect("a number");
            assert_eq!(value(&page, &format!("{name}_count")), all, "{name}");
        }
        assert!(!page.contains("198.18.0."), "no series of a connection");

        assert!(get(address, "GET /").0.starts_with("HTTP/1.1 404"));
        assert!(get(address, "POST /metrics").0.starts_with("HTTP/1.1 405"));
        let (head, body) = get(address, "HEAD /metrics");
        assert!(head.starts_with("HTTP/1.1 200") && body.is_empty());
        // Whoever asks nothing takes a place, and no more than eight do.
        let silent: Vec<TcpStream> =
            (0..50).map(|_| TcpStream::connect(address).expect("it listens")).collect();
        assert_eq!(deliver(stream, b"more").expect("taken"), 0);
        drop(silent);
        assert_eq!(child.end().status, Some(0));
        assert_eq!(std::fs::read(&path).expect("the file").len(), 300_004);
    });
}

#[test]
fn promtool_finds_nothing_to_complain_of() {
    let name = "watchers::prometheus::promtool_finds_nothing_to_complain_of";
    if !has_programs(name, &["promtool"]) {
        return;
    }
    with_tun(name, || {
        let (_directory, path) = scratch("copy");
        let (child, address) = measured(text(&path), &[]);
        let stream = connect();
        let (_, page) = get(address, "GET /metrics");
        let mut promtool = Command::new("promtool");
        let command = promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut checking = BackgroundCommand::start(command.stderr(Stdio::piped()));
        checking.child().stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("taken");
        let checked = checking.end();
        assert_eq!(checked.status, Some(0), "{checked:?}\n{page}");
        assert_eq!(deliver(stream, b"x").expect("taken"), 0);
        assert_eq!(child.end().status, Some(0));
    });
}

#[test]
fn prometheus_scrapes_it() {
    let name = "watchers::prometheus::prometheus_scrapes_it";
    if !has_programs(name, &["prometheus"]) {
        return;
    }
    with_tun(name, || {
        let (directory, path) = scratch("copy");
        let (child, address) = measured(text(&path), &[]);
        let stream = connect();
        let config = directory.path().join("prometheus.yml");
        let targets = format!(
            "scrape_configs:\n- job_name: ackline\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n  static_configs:\n  - targets: ['{address}']\n"
        );
        std::fs::write(&config, targets).expect("written");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", text(&config)));
        command.arg(format!("--storage.tsdb.path={}", text(&directory.path().join("data"))));
        command.arg("--web.listen-address=127.0.0.1:9090").stdout(Stdio::null()).stderr(Stdio::null());
        let prometheus = BackgroundCommand::start(&mut command);
        let query = |query: &str| {
            let stream = TcpStream::connect("127.0.0.1:9090").ok()?;
            drop(stream);
            let (_, body) = get(
                "127.0.0.1:9090".parse().expect("an address"),
                &format!("GET /api/v1/query?query={query}"),
            );
            let json: serde_json::Value =
                serde_json::from_str(body.lines().find(|line| line.starts_with('{'))?).ok()?;
            json["data"]["result"][0]["value"][1].as_str().map(str::to_owned)
        };
        let opens = until("a scrape", || query("ackline_tcp_passive_opens_total"));
        assert_eq!(opens, "1");
        assert_eq!(until("its state", || query("up%7Bjob=%22ackline%22%7D")), "1");
        prometheus.signal(Signal::TERM);
        prometheus.end();
        assert_eq!(deliver(stream, b"x").expect("taken"), 0);
        assert_eq!(child.end().status, Some(0));
    });
}

#[test]
fn an_address_that_cannot_be_had_is_named_before_anything_is_sent() {
    let complaint = refused(&["send", "--metrics", "localhost", "-", "h:1"], 2);
    assert!(
        complaint.contains("--metrics \"localhost\": not an address and port; write 127.0.0.1:9464"),
        "{complaint}"
    );
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    for command in [
        &["send", "--metrics", &address, "/dev/null", "198.18.0.1:9"][..],
        &["recv", "--metrics", &address, "-l", ":5001"],
        &["bench", "--metrics", &address, "-s"],
        &["demo", "--metrics", &address, "--device", "channel"],
    ] {
        let complaint = refused(command, 3);
        let expected = format!("ackline: cannot listen at --metrics {address}: address already in use");
        assert_eq!(complaint, expected);
    }
}

#[test]
fn a_demo_can_be_watched_from_outside_of_its_network() {
    let mut child =
        BackgroundCommand::start(&mut ackline(&["demo", "--seconds", "30", "--metrics", "127.0.0.1:0"]));
    let stderr = child.child().stderr.take().expect("a pipe");
    let mut lines = BufReader::new(stderr).lines();
    let said = lines.find_map(|line| Some(line.ok()?.strip_prefix("metrics at http://")?.to_owned()));
    let address = said.and_then(|said| said.strip_suffix("/metrics")?.parse().ok()).expect("it says where");
    std::thread::spawn(move || lines.for_each(drop));
    let (head, page) = get(address, "GET /metrics");
    assert!(head.starts_with("HTTP/1.1 200") && page.contains("command=\"demo\""), "{head}\n{page}");
    child.signal(Signal::KILL);
    child.end();
}
