//! Registering descriptors with tokio.

#[cfg(any(feature = "tun", feature = "af-packet", feature = "frame-socket", feature = "raw"))]
use rustix::fd::BorrowedFd;
use rustix::fd::OwnedFd;
use std::io;
use std::os::fd::AsRawFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A type that owns one descriptor.
///
/// # Safety
/// `as_raw_fd` gives the same open descriptor as long as the value lives, and the value closes it
/// only when it is dropped.
pub(crate) unsafe trait OwnsFd: AsRawFd {}

// SAFETY: that is what an `OwnedFd` is.
unsafe impl OwnsFd for OwnedFd {}
// SAFETY: an `Iface` holds a `File`, never replaces it, and gives that file's descriptor.
#[cfg(feature = "tun-tap")]
unsafe impl OwnsFd for tun_tap::Iface {}

/// Registers a non-blocking descriptor with tokio.
///
/// # Errors
/// If epoll refuses it.
///
/// # Panics
/// Outside a tokio runtime with I/O enabled.
pub(crate) fn register<F: OwnsFd>(fd: F, interest: Interest) -> io::Result<AsyncFd<F>> {
    // SAFETY: `OwnsFd` promises what `AsyncFd` asks for.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

/// The descriptor, for calls of rustix.
#[cfg(any(feature = "tun", feature = "af-packet", feature = "frame-socket", feature = "raw"))]
pub(crate) fn borrow<F: OwnsFd>(fd: &F) -> BorrowedFd<'_> {
    // SAFETY: `OwnsFd` promises that it is open as long as `fd` lives.
    unsafe { BorrowedFd::borrow_raw(fd.as_raw_fd()) }
}
