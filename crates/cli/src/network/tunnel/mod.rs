//! The stack of a command that meets the world: a host of its own behind a device.
//!
//! `plan` checks what the command line says, `open` makes or opens the device, `start` starts the
//! stack on it.

mod ethernet;
mod raw;
mod tun;

use crate::args::capture::PcapLink;
use crate::args::values::Destination;
use crate::args::{PacingKind, TunnelArgs};
use crate::failure::{Exit, Failure};
use crate::network::peer;
use crate::settings::Settings;
use ackline::core::config::KeepAlive;
use ackline::core::{ConnConfig, Duration as CoreDuration};
use ackline::runtime::stack::Builder;
use ackline::runtime::stack::Shards;
use ackline::runtime::{Device, Pacing, Stack};
use ethernet::{Ethernet, Medium};
use ipnet::IpNet;
use raw::Raw;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tun::Tun;

/// Time between two looks at whether the interface is up.
const LOOK_AT_LINK: Duration = Duration::from_millis(250);

/// Notices within two and a half minutes that a silent peer has vanished: RFC 9293, section 3.8.4.
/// A path that is there for two seconds of every five lets one of these probes through.
pub(crate) const PROBES: KeepAlive = KeepAlive {
    idle: CoreDuration::from_secs(60),
    interval: CoreDuration::from_secs(10),
    spread: CoreDuration::from_secs(5),
    count: 6,
};

/// A device and the stack's place behind it, checked as far as that can be done without touching
/// the system.
#[derive(Debug)]
pub(crate) struct Tunnel {
    device: Kind,
    busy_poll: Duration,
    /// How the driver waits for departures.
    pacing: Pacing,
    shards: Shards,
}

#[derive(Debug)]
enum Kind {
    Tun(Tun),
    Ethernet(Ethernet),
    Raw(Raw),
}

/// What a command needs ports for, if the stack has only some of the host's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PortsFor {
    /// A listener on this one.
    Listener(u16),
    /// A number of connections.
    Connections(u16),
}

impl From<PacingKind> for Pacing {
    fn from(kind: PacingKind) -> Self {
        match kind {
            PacingKind::Timer => Self::Timer,
            PacingKind::Spin => Self::spin(),
        }
    }
}

impl TunnelArgs {
    /// Completes what the command line leaves open. `wanted`: an address that the stack must have,
    /// behind the name of the option that says so.
    pub(crate) fn plan(
        &self,
        wanted: Option<(&str, IpAddr)>,
        ports_for: PortsFor,
    ) -> Result<Tunnel, Failure> {
        let device = match (&self.dev, &self.socket, &self.raw) {
            (Some(dev), ..) => Kind::Ethernet(Ethernet::plan(self, Medium::Interface(dev.clone()))?),
            (_, Some(path), _) => Kind::Ethernet(Ethernet::plan(self, Medium::Socket(path.clone()))?),
            (.., Some(name)) => Kind::Raw(Raw::plan(self, name, ports_for)?),
            (None, None, None) => Kind::Tun(Tun::plan(self, wanted.map(|(_, address)| address))?),
        };
        let busy_poll = self.busy_poll.unwrap_or_default();
        let tunnel = Tunnel { device, busy_poll, pacing: self.pacing.into(), shards: self.shards };
        let addresses = tunnel.addresses();
        if let Some((option, address)) = wanted
            && !addresses.contains(&address)
        {
            let known: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            return Err(Failure::usage(format!(
                "{option} {address} is not an address of the stack, which has {} (--local)",
                known.join(" and ")
            )));
        }
        Ok(tunnel)
    }
}

impl TunnelArgs {
    /// Puts the blame for a transfer that made no progress on the interface, if that is down.
    pub(crate) fn blame(&self, stack: &Stack, failure: Failure) -> Failure {
        if failure.exit == Exit::Network && stack.device_stats().down {
            let name = self.dev.as_ref().or(self.raw.as_ref()).unwrap_or(&self.tun);
            Failure::new(Exit::Device, format!("the interface {name} is down: {failure}"))
        } else {
            failure
        }
    }
}

impl Tunnel {
    /// The stack's addresses.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        match &self.device {
            Kind::Tun(tun) => tun.addresses(),
            Kind::Ethernet(ethernet) => ethernet.addresses(),
            Kind::Raw(raw) => raw.addresses(),
        }
    }

    /// The addresses at which the stack reaches this machine's kernel: behind a TUN device.
    pub(crate) fn kernel_ends(&self) -> Vec<IpAddr> {
        match &self.device {
            Kind::Tun(tun) => tun.kernel_ends(),
            Kind::Ethernet(_) | Kind::Raw(_) => Vec::new(),
        }
    }

    /// The device in a few words, such as `TUN ack0`.
    pub(crate) fn name(&self) -> String {
        match &self.device {
            Kind::Tun(tun) => format!("TUN {}", tun.interface()),
            Kind::Ethernet(ethernet) => ethernet.title(),
            Kind::Raw(raw) => raw.title(),
        }
    }

    /// The addresses of `to` that the stack can connect to, in the resolver's order.
    pub(crate) fn resolve(&self, to: &Destination) -> Result<Vec<SocketAddr>, Failure> {
        match &self.device {
            Kind::Tun(tun) => peer::resolve(to, &tun.addresses(), &tun.kernel_ends()),
            Kind::Ethernet(ethernet) => {
                ethernet.reachable(to, peer::resolve(to, &ethernet.addresses(), &[])?)
            }
            Kind::Raw(raw) => raw.reachable(to, peer::resolve(to, &raw.addresses(), &[])?),
        }
    }

    /// Opens the device; a TUN interface is made if there is none of its name.
    pub(crate) fn open(&self) -> Result<Box<dyn Device>, Failure> {
        match &self.device {
            Kind::Tun(tun) => Ok(Box::new(tun.open()?)),
            Kind::Ethernet(ethernet) => ethernet.open(),
            Kind::Raw(raw) => Ok(Box::new(raw.open()?)),
        }
    }

    /// Says when the interface goes down or comes up, for as long as it is polled.
    pub(crate) async fn watch(&self, stack: &Stack, say: impl Fn(&str)) -> Infallible {
        let mut was_down = false;
        loop {
            tokio::time::sleep(LOOK_AT_LINK).await;
            let down = stack.device_stats().down;
            if down != was_down {
                let what = if down { "is down: nothing moves until it is up" } else { "is up again" };
                say(&format!("the interface {} {what}", self.interface()));
                was_down = down;
            }
        }
    }

    /// The name of its interface.
    pub(crate) fn interface(&self) -> &str {
        match &self.device {
            Kind::Tun(tun) => tun.interface(),
            Kind::Ethernet(ethernet) => ethernet.interface(),
            Kind::Raw(raw) => raw.interface(),
        }
    }

    /// Its interface, and what packets begin with there.
    pub(crate) fn link(&self) -> (&str, PcapLink) {
        let link = match &self.device {
            Kind::Tun(_) | Kind::Raw(_) => PcapLink::Raw,
            Kind::Ethernet(_) => PcapLink::Ethernet,
        };
        (self.interface(), link)
    }

    /// Starts a stack with the tunnel's addresses on `device`, inside a tokio runtime. `tune`
    /// changes the settings of its connections.
    pub(crate) fn start(
        &self,
        device: Box<dyn Device>,
        settings: &Settings,
        tune: impl FnOnce(&mut ConnConfig),
    ) -> Result<Stack, Failure> {
        let shared = match &self.device {
            Kind::Tun(_) => false,
            Kind::Ethernet(ethernet) => ethernet.shares_address(),
            Kind::Raw(_) => true,
        };
        let builder = configured(device, &self.addresses(), settings, tune)?
            // The kernel's own datagrams come here, too.
            .configure(|endpoint| endpoint.refuse_datagrams = !shared);
        spawn(builder.busy_poll(self.busy_poll).pacing(self.pacing).shards(self.shards))
    }
}

/// Starts a stack on `device`, inside a tokio runtime. `tune` changes the settings of its
/// connections.
pub(crate) fn start(
    device: impl Device + 'static,
    addresses: &[IpAddr],
    settings: &Settings,
    tune: impl FnOnce(&mut ConnConfig),
) -> Result<Stack, Failure> {
    spawn(configured(device, addresses, settings, tune)?)
}

/// Starts a stack on `device` that takes what comes for any address, inside a tokio runtime.
/// Connections are probed: whoever vanishes says nothing.
pub(crate) fn start_for_all(
    device: impl Device + 'static,
    settings: &Settings,
    shards: Shards,
) -> Result<Stack, Failure> {
    let builder = configured(device, &[], settings, |connections| connections.keep_alive = Some(PROBES))?
        .shards(shards);
    let most = descriptor_limit() / 2;
    spawn(builder.any_address().configure(|host| host.max_udp_flows = host.max_udp_flows.min(most)))
}

fn configured(
    device: impl Device + 'static,
    addresses: &[IpAddr],
    settings: &Settings,
    tune: impl FnOnce(&mut ConnConfig),
) -> Result<Builder, Failure> {
    let connections = settings.connections(tune)?;
    let mut outcome = Ok(());
    let mut builder = Stack::builder(device)
        .connections(connections)
        .schedulers(settings.scheduler.clone())
        .configure(|endpoint| outcome = settings.host(endpoint));
    outcome?;
    for &address in addresses {
        builder = builder.address(address);
    }
    Ok(builder)
}

fn spawn(builder: Builder) -> Result<Stack, Failure> {
    builder.spawn().map_err(|error| Failure::system("start the TCP stack", &error))
}

/// The tokio runtime of a command: one thread, so that what it costs can be told.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    build(&mut tokio::runtime::Builder::new_current_thread())
}

/// Builds a runtime with all of tokio's drivers.
pub(crate) fn build(builder: &mut tokio::runtime::Builder) -> Result<tokio::runtime::Runtime, Failure> {
    let refused = |error: &io::Error| Failure::system("start the runtime", error);
    descriptors(RUNTIME_DESCRIPTORS).map_err(|error| refused(&error))?;
    builder.enable_all().build().map_err(|error| refused(&error))
}

/// What a process's first runtime opens: epoll twice and what wakes it, the pair of sockets for
/// signals and a duplicate of one.
const RUNTIME_DESCRIPTORS: usize = 6;

/// Fails if the process cannot open `count` more descriptors. tokio panics if it has none left for
/// signals.
fn descriptors(count: usize) -> io::Result<()> {
    let opened: rustix::io::Result<Vec<_>> =
        (0..count).map(|_| rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)).collect();
    Ok(opened.map(drop)?)
}

/// Descriptors that this process may have, once it has [claimed](claim_descriptors) them.
pub(crate) fn descriptor_limit() -> u32 {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// Raises the soft limit of descriptors to the hard one. That is low for programs that use
/// select(2), which this one does not; those that it starts keep theirs if they are started before.
pub(crate) fn claim_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Whoever is refused that has what it had.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The program that runs, for what is to be done with it once.
fn program_path() -> String {
    std::env::current_exe()
        .map_or_else(|_| "the ackline program".to_owned(), |path| path.display().to_string())
}

const fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// Fails if `addresses`, of `option`, has two of one version of IP.
pub(crate) fn one_per_version(option: &str, addresses: impl Iterator<Item = IpAddr>) -> Result<(), Failure> {
    let (v4, v6): (Vec<_>, Vec<_>) = addresses.partition(IpAddr::is_ipv4);
    for several in [v4, v6] {
        if let [first, second, ..] = several[..] {
            return Err(Failure::usage(format!("{option} {first} and {second}: only one per IP version")));
        }
    }
    Ok(())
}

/// The network of `nets` that has the IP version of `address`.
fn same_version(nets: &[IpNet], address: IpAddr) -> Option<&IpNet> {
    nets.iter().find(|net| net.addr().is_ipv4() == address.is_ipv4())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser as _;

    /// The device's part of a command line.
    pub(super) fn args(text: &str) -> TunnelArgs {
        let line = format!("ackline send - host:1 {text}");
        match Cli::try_parse_from(line.split_whitespace()).expect("understood").command {
            crate::args::Command::Send(send) => send.tunnel,
            _ => unreachable!("it is send"),
        }
    }

    #[test]
    fn what_is_listened_on_must_be_the_stacks() {
        let wanted = |text: &str, address: [u8; 4]| {
            args(text)
                .plan(Some(("--bind", address.into())), PortsFor::Listener(5001))
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert_eq!(wanted("", [10, 1, 2, 3]), Ok(()));
        for device in ["", "--dev veth0 "] {
            let device = format!("{device}--local 10.0.0.1/24");
            assert_eq!(wanted(&device, [10, 0, 0, 1]), Ok(()));
            let complaint = wanted(&device, [10, 0, 0, 2]).expect_err("refused");
            assert_eq!(
                complaint,
                "--bind 10.0.0.2 is not an address of the stack, which has 10.0.0.1 (--local)"
            );
        }
    }
}
