//! The sender as a dialogue in time. Sequence numbers are relative to the first byte of the stream.

mod allowance;
mod bench;
mod chrono;
mod delivery;
mod device_mtu;
mod ecn;
mod flow;
mod loss;
mod model;
mod path_mtu;
mod rack;
mod timers;
mod tlp;
mod undo;
