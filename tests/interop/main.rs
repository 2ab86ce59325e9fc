//! The stack against other people's TCP: the kernel's over a TUN device, each test in a network
//! namespace of its own, and smoltcp's in memory.
//!
//! Every byte is compared with what was sent. If a TUN device cannot be had, a line says `SKIPPED`
//! with the test's name. `ACKLINE_TEST_SEED` (a number) draws other fates on bad paths.

#[macro_use]
mod support;

mod attacks;
mod close;
mod counters;
mod datagrams;
mod endings;
mod ethernet;
mod fast_open;
mod hosts;
mod impaired;
mod incoming;
mod kernel_settings;
mod limits;
mod link_state;
mod many;
mod mtu;
mod open;
mod pacing;
mod path_mtu;
mod policies;
mod slow_reader;
mod smoltcp;
mod stalls;
mod tcp_info;
mod transfer;
mod uplink;
