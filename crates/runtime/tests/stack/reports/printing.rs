//! What a user prints: snapshots as JSON, by the feature `serde`.

use crate::common::{Connected, connected, soon};
use ackline_tcp_core::ConnConfig;
use serde_json::{Value, json, to_value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn snapshots_serialize_with_the_names_of_their_fields_and_of_nstat() {
    let Connected { mut near, mut far, hosts, .. } = connected(ConnConfig::default()).await;
    near.write_all(b"ping").await.expect("written");
    let mut ping = [0; 4];
    soon(far.read_exact(&mut ping)).await.expect("read");

    let info = near.info().expect("connected");
    let shown = to_value(&info).expect("serializes");
    assert_eq!(shown["state"], "ESTABLISHED");
    assert_eq!(shown["remote"], "10.0.0.2:7");
    assert_eq!(shown["rto"], info.rto.as_nanos());
    assert_eq!(shown["pacing_rate"], Value::Null);
    assert_eq!(
        (&shown["bytes_sent"], &shown["ca_state"], &shown["ecn"]),
        (&json!(4), &json!("open"), &json!("off"))
    );

    // Beside the fields of `tcp_info`: what the policies show.
    let metrics = &shown["metrics"];
    assert_eq!(metrics["cc"]["cwnd"].as_f64(), Some(info.snd_cwnd as f64));
    assert_eq!(metrics["rto"], json!({ "repairing": 0.0 }));
    assert_eq!(metrics["ack"], json!({ "delay_ms": 40.0, "segments": 2.0 }));
    assert_eq!(info.metrics.ack.to_string(), "delay 40 ms, segments 2");
    assert_eq!((info.metrics.ack.value("delay_ms"), info.metrics.ack.value("delay")), (Some(40.0), None));
    let scheduler = to_value(hosts.0.scheduler()).expect("serializes");
    assert_eq!(scheduler["name"], "flow-queue");
    assert_eq!(scheduler["metrics"]["queued_packets"], 0.0);

    let stats = to_value(hosts.0.stats()).expect("serializes");
    assert_eq!(stats["counters"]["TcpActiveOpens"], 1);
    assert_eq!(stats["device"]["tx_packets"], hosts.0.device_stats().tx_packets);
    assert_eq!(stats["egress"]["data"]["packets"], 1);
    let gaps = &stats["departure_gaps"];
    assert!(gaps["count"].as_u64() > Some(0), "{gaps}");
    let at = |name: &str| gaps[name].as_u64().expect("a number of nanoseconds");
    assert!(at("min") <= at("p50") && at("p50") <= at("p99_9") && at("p99_9") <= at("max"), "{gaps}");
}
