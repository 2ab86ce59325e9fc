//! A node between hosts that is more than a router: it decides when, and whether, to forward a
//! packet.

use crate::packet::Packet;
use crate::queue::DropReason;
use ackline_tcp_core::Instant;
use std::any::Any;
use std::fmt::Debug;

/// A node of the simulation that receives packets and forwards them when it wants to. Forwarded
/// packets follow the routes, as from a router.
///
/// The simulation calls [`arrive`](Self::arrive) for each packet, and [`timeout`](Self::timeout)
/// when the instant of [`next_timeout`](Self::next_timeout), asked after each call, has come.
pub trait Middlebox: Debug + Send + Any {
    /// A packet arrives. Keep it, or pass it to `cx`.
    fn arrive(&mut self, cx: &mut MiddleboxCx<'_>, packet: Packet);

    /// When to call [`timeout`](Self::timeout).
    fn next_timeout(&self) -> Option<Instant>;

    /// That instant has come.
    fn timeout(&mut self, cx: &mut MiddleboxCx<'_>);
}

/// The context of one call.
#[derive(Debug)]
pub struct MiddleboxCx<'a> {
    /// The time.
    pub now: Instant,
    /// The simulation's seed, for the middlebox's own random numbers.
    pub seed: u64,
    /// Packets to forward, in this order.
    pub out: &'a mut Vec<Packet>,
    /// Packets dropped. They are counted on the link that they would have taken.
    pub dropped: &'a mut Vec<(Packet, DropReason)>,
}

/// The state of a middlebox.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) middlebox: Box<dyn Middlebox>,
    /// When the simulation calls it next.
    pub(crate) timer_at: Instant,
}
