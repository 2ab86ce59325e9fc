//! Received packets: to the connection, the listener, or the answer.

use super::fast_open::FastOpenNews;
use super::slots::Flags;
use super::stray::Stray;
use super::{Endpoint, Ingested};
use crate::config::Pricing;
use crate::conn::{Disposition, RstSpec};
use crate::drop_reason::DropReason;
use crate::four_tuple::FourTuple;
use crate::id::ConnId;
use crate::policy::sched::Arrival;
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::wire::{
    self, Datagram, Ecn, IpInfo, MIN_MTU_V6, RxPacket, TcpFlags, TcpSegment, Transport, WireError,
};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

impl Endpoint {
    /// See [`Endpoint::ingest`].
    pub(super) fn take_packet(&mut self, now: Instant, packet: &RxPacket<'_>) -> Ingested {
        // By reference: it is large.
        self.take_parsed(now, packet, &wire::parse(packet))
    }

    /// A packet, as it was parsed.
    pub(super) fn take_parsed(
        &mut self,
        now: Instant,
        packet: &RxPacket<'_>,
        parsed: &Result<Datagram<'_>, WireError>,
    ) -> Ingested {
        self.observe.counters.ip_in_receives += 1;
        let datagram = match parsed {
            Ok(datagram) => datagram,
            Err(WireError::Fragment) => return self.take_fragment(now, packet),
            Err(error) => return self.drop_packet((*error).into()),
        };
        if datagram.ip.ecn != Ecn::NotEct {
            let packets = match &datagram.transport {
                Transport::Tcp(segment) => segment.wire_segments,
                _ => 1,
            };
            self.count_codepoint(datagram.ip.ecn, packets);
        }
        self.unsettled |= !matches!(datagram.transport, Transport::Tcp(_));
        match &datagram.transport {
            Transport::Tcp(segment) => self.take_segment(now, &datagram.ip, segment),
            Transport::Icmp(message) => self.on_icmp(now, &datagram.ip, message, packet),
            Transport::Udp(udp) => self.on_udp(now, &datagram.ip, udp, packet),
            Transport::Other { protocol, named_at } => {
                self.on_unknown_protocol(now, &datagram.ip, packet, *protocol, *named_at)
            }
        }
    }

    /// See [`Endpoint::ingest_segment`].
    pub(super) fn take_fields(&mut self, now: Instant, ip: &IpInfo, segment: &TcpSegment<'_>) -> Ingested {
        self.observe.counters.ip_in_receives += 1;
        if ip.ecn != Ecn::NotEct {
            self.count_codepoint(ip.ecn, segment.wire_segments);
        }
        self.take_segment(now, ip, segment)
    }

    /// Counts packets by ECN codepoint.
    pub(super) fn count_codepoint(&mut self, ecn: Ecn, packets: u32) {
        let packets = u64::from(packets);
        let counters = &mut self.observe.counters;
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect1 => counters.ip_in_ect1_pkts += packets,
            Ecn::Ect0 => counters.ip_in_ect0_pkts += packets,
            Ecn::Ce => counters.ip_in_ce_pkts += packets,
        }
    }

    /// Drops a packet.
    pub(super) fn drop_packet(&mut self, reason: DropReason) -> Ingested {
        reason.count(&mut self.observe.counters);
        Ingested::Dropped(reason)
    }

    fn take_segment(&mut self, now: Instant, ip: &IpInfo, segment: &TcpSegment<'_>) -> Ingested {
        self.observe.counters.tcp_in_segs += u64::from(segment.wire_segments);
        // Segments of a connection come in bursts.
        if self.is_named(self.latest, ip, segment) {
            return self.give_to_conn(now, self.latest, ip, segment);
        }
        let tuple = named_by(ip, segment);
        if let Some(index) = self.lookup(&tuple) {
            self.latest = index;
            return self.give_to_conn(now, index, ip, segment);
        }
        self.unsettled = true;
        if let Some(place) = self.syn_cache.look_up(&tuple) {
            return self.give_to_half_open(now, place, ip, segment);
        }
        if let Some(name) = self.time_wait.look_up(&tuple) {
            return self.give_to_time_wait(now, name, &tuple, ip, segment);
        }
        match self.check_addresses(ip) {
            Some(dropped) => dropped,
            None => self.give_to_listener(now, &tuple, ip, segment, None),
        }
    }

    /// True if the segment is for the connection at `index`.
    pub(super) fn is_named(&self, index: u32, ip: &IpInfo, segment: &TcpSegment<'_>) -> bool {
        self.slots.slot(index).is_some_and(|slot| {
            slot.flags.has(Flags::NAMED)
                && slot
                    .conn
                    .as_deref()
                    .is_some_and(|conn| conn.tuple().is(ip.dst, segment.dst_port, ip.src, segment.src_port))
        })
    }

    /// The connection with this four-tuple.
    pub(super) fn lookup(&self, tuple: &FourTuple) -> Option<u32> {
        self.demux.find(tuple, |index| self.slots.conn(index).is_some_and(|conn| conn.tuple() == tuple))
    }

    /// A segment for the connection at `index`.
    pub(super) fn give_to_conn(
        &mut self,
        now: Instant,
        index: u32,
        ip: &IpInfo,
        segment: &TcpSegment<'_>,
    ) -> Ingested {
        let Some(slot) = self.slots.slot_mut(index) else { return Ingested::Handled };
        let id = slot.id(index);
        let Some(conn) = slot.conn.as_deref_mut() else { return Ingested::Handled };
        let mut ctx = self.observe.ctx(now, id, &self.config);
        let accepted = conn.data_segments_in();
        let disposition = conn.on_segment(&mut ctx, &self.config, &mut self.challenges, ip, segment);
        if self.egress.properties.sees_arrivals && conn.data_segments_in() != accepted {
            let payload = segment.payload.len() as u32;
            let headers = ip.total_len.saturating_sub(payload);
            let arrival = arrival(id, headers, payload, segment.wire_segments, self.config.pricing);
            self.egress.scheduler.arrived(now, &arrival);
        }
        let over = conn.is_over();
        self.touch(now, index);
        if over {
            // The next segment may be a SYN with the same four-tuple.
            self.settle_one(now, index);
        }
        match disposition {
            Disposition::Handled => Ingested::Conn(id),
            _ => self.finish_segment(now, id, ip, segment, disposition),
        }
    }

    /// Does what a segment for a connection calls for outside of it.
    #[cold]
    fn finish_segment(
        &mut self,
        now: Instant,
        id: ConnId,
        ip: &IpInfo,
        segment: &TcpSegment<'_>,
        disposition: Disposition,
    ) -> Ingested {
        self.unsettled = true;
        let tuple = named_by(ip, segment);
        match disposition {
            Disposition::Handled => {}
            Disposition::Reset(rst) => {
                self.send_reset(now, tuple, rst);
            }
            Disposition::NewSyn { iss_floor } => {
                return self.give_to_listener(now, &tuple, ip, segment, Some(iss_floor));
            }
            Disposition::FastOpen { dropped, asked } => {
                let cookie = segment.fast_open().filter(|cookie| !cookie.is_request());
                let not_given = asked.filter(|_| cookie.is_none());
                let news = FastOpenNews { cookie, not_given, mss: segment.options.mss, dropped };
                self.learn_fast_open(now, ip.src, &news);
            }
        }
        Ingested::Conn(id)
    }

    /// A segment without a connection: RFC 9293, section 3.10.7.2 if there is a listener, otherwise
    /// 3.10.7.1.
    pub(super) fn give_to_listener(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        ip: &IpInfo,
        segment: &TcpSegment<'_>,
        iss_floor: Option<SeqNum>,
    ) -> Ingested {
        let flags = segment.flags;
        let Some(listener) = self.listeners.find(tuple.local()) else {
            return self.refuse_segment(now, *tuple, segment);
        };
        if let Some(place) = self.held_syns.look_up(tuple) {
            return self.give_to_held_syn(now, (place, listener), tuple, ip, segment, iss_floor);
        }
        if flags.contains(TcpFlags::RST) {
            self.ignore_segment()
        } else if flags.contains(TcpFlags::ACK) {
            match self.cookie_of(now, listener, tuple, segment) {
                Some(half_open) => self.complete(now, listener, tuple, half_open, ip, segment),
                None => self.refuse_segment(now, *tuple, segment),
            }
        } else if flags.contains(TcpFlags::SYN) {
            self.on_syn(now, listener, tuple, ip, segment, iss_floor)
        } else {
            self.ignore_segment()
        }
    }

    /// Makes segments find the connection by `tuple` from now on.
    pub(super) fn name(&mut self, tuple: &FourTuple, id: ConnId) {
        if let Some(slot) = self.slots.get_mut(id)
            && slot.flags.set(Flags::NAMED)
        {
            self.demux.insert(tuple, id.index);
        }
    }

    /// A segment arrived for which there is no connection and no listener.
    pub(super) fn refuse_segment(
        &mut self,
        now: Instant,
        tuple: FourTuple,
        segment: &TcpSegment<'_>,
    ) -> Ingested {
        match RstSpec::answer_to(segment) {
            Some(rst) if self.config.reset_unknown => self.send_reset(now, tuple, rst),
            _ => self.ignore_segment(),
        }
    }

    /// A segment without a connection that is not answered.
    pub(super) fn ignore_segment(&mut self) -> Ingested {
        self.drop_packet(DropReason::NoConnection)
    }

    /// Queues an RST, within the rate limit: an attacker must not be able to use this host as a
    /// source of traffic.
    pub(super) fn send_reset(&mut self, now: Instant, tuple: FourTuple, rst: RstSpec) -> Ingested {
        if !self.egress.strays.has_room_for_reset() || !self.resets.allow(now) {
            return self.drop_packet(DropReason::RstLimited);
        }
        self.push_stray(now, Stray::Reset { tuple, rst });
        Ingested::Handled
    }

    /// Drops packets for other hosts, and those whose source cannot be answered (RFC 1122, section
    /// 3.2.1.3, and RFC 9293, section 3.9.2.3: neither address may be broadcast or multicast).
    pub(super) fn check_addresses(&mut self, ip: &IpInfo) -> Option<Ingested> {
        if is_unicast(ip.src) && is_unicast(ip.dst) && self.is_local(ip.dst) {
            return None;
        }
        Some(self.drop_packet(DropReason::NotLocal))
    }

    /// True if the address is one of this endpoint's.
    pub(super) fn is_local(&self, address: IpAddr) -> bool {
        // RFC 8200, section 5: a link with an MTU below 1,280 octets carries no IPv6.
        let carried = address.is_ipv4() || self.config.mtu >= MIN_MTU_V6;
        carried && (self.config.any_address || self.config.addresses.contains(&address))
    }
}

/// The four-tuple of a segment.
pub(super) fn named_by(ip: &IpInfo, segment: &TcpSegment<'_>) -> FourTuple {
    let local = SocketAddr::new(ip.dst, segment.dst_port);
    FourTuple::new(local, SocketAddr::new(ip.src, segment.src_port))
}

/// What the scheduler is told of an accepted packet with `headers` and `payload` bytes. The headers
/// of a merged one count once per wire segment.
pub(super) fn arrival(
    conn: ConnId,
    headers: u32,
    payload: u32,
    wire_segments: u32,
    pricing: Pricing,
) -> Arrival {
    let headers = headers.saturating_mul(wire_segments);
    let len = pricing.price(headers.saturating_add(payload), payload, wire_segments);
    Arrival { segments: wire_segments, ..Arrival::new(conn, len) }
}

/// True if the address can belong to a single host.
pub(super) const fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_unspecified() && !v4.is_multicast() && !matches!(v4, Ipv4Addr::BROADCAST),
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_multicast(),
    }
}
