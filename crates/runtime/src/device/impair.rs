//! A device behind an impaired path: loses, duplicates, reorders, delays, rate-limits and corrupts
//! packets, from a seed.
//!
//! For tests between a stack and a peer that cannot be simulated. It runs in real time, so two runs
//! with one seed draw the same fates but may apply them to different packets.

use super::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxChecksum, RxPacket, TxChecksum};
use crate::timer::{self, Timer};
use ackline_tcp_core::wire::gso::{self, Segments};
use ackline_tcp_core::wire::{HeaderBuf, TxChecksumMode};
use ackline_tcp_core::{Duration, Instant, Rate};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

/// Impairments of one direction. Shares are percentages, 0 to 100, drawn independently for each
/// packet; the default changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Impairment {
    /// Share of packets that never arrive.
    pub loss: f64,
    /// Share of packets that arrive twice.
    pub duplicate: f64,
    /// Share of packets that are delayed by [`reorder_by`](Self::reorder_by), so that later ones
    /// overtake them.
    pub reorder: f64,
    /// Extra delay of a reordered packet.
    pub reorder_by: Duration,
    /// Share of packets in which one bit, anywhere from the IP header on, is flipped.
    pub corrupt: f64,
    /// Delay of every packet.
    pub delay: Duration,
    /// Maximum random extra delay, drawn for each packet; it may reorder packets.
    pub jitter: Duration,
    /// Rate of the path in IP bytes: packets that are not lost queue for it before they are
    /// delayed. `None`: unlimited.
    pub rate: Option<Rate>,
    /// The path stalls from time to time, without loss.
    pub stall: Stall,
}

/// A path that stalls periodically: packets that arrive during a stall leave when it ends, in
/// order. The first period begins with the first packet. The default never stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stall {
    /// Time for which packets pass.
    pub every: Duration,
    /// Duration of the stall that follows; zero: no stalls.
    pub lasts: Duration,
}

impl Stall {
    /// When a packet that arrives `at` leaves, if the first period began at `began`.
    fn passes(self, began: Instant, at: Instant) -> Instant {
        let Self { every, lasts } = self;
        let period = every.saturating_add(lasts).as_nanos();
        if lasts == Duration::ZERO {
            return at;
        }
        let phase = Duration::from_nanos(at.since(began).as_nanos() % period);
        if phase < every { at } else { at + Duration::from_nanos(period - phase.as_nanos()) }
    }
}

/// How to impair a device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ImpairConfig {
    /// Impairment of sent packets.
    pub outgoing: Impairment,
    /// Impairment of received packets.
    pub incoming: Impairment,
    /// Unit that counts as one packet.
    pub super_packets: SuperPackets,
    /// Maximum packets queued in each direction, at least 1. If the queue is full, sends find the
    /// device full, and receives leave further packets in the device.
    pub queue_packets: usize,
    /// Seed of all random draws.
    pub seed: u64,
}

impl ImpairConfig {
    /// The same impairment in both directions; super-packets are segmented, and queues hold 10,000
    /// packets.
    #[must_use]
    pub const fn both(impairment: Impairment, seed: u64) -> Self {
        Self {
            outgoing: impairment,
            incoming: impairment,
            super_packets: SuperPackets::Cut,
            queue_packets: 10_000,
            seed,
        }
    }
}

/// How super-packets are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SuperPackets {
    /// Segmented into wire packets with complete checksums; each has its own fate.
    #[default]
    Cut,
    /// Lost, duplicated, reordered and delayed as one. A super-packet drawn for corruption is
    /// segmented, and one of its packets corrupted, since nobody verifies the checksums inside a
    /// super-packet.
    Whole,
}

/// A device behind an impaired path. Packets that the inner device refuses after the path are lost.
///
/// Until the first wait, delayed packets are only released by sends and receives.
#[derive(Debug)]
pub struct Impaired<D> {
    inner: D,
    super_packets: SuperPackets,
    queue_packets: usize,
    outgoing: Lane<TxChecksum>,
    incoming: Lane<RxChecksum>,
    /// The device was full when a packet was due.
    blocked: bool,
    timer: Option<Timer>,
    /// The task that waits for packets; a send may queue one that it must wait for.
    waiter: Option<Waker>,
    /// What [`Device::try_recv`] lent out last.
    lent: Vec<u8>,
}

impl<D: Device> Impaired<D> {
    /// Puts the path in front of `inner`.
    #[must_use]
    pub fn new(inner: D, config: ImpairConfig) -> Self {
        let ImpairConfig { outgoing, incoming, super_packets, queue_packets, seed } = config;
        Self {
            inner,
            super_packets,
            queue_packets: queue_packets.max(1),
            outgoing: Lane::new(outgoing, seed, 0),
            incoming: Lane::new(incoming, seed, 1),
            blocked: false,
            timer: None,
            waiter: None,
            lent: Vec::new(),
        }
    }

    /// A handle to read the counters after the device has been given to a stack.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        Monitor { outgoing: self.outgoing.tally.clone(), incoming: self.incoming.tally.clone() }
    }

    /// Sends the packets that are due.
    fn release(&mut self, now: Instant) {
        self.blocked = false;
        while let Some(entry) = self.outgoing.waiting.first_entry()
            && entry.key().0 <= now
        {
            let Packet { bytes, header, segment_size, checksum } = entry.get();
            // `header` was the length of a part of `bytes`.
            let (header, payload) = bytes.split_at(*header);
            match self.inner.try_send(
                &OutgoingPacket::new(header, [payload, &[]])
                    .with_segment_size(*segment_size)
                    .with_checksum(*checksum),
            ) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return;
                }
                Err(_) => {
                    self.outgoing.tally.lost.fetch_add(1, Ordering::Relaxed);
                }
                Ok(()) => {}
            }
            entry.remove();
        }
    }

    /// Takes what the device has received.
    fn collect(&mut self, now: Instant) -> io::Result<()> {
        while self.incoming.waiting.len() < self.queue_packets {
            let packet = match self.inner.try_recv() {
                Ok(packet) => packet,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let bytes = [packet.head, packet.more[0], packet.more[1]].concat();
            let (segment_size, checksum) = (packet.segment_size, packet.checksum);
            let whole = Packet { header: bytes.len(), segment_size, checksum, bytes };
            self.incoming.enter(now, whole, self.super_packets, RxChecksum::Verify);
        }
        Ok(())
    }

    /// Waits for the next release. Ready if it has come.
    fn poll_release(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outgoing = if self.blocked { None } else { self.outgoing.next_release() };
        let next =
            [outgoing, self.incoming.next_release().filter(|&at| at > now)].into_iter().flatten().min();
        let timer = match &mut self.timer {
            Some(timer) => timer,
            None => self.timer.insert(Timer::new()?),
        };
        timer.arm(next)?;
        if timer.poll_expired(cx)?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        if self.blocked { self.inner.poll_writable(cx) } else { Poll::Pending }
    }
}

impl<D: Device> Device for Impaired<D> {
    fn caps(&self) -> DeviceCaps {
        self.inner.caps()
    }

    fn local_ports(&self) -> Option<RangeInclusive<u16>> {
        self.inner.local_ports()
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let now = timer::now();
        self.release(now);
        self.collect(now)?;
        let due = self.incoming.waiting.first_entry().filter(|entry| entry.key().0 <= now);
        let Some(due) = due else { return Err(io::ErrorKind::WouldBlock.into()) };
        let Packet { bytes, segment_size, checksum, .. } = due.remove();
        self.lent = bytes;
        Ok(RxPacket::new(&self.lent).with_segment_size(segment_size).with_checksum(checksum))
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        self.caps().admit(packet)?;
        let now = timer::now();
        self.release(now);
        if self.outgoing.waiting.len() >= self.queue_packets {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let &OutgoingPacket { header, segment_size, checksum, .. } = packet;
        let packet = Packet { bytes: packet.to_vec(), header: header.len(), segment_size, checksum };
        self.outgoing.enter(now, packet, self.super_packets, TxChecksum::Complete);
        self.release(now);
        if !self.outgoing.waiting.is_empty()
            && let Some(waiter) = self.waiter.take()
        {
            waiter.wake();
        }
        Ok(())
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let now = timer::now();
            self.release(now);
            self.collect(now)?;
            if self.incoming.next_release().is_some_and(|at| at <= now) {
                return Poll::Ready(Ok(()));
            }
            let mut ready = self.poll_release(now, cx)?.is_ready();
            if self.incoming.waiting.len() < self.queue_packets {
                ready |= self.inner.poll_readable(cx)?.is_ready();
            }
            if !ready {
                self.waiter = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let now = timer::now();
            self.release(now);
            if self.outgoing.waiting.len() < self.queue_packets {
                return Poll::Ready(Ok(()));
            }
            if self.poll_release(now, cx)?.is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// The inner device's statistics.
    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }
}

/// A handle to the counters of an [`Impaired`] device.
#[derive(Clone, Debug)]
pub struct Monitor {
    outgoing: Arc<Tally>,
    incoming: Arc<Tally>,
}

impl Monitor {
    /// Counters of packets that were sent.
    #[must_use]
    pub fn outgoing(&self) -> ImpairStats {
        self.outgoing.read()
    }

    /// Counters of packets that were received.
    #[must_use]
    pub fn incoming(&self) -> ImpairStats {
        self.incoming.read()
    }
}

/// Counters of one direction, in packets. A packet may be counted under several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ImpairStats {
    /// Packets that entered the path.
    pub packets: u64,
    /// Lost, or refused by the inner device.
    pub lost: u64,
    /// Duplicated.
    pub duplicated: u64,
    /// Delayed to be overtaken.
    pub reordered: u64,
    /// Corrupted.
    pub corrupted: u64,
    /// Held by a stall.
    pub stalled: u64,
}

#[derive(Debug, Default)]
struct Tally {
    packets: AtomicU64,
    lost: AtomicU64,
    duplicated: AtomicU64,
    reordered: AtomicU64,
    corrupted: AtomicU64,
    stalled: AtomicU64,
}

impl Tally {
    fn read(&self) -> ImpairStats {
        let Self { packets, lost, duplicated, reordered, corrupted, stalled } = self;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ImpairStats {
            packets: read(packets),
            lost: read(lost),
            duplicated: read(duplicated),
            reordered: read(reordered),
            corrupted: read(corrupted),
            stalled: read(stalled),
        }
    }
}

/// One packet on the path.
#[derive(Clone, Debug)]
struct Packet<C> {
    bytes: Vec<u8>,
    /// Length of the part that is sent as its headers.
    header: usize,
    segment_size: Option<NonZeroU16>,
    checksum: C,
}

/// The random draws of one packet.
#[derive(Clone, Copy, Debug)]
struct Fate {
    lost: bool,
    duplicated: bool,
    reordered: bool,
    corrupted: bool,
    /// Between 0 and 2^32.
    jitter: u32,
    /// Which bit to flip, and in which packet of a super-packet; taken modulo their number.
    victim: u64,
}

/// One direction of the path.
#[derive(Debug)]
struct Lane<C> {
    impairment: Impairment,
    rng: ChaCha8Rng,
    /// By release time, then by order of entry.
    waiting: BTreeMap<(Instant, u64), Packet<C>>,
    entered: u64,
    /// When the last packet has passed the rate limit, if there is one.
    busy_until: Instant,
    /// When the first packet came.
    began: Option<Instant>,
    tally: Arc<Tally>,
}

impl<C: Copy + PartialEq> Lane<C> {
    fn new(impairment: Impairment, seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self {
            impairment,
            rng,
            waiting: BTreeMap::new(),
            entered: 0,
            busy_until: Instant::ZERO,
            began: None,
            tally: Arc::default(),
        }
    }

    fn next_release(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Draws the fate of a packet, or of each packet of a super-packet, and applies it. `complete`
    /// marks a complete checksum.
    fn enter(&mut self, now: Instant, packet: Packet<C>, super_packets: SuperPackets, complete: C) {
        if packet.segment_size.is_some() && super_packets == SuperPackets::Cut {
            // What cannot be segmented is not TCP, and useless to the receiver.
            if let Some(packets) = cut(&packet, complete) {
                for packet in packets {
                    self.enter_one(now, packet, complete);
                }
            }
        } else {
            self.enter_one(now, packet, complete);
        }
    }

    fn enter_one(&mut self, now: Instant, packet: Packet<C>, complete: C) {
        let Fate { lost, duplicated, reordered, corrupted, jitter, victim } = self.draw();
        let Impairment { delay, jitter: widest, reorder_by, rate, stall, .. } = self.impairment;
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        count(&self.tally.packets);
        if lost {
            count(&self.tally.lost);
            return;
        }
        let passes = stall.passes(*self.began.get_or_insert(now), now);
        if passes > now {
            count(&self.tally.stalled);
        }
        let passed = rate.map_or(passes, |rate| {
            self.busy_until = self.busy_until.max(passes) + rate.time_for(packet.bytes.len() as u64);
            self.busy_until
        });
        let mut release = passed + delay;
        if widest > Duration::ZERO {
            let share = (u128::from(widest.as_nanos()) * u128::from(jitter)) >> 32;
            // A share of `widest`, which is a u64.
            release += Duration::from_nanos(share as u64);
        }
        if reordered {
            count(&self.tally.reordered);
            release += reorder_by;
        }
        let packets = if corrupted {
            let Some(packets) = damage(packet, complete, victim) else {
                count(&self.tally.lost);
                return;
            };
            count(&self.tally.corrupted);
            packets
        } else {
            vec![packet]
        };
        if duplicated {
            count(&self.tally.duplicated);
            for packet in &packets {
                self.hold(release, packet.clone());
            }
        }
        for packet in packets {
            self.hold(release, packet);
        }
    }

    fn hold(&mut self, release: Instant, packet: Packet<C>) {
        self.waiting.insert((release, self.entered), packet);
        self.entered += 1;
    }

    /// Draws the same number of values for every packet, so that changing one share does not shift
    /// the other draws.
    fn draw(&mut self) -> Fate {
        let Impairment { loss, duplicate, reorder, corrupt, .. } = self.impairment;
        let mut hit = |percent: f64| f64::from(self.rng.next_u32()) < percent / 100.0 * 4_294_967_296.0;
        let (lost, duplicated, reordered, corrupted) =
            (hit(loss), hit(duplicate), hit(reorder), hit(corrupt));
        Fate {
            lost,
            duplicated,
            reordered,
            corrupted,
            jitter: self.rng.next_u32(),
            victim: self.rng.next_u64(),
        }
    }
}

/// The wire packets of a packet, with complete checksums; `None` if it is no TCP packet.
fn cut<C: Copy>(packet: &Packet<C>, complete: C) -> Option<Vec<Packet<C>>> {
    let whole = RxPacket::new(&packet.bytes).with_segment_size(packet.segment_size);
    let mut segments: Segments<'_> = gso::split_received(&whole, TxChecksumMode::Complete).ok()?;
    let mut buf = HeaderBuf::new();
    let mut packets = Vec::with_capacity(segments.remaining());
    while let Some((emitted, payload)) = segments.next_into(&mut buf) {
        let [a, b, c] = payload.slices();
        let bytes = [buf.as_slice(), a, b, c].concat();
        packets.push(Packet { bytes, header: emitted.header_len, segment_size: None, checksum: complete });
    }
    Some(packets)
}

/// Flips one bit, in one of the wire packets if it is a super-packet. The checksum is completed
/// first, so that the receiver can detect the corruption. `None` if that is impossible.
fn damage<C: Copy + PartialEq>(packet: Packet<C>, complete: C, victim: u64) -> Option<Vec<Packet<C>>> {
    let mut packets = if packet.checksum == complete && packet.segment_size.is_none() {
        vec![packet]
    } else {
        cut(&packet, complete)?
    };
    // Remainders of a 64-bit number by small ones; both are below the lengths.
    let which = (victim % packets.len() as u64) as usize;
    let bytes = &mut packets.get_mut(which)?.bytes;
    let bit = ((victim >> 16) % (bytes.len() as u64 * 8)) as usize;
    bytes[bit / 8] ^= 1 << (bit % 8);
    Some(packets)
}

#[cfg(test)]
mod tests;
