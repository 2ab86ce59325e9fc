//! The control socket of a command, and the commands that ask there.

use super::column::Column;
use super::values;
use clap::Args;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Most clients that a control socket can be told to serve at once.
const MAX_CLIENTS: u32 = 1024;

/// The socket at which `ackline ss`, `nstat` and `set` ask a command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct ControlArgs {
    /// Path of the control socket [default: PID-COMMAND.sock in ackline in $XDG_RUNTIME_DIR]
    #[arg(long, value_name = "PATH", conflicts_with = "no_control")]
    pub(crate) control: Option<PathBuf>,
    /// No control socket
    #[arg(long)]
    pub(crate) no_control: bool,
    /// Number of clients that the control socket serves at once; others are refused
    #[arg(long, value_name = "N", default_value = "16", hide_short_help = true, value_parser = clients)]
    pub(crate) control_clients: NonZeroU32,
    /// Longest request to the control socket: 64K
    #[arg(long, value_name = "SIZE", default_value = "64K", hide_short_help = true, value_parser = request)]
    pub(crate) control_request: u64,
    /// Time after which the control socket closes on a client that asks nothing or reads nothing:
    /// 5, 500ms
    #[arg(long, value_name = "TIME", default_value = "5", hide_short_help = true, value_parser = values::time)]
    pub(crate) control_timeout: Duration,
}

/// Each client takes a descriptor.
fn clients(text: &str) -> Result<NonZeroU32, String> {
    text.parse()
        .ok()
        .filter(|count: &NonZeroU32| count.get() <= MAX_CLIENTS)
        .ok_or_else(|| format!("not a number of clients; write 1 to {MAX_CLIENTS}"))
}

/// Room for a filter, at least.
fn request(text: &str) -> Result<u64, String> {
    let size = values::size(text)?;
    if (256..=16 << 20).contains(&size) { Ok(size) } else { Err("must be from 256 to 16M".to_owned()) }
}

/// Which stacks are asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct StackChoice {
    /// The stack of this process only
    #[arg(long, value_name = "PID", conflicts_with = "control")]
    pub(crate) pid: Option<u32>,
    /// The stack with this control socket only
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Largest answer to read from one stack; a connection takes about 1.5K
    #[arg(long, value_name = "SIZE", default_value = "256M", hide_short_help = true, value_parser = values::size)]
    pub(crate) max_answer: u64,
}

/// Show the connections of running ackline commands, as ss does those of the kernel
///
/// Fields, their order and units are those of ss -t. Fields that Linux lacks come last: ack_policy,
/// rto_response and blocked (what the sender waits for). Stacks are those of this user's processes;
/// the last column tells them apart.
#[derive(Args)]
#[command(after_long_help = SS_EXAMPLES)]
pub(crate) struct SsArgs {
    /// Filter: state NAME, exclude NAME, sport = :80, dport = :https, src ADDRESS, dst 10.0.0.0/24,
    /// and, or, not, ( )
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// Show listeners
    #[arg(short, long)]
    pub(crate) listening: bool,
    /// Show connections in all states, and listeners
    #[arg(short, long, conflicts_with = "listening")]
    pub(crate) all: bool,
    /// Show only IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Show only IPv6
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Show the numbers of each connection
    #[arg(short, long)]
    pub(crate) info: bool,
    /// Show memory: skmem, as ss -m
    #[arg(short, long)]
    pub(crate) memory: bool,
    /// Show timers
    #[arg(short, long)]
    pub(crate) options: bool,
    /// Show the connection's identifier: sk
    #[arg(short, long)]
    pub(crate) extended: bool,
    /// Suppress the header line
    #[arg(short = 'H', long)]
    pub(crate) no_header: bool,
    /// Print a connection on one line
    #[arg(short = 'O', long)]
    pub(crate) oneline: bool,
    /// Show each stack as a whole: connections by state, memory, queues, policies
    #[arg(short, long, conflicts_with_all = ["filter", "listening", "all", "info", "options", "memory", "extended"])]
    pub(crate) summary: bool,
    /// TCP sockets: always shown; accepted for compatibility with ss
    #[arg(short, long)]
    pub(crate) tcp: bool,
    /// Numeric ports: always; accepted for compatibility with ss
    #[arg(short, long)]
    pub(crate) numeric: bool,
    /// Processes: always shown; accepted for compatibility with ss
    #[arg(short, long)]
    pub(crate) processes: bool,
    /// Print the results as JSON, with all fields in bytes and nanoseconds
    #[arg(short, long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) at: StackChoice,
}

const SS_EXAMPLES: &str = "\
Examples:
  ackline ss -tino
  ackline ss -tanp dport = :https
  ackline ss -ti state established dport = :5001
  ackline ss -i 'src 198.18.0.2 and ( sport = :80 or sport = :443 )'
  ackline ss -s
  ackline ss -j | jq '.[].connections[].rtt'";

/// Change policies and options of live connections
///
/// Prints how many connections were changed. Options are those of ackline list conn that can change
/// in the middle of a connection: cc, ack, rto, send_buffer, min_send_buffer, notsent_lowat,
/// recv_buffer, nagle, cork, keep_alive, user_timeout, syn_retries, fin_wait_2, dscp, ttl.
#[derive(Args)]
#[command(after_long_help = SET_EXAMPLES)]
pub(crate) struct SetArgs {
    /// What to set: cc=reno, or several with commas: cc=cubic:beta=0.8,ack=immediate
    #[arg(value_name = "KEY=VALUE,...")]
    pub(crate) options: String,
    /// Filter, as in ackline ss
    #[arg(value_name = "FILTER", conflicts_with = "all")]
    pub(crate) filter: Vec<String>,
    /// Change all connections
    #[arg(short, long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) at: StackChoice,
}

const SET_EXAMPLES: &str = "\
Examples:
  ackline set cc=reno --all
  ackline set ack=immediate dport = :5001
  ackline set rto=frto,user_timeout=10s --pid 4711 dst 10.0.0.2";

/// Show and change the published ports of a running proxy
///
/// Without PORTS, prints what each proxy of this user publishes. With PORTS, publishes them, or
/// with --remove closes them; then prints what is published. Connections of a port that is closed
/// go on. A change fails as a whole if its port cannot be listened at; of several, those before it
/// stay.
#[derive(Args)]
#[command(after_long_help = PUBLISH_EXAMPLES)]
pub(crate) struct PublishArgs {
    /// What to publish, as in ackline proxy --publish
    #[arg(value_name = "[ADDR:]PORT[:GUEST][:PORT][/udp]")]
    pub(crate) ports: Vec<String>,
    /// Close these ports instead
    #[arg(short, long, requires = "ports")]
    pub(crate) remove: bool,
    /// Print JSON: pid, publish and the addresses that are listened at
    #[arg(short, long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) at: StackChoice,
}

const PUBLISH_EXAMPLES: &str = "\
Examples:
  ackline publish                                 what running proxies publish
  ackline publish 8080:10.0.2.15:80
  ackline publish --remove 8080:10.0.2.15:80
  ackline publish -j --pid 4711 | jq '.[].listens'";

/// Show the counters of running ackline commands, as nstat does those of the kernel
///
/// Counters have the names of Linux's nstat; those that Linux does not have begin with Ackline.
/// Without -a, the numbers are increments since the last call, and the last column is their rate
/// per second. Counters of several stacks are added up. A stack that started since the last call
/// counts from zero. Gauges (TcpCurrEstab and others with Curr in their names) are shown with -a
/// only.
#[derive(Args)]
#[command(after_long_help = NSTAT_EXAMPLES)]
pub(crate) struct NstatArgs {
    /// Show only counters whose names match one of these: 'TcpExt*', '*retrans*'
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// Show absolute values: ignore the history
    #[arg(short, long = "ignore")]
    pub(crate) absolute: bool,
    /// Show counters that have not changed, too
    #[arg(short, long)]
    pub(crate) zeros: bool,
    /// Reset the history: show absolute values now, and increments from now on
    #[arg(short, long)]
    pub(crate) reset: bool,
    /// Do not update the history
    #[arg(short = 's', long = "noupdate")]
    pub(crate) no_update: bool,
    /// Update the history and print nothing
    #[arg(short = 'n', long = "nooutput")]
    pub(crate) no_output: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Print JSON with line breaks
    #[arg(short, long, requires = "json")]
    pub(crate) pretty: bool,
    #[command(flatten)]
    pub(crate) at: StackChoice,
}

const NSTAT_EXAMPLES: &str = "\
Examples:
  ackline nstat                                   increments since the last call
  ackline nstat -az                               every counter since the stacks began
  ackline nstat -n; sleep 10; ackline nstat       what ten seconds bring
  ackline nstat -s '*retrans*' '*timeout*'        some of them, and the history stays
  ackline nstat -aj --pid 4711 | jq .ackline.TcpRetransSegs

The history is nstat.json in the directory of the control sockets. The options are nstat's; -d and -t, which need a daemon, \
are not there.";

/// Follow the connections of running ackline commands on the screen
///
/// Each stack has a line above the table: rates with headers, connections, memory, policies,
/// retransmissions and drops. A row is a connection: rates of payload up and down, congestion
/// window, round trip, queues, retransmissions and its rate over time. Keys sort, filter, freeze
/// and open one connection's plots; ? lists them.
#[derive(Args)]
#[command(after_long_help = TOP_EXAMPLES)]
pub(crate) struct TopArgs {
    /// Filter, as in ackline ss
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// Time between updates: 1, 0.5, 200ms
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = values::time)]
    pub(crate) delay: Duration,
    /// Exit after this many updates
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Print text instead of using the terminal; rates start with the second update
    #[arg(short, long)]
    pub(crate) batch: bool,
    /// Column to sort by
    #[arg(short = 'o', long, value_name = "COLUMN", value_enum, default_value = "tx")]
    pub(crate) sort: Column,
    /// Reverse the order
    #[arg(short, long)]
    pub(crate) reverse: bool,
    #[command(flatten)]
    pub(crate) at: StackChoice,
}

const TOP_EXAMPLES: &str = "\
Examples:
  ackline top
  ackline top -d 0.2 -o rtt dport = :5001
  ackline top -b -n 2 -d 5 > rates.txt";
