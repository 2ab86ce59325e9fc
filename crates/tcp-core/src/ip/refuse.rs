//! Packets for this host that nobody accepts: UDP datagrams without a socket, and unsupported
//! protocols. An ICMP error tells the sender, who need not wait for a timeout (RFC 1122, section
//! 3.2.2.1; RFC 4443, sections 3.1 and 3.4).
//!
//! No error answers an ICMP error, a packet to or from a broadcast or multicast address, a
//! fragment, or a corrupted packet (RFC 1122, section 3.2.2; RFC 4443, section 2.4): these do not
//! get here, or are filtered below.

use super::Ip;
use crate::egress::{Egress, Stray};
use crate::events::DropReason;
use crate::share::{Cx, Ingested};
use crate::wire::{IcmpEmit, IcmpErrorKind, IpInfo, IpVersion, Payload, RxPacket, Unreachable};
use alloc::boxed::Box;
use alloc::vec;
use core::net::IpAddr;

/// IPv6's "no next header": there is nothing to refuse (RFC 8200, section 4.7).
const NO_NEXT_HEADER: u8 = 59;

impl Ip {
    /// A packet with an unsupported `protocol` arrived; the number is at the offset `named_at`.
    pub(crate) fn on_unknown_protocol(
        &mut self,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        ip: &IpInfo,
        packet: &RxPacket<'_>,
        protocol: u8,
        named_at: u16,
    ) -> Ingested {
        if let Some(dropped) = cx.check_addresses(ip) {
            return dropped;
        }
        if self.packets.are_taken() {
            return self.give_to_program(cx, ip, packet);
        }
        let reason = DropReason::UnknownProtocol;
        let error = match ip.version {
            IpVersion::V4 => IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Protocol, code: 2 },
            IpVersion::V6 if protocol == NO_NEXT_HEADER => return cx.drop_packet(reason),
            // RFC 4443, section 3.4: unrecognized next header type.
            IpVersion::V6 => IcmpErrorKind::ParameterProblem { code: 1, pointer: u32::from(named_at) },
        };
        self.refuse(egress, cx, ip, packet, error, reason)
    }

    /// Drops `packet` for `reason`, and queues an ICMP error if one is allowed.
    pub(crate) fn refuse(
        &mut self,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        ip: &IpInfo,
        packet: &RxPacket<'_>,
        error: IcmpErrorKind,
        reason: DropReason,
    ) -> Ingested {
        let dropped = cx.drop_packet(reason);
        if !self.may_send_icmp_error(egress, cx, ip.src) {
            return dropped;
        }
        let mut octets = Payload::new([packet.head, packet.more[0], packet.more[1]]);
        octets.truncate(ip.total_len as usize);
        let (message, data) = (IcmpEmit::Error(error), quote(cx, ip.version, octets));
        egress.push_stray(cx, Stray::Icmp { src: ip.dst, dst: ip.src, message, data });
        Ingested::Handled
    }

    /// Queues an ICMP error from `src` to `dst` that quotes `data`, if one is allowed.
    pub(crate) fn send_icmp_error(
        &mut self,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        src: IpAddr,
        dst: IpAddr,
        error: IcmpErrorKind,
        data: Box<[u8]>,
    ) {
        if self.may_send_icmp_error(egress, cx, dst) {
            egress.push_stray(cx, Stray::Icmp { src, dst, message: IcmpEmit::Error(error), data });
        }
    }

    /// True if an ICMP error may be sent to `dst`; it is counted then.
    fn may_send_icmp_error(&mut self, egress: &mut Egress, cx: &mut Cx<'_>, dst: IpAddr) -> bool {
        if !cx.config.refuse_datagrams || !is_one_host(dst) {
            return false;
        }
        if !egress.strays.has_room_for_error() {
            cx.observe.counters.icmp_errors_dropped += 1;
            return false;
        }
        let allowed = self.errors.allow(cx.now);
        cx.observe.counters.icmp_out_rate_limit_global += u64::from(!allowed);
        allowed
    }
}

/// As much of a packet as an error quotes.
pub(crate) fn quote(cx: &Cx<'_>, version: IpVersion, mut packet: Payload<'_>) -> Box<[u8]> {
    packet.truncate(longest_quote(version, cx.config.mtu) as usize);
    let mut data = vec![0; packet.len()];
    packet.copy_to(&mut data);
    data.into()
}

/// "Nobody listens at this port", of each version.
pub(crate) const fn port_unreachable(version: IpVersion) -> IcmpErrorKind {
    let code = match version {
        IpVersion::V4 => 3,
        IpVersion::V6 => 4,
    };
    IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Port, code }
}

/// How many octets of a packet an error quotes on a link with this `mtu`.
fn longest_quote(version: IpVersion, mtu: u32) -> u32 {
    let (longest, headers) = match version {
        // RFC 1812, section 4.3.2.3.
        IpVersion::V4 => (576, 20 + 8),
        // RFC 4443, section 3.1: the minimum IPv6 MTU.
        IpVersion::V6 => (1_280, 40 + 8),
    };
    longest.min(mtu).saturating_sub(headers)
}

/// Filters the source addresses of RFC 1122, section 3.2.2, that TCP does not refuse anyway: "zero"
/// networks, loopback addresses, and Class E.
const fn is_one_host(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(v4) => !matches!(v4.octets()[0], 0 | 127 | 240..),
        IpAddr::V6(v6) => !v6.is_loopback(),
    }
}
