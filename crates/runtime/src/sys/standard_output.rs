//! Whether the process was started with a standard output.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// False if descriptor 1 was closed when the process began.
pub(crate) fn was_open() -> bool {
    !WAS_CLOSED.load(Ordering::Relaxed)
}

/// The C library calls what this section holds before `main`, and so before Rust's runtime opens
/// `/dev/null` at closed descriptors.
// SAFETY: the section holds pointers to functions of C's calling convention; glibc and musl pass
// arguments, which this one need not take.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    const STANDARD_OUTPUT: c_int = 1;
    // SAFETY: F_GETFD takes a number and touches no memory. std is not used: it has not begun.
    let flags = unsafe { libc::fcntl(STANDARD_OUTPUT, libc::F_GETFD) };
    WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}
