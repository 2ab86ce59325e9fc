//! What a sender waited for, and how that is told in a line.

use crate::packets::{MSS, Packet, Side, ack, data, handshake, packet, told};
use ackline_explain::story::{Cause, Connection};
use ackline_explain::text;

/// The longest stall: its begin and length in ms, and its cause.
fn longest_stall(connection: &Connection) -> (u64, u64, Cause) {
    let stalls = &connection.directions[0].stalls;
    let stall = stalls.iter().max_by_key(|stall| stall.time_ns).expect("a stall");
    (stall.at_ns / 1_000_000, stall.time_ns / 1_000_000, stall.cause)
}

/// The window is zero from 50 ms on. The sender probes it with one octet of new data, as RFC 9293,
/// section 3.8.6.1, describes. It opens at 10.35 s.
fn probed(accepted: bool) -> Vec<Packet> {
    let shut = |at, upto| Packet { window: 0, ..ack(at, upto) };
    let mut packets = handshake();
    packets[1].window = 2 * MSS;
    packets.extend([data(30_000, 0, MSS), data(31_000, 1_000, MSS), shut(50_000, 2_000)]);
    for at in [350_000, 950_000, 2_150_000, 4_550_000, 9_350_000] {
        packets.extend([data(at, 2_000, 1), shut(at + 20_000, 2_000)]);
    }
    let next = if accepted {
        // The last octet finds room.
        packets.pop();
        packets.push(shut(9_370_000, 2_001));
        2_001
    } else {
        2_000
    };
    let open = Packet { window: 2 * MSS, ..ack(10_350_000, next) };
    packets.extend([open, data(10_350_100, next, MSS), ack(10_370_000, next + 1_000)]);
    packets
}

#[test]
fn an_octet_that_probes_a_zero_window_is_no_data_until_it_is_acknowledged() {
    for accepted in [false, true] {
        let connection = told(&probed(accepted));
        let direction = &connection.directions[0];
        assert_eq!(direction.losses.retransmissions, 0, "{accepted}: {:?}", direction.losses);
        assert_eq!(direction.window.expect("windows").probes, 5);
        assert_eq!(direction.bytes, 3_000 + u64::from(accepted));
        assert_eq!((direction.uncaptured, direction.unacknowledged), (0, 0), "{accepted}");
        assert_eq!(longest_stall(&connection), (31, 10_319, Cause::ZeroWindow), "{accepted}");
        let verdict = "The client waited most for a zero window to open (100 %); nothing sent again; longest stall 10.3 s";
        assert_eq!(text::verdict(&connection), verdict);
    }
    // An octet that was in flight when the window closed, and is sent again, is no probe of the
    // window beyond it.
    let mut packets = handshake();
    packets.extend([data(30_000, 0, 1), Packet { window: 0, ..ack(50_000, 1) }]);
    packets.extend([Packet { window: 2 * MSS, ..ack(60_000, 1) }, data(60_100, 1, 1), data(400_000, 1, 1)]);
    packets.push(ack(420_000, 2));
    let connection = told(&packets);
    assert_eq!(connection.directions[0].losses.retransmissions, 1);
    assert_eq!(connection.directions[0].window.expect("windows").probes, 0);
}

/// Ten segments, of which those from `first` on are acknowledged so late, and ten more.
fn paused(first: u32, late: u64) -> Vec<Packet> {
    let mut packets = handshake();
    for flight in 0..2 {
        let begin = 21_000 + u64::from(flight) * (late + 26_000);
        for place in 0..10 {
            let at = begin + u64::from(place) * 500;
            packets.push(data(at, (flight * 10 + place) * 1_000, MSS));
        }
        for place in 0..10 {
            let waits = if flight == 0 && place >= first { late } else { 0 };
            let at = begin + 20_000 + u64::from(place) * 500 + waits;
            packets.push(ack(at, (flight * 10 + place + 1) * 1_000));
        }
    }
    packets
}

#[test]
fn acks_that_come_late_do_not_make_the_round_trip_by_which_the_wait_is_judged() {
    // Three, or so many that the smoothed round trip is longer than half of the wait at its end.
    for first in [7, 2] {
        let connection = told(&paused(first, 2_000_000));
        let (begin, length, cause) = longest_stall(&connection);
        assert_eq!(cause, Cause::Silence, "{first}: {:?}", connection.directions[0].time);
        assert!(begin == 25 && (2_000..2_030).contains(&length), "{first}: {begin} {length}");
        assert!(text::verdict(&connection).starts_with("The client waited most for ACKs (9"), "{first}");
    }
    // ACKs that come a round trip after the data make room in the congestion window.
    let connection = told(&paused(7, 0));
    let direction = &connection.directions[0];
    assert_eq!((direction.stalls.len(), direction.time[0].cause), (0, Cause::CongestionWindow));
}

#[test]
fn a_path_that_takes_seconds_is_no_silence() {
    // Each flight is acknowledged 2 s later, and the next one follows at once.
    let mut packets = handshake();
    for packet in &mut packets[1..] {
        packet.at += 2_000_000;
    }
    for flight in 0..5_u32 {
        let begin = 2_030_000 + u64::from(flight) * 2_001_000;
        for place in 0..4 {
            packets.push(data(begin + u64::from(place) * 10, (flight * 4 + place) * 1_000, MSS));
        }
        packets.push(ack(begin + 2_000_500, (flight + 1) * 4_000));
    }
    let connection = told(&packets);
    let direction = &connection.directions[0];
    assert!(direction.time.iter().all(|share| share.cause != Cause::Silence), "{:?}", direction.time);
}

#[test]
fn a_page_leads_with_the_end_that_sent_more_and_a_verdict() {
    let mut packets = handshake();
    packets.extend([data(21_000, 0, 100), ack(41_000, 100)]);
    for place in 0..4 {
        let answer = packet(42_000 + u64::from(place), Side::Server, "A", place * 1_000, MSS);
        packets.push(Packet { ack: 100, ..answer });
    }
    packets.push(Packet { ack: 4_000, ..packet(42_100, Side::Client, "A", 100, 0) });
    packets.push(Packet { ack: 4_000, ..packet(43_000, Side::Client, "R", 100, 0) });
    let connection = told(&packets);
    let page = text::page(&connection);
    let lines: Vec<&str> = page.lines().collect();
    assert!(
        lines[0].starts_with("Connection 1: 192.0.2.1:4000 > 192.0.2.2:80, 4.10 kB in 43.0 ms"),
        "{page}"
    );
    assert_eq!(lines[1], text::verdict(&connection));
    assert!(lines[1].starts_with("The server ") && lines[1].ends_with("; reset by the client"), "{page}");
    let place = |what: &str| page.find(what).expect("it is there");
    assert!(place("The server sent 4.00 kB") < place("The client sent 100 B"), "{page}");
    assert_eq!(text::verdict(&told(&handshake())), "No data was sent");
    assert_eq!(text::verdict(&told(&handshake()[..1])), "Nobody answered the SYN");
}

#[test]
fn columns_stay_apart_beyond_1000_s() {
    let mut packets = handshake();
    packets.extend([data(30_000, 0, MSS), ack(50_000, 1_000)]);
    for begin in [1_000_000_000, 20_000_000_000] {
        let seq = if begin < 2_000_000_000 { 1_000 } else { 2_000 };
        packets.extend([
            data(begin, seq, MSS),
            data(begin + 300_000, seq, MSS),
            ack(begin + 320_000, seq + 1_000),
        ]);
    }
    let page = text::page(&told(&packets));
    for line in ["    at 1000.300 s found by timeout", "    at 20000.300 s found by timeout"] {
        assert!(page.contains(line), "{page}");
    }
}
