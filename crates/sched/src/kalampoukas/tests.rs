use super::*;
use crate::testing::{ANY, Load, conform};
use ackline_tcp_core::ConnId;
use ackline_tcp_core::policy::sched::SegmentClass;
use proptest::prelude::*;
use std::string::{String, ToString};
use std::vec::Vec;

fn scheduler(f: &str) -> Kalampoukas {
    let params = std::format!("f={f}").parse().unwrap();
    Kalampoukas::new(KalampoukasParams::from_params("kalampoukas", &params).unwrap())
}

/// A vector: its name, f, data packets and their size, ACKs and their size, what leaves.
type Vector = (&'static str, &'static str, (u32, u32), (u32, u32), Vec<Step>);

/// What left, and `(D, A)` after it.
type Step = (String, u64, u64);

fn at(name: &str, d: u64, a: u64) -> Step {
    (name.to_string(), d, a)
}

/// ACKs `letter{first}` to `letter{last}` that are charged `step` each: A goes on from `a`, D
/// stands at `d`.
fn acks(letter: &str, first: u64, last: u64, d: u64, a: u64, step: u64) -> Vec<Step> {
    (first..=last).map(|n| (std::format!("{letter}{n}"), d, a + (n - first) * step)).collect()
}

fn pop(load: &mut Load<Kalampoukas>, count: usize) -> Vec<Step> {
    (0..count)
        .map(|_| {
            let name = load.pop_name();
            let (d, a) = load.scheduler.accounts();
            (name, d, a)
        })
        .collect()
}

/// Vectors K3 to K6 and K9.
#[test]
fn k3_to_k6_and_k9_what_leaves_and_what_is_charged() {
    let k4 = [
        std::vec![at("d0", 256, 0)],
        acks("a", 0, 8, 256, 28, 28),
        std::vec![at("a9", 0, 24), at("d1", 232, 0)],
        acks("a", 10, 17, 232, 28, 28),
        std::vec![at("a18", 0, 20), at("d2", 236, 0), at("a19", 236, 28), at("a20", 236, 56)],
    ]
    .concat();
    let k6 = [
        std::vec![at("d0", 10_496, 0)],
        acks("a", 0, 40, 10_496, 252, 252),
        std::vec![at("a41", 0, 88), at("d1", 10_408, 0), at("a42", 10_408, 252), at("a43", 10_408, 504)],
    ]
    .concat();
    assert_eq!(k6[41], at("a40", 10_496, 10_332));
    let vectors: [Vector; 5] = [
        (
            "K3",
            "1/2",
            (4, 300),
            (9, 100),
            [
                std::vec![at("d0", 300, 0), at("a0", 300, 100), at("a1", 300, 200), at("a2", 300, 300)],
                std::vec![at("d1", 300, 0)],
                acks("a", 3, 5, 300, 100, 100),
                std::vec![at("d2", 300, 0)],
                acks("a", 6, 8, 300, 100, 100),
                std::vec![at("d3", 300, 0)],
            ]
            .concat(),
        ),
        ("K4", "1/2", (4, 256), (40, 28), k4),
        (
            "K5",
            "4/5",
            (5, 1000),
            (20, 100),
            std::vec![
                at("d0", 1000, 0),
                at("a0", 1000, 400),
                at("a1", 1000, 800),
                at("a2", 0, 200),
                at("d1", 800, 0),
                at("a3", 800, 400),
                at("a4", 800, 800),
                at("d2", 1000, 0),
                at("a5", 1000, 400),
                at("a6", 1000, 800),
                at("a7", 0, 200),
                at("d3", 800, 0),
                at("a8", 800, 400),
                at("a9", 800, 800),
            ],
        ),
        ("K6", "9/50", (3, 256), (60, 28), k6),
        (
            "K9",
            "1/2",
            (4, 100),
            (8, 50),
            std::vec![
                at("d0", 100, 0),
                at("a0", 100, 50),
                at("a1", 100, 100),
                at("d1", 100, 0),
                at("a2", 100, 50),
                at("a3", 100, 100),
                at("d2", 100, 0),
                at("a4", 100, 50),
                at("a5", 100, 100),
                at("d3", 100, 0),
                at("a6", 0, 50),
                at("a7", 0, 50),
            ],
        ),
    ];
    for (name, f, (data, data_len), (acks, ack_len), expected) in vectors {
        let mut load = Load::new(scheduler(f));
        load.push_many("d", data, data_len);
        load.push_many("a", acks, ack_len);
        assert_eq!(pop(&mut load, expected.len()), expected, "{name}");
    }
}

#[test]
fn k7_a_run_of_data_leaves_one_packet_of_debt() {
    let mut load = Load::new(scheduler("1/2"));
    load.push_many("d", 3, 500);
    assert_eq!(pop(&mut load, 3), [at("d0", 500, 0), at("d1", 500, 0), at("d2", 500, 0)]);
    load.push_many("a", 4, 200);
    load.push_many("e", 2, 500);
    let expected = [
        at("a0", 500, 200),
        at("a1", 500, 400),
        at("a2", 0, 100),
        at("e0", 400, 0),
        at("a3", 400, 200),
        at("e1", 500, 0),
    ];
    assert_eq!(pop(&mut load, 6), expected);
}

#[test]
fn k8_a_run_of_acks_leaves_one_packet_of_debt() {
    let mut load = Load::new(scheduler("1/2"));
    load.push_many("a", 5, 40);
    assert_eq!(pop(&mut load, 5), acks("a", 0, 4, 0, 40, 0));
    load.push_many("d", 2, 1000);
    load.push_many("b", 40, 40);
    let expected = [
        std::vec![at("d0", 960, 0)],
        acks("b", 0, 23, 960, 40, 40),
        std::vec![at("d1", 1000, 0)],
        acks("b", 24, 39, 0, 40, 0),
    ]
    .concat();
    assert_eq!(expected[24], at("b23", 960, 960), "a tie");
    assert_eq!(pop(&mut load, 42), expected);
}

#[test]
fn k10_an_empty_queue_keeps_the_accounts() {
    let mut load = Load::new(scheduler("1/2"));
    load.push_many("d", 1, 100);
    assert_eq!(pop(&mut load, 2), [at("d0", 100, 0), at("-", 100, 0)]);
}

#[test]
fn it_keeps_the_rules() {
    for name in [
        "kalampoukas",
        "kalampoukas:f=9/50",
        "kalampoukas:f=0.8,intra=drr",
        "kalampoukas:f=auto,down=5mbit",
        "kalampoukas:f=auto,goal=0.9",
    ] {
        conform(name);
    }
}

#[test]
fn step_22_another_share_empties_the_accounts_and_the_same_one_does_not() {
    let mut load = Load::new(scheduler("1/2"));
    load.push_many("d", 4, 300);
    load.push_many("a", 9, 100);
    pop(&mut load, 2);
    for (params, accounts) in [("f=2/4", (300, 100)), ("", (300, 100)), ("f=4/5", (0, 0))] {
        load.scheduler.configure(&params.parse().unwrap()).unwrap();
        assert_eq!(load.scheduler.accounts(), accounts, "{params}");
    }
    assert_eq!(pop(&mut load, 2), [at("d1", 300, 0), at("a1", 0, 100)]);
}

#[test]
fn an_adapted_share_keeps_debts_in_bytes() {
    let mut load = Load::new(scheduler("1/2"));
    load.push_many("d", 4, 300);
    load.push_many("a", 9, 100);
    pop(&mut load, 2);
    for (f, accounts) in
        [("1/2", (300, 100)), ("4/5", (300, 400)), ("1/5", (1_200, 100)), ("1/2", (300, 100))]
    {
        load.scheduler.reweigh(f.parse().unwrap());
        assert_eq!(load.scheduler.accounts(), accounts, "{f}");
    }
    assert_eq!(pop(&mut load, 2), [at("a1", 300, 200), at("a2", 300, 300)]);
}

#[test]
fn a_refused_configure_changes_nothing() {
    let mut subject = scheduler("1/2");
    let before = *subject.params();
    for text in [
        "f=0",
        "f=1",
        "f=2/1",
        "intra=lifo",
        "f=1/3,intra=x",
        "goal=0.5",
        "f=auto,goal=1",
        "down=0",
        "down=5mbit",
        "f=auto,down=0",
        "g=1",
    ] {
        subject.configure(&text.parse().unwrap()).unwrap_err();
        assert_eq!(*subject.params(), before, "{text}");
    }
}

#[test]
fn step_23_within_a_class_connections_take_turns_where_asked() {
    let mut load = Load::new(scheduler("1/2"));
    for (name, conn) in [("x0", 7), ("x1", 7), ("x2", 7), ("y0", 8), ("y1", 8)] {
        let packet = load.packet(name, SegmentClass::PureAck, conn, 40);
        load.scheduler.push(Instant::ZERO, packet);
    }
    // Packets that wait already are sorted, too, and none of a connection overtakes another one.
    load.scheduler.configure(&"intra=drr".parse().unwrap()).unwrap();
    let names = load.pop_names(6);
    let order = |conn: &str| names.split(' ').filter(|name| name.starts_with(conn)).collect::<String>();
    assert_eq!((order("x").as_str(), order("y").as_str()), ("x0x1x2", "y0y1"));
    assert!(names.ends_with(" -"));
}

#[test]
fn a_reordered_queue_goes_back_to_the_order_of_arrival() {
    let mut load = Load::new(scheduler("1/2"));
    load.scheduler.configure(&"intra=drr".parse().unwrap()).unwrap();
    for (name, conn) in [("x0", 7), ("x1", 7), ("y0", 8), ("x2", 7)] {
        let packet = load.packet(name, SegmentClass::Data, conn, 1500);
        load.scheduler.push(Instant::ZERO, packet);
    }
    load.scheduler.configure(&"intra=fifo".parse().unwrap()).unwrap();
    load.scheduler.forget(Instant::ZERO, Forget::Packet { conn: None, serial: 1 });
    assert_eq!(load.pop_names(4), "x0 y0 x2 -");
}

#[test]
fn step_24_what_is_purged_is_not_charged() {
    let mut load = Load::new(scheduler("1/2"));
    load.push_many("d", 3, 300);
    load.push_many("a", 3, 100);
    pop(&mut load, 2);
    load.scheduler.forget(Instant::ZERO, Forget::Conn(ConnId::for_test(0, 0)));
    assert_eq!(load.scheduler.accounts(), (300, 100));
    assert_eq!(pop(&mut load, 3), [at("a1", 0, 100), at("a2", 0, 100), at("-", 0, 100)]);
}

/// A packet that leaves with other bytes than it was queued with is charged for those with which it
/// leaves.
#[test]
fn what_leaves_is_what_is_charged() {
    let mut load = Load::new(scheduler("4/5"));
    load.push_many("d", 3, 1000);
    load.push_many("a", 9, 100);
    assert_eq!(pop(&mut load, 2), [at("d0", 1000, 0), at("a0", 1000, 400)]);
    let ack = load.packet("A", SegmentClass::PureAck, 1, 100);
    load.scheduler.repriced(Instant::ZERO, &ack, 125);
    assert_eq!(load.scheduler.accounts(), (1000, 500));
    // Two ACKs of 125 would be a tie.
    assert_eq!(pop(&mut load, 1), [at("a1", 1000, 900)]);
    load.scheduler.repriced(Instant::ZERO, &ack, 125);
    assert_eq!(pop(&mut load, 1), [at("d1", 1000, 0)]);
    assert_eq!(pop(&mut load, 1), [at("a2", 1000, 400)]);
    load.scheduler.repriced(Instant::ZERO, &ack, 300);
    assert_eq!(load.scheduler.accounts(), (0, 200), "across the other account");
    load.scheduler.repriced(Instant::ZERO, &ack, 75);
    assert_eq!(load.scheduler.accounts(), (0, 100));
}

/// One event of a random load.
#[derive(Clone, Debug)]
enum Happens {
    Data(u32, u32),
    Ack(u32, u32),
    Pop,
    Forget(u64),
    ForgetConn(u32),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => (0_u32..4, 41_u32..=1500).prop_map(|(conn, len)| Happens::Data(conn, len)),
        5 => (0_u32..4, 1_u32..=120).prop_map(|(conn, len)| Happens::Ack(conn, len)),
        7 => Just(Happens::Pop),
        1 => (0_u64..400).prop_map(Happens::Forget),
        1 => (0_u32..4).prop_map(Happens::ForgetConn),
    ]
}

/// An interval in which both classes waited all the time: what each sent, as running extremes of
/// `wa * ack_bytes - wd * data_bytes`.
#[derive(Default)]
struct Backlogged {
    sum: i128,
    low: i128,
    high: i128,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Steps 20, 21, 23 and 24 on random arrivals for a random share: bounded accounts, the
    /// guaranteed share over any interval, no idling, and the order within a connection.
    #[test]
    fn steps_20_and_21_bounds_share_and_order(
        (p, q) in (1_u32..2000, 2_u32..2000).prop_filter("below 1", |(p, q)| p < q),
        intra in prop_oneof![Just(Intra::Fifo), Just(Intra::Drr)],
        events in proptest::collection::vec(happens(), 1..600),
    ) {
        let share = Share::new(p, q).unwrap();
        let mut load = Load::new(Kalampoukas::new(KalampoukasParams { share, intra, ..KalampoukasParams::default() }));
        let (wd, wa) = (i128::from(share.data_weight()), i128::from(share.ack_weight()));
        let (mut largest_data, mut largest_ack) = (0_i128, 0_i128);
        let mut queued: Vec<Descriptor> = Vec::new();
        let mut interval = Backlogged::default();
        for event in events {
            let waits = |class| queued.iter().any(|packet| Class::of(packet.class) == class);
            let both = waits(Class::Data) && waits(Class::Ack);
            if !both {
                interval = Backlogged::default();
            }
            match event {
                Happens::Data(conn, len) | Happens::Ack(conn, len) => {
                    let is_data = matches!(event, Happens::Data(..));
                    let class = if is_data { SegmentClass::Data } else { SegmentClass::PureAck };
                    let largest = if is_data { &mut largest_data } else { &mut largest_ack };
                    *largest = (*largest).max(i128::from(len));
                    let packet = load.packet("x", class, conn, len);
                    load.scheduler.push(Instant::ZERO, packet);
                    queued.push(packet);
                }
                Happens::Pop => match load.scheduler.pop(Instant::ZERO, &ANY) {
                    Popped::Packet(packet) => {
                        let earlier = queued.iter().position(|other| {
                            other.conn == packet.conn && Class::of(other.class) == Class::of(packet.class)
                        });
                        // The first of its connection and class, and in FIFO order the first of its
                        // class.
                        prop_assert_eq!(earlier.map(|place| queued[place].id.serial), Some(packet.id.serial));
                        let of_class = |other: &&Descriptor| Class::of(other.class) == Class::of(packet.class);
                        if intra == Intra::Fifo {
                            prop_assert_eq!(queued.iter().find(of_class), Some(&packet));
                        }
                        queued.retain(|other| other.id.serial != packet.id.serial);
                        if both {
                            let len = i128::from(packet.len);
                            interval.sum += match Class::of(packet.class) {
                                Class::Ack => wa * len,
                                Class::Data => -wd * len,
                            };
                            interval.low = interval.low.min(interval.sum);
                            interval.high = interval.high.max(interval.sum);
                            let bound = largest_data * wd + largest_ack * wa;
                            prop_assert!(
                                interval.high - interval.low <= bound,
                                "{} beyond {bound}", interval.high - interval.low
                            );
                        }
                    }
                    // Work conservation.
                    other => prop_assert!(queued.is_empty(), "{other:?} with {} queued", queued.len()),
                },
                Happens::Forget(serial) => {
                    let conn = queued.iter().find(|packet| packet.id.serial == serial).and_then(|packet| packet.conn);
                    load.scheduler.forget(Instant::ZERO, Forget::Packet { conn, serial });
                    queued.retain(|packet| packet.id.serial != serial);
                }
                Happens::ForgetConn(conn) => {
                    let conn = ConnId::for_test(conn, 0);
                    let before = load.scheduler.accounts();
                    load.scheduler.forget(Instant::ZERO, Forget::Conn(conn));
                    prop_assert_eq!(load.scheduler.accounts(), before);
                    queued.retain(|packet| packet.conn != Some(conn));
                }
            }
            let (d, a) = load.scheduler.accounts();
            let most = (largest_data * wd).max(largest_ack * wa);
            if largest_data + largest_ack > 0 {
                prop_assert!(i128::from(a) < most + (largest_ack * wa).max(1));
                prop_assert!(i128::from(d) < most + (largest_data * wd).max(1));
            }
        }
    }
}
