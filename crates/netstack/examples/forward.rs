//! Carries every connection and datagram that comes out of a TUN device on to one server. Written
//! for netstack-smoltcp: the first `use` is all that names another crate.
//!
//! ```text
//! sudo target/debug/examples/forward 127.0.0.1:5201
//! iperf3 -c 10.10.10.1
//! ```

use ackline_netstack::netstack_smoltcp::{StackBuilder, TcpListener, UdpSocket};
use futures_util::{SinkExt as _, StreamExt as _};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::mpsc;
use tun_rs::{AsyncDevice, DeviceBuilder};

#[tokio::main]
async fn main() -> io::Result<()> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "usage: forward ADDRESS:PORT");
    let server = std::env::args().nth(1).and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
    let device = DeviceBuilder::new().name("utun8").ipv4("10.10.10.2", 24, None).mtu(1500).build_async()?;
    forward(Arc::new(device), server).await
}

/// Carries on what comes out of `device`, until it fails.
pub(crate) async fn forward(device: Arc<AsyncDevice>, server: SocketAddr) -> io::Result<()> {
    let (stack, runner, udp_socket, tcp_listener) = StackBuilder::default()
        .enable_tcp(true)
        .enable_udp(true)
        .enable_icmp(true)
        .mtu(1500)
        .add_ip_filter_fn(|_, destination| *destination != Ipv4Addr::new(10, 10, 10, 255))
        .build()?;
    let udp_socket = udp_socket.expect("UDP is enabled");
    let tcp_listener = tcp_listener.expect("TCP is enabled");
    if let Some(runner) = runner {
        tokio::spawn(runner);
    }
    let (mut stack_sink, mut stack_stream) = stack.split();

    let tun = device.clone();
    let from_stack = async move {
        while let Some(packet) = stack_stream.next().await {
            tun.send(&packet?).await?;
        }
        Ok(())
    };
    let to_stack = async move {
        let mut packet = vec![0; 65_535];
        loop {
            let length = device.recv(&mut packet).await?;
            if let Err(error) = stack_sink.send(packet[..length].to_vec()).await {
                eprintln!("packet: {error}");
            }
        }
    };
    tokio::select! {
        end = from_stack => end,
        end = to_stack => end,
        () = connections(tcp_listener, server) => Ok(()),
        () = datagrams(udp_socket, server) => Ok(()),
    }
}

async fn connections(mut listener: TcpListener, server: SocketAddr) {
    while let Some((mut stream, client, destination)) = listener.next().await {
        tokio::spawn(async move {
            let outcome = match tokio::net::TcpStream::connect(server).await {
                Ok(mut outside) => tokio::io::copy_bidirectional(&mut stream, &mut outside).await.map(drop),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                eprintln!("{client} to {destination}: {error}");
            }
        });
    }
}

async fn datagrams(socket: UdpSocket, server: SocketAddr) {
    let (mut reader, mut writer) = socket.split();
    let (answers, mut answered) = mpsc::channel(64);
    tokio::spawn(async move {
        while let Some(answer) = answered.recv().await {
            if writer.send(answer).await.is_err() {
                break;
            }
        }
    });
    // A socket for each pair of client and destination.
    let mut sockets: HashMap<_, Arc<tokio::net::UdpSocket>> = HashMap::new();
    while let Some((data, client, destination)) = reader.next().await {
        let outside = match sockets.get(&(client, destination)) {
            Some(outside) => outside.clone(),
            None => {
                let Ok(outside) = tokio::net::UdpSocket::bind("0.0.0.0:0").await else { continue };
                if outside.connect(server).await.is_err() {
                    continue;
                }
                let outside = Arc::new(outside);
                sockets.insert((client, destination), outside.clone());
                let (answers, from) = (answers.clone(), outside.clone());
                tokio::spawn(async move {
                    let mut data = vec![0; 65_535];
                    while let Ok(length) = from.recv(&mut data).await {
                        if answers.send((data[..length].to_vec(), destination, client)).await.is_err() {
                            break;
                        }
                    }
                });
                outside
            }
        };
        let _ = outside.send(&data).await;
    }
}
