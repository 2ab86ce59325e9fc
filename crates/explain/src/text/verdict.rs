//! A connection in one line: what held its data up, what was sent again, and the longest stall.

use super::units::{grouped, percent, size, time};
use crate::story::{Anomaly, Cause, Connection, Direction};

/// What there is to know of a connection, in one line.
#[must_use]
pub fn verdict(connection: &Connection) -> String {
    let main = connection.main_direction();
    let direction = &connection.directions[main];
    let name = ["client", "server"][main];
    if direction.bytes == 0 {
        return without_data(connection).to_owned();
    }
    let mut parts = vec![held_up(name, direction), again(direction)];
    if let Some(stall) = direction.stalls.iter().max_by_key(|stall| stall.time_ns) {
        parts.push(format!("longest stall {}", time(stall.time_ns)));
    }
    if let Some(reset) = connection.end.reset {
        parts.push(format!("reset by the {}", if reset.by_client { "client" } else { "server" }));
    }
    parts.join("; ")
}

fn without_data(connection: &Connection) -> &'static str {
    let has = |anomaly| connection.anomalies.contains(&anomaly);
    match () {
        () if has(Anomaly::Refused) => "The server refused the connection",
        () if has(Anomaly::NoAnswer) => "Nobody answered the SYN",
        () if has(Anomaly::HalfOpen) => "The handshake was not completed",
        () => "No data was sent",
    }
}

fn held_up(name: &str, direction: &Direction) -> String {
    match direction.time.first() {
        Some(most) => {
            format!("The {name} waited most for {} ({})", what_for(most.cause), percent(most.share))
        }
        None if direction.received.is_some() => {
            format!("The {name} sent most; what limited it is not in a trace of the other side")
        }
        None => format!("The {name} sent {} at once", size(direction.bytes)),
    }
}

const fn what_for(cause: Cause) -> &'static str {
    match cause {
        Cause::Application => "its application",
        Cause::ReceiverWindow => "the receiver's window",
        Cause::ZeroWindow => "a zero window to open",
        Cause::CongestionWindow => "the congestion window",
        Cause::Silence => "ACKs",
        Cause::Pacing => "its pacing",
        Cause::Path => "the path or its pacing",
        Cause::Recovery => "losses to be repaired",
        Cause::Timer => "a timer",
    }
}

fn again(direction: &Direction) -> String {
    let losses = &direction.losses;
    if let Some(received) = &direction.received {
        return format!("{} came again", grouped(received.again));
    }
    if losses.retransmissions == 0 {
        return "nothing sent again".to_owned();
    }
    let share = losses.bytes as f64 / (direction.bytes + losses.bytes) as f64;
    let needless = match losses.spurious {
        0 => String::new(),
        spurious => format!(", {} needless", grouped(spurious)),
    };
    format!("{} sent again ({}){needless}", grouped(losses.retransmissions), percent(share))
}
