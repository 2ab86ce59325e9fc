//! A port of the simulation and the device at it.

use ackline_netsim::{NodeId, Sim};
use ackline_runtime::device::TxChecksum;
use ackline_runtime::stats::Distribution;
use ackline_runtime::{Device, timer};
use ackline_tcp_core::Instant;
use std::task::{Context, Poll};
use std::{fmt, io};
use thiserror::Error;

/// Why a device cannot be attached.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The device carries super-packets or unfinished checksums, which no wire has.
    #[error("an emulated network carries the packets of a wire: open the device without offload")]
    Offload,
    /// The node is a host, a router or a middlebox.
    #[error("{0:?} is not a port of the simulation: add one by Sim::add_port")]
    NotAPort(NodeId),
}

/// What passed a port, and how late.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PortStats {
    /// Packets that the device brought.
    pub received: u64,
    /// Packets that the device took.
    pub sent: u64,
    /// Packets that the device did not take, because it was full or down. They are lost, and not by the network that is
    /// emulated.
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
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("node", &self.node).field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl Port {
    pub(crate) fn new(node: NodeId, device: Box<dyn Device>) -> Result<Self, AttachError> {
        let caps = device.caps();
        if caps.max_super_packet > 0 || caps.rx_checksum_offload {
            return Err(AttachError::Offload);
        }
        let stats = PortStats { received: 0, sent: 0, refused: 0, lateness: Distribution::default() };
        Ok(Self { node, device, stats, buffer: vec![] })
    }

    /// Hands what has arrived to the device. `epoch` is the simulation's time zero.
    pub(crate) fn send(&mut self, sim: &mut Sim, epoch: Instant) {
        let Self { node, device, stats, .. } = self;
        while let Some((late, outcome)) = sim.arrived(*node, |at, packet| {
            // What the call takes is not the path's.
            let late = timer::now().since(epoch + at.since(Instant::ZERO));
            (late, device.try_send(&packet.bytes, [&[], &[]], None, TxChecksum::Complete))
        }) {
            stats.lateness.record(late);
            match outcome {
                Ok(()) => stats.sent += 1,
                Err(_) => stats.refused += 1,
            }
        }
    }

    /// Takes one packet from the device into the network. False if none waits.
    pub(crate) fn receive(&mut self, sim: &mut Sim) -> io::Result<bool> {
        let packet = match self.device.try_recv() {
            Ok(packet) => packet,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        self.stats.received += 1;
        let [more, rest] = packet.more;
        if more.is_empty() && rest.is_empty() {
            sim.inject(self.node, packet.head);
        } else {
            self.buffer.clear();
            for piece in [packet.head, more, rest] {
                self.buffer.extend_from_slice(piece);
            }
            sim.inject(self.node, &self.buffer);
        }
        Ok(true)
    }

    pub(crate) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.device.poll_readable(cx)
    }
}
