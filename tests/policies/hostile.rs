//! Policies that want to stop the connection. None may: the core keeps its own rules.

use crate::path::{Path, PathConfig};
use crate::{MINUTE, config, schedulers};
use ackline::core::policy::NewAckPolicy;
use ackline::core::policy::ack::{AckPlan, AckPolicy, DataArrival, RecvView, SoftObligations};
use ackline::core::policy::builtin::Fifo;
use ackline::core::policy::cc::{
    AckSample, Clock, CongestionControl, CongestionEvent, FlowView, Pacing, Reaction, Restart, Revise,
    SendDecision, Undo,
};
use ackline::core::policy::rto::{AckFacts, RtoGate, RtoPhase, RtoResponse, RtoStep, RtoView};
use ackline::core::policy::sched::{
    Admission, Ask, Backlog, Descriptor, DescriptorId, EgressScheduler, Forget, LinkView, Popped, Scope,
    SegmentClass,
};
use ackline::core::{
    AcceptConfig, ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Instant, ListenOn, Rate, RxPacket,
    SeqNum, TxBudget, Window,
};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

fn defaults() -> ConnConfig {
    config("cubic", "linux-like", "linux")
}

/// Answers always the same, and has waived what can be waived.
#[derive(Debug)]
struct Stubborn(AckPlan);

impl AckPolicy for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }

    fn waives(&self) -> SoftObligations {
        SoftObligations::ALL
    }

    fn on_data(&mut self, _view: &RecvView, _data: &DataArrival) -> AckPlan {
        self.0
    }

    fn on_timeout(&mut self, _view: &RecvView) -> AckPlan {
        self.0
    }
}

/// Plans that acknowledge nothing.
pub(crate) fn plans() -> [AckPlan; 4] {
    let never = Instant::FAR_FUTURE;
    [AckPlan::Withhold { until: never }, AckPlan::Keep, AckPlan::By(never), AckPlan::By(Instant::ZERO)]
}

/// An ACK policy that answers always `plan`.
pub(crate) fn stubborn(plan: AckPlan) -> Arc<NewAckPolicy> {
    Arc::new(move |_| Box::new(Stubborn(plan)))
}

#[test]
fn an_ack_policy_that_never_acknowledges_cannot_stop_a_transfer() {
    for plan in plans() {
        let mut config = defaults();
        config.policies.ack = stubborn(plan);
        let lossy = PathConfig { loss: 10, ..PathConfig::default() };
        let mut path = Path::new(lossy, config, 100_000, schedulers("fifo"));
        path.finish_within(MINUTE);
        if let AckPlan::Withhold { .. } = plan {
            assert!(path.server.counters().ack_hold_truncated > 0);
            assert!(path.server.counters().ack_obligations_waived > 0);
        }
    }
}

/// What an endpoint sends now.
fn packets(now: Instant, from: &mut Endpoint) -> Vec<Vec<u8>> {
    let mut taken = vec![];
    let sent = from.transmit(now, TxBudget::UNLIMITED, |packet| {
        taken.push([packet.header, packet.payload[0], packet.payload[1]].concat());
        Ok::<(), Infallible>(())
    });
    sent.expect("everything is taken");
    taken
}

#[test]
fn a_peer_that_repeats_itself_cannot_fill_the_queue_of_acks_that_keep_their_numbers() {
    let host = |last: u8, scheduler: &str| {
        let mut config = EndpointConfig::default();
        config.addresses.push([10, 0, 0, last].into());
        let [scheduler, _] = schedulers(scheduler);
        Endpoint::new(config, scheduler, [last; 32])
    };
    for params in ["acks=kept", "thin=on"] {
        let (mut peer, mut us) =
            (host(1, "fifo"), host(2, &format!("fifo:rate=1kbit,burst=0,limit=8,{params}")));
        let (now, conn) = (Instant::from_secs(1), Arc::new(defaults()));
        us.listen(now, ListenOn::Port(80), AcceptConfig::new(conn.clone())).unwrap();
        let to = SocketAddr::from(([10, 0, 0, 2], 80));
        let id = peer.connect(now, to.into(), conn).unwrap();
        for _ in 0..2 {
            for packet in packets(now, &mut peer) {
                us.ingest(now, RxPacket::new(&packet));
            }
            for packet in packets(now, &mut us) {
                peer.ingest(now, RxPacket::new(&packet));
            }
        }
        peer.conn(id).unwrap().write(now, &[7; 1_000]).unwrap();
        let data = packets(now, &mut peer);
        for _ in 0..2_000 {
            us.ingest(now, RxPacket::new(&data[0]));
            assert!(packets(now, &mut us).is_empty(), "the link is busy with the SYN-ACK");
        }
        let (queued, dropped) = (us.scheduler().backlog(Scope::All).packets, us.counters().egress_dropped);
        assert!(queued == 8 && dropped > 1_900, "{params}: {queued} queued, {dropped} dropped");
    }
}

/// Refuses all data, and never says when it may ask again.
#[derive(Debug, Default)]
struct Refusing(Fifo);

impl EgressScheduler for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn admit(&mut self, _now: Instant, ask: &Ask) -> Admission {
        if ask.class.is_data() { Admission::Deferred } else { Admission::Granted }
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

#[test]
fn a_scheduler_that_defers_everything_cannot_stop_a_transfer() {
    let refusing = || -> Box<dyn EgressScheduler> { Box::new(Refusing::default()) };
    let mut path = Path::new(PathConfig::default(), defaults(), 100_000, [refusing(), refusing()]);
    path.finish_within(MINUTE);
}

/// A window that never moves.
#[derive(Debug)]
struct Fixed(Window);

impl CongestionControl for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn decision(&self) -> SendDecision {
        SendDecision::window(self.0, self.0)
    }

    fn on_ack(&mut self, _view: &FlowView, _ack: &AckSample) -> Reaction {
        Reaction::None
    }

    fn on_congestion(&mut self, _view: &FlowView, _event: &CongestionEvent) {}
    fn on_restart(&mut self, _view: &FlowView, _restart: &Restart) {}
    fn checkpoint(&mut self, _view: &FlowView) {}
    fn undo(&mut self, _view: &FlowView, _undo: &Undo) {}
}

fn run_fixed(window: Window, size: u64, limit: Duration) -> Duration {
    let mut config = defaults();
    config.policies.cc = Arc::new(move |_| Box::new(Fixed(window)));
    let mut path = Path::new(PathConfig::default(), config, size, schedulers("fifo"));
    let start = path.now;
    path.finish_within(limit);
    path.now.since(start)
}

#[test]
fn a_window_far_below_a_segment_slows_a_transfer_down_and_does_not_stop_it() {
    let smss = 1448;
    for (window, limit) in [(Window::from_bytes(smss / 4), 60), (Window::from_raw(1), 36_000)] {
        run_fixed(window, 10 * smss, Duration::from_secs(limit));
    }
}

#[test]
fn an_endless_window_is_bounded_by_the_receiver() {
    let time = run_fixed(Window::MAX, 10_000_000, Duration::from_secs(60));
    assert!(time > Duration::from_millis(20));
}

/// Asks to be called again at an instant that has passed, and makes up its decisions.
#[derive(Debug)]
struct Erratic(u64);

impl Erratic {
    fn next(&mut self) {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
    }
}

impl CongestionControl for Erratic {
    fn name(&self) -> &'static str {
        "erratic"
    }

    fn decision(&self) -> SendDecision {
        let roll = self.0 >> 32;
        let window = Window::from_bytes(1 << (roll % 24));
        let mut decision = SendDecision::window(window, Window::from_bytes(roll));
        decision.pacing = match roll >> 8 & 3 {
            0 => Pacing::Unpaced,
            1 => Pacing::WindowOverRtt { gain: (roll >> 12) as u16 },
            2 => Pacing::AtRate(Rate::from_bytes_per_second(roll)),
            _ => Pacing::Gap { time: Duration::from_nanos(roll), over: window },
        };
        decision.clock =
            if roll >> 10 & 7 == 0 { Clock::Departure { max_outstanding: 3 } } else { Clock::Ack };
        decision.revise = [Revise::Retroactive, Revise::NextDeparture, Revise::Banked][(roll % 3) as usize];
        decision.burst = (roll >> 13 & 7) as u32;
        decision
    }

    fn on_ack(&mut self, _view: &FlowView, _ack: &AckSample) -> Reaction {
        self.next();
        Reaction::Reduced
    }

    fn on_congestion(&mut self, _view: &FlowView, _event: &CongestionEvent) {
        self.next();
    }

    fn on_restart(&mut self, _view: &FlowView, _restart: &Restart) {}
    fn checkpoint(&mut self, _view: &FlowView) {}
    fn undo(&mut self, _view: &FlowView, _undo: &Undo) {}

    fn next_timeout(&self) -> Option<Instant> {
        Some(Instant::from_secs(1))
    }

    fn on_timeout(&mut self, _view: &FlowView) {
        self.next();
    }
}

#[test]
fn an_erratic_congestion_control_neither_stops_nor_livelocks_a_transfer() {
    for seed in 0..20 {
        let mut config = defaults();
        config.policies.cc = Arc::new(move |_| Box::new(Erratic(seed)));
        let lossy = PathConfig { loss: 20, late: 20, seed, ..PathConfig::default() };
        let mut path = Path::new(lossy, config, 100_000, schedulers("fifo"));
        path.finish_within(Duration::from_secs(3_600));
    }
}

/// Sends nothing at a timeout, closes the gate and waits for evidence for ever.
#[derive(Debug)]
struct Undecided;

impl RtoResponse for Undecided {
    fn name(&self) -> &'static str {
        "undecided"
    }

    fn on_rto(&mut self, _view: &RtoView) -> RtoStep {
        let mut step = RtoStep::consume();
        step.gate = RtoGate::Closed;
        step
    }

    fn on_ack(&mut self, _view: &RtoView, _ack: &AckFacts) -> Option<RtoStep> {
        Some(RtoStep::consume())
    }

    fn phase(&self) -> RtoPhase {
        RtoPhase::Probe
    }
}

#[test]
fn an_rto_response_that_never_decides_is_replaced() {
    let mut config = defaults();
    config.policies.rto = Arc::new(|| Box::new(Undecided));
    let lossy = PathConfig { loss: 100, ..PathConfig::default() };
    let mut path = Path::new(lossy, config, 100_000, schedulers("fifo"));
    path.finish_within(Duration::from_secs(3_600));
}

/// Says that packets wait for an instant that has come.
#[derive(Debug, Default)]
struct Stuttering(Fifo, u32);

impl EgressScheduler for Stuttering {
    fn name(&self) -> &'static str {
        "stuttering"
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        self.0.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        self.1 += 1;
        if self.1.is_multiple_of(2) && self.0.backlog(Scope::All).packets > 0 {
            return Popped::NotBefore(now);
        }
        self.0.pop(now, link)
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        self.0.forget(now, which);
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.0.backlog(scope)
    }
}

#[test]
fn a_scheduler_that_waits_for_the_past_does_not_livelock_a_host() {
    let stuttering = || -> Box<dyn EgressScheduler> { Box::new(Stuttering::default()) };
    let mut path = Path::new(PathConfig::default(), defaults(), 100_000, [stuttering(), stuttering()]);
    path.finish_within(MINUTE);
}

/// What a scheduler says instead of the truth, whenever it is asked for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// It has nothing.
    Empty,
    /// They wait, for an instant that has come.
    Past,
    /// The one that it has handed out first.
    First,
    /// One that nobody has pushed, of a connection that does not exist.
    Invented,
    /// A true one with all else changed: what the core knows of it counts.
    Altered,
    /// A true one is lost, if it has no data.
    Lost,
}

/// Lies every time, or every other time, and forgets nothing that it is told to.
#[derive(Debug)]
struct Lying {
    lie: Lie,
    always: bool,
    asked: u32,
    first: Option<Descriptor>,
    inner: Fifo,
}

impl Lying {
    fn lie(&mut self, now: Instant, link: &LinkView) -> Popped {
        let conn = Some(ConnId::for_test(3, 9));
        match self.lie {
            Lie::Empty => Popped::Empty,
            Lie::Past => Popped::NotBefore(now),
            Lie::First => {
                if self.first.is_none()
                    && let Popped::Packet(first) = self.inner.pop(now, link)
                {
                    self.first = Some(first);
                }
                self.first.map_or(Popped::Empty, Popped::Packet)
            }
            Lie::Invented => {
                let id = DescriptorId::new(u64::from(self.asked) << 32, SeqNum(self.asked), 1_000);
                Popped::Packet(Descriptor::new(id, conn, SegmentClass::Data, 1_040))
            }
            Lie::Altered => match self.inner.pop(now, link) {
                Popped::Packet(packet) => {
                    let id = DescriptorId::new(packet.id.serial, packet.id.seq + 7, 3);
                    Popped::Packet(Descriptor::new(id, conn, SegmentClass::PureAck, 1))
                }
                popped => popped,
            },
            Lie::Lost => match self.inner.pop(now, link) {
                Popped::Packet(packet) if !packet.class.is_data() => Popped::Drop(packet),
                popped => popped,
            },
        }
    }
}

impl EgressScheduler for Lying {
    fn name(&self) -> &'static str {
        "lying"
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        self.inner.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        self.asked += 1;
        if self.always || self.asked.is_multiple_of(2) {
            return self.lie(now, link);
        }
        self.inner.pop(now, link)
    }

    fn forget(&mut self, _now: Instant, _which: Forget) {}

    fn backlog(&self, scope: Scope) -> Backlog {
        self.inner.backlog(scope)
    }
}

#[test]
fn what_a_scheduler_says_of_its_queue_cannot_stop_repeat_or_lose_anything() {
    for lie in [Lie::Empty, Lie::Past, Lie::First, Lie::Invented, Lie::Altered, Lie::Lost] {
        for always in [false, true] {
            let lying = || -> Box<dyn EgressScheduler> {
                Box::new(Lying { lie, always, asked: 0, first: None, inner: Fifo::default() })
            };
            let mut path = Path::new(PathConfig::default(), defaults(), 100_000, [lying(), lying()]);
            path.finish_within(MINUTE);
            for host in [&path.client, &path.server] {
                let counters = host.counters();
                assert_eq!(counters.tcp_retrans_segs, 0, "{lie:?} {always}: no packet was lost");
                assert_eq!(counters.egress_overruled > 0, lie != Lie::Altered, "{lie:?} {always}");
            }
        }
    }
}
