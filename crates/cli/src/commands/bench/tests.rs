//! A client and a server of our own, over a device in memory.

use super::protocol::{Control, Cookie, TestParameters, TestState};
use super::report::Style;
use super::report::record::{Direction, Length};
use super::stream::{DataStream, Goal, Restarts, Sending};
use super::{Bench, client, door, server};
use crate::args::json::Json;
use crate::failure::{Exit, Failure};
use crate::settings::PolicyNames;
use crate::signals::Signals;
use ackline::core::{ConnConfig, ListenOn};
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::runtime::{Stack, TcpStream};
use serde_json::Value;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PORT: u16 = 5201;

thread_local! {
    static SAID_BY_CLIENT: RefCell<String> = const { RefCell::new(String::new()) };
    static SAID_BY_SERVER: RefCell<String> = const { RefCell::new(String::new()) };
}

fn by_client(text: &str) -> Result<(), Failure> {
    SAID_BY_CLIENT.with_borrow_mut(|said| said.push_str(text));
    Ok(())
}

fn by_server(text: &str) -> Result<(), Failure> {
    SAID_BY_SERVER.with_borrow_mut(|said| said.push_str(text));
    Ok(())
}

fn said_by_client() -> Value {
    SAID_BY_CLIENT.with_borrow(|said| serde_json::from_str(said).expect("one document"))
}

fn said_by_server() -> Value {
    SAID_BY_SERVER.with_borrow(|said| serde_json::from_str(said).expect("one document"))
}

/// Both ends, each with a stack of its own.
fn ends() -> (Bench, Bench) {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let end = |device: Channel, address: Ipv4Addr, print| {
        let builder =
            Stack::builder(device).address(IpAddr::from(address)).connections(ConnConfig::default());
        Bench {
            stack: builder.spawn().expect("a stack"),
            device: "memory".to_owned(),
            names: PolicyNames {
                cc: "newreno".to_owned(),
                ack: "delayed".to_owned(),
                rto: "conventional".to_owned(),
                sched: "fifo".to_owned(),
            },
            registry: ackline::Registry::default(),
            keeps_ecn: false,
            max_buffers: crate::args::limits::DEFAULT_BUFFERS,
            style: Style { json: Some(Json::Document), ..Style::default() },
            interval: Some(ackline::core::Duration::from_millis(100)),
            print,
        }
    };
    (end(near, CLIENT, by_client), end(far, SERVER, by_server))
}

fn parameters(direction: Direction, length: Length) -> TestParameters {
    TestParameters { direction, streams: 2, block: 64 << 10, ..TestParameters::plain(length) }
}

fn target() -> client::Target {
    client::Target::of(SocketAddr::from((SERVER, PORT)))
}

/// Runs a test; what each end came to.
fn tested(parameters: &TestParameters) -> (Result<(), Failure>, Result<(), Failure>) {
    with_server(async |bench, signals| client::run(bench, &target(), parameters, signals).await)
}

/// Serves one client that does `act`.
fn with_server<T>(act: impl AsyncFnOnce(&Bench, &mut Signals) -> T) -> (T, Result<(), Failure>) {
    crate::network::tunnel::runtime().expect("a runtime").block_on(async {
        let (near, far) = ends();
        let (mut one, mut other) = (Signals::catch().expect("signals"), Signals::catch().expect("signals"));
        let both = async {
            tokio::join!(
                async {
                    // The server listens first.
                    tokio::task::yield_now().await;
                    act(&near, &mut one).await
                },
                server::run(&far, server::ServerAddress::port(PORT), true, &mut other)
            )
        };
        tokio::time::timeout(Duration::from_secs(50), both).await.expect("it ends")
    })
}

fn number(document: &Value, pointer: &str) -> u64 {
    let value = document.pointer(pointer).unwrap_or_else(|| panic!("{pointer} in {document}"));
    value.as_f64().unwrap_or_else(|| panic!("{pointer} is a number")) as u64
}

#[test]
fn bytes_that_are_sent_arrive_in_either_direction() {
    for direction in [Direction::Forward, Direction::Reverse] {
        SAID_BY_CLIENT.take();
        let (client, server) = tested(&parameters(direction, Length::Bytes(20 << 20)));
        assert!(client.is_ok() && server.is_ok(), "{client:?} {server:?}");
        let said = said_by_client();
        let (sent, received) =
            (number(&said, "/end/sum_sent/bytes"), number(&said, "/end/sum_received/bytes"));
        match direction {
            // The test ends when all was acknowledged, so that hardly anything is still unread.
            Direction::Forward => assert_eq!(sent, 20 << 20),
            _ => assert!(received >= 20 << 20),
        }
        assert!(received <= sent + (1 << 20) && sent <= received + (16 << 20), "{sent} {received}");
        assert_eq!(said.pointer("/start/test_start/num_streams"), Some(&Value::from(2)));
    }
}

#[test]
fn both_directions_at_once_after_an_omitted_second() {
    let mut asked = parameters(Direction::Bidirectional, Length::Seconds(1));
    asked.omit = 1;
    asked.bitrate = 8_000_000;
    asked.server_output = true;
    asked.extra_data = Some("extra".to_owned());
    asked.congestion = Some("reno".to_owned());
    let (client, server) = tested(&asked);
    assert!(client.is_ok() && server.is_ok(), "{client:?} {server:?}");
    let (client, server) = (said_by_client(), said_by_server());
    for said in [&client, &server] {
        assert_eq!(said["extra_data"], "extra");
        assert_eq!(said["start"]["connected"].as_array().map(Vec::len), Some(4));
    }
    // Two streams of 8 Mbit/s each, and what a busy machine lets wait meanwhile; without a limit it
    // is far more.
    for sum in ["/end/sum_sent", "/end/sum_received_bidir_reverse"] {
        let bytes = number(&client, &format!("{sum}/bytes"));
        let seconds = client.pointer(&format!("{sum}/seconds")).and_then(Value::as_f64).expect("seconds");
        let most = 2 * ((seconds * 1e6) as u64 + (2 << 20));
        assert!(bytes > 0 && bytes <= most, "{sum}: {bytes} in {seconds} s");
    }
    let omitted = |said: &Value| {
        let intervals = said["intervals"].as_array().expect("intervals");
        intervals.iter().filter(|interval| interval["sum"]["omitted"] == true).count()
    };
    assert!((1..=10).contains(&omitted(&client)), "{}", omitted(&client));
    assert!(client["server_output_json"]["end"].is_object());
}

#[test]
fn what_the_server_does_not_have_is_said_at_both_ends() {
    let (answer, server) = with_server(async |bench, _| {
        let mut control = met(bench).await;
        control.send_json(&serde_json::json!({"udp": true, "len": 1460})).await.expect("sent");
        control.expect(TestState::CreateStreams).await
    });
    let (answer, server) = (answer.expect_err("refused"), server.expect_err("refused"));
    assert!(answer.to_string().contains("does not have this feature"), "{answer}");
    assert!(server.to_string().contains("UDP"), "{server}");
}

#[test]
fn a_congestion_control_that_the_server_does_not_know_is_not_used() {
    let (answer, server) = with_server(async |bench, _| {
        let mut control = met(bench).await;
        let congestion = Some("of-another-kernel".to_owned());
        let asked = TestParameters { congestion, ..parameters(Direction::Forward, Length::Seconds(1)) };
        control.send_json(&asked.to_json()).await.expect("sent");
        control.expect(TestState::CreateStreams).await.expect("the test goes on");
        let mut streams = vec![];
        for _ in 0..2 {
            let mut stream = arrival(bench).await;
            stream.write_all(&COOKIE).await.expect("sent");
            streams.push(stream);
        }
        control.expect(TestState::TestStart).await.expect("a test");
        control.expect(TestState::TestRunning).await.expect("a test");
        control.send(TestState::TestEnd).await.expect("sent");
        control.expect(TestState::ExchangeResults).await.expect("asked for");
        control.send_json(&serde_json::json!({"streams": []})).await.expect("sent");
        let results = control.receive_json(1 << 16).await.expect("results");
        control.expect(TestState::DisplayResults).await.expect("the end");
        let usual = streams[0].info().expect("a connection").cc.to_owned();
        (results["congestion_used"].clone(), usual)
    });
    let (used, usual) = answer;
    assert_eq!(used, Value::from(usual));
    assert!(server.is_ok(), "{server:?}");
}

/// A control connection whose server waits for parameters.
async fn met(bench: &Bench) -> Control<TcpStream> {
    let stream = bench.stack.connect((SERVER, PORT)).await.expect("it listens");
    let mut control = Control::new(stream, (SERVER, PORT).into());
    control.send_cookie(&Cookie::from_wire(COOKIE)).await.expect("sent");
    control.expect(TestState::ParamExchange).await.expect("a server");
    control
}

#[test]
fn strangers_are_turned_away_while_a_test_runs() {
    let (denied, server) = with_server(async |bench, signals| {
        let asked = parameters(Direction::Forward, Length::Seconds(1));
        let second = async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            // One that says nothing is in nobody's way.
            let _silent = bench.stack.connect((SERVER, PORT)).await.expect("it listens");
            let target = target();
            let mut signals = Signals::catch().expect("signals");
            let outcome = client::run(bench, &target, &asked, &mut signals).await;
            SAID_BY_CLIENT.take();
            outcome
        };
        let target = target();
        let (first, second) = tokio::join!(client::run(bench, &target, &asked, signals), second);
        first.expect("the first is served");
        second
    });
    assert!(server.is_ok(), "{server:?}");
    let denied = denied.expect_err("refused");
    assert_eq!(denied.exit, Exit::Network);
    assert!(denied.to_string().contains("busy"), "{denied}");
}

#[test]
fn a_client_that_goes_away_ends_the_test() {
    let ((), server) = with_server(async |bench, _| {
        let mut control = met(bench).await;
        let asked = parameters(Direction::Forward, Length::Seconds(1));
        control.send_json(&asked.to_json()).await.expect("sent");
        control.expect(TestState::CreateStreams).await.expect("asked for");
        let mut other = bench.stack.connect((SERVER, PORT)).await.expect("it listens");
        other.write_all(&[b'x'; 37]).await.expect("sent");
    });
    let server = server.expect_err("incomplete");
    assert_eq!(server.exit, Exit::Network);
    assert!(server.to_string().contains("closed the control connection"), "{server}");
}

/// One that listens by hand, or behind a door, and a stack to come from.
fn alone<T>(act: impl AsyncFnOnce(&mut Bench, &Bench) -> T) -> T {
    crate::network::tunnel::runtime().expect("a runtime").block_on(async {
        let (mut near, far) = ends();
        tokio::time::timeout(Duration::from_secs(50), act(&mut near, &far)).await.expect("it ends")
    })
}

async fn arrival(bench: &Bench) -> TcpStream {
    bench.stack.connect((SERVER, PORT)).await.expect("it listens")
}

const COOKIE: [u8; 37] = *b"abcdefghijklmnopqrstuvwxyz0123456789\0";

#[test]
fn silent_strangers_keep_nobody_out_who_speaks() {
    alone(async |near, far| {
        let on = ListenOn::Port(PORT);
        let mut door = door::Door::open(&far.stack, on, far.stack.connections().clone()).expect("free");
        let visitors = async {
            let mut silent = vec![];
            for _ in 0..257 {
                silent.push(arrival(near).await);
            }
            // All 256 that the door listens to have been accepted; room comes with one that leaves.
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(silent.split_off(250));
            let mut last = arrival(near).await;
            last.write_all(&COOKIE).await.expect("sent");
            (silent, last)
        };
        let (guest, (silent, last)) = tokio::join!(
            async { tokio::time::timeout(Duration::from_secs(20), door.next()).await.expect("in time") },
            visitors
        );
        assert_eq!(guest.expect("a guest").stream.addresses().1, last.addresses().0);
        assert_eq!(silent.len(), 250);
    });
}

#[test]
fn a_stranger_that_hangs_up_holds_up_nobody() {
    alone(async |near, far| {
        let on = ListenOn::Port(PORT);
        let mut door = door::Door::open(&far.stack, on, far.stack.connections().clone()).expect("free");
        let visitors = async {
            let stranger = arrival(near).await;
            let mut client = arrival(near).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(stranger);
            tokio::time::sleep(Duration::from_millis(100)).await;
            client.write_all(&COOKIE).await.expect("sent");
            client
        };
        let (guest, client) = tokio::join!(
            async { tokio::time::timeout(Duration::from_secs(10), door.next()).await.expect("in time") },
            visitors
        );
        assert_eq!(guest.expect("a guest").stream.addresses().1, client.addresses().0);
    });
}

#[test]
fn buffers_that_would_take_too_much_memory_are_refused() {
    let (answer, server) = with_server(async |bench, _| {
        let mut control = met(bench).await;
        let asked = TestParameters {
            window: Some(512 << 20),
            streams: 128,
            ..parameters(Direction::Forward, Length::Seconds(1))
        };
        control.send_json(&asked.to_json()).await.expect("sent");
        control.expect(TestState::CreateStreams).await
    });
    let (answer, server) = (answer.expect_err("refused"), server.expect_err("refused"));
    assert!(answer.to_string().contains("buffers of this size (-w) (error 124"), "{answer}");
    assert!(server.to_string().contains("--max-buffers"), "{server}");
}

#[test]
fn long_parameters_are_not_taken() {
    let (_, server) = with_server(async |bench, _| {
        let mut control = met(bench).await;
        let document = serde_json::json!({"tcp": true, "len": 1, "extra_data": "x".repeat(64 << 10)});
        // Fails if the server hangs up before it has all.
        let _ = control.send_json(&document).await;
        control.receive_soon().await
    });
    let server = server.expect_err("refused");
    assert!(server.to_string().contains("the limit is 65536"), "{server}");
}

#[test]
fn settings_are_what_a_test_asks_for() {
    alone(async |near, _| {
        let usual = parameters(Direction::Forward, Length::Seconds(1));
        assert!(Arc::ptr_eq(&near.settings(&usual).expect("known"), near.stack.connections()));
        let asked = TestParameters {
            window: Some(128 << 10),
            mss: Some(1000),
            no_delay: true,
            tos: 0x2c | 2,
            congestion: Some("dctcp".to_owned()),
            ..usual
        };
        let config = near.settings(&asked).expect("known");
        assert_eq!((config.send_buffer, config.recv_buffer), (128 << 10, 128 << 10));
        assert_eq!(config.initial_recv_window, None);
        assert_eq!(config.mss, Some(1000));
        assert_eq!(config.nagle, ackline::core::config::Nagle::Off);
        assert_eq!(config.dscp, 0x2c >> 2);
        assert_eq!(config.ecn, ackline::Registry::default().ecn("dctcp").expect("a name"));
        assert_ne!(config.ecn, near.stack.connections().ecn);
        let unknown = TestParameters { congestion: Some("cubik".to_owned()), ..asked };
        assert!(near.settings(&unknown).is_err());
    });
}

#[test]
fn a_choice_of_ecn_outlives_that_of_a_congestion_control() {
    alone(async |near, _| {
        near.keeps_ecn = true;
        let congestion = Some("dctcp".to_owned());
        let asked = TestParameters { congestion, ..parameters(Direction::Forward, Length::Seconds(1)) };
        assert_eq!(near.settings(&asked).expect("known").ecn, near.stack.connections().ecn);
    });
}

#[test]
fn a_sender_that_is_stopped_sends_no_fin() {
    use super::stream::{DataStream, Goal, Restarts, Sending};
    alone(async |near, far| {
        let listener = far.stack.listen(ListenOn::Port(PORT)).expect("free");
        let (near_end, accepted) = tokio::join!(arrival(near), listener.accept());
        let mut far_end = accepted.expect("accepted").0;
        let mut stream = DataStream::new(0, true, near_end);
        let sending =
            Sending { block: 1 << 20, bitrate: None, restarts: Restarts::default(), ended: Arc::default() };
        let mut tasks = tokio::task::JoinSet::new();
        stream.start(&sending, &Arc::new(Goal::endless()), &mut tasks);
        // It waits for room in the midst of a write.
        tokio::time::sleep(Duration::from_millis(100)).await;
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        let rest = async {
            while far_end.with_readable(|[a, b]| (a.len() + b.len(), a.len() + b.len())).await? > 0 {}
            Ok::<_, io::Error>(())
        };
        let mut rest = std::pin::pin!(rest);
        let heard = tokio::time::timeout(Duration::from_secs(1), &mut rest).await;
        assert!(heard.is_err(), "neither an end nor an error: {heard:?}");
        drop(stream);
        let heard = rest.await.expect_err("a reset");
        assert_eq!(heard.kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_connection_that_breaks_shortly_before_the_end_is_a_failure() {
    alone(async |near, far| {
        let asked = TestParameters { streams: 1, ..parameters(Direction::Forward, Length::Seconds(1)) };
        let listener = far.stack.listen(ListenOn::Port(PORT)).expect("free");
        let server = async {
            let (stream, peer) = listener.accept().await.expect("a client");
            let mut control = Control::new(stream, peer);
            let mut cookie = [0; 37];
            control.stream_mut().read_exact(&mut cookie).await.expect("a cookie");
            control.send(TestState::ParamExchange).await.expect("sent");
            control.receive_json(1 << 16).await.expect("parameters");
            control.send(TestState::CreateStreams).await.expect("sent");
            let (data, _) = listener.accept().await.expect("a stream");
            control.send(TestState::TestStart).await.expect("sent");
            control.send(TestState::TestRunning).await.expect("sent");
            tokio::time::sleep(Duration::from_millis(500)).await;
            data.set_zero_linger().expect("set");
            drop(data);
            // A server that goes on as if nothing had been.
            if control.receive().await.is_ok() {
                control.send(TestState::ExchangeResults).await.expect("sent");
                let results = control.receive_json(1 << 16).await.expect("results");
                control.send_json(&results).await.expect("sent");
                control.send(TestState::DisplayResults).await.expect("sent");
                let _ = control.receive_soon().await;
            }
        };
        let mut signals = Signals::catch().expect("signals");
        let target = target();
        let (outcome, ()) = tokio::join!(client::run(near, &target, &asked, &mut signals), server);
        let failure = outcome.expect_err("a connection was lost");
        assert_eq!(failure.exit, Exit::Network);
        assert!(failure.to_string().contains("reset"), "{failure}");
    });
}

#[test]
fn data_move_beside_the_driver_of_their_shard() {
    const STREAMS: usize = 8;
    let beside = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let beside = beside.expect("a thread");
    crate::network::tunnel::runtime().expect("a runtime").block_on(async {
        let pair = || Channel::pair(ChannelConfig::default());
        let ((near, far), (near_too, far_too)) = (pair(), pair());
        let runtimes = [tokio::runtime::Handle::current(), beside.handle().clone()];
        let near = Stack::builder(near).queue(near_too).address(IpAddr::from(CLIENT)).runtimes(runtimes);
        let near = near.spawn().expect("a stack");
        let far = Stack::builder(far).queue(far_too).address(IpAddr::from(SERVER)).spawn().expect("a stack");
        let listener = far.listen(ListenOn::Port(PORT)).expect("free");
        let sending =
            Sending { block: 1 << 10, bitrate: None, restarts: Restarts::default(), ended: Arc::default() };
        let (goal, mut tasks) = (Arc::new(Goal::endless()), JoinSet::new());
        let mut streams = vec![];
        for index in 0..STREAMS {
            let stream = near.connect((SERVER, PORT)).await.expect("connected");
            let accepted = listener.accept().await.expect("accepted");
            let mut stream = DataStream::new(index as u32, index % 4 < 2, stream);
            stream.start(&sending, &goal, &mut tasks);
            streams.push((stream, accepted));
        }
        // The shards connect by turns; beside a driver nothing else runs there.
        assert_eq!(beside.metrics().num_alive_tasks(), 1 + STREAMS / 2);
    });
}
