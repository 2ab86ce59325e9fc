//! Packets handed from one shard to another.
//!
//! A shard that receives packets of other shards collects them in a [`SteeredBatch`] for each owner,
//! and delivers these when it has read its device: each delivery is one lock, held while pointers
//! move, and one wake-up, however many packets. Buffers are reused, so nothing is allocated in the
//! long run.
//!
//! The owner takes all batches in its turn. Before it sleeps it calls [`Inbox::sleep`], which fails
//! if something has come: a delivery finds either a waker, or an owner that will look again. The
//! tests try all orders of these steps, and `tests/models` schedules of threads that take them.

use crate::sync::{Mutex, MutexGuard, PoisonError};
use ackline_tcp_core::RxPacket;
use ackline_tcp_core::wire::RxChecksum;
use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::task::Waker;

/// Maximum number of bytes that wait for a shard: a TUN device's worth of super-packets for some
/// hundred connections.
const MOST_BYTES: usize = 32 << 20;
/// Maximum number of packets that wait for a shard.
const MOST_PACKETS: usize = 32_768;
/// Empty batches that are kept for reuse.
const MOST_SPARE: usize = 4;
/// Capacity in bytes beyond which an empty batch is freed.
const MOST_KEPT: usize = 1 << 20;

/// Packets for one shard, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct SteeredBatch {
    /// Each packet, behind its link header if there is an observer.
    bytes: Vec<u8>,
    packets: Vec<PacketMeta>,
}

/// One packet of a batch.
#[derive(Clone, Copy, Debug)]
struct PacketMeta {
    /// Bytes of the link's header, and of the packet.
    link: u16,
    len: u32,
    segment_size: Option<NonZeroU16>,
    checksum: RxChecksum,
}

impl SteeredBatch {
    /// Copies a packet into the batch.
    pub(crate) fn add(&mut self, link: &[u8], packet: &RxPacket<'_>) {
        let [second, third] = packet.more;
        for part in [link, packet.head, second, third] {
            self.bytes.extend_from_slice(part);
        }
        self.packets.push(PacketMeta {
            link: link.len() as u16,
            len: packet.len() as u32,
            segment_size: packet.segment_size,
            checksum: packet.checksum,
        });
    }

    pub(crate) const fn len(&self) -> usize {
        self.packets.len()
    }

    /// The packets, each with the header of its link.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], RxPacket<'_>)> {
        let mut rest = &self.bytes[..];
        self.packets.iter().map(move |&PacketMeta { link, len, segment_size, checksum }| {
            let (link, behind) = rest.split_at(link.into());
            let (head, behind) = behind.split_at(len as usize);
            rest = behind;
            (link, RxPacket::new(head).with_segment_size(segment_size).with_checksum(checksum))
        })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.packets.clear();
    }
}

/// Packets and requests that wait for one shard.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<SteeredBatch>,
    packets: usize,
    bytes: usize,
    spare: Vec<SteeredBatch>,
    /// The owner's driver, while it sleeps.
    waker: Option<Waker>,
    /// There is something for the owner elsewhere.
    woken: bool,
    /// The owner does not run any more.
    closed: bool,
    /// Packets that found no room, or no owner.
    dropped: u64,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Only the allocator can panic under the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers a batch, which is empty after it. Returns the owner's driver if it sleeps. What
    /// has no room is dropped, as by a full device queue, and counted.
    pub(crate) fn deliver(&self, batch: &mut SteeredBatch) -> Option<Waker> {
        let mut queue = self.lock();
        let full = queue.packets + batch.len() > MOST_PACKETS || queue.bytes + batch.bytes.len() > MOST_BYTES;
        if queue.closed || (full && !queue.batches.is_empty()) {
            queue.dropped += batch.len() as u64;
            batch.clear();
        } else {
            queue.packets += batch.len();
            queue.bytes += batch.bytes.len();
            let empty = queue.spare.pop().unwrap_or_default();
            queue.batches.push_back(std::mem::replace(batch, empty));
        }
        queue.waker.take()
    }

    /// There is something for the owner elsewhere. Returns its driver if it sleeps.
    pub(crate) fn wake(&self) -> Option<Waker> {
        let mut queue = self.lock();
        queue.woken = true;
        queue.waker.take()
    }

    /// The batch that has waited longest. The caller checks for further ones afterwards.
    pub(crate) fn take(&self) -> Option<SteeredBatch> {
        let mut queue = self.lock();
        queue.woken = false;
        let batch = queue.batches.pop_front()?;
        queue.packets -= batch.len();
        queue.bytes -= batch.bytes.len();
        Some(batch)
    }

    /// Bytes that wait.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Takes a batch back for reuse.
    pub(crate) fn give_back(&self, mut batch: SteeredBatch) {
        batch.clear();
        if batch.bytes.capacity() > MOST_KEPT {
            return;
        }
        let mut queue = self.lock();
        if queue.spare.len() < MOST_SPARE {
            queue.spare.push(batch);
        }
    }

    /// The owner is about to sleep, and is woken by the next delivery; false if something has come.
    pub(crate) fn sleep(&self, waker: &Waker) -> bool {
        let mut queue = self.lock();
        if !queue.batches.is_empty() || queue.woken {
            return false;
        }
        match &mut queue.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        true
    }

    /// The owner's driver, if it sleeps.
    pub(crate) fn take_waker(&self) -> Option<Waker> {
        self.lock().waker.take()
    }

    /// The owner has stopped: what waits, and what comes, is dropped.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        queue.dropped += queue.packets as u64;
        (queue.packets, queue.bytes) = (0, 0);
        queue.batches.clear();
        queue.spare.clear();
        queue.waker = None;
    }

    /// Packets that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    fn batch(packets: usize, bytes: usize) -> SteeredBatch {
        let mut batch = SteeredBatch::default();
        for _ in 0..packets {
            batch.add(&[], &RxPacket::new(&vec![1; bytes]));
        }
        batch
    }

    #[test]
    fn packets_come_out_as_they_went_in() {
        let inbox = Inbox::default();
        let mut batch = SteeredBatch::default();
        let first = RxPacket::new(&[1, 2]).with_more([&[3], &[4, 5]]).with_segment_size(NonZeroU16::new(2));
        batch.add(&[9, 9], &first);
        batch.add(&[], &RxPacket::new(&[6]).with_checksum(RxChecksum::Partial));
        assert!(inbox.deliver(&mut batch).is_none());
        assert_eq!(batch.len(), 0);
        let taken = inbox.take().expect("a batch");
        let packets: Vec<_> = taken.iter().collect();
        let (link, packet) = packets[0];
        assert_eq!(
            (link, packet.head, packet.segment_size),
            (&[9, 9][..], &[1, 2, 3, 4, 5][..], NonZeroU16::new(2))
        );
        let (link, packet) = packets[1];
        assert_eq!((link, packet.head, packet.checksum), (&[][..], &[6][..], RxChecksum::Partial));
        assert!(inbox.take().is_none());
    }

    #[test]
    fn what_waits_is_bounded_in_packets_and_bytes() {
        let inbox = Inbox::default();
        inbox.deliver(&mut batch(MOST_PACKETS, 1));
        inbox.deliver(&mut batch(1, 1));
        assert_eq!(inbox.dropped(), 1);
        assert_eq!(inbox.take().map(|batch| batch.len()), Some(MOST_PACKETS));
        inbox.deliver(&mut batch(1, MOST_BYTES));
        inbox.deliver(&mut batch(3, 1));
        assert_eq!(inbox.dropped(), 4);
        inbox.close();
        assert_eq!(inbox.dropped(), 5, "nobody takes it any more");
        inbox.deliver(&mut batch(1, 1));
        assert!(inbox.take().is_none());
        assert_eq!(inbox.dropped(), 6);
    }

    /// Somebody who notes that he has been woken.
    #[derive(Default)]
    struct Bell(AtomicBool);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// The steps of an owner and of senders, each of which is one operation of the inbox, in an
    /// order that `choose` decides among those that can go on. Returns how many packets the owner
    /// had when nobody could.
    fn play(senders: usize, batches: usize, mut choose: impl FnMut(usize) -> usize) -> usize {
        let inbox = Inbox::default();
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        // What each sender still has to deliver, and whom it has to wake.
        let mut senders: Vec<(usize, Option<Waker>)> = vec![(batches, None); senders];
        let (mut asleep, mut tired, mut taken) = (false, false, 0);
        loop {
            let mut able: Vec<Option<usize>> = Vec::new();
            able.extend(
                (0..senders.len()).filter(|at| senders[*at].0 > 0 || senders[*at].1.is_some()).map(Some),
            );
            if !asleep || bell.0.load(Ordering::Relaxed) {
                able.push(None);
            }
            if able.is_empty() {
                return taken;
            }
            match able[choose(able.len())] {
                Some(at) => {
                    let (left, sleeper) = &mut senders[at];
                    match sleeper.take() {
                        Some(sleeper) => sleeper.wake(),
                        None => {
                            *left -= 1;
                            *sleeper = inbox.deliver(&mut batch(1, 1));
                        }
                    }
                }
                None if asleep => {
                    bell.0.store(false, Ordering::Relaxed);
                    (asleep, tired) = (false, false);
                }
                None if tired => {
                    asleep = inbox.sleep(&waker);
                    tired = false;
                }
                None => match inbox.take() {
                    Some(batch) => taken += batch.len(),
                    None => tired = true,
                },
            }
        }
    }

    /// All operations take the one lock, so their orders are all that can happen.
    #[test]
    fn no_order_of_steps_loses_a_wake_up() {
        let (mut choices, mut orders) = (Vec::<(usize, usize)>::new(), 0_u32);
        loop {
            let mut step = 0;
            let taken = play(2, 2, |able| {
                if step == choices.len() {
                    choices.push((0, able));
                }
                step += 1;
                choices[step - 1].0
            });
            assert_eq!(taken, 4, "{choices:?}");
            orders += 1;
            // The next order: the last choice that has another alternative takes it.
            while choices.pop_if(|(chosen, able)| *chosen + 1 == *able).is_some() {}
            match choices.last_mut() {
                Some((chosen, _)) => *chosen += 1,
                None => break,
            }
        }
        assert!(orders > 1_000, "{orders} orders");
    }

    /// A generator of random choices.
    fn random(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed | 1;
        move |among| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % among
        }
    }

    fn random_orders(number: u64) {
        let mut seed = crate::platform::random::seed().expect("random numbers");
        seed[8..].fill(0);
        let seed = u64::from_le_bytes(*seed.first_chunk().expect("eight bytes"));
        println!("seed {seed}");
        let mut choose = random(seed);
        for round in 0..number {
            let (senders, batches) = (1 + choose(4), 1 + choose(6));
            assert_eq!(play(senders, batches, &mut choose), senders * batches, "seed {seed}, round {round}");
        }
    }

    #[test]
    fn random_orders_of_more_senders_lose_no_wake_up() {
        random_orders(20_000);
    }

    #[test]
    #[ignore = "slow: a million orders"]
    fn a_million_random_orders_lose_no_wake_up() {
        random_orders(1_000_000);
    }

    #[test]
    fn a_buffer_is_filled_again_unless_it_is_large() {
        let inbox = Inbox::default();
        inbox.give_back(batch(1, MOST_KEPT + 1));
        assert!(inbox.lock().spare.is_empty());
        inbox.give_back(batch(1, 100));
        let mut batch = batch(1, 1);
        inbox.deliver(&mut batch);
        assert!(batch.bytes.capacity() >= 100);
    }
}
