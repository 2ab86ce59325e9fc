//! Descriptors that are known by their number.

use rustix::fd::{BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;

/// Duplicates the descriptor with this number. The duplicate is closed on exec.
pub(crate) fn duplicate(number: RawFd) -> Result<OwnedFd, Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: the number is not negative, and the only use is a fcntl(2), which fails if no such
    // descriptor is open.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_dupfd_cloexec(fd, 0)
}
