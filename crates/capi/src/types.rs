//! What a stack and its program tell each other besides packets: sockets, what has happened to them,
//! and who takes packets.

use std::ffi::{c_int, c_void};

/// A socket of a stack: a connection, a listener, or one for UDP. Handles are never used again
/// within a stack; 0 is none.
#[expect(non_camel_case_types, reason = "it is C's name")]
pub type ackline_socket = u64;

/// Takes one IP packet, which the stack sends; called by `ackline_stack_poll`. `packet` has `len`
/// bytes, at most the MTU, and is valid during the call. Returns 0 if the packet was taken, or
/// lost; another number if there is no room for it at present: then the stack keeps it, and offers
/// it first when it is polled again.
///
/// The function must return, without `longjmp` or a C++ exception, and must not call the stack that
/// calls it, which would answer `ACKLINE_EBUSY`.
#[expect(non_camel_case_types, reason = "it is C's name")]
pub type ackline_transmit =
    Option<unsafe extern "C" fn(user: *mut c_void, packet: *const u8, len: usize) -> c_int>;

/// There may be something to read: data, the end of the stream, an error; or a listener has a
/// connection.
pub const ACKLINE_READABLE: u32 = 1;
/// There may be room to write: a connection is established, or a write that was not taken whole can
/// go on.
pub const ACKLINE_WRITABLE: u32 = 2;
/// The peer has acknowledged everything written, and the end of the stream.
pub const ACKLINE_FLUSHED: u32 = 4;
/// A connection has ended: `ackline_tcp_error` says how. What was received can still be read.
pub const ACKLINE_ENDED: u32 = 8;

/// What has happened to a socket since its last event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ackline_event {
    /// The socket.
    pub socket: ackline_socket,
    /// `ACKLINE_READABLE`, `ACKLINE_WRITABLE`, `ACKLINE_FLUSHED`, `ACKLINE_ENDED`, one or several.
    pub news: u32,
}
