//! UDP sockets.

use crate::address::ackline_address;
use crate::boundary::{Out, given, items, room, value};
use crate::stack::{ackline_stack, with};
use crate::types::ackline_socket;

/// Opens a UDP socket. The unspecified address means all addresses of its family, port 0 a free
/// port. Returns 0 and stores the socket; or `ACKLINE_EADDRINUSE`, `ACKLINE_EADDRNOTAVAIL`,
/// `ACKLINE_EINVAL` or `ACKLINE_EFAULT`.
///
/// # Safety
/// `local` is null or points to an address; `socket` is null or has room for a socket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_udp_bind(
    stack: Option<&ackline_stack>,
    local: *const ackline_address,
    now: u64,
    socket: *mut ackline_socket,
) -> i32 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let (socket, local) = unsafe { (Out::new(socket), value(local)) };
        let socket = given(socket, "socket")?;
        socket.write(host.udp_bind(given(local, "local")?.read()?, now)?);
        Ok(0)
    })
}

/// Connects a UDP socket: it sends to `peer`, receives only from `peer`, and reports ICMP errors.
/// Returns 0 or a negative code.
///
/// # Safety
/// `peer` is null or points to an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_udp_connect(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    peer: *const ackline_address,
    now: u64,
) -> i32 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let peer = given(unsafe { value(peer) }, "peer")?;
        host.udp_connect(socket, peer.read()?, now)
    })
}

/// Sends a datagram to `to`, or to the connected peer if `to` is null. The data is copied, and
/// leaves when the stack is polled. Returns `len`; `ACKLINE_EAGAIN` if the send queue is full, in
/// which case `ACKLINE_WRITABLE` reports room; `ACKLINE_EMSGSIZE` if the datagram is too large for
/// the path; or the code of an ICMP error that an earlier datagram caused, such as
/// `ACKLINE_ECONNREFUSED`.
///
/// # Safety
/// `data` is null or has `len` bytes; `to` is null or points to an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_udp_send(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    data: *const u8,
    len: usize,
    to: *const ackline_address,
    now: u64,
) -> i64 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let to = unsafe { value(to) }.map(|to| to.read()).transpose()?;
        // SAFETY: the caller's promise.
        host.udp_send(socket, unsafe { items(data, len, "data") }?, to, now)
    })
}

/// Takes the next datagram. `from` receives its source and `to` its destination; either may be
/// null. Returns the length of the data, which may be 0; `ACKLINE_EAGAIN` if there is none, in
/// which case `ACKLINE_READABLE` reports the next; or `ACKLINE_EMSGSIZE` if the data is longer than
/// `len`. The datagram then stays in the queue for a call with a larger buffer: 65,535 bytes are
/// always enough.
///
/// # Safety
/// `data` is null or has room for `len` bytes; `from` and `to` are null or have room for an
/// address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_udp_receive(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    data: *mut u8,
    len: usize,
    from: *mut ackline_address,
    to: *mut ackline_address,
) -> i64 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let received = host.udp_receive(socket, unsafe { room(data, len, "data") }?)?;
        for (to, address) in [(from, received.from), (to, received.to)] {
            // SAFETY: the caller's promise.
            if let Some(to) = unsafe { Out::new(to) } {
                to.write(address.into());
            }
        }
        Ok(received.data.len() as i64)
    })
}
