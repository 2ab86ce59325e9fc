//! State that the shards of a stack share: owners, which of them run, and each one's
//! [inbox](super::inbox).

use super::inbox::{Inbox, SteeredBatch};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Ordering};
use ackline_tcp_core::RxPacket;
use ackline_tcp_core::steering::{MAX_SHARDS, Steering};
use std::net::SocketAddr;
use std::task::Waker;

/// Shared by all shards. No lock is held for longer than it takes to exchange pointers, and none is
/// taken for a packet that has come to its owner's queue.
#[derive(Debug)]
pub(crate) struct Hub {
    steering: Steering,
    inboxes: Box<[Inbox]>,
    /// The shards that run, one bit each.
    alive: AtomicU64,
    /// Shards that may still have something to deliver, once no handle is left.
    busy: AtomicUsize,
    /// Shards are connected from in turn.
    next: AtomicUsize,
}

const _: () = assert!(MAX_SHARDS <= u64::BITS as usize);

/// The shards that run, as they were a moment ago.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveShards(u64);

impl LiveShards {
    pub(crate) const fn has(self, shard: usize) -> bool {
        self.0 >> shard & 1 != 0
    }

    /// Owner of what is steered to `shard`: another one if that shard has stopped, so that the peers
    /// of its connections get an RST, and new connections are accepted.
    pub(crate) const fn owner_of(self, shard: usize) -> usize {
        if self.has(shard) || self.0 == 0 {
            return shard;
        }
        // The next one above, or else the lowest.
        let above = self.0 & u64::MAX.wrapping_shl(shard as u32);
        (if above == 0 { self.0 } else { above }).trailing_zeros() as usize
    }
}

impl Hub {
    pub(crate) fn new(steering: Steering) -> Self {
        let shards = steering.shards();
        Self {
            steering,
            inboxes: (0..shards).map(|_| Inbox::default()).collect(),
            alive: AtomicU64::new(u64::MAX >> (u64::BITS as usize - shards)),
            busy: AtomicUsize::new(shards),
            next: AtomicUsize::new(0),
        }
    }

    pub(crate) fn alive(&self) -> LiveShards {
        LiveShards(self.alive.load(Ordering::Relaxed))
    }

    /// The shard that has a connection with this address and this local port.
    pub(crate) fn owner(&self, remote: SocketAddr, local: u16) -> usize {
        self.alive().owner_of(self.steering.shard_of(remote, local))
    }

    /// The shard to open the next connection.
    pub(crate) fn next(&self) -> usize {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.alive().owner_of(turn % self.inboxes.len())
    }

    pub(crate) const fn shards(&self) -> usize {
        self.steering.shards()
    }

    /// There is something for a shard to do that no packet tells it of.
    pub(crate) fn wake(&self, shard: usize) {
        if let Some(sleeper) = self.inbox(shard).and_then(Inbox::wake) {
            sleeper.wake();
        }
    }

    pub(crate) fn inbox(&self, shard: usize) -> Option<&Inbox> {
        self.inboxes.get(shard)
    }

    /// Packets that were dropped because their shard did not keep up, or had stopped.
    pub(crate) fn dropped(&self, shard: usize) -> u64 {
        self.inbox(shard).map_or(0, Inbox::dropped)
    }

    /// The drivers that sleep.
    fn sleepers(&self) -> impl Iterator<Item = Waker> {
        self.inboxes.iter().filter_map(Inbox::take_waker)
    }
}

/// One shard's side of the hub.
#[derive(Debug)]
pub(crate) struct HubPort {
    hub: Arc<Hub>,
    /// Which shard it is.
    pub(crate) index: usize,
    /// For each shard, packets that it gets once the device's batch is read.
    batches: Box<[SteeredBatch]>,
    /// The shards for which there is something, one bit each.
    waiting: u64,
    /// Packets handed to others, and taken from them.
    pub(crate) handed: u64,
    pub(crate) taken: u64,
    /// It has nothing left to deliver, or does not run.
    idle: bool,
}

impl HubPort {
    pub(crate) fn new(hub: Arc<Hub>, index: usize) -> Self {
        let batches = (0..hub.inboxes.len()).map(|_| SteeredBatch::default()).collect();
        Self { hub, index, batches, waiting: 0, handed: 0, taken: 0, idle: false }
    }

    pub(crate) fn alive(&self) -> LiveShards {
        self.hub.alive()
    }

    /// The shard that has a received packet.
    #[inline]
    pub(crate) fn owner(&self, alive: LiveShards, packet: &RxPacket<'_>) -> usize {
        alive.owner_of(self.hub.steering.shard_for(packet))
    }

    /// Copies a packet for its owner, who gets it with [`deliver`](Self::deliver).
    pub(crate) fn hand_over(&mut self, owner: usize, link: &[u8], packet: &RxPacket<'_>) {
        if let Some(batch) = self.batches.get_mut(owner) {
            batch.add(link, packet);
            self.waiting |= 1 << owner;
            self.handed += 1;
        }
    }

    /// Delivers the packets of other shards: the device's batch is read.
    pub(crate) fn deliver(&mut self) {
        while self.waiting != 0 {
            let owner = self.waiting.trailing_zeros() as usize;
            self.waiting &= self.waiting - 1;
            if let (Some(inbox), Some(batch)) = (self.hub.inbox(owner), self.batches.get_mut(owner))
                && let Some(sleeper) = inbox.deliver(batch)
            {
                sleeper.wake();
            }
        }
    }

    /// The next batch for this shard.
    pub(crate) fn take(&mut self) -> Option<SteeredBatch> {
        let batch = self.hub.inbox(self.index)?.take()?;
        self.taken += batch.len() as u64;
        Some(batch)
    }

    /// Bytes that wait for this shard.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.hub.inbox(self.index).map_or(0, Inbox::waiting_bytes)
    }

    pub(crate) fn give_back(&self, batch: SteeredBatch) {
        if let Some(inbox) = self.hub.inbox(self.index) {
            inbox.give_back(batch);
        }
    }

    /// The other shards look whether they have to make room.
    pub(crate) fn call_others(&self) {
        (0..self.hub.shards()).filter(|shard| *shard != self.index).for_each(|shard| self.hub.wake(shard));
    }

    /// The driver is about to sleep; false if there is something for it.
    pub(crate) fn sleep(&self, waker: &Waker) -> bool {
        self.hub.inbox(self.index).is_none_or(|inbox| inbox.sleep(waker))
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.hub.dropped(self.index)
    }

    /// This shard has nothing left to deliver, and there is no handle. It has to run as long as
    /// others have something, because their packets may come to its queue. True if none has.
    pub(crate) fn rest(&mut self) -> bool {
        if !std::mem::replace(&mut self.idle, true) && self.hub.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.hub.sleepers().for_each(Waker::wake);
        }
        self.hub.busy.load(Ordering::Acquire) == 0
    }

    /// This shard has stopped: its connections are gone, and others answer for it.
    pub(crate) fn stop(&mut self) {
        self.hub.alive.fetch_and(!(1 << self.index), Ordering::AcqRel);
        if let Some(inbox) = self.hub.inbox(self.index) {
            inbox.close();
        }
        self.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belonged_to_a_shard_that_has_stopped_goes_to_the_next_one() {
        let alive = LiveShards(0b1011);
        let owners: Vec<_> = (0..4).map(|shard| alive.owner_of(shard)).collect();
        assert_eq!(owners, [0, 1, 3, 3]);
        assert_eq!(LiveShards(0b0011).owner_of(3), 0);
        assert_eq!(LiveShards(0).owner_of(2), 2, "nobody");
        assert_eq!(LiveShards(1 << 63).owner_of(0), 63);
    }

    #[test]
    fn the_last_shard_to_rest_ends_all() {
        let hub = Arc::new(Hub::new(Steering::new(3, &[0; 32])));
        let mut hub_ports: Vec<_> = (0..3).map(|index| HubPort::new(hub.clone(), index)).collect();
        assert!(!hub_ports[0].rest() && !hub_ports[0].rest(), "once is enough");
        hub_ports[1].stop();
        assert!(!hub_ports[0].rest());
        assert!(hub_ports[2].rest() && hub_ports[0].rest());
    }
}
