//! What devices on Linux share: a descriptor watched by tokio, an interface's state, frames of a
//! packet socket and the programs that select them, and the virtio header.

#[cfg(any(feature = "tun", feature = "af-packet", feature = "raw"))]
pub(super) mod bpf;
#[cfg(feature = "tun")]
pub(super) mod ebpf;
#[cfg(any(feature = "af-packet", feature = "raw"))]
pub(super) mod frames;
mod gate;
#[cfg(any(feature = "tun", feature = "af-packet", feature = "raw"))]
pub(super) mod link;
pub(super) mod ready_fd;
#[cfg(any(feature = "af-packet", feature = "frame-socket", feature = "raw"))]
pub(super) mod room;
#[cfg(any(feature = "tun", feature = "af-packet"))]
pub(super) mod steering;
#[cfg(any(feature = "tun", feature = "af-packet", feature = "raw"))]
pub(super) mod vnet;

use super::RxChecksum;
#[cfg(any(feature = "tun", feature = "af-packet", feature = "raw"))]
use std::io;
use std::num::NonZeroU16;

/// The error of a device whose interface `name` was removed while it was in use.
#[cfg(any(feature = "tun", feature = "af-packet", feature = "raw"))]
pub(super) fn removed(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NetworkDown, format!("the interface {name} was removed"))
}

/// Malformed packets that one receive drops before it yields to the caller.
pub(super) const MAX_SKIPPED: usize = 64;

/// What a device knows of a received packet beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RxMeta {
    pub(super) segment_size: Option<NonZeroU16>,
    pub(super) checksum: RxChecksum,
}
