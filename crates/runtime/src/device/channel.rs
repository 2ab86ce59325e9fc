//! A pair of devices in memory: each receives what the other sends.
//!
//! For stacks that talk to each other inside one process, and for tests. Needs no privileges, and
//! loses nothing: a full queue makes the sender wait.

use super::batch::{Gathered, MOST};
use super::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxBatch, RxChecksum, RxPacket, TxChecksum};
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Empty buffers that each direction keeps for reuse.
const SPARE_BUFFERS: usize = 64;

/// Properties of a pair of devices; the same for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelConfig {
    /// Largest IP packet on the wire, in bytes; for a super-packet, the size of each wire packet it
    /// represents.
    pub mtu: u32,
    /// Largest super-packet in bytes, headers included, at most 65,535; 0 carries none. They arrive
    /// as they were sent, unsegmented.
    pub max_super_packet: u32,
    /// Senders leave checksums partial or out, and receivers do not verify: nothing can be
    /// corrupted in memory. Otherwise senders compute and receivers verify.
    pub checksum_offload: bool,
    /// Maximum packets queued in each direction, at least 1; a super-packet counts once.
    pub queue_packets: usize,
    /// Maximum bytes queued in each direction. The packet that reaches the limit is still accepted,
    /// so that any packet fits an empty queue.
    pub queue_bytes: usize,
}

impl Default for ChannelConfig {
    /// MTU 1500, super-packets of at most 65,535 bytes, trusted checksums, queues of 1,024 packets
    /// or 1 MiB.
    fn default() -> Self {
        Self {
            mtu: 1500,
            max_super_packet: 65_535,
            checksum_offload: true,
            queue_packets: 1024,
            queue_bytes: 1 << 20,
        }
    }
}

impl ChannelConfig {
    /// Single packets with complete checksums.
    #[must_use]
    pub const fn plain(mut self) -> Self {
        self.max_super_packet = 0;
        self.checksum_offload = false;
        self
    }

    /// Sets the largest IP packet, in bytes.
    #[must_use]
    pub const fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = mtu;
        self
    }

    /// Sets the queue limits of each direction.
    #[must_use]
    pub const fn queue(mut self, packets: usize, bytes: usize) -> Self {
        self.queue_packets = packets;
        self.queue_bytes = bytes;
        self
    }
}

/// One device of a pair.
///
/// When its peer is dropped, packets already queued can still be received; after that nothing
/// arrives, and sends fail with `NotConnected`, like a cable unplugged at the far end.
#[derive(Debug)]
pub struct Channel {
    config: ChannelConfig,
    incoming: Arc<Mutex<PacketQueue>>,
    outgoing: Arc<Mutex<PacketQueue>>,
    /// What was lent out last.
    lent: Vec<Packet>,
    stats: DeviceStats,
}

impl Channel {
    /// Creates the two devices.
    #[must_use]
    pub fn pair(config: ChannelConfig) -> (Self, Self) {
        let there = Arc::new(Mutex::new(PacketQueue::default()));
        let back = Arc::new(Mutex::new(PacketQueue::default()));
        let end = |incoming, outgoing| Self {
            config,
            incoming,
            outgoing,
            lent: Vec::new(),
            stats: DeviceStats::default(),
        };
        (end(back.clone(), there.clone()), end(there, back))
    }

    /// True while the peer exists.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !lock(&self.outgoing).closed
    }

    fn send(&self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let &OutgoingPacket { segment_size, checksum, .. } = packet;
        self.caps().admit(packet)?;
        let mut bytes = {
            let mut queue = lock(&self.outgoing);
            if queue.closed {
                return Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    "the other end of the channel is gone",
                ));
            }
            if !queue.has_room(&self.config) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            queue.spare.pop().unwrap_or_default()
        };
        // Nobody else sends in this direction, so the room is still there after the copy.
        bytes.reserve_exact(packet.length());
        packet.append_to(&mut bytes);
        let checksum = match checksum {
            TxChecksum::Complete => RxChecksum::Verify,
            TxChecksum::Partial { .. } => RxChecksum::Partial,
            TxChecksum::Omitted => RxChecksum::Trusted,
        };
        let reader = {
            let mut queue = lock(&self.outgoing);
            queue.bytes += packet.length();
            queue.packets.push_back(Packet { bytes, segment_size, checksum });
            queue.reader.take()
        };
        wake(reader);
        Ok(())
    }
}

impl Channel {
    /// Takes up to `most` packets from the queue, at least one, and gives back the buffers of those
    /// that it took before.
    fn receive(&mut self, most: usize) -> io::Result<()> {
        let writer = {
            let mut queue = lock(&self.incoming);
            if queue.packets.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            for Packet { mut bytes, .. } in self.lent.drain(..) {
                if bytes.capacity() > 0 && queue.spare.len() < SPARE_BUFFERS {
                    bytes.clear();
                    queue.spare.push(bytes);
                }
            }
            let count = queue.packets.len().min(most.max(1));
            self.lent.extend(queue.packets.drain(..count));
            queue.bytes -= self.lent.iter().map(|packet| packet.bytes.len()).sum::<usize>();
            queue.writer.take()
        };
        wake(writer);
        for packet in &self.lent {
            self.stats.received(packet.bytes.len());
        }
        Ok(())
    }
}

impl Device for Channel {
    fn caps(&self) -> DeviceCaps {
        DeviceCaps {
            mtu: self.config.mtu,
            max_super_packet: self.config.max_super_packet,
            tx_checksum_offload: self.config.checksum_offload,
            rx_checksum_offload: self.config.checksum_offload,
        }
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        self.receive(1)?;
        // There is one.
        Ok(self.lent.first().map_or(RxPacket::new(&[]), Packet::as_received))
    }

    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        self.receive(most.min(MOST))?;
        let mut gathered = Gathered::new();
        for packet in &self.lent {
            gathered.push(&[], packet.as_received());
        }
        gathered.give(take);
        Ok(())
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let outcome = self.send(packet);
        self.stats.sent(packet.length(), &outcome);
        outcome
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut queue = lock(&self.incoming);
        if queue.packets.is_empty() {
            remember(&mut queue.reader, cx.waker());
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut queue = lock(&self.outgoing);
        // If the queue is closed, the next send returns the error.
        if queue.closed || queue.has_room(&self.config) {
            Poll::Ready(Ok(()))
        } else {
            remember(&mut queue.writer, cx.waker());
            Poll::Pending
        }
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let writer = {
            let mut queue = lock(&self.incoming);
            queue.closed = true;
            queue.packets.clear();
            queue.spare.clear();
            queue.bytes = 0;
            queue.writer.take()
        };
        wake(writer);
    }
}

/// One direction.
#[derive(Debug, Default)]
struct PacketQueue {
    packets: VecDeque<Packet>,
    /// The sum of the packets' lengths.
    bytes: usize,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
    /// The receiver, if it waits for a packet.
    reader: Option<Waker>,
    /// The sender, if it waits for room.
    writer: Option<Waker>,
    /// The receiver is gone.
    closed: bool,
}

impl PacketQueue {
    fn has_room(&self, config: &ChannelConfig) -> bool {
        self.packets.is_empty()
            || (self.packets.len() < config.queue_packets && self.bytes < config.queue_bytes)
    }
}

#[derive(Debug)]
struct Packet {
    bytes: Vec<u8>,
    segment_size: Option<NonZeroU16>,
    checksum: RxChecksum,
}

impl Packet {
    fn as_received(&self) -> RxPacket<'_> {
        let Self { bytes, segment_size, checksum } = self;
        RxPacket::new(bytes).with_segment_size(*segment_size).with_checksum(*checksum)
    }
}

fn lock(queue: &Mutex<PacketQueue>) -> MutexGuard<'_, PacketQueue> {
    // Only the allocator can panic under the lock.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remember(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(known) => known.clone_from(waker),
        None => *place = Some(waker.clone()),
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::io::ErrorKind::{InvalidInput, NotConnected, WouldBlock};

    const PARTIAL: TxChecksum = TxChecksum::Partial { start: 20, offset: 16 };

    fn size(bytes: u16) -> Option<NonZeroU16> {
        NonZeroU16::new(bytes)
    }

    fn send(channel: &mut Channel, bytes: &[u8]) -> Result<(), io::ErrorKind> {
        channel.try_send(&OutgoingPacket::whole(bytes)).map_err(|error| error.kind())
    }

    fn receive(channel: &mut Channel) -> Result<Vec<u8>, io::ErrorKind> {
        channel.try_recv().map(|packet| packet.head.to_vec()).map_err(|error| error.kind())
    }

    #[test]
    fn packets_arrive_in_order_with_what_is_known_of_them() {
        let (mut near, mut far) = Channel::pair(ChannelConfig::default());
        let mut send = |payload: [&[u8]; 2], segment_size, checksum| {
            near.try_send(
                &OutgoingPacket::new(b"header", payload)
                    .with_segment_size(segment_size)
                    .with_checksum(checksum),
            )
            .expect("room");
        };
        send([b"", b""], None, TxChecksum::Complete);
        send([b"one", b"two"], None, PARTIAL);
        send([&[7; 4000], b""], size(1448), PARTIAL);
        send([b"x", b""], None, TxChecksum::Omitted);
        let mut expect = |bytes: &[u8], segment_size, checksum| {
            let packet = far.try_recv().expect("a packet");
            assert_eq!(packet.head, bytes);
            assert_eq!((packet.segment_size, packet.checksum), (segment_size, checksum));
        };
        expect(b"header", None, RxChecksum::Verify);
        expect(b"headeronetwo", None, RxChecksum::Partial);
        expect(&[&b"header"[..], &[7; 4000]].concat(), size(1448), RxChecksum::Partial);
        expect(b"headerx", None, RxChecksum::Trusted);
        assert_eq!(receive(&mut far), Err(WouldBlock));
        assert_eq!(receive(&mut near), Err(WouldBlock), "nothing comes back");
        assert_eq!((near.stats().tx_packets, near.stats().tx_bytes), (4, 6 + 12 + 4006 + 7));
        assert_eq!((far.stats().rx_packets, far.stats().rx_bytes), (4, 6 + 12 + 4006 + 7));
    }

    #[test]
    fn a_full_queue_takes_no_packet_until_one_is_received() {
        let (mut near, mut far) = Channel::pair(ChannelConfig::default().queue(2, 1_000_000));
        assert_eq!(send(&mut near, b"one"), Ok(()));
        assert_eq!(send(&mut near, b"two"), Ok(()));
        assert_eq!(send(&mut near, b"three"), Err(WouldBlock));
        assert_eq!(near.stats().tx_full, 1);
        assert_eq!(receive(&mut far), Ok(b"one".to_vec()));
        assert_eq!(send(&mut near, b"three"), Ok(()));
        assert_eq!(receive(&mut far), Ok(b"two".to_vec()));
        assert_eq!(receive(&mut far), Ok(b"three".to_vec()));
    }

    #[test]
    fn bytes_fill_a_queue_too_but_an_empty_one_takes_any_packet() {
        let (mut near, mut far) = Channel::pair(ChannelConfig::default().queue(100, 10));
        assert_eq!(send(&mut near, &[1; 1000]), Ok(()));
        assert_eq!(send(&mut near, &[2; 1]), Err(WouldBlock));
        assert_eq!(receive(&mut far), Ok(vec![1; 1000]));
        assert_eq!(send(&mut near, &[2; 1]), Ok(()));
        assert_eq!(send(&mut near, &[2; 1]), Ok(()));
    }

    #[test]
    fn what_the_pair_cannot_carry_is_refused() {
        let refused = |config: ChannelConfig, length: usize, segment_size, checksum| {
            let (mut near, mut far) = Channel::pair(config);
            let error = near.try_send(
                &OutgoingPacket::new(&[0x45; 40], [&vec![0; length], &[]])
                    .with_segment_size(segment_size)
                    .with_checksum(checksum),
            );
            assert_eq!(error.expect_err("refused").kind(), InvalidInput);
            assert_eq!(near.stats().tx_errors, 1);
            assert_eq!(receive(&mut far), Err(WouldBlock));
        };
        let offload = ChannelConfig::default();
        refused(offload, 1461, None, PARTIAL);
        refused(offload, 2000, size(1461), PARTIAL);
        refused(offload, 65_496, size(1448), PARTIAL);
        refused(offload.plain(), 100, None, PARTIAL);
        refused(offload.plain(), 100, None, TxChecksum::Omitted);
        refused(offload.plain(), 2000, size(1448), TxChecksum::Complete);
    }

    #[test]
    fn after_the_other_end_is_gone_its_packets_arrive_and_nothing_leaves() {
        let (mut near, mut far) = Channel::pair(ChannelConfig::default());
        assert_eq!(send(&mut far, b"last words"), Ok(()));
        assert!(near.is_connected());
        drop(far);
        assert!(!near.is_connected());
        assert_eq!(send(&mut near, b"hello?"), Err(NotConnected));
        assert_eq!(receive(&mut near), Ok(b"last words".to_vec()));
        assert_eq!(receive(&mut near), Err(WouldBlock));
    }

    #[tokio::test]
    async fn both_sides_wait_for_each_other() {
        const PACKETS: u32 = 20_000;
        let (mut near, mut far) = Channel::pair(ChannelConfig::default().queue(3, 100));
        let sender = tokio::spawn(async move {
            for number in 0..PACKETS {
                while send(&mut near, &number.to_be_bytes()) == Err(WouldBlock) {
                    poll_fn(|cx| near.poll_writable(cx)).await.expect("writable");
                }
            }
            near
        });
        let receiver = async {
            for number in 0..PACKETS {
                let packet = loop {
                    match receive(&mut far) {
                        Ok(packet) => break packet,
                        Err(_) => poll_fn(|cx| far.poll_readable(cx)).await.expect("readable"),
                    }
                };
                assert_eq!(packet, number.to_be_bytes());
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), receiver).await.expect("no lost wake-up");
        let near = sender.await.expect("no panic");
        assert!(near.stats().tx_full > 0, "the queue was never full");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_sender_that_waits_is_told_that_the_receiver_went_away() {
        let (mut near, far) = Channel::pair(ChannelConfig::default().queue(1, 100));
        assert_eq!(send(&mut near, b"one"), Ok(()));
        let waiting = tokio::spawn(async move {
            poll_fn(|cx| near.poll_writable(cx)).await.expect("ready");
            send(&mut near, b"two")
        });
        tokio::task::yield_now().await;
        drop(far);
        let outcome = tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await;
        assert_eq!(outcome.expect("no lost wake-up").expect("no panic"), Err(NotConnected));
    }
}
