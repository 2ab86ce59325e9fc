//! Packet sockets: packet(7).

use super::socket::{failed, set};
use rustix::fd::{AsFd, AsRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::ffi::{c_int, c_ushort, c_void};
use std::mem::MaybeUninit;

/// A non-blocking packet socket for whole Ethernet frames; it receives nothing until it is bound.
pub(crate) fn open() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
}

/// Binds the socket to all protocols of the interface with index `interface`.
pub(crate) fn bind(socket: impl AsFd, interface: u32) -> Result<(), Errno> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as c_ushort,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: interface as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the kernel reads `address`, whose size is given with it and which lives through the
    // call.
    let outcome = unsafe {
        libc::bind(
            socket.as_fd().as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    failed(outcome)
}

/// Sets an option whose value is an `int`: `PACKET_VNET_HDR`, ...
pub(crate) fn set_option(socket: impl AsFd, option: c_int, value: c_int) -> Result<(), Errno> {
    // SAFETY: an integer.
    unsafe { set(socket, libc::SOL_PACKET, option, &value) }
}

/// Makes the interface accept frames for `address` (`PACKET_MR_UNICAST`, `PACKET_MR_MULTICAST`)
/// while the socket is open.
#[cfg(feature = "af-packet")]
pub(crate) fn join(socket: impl AsFd, interface: u32, kind: c_int, address: [u8; 6]) -> Result<(), Errno> {
    let [a, b, c, d, e, f] = address;
    let request = libc::packet_mreq {
        mr_ifindex: interface as c_int,
        mr_type: kind as c_ushort,
        mr_alen: 6,
        mr_address: [a, b, c, d, e, f, 0, 0],
    };
    // SAFETY: all fields are integers.
    unsafe { set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request) }
}

/// Frames dropped since the last call because the socket's receive buffer was full.
pub(crate) fn take_drops(socket: impl AsFd) -> Result<u32, Errno> {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    // SAFETY: integers.
    unsafe { get(socket, libc::PACKET_STATISTICS, &mut stats) }?;
    Ok(stats.tp_drops)
}

/// The value of an option that is an `int`: `PACKET_FANOUT`, ...
#[cfg(feature = "af-packet")]
pub(crate) fn option(socket: impl AsFd, option: c_int) -> Result<c_int, Errno> {
    let mut value = 0;
    // SAFETY: an integer.
    unsafe { get(socket, option, &mut value) }?;
    Ok(value)
}

/// Reads an option.
///
/// # Safety
/// Whatever the kernel writes is a value of `T`.
unsafe fn get<T>(socket: impl AsFd, option: c_int, value: &mut T) -> Result<(), Errno> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `value`, which is that long, and the
    // length to `length`; both live through the call, and the caller answers for the value.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_mut(value).cast(),
            &raw mut length,
        )
    };
    failed(outcome)
}

/// Maximum messages per call.
pub(crate) const MAX_BATCH: usize = 64;

/// One message of [`receive_batch`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Message {
    /// Bytes written to its slot.
    pub(crate) length: usize,
    /// The message was truncated.
    pub(crate) cut: bool,
}

/// Receives all available messages, at most one for each slot of `stride` bytes in `buffer` and
/// each of `messages`, and at most [`MAX_BATCH`]. Returns their number; `AGAIN` if there are none.
pub(crate) fn receive_batch(
    socket: impl AsFd,
    buffer: &mut [u8],
    stride: usize,
    messages: &mut [Message],
) -> Result<usize, Errno> {
    let mut slots = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_BATCH];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
    let mut count = 0;
    let places = slots.iter_mut().zip(&mut headers).zip(&*messages);
    for (slice, ((slot, header), _)) in buffer.chunks_exact_mut(stride).zip(places) {
        let slot =
            slot.write(libc::iovec { iov_base: slice.as_mut_ptr().cast::<c_void>(), iov_len: slice.len() });
        // SAFETY: all fields are integers and pointers, for which zeros are values.
        let header = header.write(unsafe { std::mem::zeroed() });
        header.msg_hdr.msg_iov = slot;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` headers are initialised. Each points to one initialised slot, which
    // describes a part of `buffer` that no other one has; the kernel writes there and to the
    // headers. All of them live through the call.
    let outcome = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    failed(outcome.min(0))?;
    let received = usize::try_from(outcome).unwrap_or(0);
    for (message, header) in messages.iter_mut().zip(&headers[..received.min(MAX_BATCH)]) {
        // SAFETY: the kernel fills as many headers as it says, of those that were initialised
        // above.
        let header = unsafe { header.assume_init_ref() };
        *message =
            Message { length: header.msg_len as usize, cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 };
    }
    Ok(received)
}
