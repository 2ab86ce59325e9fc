//! UDP sockets.

use crate::address::ackline_address;
use crate::boundary::{Out, given, items, room, value};
use crate::stack::{ackline_stack, with};
use crate::types::ackline_socket;

/// Opens a UDP socket. An unspecified address means all addresses of its family, port 0 a free
/// port. Returns 0 and the socket, or `ACKLINE_EADDRINUSE`, `ACKLINE_EADDRNOTAVAIL`,
/// `ACKLINE_EINVAL`, `ACKLINE_EFAULT`.
///
/// # Safety
/// `local` is null or an address; `socket` is null or has room for a socket.
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

/// Connects a UDP socket: it sends to `peer`, receives from nobody else, and is told ICMP errors.
/// Returns 0, or a negative code.
///
/// # Safety
/// `peer` is null or an address.
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

/// Sends a datagram to `to`, or where the socket is connected to if `to` is null. The data is
/// copied, and leaves when the stack is polled. Returns `len`; `ACKLINE_EAGAIN` if too many wait,
/// and `ACKLINE_WRITABLE` tells when there is room; `ACKLINE_EMSGSIZE` if it is longer than the
/// path carries; or the code of an ICMP error about an earlier one, such as `ACKLINE_ECONNREFUSED`.
///
/// # Safety
/// `data` is null or has `len` bytes; `to` is null or an address.
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

/// Takes the next datagram. `from` gets its sender and `to` the address it was sent to; both may be
/// null. Returns the length of its data, which may be 0; `ACKLINE_EAGAIN` if there is none, and
/// `ACKLINE_READABLE` tells of the next; `ACKLINE_EMSGSIZE` if it has more than `len` bytes: then
/// it waits for a call with more room, of which 65,535 bytes are always enough.
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
