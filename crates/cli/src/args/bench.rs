//! The options of `bench`, spelled as iperf3's.

use super::limits::{DEFAULT_BUFFERS, MAX_BLOCK, MAX_OMIT, MAX_STREAMS, MAX_TIME, MAX_WINDOW, MSS_RANGE};
use super::units::{Bitrate, RateFormat, parse_bytes, parse_count};
use super::watch::WatchArgs;
use super::{PolicyArgs, TunnelArgs, values};
use crate::args::json::Json;
use ackline::core::quantity::{SECOND, TIME};
use clap::{ArgGroup, Args};
use std::net::IpAddr;
use std::time::Duration;

/// Measure throughput against iperf3 or another ackline
///
/// Speaks iperf3's protocol as client or server, so the peer can be a stock iperf3. Options, output
/// and JSON are those of iperf3 3.12, for TCP.
#[derive(Args)]
#[command(after_long_help = BENCH_EXAMPLES)]
#[command(group = ArgGroup::new("role").required(true).args(["server", "client"]))]
pub(crate) struct BenchArgs {
    /// Serve clients, one at a time, until SIGINT or SIGTERM
    #[arg(short, long)]
    pub(crate) server: bool,
    /// Connect to the server on HOST: a name or an address
    #[arg(short, long, value_name = "HOST")]
    pub(crate) client: Option<String>,
    /// Port of the server
    #[arg(short, long, default_value_t = 5201, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// Use only this address of the stack; without --local, the stack takes it, in a /24 (IPv6:
    /// /64)
    #[arg(short = 'B', long, value_name = "ADDR", value_parser = values::address)]
    pub(crate) bind: Option<IpAddr>,
    /// Only IPv4
    #[arg(short = '4', long, conflicts_with = "version6")]
    pub(crate) version4: bool,
    /// Only IPv6
    #[arg(short = '6', long)]
    pub(crate) version6: bool,
    /// Seconds between reports: 0.1 to 60, or 500ms, 1m; 0 for none
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Unit of bitrates in reports: k, m, g, t for bits; K, M, G, T for bytes
    #[arg(short, long, value_name = "UNIT")]
    pub(crate) format: Option<RateFormat>,
    /// Also print versions, parameters, CPU time and congestion control
    #[arg(short = 'V', long)]
    pub(crate) verbose: bool,
    /// Print iperf3's JSON, with more about the stack under "ackline" (docs/bench.md has the
    /// fields)
    #[arg(short = 'J', long)]
    json: bool,
    /// Print iperf3's JSON as it comes: a line for the start, each interval and the end, or an
    /// error
    #[arg(long)]
    json_stream: bool,
    /// Serve one client, then exit
    #[arg(short = '1', long, conflicts_with = "client")]
    pub(crate) one_off: bool,
    /// Maximum memory for the buffers of a client's -w, over all its connections [default: 1G]
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BUFFERS, hide_default_value = true, value_parser = buffers,
        conflicts_with = "client")]
    pub(crate) max_buffers: u64,
    #[command(flatten)]
    pub(crate) test: TestArgs,
    #[command(flatten)]
    pub(crate) tunnel: TunnelArgs,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// Refused, with a reason.
    #[arg(short, long, hide = true)]
    pub(crate) udp: bool,
}

impl BenchArgs {
    /// What `--json` and `--json-stream` ask for.
    pub(crate) const fn json(&self) -> Option<Json> {
        Json::asked(self.json, self.json_stream)
    }
}

/// What a client asks for.
#[derive(Args)]
#[command(next_help_heading = "Client")]
pub(crate) struct TestArgs {
    /// Seconds to test, or 10s, 2m; 0: until SIGINT [default: 10]
    #[arg(short, long, value_name = "SECONDS", value_parser = time,
        conflicts_with_all = ["bytes", "blockcount", "server"])]
    pub(crate) time: Option<u32>,
    /// Bytes to send over all streams, instead of a time: 500M, 1G
    ///
    /// The test ends when the server's TCP has acknowledged them; with -R when the client has
    /// received as many; with --bidir when either has happened.
    #[arg(short = 'n', long, value_name = "N", value_parser = bytes, conflicts_with_all = ["blockcount", "server"])]
    pub(crate) bytes: Option<u64>,
    /// Blocks of --length to send over all streams, instead of a time
    #[arg(short = 'k', long, value_name = "N", value_parser = blocks, conflicts_with = "server")]
    pub(crate) blockcount: Option<u64>,
    /// Number of parallel streams in each direction
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_STREAMS)), conflicts_with = "server")]
    pub(crate) parallel: u32,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with_all = ["bidir", "server"])]
    pub(crate) reverse: bool,
    /// Both sides send
    #[arg(long, conflicts_with = "server")]
    pub(crate) bidir: bool,
    /// Omit the first seconds of the test: 2, 2s
    #[arg(short = 'O', long, value_name = "SECONDS", default_value = "0", value_parser = omit,
        conflicts_with = "server")]
    pub(crate) omit: u32,
    /// Bytes per write [default: 128K]
    ///
    /// Reads take what has arrived.
    #[arg(short, long, value_name = "N", value_parser = block, conflicts_with = "server")]
    pub(crate) length: Option<u64>,
    /// Send and receive buffer of each stream, on both sides
    #[arg(short, long, value_name = "N", value_parser = window, conflicts_with = "server")]
    pub(crate) window: Option<u64>,
    /// Maximum segment size in bytes, on both sides
    #[arg(short = 'M', long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(i64::from(*MSS_RANGE.start())..=i64::from(*MSS_RANGE.end())),
        conflicts_with = "server")]
    pub(crate) set_mss: Option<u32>,
    /// Congestion control on both sides; --cc sets only this side's
    ///
    /// The server gets the text as written here. If it has no such congestion control, it keeps its
    /// own: a kernel has no acwap, for example.
    #[arg(short = 'C', long, value_name = "SPEC", conflicts_with_all = ["cc", "server"])]
    pub(crate) congestion: Option<String>,
    /// Maximum bitrate of each stream, and the burst in blocks: 10M, 10mbit, 1G/8
    ///
    /// The application limits the rate, as in iperf3: it writes a block when the mean since the
    /// start allows it. TCP then sends the block as it likes; to pace packets, choose a congestion
    /// control that paces.
    #[arg(short, long, value_name = "N[/BURST]", conflicts_with = "server")]
    pub(crate) bitrate: Option<Bitrate>,
    /// Disable Nagle's algorithm on both sides
    #[arg(short = 'N', long, conflicts_with = "server")]
    pub(crate) no_delay: bool,
    /// Milliseconds to wait for the server to answer, or 500ms, 2s
    #[arg(long, value_name = "MS", value_parser = patience, conflicts_with = "server")]
    pub(crate) connect_timeout: Option<Duration>,
    /// Also print the server's output
    #[arg(long, conflicts_with = "server")]
    pub(crate) get_server_output: bool,
    /// Prefix for every line
    #[arg(short = 'T', long, value_name = "TEXT", conflicts_with = "server")]
    pub(crate) title: Option<String>,
    /// Text to include in the JSON of both sides
    #[arg(long, value_name = "TEXT", conflicts_with = "server")]
    pub(crate) extra_data: Option<String>,
}

const BENCH_EXAMPLES: &str = "\
Examples (as root, or with a TUN device made for you, see --tun):
  iperf3 -s                                      then:  ackline bench -c 198.18.0.1 -t 5
  ackline bench -s                               then:  iperf3 -c 198.18.0.2 -R
  ackline bench -c 198.18.0.1 -P 8 --bidir -O 1
  ackline bench -c 198.18.0.1 -J | jq .end.sum_received.bits_per_second
  ackline bench -c 198.18.0.1 --cc acwap --ack immediate

A sender's bytes are those that TCP has sent; data in the send buffer does not count. Cwnd, RTT and Retr are those of \
ackline's own connections. Windows, buffers and the bitrate are per stream.

A server turns away other clients while it serves one. It continues after a client that fails. Exit statuses are those \
of ackline --help: 4 if the peer cannot be reached, refuses, or goes away.";

/// Time between two lines.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    values::nanos(text, SECOND, 0..=60 * SECOND)
        .filter(|time| time.is_zero() || *time >= Duration::from_millis(100))
        .ok_or_else(|| {
            let units = TIME.unit_names();
            format!("not an interval; write seconds from 0.1 to 60, or 500ms, or 0 for none (units: {units})")
        })
}

/// Whole seconds up to `most`, which is as fine as iperf3's protocol is.
fn seconds(text: &str, most: u32) -> Result<u32, String> {
    values::nanos(text, SECOND, 0..=u64::from(most) * SECOND)
        .filter(|time| time.subsec_nanos() == 0)
        .and_then(|time| u32::try_from(time.as_secs()).ok())
        .ok_or_else(|| {
            let units = TIME.unit_names();
            format!("not a time; write whole seconds from 0 to {most}, or 10s, 2m (units: {units})")
        })
}

fn time(text: &str) -> Result<u32, String> {
    seconds(text, MAX_TIME)
}

fn omit(text: &str) -> Result<u32, String> {
    seconds(text, MAX_OMIT)
}

/// A bare number is milliseconds, as in iperf3.
fn patience(text: &str) -> Result<Duration, String> {
    const MILLISECOND: u64 = SECOND / 1_000;
    values::nanos(text, MILLISECOND, MILLISECOND..=3_600 * SECOND).ok_or_else(|| {
        let units = TIME.unit_names();
        format!("not a time; write milliseconds from 1 to 3600000, or 500ms, 2s (units: {units})")
    })
}

fn bytes(text: &str) -> Result<u64, String> {
    at_least_one(parse_bytes(text)?)
}

fn blocks(text: &str) -> Result<u64, String> {
    at_least_one(parse_count(text)?)
}

fn at_least_one(count: u64) -> Result<u64, String> {
    if count > 0 { Ok(count) } else { Err("must be at least 1".to_owned()) }
}

fn buffers(text: &str) -> Result<u64, String> {
    within(text, 4096, u64::MAX)
}

fn block(text: &str) -> Result<u64, String> {
    within(text, 1, MAX_BLOCK)
}

fn window(text: &str) -> Result<u64, String> {
    within(text, 2048, MAX_WINDOW)
}

fn within(text: &str, least: u64, most: u64) -> Result<u64, String> {
    Some(parse_bytes(text)?)
        .filter(|count| (least..=most).contains(count))
        .ok_or_else(|| format!("must be from {least} to {most} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    fn parse(options: &str) -> Result<BenchArgs, String> {
        let words = ["ackline", "bench"].into_iter().chain(options.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Bench(args) => Ok(*args),
            _ => Err("not bench".to_owned()),
        }
    }

    #[test]
    fn options_are_spelled_as_iperf3_spells_them() {
        let args = parse(
            "-c h -p 1 -i 0.5 -f g -V -J -n 1M -P 3 --bidir -O 2 -l 64K -w 1M -M 1000 -C reno -b 10M/4 -N -T x -4",
        )
        .expect("good");
        let test = &args.test;
        assert_eq!((test.bytes, test.length, test.window), (Some(1 << 20), Some(65_536), Some(1 << 20)));
        assert_eq!(test.bitrate, Some(Bitrate { rate: 10_000_000, burst: Some(4) }));
        assert_eq!((args.port, args.interval), (1, Duration::from_millis(500)));
        let args = parse("-c h -t 2m -O 3s -i 500ms --connect-timeout 2s -b 10mbit -w 64KiB").expect("good");
        let test = &args.test;
        assert_eq!((test.time, test.omit, args.interval), (Some(120), 3, Duration::from_millis(500)));
        assert_eq!(test.connect_timeout, Some(Duration::from_secs(2)));
        assert_eq!(test.bitrate, Some(Bitrate { rate: 10_000_000, burst: None }));
        let bare = parse("-c h -t 2 --connect-timeout 200").expect("good").test;
        assert_eq!((bare.time, bare.connect_timeout), (Some(2), Some(Duration::from_millis(200))));
        assert!(parse("-s -1 -p 99 -B 10.0.0.2").is_ok_and(|args| args.server && args.one_off));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in [
            "",
            "-s -c h",
            "-c h -R --bidir",
            "-c h -n 1 -t 1",
            "-c h -n 1 -k 1",
            "-s -R",
            "-s -P 2",
            "-c h -1",
            "-c h -4 -6",
            "-c h -C reno --cc reno",
            "-c h -P 0",
            "-c h -P 129",
            "-c h -i 0.01",
            "-c h -l 2M",
            "-c h -M 10",
            "-c h -n 0",
            "-c h -t 86401",
            "-c h -O 61",
            "-c h -p 0",
            "-c h -b x",
            "-c h -w 1",
            "-c h -k 0",
            "-c h -k 10KB",
            "-c h -t 1.5",
            "-c h -t 1500ms",
            "-c h --connect-timeout 0",
            "-c h --max-buffers 1G",
            "-s --max-buffers 1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
