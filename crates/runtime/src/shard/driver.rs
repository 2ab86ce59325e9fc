//! The task that drives one endpoint: packets in, deadlines, packets out, events, sleep.

use super::Shard;
use super::hub::Links;
use super::state::{By, DepartureWait, Port, StackState};
use super::stint::{Stint, work};
use crate::pacing::{Wait, let_others_run};
use crate::timer;
use crate::wakes::{Wakes, store};
use crate::workers::has_workers;
use ackline_tcp_core::{Duration, Instant, RxPacket};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Maximum packets received per turn before they are answered.
const RX_BATCH: usize = 128;

/// Bytes after which a turn answers although more packets wait, since a peer with a full window
/// waits for the ACK. ACKs are expensive: on a TUN device the kernel's sender processes the ACK,
/// and sends, inside the write call that carries it.
const RX_BATCH_BYTES: usize = 1 << 20;

/// Longest time that the ACK of bulk data waits for more of it. It is worth that much to save an
/// ACK, which the kernel's sender processes inside the write that carries it, and to save going to
/// sleep and being woken.
const GATHER_TIME: Duration = Duration::from_micros(20);
/// Bytes that justify all of [`GATHER_TIME`], so that a slow stream of single packets does not keep
/// the driver awake.
const GATHER_WORTH: usize = 1 << 16;
/// Bytes after which the ACK waits no longer.
const GATHER_BYTES: usize = 1 << 18;

/// Mean packet size of a turn up to which ACKs may wait for the application's answer.
const SMALL_PACKET: usize = 512;

/// The future that drives a [`Stack`](crate::Stack);
/// [`Builder::spawn`](crate::stack::Builder::spawn) hands it to tokio.
///
/// It ends with `Ok` when the last handle (stack, listener, stream) is dropped and only connections
/// in TIME-WAIT are left, and with the device's error if the device fails. If it is dropped
/// earlier, every handle returns errors.
///
/// On a runtime with worker threads it hands the stack over to the applications that a turn woke:
/// the last of them runs the next turn in the call in which it would wait.
///
/// **Each turn: send what pacing held back until now; receive a batch of packets, all with one time
/// stamp; serve expired deadlines; send; report events; set the timer. Then sleep until the device
/// is readable, the timer expires, a full device is writable, or an application leaves work
/// behind.** Pure ACKs for a turn of small packets wait until the tasks it woke have run, so that
/// they can piggyback on their answers; those for bulk data wait for some microseconds while the
/// device is polled, so that one ACK covers more. An idle stack uses no processor time, unless
/// [`Builder::busy_poll`](crate::stack::Builder::busy_poll) or
/// [`Builder::pacing`](crate::stack::Builder::pacing) say so.
#[derive(Debug)]
#[must_use = "nothing moves unless the driver is polled"]
pub struct Driver {
    shard: Arc<Shard>,
    wakes: Wakes,
    /// Since when the driver has been waiting for a departure without sleeping.
    awake_since: Option<Instant>,
    /// Its runtime has worker threads; known from the first turn on.
    workers: Option<bool>,
    stint: Stint,
}

impl Driver {
    pub(crate) fn new(shard: Arc<Shard>) -> Self {
        Self { shard, wakes: Wakes::default(), awake_since: None, workers: None, stint: Stint::new() }
    }
}

impl Future for Driver {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shard, wakes, awake_since, workers, stint } = self.get_mut();
        if !stint.goes_on(cx, timer::now) {
            return Poll::Pending;
        }
        let mut held = None;
        loop {
            let outcome = {
                let crowded = *workers.get_or_insert_with(|| {
                    let workers = has_workers();
                    if workers {
                        shard.crowd();
                    }
                    workers
                });
                // What departs now is late already.
                let mut state = if held.is_some() { shard.lock() } else { ready!(shard.poll_lock(cx)) };
                if crowded {
                    let now = timer::now();
                    if state.is_handed_over(now, cx) {
                        store(&mut state.driver, cx.waker());
                        return Poll::Pending;
                    }
                    state.handover.on_driver(now, cx.waker());
                }
                if held.is_none()
                    && awake_since.is_none()
                    && stint.is_over(cx, std::mem::take(&mut state.work), timer::now)
                {
                    // A device that is never empty is not asked otherwise, and learns only when it is
                    // asked what has become of its interface. Its errors come again with the next
                    // packet.
                    _ = state.device.device.poll_readable(cx);
                    return Poll::Pending;
                }
                let yielded = awake_since.is_some();
                if let Some(since) = awake_since.take() {
                    let took = timer::now().since(since);
                    state.meters.awake = state.meters.awake.saturating_add(took);
                }
                let decided = state.last;
                let outcome = state.turn(cx, wakes, held);
                if yielded && held.is_none() {
                    state.waiter.on_turn(timer::now().since(decided));
                }
                outcome
            };
            wakes.wake_all();
            let wait = match outcome {
                Turn::Ended(result) => return Poll::Ready(result),
                Turn::Again => {
                    // After the tasks woken by this turn, so that a flood of packets starves
                    // nobody.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Turn::HandedOver => return Poll::Pending,
                Turn::Wait(wait) => wait,
            };
            match wait {
                Some(Wait::Sleep(_)) | None => return Poll::Pending,
                Some(Wait::Hold(until, departs)) if held.is_none() => {
                    *awake_since = Some(timer::now());
                    held = Some(DepartureWait { ended: timer::spin_until(until), departs });
                }
                Some(Wait::Yield | Wait::Hold(..)) => {
                    *awake_since = Some(timer::now());
                    let_others_run(cx);
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shard.lock().stop("the stack's driver was dropped".to_owned(), &mut self.wakes);
        self.wakes.wake_all();
    }
}

/// What to do after a turn.
#[derive(Debug)]
pub(super) enum Turn {
    /// The stack has ended.
    Ended(io::Result<()>),
    /// Run another turn at once.
    Again,
    /// The applications that this turn woke run the next one.
    HandedOver,
    /// How to wait; `None` if there is no deadline.
    Wait(Option<Wait>),
}

/// What a turn received from the device.
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    packets: usize,
    bytes: usize,
    /// Packets of other shards, which are not among these.
    handed: usize,
    /// The batch is full, and more packets may be waiting; otherwise the device is empty, and will
    /// wake the driver.
    more: bool,
}

impl Received {
    /// Only small packets: handshakes, requests, ends of connections.
    const fn is_small(&self) -> bool {
        self.packets > 0 && self.bytes <= self.packets * SMALL_PACKET
    }
}

/// Bulk data whose ACK is held back for more of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gathering {
    bytes: usize,
    /// The end of the wait; `None` if nothing waits.
    until: Option<Instant>,
}

impl Gathering {
    /// A turn received `received`. The first turn sets the time: the more data, the longer.
    fn add(&mut self, now: Instant, received: &Received) {
        if received.more {
            // No need to wait: the next turn brings the rest.
            *self = Self::default();
        } else if received.packets > 0 && !received.is_small() {
            self.bytes += received.bytes;
            let worth = GATHER_TIME.mul_ratio(received.bytes.min(GATHER_WORTH) as u64, GATHER_WORTH as u64);
            self.until.get_or_insert(now + worth);
        }
    }

    fn goes_on(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until) && self.bytes < GATHER_BYTES
    }
}

impl StackState {
    /// Runs after `hold` has ended.
    pub(super) fn turn(
        &mut self,
        cx: &mut Context<'_>,
        wakes: &mut Wakes,
        hold: Option<DepartureWait>,
    ) -> Turn {
        self.meters.driver_runs += 1;
        self.handover.next_turn();
        let outcome = self.try_turn(cx, wakes, hold);
        self.next_turn(wakes);
        match outcome {
            Err(error) => self.fail(&error, wakes),
            Ok(again) => {
                if self.failure().is_none() {
                    if self.is_over() {
                        return Turn::Ended(Ok(()));
                    }
                    store(&mut self.driver, cx.waker());
                    // Those that still wait go on after those that this turn woke.
                    return if again || self.turns.are_awaited() || !self.may_sleep(cx) {
                        // Other shards have to find a driver.
                        let handed_over = self.links.is_none() && self.hand_over(self.last);
                        if handed_over { Turn::HandedOver } else { Turn::Again }
                    } else {
                        Turn::Wait(self.wait)
                    };
                }
            }
        }
        Turn::Ended(self.failure().map_or(Ok(()), Err))
    }

    /// Nothing is left to do, for any shard.
    fn is_over(&mut self) -> bool {
        self.orphaned && self.is_drained() && self.links.as_mut().is_none_or(Links::rest)
    }

    /// Nothing has come from other shards, and what comes wakes the driver.
    fn may_sleep(&mut self, cx: &Context<'_>) -> bool {
        match &self.links {
            // The last of them may have come to rest meanwhile.
            Some(links) => links.sleep(cx.waker()) && !self.is_over(),
            None => true,
        }
    }

    /// Runs one turn; true if there is more to do at once.
    fn try_turn(
        &mut self,
        cx: &mut Context<'_>,
        wakes: &mut Wakes,
        hold: Option<DepartureWait>,
    ) -> io::Result<bool> {
        let mut expired = self.spins();
        let mut waited = hold;
        // Polled until pending, so that the next expiry wakes the task.
        loop {
            let deadline = self.timer.deadline();
            let Poll::Ready(at) = self.timer.poll_expired(cx) else { break };
            let at = at?;
            expired = true;
            self.meters.timer_expiries += 1;
            if let (Some(Wait::Sleep(_)), Some(deadline)) = (self.wait, deadline) {
                self.waiter.on_wake_up(at.since(deadline));
                waited = Some(DepartureWait { ended: at, departs: at });
            }
        }
        let mut now = match hold {
            // Packets made now leave at the departure time, so the turn ends that late.
            Some(DepartureWait { departs, .. }) => timer::now().max(departs),
            None => timer::now(),
        };
        let departs = expired && self.serve_departures(now);
        let mut more = departs && self.transmit(now, By::Driver, waited);
        if hold.is_some() {
            timer::spin_until(now);
        }
        if departs {
            // A device may deliver the answer inside the send call: that is a round trip of its
            // own.
            now = timer::now();
        }
        if self.kept_acks && !self.gathering.goes_on(now) {
            // The applications have run, and no more data came in time.
            self.gathering = Gathering::default();
            self.keeps_acks = false;
            self.flush(now, By::Driver, wakes);
        }
        let gathered = self.gathering.goes_on(now);
        let received = self.receive(now, cx, gathered)?;
        if self.device.is_restored() {
            self.device.full = None;
            self.endpoint.path_restored(now);
        }
        self.follow_mtu(now);
        self.serve_deadlines(now);
        if self.device.is_full() && self.poll_room(cx)? {
            self.device.full = None;
        }
        // ACKs wait for the answers of the applications that this turn wakes, or for more data.
        self.gathering.add(now, &received);
        let gathers = self.gathering.goes_on(now);
        self.keeps_acks = gathers || received.is_small();
        more |= self.flush(now, By::Driver, wakes);
        if self.kept_acks && (gathers || !wakes.is_empty() || self.handover.inline) {
            more = true;
        } else {
            // While gathering, the driver did not register for wake-ups.
            more |= gathered;
            self.gathering = Gathering::default();
            self.keeps_acks = false;
            if self.kept_acks {
                more |= self.flush(now, By::Driver, wakes);
            }
        }
        if self.device.is_full() && self.poll_room(cx)? {
            self.device.full = None;
            more = true;
        }
        let polls = self.is_polling(now) && !self.spins();
        Ok(more || received.more || polls)
    }

    /// Receives one batch. `gathers`: the caller polls, so no wake-up is registered.
    fn receive(&mut self, now: Instant, cx: &mut Context<'_>, gathers: bool) -> io::Result<Received> {
        let polling = self.is_polling(now) || gathers;
        let mut received = Received::default();
        let outcome = self.receive_batch(now, cx, polling, &mut received);
        self.exchange(now, &mut received);
        // Without packets the device was empty, or failed.
        let backlogged = self.backlog.on_batch(now, !received.more);
        self.endpoint.set_backlogged(backlogged);
        if received.packets > 0 {
            self.moved(now);
        }
        self.work += work(received.packets + received.handed, received.bytes as u64);
        outcome.map(|()| received)
    }

    /// Receives one batch. If `polling`, the caller comes back soon and needs no wake-up.
    fn receive_batch(
        &mut self,
        now: Instant,
        cx: &mut Context<'_>,
        polling: bool,
        received: &mut Received,
    ) -> io::Result<()> {
        let Self { endpoint, device: port, meters, links, .. } = self;
        let Port { device, observer, .. } = port;
        let alive = links.as_ref().map(Links::alive);
        while received.packets + received.handed < RX_BATCH && received.bytes < RX_BATCH_BYTES {
            let most = RX_BATCH - received.packets - received.handed;
            let outcome = device.try_recv_batch(most, &mut |batch| {
                // Packets of this shard that follow each other are ingested together.
                let mut own = 0;
                for (n, (&link, packet)) in batch.links.iter().zip(batch.packets).enumerate() {
                    meters.rx_super_packets += u64::from(packet.segment_size.is_some());
                    if let (Some(links), Some(alive)) = (links.as_mut(), alive)
                        && let owner = links.owner(alive, packet)
                        && owner != links.index
                    {
                        received.handed += 1;
                        links.hand_over(owner, link, packet);
                        endpoint.ingest_batch(now, &batch.packets[own..n]);
                        own = n + 1;
                        continue;
                    }
                    received.packets += 1;
                    received.bytes += packet.len();
                    if let Some(observer) = observer {
                        observer.received(timer::now(), link, packet);
                    }
                }
                endpoint.ingest_batch(now, &batch.packets[own..]);
            });
            match outcome {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if polling {
                        return Ok(());
                    }
                    match device.poll_readable(cx) {
                        Poll::Ready(ready) => ready?,
                        Poll::Pending => return Ok(()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        received.more = true;
        Ok(())
    }

    /// Gives the other shards what is theirs, and takes what they have.
    fn exchange(&mut self, now: Instant, received: &mut Received) {
        let Self { endpoint, device: port, links: Some(links), .. } = self else { return };
        links.deliver();
        while received.packets < RX_BATCH
            && received.bytes < RX_BATCH_BYTES
            && let Some(parcel) = links.take()
        {
            for (link, packet) in parcel.iter() {
                received.packets += 1;
                received.bytes += packet.len();
                if let Some(observer) = &mut port.observer {
                    observer.received(timer::now(), link, &packet);
                }
                endpoint.ingest(now, packet);
            }
            links.give_back(parcel);
        }
        while let Some(packet) = endpoint.next_foreign() {
            let packet = RxPacket::new(&packet);
            let owner = links.owner(links.alive(), &packet);
            if owner == links.index {
                endpoint.ingest(now, packet);
            } else {
                links.hand_over(owner, &[], &packet);
            }
        }
        links.deliver();
    }

    /// True if the device has room; otherwise the task is woken when it has.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        match self.device.device.poll_writable(cx) {
            Poll::Ready(ready) => ready.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_millis(1);

    /// How long the ACK of one turn waits.
    fn waits(packets: usize, bytes: usize, more: bool) -> Duration {
        let mut gathering = Gathering::default();
        gathering.add(START, &Received { packets, bytes, more, ..Received::default() });
        gathering.until.map_or(Duration::ZERO, |until| until.since(START))
    }

    #[test]
    fn an_ack_waits_as_long_as_what_came_is_worth() {
        assert_eq!(waits(1, GATHER_WORTH, false), GATHER_TIME);
        assert_eq!(waits(3, 3 * GATHER_WORTH, false), GATHER_TIME);
        assert!(waits(1, 1_500, false) < Duration::from_micros(1));
        assert_eq!(waits(10, 600, false), Duration::ZERO, "small packets are not bulk data");
        assert_eq!(waits(128, 190_000, true), Duration::ZERO, "the rest is there already");
        assert_eq!(waits(0, 0, false), Duration::ZERO);
    }

    #[test]
    fn an_ack_waits_neither_longer_nor_for_more_than_agreed() {
        let packet = Received { packets: 1, bytes: GATHER_WORTH, ..Received::default() };
        let mut gathering = Gathering::default();
        assert!(!gathering.goes_on(START));
        gathering.add(START, &packet);
        assert!(gathering.goes_on(START));
        let late = START + GATHER_TIME.div(2);
        gathering.add(late, &packet);
        assert!(gathering.goes_on(late));
        assert!(!gathering.goes_on(START + GATHER_TIME), "the first packet sets the time");
        gathering.add(late, &packet);
        gathering.add(late, &packet);
        assert!(!gathering.goes_on(late), "so much is acknowledged at once");
    }
}
