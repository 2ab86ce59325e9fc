//! The state behind a [shard](super::shard)'s lock, and how it runs: packets out, deadlines,
//! events.

pub(crate) mod accepting;
mod closed_queue;
mod datagrams;
mod ending;
mod handing_over;
mod handles;
mod packets;
mod sharing;
mod stats;
mod syns;
pub(super) mod turn;

use super::acks::HeldAcks;
use super::backlog::Backlog;
use super::busy_poll::BusyPoll;
use super::ending::Ending;
use super::handover::Handover;
use super::hub::HubPort;
use super::port::Port;
use super::schedule::{Alarm, DepartureWait, Schedule, is_departure};
use super::slots::Slots;
use super::stint::work;
use super::turns::{Side, Turns};
use crate::device::{Device, OutgoingPacket};
use crate::pacing::Pacing;
use crate::stats::Meters;
use crate::timer::{self, Timer};
use crate::wakes::Wakes;
use accepting::AcceptQueue;
use ackline_tcp_core::{ConnId, Duration, Endpoint, Event, Instant, ListenerId, TxBudget, WakeReason};
use datagrams::UdpWaits;
use packets::PacketWaits;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use syns::HeldSyns;

/// Maximum packets that one turn sends before it releases the lock.
const TX_BATCH: usize = 64;

/// While the device is full, a due departure waits for the device and hides the deadlines behind
/// it: they are served this often.
const BLOCKED_RECHECK: Duration = Duration::from_millis(10);

/// Everything behind the lock.
#[derive(Debug)]
pub(crate) struct StackState {
    pub(crate) endpoint: Endpoint,
    pub(crate) device: Port,
    pub(crate) schedule: Schedule,
    /// Time of the last turn or act.
    pub(crate) last: Instant,
    pub(in crate::shard) busy_poll: BusyPoll,
    /// ACKs that wait for applications or for more data.
    pub(crate) acks: HeldAcks,
    /// New data waits until the applications of this turn have run.
    pub(crate) corked: bool,
    /// Whether packets wait in the device.
    pub(in crate::shard) backlog: Backlog,
    /// Bytes that applications may exchange before the driver runs.
    pub(in crate::shard) turns: Turns,
    /// Driver or thread that runs the next turn.
    pub(crate) handover: Handover,
    /// What has been sent and received since the driver has last looked; see [`work()`].
    pub(in crate::shard) work: u64,
    pub(in crate::shard) slots: Slots,
    listeners: BTreeMap<ListenerId, Arc<AcceptQueue>>,
    pub(crate) udp: UdpWaits,
    syns: HeldSyns,
    packets: PacketWaits,
    /// The other shards, if there are any.
    pub(in crate::shard) hub_port: Option<HubPort>,
    /// The driver task's waker, while it sleeps.
    pub(crate) driver: Option<Waker>,
    pub(in crate::shard) ending: Ending,
    pub(crate) meters: Meters,
}

/// How the driver waits, as configured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// How it waits for departures.
    pub(crate) pacing: Pacing,
    /// Time after the last packet for which it keeps polling the device.
    pub(crate) busy_poll: Duration,
    /// Bytes that busy connections exchange with their applications before the driver runs.
    pub(crate) turn: usize,
    /// Time after which packets that wait in the device are a backlog.
    pub(crate) backlog_time: Duration,
}

/// The caller that runs the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Driver,
    /// A task that called. It may go on writing: what does not fill a packet waits for the driver's
    /// next turn, except the first such data after the last one.
    Application,
}

impl StackState {
    pub(crate) fn new(
        endpoint: Endpoint,
        device: Box<dyn Device>,
        timer: Timer,
        waits: Waits,
        hub_port: Option<HubPort>,
    ) -> Self {
        let Waits { pacing, busy_poll, turn, backlog_time } = waits;
        Self {
            device: Port::new(device, endpoint.config().mtu),
            schedule: Schedule::new(timer, endpoint.config().granularity, pacing),
            endpoint,
            last: Instant::ZERO,
            busy_poll: BusyPoll::new(busy_poll),
            acks: HeldAcks::default(),
            corked: false,
            backlog: Backlog::new(backlog_time),
            turns: Turns::new(turn),
            handover: Handover::new(),
            work: 0,
            slots: Slots::default(),
            listeners: BTreeMap::new(),
            udp: UdpWaits::default(),
            syns: HeldSyns::default(),
            packets: PacketWaits::default(),
            hub_port,
            driver: None,
            ending: Ending::default(),
            meters: Meters::new(),
        }
    }

    /// Sends what may be sent, and reports events. True if more could be sent at once. The timer is
    /// [set](Self::arm) when nothing else follows.
    pub(crate) fn flush(&mut self, now: Instant, by: Caller, wakes: &mut Wakes) -> bool {
        if self.ending.failure.is_some() {
            return false;
        }
        self.last = now;
        let more = !self.device.is_full() && self.transmit(now, by, None);
        while let Some(event) = self.endpoint.poll_event() {
            self.deliver(now, event, wakes);
        }
        if let Some(hub_port) = &self.hub_port
            && self.endpoint.calls_others()
        {
            hub_port.call_others();
        }
        self.deliver_udp(wakes);
        self.deliver_syns(now, wakes);
        self.deliver_packets(wakes);
        if !self.ending.closers.is_empty() && self.is_drained() {
            wakes.extend(self.ending.closers.drain(..));
        }
        more
    }

    /// Sends what may be sent; after a wait for departures, holds the first packet until its
    /// departure time. True if more could be sent at once.
    pub(super) fn transmit(&mut self, now: Instant, by: Caller, mut waited: Option<DepartureWait>) -> bool {
        let budget = TxBudget::packets(TX_BATCH);
        let budget = if self.acks.keeps { budget.keeping_acks() } else { budget };
        let budget = if by == Caller::Application { budget.corking() } else { budget };
        let Self { endpoint, device: port, meters, schedule, .. } = self;
        let sent = endpoint.transmit(now, budget, |packet| {
            let mut at = timer::now();
            if let Some(DepartureWait { ended, departs }) = waited.take() {
                schedule.waiter.on_ready(at.since(ended));
                at = timer::spin_until(departs);
            }
            let sent = port.device.try_send(&OutgoingPacket::from(&packet));
            match sent {
                Ok(()) => {
                    let data = packet.payload.iter().any(|slice| !slice.is_empty());
                    meters.departed(at, data);
                    meters.tx_super_packets += u64::from(packet.segment_size.is_some());
                    if let Some(observer) = &mut port.observer {
                        observer.sent(at, port.device.sent_link(), &packet);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(DeviceFull),
                Err(error) if error.kind() == io::ErrorKind::NetworkDown && port.holds(now, schedule) => {
                    return Err(DeviceFull);
                }
                // It fitted until now.
                Err(_) if port.has_smaller_mtu() => return Err(DeviceFull),
                // The kernel refused this packet and would refuse it again (interface down for
                // long, no buffers): it counts as lost in the network, and congestion control
                // should see that.
                Err(_) => meters.device_drops += 1,
            }
            Ok(())
        });
        meters.all_departed();
        match sent {
            Ok(report) => {
                self.acks.kept = report.kept_acks;
                self.corked = report.corked;
                if report.packets > 0 {
                    self.busy_poll.on_packet(now);
                }
                self.work += work(report.packets, report.bytes);
                report.more
            }
            Err(DeviceFull) => {
                port.full = Some(now + BLOCKED_RECHECK);
                false
            }
        }
    }

    /// Sets the timer for what is due next.
    pub(in crate::shard) fn arm(&mut self, now: Instant) -> io::Result<()> {
        self.schedule.arm(now, self.endpoint.poll_timeout(), self.device.full)
    }

    /// True if a departure is due so soon that the driver does not sleep.
    pub(crate) const fn spins(&self) -> bool {
        self.schedule.spins()
    }

    /// Tells the endpoint if the device's MTU has changed. What the device refused for its size
    /// fits then.
    fn follow_mtu(&mut self, now: Instant) {
        if let Some(mtu) = self.device.changed_mtu() {
            let followed = self.endpoint.set_mtu(now, mtu);
            debug_assert!(followed.is_ok(), "{followed:?}");
        }
    }

    /// Serves due departures before anything else, but no other deadlines: a retransmission timer,
    /// for example, can wait until packets are received that may stop it. True if something may
    /// leave.
    pub(super) fn serve_departures(&mut self, now: Instant) -> bool {
        let mut due = false;
        while !self.device.is_full()
            && let Some(wakeup) = self.endpoint.poll_timeout().filter(|wakeup| wakeup.at <= now)
            && is_departure(&wakeup)
        {
            due = true;
            self.meters.due(wakeup.at);
            self.endpoint.handle_timeout(wakeup.at.max(self.last));
            if wakeup.reason == WakeReason::Shaper {
                // The packet it holds is due until it leaves.
                break;
            }
        }
        due
    }

    /// Serves every deadline up to `now`.
    pub(crate) fn serve_deadlines(&mut self, now: Instant) {
        self.serve_departures(now);
        if let Some(wakeup) = self.endpoint.poll_timeout().filter(|wakeup| wakeup.at <= now) {
            match &mut self.device.full {
                None if is_departure(&wakeup) => {}
                None => self.meters.timer_lateness.record(now.since(wakeup.at)),
                Some(recheck) if *recheck <= now => *recheck = now + BLOCKED_RECHECK,
                Some(_) => {}
            }
            self.endpoint.handle_timeout(now);
        }
        while let Some(alarm) = self.schedule.take_alarm(now) {
            match alarm {
                Alarm::Linger(id) => self.endpoint.abort(now, id),
                Alarm::Handover => self.handover.on_alarm(),
                Alarm::Shutdown => self.abort_all(now),
                Alarm::HoldOver => self.device.on_hold_over(now),
            }
        }
    }

    fn deliver(&mut self, now: Instant, event: Event, wakes: &mut Wakes) {
        match event {
            Event::Accepted { listener, conn } => self.enqueue(now, listener, conn, wakes),
            Event::Readable(conn) => self.wake(conn, &[Side::Read], wakes),
            Event::Closed { conn, .. } => self.wake(conn, &[Side::Read, Side::Write], wakes),
            // Connected, writable, flushed.
            other => self.wake(other.conn(), &[Side::Write], wakes),
        }
    }

    fn enqueue(&mut self, now: Instant, listener: ListenerId, conn: ConnId, wakes: &mut Wakes) {
        self.slots.adopt(conn);
        let shard = self.hub_port.as_ref().map_or(0, |hub_port| hub_port.index);
        match self.listeners.get(&listener) {
            Some(queue) => queue.push(shard, conn, wakes),
            None => self.discard(now, conn),
        }
    }

    pub(in crate::shard) fn wake(&mut self, conn: ConnId, sides: &[Side], wakes: &mut Wakes) {
        if let Some(slot) = self.slots.get(conn) {
            for side in sides {
                if let Some(waker) = slot.waker(*side).take() {
                    wakes.extend([waker]);
                    self.handover.call(&mut slot.called);
                }
            }
            if let Some(news) = slot.news() {
                wakes.everyone(news);
            }
        }
    }
}

/// The device is full.
struct DeviceFull;
