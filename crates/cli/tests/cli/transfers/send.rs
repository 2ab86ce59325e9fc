//! `ackline send` to kernel sockets.

use crate::common::{BackgroundCommand, ackline, noise, run, said, scratch, text, until};
use crate::net::*;
use ackline::runtime::testing::{has_programs, skip};
use rustix::process::Signal;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn send_brings_a_file_to_the_kernel() {
    with_tun("transfers::send::send_brings_a_file_to_the_kernel", || {
        let options = [
            &[][..],
            &["--plain"],
            &["--mtu", "576"],
            &["--cc", "reno", "--ack", "immediate"],
            &["--rto", "dclor"],
        ];
        for options in options {
            let (_directory, path) = scratch("data");
            let data = noise(3_000_001, 1);
            std::fs::write(&path, &data).expect("written");
            let (listener, to) = kernel_listener();
            let child = BackgroundCommand::start(&mut ackline(
                &[&["send", "--json", text(&path), &to], options].concat(),
            ));
            let (stream, from) = accept(&listener);
            let arrived = read_all(stream).expect("read to the end");
            assert!(arrived == data, "{options:?}: {} bytes arrived", arrived.len());
            let ended = child.end();
            succeeded(&ended);
            let report = ended.json();
            assert_eq!(report["ok"], true);
            assert_eq!(report["bytes"], data.len());
            assert_eq!(report["offload"], !options.contains(&"--plain"));
            let local: SocketAddr = report["local"].as_str().expect("text").parse().expect("an address");
            assert_eq!(local.port(), from.port());
            assert!(report["gbit_s"].as_f64().expect("a number") > 0.0, "{report}");
            let name = |kind: &str| options.iter().skip_while(|option| **option != kind).nth(1);
            assert_eq!(report["cc"], *name("--cc").unwrap_or(&"cubic"));
            let metrics = &report["metrics"];
            assert_eq!(
                metrics["cc"]["cwnd"].as_f64().map(f64::floor),
                report["cwnd_bytes"].as_f64(),
                "{report}"
            );
            let of_response = if name("--rto").is_some() { "saved_pipe" } else { "undo_marker" };
            assert!(metrics["rto"][of_response].is_number(), "{report}");
            let gaps = &report["timing"]["departure_gaps"];
            assert!(gaps["count"].as_u64().expect("a number") > 10, "{report}");
            assert!(gaps["p10_us"].as_f64() <= gaps["p99_us"].as_f64(), "{report}");
        }
    });
}

/// What is paced waits for its departures asleep or awake, and the report tells.
#[test]
fn departures_are_waited_for_as_asked() {
    with_tun("transfers::send::departures_are_waited_for_as_asked", || {
        for (options, awake) in
            [(&[][..], false), (&["--pacing", "timer"], false), (&["--pacing", "spin"], true)]
        {
            let (_directory, path) = scratch("data");
            std::fs::write(&path, noise(250_000, 1)).expect("written");
            let (listener, to) = kernel_listener();
            // At 10 Mbit/s: 0.2 s.
            let paced = ["send", "--json", text(&path), &to, "--egress-rate", "10mbit"];
            let child = BackgroundCommand::start(&mut ackline(&[&paced, options].concat()));
            let (stream, _) = accept(&listener);
            read_all(stream).expect("read to the end");
            let ended = child.end();
            succeeded(&ended);
            let timing = &ended.json()["timing"];
            assert_eq!(timing["awake_s"].as_f64().expect("a number") > 0.0, awake, "{timing}");
            assert_eq!(timing["wakes_early_by_us"].as_f64().expect("a number") > 0.0, awake, "{timing}");
            let late = &timing["departure_lateness"];
            assert!(late["count"].as_u64().expect("a number") > 10, "{timing}");
            assert!(late["p99_us"].as_f64() <= late["p99_9_us"].as_f64(), "{timing}");
            assert!(late["p99_9_us"].as_f64() <= late["max_us"].as_f64(), "{timing}");
            assert!(
                timing["data_gaps"]["count"].as_u64() <= timing["departure_gaps"]["count"].as_u64(),
                "{timing}"
            );
        }
    });
}

#[test]
fn send_takes_standard_input() {
    with_tun("transfers::send::send_takes_standard_input", || {
        let (listener, to) = kernel_listener();
        let mut child = BackgroundCommand::start(ackline(&["send", "-q", "-", &to]).stdin(Stdio::piped()));
        let data = noise(700_000, 2);
        let mut stdin = child.child().stdin.take().expect("a pipe");
        let (stream, _) = accept(&listener);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for part in data.chunks(50_001) {
                    stdin.write_all(part).expect("taken");
                }
                drop(stdin);
            });
            assert!(read_all(stream).expect("read to the end") == data);
            writer.join().expect("no panic");
        });
        let ended = child.end();
        succeeded(&ended);
        assert!(ended.stdout.is_empty() && ended.stderr.is_empty(), "{ended:?}");
    });
}

#[test]
fn both_ways_over_ipv6() {
    with_tun("transfers::send::both_ways_over_ipv6", || {
        if TcpListener::bind("[::1]:0").is_err() {
            skip("transfers::send::both_ways_over_ipv6", &"the kernel has no IPv6");
            return;
        }
        let (_directory, path) = scratch("data");
        let data = noise(500_000, 3);
        std::fs::write(&path, &data).expect("written");
        let listener = TcpListener::bind("[::]:0").expect("a listener");
        let to = format!("[fd00::1]:{}", listener.local_addr().expect("bound").port());
        let child = BackgroundCommand::start(&mut ackline(&[
            "send",
            "-q",
            "--local",
            "fd00::2/64",
            text(&path),
            &to,
        ]));
        let (stream, _) = accept(&listener);
        assert!(read_all(stream).expect("read to the end") == data);
        succeeded(&child.end());

        let child = BackgroundCommand::start(&mut ackline(&["recv", "-q", "-l", "[fd00::2]:5001"]));
        let stream = until("a connection", || {
            let to = "[fd00::2]:5001".parse().expect("an address");
            TcpStream::connect_timeout(&to, Duration::from_secs(10)).ok()
        });
        let ended = child.end_while(|| assert_eq!(deliver(stream, &data).expect("taken"), 0));
        succeeded(&ended);
        assert!(ended.stdout == data);
    });
}

/// As `ip tuntap` makes it for a user: it is there before and after.
#[test]
fn an_interface_that_exists_is_used_as_it_is() {
    const NAME: &str = "transfers::send::an_interface_that_exists_is_used_as_it_is";
    if !has_programs(NAME, &["ip"]) {
        return;
    }
    with_tun(NAME, || {
        assert!(ip("tuntap add dev own0 mode tun"));
        let down = run(&["send", "--tun", "own0", "/dev/null", "203.0.113.1:9"]);
        assert_eq!(down.status, Some(3), "{down:?}");
        assert_eq!(down.complaint(), "ackline: the interface own0 is down: ip link set own0 up");
        assert!(ip("addr add 203.0.113.1/24 dev own0") && ip("link set own0 up"));
        let (_directory, path) = scratch("data");
        let data = noise(200_000, 12);
        std::fs::write(&path, &data).expect("written");
        for options in [&[][..], &["--plain"]] {
            let listener = TcpListener::bind("203.0.113.1:0").expect("a listener");
            let to = listener.local_addr().expect("bound").to_string();
            let args = ["send", "-q", "--tun", "own0", "--local", "203.0.113.5/24", text(&path), &to];
            let child = BackgroundCommand::start(&mut ackline(&[&args, options].concat()));
            let (stream, from) = accept(&listener);
            assert_eq!(from.ip().to_string(), "203.0.113.5");
            assert!(read_all(stream).expect("read to the end") == data, "{options:?}");
            succeeded(&child.end());
        }
        assert!(ip("link show own0"));
    });
}

#[test]
fn a_refusing_peer_is_told_with_advice() {
    with_tun("transfers::send::a_refusing_peer_is_told_with_advice", || {
        let ended = run(&["send", "--json", "/dev/null", "198.18.0.1:9"]);
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert_eq!(
            ended.complaint(),
            "ackline: cannot reach 198.18.0.1:9: connection refused (is a receiver running? for instance: nc -l 9)"
        );
        assert_eq!(ended.json()["error"]["kind"], "network");
    });
}

#[test]
fn a_silent_peer_is_given_up() {
    with_tun("transfers::send::a_silent_peer_is_given_up", || {
        // Nobody has this address, and the kernel does not forward.
        let ended = run(&["send", "--timeout", "300ms", "/dev/null", "198.18.0.77:9"]);
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert_eq!(ended.complaint(), "ackline: cannot reach 198.18.0.77:9: no answer for 0.3 s");
        let ended = run(&["recv", "--timeout", "300ms", "-l", ":1"]);
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert_eq!(ended.complaint(), "ackline: nobody connected to *:1 within 0.3 s");
    });
}

#[test]
fn a_peer_that_stops_reading_is_given_up() {
    with_tun("transfers::send::a_peer_that_stops_reading_is_given_up", || {
        let (_directory, path) = scratch("data");
        std::fs::write(&path, noise(30_000_000, 9)).expect("written");
        let (listener, to) = kernel_listener();
        let child = BackgroundCommand::start(&mut ackline(&["send", "--timeout", "500ms", text(&path), &to]));
        let (stream, _) = accept(&listener);
        let ended = child.end();
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert!(ended.complaint().contains("no progress with 198.18.0.1:"), "{ended:?}");
        assert!(ended.complaint().ends_with("of 28.61 MiB"), "{ended:?}");
        // A part must not look like the whole.
        assert_eq!(read_all(stream).expect_err("reset").kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_resetting_receiver_is_told() {
    with_tun("transfers::send::a_resetting_receiver_is_told", || {
        let (_directory, path) = scratch("data");
        std::fs::write(&path, noise(30_000_000, 10)).expect("written");
        let (listener, to) = kernel_listener();
        let child = BackgroundCommand::start(&mut ackline(&["send", text(&path), &to]));
        let (mut stream, _) = accept(&listener);
        stream.read_exact(&mut [0; 10_000]).expect("data");
        reset(stream);
        let ended = child.end();
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert!(ended.complaint().contains(&format!("{to} reset the connection after ")), "{ended:?}");
    });
}

#[test]
fn an_interrupted_sender_resets() {
    with_tun("transfers::send::an_interrupted_sender_resets", || {
        let (listener, to) = kernel_listener();
        let (_directory, socket) = scratch("control");
        let control = ["--control", text(&socket)];
        let mut child = BackgroundCommand::start(
            ackline(&[&["send", "-", &to], &control[..]].concat()).stdin(Stdio::piped()),
        );
        let mut stdin = child.child().stdin.take().expect("a pipe");
        stdin.write_all(b"the beginning").expect("taken");
        let (mut stream, _) = accept(&listener);
        stream.read_exact(&mut [0; 13]).expect("data");
        until("the ACK of all of it", || {
            let shown = said(&[&["ss", "-ti"], &control[..]].concat());
            (shown.contains("bytes_sent:13 ") && !shown.contains("unacked:")).then_some(())
        });
        child.signal(Signal::TERM);
        assert_eq!(read_all(stream).expect_err("reset").kind(), io::ErrorKind::ConnectionReset);
        let ended = child.end();
        assert_eq!(ended.status, Some(143), "{ended:?}");
        assert_eq!(ended.complaint(), "ackline: SIGTERM: stopped after 13 B; the connection was reset");
    });
}

#[test]
fn a_receiver_that_talks_back_does_not_stop_the_sender() {
    with_tun("transfers::send::a_receiver_that_talks_back_does_not_stop_the_sender", || {
        let (_directory, path) = scratch("data");
        let data = noise(20_000_000, 11);
        std::fs::write(&path, &data).expect("written");
        let (listener, to) = kernel_listener();
        let child = BackgroundCommand::start(&mut ackline(&["send", "-q", text(&path), &to]));
        // An echo server whose answers fill every buffer unless somebody reads them.
        let (mut stream, _) = accept(&listener);
        let mut echoed = 0;
        let mut buffer = vec![0; 65_536];
        loop {
            match stream.read(&mut buffer).expect("data") {
                0 => break,
                count => {
                    stream.write_all(&buffer[..count]).expect("read by the other end");
                    echoed += count;
                }
            }
        }
        drop(stream);
        assert_eq!(echoed, data.len());
        succeeded(&child.end());
    });
}

#[test]
fn missing_rights_are_told_with_what_to_grant() {
    with_tun("transfers::send::missing_rights_are_told_with_what_to_grant", || {
        let Some(ended) = as_nobody(&["send", "/dev/null", "198.18.0.1:9"]) else {
            skip(
                "transfers::send::missing_rights_are_told_with_what_to_grant",
                &"cannot become another user",
            );
            return;
        };
        assert_eq!(ended.status, Some(3), "{ended:?}");
        let complaint = ended.complaint();
        assert!(complaint.contains("/dev/net/tun") || complaint.contains("CAP_NET_ADMIN"), "{complaint}");
        assert!(complaint.contains("as root"), "{complaint}");
    });
}

/// As with nc -N: both ways at once, and the peer has the last word.
#[test]
fn what_the_peer_answers_goes_to_standard_output() {
    with_tun("transfers::send::what_the_peer_answers_goes_to_standard_output", || {
        let (listener, to) = kernel_listener();
        let mut child =
            BackgroundCommand::start(ackline(&["send", "--json", "-", &to]).stdin(Stdio::piped()));
        let data = noise(3_000_000, 20);
        let last_word = noise(2_000_000, 21);
        let mut stdin = child.child().stdin.take().expect("a pipe");
        let ended = child.end_while(|| {
            let (mut stream, _) = accept(&listener);
            // Before standard input ends, the answer comes: a conversation.
            stdin.write_all(b"hello\n").expect("taken");
            stream.read_exact(&mut [0; 6]).expect("data");
            stream.write_all(b"\0\xffhello").expect("taken");
            let echo = stream.try_clone().expect("another handle");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    stdin.write_all(&data).expect("taken");
                    drop(stdin);
                });
                let (mut from, mut to) = (echo, stream);
                io::copy(&mut from, &mut to).expect("echoed");
                // After the sender's end, too.
                to.write_all(&last_word).expect("taken");
            });
        });
        succeeded(&ended);
        assert!(ended.stdout == [&b"\0\xffhello"[..], &data, &last_word].concat());
        let report: serde_json::Value = serde_json::from_str(&ended.stderr).expect("one JSON document");
        assert_eq!(report["bytes"], data.len() + 6, "{report}");
        assert_eq!(report["received_bytes"], ended.stdout.len(), "{report}");
    });
}

#[test]
fn an_answer_that_nobody_reads_does_not_stop_the_sender() {
    with_tun("transfers::send::an_answer_that_nobody_reads_does_not_stop_the_sender", || {
        let (listener, to) = kernel_listener();
        let mut child = BackgroundCommand::start(ackline(&["send", "-q", "-", &to]).stdin(Stdio::piped()));
        drop(child.child().stdout.take());
        let mut stdin = child.child().stdin.take().expect("a pipe");
        let data = noise(3_000_000, 22);
        let ended = child.end_while(|| {
            let (mut stream, _) = accept(&listener);
            stream.write_all(&noise(100_000, 23)).expect("taken");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    stdin.write_all(&data).expect("taken");
                    drop(stdin);
                });
                let reader = stream.try_clone().expect("another handle");
                assert!(read_all(reader).expect("read to the end") == data);
            });
            // It does not wait for the end of an answer that nobody reads.
            until("its end", || stream.write_all(&[0; 65_536]).err());
        });
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    });
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure_of_the_file() {
    with_tun("transfers::send::an_answer_that_cannot_be_written_is_a_failure_of_the_file", || {
        let (listener, to) = kernel_listener();
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let mut command = ackline(&["send", "-", &to]);
        let child = BackgroundCommand::start(command.stdin(Stdio::piped()).stdout(full));
        let (mut stream, _) = accept(&listener);
        stream.write_all(b"answer").expect("taken");
        assert_eq!(read_all(stream).expect_err("reset").kind(), io::ErrorKind::ConnectionReset);
        let ended = child.end();
        assert_eq!(ended.status, Some(5), "{ended:?}");
        assert_eq!(ended.complaint(), "ackline: cannot write to standard output: no space left on device");
    });
}

#[test]
fn an_answer_that_is_cut_short_is_told_and_what_came_of_it_is_kept() {
    with_tun("transfers::send::an_answer_that_is_cut_short_is_told_and_what_came_of_it_is_kept", || {
        let (listener, to) = kernel_listener();
        let child = BackgroundCommand::start(&mut ackline(&["send", "-", &to]));
        let ended = child.end_while(|| {
            let (mut stream, _) = accept(&listener);
            assert_eq!(stream.read(&mut [0; 1]).expect("the end of nothing"), 0);
            stream.write_all(b"half an ans").expect("taken");
            reset(stream);
        });
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert_eq!(ended.stdout, b"half an ans");
        let expected = format!("ackline: {to} reset the connection after 11 B of its answer");
        assert_eq!(ended.complaint(), expected);
    });
}

/// Its own end is acknowledged, its data is not: the peer closes its side first, reads little and
/// closes.
#[test]
fn a_peer_that_closes_without_reading_everything_is_a_failure() {
    with_tun("transfers::send::a_peer_that_closes_without_reading_everything_is_a_failure", || {
        let (_directory, path) = scratch("data");
        std::fs::write(&path, noise(1_000_000, 24)).expect("written");
        let (listener, to) = kernel_listener();
        let child = BackgroundCommand::start(&mut ackline(&["send", "--json", text(&path), &to]));
        let (mut stream, _) = accept(&listener);
        stream.shutdown(Shutdown::Write).expect("connected");
        stream.read_exact(&mut [0; 65_536]).expect("data");
        drop(stream);
        let ended = child.end();
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert!(ended.complaint().contains(&format!("{to} reset the connection after ")), "{ended:?}");
        let report = ended.json();
        assert_eq!(report["ok"], false, "{report}");
        assert!(report["bytes"].as_u64().expect("a number") < 1_000_000, "{report}");
    });
}

/// A connection takes megabytes at once, however slow the way out is.
#[test]
fn what_is_counted_is_what_the_peer_has_acknowledged() {
    with_tun("transfers::send::what_is_counted_is_what_the_peer_has_acknowledged", || {
        let (_directory, path) = scratch("data");
        std::fs::write(&path, noise(1_000_000, 25)).expect("written");
        let (listener, to) = kernel_listener();
        let args = ["send", "--json", "--egress-rate", "1mbit", text(&path), &to];
        let child = BackgroundCommand::start(&mut ackline(&args));
        let (mut stream, _) = accept(&listener);
        stream.read_exact(&mut [0; 60_000]).expect("data");
        child.signal(Signal::INT);
        let error = read_all(stream).expect_err("reset");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let ended = child.end();
        assert_eq!(ended.status, Some(130), "{ended:?}");
        let report = ended.json();
        let bytes = report["bytes"].as_u64().expect("a number");
        assert!((40_000..400_000).contains(&bytes), "{report}");
        assert!(report["gbit_s"].as_f64().expect("a number") < 0.01, "{report}");
    });
}

#[test]
fn the_rate_is_that_of_the_data_and_not_of_the_wait_for_the_peers_end() {
    with_tun("transfers::send::the_rate_is_that_of_the_data_and_not_of_the_wait_for_the_peers_end", || {
        let (_directory, path) = scratch("data");
        std::fs::write(&path, noise(100_000, 26)).expect("written");
        let (listener, to) = kernel_listener();
        let child = BackgroundCommand::start(&mut ackline(&["send", "--json", text(&path), &to]));
        let (mut stream, _) = accept(&listener);
        stream.read_exact(&mut [0; 100_000]).expect("data");
        // Its side stays open until the sender has gone.
        let ended = child.end();
        drop(stream);
        succeeded(&ended);
        let report = ended.json();
        assert!(report["seconds"].as_f64().expect("a number") < 1.5, "{report}");
    });
}

#[test]
fn a_signal_before_there_is_a_connection_resets_none() {
    with_tun("transfers::send::a_signal_before_there_is_a_connection_resets_none", || {
        let child = BackgroundCommand::start(&mut ackline(&["send", "/dev/null", "198.18.0.77:9"]));
        until("the interface", || TcpListener::bind((KERNEL, 0)).ok());
        // It catches signals before it opens the interface.
        child.signal(Signal::INT);
        let ended = child.end();
        assert_eq!(ended.status, Some(130), "{ended:?}");
        assert_eq!(ended.complaint(), "ackline: SIGINT: stopped before there was a connection");
    });
}

/// Behind the default TUN device the kernel forwards nothing, unless it is told to.
#[test]
fn a_peer_beyond_a_kernel_that_does_not_forward_is_told_at_once() {
    with_tun("transfers::send::a_peer_beyond_a_kernel_that_does_not_forward_is_told_at_once", || {
        let forward = "/proc/sys/net/ipv4/ip_forward";
        let set = |value: &str| std::fs::write(forward, value).is_ok();
        if !set("0") {
            return skip(
                "transfers::send::a_peer_beyond_a_kernel_that_does_not_forward_is_told_at_once",
                &"no right to set it",
            );
        }
        let to = |host: &str, more: &[&str]| {
            let destination = format!("{host}:5001");
            run(&[&["send", "/dev/null", &destination, "--timeout", "4"], more].concat())
        };
        let closed = to("203.0.113.7", &[]);
        assert_eq!(closed.status, Some(4), "{closed:?}");
        let why = "packets to 203.0.113.7 leave by TUN ack0, and this machine's kernel does not forward them";
        assert!(
            closed.stderr.contains(why) && closed.stderr.contains("net.ipv4.ip_forward is 0"),
            "{closed:?}"
        );
        assert!(!to("203.0.113.7", &["-q"]).stderr.contains("forward"), "-q leaves errors alone");
        // The kernel itself answers.
        let here = to("198.18.0.1", &[]);
        assert!(here.complaint().contains("refused") && !here.stderr.contains("forward"), "{here:?}");
        assert!(set("1"), "as before");
        // Nobody says that there is no way on.
        let route = ["route", "add", "blackhole", "203.0.113.0/24"];
        if !Command::new("ip").args(route).status().is_ok_and(|status| status.success()) {
            return skip(
                "transfers::send::a_peer_beyond_a_kernel_that_does_not_forward_is_told_at_once",
                &"no iproute2",
            );
        }
        let open = to("203.0.113.7", &[]);
        assert!(open.stderr.contains("answers to 198.18.0.2 come back only if"), "{open:?}");
        assert!(!open.stderr.contains("does not forward"), "{open:?}");
    });
}
