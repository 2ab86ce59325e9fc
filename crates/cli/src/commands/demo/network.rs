//! The demo's network: a TUN device in a namespace of its own, or a device in memory.

use super::far_side::{self, FarSide};
use super::{Amount, DOWNLOAD_SEED, FAR, NEAR};
use crate::args::{DemoArgs, DemoDevice};
use crate::failure::Failure;
use crate::network::tunnel;
use crate::settings::Settings;
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::InterfaceAddress;
use ackline::runtime::netns::{Namespace, enter_user_net_namespace};
use ackline::runtime::{Device as _, Error as SetupError, Stack};
use ipnet::{IpNet, Ipv4Net};

pub(super) const INTERFACE: &str = "ack0";
const PREFIX: u8 = 24;

/// What the data travels over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// `None`: a TUN device. Otherwise memory, and why.
    pub(super) in_memory: Option<String>,
    pub(super) offload: bool,
}

/// The open devices.
pub(super) struct Network {
    pub(super) link: Link,
    ends: Ends,
}

enum Ends {
    /// The far end is the kernel.
    Tun(Tun),
    Channel(Channel, Channel),
}

/// Takes the calling process away from the machine's network, if the demo needs one. To be called
/// while the process has one thread.
pub(super) fn isolate(device: DemoDevice) -> Result<(), SetupError> {
    if device == DemoDevice::Channel {
        return Ok(());
    }
    match Namespace::new_for_thread() {
        Ok(_) => Ok(()),
        // An ordinary user, or root of a container without that right.
        Err(error) if error.is_lack_of_rights() => enter_user_net_namespace(),
        Err(other) => Err(other),
    }
}

/// Opens a TUN device; if rights for it or for the namespace are missing, one in memory.
pub(super) fn open(args: &DemoArgs, isolated: Result<(), SetupError>) -> Result<Network, Failure> {
    if args.device == DemoDevice::Channel {
        return Ok(in_memory(args, "asked for".to_owned()));
    }
    let mut config = TunConfig::new().name(INTERFACE).mtu(args.mtu).address(InterfaceAddress::network(
        // The prefix length is a constant that IPv4 has.
        IpNet::V4(Ipv4Net::new_assert(FAR, PREFIX)),
    ));
    if args.plain {
        config = config.plain();
    }
    match isolated.and_then(|()| Tun::create(&config)) {
        Ok(tun) => {
            let offload = tun.caps().max_super_packet > 0;
            Ok(Network { link: Link { in_memory: None, offload }, ends: Ends::Tun(tun) })
        }
        Err(error) if error.is_lack_of_rights() && args.device == DemoDevice::Auto => {
            Ok(in_memory(args, error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

fn in_memory(args: &DemoArgs, why: String) -> Network {
    let mut config = ChannelConfig::default().mtu(args.mtu);
    if args.plain {
        config = config.plain();
    }
    let (near, far) = Channel::pair(config);
    let offload = near.caps().max_super_packet > 0;
    Network { link: Link { in_memory: Some(why), offload }, ends: Ends::Channel(near, far) }
}

impl Network {
    /// Starts both ends, inside a tokio runtime.
    pub(super) fn start(
        self,
        amount: Amount,
        settings: &Settings,
    ) -> Result<(Link, Stack, FarSide), Failure> {
        let near = [NEAR.into()];
        let (stack, far) = match self.ends {
            Ends::Tun(tun) => (
                tunnel::start(tun, &near, settings, |connections| settings.shorten_send_buffer(connections))?,
                far_side::kernel(DOWNLOAD_SEED, amount)?,
            ),
            Ends::Channel(device, other) => (
                tunnel::start(device, &near, settings, |connections| {
                    settings.shorten_send_buffer(connections)
                })?,
                far_side::stack(other, DOWNLOAD_SEED, amount, settings)?,
            ),
        };
        Ok((self.link, stack, far))
    }
}
