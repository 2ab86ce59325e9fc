//! Prints what happens to a scenario's packets and connections, one line each: what leaves and
//! arrives at each host, what a link drops, states, and the congestion window.
//! `docs/one-transfer.md` explains its output.
//!
//! ```text
//! cargo run -p ackline-lab --example steps -- docs/one-transfer.toml [key=value]...
//! ```

use ackline_lab::{Scenario, simulation};

use ackline_netsim::{LinkId, NodeId, Observer, Packet, PacketEvent};
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::wire::TcpFlags;
use ackline_tcp_core::{ConnId, Instant};
use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: steps FILE [key=value]...")?;
    let scenario = Scenario::parse(&std::fs::read_to_string(&file)?, &file)?.with_set(args)?;
    print!("{}", steps(&scenario)?);
    Ok(())
}

/// Everything that happens in the first run of `scenario`'s first point.
pub(crate) fn steps(scenario: &Scenario) -> Result<String, Box<dyn Error>> {
    let mut sim = simulation(scenario, 0, 0)?;
    let observer = sim.add_observer(Steps::default());
    sim.run_until(Instant::from_secs(60));
    Ok(sim.take_observer::<Steps>(observer).map(|steps| steps.text).unwrap_or_default())
}

/// The lines so far.
#[derive(Debug, Default)]
struct Steps {
    text: String,
    /// Sequence number of the SYN of each direction, by source and destination port.
    first: HashMap<(u16, u16), u32>,
    /// What connections said since the last packet: when, on which host, and what. A packet that is
    /// taken in is reported after what it caused.
    said: Vec<(Instant, &'static str, String)>,
}

impl Observer for Steps {
    fn needs_traces(&self) -> bool {
        true
    }

    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        // Link 0 leads from the opener to the acceptor, link 1 back.
        let (from, to) = if link.index() == 0 { ("client", "server") } else { ("server", "client") };
        let Some(segment) = self.segment(packet) else { return };
        let is_arrival = event == PacketEvent::Delivered;
        let (caused, earlier): (Vec<_>, Vec<_>) = std::mem::take(&mut self.said)
            .into_iter()
            .partition(|said| is_arrival && (said.0, said.1) == (now, to));
        for (at, who, text) in earlier {
            self.line(at, who, &format!("   {text}"));
        }
        match event {
            PacketEvent::Offered => self.line(now, from, &format!("-> {segment}{}", reason(packet))),
            PacketEvent::Delivered => self.line(now, to, &format!("<- {segment}")),
            PacketEvent::Dropped(_) => self.line(now, "line", &format!("drops {segment}")),
            PacketEvent::Started | PacketEvent::Left => {}
        }
        for (at, who, text) in caused {
            self.line(at, who, &format!("   {text}"));
        }
    }

    fn trace(&mut self, now: Instant, node: NodeId, _conn: ConnId, event: &TraceEvent) {
        let said = match *event {
            TraceEvent::State { from, to } => format!("{from} to {to}"),
            TraceEvent::Phase { from, to } => format!("{from:?} to {to:?}").to_lowercase(),
            TraceEvent::Lost { bytes, by_timer, .. } => {
                format!(
                    "{bytes} bytes lost, {}",
                    if by_timer { "says RACK's timer" } else { "says this ACK" }
                )
            }
            TraceEvent::Congestion { cwnd, ssthresh, pipe, .. } => {
                let threshold = match ssthresh {
                    // Not yet set.
                    1_000_000_000_000.. => String::new(),
                    bytes => format!(", ssthresh {bytes}"),
                };
                format!("cwnd {cwnd}{threshold}, pipe {pipe}")
            }
            _ => return,
        };
        self.said.push((now, if node.index() == 0 { "client" } else { "server" }, said));
    }
}

impl Steps {
    fn line(&mut self, now: Instant, who: &str, what: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:9.3}  {who}  {what}", now.as_nanos() as f64 / 1e6);
    }

    /// A segment as tcpdump would show it: flags, relative sequence numbers, options of SYNs, SACK
    /// blocks.
    fn segment(&mut self, packet: &Packet) -> Option<String> {
        let tcp = packet.segment()?;
        let ports = (tcp.src_port, tcp.dst_port);
        if tcp.flags.contains(TcpFlags::SYN) {
            self.first.insert(ports, tcp.seq.0);
        }
        let ours = *self.first.get(&ports)?;
        let theirs = self.first.get(&(ports.1, ports.0)).copied().unwrap_or(0);
        let mut text = String::new();
        for (flag, name) in [(TcpFlags::SYN, "SYN "), (TcpFlags::FIN, "FIN "), (TcpFlags::RST, "RST ")] {
            if tcp.flags.contains(flag) {
                text += name;
            }
        }
        let payload = tcp.payload.len() as u32;
        if payload > 0 {
            let begin = tcp.seq.0.wrapping_sub(ours);
            text += &format!("{begin}:{} ", begin + payload);
        }
        if tcp.flags.contains(TcpFlags::ACK) {
            text += &format!("ack {} ", tcp.ack.0.wrapping_sub(theirs));
        }
        for block in tcp.options.sack.iter() {
            let [begin, end] = [block.0, block.1].map(|edge| edge.0.wrapping_sub(theirs));
            text += &format!("sack {begin}:{end} ");
        }
        if tcp.flags.contains(TcpFlags::SYN) {
            let mut options = vec![];
            options.extend(tcp.options.mss.map(|mss| format!("mss {mss}")));
            options.extend(tcp.options.window_scale.map(|shift| format!("window scale {shift}")));
            options.extend(tcp.options.sack_permitted.then(|| "SACK".to_owned()));
            options.extend(tcp.options.timestamps.map(|_| "timestamps".to_owned()));
            text += &format!("({})", options.join(", "));
        }
        Some(text.trim_end().to_owned())
    }
}

/// Why a segment was sent, if its flags and numbers do not say it.
fn reason(packet: &Packet) -> &'static str {
    match packet.origin.reason {
        Some(SendReason::FastRetransmit) => "  (fast retransmit)",
        Some(SendReason::RtoRetransmit) => "  (retransmission timeout)",
        Some(SendReason::TailLossProbe) => "  (tail loss probe)",
        Some(SendReason::AckByTimer) => "  (delayed ACK)",
        _ => "",
    }
}
