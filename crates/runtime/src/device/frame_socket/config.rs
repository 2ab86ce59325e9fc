//! How to open a frame socket.

use crate::device::ethernet::neighbours::{Attachment, NeighbourConfig};
use crate::device::ethernet::provision::{Provision, link_local};
use crate::error::{Error, Result};
use crate::mac::MacAddress;
use crate::platform::random;
use ipnet::IpNet;
use std::net::IpAddr;

/// How to open a [`FrameSocket`](super::FrameSocket): who the stack is on the Ethernet behind it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FrameSocketConfig {
    /// The stack's addresses, at least one. Destinations inside one of their prefixes are reached
    /// directly. Give the same addresses to the [stack](crate::stack::Builder::address).
    pub addresses: Vec<IpNet>,
    /// The next hop of everything else, at most one per IP version.
    pub gateways: Vec<IpAddr>,
    /// Ethernet address of the stack; `None`: a random one, locally administered (IEEE 802, section
    /// 8.4).
    pub mac: Option<MacAddress>,
    /// Largest IP packet that is sent, in bytes, 68 to 65,535; default 1500. Longer ones are
    /// received.
    pub mtu: u32,
    /// Neighbours with a fixed Ethernet address; they are never resolved.
    pub neighbours: Vec<(IpAddr, MacAddress)>,
    /// How the Ethernet addresses of other neighbours are found, and how the stack's own addresses
    /// are claimed.
    pub resolution: NeighbourConfig,
    /// How the stack configures the other hosts, as their router; `None`: it does not. It then has
    /// a link-local IPv6 address, too, if it has an IPv6 address.
    pub provision: Option<Provision>,
}

impl Default for FrameSocketConfig {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            gateways: Vec::new(),
            mac: None,
            mtu: 1_500,
            neighbours: Vec::new(),
            resolution: NeighbourConfig::default(),
            provision: None,
        }
    }
}

impl FrameSocketConfig {
    /// Adds an address of the stack, with the prefix of its network.
    #[must_use]
    pub fn address(mut self, address: IpNet) -> Self {
        self.addresses.push(address);
        self
    }

    /// Sets the next hop for destinations outside the stack's networks.
    #[must_use]
    pub fn gateway(mut self, gateway: IpAddr) -> Self {
        self.gateways.push(gateway);
        self
    }

    /// Sets the stack's Ethernet address.
    #[must_use]
    pub fn mac(mut self, mac: MacAddress) -> Self {
        self.mac = Some(mac);
        self
    }

    /// Limits the IP packets that are sent to `mtu` bytes.
    #[must_use]
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = mtu;
        self
    }

    /// Sets a neighbour's Ethernet address.
    #[must_use]
    pub fn neighbour(mut self, address: IpAddr, mac: MacAddress) -> Self {
        self.neighbours.push((address, mac));
        self
    }

    /// Sets the timers and limits of neighbour resolution.
    #[must_use]
    pub fn resolution(mut self, resolution: NeighbourConfig) -> Self {
        self.resolution = resolution;
        self
    }

    /// Lets the stack configure the other hosts, as their router.
    #[must_use]
    pub fn provision(mut self, provision: Provision) -> Self {
        self.provision = Some(provision);
        self
    }

    /// The host that the stack is.
    pub(super) fn attachment(&self) -> Result<Attachment> {
        if !(68..=65_535).contains(&self.mtu) {
            let why = format!("{} bytes are not possible: 68 to 65535", self.mtu);
            return Err(Error::BadConfig { what: "MTU", why });
        }
        let mac = match self.mac {
            Some(mac) => mac,
            None => random_station()?,
        };
        let mut attachment = Attachment {
            mac,
            addresses: self.addresses.clone(),
            gateways: self.gateways.clone(),
            neighbours: self.neighbours.clone(),
        };
        if let Some(provision) = &self.provision {
            if let Some(why) = provision.fault(&attachment) {
                return Err(Error::BadConfig { what: "configuration of other hosts", why });
            }
            let addresses = &mut attachment.addresses;
            let has_v6 = addresses.iter().any(|net| net.addr().is_ipv6());
            let own = IpAddr::V6(link_local(mac));
            if has_v6 && !addresses.iter().any(|net| net.addr() == own) {
                addresses.push(IpNet::new_assert(own, 64));
            }
        }
        Ok(attachment)
    }
}

fn random_station() -> Result<MacAddress> {
    let seed = random::seed().map_err(|source| Error::System { action: "get random numbers", source })?;
    let [_, b, c, d, e, f, ..] = seed;
    Ok(MacAddress([0x02, b, c, d, e, f]))
}
