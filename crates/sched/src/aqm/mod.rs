//! The arithmetic of DualPI2 and PI2 (RFC 9332, appendix A), for any kind of packet: the scheduler
//! [`dualpi2`](crate::dualpi2) has descriptors, a simulated router whole packets.
//!
//! | type | what it decides |
//! |---|---|
//! | [`PiController`] | the probability p', from the queueing delay and its trend |
//! | [`Coupling`] | what p' means for packets of both kinds |
//! | [`Ramp`] | the marking of the L4S queue by itself |
//! | [`Credit`] | which of the two queues goes next |

mod coupling;
mod pi;
mod ramp;
mod turns;

pub use coupling::{Coupling, Verdict};
pub use pi::{Arithmetic, PiController, PiParams};
pub use ramp::Ramp;
pub use turns::{Credit, Turns, Which};

/// Size of a full packet with its Ethernet header, as Linux counts it.
pub const MTU: u64 = 1_514;
