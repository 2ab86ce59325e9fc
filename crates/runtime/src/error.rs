//! Errors of setting up a device, an interface or a namespace.

use crate::mac::MacAddress;
#[cfg(target_os = "linux")]
#[cfg(any(
    feature = "tun",
    feature = "af-packet",
    feature = "frame-socket",
    feature = "netns",
    feature = "raw"
))]
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The result of a setup function.
pub type Result<T> = std::result::Result<T, Error>;

/// What failed, and what would make it work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `/dev/net/tun` does not exist.
    #[error(
        "/dev/net/tun does not exist: load the kernel module (modprobe tun), or give the container the device"
    )]
    TunMissing,
    /// This user may not open `/dev/net/tun`.
    #[error(
        "/dev/net/tun may not be opened: run as root, or let this user read and write it (chmod 666 /dev/net/tun)"
    )]
    TunForbidden,
    /// The kernel does not allow this process to create or attach to the interface.
    #[error(
        "no permission for the TUN interface {name:?}: it needs CAP_NET_ADMIN (run as root), or an interface of \
         this user (as root, once: ip tuntap add dev NAME mode tun user $USER)"
    )]
    TunNotOwned {
        /// The requested name; empty if the kernel was to choose.
        name: String,
    },
    /// An interface of that name exists, or another process has it open.
    #[error(
        "the interface name {name:?} is in use: choose another name, or end the process that has it open"
    )]
    NameInUse {
        /// The name.
        name: String,
    },
    /// The interface exists, but cannot be opened as a TUN device of this kind.
    #[error(
        "the interface {name:?} is not a TUN device of the kind asked for (a TAP device, another kind of interface, \
         or one with several queues)"
    )]
    NotATun {
        /// The name.
        name: String,
    },
    /// The name is not a valid interface name.
    #[error("{name:?} cannot be an interface name: at most 15 bytes, no '/', no space")]
    BadName {
        /// The name.
        name: String,
    },
    /// There is no such interface in this network namespace.
    #[error("there is no interface {name:?} in this network namespace")]
    NoSuchInterface {
        /// The name.
        name: String,
    },
    /// The interface is not an Ethernet interface.
    #[error(
        "the interface {name:?} is not an Ethernet interface: a packet socket needs one (veth, a network card)"
    )]
    NotEthernet {
        /// The name.
        name: String,
    },
    /// The interface is down.
    #[error("the interface {name:?} is down: bring it up (ip link set dev {name} up)")]
    InterfaceDown {
        /// The name.
        name: String,
    },
    /// Another host on the link has one of the stack's addresses.
    #[error(
        "the address {address} is in use on {interface}: the station {mac} has it; give another address, or take it \
         from that host"
    )]
    AddressInUse {
        /// The address.
        address: IpAddr,
        /// The Ethernet address of the host that has it.
        mac: MacAddress,
        /// The interface.
        interface: String,
    },
    /// Packet sockets and raw sockets need `CAP_NET_RAW`.
    #[error(
        "no permission for a packet socket or a raw one: it needs CAP_NET_RAW in this network namespace (run as root)"
    )]
    NotRaw,
    /// The interface has no address that the stack could share.
    #[error(
        "the interface {name:?} has no address: give it one (ip addr add CIDR dev {name}), or make the stack a host of its own on \
         its network"
    )]
    NoAddress {
        /// The name.
        name: String,
    },
    /// A program of this host, or a connection that has not been over for long, has a port that was
    /// to be the stack's.
    #[error("the port {port} is taken on this machine: choose another one, or see who has it (ss -tanp sport = :{0})", port.port())]
    PortInUse {
        /// The port, with the first of the addresses for which it is taken.
        port: SocketAddr,
    },
    /// Too few free ports were left in a row.
    #[error("there are no {count} free ports in a row from {first} on: ask for fewer, or name a range")]
    NoFreePorts {
        /// How many were to be found.
        count: u16,
        /// The first place to look.
        first: u16,
    },
    /// The kernel would reset the stack's connections, and cannot be kept from it.
    #[error(
        "could not make the firewall's table that keeps the kernel from resetting the stack's connections: {why}; or install the rule \
         by hand, as root, for a device of the ports {ports} that makes no table: {command}"
    )]
    NoFirewall {
        /// The reason.
        why: String,
        /// The command that installs the rule.
        command: String,
        /// The ports in it, as `61000-61007` or `5001,61000-61007`.
        ports: String,
    },
    /// A socket could not be opened.
    #[error("could not {action} the socket {path}: {source}")]
    Socket {
        /// What was attempted.
        action: &'static str,
        /// Where the socket is.
        path: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A setting of the device is invalid.
    #[error("{what}: {why}")]
    BadConfig {
        /// Which setting.
        what: &'static str,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// An IPv4 address was paired with an IPv6 address.
    #[error("{local} and {peer} are not of one address family")]
    MixedFamilies {
        /// The local address.
        local: IpAddr,
        /// The peer address.
        peer: IpAddr,
    },
    /// The process may not create a namespace.
    #[error(
        "no permission for a new network namespace: run as root, or allow unprivileged user namespaces \
         (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
         kernel.apparmor_restrict_unprivileged_userns)"
    )]
    NamespaceForbidden,
    /// A user namespace can only be entered while the process has one thread.
    #[error("a user namespace must be entered before the process starts its second thread")]
    TooManyThreads,
    /// The process may not give a thread this priority.
    #[error(
        "no permission for the priority {priority}: it needs CAP_SYS_NICE (run as root), or limits of this user that allow it \
         (ulimit -r for fifo, ulimit -e for nice)"
    )]
    PriorityForbidden {
        /// The priority.
        priority: String,
    },
    /// The operation needs `CAP_NET_ADMIN`.
    #[error("could not {action}: it needs CAP_NET_ADMIN in this network namespace (run as root)")]
    NotAdmin {
        /// What was attempted.
        action: &'static str,
    },
    /// Any other refusal by the kernel.
    #[error("could not {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl Error {
    /// True if the same request would succeed with more privileges: callers may fall back to the
    /// in-memory device, and tests count as skipped.
    #[must_use]
    pub const fn is_lack_of_rights(&self) -> bool {
        matches!(
            self,
            Self::TunMissing
                | Self::TunForbidden
                | Self::TunNotOwned { .. }
                | Self::NamespaceForbidden
                | Self::PriorityForbidden { .. }
                | Self::NotAdmin { .. }
                | Self::NotRaw
        )
    }
}

#[cfg(target_os = "linux")]
#[cfg(any(
    feature = "tun",
    feature = "af-packet",
    feature = "frame-socket",
    feature = "netns",
    feature = "raw"
))]
impl Error {
    pub(crate) fn system(action: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::PERM | Errno::ACCESS => Self::NotAdmin { action },
            other => Self::System { action, source: other.into() },
        }
    }

    /// For `map_err`: the error of a failed `action`.
    pub(crate) fn on(action: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::system(action, errno)
    }

    /// For `map_err`: the error of a failed `action` on the socket at `path`.
    #[cfg(feature = "frame-socket")]
    pub(crate) fn at(path: &std::path::Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Socket { action, path, source }
    }
}
