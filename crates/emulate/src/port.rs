//! A port of the simulation and the device at it.

use ackline_netsim::{NodeId, Sim, SuperPacket};
use ackline_runtime::device::OutgoingPacket;
use ackline_runtime::stats::Distribution;
use ackline_runtime::{Device, timer};
use ackline_tcp_core::wire::gso::split_received;
use ackline_tcp_core::wire::{HeaderBuf, RxChecksum, RxPacket, TxChecksumMode, complete_checksum};
use ackline_tcp_core::{Duration, Instant};
use std::task::{Context, Poll};
use std::{fmt, io};
use thiserror::Error;

/// If of the departures at a port one of a hundred is later than this, they are not those of the
/// simulation.
pub const LATEST: Duration = Duration::from_millis(1);

/// How super-packets of devices with offload pass the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// There are none: devices are opened without offload, and hosts send the packets of a wire one
    /// by one.
    #[default]
    Off,
    /// They are split where they enter, into packets as a wire has them. The device brings many
    /// packets at once; queues, AQMs and impairments see each of them, and they are handed over one
    /// by one.
    Split,
    /// They pass as one packet, with one fate: each takes one packet's place in a queue, a mark
    /// marks all of it, and it takes the time of all packets for which it stands, with their
    /// headers. It arrives with the last of them.
    Whole,
}

/// Why a device cannot be attached.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The device carries no super-packets, and they are not to be split.
    #[error(
        "whole super-packets pass only between devices with offload: open each with offload, or split them"
    )]
    NoOffload,
    /// A link corrupts packets, and super-packets are not to be split.
    #[error("a link corrupts packets, and nobody would notice in a whole super-packet: split them")]
    Corrupts,
    /// The node is a host, a router or a middlebox.
    #[error("{0:?} is not a port of the simulation: add one by Sim::add_port")]
    NotAPort(NodeId),
}

/// What passed a port, and how late.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PortStats {
    /// Packets that the device brought; a super-packet counts once.
    pub received: u64,
    /// Of these, super-packets.
    pub super_packets: u64,
    /// Packets that the device took.
    pub sent: u64,
    /// Packets that the device did not take, because it was full or down. They are lost, and not by
    /// the network that is emulated.
    pub refused: u64,
    /// From the instant of the simulation to the call that hands the packet to the device.
    pub lateness: Distribution,
}

/// A device at a port.
pub(crate) struct Port {
    node: NodeId,
    device: Box<dyn Device>,
    pub(crate) stats: PortStats,
    /// One packet in one piece.
    buffer: Vec<u8>,
    /// Of the packets of a super-packet.
    header: HeaderBuf,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("node", &self.node).field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl Port {
    pub(crate) fn new(node: NodeId, device: Box<dyn Device>, offload: Offload) -> Result<Self, AttachError> {
        if offload == Offload::Whole && device.caps().max_super_packet == 0 {
            return Err(AttachError::NoOffload);
        }
        let stats = PortStats {
            received: 0,
            super_packets: 0,
            sent: 0,
            refused: 0,
            lateness: Distribution::default(),
        };
        Ok(Self { node, device, stats, buffer: vec![], header: HeaderBuf::new() })
    }

    /// Hands what has arrived to the device. `epoch` is the simulation's time zero.
    pub(crate) fn send(&mut self, sim: &mut Sim, epoch: Instant) {
        let Self { node, device, stats, .. } = self;
        while let Some((late, outcome)) = sim.arrived(*node, |at, packet| {
            // What the call takes is not the path's.
            let late = timer::now().since(epoch + at.since(Instant::ZERO));
            let octets = packet.octets();
            let outcome = match packet.super_packet {
                None => device.try_send(&OutgoingPacket::whole(&octets)),
                Some(SuperPacket { header_len, segment_size, checksum }) => {
                    let (header, data) = octets.split_at(header_len.min(octets.len()));
                    device.try_send(
                        &OutgoingPacket::new(header, [data, &[]])
                            .with_segment_size(Some(segment_size))
                            .with_checksum(checksum),
                    )
                }
            };
            (late, outcome)
        }) {
            stats.lateness.record(late);
            match outcome {
                Ok(()) => stats.sent += 1,
                Err(_) => stats.refused += 1,
            }
        }
    }

    /// Takes what the device has as one packet into the network: so many of the network's. 0 if
    /// none waits.
    pub(crate) fn receive(&mut self, sim: &mut Sim, offload: Offload) -> io::Result<usize> {
        let Self { node, device, stats, buffer, header } = self;
        let packet = match device.try_recv() {
            Ok(packet) => packet,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error),
        };
        stats.received += 1;
        stats.super_packets += u64::from(packet.segment_size.is_some());
        let [more, rest] = packet.more;
        let RxPacket { segment_size, checksum, .. } = packet;
        let bytes = if more.is_empty() && rest.is_empty() {
            packet.head
        } else {
            join(buffer, [packet.head, more, rest]);
            &buffer[..]
        };
        let received = RxPacket::new(bytes);
        let split = match (segment_size, checksum, offload) {
            (None, RxChecksum::Verify, _) => {
                sim.inject(*node, bytes);
                return Ok(1);
            }
            (Some(_), _, Offload::Whole) => split_received(&received, TxChecksumMode::Partial),
            (size, ..) => split_received(&received.with_segment_size(size), TxChecksumMode::Complete),
        };
        let Ok(mut packets) = split else {
            // It is not TCP. What left its checksum to the device is on its way to a wire now.
            join(buffer, [packet.head, more, rest]);
            if checksum == RxChecksum::Partial {
                complete_checksum(buffer);
            }
            sim.inject(*node, buffer);
            return Ok(1);
        };
        let whole = segment_size.filter(|_| offload == Offload::Whole);
        let count = packets.remaining();
        while let Some((emitted, data)) = packets.next_into(header) {
            let super_packet = whole.map(|segment_size| SuperPacket {
                header_len: emitted.header_len,
                segment_size,
                checksum: emitted.checksum,
            });
            // It was in one piece.
            let [data, ..] = data.slices();
            sim.inject_parts(*node, [header.as_slice(), data], super_packet);
        }
        Ok(count)
    }

    pub(crate) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.device.poll_readable(cx)
    }
}

/// All pieces, one behind the other.
fn join(buffer: &mut Vec<u8>, pieces: [&[u8]; 3]) {
    buffer.clear();
    for piece in pieces {
        buffer.extend_from_slice(piece);
    }
}
