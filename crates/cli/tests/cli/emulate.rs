//! `ackline emulate`: programs behind paths.

use crate::common::{BackgroundCommand, Exit, ackline, names, run, scratch, text, until};
use crate::net::*;
use crate::usage::refused;
use ackline::runtime::testing::has_programs;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the program does: one request, and the whole answer.
const CLIENT: &str = "exec 3<>/dev/tcp/$ACKLINE_BASE/$PORT; echo request >&3; cat <&3 | sha256sum";

/// Runs the client behind a path, against a server of this machine that answers with `answer`. How
/// long it took.
fn exchange(path: &[&str], answer: &'static [u8]) -> (Exit, Duration) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
    let port = listener.local_addr().expect("bound").port().to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.read_exact(&mut [0; 8]).expect("a request");
        stream.write_all(answer).expect("taken");
    });
    let arguments = [&["emulate"], path, &["--", "bash", "-c", CLIENT]].concat();
    let mut command = ackline(&arguments);
    command.env("PORT", port).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[expect(clippy::disallowed_methods, reason = "the path is one of real time")]
    let start = Instant::now();
    let ended = BackgroundCommand::start(&mut command).end();
    let took = start.elapsed();
    succeeded(&ended);
    server.join().expect("it has answered");
    (ended, took)
}

fn summary(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).expect("a summary")).expect("JSON")
}

#[test]
fn a_program_has_the_rate_and_the_delay_of_its_path() {
    with_tun("emulate::a_program_has_the_rate_and_the_delay_of_its_path", || {
        const ANSWER: &[u8] = &[b'x'; 200_000];
        let (_directory, file) = scratch("summary");
        let path = ["--rate", "8mbit", "--up", "rate=1mbit", "--delay", "30ms", "--json", text(&file)];
        let (ended, took) = exchange(&path, ANSWER);
        let digest = String::from_utf8_lossy(&ended.stdout).into_owned();
        let mut same = Command::new("bash");
        same.args(["-c", "head -c 200000 /dev/zero | tr '\\0' x | sha256sum"]);
        let expected = same.output().expect("bash is there").stdout;
        assert_eq!(digest, String::from_utf8_lossy(&expected));
        // The handshake, the request, and 200 kB at 8 Mbit/s: what is shorter cannot be.
        assert!(took >= Duration::from_millis(60 + 60 + 200), "{took:?}");
        let summary = summary(&file);
        assert!(summary["down"]["bytes"].as_f64() > Some(200_000.0), "{summary}");
        assert_eq!(summary["down"]["lost"], 0, "{summary}");
        assert!(ended.stderr.contains("emulated path"), "{ended:?}");
    });
}

#[test]
fn losses_are_repaired_and_told() {
    with_tun("emulate::losses_are_repaired_and_told", || {
        let (_directory, file) = scratch("summary");
        let path = ["--rate", "50mbit", "--delay", "2ms", "--loss", "3%", "-q", "--json", text(&file)];
        let (ended, _) = exchange(&path, &[7; 1_000_000]);
        assert_eq!(ended.stderr, "", "--quiet");
        let summary = summary(&file);
        // Some 700 packets: without a loss only in one of a thousand million runs.
        assert!(summary["down"]["lost"].as_u64() > Some(0), "{summary}");
    });
}

#[test]
fn a_capture_has_each_packet_of_both_directions_once() {
    with_tun("emulate::a_capture_has_each_packet_of_both_directions_once", || {
        let (directory, file) = scratch("path.pcapng");
        let json = directory.path().join("summary");
        let path = ["--rate", "20mbit", "--delay", "5ms", "--pcap", text(&file), "--snaplen", "96"];
        exchange(&[&path[..], &["-q", "--json", text(&json)]].concat(), &[b'x'; 100_000]);
        let length = std::fs::metadata(&file).expect("a capture").len();
        assert!((1_000..100_000).contains(&length), "headers alone: {length} bytes");
        let told = run(&["explain", "--json", text(&file)]).json();
        let (summary, conn) = (summary(&json), &told["connections"][0]);
        // What was under way at the end has left the queue, and did not arrive.
        let arrived: u64 = ["up", "down"].iter().filter_map(|way| summary[way]["packets"].as_u64()).sum();
        let captured = told["packets"].as_u64().expect("a number");
        assert!((arrived..2 * arrived).contains(&captured), "{told} {summary}");
        assert_eq!([&conn["directions"][0]["bytes"], &conn["directions"][1]["bytes"]], [8, 100_000]);
        // The round trip of the handshake is that of the path, and the times are those of the
        // clock.
        assert!(conn["handshake"]["took_ns"].as_u64() >= Some(10_000_000), "{conn}");
        assert!(conn["start_ns"].as_u64() > Some(1_700_000_000_000_000_000), "{conn}");
        assert_eq!(names(directory.path()), ["path.pcapng", "summary"]);
    });
}

#[test]
fn plots_and_summary_show_rate_queue_waits_and_lateness() {
    with_tun("emulate::plots_and_summary_show_rate_queue_waits_and_lateness", || {
        let (directory, file) = scratch("summary");
        let plots = directory.path().join("a/plots");
        let path = ["--rate", "8mbit", "--delay", "10ms", "--queue", "5p", "--plot", text(&plots)];
        exchange(&[&path[..], &["-q", "--json", text(&file)]].concat(), &[b'x'; 100_000]);
        assert_eq!(names(&plots), ["lateness.svg", "path.svg"]);
        let drawn = std::fs::read_to_string(plots.join("path.svg")).expect("drawn");
        let panels =
            ["Rate behind the path", "Most packets in the queue", "Most bytes in the queue", "Longest wait"];
        assert!(panels.iter().all(|panel| drawn.contains(panel)), "{drawn}");
        let summary = summary(&file);
        // What the summary says of itself stands over the plots.
        assert_eq!(summary["valid"] == false, drawn.contains("INVALID"), "{summary}");
        let down = &summary["down"];
        let most = |key: &str| {
            let spans = down["over_time"][key].as_array().expect("a list");
            spans.iter().filter_map(Value::as_f64).fold(0.0, f64::max)
        };
        // A queue of five packets, each of which takes 1.5 ms.
        assert!((1.0..=5.0).contains(&most("queue_packets")), "{summary}");
        assert!(most("wait_ms") > 0.0 && most("wait_ms") <= 5.0 * 1.6, "{summary}");
        assert!(most("rate_bps") > 1e6, "{summary}");
        assert!(down["late_p50_us"].as_f64() > Some(0.0) && summary["load"]["machine_busy"].is_number());
    });
}

#[test]
fn a_run_whose_emulator_was_held_up_is_invalid_everywhere() {
    with_tun("emulate::a_run_whose_emulator_was_held_up_is_invalid_everywhere", || {
        let (directory, file) = scratch("summary");
        // While a packet is under way nothing runs that could deliver it.
        const CONNECT: &str = "(exec 3<>/dev/tcp/$ACKLINE_BASE/1) 2>/dev/null &";
        const HOLD_UP: &str = "sleep 0.1; kill -STOP $PPID; sleep 0.4; kill -CONT $PPID; wait; true";
        let script = format!("{CONNECT} {HOLD_UP}");
        let path = ["emulate", "--delay", "200ms", "--json", text(&file), "--plot", text(directory.path())];
        let ended = run(&[&path[..], &["--", "bash", "-c", &script]].concat());
        succeeded(&ended);
        assert!(ended.stderr.contains("INVALID: up: one packet of a hundred left"), "{ended:?}");
        let summary = summary(&file);
        assert_eq!(summary["valid"], false, "{summary}");
        assert!(
            summary["reasons"][0].as_str().is_some_and(|why| why.starts_with("up: one packet")),
            "{summary}"
        );
        for figure in ["path.svg", "lateness.svg"] {
            let drawn = std::fs::read_to_string(directory.path().join(figure)).expect("drawn");
            assert!(drawn.contains("INVALID: up: one packet"), "{figure}: {drawn}");
        }
    });
}

#[test]
fn files_that_cannot_be_written_are_told_before_anything_runs() {
    let (directory, file) = scratch("summary");
    let ran = directory.path().join("ran");
    for (arguments, expected) in [
        (
            ["--json", text(&file), "--pcap", "/nonexistent/a.pcapng"],
            "cannot write --pcap /nonexistent/a.pcapng: no such file or directory",
        ),
        (["--pcap", text(&file), "--json", "/"], "cannot write --json /: is a directory"),
        (
            ["--json", text(&file), "--plot", "/proc/plots"],
            "cannot write into --plot /proc/plots: no such file or directory",
        ),
    ] {
        let arguments = [&["emulate"], &arguments[..], &["--", "touch", text(&ran)]].concat();
        assert_eq!(refused(&arguments, 5), format!("ackline: {expected}"));
    }
    assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
    let same = refused(&["emulate", "--json", "a", "--pcap", "a", "--", "true"], 2);
    assert_eq!(same, "ackline: --json a: --pcap has the same file; give each its own");
    let run = run(&["emulate", "--snaplen", "96", "--", "true"]);
    assert!(run.status == Some(2) && run.stderr.contains("--pcap <FILE>"), "{run:?}");
}

/// A resolver on this machine that gives every name one address, until the process ends.
pub(crate) fn resolver(address: Ipv4Addr) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let at = socket.local_addr().expect("bound");
    std::thread::spawn(move || {
        let mut buf = [0; 512];
        while let Ok((len, from)) = socket.recv_from(&mut buf) {
            // RFC 1035, section 4.1: a header of 12 octets; a question that ends with its type and
            // class.
            let end = 12 + buf[12..len].iter().position(|byte| *byte == 0).expect("a name") + 5;
            let is_a = buf[end - 4..end - 2] == [0, 1];
            let mut answer = buf[..end].to_vec();
            // A response, recursion available; one question, an answer if it asks for an address,
            // and nothing else.
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
            if is_a {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
                answer.extend(address.octets());
            }
            let _ = socket.send_to(&answer, from);
        }
    });
    at
}

/// What a shell says behind a path with these options.
fn shell(path: &[&str], script: &str) -> String {
    let ended = run(&[&["emulate", "-q"], path, &["--", "bash", "-c", script]].concat());
    succeeded(&ended);
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

#[test]
fn names_are_resolved_inside_and_the_machines_file_stays() {
    with_tun("emulate::names_are_resolved_inside_and_the_machines_file_stays", || {
        let file = || std::fs::read_to_string("/etc/resolv.conf").ok();
        let Some(before) = file() else { return };
        let resolver = resolver(Ipv4Addr::new(192, 0, 2, 7)).to_string();
        let ask = "getent ahostsv4 server.test; sed -n 2p /etc/resolv.conf; echo $ACKLINE_BASE";
        let said = shell(&["--delay", "10ms", "--resolver", &resolver], ask);
        assert!(said.starts_with("192.0.2.7 "), "{said}");
        assert!(said.ends_with("nameserver 100.64.0.1\n100.64.0.1\n"), "{said}");
        assert_eq!(file().as_ref(), Some(&before));
        // The inner one has the outer one's file for the machine's, and makes namespaces.
        let program = env!("CARGO_BIN_EXE_ackline");
        let inner = format!("{program} emulate -q --delay 5ms -- bash -c '{ask}'");
        let said = shell(&["--keep-capabilities", "--resolver", &resolver], &inner);
        assert!(said.starts_with("192.0.2.7 "), "{said}");
        assert!(said.ends_with("nameserver 100.64.0.5\n100.64.0.1\n"), "{said}");
    });
}

/// The kernel cuts it into fragments.
#[test]
fn a_datagram_longer_than_the_mtu_arrives_whole() {
    with_tun("emulate::a_datagram_longer_than_the_mtu_arrives_whole", || {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = server.local_addr().expect("bound").port();
        let echo = std::thread::spawn(move || {
            let mut buf = [0; 10_000];
            let (len, from) = server.recv_from(&mut buf).expect("a datagram");
            server.send_to(format!("{len}\n").as_bytes(), from).expect("sent");
        });
        let ask = format!(
            "exec 3<>/dev/udp/$ACKLINE_BASE/{port}; dd if=/dev/zero bs=4000 count=1 status=none >&3; \
             dd bs=2000 count=1 status=none <&3"
        );
        assert_eq!(shell(&["--delay", "10ms"], &ask), "4000\n");
        echo.join().expect("it has answered");
    });
}

#[test]
fn datagrams_pass_both_ways_and_a_closed_port_refuses() {
    with_tun("emulate::datagrams_pass_both_ways_and_a_closed_port_refuses", || {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = server.local_addr().expect("bound").port();
        let echo = std::thread::spawn(move || {
            let mut buf = [0; 2_000];
            let (len, from) = server.recv_from(&mut buf).expect("a datagram");
            // One that the path does not carry is lost.
            server.send_to(&[b'x'; 1_473], from).expect("sent");
            server.send_to(&buf[..len], from).expect("sent");
        });
        let ask = format!(
            "exec 3<>/dev/udp/$ACKLINE_BASE/{port}; echo hello >&3; dd bs=2000 count=1 status=none <&3"
        );
        let (_directory, file) = scratch("summary");
        let said = shell(&["--delay", "10ms", "--json", text(&file)], &ask);
        assert_eq!(said, "hello\n");
        echo.join().expect("it has answered");
        assert!(summary(&file)["up"]["packets"].as_u64() > Some(0));
        // Nobody has the port any more.
        let ask =
            format!("exec 3<>/dev/udp/$ACKLINE_BASE/{port}; echo hello >&3; dd bs=9 count=1 <&3 2>&1; true");
        let said = shell(&[], &ask);
        assert!(said.contains("Connection refused"), "{said}");
    });
}

#[test]
fn paths_nest() {
    with_tun("emulate::paths_nest", || {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
        let port = listener.local_addr().expect("bound").port();
        let server = std::thread::spawn(move || {
            listener.accept().expect("a connection").0.write_all(b"the machine\n").expect("taken");
        });
        let program = env!("CARGO_BIN_EXE_ackline");
        let ask = format!(
            "sed -n 2p /etc/resolv.conf; echo $ACKLINE_BASE; exec 3<>/dev/tcp/$ACKLINE_BASE/{port}; cat <&3"
        );
        let inner = ["emulate", "-q", "--", "bash", "-c", &ask];
        // The second level makes namespaces.
        let outer = ["emulate", "-q", "--delay", "5ms", "--keep-capabilities", "--", program];
        let ended = run(&[&outer[..], &inner].concat());
        succeeded(&ended);
        server.join().expect("it has answered");
        // The second level has the addresses behind those of the first, which leads to the machine.
        let expected = "nameserver 100.64.0.5\n100.64.0.1\nthe machine\n";
        assert_eq!(String::from_utf8_lossy(&ended.stdout), expected);
    });
}

#[test]
fn a_program_ends_with_the_emulator_even_if_that_is_killed() {
    with_tun("emulate::a_program_ends_with_the_emulator_even_if_that_is_killed", || {
        let (_directory, file) = scratch("pid");
        let write = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", text(&file));
        let running = BackgroundCommand::start(&mut ackline(&["emulate", "-q", "--", "sh", "-c", &write]));
        let pid = until("the program", || std::fs::read_to_string(&file).ok());
        running.signal(Signal::KILL);
        assert_eq!(running.end().status, None);
        // Nobody may have asked yet how it ended.
        let command_line = format!("/proc/{}/cmdline", pid.trim());
        let has_ended = || std::fs::read(&command_line).map_or(true, |line| line.is_empty());
        until("its end", || has_ended().then_some(()));
    });
}

#[test]
fn the_status_is_the_programs() {
    with_tun("emulate::the_status_is_the_programs", || {
        let ended = run(&["emulate", "--", "sh", "-c", "exit 7"]);
        assert_eq!(ended.status, Some(7), "{ended:?}");
        assert!(!ended.stderr.contains("ackline:"), "{ended:?}");
        let ended = run(&["emulate", "-q", "--", "sh", "-c", "kill -TERM $$"]);
        assert_eq!(ended.status, Some(143), "{ended:?}");
        let ended = run(&["emulate", "-q", "--", "/nonexistent/program"]);
        assert_eq!(
            (ended.status, ended.complaint()),
            (Some(5), "ackline: /nonexistent/program: no such program")
        );
    });
}

#[test]
fn a_wrong_path_is_told_before_anything_runs() {
    for (arguments, parts) in [
        (&["--rate", "5mbitx"][..], ["--rate", "\"5mbitx\" is not possible"]),
        (&["--down", "queu=5p"], ["--down queu=5p", "did you mean `queue`?"]),
        (&["--queue", "codel:target=5"], ["--queue", "it must be a time"]),
        (&["--path", "lte:way=down"], ["--path lte:way=down", "leave out way="]),
        (&["--path", "lte:seed=1,seed=2"], ["--path", "is given twice"]),
        (&["--loss", "120%"], ["--loss", "120%"]),
        (
            &["--rate", "1mbit", "--trace", "/nonexistent"],
            ["--trace", "a link has a rate or a trace, not both"],
        ),
        (&["--trace", "/nonexistent"], ["--trace", "cannot read /nonexistent"]),
        (&["--trace", "/dev/zero"], ["--trace", "cannot read /dev/zero: it is longer than"]),
        (
            &["--trace", env!("CARGO_BIN_EXE_ackline")],
            ["--trace", "it is no text; a trace is a list of times"],
        ),
        (&["--resolver", "name.test"], ["--resolver", "not an address; write one like 192.0.2.53"]),
    ] {
        let complaint = refused(&[&["emulate"], arguments, &["--", "true"]].concat(), 2);
        assert!(parts.iter().all(|part| complaint.contains(part)), "{complaint}");
    }
}

#[test]
fn what_only_a_command_or_a_scenario_has_is_refused_for_the_other() {
    for arguments in [
        &["--out", "results", "--", "true"][..],
        &["--both", "--", "true"],
        &["--points", "1", "--", "true"],
        &["--mtu", "9000", "pair.toml"],
    ] {
        let ended = run(&[&["emulate"], arguments].concat());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("cannot be used with"), "{ended:?}");
    }
}

#[test]
fn super_packets_are_split_or_pass_whole_and_the_summary_says_which() {
    with_tun("emulate::super_packets_are_split_or_pass_whole_and_the_summary_says_which", || {
        const BYTES: usize = 2_000_000;
        for (offload, words) in [
            ("off", "hosts have no segmentation offload"),
            ("split", "super-packets are split where they enter"),
            ("whole", "super-packets pass whole"),
        ] {
            let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
            let port = listener.local_addr().expect("bound").port();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut all = vec![0; BYTES];
                stream.read_exact(&mut all).expect("sent");
                stream.write_all(b"!").expect("taken");
                all.iter().all(|byte| *byte == b'y')
            });
            let (_directory, file) = scratch("summary");
            let send = format!(
                "exec 3<>/dev/tcp/$ACKLINE_BASE/{port}; head -c {BYTES} /dev/zero | tr '\\0' y >&3; head -c 1 <&3"
            );
            let path = ["emulate", "--rate", "100mbit", "--delay", "2ms", "--offload", offload];
            let ended = run(&[&path[..], &["--json", text(&file), "--", "bash", "-c", &send]].concat());
            succeeded(&ended);
            assert!(server.join().expect("it has read"), "{offload}: what came is not what was sent");
            let summary = summary(&file);
            let up = |key: &str| summary["up"][key].as_u64().expect("a number");
            assert_eq!(up("super_packets") > 0, offload != "off", "{summary}");
            // A packet of 1,500 bytes has 1,448 of data.
            let packets = (BYTES / 1_448) as u64;
            assert_eq!(up("packets") > packets, offload != "whole", "{offload}: {summary}");
            // The headers of each are part of its time and of the bytes.
            assert!(up("bytes") > BYTES as u64 + 52 * packets, "{offload}: {summary}");
            let said = summary["conditions"].to_string();
            assert!(said.contains(words) && ended.stderr.contains(words), "{said} {ended:?}");
        }
    });
    let complaint = refused(&["emulate", "--offload", "whole", "--corrupt", "1%", "--", "true"], 2);
    assert!(complaint.starts_with("ackline: --offload whole: a link corrupts packets"), "{complaint}");
}

#[test]
fn a_priority_is_told_and_one_without_rights_refused() {
    with_tun("emulate::a_priority_is_told_and_one_without_rights_refused", || {
        let (_directory, file) = scratch("summary");
        let ended = run(&[
            "emulate",
            "--priority",
            "fifo:3",
            "--pacing",
            "spin",
            "--json",
            text(&file),
            "--",
            "cat",
            "/proc/self/stat",
        ]);
        if ended.status == Some(3) {
            return assert!(ended.complaint().contains("no permission for the priority fifo:3"), "{ended:?}");
        }
        succeeded(&ended);
        let summary = summary(&file);
        let said = summary["conditions"].to_string();
        assert!(said.contains("the emulator's thread has the priority fifo:3"), "{said}");
        // proc(5): the 41st field is the policy; the program has the usual one.
        let stat = String::from_utf8_lossy(&ended.stdout).into_owned();
        let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
        assert_eq!(fields[41 - 3], "0", "{stat}");
    });
    if let Some(ended) = as_nobody(&["emulate", "--priority", "nice:-5", "--", "true"]) {
        assert_eq!((ended.status, ended.stderr.lines().count()), (Some(3), 1), "{ended:?}");
        assert!(ended.complaint().contains("no permission for the priority nice:-5"), "{ended:?}");
    }
    let ended = run(&["emulate", "--priority", "fifo:0", "--", "true"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("write nice:-20 to nice:19, or fifo:1 to fifo:99"), "{ended:?}");
}

/// A program's place, a host of the kernel and one of ackline on the left; the exit and a virtual
/// host on the right.
const SCENARIO: &str = r#"
duration = "1s"
node = [
    { name = "program" }, { name = "linux", world = "kernel" }, { name = "ackline", world = "live" },
    { name = "left", kind = "router" }, { name = "right", kind = "router" },
    { name = "sink" }, { name = "exit" },
]
link = [
    { between = ["program", "left"] }, { between = ["linux", "left"] }, { between = ["ackline", "left"] },
    { name = "bottleneck", between = ["left", "right"], rate = "20mbit", delay = "15ms" },
    { between = ["right", "sink"] }, { between = ["right", "exit"] },
]
app = [
    { name = "beside", kind = "bulk", from = "linux", to = "sink" },
    { name = "live", kind = "bulk", from = "ackline", to = "sink" },
    { name = "own", kind = "bulk", from = "program", to = "exit" },
    { name = "into", kind = "bulk", from = "linux", to = "exit" },
]
"#;

#[test]
fn a_program_is_behind_the_network_of_a_scenario() {
    let name = "emulate::a_program_is_behind_the_network_of_a_scenario";
    if !has_programs(name, &["ip"]) {
        return;
    }
    with_tun(name, || {
        const ANSWER: &[u8] = &[b'x'; 50_000];
        let (directory, file) = scratch("scenario.toml");
        std::fs::write(&file, SCENARIO).expect("ours");
        let json = directory.path().join("summary");
        let (ended, took) = exchange(&["--scenario", text(&file), "--json", text(&json)], ANSWER);
        let digest = String::from_utf8_lossy(&ended.stdout).into_owned();
        let mut same = Command::new("bash");
        same.args(["-c", "head -c 50000 /dev/zero | tr '\\0' x | sha256sum"]);
        let expected = same.output().expect("bash is there").stdout;
        assert_eq!(digest, String::from_utf8_lossy(&expected));
        assert!(took >= Duration::from_millis(60), "two round trips of 30 ms: {took:?}");
        let summary = summary(&json);
        // What the program sends fits two packets; the others send all the time.
        assert!(summary["up"]["bytes"].as_u64() > Some(20_000), "{summary}");
        let said = summary["conditions"].to_string();
        for words in [
            "from program to exit, with the numbers of its links bottleneck and bottleneck.back",
            "left out: own, into",
        ] {
            assert!(said.contains(words), "{said}");
        }
        // The addresses are those of the scenario, and the program can be elsewhere.
        let said = shell(
            &["--scenario", text(&file), "--at", "linux", "--exit", "sink"],
            "echo $ACKLINE_BASE; ip -4 -o address show dev ackline0",
        );
        assert!(said.starts_with("10.0.0.6\n") && said.contains("10.0.0.2/32"), "{said}");
    });
}

#[test]
fn a_scenario_without_room_for_a_program_is_refused() {
    let (_directory, file) = scratch("scenario.toml");
    std::fs::write(&file, SCENARIO).expect("ours");
    let scenario = ["emulate", "--scenario", text(&file)];
    for (arguments, expected) in [
        (&["--at", "progam"][..], "progam: there is no host named \"progam\"; did you mean \"program\"?"),
        (&["--exit", "left"], "left: there is no host named \"left\""),
        (&["--at", "sink", "--exit", "sink"], "sink: one host cannot be both ends of a path"),
        (
            &["--set", "sweep={ conn.cc = [\"reno\", \"cubic\"] }"],
            "it sweeps conn.cc; set a value of each (--set)",
        ),
    ] {
        let complaint = refused(&[&scenario, arguments, &["--", "true"]].concat(), 2);
        assert!(complaint.contains(text(&file)) && complaint.contains(expected), "{complaint}");
    }
    let cut =
        SCENARIO.replace("{ between = [\"right\", \"exit\"] },", "{ from = \"right\", to = \"exit\" },");
    std::fs::write(&file, cut).expect("ours");
    let complaint = refused(&[&scenario[..], &["--", "true"]].concat(), 2);
    assert!(complaint.ends_with("no links lead from exit to program"), "{complaint}");
    for other in [&["--rate", "1mbit"][..], &["--mtu", "1400"]] {
        let ended = run(&[&scenario, other, &["--", "true"]].concat());
        assert!(ended.status == Some(2) && ended.stderr.contains("cannot be used with"), "{ended:?}");
    }
}
