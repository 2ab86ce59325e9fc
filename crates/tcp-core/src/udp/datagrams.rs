//! What an application does with sockets and flows.

use super::sockets::{Udp, UdpEvent, UdpReceived, UdpStats, cost};
use super::timeouts;
use crate::config::Target;
use crate::egress::{Egress, Stray};
use crate::error::UdpError;
use crate::id::UdpId;
use crate::ip::{Ip, port_unreachable};
use crate::share::{Context, Cx, is_unicast};
use crate::table::PortSelector;
use crate::time::Instant;
use crate::wire::{HeaderBuf, IpVersion, TxChecksumMode, UdpHeader, emit_udp};
use core::net::SocketAddr;

/// The UDP of an endpoint, for its application: [`Endpoint::udp`](crate::Endpoint::udp).
#[derive(Debug)]
pub struct Datagrams<'a> {
    pub(crate) udp: &'a mut Udp,
    pub(crate) ip: &'a mut Ip,
    pub(crate) egress: &'a mut Egress,
    pub(crate) ports: &'a mut PortSelector,
    pub(crate) context: &'a mut Context,
}

impl Datagrams<'_> {
    /// Opens a UDP socket at `local`. An unspecified address means all addresses of its family;
    /// port 0 picks a free [ephemeral port](crate::EndpointConfig::ephemeral_ports). O(log n) for n
    /// sockets, and O(n) for an unspecified address.
    ///
    /// # Errors
    /// [`UdpError::NotLocal`], [`UdpError::InUse`], [`UdpError::NoFreePort`].
    pub fn bind(&mut self, now: Instant, local: SocketAddr) -> Result<UdpId, UdpError> {
        let cx = &mut self.context.at(now);
        // Without scope and flow label, which no packet shows.
        let mut local = SocketAddr::new(local.ip(), local.port());
        let own = is_unicast(local.ip()) && cx.is_local(local.ip());
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
        Ok(self.udp.bind(local))
    }

    /// Connects a socket: it sends to `remote` unless told otherwise, receives from nobody else,
    /// and is told ICMP errors. A socket of any address gets the one that it sends from.
    ///
    /// # Errors
    /// [`UdpError::BadRemote`], [`UdpError::NotLocal`], [`UdpError::Closed`]. [`UdpError::InUse`]
    /// for a flow, which is connected.
    pub fn connect(&mut self, now: Instant, id: UdpId, remote: SocketAddr) -> Result<(), UdpError> {
        let cx = &mut self.context.at(now);
        let socket = self.udp.get(id).ok_or(UdpError::Closed)?;
        if socket.is_flow() {
            return Err(UdpError::InUse);
        }
        let remote = SocketAddr::new(remote.ip(), remote.port());
        let local = source(cx, socket.local, remote)?;
        self.udp.rebind(id, local);
        if let Some(socket) = self.udp.get_mut(id) {
            socket.connect(remote);
        }
        Ok(())
    }

    /// Sends a datagram to `to`, or where the socket is connected to. It waits in the egress
    /// scheduler until the next [`transmit`](crate::Endpoint::transmit). O(1).
    ///
    /// # Errors
    /// What ICMP has reported, once. [`UdpError::NoRoom`]: a [`UdpEvent::Socket`] tells when there
    /// is some. [`UdpError::TooLong`], [`UdpError::BadRemote`], [`UdpError::NotConnected`],
    /// [`UdpError::NotLocal`], [`UdpError::OutOfMemory`], [`UdpError::Ended`],
    /// [`UdpError::Closed`].
    pub fn send(
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
    /// As [`send`](Self::send); [`UdpError::NotLocal`] if the endpoint does not answer for
    /// `from`, or it is of the other family; [`UdpError::NotConnected`] for a socket that is no
    /// flow.
    pub fn send_from(
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
        let cx = &mut self.context.at(now);
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
            Some(from) => flow_source_of(cx, from, dst)?,
            // A flow answers for whatever address it is of.
            None if is_flow => flow_source(local, dst)?,
            None => source(cx, local, dst)?,
        };
        let header = UdpHeader { src, dst, ttl: cx.config.default_ttl };
        let ip_len = header.len() + data.len();
        if ip_len > path_mtu.unwrap_or(u32::MAX).min(cx.config.mtu) as usize {
            return Err(UdpError::TooLong);
        }
        let (cost, limit) = (cost(data.len()), cx.config.udp_send_buffer as usize);
        let Some(socket) = self.udp.get_mut(id) else { return Err(UdpError::Closed) };
        if !socket.may_send(cost, limit) {
            cx.observe.counters.udp_sndbuf_errors += 1;
            return Err(UdpError::NoRoom);
        }
        if !cx.observe.budget.take(cost) {
            cx.observe.counters.udp_mem_errors += 1;
            return Err(UdpError::OutOfMemory);
        }
        socket.sending(cost, ip_len as u32, data.len());
        if is_flow {
            let (timeouts, most) = (timeouts(cx), cx.config.max_udp_flows as usize);
            self.udp.refresh(now, id, true, timeouts, most);
        }
        if !self.egress.push_stray(cx, Stray::Datagram { socket: id, header, data: data.into() }) {
            // The scheduler had no room: it is lost, like one that a router drops.
            self.udp.departed(id, data.len(), limit);
        }
        Ok(())
    }

    /// Takes the next datagram of a socket; `None` if there is none, and a [`UdpEvent::Socket`]
    /// tells of the next. O(1).
    ///
    /// # Errors
    /// What ICMP has reported, once; [`UdpError::Ended`] after the last datagram of a flow that has
    /// ended; [`UdpError::Closed`].
    pub fn recv(&mut self, id: UdpId) -> Result<Option<UdpReceived>, UdpError> {
        let received = self.udp.receive(id)?;
        if received.is_some() {
            self.context.at_latest().observe.counters.udp_in_datagrams += 1;
        }
        Ok(received)
    }

    /// The datagram that [`recv`](Self::recv) takes next.
    #[must_use]
    pub fn peek(&self, id: UdpId) -> Option<&UdpReceived> {
        self.udp.get(id)?.peek()
    }

    /// True if [`recv`](Self::recv) has a datagram or an error.
    #[must_use]
    pub fn is_readable(&self, id: UdpId) -> bool {
        self.udp.get(id).is_none_or(|socket| socket.is_readable())
    }

    /// True if a datagram with `len` bytes of data finds room. If not, a [`UdpEvent::Socket`] tells
    /// when there is some.
    pub fn is_writable(&mut self, id: UdpId, len: usize) -> bool {
        let limit = self.context.config.udp_send_buffer as usize;
        self.udp.get_mut(id).is_none_or(|socket| socket.has_ended() || socket.may_send(cost(len), limit))
    }

    /// What ICMP has reported and the application has not been told; it has then.
    pub fn take_error(&mut self, id: UdpId) -> Option<UdpError> {
        self.udp.get_mut(id)?.heed_error().err()
    }

    /// The addresses of a socket: its own, and its peer's if it is connected or a flow.
    #[must_use]
    pub fn addresses(&self, id: UdpId) -> Option<(SocketAddr, Option<SocketAddr>)> {
        self.udp.get(id).map(|socket| (socket.local, socket.remote))
    }

    /// What has passed a socket or flow.
    #[must_use]
    pub fn stats(&self, id: UdpId) -> Option<UdpStats> {
        self.udp.get(id).map(|socket| socket.stats)
    }

    /// Closes a socket, or ends a flow: the next datagram of its four-tuple begins another one.
    /// What waits for the device still leaves.
    pub fn close(&mut self, now: Instant, id: UdpId) {
        let cx = &mut self.context.at(now);
        self.udp.close(id);
        self.udp.count_flows(cx);
    }

    /// Ends a flow, and tells its peer by ICMP that nobody listens, within the limits of such
    /// errors.
    pub fn refuse(&mut self, now: Instant, id: UdpId) {
        self.tell_refused(now, id);
        self.close(now, id);
    }

    /// Tells a flow's peer by ICMP that nobody listens, within the limits of such errors. The flow
    /// goes on: an ICMP error ends no mapping of an address translation (RFC 4787, REQ-12).
    pub fn tell_refused(&mut self, now: Instant, id: UdpId) {
        let cx = &mut self.context.at(now);
        if let Some(socket) = self.udp.get(id).filter(|socket| socket.is_flow())
            && let Some(tuple) = socket.tuple()
        {
            // The peer recognises its datagram by its addresses and ports.
            let (src, dst) = (tuple.remote(), tuple.local());
            let mut quote = HeaderBuf::new();
            let header = UdpHeader { src, dst, ttl: cx.config.default_ttl };
            if emit_udp(&header, [&[], &[]], TxChecksumMode::Complete, &mut quote).is_ok() {
                let version = if dst.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
                let data = quote.as_slice().into();
                self.ip.send_icmp_error(self.egress, cx, dst.ip(), src.ip(), port_unreachable(version), data);
            }
        }
    }

    /// With `on`, a socket is told of the ICMP errors about datagrams that it has sent without
    /// being connected (Linux: `IP_RECVERR`), by [`next_report`](Self::next_report). A few
    /// wait; those that find no room are lost. Default: off.
    ///
    /// # Errors
    /// [`UdpError::Closed`].
    pub fn report_errors(&mut self, id: UdpId, on: bool) -> Result<(), UdpError> {
        self.udp.get_mut(id).map(|socket| socket.report_errors(on)).ok_or(UdpError::Closed)
    }

    /// The next ICMP error about a datagram, and where that went. Errors of a connected socket are
    /// returned by its operations.
    pub fn next_report(&mut self, id: UdpId) -> Option<(SocketAddr, UdpError)> {
        self.udp.get_mut(id)?.next_report()
    }

    /// With `on`, a datagram that is for no socket begins a flow, for any address that the endpoint
    /// answers for: all datagrams of its four-tuple, and the answers. A flow ends when it has been
    /// idle ([`udp_flow_timeout`](crate::EndpointConfig::udp_flow_timeout)). Without, those that
    /// nobody has accepted end.
    ///
    /// # Errors
    /// [`UdpError::InUse`] if flows are taken already.
    pub fn take_flows(&mut self, now: Instant, on: bool) -> Result<(), UdpError> {
        let cx = &mut self.context.at(now);
        self.udp.take_flows(on)?;
        self.udp.count_flows(cx);
        Ok(())
    }

    /// Accepts the next flow.
    pub fn next_flow(&mut self) -> Option<UdpId> {
        self.udp.next_flow()
    }

    /// The next thing that has happened to sockets and flows. Drain it as
    /// [`poll_event`](crate::Endpoint::poll_event).
    pub fn poll_event(&mut self) -> Option<UdpEvent> {
        self.udp.next_event()
    }
}

/// Where a datagram of a socket at `local` to `remote` comes from.
fn source(cx: &Cx<'_>, local: SocketAddr, remote: SocketAddr) -> Result<SocketAddr, UdpError> {
    if remote.port() == 0 || !is_unicast(remote.ip()) || remote.is_ipv4() != local.is_ipv4() {
        return Err(UdpError::BadRemote);
    }
    let mut to = Target::new(remote);
    to.local_address = Some(local.ip()).filter(|address| !address.is_unspecified());
    let address = cx.source_address(&to).map_err(|_| UdpError::NotLocal)?;
    Ok(SocketAddr::new(address, local.port()))
}

/// Where a datagram to a flow's peer comes from that is not of the flow's own address.
fn flow_source_of(cx: &Cx<'_>, from: SocketAddr, peer: SocketAddr) -> Result<SocketAddr, UdpError> {
    let from = SocketAddr::new(from.ip(), from.port());
    let own = is_unicast(from.ip()) && cx.is_local(from.ip());
    if !own || from.is_ipv4() != peer.is_ipv4() {
        return Err(UdpError::NotLocal);
    }
    flow_source(from, peer)
}

/// Where a datagram of a flow at `local` comes from.
fn flow_source(local: SocketAddr, remote: SocketAddr) -> Result<SocketAddr, UdpError> {
    // The peer may have sent from port 0, and wants no answer then (RFC 768).
    if remote.port() == 0 { Err(UdpError::BadRemote) } else { Ok(local) }
}
