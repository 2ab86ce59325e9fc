//! The socket: frames out of a stream of bytes, or one in each datagram, and back.

use crate::device::ethernet::Wire;
use crate::device::ethernet::frame::HEADER_LEN;
use crate::device::interface::RxMeta;
use crate::device::interface::ready_fd::ReadyFd;
use crate::device::interface::room::Room;
use crate::device::{OutgoingPacket, RxChecksum};
use crate::timer;
use crate::wakes::store;
use ackline_tcp_core::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use std::io::{self, IoSlice};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::Interest;

/// Bytes of the number in front of each frame on a stream: its length, in network byte order.
const PREFIX: usize = 4;
/// Bytes of the longest possible frame: an IPv6 packet behind the header, with a tag of IEEE
/// 802.1Q.
const LONGEST: usize = HEADER_LEN + 4 + 40 + 65_535;
/// Bytes of the receive buffer: what is read at once, and room for all of a frame behind whatever
/// has been read.
const BUFFER: usize = 2 * (PREFIX + LONGEST);

/// How the socket keeps frames apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// On a stream, by their length.
    Stream,
    /// Each is a datagram.
    Datagrams,
}

impl Kind {
    /// What is in front of a frame of this length.
    const fn in_front(self, length: &[u8; PREFIX]) -> &[u8] {
        match self {
            Self::Stream => length,
            Self::Datagrams => &[],
        }
    }
}

/// A connected socket that carries frames.
#[derive(Debug)]
pub(super) struct FrameWire {
    fd: ReadyFd<OwnedFd>,
    room: Room,
    kind: Kind,
    /// What errors call it.
    name: String,
    buffer: Box<[u8]>,
    /// What has been read, and not returned as a frame, is from here to `end`.
    next: usize,
    end: usize,
    /// The last read emptied the socket.
    drained: bool,
    /// What was read is lent out, so nothing else may be read.
    kept: bool,
    /// The rest of a frame of which the stream has taken a part.
    unsent: Vec<u8>,
    /// Bytes of it that have left.
    flushed: usize,
    /// A send found that the other side is gone.
    ended: bool,
    /// The driver, if it waits.
    driver: Option<Waker>,
}

/// A frame in the receive buffer, valid until the next receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    at: usize,
    length: usize,
}

/// What is at the front of the bytes that have been read.
enum Ahead {
    /// All of a frame of this length.
    Frame(usize),
    /// Not all of a frame.
    Part,
    /// A length that no frame has.
    Lie(usize),
}

impl FrameWire {
    pub(super) fn new(fd: OwnedFd, kind: Kind, name: String) -> Self {
        Self {
            fd: ReadyFd::watching(fd, Interest::READABLE),
            room: Room::default(),
            kind,
            name,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            next: 0,
            end: 0,
            drained: false,
            kept: false,
            unsent: Vec::new(),
            flushed: 0,
            ended: false,
            driver: None,
        }
    }

    /// Ready when nothing of an earlier frame is left.
    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Err(error) = self.flush() {
            if error.kind() != io::ErrorKind::WouldBlock {
                return Poll::Ready(Err(error));
            }
            ready!(self.room.poll(&self.fd, cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// What has been read of a stream. Each datagram is returned at once, so none is ahead.
    fn ahead(&self) -> Ahead {
        let read = self.buffer.get(self.next..self.end).unwrap_or(&[]);
        let Some((prefix, rest)) = read.split_first_chunk::<PREFIX>() else { return Ahead::Part };
        let length = u32::from_be_bytes(*prefix) as usize;
        if !(HEADER_LEN..=LONGEST).contains(&length) {
            Ahead::Lie(length)
        } else if rest.len() < length {
            Ahead::Part
        } else {
            Ahead::Frame(length)
        }
    }

    /// Reads what is there, at least a byte or a datagram: the bytes of a datagram, which may be
    /// more than there is room for.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing; any other error means that the other side is gone.
    fn fill(&mut self) -> io::Result<usize> {
        if self.kept {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // If the driver polls instead of waiting, nobody else does it.
        let _ = self.flush();
        self.buffer.copy_within(self.next..self.end, 0);
        (self.next, self.end) = (0, self.end - self.next);
        if std::mem::take(&mut self.drained) && !self.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Self { fd, kind, buffer, end, .. } = &mut *self;
        let room = buffer.get_mut(*end..).unwrap_or_default();
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        let mut length = None;
        let outcome = fd.attempt(Interest::READABLE, |fd| {
            let read = match kind {
                Kind::Stream => rustix::net::recv(fd, &mut *room, RecvFlags::DONTWAIT)?.0,
                Kind::Datagrams => rustix::net::recv(fd, &mut *room, flags)?.1,
            };
            length = Some(read);
            // A read that is not full emptied the stream, so the readiness can be cleared.
            let emptied = *kind == Kind::Stream && read < room.len();
            if emptied { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match (length, outcome) {
            (Some(0), _) if self.kind == Kind::Stream => Err(self.gone()),
            (Some(length), emptied) => {
                self.drained = emptied.is_err();
                Ok(length)
            }
            (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock && !self.ended => Err(error),
            (None, _) => Err(self.gone()),
        }
    }

    /// Sends a frame in parts, all of it or nothing; the stream may take the rest later.
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.flush()?;
        let sent = self.room.attempt(&self.fd, |fd| {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            Ok(rustix::net::sendmsg(fd, parts, &mut SendAncillaryBuffer::default(), flags)?)
        });
        let sent = sent.map_err(|error| self.refused(error))?;
        if self.kind == Kind::Stream {
            let mut taken = sent;
            for part in parts {
                let rest = part.get(taken..).unwrap_or(&[]);
                taken -= part.len() - rest.len();
                self.unsent.extend_from_slice(rest);
            }
        }
        if self.unsent.is_empty() {
            self.room.found();
        } else {
            self.room.missed();
        }
        Ok(())
    }

    /// Sends the rest of an earlier frame.
    ///
    /// # Errors
    /// `WouldBlock` if some of it is left; as [`send`](Wire::send) otherwise.
    fn flush(&mut self) -> io::Result<()> {
        while let Some(rest) = self.unsent.get(self.flushed..).filter(|rest| !rest.is_empty()) {
            let sent = self.room.attempt(&self.fd, |fd| {
                Ok(rustix::net::send(fd, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
            });
            self.flushed += sent.map_err(|error| self.refused(error))?;
        }
        self.unsent.clear();
        self.flushed = 0;
        Ok(())
    }

    /// What a refused send means.
    fn refused(&mut self, error: io::Error) -> io::Error {
        match Errno::from_io_error(&error) {
            Some(Errno::AGAIN) => {
                self.room.missed();
                error
            }
            Some(Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::NOTCONN) => {
                // What the other side has sent before is still read.
                self.ended = true;
                if let Some(driver) = self.driver.take() {
                    driver.wake();
                }
                self.gone()
            }
            _ => error,
        }
    }

    fn gone(&self) -> io::Error {
        let how = if self.end > self.next { ", in the middle of a frame" } else { "" };
        let text = format!("the other side of the frame socket {} is gone{how}", self.name);
        io::Error::new(io::ErrorKind::NetworkDown, text)
    }

    fn out_of_step(&self, length: usize) -> io::Error {
        let text = format!(
            "the frame socket {} announced a frame of {length} bytes; frames have {HEADER_LEN} to {LONGEST}, so the \
             other side is out of step or speaks another protocol",
            self.name
        );
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

impl Wire for FrameWire {
    type Slot = Slot;
    type Front = ();

    fn receive(&mut self) -> io::Result<Option<Slot>> {
        if self.kind == Kind::Datagrams {
            let length = self.fill()?;
            return Ok((length <= self.buffer.len()).then_some(Slot { at: 0, length }));
        }
        loop {
            match self.ahead() {
                Ahead::Frame(length) => {
                    let at = self.next + PREFIX;
                    self.next = at + length;
                    return Ok(Some(Slot { at, length }));
                }
                Ahead::Part => self.end += self.fill()?,
                Ahead::Lie(length) => return Err(self.out_of_step(length)),
            }
        }
    }

    fn frame(&self, slot: Slot) -> &[u8] {
        self.buffer.get(slot.at..slot.at + slot.length).unwrap_or(&[])
    }

    fn meta(&self, _: Slot, _: usize) -> Option<RxMeta> {
        Some(RxMeta { segment_size: None, checksum: RxChecksum::Verify })
    }

    /// Each datagram is returned at once, so none is pending.
    fn is_pending(&self) -> bool {
        !matches!(self.ahead(), Ahead::Part)
    }

    fn keep(&mut self, keep: bool) {
        self.kept = keep;
    }

    fn front(_: &OutgoingPacket<'_>) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, (): (), link: &[u8; HEADER_LEN], packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let &OutgoingPacket { header, payload: [first, second], .. } = packet;
        let length = HEADER_LEN + header.len() + first.len() + second.len();
        let number = (length as u32).to_be_bytes();
        self.write(&[self.kind.in_front(&number), link, header, first, second].map(IoSlice::new))
    }

    fn send_frame(&mut self, frame: &[u8]) -> io::Result<()> {
        let number = (frame.len() as u32).to_be_bytes();
        self.write(&[self.kind.in_front(&number), frame].map(IoSlice::new))
    }

    /// The rest of a frame leaves meanwhile.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ended || self.is_pending() {
            return Poll::Ready(Ok(()));
        }
        self.drained = false;
        if let Poll::Ready(Err(error)) = self.poll_flushed(cx) {
            return Poll::Ready(Err(error));
        }
        store(&mut self.driver, cx.waker());
        self.fd.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_flushed(cx))?;
        self.room.poll(&self.fd, cx)
    }

    fn wait_until(&mut self, end: Instant) -> io::Result<()> {
        self.drained = false;
        let left = std::time::Duration::from(end.since(timer::now()));
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let for_room = if self.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        match poll(&mut [PollFd::new(self.fd.get()?, PollFlags::IN | for_room)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
