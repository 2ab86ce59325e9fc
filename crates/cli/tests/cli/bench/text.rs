//! Lines for people: iperf3's, and the RTT behind them.

use super::world::{KERNEL4, Link, STACK4, said, with};
use crate::common::Exit;

/// What a line is without its numbers: each run of digits and points is one `0`, each run of spaces
/// one space, and units of adaptive size are the same.
fn form(line: &str) -> String {
    let mut form = String::new();
    for c in line.trim_end().chars() {
        let c = if c.is_ascii_digit() || c == '.' { '0' } else { c };
        if !(matches!(c, '0' | ' ') && form.ends_with(c)) {
            form.push(c);
        }
    }
    for unit in ["Kbits", "Mbits", "Gbits"] {
        form = form.replace(unit, "bits");
    }
    for unit in ["KBytes", "MBytes", "GBytes"] {
        form = form.replace(unit, "Bytes");
    }
    form.replace(" ms", " us")
}

/// Interval lines of a sender have one column more.
fn without_rtt(form: &str) -> String {
    form.replace(" RTT", "").replace(" 0 us", "").trim_end().to_owned()
}

/// The forms of what a command printed. Equal lines in a row are one.
fn forms(ended: &Exit) -> Vec<String> {
    let text = String::from_utf8_lossy(&ended.stdout);
    let mut forms: Vec<String> = text.lines().map(|line| without_rtt(&form(line))).collect();
    forms.dedup();
    forms
}

#[test]
#[ignore = "slow"]
fn lines_are_iperf3s_with_the_rtt_behind_them() {
    with("bench::text::lines_are_iperf3s_with_the_rtt_behind_them", Link::Tun, |world| {
        // One interval for the whole test: with more, the two ends of a test may differ by a short
        // last one.
        let whole = ["-t", "1", "-b", "20M", "-i", "0"];
        let omitting = ["-t", "1", "-b", "20M", "-O", "1"];
        for (length, options) in [
            (&whole[..], &[][..]),
            (&whole, &["-R"]),
            (&whole, &["-P", "2"]),
            (&whole, &["--bidir", "-P", "2"]),
            (&whole, &["-f", "k", "--bidir"]),
            (&omitting, &[]),
        ] {
            let options = [length, options].concat();
            let [kernel, stack] = [KERNEL4, STACK4].map(|address| address.to_string());

            let server = world.their_server(&["-i", if length == whole { "0" } else { "1" }]);
            let ours = world.ours(&[&["-c", &kernel], &options[..]].concat()).end();
            let theirs_of_server = server.end();

            let server = world.ours(&["-s", "-1", "-i", if length == whole { "0" } else { "1" }]);
            let theirs = world.their_client(&[&["-c", &stack], &options[..]].concat());
            let ours_of_server = server.end();

            for (ours, theirs) in [(&ours, &theirs), (&ours_of_server, &theirs_of_server)] {
                assert_eq!(ours.status, Some(0), "{options:?}: {}", said(ours));
                let [ours_forms, theirs_forms] = [ours, theirs].map(|ended| {
                    let mut forms = forms(ended);
                    if options.contains(&"-R") {
                        // Whether iperf3 names columns that a receiver does not fill depends on
                        // when it ends.
                        forms.iter_mut().for_each(|form| *form = form.replace(" Retr Cwnd", ""));
                    }
                    forms
                });
                assert_eq!(ours_forms, theirs_forms, "{options:?}:\n{}\n{}", said(ours), said(theirs));
            }
        }
    });
}

#[test]
fn a_stock_client_gets_what_our_server_said() {
    with("bench::text::a_stock_client_gets_what_our_server_said", Link::Tun, |world| {
        let server = world.ours(&["-s", "-1"]);
        let to = STACK4.to_string();
        let client = world.their_client(&["-c", &to, "-n", "1M", "--get-server-output"]);
        let text = String::from_utf8_lossy(&client.stdout).into_owned();
        let (_, told) = text.split_once("Server output:\n").unwrap_or_else(|| panic!("{}", said(&client)));
        assert!(told.starts_with("Accepted connection from 198.18.0.1, port "), "{text}");
        assert!(told.contains("receiver"), "{text}");
        assert_eq!(server.end().status, Some(0));
    });
}

#[test]
fn a_stock_server_tells_our_client_what_it_said() {
    with("bench::text::a_stock_server_tells_our_client_what_it_said", Link::Ethernet, |world| {
        let server = world.their_server(&[]);
        let to = KERNEL4.to_string();
        let client = world.ours(&["-c", &to, "-n", "1M", "-V", "-T", "title", "--get-server-output"]).end();
        assert_eq!(client.status, Some(0), "{}", said(&client));
        let text = String::from_utf8_lossy(&client.stdout).into_owned();
        assert!(text.lines().all(|line| line.starts_with("title:  ")), "{text}");
        for wanted in [
            "Cookie: ",
            "1048576 bytes to send",
            "RTT min/mean/max ",
            "CPU Utilization: local/sender ",
            ", remote/receiver ",
            "snd_tcp_congestion cubic\n",
            "Server output:\n",
            "Accepted connection from 198.18.0.2, port ",
            "iperf Done.\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is missing: {text}");
        }
        server.end();
    });
}
