//! The machine on a path that proptest chooses: every step is one of the transitions of sections
//! 5.2 to 5.5, all of them are reached, and what must hold in each state holds.

use super::super::*;
use super::SMSS;
use ackline_tcp_core::policy::cc::SsthreshRule;
use ackline_tcp_core::seq::SeqNum;
use ackline_tcp_core::{Duration, Instant};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::string::String;

/// What happens next on the path.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An ACK of a number of segments, so many microseconds later, at a rate of the bottleneck in
    /// percent; the flow has more to send or not.
    Ack {
        segments: u32,
        after: u64,
        percent: u64,
        limited: bool,
    },
    /// A round trip in which so much of the flight is lost, in percent.
    Lossy {
        lost: u32,
    },
    Undo,
    Exit,
    Rto,
    Mark,
    Idle {
        millis: u64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        40 => (1..40_u32, 0..30_000_u64, 50..140_u64, any::<bool>())
            .prop_map(|(segments, after, percent, limited)| Event::Ack { segments, after, percent, limited }),
        20 => (5..40_u32, 90_000..130_000_u64, 95..105_u64)
            .prop_map(|(segments, after, percent)| Event::Ack { segments, after, percent, limited: true }),
        2 => (1..30_u32).prop_map(|lost| Event::Lossy { lost }),
        1 => Just(Event::Undo),
        2 => Just(Event::Exit),
        1 => Just(Event::Rto),
        1 => Just(Event::Mark),
        2 => (1..8_000_u64).prop_map(|millis| Event::Idle { millis }),
    ]
}

/// A flow over a bottleneck of 10 MB/s and 100 ms, as far as its congestion control can see it.
struct Flow {
    bbr: Bbr,
    view: FlowView,
    nxt: SeqNum,
    lost: u32,
    /// From which state to which, and by what.
    seen: BTreeSet<(String, String)>,
}

const BOTTLENECK: u64 = 10_000_000;

impl Flow {
    fn new(seed: u64) -> Self {
        let mut init = CcInit::new(Instant::ZERO, SMSS, Window::from_bytes(10_000));
        init.srtt = Some(Duration::from_millis(100));
        init.seed = seed;
        let view = FlowView::new(Instant::ZERO, SMSS);
        let bbr = Bbr::new(&init, BbrParams::default());
        Self { bbr, view, nxt: SeqNum(0), lost: 0, seen: BTreeSet::new() }
    }

    /// Tells of an event, and checks what must hold after it.
    fn tell(&mut self, by: &str, act: impl FnOnce(&mut Bbr, &FlowView)) {
        let (before, window) = (self.bbr.state, self.bbr.cwnd());
        act(&mut self.bbr, &self.view);
        let after = self.bbr.state;
        if before != after {
            self.seen.insert((std::format!("{before:?} -> {after:?}"), by.into()));
            assert!(may_follow(before, after, by), "{before:?} -> {after:?} by {by}");
        }
        let Bbr { model, full_pipe, control, .. } = &self.bbr;
        assert_eq!(model.bw.max(model.max_bw.get()), model.max_bw.get(), "no more than was ever seen");
        assert!(full_pipe.reached || matches!(after, State::Startup | State::ProbeRtt), "{after:?}");
        assert!(control.pacing_rate > 0 && control.quantum >= 2_000, "{control:?}");
        if by == "ack" {
            let longterm = model.inflight_longterm.max(4_000);
            assert!(self.bbr.cwnd() >= 4_000, "four segments keep the ACKs coming");
            assert!(!after.is_probe_bw() || self.bbr.cwnd() <= longterm, "{after:?}: {:?}", self.bbr);
            if after == State::ProbeRtt {
                assert!(self.bbr.cwnd() <= self.bbr.probe_rtt_cwnd());
            }
        }
        if by == "lost" || by == "mark" || by == "rto" {
            assert!(self.bbr.cwnd() <= window, "{by} raised the window");
        }
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Ack { segments, after, percent, limited } => self.ack(segments, after, percent, limited),
            Event::Lossy { lost } => self.lose(lost),
            Event::Undo => {
                self.view.phase = Phase::Open;
                self.tell("undo", |bbr, view| bbr.undo(view, &Undo::All));
            }
            Event::Exit => {
                self.view.phase = Phase::Open;
                self.tell("exit", |bbr, view| bbr.on_recovery_exit(view));
            }
            Event::Rto => {
                self.view.phase = Phase::Loss;
                self.view.pipe = 0;
                self.tell("rto", |bbr, view| {
                    bbr.checkpoint(view);
                    let window = Window::from_bytes(1_000);
                    let ssthresh = SsthreshRule::ByCc;
                    let event = CongestionEvent::Timeout { flight_size: 0, first: true, window, ssthresh };
                    bbr.on_congestion(view, &event);
                });
            }
            Event::Mark => self.tell("mark", |bbr, view| bbr.on_congestion(view, &CongestionEvent::Ecn)),
            Event::Idle { millis } => {
                self.view.now += Duration::from_millis(millis);
                self.view.pipe = 0;
                self.view.app_limited = true;
                self.tell("idle", |bbr, view| {
                    bbr.on_sent(view, &SentSegment::new(view.snd_nxt, SMSS, false))
                });
                self.view.app_limited = false;
            }
        }
    }

    /// The window, but no more than twice what the path holds.
    fn flight(&self) -> u32 {
        u32::try_from(self.bbr.cwnd()).unwrap_or(u32::MAX).min(2_000 * SMSS)
    }

    /// The flow fills its window; the oldest of it is acknowledged.
    fn ack(&mut self, segments: u32, after: u64, percent: u64, limited: bool) {
        self.view.now += Duration::from_micros(after);
        let flight = self.flight();
        let acked = (segments * SMSS).min(flight);
        let prior_delivered = self.view.delivered;
        self.view.delivered += u64::from(acked);
        self.view.pipe = if limited { flight - acked } else { (flight / 4).saturating_sub(acked) };
        self.view.cwnd_limited = limited;
        let mut seen = AckSample::new(acked, segments);
        seen.prior_pipe = flight;
        seen.rtt = Some(Duration::from_micros(100_000 + after / 10));
        let interval = Duration::from_millis(100);
        let offered = self.bbr.control.pacing_rate.min(BOTTLENECK * percent / 100);
        // A sample covers a round trip.
        let mut rate = RateSample::new(offered / 10, interval, prior_delivered.saturating_sub(offered / 20));
        (rate.tx_in_flight, rate.lost) = (flight, self.lost.min(flight));
        rate.app_limited = !limited && percent < 60;
        seen.rate = Some(rate);
        self.tell("ack", |bbr, view| {
            bbr.on_ack(view, &seen);
        });
        if self.bbr.loss_round.start {
            self.lost = 0;
        }
    }

    fn lose(&mut self, percent: u32) {
        let flight = self.flight().max(8 * SMSS);
        let segments = (flight / SMSS * percent / 100).clamp(1, 200);
        for i in 0..segments {
            self.lost += SMSS;
            // Every second segment: each is a range of its own.
            self.nxt += 2 * SMSS;
            let mut lost = LostRecord::new(self.nxt, SMSS, flight);
            lost.lost_since_sent = (i + 1) * SMSS;
            self.tell("lost", |bbr, view| bbr.on_lost(view, &lost));
        }
        if !matches!(self.view.phase, Phase::Recovery | Phase::Loss) {
            self.view.phase = Phase::Recovery;
            self.tell("loss", |bbr, view| {
                bbr.checkpoint(view);
                bbr.on_congestion(view, &CongestionEvent::Loss { prior_pipe: flight });
            });
        }
    }
}

/// The transitions of the draft, and what may cause each. One ACK can pass through Drain and Down,
/// and find that it is time to probe.
fn may_follow(before: State, after: State, by: &str) -> bool {
    use State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
    match (before, after) {
        (Startup, Drain) | (Startup | Drain, Down | Cruise | Refill) if by == "ack" => true,
        (Down, Cruise | Refill) | (Cruise, Refill) | (Refill, Up) => by == "ack" || by == "undo",
        (Up, Down) => matches!(by, "ack" | "lost" | "mark"),
        (_, ProbeRtt) => by == "ack",
        (ProbeRtt, Cruise | Startup) => matches!(by, "ack" | "idle"),
        (Drain | Down | Cruise | Refill | Up, Startup) | (Drain | Up, Refill) => by == "undo",
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_step_is_a_transition_of_the_draft(
        seed in any::<u64>(),
        events in prop::collection::vec(event(), 1..600),
    ) {
        let mut flow = Flow::new(seed);
        for event in events {
            flow.step(event);
        }
    }
}

/// A round trip in which the flow fills its window, in ten ACKs.
fn round(flow: &mut Flow) {
    let segments = (flow.flight() / SMSS / 10).max(1);
    for _ in 0..10 {
        flow.step(Event::Ack { segments, after: 10_000, percent: 100, limited: true });
    }
}

fn rounds_until(flow: &mut Flow, state: State) {
    for _ in 0..200 {
        if flow.bbr.state == state {
            return;
        }
        round(flow);
    }
    panic!("{state:?} is not reached: {:?}", flow.bbr);
}

/// B2 to B19: each of the transitions happens in a flow that gives it its cause.
#[test]
fn every_transition_is_reached() {
    let mut flow = Flow::new(1);
    // B3, B18: losses end Startup, and are none after all.
    for _ in 0..40 {
        flow.step(Event::Lossy { lost: 30 });
        round(&mut flow);
        if flow.bbr.state != State::Startup {
            break;
        }
    }
    assert_ne!(flow.bbr.state, State::Startup, "B3");
    flow.step(Event::Undo);
    assert_eq!(flow.bbr.state, State::Startup, "B18");
    // B2, B4 to B9, B12, B15, B17: a whole cycle without losses.
    rounds_until(&mut flow, State::Cruise);
    rounds_until(&mut flow, State::Up);
    rounds_until(&mut flow, State::Cruise);
    // B13, B18: losses end Up, and are none after all.
    rounds_until(&mut flow, State::Up);
    flow.step(Event::Lossy { lost: 30 });
    assert_eq!(flow.bbr.state, State::Down, "B13");
    flow.step(Event::Undo);
    assert_eq!(flow.bbr.state, State::Refill, "B18");
    rounds_until(&mut flow, State::Up);
    flow.step(Event::Lossy { lost: 30 });
    assert!(flow.bbr.cycle.was_too_high);
    flow.step(Event::Exit);
    // B10, B14: the next probe ends at the bound, and the one after it follows at once.
    rounds_until(&mut flow, State::Up);
    rounds_until(&mut flow, State::Down);
    assert!(!flow.bbr.cycle.was_too_high);
    // B15, B17: RTTs that are never lower end in ProbeRTT, which the end of idleness ends, too.
    rounds_until(&mut flow, State::ProbeRtt);
    rounds_until(&mut flow, State::Cruise);
    rounds_until(&mut flow, State::ProbeRtt);
    flow.step(Event::Ack { segments: 1, after: 1_000, percent: 100, limited: false });
    flow.step(Event::Idle { millis: 300 });
    assert_eq!(flow.bbr.state, State::Cruise, "B17, B19");
    let seen: BTreeSet<&str> = flow.seen.iter().map(|(step, _)| step.as_str()).collect();
    for step in ["Cruise -> Refill", "Refill -> Up", "Up -> Down", "Down -> Refill", "ProbeRtt -> Cruise"] {
        assert!(seen.contains(step), "{step} is not in {seen:?}");
    }
}
