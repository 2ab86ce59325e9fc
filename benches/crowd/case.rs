//! What is measured: who, doing what.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The stack that is measured. Its other end is always the kernel's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The kernel's TCP, over a pair of virtual Ethernet interfaces with segmentation offload.
    Kernel,
    /// ackline over a TUN device with super-packets and checksum offload.
    Tun,
    /// The same, with an application that exchanges chunks instead of copying.
    TunChunks,
    /// As [`Tun`](Self::Tun), divided into [`SHARDS`], each with a queue of the device and a thread
    /// on which its connections' tasks run, too.
    TunShards,
    /// As [`TunShards`](Self::TunShards), with all tasks on the thread of the first.
    TunShardsApart,
    /// ackline over a packet socket on one of a pair of virtual Ethernet interfaces, with the same.
    Packet,
    /// As [`Packet`](Self::Packet), divided as [`TunShards`](Self::TunShards).
    PacketShards,
}

impl Who {
    pub(crate) const ALL: [Self; 7] = [
        Self::Kernel,
        Self::Tun,
        Self::TunChunks,
        Self::TunShards,
        Self::TunShardsApart,
        Self::Packet,
        Self::PacketShards,
    ];
    /// Those for which there are targets.
    pub(crate) const OURS: [Self; 2] = [Self::Tun, Self::Packet];

    const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Tun => "ackline-tun",
            Self::TunChunks => "ackline-tun-chunks",
            Self::TunShards => "ackline-tun-shards",
            Self::TunShardsApart => "ackline-tun-shards-apart",
            Self::Packet => "ackline-packet",
            Self::PacketShards => "ackline-packet-shards",
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Kernel => "kernel, veth with TSO",
            Self::Tun => "ackline, TUN",
            Self::TunChunks => "ackline, TUN, chunks",
            Self::TunShards => "ackline, TUN, two shards",
            Self::TunShardsApart => "ackline, TUN, two shards, all tasks on one thread",
            Self::Packet => "ackline, AF_PACKET",
            Self::PacketShards => "ackline, AF_PACKET, two shards",
        }
    }
}

/// Of a contestant that is divided.
pub(crate) const SHARDS: usize = 2;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Traffic(Act),
    /// The kernel's clients, [`CLIENTS`] at once, connect to the measured end, ask for a byte and
    /// read until it closes.
    Serve,
    /// The kernel's clients connect to the measured end while forged SYNs come.
    Flood,
}

/// That ask at once.
pub(crate) const CLIENTS: usize = 100;

impl What {
    fn all() -> impl Iterator<Item = Self> {
        Act::all().map(Self::Traffic).chain([Self::Serve, Self::Flood])
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Traffic(act) => act.fmt(f),
            Self::Serve => write!(f, "serve-{CLIENTS}"),
            Self::Flood => write!(f, "syn-flood"),
        }
    }
}

/// What the measured end does with connections. It opens them; the kernel at the other end listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// It sends on so many connections at once.
    Send { flows: usize },
    /// It receives on so many.
    Receive { flows: usize },
    /// It sends a byte, and waits until it comes back, while it sends on
    /// [other](Asker::senders) connections.
    RoundTrip { asker: Asker },
    /// It sends on one connection, with writes of so many bytes.
    Write { bytes: usize },
}

/// Which code of the measured end sends the byte and waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A task among others.
    Task,
    /// The future of `block_on`, as `main` is on tokio's current_thread runtime.
    Main,
}

impl Asker {
    pub(crate) const ALL: [Self; 2] = [Self::Task, Self::Main];

    /// Connections that send beside it.
    pub(crate) const fn senders(self) -> usize {
        match self {
            Self::Task => 10,
            Self::Main => 1,
        }
    }
}

/// Bytes of a write and of a read, unless a case says otherwise.
pub(crate) const CHUNK: usize = 64 << 10;
/// Bytes of a small write.
pub(crate) const SMALL: usize = 8 << 10;

impl Act {
    /// Numbers of busy connections.
    pub(crate) const FLOWS: [usize; 5] = [1, 10, 100, 1_000, 10_000];
    /// Those for which stacks are divided.
    pub(crate) const DIVIDED: [usize; 3] = [1, 100, Self::CROWD];
    /// From this number on, a measurement takes longer.
    pub(crate) const CROWD: usize = 10_000;

    /// In the order of the measurements.
    fn all() -> impl Iterator<Item = Self> {
        let bulk = Self::FLOWS.into_iter().flat_map(|flows| [Self::Send { flows }, Self::Receive { flows }]);
        let trips = Asker::ALL.map(|asker| Self::RoundTrip { asker });
        bulk.chain(trips).chain([SMALL, CHUNK].map(|bytes| Self::Write { bytes }))
    }

    /// Of the measured end.
    pub(crate) const fn connections(self) -> usize {
        match self {
            Self::Send { flows } | Self::Receive { flows } => flows,
            Self::RoundTrip { asker } => asker.senders() + 1,
            Self::Write { .. } => 1,
        }
    }

    /// How long it is measured, if others are for `length`: each flow of a crowd should get many
    /// turns.
    pub(crate) fn length(self, length: Duration) -> Duration {
        if self.connections() >= Self::CROWD { length * 6 } else { length }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { flows } => write!(f, "send-{flows}"),
            Self::Receive { flows } => write!(f, "receive-{flows}"),
            Self::RoundTrip { asker: Asker::Task } => write!(f, "round-trip"),
            Self::RoundTrip { asker: Asker::Main } => write!(f, "round-trip-main"),
            Self::Write { bytes } => write!(f, "write-{bytes}"),
        }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) who: Who,
    pub(crate) what: What,
}

impl Case {
    pub(crate) const fn traffic(who: Who, act: Act) -> Self {
        Self { who, what: What::Traffic(act) }
    }

    pub(crate) const fn serve(who: Who) -> Self {
        Self { who, what: What::Serve }
    }

    pub(crate) const fn flood(who: Who) -> Self {
        Self { who, what: What::Flood }
    }

    /// Every case, a contestant's one after the other's for each act.
    pub(crate) fn all() -> Vec<Self> {
        let cases = What::all().flat_map(|what| Who::ALL.map(|who| Self { who, what }));
        // Between two kernels a direction is like the other.
        let cases = cases.filter(|&case| case.who != Who::Kernel || case == case.kernels());
        let bulk = |what| matches!(what, What::Traffic(Act::Send { .. } | Act::Receive { .. }));
        let sharded = |what| match what {
            What::Traffic(Act::Send { flows } | Act::Receive { flows }) => Act::DIVIDED.contains(&flows),
            what => what == What::Serve,
        };
        let has = |case: &Self| match case.who {
            Who::TunChunks => bulk(case.what),
            Who::TunShards | Who::PacketShards => sharded(case.what),
            Who::TunShardsApart => sharded(case.what) && case.what != What::Serve,
            Who::Kernel | Who::Tun | Who::Packet => true,
        };
        cases.filter(has).collect()
    }

    /// The kernel's case that it is compared with.
    pub(crate) fn kernels(self) -> Self {
        let what = match self.what {
            What::Traffic(Act::Receive { flows }) => What::Traffic(Act::Send { flows }),
            what => what,
        };
        Self { who: Who::Kernel, what }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.who.name(), self.what)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::all().into_iter().find(|case| case.to_string() == name);
        found.ok_or_else(|| format!("there is no case {name:?} (--list)"))
    }
}
