//! Stories as text.

mod units;

use crate::story::{
    Anomaly, Cause, Congestion, Connection, Direction, Episode, Found, Interval, Offer, Place, Received,
    Reset, Rtt, SlowStartEnd, Source, Story, Window,
};
use std::fmt::Write as _;
use units::{count, grouped, percent, times, times_again};

pub use units::{rate, size, time};

/// Episodes and stalls of a direction that a page lists.
const LISTED: usize = 8;
/// Columns of a line.
const WIDTH: usize = 110;
/// Columns before the text of an entry.
const LABEL: usize = 17;

/// A connection on a page.
#[must_use]
pub fn page(connection: &Connection) -> String {
    let mut page = Page::default();
    let all: u64 = connection.directions.iter().map(|direction| direction.bytes).sum();
    page.line(&format!(
        "Connection {}: {} > {}, {} in {}",
        connection.number,
        connection.client,
        connection.server,
        size(all),
        time(connection.duration_ns)
    ));
    page.text += "\n";
    match connection.source {
        Source::Capture => page.entry("Capture", &vantage(connection)),
        Source::Trace => page.entry("Trace", traced(connection)),
    }
    page.entry("Handshake", &handshake(connection));
    for (side, direction) in connection.directions.iter().enumerate() {
        page.text += "\n";
        let names = ["client", "server"];
        if direction.packets == 0 {
            page.line(&format!("The {} sent no data", names[side]));
            continue;
        }
        self::direction(&mut page, names[side], direction, connection);
    }
    page.text += "\n";
    page.entry("End", &end(connection));
    for anomaly in &connection.anomalies {
        page.entry("Note", strange(*anomaly));
    }
    for direction in &connection.directions {
        if direction.uncaptured > 0 {
            let missing = size(direction.uncaptured);
            page.entry(
                "Note",
                &format!(
                    "{missing} from {} were acknowledged, but are not in the {}",
                    direction.from,
                    recording(connection)
                ),
            );
        }
        if direction.merged {
            page.entry(
                "Note",
                "so many packets were in flight that some count as one: numbers of packets are too small",
            );
        }
    }
    if connection.evicted {
        page.entry("Note", "the story ends early: too many connections were open at once");
    }
    page.text
}

/// All connections in a table, the worst first; and what was left out.
#[must_use]
pub fn summary(story: &Story) -> String {
    let mut connections: Vec<&Connection> = story.connections.iter().collect();
    connections.sort_by_key(|connection| std::cmp::Reverse(connection.badness()));
    let head = ["", "client", "server", "data", "time", "sent again", "most time for"].map(str::to_owned);
    let mut rows = vec![head];
    for connection in connections {
        let main = main_direction(connection);
        let again: u64 = connection.directions.iter().map(|direction| direction.losses.retransmissions).sum();
        let most = main
            .time
            .first()
            .map_or_else(String::new, |share| format!("{} {}", percent(share.share), share.cause.words()));
        rows.push([
            connection.number.to_string(),
            connection.client.to_string(),
            connection.server.to_string(),
            size(connection.directions.iter().map(|direction| direction.bytes).sum()),
            time(connection.duration_ns),
            if again > 0 { again.to_string() } else { "-".to_owned() },
            most,
        ]);
    }
    let mut text = String::new();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            1 | 2 | 6 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// What of a capture no story tells; empty if nothing.
#[must_use]
pub fn left_out(story: &Story) -> String {
    let mut text = String::new();
    let skipped = &story.skipped;
    let parts = [
        (skipped.not_ip, "packets are not IP"),
        (skipped.not_tcp, "packets are not TCP"),
        (skipped.fragments, "IP fragments have no TCP header"),
        (skipped.cut, "packets are cut within the TCP header; capture 128 bytes at least"),
        (skipped.link_type, "packets have a link type that is not known"),
        (story.missed, "packets are missing, says the capture"),
        (story.traces.missed, "events are missing, says the trace"),
        (story.traces.unopened, "events are of connections whose begin is not in the trace"),
        (story.traces.unknown, "events of the trace are not known"),
        (story.traces.damaged, "records of the trace cannot be read"),
        (story.evicted, "stories end early: too many connections were open at once"),
        (story.left_out, "stories are left out, of connections that waited and lost least"),
    ];
    for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(text, "{} {what}", grouped(count));
    }
    if let Some(why) = &story.traces.cut_short {
        let _ = writeln!(text, "The trace ends early: {why}.");
    }
    if story.cut_short {
        text += "The file ends within a packet or an event: it is told up to there.\n";
    }
    text
}

/// The direction with more data.
fn main_direction(connection: &Connection) -> &Direction {
    let [client, server] = &connection.directions;
    if server.bytes > client.bytes { server } else { client }
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// A label and its text, in lines of the page's width.
    fn entry(&mut self, label: &str, text: &str) {
        let mut line = format!("  {label:<width$}", width = LABEL - 2);
        let mut empty = true;
        for word in text.split(' ') {
            if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line = " ".repeat(LABEL);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line += word;
            empty = false;
        }
        self.line(&line);
    }
}

/// What a story was read from.
const fn recording(connection: &Connection) -> &'static str {
    match connection.source {
        Source::Capture => "capture",
        Source::Trace => "trace",
    }
}

fn vantage(connection: &Connection) -> String {
    let vantage = connection.vantage;
    let far = |distance: Option<u64>| distance.map_or_else(|| "unknown".to_owned(), time);
    let distances = format!(
        "round trips from there: {} to the client, {} to the server",
        far(vantage.to_client_ns),
        far(vantage.to_server_ns)
    );
    let place = match (vantage.place, vantage.stated) {
        (Place::Client, true) => "at the client, as it says itself".to_owned(),
        (Place::Server, true) => "at the server, as it says itself".to_owned(),
        (Place::Client, false) => format!("near the client ({distances})"),
        (Place::Server, false) => format!("near the server ({distances})"),
        (Place::Middle, _) => format!("in the middle of the path ({distances})"),
        (Place::Both, _) => format!("near both ({distances})"),
        (Place::Unknown, _) => "unknown where, so it is taken to be at the sender".to_owned(),
    };
    let source = if connection.stated {
        "Why packets were sent is stated by the stack where it says so; the rest is inferred."
    } else {
        "All that follows is inferred."
    };
    format!("{place}. {source}")
}

fn traced(connection: &Connection) -> &'static str {
    match connection.vantage.place {
        Place::Server => {
            "of the server's stack, which states losses, timeouts, phases and windows; what limited it follows from them"
        }
        _ => {
            "of the client's stack, which states losses, timeouts, phases and windows; what limited it follows from them"
        }
    }
}

fn traced_handshake(connection: &Connection) -> String {
    let mut parts = vec![match connection.handshake.took_ns {
        Some(took) => format!("{}; options are not in a trace", time(took)),
        None => "not in the trace".to_owned(),
    }];
    let again = connection.handshake.syn_retransmissions;
    if again > 0 {
        parts.push(format!("the SYN {}", times_again(again.into())));
    }
    parts.join(", ")
}

fn handshake(connection: &Connection) -> String {
    if connection.source == Source::Trace {
        return traced_handshake(connection);
    }
    let handshake = &connection.handshake;
    let (Some(syn), Some(answer)) = (handshake.syn, handshake.syn_ack) else {
        return match (handshake.syn, handshake.syn_ack) {
            (Some(syn), None) => format!("only the SYN was captured ({})", offered(syn)),
            (None, Some(answer)) => format!("only the SYN-ACK was captured ({})", offered(answer)),
            _ => "not captured: windows cannot be judged".to_owned(),
        };
    };
    let mut parts = vec![];
    if let Some(took) = handshake.took_ns {
        parts.push(time(took));
    }
    let pair = |name: &str, of: fn(Offer) -> Option<u64>| {
        let shown = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let (one, other) = (of(syn), of(answer));
        if one == other {
            format!("{name} {}", shown(one))
        } else {
            format!("{name} {}/{}", shown(one), shown(other))
        }
    };
    parts.push(pair("MSS", |offer| offer.mss.map(u64::from)));
    parts.push(pair("window scale", |offer| offer.window_scale.map(u64::from)));
    let flags = [
        (syn.sack, answer.sack, "SACK"),
        (syn.timestamps, answer.timestamps, "timestamps"),
        (syn.ecn, answer.ecn, "ECN"),
    ];
    for (asked, agreed, name) in flags {
        parts.push(match (asked, agreed) {
            (true, true) => name.to_owned(),
            (true, false) => format!("{name} refused by the server"),
            (false, _) => format!("no {name}"),
        });
    }
    match syn.fast_open {
        Some(0) => parts.push("asks for a fast-open cookie".to_owned()),
        Some(_) => parts.push(format!(
            "fast open with {} on the SYN, {} accepted",
            size(handshake.data_on_syn.into()),
            size(handshake.data_on_syn_accepted.into())
        )),
        None => {}
    }
    for (count, name) in
        [(handshake.syn_retransmissions, "SYN"), (handshake.syn_ack_retransmissions, "SYN-ACK")]
    {
        if count > 0 {
            parts.push(format!("the {name} {}", times_again(count.into())));
        }
    }
    parts.join(", ")
}

fn offered(offer: Offer) -> String {
    let mut parts = vec![offer.mss.map_or_else(|| "no MSS".to_owned(), |mss| format!("MSS {mss}"))];
    parts.extend(offer.window_scale.map(|scale| format!("window scale {scale}")));
    for (has, name) in [(offer.sack, "SACK"), (offer.timestamps, "timestamps"), (offer.ecn, "ECN")] {
        if has {
            parts.push(name.to_owned());
        }
    }
    parts.join(", ")
}

fn direction(page: &mut Page, name: &str, direction: &Direction, connection: &Connection) {
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
    page.entry("ACKs", &acks(direction));
    if let Some(window) = &direction.window {
        page.entry("Window", &self::window(window));
    }
    let marks = direction.marks;
    if marks.capable + marks.echoes > 0 {
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

fn losses(page: &mut Page, direction: &Direction) {
    let losses = &direction.losses;
    let mut parts = vec![];
    if losses.retransmissions > 0 {
        let share = losses.bytes as f64 / (direction.bytes + losses.bytes).max(1) as f64;
        let kinds = [
            (losses.fast, "by SACK or duplicate ACKs"),
            (losses.timeout, "after a timeout"),
            (losses.probes, "as tail loss probe"),
            (losses.unclear, "for no visible reason"),
        ];
        let kinds: Vec<String> = kinds
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", grouped(*count)))
            .collect();
        let joined = if losses.segments > losses.retransmissions {
            format!("{}, ", count(losses.segments, "segment"))
        } else {
            String::new()
        };
        parts.push(format!(
            "{} sent again ({joined}{}, {}): {}",
            count(losses.retransmissions, "packet"),
            size(losses.bytes),
            percent(share),
            kinds.join(", ")
        ));
        if losses.timeouts > 0 {
            parts.push(count(losses.timeouts, "timeout"));
        }
        parts.push(needless(direction));
        if losses.before > 0 {
            let (before, behind) = (losses.before, losses.retransmissions - losses.before);
            parts.push(format!(
                "{} originals were lost before the capture, {} passed it",
                grouped(before),
                grouped(behind)
            ));
        }
    }
    if losses.dropped > 0 {
        parts.push(format!("the capture shows {} dropped", count(losses.dropped, "packet")));
    }
    let late = losses.reordered_before + losses.reordered_after;
    if late > 0 {
        parts.push(format!("{} arrived out of order and not sent again", count(late, "packet")));
    }
    if losses.duplicated > 0 {
        parts.push(format!(
            "{} reported twice by DSACK that passed once: doubled by the network",
            count(losses.duplicated, "packet")
        ));
    }
    page.entry("Losses", &if parts.is_empty() { "none".to_owned() } else { parts.join("; ") });
    let mut listed: Vec<&Episode> = direction.episodes.iter().collect();
    listed.sort_by_key(|episode| std::cmp::Reverse((episode.without_progress_ns, episode.bytes)));
    listed.truncate(LISTED);
    listed.sort_by_key(|episode| episode.at_ns);
    for episode in &listed {
        page.entry(&format!("  {}", at(episode.at_ns)), &self::episode(episode));
    }
    let rest = direction.episodes.len() - listed.len() + direction.episodes_left_out as usize;
    if rest > 0 {
        page.entry("", &format!("and {} that cost less", count(rest as u64, "episode")));
    }
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
fn received(received: &Received) -> String {
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

fn needless(direction: &Direction) -> String {
    let losses = &direction.losses;
    if losses.spurious == 0 {
        return "none known to be needless".to_owned();
    }
    let by = [
        (losses.spurious_by_dsack, "by DSACK"),
        (losses.spurious_by_timestamp, "by timestamp"),
        (losses.spurious_by_time, "by the time of the ACK"),
        (losses.spurious_by_stack, "as the stack states"),
    ];
    let by: Vec<String> = by
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| format!("{} {how}", grouped(*count)))
        .collect();
    format!("{} needless ({})", grouped(losses.spurious), by.join(", "))
}

fn episode(episode: &Episode) -> String {
    let found = match episode.found {
        Found::Fast => "found by SACK or duplicate ACKs",
        Found::Probe => "probe of the tail",
        Found::Timeout => "found by timeout",
        Found::Unclear => "sent again for no visible reason",
    };
    let mut parts = vec![format!(
        "{found}{}: {} ({}) again",
        if episode.stated { " (stated)" } else { "" },
        count(episode.retransmissions, "packet"),
        size(episode.bytes)
    )];
    if episode.spurious > 0 {
        let all = episode.spurious >= episode.retransmissions;
        parts.push(if all {
            "all needless (spurious)".to_owned()
        } else {
            format!("{} needless", grouped(episode.spurious))
        });
    }
    if episode.timeouts > u64::from(episode.found == Found::Timeout) {
        parts.push(count(episode.timeouts, "timeout"));
    }
    parts.push(format!("repaired after {}", time(episode.time_ns)));
    parts.push(format!("{} without progress", time(episode.without_progress_ns)));
    if episode.flight_after > 0 {
        parts.push(format!("flight {} > {}", size(episode.flight_before), size(episode.flight_after)));
    }
    parts.join(", ")
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
        Place::Client => direction.from != connection.client,
        Place::Server => direction.from == connection.client,
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

fn end(connection: &Connection) -> String {
    let end = &connection.end;
    let mut parts = vec![];
    let who = ["the client", "the server"];
    let mut fins: Vec<(u64, usize)> =
        end.fin_at_ns.iter().enumerate().filter_map(|(side, at)| at.map(|at| (at, side))).collect();
    fins.sort_unstable();
    for (place, (when, side)) in fins.iter().enumerate() {
        let closed = if place == 0 {
            format!("{} closed first,", who[*side])
        } else {
            format!("{} closed", who[*side])
        };
        let unheard = if end.fin_acked[*side] { "" } else { " (not acknowledged)" };
        parts.push(format!("{closed} {}{unheard}", at(*when)));
    }
    if let Some(Reset { by_client, at_ns }) = end.reset {
        let lost: u64 = connection.directions.iter().map(|direction| direction.unacknowledged).sum();
        let lost = if lost > 0 { format!(", with {} not acknowledged", size(lost)) } else { String::new() };
        parts.push(format!("{} reset the connection, {}{lost}", who[usize::from(!by_client)], at(at_ns)));
    }
    if parts.is_empty() {
        parts.push(format!("open at the end of the {}", recording(connection)));
    }
    if let Some(error) = &connection.error {
        parts.push(format!("the application was told: {error}"));
    }
    if end.keep_alives > 0 {
        parts.push(count(end.keep_alives, "keep-alive"));
    }
    parts.join("; ")
}

const fn strange(anomaly: Anomaly) -> &'static str {
    match anomaly {
        Anomaly::NoWindowScale => {
            "the server takes no window scale, so no window is larger than 64 KiB; or a device on the path removed the option"
        }
        Anomaly::NoSack => {
            "the server takes no SACK, so several losses in a window are found one per round trip"
        }
        Anomaly::NoTimestamps => "the server takes no timestamps",
        Anomaly::NoEcn => "the server refuses ECN",
        Anomaly::TimestampsStripped => {
            "timestamps were agreed on, and segments came without (RFC 7323, section 3.2)"
        }
        Anomaly::NoAnswer => "nobody answered the SYN",
        Anomaly::Refused => "the server refused the connection",
        Anomaly::HalfOpen => "the handshake was not completed",
        Anomaly::NoEnd => "neither FIN nor RST was seen",
        Anomaly::SeveralInterfaces => "packets passed several interfaces; those of the first one count",
    }
}

/// `at 1.234 s`.
fn at(ns: u64) -> String {
    format!("at {:.3} s", ns as f64 / 1e9)
}
