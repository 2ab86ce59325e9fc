//! UDP (RFC 768): sockets of applications, and flows to any address and port.
//!
//! ```text
//!   in   ingest ─► flow of the four-tuple ─► socket of the port ─► new flow, if somebody takes them ─► ICMP error
//!                         └───────────┬──────────────┘
//!                               bounded queue ─► udp_recv
//!   out  udp_send ─► egress scheduler, as a packet without a connection ─► device
//! ```
//!
//! Datagrams are not fragmented: one that is longer than the device or the path carries is refused.

use super::ingest::is_unicast;
use super::stray::Stray;
use super::udp_flows::Timeouts;
use super::udp_sockets::{UdpEvent, UdpReceived, UdpStats, cost};
use super::{Endpoint, Ingested};
use crate::config::Target;
use crate::drop_reason::DropReason;
use crate::error::UdpError;
use crate::four_tuple::FourTuple;
use crate::id::UdpId;
use crate::time::Instant;
use crate::wire::{
    HeaderBuf, IcmpErrorKind, IpInfo, IpVersion, MIN_MTU, MIN_MTU_V6, Quoted, RxPacket, TxChecksumMode,
    UdpDatagram, UdpHeader, Unreachable, emit_udp,
};
use alloc::vec;
use core::net::SocketAddr;

/// What a flow takes, with its share of the tables.
const FLOW: usize = 320;

/// "Nobody listens at this port", of each version.
pub(super) const fn port_unreachable(version: IpVersion) -> IcmpErrorKind {
    let code = match version {
        IpVersion::V4 => 3,
        IpVersion::V6 => 4,
    };
    IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Port, code }
}

impl Endpoint {
    /// Opens a UDP socket at `local`. An unspecified address means all addresses of its family;
    /// port 0 picks a free [ephemeral port](crate::EndpointConfig::ephemeral_ports). O(log n) for n
    /// sockets, and O(n) for an unspecified address.
    ///
    /// # Errors
    /// [`UdpError::NotLocal`], [`UdpError::InUse`], [`UdpError::NoFreePort`].
    pub fn udp_bind(&mut self, now: Instant, local: SocketAddr) -> Result<UdpId, UdpError> {
        self.now = self.now.max(now);
        // Without scope and flow label, which no packet shows.
        let mut local = SocketAddr::new(local.ip(), local.port());
        let own = is_unicast(local.ip()) && self.is_local(local.ip());
        if !local.ip().is_unspecified() && !own {
            return Err(UdpError::NotLocal);
        }
        if local.port() == 0 {
            let (udp, address) = (&self.udp, local.ip());
            let port = self.ports.select_random(|port| udp.is_free(SocketAddr::new(address, port)));
            local.set_port(port.ok_or(UdpError::NoFreePort)?);
        } else if !self.udp.is_free(local) {
            return Err(UdpError::InUse);
        }
        self.unsettled = true;
        Ok(self.udp.bind(local))
    }

    /// Connects a socket: it sends to `remote` unless told otherwise, receives from nobody else,
    /// and is told ICMP errors. A socket of any address gets the one that it sends from.
    ///
    /// # Errors
    /// [`UdpError::BadRemote`], [`UdpError::NotLocal`], [`UdpError::Closed`]. [`UdpError::InUse`]
    /// for a flow, which is connected.
    pub fn udp_connect(&mut self, now: Instant, id: UdpId, remote: SocketAddr) -> Result<(), UdpError> {
        self.now = self.now.max(now);
        let socket = self.udp.get(id).ok_or(UdpError::Closed)?;
        if socket.is_flow() {
            return Err(UdpError::InUse);
        }
        let remote = SocketAddr::new(remote.ip(), remote.port());
        let local = self.udp_source(socket.local, remote)?;
        self.udp.rebind(id, local);
        if let Some(socket) = self.udp.get_mut(id) {
            socket.connect(remote);
        }
        self.unsettled = true;
        Ok(())
    }

    /// Sends a datagram to `to`, or where the socket is connected to. It waits in the egress
    /// scheduler until the next [`transmit`](Self::transmit). O(1).
    ///
    /// # Errors
    /// What ICMP has reported, once. [`UdpError::NoRoom`]: a [`UdpEvent::Socket`] tells when there
    /// is some. [`UdpError::TooLong`], [`UdpError::BadRemote`], [`UdpError::NotConnected`],
    /// [`UdpError::NotLocal`], [`UdpError::OutOfMemory`], [`UdpError::Ended`],
    /// [`UdpError::Closed`].
    pub fn udp_send(
        &mut self,
        now: Instant,
        id: UdpId,
        to: Option<SocketAddr>,
        data: &[u8],
    ) -> Result<(), UdpError> {
        self.send_datagram(now, id, to, None, data)
    }

    /// Sends a datagram to a flow's peer that comes from another address than the flow's own,
    /// `from`: the answer of somebody whom the peer has not sent to, as an address translation lets
    /// through. O(1).
    ///
    /// # Errors
    /// As [`udp_send`](Self::udp_send); [`UdpError::NotLocal`] if the endpoint does not answer for
    /// `from`, or it is of the other family; [`UdpError::NotConnected`] for a socket that is no
    /// flow.
    pub fn udp_send_from(
        &mut self,
        now: Instant,
        id: UdpId,
        from: SocketAddr,
        data: &[u8],
    ) -> Result<(), UdpError> {
        self.send_datagram(now, id, None, Some(from), data)
    }

    fn send_datagram(
        &mut self,
        now: Instant,
        id: UdpId,
        to: Option<SocketAddr>,
        from: Option<SocketAddr>,
        data: &[u8],
    ) -> Result<(), UdpError> {
        self.now = self.now.max(now);
        let socket = self.udp.get_mut(id).ok_or(UdpError::Closed)?;
        socket.heed_error()?;
        if socket.has_ended() {
            return Err(UdpError::Ended);
        }
        let dst = to.or(socket.remote).ok_or(UdpError::NotConnected)?;
        let dst = SocketAddr::new(dst.ip(), dst.port());
        let (local, path_mtu, is_flow) = (socket.local, socket.path_mtu, socket.is_flow());
        let src = match from {
            Some(_) if !is_flow => return Err(UdpError::NotConnected),
            Some(from) => self.flow_source_of(from, dst)?,
            // A flow answers for whatever address it is of.
            None if is_flow => flow_source(local, dst)?,
            None => self.udp_source(local, dst)?,
        };
        let header = UdpHeader { src, dst, ttl: self.config.default_ttl };
        let ip_len = header.len() + data.len();
        if ip_len > path_mtu.unwrap_or(u32::MAX).min(self.config.mtu) as usize {
            return Err(UdpError::TooLong);
        }
        let (cost, limit) = (cost(data.len()), self.config.udp_send_buffer as usize);
        let Some(socket) = self.udp.get_mut(id) else { return Err(UdpError::Closed) };
        if !socket.may_send(cost, limit) {
            self.observe.counters.udp_sndbuf_errors += 1;
            return Err(UdpError::NoRoom);
        }
        if !self.observe.budget.take(cost) {
            self.observe.counters.udp_mem_errors += 1;
            return Err(UdpError::OutOfMemory);
        }
        self.unsettled = true;
        socket.sending(cost, ip_len as u32, data.len());
        if is_flow {
            let (timeouts, most) = (self.udp_timeouts(), self.config.max_udp_flows as usize);
            self.udp.refresh(now, id, true, timeouts, most);
        }
        if !self.push_stray(now, Stray::Datagram { socket: id, header, data: data.into() }) {
            // The scheduler had no room: it is lost, like one that a router drops.
            self.udp.departed(id, cost, limit);
        }
        Ok(())
    }

    /// Takes the next datagram of a socket; `None` if there is none, and a [`UdpEvent::Socket`]
    /// tells of the next. O(1).
    ///
    /// # Errors
    /// What ICMP has reported, once; [`UdpError::Ended`] after the last datagram of a flow that has
    /// ended; [`UdpError::Closed`].
    pub fn udp_recv(&mut self, id: UdpId) -> Result<Option<UdpReceived>, UdpError> {
        let received = self.udp.receive(id)?;
        if received.is_some() {
            self.unsettled = true;
            self.observe.counters.udp_in_datagrams += 1;
        }
        Ok(received)
    }

    /// The datagram that [`udp_recv`](Self::udp_recv) takes next.
    #[must_use]
    pub fn udp_peek(&self, id: UdpId) -> Option<&UdpReceived> {
        self.udp.get(id)?.peek()
    }

    /// True if [`udp_recv`](Self::udp_recv) has a datagram or an error.
    #[must_use]
    pub fn udp_is_readable(&self, id: UdpId) -> bool {
        self.udp.get(id).is_none_or(|socket| socket.is_readable())
    }

    /// True if a datagram with `len` bytes of data finds room. If not, a [`UdpEvent::Socket`] tells
    /// when there is some.
    pub fn udp_is_writable(&mut self, id: UdpId, len: usize) -> bool {
        let limit = self.config.udp_send_buffer as usize;
        self.udp.get_mut(id).is_none_or(|socket| socket.has_ended() || socket.may_send(cost(len), limit))
    }

    /// What ICMP has reported and the application has not been told; it has then.
    pub fn udp_take_error(&mut self, id: UdpId) -> Option<UdpError> {
        self.udp.get_mut(id)?.heed_error().err()
    }

    /// The addresses of a socket: its own, and its peer's if it is connected or a flow.
    #[must_use]
    pub fn udp_addresses(&self, id: UdpId) -> Option<(SocketAddr, Option<SocketAddr>)> {
        self.udp.get(id).map(|socket| (socket.local, socket.remote))
    }

    /// What has passed a socket or flow.
    #[must_use]
    pub fn udp_stats(&self, id: UdpId) -> Option<UdpStats> {
        self.udp.get(id).map(|socket| socket.stats)
    }

    /// Closes a socket, or ends a flow: the next datagram of its four-tuple begins another one.
    /// What waits for the device still leaves.
    pub fn udp_close(&mut self, now: Instant, id: UdpId) {
        self.now = self.now.max(now);
        self.unsettled = true;
        self.udp.close(id);
        self.count_flows();
    }

    /// Ends a flow, and tells its peer by ICMP that nobody listens, within the limits of such
    /// errors.
    pub fn udp_refuse(&mut self, now: Instant, id: UdpId) {
        self.udp_tell_refused(now, id);
        self.udp_close(now, id);
    }

    /// Tells a flow's peer by ICMP that nobody listens, within the limits of such errors. The flow
    /// goes on: an ICMP error ends no mapping of an address translation (RFC 4787, REQ-12).
    pub fn udp_tell_refused(&mut self, now: Instant, id: UdpId) {
        self.now = self.now.max(now);
        if let Some(socket) = self.udp.get(id).filter(|socket| socket.is_flow())
            && let Some(tuple) = socket.tuple()
        {
            // The peer recognises its datagram by its addresses and ports.
            let (src, dst) = (tuple.remote(), tuple.local());
            let mut quote = HeaderBuf::new();
            let header = UdpHeader { src, dst, ttl: self.config.default_ttl };
            if emit_udp(&header, [&[], &[]], TxChecksumMode::Complete, &mut quote).is_ok() {
                let version = if dst.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
                let data = quote.as_slice().into();
                self.unsettled = true;
                self.send_icmp_error(now, dst.ip(), src.ip(), port_unreachable(version), data);
            }
        }
    }

    /// With `on`, a socket is told of the ICMP errors about datagrams that it has sent without
    /// being connected (Linux: `IP_RECVERR`), by [`udp_next_report`](Self::udp_next_report). A few
    /// wait; those that find no room are lost. Default: off.
    ///
    /// # Errors
    /// [`UdpError::Closed`].
    pub fn udp_report_errors(&mut self, id: UdpId, on: bool) -> Result<(), UdpError> {
        self.udp.get_mut(id).map(|socket| socket.report_errors(on)).ok_or(UdpError::Closed)
    }

    /// The next ICMP error about a datagram, and where that went. Errors of a connected socket are
    /// returned by its operations.
    pub fn udp_next_report(&mut self, id: UdpId) -> Option<(SocketAddr, UdpError)> {
        self.udp.get_mut(id)?.next_report()
    }

    /// With `on`, a datagram that is for no socket begins a flow, for any address that the endpoint
    /// answers for: all datagrams of its four-tuple, and the answers. A flow ends when it has been
    /// idle ([`udp_flow_timeout`](crate::EndpointConfig::udp_flow_timeout)). Without, those that
    /// nobody has accepted end.
    ///
    /// # Errors
    /// [`UdpError::InUse`] if flows are taken already.
    pub fn udp_take_flows(&mut self, now: Instant, on: bool) -> Result<(), UdpError> {
        self.now = self.now.max(now);
        self.unsettled = true;
        self.udp.take_flows(on)?;
        self.count_flows();
        Ok(())
    }

    /// Accepts the next flow.
    pub fn udp_next_flow(&mut self) -> Option<UdpId> {
        self.udp.next_flow()
    }

    /// The next thing that has happened to sockets and flows. Drain it as
    /// [`poll_event`](Self::poll_event).
    pub fn poll_udp_event(&mut self) -> Option<UdpEvent> {
        self.udp.next_event()
    }

    /// Number of UDP sockets that are not flows.
    #[must_use]
    pub fn udp_sockets(&self) -> usize {
        self.udp.socket_count()
    }

    /// Number of UDP flows, those included that have ended and that the application still has.
    #[must_use]
    pub fn udp_flows(&self) -> usize {
        self.udp.flow_count()
    }

    /// A UDP datagram arrived.
    pub(super) fn on_udp(
        &mut self,
        now: Instant,
        ip: &IpInfo,
        datagram: &UdpDatagram<'_>,
        packet: &RxPacket<'_>,
    ) -> Ingested {
        if let Some(dropped) = self.check_addresses(ip) {
            return dropped;
        }
        let to = SocketAddr::new(ip.dst, datagram.dst_port);
        let from = SocketAddr::new(ip.src, datagram.src_port);
        let tuple = FourTuple::new(to, from);
        let known = if self.udp.is_empty() { None } else { self.udp.find(&tuple) };
        let id = match known {
            Some(id) => id,
            None if self.udp.takes_flows() => match self.begin_flow(now, tuple) {
                Ok(id) => id,
                Err(reason) => return self.drop_packet(reason),
            },
            None => return self.refuse(now, ip, packet, port_unreachable(ip.version), DropReason::UdpNoPort),
        };
        let cost = cost(datagram.payload.len());
        let limit = self.config.udp_recv_buffer as usize;
        let Some(socket) = self.udp.get_mut(id) else { return Ingested::Handled };
        let refused = if !socket.may_receive(cost, limit) {
            Some(DropReason::UdpQueueFull)
        } else if !self.observe.budget.take(cost) {
            Some(DropReason::UdpNoMemory)
        } else {
            None
        };
        if let Some(reason) = refused {
            socket.stats.dropped += 1;
            return self.drop_packet(reason);
        }
        let mut data = vec![0; datagram.payload.len()];
        datagram.payload.copy_to(&mut data);
        let (timeouts, most) = (self.udp_timeouts(), self.config.max_udp_flows as usize);
        self.udp.refresh(now, id, false, timeouts, most);
        self.udp.deliver(id, UdpReceived::new(from, to, data.into()));
        Ingested::Datagram(id)
    }

    /// A datagram that is for nobody begins a flow, if there is room.
    fn begin_flow(&mut self, now: Instant, tuple: FourTuple) -> Result<UdpId, DropReason> {
        let most = self.config.max_udp_flows as usize;
        let room = self.udp.make_room(most);
        self.observe.counters.udp_flows_evicted += u64::from(room.evicted);
        if !room.is_there {
            return Err(DropReason::UdpFlowsFull);
        }
        if !self.observe.budget.take(FLOW) {
            return Err(DropReason::UdpNoMemory);
        }
        let id = self.udp.begin_flow(now, tuple, self.udp_timeouts(), most);
        self.observe.counters.udp_flows_begun += 1;
        self.count_flows();
        Ok(id)
    }

    /// An ICMP error quotes a datagram of this host. As in Linux, a connected socket or a flow is
    /// told, and another one if it [wants to be](Self::udp_report_errors).
    pub(super) fn on_icmp_about_datagram(&mut self, quoted: &Quoted, kind: &IcmpErrorKind) -> Ingested {
        let local = SocketAddr::new(quoted.src, quoted.src_port);
        let tuple = FourTuple::new(local, SocketAddr::new(quoted.dst, quoted.dst_port));
        let Some(id) = self.udp.told_of_errors(&tuple) else {
            return self.drop_packet(DropReason::IcmpUnrelated);
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
                let narrower = self.udp.get_mut(id).is_some_and(|socket| socket.narrow(mtu.max(least)));
                narrower.then_some(UdpError::TooLong)
            }
            IcmpErrorKind::TimeExceeded { .. } | IcmpErrorKind::ParameterProblem { .. } => None,
        };
        if let Some(error) = error {
            self.udp.report(&tuple, error);
        }
        Ingested::Handled
    }

    /// Ends the flows that have been idle for too long.
    pub(super) fn expire_flows(&mut self, now: Instant) {
        while self.udp.expire_one(now) {
            self.unsettled = true;
            self.observe.counters.udp_flows_idle += 1;
        }
        self.count_flows();
    }

    fn count_flows(&mut self) {
        self.observe.counters.udp_curr_flows = self.udp.flow_count() as u64;
    }

    const fn udp_timeouts(&self) -> Timeouts {
        Timeouts { flow: self.config.udp_flow_timeout, dns: self.config.udp_dns_timeout }
    }

    /// Where a datagram to a flow's peer comes from that is not of the flow's own address.
    fn flow_source_of(&self, from: SocketAddr, peer: SocketAddr) -> Result<SocketAddr, UdpError> {
        let from = SocketAddr::new(from.ip(), from.port());
        let own = is_unicast(from.ip()) && self.is_local(from.ip());
        if !own || from.is_ipv4() != peer.is_ipv4() {
            return Err(UdpError::NotLocal);
        }
        flow_source(from, peer)
    }

    /// Where a datagram of a socket at `local` to `remote` comes from.
    fn udp_source(&self, local: SocketAddr, remote: SocketAddr) -> Result<SocketAddr, UdpError> {
        if remote.port() == 0 || !is_unicast(remote.ip()) || remote.is_ipv4() != local.is_ipv4() {
            return Err(UdpError::BadRemote);
        }
        let mut to = Target::new(remote);
        to.local_address = Some(local.ip()).filter(|address| !address.is_unspecified());
        let address = self.source_address(&to).map_err(|_| UdpError::NotLocal)?;
        Ok(SocketAddr::new(address, local.port()))
    }
}

/// Where a datagram of a flow at `local` comes from.
fn flow_source(local: SocketAddr, remote: SocketAddr) -> Result<SocketAddr, UdpError> {
    // The peer may have sent from port 0, and wants no answer then (RFC 768).
    if remote.port() == 0 { Err(UdpError::BadRemote) } else { Ok(local) }
}
