//! The data of one end.

use super::losses::losses;
use super::units::{count, grouped, percent, rate, size, time, times};
use super::{LISTED, Page, at, recording};
use crate::story::{
    ArrivalCounts, Cause, Congestion, Connection, Direction, Interval, PathChange, PathPosition, Rtt,
    SlowStartEnd, Window,
};

pub(super) fn direction(page: &mut Page, name: &str, direction: &Direction, connection: &Connection) {
    let span = direction.last_at_ns.saturating_sub(direction.first_at_ns);
    let rate = if span > 0 {
        format!(" in {} ({})", time(span), rate(direction.bytes, span))
    } else {
        String::new()
    };
    let flight = match direction.received {
        None => format!(", {} in flight at most", size(direction.max_flight)),
        Some(_) => String::new(),
    };
    page.line(&format!(
        "The {name} sent {}{rate}: {} packets{flight}",
        size(direction.bytes),
        grouped(direction.packets)
    ));
    if let Some(slow_start) = direction.slow_start {
        let after = time(slow_start.end_at_ns.saturating_sub(direction.first_at_ns));
        let rounds = count(slow_start.rounds.into(), "round trip");
        let flight = size(slow_start.flight);
        let why = match slow_start.end {
            SlowStartEnd::Loss => "by a loss",
            SlowStartEnd::Mark => "by a congestion mark (ECN)",
            SlowStartEnd::ReceiverWindow => "at the receiver's window",
            SlowStartEnd::Plateau => {
                "without a loss: the sender grew no further (HyStart, pacing, or a limit of its own)"
            }
            SlowStartEnd::Data => "",
            SlowStartEnd::Application => "",
        };
        let text = match slow_start.end {
            SlowStartEnd::Data => {
                format!("did not end: the data did, after {rounds}, with {flight} in flight at most")
            }
            SlowStartEnd::Application => {
                format!("did not end: the application sent too little, {flight} in flight at most")
            }
            _ => format!("ended after {after} and {rounds}, with {flight} in flight, {why}"),
        };
        page.entry("Slow start", &text);
    }
    if let Some(received) = &direction.received {
        page.entry("Received", &self::received(received));
    } else {
        page.entry("Time for", &shares(direction));
        losses(page, direction);
    }
    if let Some(stated) = &direction.congestion {
        page.entry("Stated", &congestion(stated));
    }
    stalls(page, direction);
    if let Some(rtt) = &direction.rtt {
        page.entry("Round trips", &round_trips(rtt, direction, connection));
    }
    if let Some(before) = &direction.rtt_before {
        page.entry("", &format!("before the capture: {}", distribution(before)));
    }
    for (place, change) in direction.path_changes.iter().enumerate() {
        page.entry(if place == 0 { "Path" } else { "" }, &path_change(change));
    }
    if direction.path_changes_left_out > 0 {
        page.entry("", &format!("and {} later", count(direction.path_changes_left_out, "change")));
    }
    page.entry("ACKs", &acks(direction));
    if let Some(window) = &direction.window {
        page.entry("Window", &self::window(window));
    }
    let marks = direction.marks;
    if let Some(told) = marks.accurate {
        let mut text = format!(
            "accurate: {} packets could be marked, {} passed with a mark; ACE tells of {} marks",
            grouped(marks.capable),
            grouped(marks.marked),
            grouped(told.told)
        );
        if told.options > 0 {
            text += &format!(
                ", {} options of {} with ECT(0), {} with ECT(1), {} with CE",
                grouped(told.options),
                size(told.ect0_bytes),
                size(told.ect1_bytes),
                size(told.ce_bytes)
            );
        }
        page.entry("ECN", &text);
    } else if marks.capable + marks.echoes > 0 {
        page.entry(
            "ECN",
            &format!(
                "{} packets could be marked, {} passed with a mark; {} ACKs with an echo, {} reductions announced",
                grouped(marks.capable),
                grouped(marks.marked),
                grouped(marks.echoes),
                grouped(marks.reductions)
            ),
        );
    }
    if direction.unacknowledged > 0 {
        page.entry(
            "Unacknowledged",
            &format!("{} at the end of the {}", size(direction.unacknowledged), recording(connection)),
        );
    }
}

fn shares(direction: &Direction) -> String {
    let shown: Vec<String> = direction
        .time
        .iter()
        .filter(|share| share.share >= 0.005)
        .map(|share| format!("{} {}", percent(share.share), share.cause.words()))
        .collect();
    if shown.is_empty() { "one packet, or one burst".to_owned() } else { shown.join(", ") }
}

/// What a stack states of its congestion control.
fn congestion(stated: &Congestion) -> String {
    let mut parts = vec![];
    if stated.cwnd_max > 0 {
        let (min, max, last) = (size(stated.cwnd_min), size(stated.cwnd_max), size(stated.cwnd_last));
        let ssthresh =
            stated.ssthresh.map_or_else(String::new, |bytes| format!(", ssthresh {}", size(bytes)));
        parts.push(format!("cwnd {min} to {max}, {last} at the end{ssthresh}"));
    }
    if let Some(rate) = stated.pacing_rate {
        parts.push(format!("paced at {} at the end", self::rate(rate / 8, 1_000_000_000)));
    }
    if stated.lost_bytes > 0 {
        let by_timer = match stated.losses_by_timer {
            0 => String::new(),
            found => format!(
                ", {} of {} times by the reordering timer",
                grouped(found),
                grouped(found + stated.losses_by_ack)
            ),
        };
        let again = match stated.lost_again {
            0 => String::new(),
            again => format!(", {} for another time", count(again, "segment")),
        };
        parts.push(format!("{} declared lost{by_timer}{again}", size(stated.lost_bytes)));
    }
    let verdicts = [(stated.timeouts_lossy, "found lossy"), (stated.timeouts_spurious, "found spurious")];
    for (timeouts, verdict) in verdicts.into_iter().filter(|(timeouts, _)| *timeouts > 0) {
        parts.push(format!("{} {verdict}", count(timeouts, "timeout")));
    }
    if stated.undone > 0 {
        parts.push(format!("{} undone", count(stated.undone, "reduction")));
    }
    if stated.reduced_by_ecn > 0 {
        parts.push(format!("{} by ECN", count(stated.reduced_by_ecn, "reduction")));
    }
    let phases =
        [(stated.disorder_ns, "disorder"), (stated.recovery_ns, "recovery"), (stated.loss_ns, "loss")];
    for (took, phase) in phases.into_iter().filter(|(took, _)| *took > 0) {
        parts.push(format!("{} in {phase}", time(took)));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

/// What became of a peer's data in the trace of its receiver.
fn received(received: &ArrivalCounts) -> String {
    let mut parts = vec![];
    for (packets, what) in [
        (received.again, "came again"),
        (received.behind_gap, "came behind a gap"),
        (received.dropped, "were not accepted, or not whole"),
    ] {
        if packets > 0 {
            parts.push(format!("{} {what}", count(packets, "packet")));
        }
    }
    if parts.is_empty() {
        parts.push("in order".to_owned());
    }
    parts.push("what limited this sender is not in a trace of the other side".to_owned());
    parts.join("; ")
}

fn stalls(page: &mut Page, direction: &Direction) {
    let mut listed: Vec<&Interval> = direction.stalls.iter().collect();
    listed.sort_by_key(|stall| std::cmp::Reverse(stall.time_ns));
    listed.truncate(LISTED);
    listed.sort_by_key(|stall| stall.at_ns);
    for (place, stall) in listed.iter().enumerate() {
        let label = if place == 0 { "Stalls" } else { "" };
        page.entry(label, &format!("{}: {} {}", at(stall.at_ns), time(stall.time_ns), why(stall.cause)));
    }
}

/// The cause of a wait as a clause.
const fn why(cause: Cause) -> &'static str {
    match cause {
        Cause::Application => "because the application sent nothing",
        Cause::ReceiverWindow => "because the receiver's window was full",
        Cause::ZeroWindow => "because the receiver's window was zero",
        Cause::CongestionWindow => "because the congestion window was full",
        Cause::Silence => "because no ACK came: the path or the receiver stood still",
        Cause::Pacing => "because of pacing",
        Cause::Path => "because the path before the capture let nothing through, or the sender sent nothing",
        Cause::Recovery => "while a loss was repaired",
        Cause::Timer => "until a timer fired",
    }
}

fn round_trips(rtt: &Rtt, direction: &Direction, connection: &Connection) -> String {
    let at_receiver = match connection.vantage.place {
        PathPosition::Client => direction.from != connection.client,
        PathPosition::Server => direction.from == connection.client,
        _ => false,
    };
    if at_receiver {
        return format!(
            "of ACKs at the receiver, how long it waits with them: min {}, median {}, 95 % below {}, max {}",
            time(rtt.min_ns),
            time(rtt.median_ns),
            time(rtt.p95_ns),
            time(rtt.max_ns)
        );
    }
    let behind = if direction.rtt_before.is_some() { "behind the capture: " } else { "" };
    format!("{behind}{}", distribution(rtt))
}

fn path_change(change: &PathChange) -> String {
    let became = if change.after_ns > change.before_ns { "longer or slower" } else { "shorter or faster" };
    let mut parts = vec![format!(
        "became {became} {}: the shortest round trip went from {} to {} and stayed there, which its own queue does not explain",
        at(change.at_ns),
        time(change.before_ns),
        time(change.after_ns)
    )];
    if change.reordered > 0 {
        parts.push(format!("{} came out of order then", count(change.reordered, "packet")));
    }
    if change.retransmissions > 0 {
        parts.push(format!("{} sent again", count(change.retransmissions, "packet")));
    }
    parts.join("; ")
}

fn distribution(rtt: &Rtt) -> String {
    let grows = match rtt.own_queue_ns {
        Some(queue) => format!(
            "they grow with what is in flight (r = {:.2}): its own queue adds {}",
            rtt.with_flight,
            time(queue)
        ),
        None => format!("they do not grow with what is in flight (r = {:.2})", rtt.with_flight),
    };
    format!(
        "min {}, median {}, 95 % below {}, max {}; {grows}",
        time(rtt.min_ns),
        time(rtt.median_ns),
        time(rtt.p95_ns),
        time(rtt.max_ns)
    )
}

fn acks(direction: &Direction) -> String {
    let acks = &direction.acks;
    let mut parts = vec![match acks.advancing {
        0 => "none without data".to_owned(),
        _ => format!("one per {:.1} segments", acks.segments_per_ack),
    }];
    if acks.duplicates > 0 {
        parts.push(count(acks.duplicates, "duplicate"));
    }
    if acks.compressed > 0 {
        parts.push(format!("{} came in clumps", grouped(acks.compressed)));
    }
    parts.join(", ")
}

fn window(window: &Window) -> String {
    let unit = if window.unscaled { " (unscaled, because the scale was not captured)" } else { "" };
    let mut parts = vec![format!("{} to {}{unit}", size(window.min), size(window.max))];
    if window.zero > 0 {
        parts.push(format!("zero {}", times(window.zero)));
    }
    if window.probes > 0 {
        parts.push(count(window.probes, "window probe"));
    }
    parts.join(", ")
}
