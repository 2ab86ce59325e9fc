//! Scenarios from the command line: results, folders, plots, and what is said about mistakes.

use crate::common::{BackgroundCommand, ackline, names, run, scratch, text};
use crate::usage::refused;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// What makes the example of two flows short: two seconds of four megabits per second are measured.
const SHORT: [&str; 8] = [
    "--set",
    "duration=3s",
    "--set",
    "measure.from=1s",
    "--set",
    "app.second.start=500ms",
    "--set",
    "link.bottleneck.rate=4mbit",
];

fn example(name: &str) -> String {
    let ended = run(&["sim", "--example", name]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    String::from_utf8(ended.stdout).expect("UTF-8")
}

/// The example of two flows in a file of its own, in `folder`.
fn fairness(folder: &Path) -> std::path::PathBuf {
    let file = folder.join("fairness.toml");
    fs::write(&file, example("fairness")).expect("written");
    file
}

fn sim(file: &Path, more: &[&str]) -> crate::common::Exit {
    let ended = run(&[&["sim", text(file)], &SHORT[..], more].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    ended
}

fn lines(json: &[u8]) -> Vec<Value> {
    let lines = std::str::from_utf8(json).expect("UTF-8").lines();
    lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn the_same_file_and_seed_give_the_same_bytes_with_any_number_of_threads() {
    let (folder, _) = scratch("");
    let file = fairness(folder.path());
    let one = sim(&file, &["--set", "repeat=2", "--seed", "7", "--threads", "1", "--json"]);
    let two = sim(&file, &["--set", "repeat=2", "--seed", "7", "--threads", "2", "--json"]);
    assert_eq!(one.stdout, two.stdout);
    let other = sim(&file, &["--set", "repeat=2", "--seed", "8", "--threads", "2", "--json"]);
    assert_ne!(one.stdout, other.stdout);

    let lines = lines(&one.stdout);
    let (summary, runs) = lines.split_last().expect("a summary");
    assert_eq!(runs.len(), 4, "two congestion controls with two seeds each");
    let seeds: Vec<u64> = runs.iter().filter_map(|run| run["seed"].as_u64()).collect();
    assert_eq!(seeds, [7, 8, 7, 8]);
    for run in runs {
        assert_eq!((&run["command"], &run["event"]), (&"sim".into(), &"run".into()));
        let goodput: f64 = run["flows"]
            .as_array()
            .expect("flows")
            .iter()
            .filter_map(|flow| flow["goodput_bps"].as_f64())
            .sum();
        // A hole that is filled within the window lets the reader have what came before it began,
        // too.
        assert!((3.0e6..4.4e6).contains(&goodput), "of 4 Mbit/s: {goodput}");
    }
    assert_eq!((&summary["event"], &summary["ok"]), (&"summary".into(), &true.into()));
    assert_eq!((summary["runs"].as_u64(), summary["seed"].as_u64()), (Some(4), Some(7)));
    assert_eq!(summary["points"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_run_prints_its_seed_and_a_row_for_each_point() {
    let (folder, _) = scratch("");
    let ended = sim(&fairness(folder.path()), &["--set", "repeat=1", "--seed", "42"]);
    let shown = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(shown.contains("2 runs with seed 42 at 2 points"), "{shown}");
    for row in ["reno", "cubic"] {
        assert_eq!(shown.lines().filter(|line| line.trim_start().starts_with(row)).count(), 1, "{shown}");
    }
    assert!(ended.stderr.is_empty(), "no bar where there is no terminal: {:?}", ended.stderr);
    assert!(sim(&fairness(folder.path()), &["--set", "repeat=1", "-q"]).stdout.is_empty());
}

#[test]
fn a_folder_is_resumed_and_holds_no_unfinished_file() {
    let (folder, out) = scratch("out");
    let file = fairness(folder.path());
    let options = ["--set", "repeat=1", "--pcap", "--json", "--out", text(&out)];
    let first = lines(&sim(&file, &options).stdout);
    assert_eq!(first.last().map(|summary| &summary["resumed"]), Some(&0.into()));
    let flows = fs::read(out.join("flows.csv")).expect("there");
    for path in [&out, &out.join("runs"), &out.join("pcap")] {
        assert!(names(path).iter().all(|name| !name.ends_with(".partial")), "{:?}", names(path));
    }
    // Of two runs one is lost, and one cut short.
    let runs = names(&out.join("runs"));
    assert_eq!(runs.len(), 2, "{runs:?}");
    let broken = out.join("runs").join(&runs[0]);
    let whole = fs::read(&broken).expect("there");
    fs::write(&broken, &whole[..whole.len() / 2]).expect("written");
    let second = lines(&sim(&file, &options).stdout);
    assert_eq!(second.last().map(|summary| &summary["resumed"]), Some(&1.into()));
    assert_eq!(first[..2], second[..2]);
    assert_eq!(fs::read(&broken).expect("there"), whole);
    assert_eq!(fs::read(out.join("flows.csv")).expect("there"), flows);
    // Another seed is another run.
    let third = lines(&sim(&file, &[&options[..], &["--seed", "9"]].concat()).stdout);
    assert_eq!(third.last().map(|summary| &summary["resumed"]), Some(&0.into()));
}

/// Which of the two finishes a run first does not matter: both give the same bytes.
#[test]
fn two_processes_share_a_folder() {
    let (folder, out) = scratch("out");
    let file = fairness(folder.path());
    let options = ["--set", "repeat=12", "--set", "duration=1s", "--set", "measure.from=500ms", "--json"];
    let args = [&["sim", text(&file), "--out", text(&out)], &SHORT[..], &options].concat();
    let both = [0, 1].map(|_| BackgroundCommand::start(&mut ackline(&args)));
    let [one, two] = both.map(BackgroundCommand::end);
    for ended in [&one, &two] {
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    }
    let runs = |ended: &crate::common::Exit| {
        let mut lines = lines(&ended.stdout);
        lines.pop();
        lines
    };
    assert_eq!(runs(&one).len(), 24);
    assert_eq!(runs(&one), runs(&two));
    for path in [&out, &out.join("runs")] {
        assert!(names(path).iter().all(|name| !name.ends_with(".partial")), "{:?}", names(path));
    }
}

/// As a process leaves it that was killed while it wrote.
#[test]
fn what_a_killed_process_left_in_the_folder_goes() {
    let (folder, out) = scratch("out");
    let file = fairness(folder.path());
    fs::create_dir_all(out.join("runs")).expect("made");
    for name in ["runs.jsonl.1-7.partial", "runs/p0000-r000.json.1-8.partial"] {
        fs::write(out.join(name), "half").expect("written");
    }
    sim(&file, &["--set", "repeat=1", "-q", "--out", text(&out)]);
    for path in [&out, &out.join("runs")] {
        assert!(names(path).iter().all(|name| !name.ends_with(".partial")), "{:?}", names(path));
    }
}

#[test]
fn plots_are_drawn_for_a_run_and_over_several() {
    let (folder, out) = scratch("out");
    let file = fairness(folder.path());
    let other = folder.path().join("other");
    sim(&file, &["--set", "repeat=1", "--plot", "-q", "--out", text(&out)]);
    sim(&file, &["--set", "repeat=1", "-q", "--set", "link.bottleneck.delay=40ms", "--out", text(&other)]);
    let report = fs::read_to_string(out.join("report.html")).expect("there");
    assert!(report.contains("<svg") && report.contains("fairness and convergence"));
    assert!(!report.contains("src=\"") && !report.contains("<link"), "it holds all that it shows");

    let plots = folder.path().join("plots");
    let ended = run(&["plot", text(&out), text(&other), "--out", text(&plots)]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let written = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(!names(&plots).is_empty());
    assert_eq!(written.lines().count(), names(&plots).len(), "{written}");
    let mut both = false;
    for path in written.lines() {
        let svg = fs::read_to_string(path).expect("there");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{path}");
        both |= svg.contains("out") && svg.contains("other");
    }
    assert!(both, "the folders are told apart in a legend");

    let nothing = folder.path().join("nothing");
    let complaint = refused(&["plot", text(&nothing)], 5);
    assert!(complaint.contains("nothing/runs.jsonl") && complaint.contains("no such file"), "{complaint}");
}

#[test]
fn parts_of_a_sweep_are_joined() {
    let (folder, whole) = scratch("whole");
    let file = fairness(folder.path());
    let [one, two, merged] = ["one", "two", "merged"].map(|name| folder.path().join(name));
    let options = ["--set", "repeat=1", "--out"];
    let whole_shown = sim(&file, &[&options[..], &[text(&whole)]].concat()).stdout;
    let shown = sim(&file, &[&options[..], &[text(&one), "--points", "0"]].concat()).stdout;
    let shown = String::from_utf8(shown).expect("UTF-8");
    assert!(shown.contains("1 run with seed 1 at 1 of 2 points"), "{shown}");
    let lone = refused(&["merge", text(&one), "--out", text(&merged)], 5);
    assert!(lone.contains("of 2 points of ") && lone.contains("no run of point 1;"), "{lone}");
    sim(&file, &[&options[..], &[text(&two), "--points", "1..", "-q"]].concat());
    let ended = run(&["merge", text(&one), text(&two), "--out", text(&merged)]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let named =
        |shown: Vec<u8>, out: &Path| String::from_utf8(shown).expect("UTF-8").replace(text(out), "OUT");
    assert_eq!(named(ended.stdout, &merged), named(whole_shown, &whole));
    for name in ["runs.jsonl", "summary.csv", "flows.csv", "scenario.toml"] {
        let read = |folder: &Path| fs::read(folder.join(name)).expect("there");
        assert!(read(&merged) == read(&whole), "{name}");
    }
    let complaint = refused(&["sim", text(&file), "--points", "2.."], 2);
    assert!(
        complaint.contains("points 2.. are not all there: the scenario has 2 points: 0..2"),
        "{complaint}"
    );
    let complaint = refused(&["sim", text(&file), "--points", "1-2"], 2);
    assert!(complaint.contains("--points \"1-2\": not a range of points; write 17..33"), "{complaint}");
}

#[test]
fn every_example_can_be_run_from_standard_input() {
    let ended = run(&["sim", "--example"]);
    let list = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(list.lines().count() >= 2, "{list}");
    for line in list.lines() {
        let (name, title) = line.split_once(' ').expect("a name and a title");
        assert!(!title.trim().is_empty(), "{line}");
        let scenario = example(name);
        assert!(scenario.starts_with("# "), "it says what it shows: {name}");
        // It is read and every point of it is built; a value that cannot be is found after all
        // others.
        let mut running = BackgroundCommand::start(
            ackline(&["sim", "-", "--set", "duration=never"]).stdin(std::process::Stdio::piped()),
        );
        let stdin = running.child().stdin.as_mut().expect("a pipe");
        stdin.write_all(scenario.as_bytes()).expect("read");
        let ended = running.end();
        assert_eq!(ended.status, Some(2), "{name}: {ended:?}");
        assert!(ended.complaint().contains("duration: \"never\" is not possible"), "{name}: {ended:?}");
    }
}

#[test]
fn a_mistake_in_a_scenario_is_answered_with_its_place_and_what_is_allowed() {
    let (folder, _) = scratch("");
    let whole = example("fairness");
    let wrong = |from: &str, to: &str| {
        let file = folder.path().join("wrong.toml");
        let line = whole.lines().position(|line| line.starts_with(from)).expect("in the example") + 1;
        fs::write(&file, whole.replacen(&format!("\n{from}"), &format!("\n{to}"), 1)).expect("written");
        let complaint = refused(&["sim", text(&file)], 2);
        assert!(complaint.contains(&format!("wrong.toml:{line}:")), "{line}: {complaint}");
        complaint
    };
    let complaint = wrong("duration =", "durration =");
    assert!(complaint.contains("durration: unknown key; did you mean `duration`? (allowed: "), "{complaint}");
    let complaint = wrong("rate = \"20mbit\"", "rte = \"20mbit\"");
    assert!(complaint.contains("link.bottleneck.rte: unknown key; did you mean `rate`?"), "{complaint}");
    let complaint = wrong("conn.cc = [\"reno\"", "conn.cc = [\"remo\"");
    assert!(complaint.contains("did you mean \"reno\"?"), "{complaint}");

    let file = fairness(folder.path());
    let complaint = refused(&["sim", text(&file), "--set", "link.botleneck.rate=1mbit"], 2);
    assert!(
        complaint.contains("--set link.botleneck.rate=1mbit")
            && complaint.contains("did you mean `bottleneck`?"),
        "{complaint}"
    );
    let complaint = refused(&["sim", text(&file), "--set", "duration"], 2);
    assert!(complaint.contains("write path=value"), "{complaint}");
}

#[test]
fn other_mistakes_are_answered_with_what_would_be_right() {
    let complaint = refused(&["sim", "--example", "fairnes"], 2);
    assert!(
        complaint.contains("there is no example \"fairnes\"; did you mean \"fairness\"? (there are "),
        "{complaint}"
    );
    let complaint = refused(&["sim", "fairness"], 5);
    assert!(complaint.contains("ackline sim --example fairness > fairness.toml"), "{complaint}");
    let (folder, missing) = scratch("missing.toml");
    assert!(refused(&["sim", text(&missing)], 5).contains("missing.toml: no such file or directory"));
    let file = fairness(folder.path());
    let complaint = refused(&["sim", text(&file), "--out", "/proc/none"], 5);
    assert!(complaint.contains("cannot make the folder /proc/none"), "{complaint}");
    assert!(refused(&["sim", text(&file), "--threads", "0"], 2).contains("--threads"), "{file:?}");
}
