//! What the network does, and those who abuse it.

use super::{Script, World};
use ackline::core::wire::{
    HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, RxChecksum, RxPacket, TxChecksum, TxChecksumMode,
    Unreachable, checksum, emit_icmp, gso,
};
use ackline::core::{Duration, Instant, TxPacket};
use std::num::NonZeroU16;

/// Packets older than this are lost: the maximum segment lifetime, on which a new connection
/// between the same two sockets relies. Half of TIME-WAIT.
const LIFETIME: Duration = Duration::from_secs(30);
/// Packets under way; more are lost.
pub(super) const IN_FLIGHT: usize = 256;

/// A packet under way to a host.
#[derive(Clone)]
pub(super) struct Flight {
    pub(super) to: usize,
    pub(super) sent_at: Instant,
    pub(super) octets: Vec<u8>,
    /// Length of the headers.
    pub(super) header_len: usize,
    pub(super) segment_size: Option<NonZeroU16>,
    pub(super) checksum: RxChecksum,
}

impl World {
    pub(super) fn deliver_all(&mut self) {
        for _ in 0..self.wire.len() {
            if let Some(flight) = self.wire.pop_front() {
                self.deliver(&flight);
            }
        }
    }

    pub(super) fn deliver(&mut self, flight: &Flight) {
        if self.now.since(flight.sent_at) < LIFETIME {
            self.delivered += 1;
            self.hosts[flight.to].endpoint.ingest(self.now, flight.received());
        }
    }

    /// Makes the packets of a super-packet of it, as a device does.
    pub(super) fn split(&mut self, script: &mut Script<'_>) {
        let index = script.choice(self.wire.len());
        let Some(flight) = self.wire.get(index).cloned() else { return };
        let Some(size) = flight.segment_size else { return };
        self.wire.remove(index);
        let (headers, payload) = flight.octets.split_at(flight.header_len);
        let mut segments = gso::split(headers, payload.into(), size, TxChecksumMode::Complete)
            .expect("a super-packet of an endpoint");
        let mut buf = HeaderBuf::new();
        while let Some((emitted, data)) = segments.next_into(&mut buf) {
            let mut octets = buf.as_slice().to_vec();
            octets.extend(data.iter());
            let header_len = emitted.header_len;
            let checksum = RxChecksum::Verify;
            self.wire.push_back(Flight {
                octets,
                header_len,
                segment_size: None,
                checksum,
                ..flight.clone()
            });
        }
    }

    /// Changes octets of the headers, or of the data, of a packet under way, and delivers it as if
    /// its checksum were right.
    pub(super) fn forge(&mut self, script: &mut Script<'_>) {
        let index = script.choice(self.wire.len());
        let Some(mut flight) = self.wire.get(index).cloned() else { return };
        self.honest = false;
        flight.checksum = RxChecksum::Trusted;
        let ip_len = if flight.octets[0] >> 4 == 4 { 20 } else { 40 };
        for _ in 0..script.choice(4) + 1 {
            let (place, octet) = (script.octet(), script.octet());
            let at = match place {
                // Mostly the TCP header: sequence number, acknowledgment, flags, window, options.
                0..=200 => ip_len + usize::from(place) % (flight.header_len - ip_len).max(1),
                _ => usize::from(place) % flight.octets.len(),
            };
            if let Some(target) = flight.octets.get_mut(at) {
                *target = if script.octet().is_multiple_of(2) { octet } else { target.wrapping_add(octet) };
            }
        }
        flight.mend_ipv4_checksum();
        self.deliver(&flight);
    }

    /// A router, or somebody who says to be one, complains about a packet under way.
    pub(super) fn inject_icmp(&mut self, script: &mut Script<'_>) {
        let index = script.choice(self.wire.len());
        let Some(flight) = self.wire.get(index) else { return };
        self.honest = false;
        let to = 1 - flight.to;
        let code = script.octet();
        let kind = match script.choice(4) {
            0 => IcmpErrorKind::PacketTooBig { mtu: script.size() as u32 },
            1 => IcmpErrorKind::TimeExceeded { code },
            2 => IcmpErrorKind::ParameterProblem { code, pointer: 0 },
            _ => IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Other, code: code % 16 },
        };
        let quote = flight.octets[..flight.octets.len().min(100)].to_vec();
        let (src, dst) = (self.hosts[flight.to].address, self.hosts[to].address);
        let mut buf = HeaderBuf::new();
        let header = IcmpHeader { src, dst, ttl: 64, message: IcmpEmit::Error(kind) };
        emit_icmp(&header, [&quote, &[]], &mut buf).expect("two addresses of one version");
        let packet = [buf.as_slice(), &quote].concat();
        self.hosts[to].endpoint.ingest(self.now, RxPacket::new(&packet));
    }

    pub(super) fn inject_noise(&mut self, host: usize, script: &mut Script<'_>) {
        self.honest = false;
        let count = script.choice(120);
        let octets: Vec<_> = (0..count).map(|_| script.octet()).collect();
        let packet = RxPacket::new(&octets).with_checksum(RxChecksum::Trusted);
        self.hosts[host].endpoint.ingest(self.now, packet);
    }

    /// A packet that lost its end is dropped, and harms nobody.
    pub(super) fn truncate(&mut self, script: &mut Script<'_>) {
        let index = script.choice(self.wire.len());
        let Some(mut flight) = self.wire.get(index).cloned() else { return };
        let lost = script.size() + 1;
        flight.octets.truncate(flight.octets.len().saturating_sub(lost));
        flight.checksum = RxChecksum::Verify;
        self.deliver(&flight);
    }
}

impl Flight {
    pub(super) fn new(to: usize, now: Instant, packet: &TxPacket<'_>) -> Self {
        let [first, second] = packet.payload;
        Self {
            to,
            sent_at: now,
            octets: [packet.header, first, second].concat(),
            header_len: packet.header.len(),
            segment_size: packet.segment_size,
            checksum: match packet.checksum {
                TxChecksum::Complete => RxChecksum::Verify,
                TxChecksum::Partial { .. } => RxChecksum::Partial,
                TxChecksum::Omitted => RxChecksum::Trusted,
            },
        }
    }

    pub(super) fn received(&self) -> RxPacket<'_> {
        RxPacket::new(&self.octets).with_segment_size(self.segment_size).with_checksum(self.checksum)
    }

    pub(super) fn mend_ipv4_checksum(&mut self) {
        let Some(header) = self.octets.get_mut(..20).filter(|header| header[0] == 0x45) else { return };
        header[10..12].fill(0);
        let checksum = checksum::checksum(header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}
