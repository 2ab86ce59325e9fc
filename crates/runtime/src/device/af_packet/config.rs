//! How to open an Ethernet device.

use super::neighbours::{Attachment, NeighbourConfig};
use crate::error::{Error, Result};
use crate::mac::MacAddress;
use crate::sys::packet::MAX_BATCH;
use ipnet::IpNet;
use std::net::IpAddr;

/// How to open an [`AfPacket`](super::AfPacket) device.
///
/// The addresses are the stack's own. They must not be configured on the interface: the kernel would answer for them
/// too, with a reset for every segment that it knows no connection for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AfPacketConfig {
    /// Name of the Ethernet interface, which exists and is up.
    pub interface: String,
    /// The stack's own addresses, at least one. What the prefix of one contains is reached directly. The same
    /// addresses are to be given to the [stack](crate::stack::Builder::address). Packets for others are dropped in the
    /// kernel; with more than 32 own addresses, in the stack.
    pub addresses: Vec<IpNet>,
    /// The next hop of everything else, at most one per IP version.
    pub gateways: Vec<IpAddr>,
    /// Ethernet address of the stack; `None`: the interface's own.
    ///
    /// With the interface's own the kernel takes the frames for its own too. It drops what is in them, because the IP
    /// address is none of its own, unless it forwards (`net.ipv4.ip_forward=1`): then it sends them on or answers
    /// that the host is unreachable. With another address it sees that they are not for it. Wireless networks and
    /// most clouds carry frames with the interface's own address only.
    pub mac: Option<MacAddress>,
    /// Super-packets and unfinished checksums, both ways: the kernel or the network card cuts what is sent. Without
    /// it what is sent are single packets with complete checksums; super-packets that the kernel made are still
    /// received.
    pub offload: bool,
    /// Hand frames to the network card past the interface's queueing discipline (`PACKET_QDISC_BYPASS`): less work
    /// for each, but frames are dropped if the card's queue is full.
    pub qdisc_bypass: bool,
    /// Largest IP packet in bytes, 68 to the interface's MTU (a larger value counts as that); `None`: the
    /// interface's MTU.
    pub mtu: Option<u32>,
    /// Frames that one system call receives at most, 1 to 64; fewer if they are large. Each takes up to 64 KiB of
    /// memory.
    pub receive_batch: usize,
    /// Bytes of memory for frames that were received and not yet read, with the kernel's bookkeeping (which makes a
    /// full-sized packet of 1500 bytes count as 2304 or more).
    pub receive_buffer: usize,
    /// Bytes of memory for frames that were sent and have not left, with the kernel's bookkeeping. What does not fit
    /// waits in the stack.
    pub send_buffer: usize,
    /// Neighbours whose Ethernet address is given, and never asked for.
    pub neighbours: Vec<(IpAddr, MacAddress)>,
    /// How the Ethernet addresses of other neighbours are found, and how the stack's own addresses are claimed.
    pub resolution: NeighbourConfig,
    /// Receive packets for every address, as a tunnel's end does
    /// ([`Builder::any_address`](crate::stack::Builder::any_address)), not for [`addresses`](Self::addresses) only.
    pub any_address: bool,
}

impl AfPacketConfig {
    /// The interface with offload, and no address yet.
    #[must_use]
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            addresses: Vec::new(),
            gateways: Vec::new(),
            mac: None,
            offload: true,
            qdisc_bypass: false,
            mtu: None,
            receive_batch: MAX_BATCH,
            receive_buffer: 16 << 20,
            send_buffer: 512 << 10,
            neighbours: Vec::new(),
            resolution: NeighbourConfig::default(),
            any_address: false,
        }
    }

    /// Adds an own address with the prefix of its network.
    #[must_use]
    pub fn address(mut self, address: IpNet) -> Self {
        self.addresses.push(address);
        self
    }

    /// Sets the next hop of what is in no own network.
    #[must_use]
    pub fn gateway(mut self, gateway: IpAddr) -> Self {
        self.gateways.push(gateway);
        self
    }

    /// Uses an Ethernet address of the stack's own.
    #[must_use]
    pub fn mac(mut self, mac: MacAddress) -> Self {
        self.mac = Some(mac);
        self
    }

    /// Sends single packets with complete checksums instead of super-packets.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.offload = false;
        self
    }

    /// Sends past the interface's queueing discipline.
    #[must_use]
    pub fn qdisc_bypass(mut self) -> Self {
        self.qdisc_bypass = true;
        self
    }

    /// Limits IP packets to `mtu` bytes.
    #[must_use]
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = Some(mtu);
        self
    }

    /// Gives a neighbour's Ethernet address.
    #[must_use]
    pub fn neighbour(mut self, address: IpAddr, mac: MacAddress) -> Self {
        self.neighbours.push((address, mac));
        self
    }

    /// Sets the times and limits of neighbour resolution.
    #[must_use]
    pub fn resolution(mut self, resolution: NeighbourConfig) -> Self {
        self.resolution = resolution;
        self
    }

    /// Receives packets for every address.
    #[must_use]
    pub fn any_address(mut self) -> Self {
        self.any_address = true;
        self
    }

    /// The host that the stack is, at the station `mac`.
    pub(super) fn attachment(&self, mac: MacAddress) -> Attachment {
        Attachment {
            mac,
            addresses: self.addresses.clone(),
            gateways: self.gateways.clone(),
            neighbours: self.neighbours.clone(),
        }
    }

    /// What can be checked without an interface.
    pub(super) fn check(&self) -> Result<()> {
        let bad = |what, why: String| Err(Error::BadConfig { what, why });
        if self.addresses.is_empty() {
            return bad("own addresses", "give at least one with its prefix, as 192.0.2.5/24".to_owned());
        }
        if let Some(mac) = self.mac
            && !mac.is_station()
        {
            return bad("own Ethernet address", format!("{mac} is not the address of one station"));
        }
        if !(1..=MAX_BATCH).contains(&self.receive_batch) {
            return bad(
                "receive batch",
                format!("{} frames are not possible: 1 to {MAX_BATCH}", self.receive_batch),
            );
        }
        if let Some(mtu) = self.mtu
            && mtu < 68
        {
            return bad("MTU", format!("{mtu} bytes are too few: RFC 791 asks for 68, RFC 8200 for 1280"));
        }
        Ok(())
    }
}
