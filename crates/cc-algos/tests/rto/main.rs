//! Responses to a retransmission timeout, each on a real connection, packet by packet.

mod bench;
mod comparison;
mod dclor;
mod interactions;
mod random;
