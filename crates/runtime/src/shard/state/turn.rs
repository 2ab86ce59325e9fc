//! A turn of the driver, phase by phase.
//!
//! ```text
//!   Depart ──► Receive ──► Serve ──► Answer ──► Over
//!     │           ▲                     │         ▲
//!     └► Overdue ─┘                     └► Rest ──┘
//! ```
//!
//! Packets are sent in four of them: what pacing or a shaper held back until now, before anything
//! else; ACKs of an earlier turn that nobody waits for any more; what this turn causes; and its
//! ACKs, if there is nothing to wait for.

use super::{Caller, StackState};
use crate::pacing::Wait;
use crate::shard::acks::Received;
use crate::shard::hub::HubPort;
use crate::shard::inbox::SteeredBatch;
use crate::shard::port::Port;
use crate::shard::schedule::DepartureWait;
use crate::shard::stint::work;
use crate::timer;
use crate::wakes::{Wakes, store};
use ackline_tcp_core::{Endpoint, Instant, RxPacket};
use std::io;
use std::task::{Context, Poll};

/// Maximum packets received per turn before they are answered.
const RX_BATCH: usize = 128;

/// Bytes after which a turn answers although more packets wait, since a peer with a full window
/// waits for the ACK. ACKs are expensive: on a TUN device the kernel's sender processes the ACK,
/// and sends, inside the write call that carries it.
const RX_BATCH_BYTES: usize = 1 << 20;
/// Packets of a sibling that are processed together.
const HANDED_BATCH: usize = 32;

/// What to do after a turn.
#[derive(Debug)]
pub(in crate::shard) enum Turn {
    /// The stack has ended.
    Ended(io::Result<()>),
    /// Run another turn at once.
    Again,
    /// The applications that this turn woke run the next one.
    HandedOver,
    /// How to wait; `None` if there is no deadline.
    Wait(Option<Wait>),
}

/// What a turn does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// What pacing or a shaper held back until now leaves.
    Depart,
    /// ACKs of an earlier turn leave.
    Overdue,
    /// A batch of packets is received.
    Receive,
    /// News of the interface are followed, and deadlines served.
    Serve,
    /// What has become of all this leaves, but for ACKs that may wait, and events are reported.
    Answer,
    /// The ACKs leave as well.
    Rest,
    /// The turn has ended.
    Over,
}

/// What is to become of the ACKs that wait, after a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acks {
    Wait,
    Leave,
}

impl Phase {
    /// The phase after this one.
    const fn next(self, acks: Acks) -> Self {
        match (self, acks) {
            (Self::Depart, Acks::Leave) => Self::Overdue,
            (Self::Depart, Acks::Wait) | (Self::Overdue, _) => Self::Receive,
            (Self::Receive, _) => Self::Serve,
            (Self::Serve, _) => Self::Answer,
            (Self::Answer, Acks::Leave) => Self::Rest,
            (Self::Answer, Acks::Wait) | (Self::Rest | Self::Over, _) => Self::Over,
        }
    }
}

/// State of a turn.
struct Progress {
    /// The time for all that happens in it.
    now: Instant,
    /// The timer has expired, or the driver spins: something may depart.
    expired: bool,
    /// The driver has kept its thread until shortly before a departure.
    held: bool,
    /// The driver's wait for a departure that has just ended.
    waited: Option<DepartureWait>,
    received: Received,
    /// While more data was gathered, the driver has not registered for wake-ups.
    gathered: bool,
    /// There is more to do at once.
    more: bool,
}

impl StackState {
    /// Runs after `hold` has ended.
    pub(in crate::shard) fn turn(
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
                        let handed_over = self.hub_port.is_none() && self.hand_over(self.last);
                        if handed_over { Turn::HandedOver } else { Turn::Again }
                    } else {
                        Turn::Wait(self.schedule.wait)
                    };
                }
            }
        }
        Turn::Ended(self.failure().map_or(Ok(()), Err))
    }

    /// Nothing is left to do, for any shard.
    fn is_over(&mut self) -> bool {
        self.ending.orphaned && self.is_drained() && self.hub_port.as_mut().is_none_or(HubPort::rest)
    }

    /// Nothing has come from other shards, and what comes wakes the driver.
    fn may_sleep(&mut self, cx: &Context<'_>) -> bool {
        match &self.hub_port {
            // The last of them may have come to rest meanwhile.
            Some(hub_port) => hub_port.sleep(cx.waker()) && !self.is_over(),
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
        let (expired, woken) = self.schedule.poll_expired(cx, &mut self.meters)?;
        let mut progress = Progress {
            now: match hold {
                // Packets made now leave at the departure time, so the turn ends that late.
                Some(DepartureWait { departs, .. }) => timer::now().max(departs),
                None => timer::now(),
            },
            expired,
            held: hold.is_some(),
            waited: woken.or(hold),
            received: Received::default(),
            gathered: false,
            more: false,
        };
        let mut phase = Phase::Depart;
        while phase != Phase::Over {
            let acks = match phase {
                Phase::Depart => self.depart(&mut progress),
                Phase::Overdue => {
                    // Whether more could be sent, the answer finds out.
                    self.release_acks(progress.now, wakes);
                    Acks::Wait
                }
                Phase::Receive => {
                    progress.gathered = self.acks.gathers(progress.now);
                    progress.received = self.receive(progress.now, cx, progress.gathered)?;
                    Acks::Wait
                }
                Phase::Serve => {
                    self.serve(progress.now, cx)?;
                    Acks::Wait
                }
                Phase::Answer => self.answer(&mut progress, wakes),
                Phase::Rest => {
                    progress.more |= progress.gathered | self.release_acks(progress.now, wakes);
                    Acks::Wait
                }
                Phase::Over => break,
            };
            phase = phase.next(acks);
        }
        progress.more |= self.finds_room(cx)?;
        self.arm(progress.now)?;
        let polls = self.busy_poll.goes_on(progress.now) && !self.spins();
        Ok(progress.more || progress.received.more || polls)
    }

    /// [`Phase::Depart`].
    fn depart(&mut self, progress: &mut Progress) -> Acks {
        let departs = progress.expired && self.serve_departures(progress.now);
        progress.more = departs && self.transmit(progress.now, Caller::Driver, progress.waited);
        if progress.held {
            timer::spin_until(progress.now);
        }
        if departs {
            // A device may deliver the answer inside the send call: that is a round trip of its
            // own.
            progress.now = timer::now();
        }
        if self.acks.are_overdue(progress.now) { Acks::Leave } else { Acks::Wait }
    }

    /// [`Phase::Overdue`], [`Phase::Rest`]: ACKs that wait leave. True if more could be sent at
    /// once.
    fn release_acks(&mut self, now: Instant, wakes: &mut Wakes) -> bool {
        self.acks.let_go();
        self.acks.kept && self.flush(now, Caller::Driver, wakes)
    }

    /// [`Phase::Serve`].
    fn serve(&mut self, now: Instant, cx: &mut Context<'_>) -> io::Result<()> {
        if self.device.is_restored() {
            self.device.full = None;
            self.endpoint.path_restored(now);
        }
        self.follow_mtu(now);
        self.serve_deadlines(now);
        self.finds_room(cx).map(drop)
    }

    /// [`Phase::Answer`]. ACKs wait for the answers of the applications that this turn wakes, or
    /// for more data.
    fn answer(&mut self, progress: &mut Progress, wakes: &mut Wakes) -> Acks {
        self.acks.on_received(progress.now, &progress.received);
        progress.more |= self.flush(progress.now, Caller::Driver, wakes);
        let gathers = self.acks.gathers(progress.now);
        if self.acks.kept && (gathers || !wakes.is_empty() || self.handover.inline) {
            progress.more = true;
            Acks::Wait
        } else {
            Acks::Leave
        }
    }

    /// True if the device was full and has room again; otherwise the task is woken when it has.
    fn finds_room(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let found = self.device.is_full() && self.device.device.poll_writable(cx)?.is_ready();
        if found {
            self.device.full = None;
        }
        Ok(found)
    }

    /// Receives one batch. `gathers`: the caller polls, so no wake-up is registered.
    fn receive(&mut self, now: Instant, cx: &mut Context<'_>, gathers: bool) -> io::Result<Received> {
        let polling = self.busy_poll.goes_on(now) || gathers;
        let mut received = Received::default();
        let outcome = self.receive_batch(now, cx, polling, &mut received);
        self.exchange(now, &mut received);
        // Without packets the device was empty, or failed.
        let backlogged = self.backlog.on_batch(now, !received.more);
        self.endpoint.set_backlogged(backlogged);
        if received.packets > 0 {
            self.busy_poll.on_packet(now);
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
        let Self { endpoint, device: port, meters, hub_port, .. } = self;
        let Port { device, observer, .. } = port;
        let alive = hub_port.as_ref().map(HubPort::alive);
        while received.packets + received.handed < RX_BATCH && received.bytes < RX_BATCH_BYTES {
            let most = RX_BATCH - received.packets - received.handed;
            let outcome = device.try_recv_batch(most, &mut |batch| {
                // Packets of this shard that follow each other are ingested together.
                let mut own = 0;
                for (n, (&link, packet)) in batch.links.iter().zip(batch.packets).enumerate() {
                    meters.rx_super_packets += u64::from(packet.segment_size.is_some());
                    if let (Some(hub_port), Some(alive)) = (hub_port.as_mut(), alive)
                        && let owner = hub_port.owner(alive, packet)
                        && owner != hub_port.index
                    {
                        received.handed += 1;
                        hub_port.hand_over(owner, link, packet);
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
        let Self { endpoint, device: port, hub_port: Some(hub_port), .. } = self else { return };
        hub_port.deliver();
        while received.packets < RX_BATCH
            && received.bytes < RX_BATCH_BYTES
            && let Some(steered) = hub_port.take()
        {
            take_batch(endpoint, port, now, &steered, received);
            hub_port.give_back(steered);
        }
        endpoint.set_waiting_memory(hub_port.waiting_bytes());
        while let Some(packet) = endpoint.next_foreign() {
            let packet = RxPacket::new(&packet);
            let owner = hub_port.owner(hub_port.alive(), &packet);
            if owner == hub_port.index {
                endpoint.ingest(now, packet);
            } else {
                hub_port.hand_over(owner, &[], &packet);
            }
        }
        hub_port.deliver();
    }
}

/// Takes the packets of a sibling, several at a time.
fn take_batch(
    endpoint: &mut Endpoint,
    port: &mut Port,
    now: Instant,
    steered: &SteeredBatch,
    received: &mut Received,
) {
    let mut packets = steered.iter();
    let mut batch = [RxPacket::new(&[]); HANDED_BATCH];
    loop {
        let mut len = 0;
        for (place, (link, packet)) in batch.iter_mut().zip(&mut packets) {
            received.packets += 1;
            received.bytes += packet.len();
            if let Some(observer) = &mut port.observer {
                observer.received(timer::now(), link, &packet);
            }
            *place = packet;
            len += 1;
        }
        match batch.get(..len) {
            Some(batch) if len > 0 => endpoint.ingest_batch(now, batch),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The phases of a turn in which ACKs leave after `leave`.
    fn phases(leave: &[Phase]) -> Vec<Phase> {
        let next = |phase: &Phase| {
            let acks = if leave.contains(phase) { Acks::Leave } else { Acks::Wait };
            (*phase != Phase::Over).then(|| phase.next(acks))
        };
        std::iter::successors(Some(Phase::Depart), next).collect()
    }

    #[test]
    fn a_turn_receives_once_and_sends_acks_before_or_after_it_as_they_are_due() {
        use Phase::{Answer, Depart, Over, Overdue, Receive, Rest, Serve};
        assert_eq!(phases(&[]), [Depart, Receive, Serve, Answer, Over]);
        assert_eq!(phases(&[Depart]), [Depart, Overdue, Receive, Serve, Answer, Over]);
        assert_eq!(phases(&[Depart, Answer]), [Depart, Overdue, Receive, Serve, Answer, Rest, Over]);
    }
}
