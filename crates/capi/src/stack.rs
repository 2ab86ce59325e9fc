//! A stack: packets and time in, packets and events out.

use crate::boundary::{Out, Transmitter, given, guard, items, room, text, write_text};
use crate::error::{ACKLINE_EBUSY, ACKLINE_ENOTRECOVERABLE, Failure};
use crate::host::Host;
use crate::types::{ackline_event, ackline_transmit};
use ackline_tcp_core::counters::Counters;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, TryLockError};

/// A stack: a host with its addresses, connections and timers.
///
/// A stack does nothing by itself: it works during the calls of its functions, on the thread that
/// calls. Calls for one stack must come one after the other, from any threads; one that comes
/// during another fails with `ACKLINE_EBUSY` and changes nothing. Different stacks are independent.
#[derive(Debug)]
#[expect(non_camel_case_types, reason = "it is C's name")]
pub struct ackline_stack(Mutex<Host>);

/// Runs a call of a stack.
pub(crate) fn with<N: From<i32>>(
    stack: Option<&ackline_stack>,
    call: impl FnOnce(&mut Host) -> Result<N, Failure>,
) -> N {
    guard(|| match given(stack, "stack")?.0.try_lock() {
        Ok(mut host) => call(&mut host),
        Err(TryLockError::WouldBlock) => Err(Failure::new(
            ACKLINE_EBUSY,
            "the stack is in use: a callback must not call its stack, and threads must take turns",
        )),
        Err(TryLockError::Poisoned(_)) => Err(Failure::new(ACKLINE_ENOTRECOVERABLE, String::new())),
    })
}

/// Makes a stack.
///
/// `options` are settings as in `addresses=10.0.0.2+fd00::2,mtu=1400,cc=cubic:beta=0.8,sack=off`:
/// of the host, and of connections that set none of their own. `ackline list host` and
/// `ackline list conn` print all of them. There must be an address, or `any_address=on`. The text
/// is copied.
///
/// `transmit` is called with `user` by `ackline_stack_poll`, as long as the stack exists. The stack
/// does not look at what `user` points to.
///
/// `seed` has 32 bytes, of which sequence numbers, ports and hashes are made: the same seed and the
/// same calls give the same packets. It is null for random ones, which a stack needs that talks to
/// others.
///
/// Returns 0 and the stack, which `ackline_stack_free` frees; or `ACKLINE_EINVAL`,
/// `ACKLINE_EFAULT`, `ACKLINE_EIO`.
///
/// # Safety
/// `options` is null or a string that ends with a zero, `seed` null or 32 bytes; `stack` is null or
/// has room for a pointer; `transmit` may be called as `ackline_transmit` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_stack_new(
    options: *const c_char,
    transmit: ackline_transmit,
    user: *mut c_void,
    seed: *const u8,
    stack: *mut *mut ackline_stack,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let options = given(unsafe { text(options, "options") }?, "options")?;
        // SAFETY: the caller's promise.
        let transmitter = unsafe { Transmitter::new(transmit, user) }?;
        let seed = if seed.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            let given = unsafe { items(seed, 32, "seed") }?;
            given.first_chunk().copied()
        };
        // SAFETY: the caller's promise.
        let stack = given(unsafe { Out::new(stack) }, "stack")?;
        let host = Host::new(options, transmitter, seed)?;
        stack.write(Box::into_raw(Box::new(ackline_stack(Mutex::new(host)))));
        Ok(0)
    })
}

/// Frees a stack with its sockets and its descriptor. Nothing is sent: peers learn nothing. To end
/// in order, close the sockets, and go on until `ackline_stack_connections` is 0. Null is ignored.
/// Returns 0, or `ACKLINE_EBUSY` during a call of the stack: then it is not freed.
///
/// # Safety
/// `stack` is null, or of `ackline_stack_new` and not freed; nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_stack_free(stack: *mut ackline_stack) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise. A callback of the stack has a reference, too, which ends
        // before the stack is freed.
        let Some(shared) = (unsafe { stack.as_ref() }) else { return Ok(0) };
        if let Err(TryLockError::WouldBlock) = shared.0.try_lock() {
            return Err(Failure::new(
                ACKLINE_EBUSY,
                "the stack is in use: it cannot be freed by its callback",
            ));
        }
        // SAFETY: `ackline_stack_new` made it of a box, and nobody uses it.
        drop(unsafe { Box::from_raw(stack) });
        Ok(0)
    })
}

/// Gives the stack an IP packet that arrived at `now`, in nanoseconds of a clock that does not go
/// back. `packet` has `len` bytes, and is not used after the call. What is malformed or for nobody
/// is dropped and counted, as a host does it. Returns 0, or `ACKLINE_EINVAL`, `ACKLINE_EFAULT`.
///
/// Call `ackline_stack_poll` after one or several of these.
///
/// # Safety
/// `packet` is null or has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_stack_input(
    stack: Option<&ackline_stack>,
    packet: *const u8,
    len: usize,
    now: u64,
) -> i32 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        host.input(unsafe { items(packet, len, "packet") }?, now)
    })
}

/// Serves the timers up to `now` and sends what is to be sent, by the callback. Call it after
/// packets have come in, after calls for sockets, and at the deadline.
///
/// `deadline` gets the time of the next call, if nothing happens before: `UINT64_MAX` if there is
/// none. It may be null.
///
/// Returns 0; or 1 if the callback had no room: call again when it has, or at the deadline, which
/// is at most 10 ms away then; or `ACKLINE_EINVAL`.
///
/// # Safety
/// `deadline` is null or has room for a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_stack_poll(
    stack: Option<&ackline_stack>,
    now: u64,
    deadline: *mut u64,
) -> i32 {
    with(stack, |host| {
        let (next, blocked) = host.poll(now)?;
        // SAFETY: the caller's promise.
        if let Some(deadline) = unsafe { Out::new(deadline) } {
            deadline.write(next);
        }
        Ok(blocked.into())
    })
}

/// Takes up to `max` events, of different sockets. An event is told once, and again only if the
/// program has done what it allowed: read until `ACKLINE_EAGAIN`, or written until not all was
/// taken. Returns how many there were; 0 if there are no more; or `ACKLINE_EINVAL`,
/// `ACKLINE_EFAULT`.
///
/// # Safety
/// `events` is null or has room for `max` events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_stack_events(
    stack: Option<&ackline_stack>,
    events: *mut ackline_event,
    max: usize,
) -> i32 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let events = unsafe { room(events, max, "events") }?;
        if events.is_empty() {
            return Err(Failure::invalid("there is no room for an event"));
        }
        host.begin_events();
        let mut taken = 0;
        for place in events {
            let Some((socket, news)) = host.next_event() else { break };
            place.write(ackline_event { socket, news });
            taken += 1;
        }
        host.end_events();
        Ok(taken)
    })
}

/// A descriptor that is readable while there may be events, for `poll`, `epoll` and event loops. It
/// belongs to the stack, which closes it; only wait for it. Linux and Android. Returns the
/// descriptor, or `ACKLINE_EOPNOTSUPP`, `ACKLINE_EIO`.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_stack_fd(stack: Option<&ackline_stack>) -> i32 {
    with(stack, Host::fd)
}

/// Number of connections that have not ended, those included whose socket is closed and that still
/// deliver. Connections in TIME-WAIT whose socket is closed do not count.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_stack_connections(stack: Option<&ackline_stack>) -> i64 {
    with(stack, |host| Ok(host.connections() as i64))
}

/// The value of a counter, such as `TcpExtListenOverflows`. Returns 0, or `ACKLINE_EINVAL` for an
/// unknown name, `ACKLINE_EFAULT`.
///
/// # Safety
/// `name` is null or a string that ends with a zero; `value` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_stack_counter(
    stack: Option<&ackline_stack>,
    name: *const c_char,
    value: *mut u64,
) -> i32 {
    with(stack, |host| {
        // SAFETY: the caller's promise.
        let name = given(unsafe { text(name, "name") }?, "name")?;
        // SAFETY: the caller's promise.
        given(unsafe { Out::new(value) }, "value")?.write(host.counter(name)?);
        Ok(0)
    })
}

/// Writes the name of counter number `index`, from 0 on, as text that ends with a zero. 64 bytes
/// are enough for any. Returns the length of the name, or `ACKLINE_EINVAL` if there are no more
/// counters or no room.
///
/// # Safety
/// `to` is null or has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_counter_name(index: usize, to: *mut c_char, len: usize) -> i32 {
    guard(|| {
        let counter = Counters::DESCRIPTIONS.get(index).ok_or_else(|| {
            Failure::invalid(format!("there are {} counters", Counters::DESCRIPTIONS.len()))
        })?;
        // SAFETY: the caller's promise.
        unsafe { write_text(counter.name, to, len) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_int;
    use std::ptr;

    extern "C" fn lose(_: *mut c_void, _: *const u8, _: usize) -> c_int {
        0
    }

    #[test]
    fn a_stack_with_a_bug_says_so_and_can_be_freed() {
        let mut stack = ptr::null_mut();
        let options = c"addresses=10.0.0.2";
        // SAFETY: all of it is valid, and the stack is freed once.
        unsafe {
            let code =
                ackline_stack_new(options.as_ptr(), Some(lose), ptr::null_mut(), ptr::null(), &raw mut stack);
            assert_eq!(code, 0);
            assert_eq!(ackline_stack_poll(stack.as_ref(), 1, ptr::null_mut()), 0);
            assert_eq!(with::<i32>(stack.as_ref(), |_| panic!("a bug")), ACKLINE_ENOTRECOVERABLE);
            assert_eq!(ackline_stack_poll(stack.as_ref(), 2, ptr::null_mut()), ACKLINE_ENOTRECOVERABLE);
            assert_eq!(ackline_stack_free(stack), 0);
        }
    }
}
