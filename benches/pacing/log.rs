//! A device that remembers when packets with data went through it.

use ackline_runtime::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxPacket};
use ackline_runtime::timer;
use ackline_tcp_core::{Duration, Instant};
use std::io;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// Packets that are remembered without an allocation.
const EXPECTED: usize = 1 << 20;

/// A packet with data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// When it was handed over.
    pub(crate) at: Instant,
    /// Packets on the wire.
    pub(crate) segments: u64,
}

/// What went through.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    passed: Arc<Mutex<Vec<Departure>>>,
}

/// Which way is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Sent,
    Received,
}

pub(crate) struct LoggingDevice<D> {
    device: D,
    way: Way,
    log: Log,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { passed: Arc::new(Mutex::new(Vec::with_capacity(EXPECTED))) }
    }

    fn add(&self, passed: Departure) {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).push(passed);
    }

    /// What went through from `start` to `end`.
    pub(crate) fn between(&self, start: Instant, end: Instant) -> Vec<Departure> {
        let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        passed.iter().filter(|packet| (start..end).contains(&packet.at)).copied().collect()
    }
}

/// Segments of each burst: of packets of which each comes less than `within` after the one before
/// it.
pub(crate) fn bursts(passed: &[Departure], within: Duration) -> Vec<u64> {
    let mut bursts: Vec<u64> = Vec::new();
    let mut last = None;
    for packet in passed {
        match (last.replace(packet.at), bursts.last_mut()) {
            (Some(last), Some(burst)) if packet.at.since(last) < within => *burst += packet.segments,
            _ => bursts.push(packet.segments),
        }
    }
    bursts
}

impl<D> LoggingDevice<D> {
    pub(crate) const fn new(device: D, way: Way, log: Log) -> Self {
        Self { device, way, log }
    }
}

fn segments(bytes: u64, size: Option<NonZeroU16>) -> u64 {
    size.map_or(1, |size| bytes.div_ceil(u64::from(size.get())))
}

impl<D: Device> Device for LoggingDevice<D> {
    fn caps(&self) -> DeviceCaps {
        self.device.caps()
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let Self { device, way, log } = self;
        let packet = device.try_recv()?;
        // What is longer than the longest headers of an ACK carries data.
        if *way == Way::Received && packet.len() > 120 {
            let bytes = packet.len() as u64;
            log.add(Departure { at: timer::now(), segments: segments(bytes - 52, packet.segment_size) });
        }
        Ok(packet)
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let at = timer::now();
        self.device.try_send(packet)?;
        let bytes = (packet.payload[0].len() + packet.payload[1].len()) as u64;
        if self.way == Way::Sent && bytes > 0 {
            self.log.add(Departure { at, segments: segments(bytes, packet.segment_size) });
        }
        Ok(())
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.device.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.device.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        self.device.stats()
    }
}
