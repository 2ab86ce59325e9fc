//! What an observer sees of a stack's packets.

use crate::common::{Connected, connected, soon, until};
use ackline_tcp_core::events::PacketObserver;
use ackline_tcp_core::packet::{SendReason, TxPacket};
use ackline_tcp_core::wire::RxPacket;
use ackline_tcp_core::{ConnConfig, Instant};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    times: Vec<Instant>,
    received: (u64, u64),
    sent: (u64, u64),
    reasons: Vec<SendReason>,
}

#[derive(Clone, Debug, Default)]
struct Eyes(Arc<Mutex<Seen>>);

impl PacketObserver for Eyes {
    fn received(&mut self, now: Instant, _: &[u8], packet: &RxPacket<'_>) {
        let mut seen = self.0.lock().expect("whole");
        seen.times.push(now);
        seen.received.0 += 1;
        seen.received.1 += packet.len() as u64;
    }

    fn sent(&mut self, now: Instant, _: &[u8], packet: &TxPacket<'_>) {
        let mut seen = self.0.lock().expect("whole");
        seen.times.push(now);
        seen.sent.0 += 1;
        seen.sent.1 += packet.len() as u64;
        seen.reasons.push(packet.reason);
    }
}

#[tokio::test]
async fn an_observer_sees_what_the_device_carries_until_it_is_taken_away() {
    let Connected { mut near, mut far, hosts, .. } = connected(ConnConfig::default()).await;
    let eyes = Eyes::default();
    hosts.0.set_observer(Some(Box::new(eyes.clone())));
    let before = hosts.0.device_stats();
    near.write_all(&[1; 100_000]).await.expect("written");
    let mut data = vec![0; 100_000];
    soon(far.read_exact(&mut data)).await.expect("read");
    far.write_all(&[2; 10]).await.expect("written");
    soon(near.read_exact(&mut data[..10])).await.expect("read");
    until(|| near.info().is_ok_and(|info| info.bytes_acked >= 100_000)).await;

    hosts.0.set_observer(None);
    let after = hosts.0.device_stats();
    let seen = std::mem::take(&mut *eyes.0.lock().expect("whole"));
    let difference = |after: u64, before: u64| after - before;
    let sent = (difference(after.tx_packets, before.tx_packets), difference(after.tx_bytes, before.tx_bytes));
    let received =
        (difference(after.rx_packets, before.rx_packets), difference(after.rx_bytes, before.rx_bytes));
    assert_eq!((seen.sent, seen.received), (sent, received));
    assert!(seen.times.is_sorted(), "the order of packets is that of their times");
    assert!(seen.reasons.contains(&SendReason::NewData), "{:?}", seen.reasons);

    near.write_all(&[3; 10]).await.expect("written");
    soon(far.read_exact(&mut data[..10])).await.expect("read");
    assert!(eyes.0.lock().expect("whole").times.is_empty());
}
