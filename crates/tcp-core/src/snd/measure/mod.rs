//! What the sender measures: RTT and its smallest value, delivery rate, and the time that it waits.

pub(in crate::snd) mod ack_delay;
pub(in crate::snd) mod chrono;
pub(in crate::snd) mod min_rtt;
pub(in crate::snd) mod rate;
pub(in crate::snd) mod rtt;
