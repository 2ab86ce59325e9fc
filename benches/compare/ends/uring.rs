//! A plain TUN device that is read and written through io_uring: up to [`DEPTH`] packets in each
//! system call.
//!
//! Each call's operations end within it, since neither a read that may not wait nor a write to a
//! TUN device is ever suspended; so no kernel thread takes part. What is written is copied first:
//! it must stay where it is until the call.

use ackline_runtime::device::tun::Tun;
use ackline_runtime::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxPacket};
use io_uring::{IoUring, opcode, types};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::task::{Context, Poll};

/// Packets of one call.
const DEPTH: usize = 32;
/// Of an MTU of 1500, with room to spare.
const ROOM: usize = 2048;
/// `RWF_NOWAIT`: preadv2(2).
const NO_WAIT: i32 = 8;
/// Marks a write among the results; reads have the number of their buffer.
const WRITE: u64 = u64::MAX;

pub(crate) struct Uring {
    tun: Tun,
    fd: OwnedFd,
    ring: IoUring,
    reads: Vec<[u8; ROOM]>,
    /// Which buffers have packets, and how long these are.
    ready: VecDeque<(usize, usize)>,
    writes: Vec<Vec<u8>>,
    /// How many of them wait for the next call.
    waiting: usize,
}

impl Uring {
    pub(crate) fn new(tun: Tun) -> io::Result<Self> {
        let fd = tun.try_clone_fd()?;
        Ok(Self {
            tun,
            fd,
            ring: IoUring::new(2 * DEPTH as u32)?,
            reads: vec![[0; ROOM]; DEPTH],
            ready: VecDeque::with_capacity(DEPTH),
            writes: (0..DEPTH).map(|_| Vec::with_capacity(ROOM)).collect(),
            waiting: 0,
        })
    }

    /// Writes what waits; if `read`, also reads as many packets as there are, up to [`DEPTH`].
    fn call(&mut self, read: bool) -> io::Result<()> {
        let fd = types::Fd(self.fd.as_raw_fd());
        let mut operations = 0;
        for packet in &self.writes[..self.waiting] {
            let write = opcode::Write::new(fd, packet.as_ptr(), packet.len() as u32).build().user_data(WRITE);
            // SAFETY: the buffer is not touched before the call below has returned, when the write
            // has ended.
            unsafe { self.ring.submission().push(&write) }.map_err(io::Error::other)?;
            operations += 1;
        }
        self.waiting = 0;
        for (index, buffer) in self.reads.iter_mut().enumerate().filter(|_| read) {
            let read = opcode::Read::new(fd, buffer.as_mut_ptr(), ROOM as u32).rw_flags(NO_WAIT).build();
            // SAFETY: nobody has a packet in the buffers when this is called, and none is touched
            // before the read has ended.
            unsafe { self.ring.submission().push(&read.user_data(index as u64)) }
                .map_err(io::Error::other)?;
            operations += 1;
        }
        if operations == 0 {
            return Ok(());
        }
        self.ring.submit_and_wait(operations)?;
        for done in self.ring.completion() {
            match (done.user_data(), done.result()) {
                (WRITE, 0..) => {}
                (index, length @ 1..) => self.ready.push_back((index as usize, length as usize)),
                (_, error) if -error == rustix::io::Errno::AGAIN.raw_os_error() => {}
                (_, error) => return Err(io::Error::from_raw_os_error(-error)),
            }
        }
        Ok(())
    }
}

impl Device for Uring {
    fn caps(&self) -> DeviceCaps {
        self.tun.caps()
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        if self.ready.is_empty() {
            self.call(true)?;
        }
        match self.ready.pop_front() {
            Some((index, length)) => Ok(RxPacket::new(&self.reads[index][..length])),
            // Tells tokio that there is nothing, unless there is by now.
            None => self.tun.try_recv(),
        }
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let write = &mut self.writes[self.waiting];
        write.clear();
        packet.append_to(write);
        self.waiting += 1;
        // An ACK makes the peer send.
        let urgent = packet.payload.iter().all(|part| part.is_empty());
        if urgent || self.waiting == DEPTH { self.call(false) } else { Ok(()) }
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.call(false)?;
        self.tun.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.call(false)?;
        self.tun.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        self.tun.stats()
    }
}
