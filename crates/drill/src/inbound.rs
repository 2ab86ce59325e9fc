//! Packets of the script as octets that go into the stack.

use crate::flow::Flow;
use crate::script::{IcmpLine, IpFields, OptionLine, TcpLine};
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::TcpFlags;
use ackline_tcp_core::wire::{
    FastOpenCookie, HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, OptionLayout, SackBlocks, TcpHeader,
    TcpOption, Timestamps, TxChecksumMode, Unreachable, emit_icmp, emit_tcp,
};
use std::net::SocketAddr;

/// Hop limit of packets whose line gives none.
const TTL: u8 = 255;
/// Octets of the offending packet that an ICMP error quotes: the TCP header's first eight.
const QUOTED_OCTETS: usize = 8;

/// The octets of a segment.
pub(crate) fn segment(flow: &Flow, ip: &IpFields, line: &TcpLine) -> Result<Vec<u8>, String> {
    let has_ack = line.flags.contains(TcpFlags::ACK);
    let mut data: Vec<(u8, Vec<u8>)> = vec![];
    for option in &line.options {
        data.extend(unnamed(option));
    }
    let mut unnamed = data.iter();
    let mut options = vec![];
    for option in &line.options {
        options.push(match option {
            OptionLine::Eol => TcpOption::EndOfList,
            OptionLine::Nop => TcpOption::Nop,
            OptionLine::Mss(mss) => TcpOption::MaximumSegmentSize(*mss),
            OptionLine::WindowScale(shift) => TcpOption::WindowScale(*shift),
            OptionLine::SackOk => TcpOption::SackPermitted,
            OptionLine::Sack(blocks) => {
                let live = |number: u32| SeqNum(flow.own_to_live(number));
                let blocks: Vec<_> = blocks.iter().map(|(start, end)| (live(*start), live(*end))).collect();
                TcpOption::Sack(SackBlocks::from_slice(&blocks))
            }
            OptionLine::Timestamps { val, ecr } => {
                // Before the stack has sent a timestamp, there is nothing to echo.
                let ecr = match flow.live_stamp(*ecr) {
                    Some(live) => live,
                    None if *ecr == 0 || !has_ack => *ecr,
                    None => {
                        return Err(format!(
                            "ecr {ecr} echoes a timestamp that no line of the stack has had"
                        ));
                    }
                };
                TcpOption::Timestamps(Timestamps { val: *val, ecr })
            }
            OptionLine::FastOpen { cookie: Some(cookie), experimental }
                if FastOpenCookie::new(cookie).is_some() =>
            {
                let cookie = FastOpenCookie::new(cookie).unwrap_or(FastOpenCookie::REQUEST);
                TcpOption::FastOpen(cookie.experimental(*experimental))
            }
            _ => match unnamed.next() {
                Some((kind, data)) => TcpOption::Unknown { kind: *kind, data },
                None => return Err(format!("{option} cannot be sent")),
            },
        });
    }
    let mut header = TcpHeader::new(flow.remote, flow.local);
    header.seq = SeqNum(flow.peer_to_live(line.seq, line.flags.contains(TcpFlags::SYN)));
    header.ack = SeqNum(line.ack.map_or(0, |ack| if has_ack { flow.own_to_live(ack) } else { ack }));
    header.flags = line.flags;
    header.window = line.window.unwrap_or(0);
    header.urgent = line.urgent.unwrap_or(0);
    header.ttl = ip.ttl.unwrap_or(TTL);
    header.tos = ip.tos.unwrap_or(0) | ip.ecn.map_or(0, |ecn| ecn.bits());
    header.flow_label = ip.flow_label.unwrap_or(0);
    header.layout = OptionLayout::Listed(&options);
    let payload = vec![0; line.len as usize];
    let mut buf = HeaderBuf::new();
    emit_tcp(&header, [&payload, &[]], TxChecksumMode::Complete, &mut buf)
        .map_err(|error| error.to_string())?;
    Ok([buf.as_slice(), &payload].concat())
}

/// Kind and data of an option that the core's emitter has no name for.
fn unnamed(option: &OptionLine) -> Option<(u8, Vec<u8>)> {
    match option {
        OptionLine::Md5(digest) => Some((crate::script::MD5, digest.clone())),
        OptionLine::AccEcn { ect1_first, counters } => {
            let kind = if *ect1_first { crate::script::ACC_ECN_1 } else { crate::script::ACC_ECN_0 };
            Some((kind, counters.iter().flat_map(|count| count.to_be_bytes().into_iter().skip(1)).collect()))
        }
        OptionLine::FastOpen { cookie: Some(cookie), experimental }
            if FastOpenCookie::new(cookie).is_none() =>
        {
            let experiment: &[u8] = if *experimental { &[0xf9, 0x89] } else { &[] };
            Some((if *experimental { 254 } else { 34 }, [experiment, cookie].concat()))
        }
        OptionLine::Other { kind, data } => Some((*kind, data.clone())),
        _ => None,
    }
}

/// The octets of an ICMP error about a segment of the stack, or of an echo request.
pub(crate) fn icmp(flow: &Flow, ip: &IpFields, line: &IcmpLine) -> Result<Vec<u8>, String> {
    let (local, remote) = (flow.local, flow.remote);
    let message = message(line, remote.is_ipv4())?;
    let header = IcmpHeader { src: remote.ip(), dst: local.ip(), ttl: ip.ttl.unwrap_or(TTL), message };
    let quoted = match (message, line.quoted) {
        (IcmpEmit::Error(_), Some((start, len))) => quoted(local, remote, flow.own_to_live(start), len)?,
        (IcmpEmit::Error(_), None) => quoted(local, remote, flow.own_to_live(1), 0)?,
        _ => vec![0; 8],
    };
    let mut buf = HeaderBuf::new();
    emit_icmp(&header, [&quoted, &[]], &mut buf).map_err(|error| error.to_string())?;
    Ok([buf.as_slice(), &quoted].concat())
}

/// The start of the segment that an error is about.
fn quoted(local: SocketAddr, remote: SocketAddr, seq: u32, len: u32) -> Result<Vec<u8>, String> {
    let mut header = TcpHeader::new(local, remote);
    (header.seq, header.flags) = (SeqNum(seq), TcpFlags::ACK);
    let payload = vec![0; len as usize];
    let mut buf = HeaderBuf::new();
    let emitted = emit_tcp(&header, [&payload, &[]], TxChecksumMode::Complete, &mut buf);
    let ip_len = emitted.map_err(|error| error.to_string())?.header_len - 20;
    Ok(buf.as_slice().get(..ip_len + QUOTED_OCTETS).unwrap_or_default().to_vec())
}

fn message(line: &IcmpLine, v4: bool) -> Result<IcmpEmit, String> {
    let unreachable =
        |reason, code| Ok(IcmpEmit::Error(IcmpErrorKind::DestinationUnreachable { reason, code }));
    let unknown = || Err(format!("icmp {} {}: no such code", line.kind, line.code));
    match (line.kind.as_str(), line.code.as_str()) {
        ("unreachable", "frag_needed") | ("packet_too_big", _) => {
            Ok(IcmpEmit::Error(IcmpErrorKind::PacketTooBig { mtu: line.mtu.unwrap_or(0) }))
        }
        ("unreachable", "" | "net_unreachable" | "no_route") => unreachable(Unreachable::Network, 0),
        ("unreachable", "host_unreachable" | "addr_unreachable") => {
            unreachable(Unreachable::Host, if v4 { 1 } else { 3 })
        }
        ("unreachable", "protocol_unreachable") if v4 => unreachable(Unreachable::Protocol, 2),
        ("unreachable", "port_unreachable") => unreachable(Unreachable::Port, if v4 { 3 } else { 4 }),
        ("unreachable", "admin_prohibited" | "pkt_filtered" | "comm_prohibited") => {
            unreachable(Unreachable::Prohibited, if v4 { 13 } else { 1 })
        }
        ("time_exceeded", "" | "exc_ttl" | "ttl_exceeded" | "exc_hoplimit") => {
            Ok(IcmpEmit::Error(IcmpErrorKind::TimeExceeded { code: 0 }))
        }
        ("time_exceeded", "exc_fragtime" | "frag_time_exceeded") => {
            Ok(IcmpEmit::Error(IcmpErrorKind::TimeExceeded { code: 1 }))
        }
        ("parameter_problem", "" | "hdr_field") => {
            Ok(IcmpEmit::Error(IcmpErrorKind::ParameterProblem { code: 0, pointer: 0 }))
        }
        ("echo" | "echo_request", "" | "request") => {
            Ok(IcmpEmit::EchoRequest { ident: line.id.unwrap_or(0), seq: 0 })
        }
        ("unreachable" | "time_exceeded" | "parameter_problem" | "echo" | "echo_request", _) => unknown(),
        (kind, _) => Err(format!("icmp {kind}: no such type")),
    }
}
