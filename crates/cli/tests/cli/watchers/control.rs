//! Control sockets: `ackline ss` and `ackline set`, and whoever else talks to the socket.

use crate::common::{BackgroundCommand, Exit, ackline, names, noise, run, said, scratch, text, until};
use crate::net::*;
use crate::usage::refused;
use ackline::runtime::testing::has_programs;
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn stdout(ended: &Exit) -> String {
    String::from_utf8(ended.stdout.clone()).expect("UTF-8")
}

/// `name:value` or `name value` in a line of `ss`.
fn field(line: &str, name: &str) -> f64 {
    let found = line.split_whitespace().find_map(|word| word.strip_prefix(&format!("{name}:")));
    let text = found.unwrap_or_else(|| panic!("{name} in {line}"));
    text.split('/').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name}:{text}"))
}

/// The answer to raw bytes.
fn answer(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
    // It may refuse before all was written.
    let _ = stream.write_all(request);
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer");
    line
}

#[test]
fn ss_agrees_with_the_kernel_and_set_changes_a_live_connection() {
    let name = "watchers::control::ss_agrees_with_the_kernel_and_set_changes_a_live_connection";
    with_tun(name, || {
        let (directory, path) = scratch("copy");
        let socket = directory.path().join("c.sock");
        let at = ["--control", text(&socket)];
        let child = receiver(&[&["-q", "-O", text(&path)], &at[..]].concat());
        let mut stream = connect();
        let data = noise(2_000_000, 9);
        stream.write_all(&data[..1_000_000]).expect("taken");

        let ask = || said(&[&["ss", "-tino"], &at[..]].concat());
        let ours = until("all of it", || Some(ask()).filter(|text| text.contains("bytes_received:1000000")));
        let lines: Vec<&str> = ours.lines().collect();
        assert_eq!(lines.len(), 3, "{ours}");
        assert!(lines[0].starts_with("State Recv-Q Send-Q Local Address:Port Peer Address:Port"), "{ours}");
        assert!(lines[1].starts_with("ESTAB ") && lines[1].contains("198.18.0.2:5001"), "{ours}");
        assert!(lines[1].contains("users:((\"ackline recv\",pid="), "{ours}");

        if has_programs(&format!("{name}, beside the kernel's"), &["ss"]) {
            let mut theirs = Command::new("ss");
            theirs.args(["-tin", "state", "established", "dport", "=", ":5001"]);
            let theirs = String::from_utf8(theirs.output().expect("it runs").stdout).expect("UTF-8");
            let (theirs, ours) = (theirs.lines().last().expect("a connection"), lines[2]);
            // A busy machine makes the kernel probe.
            let again = if theirs.contains("bytes_retrans:") { field(theirs, "bytes_retrans") } else { 0.0 };
            let sent = field(theirs, "bytes_sent") - again;
            assert_eq!(sent, field(ours, "bytes_received"), "{theirs}\n{ours}");
            assert_eq!(field(theirs, "mss"), field(ours, "advmss"), "{theirs}\n{ours}");
            assert_eq!(field(theirs, "advmss"), field(ours, "mss"), "{theirs}\n{ours}");
            assert_eq!(field(theirs, "pmtu"), field(ours, "pmtu"), "{theirs}\n{ours}");
            let (out, arrived) = (field(theirs, "data_segs_out"), field(ours, "data_segs_in"));
            assert!(arrived <= out && (again > 0.0 || arrived == out), "{theirs}\n{ours}");
            let least = field(theirs, "minrtt");
            assert!((0.001..500.0).contains(&least) && field(ours, "rtt") < 500.0, "{theirs}\n{ours}");
        }

        // As people type it.
        let all = said(&[&["ss", "-tanpHO", "-4", "-iem"], &at[..], &["state", "big"]].concat());
        let [ours_alone] = all.lines().collect::<Vec<_>>()[..] else { panic!("one line: {all}") };
        for part in ["ESTAB ", " sk:", " skmem:(r", " cubic ", " bytes_received:1000000"] {
            assert!(ours_alone.contains(part), "{part}: {all}");
        }
        assert_eq!(said(&[&["ss", "-tanH6"], &at[..]].concat()), "");

        let filtered = |filter: &[&str]| said(&[&["ss", "-n"], &at[..], filter].concat()).lines().count() - 1;
        assert_eq!(filtered(&["sport", "=", ":5001"]), 1);
        assert_eq!(filtered(&["state", "established", "dst", "198.18.0.0/24"]), 1);
        assert_eq!(filtered(&["dport", "=", ":5001"]), 0);
        assert_eq!(filtered(&["dst", "0.0.0.0/0"]), 1);
        assert_eq!(filtered(&["dst", "::/0"]), 0);
        assert_eq!(filtered(&["state", "bucket"]), 0);
        assert_eq!(filtered(&["state", "syn-sent"]), 0);
        let json: serde_json::Value =
            serde_json::from_str(&said(&[&["ss", "-j"], &at[..]].concat())).expect("JSON");
        assert_eq!(json[0]["command"], "recv");
        assert_eq!(json[0]["connections"][0]["bytes_received"], 1_000_000);

        assert!(!ours.contains("ack_policy:immediate"), "{ours}");
        let set = |filter: &[&str]| said(&[&["set", "ack=immediate,cc=reno"], &at[..], filter].concat());
        assert_eq!(set(&["sport", "=", ":1"]), "changed 0 connections\n");
        assert!(!ask().contains("ack_policy:immediate"));
        assert_eq!(set(&["sport", "=", ":5001"]), "changed 1 connection\n");
        let after = ask();
        assert!(after.contains("ack_policy:immediate") && after.contains(" reno "), "{after}");
        let complaint = refused(&[&["set", "sack=off", "--all"], &at[..]].concat(), 2);
        assert!(complaint.contains("sack cannot change on a live connection; these can: cc"), "{complaint}");

        assert_eq!(deliver(stream, &data[1_000_000..]).expect("taken"), 0);
        let ended = child.end();
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(std::fs::read(&path).expect("the file") == data);
        assert!(!socket.exists(), "removed at the end");
    });
}

#[test]
fn garbage_and_crowds_at_the_socket_leave_the_transfer_alone() {
    with_tun("watchers::control::garbage_and_crowds_at_the_socket_leave_the_transfer_alone", || {
        let (directory, path) = scratch("copy");
        let socket = directory.path().join("c.sock");
        // Nobody is sent away for being slow.
        let at = ["--control", text(&socket), "--control-timeout", "10m"];
        let child = receiver(&[&["-q", "-O", text(&path)], &at[..]].concat());
        let mut stream = connect();
        let data = noise(3_000_000, 9);
        stream.write_all(&data[..1_000_000]).expect("taken");

        for garbage in [
            &b"\n"[..],
            b"{}\n",
            b"{\"do\":\"halt\"}\n",
            b"\xff\x00[[[\n",
            b"{\"do\":\"show\",\"filter\":7}\n",
        ] {
            let said = answer(&socket, garbage);
            assert!(said.starts_with("{\"error\":\"not a request: "), "{said}");
        }
        let long = vec![b'['; 10 << 20];
        assert!(answer(&socket, &long).starts_with("{\"error\":\"not a line of at most 65536 bytes"));

        // A thousand clients that ask nothing: 16 are borne with, and the others are told.
        let crowd = |number: usize| -> Vec<UnixStream> {
            (0..number).map(|_| UnixStream::connect(&socket).expect("it listens")).collect()
        };
        let served = crowd(16);
        for _ in 0..2 {
            let others = crowd(492);
            stream.write_all(&data[1_000_000..1_500_000]).expect("taken");
            for mut client in others {
                client.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
                let mut said = String::new();
                client.read_to_string(&mut said).expect("an answer");
                assert_eq!(said, "{\"error\":\"too many clients: at most 16 at once\"}\n");
            }
            let complaint = refused(&["ss", "--control", text(&socket)], 2);
            assert!(complaint.contains("too many clients"), "{complaint}");
        }
        drop(served);
        let shown = until("a place", || {
            let ended = run(&["ss", "-i", "--control", text(&socket)]);
            (ended.status == Some(0)).then(|| stdout(&ended))
        });
        assert!(shown.contains("bytes_received:2000000"), "{shown}");

        assert_eq!(deliver(stream, &data[2_000_000..]).expect("taken"), 0);
        assert_eq!(child.end().status, Some(0));
        let copied = std::fs::read(&path).expect("the file");
        assert_eq!(copied.len(), 1_000_000 + 2 * 500_000 + 1_000_000);
    });
}

#[test]
fn limits_of_the_socket_can_be_chosen_and_what_they_refuse_is_counted() {
    with_tun("watchers::control::limits_of_the_socket_can_be_chosen_and_what_they_refuse_is_counted", || {
        let (directory, path) = scratch("copy");
        let socket = directory.path().join("c.sock");
        let limits = ["--control-clients", "2", "--control-request", "256", "--control-timeout", "2"];
        let at = ["--control", text(&socket)];
        let child = receiver(&[&["-q", "-O", text(&path)], &at[..], &limits].concat());
        until("its socket", || socket.exists().then_some(()));
        let long = format!("{{\"do\":\"show\",\"filter\":[{:>300}]}}\n", "");
        assert_eq!(answer(&socket, long.as_bytes()), "{\"error\":\"not a line of at most 256 bytes\"}\n");
        // Half a request, and then silence.
        let mut half: Vec<UnixStream> =
            (0..2).map(|_| UnixStream::connect(&socket).expect("it listens")).collect();
        for client in &mut half {
            client.write_all(b"{\"do\":").expect("taken");
        }
        assert_eq!(answer(&socket, b""), "{\"error\":\"too many clients: at most 2 at once\"}\n");
        for client in half {
            let mut line = String::new();
            BufReader::new(client).read_line(&mut line).expect("an answer");
            assert_eq!(line, "{\"error\":\"no request within 2 s\"}\n");
        }
        let counted = until("a place", || {
            let mut nstat = ackline(&[&["nstat", "-asj", "AcklineControl*"], &at[..]].concat());
            let ended = BackgroundCommand::start(nstat.env("XDG_RUNTIME_DIR", directory.path())).end();
            (ended.status == Some(0)).then(|| ended.json()["ackline"].clone())
        });
        let count = |name: &str| counted[name].as_u64().expect("a counter");
        assert_eq!((count("AcklineControlRefused"), count("AcklineControlTimeouts")), (1, 2), "{counted}");
        assert!(count("AcklineControlOverflows") >= 1, "{counted}");
        let summary = said(&[&["ss", "-s"], &at[..]].concat());
        assert!(
            summary.starts_with("Total: 1\nTCP:   1 (estab 0, closed 0, orphaned 0, timewait 0)\n"),
            "{summary}"
        );
        assert!(summary.contains("cc cubic, ack ") && summary.contains("listeners: 1"), "{summary}");
        reset(connect());
        child.end();
    });
}

#[test]
fn live_stacks_are_told_apart() {
    with_tun("watchers::control::live_stacks_are_told_apart", || {
        let (directory, _) = scratch("unused");
        let folder = directory.path().join("ackline");
        let start = |number: usize| {
            let (tun, local) = (format!("ack{number}"), format!("198.18.{number}.2/24"));
            let listen = format!("198.18.{number}.2:5001");
            let arguments = ["recv", "-q", "--tun", &tun, "--local", &local, "-l", &listen];
            BackgroundCommand::start(ackline(&arguments).env("XDG_RUNTIME_DIR", directory.path()))
        };
        let mut stacks: Vec<BackgroundCommand> = (0..3).map(start).collect();
        until("their sockets", || (folder.exists() && names(&folder).len() == 3).then_some(()));
        let ss = |arguments: &[&str]| {
            let arguments = [&["ss", "-ltn"], arguments].concat();
            stdout(
                &BackgroundCommand::start(ackline(&arguments).env("XDG_RUNTIME_DIR", directory.path())).end(),
            )
        };
        let all = until("all three", || Some(ss(&[])).filter(|listed| listed.lines().count() == 4));
        for (number, stack) in stacks.iter_mut().enumerate() {
            let pid = stack.child().id();
            let line = format!("198.18.{number}.2:5001");
            let own = all.lines().find(|listed| listed.contains(&line)).expect("listed");
            assert!(own.contains(&format!("(\"ackline recv\",pid={pid})")), "{all}");
            let alone = ss(&["--pid", &pid.to_string()]);
            assert!(alone.lines().count() == 2 && alone.contains(&line), "{alone}");
        }
        let gone = stacks.remove(1);
        gone.signal(Signal::KILL);
        gone.end();
        let rest = ss(&[]);
        assert!(rest.lines().count() == 3 && !rest.contains("198.18.1.2"), "{rest}");
        for stack in stacks {
            stack.signal(Signal::TERM);
            stack.end();
        }
    });
}

#[test]
fn an_ordinary_users_demo_is_found_by_the_same_user() {
    let name = "watchers::control::an_ordinary_users_demo_is_found_by_the_same_user";
    let Some(nobody) = Nobody::new() else {
        return ackline::runtime::testing::skip(name, &"no right to be another user");
    };
    let mut demo =
        BackgroundCommand::start(nobody.command(&["demo", "--seconds", "60"]).env_remove("XDG_RUNTIME_DIR"));
    let pid = demo.child().id();
    let listed = until("its connection", || {
        let ended = BackgroundCommand::start(nobody.command(&["ss"]).env_remove("XDG_RUNTIME_DIR")).end();
        Some(stdout(&ended)).filter(|listed| listed.contains("ackline demo"))
    });
    assert!(listed.contains(&format!("pid={pid})")), "{listed}");
    demo.signal(Signal::KILL);
    demo.end();
    // Whoever looks removes what is left.
    assert!(
        BackgroundCommand::start(nobody.command(&["ss"]).env_remove("XDG_RUNTIME_DIR")).end().status
            == Some(0)
    );
}

#[test]
fn the_leftover_of_a_killed_process_is_removed_by_the_next() {
    with_tun("watchers::control::the_leftover_of_a_killed_process_is_removed_by_the_next", || {
        let (directory, _) = scratch("unused");
        let start = |arguments: &[&str]| {
            let mut command = ackline(&[&["recv", "-q", "-l", "198.18.0.2:5001"], arguments].concat());
            BackgroundCommand::start(command.env("XDG_RUNTIME_DIR", directory.path()))
        };
        let folder = directory.path().join("ackline");
        let socket = |child: &mut BackgroundCommand| -> PathBuf {
            folder.join(format!("{}-recv.sock", child.child().id()))
        };
        let mut first = start(&[]);
        let left = socket(&mut first);
        until("its socket", || left.exists().then_some(()));
        first.signal(Signal::KILL);
        first.end();
        assert!(left.exists(), "nobody could remove it");

        let mut second = start(&[]);
        let own = socket(&mut second);
        until("its socket", || own.exists().then_some(()));
        assert_eq!(names(&folder), [own.file_name().expect("a name").to_str().expect("UTF-8")]);
        let ss = |arguments: &[&str]| {
            BackgroundCommand::start(ackline(arguments).env("XDG_RUNTIME_DIR", directory.path())).end()
        };
        let listed = stdout(&ss(&["ss", "-ltn"]));
        assert!(listed.contains("LISTEN") && listed.contains("198.18.0.2:5001"), "{listed}");
        let pid = second.child().id().to_string();
        assert_eq!(stdout(&ss(&["ss", "-ltn", "--pid", &pid])), listed);
        let other = ss(&["ss", "--pid", "1"]);
        assert!(other.complaint().contains("--pid 1: no stack of this process"), "{other:?}");
        second.signal(Signal::TERM);
        second.end();
        assert_eq!(names(&folder), [] as [&str; 0]);

        let mut without = start(&["--no-control"]);
        let none = socket(&mut without);
        until("the interface", || std::net::TcpListener::bind((KERNEL, 0)).ok());
        assert!(stdout(&ss(&["ss", "-a"])).lines().count() == 1 && !none.exists());
    });
}

#[test]
fn a_path_that_cannot_be_a_sockets_ends_the_command_in_good_order() {
    with_tun("watchers::control::a_path_that_cannot_be_a_sockets_ends_the_command_in_good_order", || {
        let (directory, path) = scratch("file");
        std::fs::write(&path, "mine").expect("written");
        let inside = path.join("c.sock");
        let long = directory.path().join("x".repeat(150));
        for (at, why) in [
            (text(&path), "a file that is no socket is there"),
            (text(&inside), "not a directory"),
            (text(&long), "a socket's path has at most"),
            ("/nowhere/c.sock", "no such file or directory"),
            ("/", "not the path of a file"),
        ] {
            let ended = run(&["recv", "-l", ":5001", "--control", at]);
            assert_eq!(ended.status, Some(5), "{at}: {ended:?}");
            let complaint = ended.complaint();
            assert!(
                complaint.starts_with(&format!("ackline: cannot listen at --control {at}: {why}")),
                "{complaint}"
            );
        }
        assert_eq!(std::fs::read(&path).expect("still there"), b"mine");
        assert_eq!(names(directory.path()), ["file"]);
    });
}

/// Another user has made the directory of this one's sockets, and a socket that would lie: nobody
/// asks it.
#[test]
fn a_directory_that_somebody_else_prepared_is_not_asked() {
    let (directory, _) = scratch("unused");
    let folder = directory.path().join("ackline");
    let ask = |arguments: &[&str]| {
        BackgroundCommand::start(ackline(arguments).env("XDG_RUNTIME_DIR", directory.path())).end()
    };
    let asks = || {
        for arguments in [
            &["ss"][..],
            &["ss", "-s"],
            &["set", "cc=reno", "--all"],
            &["nstat", "-as"],
            &["top", "-b", "-n", "1"],
        ] {
            let ended = ask(arguments);
            assert_eq!(ended.status, Some(5), "{arguments:?}: {ended:?}");
            let complaint = ended.complaint();
            assert!(complaint.contains("not a directory of this user alone (mode 0700)"), "{complaint}");
        }
    };
    // Open to others.
    std::fs::create_dir(&folder).expect("made");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).expect("ours");
    let lure = folder.join("1-recv.sock");
    let listener = UnixListener::bind(&lure).expect("a socket");
    listener.set_nonblocking(true).expect("an option");
    let leftover = folder.join("2-recv.sock");
    drop(UnixListener::bind(&leftover).expect("a socket"));
    asks();
    // Another user's.
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).expect("ours");
    if std::os::unix::fs::chown(&folder, Some(65_534), None).is_ok() {
        asks();
    }
    // A link to one that would do.
    let own = directory.path().join("own");
    std::fs::rename(&folder, &own).expect("ours");
    let _ = std::os::unix::fs::chown(&own, Some(rustix::process::getuid().as_raw()), None);
    std::os::unix::fs::symlink(&own, &folder).expect("made");
    asks();
    assert!(listener.accept().is_err(), "it was not asked");
    assert_eq!(names(&own), ["1-recv.sock", "2-recv.sock"], "what is not theirs stays");
    // Their own, and nobody else's: the leftover goes, and who listens is asked.
    std::fs::remove_file(&folder).expect("ours");
    std::fs::rename(&own, &folder).expect("ours");
    drop(listener);
    assert_eq!(ask(&["ss"]).status, Some(0));
    assert_eq!(names(&folder), [] as [&str; 0]);
}

#[test]
fn whoever_answers_without_end_is_left() {
    let (_directory, socket) = scratch("c.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a client");
            BufReader::new(&stream).read_line(&mut String::new()).expect("a request");
            // No line's end, and lines without end, until the client goes.
            let text =
                if number % 2 == 0 { "x".repeat(65_536) } else { "{\"connection\":{}}\n".repeat(4_096) };
            while stream.write_all(text.as_bytes()).is_ok() {}
        }
    });
    let at = ["--control", text(&socket), "--max-answer", "8M"];
    for why in ["a line of its answer is longer than 1 MiB", "its answer is longer than --max-answer"] {
        let complaint = refused(&[&["ss"], &at[..]].concat(), 5);
        assert!(complaint.contains(why), "{complaint}");
    }
}

#[test]
fn what_is_wrong_is_named_without_a_stack() {
    let cases: [(&[&str], &str); 5] = [
        (
            &["ss", "state", "open"],
            "state \"open\": no such state; write all, connected, synchronized, bucket, big",
        ),
        (&["ss", "dport", "=", ":80x"], "dport \":80x\": not a port; write :80"),
        (&["set", "cc=cubik", "--all"], "did you mean \"cubic\"?"),
        (&["set", "cc=reno"], "no filter; write one, such as dst 10.0.0.2, or --all"),
        (&["set", "mss=1", "--all"], "mss"),
    ];
    for (args, expected) in cases {
        let complaint = refused(args, 2);
        assert!(complaint.contains(expected), "{args:?}: {complaint}");
    }
    for command in [&["ss"][..], &["top", "-b"], &["nstat"], &["set", "cc=reno", "--all"]] {
        let complaint = refused(&[command, &["--control", "/proc/none/c.sock"]].concat(), 5);
        assert!(complaint.contains("cannot ask the stack at /proc/none/c.sock: "), "{complaint}");
    }
    let complaint = refused(&["top", "-b", "--pid", "1"], 2);
    assert!(complaint.contains("--pid 1: no stack of this process"), "{complaint}");
}
