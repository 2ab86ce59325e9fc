//! Two stacks on one socket pair.

use super::{PORT, config, exchange, soon, stack, v4, v6};
use ackline_runtime::device::frame_socket::{FrameSocket, FrameSocketConfig};
use ackline_runtime::{Error, Stack};
use ackline_tcp_core::ListenOn;
use rustix::net::sockopt;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

/// The stacks 1 and 2.
fn stacks(sockets: (impl Into<OwnedFd>, impl Into<OwnedFd>), mtu: u32) -> (Stack, Stack) {
    let host = |number| FrameSocketConfig::mtu(config(number), mtu);
    (stack(sockets.0, 1, &host(1)), stack(sockets.1, 2, &host(2)))
}

/// `len` bytes each way over a connection to each address of the second; every packet arrives, and
/// once.
async fn exchanges(stacks: &(Stack, Stack), len: usize) {
    let listener = stacks.1.listen(ListenOn::Port(PORT)).expect("free");
    for to in [v4(2), v6(2)] {
        let (near, far) = tokio::join!(stacks.0.connect((to, PORT)), listener.accept());
        let (near, far) = (near.expect("connected"), far.expect("accepted").0);
        exchange(near, far, len).await;
    }
    for (from, to) in [(&stacks.0, &stacks.1), (&stacks.1, &stacks.0)] {
        // The last ACKs may be on their way.
        while from.device_stats().tx_packets != to.device_stats().rx_packets {
            tokio::task::yield_now().await;
        }
        let stats = from.device_stats();
        assert_eq!((stats.rx_malformed, stats.tx_errors), (0, 0));
        assert!(stats.neighbours.resolved >= 1 || stats.neighbours.requests_received >= 1);
    }
}

#[tokio::test]
async fn connections_pass_a_stream() {
    let stacks = stacks(UnixStream::pair().expect("a pair"), 1_500);
    soon(exchanges(&stacks, 3_000_000)).await;
}

#[tokio::test]
async fn connections_pass_a_stream_with_little_room() {
    for mtu in [1_500, 9_000, 65_535] {
        let sockets = UnixStream::pair().expect("a pair");
        for socket in [&sockets.0, &sockets.1] {
            sockopt::set_socket_send_buffer_size(socket, 1).expect("set");
        }
        let stacks = stacks(sockets, mtu);
        soon(exchanges(&stacks, 500_000)).await;
        assert!(stacks.0.stats().device.tx_full > 0, "it was to be full");
    }
}

#[tokio::test]
async fn connections_pass_datagrams() {
    let stacks = stacks(UnixDatagram::pair().expect("a pair"), 1_500);
    soon(exchanges(&stacks, 1_000_000)).await;
}

#[tokio::test]
async fn sockets_have_names() {
    let place = tempfile_dir("names");
    let path = place.join("stream");
    let listener = UnixListener::bind(&path).expect("free");
    let near = FrameSocket::connect(&path, &config(1)).expect("somebody listens");
    let far = stack(listener.accept().expect("connected").0, 2, &config(2));
    let near = Stack::builder(near).address(v4(1)).address(v6(1)).spawn().expect("a timerfd");
    soon(exchanges(&(near, far), 100_000)).await;

    let [here, there] = ["here", "there"].map(|name| place.join(name));
    let error = FrameSocket::datagrams(&here, &there, &config(1)).expect_err("nobody is there");
    assert!(matches!(error, Error::Socket { .. }), "{error}");
    assert!(error.to_string().contains(&*there.to_string_lossy()), "{error}");
    std::fs::remove_file(&here).expect("it was bound");
    let other = UnixDatagram::bind(&there).expect("free");
    let near = FrameSocket::datagrams(&here, &there, &config(1)).expect("somebody is there");
    other.connect(&here).expect("somebody is there");
    let far = stack(other, 2, &config(2));
    let near = Stack::builder(near).address(v4(1)).address(v6(1)).spawn().expect("a timerfd");
    soon(exchanges(&(near, far), 100_000)).await;
    std::fs::remove_dir_all(place).expect("it is ours");
}

fn tempfile_dir(name: &str) -> std::path::PathBuf {
    let place = std::env::temp_dir().join(format!("ackline-frame-socket-{}-{name}", std::process::id()));
    std::fs::create_dir(&place).expect("it is new");
    place
}

/// An address that the other host has is not taken.
#[tokio::test]
async fn an_address_in_use_is_noticed() {
    let (near, far) = UnixStream::pair().expect("a pair");
    let _first = stack(near, 1, &config(1));
    let mut same = config(1);
    same.resolution.claim.probe_interval = ackline_tcp_core::Duration::from_secs(5);
    let claim = tokio::task::spawn_blocking(move || FrameSocket::new(far, "test", &same).map(drop));
    let error = soon(claim).await.expect("no panic").expect_err("it is in use");
    assert!(matches!(error, Error::AddressInUse { .. }), "{error}");
}

/// Who waits is told, and the driver says which socket it was.
#[tokio::test]
async fn a_stack_ends_with_its_socket() {
    let addresses: [IpAddr; 2] = [v4(1), v6(1)];
    let ends: [fn(&UnixStream); 2] = [
        |far| far.shutdown(std::net::Shutdown::Both).expect("shut down"),
        |mut far| std::io::Write::write_all(&mut far, &[0xff; 9]).expect("room"),
    ];
    for (end, complaint) in
        ends.into_iter().zip(["the frame socket vm1 is gone", "vm1 announced a frame of 4294967295"])
    {
        let (near, far) = UnixStream::pair().expect("a pair");
        let device = FrameSocket::new(near, "vm1", &config(1)).expect("a device");
        let builder = addresses.into_iter().fold(Stack::builder(device), |builder, own| builder.address(own));
        let (stack, driver) = builder.build().expect("a timerfd");
        let driver = tokio::spawn(driver);
        let connecting = tokio::spawn({
            let stack = stack.clone();
            async move { stack.connect((v4(2), PORT)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        end(&far);
        let error = soon(driver).await.expect("no panic").expect_err("the device is gone");
        assert!(error.to_string().contains(complaint), "{error}");
        let error = soon(connecting).await.expect("no panic").expect_err("the device is gone");
        assert_eq!(error.kind(), ErrorKind::NetworkDown, "{error}");
    }
}
