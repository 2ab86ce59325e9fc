//! ackline for C: a TCP stack over callbacks for packets. The header is `include/ackline.h`, and
//! the page docs/c.md.
//!
//! **Give the stack packets and the time; then poll it, which sends, and handle the events, until
//! there are none; then sleep until the deadline or the next input.** The stack does no I/O, starts
//! no thread and reads no clock.
//!
//! | file | holds |
//! |---|---|
//! | `stack.rs`, `tcp.rs`, `udp.rs`, `address.rs` | the functions that C calls: each is the arguments of one method of `Host` |
//! | `host.rs`, `host/` | a stack with its sockets, in safe Rust |
//! | `sockets.rs` | handles that cannot be confused with later ones, and the news of sockets |
//! | `error.rs`, `state.rs`, `info.rs` | codes and texts; the states and the snapshot of a connection |
//! | `types.rs` | sockets, events, and the function that takes packets |
//! | `boundary.rs` | what crosses the boundary: panics, pointers, the callback |
//! | `wake.rs` | the descriptor that is readable when there are events |
//!
//! **What C can get wrong.** A null pointer, a closed or foreign socket, a wrong length, a call
//! from the callback or from a second thread give an error. A pointer that is neither null nor
//! valid, and a stack that has been freed, cannot be told from good ones.
//!
//! A panic is a bug of ours. It does not unwind into C: the call fails with
//! [`ACKLINE_ENOTRECOVERABLE`](error::ACKLINE_ENOTRECOVERABLE), and so do all later ones of that
//! stack.

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
