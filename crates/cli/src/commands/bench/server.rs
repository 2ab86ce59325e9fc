//! The server's part: it serves one client after the other, and does what each asks for.

use super::door::{Door, Guest};
use super::protocol::{
    Control, MAX_CLIENT_RESULTS, MAX_PARAMETERS, PATIENCE, Results, ServerError, TestParameters, TestState,
};
use super::report::record::{Contact, Direction, Setup};
use super::run::{self, Measurements, Role, TestRun};
use super::screen::Screen;
use super::stream::DataStream;
use super::{Bench, said, say_good_bye, unless_stopped, wanted};
use crate::args::bench::BenchArgs;
use crate::failure::{Exit, Failure};
use crate::network::peer;
use crate::network::tunnel::Tunnel;
use crate::output;
use crate::output::clock::wall_clock;
use crate::signals::Signals;
use ackline::core::{ConnConfig, ListenOn};
use ackline::runtime::TcpStream;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Where a server listens.
#[derive(Clone, Copy)]
pub(super) struct ServerAddress {
    on: ListenOn,
    port: u16,
}

impl ServerAddress {
    pub(super) fn find(args: &BenchArgs, tunnel: &Tunnel) -> Result<Self, Failure> {
        let port = args.port;
        let address = match args.bind {
            Some(bind) => Some(bind),
            None if args.version4 || args.version6 => {
                let own = tunnel.addresses().into_iter().find(|address| wanted(args, *address));
                let (option, example) =
                    if args.version4 { ("-4", "198.18.0.2/24") } else { ("-6", "fd00::2/64") };
                Some(own.ok_or_else(|| {
                    Failure::usage(format!(
                        "{option}: the stack has no address of this version: give it one with --local {example}"
                    ))
                })?)
            }
            None => None,
        };
        let on = match address {
            Some(address) => ListenOn::Address(SocketAddr::new(address, port)),
            None => ListenOn::Port(port),
        };
        Ok(Self { on, port })
    }

    #[cfg(test)]
    pub(super) fn port(port: u16) -> Self {
        Self { on: ListenOn::Port(port), port }
    }
}

/// Serves until a signal, or one client only.
pub(super) async fn run(
    bench: &Bench,
    place: ServerAddress,
    one_off: bool,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let usual = bench.stack.connections();
    let mut door = Door::open(&bench.stack, place.on, usual.clone())
        .map_err(|failure| said(&mut bench.screen(), failure))?;
    bench.screen().opening()?;
    for test in 1.. {
        let mut screen = bench.screen();
        screen.listening(place.port, test)?;
        let guest = tokio::select! {
            guest = door.next() => guest.map_err(|failure| said(&mut screen, failure))?,
            // There was nothing to be interrupted.
            _ = signals.next() => return Ok(()),
        };
        let (_, peer) = guest.stream.addresses();
        let (outcome, used) = serve(bench, door, guest, signals, &mut screen).await;
        screen.own(bench.own());
        screen.done(outcome.as_ref().err())?;
        if one_off {
            return outcome;
        }
        if let Err(failure) = outcome {
            match failure.exit {
                // The next client may do better.
                Exit::Network => output::say(&complaint(peer, &failure)),
                _ => return Err(failure),
            }
        }
        door = used?.reopen(usual.clone())?;
    }
    Ok(())
}

/// Why a test failed, and with whom.
fn complaint(peer: SocketAddr, failure: &Failure) -> String {
    let (peer, why) = (peer.to_string(), failure.to_string());
    if why.contains(&peer) { format!("ackline: {why}") } else { format!("ackline: test with {peer}: {why}") }
}

/// One test, and the door for the next one.
async fn serve(
    bench: &Bench,
    door: Door,
    guest: Guest,
    signals: &mut Signals,
    screen: &mut Screen,
) -> (Result<(), Failure>, Result<Door, Failure>) {
    let Guest { stream, cookie, .. } = guest;
    let (_, peer) = stream.addresses();
    let mut control = Control::new(stream, peer);
    let (parameters, config) = match unless_stopped(signals, agree(bench, &mut control)).await {
        Ok(agreed) => agreed,
        Err(failure) => return (Err(told(&mut control, failure).await), Ok(door)),
    };
    let mut door = match door.reopen(config.clone()) {
        Ok(door) => door,
        Err(failure) => return (Err(failure.clone()), Err(failure)),
    };
    screen.labels(&parameters);
    let setup = Setup {
        contact: Contact::AcceptedFrom(peer),
        time: wall_clock(),
        cookie: cookie.to_string(),
        control_mss: control.stream().info().map_or(0, |info| info.snd_mss),
        buffers: Bench::buffers(&config, &parameters),
        parameters: parameters.described(),
    };
    let outcome = async {
        screen.begin(setup)?;
        let gathered = gather(&mut control, &mut door, &cookie, &parameters, screen);
        let streams = match unless_stopped(signals, gathered).await {
            Ok(streams) => streams,
            Err(failure) => return Err(told(&mut control, failure).await),
        };
        tokio::select! {
            outcome = test(bench, &mut control, &parameters, streams, signals, screen) => outcome,
            failure = door.turn_all_away() => Err(failure),
        }
    }
    .await;
    (outcome, Ok(door))
}

/// Tells the client where the server was stopped.
async fn told(control: &mut Control<TcpStream>, failure: Failure) -> Failure {
    if matches!(failure.exit, Exit::Signal(_)) {
        say_good_bye(control, TestState::ServerTerminate).await;
    }
    failure
}

/// Learns what the client wants.
async fn agree(
    bench: &Bench,
    control: &mut Control<TcpStream>,
) -> Result<(TestParameters, Arc<ConnConfig>), Failure> {
    let lost = |error: io::Error| peer::lost(control.peer(), &error);
    control.stream().set_nodelay(true).map_err(lost)?;
    control.send(TestState::ParamExchange).await?;
    let document = control.receive_json(MAX_PARAMETERS).await?;
    let acceptable = TestParameters::from_json(&document).and_then(|parameters| {
        parameters.buffers_within(bench.max_buffers)?;
        Ok(parameters)
    });
    let mut parameters = match acceptable {
        Ok(parameters) => parameters,
        Err(refused) => {
            control.send_error(refused.error).await?;
            return Err(Failure::new(Exit::Network, refused.why));
        }
    };
    let config = match bench.settings(&parameters) {
        Ok(config) => config,
        Err(unknown) => {
            // As iperf3: what is received does not depend on it, and the results name what was
            // used.
            output::say(&format!("ackline: test with {}: -C: {unknown}; --cc is used", control.peer()));
            parameters.congestion = None;
            bench.settings(&parameters).unwrap_or_else(|_| bench.stack.connections().clone())
        }
    };
    Ok((parameters, config))
}

/// Waits for all connections of the test, and turns others away.
async fn gather(
    control: &mut Control<TcpStream>,
    door: &mut Door,
    cookie: &super::protocol::Cookie,
    parameters: &TestParameters,
    screen: &mut Screen,
) -> Result<Vec<DataStream>, Failure> {
    control.send(TestState::CreateStreams).await?;
    let wanted = parameters.connections() as usize;
    let mut guests = Vec::with_capacity(wanted);
    let mut patience = std::pin::pin!(tokio::time::sleep(PATIENCE));
    while guests.len() < wanted {
        tokio::select! {
            guest = door.next() => match guest? {
                guest if guest.cookie == *cookie => guests.push(guest),
                other => door.turn_away(other),
            },
            state = control.receive() => {
                let state = control.unless_refused(state?).await?;
                return Err(control.wrong(&format!("{state:?} in place of its connections")));
            }
            () = &mut patience => {
                // Whoever does not connect may not listen, either.
                let _ = control.send_error(ServerError::STREAMS).await;
                let (have, peer) = (guests.len(), control.peer());
                let why = format!("{peer} opened {have} of {wanted} connections in {} s", PATIENCE.as_secs());
                return Err(Failure::new(Exit::Network, why));
            }
        }
    }
    // They may have introduced themselves in another order than they came.
    guests.sort_by_key(|guest| guest.order);
    let mut streams = Vec::with_capacity(wanted);
    for (index, guest) in (0..).zip(guests) {
        // The client's own direction comes first.
        let sends = match parameters.direction {
            Direction::Forward => false,
            Direction::Reverse => true,
            Direction::Bidirectional => index >= parameters.streams,
        };
        let stream = DataStream::new(index, sends, guest.stream);
        screen.connected(run::connected(&stream))?;
        streams.push(stream);
    }
    Ok(streams)
}

/// The test itself, and what comes after it.
async fn test(
    bench: &Bench,
    control: &mut Control<TcpStream>,
    parameters: &TestParameters,
    streams: Vec<DataStream>,
    signals: &mut Signals,
    screen: &mut Screen,
) -> Result<(), Failure> {
    control.send(TestState::TestStart).await?;
    control.send(TestState::TestRunning).await?;
    screen.started()?;
    let mut running = TestRun::start(Role::Server, parameters, bench.interval, streams);
    let over = running.measure(control, signals, screen).await;
    if matches!(over, Ok(Some(TestState::TestEnd))) {
        running.finish();
    }
    let measurements = running.stop(screen).await?;
    screen.end(measurements.end(None))?;
    let outcome = match over {
        Ok(Some(TestState::TestEnd)) => {
            unless_stopped(signals, exchange(control, parameters, &measurements, screen)).await
        }
        Ok(Some(state)) => match unless_stopped(signals, control.unless_refused(state)).await {
            Ok(state) => Err(control.wrong(&format!("{state:?} during the test"))),
            Err(failure) => Err(failure),
        },
        Ok(None) => Err(Failure::new(Exit::Network, "the test ended before the client said so")),
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(()) => Ok(()),
        Err(failure) => Err(told(control, failure).await),
    }
}

/// Learns what the client measured and tells it what this end did.
async fn exchange(
    control: &mut Control<TcpStream>,
    parameters: &TestParameters,
    measurements: &Measurements,
    screen: &Screen,
) -> Result<(), Failure> {
    control.send(TestState::ExchangeResults).await?;
    let document = control.receive_json(MAX_CLIENT_RESULTS).await?;
    Results::from_json(&document)
        .map_err(|why| control.wrong(&format!("results that make no sense: {why}")))?;
    let mut own = measurements.results();
    own.server_output = parameters.server_output.then(|| screen.server_output());
    let mut document = own.to_json();
    if !Control::<TcpStream>::fits(&document) {
        own.server_output = None;
        document = own.to_json();
    }
    control.send_json(&document).await?;
    control.send(TestState::DisplayResults).await?;
    // A client that hangs up instead of saying good-bye has its results nevertheless.
    let _ = control.receive_soon().await;
    Ok(())
}
