//! The network of one measurement.

use crate::case::{Act, Case, Contestant, Link, Who};
use crate::ends::gvisor::Program;
use crate::ends::uring::Uring;
pub(crate) use crate::ground::{HERE, PEER, PORT, PREFIX, gain_rights};
use crate::ground::{HERE_VETH, Outcome, namespace, packet, set_up, tun, with_kernel, without_stack};
use ackline_runtime::device::Device;
use ackline_runtime::device::af_packet::AfPacketConfig;
use ackline_runtime::device::tun::TunConfig;
use ackline_runtime::netns::Namespace;

/// Of a program that makes it itself.
const TUN_NAME: &str = "tun0";

pub(crate) struct Net {
    /// Where the kernel's end is.
    pub(crate) peer: Namespace,
    pub(crate) here: Here,
}

/// Where the measured end is.
pub(crate) enum Here {
    /// The kernel's TCP in another namespace.
    Kernel(Namespace),
    Device(Box<dyn Device>),
    /// gVisor's netstack on a device of its own.
    Program(Program),
}

impl Net {
    pub(crate) fn new(case: &Case) -> Outcome<Self> {
        let Case { contestant: Contestant { who, link, .. }, act } = *case;
        let peer = namespace()?;
        let here = match link {
            _ if who == Who::Gvisor => Here::Program(program(&peer, link, act)?),
            Link::Tun => Here::Device(Box::new(tun(&peer, |config| config)?)),
            Link::TunPlain => Here::Device(Box::new(tun(&peer, TunConfig::plain)?)),
            Link::TunUring => Here::Device(Box::new(Uring::new(tun(&peer, TunConfig::plain)?)?)),
            Link::Veth => Here::Kernel(with_kernel(&peer)?),
            Link::Packet => Here::Device(Box::new(packet(&peer, |config| config)?.0)),
            Link::PacketPlain => Here::Device(Box::new(packet(&peer, AfPacketConfig::plain)?.0)),
        };
        Ok(Self { peer, here })
    }
}

/// gVisor's program in a namespace that lives as long as it.
fn program(peer: &Namespace, link: Link, act: Act) -> Outcome<Program> {
    if link == Link::TunPlain {
        return peer.run(|| {
            let program = Program::start(link, TUN_NAME, act)?;
            set_up(TUN_NAME, Some(PEER)).map(|_| program)
        })?;
    }
    let (there, _) = without_stack(peer)?;
    there.run(|| Program::start(link, HERE_VETH, act))?
}
