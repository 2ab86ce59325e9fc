//! Captures that have a packet twice, in the wrong order, with the wrong time, or not at all.

use crate::packets::{MSS, Packet, Side, ack, data, handshake, packet, story, told};
use ackline_explain::story::{Anomaly, Connection};
use ackline_explain::text;

/// A transfer of ten segments, of which the fifth is lost and sent again after three duplicate
/// ACKs.
fn transfer(with_ids: bool, with_timestamps: bool) -> Vec<Packet> {
    let mut packets = handshake();
    packets.extend((0..10).map(|place| data(21_000 + u64::from(place) * 500, place * 1_000, MSS)));
    packets.extend((1..=4).map(|place| ack(41_000 + u64::from(place) * 500, place * 1_000)));
    packets.extend((0..5).map(|place| ack(43_500 + place * 500, 4_000)));
    packets.extend([data(45_100, 4_000, MSS), ack(65_100, 10_000)]);
    packets.push(Packet { ack: 0, ..packet(66_000, Side::Client, "FA", 10_000, 0) });
    packets.push(Packet { ack: 10_001, ..packet(86_000, Side::Server, "FA", 0, 0) });
    packets.sort_by_key(|packet| packet.at);
    for (place, packet) in packets.iter_mut().enumerate() {
        if with_ids {
            packet.id = 700 + place as u16;
        }
        if with_timestamps {
            packet.timestamps = (100 + (packet.at / 1_000) as u32, 1);
        }
    }
    packets
}

/// Each packet is there again `later` us later, as it looks behind a router.
fn twice(packets: &[Packet], later: u64) -> Vec<Packet> {
    let copies = packets.iter().map(|packet| Packet { at: packet.at + later, ttl: 63, ..*packet });
    let mut all: Vec<Packet> = packets.iter().copied().chain(copies).collect();
    all.sort_by_key(|packet| packet.at);
    all
}

/// All that is told, but for copies.
fn without_copies(mut connection: Connection) -> String {
    connection.copies = 0;
    connection.anomalies.retain(|anomaly| *anomaly != Anomaly::EachPacketTwice);
    // A copy of the last packet lasts longer.
    connection.duration_ns = 0;
    format!("{connection:?}")
}

#[test]
fn a_capture_that_has_each_packet_twice_tells_what_one_without_copies_tells() {
    for (with_ids, with_timestamps, latest) in
        [(true, true, 30_000), (true, false, 30_000), (false, true, 300), (false, false, 300)]
    {
        let once = transfer(with_ids, with_timestamps);
        for later in [0, 3, latest] {
            let what = format!("{with_ids} {with_timestamps} {later}");
            let (single, double) = (told(&once), told(&twice(&once, later)));
            assert_eq!(single.directions[0].losses.retransmissions, 1, "{what}");
            assert_eq!(single.directions[0].losses.fast, 1, "{what}");
            assert_eq!((single.copies, double.copies), (0, once.len() as u64), "{what}");
            assert!(double.anomalies.contains(&Anomaly::EachPacketTwice), "{what}");
            assert!(text::page(&double).contains("the capture has each packet twice"), "{what}");
            assert_eq!(without_copies(double), without_copies(single), "{what}");
        }
    }
}

#[test]
fn a_packet_that_the_network_doubled_is_no_retransmission_and_one_sent_again_is_no_copy() {
    let mut packets = transfer(true, false);
    let place = packets.iter().position(|packet| packet.length > 0).expect("data");
    packets.insert(place + 1, Packet { at: packets[place].at + 20, ..packets[place] });
    let connection = told(&packets);
    assert_eq!((connection.copies, connection.directions[0].losses.retransmissions), (1, 1));
    let page = text::page(&connection);
    assert!(page.contains("1 packet passed the capture twice, doubled by the network"), "{page}");
    assert!(!connection.anomalies.contains(&Anomaly::EachPacketTwice));

    // A sender that gives every packet the same identification sends all of it again after 30 ms.
    let mut packets = handshake();
    packets.extend((0..5).map(|place| data(21_000 + u64::from(place), place * 1_000, MSS)));
    packets.extend((0..5).map(|place| data(51_000 + u64::from(place), place * 1_000, MSS)));
    packets.push(ack(71_000, 5_000));
    packets.iter_mut().for_each(|packet| packet.id = 1);
    let connection = told(&packets);
    assert_eq!((connection.copies, connection.directions[0].losses.retransmissions), (0, 5));
}

#[test]
fn the_first_two_packets_of_data_may_come_in_the_wrong_order() {
    let stamped = |at, seq, tsval| Packet { timestamps: (tsval, 1), ..data(at, seq, MSS) };
    let swapped = [stamped(21_010, 1_000, 121), stamped(21_020, 0, 121), stamped(21_030, 2_000, 121)];
    let rest = [ack(41_000, 3_000)];
    for begin in [&handshake()[..], &[]] {
        let packets: Vec<Packet> = begin.iter().chain(&swapped).chain(&rest).copied().collect();
        let connection = told(&packets);
        let direction = &connection.directions[0];
        let losses = direction.losses;
        assert_eq!((losses.retransmissions, losses.reordered_before), (0, 1), "{}: {losses:?}", begin.len());
        assert_eq!((direction.bytes, direction.uncaptured), (3_000, 0), "{}", begin.len());
    }
    // If the first one is lost before the capture, and comes a round trip later, it was sent again.
    let mut packets = handshake();
    packets.extend([1, 2, 3, 4].map(|place| data(21_000 + u64::from(place), place * 1_000, MSS)));
    packets.extend([1, 2, 3].map(|place| ack(41_000 + place, 0)));
    packets.extend([data(41_100, 0, MSS), ack(61_100, 5_000)]);
    let connection = told(&packets);
    let losses = connection.directions[0].losses;
    assert_eq!((losses.retransmissions, losses.before, connection.directions[0].bytes), (1, 1, 5_000));
}

#[test]
fn a_clock_that_steps_back_is_said() {
    let mut packets = transfer(true, true);
    for packet in &mut packets[8..] {
        packet.at -= 15_000;
    }
    let told = story(&packets);
    assert_eq!((told.steps_back, told.longest_step_back_ns), (1, 14_500_000));
    assert!(
        text::left_out(&told).contains("clock steps back once, by 14.5 ms at most"),
        "{}",
        text::left_out(&told)
    );
    assert!(told.connections[0].anomalies.contains(&Anomaly::ClockStepsBack));
    assert!(text::page(&told.connections[0]).contains("the capture's clock steps back"));
    // Packets of two queues of a device are hardly out of order.
    let mut packets = transfer(true, true);
    packets.swap(5, 6);
    let told = story(&packets);
    assert_eq!((told.steps_back, text::left_out(&told)), (0, String::new()));
    assert!(!told.connections[0].anomalies.contains(&Anomaly::ClockStepsBack));
}

#[test]
fn a_fin_that_was_not_captured_is_no_byte() {
    let mut packets = transfer(true, true);
    packets.retain(|packet| packet.flags != "FA" || packet.who == Side::Server);
    let direction = &told(&packets).directions[0];
    assert_eq!((direction.bytes, direction.uncaptured, direction.unacknowledged), (10_000, 0, 0));
    // An octet that was not captured, and is followed by more, is one.
    packets.truncate(packets.len() - 1);
    packets.extend([ack(86_000, 10_001), data(87_000, 10_001, 5), ack(107_000, 10_006)]);
    let direction = &told(&packets).directions[0];
    assert_eq!((direction.bytes, direction.uncaptured), (10_006, 1));
}
