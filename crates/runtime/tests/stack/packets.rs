//! Packets that are neither TCP nor UDP.

use crate::common::{FAR, FAR6, NEAR, NEAR6, soon};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Packets, Stack};
use ackline_tcp_core::wire::{HeaderBuf, IcmpEmit, IcmpHeader, emit_icmp};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

fn message(src: IpAddr, dst: IpAddr, message: IcmpEmit, data: &[u8]) -> Vec<u8> {
    let mut header = HeaderBuf::new();
    emit_icmp(&IcmpHeader { src, dst, ttl: 64, message }, [data, &[]], &mut header).expect("short");
    [header.as_slice(), data].concat()
}

fn hosts() -> (Stack, Stack) {
    let (near, far) = Channel::pair(ChannelConfig::default().plain());
    let near = Stack::builder(near).address(NEAR).address(NEAR6).spawn();
    let far = Stack::builder(far).address(FAR).address(FAR6).any_address().spawn();
    (near.expect("a timer"), far.expect("a timer"))
}

/// Answers one ping.
async fn answer(packets: &Packets, from: IpAddr, to: IpAddr) {
    let request = soon(packets.recv()).await.expect("a ping");
    assert_eq!(request[..], message(from, to, IcmpEmit::EchoRequest { ident: 1, seq: 2 }, b"there?"));
    packets.send(&message(to, from, IcmpEmit::EchoReply { ident: 1, seq: 2 }, b"there?")).expect("sent");
}

#[tokio::test]
async fn a_program_answers_pings_in_the_name_of_others() {
    let (near, far) = hosts();
    let (near_packets, far_packets) =
        (near.packets().expect("nobody else"), far.packets().expect("nobody else"));
    assert_eq!(far.packets().expect_err("taken").kind(), ErrorKind::AddrInUse);
    assert_eq!(far_packets.try_recv().expect_err("none yet").kind(), ErrorKind::WouldBlock);
    let table: [(IpAddr, IpAddr); 2] =
        [(NEAR, "203.0.113.5".parse().unwrap()), (NEAR6, "2001:db8::5".parse().unwrap())];
    for (own, foreign) in table {
        let request = message(own, foreign, IcmpEmit::EchoRequest { ident: 1, seq: 2 }, b"there?");
        near_packets.send(&request).expect("sent");
        answer(&far_packets, own, foreign).await;
        let reply = soon(poll_fn(|cx| near_packets.poll_recv(cx))).await.expect("an answer");
        assert_eq!(reply[..], message(foreign, own, IcmpEmit::EchoReply { ident: 1, seq: 2 }, b"there?"));
    }
    let wrong = message(FAR, NEAR, IcmpEmit::EchoReply { ident: 1, seq: 2 }, b"x");
    assert_eq!(near_packets.send(&wrong).expect_err("not ours").kind(), ErrorKind::AddrNotAvailable);
    assert_eq!(near_packets.send(&wrong[1..]).expect_err("no packet").kind(), ErrorKind::InvalidInput);
    drop(far_packets);
    far.packets().expect("nobody has them any more");
}

#[tokio::test]
async fn who_waits_for_packets_is_told_of_the_end() {
    let (device, _other) = Channel::pair(ChannelConfig::default());
    let (stack, driver) = Stack::builder(device).address(NEAR).build().expect("a timer");
    let driver = tokio::spawn(driver);
    let packets = stack.packets().expect("nobody else");
    let waiting = tokio::spawn(async move { packets.recv().await });
    tokio::task::yield_now().await;
    driver.abort();
    assert_eq!(soon(waiting).await.expect("no panic").expect_err("no device").kind(), ErrorKind::NetworkDown);

    let (near, _far) = hosts();
    let packets = near.packets().expect("nobody else");
    let waiting = tokio::spawn(async move { packets.recv().await });
    tokio::task::yield_now().await;
    soon(near.shutdown(Duration::from_secs(1))).await;
    assert_eq!(
        soon(waiting).await.expect("no panic").expect_err("shut down").kind(),
        ErrorKind::NotConnected
    );
}
