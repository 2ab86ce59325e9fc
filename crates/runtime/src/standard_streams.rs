//! How the process found its standard streams.

use crate::sys::standard_output;
use std::io;

/// Fails with EBADF if the process was started without standard output (`>&-`). Rust's runtime
/// opens `/dev/null` in its place before `main`, so every write would seem to succeed.
///
/// # Errors
/// See above.
pub fn check_output() -> io::Result<()> {
    if standard_output::was_open() { Ok(()) } else { Err(rustix::io::Errno::BADF.into()) }
}
