//! What `ackline proxy` takes.

use super::netns::NetnsAt;
use super::watch::WatchArgs;
use super::{PolicyArgs, values};
use ackline::runtime::MacAddress;
use ackline::runtime::stack::Shards;
use ackline_proxy::{Filtering, NameUse, Publish, Resolver, Upstream};
use clap::{ArgGroup, Args};
use ipnet::IpNet;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// Forward a program's or a network's connections: directly, through SOCKS5 or an HTTP proxy
///
/// TCP connections and UDP flows of the device end in a stack of ackline that accepts any address,
/// and are carried on by --upstream or the rules of --config. A client's SYN is answered when its
/// destination has answered. With COMMAND, the program runs in a network namespace of its own (as
/// an ordinary user, inside a user namespace) and has no other way out.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group = ArgGroup::new("device").required(true).args(["command", "tun", "netns", "fd", "socket"]))]
pub(crate) struct ProxyArgs {
    /// Upstream for connections that no rule matches: direct, socks5://[USER:PASSWORD@]HOST:PORT or
    /// http://... [default: direct]
    ///
    /// All users of this machine can read a command line: put a password into the file of
    /// --config, readable only by you.
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<Upstream>,
    /// Rules, upstreams and limits, in TOML (docs/proxy.md)
    ///
    /// A rule has conditions (to, from, port, domain, server_name, protocol), an action, and
    /// perhaps a rate that all it lets through share: rate = "10mbit", or rate = { up = "2mbit",
    /// down = "10mbit" }.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
    /// Resolver, queried through the upstream: 192.0.2.53, or tcp://192.0.2.53 over TCP; may be
    /// given again [default: this machine's resolvers, queried directly]
    ///
    /// The proxy answers DNS on port 53 of its own address. An upstream without UDP needs tcp://. Of
    /// several, the next one is tried if one does not answer.
    #[arg(long, value_name = "[tcp://]ADDRESS[:PORT]")]
    pub(crate) dns: Vec<Resolver>,
    /// Address of a name that the proxy answers itself, before any resolver: db.test=10.0.0.5; may be
    /// given again
    ///
    /// A name that is given here has these addresses alone, whatever the file of --config has for it.
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = values::host)]
    pub(crate) host: Vec<(String, IpAddr)>,
    /// What names from DNS answers are used for: off, rules (by domain), or upstreams, which then
    /// get a name instead of its address [default: upstreams]
    ///
    /// An upstream gets a name only if the client knows the address by this name alone, and no rule
    /// with "to" was evaluated.
    #[arg(long, value_name = "off|rules|upstreams")]
    pub(crate) names: Option<NameUse>,
    /// Which sources' datagrams reach a client's UDP socket: endpoint-independent (any),
    /// address-dependent (addresses that it has sent to) or address-and-port-dependent [default:
    /// address-dependent]
    #[arg(long, value_name = "FILTERING")]
    pub(crate) udp_filtering: Option<Filtering>,
    /// Do not enforce rules that refuse or drop: forward as if no rule matched (directly if the default
    /// is refuse or drop). --decisions shows what would have happened
    ///
    /// Rules that choose an upstream are enforced, but not their rates; addresses that are never
    /// forwarded stay refused.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Publish a port of this machine: its connections, or datagrams, go to GUEST with the client's
    /// address as their source; may be given again
    ///
    /// 8080:10.0.2.15:80 listens at port 8080 of all IPv4 addresses, [::]:8080:[fd00::15]:80 at
    /// those of IPv6, and 127.0.0.1:5353:10.0.2.15:53/udp at one address for UDP.
    /// 8000-8009:10.0.2.15:9000 is a range. For COMMAND and --netns, GUEST may be left out:
    /// 8080:80. ,proxy=1 or ,proxy=2 begins each connection with a header of the PROXY protocol. A
    /// client of this machine's loopback comes from the proxy's own address. ackline publish
    /// changes what is published while the proxy runs.
    #[arg(short, long, value_name = "[ADDR:]PORT[:GUEST][:PORT][/udp]")]
    pub(crate) publish: Vec<Publish>,
    /// Let clients reach this machine's loopback by the proxy's own address (ACKLINE_BASE of
    /// COMMAND)
    #[arg(long)]
    pub(crate) loopback: bool,
    /// Time that connections get to end by themselves after a signal or the program's end: 5,
    /// 500ms, 2m
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = values::time)]
    pub(crate) grace: Duration,
    /// Leave the program the capabilities of this process, with which it can leave its namespaces
    ///
    /// Without it a program of root has none: it cannot change its interface, mount, trace, or take
    /// other users' rights. A program that makes namespaces of its own (ackline emulate, podman)
    /// needs it.
    #[arg(long, conflicts_with_all = ["tun", "netns", "fd", "socket"])]
    pub(crate) keep_capabilities: bool,
    #[command(flatten)]
    pub(crate) device: ProxyDeviceArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// Write the summary to a file, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) json: Option<PathBuf>,
    /// Append a line of JSON to a file for each decision about a connection or flow: its client,
    /// destination, names, rule and action (docs/proxy.md)
    ///
    /// A new file is readable only by you.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) decisions: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Where clients are.
#[derive(Args)]
#[command(next_help_heading = "Device")]
pub(crate) struct ProxyDeviceArgs {
    /// TUN interface of this machine; made if it does not exist
    ///
    /// Making one needs CAP_NET_ADMIN. Root can make one for an ordinary user: ip tuntap add dev
    /// ack0 mode tun user NAME.
    #[arg(long, value_name = "NAME", value_parser = values::interface)]
    pub(crate) tun: Option<String>,
    /// Network namespace to give a way out: of a process, of a name (ip netns), or at a path
    ///
    /// A TUN interface with an address and a default route is made there, and goes with the proxy,
    /// which stays in its own namespace. Needs CAP_SYS_ADMIN, unless the namespace is that of a
    /// process in a user namespace of yours.
    #[arg(long, value_name = "PID|NAME|PATH")]
    pub(crate) netns: Option<NetnsAt>,
    /// Open descriptor that a parent process has left: of a TUN interface (IFF_TUN | IFF_NO_PI), or
    /// a Unix socket as of --socket
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) fd: Option<i32>,
    /// Unix stream socket of a virtual machine's network: QEMU's -netdev stream,server=on
    ///
    /// The proxy is the router on the Ethernet behind it, with the addresses of --local, and needs
    /// no privileges.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Address of the proxy on the Ethernet of a socket, with its prefix length; once per IP
    /// version. Guests have it as their router
    #[arg(long, value_name = "CIDR", value_parser = values::cidr, conflicts_with_all = ["command", "tun", "netns"])]
    pub(crate) local: Vec<IpNet>,
    /// Do not give the guests of a socket addresses and resolver by DHCP and DHCPv6, nor router and MTU
    /// of IPv4
    #[arg(long, requires = "local")]
    pub(crate) no_dhcp: bool,
    /// Do not advertise the IPv6 networks of --local to the guests of a socket
    #[arg(long, requires = "local")]
    pub(crate) no_ra: bool,
    /// IPv4 address of one guest, by its Ethernet address: 52:54:00:12:34:56=10.0.2.15; may be given
    /// again [default: one that follows from the Ethernet address]
    #[arg(long, value_name = "MAC=IP", value_parser = values::lease, requires = "local", conflicts_with = "no_dhcp")]
    pub(crate) dhcp_host: Vec<(MacAddress, Ipv4Addr)>,
    /// Domain that the guests of a socket append to names, told by DHCP, DHCPv6 and router
    /// advertisements; may be given again
    #[arg(long, value_name = "DOMAIN", requires = "local")]
    pub(crate) search: Vec<String>,
    /// Network that is routed to a new interface: 10.0.0.0/8, default; may be given again [default:
    /// all for --netns]
    #[arg(long, value_name = "CIDR", value_parser = values::route, conflicts_with_all = ["command", "fd", "socket"])]
    pub(crate) route: Vec<IpNet>,
    /// Largest IP packet of the interface, in bytes; of --fd, what it was made with
    #[arg(long, default_value = "1500", value_parser = values::mtu)]
    pub(crate) mtu: u32,
    /// Exchange single packets with complete checksums: no super-packets, no offload
    #[arg(long, conflicts_with_all = ["fd", "socket"])]
    pub(crate) plain: bool,
    /// Divide the stack over this many threads, each with a queue of the TUN interface: a number,
    /// or auto for one per processor
    ///
    /// A new interface is made with several queues; an existing one must have been (ip tuntap add
    /// ... multi_queue).
    #[arg(long, value_name = "N|auto", default_value = "1", value_parser = values::shards,
        conflicts_with_all = ["command", "netns", "fd", "socket"])]
    pub(crate) shards: Shards,
}

/// How connections and flows leave.
#[derive(Args)]
#[command(next_help_heading = "Way out")]
pub(crate) struct OutArgs {
    /// Ethernet interface by which connections and flows leave, instead of the kernel's sockets
    ///
    /// A second stack then opens them, as another host on that network. --sched, --egress-rate and
    /// other policies apply to this stack, so they schedule all that leaves: the data of uploads,
    /// and the ACKs of downloads.
    #[arg(long, value_name = "NAME", value_parser = values::interface, requires = "out_local")]
    pub(crate) out_dev: Option<String>,
    /// Address of that host with its prefix length, which nobody else has there; once per IP
    /// version
    #[arg(long, value_name = "CIDR", value_parser = values::cidr, requires = "out_dev")]
    pub(crate) out_local: Vec<IpNet>,
    /// Router there, to reach other networks; once per IP version
    #[arg(long, value_name = "IP", value_parser = values::address, requires = "out_dev")]
    pub(crate) out_gateway: Vec<IpAddr>,
    /// Ethernet address of that host [default: the interface's own]
    #[arg(long, value_name = "MAC", value_parser = values::mac, requires = "out_dev")]
    pub(crate) out_mac: Option<MacAddress>,
}

const EXAMPLES: &str = "\
Examples:
  ackline proxy --upstream socks5://127.0.0.1:9050 --dns tcp://192.0.2.53 -- curl https://example.org/
  ackline proxy --config rules.toml -- bash
  ackline proxy --config rules.toml --dry-run --decisions decisions.jsonl -- ./agent
  ackline proxy --netns $(podman inspect -f {{.State.Pid}} web) --upstream socks5://127.0.0.1:1080
  ackline proxy --publish 8080:80 -- python3 -m http.server 80
  ackline proxy --socket /tmp/vm.sock --local 10.0.2.2/24 --dhcp-host 52:54:00:12:34:56=10.0.2.15 --publish 2222:10.0.2.15:22
  ackline proxy --tun ack0 --route 10.0.0.0/8 --upstream http://proxy.example.org:3128 --metrics :9464
  ackline proxy --tun ack0 --out-dev wan0 --out-local 192.168.178.2/24 --out-gateway 192.168.178.1 --sched kalampoukas --egress-rate 950kbit

What clients see: an RST if the destination refuses, an ICMP error if it is unreachable or the upstream itself fails, and no reply if it \
does not answer.

Exit status: that of the program, 128+N if signal N ended it; without a program 0 after SIGINT or SIGTERM; others as in ackline --help.";
