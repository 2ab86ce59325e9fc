//! A node where packets enter the network from outside, and leave it.

use crate::packet::Packet;
use ackline_tcp_core::Instant;
use ackline_tcp_core::packet::{ControlKind, SegmentClass};
use ackline_tcp_core::wire::{self, RxChecksum, RxPacket, TcpFlags, Transport};
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::net::IpAddr;

/// The state of a port.
#[derive(Debug, Default)]
pub(crate) struct Port {
    /// Packets that have arrived and nobody has taken yet, with the time of arrival.
    pub(crate) arrived: VecDeque<(Instant, Packet)>,
    streams: Streams,
}

impl Port {
    /// The kind of a packet that enters here, as its headers and the packets before it tell.
    pub(crate) fn class(&mut self, [head, data]: [&[u8]; 2]) -> SegmentClass {
        let packet = RxPacket::new(head).with_more([data, &[]]).with_checksum(RxChecksum::Trusted);
        let Ok(datagram) = wire::parse(&packet) else { return SegmentClass::Control(ControlKind::Other) };
        let Transport::Tcp(segment) = datagram.transport else {
            return SegmentClass::Control(ControlKind::Other);
        };
        let (syn, length) = (segment.flags.contains(TcpFlags::SYN), segment.payload.len() as u32);
        let ends = [(datagram.ip.src, segment.src_port), (datagram.ip.dst, segment.dst_port)];
        if syn || length > 0 {
            let end = segment.seq.0.wrapping_add(length).wrapping_add(u32::from(syn));
            let again = self.streams.sent(ends, end, syn);
            if length > 0 {
                return if again { SegmentClass::Retransmit } else { SegmentClass::Data };
            }
        }
        match segment.flags {
            _ if syn => SegmentClass::Control(ControlKind::Syn),
            flags if flags.contains(TcpFlags::RST) => SegmentClass::Control(ControlKind::Rst),
            flags if flags.contains(TcpFlags::FIN) => SegmentClass::Control(ControlKind::Fin),
            _ => SegmentClass::PureAck,
        }
    }
}

/// Address and port of the sender and of the receiver.
type Ends = [(IpAddr, u16); 2];

/// Streams that are remembered in each of the two halves.
const MAX_STREAMS: usize = 4_096;

/// How far each stream has been sent. Streams that have sent nothing while [`MAX_STREAMS`] others
/// have are forgotten.
#[derive(Debug, Default)]
struct Streams {
    /// The sequence number after the last one sent.
    recent: HashMap<Ends, u32>,
    before: HashMap<Ends, u32>,
}

impl Streams {
    /// Notes a segment that ends before sequence number `end`. True if all of it was sent before.
    fn sent(&mut self, ends: Ends, end: u32, syn: bool) -> bool {
        let known = self.recent.get(&ends).copied().or_else(|| self.before.remove(&ends));
        // A SYN with another number begins another connection of the same name.
        let known = known.filter(|known| !syn || *known == end);
        let again = known.is_some_and(|known| known.wrapping_sub(end).cast_signed() >= 0);
        if self.recent.len() >= MAX_STREAMS && !self.recent.contains_key(&ends) {
            self.before = std::mem::take(&mut self.recent);
        }
        self.recent.insert(ends, known.filter(|_| again).unwrap_or(end));
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn ends(number: u32) -> Ends {
        let [_, a, b, c] = number.to_be_bytes();
        [(Ipv4Addr::new(10, a, b, c).into(), 1), (Ipv4Addr::LOCALHOST.into(), 2)]
    }

    #[test]
    fn what_was_sent_before_is_sent_again() {
        let mut streams = Streams::default();
        let first = u32::MAX - 500;
        assert!(!streams.sent(ends(0), first, true));
        assert!(!streams.sent(ends(0), first.wrapping_add(1_000), false), "new, across the wrap");
        assert!(!streams.sent(ends(0), first.wrapping_add(2_000), false));
        assert!(streams.sent(ends(0), first.wrapping_add(1_000), false));
        assert!(streams.sent(ends(0), first.wrapping_add(2_000), false), "the end is remembered");
        assert!(!streams.sent(ends(1), first, false), "another stream");
        assert!(!streams.sent(ends(0), 77, true), "another connection");
        assert!(streams.sent(ends(0), 77, true), "its SYN again");
        assert!(!streams.sent(ends(0), 1_077, false));
    }

    #[test]
    fn the_memory_is_bounded_and_busy_streams_stay() {
        let mut streams = Streams::default();
        for number in 1..100_000 {
            streams.sent(ends(number), 5, true);
            assert_eq!(streams.sent(ends(0), 5, false), number > 1, "{number}");
        }
        assert!(streams.recent.len() + streams.before.len() <= 2 * MAX_STREAMS);
    }
}
