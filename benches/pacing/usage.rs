//! Processor time.

use rustix::time::{ClockId, clock_gettime};

/// Seconds that the calling thread has used, its system calls included.
pub(crate) fn cpu_of_thread() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
