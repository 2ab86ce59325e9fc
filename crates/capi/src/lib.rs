//! ackline for C: a userspace TCP stack without I/O of its own. The header is `include/ackline.h`,
//! the guide docs/c.md.
//!
//! **Pass in packets and the time; poll, which sends; handle events, and repeat until there are
//! none; then sleep until the deadline or the next input.** The stack does no I/O, starts no thread
//! and reads no clock.
//!
//! | file | holds |
//! |---|---|
//! | `stack.rs`, `tcp.rs`, `udp.rs`, `address.rs` | functions called from C, each one method of `Host` |
//! | `host.rs`, `host/` | a stack and its sockets, in safe Rust |
//! | `sockets.rs` | handles, which are never reused, and events that the program has not taken |
//! | `error.rs`, `state.rs`, `info.rs` | error codes and texts; the states and the snapshot of a connection |
//! | `types.rs` | sockets, events, and the callback that takes packets |
//! | `boundary.rs` | what crosses the C boundary: panics, pointers, the callback |
//! | `wake.rs` | the descriptor that is readable while events are pending |
//!
//! **Misuse.** A null pointer, a closed socket or one of another stack, a wrong length, and a call
//! from the callback or from a second thread are errors. A dangling pointer and a freed stack cannot
//! be detected.
//!
//! A panic is a bug in ackline. It does not unwind into C: the call and all later calls of that
//! stack fail with [`ACKLINE_ENOTRECOVERABLE`](error::ACKLINE_ENOTRECOVERABLE).

pub mod address;
mod boundary;
pub mod error;
mod host;
pub mod info;
mod sockets;
pub mod stack;
pub mod state;
pub mod tcp;
#[cfg(test)]
mod tests;
pub mod types;
pub mod udp;
mod wake;
