use super::*;
use crate::shard::hub::HubPort;
use ackline_registry::Registry;
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::policy::conformance;
use ackline_tcp_core::policy::sched::{DescriptorId, SegmentClass};
use ackline_tcp_core::steering::Steering;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

const SECOND: Instant = Instant::from_secs(1);
const ANY: LinkView = LinkView::new(u32::MAX);

fn hub(shards: usize) -> Arc<Hub> {
    Arc::new(Hub::new(Steering::new(shards, &[0; 32])))
}

/// Each shard's way to the scheduler that `spec` names.
fn shards<const N: usize>(spec: &str, hub: &Arc<Hub>) -> [Box<dyn EgressScheduler>; N] {
    let make = Registry::default().sched(spec).expect("a scheduler");
    for_all(make(), hub).try_into().expect("one for each")
}

/// Data of the connection that its shard knows as `conn`.
fn data(serial: u64, conn: u32, len: u32) -> Descriptor {
    let id = DescriptorId::new(serial, SeqNum(serial as u32), len);
    Descriptor::new(id, Some(ConnId::for_test(conn, 0)), SegmentClass::Data, len)
}

fn ask(conn: u32) -> Ask {
    Ask::new(Some(ConnId::for_test(conn, 0)), SegmentClass::Data, 1_000)
}

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: StdArc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn one_shard_sees_the_scheduler_as_it_is() {
    for spec in
        ["fifo:rate=8mbit", "drr:rate=20mbit,limit=20", "kalampoukas:rate=2mbit", "backpressure:rate=1mbit"]
    {
        let make = move || {
            let [_, second, _] = shards::<3>(spec, &hub(3));
            second
        };
        for seed in 0..5 {
            conformance::egress_scheduler(&make, seed);
        }
    }
}

#[test]
fn the_rate_holds_for_all_shards_together() {
    // A byte in a microsecond.
    let mut shards = shards::<2>("fifo:rate=8mbit,burst=0", &hub(2));
    let (mut now, mut serial, mut sent) = (SECOND, 0, [0; 2]);
    let end = SECOND + Duration::from_millis(500);
    while now < end {
        let mut next = Instant::FAR_FUTURE;
        for (shard, sent) in shards.iter_mut().zip(&mut sent) {
            while shard.backlog(Scope::All).packets < 3 {
                shard.push(now, data(serial, 0, 1_000));
                serial += 1;
            }
            loop {
                match shard.pop(now, &ANY) {
                    Popped::Packet(packet) => *sent += packet.len,
                    Popped::NotBefore(at) => break next = next.min(at),
                    other => panic!("packets are queued, but {other:?}"),
                }
            }
        }
        now = next;
    }
    let popped_for_others: u32 = 2 * 3 * 1_000;
    assert!((500_000 - popped_for_others..=501_000).contains(&sent.iter().sum()), "{sent:?}");
    assert!(sent[0].abs_diff(sent[1]) <= popped_for_others, "first in, first out: {sent:?}");
}

#[test]
fn connections_have_equal_shares_whichever_shard_they_are_on() {
    let mut shards = shards::<2>("drr:rate=8mbit,burst=0", &hub(2));
    // One connection here, three there, which have the same numbers.
    let connections = [(0, 0), (1, 0), (1, 1), (1, 2)];
    let (mut serial, mut sent, mut now) = (0, [[0; 3]; 2], SECOND);
    for (shard, conn) in connections {
        for _ in 0..400 {
            shards[shard].push(now, data(serial, conn, 1_000));
            serial += 1;
        }
    }
    for _ in 0..400 {
        now += Duration::from_millis(1);
        for (shard, sent) in shards.iter_mut().zip(&mut sent) {
            while let Popped::Packet(packet) = shard.pop(now, &ANY) {
                sent[packet.conn.expect("one").index()] += packet.len;
            }
        }
    }
    for (shard, conn) in connections {
        let share = sent[shard][conn as usize];
        assert!((97_000..=103_000).contains(&share), "{sent:?}");
    }
}

#[test]
fn whose_turn_it_is_finds_its_packet_and_is_woken() {
    let hub = hub(2);
    let mut shards = shards::<2>("fifo:rate=8mbit,burst=0", &hub);
    let bell = StdArc::new(Bell::default());
    let mut hub_port = HubPort::new(hub, 0);
    let woken = || bell.0.load(Ordering::Relaxed);
    let waker = Waker::from(bell.clone());
    shards[0].push(SECOND, data(7, 4, 1_000));
    shards[1].push(SECOND, data(7, 4, 900));
    assert!(hub_port.sleep(&waker), "nobody has come yet");
    let later = SECOND + Duration::from_millis(1);
    assert_eq!(shards[1].pop(SECOND, &ANY), Popped::NotBefore(later), "the other one's was first");
    assert_eq!(woken(), 1);
    assert!(!hub_port.sleep(&waker), "it has to look");
    assert!(hub_port.take().is_none());
    assert_eq!(shards[0].backlog(Scope::All), Backlog { packets: 1, bytes: 1_000 });
    assert_eq!(shards[0].backlog(Scope::Conn(ConnId::for_test(4, 0))), Backlog { packets: 1, bytes: 1_000 });
    assert_eq!(shards[0].pop(SECOND, &ANY), Popped::Packet(data(7, 4, 1_000)));
    assert_eq!(shards[0].backlog(Scope::All), Backlog::default());
    assert!(hub_port.sleep(&waker));
    assert_eq!(shards[1].pop(later, &ANY), Popped::Packet(data(7, 4, 900)));
    assert_eq!(woken(), 1, "its own packets wake nobody");
}

#[test]
fn a_limit_is_that_of_all_and_room_that_one_makes_is_anothers() {
    let hub = hub(2);
    let mut shards = shards::<2>("fifo:rate=8mbit,limit=2", &hub);
    for serial in 0..2 {
        assert_eq!(shards[0].admit(SECOND, &ask(0)), Admission::Granted);
        shards[0].push(SECOND, data(serial, 0, 1_000));
    }
    assert_eq!(shards[1].admit(SECOND, &ask(5)), Admission::Deferred);
    assert_eq!(shards[1].poll_resume(), None);
    let bell = StdArc::new(Bell::default());
    assert!(HubPort::new(hub, 1).sleep(&Waker::from(bell.clone())));
    assert!(matches!(shards[0].pop(SECOND, &ANY), Popped::Packet(_)));
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    assert_eq!(shards[0].poll_resume(), None);
    assert_eq!(shards[1].poll_resume(), Some(ConnId::for_test(5, 0)));
    assert_eq!(shards[1].admit(SECOND, &ask(5)), Admission::Granted);
}

#[test]
fn what_becomes_void_is_nobodys_wherever_it_waits() {
    let mut shards = shards::<2>("fifo:rate=8mbit,burst=10k", &hub(2));
    for serial in 0..4 {
        shards[0].push(SECOND, data(serial, 1, 1_000));
    }
    shards[1].push(SECOND, data(0, 1, 1_000));
    assert!(matches!(shards[1].pop(SECOND, &ANY), Popped::Packet(_)), "behind four of the other shard");
    let conn = ConnId::for_test(1, 0);
    shards[0].forget(SECOND, Forget::Packet { conn: Some(conn), serial: 1 });
    assert_eq!(shards[0].backlog(Scope::All), Backlog { packets: 3, bytes: 3_000 });
    assert_eq!(shards[0].pop(SECOND, &ANY), Popped::Packet(data(0, 1, 1_000)));
    assert_eq!(shards[0].pop(SECOND, &ANY), Popped::Packet(data(2, 1, 1_000)));
    shards[0].push(SECOND, data(4, 1, 1_000));
    shards[0].forget(SECOND, Forget::Conn(conn));
    assert_eq!(shards[0].backlog(Scope::All), Backlog::default());
    assert_eq!(shards[0].pop(SECOND, &ANY), Popped::Empty);
    assert_eq!(shards[1].backlog(Scope::All), Backlog::default());
}

/// Hands each packet out again and again, and forgets nothing.
#[derive(Debug, Default)]
struct Repeating(Vec<Descriptor>);

impl EgressScheduler for Repeating {
    fn name(&self) -> &'static str {
        "repeating"
    }

    fn push(&mut self, _now: Instant, packet: Descriptor) {
        self.0.push(packet);
    }

    fn pop(&mut self, _now: Instant, _link: &LinkView) -> Popped {
        self.0.first().map_or(Popped::Empty, |packet| Popped::Packet(*packet))
    }

    fn forget(&mut self, _now: Instant, _which: Forget) {}

    fn backlog(&self, _scope: Scope) -> Backlog {
        Backlog { packets: 9, bytes: 9 }
    }
}

#[test]
fn a_packet_that_is_handed_out_again_fills_no_tray_and_keeps_nobody() {
    let mut shards: [_; 2] = for_all(Box::<Repeating>::default(), &hub(2)).try_into().expect("one for each");
    shards[0].push(SECOND, data(5, 0, 1_000));
    shards[0].push(SECOND, data(6, 0, 1_000));
    for serial in 0..3 {
        shards[1].push(SECOND, data(serial, 0, 1_000));
    }
    for _ in 0..4 {
        let Popped::Packet(packet) = shards[1].pop(SECOND, &ANY) else { panic!("an answer") };
        assert!(![5, 0, 1, 2].contains(&packet.id.serial), "{packet:?}");
    }
    assert_eq!(shards[0].pop(SECOND, &ANY), Popped::Packet(data(5, 0, 1_000)), "once");
    assert_ne!(shards[0].pop(SECOND, &ANY), Popped::Packet(data(5, 0, 1_000)));
    // What the endpoints send instead is counted by themselves.
    shards[0].forget(SECOND, Forget::Packet { conn: None, serial: 6 });
    assert_eq!(shards[0].backlog(Scope::All), Backlog::default());
    assert_eq!(shards[1].backlog(Scope::All), Backlog { packets: 3, bytes: 3_000 });
}
