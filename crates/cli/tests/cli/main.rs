//! The `ackline` binary from outside.

#[expect(dead_code, reason = "parts are for tests with a device")]
mod common;
mod usage;
