//! The league from the command line.

use crate::common::{run, scratch, text, with_own_mounts};
use crate::usage::refused;
use ackline::runtime::testing::skip;
use std::fs;

/// One seed of a cell of a few thousand packets.
const SMALL: [&str; 5] = ["evaluate", "--cell", "I-iot", "--seeds", "1"];

#[test]
fn a_control_stands_beside_the_standard_ones_and_its_runs_are_kept() {
    let (folder, _) = scratch("");
    let out = folder.path().join("league");
    let all = [&SMALL[..], &["vegas", "--out", text(&out)]].concat();
    let ended = run(&[&all[..], &["--json"]].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let json = ended.json();
    let specs: Vec<&str> = json["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .filter_map(|entry| entry["contestant"]["spec"].as_str())
        .collect();
    assert_eq!(specs, ["reno", "cubic", "cubic:pacing=on", "vegas"]);
    assert_eq!(fs::read_dir(out.join("runs")).expect("a folder").count(), 4);
    assert!(fs::read_to_string(out.join("league.md")).expect("a page").contains("(league/vegas.md)"));

    // Of the data alone the same comes.
    let data = out.join("league/league.json");
    let again = run(&["evaluate", "--cell", "I-iot", "--from", text(&data), "--json"]);
    assert!(again.status == Some(0) && again.stdout == ended.stdout, "{again:?}");
    let shown = run(&all);
    assert!(String::from_utf8(shown.stdout).expect("UTF-8").contains("vegas"));

    let whole = folder.path().join("whole");
    let merged = run(&["merge", text(&out), "--out", text(&whole)]);
    assert_eq!((merged.status, fs::read_dir(whole.join("runs")).expect("a folder").count()), (Some(0), 4));
}

#[test]
fn a_cell_is_a_scenario() {
    let ended = run(&["evaluate", "bbr", "--scenario", "H-cubic-1"]);
    let scenario = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(ended.status == Some(0) && scenario.contains("cc = \"bbr\""), "{scenario}");
    let listed = run(&["evaluate", "--quick", "--list"]);
    assert!(String::from_utf8(listed.stdout).expect("UTF-8").starts_with("M1-quick "));
}

#[test]
fn what_there_is_not_is_refused() {
    assert!(refused(&["evaluate", "--cell", "I-oit"], 2).contains("did you mean \"I-iot\"?"));
    assert!(refused(&["evaluate", "cubik", "--cell", "I-iot"], 2).contains("cubik"));
    assert!(refused(&["evaluate", "--scenario", "H"], 2).contains("is a family"));
    for ignored in [&["--list", "--seeds", "2"][..], &["--scenario", "H-cubic-1", "--bars"]] {
        let ended = run(&[&["evaluate"], ignored].concat());
        assert!(ended.status == Some(2) && ended.stderr.contains("cannot be used with"), "{ended:?}");
    }
}

/// By the real clock: the kernel's Reno, in the shortest cell.
#[test]
fn a_control_of_the_kernel_runs_in_real_time_beside_its_simulation() {
    let (folder, _) = scratch("");
    let out = folder.path().join("live");
    let cell = ["evaluate", "--live", "--quick", "--cell", "S-20-40-1"];
    let all = [&cell[..], &["linux:reno", "--out", text(&out), "--json"]].concat();
    let ended = run(&all);
    if ended.status == Some(3) || ended.stderr.contains("cannot read /proc") {
        let name = "lab::evaluate::a_control_of_the_kernel_runs_in_real_time_beside_its_simulation";
        return skip(name, &ended.complaint());
    }
    let json = ended.json();
    let sender = &json["senders"][0];
    assert_eq!(
        (sender["sender"]["name"].as_str(), json["senders"].as_array().map(Vec::len)),
        (Some("linux:reno"), Some(1))
    );
    assert_eq!(sender["sender"]["twin"]["spec"], "reno");
    let live = &sender["cells"][0]["live"]["1"];
    let twin = &sender["cells"][0]["twin"]["1"];
    // How late the machine was is its own matter, but what arrived is not: one flow fills the link.
    for stand in [&live["stand"], twin] {
        let fill = stand["done"]["fill"].as_f64().expect("a number");
        assert!((0.5..1.05).contains(&fill), "{json}");
    }
    let void = !live["void"].as_array().expect("reasons").is_empty();
    assert_eq!(ended.status, Some(i32::from(void)), "{ended:?}");
    assert_eq!(sender["cells"][0]["agreements"].as_array().map(Vec::len), Some(if void { 0 } else { 3 }));
    assert!(ended.stderr.contains("1 of 1: linux:reno in S-20-40-1, seed 1"), "{ended:?}");
    assert!(fs::read_to_string(out.join("league/live.md")).expect("a page").contains("`linux:reno`"));

    // Of the data alone the same comes, and a run that is not void is not repeated.
    let data = out.join("league/live.json");
    let again = run(&[&cell[..], &["--from", text(&data), "--json"]].concat());
    assert_eq!((again.status, &again.stdout), (ended.status, &ended.stdout));
    if !void {
        let resumed = run(&all);
        assert_eq!((&resumed.stdout, resumed.stderr.as_str()), (&ended.stdout, ""));
    }
    let complaint = refused(&["evaluate", "--live", "--from", text(&data)], 5);
    assert!(complaint.contains("do not belong in one table"), "{complaint}");
}

#[test]
fn a_live_cell_is_a_scenario_with_hosts_of_the_kernel() {
    let ended = run(&["evaluate", "--live", "linux:reno", "--scenario", "S-20-40-1"]);
    let scenario = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(
        scenario.contains("cc = \"reno\", sysctl")
            && scenario.contains("name = \"receiver\"\nworld = \"kernel\""),
        "{scenario}"
    );
    let listed = run(&["evaluate", "--live", "--quick", "--list"]);
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    assert!(
        listed.starts_with("M1-live-quick ")
            && listed.contains("linux:reno")
            && listed.contains("Not in real time"),
        "{listed}"
    );
}

#[test]
fn what_real_time_does_not_have_is_refused() {
    assert!(
        refused(&["evaluate", "--live", "linux:cubik"], 2)
            .contains("the kernel has no congestion control \"cubik\"")
    );
    assert!(refused(&["evaluate", "--live", "cubik"], 2).contains("cubik"));
    assert!(refused(&["evaluate", "--live", "--cell", "W"], 2).contains("M1-live has no cell \"W\""));
    for simulated in [&["linux:cubic"][..], &["linux:cubic", "--scenario", "H-cubic-1"]] {
        let complaint = refused(&[&["evaluate"], simulated].concat(), 2);
        assert!(
            complaint.contains("linux:cubic is a control of the kernel, which takes part with --live"),
            "{complaint}"
        );
    }
    for ignored in [&["--live", "--bars"][..], &["--live", "--overlay", "league.json"], &["--pacing", "spin"]]
    {
        let ended = run(&[&["evaluate"], ignored].concat());
        assert!(ended.status == Some(2) && ended.stdout.is_empty(), "{ended:?}");
    }
}

#[test]
fn a_live_league_without_tun_devices_is_refused_before_anything_runs() {
    let name = "lab::evaluate::a_live_league_without_tun_devices_is_refused_before_anything_runs";
    let script = "mount -t tmpfs none /dev/net || exit 99; exec \"$program\" evaluate --live --quick reno";
    let Some(ended) = with_own_mounts(name, script, &[], &[]) else { return };
    assert_eq!((ended.status, ended.stderr.lines().count()), (Some(3), 1), "{ended:?}");
    assert!(ended.stdout.is_empty() && ended.complaint().contains("TUN device"), "{ended:?}");
}
