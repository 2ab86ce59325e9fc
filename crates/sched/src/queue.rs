//! The queue of a scheduler: how much may wait in it, and how queued ACKs are treated.
//!
//! **Limit.** This many packets with data may wait, and as many others. Data beyond the limit is
//! deferred before TCP builds it, so nothing is lost; its connections ask again in turn when there
//! is room. Of the others, ACKs that keep their numbers and packets without a connection are
//! dropped, as on any full queue.
//!
//! If the scheduler lets connections with little to send go first (`flow-queue`), the limit lets a
//! connection that has nothing queued in, full or not: in line behind the data of bulk senders it
//! would lose its turn. RFC 8290 (section 4.1) drops from the longest queue instead. At most one
//! packet of each connection is beyond the limit.
//!
//! **ACKs.** With `acks=newest` a queued pure ACK gets its numbers when it is sent, so a waiting
//! ACK is always up to date and a second one is not needed. With `acks=kept` each keeps its
//! original numbers, as in a queue below IP; `thin=on` then lets a newer ACK replace an older one
//! if the peer loses no information (RFC 3449, section 5.2.1, lists the hazards).

use crate::waiters::Waiters;
use ackline_tcp_core::policy::sched::{
    Admission, Arrival, Ask, Backlog, Descriptor, EgressScheduler, Forget, LinkView, Popped, QueuedAcks,
    SchedulerProperties, Scope, SegmentClass,
};
use ackline_tcp_core::policy::spec::{Key, Keyed, set_keys};
use ackline_tcp_core::policy::{Metrics, Params, SpecError};
use ackline_tcp_core::{ConnId, Duration, Instant};

/// The parameters of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueParams {
    /// Maximum packets with data, and maximum other packets; 1 to 1,000,000 each.
    pub limit: u32,
    /// Queued ACKs keep their original numbers.
    pub keep_acks: bool,
    /// If ACKs keep their numbers, a newer one may replace an older one.
    pub thin: bool,
}

impl Default for QueueParams {
    /// 1000 packets; ACKs get their numbers when they are sent.
    fn default() -> Self {
        Self { limit: 1_000, keep_acks: false, thin: false }
    }
}

impl Keyed for QueueParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::integer(
            "limit",
            1..=1_000_000,
            "packets with data that may wait; TCP holds back what is more",
            |it| &mut it.limit,
        ),
        Key::choice(
            "acks",
            &["newest", "kept"],
            "numbers of a queued ACK: the newest when it leaves, or those it was made with",
            |it| usize::from(it.keep_acks),
            |it, at| {
                it.keep_acks = at == 1;
                it.thin &= it.keep_acks;
            },
        ),
        Key::switch(
            "thin",
            "ACKs keep their numbers, but a newer one takes the place of one that waits",
            |it| &mut it.thin,
        ),
    ];

    fn set(&mut self, policy: &str, params: &Params) -> Result<(), SpecError> {
        let mut new = *self;
        set_keys(policy, Self::KEYS, &mut new, params)?;
        if new.thin && params.get("acks").is_some() && !new.keep_acks {
            return Err(SpecError::new(
                "thin=on and acks=newest do not go together: thin=on is about ACKs that keep their numbers \
                 (leave acks= out, or write acks=kept)",
            ));
        }
        *self = new;
        Ok(())
    }
}

impl QueueParams {
    /// The limit of each kind of packet.
    const fn most(&self) -> usize {
        self.limit as usize
    }

    const fn acks(&self) -> QueuedAcks {
        match (self.thin, self.keep_acks) {
            (true, _) => QueuedAcks::Thinned,
            (false, true) => QueuedAcks::Kept,
            (false, false) => QueuedAcks::Newest,
        }
    }
}

/// A scheduler with a limited queue.
///
/// It has the name of the inner scheduler, reports its metrics in addition to its own, and passes
/// on parameters that are not the queue's.
#[derive(Clone, Debug)]
pub struct LimitedQueue<S> {
    inner: S,
    params: QueueParams,
    /// Queued packets with data.
    data: usize,
    /// Connections whose data found the queue full.
    waiting: Waiters,
    /// Those of them that have nothing queued any more and go first.
    emptied: Waiters,
    /// Connections resumed since a packet left that may not have pushed yet.
    let_in: usize,
    /// Number of times data found the queue full.
    deferred: u64,
    /// Other packets that found it full, and are lost.
    dropped: u64,
}

impl<S: EgressScheduler> LimitedQueue<S> {
    /// Limits the queue of `inner`, which is empty.
    #[must_use]
    pub fn new(inner: S, params: QueueParams) -> Self {
        Self {
            inner,
            params,
            data: 0,
            waiting: Waiters::default(),
            emptied: Waiters::default(),
            let_in: 0,
            deferred: 0,
            dropped: 0,
        }
    }

    /// The queue's parameters.
    #[must_use]
    pub const fn params(&self) -> &QueueParams {
        &self.params
    }

    /// The inner scheduler.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// It has nothing queued, so that it takes the next turn.
    fn may_go_first(&self, conn: ConnId) -> bool {
        self.inner.properties().sparse_first && self.inner.backlog(Scope::Conn(conn)).packets == 0
    }

    /// A packet of `conn` is gone: if it was the last and more waits, the connection may ask again.
    fn gone(&mut self, conn: Option<ConnId>) {
        if let Some(conn) = conn.filter(|_| self.waiting.len() > 0)
            && self.may_go_first(conn)
            && self.waiting.remove(conn)
        {
            self.emptied.insert(conn);
        }
    }

    /// Queued packets without data.
    fn others(&self) -> usize {
        self.inner.backlog(Scope::All).packets.saturating_sub(self.data)
    }

    fn count_data(&mut self) {
        let class = |class| self.inner.backlog(Scope::Class(class)).packets;
        self.data = class(SegmentClass::Data) + class(SegmentClass::Retransmit);
    }
}

impl<S: EgressScheduler> EgressScheduler for LimitedQueue<S> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn admit(&mut self, now: Instant, ask: &Ask) -> Admission {
        // Ask the scheduler first, so that a connection only waits in one place.
        let admission = self.inner.admit(now, ask);
        if ask.class.is_data() {
            let Some(conn) = ask.conn else { return admission };
            if admission == Admission::Granted && self.data >= self.params.most() && !self.may_go_first(conn)
            {
                self.deferred += 1;
                self.emptied.remove(conn);
                self.waiting.insert(conn);
                return Admission::Deferred;
            }
            self.waiting.remove(conn);
            self.emptied.remove(conn);
        } else if admission == Admission::Granted
            && self.others() >= self.params.most()
            && (ask.conn.is_none()
                || (ask.class == SegmentClass::PureAck && self.properties().acks != QueuedAcks::Newest))
        {
            self.dropped += 1;
            return Admission::Dropped;
        }
        admission
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        self.data += usize::from(packet.class.is_data());
        self.inner.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        let popped = self.inner.pop(now, link);
        if let Some(packet) = popped.packet() {
            self.data -= usize::from(packet.class.is_data()).min(self.data);
            self.let_in = 0;
            self.gone(packet.conn);
        }
        popped
    }

    fn woke_late(&mut self, now: Instant, by: Duration) {
        self.inner.woke_late(now, by);
    }

    fn repriced(&mut self, now: Instant, packet: &Descriptor, len: u32) {
        self.inner.repriced(now, packet, len);
    }

    fn departed(&mut self, now: Instant, packet: &Descriptor) {
        self.inner.departed(now, packet);
    }

    fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        self.inner.arrived(now, arrival);
    }

    fn poll_resume(&mut self) -> Option<ConnId> {
        if let Some(conn) = self.emptied.pop() {
            return Some(conn);
        }
        // No more than there is room for, or all would come for one place. But if nothing is
        // queued, no departure could resume the rest.
        if self.data == 0 || self.data + self.let_in < self.params.most() {
            let resumed = self.waiting.pop();
            if resumed.is_some() {
                self.let_in += 1;
                return resumed;
            }
        }
        self.inner.poll_resume()
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        self.inner.forget(now, which);
        match which {
            Forget::Packet { conn, .. } => self.gone(conn),
            Forget::Conn(conn) => {
                self.waiting.remove(conn);
                self.emptied.remove(conn);
            }
        }
        self.count_data();
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.inner.backlog(scope)
    }

    fn properties(&self) -> SchedulerProperties {
        let inner = self.inner.properties();
        inner.with_acks(inner.acks.max(self.params.acks()))
    }

    fn busy_until(&self, now: Instant) -> Instant {
        self.inner.busy_until(now)
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        self.inner.metrics(report);
        let all = self.inner.backlog(Scope::All);
        report.count("queued_packets", all.packets as u64);
        report.bytes("queued_bytes", all.bytes as f64);
        report.count("limit_deferred", self.deferred);
        report.count("limit_dropped", self.dropped);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let (own, rest) = params.split::<QueueParams>();
        let mut new = self.params;
        new.set("the queue", &own)?;
        self.inner.configure(&rest)?;
        self.params = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
