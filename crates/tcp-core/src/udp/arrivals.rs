//! Received datagrams, and ICMP errors about those that were sent.

use super::sockets::{Udp, UdpReceived, cost};
use super::timeouts;
use crate::egress::Egress;
use crate::error::UdpError;
use crate::events::DropReason;
use crate::four_tuple::FourTuple;
use crate::id::UdpId;
use crate::ip::{Ip, port_unreachable};
use crate::share::{Cx, Ingested};
use crate::wire::{IcmpErrorKind, IpInfo, MIN_MTU, MIN_MTU_V6, Quoted, RxPacket, UdpDatagram, Unreachable};
use alloc::vec;
use core::net::SocketAddr;

/// What a flow takes, with its share of the tables.
const FLOW: usize = 320;

impl Udp {
    /// A UDP datagram arrived.
    pub(crate) fn on_datagram(
        &mut self,
        below: &mut Ip,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        ip: &IpInfo,
        datagram: &UdpDatagram<'_>,
        packet: &RxPacket<'_>,
    ) -> Ingested {
        if let Some(dropped) = cx.check_addresses(ip) {
            return dropped;
        }
        let to = SocketAddr::new(ip.dst, datagram.dst_port);
        let from = SocketAddr::new(ip.src, datagram.src_port);
        let tuple = FourTuple::new(to, from);
        let known = if self.is_empty() { None } else { self.find(&tuple) };
        let id = match known {
            Some(id) => id,
            None if self.takes_flows() => match self.add_flow(cx, tuple) {
                Ok(id) => id,
                Err(reason) => return cx.drop_packet(reason),
            },
            None => {
                return below.refuse(
                    egress,
                    cx,
                    ip,
                    packet,
                    port_unreachable(ip.version),
                    DropReason::UdpNoPort,
                );
            }
        };
        let cost = cost(datagram.payload.len());
        let limit = cx.config.udp_recv_buffer as usize;
        let Some(socket) = self.get_mut(id) else { return Ingested::Handled };
        let refused = if !socket.may_receive(cost, limit) {
            Some(DropReason::UdpQueueFull)
        } else if !cx.observe.budget.take(cost) {
            Some(DropReason::UdpNoMemory)
        } else {
            None
        };
        if let Some(reason) = refused {
            socket.stats.dropped += 1;
            return cx.drop_packet(reason);
        }
        let mut data = vec![0; datagram.payload.len()];
        datagram.payload.copy_to(&mut data);
        let (timeouts, most) = (timeouts(cx), cx.config.max_udp_flows as usize);
        self.refresh(cx.now, id, false, timeouts, most);
        self.deliver(id, UdpReceived::new(from, to, data.into()));
        Ingested::Datagram(id)
    }

    /// A datagram that is for nobody begins a flow, if there is room.
    fn add_flow(&mut self, cx: &mut Cx<'_>, tuple: FourTuple) -> Result<UdpId, DropReason> {
        let most = cx.config.max_udp_flows as usize;
        let room = self.make_room(most);
        cx.observe.counters.udp_flows_evicted += u64::from(room.evicted);
        if !room.is_there {
            return Err(DropReason::UdpFlowsFull);
        }
        if !cx.observe.budget.take(FLOW) {
            return Err(DropReason::UdpNoMemory);
        }
        let id = self.begin_flow(cx.now, tuple, timeouts(cx), most);
        cx.observe.counters.udp_flows_begun += 1;
        self.count_flows(cx);
        Ok(id)
    }

    /// An ICMP error quotes a datagram of this host. As in Linux, a connected socket or a flow is
    /// told, and another one if it [wants to be](super::Datagrams::report_errors).
    pub(crate) fn on_icmp_error(
        &mut self,
        cx: &mut Cx<'_>,
        quoted: &Quoted,
        kind: &IcmpErrorKind,
    ) -> Ingested {
        let local = SocketAddr::new(quoted.src, quoted.src_port);
        let tuple = FourTuple::new(local, SocketAddr::new(quoted.dst, quoted.dst_port));
        let Some(id) = self.told_of_errors(&tuple) else {
            return cx.drop_packet(DropReason::IcmpUnrelated);
        };
        let error = match *kind {
            IcmpErrorKind::DestinationUnreachable { reason, .. } => match reason {
                Unreachable::Port | Unreachable::Protocol => Some(UdpError::Refused),
                Unreachable::Prohibited => Some(UdpError::Unreachable),
                // RFC 1122, section 4.1.3.3, lets these pass: routes come back.
                Unreachable::Network | Unreachable::Host | Unreachable::Other => None,
            },
            IcmpErrorKind::PacketTooBig { mtu } => {
                let least = if quoted.dst.is_ipv4() { MIN_MTU } else { MIN_MTU_V6 };
                let narrower = self.get_mut(id).is_some_and(|socket| socket.narrow(mtu.max(least)));
                narrower.then_some(UdpError::TooLong)
            }
            IcmpErrorKind::TimeExceeded { .. } | IcmpErrorKind::ParameterProblem { .. } => None,
        };
        if let Some(error) = error {
            self.report(&tuple, error);
        }
        Ingested::Handled
    }

    /// Ends the flows that have been idle for too long.
    pub(crate) fn expire_flows(&mut self, cx: &mut Cx<'_>) {
        while self.expire_one(cx.now) {
            cx.observe.counters.udp_flows_idle += 1;
        }
        self.count_flows(cx);
    }
}
