//! The state behind a [shard](super::shard)'s lock, and how it runs: packets out, deadlines,
//! events.

pub(crate) mod accepting;
mod datagrams;
mod gone;
mod handles;
mod mtu;
mod packets;
mod syns;

use super::backlog::Backlog;
use super::driver::Gathering;
use super::handover::Handover;
use super::hub::Links;
use super::stint::work;
use super::turns::{Account, Turns};
use crate::device::Device;
use crate::pacing::{Pacing, Wait, Waiter};
use crate::stats::{Meters, Stats};
use crate::timer::{self, Timer};
use crate::wakes::Wakes;
use accepting::AcceptQueue;
use ackline_tcp_core::events::PacketObserver;
use ackline_tcp_core::{
    ConnId, Duration, Endpoint, Event, Instant, ListenerId, TxBudget, WakeReason, Wakeup,
};
use datagrams::UdpWaits;
use gone::Gone;
use mtu::PortMtu;
use packets::PacketWaits;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::sync::Arc;
use std::task::Waker;
use syns::HeldSyns;
use tokio::sync::Notify;

/// Maximum packets that one turn sends before it releases the lock.
const TX_BATCH: usize = 64;

/// While the device is full, a due departure waits for the device and hides the deadlines behind
/// it: they are served this often.
const BLOCKED_RECHECK: Duration = Duration::from_millis(10);

/// While the interface is down, packets wait for it this long, as for room in a device, so that a
/// short interruption costs only its own duration. After that they are lost, so that TCP's own
/// timers (SYN retries, R2) end connections that cannot continue.
const HOLD_WHILE_DOWN: Duration = Duration::from_secs(1);

/// Everything behind the lock.
#[derive(Debug)]
pub(crate) struct StackState {
    pub(crate) endpoint: Endpoint,
    pub(crate) device: Port,
    pub(crate) timer: Timer,
    /// Deadlines other than departures are rounded up to multiples of this.
    granularity: Duration,
    /// How to wait for departures.
    pub(super) waiter: Waiter,
    /// How to wait for the next departure or deadline.
    pub(super) wait: Option<Wait>,
    /// Time of the last turn or act.
    pub(crate) last: Instant,
    /// Time after the last packet for which the driver does not sleep.
    busy_poll: Duration,
    /// When that time ends.
    poll_until: Instant,
    /// Pure ACKs are held until the driver's next turn, which follows the tasks that it woke.
    pub(crate) keeps_acks: bool,
    /// New data waits until the applications of this turn have run.
    pub(crate) corked: bool,
    /// ACKs are being held.
    pub(crate) kept_acks: bool,
    /// Bulk data whose ACKs are among those held.
    pub(crate) gathering: Gathering,
    /// Whether packets wait in the device.
    pub(in crate::shard) backlog: Backlog,
    /// What applications may exchange before the driver runs.
    pub(in crate::shard) turns: Turns,
    /// Who runs the next turn.
    pub(crate) handover: Handover,
    /// What has been sent and received since the driver has last looked; see [`work()`].
    pub(in crate::shard) work: u64,
    /// By [`ConnId::index`]; a slot with another identity belongs to an earlier connection.
    pub(in crate::shard) slots: Vec<Slot>,
    listeners: BTreeMap<ListenerId, Arc<AcceptQueue>>,
    pub(crate) udp: UdpWaits,
    syns: HeldSyns,
    packets: PacketWaits,
    /// The other shards, if there are any.
    pub(in crate::shard) links: Option<Links>,
    /// The driver task's waker, while it sleeps.
    pub(crate) driver: Option<Waker>,
    /// Deadlines of the runtime itself, soonest first.
    pub(in crate::shard) alarms: BinaryHeap<Reverse<(Instant, Alarm)>>,
    /// Tasks that wait for all connections to end.
    closers: Vec<Waker>,
    /// The time for a shutdown is over.
    overdue: bool,
    /// All slots before this one have been found [drained](Self::is_drained).
    witness: usize,
    /// No new connections.
    closing: bool,
    /// No handle is left.
    pub(crate) orphaned: bool,
    /// The device is gone.
    failure: Option<Failure>,
    pub(crate) meters: Meters,
}

/// The device, and whether it refused the last packet.
pub(crate) struct Port {
    pub(crate) device: Box<dyn Device>,
    /// Set while a packet was refused and the driver waits until the device is writable; until then
    /// deadlines are served at this instant.
    pub(crate) full: Option<Instant>,
    /// The interface is down: packets wait until this instant, and are lost after it.
    hold_until: Option<Instant>,
    mtu: PortMtu,
    /// Sees what passes the device.
    pub(crate) observer: Option<Box<dyn PacketObserver>>,
}

impl Port {
    pub(crate) const fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// The interface was found down at `now`: true if packets should wait for it.
    fn holds(&mut self, now: Instant, alarms: &mut BinaryHeap<Reverse<(Instant, Alarm)>>) -> bool {
        let until = *self.hold_until.get_or_insert_with(|| {
            let until = now + HOLD_WHILE_DOWN;
            alarms.push(Reverse((until, Alarm::HoldOver)));
            until
        });
        now < until
    }

    /// True once after an interface that was down has come up.
    pub(crate) fn is_restored(&mut self) -> bool {
        self.hold_until.take_if(|_| !self.device.stats().down).is_some()
    }
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").field("caps", &self.device.caps()).field("full", &self.full).finish()
    }
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

/// The driver's finished wait for departures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DepartureWait {
    /// Until then.
    pub(crate) ended: Instant,
    /// The departure that it waited for, at most a few microseconds later.
    pub(crate) departs: Instant,
}

/// Deadlines of the runtime itself.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::shard) enum Alarm {
    /// The time for a dropped stream's background close is over.
    Linger(ConnId),
    /// The time for a shutdown is over.
    Shutdown,
    /// The interface has been down for so long that packets wait no longer.
    HoldOver,
    /// Applications that have the stack have had it for long.
    Handover,
}

#[derive(Debug)]
pub(in crate::shard) struct Slot {
    pub(in crate::shard) id: ConnId,
    /// The turn in which one of its tasks was woken last, unless that has come back.
    pub(in crate::shard) called: u32,
    read: Option<Waker>,
    write: Option<Waker>,
    /// Present if there is something in it.
    rare: Option<Box<Rare>>,
    account: Account,
}

/// What most connections do without.
#[derive(Debug, Default)]
struct Rare {
    /// Wakes the tasks that wait for readiness, any number of them; created for the first.
    news: Option<Arc<Notify>>,
    linger: Option<Duration>,
}

/// Why the stack stopped.
#[derive(Clone, Debug)]
struct Failure {
    text: String,
}

/// Who runs the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Driver,
    /// A task that called. It may go on writing: what does not fill a packet waits for the driver's
    /// next turn, except the first such data after the last one.
    Application,
}

/// Which of a connection's two wakers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Read,
    Write,
}

impl StackState {
    pub(crate) fn new(
        endpoint: Endpoint,
        device: Box<dyn Device>,
        timer: Timer,
        waits: Waits,
        links: Option<Links>,
    ) -> Self {
        let Waits { pacing, busy_poll, turn, backlog_time } = waits;
        let granularity = endpoint.config().granularity;
        Self {
            device: Port {
                mtu: PortMtu::new(endpoint.config().mtu, device.caps().mtu),
                device,
                full: None,
                hold_until: None,
                observer: None,
            },
            endpoint,
            timer,
            granularity,
            waiter: Waiter::new(pacing),
            wait: None,
            last: Instant::ZERO,
            busy_poll,
            poll_until: Instant::ZERO,
            keeps_acks: false,
            corked: false,
            kept_acks: false,
            gathering: Gathering::default(),
            witness: 0,
            backlog: Backlog::new(backlog_time),
            turns: Turns::new(turn),
            handover: Handover::new(),
            work: 0,
            slots: Vec::new(),
            listeners: BTreeMap::new(),
            udp: UdpWaits::default(),
            syns: HeldSyns::default(),
            packets: PacketWaits::default(),
            links,
            driver: None,
            alarms: BinaryHeap::new(),
            closers: Vec::new(),
            overdue: false,
            closing: false,
            orphaned: false,
            failure: None,
            meters: Meters::new(),
        }
    }

    /// Sends what may be sent, reports events, sets the timer. True if more could be sent at once.
    pub(crate) fn flush(&mut self, now: Instant, by: By, wakes: &mut Wakes) -> bool {
        if self.failure.is_some() {
            return false;
        }
        self.last = now;
        let more = !self.device.is_full() && self.transmit(now, by, None);
        while let Some(event) = self.endpoint.poll_event() {
            self.deliver(now, event, wakes);
        }
        if let Some(links) = &self.links
            && self.endpoint.calls_others()
        {
            links.call_others();
        }
        self.deliver_udp(wakes);
        self.deliver_syns(now, wakes);
        self.deliver_packets(wakes);
        if !self.closers.is_empty() && self.is_drained() {
            wakes.extend(self.closers.drain(..));
        }
        if let Err(error) = self.arm(now) {
            self.fail(&error, wakes);
        }
        more
    }

    /// Sends what may be sent; after a wait for departures, holds the first packet until its
    /// departure time. True if more could be sent at once.
    pub(super) fn transmit(&mut self, now: Instant, by: By, mut waited: Option<DepartureWait>) -> bool {
        let budget = TxBudget::packets(TX_BATCH);
        let budget = if self.keeps_acks { budget.keeping_acks() } else { budget };
        let budget = if by == By::Application { budget.corking() } else { budget };
        let Self { endpoint, device: port, meters, alarms, waiter, .. } = self;
        let sent = endpoint.transmit(now, budget, |packet| {
            let mut at = timer::now();
            if let Some(DepartureWait { ended, departs }) = waited.take() {
                waiter.on_ready(at.since(ended));
                at = timer::spin_until(departs);
            }
            let sent =
                port.device.try_send(packet.header, packet.payload, packet.segment_size, packet.checksum);
            match sent {
                Ok(()) => {
                    let data = packet.payload.iter().any(|slice| !slice.is_empty());
                    meters.departed(at, data);
                    meters.tx_super_packets += u64::from(packet.segment_size.is_some());
                    if let Some(observer) = &mut port.observer {
                        observer.sent(at, port.device.sent_link(), &packet);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(Full),
                Err(error) if error.kind() == io::ErrorKind::NetworkDown && port.holds(now, alarms) => {
                    return Err(Full);
                }
                // It fitted until now.
                Err(_) if port.has_smaller_mtu() => return Err(Full),
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
                self.kept_acks = report.kept_acks;
                self.corked = report.corked;
                if report.packets > 0 {
                    self.moved(now);
                }
                self.work += work(report.packets, report.bytes);
                report.more
            }
            Err(Full) => {
                port.full = Some(now + BLOCKED_RECHECK);
                false
            }
        }
    }

    pub(in crate::shard) fn arm(&mut self, now: Instant) -> io::Result<()> {
        self.wait =
            self.endpoint.poll_timeout().map(|wakeup| match (is_departure(&wakeup), self.device.full) {
                (true, Some(recheck)) => Wait::Sleep(recheck),
                (true, None) => self.waiter.wait(now, wakeup.at),
                (false, _) => Wait::Sleep(round_up(wakeup.at, self.granularity)),
            });
        let core = match self.wait {
            Some(Wait::Sleep(until)) => Some(until),
            // The driver is awake.
            Some(Wait::Yield | Wait::Hold(..)) | None => None,
        };
        let own = self.alarms.peek().map(|Reverse((at, _))| *at);
        let deadline = match (core, own) {
            (Some(core), Some(own)) => Some(core.min(own)),
            (core, own) => core.or(own),
        };
        self.timer.arm(deadline)
    }

    /// True if a departure is due so soon that the driver does not sleep.
    pub(crate) const fn spins(&self) -> bool {
        matches!(self.wait, Some(Wait::Yield | Wait::Hold(..)))
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

    /// A packet was sent or received.
    pub(crate) fn moved(&mut self, now: Instant) {
        self.poll_until = now + self.busy_poll;
    }

    /// True if a packet was sent or received so recently that the driver should not sleep.
    pub(crate) fn is_polling(&self, now: Instant) -> bool {
        now < self.poll_until
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
        while self.alarms.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            match self.alarms.pop() {
                Some(Reverse((_, Alarm::Linger(id)))) => self.endpoint.abort(now, id),
                Some(Reverse((_, Alarm::Handover))) => self.on_handover_alarm(),
                Some(Reverse((_, Alarm::Shutdown))) => self.abort_all(now),
                Some(Reverse((_, Alarm::HoldOver))) => {
                    // An interface that came up and went down again has a later alarm of its own.
                    if self.device.hold_until.is_some_and(|until| until <= now) {
                        self.device.full = None;
                    }
                }
                None => break,
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
        self.adopt(conn);
        let shard = self.links.as_ref().map_or(0, |links| links.index);
        match self.listeners.get(&listener) {
            Some(queue) => queue.push(shard, conn, wakes),
            None => self.discard(now, conn),
        }
    }

    pub(in crate::shard) fn wake(&mut self, conn: ConnId, sides: &[Side], wakes: &mut Wakes) {
        if let Some(slot) = self.slots.get_mut(conn.index()).filter(|slot| slot.id == conn) {
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

    /// The device is gone: every handle gets an error from here on.
    pub(crate) fn fail(&mut self, error: &io::Error, wakes: &mut Wakes) {
        // A device that reports why it carries nothing provides the text.
        let known = error.kind() == io::ErrorKind::NetworkDown;
        self.stop(if known { error.to_string() } else { format!("the device failed: {error}") }, wakes);
    }

    /// Fails all handles from now on, with `text` as the reason.
    pub(crate) fn stop(&mut self, text: String, wakes: &mut Wakes) {
        if self.failure.is_some() {
            return;
        }
        self.failure = Some(Failure { text });
        for slot in &mut self.slots {
            wakes.extend(slot.read.take());
            wakes.extend(slot.write.take());
            if let Some(news) = slot.news() {
                wakes.everyone(news);
            }
        }
        for queue in self.listeners.values() {
            queue.wake_all(wakes);
        }
        self.udp.wake_all(wakes);
        self.syns.wake_all(wakes);
        self.packets.wake_all(wakes);
        wakes.extend(self.closers.drain(..));
        wakes.extend(self.driver.take());
        if let Some(links) = &mut self.links {
            links.stop();
            self.endpoint.leave();
            // The queue is closed, so that the kernel puts nothing into it any more: the others
            // take that.
            self.device.device = Box::new(Gone::of(&*self.device.device));
        }
    }

    /// Why the stack stopped, if it did.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.as_ref().map(Failure::error)
    }

    pub(crate) fn stats(&self) -> Stats {
        let Meters {
            departure_lateness,
            timer_lateness,
            departure_gaps,
            data_gaps,
            awake,
            driver_runs,
            timer_expiries,
            device_drops,
            rx_super_packets,
            tx_super_packets,
            ..
        } = &self.meters;
        Stats {
            departure_lateness: departure_lateness.clone(),
            timer_lateness: timer_lateness.clone(),
            departure_gaps: departure_gaps.clone(),
            data_gaps: data_gaps.clone(),
            awake: *awake,
            wakes_early_by: self.waiter.lead(),
            driver_runs: *driver_runs,
            timer_expiries: *timer_expiries,
            device_drops: *device_drops,
            turn_waits: self.turns.waits(),
            device_backlogs: self.backlog.times(),
            rx_super_packets: *rx_super_packets,
            tx_super_packets: *tx_super_packets,
            handed_over: self.links.as_ref().map_or(0, |links| links.handed),
            taken_over: self.links.as_ref().map_or(0, |links| links.taken),
            handover_drops: self.links.as_ref().map_or(0, Links::dropped),
            connections: self.endpoint.connections(),
            half_open: self.endpoint.half_open(),
            held_syns: self.endpoint.held_syns(),
            fast_open_pending: self.endpoint.fast_open_pending(),
            fast_open_entries: self.endpoint.fast_open_entries(),
            orphans: self.endpoint.orphans(),
            time_wait: self.endpoint.time_wait_records(),
            memory: self.endpoint.memory(),
            max_memory: self.endpoint.config().max_memory,
            memory_pressure: self.endpoint.is_under_memory_pressure(),
            path_entries: self.endpoint.path_entries(),
            incomplete_packets: self.endpoint.incomplete_packets(),
            udp_sockets: self.endpoint.udp_sockets(),
            udp_flows: self.endpoint.udp_flows(),
            mtu: self.endpoint.config().mtu,
            egress: self.endpoint.egress_stats(),
            device: self.device.device.stats(),
            counters: self.endpoint.counters().clone(),
        }
    }
}

impl Slot {
    fn new(id: ConnId) -> Self {
        Self { id, called: 0, read: None, write: None, rare: None, account: Account::default() }
    }

    fn news(&self) -> Option<&Arc<Notify>> {
        self.rare.as_ref()?.news.as_ref()
    }

    fn linger(&self) -> Option<Duration> {
        self.rare.as_ref()?.linger
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn waker(&mut self, side: Side) -> &mut Option<Waker> {
        match side {
            Side::Read => &mut self.read,
            Side::Write => &mut self.write,
        }
    }
}

impl Failure {
    fn error(&self) -> io::Error {
        io::Error::new(io::ErrorKind::NetworkDown, self.text.clone())
    }
}

/// The device is full.
struct Full;

/// True for a departure that pacing or a shaper holds back.
const fn is_departure(wakeup: &Wakeup) -> bool {
    matches!(wakeup.reason, WakeReason::Pace | WakeReason::Shaper)
}

/// The first multiple of `step` at or after `at`.
fn round_up(at: Instant, step: Duration) -> Instant {
    let (nanos, step) = (at.as_nanos(), step.as_nanos().max(1));
    Instant::from_nanos(nanos.checked_next_multiple_of(step).unwrap_or(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_rounded_up_to_the_granularity() {
        let rounded =
            |nanos, step| round_up(Instant::from_nanos(nanos), Duration::from_nanos(step)).as_nanos();
        assert_eq!(rounded(101, 50), 150);
        assert_eq!(rounded(150, 50), 150);
        assert_eq!(rounded(7, 1), 7);
        assert_eq!(rounded(7, 0), 7, "no granularity");
        assert_eq!(rounded(u64::MAX, 50), u64::MAX, "the end of time");
    }
}
