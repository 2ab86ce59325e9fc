//! A script from a capture: one connection, seen from one of its ends, so that a bug report becomes
//! a test.
//!
//! What the application did is inferred. Data up to the next PSH is one write, at the time at which
//! its first byte left; what came in order was read at once; a FIN is a `shutdown`, an RST a `close`
//! with a linger time of zero. The other end's packets go in as they came, and the stack's are what
//! the script expects.

use crate::flow::Flow;
use crate::script::{Direction, IpFields, OptionLine, PacketLine, Payload, TcpLine};
use ackline_tcp_core::wire::{RxChecksum, TcpFlags, Transport, parse};
use ackline_tcp_core::{RxPacket, SeqNum};
use std::fmt::Write as _;
use std::net::SocketAddr;
use thiserror::Error;

/// An IP packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When it was captured, in nanoseconds since any moment.
    pub at_ns: u64,
    /// Its bytes, or its first ones.
    pub octets: Vec<u8>,
}

/// Why no script can be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// There is none.
    #[error("there is no connection whose SYN was captured")]
    NoConnection,
    /// There is none of the given end.
    #[error("there is no connection of {0} whose SYN was captured; captured are those of {1}")]
    OtherEnds(SocketAddr, String),
}

/// A segment of the capture.
struct Segment {
    at_ns: u64,
    from: SocketAddr,
    to: SocketAddr,
    seq: u32,
    flags: TcpFlags,
    /// A whole packet again, if the capture has cut it.
    octets: Vec<u8>,
}

/// Writes the script of the first connection of which `stack` is an end; without it, of the first
/// connection, whose passive end is the stack.
///
/// # Errors
/// If there is no such connection.
pub fn record(packets: &[CapturedPacket], stack: Option<SocketAddr>) -> Result<String, RecordError> {
    let segments: Vec<Segment> = packets.iter().filter_map(segment).collect();
    let is_syn =
        |segment: &&Segment| segment.flags.contains(TcpFlags::SYN) && !segment.flags.contains(TcpFlags::ACK);
    let mut opens = segments.iter().filter(is_syn);
    let open = match stack {
        None => opens.next().ok_or(RecordError::NoConnection)?,
        Some(end) => opens.find(|open| open.from == end || open.to == end).ok_or_else(|| {
            let ends: Vec<String> =
                segments.iter().filter(is_syn).map(|open| format!("{} and {}", open.from, open.to)).collect();
            RecordError::OtherEnds(end, ends.join(", "))
        })?,
    };
    let (client, server) = (open.from, open.to);
    let local = stack.unwrap_or(server);
    let remote = if local == client { server } else { client };
    let of_conn = |segment: &&Segment| {
        segment.at_ns >= open.at_ns
            && ((segment.from, segment.to) == (local, remote)
                || (segment.from, segment.to) == (remote, local))
    };
    let segments: Vec<&Segment> = segments.iter().filter(of_conn).collect();
    Ok(Recorder::new(local, remote, &segments).script(&segments, local == client))
}

/// The segment in a packet; what a capture has cut off is zero, as all data in scripts.
fn segment(packet: &CapturedPacket) -> Option<Segment> {
    let mut octets = packet.octets.clone();
    let total = match octets.first()? >> 4 {
        4 => usize::from(u16::from_be_bytes([*octets.get(2)?, *octets.get(3)?])),
        _ => 40 + usize::from(u16::from_be_bytes([*octets.get(4)?, *octets.get(5)?])),
    };
    octets.resize(total.max(octets.len()), 0);
    let parsed = parse(&RxPacket::new(&octets).with_checksum(RxChecksum::Trusted)).ok()?;
    let Transport::Tcp(tcp) = parsed.transport else { return None };
    let from = SocketAddr::new(parsed.ip.src, tcp.src_port);
    let to = SocketAddr::new(parsed.ip.dst, tcp.dst_port);
    let (seq, flags) = (tcp.seq.0, tcp.flags);
    Some(Segment { at_ns: packet.at_ns, from, to, seq, flags, octets })
}

/// Options as a script can have them. One that it cannot name is replaced by as many NOPs: whoever
/// does not know an option skips it (RFC 9293, MUST-6). What follows the end of the list, or an
/// option that has no end, is none: a script has padding there, as the header has.
fn readable(options: Vec<OptionLine>) -> Vec<OptionLine> {
    let replaced = options.into_iter().flat_map(|option| match option {
        OptionLine::Other { .. } => vec![OptionLine::Nop; option.octets()],
        named => vec![named],
    });
    let mut options: Vec<OptionLine> = replaced.collect();
    let octets: usize = options.iter().map(OptionLine::octets).sum();
    options.extend((octets..octets.next_multiple_of(4)).map(|_| OptionLine::Eol));
    options
}

struct Recorder {
    flow: Flow,
    local: SocketAddr,
    text: String,
    /// When the line before was, in nanoseconds.
    last_ns: u64,
    /// The descriptor of the connection, once it has one.
    fd: u8,
    /// One past what was written, and one past what was received in order, in the script's numbers.
    written: u32,
    received: u32,
    /// Received behind a hole.
    ahead: Vec<(u32, u32)>,
    shut: bool,
}

impl Recorder {
    fn new(local: SocketAddr, remote: SocketAddr, segments: &[&Segment]) -> Self {
        let isn = |from: SocketAddr| {
            let syn =
                segments.iter().find(|segment| segment.from == from && segment.flags.contains(TcpFlags::SYN));
            syn.map_or(0, |segment| segment.seq)
        };
        let mut flow = Flow::new(local, remote);
        flow.number_from_zero(isn(local), isn(remote));
        Self {
            flow,
            local,
            text: String::new(),
            last_ns: segments.first().map_or(0, |first| first.at_ns),
            fd: 3,
            written: 1,
            received: 1,
            ahead: vec![],
            shut: false,
        }
    }

    fn script(mut self, segments: &[&Segment], active: bool) -> String {
        let lines: Vec<(u64, bool, TcpLine)> =
            segments.iter().filter_map(|segment| self.line(segment)).collect();
        let version = if self.local.is_ipv4() { "" } else { "--ip_version=ipv6\n" };
        self.text.push_str("// Recorded from a capture; what the application did is inferred.\n");
        self.text.push_str(version);
        self.text.push_str("    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
        if active {
            self.text.push_str("   +0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n");
            self.text.push_str("   +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n");
        } else {
            self.text.push_str("   +0 bind(3, ..., ...) = 0\n   +0 listen(3, 1) = 0\n");
        }
        self.text.push('\n');
        for (number, (at_ns, outbound, line)) in lines.iter().enumerate() {
            if *outbound {
                self.calls_before(*at_ns, line, lines.get(number..).unwrap_or_default());
            }
            let direction = if *outbound { Direction::Out } else { Direction::In };
            let mut shown = line.clone();
            if *outbound {
                shown.window = None;
            }
            let packet =
                PacketLine { direction, ip: IpFields::default(), ports: None, payload: Payload::Tcp(shown) };
            self.push(*at_ns, &packet.to_string());
            if !outbound {
                self.calls_after(*at_ns, line, active);
            }
        }
        self.text
    }

    /// The line of a segment, and whether the stack has sent it.
    fn line(&self, segment: &Segment) -> Option<(u64, bool, TcpLine)> {
        let packet = parse(&RxPacket::new(&segment.octets).with_checksum(RxChecksum::Trusted)).ok()?;
        let Transport::Tcp(tcp) = packet.transport else { return None };
        let outbound = segment.from == self.local;
        let mut line = if outbound { self.flow.outbound_line(&tcp) } else { self.flow.inbound_line(&tcp) };
        line.options = readable(line.options);
        Some((segment.at_ns, outbound, line))
    }

    fn push(&mut self, at_ns: u64, what: &str) {
        let micros = at_ns.saturating_sub(self.last_ns) / 1_000;
        self.last_ns += micros * 1_000;
        let time = match micros {
            0 => "+0".to_owned(),
            _ => {
                format!("+{}.{:06}", micros / 1_000_000, micros % 1_000_000).trim_end_matches('0').to_owned()
            }
        };
        let _ = writeln!(self.text, "{time:>9} {what}");
    }

    /// What the application must have done before the stack could send this. `rest` begins with it.
    fn calls_before(&mut self, at_ns: u64, line: &TcpLine, rest: &[(u64, bool, TcpLine)]) {
        let end = line.seq.wrapping_add(line.len);
        if line.len > 0 && SeqNum(end).gt(SeqNum(self.written)) {
            let mut until = end;
            for (_, _, next) in rest.iter().filter(|(_, outbound, next)| *outbound && next.len > 0) {
                let next_end = next.seq.wrapping_add(next.len);
                if SeqNum(next_end).ge(SeqNum(until)) {
                    until = next_end;
                    if next.flags.contains(TcpFlags::PSH) {
                        break;
                    }
                }
            }
            let bytes = until.wrapping_sub(self.written);
            self.written = until;
            self.push(at_ns, &format!("write({}, ..., {bytes}) = {bytes}", self.fd));
        }
        if line.flags.contains(TcpFlags::FIN) && !self.shut {
            self.shut = true;
            self.push(at_ns, &format!("shutdown({}, SHUT_WR) = 0", self.fd));
        }
        if line.flags.contains(TcpFlags::RST) && !self.shut {
            self.shut = true;
            let linger = "{onoff=1, linger=0}";
            self.push(at_ns, &format!("setsockopt({}, SOL_SOCKET, SO_LINGER, {linger}, 8) = 0", self.fd));
            self.push(at_ns, &format!("close({}) = 0", self.fd));
        }
    }

    /// What the application does when this has come.
    fn calls_after(&mut self, at_ns: u64, line: &TcpLine, active: bool) {
        let completes = line.flags.contains(TcpFlags::ACK) && line.ack == Some(1);
        if !active && self.fd == 3 && completes && !line.flags.contains(TcpFlags::SYN) {
            self.fd = 4;
            self.push(at_ns, "accept(3, ..., ...) = 4");
        }
        if line.len > 0 && !line.flags.contains(TcpFlags::SYN) {
            self.ahead.push((line.seq, line.seq.wrapping_add(line.len)));
        }
        let before = self.received;
        while let Some(at) = self.ahead.iter().position(|(start, _)| SeqNum(*start).le(SeqNum(self.received)))
        {
            let (_, end) = self.ahead.swap_remove(at);
            self.received = SeqNum(self.received).max(SeqNum(end)).0;
        }
        let bytes = self.received.wrapping_sub(before);
        if bytes > 0 {
            self.push(at_ns, &format!("read({}, ..., {bytes}) = {bytes}", self.fd));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CapturedPacket, RecordError, record};
    use crate::{Options, Outcome, Script, run};

    const DIALOGUE: &str = "
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 60000 <mss 1012,sackOK,TS val 1000 ecr 0>
   +0 > S. 0:0(0) ack 1 <mss 1460,sackOK,TS val 100 ecr 1000>
  +.1 < . 1:1(0) ack 1 win 60000 <nop,nop,TS val 1100 ecr 100>
   +0 accept(3, ..., ...) = 4
 +.01 < P. 1:501(500) ack 1 win 60000 <nop,nop,TS val 1110 ecr 100>
   +0 read(4, ..., 1000) = 500
   +0 > . 1:1(0) ack 501 <nop,nop,TS val 210 ecr 1110>
 +.01 write(4, ..., 5000) = 5000
   +0 > P. 1:5001(5000) ack 501 <nop,nop,TS val 220 ecr 1110>
  +.1 < . 501:501(0) ack 5001 win 60000 <nop,nop,TS val 1220 ecr 220>
   +0 close(4) = 0
   +0 > F. 5001:5001(0) ack 501 <nop,nop,TS val 320 ecr 1220>
 +.01 < F. 501:501(0) ack 5002 win 60000 <nop,nop,TS val 1230 ecr 320>
   +0 > . 5002:5002(0) ack 502 <nop,nop,TS val 330 ecr 1230>
";

    #[test]
    fn what_was_recorded_of_a_dialogue_happens_again() {
        let first = run(DIALOGUE, &Options::default());
        assert_eq!(first.outcome, Outcome::Passed);
        // As tcpdump -s 68 would have it.
        let cut = |octets: &[u8]| octets[..octets.len().min(68)].to_vec();
        let packets: Vec<CapturedPacket> = first
            .packets
            .iter()
            .map(|packet| CapturedPacket { at_ns: packet.at_ns, octets: cut(&packet.octets) })
            .collect();
        let script = record(&packets, None).unwrap();
        assert!(script.contains("write(4, ..., 5000) = 5000"), "{script}");
        assert!(script.contains("shutdown(4, SHUT_WR) = 0"), "{script}");
        let again = run(&script, &Options::default());
        assert_eq!(again.outcome, Outcome::Passed, "{script}");
        assert_eq!(again.packets.len(), first.packets.len());
        assert_eq!(record(&[], None), Err(RecordError::NoConnection));
    }

    /// The options of a SYN end early, with one that has no end, or are such that no script names.
    #[test]
    fn any_options_make_a_script() {
        for (options, expected) in [
            ([2, 4, 5, 180, 0, 9, 9, 9], "<mss 1460,eol,eol,eol,eol>"),
            ([1, 1, 1, 0, 0, 0, 0, 0], "<nop,nop,nop,eol>"),
            ([4, 2, 3, 9, 0, 0, 0, 0], "<sackOK,eol,eol>"),
            ([30, 4, 0, 1, 4, 2, 1, 1], "<nop,nop,nop,nop,sackOK,nop,nop>"),
        ] {
            let mut octets = vec![0x45, 0, 0, 48, 0, 0, 0, 0, 64, 6, 0x66, 0xc6, 10, 0, 0, 1, 10, 0, 0, 2];
            octets.extend([0xc0, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x70, 2, 0xff, 0xff, 0, 0, 0, 0]);
            octets.extend(options);
            let script = record(&[CapturedPacket { at_ns: 0, octets }], None).expect("a connection");
            assert!(script.contains(expected), "{script}");
            Script::parse(&script, &[]).expect("a script");
        }
    }
}
