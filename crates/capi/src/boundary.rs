//! What crosses the boundary between C and Rust: panics, pointers, the callback.
//!
//! The stack is an `Option` of a reference (in C a pointer, with null as `None`), and its state is
//! behind a lock. Every other pointer is raw, and used for one read or one write. Two of them may be
//! equal, or point into the buffer of the same call: a reference to memory that a second pointer
//! writes would be undefined behaviour, even if nothing reads it.

use crate::error::{ACKLINE_EFAULT, ACKLINE_ENOTRECOVERABLE, Failure};
use crate::types::ackline_transmit;
use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::{ptr, slice};

/// Runs the body of a function that C calls.
pub(crate) fn guard<N: From<i32>>(body: impl FnOnce() -> Result<N, Failure>) -> N {
    // State that a panic leaves inconsistent is behind the stack's lock, which the panic poisons.
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let failed = match outcome {
        Ok(Ok(number)) => return number,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::new(ACKLINE_ENOTRECOVERABLE, format!("bug in ackline: {}", message(&*panic))),
    };
    N::from(failed.remember())
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

/// The argument named `what`; an error if it is null.
pub(crate) fn given<T>(argument: Option<T>, what: &str) -> Result<T, Failure> {
    argument.ok_or_else(|| null(what))
}

fn null(what: &str) -> Failure {
    Failure::new(ACKLINE_EFAULT, format!("{what} is a null pointer"))
}

/// A copy of the value at `from`; `None` if it is null.
///
/// # Safety
/// `from` is null, or points to a value.
pub(crate) unsafe fn value<T: Copy>(from: *const T) -> Option<T> {
    // SAFETY: it is not null; the rest is the caller's promise.
    (!from.is_null()).then(|| unsafe { from.read() })
}

/// A pointer through which C receives one value.
#[derive(Debug)]
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// `None` if `to` is null.
    ///
    /// # Safety
    /// `to` is null, or has room for a value for as long as the result exists.
    pub(crate) unsafe fn new(to: *mut T) -> Option<Self> {
        NonNull::new(to).map(Self)
    }

    pub(crate) fn write(self, value: T) {
        // SAFETY: `new`'s promise.
        unsafe { self.0.write(value) }
    }
}

/// The string at `text`; `None` if it is null.
///
/// # Safety
/// `text` is null, or a NUL-terminated string that does not change while the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Failure::invalid(format!("{what} is not UTF-8")))
}

/// The `len` items at `items`, which may be null if there are none.
///
/// # Safety
/// `items` is null, or has `len` items that do not change while the result is used.
pub(crate) unsafe fn items<'a, T>(items: *const T, len: usize, what: &str) -> Result<&'a [T], Failure> {
    check::<T>(items.is_null(), len, what)?;
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: it is not null, and not longer than an allocation can be; the rest is the caller's
    // promise.
    Ok(unsafe { slice::from_raw_parts(items, len) })
}

/// Room for `len` items at `room`, which may be null if there is none.
///
/// # Safety
/// `room` is null, or has room for `len` items that nobody else uses while the result is used.
pub(crate) unsafe fn room<'a, T>(
    room: *mut T,
    len: usize,
    what: &str,
) -> Result<&'a mut [MaybeUninit<T>], Failure> {
    check::<T>(room.is_null(), len, what)?;
    if len == 0 {
        return Ok(&mut []);
    }
    // SAFETY: it is not null, and not longer than an allocation can be; the rest is the caller's
    // promise.
    Ok(unsafe { slice::from_raw_parts_mut(room.cast::<MaybeUninit<T>>(), len) })
}

/// Writes `from` with a terminating NUL, and returns its length without the NUL.
///
/// # Safety
/// `to` is null, or has room for `len` bytes.
pub(crate) unsafe fn write_text(from: &str, to: *mut c_char, len: usize) -> Result<i32, Failure> {
    let needed = from.len() + 1;
    check::<c_char>(to.is_null(), len, "the text")?;
    if needed > len {
        return Err(Failure::invalid(format!("the text needs {needed} bytes, but the buffer has {len}")));
    }
    // SAFETY: there is room for `needed` bytes, says the caller.
    let to = unsafe { room(to.cast::<u8>(), needed, "the text") }?;
    let copied = copy(from.as_bytes(), to);
    if let Some(end) = to.get_mut(copied) {
        end.write(0);
    }
    Ok(copied as i32)
}

/// Copies the first `size` bytes of a struct, for a caller compiled with a struct of that size. If
/// it is larger than `T`, the rest is zeroed.
///
/// # Safety
/// `to` is null, or has room for `size` bytes if that is a size that a struct can have.
pub(crate) unsafe fn prefix<T: Copy>(from: &T, to: *mut T, size: usize) -> Result<(), Failure> {
    if size == 0 || size > LARGEST_STRUCT {
        return Err(Failure::invalid(format!("a struct cannot have {size} bytes; pass its sizeof")));
    }
    check::<u8>(to.is_null(), size, "the struct")?;
    let known = size.min(size_of::<T>());
    // SAFETY: `from` has as many bytes, and `to` has room for them, says the caller. `from` is
    // ours, so they do not overlap.
    unsafe { ptr::copy_nonoverlapping(ptr::from_ref(from).cast::<u8>(), to.cast::<u8>(), known) };
    // SAFETY: these are the bytes from there to `size`.
    unsafe { to.cast::<u8>().add(known).write_bytes(0, size - known) };
    Ok(())
}

/// Bound on the size of a struct, in this and later versions.
const LARGEST_STRUCT: usize = 4_096;

/// Refuses null with a length, and lengths beyond any allocation: often negative numbers in C.
fn check<T>(is_null: bool, len: usize, what: &str) -> Result<(), Failure> {
    if is_null && len > 0 {
        return Err(null(what));
    }
    if len > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::invalid(format!("{what} cannot be {len} long")));
    }
    Ok(())
}

/// Copies as much of `from` as fits into `room`, and returns the number of items copied.
pub(crate) fn copy<T: Copy>(from: &[T], room: &mut [MaybeUninit<T>]) -> usize {
    for (to, from) in room.iter_mut().zip(from) {
        to.write(*from);
    }
    from.len().min(room.len())
}

/// The callback of a stack and its `user` argument.
#[derive(Debug)]
pub(crate) struct Transmitter {
    function: unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int,
    user: *mut c_void,
}

impl Transmitter {
    /// # Safety
    /// `function` may be called with `user` as long as the result exists, as [`ackline_transmit`]
    /// says.
    pub(crate) unsafe fn new(function: ackline_transmit, user: *mut c_void) -> Result<Self, Failure> {
        Ok(Self { function: given(function, "transmit")?, user })
    }

    /// True if the packet was taken.
    pub(crate) fn send(&self, packet: &[u8]) -> bool {
        // SAFETY: `new`'s promise; the packet outlives the call.
        unsafe { (self.function)(self.user, packet.as_ptr(), packet.len()) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ACKLINE_EINVAL, ackline_last_error};

    /// The text of the last failure.
    fn last() -> &'static str {
        // SAFETY: the text ends with a zero, and the tests read it before the next failure.
        unsafe { text(ackline_last_error(), "last").unwrap().unwrap() }
    }

    #[test]
    fn a_panic_becomes_a_code() {
        assert_eq!(guard::<i32>(|| panic!("out of {}", "order")), ACKLINE_ENOTRECOVERABLE);
        assert_eq!(last(), "bug in ackline: out of order");
        assert_eq!(guard::<i64>(|| Ok(5)), 5);
    }

    #[test]
    fn null_and_impossible_lengths_are_refused() {
        // SAFETY: the pointers are null, or of something larger than what is taken.
        unsafe {
            assert_eq!(items::<u8>(std::ptr::null(), 0, "data").unwrap(), &[]);
            assert_eq!(items::<u8>(std::ptr::null(), 1, "data").unwrap_err().code, ACKLINE_EFAULT);
            assert_eq!(items([1u8].as_ptr(), usize::MAX, "data").unwrap_err().code, ACKLINE_EINVAL);
            assert_eq!(room([1u64].as_mut_ptr(), usize::MAX / 8, "out").unwrap_err().code, ACKLINE_EINVAL);
            assert_eq!(text(c"\xff".as_ptr(), "options").unwrap_err().code, ACKLINE_EINVAL);
            assert_eq!(text(std::ptr::null(), "options").unwrap(), None);
        }
    }

    #[test]
    fn a_struct_has_the_size_that_the_caller_knows() {
        let (from, mut to) = ([1u32, 2, 3], [9u32; 4]);
        let at = to.as_mut_ptr().cast::<[u32; 3]>();
        // SAFETY: `to` has at least as many bytes, where it is not refused before it is looked at.
        unsafe {
            prefix(&from, at, 8).unwrap();
            assert_eq!(to, [1, 2, 9, 9]);
            prefix(&from, at, 16).unwrap();
            assert_eq!(to, [1, 2, 3, 0]);
            assert_eq!(prefix(&from, at, 0).unwrap_err().code, ACKLINE_EINVAL);
            assert_eq!(prefix(&from, at, 5_000).unwrap_err().code, ACKLINE_EINVAL);
            assert_eq!(prefix(&from, ptr::null_mut(), 12).unwrap_err().code, ACKLINE_EFAULT);
        }
    }
}
