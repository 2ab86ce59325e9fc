//! What the devices have in common that are interfaces of Linux: a descriptor that tokio watches, the interface's state, and the
//! virtio header.

pub(super) mod link;
pub(super) mod ready_fd;
pub(super) mod vnet;

use std::io;

/// The error of a device whose interface `name` was removed while it was in use.
pub(super) fn removed(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NetworkDown, format!("the interface {name} was removed"))
}

/// Malformed packets that one receive drops before it lets the caller do something else.
pub(super) const MAX_SKIPPED: usize = 64;
