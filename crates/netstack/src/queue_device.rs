//! A device in memory whose packets are owned vectors: what the program gives is received where it
//! lies, and what the stack sends is written once.

use crate::queue::{NotSent, Receiver, Sender};
use ackline_runtime::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxBatch, RxPacket};
use std::io;
use std::task::{Context, Poll};

/// Packets that are received together.
const MOST: usize = 32;

pub(crate) struct QueueDevice {
    mtu: u32,
    incoming: Receiver<Vec<u8>>,
    outgoing: Sender<Vec<u8>>,
    /// What was lent out last.
    lent: Vec<Vec<u8>>,
    stats: DeviceStats,
}

impl QueueDevice {
    pub(crate) fn new(mtu: u32, incoming: Receiver<Vec<u8>>, outgoing: Sender<Vec<u8>>) -> Self {
        Self { mtu, incoming, outgoing, lent: Vec::with_capacity(MOST), stats: DeviceStats::default() }
    }

    /// Takes up to `most` packets, at least one, from the queue.
    fn receive(&mut self, most: usize) -> io::Result<()> {
        self.lent.clear();
        if !self.incoming.take(most, &mut self.lent) {
            return Err(if self.incoming.is_at_end() { gone() } else { io::ErrorKind::WouldBlock.into() });
        }
        self.stats.rx_packets += self.lent.len() as u64;
        self.stats.rx_bytes += self.lent.iter().map(|packet| packet.len() as u64).sum::<u64>();
        Ok(())
    }

    fn send(&self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        if packet.length() > self.mtu as usize {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the packet is larger than the MTU"));
        }
        // Before the copy. Another sender may take the room meanwhile; then this one waits.
        if !self.outgoing.has_room() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.outgoing.try_send(packet.to_vec()).map_err(|error| match error {
            NotSent::Full(_) => io::ErrorKind::WouldBlock.into(),
            NotSent::Closed => gone(),
        })
    }
}

impl Device for QueueDevice {
    fn caps(&self) -> DeviceCaps {
        DeviceCaps::plain(self.mtu)
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        self.receive(1)?;
        // There is one.
        Ok(self.lent.first().map_or(RxPacket::new(&[]), |packet| RxPacket::new(packet)))
    }

    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        self.receive(most.clamp(1, MOST))?;
        let mut packets = [RxPacket::new(&[]); MOST];
        for (place, packet) in packets.iter_mut().zip(&self.lent) {
            *place = RxPacket::new(packet);
        }
        let links = [&[][..]; MOST];
        let count = self.lent.len().min(MOST);
        if let (Some(packets), Some(links)) = (packets.get(..count), links.get(..count)) {
            take(RxBatch::new(packets, links));
        }
        Ok(())
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        // Such a device is given no super-packets and no partial checksums.
        let outcome = self.send(packet);
        match &outcome {
            Ok(()) => {
                self.stats.tx_packets += 1;
                self.stats.tx_bytes += packet.length() as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.stats.tx_full += 1,
            Err(_) => self.stats.tx_errors += 1,
        }
        outcome
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.incoming.poll_filled(cx).map(Ok)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outgoing.poll_room(cx).map(Ok)
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }
}

/// The other side has been dropped.
pub(crate) fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the other side of the stack's packets is gone")
}
