//! Folders: the same bytes whatever the threads did, nothing run twice, nothing half-written.

use ackline_lab::{Report, RunOptions, Scenario, load, merge, run};
use ackline_registry::Registry;
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

const SCENARIO: &str = r#"
title = "Tiny"
duration = "3s"
seed = 5
repeat = 2
[[node]]
name = "a"
count = 2
[[node]]
name = "b"
[[node]]
name = "r"
kind = "router"
[[link]]
between = ["a", "r"]
rate = "100mbit"
delay = "1ms"
[[link]]
name = "neck"
between = ["r", "b"]
rate = "10mbit"
delay = "10ms"
queue = { kind = "drop-tail", limit = "30p" }
impairments = [{ kind = "loss", probability = "0.1%" }]
[[app]]
name = "bulk"
kind = "bulk"
from = "a"
to = "b"
jitter = "50ms"
[measure]
from = "1s"
series = true
trace = 2000
queues = ["neck", "neck.back"]
[sweep]
conn.cc = ["reno", "cubic"]
"#;

fn tiny() -> Scenario {
    Scenario::parse(SCENARIO, "tiny.toml").unwrap()
}

fn into(folder: &Path, scenario: &Scenario, threads: usize) -> Report {
    let options = RunOptions {
        threads,
        out: Some(folder.to_owned()),
        plots: true,
        pcap: true,
        ..RunOptions::default()
    };
    run(scenario, &options).unwrap()
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn one_and_two_threads_write_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let report = into(&one, &tiny(), 1);
    into(&two, &tiny(), 2);
    let (one, two) = (files(&one), files(&two));
    assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>());
    for (name, bytes) in &one {
        assert!(bytes == &two[name], "{name} differs");
        assert!(!name.ends_with(".partial"), "{name}");
    }
    for name in [
        "scenario.toml",
        "runs.jsonl",
        "flows.csv",
        "queues.csv",
        "summary.csv",
        "summary.md",
        "summary.txt",
        "report.html",
        "runs/p0001-r001.json",
        "series/p0000-r000.flows.csv",
        "series/p0000-r001.queues.csv",
        "pcap/p0001-r000.pcapng",
        "plots/p0000-r000.cwnd.svg",
        "plots/p0000-r000.sequence.svg",
        "plots/sweep-bulk-goodput.svg",
    ] {
        assert!(one.contains_key(name), "{name} is missing among {:?}", one.keys());
    }
    assert_eq!(report.results.len(), 4);
    let html = String::from_utf8(one["report.html"].clone()).unwrap();
    assert!(
        html.contains("<title>Tiny</title>")
            && html.contains("neck utilisation")
            && html.contains("repeat = 2")
    );
    assert!(
        !html.contains("<link") && !html.contains("src=") && !html.contains("href="),
        "it holds everything itself"
    );
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
}

#[test]
fn seeds_differ_and_repeat() {
    let report = run(&tiny(), &RunOptions::default()).unwrap();
    let [first, second] = [&report.results[0], &report.results[1]];
    assert_eq!((first.point, second.point, first.seed, second.seed), (0, 0, 5, 6));
    assert_ne!(first.flows, second.flows);
    // The seed that stands in a result repeats the run.
    let again = tiny().with_set(["seed=6", "repeat=1"]).unwrap();
    let again = run(&again, &RunOptions::default()).unwrap();
    assert_eq!(again.results[0].flows, second.flows);
}

#[test]
fn finished_runs_are_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    assert_eq!(into(out, &tiny(), 2).resumed, 0);
    let before = files(out);

    // As after an interruption: one run is missing, one is half there, one has been left under its
    // temporary name.
    fs::remove_file(out.join("runs/p0000-r001.json")).unwrap();
    let half = &before["runs/p0001-r000.json"];
    fs::write(out.join("runs/p0001-r000.json"), &half[..half.len() / 2]).unwrap();
    fs::write(out.join("runs/p0001-r001.json.partial"), "{").unwrap();
    let report = into(out, &tiny(), 1);
    assert_eq!(report.resumed, 2);
    let mut after = files(out);
    after.remove("runs/p0001-r001.json.partial");
    assert!(before == after, "the folder is as if nothing had happened");

    // Another seed is another run; another value of a key that is swept is one of one point.
    assert_eq!(into(out, &tiny().with_set(["seed=9"]).unwrap(), 2).resumed, 0);
    assert_eq!(load(out).unwrap().iter().map(|run| run.seed).collect::<Vec<_>>(), [9, 10, 9, 10]);
}

/// Every file is the same with `--wire`: summary, JSON, tables, packets, plots. Without captures,
/// with which packets have octets anyway.
#[test]
fn octets_change_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for impairment in [
        r#"{ kind = "loss", probability = "1%" }"#,
        r#"{ kind = "corrupt", probability = "1%", bits = 1 }"#,
        r#"{ kind = "duplicate", probability = "1%" }, { kind = "reorder", probability = "2%", by = "3ms" }"#,
    ] {
        let text = SCENARIO.replace(r#"{ kind = "loss", probability = "0.1%" }"#, impairment);
        let scenario = Scenario::parse(&text, "tiny.toml").unwrap();
        let scenario = scenario.with_set(["repeat=1"]).unwrap();
        let files_with = |wire| {
            let folder = folder.path().join(format!("{wire}{}", impairment.len()));
            let out = Some(folder.clone());
            run(&scenario, &RunOptions { out, plots: true, wire, ..RunOptions::default() }).unwrap();
            files(&folder)
        };
        let (without, with) = (files_with(false), files_with(true));
        assert_eq!(without.keys().collect::<Vec<_>>(), with.keys().collect::<Vec<_>>());
        for (name, bytes) in &without {
            assert!(bytes == &with[name], "{name} differs: {impairment}");
        }
    }
}

#[test]
fn what_was_not_written_yet_is_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let plain = RunOptions { out: Some(folder.path().to_owned()), ..RunOptions::default() };
    run(&tiny(), &plain).unwrap();
    assert_eq!(run(&tiny(), &plain).unwrap().resumed, 4);
    let captured = RunOptions { pcap: true, ..plain.clone() };
    assert_eq!(run(&tiny(), &captured).unwrap().resumed, 0);
    assert_eq!(run(&tiny(), &plain).unwrap().resumed, 4);
}

/// Three parts, one point in two of them.
#[test]
fn merged_parts_are_the_whole_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let text = SCENARIO.replace("[\"reno\", \"cubic\"]", "[\"reno\", \"cubic\", \"dctcp\", \"scalable\"]");
    let scenario = Scenario::parse(&text, "tiny.toml").unwrap();
    let scenario = scenario.with_set(["link.neck.delay=11ms", "duration=2s"]).unwrap();
    let part = |name: &str, points: Option<&str>| {
        let out = folder.path().join(name);
        let points = points.map(|points| points.parse().unwrap());
        let options =
            RunOptions { out: Some(out.clone()), plots: true, pcap: true, points, ..RunOptions::default() };
        run(&scenario, &options).unwrap();
        out
    };
    let whole = part("whole", None);
    let one = part("one", Some("..2"));
    let two = part("two", Some("1..3"));
    let three = part("three", Some("3"));
    let held: Vec<usize> = load(&two).unwrap().iter().map(|run| run.point).collect();
    assert_eq!(held, [1, 1, 2, 2]);
    let registry = Registry::default();
    let merged = folder.path().join("merged");
    let parts = [three.clone(), one.clone(), two.clone()];
    let (_, report) = merge(&parts, &merged, &registry).unwrap();
    assert_eq!(report.results.len(), 8);
    let (whole, merged) = (files(&whole), files(&merged));
    assert_eq!(whole.keys().collect::<Vec<_>>(), merged.keys().collect::<Vec<_>>());
    for (name, bytes) in &whole {
        assert!(bytes == &merged[name], "{name} differs");
    }
    assert!(
        merged.contains_key("plots/p0003-r000.cwnd.svg") && merged.contains_key("pcap/p0002-r001.pcapng")
    );

    let refused = |folders: &[std::path::PathBuf]| {
        let out = folder.path().join("refused");
        let error = merge(folders, &out, &registry).unwrap_err().to_string();
        assert!(!out.exists(), "nothing is written");
        error
    };
    // A point is missing, and of another one a run.
    fs::remove_file(two.join("runs/p0002-r001.json")).unwrap();
    let error = refused(&[one.clone(), two.clone()]);
    assert!(
        error.contains("of 4 points of tiny.toml there is no run of point 3, and not all 2 runs of point 2;"),
        "{error}"
    );
    // A number was changed.
    let changed = two.join("runs/p0001-r000.json");
    let text = fs::read_to_string(&changed).unwrap();
    let at = text.find("\"retransmits\":").unwrap() + "\"retransmits\":".len();
    fs::write(&changed, format!("{}9{}", &text[..at], &text[at..])).unwrap();
    let error = refused(&[one.clone(), two.clone()]);
    assert!(
        error.contains("one/runs/p0001-r000.json and ") && error.contains("two/runs/p0001-r000.json differ")
    );
    // Another seed; other values; another text; another version.
    let other = |scenario: &Scenario| {
        let out = folder.path().join("other");
        let points = Some("0".parse().unwrap());
        run(scenario, &RunOptions { out: Some(out.clone()), points, ..RunOptions::default() }).unwrap();
        refused(&[one.clone(), out])
    };
    let error = other(&scenario.with_set(["seed=9"]).unwrap());
    assert!(error.ends_with("are not of the same sweep: the seed differs (5; 9)"), "{error}");
    let error = other(&scenario.with_set(["repeat=1"]).unwrap());
    assert!(error.contains("what --set gave differs (link.neck.delay=11ms duration=2s; link"), "{error}");
    let text = SCENARIO.replace("10mbit", "11mbit");
    let error = other(&Scenario::parse(&text, "tiny.toml").unwrap().with_set(scenario.given()).unwrap());
    assert!(error.contains("the scenario differs (tiny.toml; tiny.toml, from line "), "{error}");
    let origin = fs::read_to_string(three.join("origin.json")).unwrap();
    fs::write(three.join("origin.json"), origin.replace("\"version\":\"", "\"version\":\"9.")).unwrap();
    let error = refused(&[three]);
    assert!(
        error.contains("three was written by ackline 9.") && error.contains("another version"),
        "{error}"
    );
    let error = refused(&[folder.path().join("nothing")]);
    assert!(error.contains("nothing/origin.json"), "{error}");
    let error = merge(std::slice::from_ref(&one), &one, &registry).unwrap_err().to_string();
    assert!(error.contains("is both read and written"), "{error}");
}

/// A point has a dozen plots over time; a sweep of a thousand points does not leave twelve thousand
/// files.
#[test]
fn runs_of_many_points_are_drawn_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let delays = "sweep.link.neck.delay = { from = \"1ms\", to = \"7ms\", steps = 7 }";
    let text = SCENARIO.replace("[sweep]\nconn.cc = [\"reno\", \"cubic\"]", delays);
    let set = ["repeat=1", "duration=1200ms", "measure.series=false"];
    let scenario = Scenario::parse(&text.replace("sweep.link", "[sweep]\nlink"), "seven.toml").unwrap();
    let scenario = scenario.with_set(set).unwrap();
    let drawn = |plot_runs: Option<&str>| {
        let out = Some(folder.path().to_owned());
        let plot_runs = plot_runs.map(|points| points.parse().unwrap());
        run(&scenario, &RunOptions { out, plots: true, plot_runs, ..RunOptions::default() }).unwrap();
        let names =
            files(folder.path()).into_keys().filter(|name| name.starts_with("plots/p")).collect::<Vec<_>>();
        names.iter().map(|name| name[6..11].to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(drawn(None).is_empty());
    assert_eq!(drawn(Some("2..4")).into_iter().collect::<Vec<_>>(), ["p0002", "p0003"]);
    let points = Some("5..9".parse().unwrap());
    let error = run(&scenario, &RunOptions { points, ..RunOptions::default() }).unwrap_err().to_string();
    assert_eq!(error, "points 5..9 are not all there: the scenario has 7 points: 0..7");
}

/// Of one measured link that is called by its name, and of one that leads one way.
#[test]
fn a_capture_shows_both_directions() {
    let one_way = SCENARIO.replace(
        "[[link]]\nname = \"neck\"\nbetween = [\"r\", \"b\"]",
        "[[link]]\nname = \"up\"\nfrom = \"b\"\nto = \"r\"\ndelay = \"1ms\"\n[[link]]\nname = \"neck\"\nfrom = \"r\"\nto = \"b\"",
    );
    for (text, back) in [(SCENARIO, "neck.back"), (&one_way, "up")] {
        let text = text.replace("[\"neck\", \"neck.back\"]", "[\"neck\"]");
        let scenario =
            Scenario::parse(&text, "both.toml").unwrap().with_set(["repeat=1", "conn.cc=reno"]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let capture = |snap_length| {
            let out = Some(folder.path().to_owned());
            let report =
                run(&scenario, &RunOptions { out, pcap: true, snap_length, ..RunOptions::default() });
            (fs::read(folder.path().join("pcap/p0000-r000.pcapng")).unwrap(), report.unwrap().resumed)
        };
        let (whole, _) = capture(None);
        let holds = |name: &str| whole.windows(name.len()).any(|octets| octets == name.as_bytes());
        assert!(holds("neck (left)") && holds("neck (dropped)"));
        assert!(holds(&format!("{back} (left)")) && holds("class: pure-ack"), "{back}");
        let (cut, resumed) = capture(NonZeroU32::new(96));
        assert!(cut.len() < whole.len() / 4, "{} of {}", cut.len(), whole.len());
        assert_eq!(resumed, 0, "another snap length is another file");
        assert_eq!(capture(NonZeroU32::new(96)).1, 1);
    }
}

#[test]
fn results_survive_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let report = into(folder.path(), &tiny(), 2);
    assert_eq!(load(folder.path()).unwrap(), report.results);
    let charts =
        ackline_lab::figures::overlay(&[folder.path().to_owned(), folder.path().to_owned()]).unwrap();
    assert!(
        charts.iter().any(|chart| chart.name == "overlay-cwnd_bytes" && chart.charts[0].lines.len() == 4)
    );
    fs::write(folder.path().join("runs.jsonl"), "{}\n").unwrap();
    let error = load(folder.path()).unwrap_err().to_string();
    assert!(error.contains("runs.jsonl: line 1 is no result of a run"), "{error}");
}
