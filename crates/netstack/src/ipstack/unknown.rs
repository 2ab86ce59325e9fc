//! Packets with another protocol than TCP and UDP.

use ackline_runtime::Packets;
use ackline_tcp_core::RxPacket;
use ackline_tcp_core::wire::{self, PROTOCOL_ICMP, PROTOCOL_ICMPV6, Transport};
use etherparse::{IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

/// Hop limit of answers.
const TTL: u8 = 64;

/// A packet of another protocol, and the way back to its sender.
pub struct IpStackUnknownTransport {
    src: IpAddr,
    dst: IpAddr,
    protocol: IpNumber,
    payload: Vec<u8>,
    mtu: u16,
    packets: Arc<Packets>,
}

impl fmt::Debug for IpStackUnknownTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { src, dst, protocol, payload, .. } = self;
        f.debug_struct("IpStackUnknownTransport")
            .field("src", src)
            .field("dst", dst)
            .field("protocol", protocol)
            .field("payload", payload)
            .finish_non_exhaustive()
    }
}

impl IpStackUnknownTransport {
    /// `None` if it is no packet.
    pub(super) fn new(packet: Box<[u8]>, mtu: u16, packets: Arc<Packets>) -> Option<Self> {
        let datagram = wire::parse(&RxPacket::new(&packet)).ok()?;
        let ip = datagram.ip;
        let protocol = match datagram.transport {
            Transport::Icmp(_) if ip.src.is_ipv4() => PROTOCOL_ICMP,
            Transport::Icmp(_) => PROTOCOL_ICMPV6,
            Transport::Other { protocol, .. } => protocol,
            // These are the stack's.
            Transport::Tcp(_) | Transport::Udp(_) => return None,
        };
        let payload = packet.get(usize::from(ip.header_len)..ip.total_len as usize)?.to_vec();
        Some(Self { src: ip.src, dst: ip.dst, protocol: IpNumber(protocol), payload, mtu, packets })
    }

    /// Sender.
    #[must_use]
    pub const fn src_addr(&self) -> IpAddr {
        self.src
    }

    /// Where it goes.
    #[must_use]
    pub const fn dst_addr(&self) -> IpAddr {
        self.dst
    }

    /// What follows the IP header, and the extension headers that the stack knows.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The protocol.
    #[must_use]
    pub const fn ip_protocol(&self) -> IpNumber {
        self.protocol
    }

    /// Sends `payload` back, from the packet's destination to its source; in several packets, if
    /// one has no room for it. Checksums in it must be right.
    ///
    /// # Errors
    /// `InvalidInput` if the stack finds the protocol's header malformed; `WouldBlock` if too many
    /// packets wait for the device; `NetworkDown` if it is gone.
    pub fn send(&self, payload: Vec<u8>) -> io::Result<()> {
        let header = if self.src.is_ipv4() { Ipv4Header::MIN_LEN } else { Ipv6Header::LEN };
        let room = usize::from(self.mtu).saturating_sub(header).max(1);
        if payload.is_empty() {
            return self.packets.send(&self.answer(&[])?);
        }
        payload.chunks(room).try_for_each(|part| self.packets.send(&self.answer(part)?))
    }

    /// The packet that carries `payload` back.
    fn answer(&self, payload: &[u8]) -> io::Result<Vec<u8>> {
        let wrong = |error: &dyn fmt::Display| io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
        let length = u16::try_from(payload.len()).map_err(|error| wrong(&error))?;
        let mut packet = Vec::with_capacity(Ipv6Header::LEN + payload.len());
        match (self.dst, self.src) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                Ipv4Header::new(length, TTL, self.protocol, from.octets(), to.octets())
                    .map_err(|error| wrong(&error))?
                    .write(&mut packet)?;
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => Ipv6Header {
                traffic_class: 0,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: length,
                next_header: self.protocol,
                hop_limit: TTL,
                source: from.octets(),
                destination: to.octets(),
            }
            .write(&mut packet)?,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
        packet.extend_from_slice(payload);
        Ok(packet)
    }
}
