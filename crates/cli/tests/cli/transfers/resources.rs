//! When something runs out: descriptors, the number of connections, or the process itself.

use crate::common::{BackgroundCommand, Exit, names, noise, scratch, text, until};
use crate::net::*;
use rustix::process::Signal;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// `ackline` with no more than `limit` descriptors.
fn ackline_within(limit: u32, args: &[&str]) -> Command {
    ackline_under(&format!("-n {limit}"), args)
}

/// `ackline` under a limit, as arguments of `ulimit`.
fn ackline_under(limit: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit {limit}; exec \"$0\" \"$@\""));
    command.arg(env!("CARGO_BIN_EXE_ackline")).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// It succeeded, or one line says what could not be had.
fn is_clear(ended: &Exit, what: &str) {
    assert!(!ended.stderr.contains("panicked"), "{what}: {ended:?}");
    match ended.status {
        Some(0) => {}
        // The program itself could not be loaded.
        Some(127) => assert!(ended.stderr.contains("loading shared libraries"), "{what}: {ended:?}"),
        Some(1 | 3..=5) => assert!(ended.complaint().contains("too many open files"), "{what}: {ended:?}"),
        _ => panic!("{what}: {ended:?}"),
    }
}

#[test]
fn a_lack_of_descriptors_is_told() {
    with_tun("transfers::resources::a_lack_of_descriptors_is_told", || {
        let (directory, scenario) = scratch("scenario.toml");
        std::fs::write(&scenario, SCENARIO).expect("written");
        let (data, out, copy) =
            (directory.path().join("data"), directory.path().join("out"), directory.path().join("copy"));
        std::fs::write(&data, noise(50_000, 1)).expect("written");
        let (listener, to) = kernel_listener();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                // A sender that fails resets its connection.
                let _ = read_all(stream);
            }
        });
        let commands: [&[&str]; 7] = [
            &["send", "-q", text(&data), &to],
            &["recv", "-q", "-l", "198.18.0.2:5001", "-O", text(&copy)],
            &["sim", "-q", "--threads", "1", text(&scenario), "--out", text(&out)],
            &["list"],
            &["list", "interfaces"],
            &["demo", "-q", "-n", "10k"],
            &["bench", "-c", "198.18.0.1", "-n", "1k", "--connect-timeout", "100"],
        ];
        for limit in 3..=20 {
            for args in commands {
                let what = format!("{} within {limit} descriptors", args.join(" "));
                let mut child = BackgroundCommand::start(&mut ackline_within(limit, args));
                if args[0] == "recv" {
                    let connected = until("an end or a connection", || match child.child().try_wait() {
                        Ok(Some(_)) => Some(None),
                        _ => TcpStream::connect_timeout(&(STACK, PORT).into(), Duration::from_secs(1))
                            .ok()
                            .map(Some),
                    });
                    if let Some(stream) = connected {
                        // Fails if the receiver cannot go on.
                        let _ = deliver(stream, b"data");
                    }
                }
                let ended = child.end();
                match args[0] {
                    // Nobody listens there.
                    "bench" if ended.stderr.contains("connection refused") => {}
                    _ => is_clear(&ended, &what),
                }
                if limit == 20 && args[0] != "bench" {
                    assert_eq!(ended.status, Some(0), "{what}: {ended:?}");
                }
            }
            // What was not complete is not there.
            let left = names(directory.path());
            assert!(
                left.iter().all(|name| ["copy", "data", "out", "scenario.toml"].contains(&name.as_str())),
                "{left:?}"
            );
        }
    });
}

const SCENARIO: &str = r#"
duration = "100ms"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
between = ["a", "b"]
rate = "1mbit"
delay = "1ms"
[[app]]
kind = "bulk"
from = "a"
to = "b"
"#;

#[test]
fn a_proxy_takes_the_descriptors_that_it_may_have_and_leaves_its_program_with_its_own() {
    with_tun(
        "transfers::resources::a_proxy_takes_the_descriptors_that_it_may_have_and_leaves_its_program_with_its_own",
        || {
            // The proxy starts after its program.
            let script = "ulimit -Sn; ulimit -Hn; for i in 1 2 3 4 5 6 7 8 9 10; do \
                          grep '^Max open files' /proc/$PPID/limits; sleep 0.1; done";
            let proxy = ["proxy", "-q", "--", "sh", "-c", script];
            let ended = BackgroundCommand::start(&mut ackline_under("-Sn 64", &proxy)).end();
            let stdout = String::from_utf8(ended.stdout.clone()).expect("text");
            let mut lines = stdout.lines();
            assert_eq!((ended.status, lines.next()), (Some(0), Some("64")), "{ended:?}");
            let hard = lines.next().expect("a limit");
            let proxy: Vec<_> =
                lines.next_back().expect("a line").split_whitespace().skip(3).take(2).collect();
            assert_eq!(proxy, [hard, hard], "{stdout}");
        },
    );
}

#[test]
fn a_server_that_lacks_descriptors_tells() {
    with_tun("transfers::resources::a_server_that_lacks_descriptors_tells", || {
        for limit in 3..=20 {
            let mut child = BackgroundCommand::start(&mut ackline_within(limit, &["bench", "-s"]));
            let there = until("an end or a network", || match child.child().try_wait() {
                Ok(Some(_)) => Some(false),
                _ => TcpListener::bind((KERNEL, 0)).is_ok().then_some(true),
            });
            if there {
                child.signal(Signal::TERM);
            }
            let ended = child.end();
            // A signal stops it, perhaps before it waits for one; it may also end for lack of the
            // descriptor that comes next.
            if !(there && matches!(ended.status, Some(143) | None)) {
                is_clear(&ended, &format!("{limit} descriptors"));
            }
            assert!(there || limit < 20, "{ended:?}");
        }
    });
}

#[test]
fn a_killed_receiver_leaves_nothing() {
    with_tun("transfers::resources::a_killed_receiver_leaves_nothing", || {
        let (directory, path) = scratch("copy");
        for args in [&["-q", "-O", text(&path)][..], &["-q", "--keep", "-O", text(directory.path())]] {
            // As an earlier one leaves it on a file system where files have names from the
            // beginning.
            std::fs::write(directory.path().join(".ackline.1-0.partial"), "part").expect("written");
            let child = receiver(args);
            let mut stream = connect();
            stream.write_all(&noise(300_000, 3)).expect("taken");
            until("data in a file", || child.written(directory.path()));
            child.signal(Signal::KILL);
            assert_eq!(child.end().status, None);
            assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
        }
    });
}

#[test]
fn a_crowd_of_silent_connections_does_not_end_the_service() {
    with_tun("transfers::resources::a_crowd_of_silent_connections_does_not_end_the_service", || {
        // More than --max lets in at once.
        const CROWD: usize = 400;
        let (directory, _) = scratch("");
        let child = receiver(&["--keep", "--timeout", "1", "--json", "-O", text(directory.path())]);
        let mut crowd = vec![];
        // On a busy machine many have gone, and been told, before the last has come.
        let ended = child.end_while_signalled(|| {
            crowd.extend((0..CROWD).map(|_| connect()));
            assert_eq!(deliver(connect(), b"data").expect("taken"), 0);
        });
        drop(crowd);
        let summary: serde_json::Value =
            serde_json::from_slice(ended.stdout.trim_ascii().rsplit(|b| *b == b'\n').next().expect("a line"))
                .expect("JSON");
        assert_eq!(summary["complete"], 1, "{summary}");
        let silent = summary["silent"].as_u64().expect("a number");
        assert!(silent >= 145, "those that came before it had to go first: {summary}");
        let aborted = summary["aborted"].as_u64().expect("a number");
        assert!(silent + aborted <= CROWD as u64, "{summary}");
    });
}

#[test]
fn who_was_silent_longest_makes_room_for_others() {
    with_tun("transfers::resources::who_was_silent_longest_makes_room_for_others", || {
        let (directory, _) = scratch("");
        let args =
            ["--keep", "--max", "3", "--timeout", "6", "--grace", "100ms", "-O", text(directory.path())];
        let child = receiver(&args);
        let mut slow = connect();
        slow.write_all(b"a byte").expect("taken");
        let crowd = [connect(), connect()];
        until("three open files, one with data", || {
            let lengths = child.open_files(directory.path());
            (lengths.len() == 3 && lengths.iter().sum::<u64>() == 6).then_some(())
        });
        // A tenth of six seconds passes, and who has sent nothing goes before who has.
        let ended = child.end_while_signalled(|| assert_eq!(deliver(connect(), b"data").expect("taken"), 0));
        drop(crowd);
        assert!(ended.stderr.contains("1 complete, 2 aborted, 1 silent"), "{ended:?}");
        assert!(
            ended.stderr.contains(" s after 0 B while others waited; nothing of it was kept"),
            "{ended:?}"
        );
        assert_eq!(ended.status, Some(1), "{ended:?}");
    });
}

#[test]
fn who_speaks_again_in_time_is_not_sent_away() {
    with_tun("transfers::resources::who_speaks_again_in_time_is_not_sent_away", || {
        let (directory, _) = scratch("");
        let args = ["--keep", "--max", "1", "--timeout", "20", "--json", "-O", text(directory.path())];
        let child = receiver(&args);
        let mut slow = connect();
        until("an open file", || (child.open_files(directory.path()).len() == 1).then_some(()));
        // Longer than a tenth of the limit, and nobody else is there.
        pause(Duration::from_millis(2_700));
        slow.write_all(b"late, ").expect("taken");
        let second = connect();
        // The receiver has time to send the slow one away.
        pause(Duration::from_millis(300));
        let ended = child.end_while_signalled(|| {
            assert_eq!(deliver(slow, b"but in time").expect("taken"), 0);
            assert_eq!(deliver(second, b"data").expect("taken"), 0);
        });
        succeeded(&ended);
        assert_eq!(names(directory.path()).len(), 2);
    });
}

#[expect(clippy::disallowed_methods, reason = "silence lasts for a while")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
