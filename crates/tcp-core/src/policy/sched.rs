//! Egress scheduler: what leaves the host next, over all connections.
//!
//! The scheduler sees small descriptors of packets, never their bytes. `admit` is asked before a segment is
//! built, so refusing costs TCP nothing; `pop` happens when the link has room; `departed` when the last bit has
//! left. Only data is ever deferred, and never the segment of an expired retransmission timer; where nothing is
//! queued or on the wire, the core admits what is asked, so that no scheduler can stop the host.

use crate::packet::SendReason;
pub use crate::packet::{ControlKind, SegmentClass};
use crate::policy::{Metrics, Params, SpecError};
use crate::time::{Duration, Instant};
use crate::{ConnId, SeqNum};
use alloc::boxed::Box;
use core::fmt::Debug;
use core::num::NonZeroU16;

/// An egress scheduler of one endpoint.
pub trait EgressScheduler: Debug + Send {
    /// The name under which the scheduler is chosen (`fifo`).
    fn name(&self) -> &'static str;

    /// May a packet be queued? Asked before it is built.
    fn admit(&mut self, now: Instant, ask: &Ask) -> Admission {
        let _ = (now, ask);
        Admission::Granted
    }

    /// Queues a packet that was admitted (or that the core did not have to ask for).
    fn push(&mut self, now: Instant, packet: Descriptor);

    /// The next packet to leave, or why none may.
    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped;

    /// The driver comes at `now`, and `by` later than [`pop`](Self::pop) or [`busy_until`](Self::busy_until) asked for, while packets
    /// wait. Told before anything is pushed or popped.
    fn woke_late(&mut self, now: Instant, by: Duration) {
        let _ = (now, by);
    }

    /// The packet that was popped last left as `len` bytes by pricing, and not as many as its descriptor says: an ACK
    /// that gets its numbers when it leaves has the options of that moment; 0 where it had become void. Told before it
    /// departs or is forgotten, with the descriptor that was popped.
    fn repriced(&mut self, now: Instant, packet: &Descriptor, len: u32) {
        let _ = (now, packet, len);
    }

    /// The last bit of a packet has left.
    fn departed(&mut self, now: Instant, packet: &Descriptor) {
        let _ = (now, packet);
    }

    /// A connection that was deferred and may ask again. Called until it returns `None`.
    fn poll_resume(&mut self) -> Option<ConnId> {
        None
    }

    /// A queued packet became void (acknowledged meanwhile, or its connection is gone).
    fn forget(&mut self, now: Instant, which: Forget);

    /// What is queued.
    fn backlog(&self, scope: Scope) -> Backlog;

    /// What the core may do with packets on behalf of the scheduler. Pure, and the same until the scheduler is configured: the
    /// core asks when it is given the scheduler, and again after each [`Endpoint::scheduler`](crate::Endpoint::scheduler).
    fn properties(&self) -> SchedulerProperties {
        SchedulerProperties::new()
    }

    /// Until when the packet that was popped last keeps the link busy that the scheduler imitates (a shaper). Where
    /// the driver reports no departures, that is when it departs; `now` or earlier: at once.
    fn busy_until(&self, now: Instant) -> Instant {
        now
    }

    /// Reports the scheduler's own variables, by name.
    fn metrics(&self, report: &mut Metrics<'_>) {
        let _ = report;
    }

    /// Takes new parameter values while running. All or nothing.
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

/// What the core may do with packets on behalf of a scheduler: see [`EgressScheduler::properties`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerProperties {
    /// When packets may go past the scheduler.
    pub bypass: Bypass,
    /// What becomes of pure ACKs that wait in the scheduler.
    pub acks: QueuedAcks,
    /// The longest packet, in bytes by pricing, that the core should build as a super-packet; a single segment may
    /// be longer. A scheduler that chooses packet by packet on a slow link wants small ones.
    pub largest_packet: u32,
}

impl SchedulerProperties {
    /// Every packet goes through the scheduler, queued ACKs get the newest numbers, and super-packets may be of any
    /// length.
    #[must_use]
    pub const fn new() -> Self {
        Self { bypass: Bypass::Never, acks: QueuedAcks::Newest, largest_packet: u32::MAX }
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
}

impl Default for SchedulerProperties {
    fn default() -> Self {
        Self::new()
    }
}

/// When packets may go past a scheduler that has none queued.
///
/// A scheduler that permits it would, while it has no packet queued, only grant what is asked and pop at once what is
/// pushed. The core then sends packets straight to a device that takes all there is, and tells the scheduler nothing of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// Never.
    Never,
    /// Until the device refuses a packet and others wait behind it: the scheduler would let those leave in an order of
    /// its own.
    UntilDeviceFull,
    /// Always: the scheduler changes no order.
    Always,
}

/// What becomes of pure ACKs that wait in a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueuedAcks {
    /// Each gets its numbers when it leaves, so one that waits always says the latest, and no second one need wait.
    Newest,
    /// Each keeps the numbers with which it was pushed, as in a queue below IP.
    Kept,
    /// As `Kept`, but a newer one that says all that a queued one of its connection says takes its place. ACKs of
    /// which the peer would miss something stay: duplicates, SACK, ECE, a smaller window.
    Thinned,
}

/// A request to queue a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// Whose packet; `None` for packets of no connection (ICMP, RST to a closed port).
    pub conn: Option<ConnId>,
    /// What kind.
    pub class: SegmentClass,
    /// Bytes that the link will serialise, by the endpoint's pricing.
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
    /// Not now: [`EgressScheduler::poll_resume`] names the connection when it may ask again.
    Deferred,
    /// The queue is full, and the packet is lost as on any full queue. Heeded for ACKs that keep their number
    /// and for packets of no connection; what a connection has to repeat is queued all the same.
    Dropped,
}

/// A queued packet as a scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Descriptor {
    /// The core's key; opaque to schedulers.
    pub id: DescriptorId,
    /// Whose packet; `None` for packets of no connection.
    pub conn: Option<ConnId>,
    /// What kind.
    pub class: SegmentClass,
    /// Bytes that the link will serialise, by the endpoint's pricing.
    pub len: u32,
    /// Segments on the wire that it stands for.
    pub segments: u32,
    /// When it was queued; the core's, for its statistics.
    pub queued_at: Instant,
}

impl Descriptor {
    /// A descriptor of one segment of `len` bytes.
    #[must_use]
    pub const fn new(id: DescriptorId, conn: Option<ConnId>, class: SegmentClass, len: u32) -> Self {
        Self { id, conn, class, len, segments: 1, queued_at: Instant::ZERO }
    }
}

/// Identifies a queued packet to the core: what was reserved, to be built when it is popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescriptorId {
    /// Order of creation within the endpoint; unique, and larger from push to push.
    pub serial: u64,
    /// First sequence number of a segment with data, the acknowledgment number of a pure ACK.
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

/// The link as the scheduler sees it when it is asked for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkView {
    /// Largest packet (by pricing) that the driver takes; `u32::MAX` where it takes any.
    pub room: u32,
}

impl LinkView {
    /// A link that takes packets up to `room` bytes.
    #[must_use]
    pub const fn new(room: u32) -> Self {
        Self { room }
    }
}

/// The answer to [`EgressScheduler::pop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popped {
    /// Send this.
    Packet(Descriptor),
    /// Packets wait, but none may leave before this instant (a shaper).
    NotBefore(Instant),
    /// Nothing is queued.
    Empty,
}

/// Which queued packets became void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forget {
    /// One packet, by [`DescriptorId::serial`].
    Packet(u64),
    /// All of a connection.
    Conn(ConnId),
}

/// Whose backlog is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All that is queued.
    All,
    /// One connection's.
    Conn(ConnId),
    /// One class.
    Class(SegmentClass),
}

/// What is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: usize,
    /// Bytes by pricing.
    pub bytes: u64,
}

/// Makes an egress scheduler for an endpoint.
pub type NewEgressScheduler = dyn Fn() -> Box<dyn EgressScheduler> + Send + Sync;
