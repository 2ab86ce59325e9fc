//! Applications do what they say, at the times that follow from the network's.

use crate::common::{PORT, link, pair, target};
use ackline_netsim::app::{
    Amount, BsdWriter, Bulk, Client, ClientOptions, CopyRule, Downloader, Draw, Exchange, FileServer,
    HostCosts, Reading, Schedule, Server, Sink, Source,
};
use ackline_netsim::topologies::{self, Duplex, HostSpec, Pair};
use ackline_netsim::{AppId, LinkSpec, Sim};
use ackline_tcp_core::config::{AcceptConfig, ConnConfig, ListenOn, Nagle};
use ackline_tcp_core::{Duration, Instant};
use std::sync::Arc;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// No serialisation, so that times are multiples of the delay.
fn wire(delay: u64) -> Duplex {
    Duplex::symmetric(|| LinkSpec { service: ackline_netsim::Service::Instant, ..link(1, delay) })
}

fn network(delay: u64) -> (Sim, Pair) {
    let mut sim = Sim::new(1);
    let pair = pair(&mut sim, wire(delay));
    (sim, pair)
}

fn config() -> Arc<ConnConfig> {
    Arc::new(ConnConfig::default())
}

fn accept() -> AcceptConfig {
    AcceptConfig::new(config())
}

fn metric(sim: &Sim, app: AppId, wanted: &str) -> f64 {
    let mut found = None;
    sim.any_app(app).unwrap().metrics(&mut |name, value| {
        if name == wanted {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("no {wanted}"))
}

#[test]
fn an_answer_takes_a_round_trip() {
    for reconnect in [false, true] {
        let (mut sim, pair) = network(10);
        let exchange = Exchange { request: 100, response: 5_000 };
        let server = Server::new(ListenOn::Port(PORT), accept(), exchange);
        let server = sim.add_app(pair.receiver.node, Instant::ZERO, server);
        let think = Draw::Fixed(0.25);
        let options = ClientOptions { exchange, think, count: Some(4), reconnect };
        let client = Client::new(target(&pair.receiver), config(), options);
        let client = sim.add_app(pair.sender.node, Instant::from_millis(1), client);
        sim.run_until(Instant::from_secs(10));

        let client_app = sim.app::<Client>(client).unwrap();
        let times: Vec<_> = client_app.latencies().iter().map(|(_, time)| time.as_millis()).collect();
        // 5,000 bytes fit into the initial window. The first question waits for the handshake, as
        // each does that has a connection of its own.
        let expected = if reconnect { [40; 4] } else { [40, 20, 20, 20] };
        assert_eq!(times, expected);
        let ends: Vec<_> = client_app.latencies().iter().map(|(at, _)| at.as_millis()).collect();
        assert!(ends.windows(2).zip(&times[1..]).all(|(pair, time)| pair[1] == pair[0] + 250 + time));
        assert_eq!((client_app.wrong(), sim.app::<Server>(server).unwrap().wrong()), (0, 0));
        assert_eq!(metric(&sim, server, "answered"), 4.0);
        assert_eq!(metric(&sim, client, "failed") + metric(&sim, server, "failed"), 0.0);
    }
}

#[test]
fn downloads_come_one_after_another() {
    let (mut sim, pair) = network(10);
    let server = FileServer::new(ListenOn::Port(PORT), accept(), Draw::Fixed(14_480.0));
    let server = sim.add_app(pair.receiver.node, Instant::ZERO, server);
    let downloader = Downloader::new(target(&pair.receiver), config(), Draw::Exponential(1.0), Some(20));
    let downloader = sim.add_app(pair.sender.node, Instant::from_millis(1), downloader);
    sim.run_until(Instant::from_secs(100));
    let completions = sim.app::<Downloader>(downloader).unwrap().completions();
    // SYN, SYN-ACK, ACK, and ten segments of the initial window.
    assert_eq!(completions.len(), 20);
    assert!(completions.iter().all(|(_, time)| *time == ms(40)), "{completions:?}");
    let waits: Vec<_> =
        completions.windows(2).map(|pair| pair[1].0.since(pair[0].0).saturating_sub(ms(40))).collect();
    assert!(waits.iter().any(|wait| *wait > ms(1_000)) && waits.iter().any(|wait| *wait < ms(500)));
    assert_eq!(metric(&sim, downloader, "received_bytes"), 20.0 * 14_480.0);
    assert_eq!(metric(&sim, downloader, "wrong_reads"), 0.0);
    assert_eq!(metric(&sim, server, "served"), 20.0);
}

fn sink(sim: &mut Sim, pair: &Pair, reading: Reading) -> AppId {
    sim.add_app(pair.receiver.node, Instant::ZERO, Sink::new(ListenOn::Port(PORT), accept(), reading))
}

#[test]
fn writes_come_at_their_intervals() {
    let (mut sim, pair) = network(10);
    let to = sink(&mut sim, &pair, Reading::Instant);
    let schedule = Schedule::Writes { size: Draw::Fixed(500.0), interval: Draw::Fixed(0.1), count: Some(11) };
    let source = Source::new(target(&pair.receiver), config(), schedule);
    let source = sim.add_app(pair.sender.node, Instant::ZERO, source);
    sim.run_until(Instant::from_millis(520));
    // Established at 20 ms; the sixth write, at 520 ms, has not arrived.
    assert_eq!(sim.app::<Source>(source).unwrap().rounds(), 6);
    assert_eq!(sim.app::<Sink>(to).unwrap().received(), 2_500);
    sim.run_until(Instant::from_secs(5));
    let sink = sim.app::<Sink>(to).unwrap();
    assert_eq!((sink.received(), sink.complete(), sink.wrong()), (5_500, 1, 0));
    assert_eq!(sink.last_byte(), Some(Instant::from_millis(20 + 1_000 + 10)));
    assert_eq!(sim.app::<Source>(source).unwrap().completion_time(), Some(ms(1_040)));
}

#[test]
fn a_source_is_silent_while_it_is_off() {
    let mut sim = Sim::new(1);
    let pair = pair(&mut sim, Duplex::symmetric(|| link(8_000_000, 5)));
    let to = sink(&mut sim, &pair, Reading::Instant);
    let config = Arc::new({
        let mut config = ConnConfig::default();
        config.send_buffer = 30_000;
        config
    });
    let schedule = Schedule::OnOff { on: Draw::Fixed(1.0), off: Draw::Fixed(1.0), count: Some(3) };
    let source = Source::new(target(&pair.receiver), config, schedule);
    let source = sim.add_app(pair.sender.node, Instant::ZERO, source);
    let mut received = vec![0];
    for half in 1..=12 {
        sim.run_until(Instant::from_millis(half * 500));
        received.push(sim.app::<Sink>(to).unwrap().received());
    }
    let steps: Vec<_> = received.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // On in the first two halves of each four; then comes what the buffer (30,000 bytes) and the
    // wire (5 ms at 1 MB/s) held.
    for (half, step) in steps.iter().enumerate() {
        let expected = if half % 4 < 2 { 300_000..=500_000 } else { 0..=35_000 };
        assert!(expected.contains(step), "half {half}: {steps:?}");
    }
    assert!(sim.app::<Source>(source).unwrap().completion_time().is_some());
    assert_eq!(sim.app::<Sink>(to).unwrap().wrong(), 0);
}

#[test]
fn bulk_transfers_repeat() {
    let (mut sim, pair) = network(10);
    let to = sink(&mut sim, &pair, Reading::Instant);
    let bulk = Bulk::new(target(&pair.receiver), config(), Amount::Bytes(10_000));
    let bulk = sim.add_app(pair.sender.node, Instant::ZERO, bulk.repeated(5, Draw::Fixed(0.5)));
    sim.run_until(Instant::from_secs(10));
    let bulk = sim.app::<Bulk>(bulk).unwrap();
    // Handshake, and a round trip for the data and the FIN.
    assert!(bulk.completions().iter().all(|(_, time)| *time == ms(40)), "{:?}", bulk.completions());
    assert_eq!((bulk.completions().len(), bulk.written()), (5, 50_000));
    assert_eq!(sim.app::<Sink>(to).unwrap().complete(), 5);
}

#[test]
fn a_bulk_transfer_ends_when_its_time_is_over() {
    let (mut sim, pair) = network(10);
    let to = sink(&mut sim, &pair, Reading::Instant);
    let bulk = Bulk::new(target(&pair.receiver), config(), Amount::For(ms(300)));
    let bulk = sim.add_app(pair.sender.node, Instant::ZERO, bulk.repeated(2, Draw::ZERO));
    sim.run_until(Instant::from_secs(30));
    let bulk = sim.app::<Bulk>(bulk).unwrap();
    assert_eq!(bulk.completions().len(), 2);
    assert!(bulk.completions().iter().all(|(_, time)| *time >= ms(300)));
    assert_eq!(sim.app::<Sink>(to).unwrap().received(), bulk.written());
}

#[test]
fn slow_and_costly_readers_get_everything() {
    let slow = Reading::Slow { bytes: 1_000, interval: ms(10) };
    let costs = HostCosts { wake_up: ms(1), copy_kb: ms(10) };
    for (reading, seconds) in [(slow, 1.0), (Reading::Copying(costs), 1.0)] {
        let (mut sim, pair) = network(5);
        let to = sink(&mut sim, &pair, reading);
        let bulk = Bulk::new(target(&pair.receiver), config(), Amount::Bytes(100_000));
        sim.add_app(pair.sender.node, Instant::ZERO, bulk);
        sim.run_until(Instant::from_secs(60));
        let sink = sim.app::<Sink>(to).unwrap();
        assert_eq!((sink.received(), sink.complete(), sink.wrong()), (100_000, 1, 0), "{reading:?}");
        // 100,000 bytes at 100 kB/s, and at 10 ms for each 1,024 bytes.
        let took = sink.last_byte().unwrap().since(Instant::from_millis(15)).as_secs_f64();
        assert!((took - seconds).abs() < 0.05, "{reading:?}: {took}");
    }
}

/// One BSD writer's chunks, as they leave over a wire of 10 ms with a window for everything.
fn bsd(buffer: u32, rule: CopyRule, costs: HostCosts, total: u64) -> (Sim, AppId, AppId) {
    let (mut sim, pair) = network(10);
    let to = sink(&mut sim, &pair, Reading::Instant);
    let config = Arc::new({
        let mut config = ConnConfig::default();
        config.send_buffer = buffer;
        config.nagle = Nagle::Off;
        config
    });
    let writer = BsdWriter::new(target(&pair.receiver), config, rule, costs, Some(total));
    let writer = sim.add_app(pair.sender.node, Instant::ZERO, writer);
    (sim, writer, to)
}

#[test]
fn a_bsd_writer_copies_at_its_host_costs() {
    let costs = HostCosts { wake_up: ms(3), copy_kb: ms(1) };
    let (mut sim, writer, to) = bsd(8_192, CopyRule::Whole(4_096), costs, 16_384);
    // Established at 20 ms; two chunks of 4 ms each fill the buffer, at 24 and 28 ms.
    sim.run_until(Instant::from_millis(27));
    assert_eq!(sim.app::<BsdWriter>(writer).unwrap().written(), 4_096);
    sim.run_until(Instant::from_millis(43));
    assert_eq!(sim.app::<BsdWriter>(writer).unwrap().written(), 8_192);
    assert_eq!(sim.app::<Sink>(to).unwrap().received(), 8_192);
    sim.run_until(Instant::from_secs(10));
    let app = sim.app::<BsdWriter>(writer).unwrap();
    assert_eq!((app.written(), sim.app::<Sink>(to).unwrap().complete()), (16_384, 1));
    assert!(app.wake_ups() >= 1 && app.completion_time().is_some());
}

#[test]
fn copy_rules_say_when_a_blocked_writer_goes_on() {
    // An odd buffer: after two whole chunks 1,808 bytes are free, in which only the partial rule
    // copies.
    let free = HostCosts::default();
    for (rule, buffered) in [(CopyRule::Whole(4_096), 8_192), (CopyRule::Partial(512), 10_000)] {
        let (mut sim, writer, _) = bsd(10_000, rule, free, 1 << 20);
        sim.run_until(Instant::from_millis(25));
        assert_eq!(sim.app::<BsdWriter>(writer).unwrap().written(), buffered, "{rule:?}");
    }
    // A buffer smaller than a chunk is a chunk.
    let (mut sim, writer, to) = bsd(1_000, CopyRule::Whole(4_096), free, 2_500);
    sim.run_until(Instant::from_secs(10));
    assert_eq!(metric(&sim, writer, "copies"), 3.0);
    assert_eq!(sim.app::<Sink>(to).unwrap().complete(), 1);
}

/// A buffer of one chunk, and a receiver that holds its acknowledgment: a chunk leaves, and the
/// writer waits for the round trip and the delayed ACK. With room for several chunks nobody waits
/// for a timer.
#[test]
fn a_small_bsd_buffer_waits_for_the_delayed_ack() {
    let rate = |buffer: u32| {
        let mut sim = Sim::new(1);
        let host = || {
            let mut spec = HostSpec::default();
            spec.config.mtu = 9_200;
            spec
        };
        let wire = Duplex::symmetric(|| link(2_000_000, 85));
        let pair = topologies::pair(&mut sim, host(), host(), wire);
        let to = sink(&mut sim, &pair, Reading::Instant);
        let mut config = ConnConfig::default();
        config.send_buffer = buffer;
        config.nagle = Nagle::Rfc896;
        let rule = CopyRule::Whole(4_096);
        let writer =
            BsdWriter::new(target(&pair.receiver), Arc::new(config), rule, HostCosts::default(), None);
        sim.add_app(pair.sender.node, Instant::ZERO, writer);
        let (from, seconds) = (Instant::from_secs(10), 100);
        sim.run_until(from);
        let before = sim.app::<Sink>(to).unwrap().received();
        sim.run_until(from + Duration::from_secs(seconds));
        let sink = sim.app::<Sink>(to).unwrap();
        assert_eq!(sink.wrong(), 0);
        (sink.received() - before) as f64 / seconds as f64
    };
    // 170 ms of round trip, 40 ms of delayed ACK, and 4,096 + 52 and 52 bytes at 250 bytes a
    // millisecond.
    let cycle = 0.170 + 0.040 + (4_148.0 + 52.0) / 250_000.0;
    let locked = rate(4_096);
    assert!((locked / (4_096.0 / cycle) - 1.0).abs() < 0.01, "{locked} bytes a second");
    let free = rate(40_960);
    assert!(free > 0.9 * 40_960.0 / (0.170 + 40_960.0 / 250_000.0), "{free} bytes a second");
}
