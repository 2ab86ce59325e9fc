//! Descriptors for both ends of thousands of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::UnshareFlags;
use std::io;

/// As many as the process, and what it starts, may have.
pub(crate) fn allow() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Without them, whoever opens a connection says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Gives the calling thread a table of its own, because the limit holds for each table.
pub(crate) fn own() -> io::Result<()> {
    // SAFETY: this thread uses no descriptor that another one opens or closes after this.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }?)
}
