//! `--socket`: the stack on the Ethernet behind a Unix socket, at whose other end is a stack of the
//! test's own.

use crate::common::{BackgroundCommand, ackline, noise, run, scratch, text};
use crate::usage::refused;
use ackline::Stack;
use ackline::core::ListenOn;
use ackline::runtime::device::frame_socket::{FrameSocket, FrameSocketConfig};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixListener;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const FAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// The other side of the socket, once the command has connected.
async fn far(listener: &UnixListener) -> Stack {
    let (socket, _) = listener.accept().expect("the command connects");
    let config = FrameSocketConfig::default().address(format!("{FAR}/24").parse().expect("a network"));
    let claim = tokio::task::spawn_blocking(move || FrameSocket::new(socket, "the test's", &config));
    let device = claim.await.expect("no panic").expect("nobody else has the address");
    Stack::builder(device).address(FAR).spawn().expect("a timerfd")
}

#[tokio::test]
async fn a_file_goes_each_way_over_a_socket() {
    let data = noise(3_000_001, 31);
    let (directory, path) = scratch("data");
    std::fs::write(&path, &data).expect("written");
    let socket = directory.path().join("vm.sock");
    let listener = UnixListener::bind(&socket).expect("free");
    let place = ["--socket", text(&socket), "--local", "10.9.0.2/24", "--timeout", "60"];

    let sending = BackgroundCommand::start(&mut ackline(
        &[&["send", text(&path), "10.9.0.1:5001"], &place[..]].concat(),
    ));
    let stack = far(&listener).await;
    let accepted = stack.listen(ListenOn::Port(5001)).expect("free").accept().await;
    let (mut received, mut stream) = (Vec::new(), accepted.expect("accepted").0);
    stream.read_to_end(&mut received).await.expect("received");
    drop(stream);
    let ended = tokio::task::spawn_blocking(|| sending.end()).await.expect("no panic");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(received == data, "{} of {} bytes, or others", received.len(), data.len());

    let copy = directory.path().join("copy");
    let receiving = ["recv", "-q", "-l", ":5001", "-O", text(&copy)];
    let receiving = BackgroundCommand::start(&mut ackline(&[&receiving[..], &place].concat()));
    let stack = far(&listener).await;
    let mut stream = loop {
        // Until it listens it refuses.
        match stack.connect((NEAR, 5001)).await {
            Ok(stream) => break stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    stream.write_all(&data).await.expect("sent");
    stream.shutdown().await.expect("closed");
    assert_eq!(stream.read(&mut [0]).await.expect("its end"), 0);
    drop(stream);
    let ended = tokio::task::spawn_blocking(|| receiving.end()).await.expect("no panic");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(std::fs::read(copy).expect("it is there") == data);
}

#[tokio::test]
async fn a_virtual_machine_that_ends_ends_the_command() {
    let (directory, _) = scratch("nothing");
    let socket = directory.path().join("vm.sock");
    let listener = UnixListener::bind(&socket).expect("free");
    let place = ["--socket", text(&socket), "--local", "10.9.0.2/24"];
    let receiving = BackgroundCommand::start(&mut ackline(&[&["recv", "-l", ":5001"], &place[..]].concat()));
    drop(listener.accept().expect("the command connects"));
    let ended = tokio::task::spawn_blocking(|| receiving.end()).await.expect("no panic");
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let expected = format!("the other side of the frame socket {} is gone", socket.display());
    assert!(ended.stderr.contains(&expected), "{ended:?}");
}

#[test]
fn what_cannot_be_a_socket_is_refused() {
    let send = |options: &[&'static str]| [&["send", "/dev/null", "10.9.0.1:9"], options].concat();
    let complaint = refused(&send(&["--socket", "/nowhere/vm"]), 2);
    assert!(complaint.contains("--socket /nowhere/vm needs --local CIDR"), "{complaint}");
    let complaint = refused(&send(&["--socket", "/nowhere/vm", "--local", "10.9.0.2/24"]), 3);
    assert!(complaint.contains("could not connect to the socket /nowhere/vm: No such file"), "{complaint}");
    for options in [["--socket", "vm", "--tun", "ack0"], ["--socket", "vm", "--dev", "nic0"]] {
        let ended = run(&send(&options));
        assert_eq!(ended.status, Some(2), "{ended:?}");
    }
}
