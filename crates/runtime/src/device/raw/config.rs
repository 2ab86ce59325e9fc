//! How to open a raw device.

use crate::device::interface::frames;
use crate::error::{Error, Result};
use crate::sys::packet::MAX_BATCH;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Most ranges of ports.
const MAX_RANGES: usize = 32;
/// The first free port that a device takes by itself: behind those that Linux gives to connections
/// (`ip_local_port_range`).
pub(super) const FIRST_FREE: u16 = 61_000;
/// Most free ports that a device takes by itself.
const MOST_FREE: u16 = u16::MAX - FIRST_FREE + 1;

/// How to open a [`Raw`](super::Raw) device: which interface, and which of the host's addresses and
/// TCP ports are the stack's.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawConfig {
    /// Name of an Ethernet interface that exists, is up, and has an address.
    pub interface: String,
    /// The interface's addresses that the stack shares, at most one per IP version. Empty: the
    /// first one of each version, no link-local one if there is another of either version.
    pub addresses: Vec<IpAddr>,
    /// TCP ports for the stack's listeners and connections, up to 32 ranges. No program of this
    /// host may have one of them.
    pub ports: Vec<RangeInclusive<u16>>,
    /// How many ports beside these the device finds for connections of the stack's own, one behind
    /// the other from a random place above 61,000: 0 to 4,536. Each takes a descriptor for each
    /// address.
    pub free_ports: u16,
    /// What keeps the kernel from resetting the stack's connections.
    pub firewall: Firewall,
    /// Super-packets from the stack, which the device cuts before it sends them, and those that the
    /// kernel or the card merged, whole. Without it the stack sends single packets; it still
    /// receives merged ones.
    pub offload: bool,
    /// Largest IP packet in bytes, 68 to the interface's MTU (a larger value counts as that);
    /// `None`: the interface's MTU.
    pub mtu: Option<u32>,
    /// Maximum number of frames per receive system call, 1 to 64. Each takes up to 64 KiB of
    /// memory.
    pub receive_batch: usize,
    /// Bytes of memory for received frames that have not been read yet, including the kernel's
    /// bookkeeping.
    pub receive_buffer: usize,
    /// Bytes of memory for packets of one IP version that were sent but have not left, including
    /// the kernel's bookkeeping. Packets that do not fit wait in the stack.
    pub send_buffer: usize,
}

/// What keeps the kernel, which has no connection for the segments that it sees, from answering
/// them with resets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Firewall {
    /// A table of nftables that the device makes and that goes with it. Needs `CAP_NET_ADMIN` and
    /// Linux 5.12.
    #[default]
    Own,
    /// A rule that somebody has installed. The error of a device that cannot make its own
    /// ([`Error::NoFirewall`](crate::Error::NoFirewall)) has its text.
    Installed,
}

impl RawConfig {
    /// The interface with its addresses, and without ports.
    #[must_use]
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            addresses: Vec::new(),
            ports: Vec::new(),
            free_ports: 0,
            firewall: Firewall::Own,
            offload: true,
            mtu: None,
            receive_batch: MAX_BATCH,
            receive_buffer: frames::receive_buffer(),
            send_buffer: 512 << 10,
        }
    }

    /// Adds an address that the stack shares with the kernel.
    #[must_use]
    pub fn address(mut self, address: IpAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// Adds ports, all of them or those of a listener: `.ports(443..=443)`.
    #[must_use]
    pub fn ports(mut self, ports: RangeInclusive<u16>) -> Self {
        self.ports.push(ports);
        self
    }

    /// Sets how many free ports the device finds for connections of the stack's own.
    #[must_use]
    pub fn free_ports(mut self, count: u16) -> Self {
        self.free_ports = count;
        self
    }

    /// Sets what keeps the kernel from resetting the stack's connections.
    #[must_use]
    pub fn firewall(mut self, firewall: Firewall) -> Self {
        self.firewall = firewall;
        self
    }

    /// Takes single packets from the stack instead of super-packets.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.offload = false;
        self
    }

    /// Limits IP packets to `mtu` bytes.
    #[must_use]
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = Some(mtu);
        self
    }

    /// Checks what can be checked without an interface.
    pub(super) fn check(&self) -> Result<()> {
        let bad = |what, why: String| Err(Error::BadConfig { what, why });
        for version in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
            let several: Vec<String> =
                self.addresses.iter().filter(|own| version(own)).map(ToString::to_string).collect();
            if several.len() > 1 {
                return bad("own addresses", format!("{}: only one per IP version", several.join(" and ")));
            }
        }
        if self.ports.is_empty() && self.free_ports == 0 {
            return bad("ports", "give ranges of them, or a number of free ones".to_owned());
        }
        if self.ports.len() > MAX_RANGES {
            return bad("ports", format!("{} ranges are too many: 1 to {MAX_RANGES}", self.ports.len()));
        }
        for (at, range) in self.ports.iter().enumerate() {
            let other = self.ports[..at]
                .iter()
                .find(|other| other.start().max(range.start()) <= other.end().min(range.end()));
            if let Some(other) = other {
                return bad("ports", format!("{} and {} have ports in common", text(other), text(range)));
            }
        }
        if let Some(range) = self.ports.iter().find(|range| range.is_empty() || *range.start() == 0) {
            return bad("ports", format!("{} is no range of ports from 1 to 65535", text(range)));
        }
        if self.free_ports > MOST_FREE {
            return bad("free ports", format!("{} are too many: 0 to {MOST_FREE}", self.free_ports));
        }
        if !(1..=MAX_BATCH).contains(&self.receive_batch) {
            let why = format!("{} frames are not possible: 1 to {MAX_BATCH}", self.receive_batch);
            return bad("receive batch", why);
        }
        if let Some(mtu) = self.mtu
            && mtu < 68
        {
            return bad("MTU", format!("{mtu} bytes are too few: RFC 791 asks for 68, RFC 8200 for 1280"));
        }
        Ok(())
    }
}

/// A range as one writes it: `5001`, or `5001-5010`.
pub(super) fn text(range: &RangeInclusive<u16>) -> String {
    let (first, last) = (range.start(), range.end());
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}
