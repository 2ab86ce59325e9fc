//! TCP ports that are reserved in the kernel, so that no program of this host gets one of them
//! meanwhile.
//!
//! A socket that is bound and does nothing else keeps its port: nobody can bind it, and the kernel
//! gives it to no connection.

use super::config::FIRST_FREE;
use crate::error::{Error, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::ops::RangeInclusive;

/// Ports of some addresses; they are free again when this is dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    ranges: Vec<RangeInclusive<u16>>,
    _sockets: Vec<OwnedFd>,
    /// Those that the device has found by itself.
    found: Option<RangeInclusive<u16>>,
}

impl Reserved {
    /// Reserves the ports of `ranges`, and `free` others from `seed` on, for `addresses` on the
    /// interface with index `interface`.
    ///
    /// # Errors
    /// [`Error::PortInUse`] with the first that is taken; [`Error::NoFreePorts`].
    pub(super) fn new(
        addresses: &[IpAddr],
        interface: u32,
        ranges: &[RangeInclusive<u16>],
        free: u16,
        seed: u16,
    ) -> Result<Self> {
        let mut sockets = Vec::new();
        for port in ranges.iter().cloned().flatten() {
            sockets.extend(reserve(addresses, interface, port)?);
        }
        let mut ranges = ranges.to_vec();
        let found = if free > 0 { Some(find(addresses, interface, free, seed, &mut sockets)?) } else { None };
        ranges.extend(found.clone());
        Ok(Self { ranges, _sockets: sockets, found })
    }

    /// All of them.
    pub(super) fn ranges(&self) -> &[RangeInclusive<u16>] {
        &self.ranges
    }

    /// Those for connections of the stack's own: found ones, or else the largest range.
    pub(super) fn ephemeral(&self) -> Option<RangeInclusive<u16>> {
        self.found.clone().or_else(|| self.ranges.iter().max_by_key(|range| range.len()).cloned())
    }
}

/// The first `count` ports in a row that are free, from a place that `seed` chooses.
fn find(
    addresses: &[IpAddr],
    interface: u32,
    count: u16,
    seed: u16,
    sockets: &mut Vec<OwnedFd>,
) -> Result<RangeInclusive<u16>> {
    const END: u32 = 1 << 16;
    let first = u32::from(FIRST_FREE);
    let mut at = first + u32::from(seed) % (END - first);
    let mut seen = 0;
    while seen < END - first {
        if at + u32::from(count) > END {
            seen += END - at;
            at = first;
            continue;
        }
        // Both ends are ports: the block ends below `END`.
        let block = at as u16..=(at + u32::from(count) - 1) as u16;
        let before = sockets.len();
        let mut taken = None;
        for port in block.clone() {
            match reserve(addresses, interface, port) {
                Ok(reserved) => sockets.extend(reserved),
                Err(Error::PortInUse { .. }) => {
                    taken = Some(u32::from(port));
                    break;
                }
                Err(other) => return Err(other),
            }
        }
        let Some(taken) = taken else { return Ok(block) };
        sockets.truncate(before);
        seen += taken + 1 - at;
        at = taken + 1;
    }
    Err(Error::NoFreePorts { count, first: FIRST_FREE })
}

/// A socket for each of the addresses that has this port.
fn reserve(addresses: &[IpAddr], interface: u32, port: u16) -> Result<Vec<OwnedFd>> {
    addresses.iter().map(|address| reserve_one(*address, interface, port)).collect()
}

fn reserve_one(address: IpAddr, interface: u32, port: u16) -> Result<OwnedFd> {
    let to = on_interface(address, interface, port);
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let bound = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).and_then(|socket| {
        if to.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        bind(&socket, &to)?;
        Ok(socket)
    });
    bound.map_err(|errno| match errno {
        Errno::ADDRINUSE => Error::PortInUse { port: SocketAddr::new(address, port) },
        Errno::ACCESS | Errno::PERM => {
            let why =
                format!("port {port} needs CAP_NET_BIND_SERVICE (run as root), or choose one from 1024");
            Error::BadConfig { what: "ports", why }
        }
        other => Error::system("reserve a port", other),
    })
}

/// The address with its port; a link-local one on this interface.
pub(super) fn on_interface(address: IpAddr, interface: u32, port: u16) -> SocketAddr {
    match address {
        IpAddr::V6(local) if local.is_unicast_link_local() => {
            SocketAddrV6::new(local, port, 0, interface).into()
        }
        other => SocketAddr::new(other, port),
    }
}
