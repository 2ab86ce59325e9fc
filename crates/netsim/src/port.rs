//! A node where packets enter the network from outside, and leave it.

use crate::packet::Packet;
use ackline_tcp_core::Instant;
use ackline_tcp_core::packet::{ControlKind, SegmentClass};
use ackline_tcp_core::wire::{self, RxChecksum, RxPacket, TcpFlags, Transport};
use std::collections::VecDeque;

/// The state of a port: packets that have arrived and nobody has taken yet, with the time of arrival.
#[derive(Debug, Default)]
pub(crate) struct Port {
    pub(crate) arrived: VecDeque<(Instant, Packet)>,
}

/// The kind of a packet from outside. Whether its data was sent before is not known.
pub(crate) fn class(packet: &[u8]) -> SegmentClass {
    let packet = RxPacket::new(packet).with_checksum(RxChecksum::Trusted);
    let Ok(Transport::Tcp(segment)) = wire::parse(&packet).map(|datagram| datagram.transport) else {
        return SegmentClass::Control(ControlKind::Other);
    };
    match segment.flags {
        _ if !segment.payload.is_empty() => SegmentClass::Data,
        flags if flags.contains(TcpFlags::SYN) => SegmentClass::Control(ControlKind::Syn),
        flags if flags.contains(TcpFlags::RST) => SegmentClass::Control(ControlKind::Rst),
        flags if flags.contains(TcpFlags::FIN) => SegmentClass::Control(ControlKind::Fin),
        _ => SegmentClass::PureAck,
    }
}
