//! A client and a server of our own, over a device in memory.

use super::protocol::{Control, Cookie, State, TestParameters};
use super::report::Style;
use super::report::record::{Direction, Length, PolicyNames};
use super::{Bench, client, server};
use crate::failure::{Exit, Failure};
use crate::signals::Signals;
use ackline::core::ConnConfig;
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::runtime::{Stack, TcpStream};
use serde_json::Value;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

const CLIENT: [u8; 4] = [198, 18, 0, 2];
const SERVER: [u8; 4] = [198, 18, 0, 1];
const PORT: u16 = 5201;

thread_local! {
    static SAID_BY_CLIENT: RefCell<String> = const { RefCell::new(String::new()) };
    static SAID_BY_SERVER: RefCell<String> = const { RefCell::new(String::new()) };
}

fn by_client(text: &str) -> io::Result<()> {
    SAID_BY_CLIENT.with_borrow_mut(|said| said.push_str(text));
    Ok(())
}

fn by_server(text: &str) -> io::Result<()> {
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
    let end = |device: Channel, address: [u8; 4], print| {
        let connections = Arc::new(ConnConfig::default());
        let builder = Stack::builder(device).address(IpAddr::from(address)).connections(connections.clone());
        Bench {
            stack: builder.spawn().expect("a stack"),
            connections,
            device: "memory".to_owned(),
            names: PolicyNames {
                cc: "newreno".to_owned(),
                ack: "delayed".to_owned(),
                rto: "conventional".to_owned(),
                sched: "fifo".to_owned(),
            },
            style: Style { json: true, ..Style::default() },
            interval: Some(ackline::core::Duration::from_millis(100)),
            print,
        }
    };
    (end(near, CLIENT, by_client), end(far, SERVER, by_server))
}

fn parameters(direction: Direction, length: Length) -> TestParameters {
    TestParameters {
        direction,
        streams: 2,
        length,
        omit: 0,
        block: 64 << 10,
        window: None,
        mss: None,
        no_delay: false,
        bitrate: 0,
        burst: 0,
        tos: 0,
        title: None,
        extra_data: None,
        congestion: None,
        server_output: false,
    }
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
    crate::tunnel::runtime().expect("a runtime").block_on(async {
        let (near, far) = ends();
        let (mut one, mut other) = (Signals::catch().expect("signals"), Signals::catch().expect("signals"));
        let both = async {
            tokio::join!(
                async {
                    // The server listens first.
                    tokio::task::yield_now().await;
                    act(&near, &mut one).await
                },
                server::run(&far, server::Place::port(PORT), true, &mut other)
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
    // Two streams of 8 Mbit/s each, and what a busy machine lets wait meanwhile; without a limit it is far more.
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
        control.expect(State::CreateStreams).await
    });
    let (answer, server) = (answer.expect_err("refused"), server.expect_err("refused"));
    assert!(answer.to_string().contains("does not have this feature"), "{answer}");
    assert!(server.to_string().contains("UDP"), "{server}");
}

#[test]
fn a_congestion_control_that_the_server_does_not_know_is_not_used() {
    let (answer, _) = with_server(async |bench, _| {
        let mut control = met(bench).await;
        let congestion = Some("of-another-kernel".to_owned());
        let asked = TestParameters { congestion, ..parameters(Direction::Forward, Length::Seconds(1)) };
        control.send_json(&asked.to_json()).await.expect("sent");
        control.expect(State::CreateStreams).await
    });
    answer.expect("the test goes on");
}

/// A control connection whose server waits for parameters.
async fn met(bench: &Bench) -> Control<TcpStream> {
    let stream = bench.stack.connect((SERVER, PORT)).await.expect("it listens");
    let mut control = Control::new(stream, (SERVER, PORT).into());
    control.send_cookie(&Cookie::random().expect("random")).await.expect("sent");
    control.expect(State::ParamExchange).await.expect("a server");
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
            let (_, target) = ((), target());
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
        control.expect(State::CreateStreams).await.expect("asked for");
        let mut other = bench.stack.connect((SERVER, PORT)).await.expect("it listens");
        other.write_all(&[b'x'; 37]).await.expect("sent");
    });
    let server = server.expect_err("incomplete");
    assert_eq!(server.exit, Exit::Network);
    assert!(server.to_string().contains("closed the control connection"), "{server}");
}
