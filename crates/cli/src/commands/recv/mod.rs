//! `ackline recv`: byte streams from TCP senders into files.

mod report;
mod server;
mod target;
mod transfer;

use crate::args::RecvArgs;
use crate::failure::{Exit, Failure};
use crate::network::tunnel::{self, PortsFor, Tunnel};
use crate::report::egress::EgressReport;
use crate::report::policies::ConnPolicies;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::transfer::progress::Progress;
use crate::transfer::traffic::Stopwatch;
use ackline::Registry;
use ackline::core::ListenOn;
use ackline::core::config::KeepAlive;
use ackline::runtime::{Stack, TcpListener};
use report::{Reporter, Transfer};
use std::net::SocketAddr;
use std::time::Duration;
use target::{Sink, Target};

/// Time for senders to close their side after everything was received.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Probes find a sender that has forgotten the connection. They never end one that is silent: its
/// path may be broken for a while, and `--timeout` limits how long that may last.
const PROBES: KeepAlive = KeepAlive { count: 0, ..tunnel::PROBES };

pub(crate) fn run(args: &RecvArgs, registry: &Registry) -> Result<(), Failure> {
    if let Some(file) = args.policies.options.iter().find(|text| !text.contains('=')) {
        return Err(Failure::usage(format!("-o {file}: not KEY=VALUE; a file to write is -O {file}")));
    }
    let settings = args.policies.resolve(registry)?;
    let tunnel = args.tunnel.plan(
        args.listen.address.map(|address| ("--listen", address)),
        PortsFor::Listener(args.listen.port),
    )?;
    let target = Target::new(args.target.as_deref(), args.keep)?;
    let speaks = args.output.speaks() && args.stream.json(&args.output).is_none();
    let watch = args.watch.plan("recv", speaks)?;
    let reporter = Reporter::new(args, target == Target::Stdout);
    target.delete_leftovers();
    // A file that cannot be written is best known before anybody connects.
    let sink = match &target {
        Target::Directory(_) => None,
        single => Some(single.open(None)?),
    };
    let runtime = tunnel::runtime()?;
    let progress = Progress::new("receiving", None, args.output.common);
    let outcome = runtime.block_on(async {
        let ready = Signals::catch().and_then(|signals| {
            let recording = watch.begin(tunnel.link(), &settings)?;
            let (stack, listener) = listen(args, &tunnel, &settings)?;
            let watchers = recording.watch(&stack, &settings)?;
            Ok((signals, stack, listener, watchers))
        });
        let (mut signals, stack, listener, watchers) = match ready {
            Ok(ready) => ready,
            Err(failure) => {
                reporter.nothing(&progress, &failure)?;
                return Err(failure);
            }
        };
        if reporter.speaks() {
            progress.say(&format!("listening on {} ({})", args.listen, tunnel.name()));
        }
        let serve = async {
            if args.keep {
                let watch = Stopwatch::of_process();
                reporter.start(None, None)?;
                tokio::select! {
                    served = server::serve(args, &target, &stack, listener, &mut signals, &progress, &reporter) => served,
                    failure = reporter.say_intervals(|| (watch.elapsed(), progress.bytes())) => Err(failure),
                }
            } else {
                once(args, &target, sink, (&stack, listener), &mut signals, &progress, &reporter).await
            }
        };
        let outcome = tokio::select! {
            served = serve => served,
            never = tunnel.watch(&stack, |line| if reporter.speaks() { progress.say(line) }) => match never {},
        };
        stack.shutdown(CLOSE_WAIT).await;
        watchers.end();
        outcome
    });
    // A write to a pipe that nobody reads may be under way.
    runtime.shutdown_background();
    outcome
}

/// Opens the device and listens on its stack.
fn listen(args: &RecvArgs, tunnel: &Tunnel, settings: &Settings) -> Result<(Stack, TcpListener), Failure> {
    let device = tunnel.open()?;
    let stack = tunnel.start(device, settings, |connections| connections.keep_alive = Some(PROBES))?;
    let on = match args.listen.address {
        Some(address) => ListenOn::Address(SocketAddr::new(address, args.listen.port)),
        None => ListenOn::Port(args.listen.port),
    };
    let listener = stack.listen(on).map_err(|error| Failure::system("listen", &error))?;
    Ok((stack, listener))
}

/// Serves one connection.
async fn once(
    args: &RecvArgs,
    target: &Target,
    sink: Option<Sink>,
    (stack, listener): (&Stack, TcpListener),
    signals: &mut Signals,
    progress: &Progress,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let timeout = args.timeout();
    let accepted = tokio::select! {
        accepted = listener.accept() => accepted.map_err(|error| Failure::system("accept connections", &error)),
        signal = signals.next() => Err(signal.failure("stopped before anybody connected")),
        () = progress.stalled(timeout) => {
            let limit = timeout.unwrap_or_default().as_secs_f64();
            Err(Failure::new(Exit::Network, format!("nobody connected to {} within {limit} s", args.listen)))
        }
    };
    // Further senders are refused.
    drop(listener);
    let watch = Stopwatch::of_process();
    let (stream, outcome) = match accepted {
        Err(failure) => (None, Err(failure)),
        Ok((mut stream, peer)) => {
            reporter.start(Some(peer), Some(stream.addresses().0))?;
            // Whatever ends it before all is there resets it.
            let _ = stream.set_zero_linger();
            let opened = match sink {
                Some(sink) => Ok(sink),
                None => target.open(Some(peer)),
            };
            let outcome = match opened {
                Err(failure) => Err(failure),
                Ok(sink) => tokio::select! {
                    outcome = transfer::receive(&mut stream, sink, progress, timeout) => outcome,
                    failure = reporter.say_intervals(|| (watch.elapsed(), progress.bytes())) => Err(failure),
                    signal = signals.next() => {
                        let so_far = crate::network::peer::after(progress.bytes(), None);
                        Err(signal.failure(&format!("stopped {so_far}; the connection was reset")))
                    }
                },
            };
            (Some(stream), outcome)
        }
    };
    let outcome = outcome.map_err(|failure| args.tunnel.blame(stack, failure));
    let transfer = Transfer {
        peer: stream.as_ref().map(|stream| stream.addresses().1),
        local: stream.as_ref().map(|stream| stream.addresses().0),
        bytes: progress.bytes(),
        time: watch.elapsed(),
        policies: stream.as_ref().map(ConnPolicies::of).unwrap_or_default(),
        cpu: Some(watch.cpu()),
        timing: Some((&stack.stats()).into()),
        egress: Some(EgressReport::of(stack)),
        silent: false,
        outcome,
    };
    progress.clear();
    reporter.transfer(progress, &transfer)?;
    transfer.outcome.map(drop)
}

#[cfg(test)]
mod tests {
    use super::PROBES;
    use crate::network::tunnel;
    use ackline::core::config::KeepAlive;
    use ackline::core::policy::builtin::Fifo;
    use ackline::core::{
        AcceptConfig, ConnConfig, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn, RxPacket,
        TxBudget,
    };
    use std::convert::Infallible;
    use std::net::{IpAddr, SocketAddr};
    use std::sync::Arc;

    fn host(address: IpAddr) -> Endpoint {
        let mut config = EndpointConfig::default();
        config.addresses.push(address);
        Endpoint::new(config, Box::new(Fifo::default()), [1; 32])
    }

    /// What `from` sends at once.
    fn sent(from: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
        let mut packets = vec![];
        let sent = from.transmit(now, TxBudget::UNLIMITED, |packet| {
            packets.push([packet.header, packet.payload[0], packet.payload[1]].concat());
            Ok::<_, Infallible>(())
        });
        sent.unwrap_or_else(|never| match never {});
        packets
    }

    /// How many probes a receiver sends within an hour to a sender whose path has broken, and
    /// whether it has given up by then.
    fn silence(probes: KeepAlive) -> (usize, bool) {
        let listen: SocketAddr = ([10, 0, 0, 2], 5001).into();
        let (mut sender, mut receiver) = (host([10, 0, 0, 1].into()), host(listen.ip()));
        let mut config = ConnConfig::default();
        config.keep_alive = Some(probes);
        let config = Arc::new(config);
        let mut now = Instant::ZERO;
        receiver.listen(now, ListenOn::Address(listen), AcceptConfig::new(config.clone())).expect("free");
        sender.connect(now, listen.into(), config).expect("free");
        for _ in 0..2 {
            for packet in sent(&mut sender, now) {
                receiver.ingest(now, RxPacket::new(&packet));
            }
            for packet in sent(&mut receiver, now) {
                sender.ingest(now, RxPacket::new(&packet));
            }
        }
        assert!(matches!(receiver.poll_event(), Some(Event::Accepted { .. })), "no handshake");
        let mut count = 0;
        while let Some(wakeup) = receiver.poll_timeout()
            && wakeup.at < Instant::ZERO + Duration::from_secs(3_600)
        {
            now = wakeup.at;
            receiver.handle_timeout(now);
            count += sent(&mut receiver, now).len();
        }
        let gave_up =
            std::iter::from_fn(|| receiver.poll_event()).any(|event| matches!(event, Event::Closed { .. }));
        (count, gave_up)
    }

    #[test]
    fn a_silent_sender_is_given_up_by_the_timeout_alone() {
        let (probes, gave_up) = silence(PROBES);
        assert!(probes > 200 && !gave_up, "{probes} probes");
        // As others have it: six probes, and an RST.
        assert_eq!(silence(tunnel::PROBES), (7, true));
    }
}
