//! What `ackline emulate` takes.

use super::figures::FigureArgs;
use super::values;
use ackline::runtime::Pacing;
use ackline::runtime::priority::Priority;
use ackline_emulate::Offload;
use ackline_emulate::stage::RealTime;
use ackline_lab::PointRange;
use ackline_proxy::Resolver;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a program behind an emulated network path, or a scenario in real time
///
/// The program runs in a network namespace of its own (as an ordinary user, inside a user
/// namespace). Its only way out is a path with the rate, the delay, the queue and the impairments
/// that the options name, in real time; behind the path its TCP connections and UDP datagrams are
/// carried on through this machine's network, by sockets of the kernel. To reach a server on this
/// machine, the program connects to the address in the environment variable ACKLINE_BASE, whose
/// port 53 leads to this machine's resolvers.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// How departures are waited for
    #[arg(long, value_enum, default_value_t)]
    pub(crate) pacing: EmulatePacing,
    /// Segmentation offload of the program's kernel and of hosts: none, or super-packets that are
    /// split where they enter the network, or pass whole
    #[arg(long, value_enum, default_value_t)]
    pub(crate) offload: EmulateOffload,
    /// Priority of the emulator's thread: nice:-20 to nice:19, or real-time, fifo:1 to fifo:99
    /// [default: the usual one]
    ///
    /// It needs root, CAP_SYS_NICE, or limits that allow it (ulimit -e, ulimit -r). The program and
    /// hosts do not have it.
    #[arg(long, value_name = "KIND:N")]
    pub(crate) priority: Option<Priority>,
    /// Seed of all random numbers [default: 1, or the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Largest IP packet of the program's interface, in bytes
    #[arg(long, default_value = "1500", value_parser = values::mtu)]
    pub(crate) mtu: u32,
    /// Resolver of the program's names [default: those of /etc/resolv.conf, in their order]
    ///
    /// The emulator answers DNS on port 53 of ACKLINE_BASE, which the program's /etc/resolv.conf
    /// names.
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = values::resolver)]
    pub(crate) resolver: Option<Resolver>,
    /// Leave the program the capabilities of this process, with which it can leave its namespaces
    ///
    /// Without it a program of root has none: it cannot change its interface, mount, trace, or take
    /// other users' rights. A program that makes namespaces of its own (ackline emulate, podman)
    /// needs it.
    #[arg(long)]
    pub(crate) keep_capabilities: bool,
    /// Capture the packets of both directions as pcapng: as they leave the queue, and what is
    /// dropped
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Bytes to capture of each packet, as tcpdump -s; 0 is all [default: 0]
    ///
    /// The original length stays in the file. 128 keeps the headers of TCP over IPv6 with all
    /// options.
    #[arg(long, value_name = "BYTES", requires = "pcap")]
    pub(crate) snaplen: Option<u32>,
    /// Draw rate, queue, waits and drops of both directions, and lateness, into a folder
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) figures: FigureArgs,
    /// Write the summary to a file, as JSON, with what the plots show
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No summary at the end
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "file", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// A scenario in place of a command.
#[derive(Args)]
#[command(next_help_heading = "Scenario")]
pub(crate) struct ScenarioArgs {
    /// A scenario, as ackline sim takes it; - is standard input
    ///
    /// Its network runs in real time, and each host where its key `world` says: in the simulator
    /// ("virtual"), as a stack of ackline ("live"), or as the kernel's TCP in a network namespace
    /// ("kernel").
    #[arg(value_name = "FILE.toml", group = "any_file", conflicts_with_all = ["command", "pcap", "plot", "resolver", "mtu", "PathArgs"])]
    pub(crate) file: Option<PathBuf>,
    /// Scenario whose network the program is behind, instead of a path: its other hosts and
    /// applications run beside the program
    #[arg(long, value_name = "FILE.toml", group = "any_file", requires = "command", conflicts_with_all = ["PathArgs", "mtu"])]
    pub(crate) scenario: Option<PathBuf>,
    /// Host of --scenario whose place the program takes [default: the first one]
    #[arg(long, value_name = "NODE", requires = "scenario")]
    pub(crate) at: Option<String>,
    /// Host of --scenario behind which the rest of the world lies [default: the last one]
    #[arg(long, value_name = "NODE", requires = "scenario")]
    pub(crate) exit: Option<String>,
    /// Set a value of the scenario, as ackline sim does: link.bottleneck.rate=20mbit,
    /// node.b.world=kernel
    #[arg(short, long, value_name = "KEY=VALUE", requires = "any_file")]
    pub(crate) set: Vec<String>,
    /// Folder for results, tables, plots and a report; finished runs in it are not repeated
    #[arg(short, long, value_name = "DIR", requires = "file", conflicts_with = "command")]
    pub(crate) out: Option<PathBuf>,
    /// Simulate it, too, and tell where simulation and real time differ by more than their spread
    #[arg(long, requires = "file", conflicts_with = "command")]
    pub(crate) both: bool,
    /// Run these points of the sweep only: 17..33 is 17 to 32, 33.. the rest, 17 one
    #[arg(long, value_name = "A..B", requires = "file", conflicts_with = "command")]
    pub(crate) points: Option<PointRange>,
}

/// Keys of a scenario's `[[link]]`: `ackline list scenario`.
#[derive(Args)]
#[command(next_help_heading = "Path")]
pub(crate) struct PathArgs {
    /// A path with a name, in place of what the other options leave out: dsl, cable, lte, 5g, wifi,
    /// leo, geo, datacentre; lte:rate=12mbit,seed=3
    ///
    /// The program is at the user's end. docs/paths.md says what each is like, and where its
    /// numbers are from.
    #[arg(long, value_name = "NAME")]
    pub(crate) path: Option<String>,
    /// Rate of each direction: 10mbit [default: none, packets take no time]
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// Propagation delay of each direction: 20ms
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<String>,
    /// Queue before the rate: its limit (50p, 100k, 20ms), or a kind and what it takes
    /// (codel:target=5ms,limit=100p) [default: 1000p]
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// Share of packets that are lost, each independently: 1%, 0.01
    #[arg(long, value_name = "SHARE")]
    pub(crate) loss: Option<String>,
    /// Random delay up to this, without reordering: 5ms
    #[arg(long, value_name = "TIME")]
    pub(crate) jitter: Option<String>,
    /// Share of packets that arrive twice
    #[arg(long, value_name = "SHARE")]
    pub(crate) duplicate: Option<String>,
    /// Share of packets with a wrong bit
    #[arg(long, value_name = "SHARE")]
    pub(crate) corrupt: Option<String>,
    /// Instead of a rate: a file with the times of deliveries, in mahimahi's format
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<String>,
    /// Another value for the way out: rate=1mbit; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) up: Vec<String>,
    /// Another value for the way back: rate=20mbit; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) down: Vec<String>,
}

/// How the emulator waits for the time of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmulatePacing {
    /// Asleep: some tens of microseconds late
    #[default]
    Timer,
    /// Awake: late by a microsecond or two; takes a processor
    Spin,
}

/// How super-packets pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmulateOffload {
    /// Packets come one by one
    #[default]
    Off,
    /// Super-packets come; queues and impairments see the packets of a wire
    Split,
    /// Each is one packet of a queue, with one fate, and takes the time of all that it stands for
    Whole,
}

impl From<EmulateOffload> for Offload {
    fn from(offload: EmulateOffload) -> Self {
        match offload {
            EmulateOffload::Off => Self::Off,
            EmulateOffload::Split => Self::Split,
            EmulateOffload::Whole => Self::Whole,
        }
    }
}

impl From<&EmulateArgs> for RealTime {
    fn from(args: &EmulateArgs) -> Self {
        let EmulateArgs { pacing, offload, priority, .. } = *args;
        Self { pacing: pacing.into(), offload: offload.into(), priority }
    }
}

impl From<EmulatePacing> for Pacing {
    fn from(pacing: EmulatePacing) -> Self {
        match pacing {
            EmulatePacing::Timer => Self::Timer,
            EmulatePacing::Spin => Self::spin(),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  ackline emulate --rate 5mbit --delay 30ms --loss 0.5% -- curl -o /dev/null http://192.0.2.7/
  ackline emulate --rate 10mbit --up rate=1mbit --delay 20ms --queue codel -- bash
  ackline emulate fairness.toml --set node.sender.world=kernel --out live
  ackline emulate fairness.toml --set node.sender.world=kernel --both
  ackline emulate --path lte -- curl -o /dev/null http://192.0.2.7/
  ackline emulate --trace lte.up --down trace=lte.down -- ./client
  ackline emulate --scenario fairness.toml --set conn.cc=cubic --at sender-1 --exit receiver-1 -- ./client

The run is INVALID, in the summary, --json and --plot, if one packet of a hundred leaves the path more than 1 ms late, if the emulator
itself loses a packet, or if in a run of a second or more the emulator is busy for over 95 % of the time (unless it spins), waits
for a processor for over 10 % of it, or the whole machine is busy for over 95 % of it.

Exit status: that of the program; 128+N if signal N ended it; others as in ackline --help.";
