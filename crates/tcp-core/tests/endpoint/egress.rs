//! The way out: a full device, departures, shapers, deferral.

use crate::ip::stray::ping;
use crate::net::{A, B, Link, Net, Plan, Wire, address, bytes_from, host_config, socket};
use ackline_tcp_core::events::WakeReason;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::sched::{
    Admission, Arrival, Ask, Backlog, Bypass, Descriptor, EgressScheduler, Forget, LinkView, Popped,
    QueuedAcks, SchedulerProperties, Scope, SegmentClass,
};
use ackline_tcp_core::policy::{Metrics, Params, SpecError};
use ackline_tcp_core::{ConnConfig, ConnId, Duration, Instant, Target, TxBudget};
use std::collections::VecDeque;
use std::sync::Arc;

const LONG: Duration = Duration::from_secs(3_600);
const MIB: u64 = 1 << 20;

fn transfer(net: Net, bytes: u64) -> Net {
    transfer_over(net, bytes, 4)
}

fn transfer_over(mut net: Net, bytes: u64, connections: usize) -> Net {
    net.hosts[B].serve = Plan::send(bytes / 4);
    net.listen(B, 80, ConnConfig::default());
    for _ in 0..connections {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(bytes));
    }
    let done = net.run_until(LONG, |net| {
        net.hosts
            .iter()
            .all(|host| host.streams.len() == connections && host.streams.values().all(|it| it.ended))
    });
    assert!(done, "stuck at {:?}: {:#?}", net.now, net.hosts.each_ref().map(|host| &host.streams));
    for (host, bytes) in [(A, bytes / 4), (B, bytes)] {
        assert!(net.hosts[host].streams.values().all(|stream| stream.read == bytes));
    }
    net
}

#[test]
fn a_device_that_refuses_loses_nothing() {
    for (seed, base) in [Net::new as fn(u64, Link) -> Net, Net::offloaded].into_iter().enumerate() {
        let net = transfer(base(seed as u64, Link { refused: 300, ..Link::default() }), MIB);
        let counters = net.hosts[A].endpoint.counters();
        assert!(counters.tx_refused > 5, "{}", counters.tx_refused);
        assert_eq!(counters.tcp_retrans_segs, 0, "a refused packet is not lost");
    }
}

/// Packets that the device refused wait there, and not since the clock began.
#[test]
fn waiting_for_a_full_device_is_counted_from_the_refusal() {
    let mut net = Net::offloaded(5, Link { refused: 300, ..Link::default() });
    net.now = Instant::from_secs(100_000);
    let net = transfer(net, MIB);
    let data = net.hosts[A].endpoint.egress_stats().data;
    assert!(data.queued > 0, "{data:?}");
    assert!(data.delay_max < Duration::from_secs(60), "{data:?}");
}

#[test]
fn a_refused_packet_is_held_and_goes_first() {
    let mut net = Net::new(1, Link::default());
    net.listen(B, 80, ConnConfig::default());
    let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 100 });
    net.run_until(LONG, |net| net.hosts[A].events.len() == 1);
    let now = net.now;
    let _ = net.endpoint(A).conn(id);
    let written = net.endpoint(A).conn(id).map(|mut conn| conn.write(now, &[7; 5_000]));
    // The harness has closed the sending side of an application with nothing to send.
    assert!(written.is_some());
    let mut offered: Vec<Vec<Wire>> = vec![];
    for _ in 0..3 {
        let mut packets = vec![];
        let result = net.endpoint(A).transmit(now, TxBudget::UNLIMITED, |packet| {
            packets.push(Wire::of(&packet));
            Err("full")
        });
        if packets.is_empty() {
            assert!(result.is_ok());
            continue;
        }
        assert_eq!(result, Err("full"));
        assert_eq!(packets.len(), 1, "one try per call");
        offered.push(packets);
    }
    assert!(offered.windows(2).all(|pair| pair[0] == pair[1]), "the same packet each time");
}

#[test]
fn departures_are_reported_one_by_one() {
    let link = Link { serialise: Some(Duration::from_micros(50)), ..Link::default() };
    let net = transfer(Net::new(3, link), MIB);
    assert_eq!(net.hosts[A].endpoint.counters().tcp_retrans_segs, 0);
}

#[test]
fn a_budget_ends_a_call_and_says_so() {
    let mut net = Net::new(4, Link::default());
    for _ in 0..10 {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1));
    }
    let now = net.now;
    for left in [7, 4, 1] {
        let report = net.endpoint(A).transmit(now, TxBudget::packets(3), |_| Ok::<(), ()>(())).unwrap();
        assert_eq!((report.packets, report.more), (3, true), "{left} are left");
    }
    let report = net.endpoint(A).transmit(now, TxBudget::packets(3), |_| Ok::<(), ()>(())).unwrap();
    assert_eq!((report.packets, report.more, report.bytes), (1, false, 60));
}

/// One packet per interval, in order.
#[derive(Debug)]
pub(crate) struct Metronome {
    queue: VecDeque<Descriptor>,
    interval: Duration,
    next: Instant,
    acks: QueuedAcks,
    /// More than this many packets of data are deferred.
    limit: usize,
    waiting: VecDeque<ConnId>,
    departed: Vec<u64>,
}

impl Metronome {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            queue: VecDeque::new(),
            interval,
            next: Instant::ZERO,
            acks: QueuedAcks::Newest,
            limit: usize::MAX,
            waiting: VecDeque::new(),
            departed: vec![],
        }
    }
}

impl EgressScheduler for Metronome {
    fn name(&self) -> &'static str {
        "metronome"
    }

    fn admit(&mut self, _now: Instant, ask: &Ask) -> Admission {
        if ask.class.is_data() && self.queue.len() >= self.limit {
            self.waiting.extend(ask.conn);
            return Admission::Deferred;
        }
        Admission::Granted
    }

    fn push(&mut self, _now: Instant, packet: Descriptor) {
        self.queue.push_back(packet);
    }

    fn pop(&mut self, now: Instant, _link: &LinkView) -> Popped {
        if self.queue.is_empty() {
            return Popped::Empty;
        }
        if now < self.next {
            return Popped::NotBefore(self.next);
        }
        self.next = now + self.interval;
        self.queue.pop_front().map_or(Popped::Empty, Popped::Packet)
    }

    fn departed(&mut self, _now: Instant, packet: &Descriptor) {
        self.departed.push(packet.id.serial);
    }

    fn poll_resume(&mut self) -> Option<ConnId> {
        if self.queue.len() < self.limit { self.waiting.pop_front() } else { None }
    }

    fn forget(&mut self, _now: Instant, which: Forget) {
        self.queue.retain(|packet| match which {
            Forget::Packet { serial, .. } => packet.id.serial != serial,
            Forget::Conn(conn) => packet.conn != Some(conn),
        });
        if let Forget::Conn(conn) = which {
            self.waiting.retain(|waiting| *waiting != conn);
        }
    }

    fn backlog(&self, _scope: Scope) -> Backlog {
        let bytes = self.queue.iter().map(|packet| u64::from(packet.len)).sum();
        Backlog { packets: self.queue.len(), bytes }
    }

    fn properties(&self) -> SchedulerProperties {
        SchedulerProperties::new().with_acks(self.acks)
    }
}

#[test]
fn a_shaper_sets_the_wake_up() {
    let interval = Duration::from_millis(2);
    let configs = [host_config(A), host_config(B)];
    let mut net = Net::with(5, Link::default(), configs, || Box::new(Metronome::new(interval)));
    for _ in 0..3 {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1));
    }
    assert_eq!(net.intercept(A).len(), 1);
    let wakeup = net.endpoint(A).poll_timeout().unwrap();
    assert_eq!((wakeup.at, wakeup.reason, wakeup.conn), (net.now + interval, WakeReason::Shaper, None));
    net.now = wakeup.at;
    assert_eq!(net.intercept(A).len(), 1);
    assert_eq!(
        net.endpoint(A).scheduler().backlog(Scope::All).packets,
        1,
        "all that waits stands in the queue"
    );
}

/// What the driver was to come for is gone. It comes for something else, later.
#[test]
fn nobody_is_late_for_a_packet_that_was_given_up() {
    let interval = Duration::from_millis(2);
    let configs = [host_config(A), host_config(B)];
    let mut net = Net::with(5, Link::default(), configs, || Box::new(Metronome::new(interval)));
    let [_, second] = [(); 2].map(|()| net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1)));
    assert_eq!(net.intercept(A).len(), 1);
    let now = net.now;
    net.endpoint(A).conn(second).unwrap().abort(now);
    assert_eq!(net.intercept(A).len(), 0);
    net.now += Duration::from_millis(500);
    net.inject(A, &ping(address(B), address(A), 10));
    assert_eq!(net.intercept(A).len(), 1);
    assert_eq!(net.endpoint(A).counters().egress_late, 0);
}

#[test]
fn what_arises_while_the_link_is_busy_takes_its_place_at_once() {
    let configs = [host_config(A), host_config(B)];
    let make = || Box::new(Metronome::new(Duration::ZERO)) as Box<dyn EgressScheduler>;
    let mut net = Net::with(11, Link::default(), configs, make);
    let connect = |net: &mut Net, packets| {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1));
        let now = net.now;
        let budget = TxBudget::with_departures(packets);
        let report = net.endpoint(A).transmit(now, budget, |_| Ok::<(), ()>(())).unwrap();
        (report.packets, net.endpoint(A).scheduler().backlog(Scope::All).packets)
    };
    assert_eq!(connect(&mut net, 1), (1, 0), "the first SYN is on the link");
    assert_eq!(connect(&mut net, 0), (0, 1));
    assert_eq!(connect(&mut net, 0), (0, 2));
}

#[test]
fn a_shaped_host_delivers_everything() {
    for serialise in [None, Some(Duration::from_micros(10))] {
        let link = Link { serialise, ..Link::default() };
        let make = || Box::new(Metronome::new(Duration::from_micros(100))) as Box<dyn EgressScheduler>;
        transfer(Net::with(6, link, [host_config(A), host_config(B)], make), MIB / 4);
    }
}

#[test]
fn a_retransmission_that_became_void_at_a_full_device_stops_nothing() {
    let make = || Box::new(Metronome::new(Duration::from_nanos(1))) as Box<dyn EgressScheduler>;
    let mut net = Net::with(8, Link::default(), [host_config(A), host_config(B)], make);
    net.listen(B, 80, ConnConfig::default());
    let to = Target::from(socket(B, 80));
    let now = net.now;
    let id = net.endpoint(A).connect(now, to, Arc::new(ConnConfig::default())).unwrap();
    net.run(Duration::from_millis(500));
    net.write(A, id, &bytes_from(0)[..30_000]);
    let mut lost = net.intercept(A);
    // The retransmission timer expires, and the device is full.
    let full = |net: &mut Net| net.hosts[A].endpoint.transmit(net.now, TxBudget::UNLIMITED, |_| Err(()));
    loop {
        let wakeup = net.endpoint(A).poll_timeout().unwrap();
        net.now = wakeup.at;
        net.hosts[A].endpoint.handle_timeout(wakeup.at);
        if wakeup.reason == WakeReason::Rto {
            break;
        }
        lost.extend(net.intercept(A));
    }
    full(&mut net).unwrap_err();
    // What the retransmission repeats was only late.
    for late in &lost[..2] {
        net.inject(B, &late.bytes);
    }
    for ack in net.intercept(B) {
        net.inject(A, &ack.bytes);
    }
    net.now += Duration::from_millis(1);
    full(&mut net).unwrap_err();
    net.run(Duration::from_secs(60));
    let info = net.endpoint(A).conn(id).unwrap().info();
    assert_eq!((info.bytes_acked, info.pipe), (30_000, 0), "{info:?}");
}

/// A scheduler whose ACKs keep their numbers.
pub(crate) fn keeps_numbers() -> Box<dyn EgressScheduler> {
    let mut scheduler = Metronome::new(Duration::from_micros(100));
    scheduler.acks = QueuedAcks::Kept;
    Box::new(scheduler)
}

#[test]
fn acks_that_keep_their_numbers_deliver_everything() {
    for refused in [0, 200] {
        let link = Link { refused, loss: 5, ..Link::default() };
        transfer(Net::with(7, link, [host_config(A), host_config(B)], keeps_numbers), MIB / 4);
    }
}

/// The acknowledgment number of an IPv4 packet without options.
fn ack_number(wire: &Wire) -> u32 {
    u32::from_be_bytes(wire.bytes[28..32].try_into().unwrap())
}

#[test]
fn a_queued_ack_gives_its_place_to_a_newer_one_but_for_those_that_the_peer_counts() {
    let hour = Duration::from_secs(3_600);
    let make = || {
        let mut scheduler = Metronome::new(Duration::ZERO);
        scheduler.acks = QueuedAcks::Thinned;
        Box::new(scheduler) as Box<dyn EgressScheduler>
    };
    let mut net = Net::with(12, Link::default(), [host_config(A), host_config(B)], make);
    net.listen(B, 80, ConnConfig::default());
    let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::default());
    for (from, to) in [(A, B), (B, A), (A, B)] {
        for wire in net.intercept(from) {
            net.inject(to, &wire.bytes);
        }
    }
    let now = net.now;
    net.write(A, id, &[7; 14_480]);
    let data = net.intercept(A);
    assert_eq!(data.len(), 10);
    // B's link is stuck; what it would send waits.
    let stuck = |net: &mut Net, wire: &Wire| {
        net.inject(B, &wire.bytes);
        net.endpoint(B).transmit(now, TxBudget::with_departures(0), |_| Ok::<(), ()>(())).unwrap();
        let waiting = net.endpoint(B).scheduler().backlog(Scope::All).packets;
        (waiting, net.endpoint(B).counters().egress_thinned)
    };
    // ACKs of every second segment, in order: one waits, the newest.
    assert_eq!([0, 1, 2, 3].map(|i| stuck(&mut net, &data[i])), [(0, 0), (1, 0), (1, 0), (1, 1)]);
    // Past a hole, each segment is answered by an ACK that the peer counts: none takes another
    // one's place.
    assert_eq!([5, 6, 7].map(|i| stuck(&mut net, &data[i])), [(2, 1), (3, 1), (4, 1)]);
    // The hole is filled: this ACK may not overtake those, but its successor takes its place.
    assert_eq!([4, 8, 9].map(|i| stuck(&mut net, &data[i])), [(5, 1), (5, 1), (5, 2)]);
    net.now = now + hour;
    let start = ack_number(&data[0]);
    let acks = net.intercept(B);
    assert_eq!(start, ack_number(&data[9]), "A has received nothing since");
    let seq = |wire: &Wire| u32::from_be_bytes(wire.bytes[24..28].try_into().unwrap());
    let covered: Vec<u32> = acks.iter().map(|ack| ack_number(ack).wrapping_sub(seq(&data[0]))).collect();
    assert_eq!(covered, [4, 4, 4, 4, 10].map(|segments: u32| segments * 1_448));
}

/// What a host sends within a budget, and whether pure ACKs stayed.
fn sends(net: &mut Net, host: usize, budget: TxBudget) -> (Vec<Wire>, bool) {
    let (now, mut packets) = (net.now, vec![]);
    let report = net.endpoint(host).transmit(now, budget, |packet| {
        packets.push(Wire::of(&packet));
        Ok::<(), ()>(())
    });
    (packets, report.unwrap().kept_acks)
}

#[test]
fn a_kept_ack_rides_on_the_answer_or_leaves_with_the_next_call() {
    let keeping = TxBudget::UNLIMITED.keeping_acks();
    let mut net = Net::new(13, Link::default());
    net.listen(B, 80, ConnConfig::default());
    let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::default());
    for (from, to) in [(A, B), (B, A)] {
        for wire in net.intercept(from) {
            net.inject(to, &wire.bytes);
        }
    }
    // The SYN-ACK was answered by nobody yet; then the application writes.
    assert_eq!(sends(&mut net, A, keeping), (vec![], true));
    net.write(A, id, &[7; 100]);
    let (answer, _) = sends(&mut net, A, keeping);
    assert_eq!(answer.len(), 1);
    net.inject(B, &answer[0].bytes);
    assert_eq!(sends(&mut net, A, TxBudget::UNLIMITED), (vec![], false), "all is said");
    net.intercept(B);

    net.write(A, id, &[7; 14_480]);
    let data = net.intercept(A);
    // Two segments are to be acknowledged, and nobody answers.
    net.inject(B, &data[0].bytes);
    net.inject(B, &data[1].bytes);
    assert_eq!(sends(&mut net, B, keeping), (vec![], true));
    assert_eq!(sends(&mut net, B, keeping), (vec![], true));
    let (acks, kept) = sends(&mut net, B, TxBudget::UNLIMITED);
    assert_eq!((acks.len(), kept), (1, false));
    // A hole is reported at once.
    net.inject(B, &data[4].bytes);
    let (acks, kept) = sends(&mut net, B, keeping);
    assert_eq!((acks.len(), kept), (1, false));
}

#[test]
fn a_driver_that_reports_no_departure_costs_no_more_than_was_agreed() {
    let configs = [A, B].map(|host| {
        let mut config = host_config(host);
        config.max_on_wire = 4;
        config
    });
    let make = || Box::new(Metronome::new(Duration::ZERO)) as Box<dyn EgressScheduler>;
    let mut net = Net::with(13, Link::default(), configs, make);
    for _ in 0..10 {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1));
    }
    let now = net.now;
    for sent in 1_u64..=10 {
        let report =
            net.endpoint(A).transmit(now, TxBudget::with_departures(1), |_| Ok::<(), ()>(())).unwrap();
        assert_eq!(report.packets, 1);
        assert_eq!(net.endpoint(A).counters().departures_missing, sent.saturating_sub(4));
    }
}

#[test]
fn what_leaves_is_counted_by_kind_and_what_waited_by_its_delay() {
    let interval = Duration::from_millis(10);
    let configs = [host_config(A), host_config(B)];
    let mut net = Net::with(14, Link::default(), configs, || Box::new(Metronome::new(interval)));
    net.listen(B, 80, ConnConfig::default());
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(20 * 1_448));
    net.run(Duration::from_secs(10));
    let stats = net.endpoint(A).egress_stats();
    assert_eq!((stats.data.queued, stats.data.bytes), (20, 20 * 1_500));
    // The last one carries the FIN.
    assert_eq!((stats.data.packets, stats.control.packets, stats.retransmit.packets), (20, 1, 0));
    // The window of ten is queued at once, and one leaves every 10 ms.
    assert!(stats.data.delay_max >= Duration::from_millis(90), "{stats:?}");
    assert!(stats.data.delay_p50 < stats.data.delay_p90 && stats.data.delay_p90 <= stats.data.delay_p99);
    let acks = net.endpoint(B).egress_stats().ack;
    assert!(acks.packets > 5 && acks.delay_max <= interval, "{acks:?}");
}

/// SYN-ACKs and RSTs take the scheduler, which others bypass; they wait there only if the device is
/// full.
#[test]
fn a_packet_without_a_connection_waits_in_no_queue_if_the_device_has_room() {
    for (refused, waits) in [(0, false), (300, true)] {
        let mut net = Net::offloaded(3, Link { refused, ..Link::default() });
        net.listen(B, 80, ConnConfig::default());
        for _ in 0..20 {
            net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(0));
            net.connect(A, socket(B, 81), ConnConfig::default(), Plan::send(0));
        }
        net.run(Duration::from_secs(10));
        let control = net.endpoint(B).egress_stats().control;
        assert!(control.packets >= 40, "{control:?}");
        assert_eq!(control.queued > 0, waits, "{control:?}");
    }
}

#[test]
fn a_scheduler_that_would_choose_chooses_while_the_device_is_full() {
    /// Lets the shortest packet leave first.
    #[derive(Debug, Default)]
    struct ShortFirst(Vec<Descriptor>);
    impl EgressScheduler for ShortFirst {
        fn name(&self) -> &'static str {
            "short-first"
        }
        fn properties(&self) -> SchedulerProperties {
            SchedulerProperties::new().with_bypass(Bypass::UntilDeviceFull)
        }
        fn push(&mut self, _now: Instant, packet: Descriptor) {
            self.0.push(packet);
        }
        fn pop(&mut self, _now: Instant, _link: &LinkView) -> Popped {
            let shortest = (0..self.0.len()).min_by_key(|place| self.0[*place].len);
            shortest.map_or(Popped::Empty, |place| Popped::Packet(self.0.remove(place)))
        }
        fn forget(&mut self, _now: Instant, which: Forget) {
            panic!("nothing becomes void here: {which:?}");
        }
        fn backlog(&self, _scope: Scope) -> Backlog {
            Backlog { packets: self.0.len(), bytes: 0 }
        }
    }
    let make = || Box::new(ShortFirst::default()) as Box<dyn EgressScheduler>;
    let mut net = Net::with(15, Link::default(), [host_config(A), host_config(B)], make);
    net.listen(B, 80, ConnConfig::default());
    let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::default());
    for (from, to) in [(A, B), (B, A), (A, B)] {
        for wire in net.intercept(from) {
            net.inject(to, &wire.bytes);
        }
    }
    net.write(A, id, &[7; 5 * 1_448]);
    let now = net.now;
    assert_eq!(net.endpoint(A).transmit(now, TxBudget::UNLIMITED, |_| Err("full")), Err("full"));
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan::default());
    let lengths: Vec<usize> = net.intercept(A).iter().map(|wire| wire.bytes.len()).collect();
    assert_eq!(lengths, [1_500, 60, 1_500, 1_500, 1_500, 1_500], "the refused one, the SYN, and the others");
}

/// A sender that could always send more does not keep the scheduler's queue alive.
#[test]
fn once_the_device_has_room_again_packets_go_past_the_scheduler() {
    /// First in, first out, but only of what the device does not take.
    #[derive(Debug, Default)]
    struct Behind(Fifo);
    impl EgressScheduler for Behind {
        fn name(&self) -> &'static str {
            "behind"
        }
        fn properties(&self) -> SchedulerProperties {
            SchedulerProperties::new().with_bypass(Bypass::UntilDeviceFull)
        }
        fn push(&mut self, now: Instant, packet: Descriptor) {
            self.0.push(now, packet);
        }
        fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
            self.0.pop(now, link)
        }
        fn forget(&mut self, now: Instant, which: Forget) {
            self.0.forget(now, which);
        }
        fn backlog(&self, scope: Scope) -> Backlog {
            self.0.backlog(scope)
        }
    }
    const PACKETS: usize = 40;
    let mut config = ConnConfig::default();
    config.initial_window = PACKETS as u32;
    let make = || Box::new(Behind::default()) as Box<dyn EgressScheduler>;
    let mut net = Net::with(15, Link::default(), [host_config(A), host_config(B)], make);
    net.listen(B, 80, config.clone());
    let id = net.connect(A, socket(B, 80), config, Plan::default());
    for (from, to) in [(A, B), (B, A), (A, B)] {
        for wire in net.intercept(from) {
            net.inject(to, &wire.bytes);
        }
    }
    net.write(A, id, &[7; PACKETS * 1_448]);
    let now = net.now;
    assert_eq!(net.endpoint(A).transmit(now, TxBudget::UNLIMITED, |_| Err("full")), Err("full"));
    let mut left = 0;
    while let report = net.endpoint(A).transmit(now, TxBudget::packets(8), |_| Ok::<_, ()>(())).unwrap()
        && report.packets > 0
    {
        left += report.packets;
    }
    assert_eq!(left, PACKETS);
    let data = net.endpoint(A).egress_stats().data;
    assert!(data.queued < 16, "{data:?}");
}

#[test]
fn deferred_connections_are_resumed() {
    for (serialise, limit) in
        [(None, 1), (Some(Duration::from_micros(10)), 3), (Some(Duration::from_micros(300)), 8)]
    {
        let make = || {
            let mut scheduler = Metronome::new(Duration::from_micros(100));
            scheduler.limit = limit;
            Box::new(scheduler) as Box<dyn EgressScheduler>
        };
        let link = Link { serialise, loss: 5, refused: 50, ..Link::default() };
        transfer(Net::with(8, link, [host_config(A), host_config(B)], make), MIB / 4);
    }
}

#[test]
fn a_scheduler_is_told_of_every_byte_that_leaves() {
    /// Counts what it let out, by class: ACKs first.
    #[derive(Debug, Default)]
    struct Counting {
        inner: Fifo,
        charged: [i64; 2],
        corrections: u64,
    }
    impl Counting {
        fn charge(&mut self, packet: &Descriptor, len: i64) {
            self.charged[usize::from(packet.class != SegmentClass::PureAck)] += len;
        }
    }
    impl EgressScheduler for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }
        fn push(&mut self, now: Instant, packet: Descriptor) {
            self.inner.push(now, packet);
        }
        fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
            let popped = self.inner.pop(now, link);
            if let Popped::Packet(packet) = &popped {
                self.charge(packet, i64::from(packet.len));
            }
            popped
        }
        fn repriced(&mut self, _now: Instant, packet: &Descriptor, len: u32) {
            self.corrections += 1;
            self.charge(packet, i64::from(len) - i64::from(packet.len));
        }
        fn forget(&mut self, now: Instant, which: Forget) {
            self.inner.forget(now, which);
        }
        fn backlog(&self, scope: Scope) -> Backlog {
            self.inner.backlog(scope)
        }
        fn metrics(&self, report: &mut Metrics<'_>) {
            report.number("acks", self.charged[0] as f64);
            report.number("others", self.charged[1] as f64);
            report.number("corrections", self.corrections as f64);
        }
    }
    // ACKs wait for the link while losses change what they have to say.
    let link = Link { loss: 20, late: 20, serialise: Some(Duration::from_micros(100)), ..Link::default() };
    let make = || Box::new(Counting::default()) as Box<dyn EgressScheduler>;
    let mut net = transfer(Net::with(12, link, [host_config(A), host_config(B)], make), MIB / 2);
    let mut corrections = 0.0;
    for host in [A, B] {
        let stats = net.endpoint(host).egress_stats();
        let mut told = std::collections::BTreeMap::new();
        net.endpoint(host).scheduler_metrics(&mut |metric| {
            told.insert(metric.name, metric.value);
        });
        let others = stats.data.bytes + stats.retransmit.bytes + stats.control.bytes;
        assert_eq!((told["acks"], told["others"]), (stats.ack.bytes as f64, others as f64));
        corrections += told["corrections"];
    }
    assert!(corrections > 10.0, "{corrections}");
}

#[test]
fn a_scheduler_is_told_of_what_arrives_if_it_asks() {
    /// First in, first out; sums up what it is told.
    #[derive(Debug, Default)]
    struct Listening {
        inner: Fifo,
        asks: bool,
        segments: u32,
        bytes: u64,
    }
    impl EgressScheduler for Listening {
        fn name(&self) -> &'static str {
            "listening"
        }
        fn push(&mut self, now: Instant, packet: Descriptor) {
            self.inner.push(now, packet);
        }
        fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
            self.inner.pop(now, link)
        }
        fn arrived(&mut self, _now: Instant, arrival: &Arrival) {
            self.segments += arrival.segments;
            self.bytes += u64::from(arrival.len);
        }
        fn forget(&mut self, now: Instant, which: Forget) {
            self.inner.forget(now, which);
        }
        fn backlog(&self, scope: Scope) -> Backlog {
            self.inner.backlog(scope)
        }
        fn properties(&self) -> SchedulerProperties {
            SchedulerProperties::new().with_arrivals(self.asks)
        }
        fn metrics(&self, report: &mut Metrics<'_>) {
            report.number("segments", self.segments);
            report.count("bytes", self.bytes);
        }
    }
    for asks in [false, true] {
        let make = move || Box::new(Listening { asks, ..Listening::default() }) as Box<dyn EgressScheduler>;
        let mut net = transfer(Net::with(12, Link::default(), [host_config(A), host_config(B)], make), MIB);
        // Nothing is lost, so what one host sends as data arrives at the other one as such.
        for (from, to) in [(A, B), (B, A)] {
            let sent = net.endpoint(from).egress_stats().data;
            let mut told = std::collections::BTreeMap::new();
            net.endpoint(to).scheduler_metrics(&mut |metric| {
                told.insert(metric.name, metric.value);
            });
            let expected = if asks { (sent.packets as f64, sent.bytes as f64) } else { (0.0, 0.0) };
            assert_eq!((told["segments"], told["bytes"]), expected, "asks: {asks}");
        }
    }
}

#[test]
fn straight_and_scheduled_packets_are_the_same() {
    /// A FIFO that must be asked about each packet.
    #[derive(Debug, Default)]
    struct Opaque(Fifo);
    impl EgressScheduler for Opaque {
        fn name(&self) -> &'static str {
            "opaque"
        }
        fn push(&mut self, now: Instant, packet: Descriptor) {
            self.0.push(now, packet);
        }
        fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
            self.0.pop(now, link)
        }
        fn forget(&mut self, now: Instant, which: Forget) {
            self.0.forget(now, which);
        }
        fn backlog(&self, scope: Scope) -> Backlog {
            self.0.backlog(scope)
        }
    }
    let run = |seed, make: fn() -> Box<dyn EgressScheduler>| {
        let link = Link { loss: 20, late: 20, duplicates: 20, ..Link::default() };
        // Of one connection: between several, whose turn it is depends on how much leaves in one
        // go.
        let net = transfer_over(Net::with(seed, link, [host_config(A), host_config(B)], make), 2 * MIB, 1);
        (net.digest, net.left, net.now)
    };
    for seed in 9..13 {
        let straight = run(seed, || Box::new(Fifo::default()));
        assert_eq!(straight, run(seed, || Box::new(Opaque::default())), "seed {seed}");
    }
}

#[test]
fn only_data_is_asked_to_wait() {
    /// Defers whatever it is asked for, and names nobody.
    #[derive(Debug, Default)]
    struct Never {
        inner: Fifo,
        pushed: Vec<SegmentClass>,
    }
    impl EgressScheduler for Never {
        fn name(&self) -> &'static str {
            "never"
        }
        fn admit(&mut self, _now: Instant, _ask: &Ask) -> Admission {
            Admission::Deferred
        }
        fn push(&mut self, now: Instant, packet: Descriptor) {
            self.pushed.push(packet.class);
            self.inner.push(now, packet);
        }
        fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
            self.inner.pop(now, link)
        }
        fn forget(&mut self, now: Instant, which: Forget) {
            self.inner.forget(now, which);
        }
        fn backlog(&self, scope: Scope) -> Backlog {
            self.inner.backlog(scope)
        }
    }
    for serialise in [None, Some(Duration::from_micros(10))] {
        let make = || Box::new(Never::default()) as Box<dyn EgressScheduler>;
        let link = Link { serialise, loss: 10, ..Link::default() };
        transfer(Net::with(10, link, [host_config(A), host_config(B)], make), MIB / 8);
    }
}

#[test]
fn a_scheduler_that_lets_packets_past_is_left_out_until_it_is_configured_otherwise() {
    /// Says that it would do nothing until it is configured, and counts what it is given.
    #[derive(Debug, Default)]
    struct Transparent {
        inner: Fifo,
        pushed: u64,
        configured: bool,
    }
    impl EgressScheduler for Transparent {
        fn name(&self) -> &'static str {
            "transparent"
        }
        fn properties(&self) -> SchedulerProperties {
            let bypass = if self.configured { Bypass::Never } else { Bypass::Always };
            SchedulerProperties::new().with_bypass(bypass)
        }
        fn configure(&mut self, _params: &Params) -> Result<(), SpecError> {
            self.configured = true;
            Ok(())
        }
        fn push(&mut self, now: Instant, packet: Descriptor) {
            self.pushed += 1;
            self.inner.push(now, packet);
        }
        fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
            self.inner.pop(now, link)
        }
        fn forget(&mut self, now: Instant, which: Forget) {
            self.inner.forget(now, which);
        }
        fn backlog(&self, scope: Scope) -> Backlog {
            self.inner.backlog(scope)
        }
        fn metrics(&self, report: &mut Metrics<'_>) {
            report.number("pushed", self.pushed as f64);
        }
    }
    let make = || Box::new(Transparent::default()) as Box<dyn EgressScheduler>;
    let mut net = transfer(Net::with(11, Link::default(), [host_config(A), host_config(B)], make), MIB);
    let pushed = |net: &mut Net| {
        let mut pushed = 0.0;
        net.endpoint(A).scheduler_metrics(&mut |metric| pushed = metric.value);
        pushed
    };
    assert_eq!((pushed(&mut net), net.left[A] > 1_000), (0.0, true));
    net.endpoint(A).scheduler().configure(&Params::default()).unwrap();
    let before = net.left[A];
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1));
    net.run(Duration::from_secs(1));
    let since = (net.left[A] - before) as f64;
    assert!(since > 0.0 && pushed(&mut net) == since, "{} of {since}", pushed(&mut net));
}
