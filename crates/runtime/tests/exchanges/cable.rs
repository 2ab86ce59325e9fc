//! A network between two hosts, each with several queues, that delivers to any of them, in batches
//! of any size, in memory that may be kept.

use crate::rng::Rng;
use ackline_runtime::device::{
    Device, DeviceCaps, DeviceStats, OutgoingPacket, RxBatch, RxChecksum, RxPacket, TxChecksum,
};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// Counts pieces of memory that somebody has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(Arc<AtomicUsize>);

/// One of them.
struct Piece(Vec<u8>, Counted);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.1.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counted {
    /// Memory that counts until nobody has a part of it.
    pub(crate) fn memory(&self, bytes: Vec<u8>) -> Bytes {
        self.0.fetch_add(1, Ordering::Relaxed);
        Bytes::from_owner(Piece(bytes, self.clone()))
    }

    pub(crate) fn alive(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the network is like.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    pub(crate) caps: DeviceCaps,
    /// Packets that a queue has room for.
    pub(crate) room: usize,
    /// One packet in so many is lost, and one in so many comes to another queue than the one
    /// before; 0: none.
    pub(crate) losses: u64,
    pub(crate) strays: u64,
    /// The largest batch that is received at once.
    pub(crate) batch: u64,
    /// Connections may keep the memory of packets.
    pub(crate) lends: bool,
    pub(crate) counted: Counted,
}

#[derive(Debug)]
struct Packet {
    bytes: Bytes,
    segment_size: Option<NonZeroU16>,
    checksum: RxChecksum,
}

/// What has been sent to one queue.
#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<Packet>,
    reader: Option<Waker>,
    writers: Vec<Waker>,
}

type Queues = Arc<[Mutex<Queue>]>;

/// A queue of a host's device.
#[derive(Debug)]
pub(crate) struct Port {
    nature: Nature,
    own: usize,
    incoming: Queues,
    outgoing: Queues,
    /// The queue to which it sends.
    to: usize,
    rng: Rng,
    lent: Option<Packet>,
}

/// The queues of two hosts that have so many.
pub(crate) fn cable(nature: &Nature, queues: [usize; 2], seed: u64) -> [Vec<Port>; 2] {
    let sides: [Queues; 2] = queues.map(|count| (0..count).map(|_| Mutex::default()).collect());
    [0, 1].map(|side| {
        let port = |own| Port {
            nature: nature.clone(),
            own,
            incoming: sides[side].clone(),
            outgoing: sides[1 - side].clone(),
            to: 0,
            rng: Rng::new(seed + (side * 100 + own) as u64),
            lent: None,
        };
        (0..queues[side]).map(port).collect()
    })
}

impl Packet {
    fn received(&self, lends: bool) -> RxPacket<'_> {
        let packet =
            RxPacket::new(&self.bytes).with_segment_size(self.segment_size).with_checksum(self.checksum);
        RxPacket { memory: lends.then_some(&self.bytes), ..packet }
    }
}

impl Port {
    fn queue(queues: &Queues, index: usize) -> MutexGuard<'_, Queue> {
        queues[index].lock().expect("no panic")
    }

    /// Takes up to `most` packets out of its queue.
    fn take(&self, most: usize) -> io::Result<Vec<Packet>> {
        let mut queue = Self::queue(&self.incoming, self.own);
        let count = queue.packets.len().min(most);
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = queue.packets.drain(..count).collect();
        let writers = std::mem::take(&mut queue.writers);
        drop(queue);
        writers.into_iter().for_each(Waker::wake);
        Ok(taken)
    }
}

impl Device for Port {
    fn caps(&self) -> DeviceCaps {
        self.nature.caps
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        self.lent = self.take(1)?.pop();
        Ok(self.lent.as_ref().expect("one was taken").received(self.nature.lends))
    }

    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        let size = 1 + self.rng.below(self.nature.batch) as usize;
        let taken = self.take(size.min(most))?;
        let packets: Vec<_> = taken.iter().map(|packet| packet.received(self.nature.lends)).collect();
        take(RxBatch::new(&packets, &vec![&[][..]; packets.len()]));
        Ok(())
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let &OutgoingPacket { header, payload, segment_size, checksum } = packet;
        let Nature { room, losses, strays, ref counted, .. } = self.nature;
        if strays > 0 && self.rng.one_in(strays) {
            self.to = self.rng.below(self.outgoing.len() as u64) as usize;
        }
        let mut queue = Self::queue(&self.outgoing, self.to);
        if queue.packets.len() >= room {
            return Err(ErrorKind::WouldBlock.into());
        }
        if losses > 0 && self.rng.one_in(losses) {
            return Ok(());
        }
        let checksum = match checksum {
            TxChecksum::Complete => RxChecksum::Verify,
            TxChecksum::Partial { .. } => RxChecksum::Partial,
            TxChecksum::Omitted => RxChecksum::Trusted,
        };
        let bytes = counted.memory([header, payload[0], payload[1]].concat());
        queue.packets.push_back(Packet { bytes, segment_size, checksum });
        let reader = queue.reader.take();
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut queue = Self::queue(&self.incoming, self.own);
        if queue.packets.is_empty() {
            queue.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut queue = Self::queue(&self.outgoing, self.to);
        if queue.packets.len() >= self.nature.room {
            queue.writers.push(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}
