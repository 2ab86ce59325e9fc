//! The TUN device: IP packets to and from the kernel, with the kernel's offloads.
//!
//! With offload every packet is preceded by a virtio header, and super-packets of up to 64 KiB with
//! partial checksums go both ways: the kernel's TCP hands over what it would hand to a network card
//! with TSO, and accepts what GRO would have built. Without offload the device carries single
//! packets with complete checksums.

use super::interface::{MAX_SKIPPED, ebpf, steering, vnet};
use super::lending::Lending;
use super::spans::{PacketSpan, PacketSpans, WORTH};
use super::tun_fd::TunFd;
use super::{
    Device, DeviceCaps, DeviceStats, OutgoingPacket, RxBatch, RxChecksum, RxPacket, TxChecksum, unsendable,
};
use crate::error::{Error, Result};
use crate::netlink::{Interface, InterfaceAddress, Netlink};
use crate::sys::ebpf::load_filter;
use crate::sys::tun as sys;
use ackline_tcp_core::steering::Steering;
use ipnet::IpNet;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

/// The largest packet that a TUN device can hand over: an IPv6 header and 65,535 bytes of payload.
const LARGEST_PACKET: usize = 40 + 65_535;
/// The largest packet that IPv4's total length can describe.
const LARGEST_SUPER_PACKET: usize = 65_535;

/// Packets that may wait in a queue, unless a [`TunConfig`] says otherwise: a super-packet for each
/// of many connections. The kernel's own default, 500, is for links that are slower than the
/// processor.
const QUEUE_LENGTH: u32 = 32_768;

/// How to open a TUN device. Addresses and routes are those of the kernel's side; the stack's own
/// address must be reachable through them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TunConfig {
    /// Name of the interface, at most 15 bytes; `None`: the kernel numbers one `tun0`, `tun1`, ...
    pub name: Option<String>,
    /// Super-packets and checksum offload, both ways.
    pub offload: bool,
    /// Largest IP packet in bytes, 68 to 65,535; `None`: the kernel's default, 1500.
    pub mtu: Option<u32>,
    /// Addresses of the kernel's side.
    pub addresses: Vec<InterfaceAddress>,
    /// Networks that the kernel routes to the device, in addition to those of the addresses.
    pub routes: Vec<IpNet>,
    /// Allow [`Tun::open_queue`]: several queues, over which the kernel spreads connections.
    pub multi_queue: bool,
    /// Packets that may wait in each queue until the stack reads them; the kernel drops what comes
    /// then. A super-packet counts as one. At least 1. With fewer places than busy connections,
    /// some connections lose all that they send.
    pub queue_length: u32,
}

impl Default for TunConfig {
    /// A device without offload and without addresses.
    fn default() -> Self {
        Self {
            name: None,
            offload: false,
            mtu: None,
            addresses: Vec::new(),
            routes: Vec::new(),
            multi_queue: false,
            queue_length: QUEUE_LENGTH,
        }
    }
}

impl TunConfig {
    /// A device with offload and without addresses.
    #[must_use]
    pub fn new() -> Self {
        Self { offload: true, ..Self::default() }
    }

    /// Single packets with complete checksums instead of super-packets.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.offload = false;
        self
    }

    /// Sets the name of the interface.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the largest IP packet, in bytes.
    #[must_use]
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = Some(mtu);
        self
    }

    /// Adds an address to the kernel's side.
    #[must_use]
    pub fn address(mut self, address: InterfaceAddress) -> Self {
        self.addresses.push(address);
        self
    }

    /// Makes the kernel route `network` to the device.
    #[must_use]
    pub fn route(mut self, network: IpNet) -> Self {
        self.routes.push(network);
        self
    }

    /// Allows several queues.
    #[must_use]
    pub fn multi_queue(mut self) -> Self {
        self.multi_queue = true;
        self
    }

    /// Sets how many packets may wait in each queue. Default: 32,768.
    #[must_use]
    pub fn queue_length(mut self, packets: u32) -> Self {
        self.queue_length = packets;
        self
    }

    /// Sets a new interface's MTU, queue, addresses and routes and brings it up; returns its final
    /// state.
    pub(super) fn apply(&self, interface: &Interface) -> Result<Interface> {
        let mut netlink = Netlink::open()?;
        let index = interface.index;
        netlink.make_quiet(index)?;
        netlink.set_queue_length(index, self.queue_length.max(1))?;
        if let Some(mtu) = self.mtu {
            netlink.set_mtu(index, mtu)?;
        }
        for &address in &self.addresses {
            netlink.add_address(index, address)?;
        }
        netlink.set_up(index)?;
        for address in &self.addresses {
            netlink.await_address(address.net.addr())?;
        }
        for &network in &self.routes {
            netlink.add_route(index, network, None)?;
        }
        netlink.interface(&interface.name)
    }
}

/// One queue of a TUN device.
#[derive(Debug)]
pub struct Tun {
    fd: TunFd<OwnedFd>,
    interface: Interface,
    offload: bool,
    multi_queue: bool,
    /// The interface was there before, and stays: what it may hand over is taken back in the end.
    outlives: bool,
    /// The first packet of a batch, with its virtio header, if any.
    first: Lending,
    /// The others, each with its virtio header: small ones, and behind them room for one packet.
    buffer: Box<[u8]>,
    /// Bytes that the largest packet takes, and one more, so that a truncated packet can be told
    /// from one that fits.
    room: usize,
    /// The last batch emptied the device.
    drained: bool,
    stats: DeviceStats,
}

impl Tun {
    /// Creates an interface in the calling thread's network namespace, configures its addresses and
    /// brings it up. The interface disappears when the device is dropped.
    ///
    /// # Errors
    /// [`Error::NameInUse`] if an interface with that name exists; missing privileges; a bad MTU or
    /// address.
    pub fn create(config: &TunConfig) -> Result<Self> {
        let name = config.name.as_deref().unwrap_or("");
        let mut tun = Self::attach(name, config.offload, config.multi_queue, true)?;
        tun.interface = config.apply(&tun.interface)?;
        // It was down when it was made.
        tun.fd.refresh();
        Ok(tun)
    }

    /// Opens an existing interface (`ip tuntap add dev NAME mode tun user USER`); the user it was
    /// made for needs no privileges. Its addresses and MTU are left alone; it must be up.
    ///
    /// # Errors
    /// [`Error::NoSuchInterface`], [`Error::NotATun`]; [`Error::NameInUse`] if another process has
    /// it open.
    pub fn open_existing(name: &str, offload: bool) -> Result<Self> {
        Netlink::open()?.interface(name)?;
        let mut tun = match Self::attach(name, offload, false, false) {
            // The kernel returns this if the interface was made for several queues.
            Err(Error::NotATun { .. }) => Self::attach(name, offload, true, false),
            other => other,
        }?;
        tun.outlives = true;
        Ok(tun)
    }

    /// Takes a descriptor of `/dev/net/tun` that somebody else has attached to an interface
    /// (`TUNSETIFF`): a parent process, or a container's runtime. It needs `IFF_TUN` and
    /// `IFF_NO_PI`; with `IFF_VNET_HDR` the device has offload. It becomes non-blocking, for
    /// whoever else has it, too.
    ///
    /// The interface may be in a network namespace that this process cannot enter. So its MTU is
    /// what `mtu` says, 68 to 65,535; that it is down is noticed when a packet is sent, and that it
    /// was removed within a second. That `IFF_NO_PI` is missing is noticed with the first packet,
    /// which then fails with `InvalidData`: not every kernel tells it from the descriptor.
    ///
    /// # Errors
    /// [`Error::BadConfig`] if the MTU is impossible, or the descriptor is none of a TUN interface,
    /// or of another kind.
    pub fn from_fd(fd: OwnedFd, mtu: u32) -> Result<Self> {
        const WHAT: &str = "TUN descriptor";
        let refuse = |what: &'static str, why: String| Err(Error::BadConfig { what, why });
        if !(68..=65_535).contains(&mtu) {
            return refuse("MTU", format!("{mtu} bytes are not possible: 68 to 65535"));
        }
        let sys::Attached { name, tun, vnet_hdr } = match sys::attached(&fd) {
            Ok(attached) => attached,
            Err(Errno::BADFD) => {
                let why = "it belongs to no interface, or to none any more; attach it (TUNSETIFF) with IFF_TUN | IFF_NO_PI";
                return refuse(WHAT, why.to_owned());
            }
            Err(_) => {
                return refuse(
                    WHAT,
                    "it is none of /dev/net/tun; open that and attach it to an interface".to_owned(),
                );
            }
        };
        if !tun {
            let why = format!(
                "its interface {name} is a TAP, which carries Ethernet frames; make one with IFF_TUN"
            );
            return refuse(WHAT, why);
        }
        let flags = rustix::fs::fcntl_getfl(&fd).map_err(Error::on("ask for a descriptor's flags"))?;
        rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)
            .map_err(Error::on("make a descriptor non-blocking"))?;
        set_offload(&fd, vnet_hdr)?;
        let interface = Interface::elsewhere(name.clone(), mtu);
        Ok(Self::new(TunFd::anywhere(fd, name, mtu), interface, vnet_hdr, false))
    }

    /// Opens another queue of the same interface. The calling thread must be in the interface's
    /// namespace.
    ///
    /// # Errors
    /// [`Error::NotATun`] if the device was made without [`TunConfig::multi_queue`], or taken [as a
    /// descriptor](Self::from_fd).
    pub fn open_queue(&self) -> Result<Self> {
        if !self.multi_queue {
            return Err(Error::NotATun { name: self.interface.name.clone() });
        }
        Self::attach(&self.interface.name, self.offload, true, false)
    }

    /// A duplicate of the descriptor, for another process, which may have [fewer
    /// rights](Self::from_fd). Both read the same packets, each of which goes to one of them: drop
    /// this device once the other process has the duplicate.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn try_clone_fd(&self) -> io::Result<OwnedFd> {
        Ok(rustix::io::fcntl_dupfd_cloexec(self.fd.get()?, 0)?)
    }

    /// The interface, as it was when the device was opened. Of one whose
    /// [descriptor](Self::from_fd) was taken, only name and MTU are known; its index is 0.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    fn attach(name: &str, offload: bool, multi_queue: bool, exclusive: bool) -> Result<Self> {
        let fd = sys::open().map_err(|errno| match errno {
            Errno::NOENT | Errno::NODEV | Errno::NXIO => Error::TunMissing,
            Errno::ACCESS | Errno::PERM => Error::TunForbidden,
            other => Error::system("open /dev/net/tun", other),
        })?;
        let flags = sys::Flags { vnet_hdr: offload, multi_queue, exclusive };
        let name = sys::attach(&fd, name, flags).map_err(|errno| refusal(name, exclusive, errno))?;
        set_offload(&fd, offload)?;
        let interface = Netlink::open()?.interface(&name)?;
        Ok(Self::new(TunFd::new(fd, &interface)?, interface, offload, multi_queue))
    }

    fn new(fd: TunFd<OwnedFd>, interface: Interface, offload: bool, multi_queue: bool) -> Self {
        let room = if offload { vnet::LEN } else { 0 } + LARGEST_PACKET + 1;
        let buffer = vec![0; WORTH + room].into_boxed_slice();
        let (first, stats) = (Lending::new(room), DeviceStats::default());
        let outlives = false;
        Self { fd, interface, offload, multi_queue, outlives, first, buffer, room, drained: false, stats }
    }

    /// Reads until a valid packet arrives: to the front of the first one's memory if `at` is 0,
    /// otherwise behind so many bytes of the buffer, at most [`WORTH`]. Its start and end there,
    /// and what its header says.
    fn receive(&mut self, at: usize) -> io::Result<PacketSpan> {
        let offload = self.offload;
        for _ in 0..MAX_SKIPPED {
            let Self { fd, first, buffer, room, .. } = &mut *self;
            let buffer = match at {
                0 => first.buffer(),
                _ => buffer.get_mut(at..).and_then(|rest| rest.get_mut(..*room)).unwrap_or_default(),
            };
            let length = fd.read(|fd| Ok(rustix::io::read(fd.as_fd(), &mut *buffer)?))?;
            if fd.is_anywhere() && has_packet_information(&buffer[..length]) {
                return Err(packet_information(&self.interface.name));
            }
            if let Some(vnet::RxMeta { segment_size, checksum }) = understand(buffer, length, offload) {
                let start = if offload { vnet::LEN } else { 0 };
                self.stats.received(length - start);
                return Ok(PacketSpan { start: at + start, end: at + length, segment_size, checksum });
            }
            self.stats.rx_malformed += 1;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let &OutgoingPacket { header, payload, segment_size, checksum } = packet;
        let most = if segment_size.is_some() { LARGEST_SUPER_PACKET } else { self.fd.mtu() as usize };
        if packet.length() > most {
            return Err(unsendable("the packet is larger than the device carries"));
        }
        if self.offload {
            let virtio = vnet::build(header, segment_size, checksum).map_err(unsendable)?;
            self.write(&[
                IoSlice::new(&virtio),
                IoSlice::new(header),
                IoSlice::new(payload[0]),
                IoSlice::new(payload[1]),
            ])
        } else if segment_size.is_some() || checksum != TxChecksum::Complete {
            Err(unsendable("this device has no offload"))
        } else {
            self.write(&[IoSlice::new(header), IoSlice::new(payload[0]), IoSlice::new(payload[1])])
        }
    }

    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.fd.write(|fd| Ok(rustix::io::writev(fd.as_fd(), parts)?))
    }
}

impl Device for Tun {
    fn caps(&self) -> DeviceCaps {
        let mtu = self.fd.mtu();
        if self.offload { DeviceCaps::offload(mtu) } else { DeviceCaps::plain(mtu) }
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let place = self.receive(0)?;
        Ok(place.packet(self.first.received()))
    }

    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        if std::mem::take(&mut self.drained) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let spans = PacketSpans::read(most, |at| self.receive(at))?;
        self.drained = spans.drained;
        let Self { first, buffer, .. } = self;
        if first.is_worth(spans.first_len()) {
            first.lend(|memory| spans.give_from(spans.first(memory).in_memory(Some(memory)), buffer, take));
        } else {
            spans.give_from(spans.first(first.received()), buffer, take);
        }
        Ok(())
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let outcome = self.send(packet);
        self.stats.sent(packet.length(), &outcome);
        outcome
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.drained = false;
        self.first.rest();
        self.fd.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.fd.poll_writable(cx)
    }

    fn open_queue(&mut self) -> io::Result<Box<dyn Device>> {
        if !self.multi_queue {
            let why = format!("{} was made for one queue; make it with multi_queue", self.interface.name);
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(Box::new(Self::open_queue(self).map_err(io::Error::other)?))
    }

    /// Needs the right to load extended BPF programs (`CAP_BPF`). Without it, the kernel learns
    /// from each packet that is sent which queue its connection has.
    fn steer(&mut self, steering: &Steering) -> io::Result<bool> {
        let Some(program) = ebpf::extended(&steering::program(&steering.terms())) else { return Ok(false) };
        let fd = self.fd.get()?;
        Ok(load_filter(&program).and_then(|program| sys::set_steering(fd, program)).is_ok())
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats { down: self.fd.is_down(), ..self.stats }
    }
}

/// An interface keeps its offloads when its program goes. The next one may not know them: it would
/// get super-packets without checksums, and no header that says so.
impl Drop for Tun {
    fn drop(&mut self) {
        if self.outlives
            && self.offload
            && let Ok(fd) = self.fd.get()
        {
            // If the interface is gone, there is nothing to take back.
            let _ = set_offload(fd, false);
        }
    }
}

/// Lets the kernel hand over, and take, super-packets and partial checksums; or packets as they are
/// on a wire.
fn set_offload(fd: &OwnedFd, offload: bool) -> Result<()> {
    let features = if offload {
        sys::set_vnet_header_size(fd, vnet::LEN as i32).map_err(Error::on("set the virtio header's size"))?;
        libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN
    } else {
        0
    };
    sys::set_offload(fd, features).map_err(Error::on("set the TUN device's offloads"))
}

/// Four bytes are in front (`struct tun_pi`): no flags, and the protocol, IPv4's or IPv6's. They
/// are no packet's: its version is not 0. They are no virtio header's either: one that begins so
/// would give headers a length, and then their kind, too.
fn has_packet_information(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0, 0, 0x08, 0x00]) || bytes.starts_with(&[0, 0, 0x86, 0xdd])
}

fn packet_information(name: &str) -> io::Error {
    let text =
        format!("packets of {name} have four bytes in front; attach the descriptor with IFF_TUN | IFF_NO_PI");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Interprets the first `length` bytes of `buffer`; `None` if they are no packet.
fn understand(buffer: &[u8], length: usize, offload: bool) -> Option<vnet::RxMeta> {
    if length >= buffer.len() {
        return None;
    }
    let bytes = buffer.get(..length)?;
    if offload {
        let (header, packet) = bytes.split_first_chunk::<{ vnet::LEN }>()?;
        vnet::parse(header, packet)
    } else {
        (!bytes.is_empty()).then_some(vnet::RxMeta { segment_size: None, checksum: RxChecksum::Verify })
    }
}

/// The reason for a failed TUNSETIFF.
pub(super) fn refusal(name: &str, exclusive: bool, errno: Errno) -> Error {
    let name = name.to_owned();
    match errno {
        Errno::PERM | Errno::ACCESS => Error::TunNotOwned { name },
        Errno::BUSY | Errno::EXIST => Error::NameInUse { name },
        Errno::NAMETOOLONG => Error::BadName { name },
        // An existing interface that is not a TUN device, or (when creating one) an invalid name.
        Errno::INVAL if exclusive => Error::BadName { name },
        Errno::INVAL => Error::NotATun { name },
        other => Error::system("attach to the TUN interface", other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_packet_is_told_apart() {
        let mut buffer = [0; 100];
        buffer[vnet::LEN] = 0x45;
        assert!(understand(&buffer, 60, true).is_some());
        for short in 0..=vnet::LEN {
            assert!(understand(&buffer, short, true).is_none(), "{short} bytes");
        }
        assert!(understand(&buffer, buffer.len(), true).is_none(), "cut off");
        assert!(understand(&buffer, 0, false).is_none());
        assert!(understand(&buffer, 1, false).is_some());
    }
}
