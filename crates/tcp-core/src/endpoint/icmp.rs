//! ICMP: answers pings, and passes errors, after RFC 5927's checks, to their connection or UDP
//! socket.

use super::stray::Stray;
use super::{Endpoint, Ingested};
use crate::conn::IcmpError;
use crate::drop_reason::DropReason;
use crate::four_tuple::FourTuple;
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::wire::{
    self, IcmpEcho, IcmpEmit, IcmpErrorKind, IcmpMessage, IpInfo, PROTOCOL_TCP, PROTOCOL_UDP, Quoted,
    RxPacket, Unreachable,
};
use alloc::vec;
use core::net::SocketAddr;

impl Endpoint {
    /// An ICMP message arrived.
    pub(super) fn on_icmp(
        &mut self,
        now: Instant,
        ip: &IpInfo,
        message: &IcmpMessage<'_>,
        packet: &RxPacket<'_>,
    ) -> Ingested {
        self.observe.counters.icmp_in_msgs += 1;
        if let Some(dropped) = self.check_addresses(ip) {
            return dropped;
        }
        if self.is_for_program(ip, message) {
            return self.give_to_program(ip, packet);
        }
        match message {
            IcmpMessage::EchoRequest(echo) => self.on_echo_request(now, ip, echo),
            IcmpMessage::Error(error) => self.on_icmp_error(now, error),
            IcmpMessage::EchoReply(_) | IcmpMessage::Other { .. } => Ingested::Handled,
        }
    }

    /// RFC 1122, section 3.2.2.6, and RFC 4443, section 4.2: the reply has the request's
    /// identifier, sequence number and data, and is sent from the requested address.
    fn on_echo_request(&mut self, now: Instant, ip: &IpInfo, echo: &IcmpEcho<'_>) -> Ingested {
        self.observe.counters.icmp_in_echos += 1;
        // The reply is as long as the request, and cannot be fragmented.
        let fits = ip.total_len <= self.config.mtu;
        let has_room = self.egress.strays.has_room_for_echo(self.config.ping_backlog);
        if !self.config.answer_ping || !fits || !has_room || !self.pings.allow(now) {
            return self.drop_packet(DropReason::EchoRefused);
        }
        let mut data = vec![0; echo.data.len()];
        echo.data.copy_to(&mut data);
        let (ident, seq) = (echo.ident, echo.seq);
        let message = IcmpEmit::EchoReply { ident, seq };
        let reply = Stray::Icmp { src: ip.dst, dst: ip.src, message, data: data.into() };
        self.push_stray(now, reply);
        Ingested::Handled
    }

    /// RFC 5927, section 4: an error is only accepted if it quotes a segment of an existing
    /// connection; the connection checks that the segment is outstanding.
    fn on_icmp_error(&mut self, now: Instant, error: &wire::IcmpError) -> Ingested {
        let quoted = &error.quoted;
        if quoted.protocol == PROTOCOL_UDP {
            return self.on_icmp_about_datagram(quoted, &error.kind);
        }
        let (Some(meaning), Some(tuple)) = (meaning(&error.kind), quoted_tuple(quoted)) else {
            return self.drop_packet(DropReason::IcmpUnrelated);
        };
        let Some(index) = self.lookup(&tuple) else {
            return match self.syn_cache.look_up(&tuple) {
                Some(place) => self.on_icmp_half_open(place, meaning, quoted.seq),
                None => self.drop_packet(DropReason::IcmpUnrelated),
            };
        };
        let id = self.slots.id(index);
        if let Some(conn) = self.slots.conn_mut(index) {
            conn.on_icmp(&mut self.observe.ctx(now, id, &self.config), meaning, quoted.seq);
        }
        self.touch(now, index);
        Ingested::Conn(id)
    }

    /// An error about a half-open connection changes nothing: the peer may answer all the same, and
    /// if it does not, the entry ends by itself.
    fn on_icmp_half_open(&mut self, place: u32, error: IcmpError, quoted: SeqNum) -> Ingested {
        let outstanding = self.syn_cache.get(place).is_some_and(|entry| entry.syns.is_outstanding(quoted));
        let counters = &mut self.observe.counters;
        match error {
            _ if !outstanding => counters.out_of_window_icmps += 1,
            // A SYN-ACK fits every link.
            IcmpError::TooBig(_) => counters.tcp_mtu_refused += 1,
            IcmpError::Unreachable | IcmpError::Refused => {}
        }
        Ingested::Handled
    }
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
