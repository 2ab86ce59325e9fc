//! What the sender measures and learns of its path: RTT and its smallest value, delivery rate, path
//! MTU, and the time that it waits.

pub(in crate::snd) mod ack_delay;
pub(in crate::snd) mod chrono;
pub(in crate::snd) mod min_rtt;
pub(in crate::snd) mod path_mtu;
pub(in crate::snd) mod rate;
pub(in crate::snd) mod rtt;
