//! Data goes both ways, whole and in order.

use crate::world::{KERNEL4, KERNEL6, PORT, STACK4, STACK6, World, block_on, stack};
use ackline_runtime::device::af_packet::{AfPacket, AfPacketConfig};
use ackline_runtime::netns::Namespace;
use ackline_runtime::stats::Stats;
use ackline_runtime::testing::{isolated, skip};
use ackline_runtime::{Error, MacAddress, Stack, TcpStream};
use ackline_tcp_core::ListenOn;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener as KernelListener, TcpStream as KernelStream};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Bytes each way: some thousand packets, at least some dozen super-packets.
const LENGTH: usize = 4 << 20;

/// What byte `at` of the stream from `seed` is: a pattern that differs when shifted by anything
/// below 2^24.
fn pattern(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = (0..LENGTH / 8).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    words.flat_map(u64::to_ne_bytes).collect()
}

fn assert_same(received: &[u8], sent: &[u8]) {
    assert_eq!(received.len(), sent.len(), "lengths differ");
    if let Some(at) = received.iter().zip(sent).position(|(received, sent)| received != sent) {
        panic!("byte {at} of {} differs", sent.len());
    }
}

/// The kernel's end: sends one pattern and reads the other one, both at once.
fn kernel_end(stream: KernelStream) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(15)))?;
    stream.set_write_timeout(Some(Duration::from_secs(15)))?;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (&stream).write_all(&pattern(1))?;
            stream.shutdown(Shutdown::Write)
        });
        let mut received = Vec::with_capacity(LENGTH);
        (&stream).read_to_end(&mut received)?;
        assert_same(&received, &pattern(2));
        writer.join().expect("no panic")
    })
}

/// The stack's end.
async fn stack_end(stream: TcpStream) {
    let (mut read, mut write) = stream.into_split();
    let writer = tokio::spawn(async move {
        write.write_all(&pattern(2)).await?;
        write.shutdown().await
    });
    let mut received = Vec::with_capacity(LENGTH);
    read.read_to_end(&mut received).await.expect("everything came");
    assert_same(&received, &pattern(1));
    writer.await.expect("no panic").expect("everything left");
}

/// What the stack measured, once the kernel has acknowledged everything.
async fn finished(stack: Stack) -> Stats {
    assert!(stack.shutdown(Duration::from_secs(10)).await, "the connection had to be reset");
    stack.stats()
}

/// The stack connects to the kernel, both send; what the stack measured.
fn stack_connects(world: &World, device: AfPacket, to: IpAddr) -> Result<Stats, Error> {
    let listener = world.there.run(|| KernelListener::bind((to, PORT)))?.expect("bound");
    let kernel = std::thread::spawn(move || kernel_end(listener.accept()?.0));
    let stats = block_on(async {
        let stack = stack(device);
        stack_end(stack.connect((to, PORT)).await.expect("connected")).await;
        finished(stack).await
    });
    kernel.join().expect("no panic").expect("the kernel's end");
    Ok(stats)
}

/// The kernel connects to the stack, both send; what the stack measured.
fn kernel_connects(there: &Namespace, device: AfPacket, to: IpAddr) -> Result<Stats, Error> {
    std::thread::scope(|scope| {
        let (listening, wait) = std::sync::mpsc::channel();
        let kernel = scope.spawn(move || {
            there.run(move || {
                wait.recv().expect("the stack listens");
                kernel_end(KernelStream::connect_timeout(&(to, PORT).into(), Duration::from_secs(5))?)
            })
        });
        let stats = block_on(async {
            let stack = stack(device);
            let listener = stack.listen(ListenOn::Port(PORT)).expect("a free port");
            listening.send(()).expect("the kernel waits");
            stack_end(listener.accept().await.expect("accepted").0).await;
            drop(listener);
            finished(stack).await
        });
        kernel.join().expect("no panic")?.expect("the kernel's end");
        Ok(stats)
    })
}

/// Both directions of connecting, over both IP versions.
pub(crate) fn transfers(world: &World, config: &AfPacketConfig) -> Result<Vec<Stats>, Error> {
    let open = || AfPacket::open(config);
    let all = vec![
        stack_connects(world, open()?, KERNEL4)?,
        stack_connects(world, open()?, KERNEL6)?,
        kernel_connects(&world.there, open()?, STACK4)?,
        kernel_connects(&world.there, open()?, STACK6)?,
    ];
    for stats in &all {
        assert_eq!(stats.device.rx_malformed, 0, "{:?}", stats.device);
        assert_eq!(stats.device.tx_errors, 0, "{:?}", stats.device);
    }
    Ok(all)
}

#[test]
fn super_packets_carry_data_both_ways() {
    isolated("transfer::super_packets_carry_data_both_ways", || {
        let world = World::new(1500)?;
        for stats in transfers(&world, &world.config())? {
            assert!(stats.rx_super_packets > 20 && stats.tx_super_packets > 20, "{:?}", stats.device);
        }
        Ok(())
    });
}

#[test]
fn single_packets_carry_data_both_ways() {
    isolated("transfer::single_packets_carry_data_both_ways", || {
        let world = World::new(1500)?;
        for stats in transfers(&world, &world.config().plain())? {
            assert_eq!(stats.tx_super_packets, 0, "{:?}", stats.device);
            assert!(stats.device.tx_packets > (LENGTH / 1500) as u64, "{:?}", stats.device);
        }
        Ok(())
    });
}

#[test]
fn jumbo_frames_carry_data_both_ways() {
    isolated("transfer::jumbo_frames_carry_data_both_ways", || {
        let world = World::new(9000)?;
        transfers(&world, &world.config())?;
        for stats in transfers(&world, &world.config().plain())? {
            // Data packets are full-sized; the rest are acknowledgements.
            assert!(stats.device.tx_packets < (LENGTH / 1500) as u64, "{:?}", stats.device);
        }
        Ok(())
    });
}

#[test]
fn a_station_of_ones_own_carries_data_both_ways() {
    isolated("transfer::a_station_of_ones_own_carries_data_both_ways", || {
        let world = World::new(1500)?;
        transfers(&world, &world.config().mac(MacAddress([0x02, 0, 0, 0, 0x78, 2])))?;
        Ok(())
    });
}

#[test]
fn a_lower_mtu_than_the_interfaces_is_kept() {
    isolated("transfer::a_lower_mtu_than_the_interfaces_is_kept", || {
        let world = World::new(9000)?;
        for stats in transfers(&world, &world.config().mtu(1280).plain())? {
            assert!(stats.device.tx_packets > (LENGTH / 1280) as u64, "{:?}", stats.device);
        }
        Ok(())
    });
}

#[test]
fn a_vlan_interface_carries_data_both_ways() {
    isolated("transfer::a_vlan_interface_carries_data_both_ways", || {
        let world = match World::on_vlan(5) {
            Err(Error::System { source, .. }) if source.kind() == io::ErrorKind::Unsupported => {
                skip(
                    "transfer::a_vlan_interface_carries_data_both_ways",
                    &"the kernel has no VLAN interfaces",
                );
                return Ok(());
            }
            world => world?,
        };
        for stats in transfers(&world, &world.config())? {
            assert!(stats.rx_super_packets > 20 && stats.tx_super_packets > 20, "{:?}", stats.device);
        }
        Ok(())
    });
}
