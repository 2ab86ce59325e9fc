//! Types that the program and the stack share: socket handles, events, and the callback that sends
//! packets.

use std::ffi::{c_int, c_void};

/// Handle of a socket: a connection, a listener, a held SYN or a UDP socket. A stack never reuses a
/// handle; 0 is never valid.
#[expect(non_camel_case_types, reason = "it is C's name")]
pub type ackline_socket = u64;

/// Callback that sends one IP packet: `packet` has `len` bytes, at most the MTU, and is valid only
/// during the call. `ackline_stack_poll` calls it. Return 0 if the packet was sent or dropped, any
/// other value if there is no room. The stack then keeps the packet and offers it first at the next
/// poll.
///
/// The callback must return normally: no `longjmp`, no C++ exception. It must not call its own
/// stack; such a call fails with `ACKLINE_EBUSY`.
#[expect(non_camel_case_types, reason = "it is C's name")]
pub type ackline_transmit =
    Option<unsafe extern "C" fn(user: *mut c_void, packet: *const u8, len: usize) -> c_int>;

/// The socket may be readable: there is data, the end of the stream or an error, or a connection to
/// accept.
pub const ACKLINE_READABLE: u32 = 1;
/// The socket may be writable: the connection is established, or there is room again after a
/// partial write.
pub const ACKLINE_WRITABLE: u32 = 2;
/// The peer has acknowledged everything written and the end of the stream.
pub const ACKLINE_FLUSHED: u32 = 4;
/// The connection has ended; `ackline_tcp_error` returns the reason. Data already received can
/// still be read.
pub const ACKLINE_ENDED: u32 = 8;

/// Events of one socket since its last report.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ackline_event {
    /// The socket.
    pub socket: ackline_socket,
    /// Bitwise OR of `ACKLINE_READABLE`, `ACKLINE_WRITABLE`, `ACKLINE_FLUSHED` and `ACKLINE_ENDED`.
    pub events: u32,
}
