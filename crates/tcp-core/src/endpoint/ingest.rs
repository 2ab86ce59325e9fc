//! Received packets: to the connection, the listener, or the answer.

use super::Owners;
use crate::config::Pricing;
use crate::conn::{Disposition, IcmpError};
use crate::events::DropReason;
use crate::four_tuple::FourTuple;
use crate::id::ConnId;
use crate::ip::Fragmented;
use crate::opens::{FastOpenNews, Inbound, Opened};
use crate::policy::sched::Arrival;
use crate::share::{Cx, Ingested};
use crate::wire::{
    self, Datagram, Ecn, IcmpErrorKind, IcmpMessage, IpInfo, PROTOCOL_TCP, PROTOCOL_UDP, Quoted, RxPacket,
    TcpSegment, Transport, Unreachable, WireError,
};
use core::net::SocketAddr;

impl Owners {
    /// See [`Endpoint::ingest`].
    pub(super) fn take_packet(&mut self, cx: &mut Cx<'_>, packet: &RxPacket<'_>) -> Ingested {
        // By reference: it is large.
        self.take_parsed(cx, packet, &wire::parse(packet))
    }

    /// A packet, as it was parsed.
    pub(super) fn take_parsed(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &RxPacket<'_>,
        parsed: &Result<Datagram<'_>, WireError>,
    ) -> Ingested {
        cx.observe.counters.ip_in_receives += 1;
        let datagram = match parsed {
            Ok(datagram) => datagram,
            Err(WireError::Fragment) => return self.take_fragment(cx, packet),
            Err(error) => return cx.drop_packet((*error).into()),
        };
        if datagram.ip.ecn != Ecn::NotEct {
            let packets = match &datagram.transport {
                Transport::Tcp(segment) => segment.wire_segments,
                _ => 1,
            };
            cx.count_codepoint(datagram.ip.ecn, packets);
        }
        match &datagram.transport {
            Transport::Tcp(segment) => self.take_segment(cx, &datagram.ip, segment),
            transport => self.take_other(cx, &datagram.ip, transport, packet),
        }
    }

    /// A packet of another protocol than TCP.
    fn take_other(
        &mut self,
        cx: &mut Cx<'_>,
        ip: &IpInfo,
        transport: &Transport<'_>,
        packet: &RxPacket<'_>,
    ) -> Ingested {
        let egress = &mut self.egress;
        match transport {
            Transport::Tcp(segment) => self.take_segment(cx, ip, segment),
            Transport::Udp(udp) => self.udp.on_datagram(&mut self.ip, egress, cx, ip, udp, packet),
            Transport::Other { protocol, named_at } => {
                self.ip.on_unknown_protocol(egress, cx, ip, packet, *protocol, *named_at)
            }
            Transport::Icmp(message) => match (self.ip.on_icmp(egress, cx, ip, message, packet), message) {
                (None, IcmpMessage::Error(error)) => self.on_icmp_error(cx, error),
                (done, _) => done.unwrap_or(Ingested::Handled),
            },
        }
    }

    /// A fragment, which may complete a packet, of this endpoint or of another one of its host.
    #[cold]
    fn take_fragment(&mut self, cx: &mut Cx<'_>, packet: &RxPacket<'_>) -> Ingested {
        match self.ip.take_fragment(&mut self.egress, cx, packet) {
            Fragmented::Done(ingested) => ingested,
            Fragmented::Whole(octets) => match self.give_back(&octets) {
                Some(given) => given,
                None => self.take_packet(cx, &RxPacket::new(&octets)),
            },
        }
    }

    /// See [`Endpoint::ingest_segment`].
    pub(super) fn take_fields(&mut self, cx: &mut Cx<'_>, ip: &IpInfo, segment: &TcpSegment<'_>) -> Ingested {
        cx.observe.counters.ip_in_receives += 1;
        if ip.ecn != Ecn::NotEct {
            cx.count_codepoint(ip.ecn, segment.wire_segments);
        }
        self.take_segment(cx, ip, segment)
    }

    fn take_segment(&mut self, cx: &mut Cx<'_>, ip: &IpInfo, segment: &TcpSegment<'_>) -> Ingested {
        cx.observe.counters.tcp_in_segs += u64::from(segment.wire_segments);
        // Segments of a connection come in bursts.
        let latest = self.table.latest;
        if self.table.is_named(latest, ip, segment) {
            return self.give_to_conn(cx, latest, ip, segment);
        }
        let tuple = named_by(ip, segment);
        if let Some(index) = self.table.look_up(&tuple) {
            self.table.latest = index;
            return self.give_to_conn(cx, index, ip, segment);
        }
        let inbound = Inbound { tuple, ip, segment };
        let (opens, mut below) = self.opening();
        let opened = opens.on_segment(&mut below, cx, &inbound);
        self.finish_opening(cx, &inbound, opened)
    }

    /// Gives the segment that completed a handshake to its connection.
    fn finish_opening(&mut self, cx: &mut Cx<'_>, inbound: &Inbound<'_>, opened: Opened) -> Ingested {
        match opened {
            Opened::Done(ingested) => ingested,
            Opened::Complete(id) => {
                self.give_to_conn(cx, id.index, inbound.ip, inbound.segment);
                Ingested::Accepted(id)
            }
        }
    }

    /// A segment for the connection at `index`.
    pub(super) fn give_to_conn(
        &mut self,
        cx: &mut Cx<'_>,
        index: u32,
        ip: &IpInfo,
        segment: &TcpSegment<'_>,
    ) -> Ingested {
        let Some(slot) = self.table.slots.slot_mut(index) else { return Ingested::Handled };
        let id = slot.id(index);
        let Some(conn) = slot.conn.as_deref_mut() else { return Ingested::Handled };
        let accepted = conn.data_segments_in();
        let disposition = conn.on_segment(&mut cx.conn(id), &mut self.opens.challenges, ip, segment);
        if self.egress.properties.sees_arrivals && conn.data_segments_in() != accepted {
            let payload = segment.payload.len() as u32;
            let headers = ip.total_len.saturating_sub(payload);
            let arrival = arrival(id, headers, payload, segment.wire_segments, cx.config.pricing);
            self.egress.scheduler.arrived(cx.now, &arrival);
        }
        let over = conn.is_over();
        if !slot.is_touched() {
            self.touch(cx, index);
        }
        if over {
            // The next segment may be a SYN with the same four-tuple.
            self.settle_one(cx, index);
        }
        match disposition {
            Disposition::Handled => Ingested::Conn(id),
            _ => self.finish_segment(cx, id, ip, segment, disposition),
        }
    }

    /// Does what a segment for a connection calls for outside of it.
    #[cold]
    fn finish_segment(
        &mut self,
        cx: &mut Cx<'_>,
        id: ConnId,
        ip: &IpInfo,
        segment: &TcpSegment<'_>,
        disposition: Disposition,
    ) -> Ingested {
        let inbound = Inbound { tuple: named_by(ip, segment), ip, segment };
        let (opens, mut below) = self.opening();
        match disposition {
            Disposition::Handled => {}
            Disposition::Reset(rst) => {
                opens.send_reset(below.egress, cx, inbound.tuple, rst);
            }
            Disposition::NewSyn { iss_floor } => {
                let opened = opens.on_new_segment(&mut below, cx, &inbound, Some(iss_floor));
                return self.finish_opening(cx, &inbound, opened);
            }
            Disposition::FastOpen { dropped, asked } => {
                let cookie = segment.fast_open().filter(|cookie| !cookie.is_request());
                let not_given = asked.filter(|_| cookie.is_none());
                let news = FastOpenNews { cookie, not_given, mss: segment.options.mss, dropped };
                opens.learn_fast_open(cx, ip.src, &news);
            }
        }
        Ingested::Conn(id)
    }

    /// RFC 5927, section 4: an error is only accepted if it quotes a segment of an existing
    /// connection; the connection checks that the segment is outstanding.
    fn on_icmp_error(&mut self, cx: &mut Cx<'_>, error: &wire::IcmpError) -> Ingested {
        let quoted = &error.quoted;
        if quoted.protocol == PROTOCOL_UDP {
            return self.udp.on_icmp_error(cx, quoted, &error.kind);
        }
        let (Some(meaning), Some(tuple)) = (meaning(&error.kind), quoted_tuple(quoted)) else {
            return cx.drop_packet(DropReason::IcmpUnrelated);
        };
        if let Some(index) = self.table.look_up(&tuple) {
            let id = self.table.slots.id(index);
            if let Some(conn) = self.table.slots.conn_mut(index) {
                conn.on_icmp(&mut cx.conn(id), meaning, quoted.seq);
            }
            self.touch(cx, index);
            return Ingested::Conn(id);
        }
        match self.opens.syn_cache.look_up(&tuple) {
            Some(place) => {
                self.opens.on_icmp(cx, place, meaning, quoted.seq);
                Ingested::Handled
            }
            None => cx.drop_packet(DropReason::IcmpUnrelated),
        }
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

/// The four-tuple of a quoted segment; `None` if it is not TCP.
fn quoted_tuple(quoted: &Quoted) -> Option<FourTuple> {
    let local = SocketAddr::new(quoted.src, quoted.src_port);
    let remote = SocketAddr::new(quoted.dst, quoted.dst_port);
    (quoted.protocol == PROTOCOL_TCP).then(|| FourTuple::new(local, remote))
}

/// What an error means for a connection; `None` if nothing.
fn meaning(kind: &IcmpErrorKind) -> Option<IcmpError> {
    match *kind {
        IcmpErrorKind::PacketTooBig { mtu } => Some(IcmpError::TooBig(mtu)),
        IcmpErrorKind::DestinationUnreachable { reason, .. } => Some(match reason {
            // RFC 1122, section 4.2.3.9: hard errors. Whether they end the connection depends on
            // its state (RFC 5927, section 5.2).
            Unreachable::Protocol | Unreachable::Port => IcmpError::Refused,
            Unreachable::Network | Unreachable::Host | Unreachable::Prohibited | Unreachable::Other => {
                IcmpError::Unreachable
            }
        }),
        IcmpErrorKind::TimeExceeded { .. } | IcmpErrorKind::ParameterProblem { .. } => {
            Some(IcmpError::Unreachable)
        }
    }
}
