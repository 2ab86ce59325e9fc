//! What comments say of a packet that is sent: its policies, the rule of an ACK, and what it waited
//! for.

use super::{Hosts, place, read};
use crate::capture::Capture;
use ackline_tcp_core::policy::CongestionControl;
use ackline_tcp_core::policy::cc::{
    AckSample, CongestionEvent, FlowView, Pacing, Reaction, Restart, SendDecision, Undo,
};
use ackline_tcp_core::{Duration, Rate, TxBudget, Window};

/// A congestion control that paces: a full segment per 10 ms.
#[derive(Debug)]
struct PacedControl;

impl CongestionControl for PacedControl {
    fn name(&self) -> &'static str {
        "paced"
    }
    fn decision(&self) -> SendDecision {
        let mut decision = SendDecision::window(Window::from_bytes(1 << 20), Window::MAX);
        decision.pacing = Pacing::AtRate(Rate::from_bytes_over(1460, Duration::from_millis(10)));
        decision
    }
    fn on_ack(&mut self, _: &FlowView, _: &AckSample) -> Reaction {
        Reaction::None
    }
    fn on_congestion(&mut self, _: &FlowView, _: &CongestionEvent) {}
    fn on_restart(&mut self, _: &FlowView, _: &Restart) {}
    fn checkpoint(&mut self, _: &FlowView) {}
    fn undo(&mut self, _: &FlowView, _: &Undo) {}
}

#[test]
fn a_connection_names_its_policies_when_it_begins_and_when_one_is_replaced() {
    let (_folder, path, options) = place();
    let capture = Capture::start(&path, options).expect("started");
    let mut hosts = Hosts::new(&capture, true);
    let id = hosts.send(1_000);
    hosts.here.conn(id).expect("alive").set_congestion_control(hosts.now, &|_| Box::new(PacedControl));
    assert_eq!(hosts.here.conn(id).expect("alive").write(hosts.now, &[1; 100]), Ok(100));
    hosts.settle();
    hosts.expire();
    drop(capture);
    let packets = read(&path).packets;
    let named: Vec<_> = packets.iter().filter(|packet| packet.comment.contains("policies: ")).collect();
    let [first, second] = named[..] else { panic!("{named:#?}") };
    // The ACK of the SYN-ACK, or the data that carries it.
    assert!(first.at_ns - packets[1].at_ns <= 1_000_000, "{first:?}");
    assert!(first.comment.contains("policies: cc=reno, ack=delayed, rto=conventional"), "{}", first.comment);
    assert!(
        second.comment.contains("policies: cc=paced, ack=delayed, rto=conventional"),
        "{}",
        second.comment
    );
}

#[test]
fn data_says_how_long_it_was_held_back() {
    let (_folder, path, options) = place();
    let capture = Capture::start(&path, options).expect("started");
    let mut hosts = Hosts::new(&capture, false);
    let id = hosts.send(1_000);
    hosts.here.conn(id).expect("alive").set_congestion_control(hosts.now, &|_| Box::new(PacedControl));
    assert_eq!(hosts.here.conn(id).expect("alive").write(hosts.now, &[1; 3 * 1460]), Ok(3 * 1460));
    hosts.settle();
    for _ in 0..10 {
        if hosts.here.conn(id).expect("alive").info().notsent_bytes > 0 {
            hosts.expire();
        }
    }
    drop(capture);
    let contents = read(&path);
    let held: Vec<_> = contents
        .packets
        .iter()
        .filter_map(|packet| packet.comment.split_once("held back by pacing for "))
        .map(|(_, rest)| rest.split_once(" ms").expect("a time").0.parse::<f64>().expect("a number"))
        .collect();
    assert_eq!(held.len(), 3, "{contents:#?}");
    // The ACK of each comes a millisecond after it, and takes none of the wait away.
    assert!(held.iter().all(|ms| (9.0..=10.5).contains(ms)), "{held:?}");
}

#[test]
fn a_packet_says_how_long_the_device_refused_it() {
    let (_folder, path, options) = place();
    let capture = Capture::start(&path, options).expect("started");
    let mut hosts = Hosts::new(&capture, true);
    let id = hosts.send(1_000);
    hosts.here.conn(id).expect("alive").set_nodelay(hosts.now, true);
    assert_eq!(hosts.here.conn(id).expect("alive").write(hosts.now, &[1; 100]), Ok(100));
    for time in 0..3 {
        let refused = hosts.here.transmit(hosts.now, TxBudget::UNLIMITED, |_| Err(()));
        assert!(refused.is_err(), "{time}: {refused:?}");
        hosts.now += Duration::from_millis(2);
    }
    hosts.settle();
    drop(capture);
    let contents = read(&path);
    let queued = contents.packets.iter().filter(|packet| packet.comment.contains("queued for"));
    let [packet] = &queued.collect::<Vec<_>>()[..] else { panic!("{contents:#?}") };
    assert!(packet.comment.contains("queued for 6.000 ms"), "{}", packet.comment);
    assert_eq!(packet.comment.matches("queued").count(), 1);
}

#[test]
fn an_ack_says_by_which_rule_of_which_policy_it_is_sent() {
    let (_folder, path, options) = place();
    let capture = Capture::start(&path, options).expect("started");
    let mut hosts = Hosts::new(&capture, false);
    let id = hosts.send(1_000);
    // The other side sends, and the first host's ACKs are captured.
    let peer = hosts.there.conn_ids(0).next().expect("accepted");
    let write = |hosts: &mut Hosts, bytes: usize| {
        let now = hosts.now;
        assert_eq!(hosts.there.conn(peer).expect("alive").write(now, &vec![3; bytes]), Ok(bytes));
        hosts.settle();
    };
    write(&mut hosts, 2 * 1460);
    write(&mut hosts, 100);
    hosts.expire();
    hosts.there.conn(peer).expect("alive").shutdown(hosts.now);
    hosts.settle();
    assert!(hosts.here.conn(id).is_some());
    drop(capture);
    let contents = read(&path);
    let comments: Vec<_> = contents.packets.iter().map(|packet| &*packet.comment).collect();
    let any = |text: &str| comments.iter().any(|comment| comment.contains(text));
    for (reason, rule) in
        [("ack-by-policy", "second segment"), ("ack-by-timer", "delay"), ("ack-by-obligation", "FIN")]
    {
        let expected =
            format!("sent: {reason}; class: pure-ack; connection: 0; policy: delayed; rule: {rule}");
        assert!(any(&expected), "{expected}\n{comments:#?}");
    }
}
