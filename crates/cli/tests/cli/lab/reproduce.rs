//! Papers repeated from the command line.

use crate::common::{run, scratch, text, with_own_mounts};
use crate::usage::refused;
use serde_json::Value;
use std::fs;

#[test]
fn the_list_names_papers_and_tables() {
    let ended = run(&["reproduce", "--list"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let list = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(list.contains("a3  R. K. C. Chang") && list.contains("--table 15.3"), "{list}");
    for paper in ["a3", "acwap", "dclor", "kalampoukas", "ls-aimd"] {
        assert!(list.contains(&format!("{paper} --live  ")), "{list}");
    }
}

#[test]
fn a_table_is_shown_and_written_whole() {
    let (folder, _) = scratch("");
    let out = folder.path().join("papers");
    let ended = run(&["reproduce", "a3", "--table", "equations", "--out", text(&out), "--json"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let json: Value = ended.json();
    assert_eq!((json["study"].as_str(), json["failed"].as_u64()), (Some("a3"), Some(0)));
    let checks = json["checks"].as_array().expect("checks");
    assert_eq!(json["passed"].as_u64(), Some(checks.len() as u64));
    for check in checks {
        for key in ["id", "paper", "expected", "measured", "low", "high", "ok"] {
            assert!(check.get(key).is_some(), "{key}: {check}");
        }
    }
    let page = fs::read_to_string(out.join("a3-csa3.md")).expect("a page");
    assert!(page.contains("Pairs of buffers that lock"), "{page}");
    let written: Value =
        serde_json::from_str(&fs::read_to_string(out.join("a3-csa3.json")).expect("a document"))
            .expect("JSON");
    assert_eq!(written, json);
    let left: Vec<_> = fs::read_dir(&out).expect("a folder").collect();
    assert_eq!(left.len(), 3, "{left:?}");
    // The data give the same again.
    let data = out.join("data");
    let again = run(&["reproduce", "a3", "--from", text(&data), "--json"]);
    assert_eq!((again.status, again.json()), (Some(0), json));
    let complaint = refused(&["reproduce", "a3", "--table", "15.1", "--from", text(&data)], 1);
    assert!(
        complaint.contains("the data of a3 have no outputs of \"15.1\" (they have equations)"),
        "{complaint}"
    );
}

#[test]
fn what_there_is_not_is_refused_in_one_line() {
    assert!(refused(&["reproduce", "a4"], 2).contains("there is no paper \"a4\"; did you mean \"a3\"?"));
    let complaint = refused(&["reproduce", "kalampouka", "--live"], 2);
    assert!(complaint.contains("did you mean \"kalampoukas\"?"), "{complaint}");
    let ended = run(&["reproduce", "a3", "--priority", "nice:5"]);
    assert!(ended.status == Some(2) && ended.stderr.contains("\n  --live\n"), "{ended:?}");
    let complaint = refused(&["reproduce", "a3", "--table", "15.4"], 2);
    assert!(complaint.contains("a3 has no table \"15.4\"; did you mean \"15."), "{complaint}");
    assert!(
        refused(&["reproduce", "a3", "--scale", "0"], 2).contains("--scale"),
        "a factor is larger than zero"
    );
}

#[test]
fn a_live_part_without_tun_devices_is_refused_before_anything_runs() {
    let name = "lab::reproduce::a_live_part_without_tun_devices_is_refused_before_anything_runs";
    let script = "mount -t tmpfs none /dev/net || exit 99; exec \"$program\" reproduce a3 --live --no-cache";
    let Some(ended) = with_own_mounts(name, script, &[], &[]) else { return };
    assert_eq!((ended.status, ended.stderr.lines().count()), (Some(3), 1), "{ended:?}");
    assert!(ended.stdout.is_empty() && ended.complaint().contains("TUN device"), "{ended:?}");
}
