//! A host on an Ethernet, whatever carries its frames: headers, neighbours, and packets that wait
//! for them.
//!
//! [`Ethernet`](device::Ethernet) is the device, over a [`Wire`] that carries frames. A
//! [`Resolution`](resolution::Resolution) takes the frames of neighbour resolution, and says to
//! which station a packet goes; the [`Resolver`](resolver::Resolver) that it drives has no clock
//! and no descriptor.

pub(super) mod device;
pub(super) mod frame;
pub mod neighbours;
pub(super) mod provision;
pub(super) mod resolution;
pub(super) mod resolver;
mod waiting;

use super::interface::RxMeta;
use crate::device::OutgoingPacket;
use ackline_tcp_core::Instant;
use frame::HEADER_LEN;
use std::io;
use std::task::{Context, Poll};

/// Carries Ethernet frames without blocking, each as a whole.
pub(in crate::device) trait Wire: Send {
    /// A received frame, until the next one is received.
    type Slot: Copy;

    /// What the wire puts in front of the Ethernet header of a packet.
    type Front;

    /// The next received frame; `None` if it was cut off.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; any other error means that the wire is gone.
    fn receive(&mut self) -> io::Result<Option<Self::Slot>>;

    /// A received frame.
    fn frame(&self, slot: Self::Slot) -> &[u8];

    /// What the wire says of the packet in a frame, which ends at `end`; `None` if that does not
    /// fit the packet.
    fn meta(&self, slot: Self::Slot, end: usize) -> Option<RxMeta>;

    /// True if frames have been received that were not returned.
    fn is_pending(&self) -> bool;

    /// While `keep`, slots stay valid, and [`receive`](Self::receive) returns only frames that are
    /// [pending](Self::is_pending).
    fn keep(&mut self, keep: bool);

    /// What to put in front of a packet.
    ///
    /// # Errors
    /// `InvalidInput` if the wire cannot carry the packet.
    fn front(packet: &OutgoingPacket<'_>) -> io::Result<Self::Front>;

    /// Sends an IP packet behind the Ethernet header `link`.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; `NetworkDown` while the wire is down, or if it is gone.
    fn send(
        &mut self,
        front: Self::Front,
        link: &[u8; HEADER_LEN],
        packet: &OutgoingPacket<'_>,
    ) -> io::Result<()>;

    /// Sends a whole frame.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn send_frame(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Ready when frames may be waiting.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ready when there may be room for a frame.
    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Blocks the calling thread until frames may be waiting, at most until `end`.
    fn wait_until(&mut self, end: Instant) -> io::Result<()>;

    /// True if nothing is carried until it is up again. A wire that cannot tell is up.
    fn is_down(&self) -> bool {
        false
    }

    /// Largest IP packet in bytes, as far as the wire tells.
    fn mtu(&self) -> u32 {
        u32::MAX
    }

    /// Frames that the kernel dropped because the receive buffer was full.
    fn kernel_drops(&self) -> u64 {
        0
    }
}
