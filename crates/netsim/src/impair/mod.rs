//! What a path does to packets, beside making them wait: each impairment looks at every packet that a link has serialised,
//! in the order in which the link lists them.

mod corrupt;
mod drop_list;
mod during;
mod jitter;
mod loss;

pub use corrupt::Corrupt;
pub use drop_list::{Choose, DropList, Which};
pub use during::During;
pub use jitter::{Duplicate, Jitter, Reorder};
pub use loss::{GilbertElliott, Loss};

use crate::packet::Packet;
use crate::rng::SimRng;
use ackline_tcp_core::{Duration, Instant};
use std::fmt::Debug;

/// One impairment of a link.
pub trait Impairment: Debug + Send {
    /// Decides about `packet`; `fate` says what those before it decided. Not called for packets that are lost.
    fn apply(&mut self, cx: &mut ImpairCx<'_>, packet: &mut Packet, fate: &mut Fate);

    /// True if it damages octets, so that only checksums tell what is intact.
    fn corrupts(&self) -> bool {
        false
    }
}

/// The surroundings of one packet.
#[derive(Debug)]
pub struct ImpairCx<'a> {
    /// When the packet's last bit left the link.
    pub now: Instant,
    /// The link's random numbers.
    pub rng: &'a mut SimRng,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// It does not arrive.
    pub lost: bool,
    /// More copies that arrive with it.
    pub copies: u32,
    /// Time added to the link's delay.
    pub delay: Duration,
    /// The packet may overtake, or be overtaken by, others.
    pub reorders: bool,
}
