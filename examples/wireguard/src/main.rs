//! A WireGuard client that needs no root and no interface: the tunnel ends in a stack of its own.
//!
//! ```text
//! wireguard keys                                         a private key and its public key
//! wireguard tunnel.conf 127.0.0.1:8080=10.9.0.1:80       a port of this machine leads through the tunnel
//! wireguard tunnel.conf 80=127.0.0.1:8000                a port of the tunnel's address leads to this machine
//! ```
//!
//! The file is WireGuard's, with one peer: `PrivateKey`, `Address` and `ListenPort` of the
//! interface, `PublicKey`, `AllowedIPs`, `PresharedKey`, `Endpoint` and `PersistentKeepalive` of the peer.

use ackline::Stack;
use ackline::core::ListenOn;
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::runtime::device::{Device as _, OutgoingPacket};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use ipnet::IpNet;
use std::collections::HashMap;
use std::error::Error;
use std::future::poll_fn;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What fits into Ethernet's 1,500 bytes with IPv6, UDP and WireGuard around it.
const MTU: u32 = 1_420;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (file, ports) = words.split_first().ok_or("usage: wireguard keys | FILE PORT=ADDRESS:PORT...")?;
    if file == "keys" {
        let secret = StaticSecret::from(random_key()?);
        println!("{}\n{}", STANDARD.encode(&secret), STANDARD.encode(PublicKey::from(&secret)));
        return Ok(());
    }
    let config = Settings::read(file)?;
    let (near, far) = Channel::pair(ChannelConfig::default().plain().mtu(MTU));
    let mut builder = Stack::builder(near);
    for address in &config.addresses {
        builder = builder.address(*address);
    }
    let stack = builder.spawn()?;
    for port in ports {
        open_port(&stack, port).await?;
    }
    Ok(Tunnel::new(config, far).await?.run().await?)
}

/// `127.0.0.1:8080=10.9.0.1:80` opens a port of this machine, `80=127.0.0.1:8000` one of the
/// tunnel's address.
async fn open_port(stack: &Stack, text: &str) -> Outcome<()> {
    let (from, to) = text.split_once('=').ok_or_else(|| format!("{text}: PORT=ADDRESS:PORT expected"))?;
    let to: SocketAddr = to.parse().map_err(|error| format!("{to}: {error}"))?;
    if let Ok(port) = from.parse() {
        let listener = stack.listen(ListenOn::Port(port))?;
        tokio::spawn(async move {
            while let Ok((mut inside, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut outside = TcpStream::connect(to).await?;
                    tokio::io::copy_bidirectional(&mut inside, &mut outside).await
                });
            }
        });
    } else {
        let (listener, stack) = (TcpListener::bind(from).await?, stack.clone());
        tokio::spawn(async move {
            while let Ok((mut outside, _)) = listener.accept().await {
                let stack = stack.clone();
                tokio::spawn(async move {
                    let mut inside = stack.connect(to).await?;
                    tokio::io::copy_bidirectional(&mut outside, &mut inside).await
                });
            }
        });
    }
    Ok(())
}

/// The stack's packets on one side, WireGuard's datagrams on the other.
struct Tunnel {
    tunn: Tunn,
    packets: Channel,
    socket: UdpSocket,
    /// Where the peer was heard from last.
    peer: Option<SocketAddr>,
    allowed: Vec<IpNet>,
}

impl Tunnel {
    async fn new(config: Settings, packets: Channel) -> io::Result<Self> {
        let Settings { secret, public, preshared, keepalive, port, endpoint, allowed, .. } = config;
        let tunn = Tunn::new(secret, public, preshared, keepalive, 1, None);
        let family = if endpoint.is_some_and(|peer| peer.is_ipv6()) { "::" } else { "0.0.0.0" };
        Ok(Self { tunn, packets, socket: UdpSocket::bind((family, port)).await?, peer: endpoint, allowed })
    }

    async fn run(mut self) -> io::Result<()> {
        let (mut datagram, mut out) = (vec![0; 65_535], vec![0; 65_535]);
        let mut timer = tokio::time::interval(Duration::from_millis(250));
        loop {
            tokio::select! {
                ready = poll_fn(|cx| self.packets.poll_readable(cx)) => {
                    ready?;
                    let packet = self.packets.try_recv()?;
                    let result = self.tunn.encapsulate(packet.head, &mut out);
                    Self::send(result, &self.socket, self.peer).await;
                }
                received = self.socket.recv_from(&mut datagram) => {
                    // An error is ICMP's about an earlier datagram.
                    let Ok((length, from)) = received else { continue };
                    let mut rest = &datagram[..length];
                    loop {
                        let (packet, source) = match self.tunn.decapsulate(Some(from.ip()), rest, &mut out) {
                            TunnResult::WriteToNetwork(answer) => {
                                self.peer = Some(from);
                                let _ = self.socket.send_to(answer, from).await;
                                // What has waited for the handshake follows.
                                rest = &[];
                                continue;
                            }
                            TunnResult::WriteToTunnelV4(packet, source) => (packet, source.into()),
                            TunnResult::WriteToTunnelV6(packet, source) => (packet, source.into()),
                            TunnResult::Done | TunnResult::Err(_) => break,
                        };
                        self.peer = Some(from);
                        if self.allowed.iter().any(|network| network.contains::<&IpAddr>(&source)) {
                            // A full stack loses packets, as a link does.
                            let _ = self.packets.try_send(&OutgoingPacket::whole(packet));
                        }
                        break;
                    }
                }
                _ = timer.tick() => {
                    let result = self.tunn.update_timers(&mut out);
                    Self::send(result, &self.socket, self.peer).await;
                }
            }
        }
    }

    async fn send(result: TunnResult<'_>, socket: &UdpSocket, peer: Option<SocketAddr>) {
        if let (TunnResult::WriteToNetwork(datagram), Some(peer)) = (result, peer) {
            let _ = socket.send_to(datagram, peer).await;
        }
    }
}

/// What the file says.
struct Settings {
    secret: StaticSecret,
    addresses: Vec<IpAddr>,
    port: u16,
    public: PublicKey,
    preshared: Option<[u8; 32]>,
    endpoint: Option<SocketAddr>,
    allowed: Vec<IpNet>,
    keepalive: Option<u16>,
}

impl Settings {
    fn read(file: &str) -> Outcome<Self> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let lines = text.lines().filter_map(|line| line.split('#').next());
        let keys: HashMap<String, &str> = lines
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.trim().to_lowercase(), value.trim()))
            .collect();
        let get = |key: &str| keys.get(&key.to_lowercase()).copied();
        let need = |key: &str| get(key).ok_or_else(|| format!("{file}: {key} is missing"));
        let octets = |text: &str| -> Outcome<[u8; 32]> {
            STANDARD.decode(text)?.try_into().map_err(|_| "a key has 32 bytes".into())
        };
        let address = |text: &str| text.split('/').next().unwrap_or_default().trim().parse();
        Ok(Self {
            secret: octets(need("PrivateKey")?)?.into(),
            addresses: need("Address")?.split(',').map(address).collect::<Result<_, _>>()?,
            port: get("ListenPort").map_or(Ok(0), str::parse)?,
            public: octets(need("PublicKey")?)?.into(),
            preshared: get("PresharedKey").map(octets).transpose()?,
            endpoint: get("Endpoint").map(str::parse).transpose()?,
            allowed: need("AllowedIPs")?
                .split(',')
                .map(|text| text.trim().parse())
                .collect::<Result<_, _>>()?,
            keepalive: get("PersistentKeepalive").map(str::parse).transpose()?,
        })
    }
}

fn random_key() -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut key).map(|()| key)
}
