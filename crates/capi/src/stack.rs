//! A stack: packets and time in, packets and events out.

use crate::boundary::{Out, Transmitter, given, guard, items, room, text, write_text};
use crate::error::{ACKLINE_EBUSY, ACKLINE_ENOTRECOVERABLE, Failure};
use crate::host::Host;
use crate::types::{ackline_event, ackline_transmit};
use ackline_tcp_core::counters::Counters;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, TryLockError};

/// A stack: one host with its addresses, connections and timers.
///
/// A stack works only while one of its functions is called, on the calling thread. Any thread may
/// call it, one at a time: a call made during another fails with `ACKLINE_EBUSY` and changes
/// nothing. Different stacks are independent.
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

/// Creates a stack.
///
/// `options` are settings such as `addresses=10.0.0.2+fd00::2,mtu=1400,cc=cubic:beta=0.8,sack=off`:
/// those of the host, and defaults for its connections. `ackline list host` and `ackline list conn`
/// list them. At least one address is required, or `any_address=on`. The string is copied.
///
/// `ackline_stack_poll` calls `transmit` with `user`, which the stack never dereferences. Both must
/// stay valid until the stack is freed.
///
/// `seed` points to 32 bytes that determine sequence numbers, ports and hashes: the same seed and
/// the same calls produce the same packets. Pass null for a random seed. On a real network the seed
/// must be random, or peers can predict sequence numbers.
///
/// Returns 0 and stores the stack, to be freed by `ackline_stack_free`; or `ACKLINE_EINVAL`,
/// `ACKLINE_EFAULT` or `ACKLINE_EIO`.
///
/// # Safety
/// `options` is null or a NUL-terminated string; `seed` is null or points to 32 bytes; `stack` is
/// null or has room for a pointer; `transmit` may be called as `ackline_transmit` says.
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

/// Frees a stack, its sockets and its event descriptor. Nothing is sent, so peers are not notified.
/// For an orderly end, close the sockets and keep polling until `ackline_stack_connections` returns
/// 0. Null is ignored. Returns 0, or `ACKLINE_EBUSY` during another call of the stack, which is
/// then not freed.
///
/// # Safety
/// `stack` is null, or was returned by `ackline_stack_new` and is not freed yet; nothing uses it
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_stack_free(stack: *mut ackline_stack) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise. The stack's callback may hold another reference, which ends
        // before the stack is freed.
        let Some(shared) = (unsafe { stack.as_ref() }) else { return Ok(0) };
        if let Err(TryLockError::WouldBlock) = shared.0.try_lock() {
            return Err(Failure::new(ACKLINE_EBUSY, "the stack is in use: its callback cannot free it"));
        }
        // SAFETY: `ackline_stack_new` made it from a box, and nothing else uses it.
        drop(unsafe { Box::from_raw(stack) });
        Ok(0)
    })
}

/// Passes in an IP packet of `len` bytes that arrived at `now`, in nanoseconds of a monotonic
/// clock. The packet is not used after the call. If it is malformed or not addressed to the stack,
/// it is dropped and counted. Returns 0, `ACKLINE_EINVAL` or `ACKLINE_EFAULT`.
///
/// Call `ackline_stack_poll` after one or more packets.
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

/// Runs the timers that are due at `now` and sends pending packets through the callback. Call it
/// after `ackline_stack_input`, after socket calls, and at the deadline.
///
/// `deadline`, if not null, receives the time of the next call if nothing happens before;
/// `UINT64_MAX` if no timer is pending.
///
/// Returns 0; 1 if the callback had no room: call again once it has, or at the deadline, which is
/// then at most 10 ms away; or `ACKLINE_EINVAL`.
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

/// Takes up to `max` events, each of a different socket. Events are edge-triggered:
/// `ACKLINE_READABLE` is reported again only after a read has returned `ACKLINE_EAGAIN`, and
/// `ACKLINE_WRITABLE` only after a write was not taken in full. Returns the number of events, which
/// may be 0, `ACKLINE_EINVAL` or `ACKLINE_EFAULT`.
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
            return Err(Failure::invalid("max is 0: there is no room for an event"));
        }
        host.begin_events();
        let mut taken = 0;
        for slot in events {
            let Some((socket, happened)) = host.next_event() else { break };
            slot.write(ackline_event { socket, events: happened });
            taken += 1;
        }
        host.end_events();
        Ok(taken)
    })
}

/// Returns a descriptor that is readable while events may be pending, for `poll`, `epoll` or an
/// event loop. The stack owns it: wait for it, but do not read, write or close it. Linux and
/// Android only. Fails with `ACKLINE_EOPNOTSUPP` or `ACKLINE_EIO`.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_stack_fd(stack: Option<&ackline_stack>) -> i32 {
    with(stack, Host::fd)
}

/// Returns the number of connections that have not ended, including those whose socket is closed
/// but that still deliver data. Connections in TIME-WAIT whose socket is closed are not counted.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_stack_connections(stack: Option<&ackline_stack>) -> i64 {
    with(stack, |host| Ok(host.connections() as i64))
}

/// Reads a counter by name, such as `TcpExtListenOverflows`. Returns 0, `ACKLINE_EINVAL` if there
/// is no such counter, or `ACKLINE_EFAULT`.
///
/// # Safety
/// `name` is null or a NUL-terminated string; `value` is null or has room for a number.
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

/// Writes the name of the counter at `index`, counted from 0, as NUL-terminated text. 64 bytes are
/// always enough. Returns the length without the NUL, `ACKLINE_EFAULT`, or `ACKLINE_EINVAL` if
/// there are no more counters or the buffer is too small.
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
