//! `docs/cli.md` has every field of the JSON that commands print, and no other.

use crate::common::{run, scratch, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const PAGE: &str = include_str!("../../../../docs/cli.md");

/// The names in the first column of the table on `page` that is headed `| HEADING |`.
pub(crate) fn documented(page: &str, heading: &str) -> BTreeSet<String> {
    let head = format!("| {heading} | ");
    let rows = page.lines().skip_while(|line| !line.starts_with(&head)).skip(2);
    let names: BTreeSet<String> = rows
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.split(" | ").next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(!names.is_empty(), "no table is headed {heading:?}");
    names
}

/// Compares the keys of `object` with a table; those in `sometimes` may be missing.
fn check(heading: &str, object: &Value, sometimes: &[&str]) {
    check_on(PAGE, heading, object, sometimes);
}

/// The same on another page.
pub(crate) fn check_on(page: &str, heading: &str, object: &Value, sometimes: &[&str]) {
    let object = object.as_object().unwrap_or_else(|| panic!("{heading}: {object}"));
    let told: BTreeSet<String> = object.keys().cloned().collect();
    let named = documented(page, heading);
    let unnamed: Vec<_> = told.difference(&named).collect();
    assert!(unnamed.is_empty(), "{heading}: the page lacks {unnamed:?}");
    let untold: Vec<_> = named.difference(&told).filter(|key| !sometimes.contains(&key.as_str())).collect();
    assert!(untold.is_empty(), "{heading}: {untold:?} of the page are not there");
}

#[test]
fn the_demo() {
    let report = run(&["demo", "--json", "--device", "channel", "--size", "200k"]).json();
    check("of the demo", &report, &[]);
    check("of each direction", &report["upload"], &[]);
    check("of `timing`", &report["timing"], &[]);
    check("of `egress`", &report["egress"], &[]);
    check("of each class", &report["egress"]["classes"][0], &[]);
}

#[test]
fn what_send_and_recv_tell_of_a_failure_too() {
    check("of a sent file", &run(&["send", "--json", "/dev/null", "nowhere.invalid:1"]).json(), &[]);
    let recv = |more: &[&str]| {
        run(&[&["recv", "--json", "--tun", "lo", "-l", ":1", "-O", "/tmp"], more].concat()).json()
    };
    check("of each transfer", &recv(&[]), &["cpu_s", "timing", "egress"]);
    check("of the last line", &recv(&["--keep"]), &[]);
}

#[test]
fn a_sweep() {
    let (folder, _) = scratch("");
    let file = folder.path().join("net.toml");
    let example = run(&["sim", "--example", "fairness"]).stdout;
    fs::write(&file, example).expect("written");
    let short = [
        "--set",
        "duration=3s",
        "--set",
        "measure.from=1s",
        "--set",
        "measure.until=3s",
        "--set",
        "repeat=1",
    ];
    let ended = run(&[&["sim", text(&file), "--json"], &short[..]].concat());
    let lines = String::from_utf8(ended.stdout.clone()).expect("UTF-8");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (summary, runs) = lines.split_last().unwrap_or_else(|| panic!("{ended:?}"));
    check("of each run", &runs[0], &["bin_s", "hosts"]);
    check(
        "of each flow",
        &runs[0]["flows"][0],
        &["received_bins", "cwnd_end_bytes", "transfers", "app_metrics", "metrics"],
    );
    check("of each queue", &runs[0]["queues"][0], &[]);
    check("of the sweep", summary, &[]);
    if let Some(host) = runs[0].get("hosts").and_then(|hosts| hosts.get(0)) {
        check("of each host", host, &[]);
    }
}

#[test]
fn a_paper() {
    let report = run(&["reproduce", "a3", "--table", "equations", "--json"]).json();
    check("of each paper", &report, &["quick", "seeds", "scale"]);
    check("of each check", &report["checks"][0], &["widened", "pin"]);
}

#[test]
fn the_lists() {
    for (kind, heading) in [
        ("cc", "of each policy"),
        ("conn", "of each option"),
        ("host", "of each option"),
        ("scenario", "of each key of a scenario"),
        ("interfaces", "of each interface"),
    ] {
        check(heading, &run(&["list", kind, "--json"]).json()[0], &[]);
    }
}
