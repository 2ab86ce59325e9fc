//! Scheduling policy of the calling thread: sched(7).

use super::socket::failed;
use rustix::io::Errno;
use std::ffi::{c_int, c_long};

/// Gives the calling thread, and not what it starts, `SCHED_FIFO` with this priority, 1 to 99; with
/// 0 `SCHED_OTHER`.
pub(crate) fn set_scheduler(real_time: u8) -> Result<(), Errno> {
    const THIS_THREAD: c_long = 0;
    let policy = if real_time > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
    let policy: c_int = policy | libc::SCHED_RESET_ON_FORK;
    let parameters: c_int = real_time.into();
    // SAFETY: sched_setscheduler(2) reads a `struct sched_param`, which is one `int` for the
    // kernel, and which lives through the call. Of C libraries some have no function for it,
    // because POSIX has another opinion of what it applies to.
    let outcome = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, THIS_THREAD, c_long::from(policy), &raw const parameters)
    };
    failed(c_int::try_from(outcome).unwrap_or(-1))
}
