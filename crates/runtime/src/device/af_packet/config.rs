//! How to open an Ethernet device.

use super::neighbours::{Attachment, NeighbourConfig};
use crate::device::interface::frames;
use crate::error::{Error, Result};
use crate::mac::MacAddress;
use crate::sys::packet::MAX_BATCH;
use ipnet::IpNet;
use std::net::IpAddr;

/// How to open an [`AfPacket`](super::AfPacket) device.
///
/// The addresses belong to the stack. Do not configure them on the interface: the kernel would
/// answer for them too, with a reset for every segment of a connection it does not have.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AfPacketConfig {
    /// Name of an Ethernet interface that exists and is up.
    pub interface: String,
    /// The stack's addresses, at least one. Destinations inside one of their prefixes are reached
    /// directly. Give the same addresses to the [stack](crate::stack::Builder::address). The kernel
    /// drops packets for other addresses; with more than 32 addresses, the stack does.
    pub addresses: Vec<IpNet>,
    /// The next hop of everything else, at most one per IP version.
    pub gateways: Vec<IpAddr>,
    /// Ethernet address of the stack; `None`: the interface's own.
    ///
    /// With the interface's own address, the kernel receives the frames as well. It drops the
    /// packets inside, because their IP address is not one of its own, unless it forwards
    /// (`net.ipv4.ip_forward=1`): then it sends them on or answers host unreachable. With another
    /// address it can tell that they are not for it. Wireless networks and most clouds only carry
    /// frames with the interface's own address.
    pub mac: Option<MacAddress>,
    /// Super-packets and partial checksums, both ways: the kernel or the network card segments what
    /// is sent. Without it, the device sends single packets with complete checksums; it still
    /// receives super-packets that the kernel built.
    pub offload: bool,
    /// Bypass the interface's queueing discipline (`PACKET_QDISC_BYPASS`): less work per frame, but
    /// frames are dropped if the card's queue is full.
    pub qdisc_bypass: bool,
    /// Largest IP packet in bytes, 68 to the interface's MTU (a larger value counts as that);
    /// `None`: the interface's MTU.
    pub mtu: Option<u32>,
    /// Maximum number of frames per receive system call, 1 to 64; fewer if they are large. Each
    /// takes up to 64 KiB of memory.
    pub receive_batch: usize,
    /// Bytes of memory for received frames that have not been read yet, including the kernel's
    /// bookkeeping (a full-sized packet of 1500 bytes counts as 2304 or more). With less than a
    /// super-packet (about 70 KB) for each of many connections, some lose all that they send. Each
    /// queue has as much.
    pub receive_buffer: usize,
    /// Bytes of memory for frames that were sent but have not left, including the kernel's
    /// bookkeeping. Packets that do not fit wait in the stack.
    pub send_buffer: usize,
    /// Neighbours with a fixed Ethernet address; they are never resolved.
    pub neighbours: Vec<(IpAddr, MacAddress)>,
    /// How the Ethernet addresses of other neighbours are found, and how the stack's own addresses
    /// are claimed.
    pub resolution: NeighbourConfig,
    /// Receive packets for every address, like a tunnel endpoint
    /// ([`Builder::any_address`](crate::stack::Builder::any_address)), not only for
    /// [`addresses`](Self::addresses).
    pub any_address: bool,
}

impl AfPacketConfig {
    /// The interface with offload and without addresses.
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
            receive_buffer: frames::receive_buffer(),
            send_buffer: 512 << 10,
            neighbours: Vec::new(),
            resolution: NeighbourConfig::default(),
            any_address: false,
        }
    }

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

    /// Gives the stack an Ethernet address of its own.
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

    /// Bypasses the interface's queueing discipline.
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

    /// Checks what can be checked without an interface.
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
