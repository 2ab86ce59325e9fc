//! The tables of results.

use super::text::{Table, median, with_range};
use crate::case::{
    Act, CONTESTANTS, Case, FEWER_ACKS, GVISOR_PACKET, GVISOR_PLAIN, KERNEL, KERNEL_DEFAULT_CC, LOOP_PLAIN,
    LOOP_TUN, LOOP_TUN_DEFAULT_CC, LOOP_URING, PACKET, PLAIN, PLAIN_FEWER_ACKS, SMOLTCP, TUN, TUN_CAPTURED,
    TUN_CAPTURED_AND_TRACED, TUN_CAPTURED_SPLIT, TUN_COPIES, TUN_DEFAULT_CC, TUN_TRACED, TUN_WORKERS,
    TUN_WORKERS_COPIES, TUN_WORKERS_QUEUES, URING, Wait,
};
use crate::results::{Metric, Results, Setting, Summary};

pub(super) const SEND: Act = Act::Send { flows: 1 };
pub(super) const RECEIVE: Act = Act::Receive { flows: 1 };
const SEND_MANY: Act = Act::Send { flows: Act::MANY };
const RECEIVE_MANY: Act = Act::Receive { flows: Act::MANY };

pub(super) fn setting(setting: &Setting) -> String {
    let Setting { congestion_control, seconds, rounds, .. } = setting;
    let place = setting.place();
    format!(
        "{rounds} rounds of {seconds} s for each case; {place}, whose default congestion control here is \
         `{congestion_control}`.\n"
    )
}

/// What leads the page: ackline beside each of the others on a device of the same kind.
pub(super) fn ratios(results: &Results) -> String {
    let mut table = Table::new(&[
        "how many times as fast",
        "sends",
        "receives",
        "100 flows send",
        "100 flows receive",
        "connections per second, 100 at once",
    ]);
    for (label, ours, theirs) in [
        ("ackline, TUN, to kernel, veth with TSO", TUN, KERNEL),
        ("ackline, AF_PACKET, to gVisor, AF_PACKET", PACKET, GVISOR_PACKET),
        ("ackline, plain TUN, to gVisor, plain TUN", PLAIN, GVISOR_PLAIN),
        ("ackline, plain TUN, to smoltcp, plain TUN", PLAIN, SMOLTCP),
    ] {
        let ratio = |act, metric| {
            // Between two kernels a direction is like the other.
            let their_act = match act {
                Act::Receive { flows } if theirs == KERNEL => Act::Send { flows },
                act => act,
            };
            let above = Case { contestant: ours, act };
            with_range(results.ratio(&above, &Case { contestant: theirs, act: their_act }, metric))
        };
        let rates = [SEND, RECEIVE, SEND_MANY, RECEIVE_MANY].map(|act| ratio(act, Metric::GbitPerSecond));
        let connections = ratio(Act::Open { at_once: Act::MANY }, Metric::PerSecond);
        some_row(&mut table, label, rates.into_iter().chain([connections]));
    }
    table.render()
}

pub(super) fn bulk(results: &Results) -> String {
    let mut table = Table::new(&["Gbit/s", "sends", "receives", "100 flows send", "100 flows receive"]);
    for contestant in CONTESTANTS {
        let cells = [SEND, RECEIVE, SEND_MANY, RECEIVE_MANY]
            .map(|act| with_range(results.summary(&Case { contestant, act }, Metric::GbitPerSecond)));
        some_row(&mut table, contestant.label, cells);
    }
    table.render()
}

pub(super) fn cpu(results: &Results) -> String {
    let mut table = Table::new(&[
        "s per 10^9 bytes",
        "own end",
        "kernel's end",
        "both",
        "of that in the kernel",
        "to kernel, veth",
        "whole machine",
        "both, 100 flows",
    ]);
    for contestant in CONTESTANTS {
        for (word, act, many) in [("sends", SEND, SEND_MANY), ("receives", RECEIVE, RECEIVE_MANY)] {
            let case = Case { contestant, act };
            let value = |metric| median(results.summary(&case, metric));
            let ratio = results.ratio(&case, &Case { contestant: KERNEL, act: SEND }, Metric::CpuBoth);
            let cells = [
                value(Metric::CpuHere),
                value(Metric::CpuPeer),
                value(Metric::CpuBoth),
                percent(results.summary(&case, Metric::KernelShare)),
                median(ratio),
                value(Metric::CpuMachine),
                median(results.summary(&Case { contestant, act: many }, Metric::CpuBoth)),
            ];
            some_row(&mut table, &format!("{}: {word}", contestant.label), cells);
        }
    }
    table.render()
}

/// What io_uring is worth.
pub(super) fn rings(results: &Results) -> String {
    let mut table =
        Table::new(&["plain TUN, one flow", "read and write", "io_uring", "ratio", "processor time, ratio"]);
    for (who, without, with) in [("loop", LOOP_PLAIN, LOOP_URING), ("ackline", PLAIN, URING)] {
        for (word, act) in [("sends", SEND), ("receives", RECEIVE)] {
            let (without, with) = (Case { contestant: without, act }, Case { contestant: with, act });
            if results.summary(&with, Metric::GbitPerSecond).is_none() {
                continue;
            }
            let rate = |case| with_range(results.summary(case, Metric::GbitPerSecond));
            let ratio = |metric| with_range(results.ratio(&with, &without, metric));
            let cells = [rate(&without), rate(&with), ratio(Metric::GbitPerSecond), ratio(Metric::CpuHere)];
            some_row(&mut table, &format!("{who} {word}, Gbit/s"), cells);
        }
    }
    table.render()
}

/// What other programs around the stack reach, to one on a single thread that exchanges data in the
/// same way.
pub(super) fn programs(results: &Results) -> String {
    let mut table = Table::new(&["TUN", "one thread", "two workers", "ratio", "processor time, ratio"]);
    for (access, one, workers) in [
        ("in place", TUN, TUN_WORKERS),
        ("copies of 64 KiB", TUN_COPIES, TUN_WORKERS_COPIES),
        ("copies, by queues", TUN_COPIES, TUN_WORKERS_QUEUES),
    ] {
        for (word, act) in [
            ("sends", SEND),
            ("receives", RECEIVE),
            ("100 flows send", SEND_MANY),
            ("100 flows receive", RECEIVE_MANY),
        ] {
            let (one, workers) = (Case { contestant: one, act }, Case { contestant: workers, act });
            if results.summary(&workers, Metric::GbitPerSecond).is_none() {
                continue;
            }
            let rate = |case| with_range(results.summary(case, Metric::GbitPerSecond));
            let ratio = |metric| with_range(results.ratio(&workers, &one, metric));
            let cells = [rate(&one), rate(&workers), ratio(Metric::GbitPerSecond), ratio(Metric::CpuHere)];
            some_row(&mut table, &format!("{access}, {word}, Gbit/s"), cells);
        }
    }
    for (word, act, metric) in [
        (
            "round trip, p50, µs",
            Act::RoundTrip { here: Wait::Blocking, peer: Wait::Blocking },
            Metric::MedianMicros,
        ),
        ("connections per second, 100 at once", Act::Open { at_once: Act::MANY }, Metric::PerSecond),
    ] {
        let (one, workers) = (Case { contestant: TUN, act }, Case { contestant: TUN_WORKERS, act });
        if results.summary(&workers, metric).is_none() {
            continue;
        }
        let value = |case| with_range(results.summary(case, metric));
        let cpu = with_range(results.ratio(&workers, &one, Metric::CpuMicrosEach));
        some_row(
            &mut table,
            word,
            [value(&one), value(&workers), with_range(results.ratio(&workers, &one, metric)), cpu],
        );
    }
    table.render()
}

pub(super) fn system_cc(results: &Results) -> String {
    let mut table =
        Table::new(&["Gbit/s, one flow", "kernel with cubic", "kernel with this machine's default"]);
    for (label, cubic, default) in [
        (
            "kernel, veth with TSO",
            Case { contestant: KERNEL, act: SEND },
            Case { contestant: KERNEL_DEFAULT_CC, act: SEND },
        ),
        (
            "loop, TUN: receives",
            Case { contestant: LOOP_TUN, act: RECEIVE },
            Case { contestant: LOOP_TUN_DEFAULT_CC, act: RECEIVE },
        ),
        (
            "ackline, TUN: receives",
            Case { contestant: TUN, act: RECEIVE },
            Case { contestant: TUN_DEFAULT_CC, act: RECEIVE },
        ),
    ] {
        let cells = [cubic, default].map(|case| with_range(results.summary(&case, Metric::GbitPerSecond)));
        some_row(&mut table, label, cells);
    }
    table.render()
}

pub(super) fn captures(results: &Results) -> String {
    let mut table = Table::new(&["TUN, one flow", "Gbit/s", "unobserved", "ratio", "missing"]);
    for (word, act) in [("sends", SEND), ("receives", RECEIVE)] {
        for (label, contestant) in [
            ("capture", TUN_CAPTURED),
            ("capture, split", TUN_CAPTURED_SPLIT),
            ("trace", TUN_TRACED),
            ("capture and trace", TUN_CAPTURED_AND_TRACED),
        ] {
            let (with, without) = (Case { contestant, act }, Case { contestant: TUN, act });
            if results.summary(&with, Metric::GbitPerSecond).is_none() {
                continue;
            }
            let rate = |case| with_range(results.summary(case, Metric::GbitPerSecond));
            let ratio = with_range(results.ratio(&with, &without, Metric::GbitPerSecond));
            let missing = with_range(results.summary(&with, Metric::NotObserved));
            some_row(&mut table, &format!("{word}, {label}"), [rate(&with), rate(&without), ratio, missing]);
        }
    }
    table.render()
}

pub(super) fn acks(results: &Results) -> String {
    let mut table = Table::new(&[
        "plain TUN, receives",
        "one flow, Gbit/s",
        "to smoltcp",
        "ACKs per segment",
        "100 flows, Gbit/s",
        "to smoltcp",
        "ACKs per segment",
    ]);
    for (label, contestant) in [
        ("smoltcp".to_owned(), SMOLTCP),
        ("ackline, `linux-like` (default)".to_owned(), PLAIN),
        (format!("ackline, `{FEWER_ACKS}`"), PLAIN_FEWER_ACKS),
    ] {
        let cells = [RECEIVE, RECEIVE_MANY].into_iter().flat_map(|act| {
            let (case, smoltcp) = (Case { contestant, act }, Case { contestant: SMOLTCP, act });
            [
                with_range(results.summary(&case, Metric::GbitPerSecond)),
                median(results.ratio(&case, &smoltcp, Metric::GbitPerSecond)),
                median(results.summary(&case, Metric::AcksPerSegment)),
            ]
        });
        some_row(&mut table, &label, cells);
    }
    table.render()
}

pub(super) fn latency(results: &Results) -> String {
    let mut table = Table::new(&[
        "round trip of one byte, µs",
        "waits",
        "the other end waits",
        "p50",
        "p99",
        "p50 to blocking kernel",
    ]);
    let waits = [(Wait::Blocking, Wait::Blocking), (Wait::Busy, Wait::Blocking), (Wait::Busy, Wait::Busy)];
    let kernel =
        Case { contestant: KERNEL, act: Act::RoundTrip { here: Wait::Blocking, peer: Wait::Blocking } };
    for (here, peer) in waits {
        for contestant in CONTESTANTS {
            let case = Case { contestant, act: Act::RoundTrip { here, peer } };
            let cells = [
                with_range(results.summary(&case, Metric::MedianMicros)),
                with_range(results.summary(&case, Metric::P99Micros)),
                median(results.ratio(&case, &kernel, Metric::MedianMicros)),
            ];
            if !cells[0].is_empty() {
                let words = [contestant.label.to_owned(), here.to_string(), peer.to_string()];
                table.row(words.into_iter().chain(cells));
            }
        }
    }
    table.render()
}

pub(super) fn connections(results: &Results) -> String {
    let mut table = Table::new(&[
        "connections per second",
        "one at a time",
        "to kernel",
        "µs of processor each",
        "100 at once",
        "to kernel",
        "µs of processor each",
        "own end busy",
        "other end busy",
    ]);
    for contestant in CONTESTANTS {
        let mut cells: Vec<_> = [1, Act::MANY]
            .into_iter()
            .flat_map(|at_once| {
                let act = Act::Open { at_once };
                let (case, kernel) = (Case { contestant, act }, Case { contestant: KERNEL, act });
                [
                    with_range(results.summary(&case, Metric::PerSecond)),
                    median(results.ratio(&case, &kernel, Metric::PerSecond)),
                    median(results.summary(&case, Metric::CpuMicrosEach)),
                ]
            })
            .collect();
        let many = Case { contestant, act: Act::Open { at_once: Act::MANY } };
        cells.extend([Metric::LoadHere, Metric::LoadPeer].map(|load| percent(results.summary(&many, load))));
        some_row(&mut table, contestant.label, cells);
    }
    table.render()
}

fn percent(share: Option<Summary>) -> String {
    share.map_or_else(String::new, |Summary { median, .. }| format!("{:.0} %", median * 100.0))
}

/// A row, unless it would be empty.
fn some_row(table: &mut Table, label: &str, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<_> = cells.into_iter().collect();
    if cells.iter().any(|cell| !cell.is_empty()) {
        table.row(std::iter::once(label.to_owned()).chain(cells));
    }
}
