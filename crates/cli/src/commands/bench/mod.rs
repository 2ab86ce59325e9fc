//! `ackline bench`: measures throughput against another `ackline bench` or a stock iperf3, in
//! either role.
//!
//! | file | owns |
//! |---|---|
//! | `protocol` | iperf3's control protocol: states, cookie, parameters and results as JSON |
//! | `client`, `server`, `door` | the two roles, and who is let in |
//! | `run`, `meter`, `cpu` | a test while data flows, the same for both |
//! | `stream` | the connections that carry data |
//! | `report`, `screen` | what is said of it |

mod client;
mod cpu;
mod door;
mod meter;
mod protocol;
mod report;
mod run;
mod screen;
mod server;
mod stream;

#[cfg(test)]
mod tests;

use crate::args::bench::{BenchArgs, TestArgs};
use crate::args::values::Destination;
use crate::failure::Failure;
use crate::network::tunnel::{self, PortsFor, Tunnel};
use crate::output;
use crate::report::egress::EgressReport;
use crate::settings::{PolicyNames, Settings};
use crate::signals::Signals;
use crate::watchers::WatchPlan;
use ackline::Registry;
use ackline::core::ConnConfig;
use ackline::core::config::Nagle;
use ackline::core::policy::spec::SpecError;
use ackline::runtime::{Stack, TcpStream};
use protocol::{Control, TestParameters, TestState};
use report::Style;
use report::record::{Buffers, Direction, Length, Own};
use screen::Screen;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bytes per write if `-l` is not given.
const DEFAULT_BLOCK: u64 = 128 << 10;
/// Seconds to test if nothing else is said.
const DEFAULT_TIME: u32 = 10;
/// Time for the last words on a control connection.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// What a role works with.
struct Bench {
    stack: Stack,
    /// Such as `TUN ack0`.
    device: String,
    names: PolicyNames,
    registry: Registry,
    /// ECN was set on the command line: no congestion control of a test changes that.
    keeps_ecn: bool,
    /// Most bytes of buffers that the connections of a client's test may ask for together.
    max_buffers: u64,
    style: Style,
    interval: Option<ackline::core::Duration>,
    print: screen::Print,
}

pub(crate) fn run(args: &BenchArgs, registry: &Registry) -> Result<(), Failure> {
    let style = Style {
        json: args.json(),
        verbose: args.verbose,
        rate: args.format.unwrap_or_default(),
        title: args.test.title.clone(),
    };
    let ready = prepare(args, registry).and_then(|prepared| Ok((prepared, runtime()?)));
    let (prepared, runtime) = match ready {
        Ok(ready) => ready,
        Err(failure) => return Err(said(&mut Screen::new(style, output::print), failure)),
    };
    runtime.block_on(execute(args, prepared, style))
}

/// A failure, after the JSON document that tells of it. If that cannot be printed, that is the
/// failure.
fn said(screen: &mut Screen, failure: Failure) -> Failure {
    screen.done(Some(&failure)).err().unwrap_or(failure)
}

/// What is known before there is a stack.
struct Prepared {
    settings: Settings,
    tunnel: Tunnel,
    watch: WatchPlan,
    part: Part,
}

fn prepare(args: &BenchArgs, registry: &Registry) -> Result<Prepared, Failure> {
    if args.udp {
        return Err(Failure::usage("-u: ackline is a TCP stack; leave -u out to test with TCP"));
    }
    let mut chosen = args.policies.clone();
    if let Some(congestion) = &args.test.congestion {
        registry.cc(congestion).map_err(|error| Failure::usage(format!("-C: {error}")))?;
        chosen.cc = Some(congestion.clone());
    }
    let settings = chosen.resolve(registry)?;
    let ports_for = if args.client.is_some() {
        let streams = if args.test.bidir { 2 * args.test.parallel } else { args.test.parallel };
        // At most a few hundred, and some for control and for addresses that were tried before.
        PortsFor::Connections(u16::try_from(streams).unwrap_or(u16::MAX / 2) + 8)
    } else {
        PortsFor::Listener(args.port)
    };
    let tunnel = args.tunnel.plan(args.bind.map(|address| ("-B", address)), ports_for)?;
    let part = match &args.client {
        Some(host) => {
            let to = Destination { host: host.clone(), port: args.port };
            let resolved = client::Target::resolve(args, &to, &tunnel)?;
            Part::Client(Box::new((resolved, parameters(&args.test))))
        }
        None => Part::Server(server::ServerAddress::find(args, &tunnel)?),
    };
    let watch = args.watch.plan("bench", args.json().is_none())?;
    Ok(Prepared { settings, tunnel, watch, part })
}

async fn execute(args: &BenchArgs, prepared: Prepared, style: Style) -> Result<(), Failure> {
    let Prepared { settings, tunnel, watch, part } = prepared;
    let ready = Signals::catch().and_then(|signals| {
        let recording = watch.begin(tunnel.link(), &settings)?;
        let stack = start(&tunnel, &settings)?;
        let watchers = recording.watch(&stack, &settings)?;
        Ok((signals, stack, watchers))
    });
    let (mut signals, stack, watchers) = match ready {
        Ok(ready) => ready,
        Err(failure) => return Err(said(&mut Screen::new(style, output::print), failure)),
    };
    let interval = Some(args.interval.into()).filter(|interval| *interval > ackline::core::Duration::ZERO);
    let bench = Bench {
        stack,
        device: tunnel.name(),
        keeps_ecn: settings.sets("ecn"),
        registry: settings.registry().clone(),
        names: settings.names,
        max_buffers: args.max_buffers,
        style,
        interval,
        print: output::print,
    };
    let outcome = match part {
        Part::Client(test) => client::run(&bench, &test.0, &test.1, &mut signals).await,
        Part::Server(place) => server::run(&bench, place, args.one_off, &mut signals).await,
    };
    bench.stack.shutdown(CLOSE_WAIT).await;
    watchers.end();
    outcome
}

/// As that of other commands, but asking the clock more often: between two looks at timers and
/// descriptors come this many steps of tasks, each of which may work on megabytes here, and
/// intervals are to end in time.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    const STEPS: u32 = 8;
    tunnel::build(tokio::runtime::Builder::new_current_thread().event_interval(STEPS))
}

/// What this end is to do.
enum Part {
    Client(Box<(client::Target, TestParameters)>),
    Server(server::ServerAddress),
}

/// Opens the device and starts its stack.
fn start(tunnel: &Tunnel, settings: &Settings) -> Result<Stack, Failure> {
    let device = tunnel.open()?;
    tunnel.start(device, settings, |config| settings.shorten_send_buffer(config))
}

fn parameters(args: &TestArgs) -> TestParameters {
    TestParameters {
        direction: match (args.reverse, args.bidir) {
            (true, _) => Direction::Reverse,
            (false, true) => Direction::Bidirectional,
            (false, false) => Direction::Forward,
        },
        streams: args.parallel,
        length: match (args.bytes, args.blockcount) {
            (Some(bytes), _) => Length::Bytes(bytes),
            (None, Some(blocks)) => Length::Blocks(blocks),
            (None, None) => Length::Seconds(args.time.unwrap_or(DEFAULT_TIME)),
        },
        omit: args.omit,
        block: args.length.unwrap_or(DEFAULT_BLOCK),
        window: args.window,
        mss: args.set_mss,
        no_delay: args.no_delay,
        bitrate: args.bitrate.map_or(0, |bitrate| bitrate.rate),
        burst: args.bitrate.and_then(|bitrate| bitrate.burst).unwrap_or(0),
        tos: 0,
        title: args.title.clone(),
        extra_data: args.extra_data.clone(),
        congestion: args.congestion.clone(),
        server_output: args.get_server_output,
    }
}

/// Addresses of the IP version that `-4`, `-6` or `-B` ask for.
fn wanted(args: &BenchArgs, address: IpAddr) -> bool {
    args.bind.is_none_or(|bind| bind.is_ipv4() == address.is_ipv4())
        && (!args.version4 || address.is_ipv4())
        && (!args.version6 || address.is_ipv6())
}

impl Bench {
    fn screen(&self) -> Screen {
        Screen::new(self.style.clone(), self.print)
    }

    /// Settings of the connections that carry the data of a test.
    fn settings(&self, parameters: &TestParameters) -> Result<Arc<ConnConfig>, SpecError> {
        let TestParameters { window, mss, no_delay, tos, congestion, .. } = parameters;
        if (window, mss, *no_delay, *tos, congestion) == (&None, &None, false, 0, &None) {
            return Ok(self.stack.connections().clone());
        }
        let mut config = (**self.stack.connections()).clone();
        if let Some(window) = window.and_then(|window| u32::try_from(window).ok()) {
            config.send_buffer = window;
            config.min_send_buffer = None;
            config.recv_buffer = window;
            config.initial_recv_window = None;
        }
        if let Some(mss) = mss.and_then(|mss| u16::try_from(mss).ok()) {
            config.mss = Some(mss);
        }
        if *no_delay {
            config.nagle = Nagle::Off;
        }
        if *tos > 0 {
            // The two low bits are ECN's (RFC 3168, section 5).
            config.dscp = tos >> 2;
        }
        if let Some(congestion) = congestion {
            config.policies.cc = self.registry.cc(congestion)?;
            if !self.keeps_ecn {
                config.ecn = self.registry.ecn(congestion)?;
            }
        }
        Ok(Arc::new(config))
    }

    fn buffers(config: &ConnConfig, parameters: &TestParameters) -> Buffers {
        Buffers {
            requested: parameters.window.unwrap_or(0),
            send: config.send_buffer.into(),
            receive: config.recv_buffer.into(),
        }
    }

    fn own(&self) -> Own {
        Own {
            device: self.device.clone(),
            policies: self.names.clone(),
            timing: (&self.stack.stats()).into(),
            egress: EgressReport::of(&self.stack),
        }
    }
}

/// Tells the other end that this one was stopped, while the data connections still stand: what
/// arrives first is what the other end shows.
async fn say_good_bye(control: &mut Control<TcpStream>, state: TestState) {
    let said = async {
        // If that does not arrive, the end of the connection says the same.
        if control.send(state).await.is_ok() {
            let _ = control.stream_mut().flushed().await;
        }
    };
    let _ = tokio::time::timeout(CLOSE_WAIT, said).await;
}

/// Waits for `work`, but for no longer than until a signal.
async fn unless_stopped<T>(
    signals: &mut Signals,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        outcome = work => outcome,
        signal = signals.next() => Err(signal.failure("the test was interrupted")),
    }
}
