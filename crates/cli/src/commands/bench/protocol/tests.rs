//! The protocol's codec: what iperf 3.12 writes is understood, and nothing that a peer writes does
//! harm.

use super::*;
use crate::commands::bench::report::record::{Cpu, Direction, Length, ServerOutput};
use crate::failure::Failure;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

fn peer() -> SocketAddr {
    ([198, 18, 0, 1], 5201).into()
}

/// Lets `act` work with a control connection whose peer says `octets` and then hangs up.
fn hears<T>(octets: &[u8], act: impl AsyncFnOnce(&mut Control<DuplexStream>) -> T) -> T {
    let runtime = crate::network::tunnel::runtime().expect("a runtime");
    runtime.block_on(async {
        let (near, mut far) = duplex(1 << 20);
        let octets = octets.to_vec();
        let writer = tokio::spawn(async move {
            // Fails if nobody reads to the end.
            let _ = far.write_all(&octets).await;
        });
        let outcome = act(&mut Control::new(near, peer())).await;
        writer.await.expect("no panic");
        outcome
    })
}

/// What a control connection says in `act`.
fn says(act: impl AsyncFnOnce(&mut Control<DuplexStream>) -> Result<(), Failure>) -> Vec<u8> {
    let runtime = crate::network::tunnel::runtime().expect("a runtime");
    runtime.block_on(async {
        let (near, mut far) = duplex(1 << 20);
        let mut control = Control::new(near, peer());
        act(&mut control).await.expect("there is room");
        drop(control);
        let mut said = Vec::new();
        far.read_to_end(&mut said).await.expect("in memory");
        said
    })
}

fn parameters() -> TestParameters {
    TestParameters { bitrate: 10_000_000, ..TestParameters::plain(Length::Seconds(2)) }
}

/// As two iperf 3.12 exchanged them, octet for octet.
const PLAIN: &str = r#"{"tcp":true,"omit":0,"time":2,"num":0,"blockcount":0,"parallel":1,"len":131072,"bandwidth":10000000,"pacing_timer":1000,"client_version":"3.12"}"#;
const MANY: &str = r#"{"tcp":true,"omit":0,"time":0,"num":3145728,"blockcount":0,"MSS":1000,"nodelay":true,"parallel":2,"window":65536,"len":65536,"pacing_timer":1000,"title":"foo","congestion":"reno","get_server_output":1,"client_version":"3.12"}"#;
const RESULTS: &str = r#"{"cpu_util_total":4.5251928202985781,"cpu_util_user":1.1312357389937264,"cpu_util_system":3.39370721698118,"sender_has_retransmits":1,"congestion_used":"bbr","streams":[{"id":1,"bytes":2621440,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":2.000882},{"id":4,"bytes":2621440,"retransmits":7,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":2.000946}]}"#;

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn states_have_iperf3s_octets() {
    let octets = [9, 10, 1, 2, 4, 13, 14, 16, 11, 12, 255, 254];
    for octet in 0..=255 {
        let state = TestState::from_octet(octet);
        assert_eq!(state.is_some(), octets.contains(&octet), "{octet}");
        assert_eq!(state.map(TestState::octet).unwrap_or(octet), octet);
    }
}

#[test]
fn a_cookie_has_36_characters_and_a_nul() {
    let cookie = Cookie::random().expect("random numbers");
    assert_eq!((cookie.octets().len(), cookie.octets()[36]), (37, 0));
    assert_eq!(cookie.to_string().len(), 36);
    assert!(cookie != Cookie::random().expect("random numbers"));
    let mut hostile = [b'a'; COOKIE_SIZE];
    hostile[1] = 0x1b;
    hostile[3] = 0;
    assert_eq!(Cookie::from_wire(hostile).to_string(), "a?a");
}

#[test]
fn parameters_are_those_of_iperf3() {
    assert_eq!(TestParameters::from_json(&read(PLAIN)), Ok(parameters()));
    assert_eq!(parameters().to_json(), read(PLAIN));
    let many = TestParameters {
        streams: 2,
        length: Length::Bytes(3 << 20),
        block: 65_536,
        window: Some(65_536),
        mss: Some(1000),
        no_delay: true,
        bitrate: 0,
        title: Some("foo".to_owned()),
        congestion: Some("reno".to_owned()),
        server_output: true,
        ..parameters()
    };
    assert_eq!(TestParameters::from_json(&read(MANY)), Ok(many.clone()));
    assert_eq!(many.to_json(), read(MANY));
    let directions = [("reverse", Direction::Reverse, 3), ("bidirectional", Direction::Bidirectional, 6)];
    for (name, direction, connections) in directions {
        let mut document = read(PLAIN);
        document[name] = json!(true);
        document["parallel"] = json!(3);
        let read = TestParameters::from_json(&document).expect("good");
        assert_eq!((read.direction, read.connections()), (direction, connections));
        assert_eq!(read.to_json(), document);
    }
}

#[test]
fn what_cannot_be_tested_is_refused_with_a_number() {
    let refusal = |name: &str, value: Value| {
        let mut document = read(PLAIN);
        document[name] = value;
        TestParameters::from_json(&document).expect_err("refused")
    };
    assert_eq!(refusal("udp", json!(true)).error, ServerError::UNIMPLEMENTED);
    assert_eq!(refusal("sctp", json!(true)).error, ServerError::UNIMPLEMENTED);
    for (name, value) in [
        ("parallel", json!(129)),
        ("parallel", json!(-1)),
        ("len", json!(0)),
        ("len", json!(1 << 21)),
        ("time", json!(86_401)),
        ("omit", json!(61)),
        ("window", json!(1u64 << 40)),
        ("MSS", json!(10)),
        ("num", json!("many")),
        ("burst", json!(1e300)),
    ] {
        let refused = refusal(name, value.clone());
        assert_eq!(refused.error, ServerError::PARAMETERS, "{name} {value}");
        assert!(refused.why.contains(name), "{}", refused.why);
    }
    assert!(TestParameters::from_json(&json!([1])).is_err());
}

#[test]
fn results_are_those_of_iperf3() {
    let results = Results::from_json(&read(RESULTS)).expect("good");
    assert!(results.sends);
    assert_eq!(results.congestion.as_deref(), Some("bbr"));
    assert!((results.cpu.total - 4.525).abs() < 0.001);
    let first = results.of(1).expect("there");
    assert_eq!((first.bytes, first.retransmits), (2_621_440, None));
    assert_eq!(first.time, Duration::from_micros(2_000_882));
    assert_eq!(results.of(4).and_then(|stream| stream.retransmits), Some(7));
    assert!(results.of(2).is_none());
}

#[test]
fn own_results_come_back() {
    let own = Results {
        cpu: Cpu { total: 12.5, user: 5.0, system: 7.5 },
        sends: false,
        congestion: Some("cubic".to_owned()),
        server_output: Some(ServerOutput::Text("one\ntwo\u{1b}[31m\n".to_owned())),
        streams: vec![StreamResult { id: 1, bytes: 9, retransmits: None, time: Duration::from_millis(1500) }],
    };
    let document = own.to_json();
    assert_eq!(document["streams"][0]["retransmits"], json!(-1));
    assert_eq!(document["sender_has_retransmits"], json!(-1));
    let back = Results::from_json(&document).expect("good");
    assert_eq!((back.cpu, back.streams, back.sends), (own.cpu, own.streams, false));
    let Some(ServerOutput::Text(text)) = back.server_output else { panic!("a text") };
    assert_eq!(text, "one\ntwo[31m\n", "nothing that steers a terminal");
}

#[test]
fn documents_have_their_length_before_them() {
    let said = says(async |control| control.send_json(&json!({"a": 1})).await);
    assert_eq!(said, b"\0\0\0\x07{\"a\":1}");
    assert_eq!(
        hears(&said, async |control| control.receive_json(MAX_JSON).await).expect("heard"),
        json!({"a": 1})
    );
    let refusal = says(async |control| control.send_error(ServerError { code: 134, errno: 2 }).await);
    assert_eq!(refusal, [254, 0, 0, 0, 134, 0, 0, 0, 2]);
    let failure = hears(&refusal, async |control| control.receive_soon().await).expect_err("refused");
    assert!(failure.to_string().contains("cannot use this congestion control (-C"), "{failure}");
}

#[test]
fn a_peer_that_talks_nonsense_is_told_apart() {
    let complaint = |octets: &[u8]| {
        hears(octets, async |control| control.receive_json(MAX_JSON).await).expect_err("nonsense").to_string()
    };
    assert!(complaint(&[0xff; 4]).contains("the limit is"), "no memory for what never comes");
    let long = u32::try_from(MAX_JSON).expect("fits").to_be_bytes();
    assert!(complaint(&long).contains("closed the control connection"));
    assert!(complaint(b"\0\0\0\x02{]").contains("no JSON"));
    let deep = vec![b'['; 100_000];
    let mut message = 100_000u32.to_be_bytes().to_vec();
    message.extend(deep);
    assert!(complaint(&message).contains("no JSON"));
    let complaint = |octets: &[u8], wanted: TestState| {
        hears(octets, async |control| control.expect(wanted).await).expect_err("nonsense").to_string()
    };
    assert!(complaint(&[77], TestState::TestStart).contains("state 77"));
    assert!(complaint(&[1], TestState::TestEnd).contains("TestStart in place of TestEnd"));
    assert!(complaint(&[255], TestState::ParamExchange).contains("busy"));
    assert!(complaint(&[11], TestState::ParamExchange).contains("the server was stopped"));
    assert!(complaint(&[], TestState::ParamExchange).contains("closed"));
    assert!(complaint(&[254, 0, 0], TestState::ParamExchange).contains("closed"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let names = prop_oneof![
            prop::sample::select(vec![
                "tcp",
                "udp",
                "omit",
                "time",
                "num",
                "blockcount",
                "parallel",
                "len",
                "window",
                "MSS",
                "bandwidth",
                "burst",
                "TOS",
                "title",
                "congestion",
                "streams",
                "id",
                "bytes",
                "end_time",
                "start_time",
                "retransmits",
                "cpu_util_total",
                "server_output_text",
            ])
            .prop_map(str::to_owned),
            ".{0,4}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_octets_do_harm(octets in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = hears(&octets, async |control| control.receive_soon().await);
        let _ = hears(&octets, async |control| control.receive_json(MAX_JSON).await);
    }

    #[test]
    fn what_is_accepted_is_within_the_limits(document in any_json()) {
        if let Ok(parameters) = TestParameters::from_json(&document) {
            prop_assert!((1..=crate::args::limits::MAX_STREAMS).contains(&parameters.streams));
            prop_assert!((1..=crate::args::limits::MAX_BLOCK).contains(&parameters.block));
            // What is understood is said in the same way.
            prop_assert_eq!(TestParameters::from_json(&parameters.to_json()), Ok(parameters));
        }
        if let Ok(results) = Results::from_json(&document) {
            prop_assert!(Results::from_json(&results.to_json()).is_ok());
        }
    }
}
