//! `drr`: connections take turns of equal bytes (deficit round robin: Shreedhar and Varghese,
//! "Efficient Fair Queuing Using Deficit Round Robin", SIGCOMM 1995), whatever the class of their
//! packets.
//!
//! A modern reference: a download's ACKs wait for one quantum of each upload, not for its whole
//! window. It has no classes, so a connection's ACKs still wait behind its own data, and with many
//! uploads the ACKs of a download get little. Each connection's packets leave in order of arrival.
//!
//! `flow-queue` adds the rule for new flows of RFC 8290, section 4.2: a connection without packets
//! in the queue takes its next turn before all that have some, so a request or an ACK waits for no
//! bulk data. After that turn it goes to the end of the others' line, even if it has sent
//! everything, and counts as new again once it is found empty there. So nobody has two such turns
//! while others wait for one.

use crate::entry;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::sched::{
    Backlog, Bypass, Descriptor, EgressScheduler, Forget, LinkView, Popped, SchedulerProperties, Scope,
    SegmentClass,
};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed};
use ackline_tcp_core::policy::{Metrics, NewEgressScheduler, Params, SpecError};
use ackline_tcp_core::{ConnId, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// One MTU of Ethernet.
const MTU: u32 = 1_500;

pub(crate) const ENTRY: Entry<NewEgressScheduler> = Entry {
    source: "Shreedhar and Varghese 1995",
    ..entry::keyed::<Quantum, Drr>("drr", "connections take turns of equal bytes (deficit round robin)")
};

pub(crate) const FLOW_QUEUE: Entry<NewEgressScheduler> = Entry {
    summary: "connections take turns of equal bytes, those with little to send first",
    source: "RFC 8290 section 4.2",
    keys: entry::rows::<Quantum>,
    ..Entry::new("flow-queue", |params| {
        entry::shaped(params, |own| Ok(Drr::from(Quantum::from_params("flow-queue", own)?).sparse_first()))
    })
};

/// Bytes of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Quantum(u32);

impl Default for Quantum {
    fn default() -> Self {
        Self(MTU)
    }
}

impl Keyed for Quantum {
    const KEYS: &'static [Key<Self>] = &[Key::integer(
        "quantum",
        1..=65_535,
        "bytes of a connection's turn; grows to the largest packet",
        |it| &mut it.0,
    )];
}

impl From<Quantum> for Drr {
    fn from(quantum: Quantum) -> Self {
        Self { quantum: quantum.0, ..Self::default() }
    }
}

/// The packets of one connection, or those without one.
#[derive(Debug, Default)]
struct Flow {
    owner: Option<ConnId>,
    packets: Fifo,
    /// Bytes that it may send before its turn ends.
    deficit: u32,
    /// Its turn has begun.
    in_turn: bool,
}

/// Number of classes that are counted apart; control packets are one.
const CLASSES: usize = 4;

const fn index(class: SegmentClass) -> usize {
    match class {
        SegmentClass::PureAck => 0,
        SegmentClass::Data => 1,
        SegmentClass::Retransmit => 2,
        SegmentClass::Control(_) => 3,
    }
}

const fn subtract(total: &mut Backlog, packet: &Descriptor) {
    total.packets = total.packets.saturating_sub(1);
    total.bytes = total.bytes.saturating_sub(packet.len as u64);
}

fn sum(parts: impl Iterator<Item = Backlog>) -> Backlog {
    parts.fold(Backlog::default(), |sum, part| Backlog {
        packets: sum.packets + part.packets,
        bytes: sum.bytes.saturating_add(part.bytes),
    })
}

/// Deficit round robin over connections. O(1) per packet.
#[derive(Debug)]
pub struct Drr {
    /// Bytes of a turn.
    quantum: u32,
    /// Largest packet seen: with a smaller quantum a turn might send nothing, and a packet would
    /// take many rounds.
    largest: u32,
    /// Flows, used and free; a free one keeps its memory for the next connection.
    flows: Vec<Flow>,
    free: Vec<usize>,
    /// Index in `flows` of each connection with packets.
    places: HashMap<Option<ConnId>, usize>,
    /// Flows that take turns; the first one has its turn.
    active: VecDeque<usize>,
    /// Flows that go before those and have not used up their turn; `None` if new flows do not.
    new: Option<VecDeque<usize>>,
    /// Sums over the flows, by class.
    totals: [Backlog; CLASSES],
    /// At most so many flows in the lines lost their packets out of their turn.
    emptied: usize,
}

impl Default for Drr {
    fn default() -> Self {
        Self::new(MTU)
    }
}

impl Drr {
    /// Turns of `quantum` bytes, at least 1.
    #[must_use]
    pub fn new(quantum: u32) -> Self {
        Self {
            quantum: quantum.max(1),
            largest: 0,
            flows: Vec::new(),
            free: Vec::new(),
            places: HashMap::new(),
            active: VecDeque::new(),
            new: None,
            totals: Default::default(),
            emptied: 0,
        }
    }

    /// Flows that were empty go first: `flow-queue`.
    #[must_use]
    pub fn sparse_first(mut self) -> Self {
        self.new = Some(VecDeque::new());
        self
    }

    /// Connection whose turn it is.
    fn current(&self) -> Option<usize> {
        self.lined_up().next()
    }

    /// Ends the turn of the current flow, which becomes the last of all.
    fn end_turn(&mut self) {
        let new = self.new.as_mut().and_then(VecDeque::pop_front);
        let Some(place) = new.or_else(|| self.active.pop_front()) else { return };
        let flow = &mut self.flows[place];
        let was_in_turn = core::mem::take(&mut flow.in_turn);
        if flow.packets.is_empty() {
            flow.deficit = 0;
            // RFC 8290, section 4.2: it becomes an old flow, lest it be new again with its next
            // packet.
            if self.new.is_none() || !was_in_turn || self.active.is_empty() {
                return self.retire(place);
            }
        }
        self.active.push_back(place);
    }

    /// All flows in a line.
    fn lined_up(&self) -> impl Iterator<Item = usize> {
        self.new.iter().flatten().chain(&self.active).copied()
    }

    /// The index of the flow of `owner`, which becomes active.
    fn enter(&mut self, owner: Option<ConnId>) -> usize {
        if let Some(place) = self.places.get(&owner) {
            return *place;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            self.flows.len() - 1
        });
        self.flows[place].owner = owner;
        self.places.insert(owner, place);
        self.new.as_mut().unwrap_or(&mut self.active).push_back(place);
        place
    }

    /// The flow at `place` is empty and in no line.
    fn retire(&mut self, place: usize) {
        let flow = &mut self.flows[place];
        self.places.remove(&flow.owner);
        flow.deficit = 0;
        flow.in_turn = false;
        self.free.push(place);
    }

    /// Another flow lost its packets out of its turn. Once half of the lines are such flows, they
    /// leave all at once, which is O(1) for each.
    fn emptied(&mut self) {
        self.emptied += 1;
        if self.emptied < self.places.len().div_ceil(2) {
            return;
        }
        self.emptied = 0;
        let mut active = core::mem::take(&mut self.active);
        let mut new = self.new.take();
        let mut stays = |place: &usize| {
            let stays = !self.flows[*place].packets.is_empty();
            if !stays {
                self.retire(*place);
            }
            stays
        };
        active.retain(&mut stays);
        if let Some(new) = &mut new {
            new.retain(stays);
        }
        (self.active, self.new) = (active, new);
    }
}

impl EgressScheduler for Drr {
    fn name(&self) -> &'static str {
        if self.new.is_some() { FLOW_QUEUE.name } else { ENTRY.name }
    }

    fn properties(&self) -> SchedulerProperties {
        SchedulerProperties::new().with_bypass(Bypass::UntilDeviceFull).with_sparse_first(self.new.is_some())
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        self.largest = self.largest.max(packet.len);
        let total = &mut self.totals[index(packet.class)];
        total.packets += 1;
        total.bytes = total.bytes.saturating_add(u64::from(packet.len));
        let place = self.enter(packet.conn);
        self.flows[place].packets.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        let quantum = self.quantum.max(self.largest);
        while let Some(place) = self.current() {
            let flow = &mut self.flows[place];
            if flow.packets.is_empty() {
                self.end_turn();
                continue;
            }
            if !flow.in_turn {
                // Below two quanta: what was left was less than a packet.
                flow.deficit = flow.deficit.saturating_add(quantum);
                flow.in_turn = true;
            }
            let left = LinkView::new(flow.deficit.min(link.room));
            let popped = flow.packets.pop(now, &left);
            match popped {
                Popped::Packet(packet) => {
                    flow.deficit -= packet.len.min(flow.deficit);
                    if flow.packets.is_empty() {
                        self.end_turn();
                    }
                    subtract(&mut self.totals[index(packet.class)], &packet);
                    return popped;
                }
                // Its turn continues when the link has room.
                _ if link.room < flow.deficit => return Popped::Empty,
                _ => self.end_turn(),
            }
        }
        Popped::Empty
    }

    /// A finished turn is not changed any more.
    fn repriced(&mut self, _now: Instant, packet: &Descriptor, len: u32) {
        if let Some(place) = self.places.get(&packet.conn) {
            let flow = &mut self.flows[*place];
            flow.deficit = flow.deficit.saturating_add(packet.len).saturating_sub(len);
        }
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        let owner = match which {
            Forget::Packet { conn, .. } => conn,
            Forget::Conn(conn) => Some(conn),
        };
        let Some(place) = self.places.get(&owner) else { return };
        let packets = &mut self.flows[*place].packets;
        let before = packets.backlog(Scope::All).packets;
        match which {
            Forget::Packet { serial, .. } => {
                if let Some(packet) = packets.take(serial) {
                    subtract(&mut self.totals[index(packet.class)], &packet);
                }
            }
            Forget::Conn(_) => {
                while let Popped::Packet(packet) = packets.pop(now, &LinkView::new(u32::MAX)) {
                    subtract(&mut self.totals[index(packet.class)], &packet);
                }
            }
        }
        if before > 0 && packets.backlog(Scope::All).packets == 0 {
            self.emptied();
        }
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        match scope {
            Scope::All => sum(self.totals.into_iter()),
            Scope::Conn(conn) => match self.places.get(&Some(conn)) {
                Some(place) => self.flows[*place].packets.backlog(scope),
                None => Backlog::default(),
            },
            Scope::Class(SegmentClass::Control(_)) => {
                sum(self.lined_up().map(|place| self.flows[place].packets.backlog(scope)))
            }
            Scope::Class(class) => self.totals[index(class)],
        }
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.bytes("turn", self.quantum.max(self.largest));
        let backlogged = self.lined_up().filter(|place| !self.flows[*place].packets.is_empty());
        report.count("backlogged_connections", backlogged.count() as u64);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut quantum = Quantum(self.quantum);
        quantum.set(self.name(), params)?;
        self.quantum = quantum.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
