//! ackline on tokio: devices, namespaces, timers, and TCP streams on top of them.
#![deny(unsafe_code)]

pub mod device;
pub mod error;
pub mod netlink;
pub mod netns;
#[expect(unsafe_code, reason = "the one place for system calls that no safe interface covers")]
mod sys;
pub mod testing;
pub mod timer;

pub use device::Device;
pub use error::Error;
