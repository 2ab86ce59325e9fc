//! What is measured: who, doing what.

use std::fmt;
use std::str::FromStr;

/// What the TUN device carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// Super-packets and packets with incomplete checksums, behind virtio headers.
    Offload,
    /// Single packets with complete checksums.
    Plain,
}

impl Device {
    pub(crate) const ALL: [Self; 2] = [Self::Offload, Self::Plain];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Offload => "offload",
            Self::Plain => "plain",
        }
    }
}

/// The stack that terminates connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stack {
    /// `ackline proxy`.
    Ackline,
    NetstackSmoltcp,
    Ipstack,
    /// gVisor's netstack.
    Gvisor,
    Lwip,
}

impl Stack {
    pub(crate) const ALL: [Self; 5] =
        [Self::Ackline, Self::NetstackSmoltcp, Self::Ipstack, Self::Gvisor, Self::Lwip];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ackline => "ackline",
            Self::NetstackSmoltcp => "netstack-smoltcp",
            Self::Ipstack => "ipstack",
            Self::Gvisor => "gvisor",
            Self::Lwip => "lwip",
        }
    }
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) stack: Stack,
    pub(crate) device: Device,
}

impl Who {
    /// In the order of the tables.
    pub(crate) const ALL: [Self; 8] = [
        Self::ackline(Device::Offload),
        Self { stack: Stack::NetstackSmoltcp, device: Device::Offload },
        Self { stack: Stack::Gvisor, device: Device::Offload },
        Self::ackline(Device::Plain),
        Self { stack: Stack::NetstackSmoltcp, device: Device::Plain },
        Self { stack: Stack::Ipstack, device: Device::Plain },
        Self { stack: Stack::Gvisor, device: Device::Plain },
        Self { stack: Stack::Lwip, device: Device::Plain },
    ];

    pub(crate) const fn ackline(device: Device) -> Self {
        Self { stack: Stack::Ackline, device }
    }

    /// The others on a device of the same kind.
    pub(crate) fn rivals(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |who| who.device == self.device && who.stack != self.stack)
    }
}

/// As the tables have it.
impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.stack.name(), self.device.name())
    }
}

/// What clients and servers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Clients send bulk data.
    Upload { flows: usize },
    /// Clients receive bulk data.
    Download { flows: usize },
    /// Clients connect, get a byte back, close, and begin again; so many at a time.
    Connects { at_a_time: usize },
    /// So many clients connect at the same moment, and each gets a byte back.
    Burst { clients: usize },
    /// So many connections got a byte back and stay.
    Idle { connections: usize },
    /// As a download; memory counts as well.
    Busy { flows: usize },
    /// Connections end in every way.
    HalfClose,
}

impl Act {
    /// Numbers of flows of bulk data.
    pub(crate) const FLOWS: [usize; 2] = [1, 100];
    /// Numbers of clients at once.
    pub(crate) const CLIENTS: [usize; 2] = [1_000, 5_000];
    pub(crate) const CONNECTS: Self = Self::Connects { at_a_time: 50 };
    pub(crate) const IDLE: Self = Self::Idle { connections: 10_000 };
    pub(crate) const BUSY: Self = Self::Busy { flows: 1_000 };

    /// In the order of the measurements.
    fn all() -> impl Iterator<Item = Self> {
        let bulk =
            Self::FLOWS.into_iter().flat_map(|flows| [Self::Upload { flows }, Self::Download { flows }]);
        let bursts = Self::CLIENTS.map(|clients| Self::Burst { clients });
        bulk.chain([Self::CONNECTS]).chain(bursts).chain([Self::IDLE, Self::BUSY, Self::HalfClose])
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upload { flows } => write!(f, "upload-{flows}"),
            Self::Download { flows } => write!(f, "download-{flows}"),
            Self::Connects { .. } => write!(f, "connects"),
            Self::Burst { clients } => write!(f, "burst-{clients}"),
            Self::Idle { connections } => write!(f, "idle-{connections}"),
            Self::Busy { flows } => write!(f, "busy-{flows}"),
            Self::HalfClose => write!(f, "half-close"),
        }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) who: Who,
    pub(crate) act: Act,
}

impl Case {
    /// Every case, a contestant's one after the other's for each act.
    pub(crate) fn all() -> Vec<Self> {
        Act::all().flat_map(|act| Who::ALL.map(|who| Self { who, act })).collect()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}/{}", self.who.stack.name(), self.who.device.name(), self.act)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::all().into_iter().find(|case| case.to_string() == name);
        found.ok_or_else(|| format!("there is no case {name:?} (--list)"))
    }
}
