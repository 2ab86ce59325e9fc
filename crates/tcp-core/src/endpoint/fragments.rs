//! Received fragments: which are accepted, and what their senders are told.
//!
//! Fragments are fragile (RFC 8900): a stranger who guesses an identification can spoil a packet,
//! and 16 bits of it repeat soon at high rates (RFC 4963). So this stack sends none. It takes them,
//! because tunnels, DNS and UDP applications do send some; a packet that is complete is processed
//! as if it had come whole, and its transport checksum decides.

use super::reassembly::{self, Expired, Placed};
use super::{Endpoint, Ingested};
use crate::drop_reason::DropReason;
use crate::time::Instant;
use crate::wire::{Fragment, IcmpErrorKind, IpVersion, RxPacket, parse_fragment};

/// What the length of an IPv4 packet, or of the payload of an IPv6 packet, can say.
const LONGEST: u32 = 65_535;
/// Where the fixed header of IPv6 says the payload's length, and where a fragment header says the
/// offset.
const PAYLOAD_LENGTH_AT: u32 = 4;
const OFFSET_AT: u32 = 2;

impl Endpoint {
    /// A fragment arrived.
    #[cold]
    pub(super) fn take_fragment(&mut self, now: Instant, packet: &RxPacket<'_>) -> Ingested {
        self.unsettled = true;
        let fragment = match parse_fragment(packet) {
            Ok(fragment) => fragment,
            Err(error) => return self.drop_packet(error.into()),
        };
        if let Some(dropped) = self.check_addresses(&fragment.ip) {
            return dropped;
        }
        self.observe.counters.ip_reasm_reqds += 1;
        if let Some(refused) = self.refuse_fragment(now, &fragment, packet) {
            return refused;
        }
        let (cost, most) =
            (reassembly::cost(fragment.payload.len()), self.config.max_fragment_memory as usize);
        while self.reassembly.used() + cost > most && self.reassembly.evict() {
            self.observe.counters.ip_reasm_fails += 1;
        }
        if self.reassembly.used() + cost > most || !self.observe.budget.take(cost) {
            return self.drop_packet(DropReason::Fragment);
        }
        let timeout = self.config.fragment_timeout;
        let fragments = usize::from(self.config.max_fragments);
        match self.reassembly.place(now, &fragment, timeout, fragments) {
            Placed::Waiting | Placed::Repeated => Ingested::Fragment,
            Placed::Refused => self.drop_packet(DropReason::Fragment),
            Placed::Overlap => {
                self.observe.counters.ip_reasm_overlaps += 1;
                self.drop_packet(DropReason::Fragment)
            }
            Placed::Whole(octets) => {
                self.observe.counters.ip_reasm_oks += 1;
                // Its fragments count as received. A second caller of what `ingest` calls would
                // keep it from being inlined there.
                self.observe.counters.ip_in_receives -= 1;
                match self.give_back(&octets) {
                    Some(given) => given,
                    None => self.ingest(now, RxPacket::new(&octets)),
                }
            }
        }
    }

    /// Drops a fragment that cannot be part of a packet; RFC 8200, section 4.5, has its sender
    /// told.
    fn refuse_fragment(
        &mut self,
        now: Instant,
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
            return Some(self.drop_packet(DropReason::Fragment));
        } else {
            return None;
        };
        Some(match fragment.ip.version {
            IpVersion::V6 if fragment.may_be_answered() => {
                let error = IcmpErrorKind::ParameterProblem { code: 0, pointer };
                self.refuse(now, &fragment.ip, packet, error, DropReason::Fragment)
            }
            _ => self.drop_packet(DropReason::Fragment),
        })
    }

    /// Gives up packets that have waited for too long. If the first fragment has come, the sender
    /// is told (RFC 1122, section 3.3.2; RFC 8200, section 4.5), unless the packet is an ICMP
    /// error.
    pub(super) fn expire_fragments(&mut self, now: Instant) {
        while let Some(Expired { src, dst, first, refused }) = self.reassembly.expire(now) {
            self.unsettled = true;
            if refused {
                continue;
            }
            self.observe.counters.ip_reasm_timeout += 1;
            self.observe.counters.ip_reasm_fails += 1;
            if let Some(first) = first {
                let version = if src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
                let quote = self.quote(version, (&*first).into());
                self.send_icmp_error(now, dst, src, IcmpErrorKind::TimeExceeded { code: 1 }, quote);
            }
        }
    }
}
