//! A host on an Ethernet, whatever carries its frames: headers, neighbours, and packets that wait
//! for them.
//!
//! A device implements [`Wire`] for what carries its frames, and lets a
//! [`Resolution`](resolution::Resolution) take frames from it and say to which station a packet
//! goes.
//!
//! The resolution of neighbours has no clock and no descriptor.

pub(super) mod frame;
pub mod neighbours;
pub(super) mod provision;
pub(super) mod resolution;

use crate::mac::MacAddress;
use ackline_tcp_core::Instant;
use neighbours::Outbound;
use std::io;
use std::task::{Context, Poll};

/// Carries Ethernet frames without blocking, each as a whole.
pub(in crate::device) trait Wire {
    /// A received frame, until the next one is received.
    type Slot: Copy;

    /// The next received frame; `None` if it was cut off.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; any other error means that the wire is gone.
    fn receive(&mut self) -> io::Result<Option<Self::Slot>>;

    /// A received frame.
    fn frame(&self, slot: Self::Slot) -> &[u8];

    /// Sends an IP packet to a station.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; `NetworkDown` while the wire is down, or if it is gone.
    fn send(&mut self, to: MacAddress, packet: &Outbound<'_>) -> io::Result<()>;

    /// Sends a whole frame.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn send_frame(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Ready when there may be room for a frame.
    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Blocks the calling thread until frames may be waiting, at most until `end`.
    fn wait_until(&mut self, end: Instant) -> io::Result<()>;

    /// True if nothing is carried until it is up again.
    fn is_down(&self) -> bool;
}
