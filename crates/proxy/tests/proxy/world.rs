//! A client, a proxy, and what lies between.

use ackline_proxy::{Config, Meter, Proxy, Publisher, Rules, Stats};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Device, Stack, TcpStream};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Addresses of the client and of the proxy itself.
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);
pub(crate) const OTHER: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 3);
pub(crate) const OWN: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
pub(crate) const CLIENT6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
pub(crate) const OWN6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
/// Somewhere behind an upstream.
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

/// No operation takes for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) client: Stack,
    pub(crate) meter: Meter,
    pub(crate) publisher: Publisher,
    /// What the proxy has said.
    pub(crate) lines: Arc<Mutex<Vec<String>>>,
    end: oneshot::Sender<Duration>,
    proxy: JoinHandle<()>,
}

/// A proxy whose clients reach this machine's loopback by its own address.
pub(crate) fn world(config: Config) -> World {
    let (device, end) = Channel::pair(ChannelConfig::default());
    let client = Stack::builder(end).address(CLIENT).address(OTHER).address(CLIENT6);
    on(device, client.spawn().expect("a stack"), config)
}

/// The same with a client's stack of one's own.
pub(crate) fn on(device: impl Device + 'static, client: Stack, config: Config) -> World {
    between(client, &Stack::builder(device).any_address().spawn().expect("a stack"), config)
}

/// The same with the proxy's stack of one's own, too.
pub(crate) fn between(client: Stack, stack: &Stack, mut config: Config) -> World {
    let lines = Arc::new(Mutex::new(vec![]));
    let said = lines.clone();
    config.say = Some(Arc::new(move |line| said.lock().expect("no panic").push(line.to_owned())));
    config.own = vec![OWN.into(), OWN6.into()];
    config.loopback = true;
    let mut proxy = Proxy::new(stack, config).expect("a proxy");
    let (meter, publisher) = (proxy.meter(), proxy.publisher());
    let (end, ended) = oneshot::channel();
    let proxy = tokio::spawn(async move {
        let limit = tokio::select! {
            error = proxy.run() => panic!("{error}"),
            limit = ended => limit,
        };
        if let Ok(limit) = limit {
            proxy.finish(limit).await;
        }
    });
    World { client, meter, publisher, lines, end, proxy }
}

impl World {
    /// Connects to a port of the loopback.
    pub(crate) async fn connect(&self, port: u16) -> io::Result<TcpStream> {
        self.connect_to((OWN, port).into()).await
    }

    pub(crate) async fn connect_to(&self, to: SocketAddr) -> io::Result<TcpStream> {
        timeout(PATIENCE, self.client.connect(to)).await.expect("an answer")
    }

    /// Waits until the counters are so.
    pub(crate) async fn until(&self, mut so: impl FnMut(&Stats) -> bool) {
        let waiting = async {
            while !so(&self.meter.read()) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{:?}", self.meter.read()));
    }

    /// Waits until nothing passes in either direction, but has: the bytes that went up.
    pub(crate) async fn stalls(&self) -> u64 {
        let mut before = None;
        let stalling = async {
            loop {
                let Stats { bytes_up, bytes_down, .. } = self.meter.read();
                if bytes_down > 0 && before.replace((bytes_up, bytes_down)) == Some((bytes_up, bytes_down)) {
                    return bytes_up;
                }
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(PATIENCE, stalling).await.expect("it stalls")
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").clone()
    }

    /// Ends the proxy.
    pub(crate) async fn finish(self, limit: Duration) {
        self.end.send(limit).expect("it runs");
        timeout(PATIENCE, self.proxy).await.expect("it ends").expect("no panic");
    }
}

/// Everything through one upstream.
pub(crate) fn through(url: &str) -> Config {
    Config { rules: Rules::all_through(url.parse().expect("an upstream")), ..Config::default() }
}

/// A kernel's listener on the loopback, and its port.
pub(crate) async fn listener() -> (tokio::net::TcpListener, u16) {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// A port of the loopback that nobody serves.
pub(crate) async fn closed_port() -> u16 {
    listener().await.1
}

/// Sends a text each way over a connection.
pub(crate) async fn talk(
    mut a: impl AsyncRead + AsyncWrite + Unpin,
    mut b: impl AsyncRead + AsyncWrite + Unpin,
) {
    let exchange = async {
        let mut read = [0; 5];
        a.write_all(b"there").await.expect("sent");
        b.read_exact(&mut read).await.expect("received");
        assert_eq!(&read, b"there");
        b.write_all(b"back!").await.expect("sent");
        a.read_exact(&mut read).await.expect("received");
        assert_eq!(&read, b"back!");
    };
    timeout(PATIENCE, exchange).await.expect("in time");
}

/// Bytes that do not repeat soon.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * at / 7) as u8).collect()
}

/// Sends so many bytes and an end each way at once; they arrive.
pub(crate) async fn exchange_bulk(
    a: impl AsyncRead + AsyncWrite + Unpin,
    b: impl AsyncRead + AsyncWrite + Unpin,
    bytes: usize,
) {
    let sent = pattern(bytes);
    let (mut a_read, mut a_write) = tokio::io::split(a);
    let (mut b_read, mut b_write) = tokio::io::split(b);
    let (mut to_a, mut to_b) = (vec![], vec![]);
    let all = async {
        tokio::try_join!(
            async {
                a_write.write_all(&sent).await?;
                a_write.shutdown().await
            },
            async {
                b_write.write_all(&sent).await?;
                b_write.shutdown().await
            },
            a_read.read_to_end(&mut to_a),
            b_read.read_to_end(&mut to_b),
        )
    };
    timeout(PATIENCE, all).await.expect("in time").expect("no error");
    assert!(to_a == sent && to_b == sent, "what came is not what was sent");
}

pub(crate) fn address(ip: impl Into<IpAddr>, port: u16) -> SocketAddr {
    SocketAddr::new(ip.into(), port)
}
