//! A TUN device of the crate `tun-rs` against the kernel's TCP, in a network namespace.
#![cfg(target_os = "linux")]

use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::device::tun_rs::{TunRs, tun_rs::DeviceBuilder};
use ackline_runtime::device::{Device, OutgoingPacket, TxChecksum};
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use ackline_runtime::testing::{has_programs, isolated};
use ackline_runtime::{Error, Stack};
use ackline_tcp_core::ListenOn;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

const MTU: u16 = 1_400;

/// The device, and the kernel's side configured.
fn open() -> Result<TunRs, Error> {
    let failed = |source| Error::System { action: "make a device of tun-rs", source };
    let device = DeviceBuilder::new().name("ackrs0").mtu(MTU).build_async().map_err(failed)?;
    let mut netlink = Netlink::open()?;
    let index = netlink.interface("ackrs0")?.index;
    for network in ["10.77.0.1/24", "fd77::1/64"] {
        netlink.add_address(index, InterfaceAddress::network(network.parse().expect("a network")))?;
    }
    netlink.set_up(index)?;
    netlink.await_address("fd77::1".parse().expect("an address"))?;
    TunRs::new(device, MTU).map_err(failed)
}

/// Runs `work` on a tokio runtime of this thread, for at most two minutes, if this process may have
/// a TUN device.
fn run(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    drop(Tun::create(&TunConfig::new())?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), work).await.expect("in time") })
}

/// Sends `data` by the kernel's TCP, and returns what comes back.
fn through_the_kernel(to: SocketAddr, data: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(30))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut writer = stream.try_clone()?;
    let mut back = Vec::new();
    std::thread::scope(|scope| {
        let sent = scope.spawn(move || {
            writer.write_all(data)?;
            writer.shutdown(Shutdown::Write)
        });
        stream.read_to_end(&mut back)?;
        sent.join().expect("no panic")
    })?;
    Ok(back)
}

#[test]
fn data_passes_both_ways() {
    isolated("data_passes_both_ways", || {
        run(async {
            let stack = Stack::builder(open()?)
                .address([10, 77, 0, 2])
                .address("fd77::2".parse::<std::net::IpAddr>().expect("an address"))
                .spawn()
                .expect("a stack");
            assert_eq!(stack.mtu(), u32::from(MTU));
            let listener = stack.listen(ListenOn::Port(7)).expect("listens");
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    tokio::spawn(async move {
                        let (mut read, mut write) = stream.split();
                        tokio::io::copy(&mut read, &mut write).await.expect("copied");
                        write.shutdown().await.expect("shut down");
                    });
                }
            });
            let data: Vec<u8> = (0..4 << 20).map(|at: u32| (at * 7 + at / 251) as u8).collect();
            for to in ["10.77.0.2:7", "[fd77::2]:7"] {
                let (to, data) = (to.parse().expect("an address"), data.clone());
                let namespace = Namespace::of_thread()?;
                let back = tokio::task::spawn_blocking(move || {
                    let back = namespace.run(|| through_the_kernel(to, &data));
                    back.map(|back| back.map(|back| back == data))
                });
                assert!(back.await.expect("no panic")?.expect("the kernel's side works"), "{to} echoes");
            }
            let stats = stack.stats().device;
            assert!(stats.rx_bytes > 8 << 20 && stats.tx_bytes > 8 << 20, "{stats:?}");
            assert_eq!((stats.rx_malformed, stats.tx_errors), (0, 0));
            Ok(())
        })
    });
}

#[test]
fn what_the_device_cannot_carry_is_refused() {
    isolated("what_the_device_cannot_carry_is_refused", || {
        run(async {
            let mut device = open()?;
            let (header, body) = ([0x45; 40], [0; 2_000]);
            let partial = TxChecksum::Partial { start: 20, offset: 16 };
            for (length, checksum) in [(1_361, TxChecksum::Complete), (100, partial)] {
                let refused = device
                    .try_send(&OutgoingPacket::new(&header, [&body[..length], &[]]).with_checksum(checksum));
                assert_eq!(refused.expect_err("refused").kind(), io::ErrorKind::InvalidInput);
            }
            assert_eq!(device.stats().tx_errors, 2);
            let failed = |source| Error::System { action: "make a device of tun-rs", source };
            let tiny = DeviceBuilder::new().name("ackrs1").build_async().map_err(failed)?;
            assert_eq!(TunRs::new(tiny, 67).expect_err("too small").kind(), io::ErrorKind::InvalidInput);
            let offload = DeviceBuilder::new().name("ackrs2").offload(true).build_async().map_err(failed)?;
            let error = TunRs::new(offload, MTU).expect_err("it has offload").to_string();
            assert!(error.contains("leave out DeviceBuilder::offload"), "{error}");
            Ok(())
        })
    });
}

/// It does not hang: whoever waits learns that the interface is gone.
#[test]
fn a_removed_interface_ends_the_stack() {
    let name = "a_removed_interface_ends_the_stack";
    if !has_programs(name, &["ip"]) {
        return;
    }
    isolated(name, || {
        run(async {
            let device = open()?;
            let (stack, driver) = Stack::builder(device).address([10, 77, 0, 2]).build().expect("a stack");
            let driver = tokio::spawn(driver);
            let connecting = tokio::spawn(async move { stack.connect("10.77.0.9:7").await.map(drop) });
            tokio::time::sleep(Duration::from_millis(50)).await;
            let removed = std::process::Command::new("ip").args(["link", "delete", "ackrs0"]).status();
            assert!(removed.is_ok_and(|status| status.success()));
            assert!(driver.await.expect("no panic").is_err());
            assert!(connecting.await.expect("no panic").is_err());
            Ok(())
        })
    });
}
