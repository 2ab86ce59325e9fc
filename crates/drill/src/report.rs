//! What is shown of a failure: the script's lines, the packets, and what the stack concluded.

use crate::expect;
use crate::flow::Flow;
use crate::outcome::DialoguePacket;
use crate::python::Block;
use crate::world::World;
use ackline_observe::labels;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::wire::{Transport, parse};
use ackline_tcp_core::{ConnId, Ingested, RxPacket};

/// Lines of the script before the one that failed.
const BEFORE: u32 = 3;
/// Packets that are shown.
const PACKETS: usize = 6;
/// Conclusions that are shown.
const CONCLUSIONS: usize = 6;

/// A time of the script in seconds.
pub(crate) fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A line with those before it.
pub(crate) fn context(text: &str, line: u32) -> Vec<(u32, String)> {
    let first = line.saturating_sub(BEFORE).max(1);
    (first..=line)
        .zip(text.lines().skip(first as usize - 1))
        .map(|(number, text)| (number, text.trim_end().to_owned()))
        .collect()
}

/// The last packets in the notation of scripts.
pub(crate) fn around(passed: &[DialoguePacket], flow: Option<&Flow>) -> Vec<String> {
    let Some(flow) = flow else { return vec![] };
    let shown = passed.iter().rev().filter_map(|passed| {
        let micros = passed.at_ns / 1_000;
        let at = seconds(micros);
        if passed.outbound {
            let segment = expect::segment(flow, micros, &passed.octets).ok()?;
            let reason =
                if passed.comment.is_empty() { String::new() } else { format!("  [{}]", passed.comment) };
            return Some(format!("{at} > {}{reason}", segment.line));
        }
        let packet = parse(&RxPacket::new(&passed.octets)).ok()?;
        let Transport::Tcp(tcp) = packet.transport else { return Some(format!("{at} < icmp")) };
        Some(format!("{at} < {}", flow.inbound_line(&tcp)))
    });
    let mut shown: Vec<String> = shown.take(PACKETS).collect();
    shown.reverse();
    shown
}

/// What the stack concluded, the latest last, and how its connection stands.
pub(crate) fn concluded(world: &mut World, conn: Option<ConnId>) -> Vec<String> {
    let mut lines: Vec<String> = world
        .conclusions()
        .iter()
        .rev()
        .filter_map(|(at, event)| {
            let text = match event {
                TraceEvent::State { from, to } => Some(format!("{from} to {to}")),
                other => labels::trace_event(other),
            };
            text.map(|text| format!("{} {text}", seconds(world.micros(*at))))
        })
        .take(CONCLUSIONS)
        .collect();
    lines.reverse();
    if let Some(Ingested::Dropped(reason)) = world.last_ingested {
        lines.push(format!("the last packet was dropped: {}", reason.as_str()));
    }
    if let Some(info) = conn.and_then(|id| Some(world.endpoint.inspect(id)?.info())) {
        let ssthresh = info.snd_ssthresh.map_or("none".to_owned(), |bytes| bytes.to_string());
        lines.push(format!(
            "{}, {:?}: cwnd {}, ssthresh {ssthresh}, pipe {}, unacked {}, sacked {}, lost {}, unsent {}, snd_wnd {}, rto {} ms; blocked: {:?}",
            info.state,
            info.ca_state,
            info.snd_cwnd,
            info.pipe,
            info.unacked,
            info.sacked,
            info.lost,
            info.notsent_bytes,
            info.snd_wnd,
            info.rto.as_millis(),
            info.blocked,
        ));
    }
    match world.endpoint.poll_timeout() {
        Some(wakeup) => lines.push(format!(
            "the next timer: {:?} at {}",
            wakeup.reason,
            seconds(world.micros(wakeup.at.max(world.now)))
        )),
        None => lines.push("no timer runs".to_owned()),
    }
    lines
}

/// The fields of `tcp_info` that a block's lines name, with their values.
pub(crate) fn known(block: &Block) -> Vec<String> {
    let named = |line: &&str| line.split_once(" = ").is_some_and(|(name, _)| block.code.contains(name));
    block.known.lines().filter(named).map(str::to_owned).collect()
}
