//! Packets on their way to a device.

use super::TxChecksum;
use ackline_tcp_core::TxPacket;
use std::num::NonZeroU16;

/// An IP packet, or a super-packet, that a [device](super::Device) is asked to send.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingPacket<'a> {
    /// IP and transport headers; payload may follow them.
    pub header: &'a [u8],
    /// The rest of the packet, in order; either slice may be empty.
    pub payload: [&'a [u8]; 2],
    /// Payload bytes per wire packet, if this is a super-packet that the device must segment. All
    /// its payload is in `payload`.
    pub segment_size: Option<NonZeroU16>,
    /// What the device must still do for the transport checksum.
    pub checksum: TxChecksum,
}

impl<'a> OutgoingPacket<'a> {
    /// A packet whose checksum is complete.
    #[must_use]
    pub const fn new(header: &'a [u8], payload: [&'a [u8]; 2]) -> Self {
        Self { header, payload, segment_size: None, checksum: TxChecksum::Complete }
    }

    /// A packet in one piece, whose checksum is complete.
    #[must_use]
    pub const fn whole(packet: &'a [u8]) -> Self {
        Self::new(packet, [&[], &[]])
    }

    /// The same as a super-packet of `segment_size` payload bytes per wire packet, if that is known.
    #[must_use]
    pub const fn with_segment_size(mut self, segment_size: Option<NonZeroU16>) -> Self {
        self.segment_size = segment_size;
        self
    }

    /// The same with another state of its checksum.
    #[must_use]
    pub const fn with_checksum(mut self, checksum: TxChecksum) -> Self {
        self.checksum = checksum;
        self
    }

    /// Bytes of the headers and the payload.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.header.len() + self.payload[0].len() + self.payload[1].len()
    }

    /// Appends the headers and the payload to `bytes`.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        for part in [self.header, self.payload[0], self.payload[1]] {
            bytes.extend_from_slice(part);
        }
    }

    /// A copy of the headers and the payload.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        [self.header, self.payload[0], self.payload[1]].concat()
    }
}

impl<'a> From<&TxPacket<'a>> for OutgoingPacket<'a> {
    fn from(packet: &TxPacket<'a>) -> Self {
        let &TxPacket { header, payload, segment_size, checksum, .. } = packet;
        Self { header, payload, segment_size, checksum }
    }
}
