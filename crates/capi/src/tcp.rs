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

/// For `ackline_tcp_listen`: nothing is answered before the program has decided. Each SYN is a
/// socket that `ackline_tcp_accept` returns, and that `ackline_tcp_answer` or `ackline_tcp_refuse`
/// answers.
pub const ACKLINE_HOLD_SYNS: u32 = 1;

/// For `ackline_tcp_refuse`: an RST, as from a port that nobody listens on.
pub const ACKLINE_REFUSE_RST: i32 = 0;
/// For `ackline_tcp_refuse`: nothing; the client tries again, and times out in the end.
pub const ACKLINE_REFUSE_SILENTLY: i32 = 1;
/// For `ackline_tcp_refuse`: an ICMP error, within the limits of such errors.
pub const ACKLINE_REFUSE_UNREACHABLE: i32 = 2;

/// Listens on an address and port of the stack. An unspecified address (0.0.0.0 or ::) means all
/// addresses, and with port 0 every port of every address, for tunnels. Port 0 of one address picks
/// a free port, which `ackline_socket_addresses` tells.
///
/// `options` change settings of accepted connections, as for `ackline_tcp_connect`; null: none.
/// `flags` is 0 or `ACKLINE_HOLD_SYNS`.
///
/// Returns 0 and the socket, or `ACKLINE_EINVAL`, `ACKLINE_EADDRINUSE`, `ACKLINE_EADDRNOTAVAIL`,
/// `ACKLINE_EFAULT`.
///
/// # Safety
/// `on` is null or an address; `options` is null or a string that ends with a zero; `socket` is
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
            return Err(Failure::invalid(format!("there is no flag {flags:#x}")));
        }
        // SAFETY: the caller's promise.
        let options = unsafe { text(options, "options") }?;
        // SAFETY: the caller's promise.
        let on = place(given(unsafe { value(on) }, "on")?.read()?);
        socket.write(host.listen(on, options, flags & ACKLINE_HOLD_SYNS != 0, now)?);
        Ok(0)
    })
}

fn place(address: SocketAddr) -> ListenOn {
    match (address.ip().is_unspecified(), address.port()) {
        (true, 0) => ListenOn::Any,
        (true, port) => ListenOn::Port(port),
        (false, _) => ListenOn::Address(address),
    }
}

/// The next connection of a listener, and its peer's address, if `peer` is not null. Returns 0 and
/// the socket; `ACKLINE_EAGAIN` if there is none, and `ACKLINE_READABLE` tells of the next; or
/// `ACKLINE_EBADF`, `ACKLINE_EOPNOTSUPP`, `ACKLINE_EFAULT`.
///
/// The socket can be written to at once. If there is something to read already, an event tells.
///
/// # Safety
/// `socket` is null or has room for a socket, `peer` is null or has room for an address.
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

/// Answers a SYN that a listener with `ACKLINE_HOLD_SYNS` has held. `ACKLINE_WRITABLE` tells that
/// it has become a connection, `ACKLINE_ENDED` that it will not. Returns 0; or a negative code:
/// then it will not, and the socket is only to be closed.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_answer(stack: Option<&ackline_stack>, syn: ackline_socket, now: u64) -> i32 {
    with(stack, |host| host.answer(syn, now))
}

/// Refuses a SYN that a listener with `ACKLINE_HOLD_SYNS` has held, and closes its socket. `how` is
/// `ACKLINE_REFUSE_RST`, `ACKLINE_REFUSE_SILENTLY` or `ACKLINE_REFUSE_UNREACHABLE`. Returns 0, or a
/// negative code: then the socket is not closed.
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
            other => return Err(Failure::invalid(format!("there is no way {other} to refuse"))),
        };
        host.refuse(syn, how, now)
    })
}

/// Connects to `peer`, from `local` if it is not null: its port may be 0, and its address
/// unspecified, for any. The SYN leaves when the stack is polled; `ACKLINE_WRITABLE` tells that the
/// connection is established, `ACKLINE_ENDED` that it failed.
///
/// `options` change settings of this connection, as in `cc=reno,ack=immediate,keep_alive=2m`; null:
/// none. `ackline list conn` prints all of them.
///
/// Returns 0 and the socket, or `ACKLINE_EINVAL`, `ACKLINE_EADDRINUSE`, `ACKLINE_EADDRNOTAVAIL`,
/// `ACKLINE_ENFILE`, `ACKLINE_ENOMEM`, `ACKLINE_EFAULT`.
///
/// # Safety
/// `peer` and `local` are null or addresses; `options` is null or a string that ends with a zero;
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

/// Takes as many of the `len` bytes at `data` as there is room for, and copies them. They leave
/// when the stack is polled. Returns how many were taken; `ACKLINE_EAGAIN` if there is no room, and
/// `ACKLINE_WRITABLE` tells when there is; `ACKLINE_EPIPE` after `ackline_tcp_shutdown`, or the
/// code of the error that ended the connection. What is written while a connection is being opened
/// leaves when it is established.
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

/// Copies up to `len` received bytes to `to`. Returns how many; 0 at the end of the stream;
/// `ACKLINE_EAGAIN` if there are none yet, and `ACKLINE_READABLE` tells when there are;
/// `ACKLINE_ENOTCONN` before the connection is established; or the code of the error that ended it
/// before the end of the stream. `len` must not be 0.
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

/// Ends the stream that this side sends: a FIN follows what was written. The other direction stays
/// open. `ACKLINE_FLUSHED` tells that the peer has everything. Returns 0, or a negative code.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_shutdown(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    now: u64,
) -> i32 {
    with(stack, |host| host.shutdown(socket, now))
}

/// Resets a connection: the peer gets an RST, and what was written and not delivered is lost. The
/// socket stays until it is closed. Returns 0, or a negative code.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_abort(stack: Option<&ackline_stack>, socket: ackline_socket, now: u64) -> i32 {
    with(stack, |host| host.abort(socket, now))
}

/// Changes settings of a connection, as in `cc=reno,nagle=off`: those that can change while it
/// lives. Either all change or none. Returns 0, or `ACKLINE_EINVAL`, of which `ackline_last_error`
/// says what can change.
///
/// # Safety
/// `options` is null or a string that ends with a zero.
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

/// The state of a socket, `ACKLINE_ESTABLISHED` and so on; or `ACKLINE_EBADF`,
/// `ACKLINE_EOPNOTSUPP`.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_state(stack: Option<&ackline_stack>, socket: ackline_socket) -> i32 {
    with(stack, |host| host.state(socket))
}

/// How a connection ended: the code of an error, such as `ACKLINE_ECONNRESET`; 0 if it has not
/// ended, or both sides closed it. Other codes are `ACKLINE_EBADF` and `ACKLINE_EOPNOTSUPP`, with
/// which no connection ends.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_error(stack: Option<&ackline_stack>, socket: ackline_socket) -> i32 {
    with(stack, |host| host.end(socket))
}

/// 1 if the peer has acknowledged everything written and the end of the stream, 0 if not; or a
/// negative code. Stays 1 however the connection ends later.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_tcp_is_flushed(stack: Option<&ackline_stack>, socket: ackline_socket) -> i32 {
    with(stack, |host| host.is_flushed(socket))
}

/// The addresses of a socket of any kind. `local` and `remote` may be null. What a socket does not
/// have, such as the remote address of a listener, is 0.0.0.0:0. Returns 0, or a negative code.
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

/// Closes a socket of any kind; its handle is invalid afterwards.
///
/// A connection delivers what was written, and ends; it is reset if something received was not read
/// (RFC 9293, section 3.6.1). The stack must be polled meanwhile. A listener resets connections
/// that were not accepted, a SYN is refused, a UDP socket is gone.
///
/// Returns 0, or `ACKLINE_EBADF`.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_socket_close(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    now: u64,
) -> i32 {
    with(stack, |host| host.close(socket, now))
}
