//! Waiting for room in a socket, without a wake-up for each frame that leaves.

use super::ready_fd::ReadyFd;
use rustix::fd::OwnedFd;
use std::io;
use std::task::{Context, Poll};
use tokio::io::Interest;

/// Consecutive sends without a full socket after which nobody watches for room any more.
const CALM: u32 = 256;

/// Whether a socket has room. While it was not full lately nobody watches for room: each frame that
/// leaves would wake the driver.
#[derive(Debug, Default)]
pub(in crate::device) struct Room {
    /// The same socket watched for room, if it was full lately.
    twin: Option<ReadyFd<OwnedFd>>,
    /// Sends since then.
    calm: u32,
}

impl Room {
    /// Tries to send on `fd`, which is watched for frames.
    pub(in crate::device) fn attempt<T>(
        &self,
        fd: &ReadyFd<OwnedFd>,
        call: impl FnMut(&OwnedFd) -> io::Result<T>,
    ) -> io::Result<T> {
        self.twin.as_ref().unwrap_or(fd).attempt(Interest::WRITABLE, call)
    }

    /// A frame has found room.
    pub(in crate::device) fn found(&mut self) {
        self.calm = self.calm.saturating_add(1);
        if self.calm == CALM {
            self.forget();
        }
    }

    /// A frame has found none.
    pub(in crate::device) const fn missed(&mut self) {
        self.calm = 0;
    }

    /// Stops watching. Also after an error, which tokio would report as readiness from then on.
    pub(in crate::device) fn forget(&mut self) {
        self.twin = None;
    }

    /// Ready when `fd` may have room.
    pub(in crate::device) fn poll(
        &mut self,
        fd: &ReadyFd<OwnedFd>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let twin = match &mut self.twin {
            Some(twin) => twin,
            None => {
                let twin = rustix::io::fcntl_dupfd_cloexec(fd.get()?, 0)?;
                self.twin.insert(ReadyFd::watching(twin, Interest::WRITABLE))
            }
        };
        twin.poll_writable(cx)
    }
}
