//! The portable timer: tokio's timer and std's clock.
//!
//! tokio's timer ticks in milliseconds, and rounds up.

use super::Alarm;
use ackline_tcp_core::{Duration, Instant};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker, ready};
use tokio::time::Sleep;

/// A tokio sleep that is reset again and again.
#[derive(Debug)]
pub(super) struct Sleeper {
    sleep: Pin<Box<Sleep>>,
    /// When it rings; `None` after it has.
    at: Option<Instant>,
    /// The task that polled last; it is woken if another task sets the time.
    waker: Waker,
}

impl Sleeper {
    fn reset(&mut self, at: Instant) {
        let left = at.since(Self::now());
        self.sleep.as_mut().reset(tokio::time::Instant::now() + left.into());
    }

    /// Ready at the set time; pending if there is none.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            if Self::now() >= at {
                return Poll::Ready(());
            }
            // tokio's clock is ahead of this one: a test has paused it.
            self.reset(at);
        }
    }
}

impl Alarm for Sleeper {
    /// tokio's tick.
    const RESOLUTION: Duration = Duration::from_millis(1);

    /// Time since the process first called this.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that is read")]
    fn now() -> Instant {
        static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
        let origin = *ORIGIN.get_or_init(std::time::Instant::now);
        Instant::ZERO + origin.elapsed().into()
    }

    fn new() -> io::Result<Self> {
        let sleep = Box::pin(tokio::time::sleep(std::time::Duration::ZERO));
        Ok(Self { sleep, at: None, waker: Waker::noop().clone() })
    }

    fn set(&mut self, at: Instant) -> io::Result<()> {
        self.at = Some(at);
        self.reset(at);
        let waker = self.waker.clone();
        if self.poll_sleep(&mut Context::from_waker(&waker)).is_ready() {
            waker.wake();
        }
        Ok(())
    }

    fn poll_ring(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.waker.clone_from(cx.waker());
        ready!(self.poll_sleep(cx));
        self.at = None;
        Poll::Ready(Ok(()))
    }
}
