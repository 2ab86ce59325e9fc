//! Options of kernel sockets that `rustix` lacks: socket(7), tcp(7).

use rustix::fd::{AsFd, AsRawFd as _};
use rustix::io::Errno;
use std::ffi::c_int;

/// Fills `info` with the kernel's `struct tcp_info`, as far as both have it; returns the number of
/// bytes.
pub(crate) fn tcp_info(socket: impl AsFd, info: &mut [u8]) -> Result<usize, Errno> {
    let mut length = libc::socklen_t::try_from(info.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `length` bytes to `info`, which is at least that long, and
    // the number written to `length`; both live through the call. The descriptor is borrowed, hence
    // open.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    failed(outcome).map(|()| (length as usize).min(info.len()))
}

/// Limits the kernel's TCP to `rate` bytes per second.
pub(crate) fn set_max_pacing_rate(socket: impl AsFd, rate: u64) -> Result<(), Errno> {
    // SAFETY: an integer of eight bytes, which socket(7) permits.
    unsafe { set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &rate) }
}

/// Sets the largest segment of the kernel's TCP, in bytes of payload and options.
pub(crate) fn set_max_segment(socket: impl AsFd, bytes: u16) -> Result<(), Errno> {
    // SAFETY: an `int`, as tcp(7) demands.
    unsafe { set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &c_int::from(bytes)) }
}

/// Lets the socket send through the interface of this name only.
#[cfg(feature = "raw")]
pub(crate) fn bind_to_interface(socket: impl AsFd, name: &str) -> Result<(), Errno> {
    let mut padded = [0; libc::IFNAMSIZ];
    padded.get_mut(..name.len()).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(name.as_bytes());
    // SAFETY: bytes, which end with a zero unless the name has all of them; the kernel then reads
    // no further.
    unsafe { set(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &padded) }
}

/// Sets an option that is an `int`.
pub(crate) fn set_int(socket: impl AsFd, level: c_int, option: c_int, value: c_int) -> Result<(), Errno> {
    // SAFETY: an integer, in which there are no pointers: an option of another type reads no more
    // than its four bytes, or refuses them as too short.
    unsafe { set(socket, level, option, &value) }
}

/// The value of an option that is an `int`.
pub(crate) fn get_int(socket: impl AsFd, level: c_int, option: c_int) -> Result<c_int, Errno> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `value`, which has as many, and the number
    // written to `length`; both live through the call. The descriptor is borrowed, hence open.
    let outcome = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length)
    };
    failed(outcome).map(|()| value)
}

/// Converts the result of a call: zero, or -1 with the reason in `errno`.
pub(super) fn failed(outcome: c_int) -> Result<(), Errno> {
    if outcome == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

/// Sets an option.
///
/// # Safety
/// `value` is of the type that the kernel expects for the option, and what pointers in it point to
/// lives through the call.
pub(super) unsafe fn set<T>(socket: impl AsFd, level: c_int, option: c_int, value: &T) -> Result<(), Errno> {
    // SAFETY: the kernel reads as many bytes from `value` as it has, and the caller answers for its
    // pointers. The descriptor is borrowed, hence open.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    failed(outcome)
}
