//! The simplest policy of each kind, so that the core works by itself.

mod ce_echo;
mod conventional;
mod delayed_ack;
mod fifo;
mod new_reno;

pub use ce_echo::CeEcho;
pub use conventional::Conventional;
pub use delayed_ack::DelayedAck;
pub use fifo::Fifo;
pub use new_reno::NewReno;
