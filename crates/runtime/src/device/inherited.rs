//! Descriptors that the process was started with.

use crate::error::{Error, Result};
use crate::sys::descriptor as sys;
use rustix::fd::{OwnedFd, RawFd};

/// A duplicate of the descriptor `number`, which a parent process has left open, to make a device
/// of: [`Tun::from_fd`](super::tun::Tun::from_fd), or `FrameSocket::new`. To be called before the
/// process opens descriptors of its own, because then the number may be one of those. The original
/// stays open.
///
/// ```no_run
/// use ackline_runtime::device::{inherited, tun::Tun};
///
/// # fn example() -> ackline_runtime::error::Result<()> {
/// let device = Tun::from_fd(inherited(3)?, 1_500)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::BadConfig`] if it is not open.
pub fn inherited(number: RawFd) -> Result<OwnedFd> {
    sys::duplicate(number).map_err(|errno| Error::BadConfig {
        what: "descriptor",
        why: format!("{number} cannot be taken over: {}", std::io::Error::from(errno)),
    })
}
