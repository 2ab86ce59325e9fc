//! What needs no device: help, lists, completions, and wrong input, which is answered by one line
//! and a status.

use crate::common::{BackgroundCommand, ackline, run, scratch, text};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

/// Runs `args`, which are wrong, and returns the complaint.
pub(crate) fn refused(args: &[&str], status: i32) -> String {
    let ended = run(args);
    assert_eq!(ended.status, Some(status), "{ended:?}");
    assert!(ended.stdout.is_empty(), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    ended.complaint().to_owned()
}

#[test]
fn an_unknown_policy_is_answered_with_a_suggestion() {
    let complaint = refused(&["demo", "--cc", "cubik"], 2);
    assert_eq!(
        complaint,
        "ackline: --cc: unknown congestion control \"cubik\"; did you mean \"cubic\"? (ackline list cc)"
    );
    assert!(refused(&["send", "--ack", "imediate", "-", "h:1"], 2).contains("did you mean \"immediate\"?"));
    assert!(refused(&["recv", "--rto", "quux", "-l", ":1"], 2).contains("(ackline list rto)"));
    assert!(refused(&["demo", "--sched", "fivo"], 2).contains("did you mean \"fifo\"?"));
}

#[test]
fn a_parameter_out_of_range_is_answered_with_the_range() {
    let complaint = refused(&["demo", "--cc", "cubic:beta=7"], 2);
    assert!(
        complaint.contains("beta=7 is not possible: beta must be a number from 0.1 to 0.95"),
        "{complaint}"
    );
    let complaint = refused(&["demo", "--cc", "cubic:betta=0.5"], 2);
    assert!(complaint.contains("did you mean \"beta\"?"), "{complaint}");
    assert!(refused(&["demo", "--cc", "cubic:beta"], 2).contains("write beta=VALUE"));
}

#[test]
fn a_shaper_is_described_once_and_has_a_rate() {
    let cases: [(&[&str], &str); 8] = [
        (&["demo", "--egress-rate", "fast"], "--egress-rate \"fast\": not a rate; write 100kbit"),
        (&["send", "--egress-burst", "x", "-", "h:1"], "not a burst; write bytes (32k) or a time"),
        (&["recv", "--egress-burst", "5ms", "-l", ":1"], "shapes nothing without a rate; add --egress-rate"),
        (&["demo", "--egress-rate", "1mbit", "--egress-burst", "2g"], "--sched: burst=2g is not possible"),
        (&["demo", "--egress-rate", "1mbit", "--egress-late", "2s"], "--sched: late=2s is not possible"),
        (&["recv", "--egress-late", "5ms", "-l", ":1"], "shapes nothing without a rate; add --egress-rate"),
        (
            &["demo", "--egress-rate", "1mbit", "--sched", "fifo:rate=2mbit"],
            "--sched has rate= already; leave that or --egress-rate out",
        ),
        (
            &["demo", "--egress-rate", "1mbit", "--sched", "kalampoukas:f=1"],
            "f=1 leaves nothing to ACKs: f must be below 1",
        ),
    ];
    for (args, expected) in cases {
        let complaint = refused(args, 2);
        assert!(complaint.contains(expected), "{args:?}: {complaint}");
    }
}

#[test]
fn parameters_that_all_policies_of_a_kind_have_are_listed_once() {
    let ended = run(&["list", "sched"]);
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    assert_eq!(text.matches("shape what leaves to this rate").count(), 1, "{text}");
    assert_eq!(text.matches("share of the uplink's bytes that data is guaranteed").count(), 1, "{text}");
}

#[test]
fn an_unknown_way_to_wait_for_departures_is_answered_with_those_that_exist() {
    for command in [&["send", "-", "h:1"][..], &["recv", "--listen", ":1"]] {
        let ended = run(&[command, &["--pacing", "spinn"]].concat());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("[possible values: timer, spin]"), "{}", ended.stderr);
    }
}

#[test]
fn bad_values_are_answered_with_what_would_be_right() {
    let cases: [(&[&str], &str); 14] = [
        (&["demo", "--size", "1X"], "--size \"1X\": not a size; write bytes, or 64K, 10M, 1G"),
        (&["demo", "--seconds", "soon"], "--seconds \"soon\": not a time"),
        (&["demo", "--mtu", "100"], "from 576 to 65535"),
        (&["send", "-", "host"], "<HOST:PORT> \"host\": the port is missing"),
        (&["send", "-", "host:99999"], "\"99999\" is not a port; write a number from 1 to 65535"),
        (&["send", "-", "fd00::1"], "the port is missing; write [fd00::1]:PORT"),
        (
            &["send", "--local", "10.0.0.300/24", "-", "h:1"],
            "--local \"10.0.0.300/24\": not an address with a prefix",
        ),
        (&["send", "--local", "10.0.0.2", "-", "h:1"], "the prefix length is missing; write 10.0.0.2/24"),
        (
            &["send", "--tun", "much-too-long-a-name", "-", "h:1"],
            "--tun \"much-too-long-a-name\": not an interface",
        ),
        (&["send", "--tun", "a/b", "-", "h:1"], "at most 15 bytes"),
        (&["send", "--peer", "nobody", "-", "h:1"], "--peer \"nobody\": not an IP address"),
        (&["recv", "--listen", "name:80"], "\"name\" is not an IP address"),
        (&["recv", "--listen", ":0"], "\"0\" is not a port"),
        (&["recv", "--listen", "127.0.0.1:80"], "127.0.0.1 cannot be the address of a host"),
    ];
    for (args, expected) in cases {
        let complaint = refused(args, 2);
        assert!(complaint.contains(expected), "{args:?}: {complaint}");
    }
}

#[test]
fn addresses_that_contradict_each_other_are_refused() {
    let cases: [(&[&str], &str); 4] = [
        (
            &["send", "--local", "10.0.0.2/24", "--peer", "fd00::1", "-", "10.0.0.1:1"],
            "no --local of the same IP version",
        ),
        (&["send", "--local", "10.0.0.2/32", "-", "10.0.0.1:1"], "add --peer IP"),
        (&["send", "-", "[fd00::1]:1"], "[fd00::1]:1 has an IPv6 address only, and the stack has none"),
        (
            &["recv", "--local", "10.0.0.2/24", "-l", "10.0.0.3:1"],
            "--listen 10.0.0.3 is not an address of the stack",
        ),
    ];
    for (args, expected) in cases {
        let complaint = refused(args, 2);
        assert!(complaint.contains(expected), "{args:?}: {complaint}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (directory, missing) = scratch("missing");
    let complaint = refused(&["send", text(&missing), "198.18.0.1:1"], 5);
    assert_eq!(complaint, format!("ackline: cannot read {}: no such file or directory", missing.display()));
    let complaint = refused(&["send", text(directory.path()), "198.18.0.1:1"], 5);
    assert!(complaint.contains("is a directory"), "{complaint}");
    let inside = missing.join("file");
    let complaint = refused(&["recv", "-l", ":1", "-O", text(&inside)], 5);
    assert_eq!(complaint, format!("ackline: cannot write {}: no such file or directory", inside.display()));
    let complaint = refused(&["recv", "--keep", "-l", ":1", "-O", "-"], 2);
    assert!(complaint.contains("--keep writes one file for each connection"), "{complaint}");
}

#[test]
fn a_name_that_has_no_address_is_a_failure_of_the_network() {
    // Reserved never to exist: RFC 6761, section 6.4.
    let ended = run(&["send", "/dev/null", "nowhere.invalid:1"]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert!(ended.complaint().starts_with("ackline: cannot resolve \"nowhere.invalid\": "), "{ended:?}");
}

#[test]
fn a_failure_is_told_in_json_too() {
    let ended = run(&["send", "--json", "/dev/null", "nowhere.invalid:1"]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["ok"], false);
    assert_eq!(report["error"]["kind"], "network");
    assert_eq!(report["error"]["exit"], 4);
    assert_eq!(format!("ackline: {}", report["error"]["message"].as_str().expect("text")), ended.complaint());
}

#[test]
fn a_device_that_cannot_be_had_is_told_in_json_too() {
    // The loopback interface is no TUN device, and without rights for one there is none at all.
    for (args, event) in [(&["recv"][..], "transfer"), (&["recv", "--keep"], "summary")] {
        let ended = run(&[args, &["--json", "--tun", "lo", "-l", ":1", "-O", "/tmp"]].concat());
        assert_eq!(ended.status, Some(3), "{ended:?}");
        let report = ended.json();
        assert_eq!((&report["ok"], &report["event"]), (&false.into(), &event.into()), "{report}");
        assert_eq!(report["error"]["kind"], "device");
        assert_eq!(ended.complaint().strip_prefix("ackline: "), report["error"]["message"].as_str());
    }
}

#[test]
fn a_wrong_setting_is_answered_with_what_would_be_right() {
    for (args, right) in [
        (
            &["-o", "sakc=off"][..],
            "-o: unknown option \"sakc\"; did you mean \"sack\"? (ackline list conn, ackline list host)",
        ),
        (
            &["-o", "iw=0"],
            "-o: initial_window=0 is not possible: initial_window must be a whole number from 1 to 65535",
        ),
        (&["-o", "sack=off", "-o", "sack=on"], "-o: option \"sack\" is given twice"),
        (&["-o", "cc=reno", "--cc", "cubic"], "--cc and -o cc= say the same; leave one out"),
        (&["-o", "max_rto=1ms"], "-o: min_rto=200ms is longer than max_rto=1ms"),
        (&["-o", "mtu=1400"], "-o mtu: not here; the device has an MTU: --mtu"),
        (&["--ecn", "on"], "--ecn: ecn=on is not possible: ecn must be one of off, classic, dctcp, accurate"),
    ] {
        for command in [&["demo"][..], &["send", "-", "h:1"], &["recv", "-l", ":1"], &["bench", "-c", "h"]] {
            let complaint = refused(&[command, args].concat(), 2);
            assert_eq!(complaint.trim_end(), format!("ackline: {right}"), "{command:?}");
        }
    }
    let complaint = refused(&["recv", "-l", ":1", "-o", "copy"], 2);
    assert_eq!(complaint.trim_end(), "ackline: -o copy: not KEY=VALUE; a file to write is -O copy");
}

#[test]
fn unknown_options_and_commands_are_wrong_usage() {
    for args in
        [&["--nonsense"][..], &["frobnicate"], &["send"], &["recv"], &["demo", "--cc"], &["list", "x"]]
    {
        let ended = run(args);
        assert_eq!(ended.status, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stdout.is_empty() && ended.stderr.contains("'--help'"), "{args:?}: {ended:?}");
    }
}

#[test]
fn the_list_names_every_kind_with_one_default_each() {
    let ended = run(&["list", "--json"]);
    assert_eq!(ended.status, Some(0));
    let rows = ended.json();
    let rows = rows.as_array().expect("an array");
    for kind in ["cc", "ack", "rto", "sched"] {
        let of_kind: Vec<&Value> = rows.iter().filter(|row| row["kind"] == kind).collect();
        assert_eq!(of_kind.iter().filter(|row| row["default"] == true).count(), 1, "{kind}: {of_kind:?}");
        let alone = run(&["list", kind, "--json"]).json();
        assert_eq!(alone.as_array().expect("an array").iter().collect::<Vec<_>>(), of_kind);
    }
    for name in [
        "cubic",
        "reno",
        "immediate",
        "delayed",
        "linux-like",
        "linux",
        "dclor",
        "frto",
        "eifel",
        "go-back-n",
        "conventional",
        "flow-queue",
        "fifo",
    ] {
        assert!(rows.iter().any(|row| row["name"] == name), "{name}");
    }
    for row in rows {
        assert!(row["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{row}");
    }
}

#[test]
fn the_list_for_people_has_parameters_and_ranges() {
    let ended = run(&["list", "cc"]);
    assert_eq!(ended.status, Some(0));
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(text.contains("cubic") && text.contains("(default; RFC 9438"), "{text}");
    assert!(text.contains("beta") && text.contains("[0.1..0.95; default: 0.7]"), "{text}");
    assert!(!text.contains("flow-queue") && !text.contains("fifo"), "{text}");
}

/// Every policy of the list can be named on the command line, with each parameter at its default.
#[test]
fn what_is_listed_is_accepted() {
    let rows = run(&["list", "--json"]).json();
    for row in rows.as_array().expect("an array") {
        let part = |value: &Value| value.as_str().expect("text").to_owned();
        let params: Vec<String> = row["params"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|param| format!("{}={}", part(&param["name"]), part(&param["default"])))
            .collect();
        let name = part(&row["name"]);
        let spec = if params.is_empty() { name } else { format!("{name}:{}", params.join(",")) };
        let option = format!("--{}", part(&row["kind"]));
        // The file is looked for after the policies.
        let complaint = refused(&["send", &option, &spec, "/no/such/file", "198.18.0.1:1"], 5);
        assert!(complaint.contains("/no/such/file"), "{spec}: {complaint}");
    }
}

#[test]
fn help_and_version_succeed_and_teach() {
    let version = run(&["-V"]);
    assert_eq!(version.status, Some(0));
    assert_eq!(version.stdout, concat!("ackline ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    let build = String::from_utf8(run(&["--version"]).stdout).expect("UTF-8");
    let [name, commit, engine] = build.lines().collect::<Vec<_>>()[..] else { panic!("{build}") };
    assert_eq!(name, concat!("ackline ", env!("CARGO_PKG_VERSION")));
    assert!(commit.starts_with("commit ") && engine.starts_with("engine "), "{build}");
    for command in COMMANDS {
        let help = run(&[command, "--help"]);
        assert_eq!(help.status, Some(0));
        let text = String::from_utf8(help.stdout).expect("UTF-8");
        assert!(text.contains("Examples") && text.contains(&format!("ackline {command}")), "{text}");
    }
    let text = String::from_utf8(run(&["--help"]).stdout).expect("UTF-8");
    assert!(text.contains("Exit status:"), "{text}");
}

const COMMANDS: [&str; 14] = [
    "demo",
    "send",
    "recv",
    "bench",
    "ss",
    "set",
    "sim",
    "merge",
    "plot",
    "reproduce",
    "evaluate",
    "list",
    "new",
    "completions",
];

/// Lines of more than 100 characters.
fn too_wide(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.chars().count() > 100).collect()
}

#[test]
fn what_people_read_fits_in_a_hundred_columns() {
    let mut all: Vec<Vec<&str>> = vec![
        vec!["--help"],
        vec!["-h"],
        vec!["demo", "--device", "channel", "--size", "300k", "-v"],
        vec!["demo", "--device", "channel", "--size", "100k", "--egress-rate", "20mbit"],
        vec!["reproduce", "--list"],
        vec!["reproduce", "a3", "--table", "equations"],
        vec!["sim", "--example"],
    ];
    all.extend(COMMANDS.iter().flat_map(|command| [vec![*command, "--help"], vec![*command, "-h"]]));
    let kinds = ["cc", "ack", "rto", "sched", "conn", "host", "scenario", "interfaces"];
    all.extend(kinds.iter().map(|kind| vec!["list", kind]));
    for args in all {
        let ended = run(&args);
        assert_eq!(ended.status, Some(0), "{args:?}: {ended:?}");
        let text = String::from_utf8(ended.stdout).expect("UTF-8");
        let wide = [too_wide(&text), too_wide(&ended.stderr)].concat();
        assert!(wide.is_empty(), "{args:?}: {wide:#?}");
    }
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = run(&["completions", shell]);
        assert_eq!(ended.status, Some(0), "{shell}");
        let script = String::from_utf8(ended.stdout).expect("UTF-8");
        assert!(script.contains("demo") && script.contains("recv"), "{shell}");
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("a device of the kernel");
    for args in [&["--help"][..], &["--version"], &["ss", "--help"], &["list"], &["completions", "bash"]] {
        let ended = BackgroundCommand::start(ackline(args).stdout(full())).end();
        assert_eq!(ended.status, Some(5), "{args:?}: {ended:?}");
        assert_eq!(ended.complaint(), "ackline: cannot write to standard output: no space left on device");
        // Closed, as a shell does it.
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_ackline")]).args(args);
        let ended =
            BackgroundCommand::start(shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()))
                .end();
        assert_eq!(ended.status, Some(5), "{args:?}: {ended:?}");
        assert_eq!(ended.complaint(), "ackline: cannot write to standard output: bad file descriptor");
        // That is a choice.
        let ended = BackgroundCommand::start(ackline(args).stdout(Stdio::null())).end();
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_port_at_which_nobody_answers_is_refused() {
    for args in [
        &["proxy", "--dns", "192.0.2.53:0", "--tun", "ack0"][..],
        &["proxy", "--dns", "tcp://[2001:db8::53]:0", "--tun", "ack0"],
        &["emulate", "--resolver", "192.0.2.53:0", "--", "true"],
    ] {
        let complaint = refused(args, 2);
        assert!(complaint.contains("nobody answers on port 0; leave the port out for 53"), "{complaint}");
    }
}

#[test]
fn a_key_of_a_path_is_given_once() {
    let complaint = refused(&["emulate", "--up", "rate=1mbit", "--up", "rate=2mbit", "--", "true"], 2);
    assert_eq!(complaint.trim_end(), "ackline: --up: rate is given twice; leave one out");
    let complaint = refused(&["emulate", "--down", "delay=1ms", "--down", "delay=1ms", "--", "true"], 2);
    assert_eq!(complaint.trim_end(), "ackline: --down: delay is given twice; leave one out");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = BackgroundCommand::start(&mut ackline(&["completions", "bash"]));
    drop(child.child().stdout.take());
    let ended = child.end();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
}
