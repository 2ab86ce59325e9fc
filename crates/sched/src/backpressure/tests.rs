use super::*;
use crate::testing::{ANY, Load, conform};
use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::sched::SegmentClass;
use std::collections::VecDeque as Window;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

#[test]
fn it_keeps_the_rules() {
    for name in ["backpressure", "backpressure:b=3", "backpressure:b=65535"] {
        conform(name);
    }
}

/// A sender with a large window, ACKs that arrive at given instants, and a link that reports
/// departures: what a host with this scheduler does (steps 6 to 8). Gives the packets in the order
/// in which they start, with the instants.
fn transmissions(b: u32, acks_at: &[u64], count: usize) -> Vec<(String, Instant)> {
    const DATA: Duration = Duration::from_millis(120);
    const ACK: Duration = Duration::from_micros(2_240);
    let conn = ConnId::for_test(0, 0);
    let mut load = Load::new(Backpressure::new(b));
    let mut acks: Window<Instant> = acks_at.iter().map(|ms| Instant::from_millis(*ms)).collect();
    let (mut now, mut started, mut data, mut busy) =
        (Instant::ZERO, Vec::new(), 0, None::<(Instant, Descriptor)>);
    let mut names: Vec<String> = Vec::new();
    let offer = |load: &mut Load<Backpressure>, names: &mut Vec<String>, now, data: &mut u32| {
        while load.scheduler.admit(now, &Ask::new(Some(conn), SegmentClass::Data, 1500)) == Admission::Granted
        {
            let packet = load.packet("d", SegmentClass::Data, 0, 1500);
            names.push(format!("d{data}"));
            *data += 1;
            load.scheduler.push(now, packet);
        }
    };
    offer(&mut load, &mut names, now, &mut data);
    while started.len() < count {
        if busy.is_none()
            && let Popped::Packet(packet) = load.scheduler.pop(now, &ANY)
        {
            started.push((names[packet.id.serial as usize].clone(), now));
            busy = Some((now + if packet.class.is_data() { DATA } else { ACK }, packet));
        }
        let done = busy.as_ref().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        if let Some(at) = acks.pop_front_if(|at| *at < done) {
            now = at;
            let packet = load.packet("a", SegmentClass::PureAck, 1, 28);
            names.push(format!("a{}", names.iter().filter(|name| name.starts_with('a')).count()));
            load.scheduler.push(now, packet);
            continue;
        }
        let (at, packet) = busy.take().unwrap();
        now = at;
        // Step 7: departed, then whoever may go on pushes, then the next one is popped.
        load.scheduler.departed(now, &packet);
        if load.scheduler.poll_resume() == Some(conn) {
            offer(&mut load, &mut names, now, &mut data);
        }
    }
    started
}

#[test]
fn k11_data_that_is_let_in_stands_behind_the_acks_that_came_meanwhile() {
    let us = Instant::from_micros;
    let expected = [("d0", 0), ("a0", 120_000), ("a1", 122_240), ("a2", 124_480), ("d1", 126_720)];
    let expected: Vec<_> = expected.iter().map(|(name, at)| (name.to_string(), us(*at))).collect();
    assert_eq!(transmissions(1, &[10, 20, 30], 5), expected);
}

#[test]
fn k11_with_two_packets_the_second_one_goes_before_the_acks() {
    let started = transmissions(2, &[10, 20, 30], 6);
    let names: Vec<&str> = started.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["d0", "d1", "a0", "a1", "a2", "d2"]);
    let at: Vec<Instant> = started.iter().map(|(_, at)| *at).collect();
    assert_eq!([at[0], at[1], at[5]], [0, 120_000, 246_720].map(Instant::from_micros));
}

#[test]
fn step_14_each_connection_has_its_own_count() {
    let mut load = Load::new(Backpressure::new(1));
    let ask = |load: &mut Load<Backpressure>, conn| {
        load.scheduler
            .admit(Instant::ZERO, &Ask::new(Some(ConnId::for_test(conn, 0)), SegmentClass::Data, 1500))
    };
    for conn in 0..5_000 {
        assert_eq!(ask(&mut load, conn), Admission::Granted);
        let packet = load.packet("d", SegmentClass::Data, conn, 1500);
        load.scheduler.push(Instant::ZERO, packet);
        assert_eq!(ask(&mut load, conn), Admission::Deferred);
    }
    for conn in 0..5_000 {
        assert_eq!(load.scheduler.poll_resume(), None);
        load.pop_name();
        assert_eq!(load.scheduler.poll_resume(), Some(ConnId::for_test(conn, 0)));
    }
    assert!(load.scheduler.occupancy.is_empty() && load.scheduler.on_link.is_empty());
}

#[test]
fn step_12_acks_and_control_packets_are_never_held_back() {
    let mut load = Load::new(Backpressure::new(1));
    load.push("d0 d1 d2", 1500, 40);
    let ask = Ask::new(Some(ConnId::for_test(0, 0)), SegmentClass::PureAck, 40);
    assert_eq!(load.scheduler.admit(Instant::ZERO, &ask), Admission::Granted);
}

#[test]
fn step_15_what_is_purged_is_not_charged_whether_queued_or_popped() {
    let conn = ConnId::for_test(0, 0);
    let mut load = Load::new(Backpressure::new(1));
    load.push("d0 d1", 1500, 40);
    assert_eq!(load.scheduler.occupancy(conn), 2);
    let ask = Ask::new(Some(conn), SegmentClass::Data, 1500);
    assert_eq!(load.scheduler.admit(Instant::ZERO, &ask), Admission::Deferred);
    load.scheduler.forget(Instant::ZERO, Forget::Packet { conn: None, serial: 1 });
    assert_eq!((load.scheduler.occupancy(conn), load.scheduler.poll_resume()), (1, None));
    let Popped::Packet(popped) = load.scheduler.pop(Instant::ZERO, &ANY) else { panic!("empty") };
    load.scheduler.forget(Instant::ZERO, Forget::Packet { conn: None, serial: popped.id.serial });
    assert_eq!((load.scheduler.occupancy(conn), load.scheduler.poll_resume()), (0, Some(conn)));
    // A departure that is reported all the same changes nothing.
    load.scheduler.departed(Instant::ZERO, &popped);
    assert_eq!(load.scheduler.occupancy(conn), 0);
}

#[test]
fn a_larger_b_lets_in_who_waits_in_order() {
    let mut load = Load::new(Backpressure::new(1));
    let conns = [3, 1, 2].map(|index| ConnId::for_test(index, 0));
    for conn in conns {
        let packet = load.packet("d", SegmentClass::Data, conn.index() as u32, 1500);
        load.scheduler.push(Instant::ZERO, packet);
        load.scheduler.admit(Instant::ZERO, &Ask::new(Some(conn), SegmentClass::Data, 1500));
    }
    load.scheduler.configure(&"b=2".parse().unwrap()).unwrap();
    assert_eq!(
        [(); 4].map(|()| load.scheduler.poll_resume()),
        [Some(conns[0]), Some(conns[1]), Some(conns[2]), None]
    );
}
