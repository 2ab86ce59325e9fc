//! Responses to a retransmission timeout, and the growth of windows, each on a real connection,
//! packet by packet.

mod bench;
mod comparison;
mod dclor;
mod growth;
mod interactions;
mod random;
