//! Devices: they carry IP packets between an endpoint and the network.
//!
//! | device | carries | needs | feature |
//! |---|---|---|---|
//! | `tun::Tun` | super-packets with offloaded checksums, or plain packets | Linux, a TUN interface | `tun` (default) |
//! | `tun_tap::TunTap` | plain packets, through the crate `tun-tap` | Linux, a TUN interface | `tun-tap` |
//! | `tun_rs::TunRs` | plain packets, through the crate `tun-rs` | Linux, macOS, Windows, FreeBSD, Android | `tun-rs` |
//! | `af_packet::AfPacket` | like `Tun`, in Ethernet frames | Linux, an Ethernet interface | `af-packet` |
//! | `frame_socket::FrameSocket` | plain packets, in Ethernet frames over a Unix socket (QEMU, passt) | Linux | `frame-socket` |
//! | `raw::Raw` | some TCP ports of the host's own address; super-packets in, single packets out | Linux, an Ethernet interface | `raw` |
//! | [`channel::Channel`] | either, to its peer in the same process | nothing | |
//! | [`impair::Impaired`] | what another device carries, with impairments | that device | |
//!
//! And anything else that implements [`Device`].

#[cfg(target_os = "linux")]
#[cfg(feature = "af-packet")]
pub mod af_packet;
mod batch;
pub mod channel;
#[cfg(target_os = "linux")]
#[cfg(any(feature = "af-packet", feature = "frame-socket"))]
mod ethernet;
#[cfg(target_os = "linux")]
#[cfg(feature = "frame-socket")]
pub mod frame_socket;
pub mod impair;
#[cfg(target_os = "linux")]
#[cfg(feature = "tun")]
mod inherited;
#[cfg(target_os = "linux")]
#[cfg(any(feature = "tun", feature = "af-packet", feature = "frame-socket", feature = "raw"))]
mod interface;
#[cfg(target_os = "linux")]
#[cfg(feature = "tun")]
mod lending;
mod neighbour_stats;
mod outgoing;
#[cfg(target_os = "linux")]
#[cfg(feature = "raw")]
pub mod raw;
#[cfg(any(
    test,
    all(target_os = "linux", any(feature = "tun", feature = "tun-tap")),
    all(any(unix, windows), feature = "tun-rs")
))]
mod spans;
#[cfg(target_os = "linux")]
#[cfg(feature = "tun")]
pub mod tun;
#[cfg(target_os = "linux")]
#[cfg(feature = "tun")]
mod tun_fd;
#[cfg(any(unix, windows))]
#[cfg(feature = "tun-rs")]
pub mod tun_rs;
#[cfg(target_os = "linux")]
#[cfg(feature = "tun-tap")]
pub mod tun_tap;

pub use ackline_tcp_core::RxPacket;
pub use ackline_tcp_core::wire::{RxChecksum, TxChecksum};
pub use batch::RxBatch;
#[cfg(target_os = "linux")]
#[cfg(feature = "tun")]
pub use inherited::inherited;
pub use neighbour_stats::NeighbourStats;
pub use outgoing::OutgoingPacket;

use ackline_tcp_core::steering::Steering;
use std::io;
use std::ops::RangeInclusive;
use std::task::{Context, Poll};

/// Carries IP packets without blocking.
///
/// **A driver calls [`try_recv_batch`](Self::try_recv_batch) until `WouldBlock`,
/// [`try_send`](Self::try_send) as long as it has packets and room, and then waits with
/// [`poll_readable`](Self::poll_readable) and, if `try_send` said `WouldBlock`,
/// [`poll_writable`](Self::poll_writable).** Wake-ups may be spurious; the next try tells.
///
/// An error other than `WouldBlock` from a receive or a wait means that the device is gone. One
/// from a send means that this packet was not carried: `InvalidInput` if the device cannot carry
/// such a packet at all, anything else if the device or the kernel refused it.
///
/// A device whose interface is down refuses packets with `NetworkDown` and says so in its
/// [statistics](DeviceStats::down). Receives do not fail because of it; waiting for either
/// direction ends when the interface is up.
pub trait Device: Send {
    /// The device's capabilities. Only the MTU may change, which ends a wait for either direction.
    fn caps(&self) -> DeviceCaps;

    /// The ports that connections of the stack's own have, unless they ask for one; `None`: those
    /// of the [configuration](ackline_tcp_core::EndpointConfig::ephemeral_ports). A device that has
    /// only some of a host's ports says which.
    fn local_ports(&self) -> Option<RangeInclusive<u16>> {
        None
    }

    /// The next received packet, borrowed from the device's own buffer until the next call.
    ///
    /// # Errors
    /// `WouldBlock` if none is waiting; any other error means that the device is gone.
    fn try_recv(&mut self) -> io::Result<RxPacket<'_>>;

    /// As [`try_recv`](Self::try_recv), with the header of the link in front of the packet, for
    /// [observers](crate::Stack::set_observer); empty if there was none.
    ///
    /// # Errors
    /// As `try_recv`.
    fn try_recv_with_link(&mut self) -> io::Result<(&[u8], RxPacket<'_>)> {
        self.try_recv().map(|packet| (&[][..], packet))
    }

    /// Receives what is waiting, as far as the device's buffers go and at most `most` packets (at
    /// least 1), and lends all of it to `take` in one call. The stack merges what follows each
    /// other in one connection, so a device whose buffers hold several packets at a time should
    /// lend them together; by default each batch is one packet. What is large may lie in memory
    /// that connections can keep ([`RxPacket::memory`]), which saves a copy.
    ///
    /// # Errors
    /// As [`try_recv`](Self::try_recv), and then `take` was not called: an error behind received
    /// packets is the next call's.
    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        let _ = most;
        let (link, packet) = self.try_recv_with_link()?;
        take(RxBatch::new(&[packet], &[link]));
        Ok(())
    }

    /// The header of the link in front of the packet that [`try_send`](Self::try_send) took last,
    /// for observers; empty if there was none.
    fn sent_link(&self) -> &[u8] {
        &[]
    }

    /// Sends one packet or super-packet, all of it or nothing.
    ///
    /// # Errors
    /// `WouldBlock` if the device is full; see [`Device`] for the others.
    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()>;

    /// Ready when a packet may be waiting.
    ///
    /// # Errors
    /// If the device is gone.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ready when there may be room for a packet.
    ///
    /// # Errors
    /// If the device is gone.
    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Counters since the device was opened.
    fn stats(&self) -> DeviceStats;

    /// Opens another queue of the same interface, for a [shard](crate::stack::Builder::shards) of
    /// its own. The network delivers each packet to one of the queues. In the namespace of the
    /// thread that opened the device, and within the runtime that will drive the queue.
    ///
    /// # Errors
    /// `Unsupported` if the device has only one queue; others if the kernel refuses.
    fn open_queue(&mut self) -> io::Result<Box<dyn Device>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this device has only one queue"))
    }

    /// All queues are open, this one first: asks the network to deliver each packet to the queue of
    /// its owner, in the order in which they were opened. True if it does so, as far as it can tell
    /// owners; false if it cannot be asked, and stays with what it does by itself.
    ///
    /// # Errors
    /// If the device is gone.
    fn steer(&mut self, steering: &Steering) -> io::Result<bool> {
        let _ = steering;
        Ok(false)
    }
}

/// Forwards the methods of [`Device`] that carry packets to the device inside a wrapper, which has
/// `local_ports`, `open_queue` and `steer` of its own, or their defaults.
macro_rules! forward_device {
    ($self:ident, $inner:expr) => {
        fn caps(&$self) -> $crate::device::DeviceCaps {
            $inner.caps()
        }

        fn try_recv(&mut $self) -> std::io::Result<$crate::device::RxPacket<'_>> {
            $inner.try_recv()
        }

        fn try_recv_with_link(&mut $self) -> std::io::Result<(&[u8], $crate::device::RxPacket<'_>)> {
            $inner.try_recv_with_link()
        }

        fn try_recv_batch(&mut $self, most: usize, take: &mut dyn FnMut($crate::device::RxBatch<'_>)) -> std::io::Result<()> {
            $inner.try_recv_batch(most, take)
        }

        fn sent_link(&$self) -> &[u8] {
            $inner.sent_link()
        }

        fn try_send(&mut $self, packet: &$crate::device::OutgoingPacket<'_>) -> std::io::Result<()> {
            $inner.try_send(packet)
        }

        fn poll_readable(&mut $self, cx: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
            $inner.poll_readable(cx)
        }

        fn poll_writable(&mut $self, cx: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
            $inner.poll_writable(cx)
        }

        fn stats(&$self) -> $crate::device::DeviceStats {
            $inner.stats()
        }
    };
}
#[cfg(target_os = "linux")]
#[cfg(any(feature = "af-packet", feature = "frame-socket"))]
use forward_device;

/// For programs that choose the device at run time.
impl<D: Device + ?Sized> Device for Box<D> {
    forward_device!(self, (**self));

    fn local_ports(&self) -> Option<RangeInclusive<u16>> {
        (**self).local_ports()
    }

    fn open_queue(&mut self) -> io::Result<Box<dyn Device>> {
        (**self).open_queue()
    }

    fn steer(&mut self, steering: &Steering) -> io::Result<bool> {
        (**self).steer(steering)
    }
}

/// A device's capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DeviceCaps {
    /// Largest IP packet on the wire, in bytes.
    pub mtu: u32,
    /// Largest IP packet that the device segments into wire packets, headers included, at most
    /// 65,535; 0 if it segments none.
    pub max_super_packet: u32,
    /// The device completes [`TxChecksum::Partial`]. Required for super-packets.
    pub tx_checksum_offload: bool,
    /// Received packets may be marked as already verified.
    pub rx_checksum_offload: bool,
}

impl DeviceCaps {
    /// Single packets of at most `mtu` bytes, no offload.
    #[must_use]
    pub const fn plain(mtu: u32) -> Self {
        Self { mtu, max_super_packet: 0, tx_checksum_offload: false, rx_checksum_offload: false }
    }

    /// Super-packets of at most 65,535 bytes, checksums offloaded both ways.
    #[must_use]
    pub const fn offload(mtu: u32) -> Self {
        Self { mtu, max_super_packet: 65_535, tx_checksum_offload: true, rx_checksum_offload: true }
    }

    /// Checks that a packet can be carried.
    fn admit(&self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let (mtu, length) = (self.mtu as usize, packet.length());
        match packet.segment_size {
            None if length > mtu => return Err(unsendable("the packet is larger than the MTU")),
            Some(_) if self.max_super_packet == 0 => {
                return Err(unsendable("this device carries no super-packets"));
            }
            Some(_) if length > self.max_super_packet as usize => {
                return Err(unsendable("the super-packet is larger than the device carries"));
            }
            Some(size) if length.min(packet.header.len() + usize::from(size.get())) > mtu => {
                return Err(unsendable("the super-packet's segments are larger than the MTU"));
            }
            _ => {}
        }
        if !self.tx_checksum_offload && packet.checksum != TxChecksum::Complete {
            return Err(unsendable("this device does not complete checksums"));
        }
        Ok(())
    }
}

/// Counters of a device since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DeviceStats {
    /// Packets received; a super-packet counts once.
    pub rx_packets: u64,
    /// IP bytes received.
    pub rx_bytes: u64,
    /// Received and dropped: shorter than a header, with an invalid virtio header, or truncated
    /// because it exceeded the largest possible packet.
    pub rx_malformed: u64,
    /// Dropped by the kernel because the receive queue was full.
    pub rx_kernel_drops: u64,
    /// Neighbour resolution; all zero on a device without it.
    pub neighbours: NeighbourStats,
    /// Packets sent; a super-packet counts once.
    pub tx_packets: u64,
    /// IP bytes sent.
    pub tx_bytes: u64,
    /// Sends that found the device full.
    pub tx_full: u64,
    /// Sends that found the interface down.
    pub tx_down: u64,
    /// Sends that the device refused for another reason.
    pub tx_errors: u64,
    /// The interface is down: nothing is received or sent until it is up.
    pub down: bool,
}

impl DeviceStats {
    /// Adds the counters of another queue of the same device.
    pub(crate) const fn add(&mut self, other: &Self) {
        let Self {
            rx_packets,
            rx_bytes,
            rx_malformed,
            rx_kernel_drops,
            neighbours,
            tx_packets,
            tx_bytes,
            tx_full,
            tx_down,
            tx_errors,
            down,
        } = *other;
        self.rx_packets += rx_packets;
        self.rx_bytes += rx_bytes;
        self.rx_malformed += rx_malformed;
        self.rx_kernel_drops += rx_kernel_drops;
        self.neighbours.add(&neighbours);
        self.tx_packets += tx_packets;
        self.tx_bytes += tx_bytes;
        self.tx_full += tx_full;
        self.tx_down += tx_down;
        self.tx_errors += tx_errors;
        self.down |= down;
    }

    /// Counts a received packet of `bytes`.
    fn received(&mut self, bytes: usize) {
        self.rx_packets += 1;
        self.rx_bytes += bytes as u64;
    }

    /// Counts the outcome of sending a packet of `bytes`.
    fn sent(&mut self, bytes: usize, outcome: &io::Result<()>) {
        match outcome {
            Ok(()) => {
                self.tx_packets += 1;
                self.tx_bytes += bytes as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.tx_full += 1,
            Err(error) if error.kind() == io::ErrorKind::NetworkDown => self.tx_down += 1,
            Err(_) => self.tx_errors += 1,
        }
    }
}

/// The error for a packet that this device cannot carry.
fn unsendable(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
