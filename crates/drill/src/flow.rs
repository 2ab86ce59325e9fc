//! The connection under test, and how its numbers in the script and in the stack belong together.
//!
//! The peer's numbers are the script's own. Ports, the stack's sequence numbers and its timestamps
//! are not known before, so each has a counterpart in the script, which its first line that names
//! one tells.

use crate::script::{OptionLine, TcpLine};
use ackline_tcp_core::wire::{AccEcnOrder, TcpFlags, TcpOption, TcpSegment, Timestamps};
use std::net::SocketAddr;

/// Sequence numbers of one end: what the script calls them, and what they are in packets.
///
/// A SYN tells its number in both. What the script counts from behind a SYN whose number is not
/// zero is one of two: the same numbers, or, as newer scripts do, bytes of the stream from 1 on. The
/// first number behind it shows which.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    /// The number of the SYN: in the packet, and in the script.
    isn: Option<(u32, u32)>,
    /// Numbers behind the SYN count the stream; `None` as long as nothing shows it.
    of_stream: Option<bool>,
}

impl Numbers {
    /// Looks at a number of the script behind the SYN.
    fn observe(&mut self, number: u32) {
        let Some((_, isn)) = self.isn.filter(|(_, isn)| *isn != 0) else { return };
        let far = |from: u32| (number.wrapping_sub(from) as i32).unsigned_abs();
        self.of_stream.get_or_insert(far(1) < far(isn.wrapping_add(1)));
    }

    /// The packet's number less the script's.
    fn offset(&self, is_syn: bool) -> u32 {
        match self.isn {
            None => 0,
            Some((live, _)) if self.of_stream == Some(true) && !is_syn => live,
            Some((live, script)) => live.wrapping_sub(script),
        }
    }
}

/// A connection of the script.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// The stack's end.
    pub(crate) local: SocketAddr,
    /// The script's end.
    pub(crate) remote: SocketAddr,
    /// Ports in the script's lines, the stack's first, if they name some.
    pub(crate) named_ports: Option<(u16, u16)>,
    /// Numbers of the stack.
    own: Numbers,
    /// Numbers of the script's end.
    peer: Numbers,
    /// The script's end has sent something else than SYNs.
    peer_counts: bool,
    /// A SYN has come since its connection ended: the numbers may begin anew.
    begins_anew: bool,
    /// Timestamps of the stack: in the script, and in the packet.
    stamps: Vec<(u32, u32)>,
    /// Timestamps that went in.
    pub(crate) given: Vec<u32>,
}

impl Flow {
    pub(crate) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            named_ports: None,
            own: Numbers::default(),
            peer: Numbers::default(),
            peer_counts: false,
            begins_anew: false,
            stamps: vec![],
            given: vec![],
        }
    }

    /// The stack's SYN has the number `live`, which the script calls `script`.
    pub(crate) fn learn_isn(&mut self, live: u32, script: u32) {
        if self.own.isn.is_none() || self.begins_anew {
            self.own = Numbers { isn: Some((live, script)), of_stream: None };
            self.begins_anew = false;
        }
    }

    /// Both SYNs have the number zero in the script.
    pub(crate) const fn number_from_zero(&mut self, own: u32, peer: u32) {
        self.own = Numbers { isn: Some((own, 0)), of_stream: None };
        self.peer = Numbers { isn: Some((peer, 0)), of_stream: None };
    }

    /// How far `live` is from the number of the stack's SYN.
    pub(crate) fn distance_from_isn(&self, live: u32) -> u32 {
        self.own.isn.map_or(0, |(isn, _)| live.wrapping_sub(isn))
    }

    /// Another connection may begin between the same ends: its SYN tells the numbers anew.
    pub(crate) const fn may_begin_anew(&mut self) {
        self.begins_anew = true;
    }

    /// Looks at the numbers of a line before any of them is translated.
    pub(crate) fn observe(&mut self, line: &TcpLine, outbound: bool) {
        let is_syn = line.flags.contains(TcpFlags::SYN);
        // A SYN in the middle of a connection is a test of the stack.
        if is_syn && !outbound && (!self.peer_counts || self.begins_anew) {
            self.peer = Numbers { isn: Some((line.seq, line.seq)), of_stream: None };
        }
        self.peer_counts |= !is_syn && !outbound;
        let (sender, receiver) =
            if outbound { (&mut self.own, &mut self.peer) } else { (&mut self.peer, &mut self.own) };
        if !is_syn {
            sender.observe(line.seq);
        }
        if let Some(ack) = line.ack.filter(|_| line.flags.contains(TcpFlags::ACK)) {
            receiver.observe(ack);
        }
    }

    /// The packet's number of a byte of the stack.
    pub(crate) fn own_to_live(&self, script: u32) -> u32 {
        script.wrapping_add(self.own.offset(false))
    }

    /// The packet's number for the first one of a segment of the script's end.
    pub(crate) fn peer_to_live(&self, script: u32, is_syn: bool) -> u32 {
        script.wrapping_add(self.peer.offset(is_syn))
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
    fn script_stamp(&self, live: u32) -> u32 {
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
    pub(crate) fn outbound_line(&self, segment: &TcpSegment<'_>) -> TcpLine {
        self.line(segment, true)
    }

    /// A segment of the script's end in the script's numbers.
    pub(crate) fn inbound_line(&self, segment: &TcpSegment<'_>) -> TcpLine {
        self.line(segment, false)
    }

    fn line(&self, segment: &TcpSegment<'_>, outbound: bool) -> TcpLine {
        let (sender, receiver) = if outbound { (&self.own, &self.peer) } else { (&self.peer, &self.own) };
        let flags = segment.flags;
        let received = |live: u32| live.wrapping_sub(receiver.offset(false));
        TcpLine {
            flags,
            seq: segment.seq.0.wrapping_sub(sender.offset(flags.contains(TcpFlags::SYN))),
            len: segment.payload.len() as u32,
            ack: flags.contains(TcpFlags::ACK).then(|| received(segment.ack.0)),
            window: Some(segment.window),
            urgent: (segment.urgent != 0).then_some(segment.urgent),
            options: segment
                .option_iter()
                .map(|option| self.option_of(&option, outbound, received))
                .collect(),
            any_options: false,
        }
    }

    fn option_of(&self, option: &TcpOption<'_>, outbound: bool, received: impl Fn(u32) -> u32) -> OptionLine {
        match *option {
            TcpOption::EndOfList => OptionLine::Eol,
            TcpOption::Nop => OptionLine::Nop,
            TcpOption::MaximumSegmentSize(mss) => OptionLine::Mss(mss),
            TcpOption::WindowScale(shift) => OptionLine::WindowScale(shift),
            TcpOption::SackPermitted => OptionLine::SackOk,
            TcpOption::Sack(ref blocks) => OptionLine::Sack(
                blocks.iter().map(|(start, end)| (received(start.0), received(end.0))).collect(),
            ),
            // The stack's timestamps have names of their own; the peer's are the script's.
            TcpOption::Timestamps(Timestamps { val, ecr }) if outbound => {
                OptionLine::Timestamps { val: self.script_stamp(val), ecr }
            }
            TcpOption::Timestamps(Timestamps { val, ecr }) => {
                OptionLine::Timestamps { val, ecr: if ecr == 0 { 0 } else { self.script_stamp(ecr) } }
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

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn numbers_behind_a_syn_are_the_same_ones_or_count_the_stream() {
        for (isn, next, of_stream) in
            [(123, 1, true), (123, 124, false), (12, 13, false), (u32::MAX, 0, false)]
        {
            let mut numbers = Numbers { isn: Some((7_000, isn)), of_stream: None };
            numbers.observe(next);
            assert_eq!(numbers.of_stream, Some(of_stream), "{isn} {next}");
            assert_eq!(next.wrapping_add(numbers.offset(false)), 7_001);
            assert_eq!(isn.wrapping_add(numbers.offset(true)), 7_000);
        }
    }
}
