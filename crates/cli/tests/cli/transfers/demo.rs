//! `ackline demo`, over TUN and over memory.

use crate::common::run;
use crate::net::{as_nobody, succeeded, with_tun};
use ackline::runtime::testing::skip;

/// The parts of the demo's report that everybody may rely on.
fn assert_demo(report: &serde_json::Value, device: &str, bytes: u64) {
    assert_eq!((&report["ok"], &report["device"]), (&true.into(), &device.into()), "{report}");
    for direction in ["upload", "download"] {
        let direction = &report[direction];
        assert_eq!(direction["bytes"], bytes, "{report}");
        assert_eq!(direction["hash_match"], true, "{report}");
        assert_eq!(direction["hash_sent"], direction["hash_received"], "{report}");
        for figure in ["seconds", "gbit_s", "cpu_s"] {
            assert!(direction[figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {report}");
        }
        assert!(direction["retransmits"].is_u64(), "{report}");
    }
}

#[test]
fn the_demo_talks_to_the_kernel() {
    with_tun("transfers::demo::the_demo_talks_to_the_kernel", || {
        for (options, offload) in [(&[][..], true), (&["--plain"], false)] {
            let ended = run(&[&["demo", "--json", "--device", "tun", "--size", "8M"], options].concat());
            succeeded(&ended);
            let report = ended.json();
            assert_demo(&report, "tun", 8 << 20);
            assert_eq!(report["offload"], offload);
            assert!(report["upload"]["rtt_min_ms"].as_f64().is_some_and(|rtt| rtt > 0.0), "{report}");
        }
    });
}

#[test]
fn a_demo_for_some_time_ends_soon_after_it_behind_a_slow_shaper_too() {
    let ended =
        run(&["demo", "--json", "--device", "channel", "--seconds", "0.3", "--egress-rate", "400kbit"]);
    succeeded(&ended);
    let report = ended.json();
    // The buffer of 64 KiB and the headers leave in 1.4 s.
    let seconds = report["upload"]["seconds"].as_f64().expect("a number");
    assert!((0.3..5.0).contains(&seconds), "{report}");
}

#[test]
fn a_slow_rate_has_its_own_unit() {
    let ended = run(&["demo", "--device", "channel", "--size", "4k", "--egress-rate", "100kbit"]);
    succeeded(&ended);
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    let rates = text.lines().find(|line| line.starts_with("rate ")).expect("a row");
    assert!(rates.contains(" kbit/s") && !text.contains("0.000 Gbit/s"), "{text}");
}

#[test]
fn a_shaped_demo_keeps_its_rate_and_says_how_long_packets_waited() {
    let shaped = ["--egress-rate", "20mbit", "--egress-burst", "3k", "--sched", "kalampoukas:f=0.5"];
    let ended = run(&[&["demo", "--json", "--device", "channel", "--size", "1M"][..], &shaped].concat());
    succeeded(&ended);
    let report = ended.json();
    assert_demo(&report, "channel", 1 << 20);
    let seconds = report["upload"]["seconds"].as_f64().expect("a number");
    // 2^20 bytes in 725 packets with headers of 52 bytes take 0.434 s.
    assert!((0.42..0.8).contains(&seconds), "{report}");
    let egress = &report["egress"];
    assert_eq!(egress["scheduler"], "kalampoukas");
    let data = egress["classes"]
        .as_array()
        .and_then(|classes| classes.iter().find(|class| class["class"] == "data"));
    let data = data.expect("data left");
    assert!(data["packets"].as_u64().is_some_and(|packets| packets >= 725), "{report}");
    let waited =
        ["delay_p50_ms", "delay_p90_ms", "delay_p99_ms", "delay_max_ms"].map(|field| data[field].as_f64());
    assert!(waited[0] > Some(0.5) && waited.is_sorted(), "{report}");
    let ended = run(&[&["demo", "--device", "channel", "--size", "100k"][..], &shaped].concat());
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(text.contains("waited in kalampoukas"), "{text}");
    let data = text.lines().find(|line| line.starts_with("  data "));
    assert!(data.is_some_and(|line| line.contains(" ms")), "{text}");
    let ended = run(&["demo", "--device", "channel", "--size", "100k"]);
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(!text.contains("waited"), "nothing is said of a queue that is not there: {text}");
}

#[test]
fn the_demo_needs_no_rights() {
    let ended = run(&["demo", "--json", "--device", "channel", "--size", "3M"]);
    succeeded(&ended);
    assert_demo(&ended.json(), "channel", 3 << 20);
    let ended = run(&["demo", "--device", "channel", "--plain", "--size", "1M"]);
    succeeded(&ended);
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    let first = text.lines().next().expect("a line");
    assert!(first.contains("two ackline stacks over a device in memory"), "{text}");
    assert!(text.contains("Every byte arrived unharmed"), "{text}");
    // A user without rights gets a TUN device in a user namespace, or the device in memory: never a
    // failure.
    match as_nobody(&["demo", "--json", "--size", "1M"]) {
        Some(ended) => {
            succeeded(&ended);
            assert_eq!(ended.json()["ok"], true);
        }
        None => skip(
            "transfers::demo::the_demo_needs_no_rights",
            &"cannot become another user: only --device channel was tried",
        ),
    }
}

#[test]
fn the_demo_tells_of_lateness_and_policies_only_if_asked() {
    for (options, told) in [(&[][..], false), (&["-v"], true)] {
        let ended = run(&[&["demo", "--device", "channel", "--size", "300k"], options].concat());
        succeeded(&ended);
        let text = String::from_utf8(ended.stdout).expect("UTF-8");
        assert_eq!(text.contains("gaps between data packets"), told, "{text}");
        assert!(told || !text.contains("lateness"), "{text}");
        for line in ["\ncubic: cwnd ", "\nlinux-like: quick ", "\nlinux: frto_step 0, "] {
            assert_eq!(text.contains(line), told, "{text}");
        }
        assert!(text.contains("retransmits"), "{text}");
    }
}

#[test]
fn the_demo_runs_for_a_time() {
    let ended = run(&["demo", "--json", "--device", "channel", "--seconds", "0.3"]);
    succeeded(&ended);
    let report = ended.json();
    let seconds = report["upload"]["seconds"].as_f64().expect("a number");
    assert!((0.3..5.0).contains(&seconds), "{report}");
    assert_eq!(report["download"]["hash_match"], true);
}

#[test]
fn the_demo_uses_the_policies_that_are_named() {
    let specs =
        ["--cc", "reno", "--ack", "delayed:segments=4", "--rto", "dclor", "--sched", "fifo:rate=200mbit"];
    let ended = run(&[&["demo", "--json", "--device", "channel", "--size", "2M"], &specs[..]].concat());
    succeeded(&ended);
    let report = ended.json();
    assert_demo(&report, "channel", 2 << 20);
    for pair in specs.chunks(2) {
        assert_eq!(report[&pair[0][2..]], pair[1]);
    }
    // The shaper lets no more pass than it is told to; its burst is what an idle millisecond saves
    // up.
    let gbit_s = report["upload"]["gbit_s"].as_f64().expect("a number");
    assert!(gbit_s < 0.21, "{report}");
}
