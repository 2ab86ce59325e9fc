//! Egress scheduler: which packet leaves the host next, over all connections.
//!
//! The scheduler sees small descriptors of packets, never their bytes. `admit` is called before a
//! segment is built, so deferring costs TCP nothing; `pop` when the link has room; `departed` when
//! the last bit has left. Only data is ever deferred, and never the segment of an expired
//! retransmission timer. If nothing is queued or on the wire, the core admits packets regardless of
//! the answer, so no scheduler can stop the host.

use crate::packet::SendReason;
pub use crate::packet::{ControlKind, SegmentClass};
use crate::policy::{Metrics, Params, SpecError};
use crate::time::{Duration, Instant};
use crate::wire::Ecn;
use crate::{ConnId, SeqNum};
use alloc::boxed::Box;
use core::fmt::Debug;
use core::num::NonZeroU16;

/// An egress scheduler of one endpoint.
pub trait EgressScheduler: Debug + Send {
    /// The name under which the scheduler is chosen (`fifo`).
    fn name(&self) -> &'static str;

    /// Decides whether a packet may be queued. Called before it is built.
    fn admit(&mut self, now: Instant, ask: &Ask) -> Admission {
        let _ = (now, ask);
        Admission::Granted
    }

    /// Queues a packet that was admitted (or that the core did not have to ask for).
    fn push(&mut self, now: Instant, packet: Descriptor);

    /// Takes the next packet to send, or says why there is none.
    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped;

    /// The driver was late: while packets waited, it came at `now`, `by` after the instant given by
    /// [`pop`](Self::pop) or [`busy_until`](Self::busy_until). Called before anything is pushed or
    /// popped.
    fn woke_late(&mut self, now: Instant, by: Duration) {
        let _ = (now, by);
    }

    /// The last popped packet was sent with `len` bytes by pricing, unlike its descriptor: an ACK
    /// that gets its numbers when it is sent has the options of that moment. 0 if it had become
    /// void. Called before the packet departs or is forgotten, with the descriptor that was popped.
    fn repriced(&mut self, now: Instant, packet: &Descriptor, len: u32) {
        let _ = (now, packet, len);
    }

    /// The last bit of a packet has left.
    fn departed(&mut self, now: Instant, packet: &Descriptor) {
        let _ = (now, packet);
    }

    /// A connection accepted a segment with payload. Called once for each that the driver ingests,
    /// in order of arrival, and only if [`properties`](Self::properties) ask for it
    /// ([`SchedulerProperties::sees_arrivals`]).
    fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        let _ = (now, arrival);
    }

    /// Returns a deferred connection that may ask again. Called until it returns `None`.
    fn poll_resume(&mut self) -> Option<ConnId> {
        None
    }

    /// Queued packets became void (acknowledged meanwhile, or their connection is gone).
    fn forget(&mut self, now: Instant, which: Forget);

    /// The queued packets.
    fn backlog(&self, scope: Scope) -> Backlog;

    /// What the core may do with packets on the scheduler's behalf. Pure, and constant until the
    /// scheduler is configured: the core calls it when it gets the scheduler, and after each
    /// [`Endpoint::scheduler`](crate::Endpoint::scheduler).
    fn properties(&self) -> SchedulerProperties {
        SchedulerProperties::new()
    }

    /// Until when the last popped packet occupies the link that the scheduler emulates (a shaper).
    /// If the driver reports no departures, this is when the packet departs; `now` or earlier means
    /// at once.
    fn busy_until(&self, now: Instant) -> Instant {
        now
    }

    /// Reports the scheduler's internal variables, by name.
    fn metrics(&self, report: &mut Metrics<'_>) {
        let _ = report;
    }

    /// Changes parameters at run time: all of them or none.
    ///
    /// # Errors
    /// Names the parameter that is unknown, out of range or fixed.
    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        params.reject_all(self.name())
    }
}

impl<S: EgressScheduler + ?Sized> EgressScheduler for Box<S> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn admit(&mut self, now: Instant, ask: &Ask) -> Admission {
        (**self).admit(now, ask)
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        (**self).push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        (**self).pop(now, link)
    }

    fn woke_late(&mut self, now: Instant, by: Duration) {
        (**self).woke_late(now, by);
    }

    fn repriced(&mut self, now: Instant, packet: &Descriptor, len: u32) {
        (**self).repriced(now, packet, len);
    }

    fn departed(&mut self, now: Instant, packet: &Descriptor) {
        (**self).departed(now, packet);
    }

    fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        (**self).arrived(now, arrival);
    }

    fn poll_resume(&mut self) -> Option<ConnId> {
        (**self).poll_resume()
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        (**self).forget(now, which);
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        (**self).backlog(scope)
    }

    fn properties(&self) -> SchedulerProperties {
        (**self).properties()
    }

    fn busy_until(&self, now: Instant) -> Instant {
        (**self).busy_until(now)
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        (**self).metrics(report);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        (**self).configure(params)
    }
}

/// What the core may do with packets on a scheduler's behalf: see [`EgressScheduler::properties`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerProperties {
    /// When packets may bypass the scheduler.
    pub bypass: Bypass,
    /// How pure ACKs are treated while they are queued.
    pub acks: QueuedAcks,
    /// The largest super-packet, in bytes by pricing, that the core should build; a single segment
    /// may be larger. A scheduler that chooses packet by packet on a slow link wants small ones.
    pub largest_packet: u32,
    /// The scheduler is told of what arrives ([`EgressScheduler::arrived`]), because it depends on
    /// the rate of the other direction.
    pub sees_arrivals: bool,
    /// A connection that has nothing queued takes its next turn before those that have. A limit of
    /// the queue lets one packet of each connection in, full or not: a connection that waits to be
    /// let in cannot go first.
    pub sparse_first: bool,
}

impl SchedulerProperties {
    /// Every packet goes through the scheduler, queued ACKs get the latest numbers, super-packets
    /// may have any size, what arrives is not reported, and nobody goes first for having sent
    /// little.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bypass: Bypass::Never,
            acks: QueuedAcks::Newest,
            largest_packet: u32::MAX,
            sees_arrivals: false,
            sparse_first: false,
        }
    }

    /// The same with `bypass`.
    #[must_use]
    pub const fn with_bypass(mut self, bypass: Bypass) -> Self {
        self.bypass = bypass;
        self
    }

    /// The same with `acks`.
    #[must_use]
    pub const fn with_acks(mut self, acks: QueuedAcks) -> Self {
        self.acks = acks;
        self
    }

    /// The same with super-packets of at most `bytes`.
    #[must_use]
    pub const fn with_largest_packet(mut self, bytes: u32) -> Self {
        self.largest_packet = bytes;
        self
    }

    /// The same, told of what arrives if `sees`.
    #[must_use]
    pub const fn with_arrivals(mut self, sees: bool) -> Self {
        self.sees_arrivals = sees;
        self
    }

    /// The same; connections with nothing queued go first if `first`.
    #[must_use]
    pub const fn with_sparse_first(mut self, first: bool) -> Self {
        self.sparse_first = first;
        self
    }
}

impl Default for SchedulerProperties {
    fn default() -> Self {
        Self::new()
    }
}

/// When packets may bypass a scheduler whose queue is empty.
///
/// Only permit it if the scheduler, with an empty queue, would grant every request and pop at once
/// whatever is pushed. The core then sends packets straight to a device that has room, and does not
/// tell the scheduler about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// Never.
    Never,
    /// Until the device refuses a packet and others wait behind it, because the scheduler would
    /// reorder those.
    UntilDeviceFull,
    /// Always: the scheduler never reorders.
    Always,
}

/// How pure ACKs are treated while they are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueuedAcks {
    /// Each gets its numbers when it is sent, so a waiting ACK is always up to date, and a second
    /// one is not needed.
    Newest,
    /// Each keeps its numbers from when it was pushed, as in a queue below IP.
    Kept,
    /// As `Kept`, but a newer ACK replaces a queued one of its connection that tells the peer
    /// nothing more. ACKs with additional information stay: duplicates, SACK, ECE, a smaller
    /// window.
    Thinned,
}

/// A request to queue a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// The connection; `None` for packets without one (ICMP, RST to a closed port).
    pub conn: Option<ConnId>,
    /// Its kind.
    pub class: SegmentClass,
    /// Bytes on the link, by the endpoint's pricing.
    pub len: u32,
}

impl Ask {
    /// A request for a packet of `len` bytes.
    #[must_use]
    pub const fn new(conn: Option<ConnId>, class: SegmentClass, len: u32) -> Self {
        Self { conn, class, len }
    }
}

/// The answer to an [`Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Push it.
    Granted,
    /// Not now: [`EgressScheduler::poll_resume`] names the connection when it may ask again. If a
    /// retransmission of it is granted before that, which never waits, it need not be named any
    /// more.
    Deferred,
    /// The queue is full, and the packet is lost as on any full queue. Only applies to ACKs that
    /// keep their numbers and to packets without a connection; a packet that a connection would
    /// have to repeat is queued anyway.
    Dropped,
}

/// A queued packet as a scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Descriptor {
    /// The core's key; opaque to schedulers.
    pub id: DescriptorId,
    /// The connection; `None` for packets without one.
    pub conn: Option<ConnId>,
    /// Its kind.
    pub class: SegmentClass,
    /// Bytes on the link, by the endpoint's pricing.
    pub len: u32,
    /// Number of wire segments.
    pub segments: u32,
    /// When it was queued.
    pub queued_at: Instant,
    /// Its ECN codepoint, as far as that is known before the packet is built. For active queue
    /// management, a scheduler marks a packet by popping it with [`Ecn::Ce`]; without effect if it
    /// is not ECN-capable.
    pub ecn: Ecn,
}

impl Descriptor {
    /// A descriptor of one segment of `len` bytes.
    #[must_use]
    pub const fn new(id: DescriptorId, conn: Option<ConnId>, class: SegmentClass, len: u32) -> Self {
        Self { id, conn, class, len, segments: 1, queued_at: Instant::ZERO, ecn: Ecn::NotEct }
    }
}

/// Identifies a queued packet to the core: a reservation, built when it is popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescriptorId {
    /// Order of creation within the endpoint: unique and increasing.
    pub serial: u64,
    /// First sequence number of a segment with data; acknowledgment number of a pure ACK.
    pub seq: SeqNum,
    /// Payload bytes.
    pub payload: u32,
    /// Segment size of a super-packet.
    pub segment_size: Option<NonZeroU16>,
    /// Why it is sent.
    pub reason: SendReason,
}

impl DescriptorId {
    /// The key of the `serial`-th packet, which carries `payload` bytes at `seq`.
    #[must_use]
    pub const fn new(serial: u64, seq: SeqNum, payload: u32) -> Self {
        Self { serial, seq, payload, segment_size: None, reason: SendReason::NewData }
    }
}

/// A segment with payload that a connection accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrival {
    /// The connection.
    pub conn: ConnId,
    /// Bytes on the link by the endpoint's pricing, as of a packet that this endpoint sends. Of a
    /// segment that the device merged: the sum over its wire segments.
    pub len: u32,
    /// Number of wire segments.
    pub segments: u32,
}

impl Arrival {
    /// An arrival of one wire segment of `len` bytes.
    #[must_use]
    pub const fn new(conn: ConnId, len: u32) -> Self {
        Self { conn, len, segments: 1 }
    }
}

/// The link when the scheduler is asked for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkView {
    /// Largest packet (by pricing) that the driver accepts; `u32::MAX` if any.
    pub room: u32,
}

impl LinkView {
    /// A link that accepts packets of up to `room` bytes.
    #[must_use]
    pub const fn new(room: u32) -> Self {
        Self { room }
    }
}

/// The answer to [`EgressScheduler::pop`]. If it cannot be true (see [`Ledger`](super::Ledger)), the
/// core sends the packet that was pushed first, and has it [forgotten](EgressScheduler::forget).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popped {
    /// Send this.
    Packet(Descriptor),
    /// Drop this, as a router with active queue management does; TCP learns of it from the ACKs
    /// that follow. Permitted for data that no expired retransmission timer sends, ACKs that keep
    /// their numbers, and packets without a connection. Any other packet is sent, and the answer
    /// counts as overruled (`AcklineEgressOverruled`).
    Drop(Descriptor),
    /// Packets are queued, but none may leave before this instant (a shaper).
    NotBefore(Instant),
    /// Nothing is queued.
    Empty,
}

impl Popped {
    /// The packet that is not queued any more, sent or lost.
    #[must_use]
    pub const fn packet(&self) -> Option<&Descriptor> {
        match self {
            Self::Packet(packet) | Self::Drop(packet) => Some(packet),
            Self::NotBefore(_) | Self::Empty => None,
        }
    }

    /// The same answer about what `f` makes of the packet.
    #[must_use]
    pub fn map(self, f: impl FnOnce(Descriptor) -> Descriptor) -> Self {
        match self {
            Self::Packet(packet) => Self::Packet(f(packet)),
            Self::Drop(packet) => Self::Drop(f(packet)),
            Self::NotBefore(_) | Self::Empty => self,
        }
    }
}

/// Which queued packets became void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forget {
    /// One packet, which may have been popped already.
    Packet {
        /// Its connection.
        conn: Option<ConnId>,
        /// Its [`DescriptorId::serial`].
        serial: u64,
    },
    /// All of a connection.
    Conn(ConnId),
}

/// Which part of the backlog to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All that is queued.
    All,
    /// One connection's.
    Conn(ConnId),
    /// One class.
    Class(SegmentClass),
}

/// An amount of queued data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: usize,
    /// Bytes by pricing.
    pub bytes: u64,
}

impl core::ops::Add for Backlog {
    type Output = Self;

    /// What two queues have together.
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// Makes an egress scheduler for an endpoint.
pub type NewEgressScheduler = dyn Fn() -> Box<dyn EgressScheduler> + Send + Sync;
