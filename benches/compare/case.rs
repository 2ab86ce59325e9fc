//! What is measured: who, over which device, doing what.

use std::fmt;
use std::str::FromStr;

/// What watches a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    /// A capture of all headers.
    pub(crate) capture: Option<SuperPackets>,
    /// A trace of all events.
    pub(crate) trace: bool,
}

/// How a capture writes super-packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuperPackets {
    /// As the device gets them.
    Whole,
    /// As the packets that they become on the wire.
    Split,
}

/// What the program around a stack is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Worker threads of its tokio runtime; `None`: a runtime on the calling thread alone.
    pub(crate) workers: Option<usize>,
    pub(crate) access: Access,
}

/// How a program exchanges data with its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    InPlace,
    /// `read` and `write_all` of 64 KiB.
    Copies,
    /// The same into and out of queues of chunks, which lead to tasks on a thread of the stack's
    /// own.
    Queues,
}

/// The stack that is measured. Its other end is always the kernel's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Kernel,
    /// With an ACK policy; `None`: the default one.
    Ackline(Option<&'static str>),
    /// With a capture of all headers, a trace or both.
    Observed(Observed),
    /// In another program than the one of the other cases.
    Within(Program),
    Smoltcp,
    /// gVisor's netstack.
    Gvisor,
    /// Exchanges packets with the kernel and does nothing else that a TCP does.
    Loop,
}

/// What joins the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// A pair of virtual Ethernet interfaces, segmentation offload on.
    Veth,
    /// A TUN device with super-packets and checksum offload.
    Tun,
    /// A TUN device that carries single packets with complete checksums.
    TunPlain,
    /// The same, read and written through io_uring.
    TunUring,
    /// A packet socket on one of a pair of virtual Ethernet interfaces, with super-packets and
    /// checksum offload.
    Packet,
    /// The same, sending single packets with complete checksums.
    PacketPlain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// As the tables have it.
    pub(crate) label: &'static str,
    pub(crate) who: Who,
    pub(crate) link: Link,
    /// Congestion control of the kernel's TCP, at either end; `None`: what the machine has by
    /// default.
    pub(crate) kernel_cc: Option<&'static str>,
}

/// Acknowledges at most every 64th segment.
pub(crate) const FEWER_ACKS: &str = "delayed:segments=64,delay=5ms";

pub(crate) const KERNEL: Contestant = contestant("kernel", "kernel, veth with TSO", Who::Kernel, Link::Veth);
pub(crate) const LOOP_TUN: Contestant = contestant("loop-tun", "loop, TUN", Who::Loop, Link::Tun);
pub(crate) const TUN: Contestant = contestant("ackline-tun", "ackline, TUN", Who::Ackline(None), Link::Tun);
pub(crate) const LOOP_PLAIN: Contestant =
    contestant("loop-plain", "loop, plain TUN", Who::Loop, Link::TunPlain);
pub(crate) const SMOLTCP: Contestant =
    contestant("smoltcp", "smoltcp, plain TUN", Who::Smoltcp, Link::TunPlain);
pub(crate) const GVISOR_PLAIN: Contestant =
    contestant("gvisor-plain", "gVisor, plain TUN", Who::Gvisor, Link::TunPlain);
pub(crate) const PLAIN: Contestant =
    contestant("ackline-plain", "ackline, plain TUN", Who::Ackline(None), Link::TunPlain);
pub(crate) const PLAIN_FEWER_ACKS: Contestant = contestant(
    "ackline-plain-fewer-acks",
    "ackline, plain TUN, fewer ACKs",
    Who::Ackline(Some(FEWER_ACKS)),
    Link::TunPlain,
);

pub(crate) const LOOP_URING: Contestant =
    contestant("loop-uring", "loop, plain TUN, io_uring", Who::Loop, Link::TunUring);
pub(crate) const URING: Contestant =
    contestant("ackline-uring", "ackline, plain TUN, io_uring", Who::Ackline(None), Link::TunUring);

pub(crate) const LOOP_PACKET: Contestant =
    contestant("loop-packet", "loop, AF_PACKET", Who::Loop, Link::Packet);
pub(crate) const PACKET: Contestant =
    contestant("ackline-packet", "ackline, AF_PACKET", Who::Ackline(None), Link::Packet);
pub(crate) const GVISOR_PACKET: Contestant =
    contestant("gvisor-packet", "gVisor, AF_PACKET", Who::Gvisor, Link::Packet);
const PACKET_PLAIN: Contestant =
    contestant("ackline-packet-plain", "ackline, plain AF_PACKET", Who::Ackline(None), Link::PacketPlain);

/// The same congestion control as ackline's default. One that paces by timers (BBR) would be all
/// that is measured.
const KERNEL_CC: &str = ackline::registry::DEFAULT_CC;

pub(crate) const KERNEL_DEFAULT_CC: Contestant = with_default_cc("kernel-default-cc", KERNEL);
pub(crate) const LOOP_TUN_DEFAULT_CC: Contestant = with_default_cc("loop-tun-default-cc", LOOP_TUN);
pub(crate) const TUN_DEFAULT_CC: Contestant = with_default_cc("ackline-tun-default-cc", TUN);

pub(crate) const TUN_CAPTURED: Contestant =
    observed("ackline-tun-pcap", "ackline, TUN, captured", Some(SuperPackets::Whole), false);
pub(crate) const TUN_CAPTURED_SPLIT: Contestant =
    observed("ackline-tun-pcap-split", "ackline, TUN, captured, split", Some(SuperPackets::Split), false);
pub(crate) const TUN_TRACED: Contestant = observed("ackline-tun-trace", "ackline, TUN, traced", None, true);
pub(crate) const TUN_CAPTURED_AND_TRACED: Contestant =
    observed("ackline-tun-pcap-trace", "ackline, TUN, captured and traced", Some(SuperPackets::Whole), true);

pub(crate) const TUN_COPIES: Contestant =
    within("ackline-tun-copies", "one thread, copies", Program { workers: None, access: Access::Copies });
pub(crate) const TUN_WORKERS: Contestant = within(
    "ackline-tun-workers",
    "two workers, in place",
    Program { workers: Some(2), access: Access::InPlace },
);
pub(crate) const TUN_WORKERS_COPIES: Contestant = within(
    "ackline-tun-workers-copies",
    "two workers, copies",
    Program { workers: Some(2), access: Access::Copies },
);

pub(crate) const TUN_WORKERS_QUEUES: Contestant = within(
    "ackline-tun-workers-queues",
    "two workers, the stack on a thread of its own, queues",
    Program { workers: Some(2), access: Access::Queues },
);

/// In the order of the tables.
pub(crate) const CONTESTANTS: [Contestant; 12] = [
    KERNEL,
    LOOP_TUN,
    TUN,
    LOOP_PACKET,
    PACKET,
    GVISOR_PACKET,
    PACKET_PLAIN,
    LOOP_PLAIN,
    SMOLTCP,
    GVISOR_PLAIN,
    PLAIN,
    PLAIN_FEWER_ACKS,
];

const fn observed(
    name: &'static str,
    label: &'static str,
    capture: Option<SuperPackets>,
    trace: bool,
) -> Contestant {
    contestant(name, label, Who::Observed(Observed { capture, trace }), Link::Tun)
}

const fn within(name: &'static str, label: &'static str, program: Program) -> Contestant {
    contestant(name, label, Who::Within(program), Link::Tun)
}

const fn contestant(name: &'static str, label: &'static str, who: Who, link: Link) -> Contestant {
    Contestant { name, label, who, link, kernel_cc: Some(KERNEL_CC) }
}

/// If the kernel's TCP has the congestion control that is this machine's default.
const fn with_default_cc(name: &'static str, contestant: Contestant) -> Contestant {
    Contestant { name, kernel_cc: None, ..contestant }
}

/// How an end waits for the next byte of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It sleeps until the byte wakes it.
    Blocking,
    /// It asks again and again, and so uses a processor up.
    Busy,
}

/// What the ends do. The measured stack connects; the kernel at the other end listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The measured stack sends bulk data.
    Send { flows: usize },
    /// It receives bulk data.
    Receive { flows: usize },
    /// It sends a byte, and waits until it comes back.
    RoundTrip { here: Wait, peer: Wait },
    /// It opens connections, sends a byte on each, and closes when the other end has closed.
    Open { at_once: usize },
}

impl Act {
    /// Several flows, or connections at once, of bulk data and of connections.
    pub(crate) const MANY: usize = 100;

    /// All, in the order of the measurements.
    const ALL: [Self; 9] = [
        Self::Send { flows: 1 },
        Self::Receive { flows: 1 },
        Self::Send { flows: Self::MANY },
        Self::Receive { flows: Self::MANY },
        Self::RoundTrip { here: Wait::Blocking, peer: Wait::Blocking },
        Self::RoundTrip { here: Wait::Busy, peer: Wait::Blocking },
        Self::RoundTrip { here: Wait::Busy, peer: Wait::Busy },
        Self::Open { at_once: 1 },
        Self::Open { at_once: Self::MANY },
    ];
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { flows } => write!(f, "send-{flows}"),
            Self::Receive { flows } => write!(f, "receive-{flows}"),
            Self::RoundTrip { here, peer } => write!(f, "round-trip-{here}-{peer}"),
            Self::Open { at_once } => write!(f, "open-{at_once}"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocking => "blocking",
            Self::Busy => "busy",
        })
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) contestant: Contestant,
    pub(crate) act: Act,
}

impl Case {
    /// Every case that makes sense, a contestant's one after the other's for each act.
    pub(crate) fn all() -> Vec<Self> {
        let with_default_cc = [KERNEL_DEFAULT_CC, LOOP_TUN_DEFAULT_CC, TUN_DEFAULT_CC];
        let observed = [TUN_CAPTURED, TUN_CAPTURED_SPLIT, TUN_TRACED, TUN_CAPTURED_AND_TRACED];
        let programs = [TUN_COPIES, TUN_WORKERS, TUN_WORKERS_COPIES, TUN_WORKERS_QUEUES];
        let rings = [LOOP_URING, URING];
        let contestants = || {
            let others = with_default_cc.into_iter().chain(observed).chain(programs).chain(rings);
            CONTESTANTS.into_iter().chain(others)
        };
        let cases = Act::ALL
            .into_iter()
            .flat_map(|act| contestants().map(move |contestant| Self { contestant, act }));
        cases.filter(Self::makes_sense).collect()
    }

    fn makes_sense(&self) -> bool {
        let Contestant { who, link, kernel_cc, .. } = self.contestant;
        if kernel_cc.is_none() {
            // It matters only if the kernel sends bulk data.
            return match self.act {
                Act::Send { flows: 1 } => who == Who::Kernel,
                Act::Receive { flows: 1 } => who != Who::Kernel,
                _ => false,
            };
        }
        match (who, self.act) {
            // With the same at both ends, a direction is like the other.
            (Who::Kernel, Act::Receive { .. }) => false,
            (_, act) if link == Link::TunUring => {
                matches!(act, Act::Send { flows: 1 } | Act::Receive { flows: 1 })
            }
            (_, act) if link == Link::PacketPlain => matches!(act, Act::Send { .. } | Act::Receive { .. }),
            (Who::Ackline(Some(_)), act) => matches!(act, Act::Receive { .. }),
            (Who::Observed(_), act) => matches!(act, Act::Send { flows: 1 } | Act::Receive { flows: 1 }),
            (Who::Within(Program { workers, access }), act) => match act {
                Act::Send { .. } | Act::Receive { .. } => true,
                // A byte is copied anyway, and so are the few of a short connection.
                Act::RoundTrip { here: Wait::Blocking, peer: Wait::Blocking } | Act::Open { .. } => {
                    workers.is_some() && access == Access::InPlace
                }
                Act::RoundTrip { .. } => false,
            },
            (Who::Loop, act) => match act {
                Act::Send { flows } | Act::Receive { flows } => flows == 1,
                Act::RoundTrip { here, .. } => here == Wait::Blocking && link != Link::TunPlain,
                Act::Open { .. } => false,
            },
            (Who::Smoltcp | Who::Gvisor, Act::RoundTrip { here, .. }) => here == Wait::Blocking,
            (Who::Ackline(None), Act::RoundTrip { here, .. }) => {
                here == Wait::Blocking || link != Link::TunPlain
            }
            _ => true,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.contestant.name, self.act)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::all().into_iter().find(|case| case.to_string() == name);
        found.ok_or_else(|| format!("there is no case {name:?} (--list)"))
    }
}
