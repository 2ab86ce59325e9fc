//! Wake-ups for what can be read, on a runtime with worker threads.
//!
//! There, one worker sleeps in epoll while others run. Every packet that comes would wake it,
//! although the driver is awake and will read the packet anyway. So the descriptor is watched by an
//! epoll instance of its own, which tokio watches, and which forgets about it once the driver is
//! busy reading. A driver that waits for one packet at a time pays for none of this: the gate stays
//! open.

use crate::sys::readiness::{self, OwnsFd};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::io;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Reads without a wait after which the driver counts as busy.
const BUSY: u32 = 4;

#[derive(Debug)]
pub(super) struct Gate {
    epoll: AsyncFd<OwnedFd>,
    /// What comes wakes whoever waits.
    open: Cell<bool>,
    /// Reads since somebody waited.
    reads: Cell<u32>,
}

impl Gate {
    /// A closed gate for `fd`.
    pub(super) fn new<F: OwnsFd>(fd: &F) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, readiness::borrow(fd), EventData::new_u64(0), EventFlags::empty())?;
        let epoll = readiness::register(epoll, Interest::READABLE)?;
        Ok(Self { epoll, open: Cell::new(false), reads: Cell::new(0) })
    }

    /// Something was read from `fd`.
    pub(super) fn on_read<F: OwnsFd>(&self, fd: &F) -> io::Result<()> {
        if self.open.get() {
            self.reads.set(self.reads.get() + 1);
            if self.reads.get() >= BUSY {
                self.set(fd, false)?;
            }
        }
        Ok(())
    }

    /// Ready when `fd` may have something to read.
    pub(super) fn poll_readable<F: OwnsFd>(&self, fd: &F, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.reads.set(0);
        if !self.open.get() {
            // The kernel looks at once whether there is something.
            self.set(fd, true)?;
        }
        ready!(self.epoll.poll_read_ready(cx))?.clear_ready();
        Poll::Ready(Ok(()))
    }

    fn set<F: OwnsFd>(&self, fd: &F, open: bool) -> io::Result<()> {
        let events = if open { EventFlags::IN } else { EventFlags::empty() };
        epoll::modify(self.epoll.get_ref(), readiness::borrow(fd), EventData::new_u64(0), events)?;
        self.open.set(open);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
    use std::future::poll_fn;
    use std::time::Duration;
    use tokio::time::timeout;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None).expect("a pair of sockets")
    }

    fn read(fd: &OwnedFd, gate: &Gate) -> bool {
        let read = recv(fd, &mut [0; 8][..], RecvFlags::empty()).is_ok();
        if read {
            gate.on_read(fd).expect("the gate can be closed");
        }
        read
    }

    async fn readable(fd: &OwnedFd, gate: &Gate) -> bool {
        let waits = poll_fn(|cx| gate.poll_readable(fd, cx));
        timeout(Duration::from_millis(50), waits).await.is_ok_and(|ready| ready.is_ok())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_busy_reader_closes_the_gate_and_misses_nothing() {
        let (here, there) = pair();
        let gate = Gate::new(&here).expect("an epoll instance");
        let say = || send(&there, b"packet", SendFlags::empty()).expect("there is room");
        assert!(!readable(&here, &gate).await);
        for packet in 0..BUSY {
            assert!(gate.open.get(), "closed after {packet} packets");
            say();
            assert!(read(&here, &gate));
        }
        assert!(!gate.open.get());
        // What came while the gate was closed is noticed when somebody waits.
        say();
        assert!(readable(&here, &gate).await);
        assert!(read(&here, &gate));
        while readable(&here, &gate).await {
            assert!(!read(&here, &gate), "readiness of what was read already is only an attempt too many");
        }
        // A reader of one packet at a time leaves the gate open.
        for _ in 0..2 * BUSY {
            say();
            assert!(readable(&here, &gate).await);
            assert!(read(&here, &gate));
            assert!(gate.open.get());
        }
    }
}
