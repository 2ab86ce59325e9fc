//! The device over a wire of Ethernet frames.

use super::Wire;
use super::frame::{self, HEADER_LEN};
use super::resolution::Resolution;
use crate::device::batch::{Gathered, MOST};
use crate::device::interface::{MAX_SKIPPED, RxMeta};
use crate::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxBatch, RxPacket};
use std::io;
use std::task::{Context, Poll};

/// A host on an Ethernet.
#[derive(Debug)]
pub(in crate::device) struct Ethernet<W> {
    pub(in crate::device) wire: W,
    resolution: Resolution,
    /// With the largest MTU that the configuration permits; the wire's may be smaller.
    caps: DeviceCaps,
    /// The Ethernet header of the packet sent last. The station is all zeros if the packet waits
    /// for its address.
    sent_link: [u8; HEADER_LEN],
    stats: DeviceStats,
}

/// A packet in a frame up to this end, or, if `None`, the resolution's error.
type Received<W> = Option<(<W as Wire>::Slot, usize, RxMeta)>;

impl<W: Wire> Ethernet<W> {
    pub(in crate::device) fn new(wire: W, resolution: Resolution, caps: DeviceCaps) -> Self {
        Self { wire, resolution, caps, sent_link: [0; HEADER_LEN], stats: DeviceStats::default() }
    }

    /// Another queue of the same host, over `wire`.
    #[cfg(feature = "af-packet")]
    pub(in crate::device) fn beside(&self, wire: W) -> Self {
        Self::new(wire, self.resolution.beside(), self.caps)
    }

    /// The multicast groups of neighbour discovery.
    #[cfg(feature = "af-packet")]
    pub(in crate::device) fn groups(&self) -> Vec<std::net::Ipv6Addr> {
        self.resolution.groups()
    }

    /// The next packet for the stack.
    fn next(&mut self) -> io::Result<Received<W>> {
        for _ in 0..MAX_SKIPPED {
            let Some((slot, end)) = self.resolution.next_packet(&mut self.wire, &mut self.stats)? else {
                return Ok(None);
            };
            if let Some(meta) = self.wire.meta(slot, end) {
                self.stats.received(end - HEADER_LEN);
                return Ok(Some((slot, end, meta)));
            }
            self.stats.rx_malformed += 1;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// The Ethernet header in front of that packet.
    fn link(&self, next: Received<W>) -> &[u8] {
        next.and_then(|(slot, ..)| self.wire.frame(slot).get(..HEADER_LEN)).unwrap_or(&[])
    }

    fn packet(&self, next: Received<W>) -> RxPacket<'_> {
        let Some((slot, end, RxMeta { segment_size, checksum })) = next else {
            return RxPacket::new(self.resolution.error());
        };
        let head = self.wire.frame(slot).get(HEADER_LEN..end).unwrap_or(&[]);
        RxPacket::new(head).with_segment_size(segment_size).with_checksum(checksum)
    }

    fn send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        if self.wire.is_down() {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        self.caps().admit(packet)?;
        let front = W::front(packet)?;
        let station = self.resolution.route(&mut self.wire, packet)?;
        self.sent_link = frame::header(station.unwrap_or_default(), self.resolution.mac(), packet.header);
        match station {
            Some(_) => self.wire.send(front, &self.sent_link, packet),
            None => Ok(()),
        }
    }
}

impl<W: Wire> Device for Ethernet<W> {
    fn caps(&self) -> DeviceCaps {
        DeviceCaps { mtu: self.wire.mtu().min(self.caps.mtu), ..self.caps }
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let next = self.next()?;
        Ok(self.packet(next))
    }

    fn try_recv_with_link(&mut self) -> io::Result<(&[u8], RxPacket<'_>)> {
        let next = self.next()?;
        Ok((self.link(next), self.packet(next)))
    }

    /// What one system call has received.
    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        let mut last = self.next()?;
        let mut batch = [last; MOST];
        let mut count = 1;
        self.wire.keep(true);
        // There is one place for an error of the resolution, so it ends the batch.
        while count < most.min(MOST) && last.is_some() && self.wire.is_pending() {
            let Ok(next) = self.next() else { break };
            batch[count] = next;
            (last, count) = (next, count + 1);
        }
        self.wire.keep(false);
        let mut gathered = Gathered::new();
        for &next in batch.iter().take(count) {
            gathered.push(self.link(next), self.packet(next));
        }
        gathered.give(take);
        Ok(())
    }

    fn sent_link(&self) -> &[u8] {
        &self.sent_link
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let outcome = self.send(packet);
        self.stats.sent(packet.length(), &outcome);
        outcome
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.resolution.poll(cx, &mut self.wire)?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        self.wire.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        let rx_kernel_drops = self.wire.kernel_drops();
        DeviceStats {
            rx_kernel_drops,
            down: self.wire.is_down(),
            neighbours: self.resolution.stats(),
            ..self.stats
        }
    }
}
