//! Where a connection was captured, how it was opened, and how it ended.

use super::units::{count, size, time, times_again};
use super::{at, recording};
use crate::story::{Anomaly, Connection, Offer, PathPosition, Reset, Source};

pub(super) fn vantage(connection: &Connection) -> String {
    let vantage = connection.vantage;
    let far = |distance: Option<u64>| distance.map_or_else(|| "unknown".to_owned(), time);
    let distances = format!(
        "round trips from there: {} to the client, {} to the server",
        far(vantage.to_client_ns),
        far(vantage.to_server_ns)
    );
    let place = match (vantage.place, vantage.stated) {
        (PathPosition::Client, true) => "at the client, as it says itself".to_owned(),
        (PathPosition::Server, true) => "at the server, as it says itself".to_owned(),
        (PathPosition::Client, false) => format!("near the client ({distances})"),
        (PathPosition::Server, false) => format!("near the server ({distances})"),
        (PathPosition::Middle, _) => format!("in the middle of the path ({distances})"),
        (PathPosition::Both, _) => format!("near both ({distances})"),
        (PathPosition::Unknown, _) => "unknown where, so it is taken to be at the sender".to_owned(),
    };
    let source = if connection.stated {
        "Why packets were sent is stated by the stack where it says so; the rest is inferred."
    } else {
        "All that follows is inferred."
    };
    format!("{place}. {source}")
}

pub(super) fn traced(connection: &Connection) -> &'static str {
    match connection.vantage.place {
        PathPosition::Server => {
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

pub(super) fn handshake(connection: &Connection) -> String {
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
        (syn.ecn, answer.ecn, if syn.accurate_ecn && answer.accurate_ecn { "accurate ECN" } else { "ECN" }),
    ];
    for (asked, agreed, name) in flags {
        parts.push(match (asked, agreed) {
            (true, true) => name.to_owned(),
            (true, false) => format!("{name} refused by the server"),
            (false, _) => format!("no {name}"),
        });
    }
    match answer.syn_arrived_as {
        Some(codepoint) if syn.accurate_ecn => parts.push(format!("the SYN arrived as {codepoint}")),
        _ if syn.accurate_ecn && answer.ecn && !answer.accurate_ecn => {
            parts.push("the client asked for accurate ECN".to_owned());
        }
        _ => {}
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
    for (has, name) in [
        (offer.sack, "SACK"),
        (offer.timestamps, "timestamps"),
        (offer.ecn && !offer.accurate_ecn, "ECN"),
        (offer.accurate_ecn, "accurate ECN"),
    ] {
        if has {
            parts.push(name.to_owned());
        }
    }
    parts.join(", ")
}

pub(super) fn end(connection: &Connection) -> String {
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

pub(super) const fn strange(anomaly: Anomaly) -> &'static str {
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
        Anomaly::EachPacketTwice => {
            "the capture has each packet twice (both sides of a mirrored port, or Linux's any); the copies do not count"
        }
        Anomaly::ClockStepsBack => "the capture's clock steps back: times across that step are wrong",
    }
}
