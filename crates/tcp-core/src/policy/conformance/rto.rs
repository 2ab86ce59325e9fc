//! The rules of responses to retransmission timeouts.

use super::rng::Rng;
use super::{check_configure, check_metrics};
use crate::policy::NewRtoResponse;
use crate::policy::cc::{FlowView, Phase};
use crate::policy::rto::{
    AckFacts, RtoCc, RtoGate, RtoPhase, RtoResponse, RtoSend, RtoStep, RtoTags, RtoTimer, RtoView,
};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Window;
use alloc::boxed::Box;
use alloc::string::String;

const STEPS: u32 = 2_000;

/// Drives a response through a valid sender: departures, timeouts in every phase, ACKs that
/// advance, duplicate, SACK, DSACK and echo old timestamps.
///
/// In addition to the rules for [every policy](super):
/// - before the first timeout the phase is [`RtoPhase::Open`] and no ACK is consumed;
/// - a timeout opens an episode (the phase is not `Open` after it) and does not stop the timer;
/// - once everything outstanding at the timeout, and what the timeout sent, is acknowledged, the
///   phase is `Open`;
/// - [`RtoSend::Again`] names an outstanding sequence number; [`RtoGate::NewOnly`] starts within
///   the outstanding data or at its end, and so does the data spared by [`RtoTags::LostBefore`];
/// - proposed windows are not zero.
///
/// # Panics
/// If a rule is broken.
#[track_caller]
pub fn rto_response(make: &NewRtoResponse, seed: u64) {
    let mut sender = Sender::new(make, seed);
    for step in 0..STEPS {
        sender.step = step;
        sender.run();
        sender.check();
    }
}

struct Sender {
    rng: Rng,
    seed: u64,
    step: u32,
    event: &'static str,
    subject: Box<dyn RtoResponse>,
    twin: Box<dyn RtoResponse>,
    now: Instant,
    smss: u32,
    una: SeqNum,
    nxt: SeqNum,
    sacked: Option<(SeqNum, SeqNum)>,
    expiries: u32,
    retransmitted: u64,
    timed_out: bool,
    /// What the last step allows to be sent.
    gate: RtoGate,
    /// SND.NXT at the last expiry, once its segment has been sent.
    episode_end: Option<SeqNum>,
}

impl Sender {
    fn new(make: &NewRtoResponse, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let start = SeqNum(rng.between32(0, u32::MAX));
        let (subject, twin) = (make(), make());
        assert!(!subject.name().is_empty(), "an RTO response has no name");
        assert_eq!(subject.phase(), RtoPhase::Open, "{}: a new response is not Open", subject.name());
        Self {
            smss: [1460, 536, 8960, 1][usize::try_from(rng.below(4)).unwrap_or(0)],
            rng,
            seed,
            step: 0,
            event: "start",
            subject,
            twin,
            now: Instant::from_secs(1),
            una: start,
            nxt: start,
            sacked: None,
            expiries: 0,
            retransmitted: 0,
            timed_out: false,
            gate: RtoGate::ByCc,
            episode_end: None,
        }
    }

    fn who(&self) -> String {
        let Self { seed, step, event, .. } = self;
        alloc::format!("{} (seed {seed}, step {step}, {event})", self.subject.name())
    }

    fn view(&self) -> RtoView {
        let mut flow = FlowView::new(self.now, self.smss);
        flow.snd_una = self.una;
        flow.snd_nxt = self.nxt;
        flow.flight_size = self.nxt.distance_from(self.una);
        flow.sacked = self.sacked.map_or(0, |(start, end)| end.distance_from(start));
        flow.pipe = flow.flight_size.saturating_sub(flow.sacked);
        flow.srtt = Some(Duration::from_millis(50));
        flow.rttvar = Some(Duration::from_millis(10));
        flow.phase = if self.subject.phase() == RtoPhase::Open { Phase::Open } else { Phase::Loss };
        let smss = u64::from(self.smss);
        let mut view = RtoView::new(flow, Window::from_bytes(10 * smss), Window::from_bytes(5 * smss));
        view.expiries = self.expiries;
        view.sack_seen = self.sacked.is_some();
        view.granularity = Duration::from_millis(1);
        view.retransmitted = self.retransmitted;
        view.highest = if flow.flight_size > self.smss { self.nxt - self.smss } else { self.una };
        view
    }

    fn run(&mut self) {
        self.now += Duration::from_micros(self.rng.below(100_000));
        let flight = self.nxt.distance_from(self.una);
        let held = self.gate == RtoGate::Closed && self.subject.phase() != RtoPhase::Open;
        match self.rng.below(12) {
            0..4 if flight < 1 << 29 && !held => {
                self.event = "departure";
                self.nxt += self.rng.between32(1, self.smss.saturating_mul(16));
            }
            4 if flight > 0 => self.expire(),
            5..11 if flight > 0 => self.ack(),
            11 if self.rng.one_in(8) => {
                self.event = "configure";
                let who = self.who();
                check_configure(&who, |params| self.subject.configure(params));
            }
            _ => {}
        }
    }

    fn expire(&mut self) {
        self.event = "on_rto";
        self.expiries += 1;
        self.timed_out = true;
        let mut view = self.view();
        view.unsent = if self.rng.one_in(2) { 0 } else { self.smss };
        view.in_recovery = self.rng.one_in(4);
        view.timestamps = self.rng.one_in(2);
        view.sack_permitted = !self.rng.one_in(16);
        view.dsack_seen = self.rng.one_in(8);
        view.tlp = self.rng.one_in(8).then_some((view.highest, false));
        let step = self.subject.on_rto(&view);
        assert_eq!(step, self.twin.on_rto(&view), "{}: two instances differ", self.who());
        assert_ne!(self.subject.phase(), RtoPhase::Open, "{}: the phase is Open after it", self.who());
        assert_ne!(step.timer, RtoTimer::Stop, "{}: it stops the timer", self.who());
        self.check_step(&step);
        match step.send {
            RtoSend::NewElseHighest if view.unsent > 0 => self.nxt += view.unsent,
            RtoSend::Nothing => {}
            _ => self.retransmitted += 1,
        }
        self.episode_end = Some(self.nxt);
    }

    fn ack(&mut self) {
        self.event = "on_ack";
        let flight = self.nxt.distance_from(self.una);
        let advance = match self.rng.below(4) {
            0 => 0,
            1 => flight,
            _ => self.rng.between32(1, flight.min(self.smss.saturating_mul(4))),
        };
        let ack = self.una + advance;
        let mut facts = AckFacts::new(self.una, ack);
        facts.duplicate = advance == 0;
        self.sacked = self.sacked.filter(|(start, _)| start.gt(ack));
        let left = flight - advance;
        if left > self.smss && self.rng.one_in(3) {
            let start = ack + self.smss;
            let end = start + self.rng.between32(1, left - self.smss);
            self.sacked = Some((start, end));
            facts.newly_sacked = end.distance_from(start);
        }
        if let Some(block) = self.sacked {
            facts.sack[0] = block;
            facts.sack_count = 1;
        }
        facts.dsack = self.rng.one_in(8).then(|| (self.una - self.smss, self.una));
        facts.sack_option = facts.sack_count > 0 || facts.dsack.is_some();
        facts.original = self.rng.one_in(2).then(|| self.now - Duration::from_millis(self.rng.below(200)));
        facts.echoes_original = match self.rng.below(3) {
            0 => None,
            1 => Some(false),
            _ => Some(true),
        };
        facts.ece = self.rng.one_in(16);
        let mut view = self.view();
        view.unsent = if self.rng.one_in(2) { 0 } else { self.smss };
        view.ecn_reduced = self.rng.one_in(4);
        let step = self.subject.on_ack(&view, &facts);
        assert_eq!(step, self.twin.on_ack(&view, &facts), "{}: two instances differ", self.who());
        assert!(
            self.timed_out || step.is_none(),
            "{}: it consumes an ACK before any timeout: {step:?}",
            self.who()
        );
        if advance > 0 {
            self.expiries = 0;
        }
        self.una = ack;
        if let Some(step) = step {
            self.check_step(&step);
        }
        if self.episode_end.is_some_and(|end| ack.ge(end)) {
            self.episode_end = None;
            assert_eq!(
                self.subject.phase(),
                RtoPhase::Open,
                "{}: everything is acknowledged, but the episode goes on",
                self.who()
            );
        }
    }

    fn check_step(&mut self, step: &RtoStep) {
        let who = self.who();
        self.gate = step.gate;
        if let RtoTags::LostBefore(limit) = step.tags {
            assert!(self.una.le(limit) && limit.le(self.nxt), "{who}: loss up to {limit:?}");
        }
        if let RtoSend::Again(seq) = step.send {
            assert!(seq.within(self.una, self.nxt), "{who}: {seq:?} is not outstanding");
        }
        if let RtoGate::NewOnly { window, from } = step.gate {
            assert!(window > Window::ZERO, "{who}: the gate's window is empty");
            assert!(self.una.le(from) && from.le(self.nxt), "{who}: the gate starts at {from:?}");
        }
        match step.cc {
            RtoCc::Timeout { window, .. } | RtoCc::CleanTimeout { window } => {
                assert!(window > Window::ZERO, "{who}: it proposes an empty window");
            }
            RtoCc::Untold | RtoCc::Undo(_) => {}
        }
    }

    fn check(&self) {
        let who = self.who();
        assert_eq!(self.subject.phase(), self.twin.phase(), "{who}: two instances differ in phase");
        if !self.timed_out {
            assert_eq!(self.subject.phase(), RtoPhase::Open, "{who}: not Open before any timeout");
        }
        check_metrics(&who, |report| self.subject.metrics(report));
    }
}
