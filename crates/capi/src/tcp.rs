//! Listeners and connections.

use crate::address::ackline_address;
use crate::boundary::{Out, given, items, room, text, value};
use crate::error::Failure;
use crate::stack::{ackline_stack, with};
use crate::types::ackline_socket;
use ackline_tcp_core::endpoint::Refusal;
use ackline_tcp_core::{ListenOn, Target};
use std::ffi::c_char;
use std::net::SocketAddr;

/// For `ackline_tcp_listen`: hold each SYN unanswered until the program decides.
/// `ackline_tcp_accept` returns it as a socket, for `ackline_tcp_answer` or `ackline_tcp_refuse`.
pub const ACKLINE_HOLD_SYNS: u32 = 1;

/// For `ackline_tcp_refuse`: send an RST, as a closed port does.
pub const ACKLINE_REFUSE_RST: i32 = 0;
/// For `ackline_tcp_refuse`: send nothing. The client retries and eventually times out.
pub const ACKLINE_REFUSE_SILENTLY: i32 = 1;
/// For `ackline_tcp_refuse`: send an ICMP destination unreachable error, within the stack's rate
/// limit for ICMP errors.
pub const ACKLINE_REFUSE_UNREACHABLE: i32 = 2;

/// Listens on an address and port of the stack. The unspecified address (0.0.0.0 or ::) means all
/// addresses, and with port 0 every port of every address, as a tunnel needs. Port 0 of a specific
/// address picks a free port; `ackline_socket_addresses` returns it.
///
/// `options` override settings for accepted connections, as in `ackline_tcp_connect`; null for
/// none. `flags` is 0 or `ACKLINE_HOLD_SYNS`.
///
/// Returns 0 and stores the socket; or `ACKLINE_EINVAL`, `ACKLINE_EADDRINUSE`,
/// `ACKLINE_EADDRNOTAVAIL` or `ACKLINE_EFAULT`.
///
/// # Safety
/// `on` is null or points to an address; `options` is null or a NUL-terminated string; `socket` is
/// null or has room for a socket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_tcp_listen(
    stack: Option<&ackline_stack>,
    on: *const ackline_address,
    options: *const c_char,
    flags: u32,
    now: u64,
    socket: *mut ackline_socket,
) -> i32 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let socket = given(unsafe { Out::new(socket) }, "socket")?;
        if flags & !ACKLINE_HOLD_SYNS != 0 {
            return Err(Failure::invalid(format!(
                "unknown flags {flags:#x}; the only flag is ACKLINE_HOLD_SYNS"
            )));
        }
        // SAFETY: the caller's promise.
        let options = unsafe { text(options, "options") }?;
        // SAFETY: the caller's promise.
        let on = listen_on(given(unsafe { value(on) }, "on")?.read()?);
        socket.write(host.listen(on, options, flags & ACKLINE_HOLD_SYNS != 0, now)?);
        Ok(0)
    })
}

fn listen_on(address: SocketAddr) -> ListenOn {
    match (address.ip().is_unspecified(), address.port()) {
        (true, 0) => ListenOn::Any,
        (true, port) => ListenOn::Port(port),
        (false, _) => ListenOn::Address(address),
    }
}

/// Takes the next connection of a listener, and its peer's address if `peer` is not null. Returns 0
/// and stores the socket; `ACKLINE_EAGAIN` if there is none, in which case `ACKLINE_READABLE`
/// reports the next; or `ACKLINE_EBADF`, `ACKLINE_EOPNOTSUPP` or `ACKLINE_EFAULT`.
///
/// The socket is writable at once. An event follows if it is already readable.
///
/// # Safety
/// `socket` is null or has room for a socket; `peer` is null or has room for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_tcp_accept(
    stack: Option<&ackline_stack>,
    listener: ackline_socket,
    socket: *mut ackline_socket,
    peer: *mut ackline_address,
) -> i32 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let socket = given(unsafe { Out::new(socket) }, "socket")?;
        let (accepted, address) = host.accept(listener)?;
        socket.write(accepted);
        // SAFETY: the caller's promise.
        if let Some(peer) = unsafe { Out::new(peer) } {
            peer.write(address.into());
        }
        Ok(0)
    })
}

/// Answers a SYN held by a listener with `ACKLINE_HOLD_SYNS`. `ACKLINE_WRITABLE` reports that the
/// connection is established, `ACKLINE_ENDED` that it failed. Returns 0; `ACKLINE_EINVAL` if the
/// time is invalid, in which case the SYN is still held; or another negative code. If that comes
/// from an open socket of a held SYN, the SYN is lost, and its socket can only be closed.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_answer(stack: Option<&ackline_stack>, syn: ackline_socket, now: u64) -> i32 {
    with(stack, |host| host.answer(syn, now))
}

/// Refuses a SYN held by a listener with `ACKLINE_HOLD_SYNS`, and closes its socket. `how` is
/// `ACKLINE_REFUSE_RST`, `ACKLINE_REFUSE_SILENTLY` or `ACKLINE_REFUSE_UNREACHABLE`. Returns 0, or a
/// negative code, in which case the socket stays open.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_refuse(
    stack: Option<&ackline_stack>,
    syn: ackline_socket,
    how: i32,
    now: u64,
) -> i32 {
    with(stack, |host| {
        let how = match how {
            ACKLINE_REFUSE_RST => Refusal::Rst,
            ACKLINE_REFUSE_SILENTLY => Refusal::Drop,
            ACKLINE_REFUSE_UNREACHABLE => Refusal::Unreachable,
            other => {
                return Err(Failure::invalid(format!(
                    "unknown refusal {other}; it is one of ACKLINE_REFUSE_RST, _SILENTLY, _UNREACHABLE"
                )));
            }
        };
        host.refuse(syn, how, now)
    })
}

/// Connects to `peer`. `local`, if not null, is the local address and port; either may be
/// unspecified. The SYN leaves when the stack is polled. `ACKLINE_WRITABLE` reports that the
/// connection is established, `ACKLINE_ENDED` that it failed.
///
/// `options` override settings of this connection, as in `cc=reno,ack=immediate,keep_alive=2m`;
/// null for none. `ackline list conn` lists them.
///
/// Returns 0 and stores the socket; or `ACKLINE_EINVAL`, `ACKLINE_EADDRINUSE`,
/// `ACKLINE_EADDRNOTAVAIL`, `ACKLINE_ENFILE`, `ACKLINE_ENOMEM` or `ACKLINE_EFAULT`.
///
/// # Safety
/// `peer` and `local` are null or point to addresses; `options` is null or a NUL-terminated string;
/// `socket` is null or has room for a socket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_tcp_connect(
    stack: Option<&ackline_stack>,
    peer: *const ackline_address,
    local: *const ackline_address,
    options: *const c_char,
    now: u64,
    socket: *mut ackline_socket,
) -> i32 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let socket = given(unsafe { Out::new(socket) }, "socket")?;
        // SAFETY: the caller's promise.
        let options = unsafe { text(options, "options") }?;
        // SAFETY: the caller's promise.
        let (peer, local) = unsafe { (value(peer), value(local)) };
        let mut target = Target::new(given(peer, "peer")?.read()?);
        if let Some(local) = local {
            let local = local.read()?;
            target.local_address = Some(local.ip()).filter(|ip| !ip.is_unspecified());
            target.local_port = Some(local.port()).filter(|port| *port != 0);
        }
        socket.write(host.connect(target, options, now)?);
        Ok(0)
    })
}

/// Copies as many of the `len` bytes at `data` as fit into the send buffer. They leave when the
/// stack is polled, or once the connection is established. Returns the number of bytes taken;
/// `ACKLINE_EAGAIN` if there is no room, in which case `ACKLINE_WRITABLE` reports when there is;
/// `ACKLINE_EPIPE` after `ackline_tcp_shutdown`; or the code of the error that ended the
/// connection.
///
/// # Safety
/// `data` is null or has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_tcp_write(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    data: *const u8,
    len: usize,
    now: u64,
) -> i64 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        host.write(socket, unsafe { items(data, len, "data") }?, now)
    })
}

/// Copies up to `len` received bytes to `to`; `len` must not be 0. Returns the number of bytes; 0
/// at the end of the stream; `ACKLINE_EAGAIN` if there are none yet, in which case
/// `ACKLINE_READABLE` reports when there are; `ACKLINE_ENOTCONN` before the connection is
/// established; or the code of the error that ended the connection before the end of the stream.
///
/// # Safety
/// `to` is null or has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_tcp_read(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    to: *mut u8,
    len: usize,
    now: u64,
) -> i64 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        host.read(socket, unsafe { room(to, len, "to") }?, now)
    })
}

/// Shuts down sending: a FIN follows the data written. Receiving stays open. `ACKLINE_FLUSHED`
/// reports that the peer has acknowledged everything. Returns 0 or a negative code.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_shutdown(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    now: u64,
) -> i32 {
    with(stack, |host| host.shutdown(socket, now))
}

/// Resets a connection: sends an RST and discards data not delivered yet. The socket stays open
/// until it is closed. Returns 0 or a negative code.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_abort(stack: Option<&ackline_stack>, socket: ackline_socket, now: u64) -> i32 {
    with(stack, |host| host.abort(socket, now))
}

/// Changes settings of an existing connection, as in `cc=reno,nagle=off`: all of them or, if one is
/// refused, none. Returns 0 or a negative code; after `ACKLINE_EINVAL`, `ackline_last_error` names
/// the settings that can change.
///
/// # Safety
/// `options` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_tcp_set(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    options: *const c_char,
    now: u64,
) -> i32 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let options = given(unsafe { text(options, "options") }?, "options")?;
        host.set(socket, options, now)
    })
}

/// Returns the state of a TCP socket, such as `ACKLINE_ESTABLISHED`; or `ACKLINE_EBADF` or
/// `ACKLINE_EOPNOTSUPP`.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_state(stack: Option<&ackline_stack>, socket: ackline_socket) -> i32 {
    with(stack, |host| host.state(socket))
}

/// Returns the error that ended a connection, such as `ACKLINE_ECONNRESET`; 0 if it has not ended,
/// or if both sides closed it. `ACKLINE_EBADF` and `ACKLINE_EOPNOTSUPP` are errors of the call
/// itself: no connection ends with them.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_error(stack: Option<&ackline_stack>, socket: ackline_socket) -> i32 {
    with(stack, |host| host.end(socket))
}

/// Returns 1 if the peer has acknowledged everything written and the end of the stream, 0 if not,
/// or a negative code. Once 1, it stays 1, however the connection ends.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_is_flushed(stack: Option<&ackline_stack>, socket: ackline_socket) -> i32 {
    with(stack, |host| host.is_flushed(socket))
}

/// Stores the local and the remote address of a socket of any kind. Either pointer may be null. An
/// address that the socket does not have, such as the remote address of a listener, is 0.0.0.0:0.
/// Returns 0 or a negative code.
///
/// # Safety
/// `local` and `remote` are null or have room for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_socket_addresses(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    local: *mut ackline_address,
    remote: *mut ackline_address,
) -> i32 {
    with(stack, |host| {
        let (here, there) = host.addresses(socket)?;
        let there = there.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        for (to, address) in [(local, here), (remote, there)] {
            // SAFETY: the caller's promise.
            if let Some(to) = unsafe { Out::new(to) } {
                to.write(address.into());
            }
        }
        Ok(0)
    })
}

/// Closes a socket of any kind. Its handle is invalid afterwards.
///
/// A connection still delivers what was written, for which the stack must be polled; if received
/// data was left unread, it is reset instead (RFC 9293, section 3.6.1). Closing a listener resets
/// the connections that were not accepted. Closing a held SYN refuses it with an RST.
///
/// Returns 0, `ACKLINE_EBADF` or `ACKLINE_EINVAL`.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_socket_close(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    now: u64,
) -> i32 {
    with(stack, |host| host.close(socket, now))
}
