//! Packets without a connection: cross traffic that takes its share of a link, regardless of what
//! happens to it.

use super::{App, AppCx, AppEvent, Draw};
use ackline_tcp_core::wire::checksum::checksum;
use ackline_tcp_core::{ConnId, Instant};
use std::net::{IpAddr, Ipv4Addr};

/// Sends IPv4 packets of a protocol that no endpoint accepts (RFC 3692: 253, for experiments),
/// without any feedback. Only for hosts whose packets are [queued](crate::Egress::Queued) at their
/// link, since these packets bypass the scheduler.
#[derive(Debug)]
pub struct Datagrams {
    from: Ipv4Addr,
    to: Ipv4Addr,
    size: Draw,
    interval: Draw,
    until: Instant,
    sent: u64,
    bytes: u64,
}

/// The IPv4 header (RFC 791, section 3.1).
const HEADER: u64 = 20;
const MAX_PACKET: u64 = 65_535;
const PROTOCOL: u8 = 253;
const TTL: u8 = 64;

impl Datagrams {
    /// Sends packets of `size` bytes, including the header, every `interval` seconds until `until`.
    ///
    /// # Panics
    /// If an address is not IPv4.
    #[must_use]
    pub fn new(from: IpAddr, to: IpAddr, size: Draw, interval: Draw, until: Instant) -> Self {
        let (IpAddr::V4(from), IpAddr::V4(to)) = (from, to) else {
            panic!("{from} and {to} must be IPv4 addresses");
        };
        Self { from, to, size, interval, until, sent: 0, bytes: 0 }
    }

    /// Packets sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    fn packet(&self, size: u16) -> Vec<u8> {
        let mut packet = vec![0; usize::from(size)];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&size.to_be_bytes());
        packet[8] = TTL;
        packet[9] = PROTOCOL;
        packet[12..16].copy_from_slice(&self.from.octets());
        packet[16..20].copy_from_slice(&self.to.octets());
        let sum = checksum(&packet[..HEADER as usize]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }
}

impl App for Datagrams {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        let wait = self.interval.time(cx.rng());
        cx.set_timer(cx.now() + wait, 0);
    }

    fn event(&mut self, _: &mut AppCx<'_>, _: ConnId, _: AppEvent) {}

    fn timer(&mut self, cx: &mut AppCx<'_>, _: u64) {
        if cx.now() >= self.until {
            return;
        }
        let size = self.size.bytes(cx.rng()).clamp(HEADER, MAX_PACKET);
        cx.send_packet(self.packet(size as u16));
        self.sent += 1;
        self.bytes += size;
        let wait = self.interval.time(cx.rng());
        cx.set_timer(cx.now() + wait, 0);
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("sent", self.sent as f64);
        report("sent_bytes", self.bytes as f64);
    }
}
