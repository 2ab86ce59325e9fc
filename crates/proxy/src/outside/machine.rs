//! Where this machine's own packets go: to itself, back into the proxy, or away.
//!
//! The kernel is asked for each destination, because addresses and routes change while the proxy
//! runs.

use crate::target::embedded;
use ackline_runtime::netlink::{Netlink, Route};
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// An interface of this machine whose packets come to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its index in the network namespace of the proxy.
    pub index: u32,
    /// Its name, for messages.
    pub name: String,
}

/// The routes of the network namespace in which the first question was asked.
#[derive(Debug)]
pub(crate) struct Machine {
    netlink: Mutex<Option<Netlink>>,
    interface: Option<Interface>,
}

impl Machine {
    pub(crate) const fn new(interface: Option<Interface>) -> Self {
        Self { netlink: Mutex::new(None), interface }
    }

    /// Packets for `address` stay on this machine, or those for an IPv4 address inside of it, to
    /// which a translator or tunnel on the way would lead. So they may if the kernel does not say.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        let meant = std::iter::once(address).chain(embedded(address).into_iter().map(IpAddr::V4));
        meant
            .map(|address| self.route_to(address))
            .any(|route| !matches!(route, Ok(Route::Interface(_) | Route::None)))
    }

    /// Fails if a socket of this process that sends to `address` sends into the proxy.
    pub(crate) fn check_leaves(&self, address: IpAddr) -> io::Result<()> {
        let Some(Interface { index, name }) = &self.interface else { return Ok(()) };
        if self.route_to(address)? != Route::Interface(*index) {
            return Ok(());
        }
        Err(io::Error::new(
            ErrorKind::NetworkDown,
            format!(
                "{address} is routed to {name}, by which it would come back to this proxy: route by the clients' address or \
                 interface (ip rule), or give the proxy a way of its own (--out-dev)"
            ),
        ))
    }

    fn route_to(&self, address: IpAddr) -> io::Result<Route> {
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = match netlink.take() {
            Some(open) => netlink.insert(open),
            None => netlink.insert(Netlink::open().map_err(io::Error::other)?),
        };
        socket.route_to(address).map_err(io::Error::other)
    }
}
