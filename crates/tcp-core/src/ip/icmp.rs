//! ICMP: answers pings, and tells whether a message is the stack's, the program's, or an error for
//! whoever has sent what it quotes.

use super::Ip;
use crate::egress::{Egress, Stray};
use crate::events::DropReason;
use crate::share::{Cx, Ingested};
use crate::wire::{IcmpEcho, IcmpEmit, IcmpMessage, IpInfo, RxPacket};
use alloc::vec;

impl Ip {
    /// An ICMP message arrived. `None` if it is an error about a packet of TCP or UDP, for whoever
    /// has sent that.
    pub(crate) fn on_icmp(
        &mut self,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        ip: &IpInfo,
        message: &IcmpMessage<'_>,
        packet: &RxPacket<'_>,
    ) -> Option<Ingested> {
        cx.observe.counters.icmp_in_msgs += 1;
        if let Some(dropped) = cx.check_addresses(ip) {
            return Some(dropped);
        }
        if self.is_for_program(cx, ip, message) {
            return Some(self.give_to_program(cx, ip, packet));
        }
        match message {
            IcmpMessage::EchoRequest(echo) => Some(self.on_echo_request(egress, cx, ip, echo)),
            IcmpMessage::Error(_) => None,
            IcmpMessage::EchoReply(_) | IcmpMessage::Other { .. } => Some(Ingested::Handled),
        }
    }

    /// RFC 1122, section 3.2.2.6, and RFC 4443, section 4.2: the reply has the request's
    /// identifier, sequence number and data, and is sent from the requested address.
    fn on_echo_request(
        &mut self,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        ip: &IpInfo,
        echo: &IcmpEcho<'_>,
    ) -> Ingested {
        cx.observe.counters.icmp_in_echos += 1;
        // The reply is as long as the request, and cannot be fragmented.
        let fits = ip.total_len <= cx.config.mtu;
        let has_room = egress.strays.has_room_for_echo(cx.config.ping_backlog);
        if !cx.config.answer_ping || !fits || !has_room || !self.pings.allow(cx.now) {
            return cx.drop_packet(DropReason::EchoRefused);
        }
        let mut data = vec![0; echo.data.len()];
        echo.data.copy_to(&mut data);
        let (ident, seq) = (echo.ident, echo.seq);
        let message = IcmpEmit::EchoReply { ident, seq };
        let reply = Stray::Icmp { src: ip.dst, dst: ip.src, message, data: data.into() };
        egress.push_stray(cx, reply);
        Ingested::Handled
    }
}
