//! Host of the ACK policy: its plan and timer, the ACKs that the core demands whatever the plan,
//! and the ACKs that are due.
//!
//! For each arrival the policy is asked first. Then, unless it asked for an ACK itself:
//!
//! | what happened | the ACK is |
//! |---|---|
//! | unacceptable segment, probe, FIN, less than `min(RMSS, R/2)` left of the window, quick ACKs requested | due |
//! | out-of-order, gap-filling or (even partly) duplicate data; two full segments unacknowledged | due, unless the policy waives it and its plan is `Withhold` |
//! | anything else | due when the policy's timer expires, at the latest at the hold limit |
//!
//! ACKs for in-order data merge into one, because the last one covers everything; with SACK so do
//! those for out-of-order data. Without SACK the latter are counted, since the peer's fast
//! retransmit counts them (RFC 5681, section 3.2).

use super::window::Update;
use crate::ctx::Ctx;
use crate::packet::SendReason;
use crate::policy::ack::{
    AckCause, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, RecvView, SoftObligations, WindowHint,
};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// The ACKs of a connection: due, planned and facts.
#[derive(Debug)]
pub(super) struct Acks {
    /// `None` before the connection is established.
    policy: Option<Box<dyn AckPolicy>>,
    /// The policy's timer; `FAR_FUTURE` if it is not armed.
    timer: Instant,
    /// Arrival of the oldest data without an ACK; `FAR_FUTURE` if there is none.
    held_since: Instant,
    /// ACKs that should have been sent at once, but were not because the policy waives them.
    waived: u32,
    /// Why an ACK is due.
    due: Option<SendReason>,
    /// Duplicate ACKs due.
    duplicates: u8,
    /// What the policy waives.
    waives: SoftObligations,
    /// The window that the next ACK advertises.
    hint: WindowHint,
    /// The current plan is `Withhold`.
    withholding: bool,
    /// The due ACK truncates a hold.
    truncates: bool,
    /// The application wants immediate ACKs.
    quick: bool,
}

/// Facts about an arrival that the policy is not told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrivalFacts {
    /// An ACK must be sent at once.
    pub(super) hard: bool,
    /// RCV.NXT moved.
    pub(super) advanced: bool,
    /// Some or all of the data had arrived before.
    pub(super) repeats: bool,
    /// Number of wire segments past a hole.
    pub(super) duplicates: u32,
    /// SACK is in use: one ACK reports all of them.
    pub(super) sack: bool,
}

impl Acks {
    pub(super) const fn new() -> Self {
        Self {
            policy: None,
            timer: Instant::FAR_FUTURE,
            held_since: Instant::FAR_FUTURE,
            waived: 0,
            due: None,
            duplicates: 0,
            waives: SoftObligations::NONE,
            hint: WindowHint::Sws,
            withholding: false,
            truncates: false,
            quick: false,
        }
    }

    /// Installs a policy. The previous policy's plan is void, and whatever it held is acknowledged
    /// at once.
    pub(super) fn install(&mut self, policy: Box<dyn AckPolicy>) {
        self.waives = policy.waives();
        self.policy = Some(policy);
        self.timer = Instant::FAR_FUTURE;
        self.withholding = false;
        if self.is_holding() {
            self.due = Some(SendReason::AckByObligation);
        }
    }

    pub(super) const fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    pub(super) fn policy(&self) -> Option<&(dyn AckPolicy + 'static)> {
        self.policy.as_deref()
    }

    pub(super) fn policy_mut(&mut self) -> Option<&mut (dyn AckPolicy + 'static)> {
        self.policy.as_deref_mut()
    }

    /// True if the policy allows an ACK to be delayed by some microseconds.
    pub(super) fn may_wait(&self) -> bool {
        self.policy.as_deref().is_none_or(AckPolicy::lets_acks_wait)
    }

    /// True if the policy may be told of a run of segments as one arrival.
    pub(super) fn takes_runs(&self) -> bool {
        self.policy.as_deref().is_none_or(AckPolicy::takes_runs)
    }

    /// ACKs that should have been sent at once, but were not because the policy waives them.
    pub(super) const fn waived(&self) -> u32 {
        self.waived
    }

    /// Arrival of the oldest data without an ACK.
    pub(super) fn oldest_unacked(&self) -> Option<Instant> {
        (self.held_since != Instant::FAR_FUTURE).then_some(self.held_since)
    }

    /// True if data is waiting for an ACK that is not due yet.
    pub(super) fn is_holding(&self) -> bool {
        self.due.is_none() && self.held_since != Instant::FAR_FUTURE
    }

    /// The window that the next ACK advertises.
    pub(super) const fn hint(&self) -> WindowHint {
        self.hint
    }

    /// Why an ACK is due beyond the `queued` ones already on their way.
    pub(super) fn wanted(&self, queued: u8) -> Option<SendReason> {
        self.due.filter(|_| queued < self.duplicates.max(1))
    }

    /// The policy withholds ACKs.
    pub(super) const fn is_withholding(&self) -> bool {
        self.withholding
    }

    /// An ACK must be sent, for a reason that the policy cannot influence.
    pub(super) fn oblige(&mut self, reason: SendReason) {
        self.truncates |= self.withholding && self.is_holding();
        self.due.get_or_insert(reason);
    }

    /// `TCP_QUICKACK`: data is acknowledged on arrival; a held ACK is sent now.
    pub(super) fn set_quick(&mut self, on: bool) {
        self.quick = on;
        if on && self.is_holding() {
            self.oblige(SendReason::AckByObligation);
        }
    }

    pub(super) const fn is_quick(&self) -> bool {
        self.quick
    }

    /// Data arrived at `now`; the hold limit counts from the first.
    pub(super) fn holds(&mut self, now: Instant) {
        self.held_since = self.held_since.min(now);
    }

    /// A segment with data arrived; `view` is the receiver after it.
    pub(super) fn on_data(
        &mut self,
        ctx: &mut Ctx<'_>,
        view: &RecvView,
        data: &DataArrival,
        facts: &ArrivalFacts,
    ) {
        if facts.advanced {
            // An ACK that advances says more than those that would have repeated the previous one.
            self.duplicates = 0;
        }
        let plan = self.policy.as_mut().map_or(AckPlan::Keep, |policy| policy.on_data(view, data));
        let asked = self.take_plan(plan);
        let hard =
            facts.hard || self.quick || matches!(data.class, DataClass::Probe | DataClass::Unacceptable);
        if hard || (!asked && self.owes(ctx, view, data.class, facts.repeats)) {
            self.oblige(SendReason::AckByObligation);
        } else if asked {
            self.due.get_or_insert(SendReason::AckByPolicy);
        } else {
            return;
        }
        if facts.duplicates > 0 {
            let more = u8::try_from(facts.duplicates).unwrap_or(u8::MAX);
            self.duplicates = if facts.sack { 1 } else { self.duplicates.saturating_add(more) };
        }
    }

    /// Whether the core must send a waivable ACK that the current policy does not waive.
    fn owes(&mut self, ctx: &mut Ctx<'_>, view: &RecvView, class: DataClass, repeats: bool) -> bool {
        let waives = self.waives;
        let (soft, waived) = match class {
            // RFC 2883, section 4: the ACK reports the duplicate part, for which the peer that sent
            // it again is waiting.
            DataClass::New if repeats => (true, waives.duplicate),
            DataClass::New | DataClass::Probe | DataClass::Unacceptable => (false, true),
            // RFC 5681, section 4.2: out-of-order and gap-filling data SHOULD be acknowledged
            // immediately.
            DataClass::OutOfOrder => (true, waives.out_of_order),
            DataClass::Hole => (true, waives.gap_filling),
            DataClass::Duplicate => (true, waives.duplicate),
        };
        // RFC 9293, section 3.8.6.3 (SHLD-18): an ACK for at least every second full-sized segment.
        let second = view.unacked() >= view.rmss.saturating_mul(2).max(1);
        if !soft && !second {
            return false;
        }
        let waived = self.withholding && waived && (!second || waives.every_second);
        if waived && self.due.is_none() {
            ctx.observe.counters.ack_obligations_waived += 1;
            self.waived = self.waived.saturating_add(1);
        }
        !waived
    }

    /// The application read; `update` is the effect on the window.
    pub(super) fn on_app_read(&mut self, view: &RecvView, update: Update) {
        let plan = self.policy.as_mut().map_or(AckPlan::Keep, |policy| policy.on_app_read(view));
        let useful = update != Update::No;
        if self.take_plan(plan) && (useful || self.is_holding()) {
            self.due.get_or_insert(SendReason::AckByPolicy);
        } else {
            self.on_window(update);
        }
    }

    /// The window may open; `update` tells whether that is worth an ACK.
    pub(super) fn on_window(&mut self, update: Update) {
        match update {
            Update::Reopens => self.oblige(SendReason::WindowUpdate),
            Update::Useful if !self.withholding => {
                self.due.get_or_insert(SendReason::WindowUpdate);
            }
            Update::Useful | Update::No => {}
        }
    }

    /// The policy's timer or the hold limit, whichever comes first. The hold limit does not run
    /// while an ACK is already due.
    pub(super) fn next_timeout(&self, hold_limit: Duration) -> Option<Instant> {
        let first = match self.due {
            Some(_) => self.timer,
            None => self.timer.min(self.held_since + hold_limit),
        };
        (first != Instant::FAR_FUTURE).then_some(first)
    }

    /// Handles the policy's timer, then (at a tie) the hold limit. `update`: what an ACK would tell
    /// about the window.
    pub(super) fn on_timeout(&mut self, view: &RecvView, update: Update, hold_limit: Duration) {
        if self.timer <= view.now {
            self.timer = Instant::FAR_FUTURE;
            self.withholding = false;
            let plan = self.policy.as_mut().map_or(AckPlan::Keep, |policy| policy.on_timeout(view));
            let mut asked = self.take_plan(plan);
            // A timer already in the past again would be served forever at this instant.
            if self.timer <= view.now {
                self.timer = Instant::FAR_FUTURE;
                self.withholding = false;
                asked = true;
            }
            // RFC 5681, section 4.2: no more than one ACK for each segment, other than to update
            // the window.
            if asked && self.held_since != Instant::FAR_FUTURE {
                self.due.get_or_insert(SendReason::AckByTimer);
            } else if asked && update != Update::No {
                self.due.get_or_insert(SendReason::WindowUpdate);
            }
        }
        // RFC 9293, section 3.8.6.3 (MUST-40): the delay is below 0.5 s.
        if self.is_holding() && self.held_since + hold_limit <= view.now {
            self.due = Some(SendReason::AckByObligation);
            self.truncates = true;
        }
    }

    /// A segment with ACK was sent; `view` is the receiver after it. `reports`: the peer counts it
    /// as a duplicate ACK, or gets the same information from its SACK blocks.
    pub(super) fn on_sent(&mut self, ctx: &mut Ctx<'_>, view: &RecvView, sent: &AckSent, reports: bool) {
        if reports {
            self.duplicates = self.duplicates.saturating_sub(1);
        }
        // Data that arrived after this ACK was built still needs its own.
        if view.unacked() == 0 {
            self.held_since = Instant::FAR_FUTURE;
            if self.duplicates == 0 {
                self.due = None;
            }
        }
        let truncated = self.truncates && sent.cause == AckCause::Obligation;
        self.truncates = false;
        self.timer = Instant::FAR_FUTURE;
        self.withholding = false;
        self.hint = WindowHint::Sws;
        if sent.cause == AckCause::Timer {
            ctx.observe.counters.delayed_acks += 1;
        }
        let Some(policy) = self.policy.as_mut() else { return };
        if truncated {
            ctx.observe.counters.ack_hold_truncated += 1;
            policy.on_hold_truncated(view);
        }
        let plan = policy.on_ack_sent(view, sent);
        // RFC 5681, section 4.2: what this ACK reported is not repeated.
        if self.take_plan(plan) && self.is_holding() {
            self.due = Some(SendReason::AckByPolicy);
        }
    }

    /// The rule of the policy, asked for an ACK for `cause`.
    pub(super) fn rule(&self, view: &RecvView, cause: AckCause) -> &'static str {
        self.policy.as_deref().map_or("", |policy| policy.rule(view, cause))
    }

    /// True if the due ACK ends a hold of the policy.
    pub(super) const fn is_truncating(&self) -> bool {
        self.truncates
    }

    /// Adopts a plan; true if it asks for an ACK at once.
    fn take_plan(&mut self, plan: AckPlan) -> bool {
        match plan {
            AckPlan::Keep => false,
            AckPlan::Now { window } => {
                self.hint = window;
                self.timer = Instant::FAR_FUTURE;
                self.withholding = false;
                true
            }
            AckPlan::By(at) => {
                self.timer = at;
                self.withholding = false;
                false
            }
            AckPlan::Withhold { until } => {
                self.timer = until;
                self.withholding = true;
                false
            }
        }
    }
}
