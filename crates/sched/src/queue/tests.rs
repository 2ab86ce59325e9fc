use super::*;
use crate::testing::{ANY, Load};
use crate::{AckPriority, Drr, Fifo};
use ackline_tcp_core::policy::sched::ControlKind;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

fn queue(limit: u32) -> Load<LimitedQueue<Fifo>> {
    Load::new(LimitedQueue::new(Fifo::default(), QueueParams { limit, ..QueueParams::default() }))
}

fn ask<S: EgressScheduler>(load: &mut Load<LimitedQueue<S>>, conn: u32, class: SegmentClass) -> Admission {
    load.scheduler.admit(Instant::ZERO, &Ask::new(Some(ConnId::for_test(conn, 0)), class, 1500))
}

fn metric<S: EgressScheduler>(queue: &LimitedQueue<S>, wanted: &str) -> f64 {
    Metrics::find(wanted, |report| queue.metrics(report)).unwrap()
}

#[test]
fn data_beyond_the_limit_waits_for_a_place_and_others_do_not() {
    let mut load = queue(2);
    load.push("d0 a0 d1", 1500, 40);
    assert_eq!(ask(&mut load, 5, SegmentClass::Data), Admission::Deferred);
    assert_eq!(ask(&mut load, 6, SegmentClass::Retransmit), Admission::Deferred);
    assert_eq!(ask(&mut load, 5, SegmentClass::PureAck), Admission::Granted);
    assert_eq!(load.scheduler.poll_resume(), None);
    load.pop_name();
    // One place, so one connection: the one that waits longest.
    assert_eq!(load.scheduler.poll_resume(), Some(ConnId::for_test(5, 0)));
    assert_eq!(load.scheduler.poll_resume(), None);
    assert_eq!(metric(&load.scheduler, "limit_deferred"), 2.0);
}

#[test]
fn a_kept_ack_finds_a_full_queue_and_one_that_is_stamped_late_does_not() {
    let params = QueueParams { limit: 2, keep_acks: true, thin: false };
    let mut load = Load::new(LimitedQueue::new(AckPriority::default(), params));
    load.push("a0 d0 a1 d1", 1500, 40);
    assert_eq!(ask(&mut load, 1, SegmentClass::PureAck), Admission::Dropped);
    assert_eq!(ask(&mut load, 1, SegmentClass::Control(ControlKind::Fin)), Admission::Granted);
    load.pop_name();
    assert_eq!(ask(&mut load, 1, SegmentClass::PureAck), Admission::Granted);
    assert_eq!(metric(&load.scheduler, "limit_dropped"), 1.0);
    let mut load = queue(1);
    load.push("a0 a1", 1500, 40);
    assert_eq!(ask(&mut load, 1, SegmentClass::PureAck), Admission::Granted);
}

#[test]
fn a_packet_that_is_taken_away_frees_its_place() {
    let mut load = queue(1);
    load.push("d0", 1500, 40);
    assert_eq!(ask(&mut load, 5, SegmentClass::Data), Admission::Deferred);
    load.scheduler.forget(Instant::ZERO, Forget::Packet { conn: None, serial: 0 });
    assert_eq!(load.scheduler.poll_resume(), Some(ConnId::for_test(5, 0)));
    assert_eq!(load.scheduler.pop(Instant::ZERO, &ANY), Popped::Empty);
}

#[test]
fn a_larger_limit_lets_in_who_waits() {
    let mut load = queue(1);
    load.push("d0", 1500, 40);
    for conn in 1..5 {
        ask(&mut load, conn, SegmentClass::Data);
    }
    load.scheduler.configure(&"limit=3".parse().unwrap()).unwrap();
    let named = [(); 3].map(|()| load.scheduler.poll_resume());
    assert_eq!(named, [Some(ConnId::for_test(1, 0)), Some(ConnId::for_test(2, 0)), None]);
}

#[test]
fn thin_means_that_acks_keep_their_numbers() {
    let with = |text: &str| QueueParams::from_params("the queue", &text.parse().unwrap());
    for (text, acks) in [
        ("", QueuedAcks::Newest),
        ("thin=on", QueuedAcks::Thinned),
        ("acks=kept", QueuedAcks::Kept),
        ("acks=kept,thin=on", QueuedAcks::Thinned),
    ] {
        let queue = LimitedQueue::new(Fifo::default(), with(text).unwrap());
        assert_eq!(queue.properties().acks, acks, "{text}");
    }
    let error = with("acks=newest,thin=on").unwrap_err().to_string();
    assert!(error.contains("do not go together"), "{error}");
    for text in ["limit=0", "limit=1000001", "acks=old", "thin=2", "x=1"] {
        assert!(with(text).is_err(), "{text}");
    }
}

/// A link that takes a packet in each of `turns` turns, bulk senders that push all that they may,
/// and one that has a packet every hundred turns: all others have had one since. How many packets
/// of each bulk sender have left, and how many turns a rare packet waited at most.
fn beside_bulk_senders(senders: u32, limit: u32, turns: u32) -> (Vec<u32>, u32) {
    let params = QueueParams { limit, ..QueueParams::default() };
    let mut load = Load::new(LimitedQueue::new(Drr::default().sparse_first(), params));
    let offer = |load: &mut Load<LimitedQueue<Drr>>, conn, most| {
        for _ in 0..most {
            if ask(load, conn, SegmentClass::Data) != Admission::Granted {
                break;
            }
            let packet = load.packet("x", SegmentClass::Data, conn, 1500);
            load.scheduler.push(Instant::ZERO, packet);
        }
    };
    let (mut sent, mut longest, mut rare_since) = (vec![0; senders as usize], 0, None);
    for sender in 0..senders {
        offer(&mut load, sender, u32::MAX);
    }
    for turn in 0..turns {
        // Once each bulk sender has had its turn as a new one.
        if turn >= 200 && turn % 100 == 0 && rare_since.is_none() {
            rare_since = Some(turn);
            offer(&mut load, senders, 1);
        }
        let Popped::Packet(packet) = load.scheduler.pop(Instant::ZERO, &ANY) else { panic!("empty") };
        load.scheduler.departed(Instant::ZERO, &packet);
        match sent.get_mut(packet.conn.unwrap().index()) {
            Some(sent) => *sent += 1,
            None => longest = longest.max(turn - rare_since.take().unwrap()),
        }
        while let Some(conn) = load.scheduler.poll_resume() {
            let sender = conn.index() as u32;
            offer(&mut load, sender, if sender == senders { 1 } else { u32::MAX });
        }
        assert!(metric(&load.scheduler, "queued_packets") <= f64::from(limit + senders + 1));
    }
    (sent, longest.max(rare_since.map_or(0, |since| turns - since)))
}

#[test]
fn a_full_queue_does_not_keep_a_sparse_connection_from_going_first() {
    for (senders, limit) in [(5, 100), (50, 10)] {
        let (sent, longest) = beside_bulk_senders(senders, limit, 5_000);
        assert!(longest <= 2, "{senders} senders, {limit} packets: a packet waited {longest} turns");
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        assert!(most - least <= most / 10, "{sent:?}");
    }
}

/// Others with one packet each keep the queue full; the one with two is named when its first has
/// left.
#[test]
fn who_waits_with_nothing_queued_is_let_in_though_the_queue_stays_full() {
    let params = QueueParams { limit: 2, ..QueueParams::default() };
    let mut load = Load::new(LimitedQueue::new(Drr::default().sparse_first(), params));
    for conn in 0..5 {
        assert_eq!(ask(&mut load, conn, SegmentClass::Data), Admission::Granted);
        let packet = load.packet("x", SegmentClass::Data, conn, 1500);
        load.scheduler.push(Instant::ZERO, packet);
    }
    assert_eq!(ask(&mut load, 0, SegmentClass::Data), Admission::Deferred);
    assert_eq!(load.scheduler.poll_resume(), None);
    load.pop_name();
    assert_eq!(load.scheduler.poll_resume(), Some(ConnId::for_test(0, 0)));
    assert_eq!(load.scheduler.poll_resume(), None);
    assert_eq!(ask(&mut load, 0, SegmentClass::Data), Admission::Granted);
}
