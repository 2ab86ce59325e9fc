//! A client's stack in memory before a stack with each of the two interfaces.
#![cfg(unix)]

use ackline_netstack::ipstack::{
    IpNumber, IpStack, IpStackConfig, IpStackError, IpStackStream, TcpConfig, TcpOptions,
};
use ackline_netstack::netstack_smoltcp::{Stack, StackBuilder, TcpListener, udp};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::{Device as _, OutgoingPacket};
use ackline_tcp_core::wire::{self, HeaderBuf, IcmpEmit, IcmpHeader, TxChecksumMode, UdpHeader};
use futures_util::{SinkExt as _, StreamExt as _};
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::UnixDatagram;
use tokio::time::timeout;

const CLIENT: &str = "10.0.0.1:4000";
const SERVER: &str = "192.0.2.7:9";
const LIMIT: Duration = Duration::from_secs(60);

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A datagram's packet, complete.
fn datagram(data: &[u8], src: &str, dst: &str) -> Vec<u8> {
    let header = UdpHeader { src: address(src), dst: address(dst), ttl: 64 };
    let mut headers = HeaderBuf::new();
    wire::emit_udp(&header, [data, &[]], TxChecksumMode::Complete, &mut headers).expect("sendable");
    [headers.as_slice(), data].concat()
}

/// The fragments of an IPv4 packet with `octets` of its payload each, a multiple of 8.
fn fragments(packet: &[u8], octets: usize) -> Vec<Vec<u8>> {
    let (header, payload) = packet.split_at(20);
    let count = payload.len().div_ceil(octets);
    let parts = payload.chunks(octets).enumerate().map(|(at, part)| {
        let mut header = header.to_vec();
        header[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
        header[4..6].copy_from_slice(&77_u16.to_be_bytes());
        let more = if at + 1 < count { 0x2000 } else { 0 };
        header[6..8].copy_from_slice(&((at * octets / 8) as u16 | more).to_be_bytes());
        header[10..12].fill(0);
        let sum = wire::checksum::checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        [&header, part].concat()
    });
    parts.collect()
}

/// A ping's packet, or that of its answer.
fn ping(src: &str, dst: &str, message: IcmpEmit) -> Vec<u8> {
    let of = |text: &str| text.parse::<IpAddr>().expect("an address");
    let header = IcmpHeader { src: of(src), dst: of(dst), ttl: 64, message };
    let mut headers = HeaderBuf::new();
    wire::emit_icmp(&header, [b"data", &[]], &mut headers).expect("sendable");
    [headers.as_slice(), b"data"].concat()
}

/// A client's stack before `stack`, and the task between them.
fn client_before(stack: Stack) -> ackline_runtime::Stack {
    let (near, mut far) = Channel::pair(ChannelConfig::default().plain());
    let (mut to_stack, mut from_stack) = stack.split();
    tokio::spawn(async move {
        loop {
            let packet = match far.try_recv() {
                Ok(packet) => Some(packet.head.to_vec()),
                Err(_) => None,
            };
            if let Some(packet) = packet {
                to_stack.send(packet).await.expect("the stack takes it");
                continue;
            }
            tokio::select! {
                ready = poll_fn(|cx| far.poll_readable(cx)) => ready.expect("readable"),
                packet = from_stack.next() => {
                    let packet = packet.expect("no end").expect("a packet");
                    poll_fn(|cx| far.poll_writable(cx)).await.expect("room");
                    let sent = far.try_send(&OutgoingPacket::whole(&packet));
                    assert!(sent.is_ok(), "{sent:?}");
                }
            }
        }
    });
    ackline_runtime::Stack::builder(near).address([10, 0, 0, 1]).spawn().expect("a stack")
}

/// Data of a length that fits into nothing evenly.
fn data() -> Vec<u8> {
    (0..2_345_678_u32).map(|at| (at / 11) as u8).collect()
}

/// The client sends and gets the same back, while another does the same.
async fn exchange(client: &ackline_runtime::Stack) {
    let sent = data();
    let stream = client.connect(SERVER).await.expect("connected");
    let (mut reader, mut writer) = stream.into_split();
    let mut back = vec![];
    let (written, read) = tokio::join!(
        async {
            writer.write_all(&sent).await?;
            writer.shutdown().await
        },
        reader.read_to_end(&mut back)
    );
    written.expect("written");
    read.expect("read");
    assert!(back == sent, "{} bytes came back", back.len());
}

/// Gives back what each connection sends.
fn echo(mut listener: TcpListener) {
    tokio::spawn(async move {
        while let Some((stream, client, destination)) = listener.next().await {
            assert_eq!((client.ip(), destination), (address(CLIENT).ip(), address(SERVER)));
            assert_eq!((stream.local_addr(), stream.remote_addr()), (&client, &destination));
            tokio::spawn(async move {
                let (mut reader, mut writer) = tokio::io::split(stream);
                tokio::io::copy(&mut reader, &mut writer).await?;
                writer.shutdown().await
            });
        }
    });
}

#[tokio::test]
async fn a_stack_of_sinks_and_streams_carries_connections_with_small_queues() {
    let (stack, runner, udp, listener) = StackBuilder::default()
        .enable_tcp(true)
        .stack_buffer_size(3)
        .tcp_buffer_size(2)
        .tcp_recv_buffer_size(100_000)
        .options("cc=cubic")
        .build()
        .expect("a stack");
    assert!(udp.is_none());
    tokio::spawn(runner.expect("with TCP"));
    echo(listener.expect("with TCP"));
    let client = client_before(stack);
    timeout(LIMIT, async { tokio::join!(exchange(&client), exchange(&client)) }).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stack_of_sinks_and_streams_carries_connections_on_several_threads() {
    let (stack, runner, _, listener) =
        StackBuilder::default().enable_tcp(true).mtu(9000).build().expect("a stack");
    tokio::spawn(runner.expect("with TCP"));
    echo(listener.expect("with TCP"));
    let client = client_before(stack);
    let all = async { tokio::join!(exchange(&client), exchange(&client), exchange(&client)) };
    timeout(LIMIT, all).await.expect("in time");
}

/// A stack with UDP alone, which needs no runner.
fn udp_stack() -> (Stack, udp::ReadHalf, udp::WriteHalf) {
    let (stack, runner, udp, listener) =
        StackBuilder::default().enable_udp(true).udp_buffer_size(2).build().expect("a stack");
    assert!(runner.is_none() && listener.is_none());
    let (reader, writer) = udp.expect("with UDP").split();
    (stack, reader, writer)
}

#[tokio::test]
async fn datagrams_come_from_the_sink_and_leave_by_the_stream() {
    let (mut stack, mut reader, mut writer) = udp_stack();
    stack.send(datagram(b"there", CLIENT, SERVER)).await.expect("taken");
    assert_eq!(reader.next().await, Some((b"there".to_vec(), address(CLIENT), address(SERVER))));

    // From whatever address, and however long.
    let long = vec![7; 3_000];
    writer.send((long.clone(), address("[2001:db8::1]:53"), address("[fd00::2]:9"))).await.expect("sent");
    let packet = stack.next().await.expect("no end").expect("a packet");
    assert_eq!(packet, datagram(&long, "[2001:db8::1]:53", "[fd00::2]:9"));
    let mixed = writer.send((vec![1], address("[2001:db8::1]:53"), address(CLIENT))).await;
    assert_eq!(mixed.expect_err("two families").kind(), ErrorKind::InvalidInput);

    // A damaged datagram is dropped.
    let mut damaged = datagram(b"there", CLIENT, SERVER);
    damaged[28] ^= 1;
    stack.send(damaged).await.expect("dropped");
    stack.send(datagram(b"whole", CLIENT, SERVER)).await.expect("taken");
    assert_eq!(reader.next().await.expect("a datagram").0, b"whole");
    assert_eq!(stack.send(vec![0x33; 30]).await.expect_err("no packet").kind(), ErrorKind::InvalidInput);
    stack.send(datagram(b"all", CLIENT, "255.255.255.255:67")).await.expect("filtered");
    stack.send(datagram(b"one", CLIENT, SERVER)).await.expect("taken");
    assert_eq!(reader.next().await.expect("a datagram").0, b"one");
}

#[tokio::test]
async fn a_datagram_in_fragments_comes_whole() {
    let (mut stack, mut reader, _writer) = udp_stack();
    let data: Vec<u8> = (0..5_000_u16).map(|at| at as u8).collect();
    for _ in 0..3 {
        let mut parts = fragments(&datagram(&data, CLIENT, SERVER), 1_480);
        parts.reverse();
        for part in parts {
            stack.send(part).await.expect("taken");
        }
        let whole = timeout(LIMIT, reader.next()).await.expect("in time");
        assert_eq!(whole, Some((data.clone(), address(CLIENT), address(SERVER))));
    }
}

#[tokio::test]
async fn a_full_udp_socket_holds_the_sink_until_it_is_read() {
    let (mut stack, mut reader, _writer) = udp_stack();
    let mut packets = futures_util::stream::iter((0..20).map(|at| Ok(datagram(&[at], CLIENT, SERVER))));
    let sending = stack.send_all(&mut packets);
    let reading = async {
        for at in 0..20 {
            assert_eq!(reader.next().await.expect("a datagram").0, [at]);
        }
    };
    let (sent, ()) = timeout(LIMIT, async { tokio::join!(sending, reading) }).await.expect("in time");
    sent.expect("sent");
}

#[tokio::test]
async fn pings_of_any_address_are_answered_if_icmp_is_enabled() {
    for enabled in [true, false] {
        let (mut stack, runner, _, listener) =
            StackBuilder::default().enable_tcp(true).enable_icmp(enabled).build().expect("a stack");
        tokio::spawn(runner.expect("with TCP"));
        for (src, dst) in [("10.0.0.1", "192.0.2.9"), ("fd00::1", "2001:db8::9")] {
            stack.send(ping(src, dst, IcmpEmit::EchoRequest { ident: 3, seq: 4 })).await.expect("taken");
            if enabled {
                let answer = timeout(LIMIT, stack.next()).await.expect("in time");
                let answer = answer.expect("no end").expect("a packet");
                assert_eq!(answer, ping(dst, src, IcmpEmit::EchoReply { ident: 3, seq: 4 }));
            } else {
                assert!(timeout(Duration::from_millis(50), stack.next()).await.is_err(), "an answer");
            }
        }
        drop(listener);
    }
}

#[tokio::test]
async fn a_stack_that_is_dropped_ends_its_runner_and_listener_and_settings_are_checked() {
    let (stack, runner, _, listener) = StackBuilder::default().enable_tcp(true).build().expect("a stack");
    let runner = tokio::spawn(runner.expect("with TCP"));
    drop(stack);
    assert!(timeout(LIMIT, listener.expect("with TCP").next()).await.expect("in time").is_none());
    let end = timeout(LIMIT, runner).await.expect("in time").expect("no panic");
    assert_eq!(end.expect_err("no stack").kind(), ErrorKind::NetworkDown);

    let refused = |builder: StackBuilder| builder.build().err().map(|error| error.kind());
    assert_eq!(refused(StackBuilder::default().enable_icmp(true)), Some(ErrorKind::InvalidInput));
    assert_eq!(refused(StackBuilder::default().mtu(60)), Some(ErrorKind::InvalidInput));
    assert_eq!(refused(StackBuilder::default().options("cc=nobody")), Some(ErrorKind::InvalidInput));
}

#[test]
fn outside_a_runtime_a_stack_is_refused() {
    assert_eq!(StackBuilder::default().build().expect_err("no runtime").kind(), ErrorKind::Other);
}

/// A device whose reads and writes are packets.
struct PacketIo(UnixDatagram);

impl AsyncRead for PacketIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.poll_recv(cx, buf)
    }
}

impl AsyncWrite for PacketIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_send(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A stack that is accepted from, and the other end of its device.
fn ip_stack(change: impl FnOnce(&mut IpStackConfig)) -> (IpStack, UnixDatagram) {
    let mut config = IpStackConfig::default();
    config.mtu(1500).expect("enough");
    change(&mut config);
    let (device, wire) = UnixDatagram::pair().expect("sockets");
    (IpStack::new(config, PacketIo(device)), wire)
}

/// A client's stack at the other end of a device.
fn client_at(wire: UnixDatagram) -> ackline_runtime::Stack {
    let (near, mut far) = Channel::pair(ChannelConfig::default().plain());
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_535];
        loop {
            let packet = far.try_recv().map(|packet| packet.head.to_vec());
            if let Ok(packet) = packet {
                // The stack may be gone.
                if wire.send(&packet).await.is_err() {
                    return;
                }
                continue;
            }
            tokio::select! {
                ready = poll_fn(|cx| far.poll_readable(cx)) => ready.expect("readable"),
                length = wire.recv(&mut buffer) => {
                    let Ok(length) = length else { return };
                    poll_fn(|cx| far.poll_writable(cx)).await.expect("room");
                    let sent = far.try_send(&OutgoingPacket::whole(&buffer[..length]));
                    assert!(sent.is_ok(), "{sent:?}");
                }
            }
        }
    });
    ackline_runtime::Stack::builder(near).address([10, 0, 0, 1]).spawn().expect("a stack")
}

/// Gives back what connections and flows bring.
fn give_back(mut stack: IpStack) {
    tokio::spawn(async move {
        while let Ok(stream) = stack.accept().await {
            assert_eq!(
                (stream.local_addr().ip(), stream.peer_addr()),
                (address(CLIENT).ip(), address(SERVER))
            );
            tokio::spawn(async move {
                match stream {
                    IpStackStream::Tcp(stream) => {
                        let (mut reader, mut writer) = tokio::io::split(stream);
                        tokio::io::copy(&mut reader, &mut writer).await?;
                        writer.shutdown().await
                    }
                    IpStackStream::Udp(mut flow) => {
                        let mut data = [0; 100];
                        loop {
                            let length = flow.read(&mut data).await?;
                            flow.write_all(&data[..length]).await?;
                        }
                    }
                    other => panic!("{other:?}"),
                }
            });
        }
    });
}

#[tokio::test]
async fn a_stack_over_a_device_carries_connections_and_flows() {
    let (stack, wire) = ip_stack(|config| {
        let mut tcp = TcpConfig::default();
        tcp.options = Some(vec![TcpOptions::MaximumSegmentSize(700)]);
        tcp.max_unacked_bytes = 300_000;
        tcp.read_buffer_size = 200_000;
        tcp.settings = "cc=reno".to_owned();
        config.with_tcp_config(tcp);
    });
    give_back(stack);
    let client = client_at(wire);
    timeout(LIMIT, async { tokio::join!(exchange(&client), exchange(&client)) }).await.expect("in time");

    let socket = client.bind_udp(address(CLIENT)).expect("bound");
    socket.connect(SERVER).await.expect("connected");
    let mut back = [0; 200];
    // An empty one is no end, and the flow's reader has room for 100 bytes.
    for (sent, received) in [(3, 3), (0, 100), (150, 0)] {
        socket.send(&data()[..sent]).await.expect("sent");
        if received == 3 {
            assert_eq!(timeout(LIMIT, socket.recv(&mut back)).await.expect("in time").expect("an answer"), 3);
        }
    }
    assert_eq!(timeout(LIMIT, socket.recv(&mut back)).await.expect("in time").expect("an answer"), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stack_over_a_device_carries_connections_on_several_threads() {
    let (stack, wire) = ip_stack(|_| {});
    give_back(stack);
    let client = client_at(wire);
    let all = async { tokio::join!(exchange(&client), exchange(&client), exchange(&client)) };
    timeout(LIMIT, all).await.expect("in time");
}

#[tokio::test]
async fn other_packets_are_accepted_whole_and_answered() {
    let (mut stack, wire) = ip_stack(|_| {});
    for (src, dst, protocol) in
        [("10.0.0.1", "192.0.2.9", IpNumber::ICMP), ("fd00::1", "2001:db8::9", IpNumber::IPV6_ICMP)]
    {
        let request = ping(src, dst, IcmpEmit::EchoRequest { ident: 3, seq: 4 });
        wire.send(&request).await.expect("sent");
        let accepted = timeout(LIMIT, stack.accept()).await.expect("in time").expect("no end");
        let IpStackStream::UnknownTransport(packet) = accepted else { panic!("{accepted:?}") };
        assert_eq!((packet.src_addr().to_string(), packet.dst_addr().to_string()), (src.into(), dst.into()));
        assert_eq!(packet.ip_protocol(), protocol);
        let answer = ping(dst, src, IcmpEmit::EchoReply { ident: 3, seq: 4 });
        let header = if protocol == IpNumber::ICMP { 20 } else { 40 };
        assert_eq!(packet.payload(), &request[header..]);
        packet.send(answer[header..].to_vec()).expect("sent");
        let mut back = [0; 200];
        let length = timeout(LIMIT, wire.recv(&mut back)).await.expect("in time").expect("an answer");
        assert_eq!(back[header..length], answer[header..]);
    }
    wire.send(&[0x99; 30]).await.expect("sent");
    let accepted = timeout(LIMIT, stack.accept()).await.expect("in time").expect("no end");
    assert!(
        matches!(&accepted, IpStackStream::UnknownNetwork(packet) if *packet == [0x99; 30]),
        "{accepted:?}"
    );
}

#[tokio::test]
async fn what_is_idle_for_too_long_ends() {
    let (mut stack, wire) = ip_stack(|config| {
        let mut tcp = TcpConfig::default();
        tcp.timeout = Duration::from_millis(300);
        config.with_tcp_config(tcp).udp_timeout(Duration::from_millis(300));
    });
    let client = client_at(wire);
    let opened = client.connect(SERVER);
    let (opened, accepted) = tokio::join!(opened, stack.accept());
    let mut opened = opened.expect("connected");
    let IpStackStream::Tcp(mut stream) = accepted.expect("no end") else { panic!("no connection") };
    let mut byte = [0];
    // Whatever passes holds off the end.
    for _ in 0..4 {
        opened.write_all(&[1]).await.expect("written");
        stream.read_exact(&mut byte).await.expect("read");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let end = timeout(LIMIT, stream.read(&mut byte)).await.expect("in time");
    assert_eq!(end.expect_err("idle").kind(), io::ErrorKind::TimedOut);
    let end = timeout(LIMIT, opened.read(&mut byte)).await.expect("in time");
    assert_eq!(end.expect_err("reset").kind(), io::ErrorKind::ConnectionReset);

    let socket = client.bind_udp(address(CLIENT)).expect("bound");
    socket.send_to(&[1], SERVER).await.expect("sent");
    let IpStackStream::Udp(mut flow) = stack.accept().await.expect("no end") else { panic!("no flow") };
    assert_eq!(flow.read(&mut byte).await.expect("a datagram"), 1);
    let end = timeout(LIMIT, flow.read(&mut byte)).await.expect("in time");
    assert_eq!(end.expect_err("idle").kind(), io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_device_that_ends_and_wrong_settings_are_reported() {
    let (mut stack, wire) = ip_stack(|_| {});
    // An empty read is the end of a device.
    wire.send(&[]).await.expect("sent");
    let end = timeout(LIMIT, stack.accept()).await.expect("in time");
    assert!(matches!(end, Err(IpStackError::AcceptError)), "{end:?}");

    assert!(matches!(IpStackConfig::default().mtu(1279), Err(IpStackError::InvalidMtuSize(1279))));
    let (mut stack, _wire) = ip_stack(|config| {
        let mut tcp = TcpConfig::default();
        tcp.settings = "cc=nobody".to_owned();
        config.with_tcp_config(tcp);
    });
    let error = stack.accept().await.expect_err("no such policy");
    assert!(error.to_string().contains("nobody"), "{error}");
}

#[cfg(feature = "futures-io")]
#[tokio::test]
async fn the_streams_have_the_traits_of_futures_io() {
    use futures_util::AsyncWriteExt as _;
    let (mut stack, wire) = ip_stack(|_| {});
    let client = client_at(wire);
    tokio::spawn(async move {
        let IpStackStream::Tcp(stream) = stack.accept().await.expect("no end") else {
            panic!("no connection")
        };
        let (reader, mut writer) = futures_util::AsyncReadExt::split(stream);
        futures_util::io::copy(reader, &mut writer).await.expect("copied");
        writer.close().await.expect("closed");
        stack.accept().await
    });
    timeout(LIMIT, exchange(&client)).await.expect("in time");
}
