//! The client's part: it decides what is tested, and when that is over.

use super::protocol::{Control, Cookie, MAX_JSON, PATIENCE, Results, TestParameters, TestState};
use super::report::record::{Contact, Setup};
use super::run::{self, Measurements, Role, TestRun};
use super::screen::Screen;
use super::stream::DataStream;
use super::{Bench, say_good_bye, unless_stopped, wanted};
use crate::args::bench::BenchArgs;
use crate::args::values::Destination;
use crate::failure::{Exit, Failure};
use crate::network::peer;
use crate::network::tunnel::Tunnel;
use crate::output::clock::wall_clock;
use crate::signals::Signals;
use ackline::core::{ConnConfig, Target as Remote};
use ackline::runtime::TcpStream;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The server, and how it is reached.
pub(super) struct Target {
    to: Destination,
    addresses: Vec<SocketAddr>,
    /// Own address (`-B`).
    from: Option<IpAddr>,
    patience: Duration,
}

impl Target {
    pub(super) fn resolve(args: &BenchArgs, to: &Destination, tunnel: &Tunnel) -> Result<Self, Failure> {
        let mut addresses = tunnel.resolve(to)?;
        addresses.retain(|address| wanted(args, address.ip()));
        if addresses.is_empty() {
            let how = match args.bind {
                _ if args.version4 => "by IPv4 (-4)".to_owned(),
                _ if args.version6 => "by IPv6 (-6)".to_owned(),
                bind => format!("from {} (-B)", bind.map_or_else(String::new, |bind| bind.to_string())),
            };
            return Err(Failure::usage(format!("{to} cannot be reached {how}")));
        }
        let patience = args.test.connect_timeout.unwrap_or(PATIENCE);
        Ok(Self { to: to.clone(), addresses, from: args.bind, patience })
    }

    #[cfg(test)]
    pub(super) fn of(address: SocketAddr) -> Self {
        let to = Destination { host: address.ip().to_string(), port: address.port() };
        Self { to, addresses: vec![address], from: None, patience: PATIENCE }
    }

    /// The first address that accepts; if none does, why the first one did not.
    async fn connect(&self, bench: &Bench) -> Result<TcpStream, Failure> {
        let mut first_failure = None;
        for &address in &self.addresses {
            let connected = self.connect_to(bench, address, bench.stack.connections().clone());
            match tokio::time::timeout(self.patience, connected).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => first_failure.get_or_insert(self.unreachable(&error)),
                Err(_) => first_failure.get_or_insert(self.unreachable(&io::ErrorKind::TimedOut.into())),
            };
        }
        Err(first_failure.unwrap_or_else(|| self.unreachable(&io::ErrorKind::NotFound.into())))
    }

    async fn connect_to(
        &self,
        bench: &Bench,
        address: SocketAddr,
        config: Arc<ConnConfig>,
    ) -> io::Result<TcpStream> {
        let mut remote = Remote::new(address);
        remote.local_address = self.from;
        bench.stack.connect_to(remote, config).await
    }

    fn unreachable(&self, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            let (to, port) = (&self.to, self.to.port);
            let advice = format!("is a server running? for instance: iperf3 -s -p {port}");
            return Failure::new(Exit::Network, format!("cannot reach {to}: connection refused ({advice})"));
        }
        peer::unreachable(&self.to, self.to.port, error)
    }
}

/// Tests once.
pub(super) async fn run(
    bench: &Bench,
    target: &Target,
    parameters: &TestParameters,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let mut screen = bench.screen();
    screen.opening()?;
    screen.labels(parameters);
    let outcome = test(bench, target, parameters, signals, &mut screen).await;
    screen.own(bench.own());
    screen.done(outcome.as_ref().err())?;
    outcome
}

async fn test(
    bench: &Bench,
    target: &Target,
    parameters: &TestParameters,
    signals: &mut Signals,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (mut control, streams) = unless_stopped(signals, prepare(bench, target, parameters, screen)).await?;
    screen.started()?;
    let mut running = TestRun::start(Role::Client, parameters, bench.interval, streams);
    let over = running.measure(&mut control, signals, screen).await;
    let measurements = running.stop(screen).await?;
    let outcome = match over {
        Ok(None) => unless_stopped(signals, exchange(&mut control, &measurements)).await,
        Ok(Some(state)) => match unless_stopped(signals, control.unless_refused(state)).await {
            Ok(state) => Err(control.wrong(&format!("{state:?} during the test"))),
            Err(failure) => Err(failure),
        },
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(results) => {
            screen.end(measurements.end(Some(&results)))?;
            if let Some(output) = results.server_output {
                screen.told_by_server(output)?;
            }
            unless_stopped(signals, control.send(TestState::IperfDone)).await
        }
        Err(failure) => {
            screen.end(measurements.end(None))?;
            if matches!(failure.exit, Exit::Signal(_)) {
                say_good_bye(&mut control, TestState::ClientTerminate).await;
            }
            Err(failure)
        }
    }
}

/// Everything before the first byte of data.
async fn prepare(
    bench: &Bench,
    target: &Target,
    parameters: &TestParameters,
    screen: &mut Screen,
) -> Result<(Control<TcpStream>, Vec<DataStream>), Failure> {
    let config = bench.settings(parameters).map_err(|error| Failure::usage(format!("-C: {error}")))?;
    let stream = target.connect(bench).await?;
    let (_, server) = stream.addresses();
    let lost = |error: io::Error| peer::lost(server, &error);
    stream.set_nodelay(true).map_err(lost)?;
    let cookie = Cookie::random()?;
    let mut control = Control::new(stream, server);
    control.send_cookie(&cookie).await?;
    control.expect(TestState::ParamExchange).await?;
    control.send_json(&parameters.to_json()).await?;
    screen.begin(Setup {
        contact: Contact::ConnectingTo { host: target.to.host.clone(), port: target.to.port },
        time: wall_clock(),
        cookie: cookie.to_string(),
        control_mss: control.stream().info().map_err(lost)?.snd_mss,
        buffers: Bench::buffers(&config, parameters),
        parameters: parameters.described(),
    })?;
    control.expect(TestState::CreateStreams).await?;
    let mut streams = Vec::new();
    for index in 0..parameters.connections() {
        // The client's own direction comes first.
        let sends = match parameters.direction {
            super::Direction::Forward => true,
            super::Direction::Reverse => false,
            super::Direction::Bidirectional => index < parameters.streams,
        };
        let connected = target.connect_to(bench, server, config.clone());
        let mut stream = tokio::time::timeout(PATIENCE, connected)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| peer::unreachable(format!("{server} for data"), server.port(), &error))?;
        introduce(&mut stream, &cookie).await.map_err(lost)?;
        let stream = DataStream::new(index, sends, stream);
        screen.connected(run::connected(&stream))?;
        streams.push(stream);
    }
    control.expect(TestState::TestStart).await?;
    control.expect(TestState::TestRunning).await?;
    Ok((control, streams))
}

/// Says which test a connection belongs to.
async fn introduce(stream: &mut TcpStream, cookie: &Cookie) -> io::Result<()> {
    use tokio::io::AsyncWriteExt as _;
    stream.write_all(cookie.octets()).await
}

/// Ends the test and learns what the server measured.
async fn exchange(control: &mut Control<TcpStream>, measurements: &Measurements) -> Result<Results, Failure> {
    control.send(TestState::TestEnd).await?;
    control.expect(TestState::ExchangeResults).await?;
    control.send_json(&measurements.results().to_json()).await?;
    let document = control.receive_json(MAX_JSON).await?;
    let results = Results::from_json(&document)
        .map_err(|why| control.wrong(&format!("results that make no sense: {why}")))?;
    control.expect(TestState::DisplayResults).await?;
    Ok(results)
}
