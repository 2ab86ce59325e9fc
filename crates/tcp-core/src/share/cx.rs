//! The context of one call of an endpoint.

use super::limits::Limits;
use crate::config::{EndpointConfig, Target};
use crate::counters::Counters;
use crate::ctx::{Ctx, Observe};
use crate::error::ConnectError;
use crate::events::DropReason;
use crate::id::{ConnId, UdpId};
use crate::memory::budget::Budget;
use crate::time::Instant;
use crate::wire::{Ecn, IpInfo, MIN_MTU_V6};
use core::net::{IpAddr, Ipv4Addr};

/// What [`Endpoint::ingest`](crate::Endpoint::ingest) did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ingested {
    /// It belonged to a connection.
    Conn(ConnId),
    /// A SYN for a listener, which a SYN-ACK answers.
    HalfOpen,
    /// A SYN for a listener that [holds](crate::AcceptConfig::hold_syns) them, which waits for the
    /// application's answer.
    HeldSyn,
    /// It completed a handshake, or is a SYN with a valid fast open cookie: a listener has a new
    /// connection.
    Accepted(ConnId),
    /// It waits in a UDP socket.
    Datagram(UdpId),
    /// It waits for a program that [takes](crate::endpoint::RawPackets::take) what is neither TCP
    /// nor UDP.
    Packet,
    /// A fragment: it waits for the rest of its packet, or repeats one that does.
    Fragment,
    /// It was handled without a connection (ping, RST for an unknown port, ICMP error).
    Handled,
    /// It was dropped.
    Dropped(DropReason),
}

/// What every part of an endpoint works with: the settings, the limits, and where to
/// count, trace and charge.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: EndpointConfig,
    pub(crate) observe: Observe,
    pub(crate) limits: Limits,
    /// The latest instant given by the driver.
    latest: Instant,
}

/// The context of one call, made when it enters the endpoint.
#[derive(Debug)]
pub(crate) struct Cx<'a> {
    /// The instant of the call.
    pub(crate) now: Instant,
    pub(crate) config: &'a EndpointConfig,
    pub(crate) observe: &'a mut Observe,
    /// How many of each kind of record there may be.
    pub(crate) limits: &'a mut Limits,
}

impl Context {
    /// Nothing counted, nothing held, and no tracer.
    pub(crate) fn new(config: EndpointConfig) -> Self {
        let EndpointConfig { max_memory, memory_low, memory_pressure, .. } = config;
        let budget = Budget::new(max_memory, memory_low, memory_pressure);
        let observe = Observe { counters: Counters::default(), tracer: None, budget, backlogged: false };
        Self { limits: Limits::own(&config), config, observe, latest: Instant::ZERO }
    }

    /// The context of a call at `now`.
    #[inline]
    pub(crate) fn at(&mut self, now: Instant) -> Cx<'_> {
        self.latest = self.latest.max(now);
        Cx { now, config: &self.config, observe: &mut self.observe, limits: &mut self.limits }
    }

    /// The context of a call that brings no instant: the latest one counts.
    #[inline]
    pub(crate) fn at_latest(&mut self) -> Cx<'_> {
        Cx { now: self.latest, config: &self.config, observe: &mut self.observe, limits: &mut self.limits }
    }

    /// The latest instant given by the driver.
    pub(crate) const fn latest(&self) -> Instant {
        self.latest
    }
}

impl Cx<'_> {
    /// The context of an event of the connection `id`.
    #[inline]
    pub(crate) fn conn(&mut self, id: ConnId) -> Ctx<'_> {
        Ctx { now: self.now, id, host: self.config, observe: self.observe }
    }

    /// Drops a packet.
    pub(crate) fn drop_packet(&mut self, reason: DropReason) -> Ingested {
        reason.count(&mut self.observe.counters);
        Ingested::Dropped(reason)
    }

    /// Counts packets by ECN codepoint.
    pub(crate) fn count_codepoint(&mut self, ecn: Ecn, packets: u32) {
        let packets = u64::from(packets);
        let counters = &mut self.observe.counters;
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect1 => counters.ip_in_ect1_pkts += packets,
            Ecn::Ect0 => counters.ip_in_ect0_pkts += packets,
            Ecn::Ce => counters.ip_in_ce_pkts += packets,
        }
    }

    /// Drops packets for other hosts, and those whose source cannot be answered (RFC 1122, section
    /// 3.2.1.3, and RFC 9293, section 3.9.2.3: neither address may be broadcast or multicast).
    pub(crate) fn check_addresses(&mut self, ip: &IpInfo) -> Option<Ingested> {
        if is_unicast(ip.src) && is_unicast(ip.dst) && self.is_local(ip.dst) {
            return None;
        }
        Some(self.drop_packet(DropReason::NotLocal))
    }

    /// True if the address is one of this endpoint's.
    pub(crate) fn is_local(&self, address: IpAddr) -> bool {
        // RFC 8200, section 5: a link with an MTU below 1,280 octets carries no IPv6.
        let carried = address.is_ipv4() || self.config.mtu >= MIN_MTU_V6;
        carried && (self.config.any_address || self.config.addresses.contains(&address))
    }

    /// The local address of a connection, or of a datagram: the requested one, or the first of the
    /// peer's family.
    pub(crate) fn source_address(&self, to: &Target) -> Result<IpAddr, ConnectError> {
        let fits = |address: &IpAddr| address.is_ipv4() == to.remote.is_ipv4() && is_unicast(*address);
        match to.local_address {
            Some(address) if self.is_local(address) => Some(address).filter(fits),
            Some(_) => None,
            None => {
                self.config.addresses.iter().copied().find(|address| fits(address) && self.is_local(*address))
            }
        }
        .ok_or(ConnectError::NoLocalAddress)
    }
}

/// True if the address can belong to a single host.
pub(crate) const fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_unspecified() && !v4.is_multicast() && !matches!(v4, Ipv4Addr::BROADCAST),
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_multicast(),
    }
}
