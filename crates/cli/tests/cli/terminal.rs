//! What files and peers say cannot command the user's terminal: it is fed to each command that
//! reads some, and no control character comes out.

use crate::common::{BackgroundCommand, Exit, ackline, run, scratch, text};
use crate::net::{KERNEL, kernel_listener, succeeded, with_tun};
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Writes the clipboard (OSC 52), turns red (CSI in one character), goes back to the start of the
/// line, erases, and turns the reading direction.
const EVIL: &str = "a\u{1b}]52;c;ZXZpbA==\u{7}\u{9b}31m\r\u{7f}\u{202e}b";

/// Asserts that the command said something of [`EVIL`], and nothing of it to the terminal.
fn is_harmless(what: &str, ended: &Exit) {
    let stdout = String::from_utf8(ended.stdout.clone()).unwrap_or_else(|why| panic!("{what}: {why}"));
    assert!(ended.status != Some(101), "{what}: {ended:?}");
    for said in [&stdout, &ended.stderr] {
        let found = said
            .chars()
            .find(|&c| c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{202a}'..='\u{202e}'));
        assert_eq!(found, None, "{what}: {said:?}");
    }
    let all = format!("{stdout}{}", ended.stderr);
    assert!(all.contains("]52;c;"), "{what} does not quote it, so that this shows nothing: {ended:?}");
}

fn check(args: &[&str]) {
    is_harmless(&format!("{args:?}"), &run(args));
}

/// [`EVIL`] as TOML writes it in a text.
fn in_toml() -> String {
    EVIL.chars()
        .map(|c| if c.is_ascii_graphic() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) })
        .collect()
}

#[test]
fn a_file_does_not_command_the_terminal() {
    let (folder, path) = scratch("file");
    let (evil, file) = (in_toml(), text(&path));
    let put = |content: &str| fs::write(&path, content).expect("written");

    put(&format!("\"{evil}\" = 1\nduration = '1s'\n"));
    check(&["sim", file]);
    check(&["emulate", file]);
    put(&format!(
        "duration = '1s'\nnode = [{{ name = 'x' }}]\n[[link]]\nname = \"{evil}\"\nbetween = [\"{evil}\", 'x']\n"
    ));
    check(&["sim", file]);

    put(&format!("[limits]\n\"{evil}\" = 1\n"));
    check(&["proxy", "--config", file, "--tun", "ack0"]);
    put(&format!("default = \"{evil}\"\n"));
    check(&["proxy", "--config", file, "--tun", "ack0"]);

    // A name that somebody has given to a file.
    let named = folder.path().join(EVIL);
    fs::write(&named, "neither").expect("written");
    check(&["explain", text(&named)]);
    check(&["merge", text(&named), text(&named), "--out", text(&folder.path().join("merged"))]);
    check(&["plot", text(&named)]);
    check(&["send", "--pcap", &format!("/nowhere/{EVIL}"), text(&named), "198.18.0.1:1"]);
    check(&["recv", "-l", ":1", "-O", &format!("/nowhere/{EVIL}")]);
}

#[test]
fn a_trace_does_not_command_the_terminal() {
    let (folder, trace) = scratch("a.qlog");
    let made = ["demo", "--device", "channel", "--size", "100k", "--trace", text(&trace), "--json"];
    succeeded(&run(&made));
    let mode = fs::metadata(&trace).expect("written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a trace is its user's alone");
    let whole = fs::read_to_string(&trace).expect("UTF-8");
    let evil = serde_json::to_string(EVIL).expect("JSON");
    for name in ["\"cubic\"", "\"linux-like\"", "\"linux\""] {
        assert!(whole.contains(name), "{name}");
        fs::write(&trace, whole.replace(name, &evil)).expect("written");
        let ended = run(&["explain", text(&trace)]);
        let quoted = ended.stderr.contains("]52") || String::from_utf8_lossy(&ended.stdout).contains("]52");
        if quoted {
            is_harmless(name, &ended);
        }
    }
    // The schema of another tool.
    fs::write(&trace, whole.replacen("urn:ietf", &evil[1..evil.len() - 1], 1)).expect("written");
    check(&["explain", text(&trace)]);
    let html = folder.path().join("story.html");
    fs::write(&trace, whole).expect("written");
    succeeded(&run(&["explain", text(&trace), "--html", text(&html)]));
    assert_eq!(fs::metadata(&html).expect("written").permissions().mode() & 0o777, 0o600);
}

/// Answers each client at `path` with `lines`.
fn answering(path: &Path, lines: &[serde_json::Value]) {
    let listener = UnixListener::bind(path).expect("a socket");
    let answer: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).expect("a request");
            // A client that has enough goes.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
}

#[test]
fn whoever_answers_at_a_control_socket_does_not_command_the_terminal() {
    let (folder, _) = scratch("");
    let socket = |name: &str| folder.path().join(name);
    let stack = json!({"stack": {"pid": 1, "command": EVIL, "started": 1}});
    let connection = json!({"connection": {
        "id": EVIL, "state": EVIL, "local": EVIL, "remote": EVIL, "cc": EVIL, "now": 1, "timer": [EVIL, 5], "blocked": EVIL,
        "ack_policy": EVIL, "rto_response": EVIL, "ecn": EVIL,
    }});
    let listener = json!({"listener": {"local": "0.0.0.0:1", "queued": 0}});
    let counters = json!({"counters": [[EVIL, 5]]});
    let all = socket("all");
    answering(&all, &[stack, listener, connection, counters, json!({"done": 1})]);
    let all = ["--control", text(&all)];
    for args in [&["ss", "-tanpoiem"][..], &["ss", "-j"], &["nstat", "-as"], &["nstat", "-asj"]] {
        check(&[args, &all].concat());
    }
    let refusing = socket("refusing");
    answering(&refusing, &[json!({"error": EVIL})]);
    let refusing = ["--control", text(&refusing)];
    for args in [
        &["ss"][..],
        &["ss", "-s"],
        &["nstat", "-as"],
        &["set", "cc=reno", "--all"],
        &["top", "-b", "-n", "1"],
    ] {
        check(&[args, &refusing].concat());
    }
}

/// A server of iperf3's protocol that answers with what it likes.
#[test]
fn a_peer_of_a_test_does_not_command_the_terminal() {
    with_tun("terminal::a_peer_of_a_test_does_not_command_the_terminal", || {
        let (listener, _) = kernel_listener();
        let port = listener.local_addr().expect("bound").port().to_string();
        let server = std::thread::spawn(move || {
            let (mut control, _) = listener.accept().expect("a client");
            control.read_exact(&mut [0; 37]).expect("a cookie");
            // PARAM_EXCHANGE, and then something that is none of the protocol's states.
            control.write_all(&[9]).expect("taken");
            let mut length = [0; 4];
            control.read_exact(&mut length).expect("a length");
            let mut parameters = vec![0; u32::from_be_bytes(length) as usize];
            control.read_exact(&mut parameters).expect("parameters");
            control.write_all(EVIL.as_bytes()).expect("taken");
            // Until the client has gone.
            let _ = control.read_to_end(&mut Vec::new());
        });
        let kernel = KERNEL.to_string();
        let ended =
            BackgroundCommand::start(&mut ackline(&["bench", "-c", &kernel, "-p", &port, "-t", "1"])).end();
        let all = format!("{}{}", String::from_utf8_lossy(&ended.stdout), ended.stderr);
        assert!(!all.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{all:?}");
        assert_eq!(ended.status, Some(4), "{ended:?}");
        server.join().expect("no panic");
    });
}
