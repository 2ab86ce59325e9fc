//! Packets other than TCP and UDP: tasks that wait for them.

use super::StackState;
use crate::io_error;
use crate::wakes::{Wakes, store};
use ackline_tcp_core::Instant;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::Notify;

/// The tasks that wait for packets.
#[derive(Debug, Default)]
pub(crate) struct PacketWaits {
    arrivals: Arc<Notify>,
    waker: Option<Waker>,
}

impl PacketWaits {
    /// Wakes all waiting tasks.
    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        wakes.everyone(&self.arrivals);
        wakes.extend(self.waker.take());
    }
}

impl StackState {
    /// Takes packets from now on.
    pub(crate) fn take_packets(&mut self, now: Instant) -> io::Result<Arc<Notify>> {
        self.check_open()?;
        self.endpoint.packets().take(now, true).map_err(io_error::packet)?;
        Ok(self.packets.arrivals.clone())
    }

    pub(crate) fn stop_packets(&mut self, now: Instant) {
        self.packets = PacketWaits::default();
        // Only taking them can fail.
        let _ = self.endpoint.packets().take(now, false);
    }

    /// The next packet, or the waker is kept.
    pub(crate) fn next_packet(&mut self, waker: Option<&Waker>) -> io::Result<Option<Box<[u8]>>> {
        if let Some(packet) = self.endpoint.packets().recv() {
            return Ok(Some(packet));
        }
        self.check_open()?;
        if let Some(waker) = waker {
            store(&mut self.packets.waker, waker);
        }
        Ok(None)
    }

    /// Passes on that packets have come.
    pub(super) fn deliver_packets(&mut self, wakes: &mut Wakes) {
        if self.endpoint.packets().poll_event() {
            self.packets.wake_all(wakes);
        }
    }
}
