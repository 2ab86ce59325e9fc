//! ackline on tokio: devices, namespaces, timers, and TCP streams on top of them.
#![deny(unsafe_code)]

pub mod device;
pub mod error;
mod io_error;
pub mod kernel;
mod listener;
pub mod netlink;
pub mod netns;
pub mod stack;
pub mod stats;
pub mod stream;
#[expect(unsafe_code, reason = "the one place for system calls that no safe interface covers")]
mod sys;
pub mod testing;
pub mod timer;

pub use device::Device;
pub use error::Error;
pub use listener::TcpListener;
pub use stack::Stack;
pub use stream::TcpStream;
