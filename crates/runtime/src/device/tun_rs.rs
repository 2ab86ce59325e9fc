//! TUN devices of the crate `tun-rs`: macOS, Windows, FreeBSD, Android and Linux. Single packets,
//! complete checksums.
//!
//! That crate opens and configures the interface; here it becomes a [`Device`]. On Linux
//! `device::tun` carries super-packets and follows its interface, which this does not.
//!
//! | platform | how to get an [`AsyncDevice`] |
//! |---|---|
//! | Linux, macOS, FreeBSD, Windows (with wintun.dll) | `DeviceBuilder::new().build_async()` |
//! | Android, iOS | `AsyncDevice::from_fd`, with the descriptor that the system's VPN service gives |

mod platform;

use super::spans::{PacketSpan, PacketSpans, WORTH};
use super::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxBatch, RxPacket};
use platform::Io;
use std::io;
use std::task::{Context, Poll};

pub use ::tun_rs;
use ::tun_rs::AsyncDevice;

/// The largest packet that a device can hand over: an IPv6 header and 65,535 bytes of payload.
const LARGEST_PACKET: usize = 40 + 65_535;

/// A TUN device of the crate `tun-rs`.
///
/// ```no_run
/// # #[cfg(not(target_os = "android"))]
/// # async fn example() -> std::io::Result<()> {
/// use ackline_runtime::Stack;
/// use ackline_runtime::device::tun_rs::{TunRs, tun_rs::DeviceBuilder};
///
/// let device = DeviceBuilder::new().ipv4("10.0.0.1", 24, None).mtu(1400).build_async()?;
/// let stack = Stack::builder(TunRs::new(device, 1400)?).address([10, 0, 0, 2]).spawn()?;
/// # Ok(())
/// # }
/// ```
pub struct TunRs {
    io: Io,
    caps: DeviceCaps,
    /// The packets that were lent out last, and behind the first [`WORTH`] bytes room for one.
    receive: Box<[u8]>,
    /// The last batch emptied the device.
    drained: bool,
    /// The parts of a packet to send, joined: the crate sends from one slice.
    send: Vec<u8>,
    stats: DeviceStats,
}

impl std::fmt::Debug for TunRs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TunRs").field("caps", &self.caps).field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl TunRs {
    /// Takes a device of layer 3, without offload and without packet information, whose packets
    /// have at most `mtu` bytes, 68 to 65,535. A later change of the interface's MTU is not
    /// followed.
    ///
    /// # Errors
    /// `InvalidInput` for another MTU, or a device with offload.
    pub fn new(device: AsyncDevice, mtu: u16) -> io::Result<Self> {
        if mtu < 68 {
            return Err(wrong(format!("an MTU of {mtu} bytes: it must be from 68 to 65535")));
        }
        #[cfg(target_os = "linux")]
        if device.tcp_gso() {
            return Err(wrong(
                "the device has offload: leave out DeviceBuilder::offload, or use device::tun".to_owned(),
            ));
        }
        Ok(Self {
            io: Io::new(device),
            caps: DeviceCaps::plain(mtu.into()),
            receive: vec![0; WORTH + LARGEST_PACKET].into_boxed_slice(),
            drained: false,
            send: Vec::with_capacity(mtu.into()),
            stats: DeviceStats::default(),
        })
    }

    /// The device, for its name, index and addresses.
    #[must_use]
    pub const fn device(&self) -> &AsyncDevice {
        self.io.device()
    }

    /// Receives a packet behind the first `at` bytes of the buffer, at most [`WORTH`].
    fn receive(&mut self, at: usize) -> io::Result<PacketSpan> {
        let length = self.io.try_recv(self.receive.get_mut(at..).unwrap_or_default())?;
        self.stats.received(length);
        Ok(PacketSpan::plain(at, at + length))
    }

    fn send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        self.caps.admit(packet)?;
        self.send.clear();
        packet.append_to(&mut self.send);
        self.io.try_send(&self.send)
    }
}

fn wrong(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

impl Device for TunRs {
    fn caps(&self) -> DeviceCaps {
        self.caps
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let place = self.receive(0)?;
        Ok(place.packet(&self.receive))
    }

    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        if std::mem::take(&mut self.drained) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let spans = PacketSpans::read(most, |at| self.receive(at))?;
        self.drained = spans.drained;
        spans.give(&self.receive, take);
        Ok(())
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let outcome = self.send(packet);
        self.stats.sent(packet.length(), &outcome);
        outcome
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.drained = false;
        self.io.poll_readable(cx, &mut self.receive)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }
}
