//! Packets in the notation of scripts.

use super::packet::{IcmpLine, IpFields, OptionLine, PacketLine, Payload, TcpLine};
use ackline_tcp_core::wire::{Ecn, TcpFlags};
use std::fmt::{self, Display, Formatter};

/// Flags as a script writes them.
#[must_use]
pub fn flags(flags: TcpFlags) -> String {
    let letters = [
        (TcpFlags::FIN, 'F'),
        (TcpFlags::SYN, 'S'),
        (TcpFlags::RST, 'R'),
        (TcpFlags::PSH, 'P'),
        (TcpFlags::ACK, '.'),
        (TcpFlags::ECE, 'E'),
        (TcpFlags::CWR, 'W'),
        (TcpFlags::AE, 'A'),
        (TcpFlags::URG, 'U'),
    ];
    let text: String = letters.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, c)| c).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

impl Display for PacketLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_outbound() { "> " } else { "< " })?;
        self.ip.fmt(f)?;
        if let Some((source, destination)) = self.ports {
            write!(f, "{source} > {destination} ")?;
        }
        match &self.payload {
            Payload::Tcp(tcp) => tcp.fmt(f),
            Payload::Icmp(icmp) => icmp.fmt(f),
        }
    }
}

impl Display for IpFields {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut words = vec![];
        if self.any_ect {
            words.push("ect01".to_owned());
        }
        words.extend(self.ecn.map(|ecn| {
            match ecn {
                Ecn::NotEct => "noecn",
                Ecn::Ect0 => "ect0",
                Ecn::Ect1 => "ect1",
                Ecn::Ce => "ce",
            }
            .to_owned()
        }));
        words.extend(self.tos.map(|tos| format!("tos {tos:#04x}")));
        words.extend(self.ttl.map(|ttl| format!("ttl {ttl}")));
        words.extend(self.flow_label.map(|label| format!("flowlabel {label:#x}")));
        if words.is_empty() { Ok(()) } else { write!(f, "[{}] ", words.join(",")) }
    }
}

impl Display for TcpLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { seq, len, .. } = *self;
        write!(f, "{} {seq}:{}({len})", flags(self.flags), seq.wrapping_add(len))?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        if self.any_options {
            return f.write_str(" <...>");
        }
        for (at, option) in self.options.iter().enumerate() {
            write!(f, "{}{option}", if at == 0 { " <" } else { "," })?;
        }
        f.write_str(if self.options.is_empty() { "" } else { ">" })
    }
}

impl Display for OptionLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eol => f.write_str("eol"),
            Self::Nop => f.write_str("nop"),
            Self::Mss(mss) => write!(f, "mss {mss}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackOk => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(start, end)| write!(f, " {start}:{end}"))
            }
            Self::Timestamps { val, ecr } => write!(f, "TS val {val} ecr {ecr}"),
            Self::Md5(digest) => write!(f, "md5 {}", hex(digest)),
            Self::FastOpen { cookie, experimental } => {
                f.write_str(if *experimental { "FOEXP" } else { "FO" })?;
                match cookie {
                    None => f.write_str(" TFO_COOKIE"),
                    Some(cookie) if cookie.is_empty() => Ok(()),
                    Some(cookie) => write!(f, " {}", hex(cookie)),
                }
            }
            Self::AccEcn { ect1_first, counters } => {
                f.write_str("ECN")?;
                let names = if *ect1_first { ["e1b", "ceb", "e0b"] } else { ["e0b", "ceb", "e1b"] };
                counters.iter().zip(names).try_for_each(|(count, name)| write!(f, " {name} {count}"))
            }
            Self::Other { kind, data } => write!(f, "kind {kind} {}", hex(data)),
        }
    }
}

impl Display for IcmpLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "icmp {}", self.kind)?;
        if !self.code.is_empty() {
            write!(f, " {}", self.code)?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, " mtu {mtu}")?;
        }
        if let Some(id) = self.id {
            write!(f, " id {id}")?;
        }
        match self.quoted {
            Some((start, len)) => write!(f, " [{start}:{}({len})]", start.wrapping_add(len)),
            None => Ok(()),
        }
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
