//! The command line. What stands here is what `--help` says.

#[cfg(test)]
mod agreement;
pub(crate) mod bench;
pub(crate) mod figures;
pub(crate) mod limits;
pub(crate) mod units;
pub(crate) mod values;

use ackline::Registry;
use ackline::core::config::Ecn;
use ackline::core::policy::spec::PolicyKind;
use ackline::runtime::MacAddress;
use ackline_lab::PointRange;
use bench::BenchArgs;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use figures::FigureArgs;
use ipnet::IpNet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use values::{Destination, Limit, ListenAt};

/// A TCP stack in userspace: send and receive real data over a TUN device, with the congestion control, ACK
/// policy, timeout response and egress scheduler of your choice; and simulate the same stack in virtual time.
#[derive(Parser)]
#[command(name = "ackline", version, max_term_width = 100)]
#[command(after_help = "Examples and exit statuses: ackline --help", after_long_help = TOP_EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Send(SendArgs),
    Recv(RecvArgs),
    Bench(Box<BenchArgs>),
    Sim(SimArgs),
    Merge(MergeArgs),
    Plot(PlotArgs),
    Reproduce(ReproduceArgs),
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
    format!("dctcp for {}; classic for {}; off for all others", names(Ecn::Dctcp), names(Ecn::Classic))
}

const TOP_EXAMPLES: &str = "\
Examples:
  ackline demo                                    exchange data with the kernel's TCP, all by itself
  ackline recv --listen 198.18.0.2:5001 -O out    then, elsewhere:  nc -N 198.18.0.2 5001 < file
  nc -l 5001 > copy                               then:  ackline send file 198.18.0.1:5001
  ackline bench -c 198.18.0.1 -R                  throughput against a stock iperf3 -s, as iperf3 shows it
  ackline sim --example fairness > my.toml        a network to start from, then:  ackline sim my.toml
  ackline reproduce a3                            repeat the tables of a paper, each number with its tolerance
  ackline list cc                                 what can be chosen, with every parameter

Exit status:
  0      success
  1      data differs, a transfer is incomplete, or a check of a paper fails
  2      wrong usage: an unknown option, policy or address, or a mistake in a scenario
  3      device: missing rights, no such interface, a name or address in use, an interface down or removed
  4      network: peer unreachable, refusing or resetting, no progress in time
  5      file: not found, not readable or writable, disk full
  128+N  ended by signal N (130: interrupted)";

/// Exchange real data with the kernel's TCP and check every byte
///
/// Makes a network namespace of its own (as an ordinary user: inside a user namespace), a TUN device in it,
/// and kernel sockets on the far side. Then sends to the kernel, receives from it, hashes every byte at both
/// ends, and prints what was measured. Nothing of the machine's network is touched. Where no TUN device can be
/// had, two ackline stacks do the same over a device in memory, and the first line says so.
#[derive(Args)]
#[command(after_long_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Bytes per direction: 500M, 1G (binary multiples)
    ///
    /// 1G where --seconds is not given either; with both, whichever comes first.
    #[arg(short = 'n', long, value_parser = values::size)]
    pub(crate) size: Option<u64>,
    /// Time per direction instead of a size: 5, 0.5, 2m
    #[arg(short = 't', long, value_name = "TIME", value_parser = values::time)]
    pub(crate) seconds: Option<Duration>,
    /// Single packets with complete checksums: no super-packets, no offload
    #[arg(long)]
    pub(crate) plain: bool,
    /// Largest IP packet of the device, in bytes
    #[arg(long, default_value = "1500", value_parser = values::mtu)]
    pub(crate) mtu: u32,
    /// What the data travels over
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DemoDevice,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const DEMO_EXAMPLES: &str = "\
Examples:
  ackline demo
  ackline demo --seconds 5 --cc reno
  ackline demo --plain --size 200M
  ackline demo --json | jq .upload.gbit_s

CPU s is user and system time of the one thread that runs ackline's stack, the program on top of it and its \
hashing, with the kernel's work that this thread's system calls carry out. The far end's sockets run in another \
thread, which is not counted. Retransmissions, round-trip times (smoothed, sampled every 5 ms) and window are \
those of the side that sends.

Exit status: 0 when every byte arrived unharmed, 1 when not; the others as in ackline --help.";

/// What the demo's data travels over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoDevice {
    /// A TUN device where one can be had, else memory
    #[default]
    Auto,
    /// A TUN device to the kernel's TCP, or an error
    Tun,
    /// A device in memory, between two ackline stacks
    Channel,
}

/// Send a file or standard input to any TCP receiver
///
/// A plain byte stream: nc, socat or any program can be the receiver. It is successful once the receiver has
/// acknowledged every byte and the end of the stream; then it waits up to two seconds for the receiver to close
/// its side, too.
///
/// With - it is a conversation, as with nc -N: the receiver's answer goes to standard output as it comes; the end of
/// standard input closes this side only, and the command ends when the receiver has closed its side. Reports go to standard
/// error then, --json too. If the reader of standard output goes away, the answer is dropped and sending goes on.
#[derive(Args)]
#[command(after_long_help = SEND_EXAMPLES)]
pub(crate) struct SendArgs {
    /// The file to send; - is standard input, and answers go to standard output
    pub(crate) file: PathBuf,
    /// Where to: a name or an address, and a port; [fd00::1]:5001 for IPv6
    #[arg(value_name = "HOST:PORT")]
    pub(crate) to: Destination,
    #[command(flatten)]
    pub(crate) tunnel: TunnelArgs,
    /// Give up after this time without progress, connecting included: 10, 500ms, 2m
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const SEND_EXAMPLES: &str = "\
Examples (as root, or with a TUN device of one's own, see --tun):
  nc -l 5001 > copy &
  ackline send file 198.18.0.1:5001
  ackline send --dev veth0 --local 10.0.0.2/24 file 10.0.0.1:5001
  ackline send --dev eth0 --local 192.168.1.77/24 --gateway 192.168.1.1 file nas.example.org:5001
  tar c src | ackline send --cc cubic - 198.18.0.1:5001
  printf 'GET / HTTP/1.0\r\n\r\n' | ackline send - 198.18.0.1:80 > page
  ackline send --local fd00::2/64 file [fd00::1]:5001

The stack is a host of its own at the address of --local, behind the TUN device; it answers ping. The kernel's end \
of the device has the address of --peer. To reach hosts beyond this machine, let the kernel forward \
(sysctl net.ipv4.ip_forward=1, and a route back or NAT); or make the stack a host on the machine's own network with \
--dev, at an address that is free there.";

/// Receive a byte stream from any TCP sender into a file
///
/// The file gets its name when the sender has finished; what was cut short never looks complete, and is deleted.
/// An existing FILE is replaced only by a complete one; in a directory nothing is replaced.
#[derive(Args)]
#[command(after_long_help = RECV_EXAMPLES)]
pub(crate) struct RecvArgs {
    /// Where to listen: 198.18.0.2:5001, [fd00::2]:5001, or :5001 for every address of the stack
    #[arg(short, long, value_name = "ADDR:PORT")]
    pub(crate) listen: ListenAt,
    /// File to write, directory to write into (ADDR-PORT-N.data), or - for standard output
    ///
    /// Standard output by default; with --keep it must be a directory, the current one by default.
    #[arg(short = 'O', long = "output", value_name = "FILE|DIR|-")]
    pub(crate) target: Option<PathBuf>,
    /// Serve many connections at once, one file each, until SIGINT or SIGTERM
    ///
    /// The signal ends listening; what is under way gets the time of --grace to finish and is then reset. A
    /// second signal resets at once.
    #[arg(short, long)]
    pub(crate) keep: bool,
    /// Most connections at once with --keep; others wait
    ///
    /// If others wait, the connection that has been silent longest makes room once that is a tenth of --timeout; those that
    /// have not sent a byte go first.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max: u16,
    /// Time to finish after a signal, with --keep: 5, 500ms, 2m
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = values::time)]
    pub(crate) grace: Duration,
    #[command(flatten)]
    pub(crate) tunnel: TunnelArgs,
    /// Give up a connection after this time without progress: 10, 500ms, 2m, or off [default: 2m with --keep, else off]
    ///
    /// Without --keep this includes waiting for the sender to connect.
    #[arg(long, value_name = "TIME", value_parser = values::limit)]
    pub(crate) timeout: Option<Limit>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl RecvArgs {
    /// How long a service bears with a silent connection unless the command line says so. A sender that pauses for longer is
    /// rare, and strangers that only connect must not fill it.
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
Examples (as root, or with a TUN device of one's own, see --tun):
  ackline recv --listen 198.18.0.2:5001 -O copy      then:  nc -N 198.18.0.2 5001 < file
  ackline recv --listen :5001 | tar t
  ackline recv --keep --listen :5001 -O incoming/
  ackline recv --ack immediate --listen [fd00::2]:5001 -O copy
  ackline recv --dev eth0 --local 192.168.1.77/24 --listen :5001 -O copy

Where neither --dev nor --local is given, the stack takes the address of --listen, with a /24 (IPv6: /64) around it. A sender \
that vanishes is noticed by keep-alive probes within two minutes.";

/// Where the stack lives: behind a TUN device, with the kernel at its other end, or as a host on an Ethernet.
#[derive(Args)]
#[command(next_help_heading = "Device")]
pub(crate) struct TunnelArgs {
    /// Name of the TUN interface; made for the time of the transfer where it does not exist
    ///
    /// Making one needs CAP_NET_ADMIN. An ordinary user can use one that root has made for them:
    /// ip tuntap add dev ack0 mode tun user NAME; ip addr add 198.18.0.1/24 dev ack0; ip link set ack0 up.
    /// An existing interface keeps its addresses and MTU, and --peer is not needed.
    #[arg(long, value_name = "NAME", default_value = "ack0", value_parser = values::interface)]
    pub(crate) tun: String,
    /// Ethernet interface (veth, network card) on whose network the stack is a host of its own, in place of a TUN
    ///
    /// Needs CAP_NET_RAW (root, or once: setcap cap_net_raw+ep on the program), and --local. The interface keeps its
    /// addresses, which are the kernel's; the stack answers ARP and neighbour discovery for its own.
    /// See: ackline list interfaces.
    #[arg(long, value_name = "NAME", value_parser = values::interface, conflicts_with_all = ["tun", "peer"])]
    pub(crate) dev: Option<String>,
    /// Address of the stack and length of its network's prefix; once per IP version
    ///
    /// Default: 198.18.0.2/24; with --dev there is none, and it must be an address that nobody else there has.
    #[arg(long, value_name = "CIDR", value_parser = values::cidr)]
    pub(crate) local: Vec<IpNet>,
    /// Address of the kernel's end of a TUN; once per IP version
    ///
    /// Default: the first other address of the network of --local.
    #[arg(long, value_name = "IP", value_parser = values::address)]
    pub(crate) peer: Vec<IpAddr>,
    /// Router of the network of --dev, for hosts outside of it; once per IP version
    #[arg(long, value_name = "IP", value_parser = values::address, requires = "dev")]
    pub(crate) gateway: Vec<IpAddr>,
    /// Ethernet address of the stack on --dev [default: the interface's own]
    ///
    /// Wireless networks and most clouds carry frames with the interface's own address only.
    #[arg(long, value_name = "MAC", value_parser = values::mac, requires = "dev")]
    pub(crate) mac: Option<MacAddress>,
    /// Hand frames to the card of --dev past the interface's queue: less work, no fairness to other traffic
    #[arg(long, requires = "dev")]
    pub(crate) qdisc_bypass: bool,
    /// Let --local be an address that this machine's kernel has, too
    ///
    /// The kernel resets what it does not know, so it needs a firewall rule (docs/devices.md has the one for nft).
    #[arg(long, requires = "dev")]
    pub(crate) share_address: bool,
    /// Largest IP packet in bytes [default: 1500 for a TUN that is made, the interface's for --dev]
    #[arg(long, value_name = "BYTES", value_parser = values::mtu)]
    pub(crate) mtu: Option<u32>,
    /// Single packets with complete checksums: no super-packets, no offload
    #[arg(long)]
    pub(crate) plain: bool,
    /// Do not sleep for this long after a packet came or left, but ask the device again and again
    ///
    /// A packet that is waited for then costs no wake-up, which takes tens of microseconds; a processor is busy meanwhile.
    /// --busy-poll alone means 1ms, --busy-poll=200us a fifth of it.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1ms",
        value_parser = values::short_time)]
    pub(crate) busy_poll: Option<Duration>,
    /// How a departure is waited for that pacing or --egress-rate holds back
    ///
    /// How late departures were, and what spinning cost, is told at the end.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) pacing: PacingKind,
}

/// How departures that are held back are waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PacingKind {
    /// Asleep, until a timer of the kernel's wakes the process: some tens of microseconds late
    #[default]
    Timer,
    /// Asleep until shortly before, then awake: late by less than a microsecond, for processor time
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
    /// It can only choose among packets that wait in the host: see --egress-rate. kalampoukas:f=0.5 shares a slow
    /// uplink between uploads and the ACKs of downloads; ack-priority is for downloads only, backpressure:b=1 keeps
    /// the queue short, drr gives each connection its turn, fifo lets downloads wait behind uploads.
    #[arg(long, value_name = "SPEC")]
    pub(crate) sched: Option<String>,
    #[command(flatten)]
    pub(crate) egress: EgressArgs,
    /// Explicit congestion notification, if the peer agrees: off, classic (RFC 3168) or dctcp (RFC 8257)
    ///
    /// Without this option, what --cc is designed for.
    #[arg(long, value_name = "KIND")]
    pub(crate) ecn: Option<String>,
    /// Any setting of connections or host: -o sack=off -o iw=4,tlp=off
    ///
    /// All of them, with ranges and defaults: ackline list conn, ackline list host. The keys are those of [conn] and [host] in a
    /// scenario.
    #[arg(short = 'o', long = "option", value_name = "KEY=VALUE,...")]
    pub(crate) options: Vec<String>,
}

/// The shaper in front of the device.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct EgressArgs {
    /// Send no faster than this: 100kbit, 20mbit
    ///
    /// Set it to a little less than the uplink of your cable, DSL or mobile line (95 %): then packets wait here, where
    /// --sched chooses, and not in the modem, where nobody does. Short for rate= in --sched.
    #[arg(long, value_name = "RATE", value_parser = values::rate, allow_hyphen_values = true)]
    pub(crate) egress_rate: Option<String>,
    /// What an idle time saves up, in bytes or as a time at the rate: 32k, 5ms [default: 1ms]
    ///
    /// More costs other packets up to as much delay. Short for burst=.
    #[arg(long, value_name = "BURST", value_parser = values::burst)]
    pub(crate) egress_burst: Option<String>,
    /// Up to how late this host's timers may be without costing rate [default: 100ms]
    ///
    /// What the rate would have given while a packet waited for a wake-up that came late is sent at once, beyond the burst.
    /// 0ms for never more than the burst. Short for late=.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) egress_late: Option<String>,
    /// Bytes that each packet costs the link beyond its length, such as 38 on Ethernet [default: 0]
    ///
    /// Short for overhead=.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) egress_overhead: Option<u32>,
}

/// What is said, and how.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Say nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the results as JSON (docs/cli.md has the fields)
    ///
    /// On standard output; on standard error if received data, or the answer to send -, goes to standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a scenario in virtual time
///
/// A scenario is a TOML file: nodes, links with queues, applications, policies, and values to sweep over. Every packet
/// is built by one TCP endpoint and parsed by another. The same file and seed give the same output, on any machine
/// and with any number of threads. Hosts and connections have the defaults of the other commands; [conn], [host] and
/// each [[node]] take the settings of ackline list conn and ackline list host.
#[derive(Args)]
#[command(after_long_help = SIM_EXAMPLES)]
pub(crate) struct SimArgs {
    /// The scenario; - is standard input
    #[arg(value_name = "FILE.toml", required_unless_present = "example")]
    pub(crate) file: Option<PathBuf>,
    /// Set a value of the scenario: link.bottleneck.rate=20mbit, conn.cc=reno; what is set is swept no more
    ///
    /// In a list of tables the path names one by its name, by its place from 0, or all by *.
    #[arg(short, long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// First seed; each repetition takes the next
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Folder for results; runs that it holds already are not run again
    ///
    /// With --plot or --pcap and without --out: NAME-results in the current folder.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run these points of the sweep only: 17..33 is 17 to 32, 33.. the rest, 17 one
    ///
    /// Points count from 0, as in the names of files. ackline merge joins the folders of several parts.
    #[arg(long, value_name = "A..B")]
    pub(crate) points: Option<PointRange>,
    /// Draw plots and a report as one HTML file
    #[arg(long)]
    pub(crate) plot: bool,
    /// Points whose first run is drawn over time, as in --points [default: all of up to 6, else none]
    #[arg(long, value_name = "A..B", requires = "plot")]
    pub(crate) plot_runs: Option<PointRange>,
    /// Capture the packets of the measured links, in both directions, as pcapng
    #[arg(long)]
    pub(crate) pcap: bool,
    /// Bytes to capture of each packet, as tcpdump -s; 0 is all [default: 0]
    ///
    /// The original length stays in the file. 128 keeps the headers of TCP over IPv6 with all options.
    #[arg(long, value_name = "BYTES", requires = "pcap")]
    pub(crate) snaplen: Option<u32>,
    /// Runs at the same time; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print an annotated scenario to start from; without NAME, list them
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
  ackline sim --example fairness > fairness.toml
  ackline sim fairness.toml --out results --plot
  ackline sim fairness.toml --out results --plot --plot-format pdf --plot-size 88mm
  ackline sim fairness.toml --set link.bottleneck.rate=100mbit --set repeat=1
  ackline sim --example single-flow | ackline sim - --set conn.cc=cubic --json
  ackline sim big.toml --points 0..500 --out part1      then, elsewhere:  --points 500.. --out part2

A mistake in a scenario is answered with file, line, key and what is allowed, and with exit status 2. A run that was \
interrupted goes on where the same command is given again: what --out holds is kept, as long as scenario, values, seed and \
version of ackline are the same.";

/// Join folders that hold parts of the same sweep
///
/// The result is, byte for byte, the folder that one ackline sim of the whole scenario would have written. Scenario, values,
/// seed and version of ackline must be the same; a run that is there twice must be the same, too. If a point is missing, its
/// number is named and nothing is written.
#[derive(Args)]
#[command(after_long_help = MERGE_EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Folders that ackline sim --points --out has written
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
  ackline merge part1 part2 --out whole";

/// Overlay the results of several runs in the same plots
///
/// Each metric against each parameter of the sweep, and windows and round-trip times over time where the folders have
/// time series. Writes a file for each plot and prints their names.
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

/// Repeat a published paper: its tables and figures beside its own numbers, each with a tolerance
///
/// Simulations in virtual time, the same on every machine. Shows the tables with the paper's number, the deviation
/// and what failed.
#[derive(Args)]
#[command(after_long_help = REPRODUCE_EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// Which paper (see --list), or all
    #[arg(value_name = "PAPER", required_unless_present = "list")]
    pub(crate) paper: Option<String>,
    /// Say which papers there are, and their tables
    #[arg(long, exclusive = true)]
    pub(crate) list: bool,
    /// Only these tables or figures, by their names in --list: 15.2 or 15.1,15.3
    #[arg(short, long = "table", value_name = "NAME", value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// Folder for a page in Markdown, figures as SVG, and all checks as JSON
    ///
    /// An interrupted command goes on where it was when it is given again.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Keep what each simulation gave in the folder of --out, also when all is done
    ///
    /// The next run then takes it from there, as long as options and version of ackline are the same.
    #[arg(long, requires = "out")]
    pub(crate) keep_jobs: bool,
    /// Exit with status 0 also where checks fail
    #[arg(long)]
    pub(crate) report_only: bool,
    /// Exit with status 0 where each check that fails has a reason that is known and shown
    #[arg(long, conflicts_with = "report_only")]
    pub(crate) allow_known: bool,
    /// A smaller version that takes seconds, where the paper has one
    #[arg(long)]
    pub(crate) quick: bool,
    /// Runs with different seeds per point, where the paper gives means
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) seeds: Option<u32>,
    /// The paper's durations or volumes times this, where that can be chosen
    #[arg(long, value_name = "X", value_parser = values::factor)]
    pub(crate) scale: Option<f64>,
    /// Simulations at the same time; results do not depend on it [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  ackline reproduce --list
  ackline reproduce a3
  ackline reproduce a3 --table 15.3
  ackline reproduce all --out papers --report-only
  ackline reproduce a3 --json | jq '.checks[] | select(.ok | not)'

In a cell, 21 (20) +5 % is: 21 here, 20 in the paper, 5 percent more. * marks what the paper emphasises, ! a cell outside \
its tolerance.

Exit status: 0 when every check passed, 1 when one failed that is not optional; the others as in ackline --help.";

/// List the policies that can be chosen, with their parameters; the settings; or the interfaces
#[derive(Args)]
pub(crate) struct ListArgs {
    /// One kind only; without it, all policies
    pub(crate) kind: Option<ListKind>,
    /// Print JSON (docs/cli.md has the fields)
    #[arg(long)]
    pub(crate) json: bool,
    /// Print settings or keys as Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

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
    /// Settings of a connection: the keys of -o, and of [conn] in a scenario
    Conn,
    /// Settings of a host: the keys of -o, and of [host] in a scenario
    Host,
    /// Keys of a scenario file
    Scenario,
    /// Network interfaces of this machine, and which of them --dev can use
    Interfaces,
}

/// Write a crate with a policy of your own, to start from
///
/// The crate is a program with everything that ackline has, and the policy beside the built-in ones. It compiles, and passes its tests.
/// It depends on the checkout of ackline that the current folder is in, or on the published version.
#[derive(Args)]
#[command(after_long_help = NEW_EXAMPLES)]
pub(crate) struct NewArgs {
    /// What the policy decides
    pub(crate) kind: NewKind,
    /// Name of the policy, the crate and its folder
    pub(crate) name: String,
    /// A checkout of ackline to depend on
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
}

const NEW_EXAMPLES: &str = "\
Examples:
  ackline new cc gentle              then:  cd gentle; cargo test; cargo run -- demo --cc gentle
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

/// Print a completion script for a shell
///
/// For example:  ackline completions bash > ~/.local/share/bash-completion/completions/ackline
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    pub(crate) shell: clap_complete::Shell,
}

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
        let designed = "dctcp for dctcp, ls-aimd-dctcp; classic for ls-aimd-reno; off for all others";
        assert!(ecn.ends_with(designed), "{ecn}");
    }
}
