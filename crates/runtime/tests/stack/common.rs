//! Two hosts on one cable.

use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Stack, TcpListener, TcpStream};
use ackline_tcp_core::policy::CongestionControl;
use ackline_tcp_core::policy::cc::{
    AckSample, CongestionEvent, FlowView, Pacing, Reaction, Restart, SendDecision, Undo,
};
use ackline_tcp_core::{ConnConfig, ListenOn, Rate, Window};
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};

pub(crate) const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(crate) const NEAR6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
pub(crate) const FAR6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));

/// Where listeners of the tests listen.
pub(crate) const PORT: u16 = 7;

/// The near and the far host.
pub(crate) fn hosts(channel: ChannelConfig, connections: ConnConfig) -> (Stack, Stack) {
    let (near, far) = Channel::pair(channel);
    let host = |device, addresses: [IpAddr; 2]| {
        Stack::builder(device)
            .address(addresses[0])
            .address(addresses[1])
            .connections(connections.clone())
            .spawn()
            .expect("a timerfd and random numbers")
    };
    (host(near, [NEAR, NEAR6]), host(far, [FAR, FAR6]))
}

/// The two ends of a connection, near and far, and what keeps their hosts alive.
pub(crate) struct Connected {
    pub(crate) near: TcpStream,
    pub(crate) far: TcpStream,
    pub(crate) hosts: (Stack, Stack),
    pub(crate) listener: TcpListener,
}

/// One connection between two hosts.
pub(crate) async fn connected(connections: ConnConfig) -> Connected {
    connected_over(ChannelConfig::default(), connections).await
}

/// One connection over a certain cable.
pub(crate) async fn connected_over(channel: ChannelConfig, connections: ConnConfig) -> Connected {
    let hosts = hosts(channel, connections);
    let listener = hosts.1.listen(ListenOn::Port(PORT)).expect("a free port");
    let (near, accepted) = tokio::join!(hosts.0.connect((FAR, PORT)), listener.accept());
    let (far, peer) = accepted.expect("accepted");
    let near = near.expect("connected");
    assert_eq!(peer, near.addresses().0);
    Connected { near, far, hosts, listener }
}

/// `work`, or a panic after twenty seconds.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("still waiting after twenty seconds")
}

/// Waits until `holds`.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    soon(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// `length` bytes that differ from those of another `seed`, and from themselves when shifted.
pub(crate) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

/// Everything up to the end of the stream.
pub(crate) async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Compares without printing megabytes.
pub(crate) fn assert_same(received: &[u8], sent: &[u8]) {
    assert_eq!(received.len(), sent.len(), "lengths differ");
    if let Some(at) = received.iter().zip(sent).position(|(received, sent)| received != sent) {
        panic!("byte {at} of {} differs", sent.len());
    }
}

pub(crate) fn socket(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}

/// A congestion control that nothing moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed(SendDecision);

impl Fixed {
    /// A window of `bytes`, sent as fast as it opens.
    pub(crate) const fn window(bytes: u64) -> Self {
        let window = Window::from_bytes(bytes);
        Self(SendDecision::window(window, window))
    }

    /// A window of `bytes`, whose data leaves at `rate`.
    pub(crate) const fn paced(bytes: u64, rate: Rate) -> Self {
        Self(Self::window(bytes).0.paced(Pacing::AtRate(rate)))
    }
}

impl CongestionControl for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn decision(&self) -> SendDecision {
        self.0
    }

    fn on_ack(&mut self, _: &FlowView, _: &AckSample) -> Reaction {
        Reaction::None
    }

    fn on_congestion(&mut self, _: &FlowView, _: &CongestionEvent) {}

    fn on_restart(&mut self, _: &FlowView, _: &Restart) {}

    fn checkpoint(&mut self, _: &FlowView) {}

    fn undo(&mut self, _: &FlowView, _: &Undo) {}
}

/// For what a driver does only if it gets the processor in time, which a busy machine may deny it:
/// `attempt` says what was wrong, and has ten tries.
pub(crate) async fn sooner_or_later(mut attempt: impl AsyncFnMut() -> Result<(), String>) {
    let mut outcome = attempt().await;
    for _ in 1..10 {
        if outcome.is_ok() {
            return;
        }
        outcome = attempt().await;
    }
    outcome.unwrap_or_else(|wrong| panic!("ten times: {wrong}"));
}
