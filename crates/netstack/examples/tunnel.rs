//! Carries every connection and datagram that comes out of a TUN device on to one server, and
//! answers pings. Written for ipstack: the first `use` is all that names another crate.
//!
//! ```text
//! sudo target/debug/examples/tunnel 127.0.0.1:5201
//! iperf3 -c 10.10.10.1
//! ```

use ackline_netstack::ipstack::{self, IpNumber, IpStackStream, IpStackUnknownTransport};
use etherparse::{Icmpv4Header, Icmpv4Type};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpStream, UdpSocket};
use tun_rs::{AsyncDevice, DeviceBuilder};

const MTU: u16 = 1500;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let server = std::env::args().nth(1).ok_or("usage: tunnel ADDRESS:PORT")?.parse()?;
    let device = DeviceBuilder::new().name("utun8").ipv4("10.10.10.2", 24, None).mtu(MTU).build_async()?;
    Ok(tunnel(PacketIo(device), server).await?)
}

/// Carries on what comes out of `device`, until it fails.
pub(crate) async fn tunnel(
    device: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    server: SocketAddr,
) -> ipstack::Result<()> {
    let mut tcp_config = ipstack::TcpConfig::default();
    tcp_config.timeout = Duration::from_secs(60);
    tcp_config.options = Some(vec![ipstack::TcpOptions::MaximumSegmentSize(1460)]);
    let mut ipstack_config = ipstack::IpStackConfig::default();
    ipstack_config.mtu(MTU)?;
    ipstack_config.with_tcp_config(tcp_config);
    ipstack_config.udp_timeout(Duration::from_secs(10));
    let mut ip_stack = ipstack::IpStack::new(ipstack_config, device);

    loop {
        match ip_stack.accept().await? {
            IpStackStream::Tcp(mut stream) => {
                tokio::spawn(async move {
                    let Ok(mut outside) = TcpStream::connect(server).await else { return };
                    if let Err(error) = tokio::io::copy_bidirectional(&mut stream, &mut outside).await {
                        eprintln!("{} to {}: {error}", stream.local_addr(), stream.peer_addr());
                    }
                    let _ = stream.shutdown().await;
                });
            }
            IpStackStream::Udp(flow) => {
                tokio::spawn(async move {
                    let (mut reader, mut writer) = tokio::io::split(flow);
                    let outside = UdpSocket::bind("0.0.0.0:0").await?;
                    outside.connect(server).await?;
                    let (mut there, mut back) = (vec![0; 65_535], vec![0; 65_535]);
                    loop {
                        tokio::select! {
                            length = reader.read(&mut there) => outside.send(&there[..length?]).await?,
                            length = outside.recv(&mut back) => writer.write(&back[..length?]).await?,
                        };
                    }
                    #[expect(unreachable_code, reason = "names the type of errors")]
                    io::Result::Ok(())
                });
            }
            IpStackStream::UnknownTransport(packet) => {
                if let Err(error) = answer(&packet) {
                    eprintln!("{} of {}: {error}", packet.ip_protocol().0, packet.src_addr());
                }
            }
            IpStackStream::UnknownNetwork(packet) => eprintln!("{} bytes that are no packet", packet.len()),
        }
    }
}

/// Answers a ping.
fn answer(packet: &IpStackUnknownTransport) -> io::Result<()> {
    if !packet.src_addr().is_ipv4() || packet.ip_protocol() != IpNumber::ICMP {
        return Ok(());
    }
    let Ok((header, data)) = Icmpv4Header::from_slice(packet.payload()) else { return Ok(()) };
    let Icmpv4Type::EchoRequest(echo) = header.icmp_type else { return Ok(()) };
    let mut reply = Icmpv4Header::new(Icmpv4Type::EchoReply(echo));
    reply.update_checksum(data);
    packet.send([&reply.to_bytes()[..], data].concat())
}

/// A TUN device as a stream of bytes whose reads and writes are packets.
pub(crate) struct PacketIo(pub(crate) AsyncDevice);

impl AsyncRead for PacketIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let length = ready!(self.0.poll_recv(cx, buf.initialize_unfilled()))?;
        buf.advance(length);
        Poll::Ready(Ok(()))
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
