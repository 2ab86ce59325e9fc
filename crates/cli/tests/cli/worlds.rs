//! One text of options makes the same host everywhere: in a scenario, over a device in memory, and
//! over TUN against the kernel.

use ackline::Registry;
use ackline::core::config::options::{CONN, HOST};
use ackline::core::policy::ack::AckInit;
use ackline::core::policy::cc::CcInit;
use ackline::core::{Duration, EndpointConfig, Instant, ListenOn, Window};
use ackline::registry::Scope;
use ackline::runtime::device::Device;
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::InterfaceAddress;
use ackline::runtime::testing::isolated;
use ackline::runtime::{Error, Stack, TcpStream};
use ackline_lab::{Scenario, simulation};
use std::net::Ipv4Addr;

/// Something of each kind that is not the default.
const SPEC: &str =
    "cc=cubic:beta=0.8,ack=delayed:delay=100ms,rto=dclor:max_probes=1,sack=off,iw=4,sched=drr,default_ttl=9";

const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const PORT: u16 = 5001;

/// What a user can see of a connection, and of the host that it is on.
#[derive(Debug, PartialEq)]
struct Defaults {
    /// As `info()` names them, and the scheduler.
    names: [&'static str; 4],
    /// The policies that the connection's settings make, with all of their parameters.
    policies: [String; 3],
    conn: Vec<(&'static str, String)>,
    /// Without what the device, the machine, the clock or the network decides.
    host: Vec<(&'static str, String)>,
    /// What the handshake found, and the first window in segments.
    sack: bool,
    timestamps: bool,
    mss: u32,
    window: u64,
}

const NOT_OPTIONS: [&str; 9] = [
    "addresses",
    "any_address",
    "mtu",
    "max_super_packet",
    "tx_checksum",
    "granularity",
    "departure_tick",
    "probe_margin",
    "max_memory",
];

fn seen(conn: &ackline::core::Conn<'_>, host: &EndpointConfig, scheduler: &'static str) -> Defaults {
    let (info, config) = (conn.info(), conn.config());
    let policies = &config.policies;
    let options = HOST.iter().filter(|key| !NOT_OPTIONS.contains(&key.name));
    Defaults {
        names: [info.cc, info.ack_policy, info.rto_response, scheduler],
        policies: [
            format!("{:?}", (policies.cc)(&CcInit::new(Instant::ZERO, 1448, Window::from_bytes(14_480)))),
            format!("{:?}", (policies.ack)(&AckInit::new(Instant::ZERO, 1448, None))),
            format!("{:?}", (policies.rto)()),
        ],
        conn: CONN.iter().map(|key| (key.name, key.get(config))).collect(),
        host: options.map(|key| (key.name, key.get(host))).collect(),
        sack: info.sack,
        timestamps: info.timestamps,
        mss: info.snd_mss,
        window: info.snd_cwnd / u64::from(info.snd_mss),
    }
}

/// The text as `[conn]` and `[host]` of a scenario.
fn tables(spec: &str) -> String {
    let registry = Registry::default();
    let options = registry.options(spec).expect("right");
    let of = |scope| -> String {
        let infos = registry.option_infos(scope);
        let pairs = options.iter().filter(|(key, _)| infos.iter().any(|info| info.name == *key));
        pairs.map(|(key, value)| format!("{key} = {value:?}\n")).collect()
    };
    format!("[conn]\n{}[host]\n{}", of(Scope::Conn), of(Scope::Host))
}

/// Opener and acceptor in a simulation, after the handshake and before the first ACK of data.
fn simulated(spec: &str) -> Vec<Defaults> {
    let text = format!(
        r#"
        duration = "1s"
        {}
        [[node]]
        name = "near"
        [[node]]
        name = "far"
        [[link]]
        between = ["near", "far"]
        delay = "5ms"
        [[app]]
        kind = "bulk"
        from = "near"
        to = "far"
        "#,
        tables(spec)
    );
    let scenario = Scenario::parse(&text, "worlds.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut sim = simulation(&scenario, 0, 0).expect("it was parsed");
    sim.run_until(Instant::ZERO + Duration::from_millis(17));
    let mut view = sim.view();
    let mut both = vec![];
    for node in view.hosts() {
        let [(id, _)] = view.conns(node)[..] else { panic!("one connection on each host") };
        let endpoint = view.endpoint(node).expect("a host");
        let (config, scheduler) = (endpoint.config().clone(), endpoint.scheduler().name());
        both.push(seen(&endpoint.conn(id).expect("open"), &config, scheduler));
    }
    both
}

fn stack(device: impl Device + 'static, address: Ipv4Addr, spec: &str) -> Stack {
    let builder = Stack::builder(device).address(address).options(spec).expect("right");
    builder.spawn().expect("a stack")
}

fn live(stream: &TcpStream, stack: &Stack) -> Defaults {
    let (host, scheduler) = (stack.config(), stack.with_scheduler(|scheduler| scheduler.name()));
    stream.with_core(|conn, _| seen(conn, &host, scheduler)).expect("open")
}

/// Opener and acceptor, two stacks with a device in memory between them.
async fn in_memory(spec: &str) -> Vec<Defaults> {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let (near, far) = (stack(near, NEAR, spec), stack(far, FAR, spec));
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let opened = near.connect((FAR, PORT)).await.expect("it listens");
    let (accepted, _) = listener.accept().await.expect("a connection");
    vec![live(&opened, &near), live(&accepted, &far)]
}

/// Opener and acceptor with the kernel as the peer.
async fn against_the_kernel(spec: &str) -> Result<Vec<Defaults>, Error> {
    let network = InterfaceAddress::network(format!("{NEAR}/24").parse().expect("a network"));
    let far = stack(Tun::create(&TunConfig::new().address(network))?, FAR, spec);
    let kernel = tokio::net::TcpListener::bind((NEAR, PORT)).await.expect("a free port");
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let opened = far.connect((NEAR, PORT)).await.expect("the kernel listens");
    let _peer = kernel.accept().await.expect("a connection");
    let _peer = tokio::net::TcpStream::connect((FAR, PORT)).await.expect("the stack listens");
    let (accepted, _) = listener.accept().await.expect("a connection");
    Ok(vec![live(&opened, &far), live(&accepted, &far)])
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// What is the same at both ends of all worlds. `name` is the test's, which is skipped for the
/// kernel's part alone.
fn everywhere(name: &str, spec: &str) -> Defaults {
    let [opener, acceptor] = <[Defaults; 2]>::try_from(simulated(spec)).expect("two hosts");
    assert_eq!(opener, acceptor);
    for end in block_on(in_memory(spec)) {
        assert_eq!(end, opener, "in memory");
    }
    isolated(name, || {
        for end in block_on(against_the_kernel(spec))? {
            assert_eq!(end, opener, "over TUN");
        }
        Ok(())
    });
    opener
}

#[test]
fn without_options_the_worlds_agree() {
    let seen = everywhere("worlds::without_options_the_worlds_agree", "");
    assert_eq!(seen.names, ["cubic", "linux-like", "linux", "flow-queue"]);
    assert_eq!((seen.sack, seen.timestamps, seen.mss, seen.window), (true, true, 1448, 10));
}

#[test]
fn with_one_text_of_options_the_worlds_agree() {
    let seen = everywhere("worlds::with_one_text_of_options_the_worlds_agree", SPEC);
    assert_eq!(seen.names, ["cubic", "delayed", "dclor", "drr"]);
    assert_eq!((seen.sack, seen.timestamps, seen.mss, seen.window), (false, true, 1448, 4));
    let usual = simulated("").swap_remove(0);
    for (policy, usual) in seen.policies.iter().zip(&usual.policies) {
        assert_ne!(policy, usual, "a parameter that is not the default");
    }
    let changed = |now: &[(&'static str, String)], usual: &[(&'static str, String)]| -> Vec<String> {
        let pairs = now.iter().zip(usual).filter(|(now, usual)| now != usual);
        pairs.map(|((key, value), _)| format!("{key}={value}")).collect()
    };
    assert_eq!(changed(&seen.conn, &usual.conn), ["sack=off", "initial_window=4"]);
    assert_eq!(changed(&seen.host, &usual.host), ["default_ttl=9"]);
}
