//! The wall clock, for reports.

use std::time::Duration;

/// What it shows.
pub(crate) fn wall_clock() -> std::time::SystemTime {
    let rustix::time::Timespec { tv_sec, tv_nsec } =
        rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    // Neither part is negative after 1970.
    let since = Duration::new(tv_sec.unsigned_abs(), u32::try_from(tv_nsec).unwrap_or(0));
    std::time::SystemTime::UNIX_EPOCH + since
}

/// The wall clock in whole microseconds, which JSON's numbers hold exactly.
pub(crate) fn micros_since_1970() -> u64 {
    let since = wall_clock().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
