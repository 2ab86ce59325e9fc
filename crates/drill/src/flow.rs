//! The connection under test, and how its numbers in the script and in the stack belong together.
//!
//! The peer's numbers are the script's own. Ports, the stack's sequence numbers and its timestamps
//! are not known before, so each has a counterpart in the script, which its first line that names
//! one tells.

use crate::script::{OptionLine, TcpLine};
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::{AccEcnOrder, TcpFlags, TcpOption, TcpSegment, Timestamps};
use std::net::SocketAddr;

/// A connection of the script.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// The stack's end.
    pub(crate) local: SocketAddr,
    /// The script's end.
    pub(crate) remote: SocketAddr,
    /// Ports in the script's lines, the stack's first, if they name some.
    pub(crate) named_ports: Option<(u16, u16)>,
    /// The stack's sequence numbers less those of the script; `None` before its SYN.
    offset: Option<u32>,
    /// A SYN has come since its connection ended: the numbers may begin anew.
    begins_anew: bool,
    /// Timestamps of the stack: in the script, and in the packet.
    stamps: Vec<(u32, u32)>,
    /// Timestamps that went in.
    pub(crate) given: Vec<u32>,
}

impl Flow {
    pub(crate) const fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            named_ports: None,
            offset: None,
            begins_anew: false,
            stamps: vec![],
            given: vec![],
        }
    }

    /// The script says that the number `live` of the stack's SYN is `script`.
    pub(crate) const fn learn_isn(&mut self, live: SeqNum, script: u32) {
        if self.offset.is_none() || self.begins_anew {
            self.offset = Some(live.0.wrapping_sub(script));
            self.begins_anew = false;
        }
    }

    /// Another connection may begin between the same ends: its SYN tells the numbers anew.
    pub(crate) const fn may_begin_anew(&mut self) {
        self.begins_anew = true;
    }

    pub(crate) fn to_live(&self, script: u32) -> u32 {
        script.wrapping_add(self.offset.unwrap_or(0))
    }

    pub(crate) fn to_script(&self, live: u32) -> u32 {
        live.wrapping_sub(self.offset.unwrap_or(0))
    }

    /// The script calls the timestamp `live` of the stack `script`.
    pub(crate) fn learn_stamp(&mut self, script: u32, live: u32) {
        if !self.stamps.contains(&(script, live)) {
            self.stamps.push((script, live));
        }
    }

    /// The stack's timestamp that the script calls `script`.
    pub(crate) fn live_stamp(&self, script: u32) -> Option<u32> {
        self.stamps.iter().rev().find(|(name, _)| *name == script).map(|(_, live)| *live)
    }

    /// What the script calls the stack's timestamp `live`: the name that it was given, or as far
    /// from the first one as it is in the packets.
    pub(crate) fn script_stamp(&self, live: u32) -> u32 {
        let known = self.stamps.iter().rev().find(|(_, known)| *known == live).map(|(script, _)| *script);
        let far =
            || self.stamps.first().map(|(script, first)| script.wrapping_add(live.wrapping_sub(*first)));
        known.or_else(far).unwrap_or(live)
    }

    /// The first timestamp: in the script, and in the packet.
    pub(crate) fn first_stamp(&self) -> Option<(u32, u32)> {
        self.stamps.first().copied()
    }

    /// A segment of the stack in the script's numbers.
    pub(crate) fn line_of(&self, segment: &TcpSegment<'_>, window: bool) -> TcpLine {
        let flags = segment.flags;
        let has_ack = flags.contains(TcpFlags::ACK);
        TcpLine {
            flags,
            seq: self.to_script(segment.seq.0),
            len: segment.payload.len() as u32,
            ack: has_ack.then_some(segment.ack.0),
            window: window.then_some(segment.window),
            urgent: (segment.urgent != 0).then_some(segment.urgent),
            options: segment.option_iter().map(|option| self.option_of(&option)).collect(),
            any_options: false,
        }
    }

    fn option_of(&self, option: &TcpOption<'_>) -> OptionLine {
        match *option {
            TcpOption::EndOfList => OptionLine::Eol,
            TcpOption::Nop => OptionLine::Nop,
            TcpOption::MaximumSegmentSize(mss) => OptionLine::Mss(mss),
            TcpOption::WindowScale(shift) => OptionLine::WindowScale(shift),
            TcpOption::SackPermitted => OptionLine::SackOk,
            TcpOption::Sack(ref blocks) => {
                OptionLine::Sack(blocks.iter().map(|(start, end)| (start.0, end.0)).collect())
            }
            TcpOption::Timestamps(Timestamps { val, ecr }) => {
                OptionLine::Timestamps { val: self.script_stamp(val), ecr }
            }
            TcpOption::FastOpen(cookie) => OptionLine::FastOpen {
                cookie: Some(cookie.as_slice().to_vec()),
                experimental: cookie.is_experimental(),
            },
            TcpOption::AccEcn(ref counters) => OptionLine::AccEcn {
                ect1_first: counters.order() == AccEcnOrder::Ect1First,
                counters: counters.fields().to_vec(),
            },
            TcpOption::Unknown { kind, data } => OptionLine::unknown(kind, data),
        }
    }
}
