//! What is wanted of ackline beside the others.

use super::wanted::{self, Bound, Target};
use crate::case::{
    Act, Case, Contestant, KERNEL, KERNEL_DEFAULT_CC, LOOP_PACKET, LOOP_TUN, PACKET, PLAIN, PLAIN_FEWER_ACKS,
    SMOLTCP, TUN, TUN_COPIES, TUN_DEFAULT_CC, Wait,
};
use crate::results::{Metric, Results};

const SEND: Act = Act::Send { flows: 1 };
const RECEIVE: Act = Act::Receive { flows: 1 };
const fn round_trip(here: Wait, peer: Wait) -> Act {
    Act::RoundTrip { here, peer }
}
const BLOCKING: Act = round_trip(Wait::Blocking, Wait::Blocking);

/// One row for each target that there are results for.
pub(super) fn table(results: &Results) -> String {
    wanted::table(targets(results))
}

fn targets(results: &Results) -> Vec<Target> {
    let case = |contestant: Contestant, act| Case { contestant, act };
    let ratio = |what: &str, above: Case, below: Case, metric, bound| Target {
        what: what.to_owned(),
        bound,
        found: results.ratio(&above, &below, metric),
    };
    let kernel_bulk = case(KERNEL, SEND);
    let rate = |what: &str, above, below, least| {
        ratio(what, above, below, Metric::GbitPerSecond, Bound::AtLeast(least))
    };
    let cpu = |what: &str, above| ratio(what, above, kernel_bulk, Metric::CpuBoth, Bound::AtMost(1.2));
    let delay = |what: &str, above, most| {
        ratio(what, above, case(KERNEL, BLOCKING), Metric::MedianMicros, Bound::AtMost(most))
    };

    let mut targets = vec![
        rate("TUN, one flow: send, to its loop", case(TUN, SEND), case(LOOP_TUN, SEND), 0.70),
        rate("TUN, one flow: send, to kernel veth", case(TUN, SEND), kernel_bulk, 0.8),
        rate("TUN, one flow: receive, to its loop", case(TUN, RECEIVE), case(LOOP_TUN, RECEIVE), 0.75),
        rate("TUN, one flow: receive, to kernel veth", case(TUN, RECEIVE), kernel_bulk, 0.6),
        cpu("TUN, one flow: processor per byte of both ends, send, to kernel veth", case(TUN, SEND)),
        cpu("TUN, one flow: processor per byte of both ends, receive, to kernel veth", case(TUN, RECEIVE)),
        rate("plain TUN: send, to smoltcp", case(PLAIN, SEND), case(SMOLTCP, SEND), 1.1),
        rate(
            "plain TUN: receive, to smoltcp, default ACKs",
            case(PLAIN, RECEIVE),
            case(SMOLTCP, RECEIVE),
            1.3,
        ),
        rate(
            "plain TUN: receive, to smoltcp, fewer ACKs",
            case(PLAIN_FEWER_ACKS, RECEIVE),
            case(SMOLTCP, RECEIVE),
            1.3,
        ),
    ];
    for (word, act) in [("write_all", SEND), ("read", RECEIVE)] {
        let what = format!("TUN, one flow: {word} of 64 KiB, to in place");
        targets.push(rate(&what, case(TUN_COPIES, act), case(TUN, act), 0.95));
    }
    targets.push(rate(
        "TUN, one flow: receive, to kernel veth, both from the kernel's default congestion control",
        case(TUN_DEFAULT_CC, RECEIVE),
        case(KERNEL_DEFAULT_CC, SEND),
        0.6,
    ));
    for (word, act) in [("send", SEND), ("receive", RECEIVE)] {
        targets.push(Target {
            what: format!("AF_PACKET, one flow: {word}, Gbit/s"),
            bound: Bound::AtLeast(10.0),
            found: results.summary(&case(PACKET, act), Metric::GbitPerSecond),
        });
        let what = format!("AF_PACKET, one flow: {word}, to its loop");
        targets.push(rate(&what, case(PACKET, act), case(LOOP_PACKET, act), 0.5));
    }
    for contestant in [TUN, PACKET] {
        let label = contestant.label;
        for (peer, word) in [(Wait::Blocking, "blocking"), (Wait::Busy, "busy")] {
            let what =
                format!("round trip of a byte, p50, {label} busy, other end {word}, to blocking kernel");
            targets.push(delay(&what, case(contestant, round_trip(Wait::Busy, peer)), 0.35));
        }
        let busy = round_trip(Wait::Busy, Wait::Busy);
        targets.push(ratio(
            &format!("round trip of a byte, p99, {label} busy, other end busy, to busy kernel"),
            case(contestant, busy),
            case(KERNEL, busy),
            Metric::P99Micros,
            Bound::AtMost(1.0),
        ));
        targets.push(delay(
            &format!("round trip of a byte, p50, {label} blocking, to blocking kernel"),
            case(contestant, BLOCKING),
            1.0,
        ));
    }
    for at_once in [1, Act::MANY] {
        let act = Act::Open { at_once };
        let many = |what: &str, above: Contestant, below: Contestant, least| {
            let what = format!("connections per second, {at_once} at once: {what}");
            ratio(&what, case(above, act), case(below, act), Metric::PerSecond, Bound::AtLeast(least))
        };
        targets.push(many("TUN, to kernel veth", TUN, KERNEL, 1.0));
        targets.push(many("AF_PACKET, to kernel veth", PACKET, KERNEL, 1.0));
        targets.push(many("plain TUN, to smoltcp", PLAIN, SMOLTCP, 1.25));
    }
    targets
}
