//! The rules of congestion control.

use super::rng::Rng;
use super::{check_configure, check_metrics};
use crate::policy::NewCongestionControl;
use crate::policy::cc::{
    AckSample, CcInit, Clock, CongestionControl, CongestionEvent, DecreaseFrom, EcnUse, FlowView, LostRecord,
    Pacing, Phase, RateSample, Reaction, Restart, RestartCause, SendDecision, SentSegment, SsthreshRule,
    Undo, Validation,
};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Window;
use crate::window_use::WindowUse;
use alloc::boxed::Box;
use alloc::string::String;

const STEPS: u32 = 2_000;
/// Largest flight: RFC 7323, section 2.3.
const MAX_FLIGHT: u32 = 1 << 30;

/// Drives a congestion control through a valid connection: departures (super-packets too), ACKs,
/// SACKs, ECN, loss, timeouts, undo, restarts, changes of the segment size, idle times; with round
/// trips from zero to hours.
///
/// In addition to the rules for [every policy](super):
/// - the window is never zero, and under [`Clock::Departure`] at least one segment may be
///   outstanding;
/// - an ACK does not raise a window that the flow does not use ([`FlowView::may_raise`]), unless
///   the pace validates it ([`Validation::ByPace`]); then there must be one;
/// - a congestion signal or a lost record does not raise the window, but a timeout may raise one
///   below two segments to two, if its response proposes that much; after a timeout the window is
///   at most the proposed one, and `ssthresh` obeys the proposed [`SsthreshRule`]:
///   [`SsthreshRule::To`] sets it, also above its old value, and a repeated expiry does not lower
///   it again. An algorithm that keeps `ssthresh` at [`Window::MAX`] has none;
/// - after [`Undo::All`] window and `ssthresh` are at least what they were at the checkpoint, and
///   no undo lowers the window; a window that follows a model of the path
///   ([`Validation::ByPace`]) may be less;
/// - after a restart the window is at most [`Restart::window`], unless its phases validate it
///   ([`Validation::ByPhase`]) and the flow was only idle;
/// - [`Reaction::Reduced`] is only returned under [`EcnUse::PerAck`];
/// - `on_timeout` moves `next_timeout` forward: no endless wake-ups at one instant.
///
/// # Panics
/// If a rule is broken.
#[track_caller]
pub fn congestion_control(make: &NewCongestionControl, seed: u64) {
    let mut flow = Flow::new(make, seed);
    for step in 0..STEPS {
        flow.who.step = step;
        flow.step();
        flow.check();
    }
}

/// Identifies a failure.
#[derive(Debug)]
struct Who {
    name: &'static str,
    seed: u64,
    step: u32,
    event: &'static str,
}

impl Who {
    fn text(&self) -> String {
        alloc::format!("{} (seed {}, step {}, {})", self.name, self.seed, self.step, self.event)
    }
}

/// A sender's bookkeeping, as far as an algorithm can see it.
struct Flow {
    rng: Rng,
    who: Who,
    subject: Box<dyn CongestionControl>,
    twin: Box<dyn CongestionControl>,
    now: Instant,
    base_rtt: Duration,
    smss: u32,
    una: SeqNum,
    nxt: SeqNum,
    sacked: u32,
    lost: u32,
    delivered: u64,
    phase: Phase,
    recovery_point: SeqNum,
    /// Window and `ssthresh` at the last checkpoint that can still be undone.
    checkpoint: Option<(Window, Window)>,
    cwnd_limited: bool,
    window_use: WindowUse,
}

impl Flow {
    fn new(make: &NewCongestionControl, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let smss = [1460, 536, 8960, 1, 65_483][usize::try_from(rng.below(5)).unwrap_or(0)];
        let now = Instant::from_nanos(rng.below(1 << 40));
        let mut init = CcInit::new(now, smss, Window::from_bytes(10 * u64::from(smss)));
        if rng.one_in(2) {
            init.decrease_from = DecreaseFrom::Flight;
        }
        // Not drawn, so that a seed plays the same with and without them.
        if seed % 3 == 1 {
            init.phases = Some(init.initial_window);
        }
        let (subject, twin) = (make(&init), make(&init));
        let base_rtt = match rng.below(4) {
            0 => Duration::ZERO,
            1 => Duration::from_micros(rng.between(1, 1_000)),
            2 => Duration::from_millis(rng.between(1, 500)),
            _ => Duration::from_secs(rng.between(1, 7_200)),
        };
        let start = SeqNum(rng.between32(0, u32::MAX));
        let who = Who { name: subject.name(), seed, step: 0, event: "start" };
        let flow = Self {
            rng,
            who,
            subject,
            twin,
            now,
            base_rtt,
            smss,
            una: start,
            nxt: start,
            sacked: 0,
            lost: 0,
            delivered: 0,
            phase: Phase::Open,
            recovery_point: start,
            checkpoint: None,
            cwnd_limited: false,
            window_use: WindowUse::new(start),
        };
        assert!(!flow.who.name.is_empty(), "a congestion control has no name");
        flow
    }

    fn decision(&self) -> SendDecision {
        self.subject.decision()
    }

    fn flight(&self) -> u32 {
        self.nxt.distance_from(self.una)
    }

    fn pipe(&self) -> u32 {
        self.flight().saturating_sub(self.sacked).saturating_sub(self.lost)
    }

    fn view(&self) -> FlowView {
        let mut view = FlowView::new(self.now, self.smss);
        view.snd_una = self.una;
        view.snd_nxt = self.nxt;
        view.pipe = self.pipe();
        view.flight_size = self.flight();
        view.sacked = self.sacked;
        view.delivered = self.delivered;
        view.phase = self.phase;
        view.cwnd_limited = self.cwnd_limited;
        view.flight_used = self.window_use.largest_flight();
        view.app_limited = !self.cwnd_limited;
        if self.delivered > 0 {
            view.srtt = Some(self.base_rtt);
            view.srtt_pace = Some(self.base_rtt);
            view.min_rtt = Some(self.base_rtt);
        }
        if self.flight() > 0 {
            view.oldest_departure = Some(self.now - self.base_rtt);
        }
        view
    }

    /// Passes an event to both instances and checks that they agree.
    fn tell(&mut self, event: &'static str, act: impl Fn(&mut dyn CongestionControl, &FlowView)) {
        self.tell_or_spare(event, false, act);
    }

    /// The same; the twin is `spared` an event of which the algorithm says that it does not matter.
    fn tell_or_spare(
        &mut self,
        event: &'static str,
        spared: bool,
        act: impl Fn(&mut dyn CongestionControl, &FlowView),
    ) {
        self.who.event = event;
        let view = self.view();
        act(self.subject.as_mut(), &view);
        if !spared {
            act(self.twin.as_mut(), &view);
        }
        assert_eq!(
            self.subject.decision(),
            self.twin.decision(),
            "{}: two instances with the same history differ",
            self.who.text()
        );
    }

    fn step(&mut self) {
        match self.rng.below(32) {
            0..10 => self.send(),
            10..20 => self.ack(),
            20..22 => self.sack(),
            22 => self.loss(),
            23 => self.ecn(),
            24 => self.timeout(),
            25 => self.undo(),
            26 => self.restart(),
            27 => self.other(),
            _ => self.pass_time(),
        }
        self.serve_timer();
    }

    fn pass_time(&mut self) {
        let nanos = self.base_rtt.as_nanos();
        self.now += match self.rng.below(16) {
            0 => Duration::from_nanos(self.rng.below(nanos.saturating_mul(50).max(1))),
            1 => Duration::from_secs(self.rng.below(100_000)),
            2 => Duration::ZERO,
            _ => Duration::from_nanos(self.rng.below(nanos / 4 + 1)),
        };
        self.who.event = "time passes";
    }

    fn send(&mut self) {
        let decision = self.decision();
        let room = match decision.clock {
            Clock::Ack => decision.window.bytes().saturating_sub(u64::from(self.pipe())),
            Clock::Departure { max_outstanding } => u64::from(max_outstanding) * u64::from(self.smss),
        };
        let room = u32::try_from(room).unwrap_or(u32::MAX).min(MAX_FLIGHT.saturating_sub(self.flight()));
        let most = if self.pipe() == 0 { room.max(self.smss) } else { room };
        if most == 0 {
            self.cwnd_limited = true;
            return;
        }
        let len = self.rng.between32(1, most.min(self.smss.saturating_mul(44)));
        self.cwnd_limited = len == most || !self.rng.one_in(4);
        let mut sent = SentSegment::new(self.nxt, len, false);
        sent.prior_pipe = self.pipe();
        self.nxt += len;
        self.window_use.on_sent(self.una, self.nxt, false);
        let spared = self.flight() > len && !self.twin.wants_each_departure();
        self.tell_or_spare("on_sent", spared, |cc, view| cc.on_sent(view, &sent));
    }

    fn sample(&mut self, acked: u32, newly_sacked: u32) -> AckSample {
        let mut ack = AckSample::new(acked, (acked + newly_sacked).div_ceil(self.smss));
        ack.newly_sacked = newly_sacked;
        ack.newly_delivered = newly_sacked + acked;
        ack.duplicate = acked == 0;
        ack.ece = self.rng.one_in(16);
        ack.ce = if ack.ece { self.rng.between32(0, ack.newly_delivered) } else { 0 };
        ack.prior_pipe = self.pipe();
        if !self.rng.one_in(4) {
            let jitter = self.rng.below(self.base_rtt.as_nanos() / 2 + 2);
            let rtt = self.base_rtt + Duration::from_nanos(jitter);
            ack.rtt = Some(rtt);
            ack.rtt_oldest = Some(rtt);
            let mut rate = RateSample::new(u64::from(acked), rtt, self.delivered);
            rate.app_limited = !self.cwnd_limited;
            rate.tx_in_flight = self.rng.between32(acked, MAX_FLIGHT);
            rate.lost = self.rng.between32(0, rate.tx_in_flight);
            ack.rate = Some(rate);
        }
        ack
    }

    fn ack(&mut self) {
        let flight = self.flight();
        if flight == 0 {
            return;
        }
        let most = if self.rng.one_in(3) { flight } else { flight.min(self.smss.saturating_mul(8)) };
        let acked = self.rng.between32(1, most);
        let ack = self.sample(acked, 0);
        self.una += acked;
        self.delivered += u64::from(acked);
        self.sacked = self.sacked.saturating_sub(acked).min(self.flight());
        self.lost = self.lost.saturating_sub(acked).min(self.flight() - self.sacked);
        let ends = matches!(self.phase, Phase::Recovery | Phase::Loss) && self.una.ge(self.recovery_point);
        if ends {
            let fast = self.phase == Phase::Recovery;
            self.phase = Phase::Open;
            if fast {
                self.tell("on_recovery_exit", |cc, view| cc.on_recovery_exit(view));
            }
        }
        if self.phase == Phase::Disorder && self.sacked == 0 {
            self.phase = Phase::Open;
        }
        self.deliver(ack);
    }

    fn sack(&mut self) {
        let free = self.flight().saturating_sub(self.sacked).saturating_sub(self.lost);
        if free == 0 {
            return;
        }
        let newly = self.rng.between32(1, free);
        let ack = self.sample(0, newly);
        self.sacked += newly;
        self.delivered += u64::from(newly);
        if self.phase == Phase::Open {
            self.phase = Phase::Disorder;
        }
        self.deliver(ack);
    }

    fn deliver(&mut self, ack: AckSample) {
        self.who.event = "on_ack";
        let view = self.view();
        let before = self.decision();
        let per_ack = before.ecn == EcnUse::PerAck;
        let reaction = self.subject.on_ack(&view, &ack);
        assert_eq!(
            reaction,
            self.twin.on_ack(&view, &ack),
            "{}: two instances with the same history react differently",
            self.who.text()
        );
        assert!(
            reaction == Reaction::None || per_ack,
            "{}: Reaction::Reduced without EcnUse::PerAck",
            self.who.text()
        );
        assert!(
            before.validation == Validation::ByPace
                || view.may_raise(before.window, before.ssthresh)
                || self.decision().window <= before.window,
            "{}: an ACK raised the window from {:?} to {:?}, of which the flow used {} bytes",
            self.who.text(),
            before.window,
            self.decision().window,
            view.flight_used
        );
    }

    /// Records what an undo must restore, once per episode.
    fn begin_episode(&mut self) {
        if matches!(self.phase, Phase::Open | Phase::Disorder) {
            let before = self.decision();
            self.tell("checkpoint", |cc, view| cc.checkpoint(view));
            assert_eq!(before, self.decision(), "{}: checkpoint changed the decision", self.who.text());
            self.checkpoint = Some((before.window, before.ssthresh));
        }
    }

    /// A few records that were marked lost.
    fn tell_of_losses(&mut self) {
        for _ in 0..self.rng.below(4) {
            let before = self.decision();
            let len = self.rng.between32(1, self.flight().min(self.smss.saturating_mul(44)));
            let offset = self.rng.between32(0, self.flight() - len);
            let mut lost = LostRecord::new(self.una + offset, len, self.rng.between32(len, MAX_FLIGHT));
            lost.lost_since_sent = self.rng.between32(len, lost.tx_in_flight);
            lost.app_limited = self.rng.one_in(4);
            self.tell("on_lost", |cc, view| cc.on_lost(view, &lost));
            self.check_not_raised(&before);
        }
    }

    fn check_not_raised(&self, before: &SendDecision) {
        let after = self.decision();
        assert!(
            after.window <= before.window,
            "{}: a congestion signal raised the window from {:?} to {:?}",
            self.who.text(),
            before.window,
            after.window
        );
    }

    fn loss(&mut self) {
        if self.flight() == 0 || !matches!(self.phase, Phase::Open | Phase::Disorder) {
            return;
        }
        self.begin_episode();
        let before = self.decision();
        let prior_pipe = self.pipe();
        self.lost = self.rng.between32(0, self.pipe());
        self.phase = Phase::Recovery;
        self.recovery_point = self.nxt;
        self.tell_of_losses();
        self.tell("on_congestion(Loss)", |cc, view| {
            cc.on_congestion(view, &CongestionEvent::Loss { prior_pipe });
        });
        self.check_not_raised(&before);
    }

    fn ecn(&mut self) {
        let before = self.decision();
        if self.phase != Phase::Open || before.ecn != EcnUse::PerWindow {
            return;
        }
        self.tell("on_congestion(Ecn)", |cc, view| cc.on_congestion(view, &CongestionEvent::Ecn));
        self.check_not_raised(&before);
        // The peer did see a mark, so an earlier reduction can no longer be spurious.
        self.checkpoint = None;
    }

    fn timeout(&mut self) {
        if self.flight() == 0 {
            return;
        }
        self.begin_episode();
        let first = self.phase != Phase::Loss;
        let before = self.decision();
        let window = match self.rng.below(4) {
            0 => Window::from_bytes(10 * u64::from(self.smss)),
            1 => Window::from_raw(self.rng.between(1, 1 << 20)),
            _ => Window::from_bytes(u64::from(self.smss)),
        };
        let ssthresh = match self.rng.below(4) {
            0 => SsthreshRule::Keep,
            1 => SsthreshRule::To(Window::from_bytes(self.rng.between(2, 1 << 24))),
            _ => SsthreshRule::ByCc,
        };
        let flight_size = self.flight();
        self.phase = Phase::Loss;
        self.recovery_point = self.nxt;
        self.lost = self.flight() - self.sacked;
        self.tell_of_losses();
        let event = CongestionEvent::Timeout { flight_size, first, window, ssthresh };
        self.tell("on_congestion(Timeout)", |cc, view| cc.on_congestion(view, &event));
        let after = self.decision();
        // The response's restart window may be more than a window of one segment.
        let two = Window::from_bytes(2 * u64::from(self.smss));
        let most = before.window.max(if window >= two { two } else { Window::ZERO });
        self.check_not_raised(&SendDecision { window: most, ..before });
        assert!(
            after.window <= window,
            "{}: window {:?} after a timeout that proposed {window:?}",
            self.who.text(),
            after.window
        );
        let has_none = (before.ssthresh, after.ssthresh) == (Window::MAX, Window::MAX);
        let obeyed = match ssthresh {
            _ if has_none && after.validation == Validation::ByPace => true,
            SsthreshRule::Keep => after.ssthresh == before.ssthresh,
            // Below two segments a value is none that RFC 5681 gives, and algorithms differ in
            // their floor.
            SsthreshRule::To(value) if value.bytes() < 2 * u64::from(self.smss) => true,
            SsthreshRule::To(value) => after.ssthresh == value,
            SsthreshRule::ByCc if first => after.ssthresh < Window::MAX,
            SsthreshRule::ByCc => after.ssthresh == before.ssthresh,
        };
        assert!(
            obeyed,
            "{}: ssthresh went from {:?} to {:?}, against {ssthresh:?} (first expiry: {first})",
            self.who.text(),
            before.ssthresh,
            after.ssthresh
        );
    }

    fn undo(&mut self) {
        let before = self.decision();
        let Some((window, ssthresh)) = self.checkpoint else {
            return;
        };
        if self.rng.one_in(4) {
            let undo = Undo::To { window: Window::from_bytes(self.rng.between(1, 1 << 24)), ssthresh };
            self.tell("undo(To)", |cc, view| cc.undo(view, &undo));
        } else {
            self.checkpoint = None;
            self.tell("undo(All)", |cc, view| cc.undo(view, &Undo::All));
            let after = self.decision();
            let follows_model = after.validation == Validation::ByPace;
            assert!(
                (after.window >= window || follows_model) && after.ssthresh >= ssthresh,
                "{}: undo gave {:?} and {:?}, the checkpoint had {window:?} and {ssthresh:?}",
                self.who.text(),
                after.window,
                after.ssthresh
            );
            if self.phase != Phase::Open {
                self.phase = Phase::Open;
                self.lost = 0;
            }
        }
        assert!(
            self.decision().window >= before.window || before.validation == Validation::ByPace,
            "{}: undo lowered the window",
            self.who.text()
        );
    }

    fn restart(&mut self) {
        let cause = match self.rng.below(2) {
            0 if self.flight() == 0 && self.decision().validation != Validation::ByPace => RestartCause::Idle,
            1 if self.phase == Phase::Loss => RestartCause::CleanTimeout,
            _ => return,
        };
        let idle = Duration::from_nanos(self.rng.below(1 << 45));
        if cause != RestartCause::CleanTimeout {
            self.now += idle;
        }
        let window = Window::from_bytes(self.rng.between(1, 12) * u64::from(self.smss));
        let restart = Restart::new(cause, window, idle);
        self.tell("on_restart", |cc, view| cc.on_restart(view, &restart));
        let may_keep = cause == RestartCause::Idle && self.decision().validation == Validation::ByPhase;
        assert!(
            self.decision().window <= window || may_keep,
            "{}: window {:?} after a restart from at most {window:?}",
            self.who.text(),
            self.decision().window
        );
        // A restart gives up the growth since the checkpoint.
        self.checkpoint = None;
    }

    fn other(&mut self) {
        match self.rng.below(2) {
            0 => {
                let old = self.smss;
                self.smss = self.rng.between32(1, 65_495);
                self.tell("on_smss_change", |cc, view| cc.on_smss_change(view, old));
            }
            _ => {
                self.who.event = "configure";
                let before = self.decision();
                let who = self.who.text();
                check_configure(&who, |params| self.subject.configure(params));
                assert_eq!(before, self.decision(), "{who}: it changed the decision");
            }
        }
    }

    fn serve_timer(&mut self) {
        for _ in 0..64 {
            match self.subject.next_timeout() {
                Some(due) if due <= self.now => self.tell("on_timeout", |cc, view| cc.on_timeout(view)),
                _ => return,
            }
        }
        panic!("{}: next_timeout stays due however often it is served", self.who.text());
    }

    fn check(&self) {
        let decision = self.decision();
        let who = self.who.text();
        assert_eq!(decision, self.subject.decision(), "{who}: decision is not pure");
        assert_eq!(
            self.subject.next_timeout(),
            self.subject.next_timeout(),
            "{who}: next_timeout is not pure"
        );
        assert!(decision.window > Window::ZERO, "{who}: the window is empty, the connection is stuck");
        assert!(
            decision.validation != Validation::ByPace || decision.pacing != Pacing::Unpaced,
            "{who}: nothing validates the window"
        );
        if let Clock::Departure { max_outstanding } = decision.clock {
            assert!(max_outstanding > 0, "{who}: no segment may be outstanding, the connection is stuck");
        }
        check_metrics(&who, |report| self.subject.metrics(report));
    }
}
