//! Frames as they come over a socket, from its other end.

use super::{FrameSocket, FrameSocketConfig};
use crate::device::ethernet::neighbours::NeighbourConfig;
use crate::device::ethernet::{Wire as _, frame};
use crate::device::{Device, OutgoingPacket};
use crate::error::Error;
use crate::mac::MacAddress;
use crate::timer;
use ackline_tcp_core::Duration;
use std::future::poll_fn;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use tokio::io::AsyncReadExt as _;

const OWN: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 0x05]);
const PEER: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 0x99]);
const JUMBO: u32 = 9_000;

fn config() -> FrameSocketConfig {
    let mut resolution = NeighbourConfig::default();
    (resolution.claim.probes, resolution.claim.announcements) = (0, 0);
    FrameSocketConfig::default()
        .address("192.0.2.5/24".parse().expect("a network"))
        .mac(OWN)
        .mtu(JUMBO)
        .neighbour([192, 0, 2, 9].into(), PEER)
        .resolution(resolution)
}

/// A device on a stream, and the other end.
fn stream() -> (FrameSocket, UnixStream) {
    let (near, far) = UnixStream::pair().expect("a pair");
    far.set_nonblocking(true).expect("set");
    (FrameSocket::new(near, "test", &config()).expect("a device"), far)
}

/// An IPv4 packet from the stack to the peer, or the other way, of `length` bytes that follow from
/// `number`.
fn packet(leaving: bool, length: u16, number: u32) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 9, 192, 0, 2, 5];
    if leaving {
        packet[12..].rotate_left(4);
    }
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend((0..u32::from(length) - 20).map(|at| (at * 7 + at / 251 + number) as u8));
    packet
}

fn framed(to: MacAddress, from: MacAddress, packet: &[u8]) -> Vec<u8> {
    [&frame::header(to, from, packet)[..], packet].concat()
}

fn prefixed(frame: &[u8]) -> Vec<u8> {
    [&(frame.len() as u32).to_be_bytes()[..], frame].concat()
}

fn send(device: &mut FrameSocket, packet: &[u8]) -> Result<(), ErrorKind> {
    let (header, payload) = packet.split_at(20);
    let (first, second) = payload.split_at(payload.len() / 3);
    let sent = device.try_send(&OutgoingPacket::new(header, [first, second]));
    sent.map_err(|error| error.kind())
}

fn receive(device: &mut FrameSocket) -> Result<Vec<u8>, ErrorKind> {
    device.try_recv().map(|packet| packet.head.to_vec()).map_err(|error| error.kind())
}

/// What is there at the far end, at most `most` bytes.
fn read(far: &mut UnixStream, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; most];
    match far.read(&mut bytes) {
        Ok(length) => bytes.truncate(length),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            bytes.clear();
        }
    }
    bytes
}

#[test]
fn frames_pass_a_stream_both_ways() {
    let (mut device, mut far) = stream();
    for (number, length) in [20, 21, 46, 1_500, 9_000].into_iter().enumerate() {
        let out = packet(true, length, number as u32);
        send(&mut device, &out).expect("room");
        assert_eq!(device.sent_link(), frame::header(PEER, OWN, &out));
        assert!(read(&mut far, 70_000) == prefixed(&framed(PEER, OWN, &out)), "{length} bytes out");
        // Padded, as some networks pad.
        let into = packet(false, length, 99);
        let mut padded = framed(OWN, PEER, &into);
        padded.resize(padded.len().max(60), 0);
        far.write_all(&prefixed(&padded)).expect("room");
        assert!(receive(&mut device) == Ok(into), "{length} bytes in");
        assert_eq!(receive(&mut device), Err(ErrorKind::WouldBlock));
    }
    assert_eq!(send(&mut device, &packet(true, 9_001, 0)), Err(ErrorKind::InvalidInput));
    let stats = device.stats();
    assert_eq!((stats.rx_packets, stats.tx_packets, stats.rx_malformed), (5, 5, 0));
    assert_eq!((stats.rx_bytes, stats.tx_bytes), (10_587, 10_587));
}

#[test]
fn frames_of_others_and_malformed_ones_are_passed_over() {
    let (mut device, mut far) = stream();
    let good = packet(false, 100, 1);
    let mut lying = good.clone();
    lying[3] = 101;
    for frame in [
        framed(OWN, PEER, &lying),
        vec![0; 14],
        [&[0xff; 12], &[0x88, 0xcc][..], &[1; 50]].concat(),
        framed(OWN, PEER, &good),
    ] {
        far.write_all(&prefixed(&frame)).expect("room");
    }
    assert_eq!(receive(&mut device), Ok(good));
    assert_eq!(device.stats().rx_malformed, 1);
}

/// Whatever a read returns, it returns the same frames.
#[test]
fn a_stream_may_be_cut_anywhere() {
    let lengths = [20, 1_500, 64, 9_000, 333];
    for size in [1, 2, 3, 5, 17, 1_000, 4_099] {
        let (mut device, mut far) = stream();
        let packets: Vec<_> =
            lengths.into_iter().zip(0..).map(|(length, number)| packet(false, length, number)).collect();
        let bytes: Vec<u8> = packets.iter().flat_map(|packet| prefixed(&framed(OWN, PEER, packet))).collect();
        let mut received = vec![];
        for piece in bytes.chunks(size) {
            far.write_all(piece).expect("room");
            while let Ok(packet) = receive(&mut device) {
                received.push(packet);
            }
        }
        assert!(received == packets, "in pieces of {size}");
    }
}

/// The next packet, which surely comes.
fn wait_for(device: &mut FrameSocket) -> Vec<u8> {
    let end = timer::now() + Duration::from_secs(20);
    loop {
        match receive(device) {
            Ok(packet) => return packet,
            Err(kind) => assert_eq!(kind, ErrorKind::WouldBlock),
        }
        assert!(timer::now() < end, "a packet within twenty seconds");
        device.0.wire.wait_until(end).expect("the socket lives");
    }
}

/// More than any buffer holds, with frames of all sizes.
#[test]
fn a_stream_is_longer_than_the_buffers() {
    let (mut device, mut far) = stream();
    far.set_nonblocking(false).expect("set");
    let lengths = || (0..1_000_u32).map(|number| (number, 20 + (number * 7_919 % 8_980) as u16));
    let writer = std::thread::spawn(move || {
        for (number, length) in lengths() {
            far.write_all(&prefixed(&framed(OWN, PEER, &packet(false, length, number)))).expect("read");
        }
        // The longest and the shortest frame that there can be, which carry nothing for this host.
        for length in [65_593, 14] {
            far.write_all(&prefixed(&vec![0; length])).expect("read");
        }
        far.write_all(&prefixed(&framed(OWN, PEER, &packet(false, 100, 1)))).expect("read");
        far
    });
    for (number, length) in lengths() {
        assert!(wait_for(&mut device) == packet(false, length, number), "{number}");
    }
    assert!(wait_for(&mut device) == packet(false, 100, 1));
    drop(writer.join().expect("no panic"));
}

/// A socket with little room takes parts of frames: nothing is lost, and nothing comes twice.
#[test]
fn a_part_of_a_frame_that_left_is_followed_by_the_rest() {
    for size in [1, 700, 2_239, 5_000] {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        far.set_nonblocking(true).expect("set");
        // The least that the kernel grants.
        rustix::net::sockopt::set_socket_send_buffer_size(&near, 1).expect("set");
        let mut device = FrameSocket::new(near, "test", &config()).expect("a device");
        let packets: Vec<_> =
            (0..40).map(|number| packet(true, 8_000 + number as u16 * 20, number)).collect();
        let (mut arrived, mut full) = (vec![], 0);
        for packet in &packets {
            loop {
                match send(&mut device, packet) {
                    Ok(()) => break,
                    Err(kind) => assert_eq!(kind, ErrorKind::WouldBlock),
                }
                full += 1;
                arrived.extend(read(&mut far, size));
            }
        }
        assert!(full > 30 && device.stats().tx_full == full, "{full}");
        loop {
            let bytes = read(&mut far, size);
            if bytes.is_empty() {
                break;
            }
            arrived.extend(bytes);
            // The rest leaves with whatever the driver does.
            assert_eq!(receive(&mut device), Err(ErrorKind::WouldBlock));
        }
        let expected: Vec<u8> =
            packets.iter().flat_map(|packet| prefixed(&framed(PEER, OWN, packet))).collect();
        assert!(arrived == expected, "read in pieces of {size}: {} of {}", arrived.len(), expected.len());
    }
}

/// Even if the driver has nothing else to do.
#[tokio::test]
async fn the_rest_of_a_frame_leaves_once_there_is_room() {
    let (near, far) = UnixStream::pair().expect("a pair");
    far.set_nonblocking(true).expect("set");
    rustix::net::sockopt::set_socket_send_buffer_size(&near, 1).expect("set");
    let mut device = FrameSocket::new(near, "test", &config()).expect("a device");
    let mut expected = vec![];
    for number in 0.. {
        let packet = packet(true, 9_000, number);
        match send(&mut device, &packet) {
            Ok(()) => expected.extend(prefixed(&framed(PEER, OWN, &packet))),
            Err(kind) => {
                assert_eq!(kind, ErrorKind::WouldBlock);
                break;
            }
        }
    }
    let mut far = tokio::net::UnixStream::from_std(far).expect("registered");
    let mut arrived = vec![0; expected.len()];
    let all = tokio::time::timeout(std::time::Duration::from_secs(20), far.read_exact(&mut arrived));
    tokio::select! {
        _ = poll_fn(|cx| device.poll_readable(cx)) => panic!("nothing has come"),
        read = all => drop(read.expect("the rest comes").expect("the device lives")),
    }
    assert!(arrived == expected);
}

#[test]
fn a_length_that_no_frame_has_ends_the_device() {
    for length in [0, 13, 65_594, u32::MAX] {
        let (mut device, mut far) = stream();
        let good = packet(false, 100, 1);
        far.write_all(&prefixed(&framed(OWN, PEER, &good))).expect("room");
        far.write_all(&length.to_be_bytes()).expect("room");
        assert_eq!(receive(&mut device), Ok(good), "what came before it");
        for _ in 0..2 {
            let error = device.try_recv().expect_err("out of step");
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            assert!(text.contains(&format!("test announced a frame of {length} bytes")), "{text}");
        }
    }
}

#[test]
fn the_device_ends_when_the_other_side_is_gone() {
    let gone = |device: &mut FrameSocket| {
        // The read that found the last bytes may have emptied the socket.
        assert!(device.try_recv().is_err());
        let error = device.try_recv().expect_err("gone");
        assert_eq!(error.kind(), ErrorKind::NetworkDown);
        error.to_string()
    };
    let (mut device, mut far) = stream();
    let last = packet(false, 100, 1);
    far.write_all(&prefixed(&framed(OWN, PEER, &last))).expect("room");
    drop(far);
    // What it has sent before is not lost, even if somebody tries to answer.
    assert_eq!(send(&mut device, &packet(true, 100, 2)), Err(ErrorKind::NetworkDown));
    assert_eq!(receive(&mut device), Ok(last));
    assert_eq!(gone(&mut device), "the other side of the frame socket test is gone");

    let (mut device, mut far) = stream();
    far.write_all(&[0, 0, 0, 100, 1, 2, 3]).expect("room");
    drop(far);
    assert_eq!(
        gone(&mut device),
        "the other side of the frame socket test is gone, in the middle of a frame"
    );

    // Of a datagram socket only a send tells.
    let (near, far) = UnixDatagram::pair().expect("a pair");
    let mut device = FrameSocket::new(near, "test", &config()).expect("a device");
    assert_eq!(receive(&mut device), Err(ErrorKind::WouldBlock));
    drop(far);
    assert_eq!(send(&mut device, &packet(true, 100, 2)), Err(ErrorKind::NetworkDown));
    assert_eq!(gone(&mut device), "the other side of the frame socket test is gone");
}

#[test]
fn each_datagram_is_a_frame() {
    let (near, far) = UnixDatagram::pair().expect("a pair");
    let mut device = FrameSocket::new(near, "test", &config()).expect("a device");
    far.set_nonblocking(true).expect("set");
    let out = packet(true, 1_500, 3);
    send(&mut device, &out).expect("room");
    let mut bytes = vec![0; 10_000];
    let length = far.recv(&mut bytes).expect("a frame");
    assert!(bytes[..length] == framed(PEER, OWN, &out));
    let good = packet(false, 100, 1);
    // Nothing, a lie, and more than there can be.
    for frame in [&[][..], &[1, 2, 3], &vec![0; 140_000]] {
        far.send(frame).expect("room");
    }
    far.send(&framed(OWN, PEER, &good)).expect("room");
    assert_eq!(receive(&mut device), Ok(good));
    assert_eq!(device.stats().rx_malformed, 3);
    // The queue of the other side fills, and empties.
    let taken =
        (0..100_000).take_while(|number| send(&mut device, &packet(true, 1_500, *number)).is_ok()).count();
    assert_eq!(send(&mut device, &out), Err(ErrorKind::WouldBlock));
    for number in 0..taken {
        let length = far.recv(&mut bytes).expect("a frame");
        assert!(bytes[..length] == framed(PEER, OWN, &packet(true, 1_500, number as u32)));
    }
    send(&mut device, &out).expect("room");
}

#[test]
fn what_cannot_be_a_frame_socket_is_refused() {
    let refused = |config: &FrameSocketConfig| {
        let (near, _far) = UnixStream::pair().expect("a pair");
        FrameSocket::new(near, "test", config).expect_err("refused").to_string()
    };
    assert!(refused(&FrameSocketConfig::default()).starts_with("addresses: no own address"));
    assert!(refused(&config().mtu(67)).starts_with("MTU: 67 bytes are not possible"));
    assert!(refused(&config().mtu(65_536)).starts_with("MTU: 65536 bytes are not possible"));
    assert!(refused(&config().mac(MacAddress::BROADCAST)).contains("ff:ff:ff:ff:ff:ff"));
    let error = FrameSocket::new(std::fs::File::open("/dev/null").expect("it is there"), "null", &config());
    assert!(error.expect_err("no socket").to_string().contains("use the descriptor as a socket"));
    let error = FrameSocket::connect("/nowhere/to/be/found", &config()).expect_err("nobody");
    assert!(matches!(error, Error::Socket { .. }));
    assert!(
        error.to_string().starts_with("could not connect to the socket /nowhere/to/be/found: "),
        "{error}"
    );
}
