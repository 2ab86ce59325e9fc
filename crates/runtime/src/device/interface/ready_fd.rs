//! A non-blocking descriptor with tokio's readiness, registered when it is first waited for.

use super::gate::Gate;
use crate::platform::workers::has_workers;
use crate::sys::readiness::{self, OwnsFd};
use std::io;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The descriptor. Opening needs no runtime; the first poll registers with the runtime it runs on.
#[derive(Debug)]
pub(in crate::device) struct ReadyFd<F: OwnsFd> {
    state: Registration<F>,
    /// What to watch for.
    interest: Interest,
}

#[derive(Debug)]
enum Registration<F: OwnsFd> {
    Unregistered(F),
    Registered(AsyncFd<F>),
    /// Its runtime has worker threads: tokio watches it for writing, and the gate, while it is
    /// open, for reading.
    Gated(AsyncFd<F>, Gate),
    /// Only while registering, or after that failed.
    Gone,
}

impl<F: OwnsFd> ReadyFd<F> {
    /// Watched for both directions.
    #[cfg(any(feature = "tun", feature = "af-packet", feature = "raw"))]
    pub(in crate::device) const fn new(fd: F) -> Self {
        Self::watching(fd, Interest::READABLE.add(Interest::WRITABLE))
    }

    /// Watched for `interest` only: no wake-up comes from the other direction.
    pub(in crate::device) const fn watching(fd: F, interest: Interest) -> Self {
        Self { state: Registration::Unregistered(fd), interest }
    }

    /// The descriptor, unless registering it failed.
    pub(in crate::device) fn get(&self) -> io::Result<&F> {
        match &self.state {
            Registration::Unregistered(fd) => Ok(fd),
            Registration::Registered(fd) | Registration::Gated(fd, _) => Ok(fd.get_ref()),
            Registration::Gone => Err(gone()),
        }
    }

    /// Tries `call` at once, regardless of the cached readiness. If `call` returns `WouldBlock`,
    /// clears the readiness, but only as of before the call: readiness that arrives meanwhile is
    /// kept.
    pub(in crate::device) fn attempt<T>(
        &self,
        interest: Interest,
        mut call: impl FnMut(&F) -> io::Result<T>,
    ) -> io::Result<T> {
        match &self.state {
            Registration::Unregistered(fd) => retry_interrupted(|| call(fd)),
            Registration::Gated(fd, gate) if interest == Interest::READABLE => {
                let outcome = retry_interrupted(|| call(fd.get_ref()));
                if outcome.is_ok() {
                    gate.on_read(fd.get_ref())?;
                }
                outcome
            }
            Registration::Registered(fd) | Registration::Gated(fd, _) => {
                let mut tried = false;
                let outcome = fd.try_io(interest, |fd| {
                    tried = true;
                    retry_interrupted(|| call(fd))
                });
                if tried { outcome } else { retry_interrupted(|| call(fd.get_ref())) }
            }
            Registration::Gone => Err(gone()),
        }
    }

    pub(in crate::device) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.registered()? {
            (fd, Some(gate)) => gate.poll_readable(fd.get_ref(), cx),
            (fd, None) => {
                ready!(fd.poll_read_ready(cx))?.retain_ready();
                Poll::Ready(Ok(()))
            }
        }
    }

    pub(in crate::device) fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.registered()?.0.poll_write_ready(cx))?.retain_ready();
        Poll::Ready(Ok(()))
    }

    fn registered(&mut self) -> io::Result<(&AsyncFd<F>, Option<&Gate>)> {
        if let Registration::Unregistered(_) = self.state
            && let Registration::Unregistered(fd) = std::mem::replace(&mut self.state, Registration::Gone)
        {
            self.state = if self.interest.is_readable() && has_workers() {
                let gate = Gate::new(&fd)?;
                Registration::Gated(readiness::register(fd, Interest::WRITABLE)?, gate)
            } else {
                Registration::Registered(readiness::register(fd, self.interest)?)
            };
        }
        match &self.state {
            Registration::Registered(fd) => Ok((fd, None)),
            Registration::Gated(fd, gate) => Ok((fd, Some(gate))),
            Registration::Unregistered(_) | Registration::Gone => Err(gone()),
        }
    }
}

fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the device could not be registered with the runtime")
}
