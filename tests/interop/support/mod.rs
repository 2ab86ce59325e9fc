//! What all tests need: a stack and the kernel on the two ends of a TUN device.

mod ethtool;
pub(crate) mod stream;
pub(crate) mod watchdog;

use ackline::Registry;
use ackline_runtime::device::af_packet::{AfPacket, AfPacketConfig};
use ackline_runtime::device::impair::{ImpairConfig, Impaired, Monitor};
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use ackline_runtime::testing::isolated;
use ackline_runtime::{Device, Error, Stack};
use ackline_tcp_core::{AcceptConfig, ConnConfig, EndpointConfig, ListenOn};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net;
use tokio::task::JoinHandle;
use watchdog::Watchdog;

/// Declares tests that run inside [`World`]s: `fn name(world) from setup { body }`, where the body
/// may await.
macro_rules! against_kernel {
    ($($(#[$attribute:meta])* fn $name:ident($world:ident) from $setup:expr; $body:block)*) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                let path = concat!(module_path!(), "::", stringify!($name));
                // The harness leaves the crate's name out.
                let name = path.split_once("::").map_or(path, |(_, name)| name);
                $crate::support::run(name, $setup, async |$world| $body);
            }
        )*
    };
}

pub(crate) const KERNEL4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 79, 0, 1));
pub(crate) const STACK4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 79, 0, 2));
pub(crate) const KERNEL6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd79, 0, 0, 0, 0, 0, 0, 1));
pub(crate) const STACK6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd79, 0, 0, 0, 0, 0, 0, 2));

/// The two ends of the Ethernet, the kernel's and the stack's.
const FAR: &str = "far0";
const NEAR: &str = "near0";

/// The longest that a test may take.
const LIMIT: Duration = Duration::from_secs(120);

/// How a test's world is to be.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) offload: bool,
    pub(crate) mtu: u32,
    pub(crate) impair: Option<ImpairConfig>,
    pub(crate) connections: ConnConfig,
    /// Changes the settings of the stack's host.
    pub(crate) host: fn(&mut EndpointConfig),
    /// The egress scheduler's name and parameters.
    pub(crate) scheduler: &'static str,
    /// Files below `/proc/sys/net/ipv4` and what to write into them, for this namespace's kernel.
    pub(crate) sysctls: Vec<(&'static str, &'static str)>,
    /// The stack answers for every address, and the kernel sends it what goes to 203.0.113.0/24.
    pub(crate) tunnel: bool,
    /// The stack is on an Ethernet, in place of a TUN device; features that the card at the far end
    /// does without.
    pub(crate) ethernet: Option<&'static [&'static str]>,
}

impl Setup {
    pub(crate) fn offload() -> Self {
        Self {
            offload: true,
            mtu: 1500,
            impair: None,
            connections: Registry::default().conn_config(),
            host: |_| {},
            scheduler: ackline::registry::DEFAULT_SCHED,
            sysctls: Vec::new(),
            tunnel: false,
            ethernet: None,
        }
    }

    pub(crate) fn plain() -> Self {
        Self { offload: false, ..Self::offload() }
    }

    pub(crate) fn mtu(self, mtu: u32) -> Self {
        Self { mtu, ..self }
    }

    pub(crate) fn impair(self, config: ImpairConfig) -> Self {
        Self { impair: Some(config), ..self }
    }

    pub(crate) fn connections(mut self, change: impl FnOnce(&mut ConnConfig)) -> Self {
        change(&mut self.connections);
        self
    }

    pub(crate) fn host(self, host: fn(&mut EndpointConfig)) -> Self {
        Self { host, ..self }
    }

    pub(crate) fn scheduler(self, scheduler: &'static str) -> Self {
        Self { scheduler, ..self }
    }

    pub(crate) fn sysctl(mut self, name: &'static str, value: &'static str) -> Self {
        self.sysctls.push((name, value));
        self
    }

    pub(crate) fn tunnel(self) -> Self {
        Self { tunnel: true, ..self }
    }

    /// On an Ethernet between two namespaces, this thread's with the kernel whose TCP is tested and
    /// another one.
    pub(crate) fn ethernet(self) -> Self {
        Self { ethernet: Some(&[]), ..self }
    }

    pub(crate) fn far_card_without(self, features: &'static [&'static str]) -> Self {
        Self { ethernet: Some(features), ..self }
    }

    pub(crate) fn start(&self) -> Result<World, Error> {
        for (name, value) in &self.sysctls {
            std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).map_err(|source| {
                if source.kind() == std::io::ErrorKind::PermissionDenied {
                    Error::NotAdmin { action: "change a setting of the kernel's TCP" }
                } else {
                    Error::System { action: "change a setting of the kernel's TCP", source }
                }
            })?;
        }
        if let Some(absent) = self.ethernet {
            return self.start_on_ethernet(absent);
        }
        let mut config = TunConfig::new().mtu(self.mtu).address(network("10.79.0.1/24"));
        if self.mtu >= 1280 {
            config = config.address(network("fd79::1/64"));
        }
        if self.tunnel {
            config = config.route("203.0.113.0/24".parse().expect("a network"));
        }
        let config = if self.offload { config } else { config.plain() };
        let tun = Tun::create(&config)?;
        let place =
            StackInterface { namespace: Namespace::of_thread()?, interface: tun.interface().name.clone() };
        self.start_at(place, tun)
    }

    fn start_on_ethernet(&self, absent: &[&str]) -> Result<World, Error> {
        let namespace = std::thread::scope(|scope| {
            let thread = scope.spawn(Namespace::new_for_thread);
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let mut netlink = Netlink::open()?;
        netlink.add_veth(FAR, NEAR, &namespace)?;
        let index = netlink.interface(FAR)?.index;
        if !absent.is_empty() {
            ethtool::set_features(FAR, absent, false)
                .map_err(|source| Error::System { action: "switch features of a card off", source })?;
        }
        netlink.set_mtu(index, self.mtu)?;
        let networks = ["10.79.0.1/24", "fd79::1/64"].map(network);
        for address in networks {
            netlink.add_address(index, address)?;
        }
        netlink.set_up(index)?;
        let device = namespace.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.interface(NEAR)?.index;
            netlink.set_mtu(index, self.mtu)?;
            netlink.make_quiet(index)?;
            netlink.set_up(index)?;
            let mut config = AfPacketConfig::new(NEAR);
            for own in [STACK4, STACK6] {
                let length = if own.is_ipv4() { 24 } else { 64 };
                config = config.address(format!("{own}/{length}").parse().expect("a network"));
            }
            // Nobody else is there, and a test should not wait to know it.
            config.resolution.claim.probes = 0;
            AfPacket::open(&if self.offload { config } else { config.plain() })
        })??;
        for address in networks {
            netlink.await_address(address.net.addr())?;
        }
        self.start_at(StackInterface { namespace, interface: NEAR.to_owned() }, device)
    }

    fn start_at(&self, place: StackInterface, device: impl Device + 'static) -> Result<World, Error> {
        match self.impair {
            None => self.start_on(place, device, None),
            Some(mut impairments) => {
                impairments.seed = seed(impairments.seed);
                let device = Impaired::new(device, impairments);
                let monitor = device.monitor();
                self.start_on(place, device, Some(monitor))
            }
        }
    }

    fn start_on(
        &self,
        place: StackInterface,
        device: impl Device + 'static,
        path: Option<Monitor>,
    ) -> Result<World, Error> {
        let scheduler = Registry::default().sched(self.scheduler).expect("a scheduler");
        let mut builder = Stack::builder(device)
            .address(STACK4)
            .address(STACK6)
            .scheduler(scheduler())
            .configure(self.host);
        if self.tunnel {
            builder = builder.any_address();
        }
        let (stack, driver) =
            builder.build().map_err(|source| Error::System { action: "start the stack", source })?;
        Ok(World {
            stack,
            path,
            offload: self.offload,
            connections: Arc::new(self.connections.clone()),
            place: Arc::new(place),
            driver: Arc::new(tokio::spawn(driver)),
        })
    }
}

fn network(text: &str) -> InterfaceAddress {
    InterfaceAddress::network(text.parse().expect("a network"))
}

/// Where the stack's interface is.
#[derive(Debug)]
struct StackInterface {
    namespace: Namespace,
    interface: String,
}

/// A stack, with the kernel at the other end of its device. Everything of a test happens on one
/// thread.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) stack: Stack,
    /// The bad path between the two, if there is one.
    pub(crate) path: Option<Monitor>,
    pub(crate) offload: bool,
    connections: Arc<ConnConfig>,
    place: Arc<StackInterface>,
    driver: Arc<JoinHandle<std::io::Result<()>>>,
}

/// Runs `test` in a world of its own, within [`LIMIT`].
pub(crate) fn run(name: &str, setup: Setup, test: impl AsyncFnOnce(World) + Send) {
    let _watchdog = Watchdog::start(name, LIMIT + Duration::from_secs(30));
    isolated(name, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::System { action: "start tokio", source })?;
        runtime.block_on(async {
            let world = setup.start()?;
            let report = Report(world.stack.clone());
            tokio::time::timeout(LIMIT, test(world)).await.unwrap_or_else(|_| panic!("no end in {LIMIT:?}"));
            drop(report);
            Ok(())
        })
    });
}

/// The seed of a test: its own, or the one in the environment. Printed if the test fails.
pub(crate) fn seed(own: u64) -> u64 {
    let seed = std::env::var("ACKLINE_TEST_SEED")
        .ok()
        .map_or(own, |text| text.parse().unwrap_or_else(|_| panic!("ACKLINE_TEST_SEED={text} is no number")));
    eprintln!("ACKLINE_TEST_SEED={seed}");
    seed
}

/// Says what the stack counted, if the test fails.
struct Report(Stack);

impl Drop for Report {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let stats = self.0.stats();
            eprintln!("{:?}, {} packets dropped by it", stats.device, stats.device_drops);
            for (name, value) in stats.counters.iter().filter(|&(_, value)| value > 0) {
                eprintln!("{name:<32} {value}");
            }
        }
    }
}

/// Who opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    Kernel,
    Stack,
}

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ip {
    V4,
    V6,
}

impl Ip {
    pub(crate) fn kernel(self) -> IpAddr {
        if self == Self::V4 { KERNEL4 } else { KERNEL6 }
    }

    pub(crate) fn stack(self) -> IpAddr {
        if self == Self::V4 { STACK4 } else { STACK6 }
    }
}

impl World {
    /// A connection between the two: the kernel's end and the stack's.
    pub(crate) async fn connection(
        &self,
        opens: Opens,
        ip: Ip,
    ) -> (net::TcpStream, ackline_runtime::TcpStream) {
        self.connection_with(opens, ip, |_| {}).await
    }

    /// The same, with a change to the kernel's socket before it connects or listens.
    pub(crate) async fn connection_with(
        &self,
        opens: Opens,
        ip: Ip,
        prepare: impl FnOnce(&net::TcpSocket),
    ) -> (net::TcpStream, ackline_runtime::TcpStream) {
        let socket = match ip {
            Ip::V4 => net::TcpSocket::new_v4(),
            Ip::V6 => net::TcpSocket::new_v6(),
        }
        .expect("a socket");
        prepare(&socket);
        match opens {
            Opens::Kernel => {
                let listener = self.listen(7);
                let connect = socket.connect(SocketAddr::new(ip.stack(), 7));
                let (kernel, accepted) = tokio::join!(connect, listener.accept());
                (kernel.expect("the kernel connects"), accepted.expect("the stack accepts").0)
            }
            Opens::Stack => {
                socket.bind(SocketAddr::new(ip.kernel(), 0)).expect("bound");
                let listener = socket.listen(16).expect("the kernel listens");
                let to = listener.local_addr().expect("bound");
                let (accepted, stream) = tokio::join!(listener.accept(), self.connect(to));
                (accepted.expect("the kernel accepts").0, stream.expect("the stack connects"))
            }
        }
    }

    /// The stack opens a connection.
    pub(crate) async fn connect(
        &self,
        to: impl net::ToSocketAddrs,
    ) -> std::io::Result<ackline_runtime::TcpStream> {
        self.stack.connect_with(to, self.connections.clone()).await
    }

    /// The settings of connections from here on.
    pub(crate) fn use_connections(&mut self, config: ConnConfig) {
        self.connections = Arc::new(config);
    }

    /// The stack listens on a port of every address.
    pub(crate) fn listen(&self, port: u16) -> ackline_runtime::TcpListener {
        let config = AcceptConfig::new(self.connections.clone());
        self.stack.listen_with(ListenOn::Port(port), config).expect("the stack listens")
    }

    /// The name of the stack's interface.
    pub(crate) fn interface(&self) -> &str {
        &self.place.interface
    }

    /// Takes the stack's interface down.
    pub(crate) fn set_down(&self) {
        self.change_interface(Netlink::set_down);
    }

    /// Brings it up again.
    pub(crate) fn set_up(&self) {
        self.change_interface(Netlink::set_up);
    }

    /// Waits until the device has carried that many bytes more, both ways together.
    pub(crate) async fn moves(&self, bytes: u64) {
        let moved = || {
            let device = self.stack.stats().device;
            device.tx_bytes + device.rx_bytes
        };
        let wanted = moved() + bytes;
        while moved() < wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Sets the MTU of both ends of the stack's link.
    pub(crate) fn set_mtu(&self, mtu: u32) {
        let far = || {
            let changed = Netlink::open().and_then(|mut netlink| {
                let index = netlink.interface(FAR)?.index;
                netlink.set_mtu(index, mtu)
            });
            changed.expect("done");
        };
        // The end that sends is never the one with the larger MTU: what the stack sends as soon as
        // it may has to arrive.
        let grows = self.interface() == NEAR && {
            let now = Netlink::open().and_then(|mut netlink| Ok(netlink.interface(FAR)?.mtu));
            now.expect("there") < mtu
        };
        if grows {
            far();
        }
        self.change_interface(|netlink, index| netlink.set_mtu(index, mtu));
        if self.interface() == NEAR && !grows {
            far();
        }
    }

    /// Removes it.
    pub(crate) fn remove_interface(&self) {
        self.change_interface(Netlink::remove);
    }

    fn change_interface(&self, change: impl Fn(&mut Netlink, u32) -> Result<(), Error> + Sync) {
        self.near(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.interface(self.interface())?.index;
            change(&mut netlink, index)
        });
    }

    /// Does something in the namespace of the stack's interface.
    pub(crate) fn near<T: Send>(&self, act: impl FnOnce() -> Result<T, Error> + Send) -> T {
        self.place.namespace.run(act).and_then(|outcome| outcome).expect("done")
    }

    /// Resets that the kernel sent from the namespace of the stack's interface.
    pub(crate) fn near_kernel_resets(&self) -> u64 {
        let text = self.near(|| {
            std::fs::read_to_string("/proc/thread-self/net/snmp")
                .map_err(|source| Error::System { action: "read the kernel's counters", source })
        });
        // A line of names, and a line of values.
        let lines: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with("Tcp:"))
            .map(|line| line.split(' ').collect())
            .collect();
        let column = lines[0].iter().position(|name| *name == "OutRsts").expect("a counter of resets");
        lines[1][column].parse().expect("a number")
    }

    /// The stack's driver ends within a second.
    pub(crate) async fn driver_has_ended(&self) -> bool {
        for _ in 0..100 {
            if self.driver.is_finished() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// The device was used as it was meant to be: it refused nothing, and super-packets went both
    /// ways or not at all.
    pub(crate) fn check_device(&self) {
        let stats = self.stack.stats();
        assert_eq!(stats.device_drops, 0, "packets that the device refused");
        assert_eq!(stats.device.rx_malformed, 0);
        assert_eq!(stats.counters.tcp_in_csum_errors, 0);
        assert_eq!(stats.counters.tcp_in_errs, 0);
    }
}
