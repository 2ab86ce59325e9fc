//! Impairments of a path, other than queueing: each one sees every packet that a link has
//! serialised, in the order in which the link lists them.

mod corrupt;
mod drop_list;
mod during;
mod jitter;
mod loss;
mod policer;
mod timed;

pub use corrupt::Corrupt;
pub use drop_list::{Choose, DropList, Which};
pub use during::During;
pub use jitter::{Duplicate, Jitter, Reorder};
pub use loss::{GilbertElliott, Loss};
pub use policer::Policer;
pub use timed::{Batch, Steps};

use crate::packet::Packet;
use crate::rng::SimRng;
use ackline_tcp_core::{Duration, Instant};
use std::fmt::Debug;

/// One impairment of a link.
pub trait Impairment: Debug + Send {
    /// Decides about `packet`; `fate` is the result of the impairments before it. Not called for
    /// lost packets.
    fn apply(&mut self, cx: &mut ImpairCx<'_>, packet: &mut Packet, fate: &mut Fate);

    /// True if it corrupts octets, so that checksums are needed.
    fn corrupts(&self) -> bool {
        false
    }
}

/// The context of one packet.
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
    /// Number of additional copies that arrive with it.
    pub copies: u32,
    /// Time added to the link's delay.
    pub delay: Duration,
    /// The packet may overtake others, or be overtaken.
    pub reorders: bool,
}
