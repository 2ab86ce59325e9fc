//! `ackline emulate FILE`: scenarios whose hosts are of several worlds.

use crate::common::{BackgroundCommand, Exit, ackline, names, run, scratch, text, until};
use crate::net::*;
use crate::usage::refused;
use ackline::runtime::testing::skip;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const WORLDS: [&str; 3] = ["virtual", "live", "kernel"];

/// Two hosts, and an application of each kind from one to the other.
const ALL_KINDS: &str = r#"
duration = "2500ms"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "wire", between = ["a", "b"], rate = "20mbit", delay = "1ms" }]
app = [
    { name = "bulk", kind = "bulk", from = "a", to = "b", size = "20k", transfers = 2 },
    { name = "slow", kind = "bulk", from = "a", to = "b", size = "20k", reader = { bytes = 5000, interval = "5ms" } },
    { name = "request", kind = "request", from = "a", to = "b", request = 100, response = 3000, requests = 3 },
    { name = "reconnect", kind = "request", from = "a", to = "b", request = 100, response = 3000, requests = 3, reconnect = true },
    { name = "download", kind = "download", from = "a", to = "b", size = "10k", files = 2 },
    { name = "writes", kind = "writes", from = "a", to = "b", size = 500, interval = "10ms", writes = 5 },
    { name = "on-off", kind = "on-off", from = "a", to = "b", on = "20ms", off = "20ms", rounds = 2 },
]
"#;

/// One bulk flow.
const BULK: &str = r#"
duration = "1s"
node = [{ name = "a", world = "kernel" }, { name = "b", world = "kernel" }]
link = [{ name = "wire", between = ["a", "b"], rate = "10mbit", delay = "1ms" }]
app = [{ name = "flow", kind = "bulk", from = "a", to = "b" }]
"#;

/// A folder with a scenario in it.
fn scenario(content: &str) -> (tempfile::TempDir, String) {
    let (directory, file) = scratch("pair.toml");
    std::fs::write(&file, content).expect("ours");
    let file = text(&file).to_owned();
    (directory, file)
}

/// Runs a scenario with these worlds, and reads its results.
fn emulated(directory: &Path, file: &str, worlds: [&str; 2]) -> Vec<Value> {
    let json = directory.join("results");
    let set = ["a", "b"].map(|node| format!("node.{node}.world={}", worlds[usize::from(node == "b")]));
    let ended = run(&["emulate", "-q", file, "--set", &set[0], "--set", &set[1], "--json", text(&json)]);
    succeeded(&ended);
    assert!(ended.stdout.is_empty(), "{ended:?}");
    serde_json::from_slice(&std::fs::read(json).expect("results")).expect("JSON")
}

/// What an application of [`ALL_KINDS`] has done when it has done all: bytes received, and times
/// measured. `None`: some.
fn whole(name: &str) -> Option<(u64, usize)> {
    match name {
        "bulk" => Some((40_960, 2)),
        "slow" => Some((20_480, 1)),
        "request" | "reconnect" => Some((9_000, 3)),
        "download" => Some((20_480, 2)),
        "writes" => Some((2_500, 0)),
        _ => None,
    }
}

/// Checks what holds in every run; true if all applications have done all.
fn checked(result: &Value, [from, to]: [&str; 2]) -> bool {
    assert!(result["validity"]["late_p99_us"].as_f64().is_some(), "{result}");
    let flows = result["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 7);
    let whole = |flow: &Value| {
        let name = flow["name"].as_str().expect("a name");
        let place = format!("{name} from {from} to {to}: {flow}");
        assert_eq!(flow["wrong_reads"], 0, "{place}");
        assert_ne!(flow["app_metrics"]["failed"].as_f64(), Some(1.0), "{place}");
        let received = flow["received_bytes"].as_u64().expect("a number");
        let times = flow["times_s"].as_array().expect("times").len();
        let Some((bytes, measured)) = whole(name) else { return received > 0 };
        assert!(received <= bytes && times <= measured, "{place}");
        let sender = if ["request", "reconnect", "download"].contains(&name) { to } else { from };
        let cc = if sender == "kernel" { "kernel cubic" } else { "cubic" };
        let all = received == bytes && times == measured;
        assert!(!all || flow["cc"] == cc, "{place}");
        all
    };
    flows.iter().map(whole).filter(|whole| *whole).count() == flows.len()
}

#[test]
fn every_application_works_between_every_two_worlds() {
    with_tun("emulate_scenario::every_application_works_between_every_two_worlds", || {
        let (directory, file) = scenario(ALL_KINDS);
        for from in WORLDS {
            for to in WORLDS {
                // A busy machine may not get that far in the time of one run.
                let done = (0..10).any(|_| {
                    let results = emulated(directory.path(), &file, [from, to]);
                    let [result] = &results[..] else { panic!("one run: {results:?}") };
                    checked(result, [from, to])
                });
                assert!(done, "from {from} to {to}");
            }
        }
    });
}

/// Line and column of a value.
fn place(content: &str, value: &str) -> String {
    let before = &content[..content.find(value).expect("it is there")];
    let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1);
    format!("{}:{}", before.lines().count(), column + 1)
}

#[test]
fn what_only_one_world_has_is_refused_at_its_place() {
    let kernel = "node = [{ name = \"a\", world = \"kernel\" }, { name = \"b\" }]";
    let with = |node: &str, app: &str, rest: &str| {
        format!(
            "duration = \"1s\"\n{node}\nlink = [{{ between = [\"a\", \"b\"], rate = \"1mbit\" }}]\n\
             app = [{{ kind = \"bulk\", from = \"a\", to = \"b\"{app} }}]\n{rest}"
        )
    };
    let node = |more: &str| with(&format!("node = [{{ name = \"a\"{more} }}, {{ name = \"b\" }}]"), "", "");
    for (content, parts) in [
        (node(", kernel = { cc = \"reno\" }"), ["{ cc", "node.a.kernel", "for hosts of the kernel"]),
        (
            node(", world = \"kernel\", egress = \"fed\""),
            ["\"fed\"", "node.a.egress", "for hosts of ackline"],
        ),
        (node(", world = \"kernel\", default_ttl = 9"), ["9", "node.a.default_ttl", "for hosts of ackline"]),
        (
            node(", world = \"kernel\", kernel = { sysctl = { \"kernel.panic\" = 1 } }"),
            ["1 } }", "node.a.kernel.sysctl.kernel.panic", "begins with \"net.\""],
        ),
        (
            with(kernel, ", conn = { rto = \"dclor\" }", ""),
            ["\"dclor\"", "app.0.conn.rto", "are cc, mss, nagle, send_buffer and recv_buffer"],
        ),
        (with(kernel, ", conn = { mss = 80 }", ""), ["80 }", "app.0.conn.mss", "mss is 88 to 32767 there"]),
        (
            with(kernel, ", conn = { nagle = \"rfc896\" }", ""),
            ["\"rfc896\"", "app.0.conn.nagle", "nagle is off or minshall there"],
        ),
        (
            with(
                &kernel
                    .replace("\"a\", world = \"kernel\"", "\"a\"")
                    .replace("\"b\"", "\"b\", world = \"kernel\""),
                ", accept = { ack = \"a3\" }",
                "",
            ),
            ["\"a3\"", "app.0.accept.ack", "b is of the world \"kernel\""],
        ),
        (
            with(kernel, "", "").replace("\"bulk\"", "\"bsd-writer\""),
            [
                "\"bsd-writer\"",
                "app.0.kind",
                "bsd-writer is for hosts of the world \"virtual\", and a is of \"kernel\"",
            ],
        ),
        (
            with(&kernel.replace("\"b\"", "\"b\", world = \"live\""), ", reader = { wake_up = \"1ms\" }", ""),
            ["{ wake_up", "app.0.reader", "and b is of \"live\""],
        ),
    ] {
        let (_directory, file) = scenario(&content);
        let complaint = refused(&["emulate", &file], 2);
        let [value, key, right] = parts;
        let place = format!("{}: {key}: ", place(&content, value));
        assert!(complaint.contains(&place) && complaint.contains(right), "{place}\n{complaint}\n{content}");
    }
    // What holds for all flows is for those of ackline, and the kernel's other end inherits
    // nothing.
    for content in [
        with(kernel, "", "[conn]\nrto = \"dclor\"\n"),
        with(
            kernel,
            ", conn = { cc = \"reno\", nagle = \"off\", send_buffer = 8192, recv_buffer = 8192 }",
            "",
        ),
        with(kernel, ", accept = { ack = \"a3\" }", ""),
    ] {
        let (_directory, file) = scenario(&content);
        succeeded(&run(&["sim", "-q", &file]));
    }
}

#[test]
fn a_flows_congestion_control_that_the_kernel_lacks_is_told_with_its_place() {
    with_tun(
        "emulate_scenario::a_flows_congestion_control_that_the_kernel_lacks_is_told_with_its_place",
        || {
            let own = BULK.replace("to = \"b\" }", "to = \"b\", conn = { cc = \"hstcp\" } }");
            let all = BULK.to_owned() + "[conn]\ncc = \"hstcp\"\n";
            for (content, key) in [(own, "app.flow.conn.cc"), (all, "conn.cc")] {
                let (_directory, file) = scenario(&content);
                let complaint = refused(&["emulate", "-q", &file], 2);
                let place =
                    format!("{}: {key}: the kernel has no congestion control", place(&content, "\"hstcp\""));
                assert!(complaint.contains(&place), "{place}\n{complaint}");
            }
        },
    );
}

#[test]
fn ends_of_the_kernel_have_the_mss_that_is_asked_for() {
    with_tun("emulate_scenario::ends_of_the_kernel_have_the_mss_that_is_asked_for", || {
        let content = BULK.replace("to = \"b\" }", "to = \"b\", size = \"100k\", conn = { mss = 500 } }");
        let (directory, file) = scenario(&content);
        let done = (0..10).any(|_| {
            let results = emulated(directory.path(), &file, ["kernel", "kernel"]);
            let flow = &results[0]["flows"][0];
            let packets = flow["data_packets"].as_u64().expect("a number");
            // 100 KiB in segments of 500 bytes, with their options.
            flow["received_bytes"] == 102_400 && packets >= 102_400 / 500
        });
        assert!(done);
    });
}

#[test]
fn results_that_cannot_be_written_are_told_before_anything_runs() {
    let (directory, file) = scenario(BULK);
    let out = directory.path().join("out");
    for (json, why) in [("/nonexistent/a", "no such file or directory"), ("/", "is a directory")] {
        let complaint = refused(&["emulate", "-q", &file, "--json", json, "--out", text(&out)], 5);
        assert_eq!(complaint, format!("ackline: cannot write --json {json}: {why}"));
    }
    assert_eq!(names(directory.path()), ["pair.toml"]);
}

#[test]
fn what_the_kernel_lacks_is_told_with_its_place() {
    with_tun("emulate_scenario::what_the_kernel_lacks_is_told_with_its_place", || {
        for (kernel, parts) in [
            (
                "{ cc = \"nope\" }",
                ["\"nope\"", "node.a.kernel.cc: the kernel has no congestion control \"nope\"; it has "],
            ),
            (
                "{ sysctl = { \"net.ipv4.nope\" = 1 } }",
                ["1 } }", "node.a.kernel.sysctl.net.ipv4.nope: the kernel has no setting net.ipv4.nope"],
            ),
            (
                "{ sysctl = { \"net.ipv4.tcp_sack\" = \"perhaps\" } }",
                ["\"perhaps\"", "net.ipv4.tcp_sack: the kernel does not take \"perhaps\": invalid argument"],
            ),
        ] {
            let content = BULK.replacen("\"kernel\" }", &format!("\"kernel\", kernel = {kernel} }}"), 1);
            let (_directory, file) = scenario(&content);
            let complaint = refused(&["emulate", "-q", &file], 2);
            let [value, expected] = parts;
            let place = place(&content, value);
            assert!(complaint.contains(&place) && complaint.contains(expected), "{place}\n{complaint}");
        }
    });
}

#[test]
fn finished_runs_are_kept_apart_from_those_of_the_simulator() {
    with_tun("emulate_scenario::finished_runs_are_kept_apart_from_those_of_the_simulator", || {
        let (directory, file) = scenario(&BULK.replace("\"1s\"", "\"200ms\""));
        let [live, simulated, merged] =
            ["live", "simulated", "merged"].map(|name| directory.path().join(name));
        let emulate = |out: &Path| {
            let ended = run(&["emulate", &file, "--out", text(out)]);
            succeeded(&ended);
            String::from_utf8(ended.stdout).expect("UTF-8")
        };
        let again = "1 run had been finished before.";
        assert!(!emulate(&live).contains(again));
        let result = std::fs::read(live.join("runs.jsonl")).expect("results");
        assert!(emulate(&live).contains(again));
        assert_eq!(std::fs::read(live.join("runs.jsonl")).expect("results"), result);
        assert!(names(&live).contains(&"report.html".to_owned()), "{:?}", names(&live));

        succeeded(&run(&["sim", &file, "-q", "--out", text(&simulated)]));
        let complaint = refused(&["merge", text(&live), text(&simulated), "--out", text(&merged)], 5);
        assert!(complaint.contains("the clock differs (real; virtual)"), "{complaint}");
        assert!(!merged.exists());
        assert!(
            !emulate(&simulated).contains(again),
            "the simulator's result was taken for one of real time"
        );
    });
}

#[test]
fn both_tells_where_simulation_and_real_time_differ() {
    with_tun("emulate_scenario::both_tells_where_simulation_and_real_time_differ", || {
        let (directory, file) = scenario(&BULK.replace("\"1s\"", "\"500ms\"\nrepeat = 2"));
        let (out, json) = (directory.path().join("out"), directory.path().join("json"));
        let ended = run(&["emulate", &file, "--both", "--out", text(&out), "--json", text(&json)]);
        succeeded(&ended);
        let told: Value = serde_json::from_slice(&std::fs::read(&json).expect("results")).expect("JSON");
        for (stage, cc) in [("simulated", "cubic"), ("real_time", "kernel cubic")] {
            let runs = told[stage].as_array().expect("runs");
            assert_eq!((runs.len(), &runs[1]["flows"][0]["cc"]), (2, &Value::from(cc)), "{told}");
        }
        let seeds = |stage: &str| [0, 1].map(|run| told[stage][run]["seed"].as_u64());
        assert_eq!(seeds("simulated"), seeds("real_time"));
        let rows = told["comparison"]["rows"].as_array().expect("rows");
        let goodput = rows.iter().find(|row| row["metric"] == "flow goodput [Mbit/s]").expect("a row");
        let mean = |stage: &str| goodput[stage]["mean"].as_f64().expect("a number");
        let difference = goodput["difference"].as_f64().expect("a number");
        assert!((mean("real_time") - mean("simulated") - difference).abs() < 1e-9, "{goodput}");
        assert_eq!(goodput["differs"], difference.abs() > goodput["spread"].as_f64().expect("a number"));
        let printed = String::from_utf8(ended.stdout).expect("UTF-8");
        assert_eq!(std::fs::read_to_string(out.join("comparison.txt")).expect("a table"), printed);
        assert!(printed.contains("real time") && printed.contains("numbers differ"), "{printed}");
        assert_eq!(names(&out), ["comparison.json", "comparison.txt", "plots", "real-time", "simulated"]);
        assert!(names(&out.join("plots")).contains(&"overlay-cwnd_bytes.svg".to_owned()));
    });
}

/// The network namespaces of a process's threads.
fn namespaces(process: &Path) -> BTreeSet<String> {
    let threads = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let links = threads.filter_map(|thread| std::fs::read_link(thread.path().join("ns/net")).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

#[test]
fn a_signal_leaves_nothing_behind() {
    with_tun("emulate_scenario::a_signal_leaves_nothing_behind", || {
        for signal in [Signal::INT, Signal::TERM] {
            let (directory, file) = scenario(&BULK.replace("\"1s\"", "\"100s\""));
            let (out, json) = (directory.path().join("out"), directory.path().join("json"));
            let mut running = BackgroundCommand::start(&mut ackline(&[
                "emulate",
                "-q",
                &file,
                "--out",
                text(&out),
                "--json",
                text(&json),
            ]));
            let process = Path::new("/proc").join(running.child().id().to_string());
            let own = std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
            let inside = until("two hosts", || {
                let mut all = namespaces(&process);
                all.remove(&*own.to_string_lossy());
                (all.len() == 2).then_some(all)
            });
            running.signal(signal);
            let ended = running.end();
            assert_eq!(ended.status, None, "ended by the signal: {ended:?}");
            let processes = std::fs::read_dir("/proc").expect("there").flatten();
            let mut left = processes.flat_map(|process| namespaces(&process.path()));
            assert!(!left.any(|namespace| inside.contains(&namespace)), "a host is left");
            assert_eq!(names(directory.path()), ["out", "pair.toml"]);
            assert_eq!(names(&out), ["origin.json", "plots", "runs", "scenario.toml"]);
            assert!(names(&out.join("runs")).is_empty(), "{:?}", names(&out.join("runs")));
        }
    });
}

/// The status of a script that could not prepare what a test needs.
const UNPREPARED: i32 = 99;

/// Runs a scenario with `ackline` inside `unshare`, after `prepare` and behind `user`; `None` if
/// the machine does not allow that.
fn emulated_as(unshare: &[&str], prepare: &str, user: &str, file: &str) -> Option<Exit> {
    let script =
        format!("{{ {prepare}; }} || exit {UNPREPARED}; exec setpriv {user} \"$program\" emulate \"$file\"");
    let nobody = Nobody::new()?;
    let mut command = Command::new("unshare");
    command.args(unshare).args(["sh", "-c", &script]).current_dir("/");
    command.env("program", nobody.command(&[]).get_program()).env("file", file);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = BackgroundCommand::try_start(&mut command)?.end();
    // 1 is that of unshare, which `emulate` does not have.
    ended.status.is_some_and(|status| ![1, 127, UNPREPARED].contains(&status)).then_some(ended)
}

/// A scenario that another user can read.
fn public_scenario(content: &str) -> (tempfile::TempDir, String) {
    let (directory, file) = scenario(content);
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    (directory, file)
}

#[test]
fn an_ordinary_user_has_hosts_of_the_kernel() {
    let name = "emulate_scenario::an_ordinary_user_has_hosts_of_the_kernel";
    let (_directory, file) = public_scenario(BULK);
    // A device of its own in a mount namespace: that of the machine keeps its mode.
    let open = "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200";
    let nobody = "--reuid 65534 --regid 65534 --clear-groups";
    let Some(ended) = emulated_as(&["--mount"], open, nobody, &file) else {
        return skip(name, &"no rights to give up");
    };
    if ended.stderr.contains("user namespace") {
        return skip(name, &ended.stderr);
    }
    succeeded(&ended);
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    let goodput = text.lines().find(|line| line.contains("goodput")).expect("a row");
    assert!(text.contains("cc kernel cubic") && !goodput.contains(" 0 "), "{text}");
}

#[test]
fn missing_rights_are_told_in_one_line() {
    let name = "emulate_scenario::missing_rights_are_told_in_one_line";
    let (_directory, file) = public_scenario(BULK);
    let none = "echo 0 > /proc/sys/user/max_user_namespaces";
    let without = "--bounding-set=-all --inh-caps=-all";
    let Some(ended) = emulated_as(&["--user", "--map-root-user"], none, without, &file) else {
        return skip(name, &"no rights to give up");
    };
    assert_eq!((ended.status, ended.stderr.lines().count()), (Some(3), 1), "{ended:?}");
    assert!(ended.complaint().contains("user namespace"), "{ended:?}");
    // With user namespaces, and without a device that is open to all.
    if let Some(ended) = as_nobody(&["emulate", "-q", &file])
        && ended.status != Some(0)
    {
        assert_eq!((ended.status, ended.stderr.lines().count()), (Some(3), 1), "{ended:?}");
        assert!(ended.complaint().contains("give host a a TUN device"), "{ended:?}");
    }
}
