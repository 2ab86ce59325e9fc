//! Remains of a shard's queue after it has stopped.

use crate::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxPacket};
use std::io;
use std::task::{Context, Poll};

/// A closed queue: it carries nothing, and remembers what it had carried.
#[derive(Debug)]
pub(super) struct ClosedQueue {
    caps: DeviceCaps,
    stats: DeviceStats,
}

impl ClosedQueue {
    pub(super) fn of(device: &dyn Device) -> Self {
        Self { caps: device.caps(), stats: device.stats() }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NetworkDown, "the shard has stopped")
}

impl Device for ClosedQueue {
    fn caps(&self) -> DeviceCaps {
        self.caps
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        Err(closed())
    }

    fn try_send(&mut self, _packet: &OutgoingPacket<'_>) -> io::Result<()> {
        Err(closed())
    }

    fn poll_readable(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(closed()))
    }

    fn poll_writable(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(closed()))
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }
}
