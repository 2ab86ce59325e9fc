//! UDP flows by four-tuple, and how long each has been silent.
//!
//! A flow that the application has not answered yet is *new*. New flows are in a table of their
//! own, because they are the ones that make room: a stranger who forges addresses gets no answers,
//! so it cannot displace a flow that had one.

use crate::four_tuple::FourTuple;
use crate::id::UdpId;
use crate::share::spread;
use crate::share::{DeadlineTable, Hashed};
use crate::time::{Duration, Instant};
use siphasher::sip::SipHasher13;

/// The port of DNS.
const DNS: u16 = 53;

/// How long flows may be silent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Any flow.
    pub(crate) flow: Duration,
    /// One to port 53.
    pub(crate) dns: Duration,
}

impl Timeouts {
    const fn of(&self, tuple: &FourTuple) -> Duration {
        if tuple.local_port() == DNS { self.dns } else { self.flow }
    }
}

/// The flows of an endpoint. All operations are O(1).
pub(crate) struct Flows {
    /// Those that the application has not answered.
    new: Table,
    answered: Table,
    hasher: SipHasher13,
}

/// A lane for each timeout, and one for flows that began before a timeout was changed.
type Table = DeadlineTable<Flow, 3>;

#[derive(Debug)]
struct Flow {
    tuple: FourTuple,
    hash: u32,
    socket: UdpId,
}

impl Hashed for Flow {
    fn table_hash(&self) -> u64 {
        spread(self.hash)
    }
}

impl Flows {
    /// No flows. The secret must be random if peers are not trusted.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { new: Table::default(), answered: Table::default(), hasher: SipHasher13::new_with_key(&secret) }
    }

    /// Number of flows.
    pub(crate) const fn len(&self) -> usize {
        self.new.len() + self.answered.len()
    }

    /// The flow with this four-tuple.
    pub(crate) fn find(&self, tuple: &FourTuple) -> Option<UdpId> {
        if self.len() == 0 {
            return None;
        }
        let (table, place) = self.look_up(tuple)?;
        Some(table.get(place)?.socket)
    }

    fn look_up(&self, tuple: &FourTuple) -> Option<(&Table, u32)> {
        let hash = spread(self.hash(tuple));
        let is_it = |flow: &Flow| flow.tuple == *tuple;
        let new = self.new.find(hash, is_it).map(|place| (&self.new, place));
        new.or_else(|| self.answered.find(hash, is_it).map(|place| (&self.answered, place)))
    }

    /// Adds a new flow, which must not be there, to at most `most`.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        tuple: FourTuple,
        socket: UdpId,
        timeouts: Timeouts,
        most: usize,
    ) {
        let hash = self.hash(&tuple);
        let flow = Flow { tuple, hash, socket };
        self.new.insert(flow, now, timeouts.of(&tuple), most);
    }

    /// A datagram of the flow has come.
    pub(crate) fn heard(&mut self, now: Instant, tuple: &FourTuple, timeouts: Timeouts) {
        let hash = spread(self.hash(tuple));
        for table in [&mut self.new, &mut self.answered] {
            if let Some(place) = table.find(hash, |flow| flow.tuple == *tuple) {
                table.move_to(place, now, timeouts.of(tuple));
                return;
            }
        }
    }

    /// The application has sent a datagram to the flow's peer.
    pub(crate) fn answered(&mut self, now: Instant, tuple: &FourTuple, timeouts: Timeouts, most: usize) {
        let hash = spread(self.hash(tuple));
        match self.new.find(hash, |flow| flow.tuple == *tuple) {
            Some(place) => {
                if let Some(flow) = self.new.remove(place) {
                    self.answered.insert(flow, now, timeouts.of(tuple), most);
                }
            }
            None => self.heard(now, tuple, timeouts),
        }
    }

    /// The flow is over.
    pub(crate) fn remove(&mut self, tuple: &FourTuple) {
        let hash = spread(self.hash(tuple));
        for table in [&mut self.new, &mut self.answered] {
            if let Some(place) = table.find(hash, |flow| flow.tuple == *tuple) {
                table.remove(place);
            }
        }
    }

    /// Takes out the new flow that has been silent for longest.
    pub(crate) fn evict(&mut self) -> Option<UdpId> {
        let oldest = self.new.oldest()?;
        self.new.remove(oldest).map(|flow| flow.socket)
    }

    /// When the next flow has been silent for too long.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        if self.len() == 0 {
            return None;
        }
        let ends = [self.new.next(), self.answered.next()];
        ends.into_iter().flatten().map(|(at, _)| at).min()
    }

    /// Takes out a flow that has been silent for too long at `now`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<UdpId> {
        for table in [&mut self.new, &mut self.answered] {
            if let Some((_, place)) = table.next().filter(|(at, _)| *at <= now) {
                return table.remove(place).map(|flow| flow.socket);
            }
        }
        None
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.new.memory() + self.answered.memory()
    }

    fn hash(&self, tuple: &FourTuple) -> u32 {
        self.hasher.hash(tuple.as_bytes()) as u32
    }
}

impl core::fmt::Debug for Flows {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Flows")
            .field("new", &self.new.len())
            .field("answered", &self.answered.len())
            .finish_non_exhaustive()
    }
}
