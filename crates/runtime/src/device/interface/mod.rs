//! What devices on Linux interfaces share: a descriptor watched by tokio, the interface's state, and the
//! virtio header.

pub(super) mod link;
pub(super) mod ready_fd;
#[cfg(feature = "af-packet")]
pub(super) mod room;
pub(super) mod vnet;

use std::io;

/// The error of a device whose interface `name` was removed while it was in use.
pub(super) fn removed(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NetworkDown, format!("the interface {name} was removed"))
}

/// Malformed packets that one receive drops before it yields to the caller.
pub(super) const MAX_SKIPPED: usize = 64;
