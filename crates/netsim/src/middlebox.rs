//! A node between hosts that is more than a router: it decides when, and whether, a packet goes on.

use crate::packet::Packet;
use crate::queue::DropReason;
use ackline_tcp_core::Instant;
use std::any::Any;
use std::fmt::Debug;

/// A node of the simulation that takes packets in and gives them out when it wants to. What it gives out follows the routes, as
/// behind a router.
///
/// The simulation calls [`arrive`](Self::arrive) for each packet, and [`timeout`](Self::timeout) when the instant of
/// [`next_timeout`](Self::next_timeout), asked after each call, has come.
pub trait Middlebox: Debug + Send + Any {
    /// A packet arrives. It is kept, or goes to `cx` at once.
    fn arrive(&mut self, cx: &mut MiddleboxCx<'_>, packet: Packet);

    /// When it wants to be called.
    fn next_timeout(&self) -> Option<Instant>;

    /// That instant has come.
    fn timeout(&mut self, cx: &mut MiddleboxCx<'_>);
}

/// The surroundings of one call.
#[derive(Debug)]
pub struct MiddleboxCx<'a> {
    /// The time.
    pub now: Instant,
    /// The simulation's seed, for random numbers of the middlebox's own.
    pub seed: u64,
    /// Packets that go on, in this order.
    pub out: &'a mut Vec<Packet>,
    /// Packets that end here. They are counted on the link by which they would have left.
    pub dropped: &'a mut Vec<(Packet, DropReason)>,
}

/// A middlebox at work.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) middlebox: Box<dyn Middlebox>,
    /// When the simulation calls it next.
    pub(crate) timer_at: Instant,
}
