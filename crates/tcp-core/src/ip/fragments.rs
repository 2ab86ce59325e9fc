//! Received fragments: which are accepted, and what their senders are told.
//!
//! Fragments are fragile (RFC 8900): a stranger who guesses an identification can spoil a packet,
//! and 16 bits of it repeat soon at high rates (RFC 4963). So this stack sends none. It takes them,
//! because tunnels, DNS and UDP applications do send some; a packet that is complete is processed
//! as if it had come whole, and its transport checksum decides.

use super::Ip;
use super::reassembly::{self, Expired, Placed};
use super::refuse::quote;
use crate::egress::Egress;
use crate::events::DropReason;
use crate::share::{Cx, Ingested};
use crate::wire::{Fragment, IcmpErrorKind, IpVersion, RxPacket, parse_fragment};
use alloc::vec::Vec;

/// What the length of an IPv4 packet, or of the payload of an IPv6 packet, can say.
const LONGEST: u32 = 65_535;
/// Where the fixed header of IPv6 says the payload's length, and where a fragment header says the
/// offset.
const PAYLOAD_LENGTH_AT: u32 = 4;
const OFFSET_AT: u32 = 2;

/// What became of a fragment.
#[derive(Debug)]
pub(crate) enum Fragmented {
    /// It waits, or was dropped.
    Done(Ingested),
    /// It was the last that was missing: the whole packet.
    Whole(Vec<u8>),
}

impl Ip {
    /// A fragment arrived.
    #[cold]
    pub(crate) fn take_fragment(
        &mut self,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        packet: &RxPacket<'_>,
    ) -> Fragmented {
        let fragment = match parse_fragment(packet) {
            Ok(fragment) => fragment,
            Err(error) => return Fragmented::Done(cx.drop_packet(error.into())),
        };
        if let Some(dropped) = cx.check_addresses(&fragment.ip) {
            return Fragmented::Done(dropped);
        }
        cx.observe.counters.ip_reasm_reqds += 1;
        if let Some(refused) = self.refuse_fragment(egress, cx, &fragment, packet) {
            return Fragmented::Done(refused);
        }
        let (cost, most) = (reassembly::cost(fragment.payload.len()), cx.config.max_fragment_memory as usize);
        while self.reassembly.used() + cost > most && self.reassembly.evict() {
            cx.observe.counters.ip_reasm_fails += 1;
        }
        if self.reassembly.used() + cost > most || !cx.observe.budget.take(cost) {
            return Fragmented::Done(cx.drop_packet(DropReason::Fragment));
        }
        let timeout = cx.config.fragment_timeout;
        let fragments = usize::from(cx.config.max_fragments);
        Fragmented::Done(match self.reassembly.place(cx.now, &fragment, timeout, fragments) {
            Placed::Waiting | Placed::Repeated => Ingested::Fragment,
            Placed::Refused => cx.drop_packet(DropReason::Fragment),
            Placed::Overlap => {
                cx.observe.counters.ip_reasm_overlaps += 1;
                cx.drop_packet(DropReason::Fragment)
            }
            Placed::Whole(octets) => {
                cx.observe.counters.ip_reasm_oks += 1;
                // Its fragments count as received.
                cx.observe.counters.ip_in_receives -= 1;
                return Fragmented::Whole(octets);
            }
        })
    }

    /// Gives up the packet that began first, for its memory. Bytes that this frees; `None` if there
    /// is none.
    pub(crate) fn evict_fragments(&mut self, cx: &mut Cx<'_>) -> Option<usize> {
        let before = self.reassembly.used();
        if !self.reassembly.evict() {
            return None;
        }
        cx.observe.counters.ip_reasm_fails += 1;
        Some(before - self.reassembly.used())
    }

    /// Drops a fragment that cannot be part of a packet; RFC 8200, section 4.5, has its sender
    /// told.
    fn refuse_fragment(
        &mut self,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        fragment: &Fragment<'_>,
        packet: &RxPacket<'_>,
    ) -> Option<Ingested> {
        let len = fragment.payload.len() as u32;
        let most = match fragment.ip.version {
            IpVersion::V4 => LONGEST - u32::from(fragment.whole_headers),
            IpVersion::V6 => LONGEST + 40 - u32::from(fragment.whole_headers),
        };
        let pointer = if fragment.more && !len.is_multiple_of(8) {
            PAYLOAD_LENGTH_AT
        } else if fragment.offset + len > most {
            u32::from(fragment.whole_headers) + OFFSET_AT
        } else if len == 0 || (fragment.offset == 0 && !fragment.has_transport_header()) {
            return Some(cx.drop_packet(DropReason::Fragment));
        } else {
            return None;
        };
        Some(match fragment.ip.version {
            IpVersion::V6 if fragment.may_be_answered() => {
                let error = IcmpErrorKind::ParameterProblem { code: 0, pointer };
                self.refuse(egress, cx, &fragment.ip, packet, error, DropReason::Fragment)
            }
            _ => cx.drop_packet(DropReason::Fragment),
        })
    }

    /// Gives up packets that have waited for too long. If the first fragment has come, the sender
    /// is told (RFC 1122, section 3.3.2; RFC 8200, section 4.5), unless the packet is an ICMP
    /// error.
    pub(crate) fn expire_fragments(&mut self, egress: &mut Egress, cx: &mut Cx<'_>) {
        while let Some(Expired { src, dst, first, refused }) = self.reassembly.expire(cx.now) {
            if refused {
                continue;
            }
            cx.observe.counters.ip_reasm_timeout += 1;
            cx.observe.counters.ip_reasm_fails += 1;
            if let Some(first) = first {
                let version = if src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
                let quote = quote(cx, version, (&*first).into());
                self.send_icmp_error(egress, cx, dst, src, IcmpErrorKind::TimeExceeded { code: 1 }, quote);
            }
        }
    }
}
