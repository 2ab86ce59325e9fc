//! Frames of a packet socket, each behind its virtio header, received in batches.

use super::ready_fd::ReadyFd;
use super::vnet;
use crate::error::{Error, Result};
use crate::platform::memory;
use crate::sys::filter::{Instruction, attach_filter};
use crate::sys::packet as sys;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::Interest;

/// Bytes of an Ethernet header, which is in front of each packet.
const LINK: usize = libc::ETH_HLEN as usize;
/// The largest packet that an IPv6 header can describe; larger than any IPv4 packet.
const LARGEST_PACKET: usize = 40 + 65_535;
/// Bytes from one frame to the next in the receive buffer. An odd number of cache lines, so that
/// the starts of the frames do not map to the same cache sets.
const STRIDE: usize = 1027 * 64;
const _: () = assert!(vnet::LEN + LINK + LARGEST_PACKET <= STRIDE);

/// Where a frame begins in its slot.
const FRAME: usize = vnet::LEN;

/// Bytes that one receive call should return: what is read in one go is still in the processor's
/// cache when TCP reads it.
const BATCH_BYTES: usize = 128 << 10;

/// The largest [`receive_buffer`], in bytes: three super-packets for each of a thousand
/// connections.
const MOST_RECEIVED: u64 = 256 << 20;
/// The smallest.
const LEAST_RECEIVED: u64 = 16 << 20;

/// The receive buffer unless a configuration says otherwise, in bytes: a quarter of the stack's
/// memory budget on this machine, within bounds.
pub(in crate::device) fn receive_buffer() -> usize {
    let share = memory::budget().unwrap_or(0) / 4;
    share.clamp(LEAST_RECEIVED, MOST_RECEIVED) as usize
}

/// A packet socket, and the frames that it received last.
#[derive(Debug)]
pub(in crate::device) struct Frames {
    fd: ReadyFd<OwnedFd>,
    /// Slots of [`STRIDE`] bytes, each for a virtio header and a frame.
    buffer: Box<[u8]>,
    /// Contents of the slots; filled up to `received`, read up to `next`.
    messages: Box<[sys::Message]>,
    received: usize,
    next: usize,
    /// How many frames to ask for: depends on their size in the last batch.
    ask: usize,
    /// The last batch emptied the socket.
    drained: bool,
    /// What was received is lent out, so nothing else may be.
    kept: bool,
    /// Frames dropped by the kernel; reading the kernel's counter resets it.
    dropped: AtomicU64,
}

/// A frame in the receive buffer, valid until the next receive.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct Slot {
    /// Where its slot begins in the buffer.
    at: usize,
    /// Bytes of virtio header and frame.
    length: usize,
}

/// Opens a packet socket for what `filter` accepts, except what this host sends. It receives
/// nothing until it is bound.
///
/// # Errors
/// [`Error::NotRaw`] without `CAP_NET_RAW`.
pub(in crate::device) fn open(filter: &mut [Instruction], receive_buffer: usize) -> Result<OwnedFd> {
    let fd = sys::open().map_err(|errno| match errno {
        Errno::PERM | Errno::ACCESS => Error::NotRaw,
        other => Error::system("open a packet socket", other),
    })?;
    sys::set_option(&fd, libc::PACKET_VNET_HDR, 1)
        .map_err(Error::on("switch the packet socket's virtio header on"))?;
    // Ignores copies of what this host sends, including the stack's own frames. Needs Linux 4.20.
    sys::set_option(&fd, libc::PACKET_IGNORE_OUTGOING, 1)
        .map_err(Error::on("turn copies of outgoing frames off"))?;
    set_receive_buffer(&fd, receive_buffer).map_err(Error::on("set the packet socket's buffers"))?;
    attach_filter(&fd, filter).map_err(Error::on("set the packet socket's filter"))?;
    Ok(fd)
}

/// Sets the bytes of memory for what has been received, the kernel's bookkeeping included.
fn set_receive_buffer(fd: &OwnedFd, bytes: usize) -> std::result::Result<(), Errno> {
    // The kernel doubles the size for its bookkeeping; what is given is the result. Limits such as
    // net.core.rmem_max can only be exceeded with CAP_NET_ADMIN.
    match sockopt::set_socket_recv_buffer_size_force(fd.as_fd(), bytes / 2) {
        Err(Errno::PERM) => sockopt::set_socket_recv_buffer_size(fd.as_fd(), bytes / 2),
        outcome => outcome,
    }
}

/// Sets the bytes of memory for what has been sent and has not left, the kernel's bookkeeping
/// included.
pub(in crate::device) fn set_send_buffer(fd: &OwnedFd, bytes: usize) -> std::result::Result<(), Errno> {
    match sockopt::set_socket_send_buffer_size_force(fd.as_fd(), bytes / 2) {
        Err(Errno::PERM) => sockopt::set_socket_send_buffer_size(fd.as_fd(), bytes / 2),
        outcome => outcome,
    }
}

impl Frames {
    /// Of a bound socket; at most `batch` frames for each system call.
    pub(in crate::device) fn new(fd: OwnedFd, batch: usize) -> Self {
        Self {
            fd: ReadyFd::watching(fd, Interest::READABLE),
            buffer: vec![0; batch * STRIDE].into_boxed_slice(),
            messages: vec![sys::Message::default(); batch].into_boxed_slice(),
            received: 0,
            next: 0,
            ask: batch,
            drained: false,
            kept: false,
            dropped: AtomicU64::new(0),
        }
    }

    /// The socket, which is watched for frames.
    #[cfg(feature = "af-packet")]
    pub(in crate::device) const fn fd(&self) -> &ReadyFd<OwnedFd> {
        &self.fd
    }

    /// The same, to wait for frames: what the next receive gives is not known any more.
    pub(in crate::device) const fn waiting(&mut self) -> &mut ReadyFd<OwnedFd> {
        self.drained = false;
        &mut self.fd
    }

    /// Frames have been received that nobody has taken.
    pub(in crate::device) const fn is_pending(&self) -> bool {
        self.next < self.received
    }

    /// While `keep`, slots stay valid, and [`receive`](Self::receive) returns only frames that are
    /// [pending](Self::is_pending).
    pub(in crate::device) const fn keep(&mut self, keep: bool) {
        self.kept = keep;
    }

    /// The next frame, of a new batch if none is left; `None` if it was cut off.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; `NetworkDown` once when the interface goes down.
    pub(in crate::device) fn receive(&mut self) -> io::Result<Option<Slot>> {
        if self.next == self.received {
            if self.kept {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.fill()?;
        }
        let slot = self.next;
        self.next += 1;
        let Some(&sys::Message { length, cut }) = self.messages.get(slot) else { return Ok(None) };
        let whole = !cut && (FRAME..=STRIDE).contains(&length);
        Ok(whole.then_some(Slot { at: slot * STRIDE, length }))
    }

    /// The virtio header in a slot.
    pub(in crate::device) fn virtio(&self, slot: Slot) -> &[u8; vnet::LEN] {
        // A slot holds a whole header.
        self.buffer.get(slot.at..).and_then(|bytes| bytes.first_chunk()).unwrap_or(&[0; vnet::LEN])
    }

    /// The frame in a slot.
    pub(in crate::device) fn frame(&self, slot: Slot) -> &[u8] {
        self.buffer.get(slot.at + FRAME..slot.at + slot.length).unwrap_or(&[])
    }

    /// Frames that the kernel dropped because the receive buffer was full.
    pub(in crate::device) fn kernel_drops(&self) -> u64 {
        // If the socket does not answer, the count is unknown.
        let new = self.fd.get().ok().and_then(|fd| sys::take_drops(fd).ok()).unwrap_or(0).into();
        self.dropped.fetch_add(new, Ordering::Relaxed) + new
    }

    fn fill(&mut self) -> io::Result<()> {
        (self.next, self.received) = (0, 0);
        if std::mem::take(&mut self.drained) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Self { fd, buffer, messages, received, ask, .. } = &mut *self;
        let messages = messages.get_mut(..*ask).unwrap_or_default();
        let outcome = fd.attempt(Interest::READABLE, |fd| {
            *received = sys::receive_batch(fd, buffer, STRIDE, messages)?;
            // A batch that is not full emptied the socket, so the readiness can be cleared. (An
            // error may end a batch too: an interface that goes down makes the socket ready again,
            // and the filter rejects frames that the kernel could not describe.)
            if *received < messages.len() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        if let Some(mean) = self.mean_length() {
            self.ask = (BATCH_BYTES / mean).clamp(1, self.messages.len());
        }
        let Err(error) = outcome else { return Ok(()) };
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            _ if self.received > 0 => {
                self.drained = true;
                Ok(())
            }
            // A frame whose offload the virtio header cannot describe; the kernel has dropped it.
            Some(Errno::INVAL) => {
                self.received = 1;
                self.messages[0] = sys::Message { length: 0, cut: true };
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Mean length of the frames in the last batch, in bytes; at least 1.
    fn mean_length(&self) -> Option<usize> {
        let lengths = self.messages.get(..self.received)?.iter().map(|message| message.length);
        lengths.sum::<usize>().checked_div(self.received).map(|mean| mean.max(1))
    }
}
