//! The example programs, between the kernel's TCP behind a TUN device and a server of the kernel,
//! in a network namespace.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "a program")]
#[path = "../examples/forward.rs"]
mod forward;
#[expect(dead_code, reason = "a program")]
#[path = "../examples/tunnel.rs"]
mod tunnel;

use ackline_runtime::Error;
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::testing::{has_programs, isolated};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;
use tun_rs::{AsyncDevice, DeviceBuilder};

/// Behind the device.
const ANYWHERE: &str = "10.10.10.1:7";

/// A server that gives back what it gets, by TCP and UDP.
async fn echo() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let socket = UdpSocket::bind(address).await?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                tokio::io::copy(&mut reader, &mut writer).await?;
                writer.shutdown().await
            });
        }
    });
    tokio::spawn(async move {
        let mut data = vec![0; 65_535];
        while let Ok((length, client)) = socket.recv_from(&mut data).await {
            let _ = socket.send_to(&data[..length], client).await;
        }
    });
    Ok(address)
}

/// What the kernel's own programs see of the far side of the device.
async fn judge() {
    let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    let mut clients = vec![];
    for _ in 0..4 {
        let sent = sent.clone();
        clients.push(tokio::spawn(async move {
            let stream = TcpStream::connect(ANYWHERE).await.expect("connected");
            let (mut reader, mut writer) = stream.into_split();
            let data = sent.clone();
            tokio::spawn(async move {
                writer.write_all(&data).await.expect("written");
                writer.shutdown().await.expect("closed");
            });
            let mut back = vec![];
            reader.read_to_end(&mut back).await.expect("read");
            assert!(back == sent, "{} bytes came back", back.len());
        }));
    }
    for client in clients {
        client.await.expect("no panic");
    }

    let client = UdpSocket::bind("10.10.10.2:0").await.expect("bound");
    client.connect(ANYWHERE).await.expect("connected");
    // The last one leaves in fragments.
    for (length, comes_back) in [(1, true), (1_472, true), (4_000, false)] {
        client.send(&sent[..length]).await.expect("sent");
        if comes_back {
            let mut back = vec![0; 65_535];
            let received = client.recv(&mut back).await.expect("an answer");
            assert!(back[..received] == sent[..length]);
        }
    }

    let ping = tokio::task::spawn_blocking(|| {
        Command::new("ping").args(["-c", "1", "-W", "10", "10.10.10.9"]).output()
    });
    let output = ping.await.expect("no panic").expect("ping runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Runs one of the programs under `judge`.
fn run(name: &str, program: impl FnOnce(AsyncDevice, SocketAddr) -> JoinHandle<()> + Send) {
    if !has_programs(name, &["ping"]) {
        return;
    }
    isolated(name, || {
        drop(Tun::create(&TunConfig::new())?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let failed = |source| Error::System { action: "make a device of tun-rs", source };
            let device =
                DeviceBuilder::new().name("utun8").ipv4("10.10.10.2", 24, None).mtu(1500).build_async();
            let device = device.map_err(failed)?;
            let server = echo().await.expect("a server");
            let program = program(device, server);
            tokio::select! {
                end = program => panic!("the program has ended: {end:?}"),
                () = judge() => {}
                () = tokio::time::sleep(Duration::from_secs(120)) => panic!("too slow"),
            }
            Ok(())
        })
    });
}

#[test]
fn the_program_for_netstack_smoltcp_carries_on_connections_datagrams_and_pings() {
    run("the_program_for_netstack_smoltcp_carries_on_connections_datagrams_and_pings", |device, server| {
        tokio::spawn(async move { forward::forward(Arc::new(device), server).await.expect("no failure") })
    });
}

#[test]
fn the_program_for_ipstack_carries_on_connections_datagrams_and_pings() {
    run("the_program_for_ipstack_carries_on_connections_datagrams_and_pings", |device, server| {
        let device = tunnel::PacketIo(device);
        tokio::spawn(async move { tunnel::tunnel(device, server).await.expect("no failure") })
    });
}
