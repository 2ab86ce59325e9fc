//! The ioctls of `/dev/net/tun`.

use rustix::fd::{AsFd, AsRawFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{self, IntegerSetter, Setter, Updater};
use std::ffi::{c_int, c_short, c_uint};

/// Longest interface name, without the terminating zero.
pub(crate) const MAX_NAME: usize = libc::IFNAMSIZ - 1;

/// `struct ifreq` as TUNSETIFF uses it: a name and flags, padded to the size of the kernel's union.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: c_short,
    padding: [u8; PADDING],
}

impl InterfaceRequest {
    const EMPTY: Self = Self { name: [0; libc::IFNAMSIZ], flags: 0, padding: [0; PADDING] };

    fn name(&self) -> String {
        let end = self.name.iter().position(|&b| b == 0).unwrap_or(self.name.len());
        String::from_utf8_lossy(&self.name[..end]).into_owned()
    }
}

const PADDING: usize = size_of::<libc::ifreq>() - libc::IFNAMSIZ - size_of::<c_short>();

/// Flags for TUNSETIFF.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    /// Every packet is preceded by a virtio network header.
    pub(crate) vnet_hdr: bool,
    /// The interface has several queues.
    pub(crate) multi_queue: bool,
    /// Fail if an interface of that name exists.
    pub(crate) exclusive: bool,
}

/// Opens `/dev/net/tun`, non-blocking.
pub(crate) fn open() -> Result<OwnedFd, Errno> {
    rustix::fs::open("/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

/// Binds `fd` to the TUN interface `name`, which is created if it does not exist; an empty name
/// lets the kernel choose one. Returns the interface's name.
pub(crate) fn attach(fd: impl AsFd, name: &str, flags: Flags) -> Result<String, Errno> {
    if name.len() > MAX_NAME || name.contains('\0') {
        return Err(Errno::NAMETOOLONG);
    }
    let mut bits = libc::IFF_TUN | libc::IFF_NO_PI;
    if flags.vnet_hdr {
        bits |= libc::IFF_VNET_HDR;
    }
    if flags.multi_queue {
        bits |= libc::IFF_MULTI_QUEUE;
    }
    if flags.exclusive {
        bits |= libc::IFF_TUN_EXCL;
    }
    // The kernel's field is a short, and 0x8000 (IFF_TUN_EXCL) is its sign bit.
    let mut request = InterfaceRequest { flags: bits as c_short, ..InterfaceRequest::EMPTY };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, whose size and layout
    // `InterfaceRequest` has, and which lives through the call.
    unsafe {
        ioctl::ioctl(fd, Updater::<{ libc::TUNSETIFF as ioctl::Opcode }, InterfaceRequest>::new(&mut request))
    }?;
    Ok(request.name())
}

/// What a descriptor of `/dev/net/tun` is attached to.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    /// The interface.
    pub(crate) name: String,
    /// It carries IP packets: `IFF_TUN`, not `IFF_TAP`.
    pub(crate) tun: bool,
    /// Every packet is preceded by a virtio network header.
    pub(crate) vnet_hdr: bool,
}

/// Asks what `fd` is attached to. ENOTTY if it is none of `/dev/net/tun`; EBADFD if it is attached
/// to nothing, or no longer.
pub(crate) fn attached(fd: impl AsFd) -> Result<Attached, Errno> {
    let mut request = InterfaceRequest::EMPTY;
    // SAFETY: TUNGETIFF writes one `struct ifreq`, whose size and layout `InterfaceRequest` has,
    // and which lives through the call.
    unsafe {
        ioctl::ioctl(fd, Updater::<{ libc::TUNGETIFF as ioctl::Opcode }, InterfaceRequest>::new(&mut request))
    }?;
    let has = |flag: c_int| c_int::from(request.flags) & flag != 0;
    Ok(Attached { name: request.name(), tun: has(libc::IFF_TUN), vnet_hdr: has(libc::IFF_VNET_HDR) })
}

/// Sets the length of the virtio header that precedes every packet.
pub(crate) fn set_vnet_header_size(fd: impl AsFd, bytes: c_int) -> Result<(), Errno> {
    // SAFETY: TUNSETVNETHDRSZ reads one `int` through the pointer, which `Setter` owns through the
    // call.
    unsafe { ioctl::ioctl(fd, Setter::<{ libc::TUNSETVNETHDRSZ as ioctl::Opcode }, c_int>::new(bytes)) }
}

/// Tells the kernel which partial checksums and super-packets it may hand to this reader.
pub(crate) fn set_offload(fd: impl AsFd, features: c_uint) -> Result<(), Errno> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value; no memory is touched.
    unsafe {
        ioctl::ioctl(
            fd,
            IntegerSetter::<{ libc::TUNSETOFFLOAD as ioctl::Opcode }>::new_usize(features as usize),
        )
    }
}

/// Lets `program` choose the queue of each packet: an extended BPF program for socket filters.
pub(crate) fn set_steering(fd: impl AsFd, program: impl AsFd) -> Result<(), Errno> {
    let program = program.as_fd().as_raw_fd();
    // SAFETY: TUNSETSTEERINGEBPF reads one `int` through the pointer, which `Setter` owns through
    // the call, and takes its own reference to the program.
    unsafe { ioctl::ioctl(fd, Setter::<{ libc::TUNSETSTEERINGEBPF as ioctl::Opcode }, c_int>::new(program)) }
}
