//! A packet of the stack beside the line that expects it.

use crate::flow::Flow;
use crate::script::{IpFields, OptionLine, TcpLine};
use crate::settings::Relaxations;
use ackline_tcp_core::RxPacket;
use ackline_tcp_core::wire::{Ecn, IpInfo, TcpFlags, TcpSegment, Transport, WireError, parse};

/// A segment that the stack has sent, checked and in the script's numbers.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// When it left, in microseconds.
    pub(crate) at: u64,
    pub(crate) ip: IpInfo,
    pub(crate) line: TcpLine,
    /// Its first sequence number in the packet.
    pub(crate) live_seq: ackline_tcp_core::SeqNum,
    /// TSval and TSecr in the packet.
    pub(crate) live_stamps: Option<(u32, u32)>,
    /// What is wrong with it, whatever the script says.
    pub(crate) fault: Option<String>,
}

/// Why octets are no segment of a flow.
pub(crate) enum NoSegment {
    /// They are one of another connection, or of another protocol.
    Other,
    /// They are malformed.
    Malformed(WireError),
}

/// The segment of `flow` in `octets`.
pub(crate) fn segment(flow: &Flow, at: u64, octets: &[u8]) -> Result<Segment, NoSegment> {
    let packet = parse(&RxPacket::new(octets)).map_err(NoSegment::Malformed)?;
    let Transport::Tcp(tcp) = packet.transport else { return Err(NoSegment::Other) };
    let ends = (packet.ip.src, tcp.src_port, packet.ip.dst, tcp.dst_port);
    if ends != (flow.local.ip(), flow.local.port(), flow.remote.ip(), flow.remote.port()) {
        return Err(NoSegment::Other);
    }
    Ok(Segment {
        at,
        ip: packet.ip,
        line: flow.outbound_line(&tcp),
        live_seq: tcp.seq,
        live_stamps: tcp.options.timestamps.map(|stamps| (stamps.val, stamps.ecr)),
        fault: fault(flow, &packet.ip, &tcp, octets),
    })
}

/// What no script has to ask for.
fn fault(flow: &Flow, ip: &IpInfo, tcp: &TcpSegment<'_>, octets: &[u8]) -> Option<String> {
    let bits = octets.get(usize::from(ip.header_len) + 12).copied().unwrap_or(0);
    if bits & 0x0e != 0 {
        return Some("reserved bits of the header are set".to_owned());
    }
    if tcp.payload.iter().any(|octet| octet != 0) {
        return Some("the payload is not what was written".to_owned());
    }
    if tcp.options_malformed {
        return Some("the options are malformed".to_owned());
    }
    // RFC 7323, section 3.2: TSecr is a timestamp of the peer, and zero without ACK.
    let echo = tcp.options.timestamps.map_or(0, |stamps| stamps.ecr);
    if echo != 0 && !flow.given.contains(&echo) {
        return Some(format!("TSecr {echo} echoes a timestamp that was never received"));
    }
    None
}

/// What the script expects, as far as it says.
pub(crate) struct Expectation<'a> {
    pub(crate) ip: &'a IpFields,
    pub(crate) line: &'a TcpLine,
    pub(crate) relax: Relaxations,
    /// Echoed timestamps are compared with the line's; packetdrill does not.
    pub(crate) exact_echoes: bool,
}

impl Expectation<'_> {
    /// What differs; `None` if nothing does. `merged`: the segment stands for several.
    pub(crate) fn difference(&self, segment: &Segment, merged: bool) -> Option<String> {
        let Self { ip, line, relax, .. } = self;
        let actual = &segment.line;
        if let Some(fault) = &segment.fault {
            return Some(fault.clone());
        }
        if let Some(wrong) = ip_difference(ip, &segment.ip) {
            return Some(wrong);
        }
        let mut flags = (line.flags, actual.flags);
        if relax.psh || merged {
            flags = (flags.0.difference(TcpFlags::PSH), flags.1.difference(TcpFlags::PSH));
        }
        if flags.0 != flags.1 {
            return Some("the flags differ".to_owned());
        }
        if line.seq != actual.seq || line.len != actual.len {
            return Some("the sequence numbers differ".to_owned());
        }
        if line.flags.contains(TcpFlags::ACK) && line.ack.unwrap_or(0) != actual.ack.unwrap_or(0) {
            return Some("the acknowledgment numbers differ".to_owned());
        }
        if !relax.window && line.window.is_some() && line.window != actual.window {
            return Some("the windows differ".to_owned());
        }
        if line.urgent.unwrap_or(0) != actual.urgent.unwrap_or(0) {
            return Some("the urgent pointers differ".to_owned());
        }
        if line.any_options || self.options_agree(&line.options, &actual.options) {
            return None;
        }
        Some("the options differ".to_owned())
    }

    fn options_agree(&self, expected: &[OptionLine], actual: &[OptionLine]) -> bool {
        if !self.relax.options {
            return expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| self.agrees(expected, actual));
        }
        let meant = |options: &[OptionLine]| -> Vec<OptionLine> {
            let padding = |option: &&OptionLine| !matches!(option, OptionLine::Nop | OptionLine::Eol);
            options.iter().filter(padding).cloned().collect()
        };
        let (expected, mut actual) = (meant(expected), meant(actual));
        let found = expected.iter().all(|option| {
            let at = actual.iter().position(|candidate| {
                matches!((option, candidate), (OptionLine::WindowScale(_), OptionLine::WindowScale(_)))
                    || self.agrees(option, candidate)
            });
            at.map(|at| actual.remove(at)).is_some()
        });
        found && actual.is_empty()
    }

    fn agrees(&self, expected: &OptionLine, actual: &OptionLine) -> bool {
        match (expected, actual) {
            (
                OptionLine::Timestamps { val, ecr },
                OptionLine::Timestamps { val: actual_val, ecr: actual_ecr },
            ) => val == actual_val && (ecr == actual_ecr || !self.exact_echoes),
            (
                OptionLine::FastOpen { cookie: None, experimental },
                OptionLine::FastOpen { cookie: Some(cookie), experimental: actual },
            ) => experimental == actual && !cookie.is_empty(),
            _ => expected == actual,
        }
    }
}

fn ip_difference(expected: &IpFields, actual: &IpInfo) -> Option<String> {
    let IpFields { ecn, any_ect, tos, ttl, flow_label } = *expected;
    if ecn.is_some_and(|ecn| ecn != actual.ecn) || any_ect && !matches!(actual.ecn, Ecn::Ect0 | Ecn::Ect1) {
        return Some(format!("the ECN field is {:?}", actual.ecn));
    }
    let actual_tos = actual.dscp << 2 | actual.ecn.bits();
    if tos.is_some_and(|tos| tos != actual_tos) {
        return Some(format!("TOS is {actual_tos:#04x}"));
    }
    if ttl.is_some_and(|ttl| ttl != actual.ttl) {
        return Some(format!("TTL is {}", actual.ttl));
    }
    if flow_label.is_some_and(|label| label != actual.flow_label) {
        return Some(format!("the flow label is {:#x}", actual.flow_label));
    }
    None
}

/// True if `next` can be a further piece of what `first` begins: the same header, and the data that
/// follows `len` bytes.
pub(crate) fn continues(first: &TcpLine, len: u32, next: &TcpLine) -> bool {
    let ignored = TcpFlags::PSH.union(TcpFlags::FIN);
    let same_options = |options: &[OptionLine]| -> Vec<OptionLine> {
        let plain = |option: &&OptionLine| !matches!(option, OptionLine::Timestamps { .. });
        options.iter().filter(plain).cloned().collect()
    };
    next.seq == first.seq.wrapping_add(len)
        && next.len > 0
        && next.flags.difference(ignored) == first.flags.difference(ignored)
        && next.ack == first.ack
        && same_options(&next.options) == same_options(&first.options)
}
