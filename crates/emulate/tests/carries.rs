//! Packets through a network in real time, from device to device.

use ackline_emulate::Emulator;
use ackline_netsim::impair::{DropList, Which};
use ackline_netsim::{LinkSpec, Sim};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::{Device as _, TxChecksum};
use ackline_runtime::{Pacing, timer};
use ackline_tcp_core::{Duration, Instant};
use std::future::poll_fn;

const DELAY: Duration = Duration::from_millis(5);

/// An IPv4 packet of UDP from 10.0.0.1 to 10.0.0.2 that ends in `number`.
fn packet(number: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&u16::try_from(len).expect("short").to_be_bytes());
    (bytes[8], bytes[9]) = (64, 17);
    bytes[12..16].copy_from_slice(&[10, 0, 0, 1]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
    bytes[len - 1] = number;
    bytes
}

fn send(device: &mut Channel, packet: &[u8]) {
    device.try_send(packet, [&[], &[]], None, TxChecksum::Complete).expect("room");
}

async fn receive(device: &mut Channel) -> Vec<u8> {
    loop {
        match device.try_recv() {
            Ok(packet) => return packet.head.to_vec(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                poll_fn(|cx| device.poll_readable(cx)).await.expect("the other end is there");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// 10.0.0.1 and what leads to 10.0.0.2 through a link.
fn emulator(link: LinkSpec, pacing: Pacing) -> (Emulator, Sim, Channel, Channel) {
    let mut sim = Sim::new(1);
    let left = sim.add_port(["10.0.0.1".parse().expect("right")]);
    let right = sim.add_port([]);
    sim.set_default_node(right);
    sim.add_link(left, right, link);
    let config = ChannelConfig::default().plain();
    let ((a, near), (b, far)) = (Channel::pair(config), Channel::pair(config));
    let mut emulator = Emulator::new(pacing).expect("descriptors are left");
    emulator.attach(&sim, left, Box::new(near)).expect("without offload");
    emulator.attach(&sim, right, Box::new(far)).expect("without offload");
    (emulator, sim, a, b)
}

async fn passes_in_order_and_not_early(pacing: Pacing) {
    // A packet of 1,000 bytes takes a millisecond.
    let link = LinkSpec::new(8_000_000, DELAY).with_impairment(DropList::new(Which::Nth(vec![3])));
    let (mut emulator, mut sim, mut a, mut b) = emulator(link, pacing);
    let start = timer::now();
    (0..5).for_each(|number| send(&mut a, &packet(number, 1_000)));
    let arrivals = async {
        let mut arrived = vec![];
        for _ in 0..4 {
            let packet = receive(&mut b).await;
            arrived.push((packet[999], timer::now().since(start)));
        }
        arrived
    };
    let arrived = tokio::select! {
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        arrived = arrivals => arrived,
    };
    let numbers: Vec<u8> = arrived.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 3, 4], "the third is lost");
    for (number, after) in &arrived {
        let earliest = DELAY + Duration::from_millis(1 + u64::from(*number));
        assert!(*after >= earliest, "{number}: {after:?}");
    }
    let [left, right]: [_; 2] = emulator.ports().collect::<Vec<_>>().try_into().expect("two ports");
    assert_eq!((left.received, right.sent, right.refused, right.lateness.count()), (5, 4, 0, 4));
}

#[tokio::test]
async fn packets_pass_in_order_and_not_early_asleep() {
    passes_in_order_and_not_early(Pacing::Timer).await;
}

#[tokio::test]
async fn packets_pass_in_order_and_not_early_spinning() {
    passes_in_order_and_not_early(Pacing::spin()).await;
}

#[tokio::test]
async fn a_flood_at_one_port_keeps_nothing_out_at_another() {
    let (mut emulator, mut sim, mut a, mut b) = emulator(LinkSpec::new(8_000_000, DELAY), Pacing::Timer);
    (0..1_000).for_each(|_| send(&mut a, &packet(1, 40)));
    send(&mut b, &packet(2, 40));
    tokio::select! {
        biased;
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        () = std::future::ready(()) => {}
    }
    let [left, right]: [_; 2] = emulator.ports().collect::<Vec<_>>().try_into().expect("two ports");
    assert!(left.received < 1_000, "{left:?}");
    assert_eq!(right.received, 1);
}

#[tokio::test]
async fn while_it_spins_for_a_busy_link_other_tasks_run() {
    const PACKETS: u64 = 1_000;
    // A machine that stops for the 4 ms in which all of them arrive proves nothing.
    for _ in 0..10 {
        let mut sim = Sim::new(1);
        let left = sim.add_port([]);
        let right = sim.add_port(["10.0.0.2".parse().expect("right")]);
        sim.add_link(left, right, LinkSpec::new(80_000_000, Duration::from_millis(100)));
        (0..PACKETS).for_each(|_| sim.inject(left, &packet(1, 40)));
        let (mut b, far) = Channel::pair(ChannelConfig::default().plain());
        let mut emulator = Emulator::new(Pacing::spin()).expect("descriptors are left");
        emulator.attach(&sim, right, Box::new(far)).expect("without offload");
        tokio::select! {
            ended = emulator.run(&mut sim) => panic!("{ended:?}"),
            _ = receive(&mut b) => {}
        }
        let sent = emulator.ports().next().expect("one port").sent;
        if sent < PACKETS {
            return;
        }
    }
    panic!("no other task ran until the last packet had arrived");
}

#[tokio::test]
async fn it_stops_at_an_instant_and_goes_on() {
    let (mut emulator, mut sim, mut a, mut b) = emulator(LinkSpec::new(8_000_000, DELAY), Pacing::Timer);
    send(&mut a, &packet(7, 1_000));
    let end = Instant::ZERO + DELAY;
    emulator.run_until(&mut sim, end).await.expect("its devices work");
    assert_eq!(sim.now(), end);
    assert!(b.try_recv().is_err(), "it takes a millisecond more");
    tokio::select! {
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        packet = receive(&mut b) => assert_eq!(packet[999], 7),
    }
}

#[tokio::test]
async fn what_is_no_packet_is_counted() {
    let (mut emulator, mut sim, mut a, mut b) = emulator(LinkSpec::new(8_000_000, DELAY), Pacing::Timer);
    send(&mut a, &[0x75; 40]);
    send(&mut a, &packet(7, 40));
    tokio::select! {
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        packet = receive(&mut b) => assert_eq!(packet[39], 7),
    }
    assert_eq!(sim.unroutable(), 1);
}

#[tokio::test]
async fn a_device_with_offload_is_refused() {
    let mut sim = Sim::new(1);
    let port = sim.add_port([]);
    let mut emulator = Emulator::new(Pacing::Timer).expect("descriptors are left");
    let (device, _other) = Channel::pair(ChannelConfig::default());
    let refused = emulator.attach(&sim, port, Box::new(device)).expect_err("it has offload");
    assert_eq!(
        refused.to_string(),
        "an emulated network carries the packets of a wire: open the device without offload"
    );
}

#[tokio::test]
async fn a_device_at_a_router_is_refused() {
    let mut sim = Sim::new(1);
    let router = sim.add_router();
    let mut emulator = Emulator::new(Pacing::Timer).expect("descriptors are left");
    let (device, _other) = Channel::pair(ChannelConfig::default().plain());
    let refused = emulator.attach(&sim, router, Box::new(device)).expect_err("it is not a port");
    assert!(
        refused.to_string().ends_with("is not a port of the simulation: add one by Sim::add_port"),
        "{refused}"
    );
}
