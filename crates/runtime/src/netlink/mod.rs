//! Interfaces, addresses and routes of the calling thread's network namespace, through rtnetlink:
//! rtnetlink(7).
//!
//! Each function is one request and its answer: for setup, not for the packet path.

pub(crate) mod message;

use crate::error::{Error, Result};
use crate::mac::MacAddress;
use ipnet::IpNet;
use message::{Request, attributes, messages, u16_at, u32_at};
use rustix::fd::OwnedFd;
#[cfg(feature = "netns")]
use rustix::fd::{AsFd, AsRawFd as _};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::net::IpAddr;

/// `IN6_ADDR_GEN_MODE_NONE`: the kernel does not generate a link-local address.
const ADDR_GEN_NONE: u8 = 1;
/// `IFLA_INET6_ADDR_GEN_MODE`, inside the `AF_INET6` part of `IFLA_AF_SPEC`.
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
/// The peer interface of a pair, inside the `IFLA_INFO_DATA` of a "veth":
/// `include/uapi/linux/veth.h`.
#[cfg(feature = "netns")]
const VETH_INFO_PEER: u16 = 1;

/// The VLAN's number, inside the `IFLA_INFO_DATA` of a "vlan": `include/uapi/linux/if_link.h`.
const VLAN_INFO_ID: u16 = 1;

/// An interface, as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Its index in this namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// It has a carrier: `RUNNING` in the words of `ip link`.
    pub running: bool,
    /// It is a loopback interface.
    pub loopback: bool,
    /// Its link layer is Ethernet.
    pub ethernet: bool,
    /// Its Ethernet address, if it has one.
    pub mac: Option<MacAddress>,
    /// Largest super-packet that the interface, or the stack above it, segments, link header
    /// included, in bytes.
    pub gso_max_size: u32,
    /// Packets that may wait in its transmit queue: `qlen` in the words of `ip link`.
    pub queue_length: u32,
}

impl Interface {
    /// One that this namespace does not have.
    #[cfg(feature = "tun")]
    pub(crate) const fn elsewhere(name: String, mtu: u32) -> Self {
        Self {
            index: 0,
            name,
            mtu,
            up: true,
            running: true,
            loopback: false,
            ethernet: false,
            mac: None,
            gso_max_size: 0,
            queue_length: 0,
        }
    }
}

/// An address for an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface's address with its prefix length.
    pub net: IpNet,
    /// The peer of a point-to-point link. `net`'s prefix then belongs to the peer, so the two
    /// addresses need nothing in common. `None`: the whole network of `net` is behind the
    /// interface.
    pub peer: Option<IpAddr>,
}

impl InterfaceAddress {
    /// `net`'s address, with its whole network behind the interface.
    #[must_use]
    pub const fn network(net: IpNet) -> Self {
        Self { net, peer: None }
    }

    /// `local`, with `peer` alone behind the interface.
    #[must_use]
    pub fn point_to_point(local: IpAddr, peer: IpAddr) -> Self {
        Self { net: IpNet::from(local), peer: Some(peer) }
    }
}

/// Where packets of this host for an address go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// They stay on this host: one of its addresses, or an anycast address that it serves.
    Local,
    /// They leave by the interface with this index.
    Interface(u32),
    /// They go nowhere.
    None,
}

/// A netlink socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens the socket.
    ///
    /// # Errors
    /// If the kernel refuses a netlink socket.
    pub fn open() -> Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // NETLINK_ROUTE is protocol 0, which rustix spells as no protocol.
            None,
        )
        .map_err(Error::on("open a netlink socket"))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Looks up the interface called `name`.
    ///
    /// # Errors
    /// [`Error::NoSuchInterface`] if there is none.
    pub fn interface(&mut self, name: &str) -> Result<Interface> {
        let body = link_body(0, 0, 0);
        let mut found = None;
        self.transact(
            libc::RTM_GETLINK,
            0,
            &body,
            |request| request.attribute(libc::IFLA_IFNAME, &c_string(name)),
            |kind, body| {
                if kind == libc::RTM_NEWLINK {
                    found = parse_link(body);
                }
            },
        )
        .map_err(|errno| match errno {
            Errno::NODEV => Error::NoSuchInterface { name: name.to_owned() },
            other => Error::system("look up an interface", other),
        })?;
        found.ok_or_else(|| Error::NoSuchInterface { name: name.to_owned() })
    }

    /// Lists all interfaces, in the kernel's order.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn interfaces(&mut self) -> Result<Vec<Interface>> {
        let mut found = Vec::new();
        self.transact(
            libc::RTM_GETLINK,
            libc::NLM_F_DUMP,
            &link_body(0, 0, 0),
            |request| request,
            |kind, body| {
                if kind == libc::RTM_NEWLINK {
                    found.extend(parse_link(body));
                }
            },
        )
        .map_err(Error::on("list the interfaces"))?;
        Ok(found)
    }

    /// Lists all local addresses with their networks, each with its interface's index.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn addresses(&mut self) -> Result<Vec<(u32, IpNet)>> {
        let mut found = Vec::new();
        // struct ifaddrmsg, for all families.
        self.transact(
            libc::RTM_GETADDR,
            libc::NLM_F_DUMP,
            &[0; 8],
            |request| request,
            |kind, body| {
                if kind == libc::RTM_NEWADDR {
                    found.extend(parse_address(body));
                }
            },
        )
        .map_err(Error::on("list the addresses"))?;
        Ok(found)
    }

    /// Creates a pair of virtual Ethernet interfaces: `name` in this namespace, `peer` in `there`
    /// ([`Namespace`](crate::netns::Namespace)). Both are down. They disappear with either
    /// namespace.
    ///
    /// # Errors
    /// [`Error::NameInUse`] if one of the names is taken; without `CAP_NET_ADMIN`.
    #[cfg(feature = "netns")]
    pub fn add_veth(&mut self, name: &str, peer: &str, there: impl AsFd) -> Result<()> {
        let body = link_body(0, 0, 0);
        let there = there.as_fd().as_raw_fd();
        self.change(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body, |request| {
            request.attribute(libc::IFLA_IFNAME, &c_string(name)).nested(libc::IFLA_LINKINFO, |info| {
                info.attribute(libc::IFLA_INFO_KIND, b"veth\0").nested(libc::IFLA_INFO_DATA, |data| {
                    data.nested(VETH_INFO_PEER, |other| {
                        other
                            .raw(&body)
                            .attribute(libc::IFLA_IFNAME, &c_string(peer))
                            .attribute(libc::IFLA_NET_NS_FD, &there.to_ne_bytes())
                    })
                })
            })
        })
        .map_err(|errno| match errno {
            Errno::EXIST => Error::NameInUse { name: name.to_owned() },
            other => Error::system("make a pair of virtual interfaces", other),
        })
    }

    /// Sets the largest IP packet, in bytes.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or if the interface cannot carry such packets.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<()> {
        let body = link_body(index, 0, 0);
        self.change(libc::RTM_NEWLINK, 0, &body, |request| {
            request.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes())
        })
        .map_err(Error::on("set the MTU"))
    }

    /// Sets how many packets may wait in the interface's queue.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or if there is no memory for the queue.
    pub fn set_queue_length(&mut self, index: u32, packets: u32) -> Result<()> {
        let body = link_body(index, 0, 0);
        self.change(libc::RTM_NEWLINK, 0, &body, |request| {
            request.attribute(libc::IFLA_TXQLEN, &packets.to_ne_bytes())
        })
        .map_err(Error::on("set the length of the queue"))
    }

    /// Sets the interface's Ethernet address. Some drivers only accept it while the interface is
    /// down.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or if the driver does not accept it.
    pub fn set_mac(&mut self, index: u32, mac: MacAddress) -> Result<()> {
        self.change(libc::RTM_NEWLINK, 0, &link_body(index, 0, 0), |request| {
            request.attribute(libc::IFLA_ADDRESS, &mac.0)
        })
        .map_err(Error::on("set the Ethernet address"))
    }

    /// Brings the interface up.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`.
    pub fn set_up(&mut self, index: u32) -> Result<()> {
        let up = libc::IFF_UP as u32;
        self.change(libc::RTM_NEWLINK, 0, &link_body(index, up, up), |request| request)
            .map_err(Error::on("bring an interface up"))
    }

    /// Takes the interface down; routes through it go away.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`.
    pub fn set_down(&mut self, index: u32) -> Result<()> {
        let up = libc::IFF_UP as u32;
        self.change(libc::RTM_NEWLINK, 0, &link_body(index, 0, up), |request| request)
            .map_err(Error::on("take an interface down"))
    }

    /// Removes a virtual interface; of a veth pair, both ends.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`; if it is a hardware interface.
    pub fn remove(&mut self, index: u32) -> Result<()> {
        self.change(libc::RTM_DELLINK, 0, &link_body(index, 0, 0), |request| request)
            .map_err(Error::on("remove an interface"))
    }

    /// Creates a VLAN interface (802.1Q) called `name` on the Ethernet interface `parent`. It is
    /// down.
    ///
    /// # Errors
    /// [`Error::NameInUse`]; without `CAP_NET_ADMIN`; if the parent cannot carry VLANs, or `id` is
    /// above 4094.
    pub fn add_vlan(&mut self, name: &str, parent: u32, id: u16) -> Result<()> {
        let body = link_body(0, 0, 0);
        self.change(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body, |request| {
            request
                .attribute(libc::IFLA_IFNAME, &c_string(name))
                .attribute(libc::IFLA_LINK, &parent.to_ne_bytes())
                .nested(libc::IFLA_LINKINFO, |info| {
                    info.attribute(libc::IFLA_INFO_KIND, b"vlan\0")
                        .nested(libc::IFLA_INFO_DATA, |data| data.attribute(VLAN_INFO_ID, &id.to_ne_bytes()))
                })
        })
        .map_err(|errno| match errno {
            Errno::EXIST => Error::NameInUse { name: name.to_owned() },
            other => Error::system("make a VLAN interface", other),
        })
    }

    /// Keeps the kernel from sending on the interface by itself: no multicast (so no IGMP or MLD
    /// reports), no link-local address (so no router solicitation and no duplicate address
    /// detection).
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`. A kernel without IPv6 is no error.
    pub fn make_quiet(&mut self, index: u32) -> Result<()> {
        self.change(libc::RTM_NEWLINK, 0, &link_body(index, 0, libc::IFF_MULTICAST as u32), |request| {
            request
        })
        .map_err(Error::on("turn multicast off"))?;
        let result = self.change(libc::RTM_NEWLINK, 0, &link_body(index, 0, 0), |request| {
            request.nested(libc::IFLA_AF_SPEC, |spec| {
                spec.nested(libc::AF_INET6 as u16, |inet6| {
                    inet6.attribute(IFLA_INET6_ADDR_GEN_MODE, &[ADDR_GEN_NONE])
                })
            })
        });
        match result {
            // No IPv6, so nothing to silence.
            Ok(()) | Err(Errno::AFNOSUPPORT | Errno::OPNOTSUPP) => Ok(()),
            Err(errno) => Err(Error::system("turn IPv6 address generation off", errno)),
        }
    }

    /// Adds an address to the interface. IPv6 addresses skip duplicate address detection, but the
    /// kernel still takes a moment: see [`await_address`](Self::await_address). Adding an existing
    /// address is no error.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`; if the families of address and peer differ; without IPv6 in the
    /// kernel.
    pub fn add_address(&mut self, index: u32, address: InterfaceAddress) -> Result<()> {
        let InterfaceAddress { net, peer } = address;
        let local = net.addr();
        let far = peer.unwrap_or(local);
        if local.is_ipv4() != far.is_ipv4() {
            return Err(Error::MixedFamilies { local, peer: far });
        }
        // struct ifaddrmsg: family, prefix length, flags, scope, interface.
        let mut body = [family(local), net.prefix_len(), 0, 0, 0, 0, 0, 0];
        body[4..].copy_from_slice(&index.to_ne_bytes());
        let result =
            self.change(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body, |request| {
                let request = request
                    .attribute(libc::IFA_LOCAL, &octets(local))
                    .attribute(libc::IFA_ADDRESS, &octets(far));
                if local.is_ipv6() {
                    request.attribute(libc::IFA_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes())
                } else {
                    request
                }
            });
        match result {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(Error::system("add an address", errno)),
        }
    }

    /// Waits until the kernel accepts packets for its own `address`, at most two seconds. A work
    /// queue installs the local route of an IPv6 address some time after its interface is up; until
    /// then packets for it are dropped.
    ///
    /// # Errors
    /// If it does not within that time, because the interface is down or has no such address.
    pub fn await_address(&mut self, address: IpAddr) -> Result<()> {
        const ACTION: &str = "wait for an address to become usable";
        for _ in 0..2000 {
            if self.look_up_route(address).map_err(Error::on(ACTION))? == Route::Local {
                return Ok(());
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "setting up an interface blocks, before any traffic"
            )]
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Err(Error::system(ACTION, Errno::TIMEDOUT))
    }

    /// Looks up the route of this host's own packets to `address`.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn route_to(&mut self, address: IpAddr) -> Result<Route> {
        self.look_up_route(address).map_err(Error::on("look up a route"))
    }

    fn look_up_route(&mut self, address: IpAddr) -> std::result::Result<Route, Errno> {
        let octets = octets(address);
        // struct rtmsg, as in `add_route`; the kernel fills in everything but family and prefix
        // length.
        let body = [family(address), (octets.len() * 8) as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut found = Route::None;
        let outcome = self.transact(
            libc::RTM_GETROUTE,
            0,
            &body,
            |request| request.attribute(libc::RTA_DST, &octets),
            |kind, body| {
                if kind == libc::RTM_NEWROUTE {
                    found = parse_route(body).unwrap_or(Route::None);
                }
            },
        );
        match outcome {
            Ok(()) => Ok(found),
            // No route, or one that says so: unreachable, prohibit, blackhole.
            Err(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ACCESS | Errno::INVAL) => Ok(Route::None),
            Err(errno) => Err(errno),
        }
    }

    /// Routes packets for `destination` to the interface (`via` is `None`), or to the router `via`
    /// behind it. Replaces an existing route.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`; if the interface is down or `via` cannot be reached through it.
    pub fn add_route(&mut self, index: u32, destination: IpNet, via: Option<IpAddr>) -> Result<()> {
        let scope = if via.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
        // struct rtmsg: family, destination and source prefix lengths, TOS, table, protocol, scope,
        // type, flags.
        let body = [
            family(destination.addr()),
            destination.prefix_len(),
            0,
            0,
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            scope,
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ];
        self.change(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &body, |request| {
            let request = request
                .attribute(libc::RTA_DST, &octets(destination.network()))
                .attribute(libc::RTA_OIF, &index.to_ne_bytes());
            match via {
                Some(router) => request.attribute(libc::RTA_GATEWAY, &octets(router)),
                None => request,
            }
        })
        .map_err(Error::on("add a route"))
    }

    /// Adds a permanent neighbour entry.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`; if the interface has no neighbours.
    pub fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: MacAddress) -> Result<()> {
        // struct ndmsg: family, padding, interface, state, flags, type.
        let mut body = [family(address), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        self.change(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &body, |request| {
            request.attribute(libc::NDA_DST, &octets(address)).attribute(libc::NDA_LLADDR, &mac.0)
        })
        .map_err(Error::on("add a neighbour"))
    }

    /// Sends a request whose only answer is an acknowledgement.
    fn change(
        &mut self,
        kind: u16,
        flags: i32,
        body: &[u8],
        fill: impl FnOnce(Request) -> Request,
    ) -> std::result::Result<(), Errno> {
        self.transact(kind, flags, body, fill, |_, _| {})
    }

    /// Sends one request and passes each message of the answer to `each`, until the acknowledgement
    /// or the end of the list (`NLM_F_DUMP`).
    fn transact(
        &mut self,
        kind: u16,
        flags: i32,
        body: &[u8],
        fill: impl FnOnce(Request) -> Request,
        mut each: impl FnMut(u16, &[u8]),
    ) -> std::result::Result<(), Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        let bytes = fill(Request::new(kind, flags, self.sequence, body)).finish();
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.socket, &bytes, SendFlags::empty(), &kernel)?;

        let mut buffer = vec![0; 32 * 1024];
        loop {
            let (received, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            for message in messages(buffer.get(..received).unwrap_or(&[])) {
                if message.sequence != self.sequence {
                    continue;
                }
                if matches!(i32::from(message.kind), libc::NLMSG_ERROR | libc::NLMSG_DONE) {
                    // Both begin with zero for success, else a negative errno.
                    let code = u32_at(message.body, 0).ok_or(Errno::BADMSG)? as i32;
                    return if code == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(-code)) };
                }
                each(message.kind, message.body);
            }
        }
    }
}

/// Brings up the loopback interface of the calling thread's network namespace; in a new namespace
/// it is down.
///
/// # Errors
/// Without `CAP_NET_ADMIN` in that namespace.
pub fn bring_loopback_up() -> Result<()> {
    let mut netlink = Netlink::open()?;
    let index = netlink.interface("lo")?.index;
    netlink.set_up(index)
}

/// `struct ifinfomsg`: family, padding, device type, index, flags, and the mask of flags to change.
pub(crate) fn link_body(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut body = [0; 16];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..].copy_from_slice(&change.to_ne_bytes());
    body
}

fn parse_link(body: &[u8]) -> Option<Interface> {
    let index = u32_at(body, 4)?;
    let flags = u32_at(body, 8)?;
    let has = |flag: libc::c_int| flags & flag as u32 != 0;
    let ethernet = u16_at(body, 2)? == libc::ARPHRD_ETHER;
    let mut name = None;
    let mut mtu = None;
    let mut mac = None;
    // Kernels before 4.10 do not report it; all of them had this default.
    let mut gso_max_size = 65_536;
    let mut queue_length = 0;
    for (kind, value) in attributes(body.get(16..)?) {
        match kind {
            libc::IFLA_IFNAME => {
                let text = value.split(|&b| b == 0).next().unwrap_or(&[]);
                name = Some(String::from_utf8_lossy(text).into_owned());
            }
            libc::IFLA_MTU => mtu = u32_at(value, 0),
            libc::IFLA_ADDRESS => mac = value.try_into().ok().map(MacAddress),
            libc::IFLA_GSO_MAX_SIZE => gso_max_size = u32_at(value, 0)?,
            libc::IFLA_TXQLEN => queue_length = u32_at(value, 0)?,
            _ => {}
        }
    }
    Some(Interface {
        index,
        name: name?,
        mtu: mtu?,
        up: has(libc::IFF_UP),
        running: has(libc::IFF_RUNNING),
        loopback: has(libc::IFF_LOOPBACK),
        ethernet,
        mac: mac.filter(|_| ethernet),
        gso_max_size,
        queue_length,
    })
}

/// Parses a `struct ifaddrmsg`: the interface's index, and its address with the prefix.
fn parse_address(body: &[u8]) -> Option<(u32, IpNet)> {
    let (prefix, index) = (*body.get(1)?, u32_at(body, 4)?);
    let (mut local, mut address) = (None, None);
    for (kind, value) in attributes(body.get(8..)?) {
        match kind {
            libc::IFA_LOCAL => local = address_of(value),
            libc::IFA_ADDRESS => address = address_of(value),
            _ => {}
        }
    }
    // On a point-to-point link IFA_ADDRESS is the peer's: rtnetlink(7).
    Some((index, IpNet::new(local.or(address)?, prefix).ok()?))
}

/// Parses a `struct rtmsg`.
fn parse_route(body: &[u8]) -> Option<Route> {
    if matches!(*body.get(7)?, libc::RTN_LOCAL | libc::RTN_ANYCAST) {
        return Some(Route::Local);
    }
    let (_, index) = attributes(body.get(12..)?).find(|(kind, _)| *kind == libc::RTA_OIF)?;
    u32_at(index, 0).map(Route::Interface)
}

/// The inverse of [`octets`].
fn address_of(octets: &[u8]) -> Option<IpAddr> {
    let v4 = octets.try_into().ok().map(|octets: [u8; 4]| octets.into());
    v4.or_else(|| octets.try_into().ok().map(|octets: [u8; 16]| octets.into()))
}

fn family(address: IpAddr) -> u8 {
    // AF_INET is 2 and AF_INET6 is 10; netlink's family fields have eight bits.
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

pub(crate) fn c_string(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes
}
