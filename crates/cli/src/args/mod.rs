//! The command line. What stands here is what `--help` says.

#[cfg(test)]
mod agreement;
pub(crate) mod bench;
pub(crate) mod capture;
pub(crate) mod column;
pub(crate) mod control;
pub(crate) mod drill;
pub(crate) mod emulate;
pub(crate) mod evaluate;
pub(crate) mod figures;
pub(crate) mod json;
pub(crate) mod limits;
pub(crate) mod metrics;
pub(crate) mod netns;
pub(crate) mod proxy;
pub(crate) mod units;
pub(crate) mod values;
pub(crate) mod watch;

use ackline::Registry;
use ackline::core::config::Ecn;
use ackline::core::policy::spec::PolicyKind;
use ackline::runtime::MacAddress;
use ackline::runtime::priority::Priority;
use ackline::runtime::stack::Shards;
use ackline_lab::PointRange;
use bench::BenchArgs;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use control::{NstatArgs, PublishArgs, SetArgs, SsArgs, TopArgs};
use drill::DrillArgs;
use emulate::{EmulateArgs, EmulatePacing};
use evaluate::EvaluateArgs;
use figures::FigureArgs;
use ipnet::IpNet;
use json::Json;
use proxy::ProxyArgs;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;
use values::{Destination, Limit, ListenAt};
use watch::WatchArgs;

/// A TCP stack in userspace with plug-ins: choose the congestion control, the ACK policy, the
/// timeout response and the egress scheduler. Send and receive real data over a TUN device or an
/// Ethernet, or simulate the same stack in virtual time.
#[derive(Parser)]
#[command(name = "ackline", version, long_version = BUILD.as_str(), max_term_width = 100)]
#[command(after_help = "Examples and exit statuses: ackline --help", after_long_help = TOP_EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The version, and what tells two builds of it apart.
static BUILD: LazyLock<String> = LazyLock::new(|| {
    let commit = ackline_papers::COMMIT.unwrap_or("none: built outside a checkout");
    format!("{}\ncommit {commit}\nengine {}", env!("CARGO_PKG_VERSION"), ackline_papers::ENGINE)
});

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Send(SendArgs),
    Recv(RecvArgs),
    Bench(Box<BenchArgs>),
    Emulate(EmulateArgs),
    Proxy(Box<ProxyArgs>),
    Ss(SsArgs),
    Nstat(NstatArgs),
    Top(TopArgs),
    Set(SetArgs),
    Publish(PublishArgs),
    Explain(ExplainArgs),
    Drill(DrillArgs),
    Sim(SimArgs),
    Merge(MergeArgs),
    Plot(PlotArgs),
    Reproduce(ReproduceArgs),
    Evaluate(EvaluateArgs),
    List(ListArgs),
    New(NewArgs),
    Completions(CompletionsArgs),
}

/// The command line, with the defaults of `registry` in its help.
pub(crate) fn command(registry: &Registry) -> clap::Command {
    let with_default = |arg: clap::Arg| {
        let kind = match arg.get_id().as_str() {
            "cc" => PolicyKind::Cc,
            "ack" => PolicyKind::Ack,
            "rto" => PolicyKind::Rto,
            "sched" => PolicyKind::Sched,
            "ecn" => return add_to_help(arg, "", &format!(" {}", designed_for_ecn(registry))),
            _ => return arg,
        };
        let default = format!(" [default: {}]", registry.default_of(kind));
        add_to_help(arg, &default, &format!("\n\n{}", default.trim()))
    };
    Cli::command().mut_subcommands(|sub| {
        let has_policies = sub.get_arguments().any(|arg| arg.get_id() == "sched");
        if has_policies { sub.mut_args(with_default) } else { sub }
    })
}

/// The help of an option with something more behind it.
fn add_to_help(arg: clap::Arg, short: &str, long: &str) -> clap::Arg {
    let short_help = arg.get_help().map(|help| format!("{help}{short}"));
    let long_help = arg.get_long_help().map(|help| format!("{help}{long}"));
    let arg = if let Some(help) = short_help { arg.help(help) } else { arg };
    if let Some(help) = long_help { arg.long_help(help) } else { arg }
}

/// Which congestion controls ask for ECN by themselves.
fn designed_for_ecn(registry: &Registry) -> String {
    let names = |kind: Ecn| -> String {
        let entries = registry.cc_table().entries().iter().filter(|entry| entry.ecn == kind);
        entries.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
    };
    format!(
        "dctcp for {}; classic for {}; accurate for {}; off for all others",
        names(Ecn::Dctcp),
        names(Ecn::Classic),
        names(Ecn::Accurate)
    )
}

const TOP_EXAMPLES: &str = "\
Examples:
  ackline demo                                    exchange data with the kernel's TCP
  ackline recv --listen 198.18.0.2:5001 -O out    then, elsewhere:  nc -N 198.18.0.2 5001 < file
  nc -l 5001 > copy                               then:  ackline send file 198.18.0.1:5001
  ackline bench -c 198.18.0.1 -R                  measure throughput against a stock iperf3 -s
  ackline ss -tino                                show the connections of running commands
  ackline top                                     follow them on the screen
  ackline nstat                                   show what their counters have counted since the last call
  ackline explain out.pcapng                      tell the story of each connection in a capture
  ackline drill tests/drill                       run packetdrill scripts against the stack
  ackline sim --example fairness > my.toml        get a scenario, then:  ackline sim my.toml
  ackline reproduce a3                            repeat the tables of a paper
  ackline list cc                                 list congestion controls and their parameters

Units: rates take bit, kbit, Mbit, Gbit or K, M, G (10mbit, 10M); sizes take B, K, M, G (64K is 65536 bytes); times \
take ns, us, ms, s, m, h (10s, 250ms). See docs/units.md.

Exit status:
  0      success
  1      data differs, a transfer is incomplete, or a paper's check fails
  2      usage: unknown option, policy or address; error in a scenario
  3      device: no permission, no such interface, name or address in use, interface down or removed
  4      network: peer unreachable, connection refused or reset, no progress in time
  5      file: not found, not readable or writable, disk full
  128+N  ended by signal N (130: interrupted)";

/// Exchange real data with the kernel's TCP and check every byte
///
/// The demo runs in its own network namespace (as an ordinary user, inside a user namespace), so it
/// does not touch the machine's network. It makes a TUN device there, sends to the kernel's TCP,
/// receives from it, hashes every byte at both ends and prints what it measured. If it cannot have
/// a TUN device, two ackline stacks exchange the data over a device in memory; the first line says
/// so.
#[derive(Args)]
#[command(after_long_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Bytes per direction: 500M, 1G [default: 1G]
    ///
    /// With --seconds, the direction ends at whichever comes first; --seconds alone sets no size.
    #[arg(short = 'n', long, value_parser = values::size)]
    pub(crate) size: Option<u64>,
    /// Seconds per direction, or a time with its unit: 5, 500ms, 2m
    #[arg(short = 't', long, value_name = "TIME", value_parser = values::time)]
    pub(crate) seconds: Option<Duration>,
    /// Send single packets with complete checksums: no super-packets, no offload
    #[arg(long)]
    pub(crate) plain: bool,
    /// Largest IP packet of the device, in bytes
    #[arg(long, default_value = "1500", value_parser = values::mtu)]
    pub(crate) mtu: u32,
    /// Device that carries the data
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DemoDevice,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) output: StackOutputArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

const DEMO_EXAMPLES: &str = "\
Examples:
  ackline demo
  ackline demo --seconds 5 --cc reno
  ackline demo --plain --size 200M -v
  ackline demo --json | jq .upload.gbit_s

CPU s is the user and system time of the thread that runs ackline's stack, the application and its hashing, \
including the kernel's work in this thread's system calls. The kernel's sockets run in another thread, which is not \
counted. Retransmissions, round-trip times (smoothed, sampled every 5 ms) and cwnd are those of the sender.

Exit status: 0 if every byte arrived unharmed, 1 if not; others as in ackline --help.";

/// What the demo's data travels over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoDevice {
    /// A TUN device if possible, else memory
    #[default]
    Auto,
    /// A TUN device to the kernel's TCP; fail without one
    Tun,
    /// A device in memory, between two ackline stacks
    Channel,
}

/// Send a file or standard input to any TCP receiver
///
/// The stream is plain bytes, so nc, socat or any other program can receive it. The command
/// succeeds once the receiver has acknowledged every byte and the FIN. It then waits up to two
/// seconds for the receiver to close its side.
///
/// With - the command is a conversation, like nc -N: the receiver's answer goes to standard output
/// as it arrives. The end of standard input closes only this side; the command ends when the
/// receiver closes its own. Reports go to standard error, also with --json. If the reader of
/// standard output goes away, the answer is dropped and sending continues.
#[derive(Args)]
#[command(after_long_help = SEND_EXAMPLES)]
pub(crate) struct SendArgs {
    /// File to send; - sends standard input and prints the answer
    pub(crate) file: PathBuf,
    /// Receiver: a name or an address, and a port; [fd00::1]:5001 for IPv6
    #[arg(value_name = "HOST:PORT")]
    pub(crate) to: Destination,
    #[command(flatten)]
    pub(crate) tunnel: TunnelArgs,
    /// Give up after this time without progress: 10, 500ms, 2m
    ///
    /// A number without a unit is seconds. Connecting counts, too.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) output: StackOutputArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

const SEND_EXAMPLES: &str = "\
Examples (as root, or with a TUN device made for you, see --tun):
  nc -l 5001 > copy &
  ackline send file 198.18.0.1:5001
  ackline send --dev veth0 --local 10.0.0.2/24 file 10.0.0.1:5001
  ackline send --dev eth0 --local 192.168.1.77/24 --gateway 192.168.1.1 file nas.example.org:5001
  ackline send --socket /tmp/passt_1.socket --local 10.0.2.77/24 --gateway 10.0.2.2 file nas.example.org:5001
  ackline send --raw eth0 file nas.example.org:5001
  tar c src | ackline send --cc cubic - 198.18.0.1:5001
  printf 'GET / HTTP/1.0\\r\\n\\r\\n' | ackline send - 198.18.0.1:80 > page
  ackline send --local fd00::2/64 file [fd00::1]:5001

The stack is a host with its own address, --local, behind the TUN device. It answers ping. The kernel's end of the \
device has the address --peer. To reach hosts beyond this machine, let the kernel forward \
(sysctl net.ipv4.ip_forward=1, and a route back or NAT), or use --dev to make the stack a host on the machine's own \
network, at a free address there, or --raw to share the machine's own address.";

/// Receive a byte stream from any TCP sender into a file
///
/// The file gets its name when the sender has finished, so a partial file never looks complete; it
/// is deleted. Only a complete file replaces an existing FILE. Nothing in a directory is replaced.
#[derive(Args)]
#[command(after_long_help = RECV_EXAMPLES)]
pub(crate) struct RecvArgs {
    /// Address to listen on: 198.18.0.2:5001, [fd00::2]:5001, or :5001 for all addresses of the
    /// stack
    #[arg(short, long, value_name = "ADDR:PORT")]
    pub(crate) listen: ListenAt,
    /// File to write, directory to write into, or - for standard output
    ///
    /// The default is standard output. Files in a directory are named ADDR-PORT-N.data. With
    /// --keep, this must be a directory; the default is the current one.
    #[arg(short = 'O', long = "output", value_name = "FILE|DIR|-")]
    pub(crate) target: Option<PathBuf>,
    /// Serve many connections at once, one file each, until SIGINT or SIGTERM
    ///
    /// The signal ends listening. Open connections get --grace to finish; then they are reset. A
    /// second signal resets them at once.
    #[arg(short, long)]
    pub(crate) keep: bool,
    /// Maximum number of connections at once with --keep; others wait
    ///
    /// While others wait, the connection that has been silent longest is dropped once it has been
    /// silent for a tenth of --timeout. Connections that have not sent a byte go first.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max: u16,
    /// Time that connections get to finish after a signal, with --keep: 5, 500ms, 2m
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = values::time)]
    pub(crate) grace: Duration,
    #[command(flatten)]
    pub(crate) tunnel: TunnelArgs,
    /// Give up after this time without progress: 10, 500ms, 2m, or off [default: 2m with --keep,
    /// else off]
    ///
    /// A number without a unit is seconds. Without --keep, waiting for the sender to connect
    /// counts, too.
    #[arg(long, value_name = "TIME", value_parser = values::limit)]
    pub(crate) timeout: Option<Limit>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) output: StackOutputArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

impl RecvArgs {
    /// How long a service bears with a silent connection unless the command line says so. A sender
    /// that pauses for longer is rare, and strangers that only connect must not fill it.
    const KEEP_TIMEOUT: Duration = Duration::from_secs(120);

    /// The time without progress after which a connection is given up.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        match self.timeout {
            Some(Limit::After(limit)) => Some(limit),
            Some(Limit::Off) => None,
            None => self.keep.then_some(Self::KEEP_TIMEOUT),
        }
    }
}

const RECV_EXAMPLES: &str = "\
Examples (as root, or with a TUN device made for you, see --tun):
  ackline recv --listen 198.18.0.2:5001 -O copy      then:  nc -N 198.18.0.2 5001 < file
  ackline recv --listen :5001 | tar t
  ackline recv --keep --listen :5001 -O incoming/ --metrics :9464
  ackline recv --ack immediate --listen [fd00::2]:5001 -O copy
  ackline recv --dev eth0 --local 192.168.1.77/24 --listen :5001 -O copy
  ackline recv --raw eth0 --listen :5001 -O copy

Without --dev and --local, the stack takes the address of --listen, in a /24 (IPv6: /64). Keep-alive probes notice \
within two minutes that a sender has vanished.";

/// Where the stack is: behind a TUN device, with the kernel on the other side, or a host on an
/// Ethernet, an interface's or a socket's.
#[derive(Args)]
#[command(next_help_heading = "Device")]
pub(crate) struct TunnelArgs {
    /// TUN interface; created for the transfer if it does not exist
    ///
    /// Creating one needs CAP_NET_ADMIN. Root can create one for an ordinary user: ip tuntap add
    /// dev ack0 mode tun user NAME; ip addr add 198.18.0.1/24 dev ack0; ip link set ack0 up. An
    /// existing interface keeps its addresses and MTU and needs no --peer.
    #[arg(long, value_name = "NAME", default_value = "ack0", value_parser = values::interface)]
    pub(crate) tun: String,
    /// Ethernet interface (veth, network card) to use instead of a TUN: the stack is a host on its
    /// network
    ///
    /// Needs --local and CAP_NET_RAW (root, or once: setcap cap_net_raw+ep on the program). The
    /// interface and the kernel keep their addresses; the stack answers ARP and neighbour discovery
    /// for its own. List interfaces with: ackline list interfaces.
    #[arg(long, value_name = "NAME", value_parser = values::interface, conflicts_with_all = ["tun", "peer"],
        group = "ethernet")]
    pub(crate) dev: Option<String>,
    /// Unix stream socket of a virtual network to use instead of a TUN: passt's, or that of QEMU's
    /// -netdev stream,server=on
    ///
    /// Needs --local and no privileges. The stack is a host on the Ethernet behind the socket.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["tun", "peer"], group = "ethernet")]
    pub(crate) socket: Option<PathBuf>,
    /// Ethernet interface whose address the stack shares with the kernel, instead of a TUN: for
    /// machines with one address only
    ///
    /// The stack has some of its TCP ports: the one to listen on, or free ones. They are reserved
    /// meanwhile, and a firewall's table that goes with the command keeps the kernel from resetting
    /// what it does not know. Routes and neighbours are the kernel's. Needs CAP_NET_RAW and
    /// CAP_NET_ADMIN.
    #[arg(long, value_name = "NAME", value_parser = values::interface,
        conflicts_with_all = ["tun", "peer", "ethernet"])]
    pub(crate) raw: Option<String>,
    /// TCP ports of the stack on --raw: 5001, or 61000-61007 [default: the one to listen on, or
    /// free ones above 61000]
    #[arg(long, value_name = "LOW-HIGH", value_parser = values::ports, requires = "raw")]
    pub(crate) ports: Option<RangeInclusive<u16>>,
    /// What keeps the kernel from resetting connections on --raw
    #[arg(long, value_enum, default_value_t, requires = "raw")]
    pub(crate) raw_firewall: RawFirewall,
    /// Address of the stack with its prefix length; once per IP version
    ///
    /// The default is 198.18.0.2/24. With --dev and --socket there is no default: choose an address
    /// that nobody else has there. With --raw it is one of the interface's [default: its first of
    /// each IP version].
    #[arg(long, value_name = "CIDR", value_parser = values::cidr)]
    pub(crate) local: Vec<IpNet>,
    /// Address of the kernel's end of a TUN; once per IP version
    ///
    /// The default is the first other address in the network of --local.
    #[arg(long, value_name = "IP", value_parser = values::address)]
    pub(crate) peer: Vec<IpAddr>,
    /// Router on the network of --dev or --socket, to reach other networks; once per IP version
    #[arg(long, value_name = "IP", value_parser = values::address, requires = "ethernet")]
    pub(crate) gateway: Vec<IpAddr>,
    /// Ethernet address of the stack on --dev or --socket [default: the interface's own; on
    /// --socket, a random one]
    ///
    /// Wireless networks and most clouds only carry frames with the interface's own address.
    #[arg(long, value_name = "MAC", value_parser = values::mac, requires = "ethernet")]
    pub(crate) mac: Option<MacAddress>,
    /// Bypass the queueing discipline of --dev: less work, but no fairness to other traffic
    #[arg(long, requires = "dev")]
    pub(crate) qdisc_bypass: bool,
    /// Allow --local to be an address that this machine's kernel also has
    ///
    /// The kernel resets connections that are not its own, so this needs a firewall rule
    /// (docs/devices.md has one for nft).
    #[arg(long, requires = "dev")]
    pub(crate) share_address: bool,
    /// Largest IP packet in bytes [default: 1500 for a new TUN and --socket; with --dev and --raw,
    /// the interface's]
    #[arg(long, value_name = "BYTES", value_parser = values::mtu)]
    pub(crate) mtu: Option<u32>,
    /// Send single packets with complete checksums: no super-packets, no offload
    #[arg(long)]
    pub(crate) plain: bool,
    /// Poll the device for this long after each packet instead of sleeping: --busy-poll=200us
    ///
    /// A packet that arrives while the stack polls costs no wake-up, which takes tens of
    /// microseconds. Polling keeps a processor busy. --busy-poll alone means 1ms.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1ms",
        value_parser = values::short_time)]
    pub(crate) busy_poll: Option<Duration>,
    /// Divide the stack over this many threads, each with a queue of the interface: a number, or
    /// auto for one per processor
    ///
    /// A connection stays on one of them, so this helps many connections, not one. A new TUN
    /// interface is made with several queues; an existing one must have been (ip tuntap add ...
    /// multi_queue). --egress-rate limits what they send together; they then share one queue.
    #[arg(long, value_name = "N|auto", default_value = "1", value_parser = values::shards,
        conflicts_with_all = ["socket", "raw"])]
    pub(crate) shards: Shards,
    /// How to wait for the next departure if pacing or --egress-rate delays packets
    ///
    /// -v shows how late departures were and what spinning cost.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) pacing: PacingKind,
}

/// What keeps the kernel from resetting connections that it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RawFirewall {
    /// A table of nftables that goes with the command
    #[default]
    Auto,
    /// A rule that is installed already
    None,
}

/// How to wait for delayed departures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PacingKind {
    /// Sleep until a kernel timer fires: tens of microseconds late
    #[default]
    Timer,
    /// Sleep until shortly before, then spin: late by less than a microsecond, at the cost of CPU
    /// time
    Spin,
}

/// Which policies are plugged in.
#[derive(Args, Clone)]
#[command(next_help_heading = "Policies (NAME or NAME:key=value,...; see ackline list)")]
pub(crate) struct PolicyArgs {
    /// Congestion control: how much to send
    #[arg(long, value_name = "SPEC")]
    pub(crate) cc: Option<String>,
    /// ACK policy: when to acknowledge
    #[arg(long, value_name = "SPEC")]
    pub(crate) ack: Option<String>,
    /// Response to a retransmission timeout
    #[arg(long, value_name = "SPEC")]
    pub(crate) rto: Option<String>,
    /// Egress scheduler: what leaves the host next
    ///
    /// A scheduler can only choose among packets that wait in the host: see --egress-rate.
    /// kalampoukas:f=0.5 shares a slow uplink between uploads and the ACKs of downloads.
    /// ack-priority favours downloads. backpressure:b=1 keeps the queue short. drr serves
    /// connections in turn. With fifo, ACKs wait behind uploads.
    #[arg(long, value_name = "SPEC")]
    pub(crate) sched: Option<String>,
    #[command(flatten)]
    pub(crate) egress: EgressArgs,
    /// Explicit congestion notification, if the peer agrees: off, classic (RFC 3168), dctcp (RFC
    /// 8257) or accurate (RFC 9768)
    ///
    /// The default is what --cc is designed for.
    #[arg(long, value_name = "KIND")]
    pub(crate) ecn: Option<String>,
    /// Set an option of connections or the host: -o sack=off -o iw=4,tlp=off
    ///
    /// List them with ranges and defaults: ackline list conn, ackline list host. Scenarios have the
    /// same keys in [conn] and [host].
    #[arg(short = 'o', long = "option", value_name = "KEY=VALUE,...")]
    pub(crate) options: Vec<String>,
}

/// The shaper in front of the device.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct EgressArgs {
    /// Send no faster than this: 100kbit, 20mbit, 10M
    ///
    /// Choose a little less than your uplink carries (95 %). Packets then wait here, where --sched
    /// chooses the next one, and not in the modem. Short for rate= in --sched.
    #[arg(long, value_name = "RATE", value_parser = values::rate, allow_hyphen_values = true)]
    pub(crate) egress_rate: Option<String>,
    /// Size of the token bucket, in bytes or as a time at the rate: 32K, 5ms [default: 1ms]
    ///
    /// A burst of this size can delay other packets by as much. Short for burst=.
    #[arg(long, value_name = "BURST", value_parser = values::burst)]
    pub(crate) egress_burst: Option<String>,
    /// Make up for timers that fire late, by up to this time [default: 100ms]
    ///
    /// After a late wake-up, the shaper sends at once what the rate would have allowed meanwhile,
    /// beyond the burst. 0ms never exceeds the burst. Short for late=.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) egress_late: Option<String>,
    /// Bytes that the link adds to each packet, such as 38 on Ethernet [default: 0]
    ///
    /// Short for overhead=.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) egress_overhead: Option<u32>,
}

/// What a command prints about its stack, and how.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Output")]
pub(crate) struct StackOutputArgs {
    /// Also print how evenly packets left, how late timers fired, and what the policies show of
    /// themselves
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) common: OutputArgs,
}

impl StackOutputArgs {
    /// Lines for people are wanted.
    pub(crate) const fn speaks(&self) -> bool {
        !self.common.quiet && !self.common.json
    }
}

/// What a transfer prints while it runs.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Output")]
pub(crate) struct StreamArgs {
    /// Print JSON as it comes: a line for the start, each interval and the end, or an error
    /// (docs/cli.md has the fields)
    ///
    /// It goes where --json does.
    #[arg(long)]
    json_stream: bool,
    /// Time between the intervals of --json-stream: 0.1 to 60, or 500ms, 1m; 0 for none
    #[arg(long, value_name = "SECONDS", default_value = "1", requires = "json_stream", value_parser = bench::interval)]
    interval: Duration,
}

impl StreamArgs {
    /// Time between intervals, if they are wanted.
    pub(crate) fn intervals(&self) -> Option<Duration> {
        (self.json_stream && !self.interval.is_zero()).then_some(self.interval)
    }

    /// What `--json-stream` asks for, and `--json` of `output`.
    pub(crate) const fn json(&self, output: &StackOutputArgs) -> Option<Json> {
        Json::asked(output.common.json, self.json_stream)
    }
}

/// What a command prints, and how.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the results as JSON (docs/cli.md has the fields)
    ///
    /// It goes to standard output, or to standard error if standard output carries received data or
    /// the answer to send -.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a scenario in virtual time
///
/// A scenario is a TOML file with nodes, links and their queues, applications, policies and values
/// to sweep over. One TCP endpoint sends each segment and another receives it; only those that are
/// captured or damaged, or all with --wire, become octets in between. The same file and seed give
/// the same output on any machine, with any number of threads. Defaults are those of the other
/// commands; [conn], [host] and each [[node]] take the options of ackline list conn and ackline
/// list host.
#[derive(Args)]
#[command(after_long_help = SIM_EXAMPLES)]
pub(crate) struct SimArgs {
    /// The scenario; - is standard input
    #[arg(value_name = "FILE.toml", required_unless_present = "example")]
    pub(crate) file: Option<PathBuf>,
    /// Set a value of the scenario: link.bottleneck.rate=20mbit, conn.cc=reno; it is not swept then
    ///
    /// In a list of tables, the path names a table by its name or its index from 0; * means all.
    #[arg(short, long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// First seed; each repetition takes the next
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Folder for results; finished runs in it are not repeated
    ///
    /// With --plot or --pcap, the default is NAME-results in the current folder.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run these points of the sweep only: 17..33 is 17 to 32, 33.. the rest, 17 one
    ///
    /// Points count from 0, as in the names of files. ackline merge joins the folders of several
    /// parts.
    #[arg(long, value_name = "A..B")]
    pub(crate) points: Option<PointRange>,
    /// Draw plots and a report as one HTML file
    #[arg(long)]
    pub(crate) plot: bool,
    /// Points whose first run is drawn over time, as in --points [default: all of up to 6, else
    /// none]
    #[arg(long, value_name = "A..B", requires = "plot")]
    pub(crate) plot_runs: Option<PointRange>,
    /// Capture the packets of the measured links, in both directions, as pcapng
    #[arg(long)]
    pub(crate) pcap: bool,
    /// Bytes to capture of each packet, as tcpdump -s; 0 is all [default: 0]
    ///
    /// The original length stays in the file. 128 keeps the headers of TCP over IPv6 with all
    /// options.
    #[arg(long, value_name = "BYTES", requires = "pcap")]
    pub(crate) snaplen: Option<u32>,
    /// Serialize every packet, data included: slower, with the same results
    #[arg(long)]
    pub(crate) wire: bool,
    /// Axis along the bottom of a sweep's plots [default: the numbers with the most values]
    ///
    /// KEY is a swept key or its last part: delay for link.wire.delay.
    #[arg(long, value_name = "KEY", requires = "plot")]
    pub(crate) x: Option<String>,
    /// Axis with a line for each value [default: the names with the fewest values]
    #[arg(long, value_name = "KEY", requires = "plot")]
    pub(crate) series: Option<String>,
    /// Axis with a panel for each value [default: all others]
    #[arg(long, value_name = "KEY", requires = "plot")]
    pub(crate) facet: Option<String>,
    /// Print and plot all metrics of a sweep, not only the main ones
    ///
    /// Files with numbers always hold all of them.
    #[arg(long)]
    pub(crate) all_metrics: bool,
    /// Number of parallel runs; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print an annotated example scenario; without NAME, list the examples
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with = "file")]
    pub(crate) example: Option<Option<String>>,
    #[command(flatten)]
    pub(crate) figures: FigureArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const SIM_EXAMPLES: &str = "\
Examples:
  ackline sim --example
  ackline drill tests/drill                       run packetdrill scripts against the stack
  ackline sim --example fairness > fairness.toml
  ackline sim fairness.toml --out results --plot
  ackline sim fairness.toml --out results --plot --plot-format pdf --plot-size 88mm
  ackline sim fairness.toml --set link.bottleneck.rate=100mbit --set repeat=1
  ackline sim --example single-flow | ackline sim - --set conn.cc=cubic --json
  ackline sim big.toml --points 0..500 --out part1      then, elsewhere:  --points 500.. --out part2

Errors in a scenario name the file, line, key and what is allowed; the exit status is 2. To continue an interrupted \
sweep, repeat the command: finished runs in --out are kept as long as the scenario, its values, the seed and the \
version of ackline are the same.";

/// Join folders that hold parts of the same sweep
///
/// The result is, byte for byte, the folder that one ackline sim of the whole scenario would have
/// written. Scenario, values, seed and version of ackline must be the same; a run that is there
/// twice must be the same, too. If a point is missing, its number is named and nothing is written.
///
/// For folders of ackline evaluate, joins the finished runs; ackline evaluate --out then runs what
/// is missing and makes the table.
#[derive(Args)]
#[command(after_long_help = MERGE_EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Folders that ackline sim --points --out, or ackline evaluate --points --out, has written
    #[arg(value_name = "DIR", required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// Folder for the whole
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  ackline sim big.toml --points 0..500 --out part1
  ackline sim big.toml --points 500.. --out part2
  ackline merge part1 part2 --out whole
  ackline merge league1 league2 --out league         then:  ackline evaluate --out league";

/// Overlay the results of several runs in the same plots
///
/// Draws each metric against each parameter of the sweep, and cwnd and RTT over time if the folders
/// have time series. Writes a file for each plot and prints their names.
#[derive(Args)]
#[command(after_long_help = PLOT_EXAMPLES)]
pub(crate) struct PlotArgs {
    /// Folders that ackline sim --out has written
    #[arg(value_name = "RUN_DIR", required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// Folder for the plots
    #[arg(short, long, value_name = "DIR", default_value = "plots")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) figures: FigureArgs,
}

const PLOT_EXAMPLES: &str = "\
Examples:
  ackline sim buffer-sweep.toml --out small
  ackline sim buffer-sweep.toml --set link.wire.rate=1gbit --out large
  ackline plot small large --out compared
  ackline plot small large --plot-format pdf --plot-size 88mmx60mm";

/// Repeat a published paper and compare each number with the paper's
///
/// Runs the paper's experiments in virtual time (results are the same on every machine), or with
/// --live in real time. Prints the paper's tables with the measured number, the paper's number and
/// the deviation, and lists the checks that failed.
#[derive(Args)]
#[command(after_long_help = REPRODUCE_EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// Paper to repeat (see --list), or all
    #[arg(value_name = "PAPER", required_unless_present = "list")]
    pub(crate) paper: Option<String>,
    /// List the papers and their tables
    #[arg(long, exclusive = true)]
    pub(crate) list: bool,
    /// Run the paper's live part: in real time beside the kernel's TCP, and simulated, compared
    /// with each other
    ///
    /// a3, acwap, dclor, kalampoukas and ls-aimd have one of a few minutes each; --quick takes
    /// seconds. Needs TUN devices, root or user namespaces, and a machine with nothing else to do.
    /// Runs that the machine did not keep up with are INVALID: they are repeated at most twice, and
    /// not counted.
    #[arg(long)]
    pub(crate) live: bool,
    /// How departures of live runs are waited for
    #[arg(long, value_enum, default_value_t, requires = "live", conflicts_with = "from")]
    pub(crate) pacing: EmulatePacing,
    /// Priority of the thread that emulates live runs: nice:-20 to nice:19, or real-time, fifo:1 to
    /// fifo:99 [default: the usual one]
    ///
    /// Needs root, CAP_SYS_NICE, or limits that allow it (ulimit -e, ulimit -r). The threads of
    /// hosts keep the usual priority. The page states the priority.
    #[arg(long, value_name = "KIND:N", requires = "live", conflicts_with = "from")]
    pub(crate) priority: Option<Priority>,
    /// Only these tables or figures, as named by --list: 15.2 or 15.1,15.3
    #[arg(short, long = "table", value_name = "NAME", value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// Folder for a Markdown page, figures, all checks as JSON, and the data of all simulations
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Make everything from the data in this folder (data/ in an earlier --out), and run nothing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "seeds", "scale", "cache", "no_cache"])]
    pub(crate) from: Option<PathBuf>,
    /// If other sources than this program's made the data, repeat a fixed sample of the
    /// simulations, and fail if a result differs
    #[arg(long, requires = "from", conflicts_with_all = ["tables", "live"])]
    pub(crate) sample: bool,
    /// Run every simulation anew, whatever was kept, and write pages, figures and data to --out
    /// [default: docs/papers of a checkout]
    ///
    /// Papers follow one another, and each is written when it is done. An interrupted command goes
    /// on if it is repeated: what is finished of a paper stands in its folder refresh/ until the
    /// paper is written.
    #[arg(long, conflicts_with_all = ["from", "tables", "quick", "seeds", "scale", "cache", "no_cache", "live"])]
    pub(crate) refresh: bool,
    /// Folder with the outputs of finished simulations [default: ackline in $XDG_CACHE_HOME or
    /// ~/.cache]
    ///
    /// A simulation is not run again as long as the sources that decide what it gives are the same,
    /// so an interrupted command goes on if it is repeated. Nothing is ever deleted there.
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Run every simulation, and keep none
    #[arg(long, conflicts_with = "cache")]
    pub(crate) no_cache: bool,
    /// Exit with status 0 even if checks fail
    #[arg(long)]
    pub(crate) report_only: bool,
    /// Exit with status 0 if every failed check is pinned and within the bounds of its pin (the
    /// default)
    #[arg(long, conflicts_with_all = ["report_only", "strict"])]
    pub(crate) allow_known: bool,
    /// Exit with status 1 even if all failed checks are pinned
    #[arg(long, conflicts_with = "report_only")]
    pub(crate) strict: bool,
    /// Run a smaller version that takes seconds or minutes, if the paper has one
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number of seeds per point, if the paper gives means
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) seeds: Option<u32>,
    /// Multiply the paper's durations or volumes by this, if it allows that
    #[arg(long, value_name = "X", value_parser = values::factor)]
    pub(crate) scale: Option<f64>,
    /// Number of parallel runs; results do not depend on it [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) figures: FigureArgs,
}

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  ackline reproduce --list
  ackline reproduce a3
  ackline reproduce a3 --table 15.3
  ackline reproduce kalampoukas --live --quick
  ackline reproduce all --out papers
  ackline reproduce dclor --from docs/papers/data --out papers
  ackline reproduce all --from docs/papers/data --sample
  ackline reproduce all --refresh
  ackline reproduce a3 --json | jq '.checks[] | select(.ok | not)'

A cell 21 (20) +5 % means: 21 measured, 20 in the paper, a deviation of 5 percent. * marks what the paper emphasises, ! \
a cell outside its tolerance.

Exit status: 0 if every check passed or missed where its pin expects it, 1 if one failed, left the bounds of its pin, or passes in \
spite of one; others as in ackline --help.";

/// List policies with their parameters, options, or network interfaces
#[derive(Args)]
#[command(after_long_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    /// What to list [default: all policies]
    pub(crate) kind: Option<ListKind>,
    /// Print the results as JSON (docs/cli.md has the fields)
    #[arg(long)]
    pub(crate) json: bool,
    /// Print options or keys as Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  ackline list
  ackline list cc
  ackline list conn --markdown
  ackline list sched --json | jq -r '.[].name'";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListKind {
    /// Congestion controls
    Cc,
    /// ACK policies
    Ack,
    /// Egress schedulers
    Sched,
    /// Responses to a retransmission timeout
    Rto,
    /// Options of a connection: keys of -o and of [conn] in a scenario
    Conn,
    /// Options of a host: keys of -o and of [host] in a scenario
    Host,
    /// Keys of a scenario file
    Scenario,
    /// Network interfaces, and which of them --dev can use
    Interfaces,
}

/// Create a crate with a policy of your own
///
/// The crate is a complete ackline command with one more policy. It compiles and passes its tests
/// as it is. It depends on the checkout of ackline that --path names or that contains the current
/// folder, or else on ackline's repository.
#[derive(Args)]
#[command(after_long_help = NEW_EXAMPLES)]
pub(crate) struct NewArgs {
    /// Kind of policy
    pub(crate) kind: NewKind,
    /// Name of the policy, of the crate and of its folder
    pub(crate) name: String,
    /// Checkout of ackline to depend on
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
}

const NEW_EXAMPLES: &str = "\
Examples:
  ackline new cc gentle              then:  cd gentle; cargo test; cargo run --release -- demo --cc gentle
  ackline new sched mine --path ~/src/ackline";

/// What a new policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NewKind {
    /// Congestion control: how much to send
    Cc,
    /// ACK policy: when to acknowledge
    Ack,
    /// Response to a retransmission timeout
    Rto,
    /// Egress scheduler: what leaves the host next
    Sched,
}

/// Tell the story of each connection in a capture or a trace
///
/// Reads pcap and pcapng files of any TCP stack: of tcpdump, Wireshark, --pcap and sim --pcap.
/// Tells for each connection how it was opened, how slow start ended, what limited the sender (its
/// application, the receiver's window, the congestion window, pacing, the path), what was sent
/// again, how that loss was found and whether it was needless, what the connection's own queue adds
/// to its round trips, and who ended it. The capture may be of either end or of the middle of the
/// path, and cut to headers (tcpdump -s 128).
///
/// Traces of ackline (--trace) are read, too. They have no packets, but what one stack concluded:
/// losses, timeouts, their verdicts, phases and windows are then stated, and what limited that
/// sender follows from them.
///
/// Several captures are read as one, in the order given; each trace stands alone. Memory is
/// bounded, whatever their size.
#[derive(Args)]
#[command(after_long_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Captures and traces; - is standard input, and a folder of sim --pcap means the file in it
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// This connection only, by its number in the table
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) conn: Option<u64>,
    /// These connections only: dport = :443, src 10.0.0.0/24, and, or, not, ( ), as in ackline ss
    ///
    /// src and sport are the client's address and port, dst and dport the server's.
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Pages of the connections that stood still for longest; the others are in the table
    #[arg(short, long, value_name = "N", default_value_t = 5)]
    pub(crate) pages: usize,
    /// Write the pages with plots as one HTML file: time-sequence diagram, flight, round trips,
    /// gaps between packets
    ///
    /// The plots zoom together. The file needs no network. The table then has at most 100
    /// connections.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print everything as JSON, in bytes and nanoseconds (docs/explain.md has the fields)
    #[arg(long)]
    pub(crate) json: bool,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  ackline explain trace.pcapng
  ackline explain trace.pcap --filter 'dport = :443' --pages 20
  ackline explain trace.pcapng --conn 3 --html story.html
  ackline send file 198.18.0.1:5001 --pcap out.pcapng     then:  ackline explain out.pcapng
  ackline send file 198.18.0.1:5001 --trace out.qlog      then:  ackline explain out.qlog
  ackline sim recovery.toml --points 0 --pcap             then:  ackline explain recovery-results
  tcpdump -i eth0 -s 128 -w - tcp | ackline explain -     until tcpdump ends
  ackline explain trace.pcap --json | jq '.connections[].directions[].losses'

What a page says is inferred from what passed the capture. Captures of ackline state in comments why packets were sent; \
such reasons are marked as stated. Traces (--trace) have no packets, but state losses, timeouts, phases and windows of one stack. docs/explain.md says how each cause is told from the others, and what cannot be.";

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_long_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    pub(crate) shell: clap_complete::Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  ackline completions bash > ~/.local/share/bash-completion/completions/ackline
  ackline completions zsh > ~/.zfunc/_ackline";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command(&Registry::default()).debug_assert();
    }

    #[test]
    fn the_help_shows_the_defaults_of_the_registry() {
        let registry = Registry::default().with_default(PolicyKind::Ack, "delayed:segments=4");
        let command = command(&registry);
        let send = command.find_subcommand("send").expect("a command");
        let help = |id: &str| {
            let arg = send.get_arguments().find(|arg| arg.get_id() == id).expect("an option");
            (arg.get_help().expect("a text").to_string(), arg.get_long_help().map(ToString::to_string))
        };
        assert_eq!(help("cc").0, "Congestion control: how much to send [default: cubic]");
        assert_eq!(help("ack").0, "ACK policy: when to acknowledge [default: delayed:segments=4]");
        let ecn = help("ecn").1.expect("a long one");
        let designed = "dctcp for dctcp, ls-aimd-dctcp; classic for ls-aimd-reno; accurate for prague; \
                        off for all others";
        assert!(ecn.ends_with(designed), "{ecn}");
    }
}
