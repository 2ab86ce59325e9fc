//! Packets in order of arrival, and their bytes.

use super::QueueCx;
use crate::packet::Packet;
use ackline_tcp_core::{Duration, Instant};
use std::collections::VecDeque;

/// A first-in first-out queue that counts its bytes.
#[derive(Debug, Default)]
pub(super) struct PacketFifo {
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl PacketFifo {
    pub(super) fn push(&mut self, cx: &QueueCx<'_>, packet: Packet) {
        self.bytes += cx.cost(&packet);
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self, cx: &QueueCx<'_>) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= cx.cost(&packet);
        Some(packet)
    }

    /// How long the first packet has waited; zero if there is none.
    pub(super) fn delay(&self, now: Instant) -> Duration {
        self.packets.front().map_or(Duration::ZERO, |packet| now.since(packet.queued_at))
    }

    pub(super) fn packets(&self) -> usize {
        self.packets.len()
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
