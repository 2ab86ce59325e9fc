//! Data goes both ways, whole and in order.

use crate::common::{
    Connected, FAR, FAR6, Fixed, PORT, assert_same, connected, connected_over, hosts, pattern, read_all,
    soon, until,
};
use ackline_runtime::TcpStream;
use ackline_runtime::device::channel::ChannelConfig;
use ackline_tcp_core::policy::AckPolicy;
use ackline_tcp_core::policy::ack::{AckInit, AckPlan, DataArrival, RecvView};
use ackline_tcp_core::policy::builtin::DelayedAck;
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::{ConnConfig, Duration, ListenOn, State};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn echo(stream: TcpStream) -> io::Result<u64> {
    let (mut read, mut write) = stream.into_split();
    let copied = tokio::io::copy(&mut read, &mut write).await?;
    write.shutdown().await?;
    Ok(copied)
}

/// Sends `sent` and gives back what the peer answers until it closes.
async fn ask(stream: TcpStream, sent: Vec<u8>) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut read, mut write) = stream.into_split();
    let writer = tokio::spawn(async move {
        write.write_all(&sent).await?;
        write.shutdown().await?;
        io::Result::Ok(sent)
    });
    let answer = read_all(&mut read).await?;
    Ok((writer.await.expect("no panic")?, answer))
}

async fn echoes(channel: ChannelConfig, to: IpAddr, connections: u64, length: usize) {
    let (near, far) = hosts(channel, ConnConfig::default());
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let server = tokio::spawn(async move {
        let mut echoes = Vec::new();
        for _ in 0..connections {
            let (stream, _) = listener.accept().await.expect("accepted");
            echoes.push(tokio::spawn(echo(stream)));
        }
        for echo in echoes {
            assert_eq!(echo.await.expect("no panic").expect("echoed"), length as u64);
        }
    });
    let clients: Vec<_> = (0..connections)
        .map(|n| {
            let near = near.clone();
            tokio::spawn(async move {
                let stream = near.connect((to, PORT)).await.expect("connected");
                ask(stream, pattern(n, length)).await.expect("echoed")
            })
        })
        .collect();
    for client in clients {
        let (sent, answer) = client.await.expect("no panic");
        assert_same(&answer, &sent);
    }
    server.await.expect("no panic");
}

#[tokio::test]
async fn an_echo_comes_back_with_super_packets() {
    soon(echoes(ChannelConfig::default(), FAR, 1, 8 << 20)).await;
}

#[tokio::test]
async fn an_echo_comes_back_in_single_packets() {
    soon(echoes(ChannelConfig::default().plain(), FAR, 1, 2 << 20)).await;
}

#[tokio::test]
async fn an_echo_comes_back_over_ipv6() {
    soon(echoes(ChannelConfig::default(), FAR6, 1, 2 << 20)).await;
    soon(echoes(ChannelConfig::default().plain().mtu(1280), FAR6, 1, 1 << 20)).await;
}

#[tokio::test]
async fn one_byte_comes_back() {
    soon(echoes(ChannelConfig::default(), FAR, 1, 1)).await;
}

#[tokio::test]
async fn a_hundred_connections_do_not_mix() {
    soon(echoes(ChannelConfig::default(), FAR, 100, 100_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_on_several_threads_do_not_mix() {
    soon(echoes(ChannelConfig::default(), FAR, 50, 300_000)).await;
}

#[tokio::test]
async fn a_device_with_room_for_one_packet_carries_everything() {
    let cable = ChannelConfig::default().queue(1, 1 << 16);
    let Connected { near, far, hosts, .. } = connected_over(cable, ConnConfig::default()).await;
    let sent = pattern(1, 3 << 20);
    let echo = tokio::spawn(echo(far));
    let (sent, answer) = soon(ask(near, sent)).await.expect("echoed");
    assert_same(&answer, &sent);
    soon(echo).await.expect("no panic").expect("echoed");
    assert!(hosts.0.stats().device.tx_full > 0, "the device was never full");
    assert_eq!(hosts.0.stats().device_drops, 0);
}

#[tokio::test]
async fn the_far_end_may_speak_after_the_near_end_has_closed() {
    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    near.write_all(b"question").await.expect("written");
    near.shutdown().await.expect("closed");
    assert_eq!(soon(read_all(&mut far)).await.expect("the end"), b"question");
    assert_eq!(far.info().expect("connected").state, State::CloseWait);
    far.write_all(b"answer").await.expect("written");
    far.shutdown().await.expect("closed");
    assert_eq!(soon(read_all(&mut near)).await.expect("the end"), b"answer");
    soon(far.flushed()).await.expect("the far FIN is acknowledged");
}

#[tokio::test]
async fn nothing_can_be_written_after_shutdown() {
    let Connected { mut near, far: _far, .. } = connected(ConnConfig::default()).await;
    near.shutdown().await.expect("closed");
    let error = near.write(b"more").await.expect_err("the sending side is closed");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    near.shutdown().await.expect("closing twice is no error");
}

#[tokio::test]
async fn both_directions_run_at_once() {
    let Connected { near, far, .. } = connected(ConnConfig::default()).await;
    let (one, other) =
        tokio::join!(soon(ask(near, pattern(1, 3 << 20))), soon(ask(far, pattern(2, 2 << 20))));
    let ((near_sent, near_got), (far_sent, far_got)) = (one.expect("near"), other.expect("far"));
    assert_same(&far_got, &near_sent);
    assert_same(&near_got, &far_sent);
}

#[tokio::test]
async fn borrowed_halves_work_side_by_side() {
    let Connected { mut near, far, .. } = connected(ConnConfig::default()).await;
    tokio::spawn(echo(far));
    let sent = pattern(3, 1 << 20);
    let mut answer = vec![0; sent.len()];
    let (mut read, mut write) = near.split();
    assert_eq!(read.peer_addr().expect("known"), write.peer_addr().expect("known"));
    let (wrote, got) =
        soon(async { tokio::join!(write.write_all(&sent), read.read_exact(&mut answer)) }).await;
    wrote.expect("written");
    got.expect("read");
    assert_same(&answer, &sent);
}

#[tokio::test]
async fn owned_halves_join_again_only_with_each_other() {
    let Connected { near, mut far, hosts, listener } = connected(ConnConfig::default()).await;
    let other = hosts.0.connect((FAR, PORT)).await.expect("connected");
    let (_other_far, _) = listener.accept().await.expect("accepted");
    let (read, write) = near.into_split();
    let (other_read, other_write) = other.into_split();
    let error = read.reunite(other_write).expect_err("not of one stream");
    let mut near = error.0.reunite(write).expect("of one stream");
    let _other = other_read.reunite(error.1).expect("of one stream");
    near.write_all(b"whole").await.expect("still open");
    let mut got = [0; 5];
    soon(far.read_exact(&mut got)).await.expect("still open");
    assert_eq!(&got, b"whole");
}

#[tokio::test]
async fn a_dropped_write_half_ends_the_stream_and_reading_goes_on() {
    let Connected { near, mut far, .. } = connected(ConnConfig::default()).await;
    let (mut read, mut write) = near.into_split();
    write.write_all(b"last words").await.expect("written");
    drop(write);
    assert_eq!(soon(read_all(&mut far)).await.expect("the end"), b"last words");
    far.write_all(b"farewell").await.expect("written");
    far.shutdown().await.expect("closed");
    assert_eq!(soon(read_all(&mut read)).await.expect("the end"), b"farewell");
}

#[tokio::test]
async fn data_is_used_and_made_in_place() {
    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    let sent = pattern(4, 1 << 20);
    let source = sent.clone();
    let writer = tokio::spawn(async move {
        let mut left = &source[..];
        while !left.is_empty() {
            let written = near
                .write_with(left.len(), |room| {
                    let mut written = 0;
                    for piece in room {
                        let n = piece.len().min(left.len() - written);
                        piece[..n].copy_from_slice(&left[written..written + n]);
                        written += n;
                    }
                    written
                })
                .await
                .expect("written");
            left = &left[written..];
        }
        near.shutdown().await.expect("closed");
    });
    let mut received = Vec::new();
    loop {
        // Leaves a byte behind if there are several: it must come again.
        let more = soon(far.with_readable(|pieces| {
            let there = pieces.concat();
            let used = there.len() - usize::from(there.len() > 1);
            received.extend_from_slice(&there[..used]);
            (used, !there.is_empty())
        }))
        .await
        .expect("read");
        if !more {
            break;
        }
    }
    writer.await.expect("no panic");
    assert_same(&received, &sent);
}

#[tokio::test]
async fn vectored_writes_keep_their_order() {
    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    near.set_send_buffer_size(4 << 20).expect("connected");
    let pieces = [pattern(5, 1000), Vec::new(), pattern(6, 70_000)];
    let slices: Vec<_> = pieces.iter().map(|piece| io::IoSlice::new(piece)).collect();
    let written = near.write_vectored(&slices).await.expect("written");
    assert_eq!(written, 71_000, "the send buffer has room for all");
    near.shutdown().await.expect("closed");
    assert_same(&soon(read_all(&mut far)).await.expect("read"), &pieces.concat());
}

#[tokio::test]
async fn policies_are_swapped_while_data_flows() {
    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    let sent = pattern(7, 2 << 20);
    let reader = tokio::spawn(async move {
        far.set_ack_policy(&|_: &AckInit| Box::new(EverySegment)).expect("connected");
        let name = far.info().expect("connected").ack_policy;
        (name, read_all(&mut far).await.expect("read"))
    });
    near.write_all(&sent[..1 << 20]).await.expect("written");
    near.set_congestion_control(&|_: &CcInit| Box::new(Fixed::window(100_000))).expect("connected");
    near.set_nodelay(true).expect("connected");
    assert_eq!(near.info().expect("connected").cc, "fixed");
    near.write_all(&sent[1 << 20..]).await.expect("written");
    near.shutdown().await.expect("closed");
    let (ack_policy, received) = soon(reader).await.expect("no panic");
    assert_eq!(ack_policy, "every-segment");
    assert_same(&received, &sent);
}

#[derive(Debug)]
struct EverySegment;

impl AckPolicy for EverySegment {
    fn name(&self) -> &'static str {
        "every-segment"
    }

    fn on_data(&mut self, _: &RecvView, _: &DataArrival) -> AckPlan {
        AckPlan::NOW
    }

    fn on_timeout(&mut self, _: &RecvView) -> AckPlan {
        AckPlan::NOW
    }
}

#[tokio::test]
async fn acknowledgments_ride_on_what_the_application_answers() {
    let hosts = hosts(ChannelConfig::default(), ConnConfig::default());
    let listener = hosts.1.listen(ListenOn::Port(PORT)).expect("a free port");
    let server = tokio::spawn(async move {
        let (mut far, _) = listener.accept().await.expect("accepted");
        far.read_exact(&mut [0]).await.expect("read");
    });
    let client = hosts.0.clone();
    let client = tokio::spawn(async move {
        let mut near = client.connect((FAR, PORT)).await.expect("connected");
        near.write_all(&[7]).await.expect("written");
        assert_eq!(near.read(&mut [0]).await.expect("read"), 0);
    });
    soon(server).await.expect("no panic");
    soon(client).await.expect("no panic");
    until(|| hosts.0.stats().connections == 0).await;
    // SYN, byte, FIN; each of the last two carries an ACK.
    assert_eq!(hosts.0.stats().device.tx_packets, 3);
}

#[tokio::test]
async fn a_small_request_that_nobody_answers_is_acknowledged_all_the_same() {
    let mut config = ConnConfig::default();
    config.policies.ack = Arc::new(|_: &AckInit| Box::new(DelayedAck::new(Duration::from_millis(40), 1)));
    let Connected { mut near, mut far, .. } = connected(config).await;
    for _ in 0..3 {
        near.write_all(&[7; 100]).await.expect("written");
        soon(far.read_exact(&mut [0; 100])).await.expect("read");
        // Long before the near side's retransmission timer and the far side's hold limit.
        until(|| near.info().expect("connected").unacked == 0).await;
    }
    assert_eq!(far.info().expect("connected").acks_out, 3);
}
