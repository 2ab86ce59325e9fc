//! Devices and drivers that fail.

use crate::common::{FAR, NEAR, PORT, pattern, read_all, soon};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxPacket};
use ackline_runtime::{Stack, TcpListener, TcpStream};
use ackline_tcp_core::{ConnConfig, Duration, ListenOn};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// What a [`Breakable`] device does.
#[derive(Clone, Debug, Default)]
struct Switch(Arc<AtomicU8>);

impl Switch {
    const WORKS: u8 = 0;
    const REFUSES_SENDS: u8 = 1;
    const GONE: u8 = 2;

    fn set(&self, state: u8) {
        self.0.store(state, Ordering::Relaxed);
    }

    fn is(&self, state: u8) -> bool {
        self.0.load(Ordering::Relaxed) == state
    }
}

/// A device that can be broken while it is in use.
struct Breakable {
    inner: Channel,
    switch: Switch,
}

impl Breakable {
    fn check(&self) -> io::Result<()> {
        if self.switch.is(Switch::GONE) { Err(io::Error::other("somebody pulled it out")) } else { Ok(()) }
    }
}

impl Device for Breakable {
    fn caps(&self) -> DeviceCaps {
        self.inner.caps()
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        self.check()?;
        self.inner.try_recv()
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        if self.switch.is(Switch::REFUSES_SENDS) {
            return Err(io::Error::other("the interface is down"));
        }
        self.inner.try_send(packet)
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }
}

struct Hosts {
    switch: Switch,
    near: Stack,
    far: Stack,
    listener: TcpListener,
    opened: TcpStream,
    accepted: TcpStream,
}

/// A connection whose near end is on a breakable device.
async fn breakable() -> Hosts {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let switch = Switch::default();
    let mut config = ConnConfig::default();
    config.min_rto = Duration::from_millis(20);
    let device = Breakable { inner: near, switch: switch.clone() };
    let near = Stack::builder(device).address(NEAR).connections(config).spawn().expect("a timerfd");
    let far = Stack::builder(far).address(FAR).spawn().expect("a timerfd");
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
    let (opened, accepted) = (opened.expect("connected"), accepted.expect("accepted").0);
    Hosts { switch, near, far, listener, opened, accepted }
}

#[tokio::test]
async fn a_device_that_is_gone_ends_everything_with_an_error() {
    let Hosts { switch, near, far: _far, listener: _listener, mut opened, mut accepted } = breakable().await;
    let own = near.listen(ListenOn::Port(PORT)).expect("a free port");
    let waiting = tokio::spawn(async move { own.accept().await.map(|_| ()) });
    tokio::task::yield_now().await;
    switch.set(Switch::GONE);
    // Wakes the near driver, which finds out.
    accepted.write_all(b"wake up").await.expect("written");
    let error = soon(opened.read_u8()).await.expect_err("the device is gone");
    assert_eq!(error.kind(), ErrorKind::NetworkDown);
    assert!(error.to_string().contains("somebody pulled it out"), "{error}");
    let error = soon(waiting).await.expect("no panic").expect_err("the device is gone");
    assert_eq!(error.kind(), ErrorKind::NetworkDown);
    assert_eq!(opened.write_u8(1).await.expect_err("the device is gone").kind(), ErrorKind::NetworkDown);
    let error = near.connect((FAR, PORT)).await.expect_err("the device is gone");
    assert_eq!(error.kind(), ErrorKind::NetworkDown);
    drop(opened);
    assert!(near.shutdown(std::time::Duration::from_secs(5)).await, "nothing can be waited for");
}

#[tokio::test]
async fn what_came_and_what_arrived_outlive_the_device() {
    let Hosts { switch, near, far: _far, listener: _listener, mut opened, mut accepted } = breakable().await;
    opened.write_all(b"said").await.expect("written");
    opened.shutdown().await.expect("closed");
    soon(opened.flushed()).await.expect("acknowledged");
    accepted.write_all(b"answered").await.expect("written");
    accepted.shutdown().await.expect("closed");
    soon(accepted.flushed()).await.expect("acknowledged");
    switch.set(Switch::GONE);
    // The driver finds out when it sends.
    let error = soon(near.connect((FAR, PORT))).await.expect_err("the device is gone");
    assert_eq!(error.kind(), ErrorKind::NetworkDown);
    assert_eq!(soon(read_all(&mut opened)).await.expect("it had come, with its end"), b"answered");
    soon(opened.flushed()).await.expect("it was acknowledged");
    assert_eq!(opened.write_u8(1).await.expect_err("the device is gone").kind(), ErrorKind::NetworkDown);
}

#[tokio::test]
async fn packets_that_the_device_refuses_are_lost_and_sent_again() {
    let Hosts { switch, near, far: _far, listener: _listener, mut opened, mut accepted } = breakable().await;
    let sent = pattern(1, 500_000);
    opened.set_send_buffer_size(1 << 20).expect("connected");
    opened.write_all(&sent[..100_000]).await.expect("written");
    switch.set(Switch::REFUSES_SENDS);
    opened.write_all(&sent[100_000..]).await.expect("the send buffer takes it");
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    switch.set(Switch::WORKS);
    opened.shutdown().await.expect("closed");
    assert!(soon(read_all(&mut accepted)).await.expect("read") == sent, "bytes differ");
    assert!(near.stats().device_drops > 0, "nothing was refused");
}

#[tokio::test]
async fn a_dropped_driver_leaves_nobody_waiting() {
    let (near, _far) = Channel::pair(ChannelConfig::default());
    let (stack, driver) = Stack::builder(near).address(NEAR).build().expect("a timerfd");
    let driver = tokio::spawn(driver);
    let waiting = {
        let stack = stack.clone();
        tokio::spawn(async move { stack.connect((FAR, PORT)).await.map(|_| ()) })
    };
    tokio::task::yield_now().await;
    driver.abort();
    let error = soon(waiting).await.expect("no panic").expect_err("nobody drives the stack");
    assert_eq!(error.kind(), ErrorKind::NetworkDown);
}
