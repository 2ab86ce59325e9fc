//! The stack against other people's TCP: the kernel's over a TUN device, each test in a network
//! namespace of its own, and smoltcp's in memory.
//!
//! Every byte is compared with what was sent. If a TUN device cannot be had, a line says `SKIPPED`
//! with the test's name. `ACKLINE_TEST_SEED` (a number) draws other fates on bad paths.

#[macro_use]
mod support;

mod attacks;
mod datagrams;
mod hosts;
mod kernel_settings;
mod lifecycle;
mod links;
mod many;
mod pacing;
mod paths;
mod policies;
mod slow_reader;
mod smoltcp;
mod statistics;
mod transfer;
