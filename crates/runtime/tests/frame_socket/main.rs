//! The frame socket under whole stacks: another stack, the kernel behind a TAP device, and passt.

#![cfg(target_os = "linux")]

mod kernel;
mod pairs;
mod passt;

use ackline_runtime::Stack;
use ackline_runtime::device::frame_socket::{FrameSocket, FrameSocketConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

const PORT: u16 = 7;

const fn v4(host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 9, 0, host))
}

const fn v6(host: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, host))
}

/// The host `number` of 10.9.0.0/24 and fd09::/64, which is sure of its addresses soon.
fn config(number: u8) -> FrameSocketConfig {
    let mut config = FrameSocketConfig::default()
        .address(format!("{}/24", v4(number)).parse().expect("a network"))
        .address(format!("{}/64", v6(number.into())).parse().expect("a network"));
    config.resolution.claim.probe_interval = ackline_tcp_core::Duration::from_millis(5);
    config
}

/// A stack with these addresses on a socket.
fn stack(socket: impl Into<OwnedFd>, number: u8, config: &FrameSocketConfig) -> Stack {
    let device = FrameSocket::new(socket, format!("test {number}"), config).expect("nobody else is there");
    let builder = Stack::builder(device).address(v4(number)).address(v6(number.into()));
    builder.spawn().expect("a timerfd and random numbers")
}

/// What must not take forever.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it takes too long")
}

fn data(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

/// Sends `len` bytes each way at once over a connection, and checks what arrives.
async fn exchange(
    near: impl AsyncRead + AsyncWrite + Unpin,
    far: impl AsyncRead + AsyncWrite + Unpin,
    len: usize,
) {
    tokio::join!(side(near, len, 1, 2), side(far, len, 2, 1));
}

/// One end.
async fn side(stream: impl AsyncRead + AsyncWrite + Unpin, len: usize, own: usize, others: usize) {
    let (mut read, mut write) = tokio::io::split(stream);
    let (sent, expected) = (data(own, len), data(others, len));
    let send = async {
        write.write_all(&sent).await.expect("sent");
        write.shutdown().await.expect("closed");
    };
    let receive = async {
        let mut got = Vec::new();
        read.read_to_end(&mut got).await.expect("received");
        assert!(got == expected, "{} of {len} bytes, or others", got.len());
    };
    tokio::join!(send, receive);
}
