//! Options of the kernel's sockets that `rustix` does not know.

use rustix::fd::{AsFd, AsRawFd as _};
use rustix::io::Errno;
use std::ffi::c_int;

/// Fills `info` with as much of the kernel's `struct tcp_info` as it has; returns how many bytes that is.
pub(crate) fn tcp_info(socket: impl AsFd, info: &mut [u8]) -> Result<usize, Errno> {
    let mut length = libc::socklen_t::try_from(info.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `length` bytes to `info`, which is at least that long, and the number
    // written to `length`; both live through the call. The descriptor is borrowed, hence open.
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

/// The kernel's TCP sends no more than `rate` bytes in a second.
pub(crate) fn set_max_pacing_rate(socket: impl AsFd, rate: u64) -> Result<(), Errno> {
    // SAFETY: the kernel reads the eight bytes of `rate`, which lives through the call. The descriptor is borrowed,
    // hence open.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    failed(outcome)
}

/// The error of the call whose outcome this is: zero, or -1 with the reason in `errno`.
pub(super) fn failed(outcome: c_int) -> Result<(), Errno> {
    if outcome == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}
