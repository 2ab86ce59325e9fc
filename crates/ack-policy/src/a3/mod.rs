//! `a3` and `csa3`: a receiver that measures how much its sender can send without an ACK, and
//! acknowledges before that is used up (Chang, Chan and Yeung, "Deadlock-Free TCP Over High-Speed
//! Internet", sections 15.3 and 15.4).
//!
//! A sender with Nagle's algorithm may wait for an ACK while the receiver waits for more data; only
//! a timer resolves the deadlock. Now and then the receiver stays silent for a round trip and a
//! half, a *sampling*. What arrives meanwhile is the maximum unacknowledged data of the sender
//! (MUDS), and from then on 35 % of it triggers an ACK. CSA3 also infers from signs of congestion
//! that the sender's window fell, and lets MUDS grow again as slow start does.
//!
//! ```text
//!             count down by data segments (14)                        silent (16)
//!   ┌───────────────────────────────────────────┐  at 0   ┌──────────────────────────────────┐
//!   │ ACK at 35 % of MUDS, or after a delay (17) │ ──────► │ SP_timer: 1.5 RTT or more (20-25) │
//!   └───────────────────────────────────────────┘  ACK    └──────────────────────────────────┘
//!           ▲        count again from ISP_t, 3 or 4 times as long while MUDS stands still (30)      │
//!           └───────── ACK: window used up, timer (28-31); or given up: loss, own data (15, 26) ◄───┘
//! ```
//!
//! The numbers are those of the algorithm's steps:
//!
//! | steps | |
//! |---|---|
//! | 1 to 6 | the sender: not here, but in the core's output rule and in the simulator's writing application |
//! | 7 to 9 | before the first estimate: `sunos.rs` |
//! | 10, 12 to 18 | a segment with data arrives: [`Adaptive::decide`] |
//! | 11 | the gaps between arrivals: `gaps.rs` |
//! | 14, 30 | the time between samplings: `interval.rs` |
//! | 19 to 31 | a sampling: `sampling.rs`; its start and its end: [`Adaptive::may_sample`], [`Adaptive::learn`] |
//! | 32, 41 | after an ACK, and the one timer: [`Adaptive::on_ack_sent`](AckPolicy::on_ack_sent), [`Adaptive::on_timeout`](AckPolicy::on_timeout) |
//! | 33 to 39 | CSA3: `congestion.rs` |
//! | 40 | the round trip: `rtt.rs` |
//! | 42 | the cap of the threshold: [`Adaptive::cap`] |
//! | 43 | a closed window is told at once: the core's obligation |
//!
//! In addition to the paper, so that no sender of today loses by it; `profile=paper` switches all
//! of this off:
//!
//! - quick ACKs at the start, after a pause and after a duplicate;
//! - an ACK soon after pushed data was read: a sender that has nothing more to send pushes, and
//!   that is most of what a sampling looks for ([`Adaptive::on_pushed_read`], `flow.rs`);
//! - a sampling only after an ACK had to wait for its delay, only if it is no longer than that
//!   delay, and not so long that the sender's loss probe fires ([`Adaptive::is_worth_it`],
//!   [`Linger`]);
//! - a cap.
//!
//! Where it fails: a sampling costs a round trip without ACKs, in which a window-limited sender
//! stops, so it must be rare.
//!
//! The core counts nanoseconds, and so does this code; fractions are dropped.

mod congestion;
mod flow;
mod gaps;
mod interval;
mod rtt;
mod sampling;
mod settings;

#[cfg(test)]
mod tests;

use crate::profile::Edge;
use crate::sunos;
use ackline_tcp_core::policy::ack::{
    AckCause, AckInit, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, RecvView, SoftObligations,
};
use ackline_tcp_core::policy::spec::{Entry, Keyed as _, ParamRow};
use ackline_tcp_core::policy::{Metrics, NewAckPolicy, Params, SpecError};
use ackline_tcp_core::{Duration, Instant};
use alloc::boxed::Box;
use alloc::sync::Arc;
use congestion::{Congestion, Trigger};
use flow::Flow;
use gaps::Gaps;
use interval::Interval;
use rtt::Rtt;
use sampling::{Sampling, Step, window_left};
use settings::{A3Params, Csa3Params, Linger, Settings};

const SOURCE: &str = "Chang, Chan and Yeung, Deadlock-Free TCP Over High-Speed Internet";

pub(crate) const A3: Entry<NewAckPolicy> = Entry {
    summary: "learns by silence how much the sender can have outstanding; an ACK for 35 % of it",
    source: SOURCE,
    keys: ParamRow::of::<A3Params>,
    ..Entry::new("a3", |params| Ok(maker("a3", A3Params::from_params("a3", params)?.0)))
};

pub(crate) const CSA3: Entry<NewAckPolicy> = Entry {
    summary: "a3, with more ACKs after signs of congestion, until the sender's window has grown again",
    source: SOURCE,
    keys: ParamRow::of::<Csa3Params>,
    ..Entry::new("csa3", |params| Ok(maker("csa3", Csa3Params::from_params("csa3", params)?.0)))
};

fn maker(name: &'static str, settings: Settings) -> Arc<NewAckPolicy> {
    Arc::new(move |init: &AckInit| Box::new(Adaptive::new(name, settings, init)))
}

/// Fewest quick ACKs, however small the window; none if `quick=0`.
const LEAST_QUICK: u32 = 2;

/// A3 or CSA3.
#[derive(Clone, Debug)]
pub(crate) struct Adaptive {
    name: &'static str,
    settings: Settings,
    /// Longest time that the core lets an ACK wait.
    hold_limit: Duration,
    /// MUDS: how much the sender can have outstanding, in bytes; `None` before the first sampling.
    muds: Option<u32>,
    /// `MUDS_previous`: the result of the last sampling, in bytes.
    last_sample: Option<u32>,
    interval: Interval,
    sampling: Option<Sampling>,
    gaps: Gaps,
    flow: Flow,
    rtt: Rtt,
    /// The current round-trip estimate.
    round_trip: Duration,
    edge: Edge,
    congestion: Congestion,
    /// When the delayed ACK is due; `None` if none is planned.
    due: Option<Instant>,
    /// Out-of-order wire segments that were answered since RCV.NXT moved.
    out_of_order: u32,
    /// The peer pushed data that is not acknowledged.
    pushed: bool,
    /// The peer's FIN was seen.
    fin_seen: bool,
    /// Arrivals still to be acknowledged at once, at the start or after a pause.
    quick: u32,
    /// An ACK waited for its delay since the last sampling.
    waited: bool,
    /// Why the last ACK was asked for.
    why: Why,
    /// Samplings completed, and samplings aborted.
    samples: u64,
    aborted: u64,
}

/// What to do, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// An ACK at once.
    Ack(Why),
    /// An ACK at this instant, unless more arrives.
    Delay(Instant),
    /// No ACK: a sampling that lasts up to this instant.
    Hold(Instant),
}

/// Why an ACK is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Quick,
    Threshold,
    Timer,
    SampleStart,
    SampleEnd,
    SampleFull,
    OutOfOrder,
    Hole,
    Duplicate,
    Fin,
    Urgent,
    Probe,
    Gain,
    Read,
}

impl Why {
    /// As captures say it.
    const fn text(self) -> &'static str {
        match self {
            Self::Quick => "quick ACK",
            Self::Threshold => "35 % of what the sender can have outstanding",
            Self::Timer => "delay",
            Self::SampleStart => "a sampling begins",
            Self::SampleEnd => "a sampling ends",
            Self::SampleFull => "a sampling has used up the window",
            Self::OutOfOrder => "out of order",
            Self::Hole => "a hole is filled",
            Self::Duplicate => "duplicate",
            Self::Fin => "FIN",
            Self::Urgent => "urgent",
            Self::Probe => "probe",
            Self::Gain => "the window opens by the threshold",
            Self::Read => "pushed data was read",
        }
    }
}

impl Adaptive {
    fn new(name: &'static str, settings: Settings, init: &AckInit) -> Self {
        Self {
            name,
            settings,
            hold_limit: init.hold_limit,
            muds: None,
            last_sample: None,
            interval: Interval::new(settings.interval),
            sampling: None,
            gaps: Gaps::default(),
            flow: Flow::default(),
            rtt: Rtt::default(),
            round_trip: rtt::UNKNOWN,
            edge: Edge::NEW,
            congestion: Congestion::default(),
            due: None,
            out_of_order: 0,
            pushed: false,
            fin_seen: false,
            quick: 0,
            waited: false,
            why: Why::Quick,
            samples: 0,
            aborted: 0,
        }
    }

    /// A segment with data arrived: steps 10 to 18, in this order.
    fn decide(&mut self, view: &RecvView, data: &DataArrival) -> Decision {
        // Step 15: a segment that is not part of the stream is answered; it says nothing about the
        // sender.
        if matches!(data.class, DataClass::Probe | DataClass::Unacceptable) {
            self.abort();
            return Decision::Ack(Why::Probe);
        }
        self.rtt.on_data(view, data);
        self.round_trip = self.rtt.current(view, self.settings.rtt, self.settings.least_rtt);
        // Step 10: evaluated when data ends the pause, since nothing is decided during it.
        if let Some(signs) = self.settings.signs()
            && self.congestion.is_pause(&signs, view.now, self.gaps.last(), self.round_trip)
        {
            self.congested(view, Trigger::Pause);
        }
        self.restart_quick(view, data);
        self.gaps.arrived(view.now);
        self.flow.on_data(view, self.round_trip);
        let third = self.count_out_of_order(data);
        // Steps 13 and 33.
        if let Some(signs) = self.settings.signs() {
            if data.class == DataClass::Duplicate && signs.duplicates {
                self.congested(view, Trigger::Duplicate);
            } else if third && signs.dupacks {
                self.congested(view, Trigger::ThirdDupAck);
            }
        }
        // A sender in slow start grows with the ACKs it gets, so at first each arrival gets one.
        // They say nothing about MUDS, and the interval only starts after them.
        if self.quick > 0 && data.class == DataClass::New && !data.fin {
            self.quick -= 1;
            return Decision::Ack(Why::Quick);
        }
        // Step 14. A super-packet counts as its wire segments.
        let frozen = self.congestion.is_recovering();
        if self.sampling.is_none() && !frozen {
            self.interval.count(data.segments);
        }
        self.fin_seen |= data.fin;
        self.pushed |= data.psh;
        if let Some(why) = at_once(data) {
            if let Some(decision) = self.stay_silent(view, data, why) {
                return decision;
            }
            self.abort();
            return Decision::Ack(why);
        }
        // Step 16.
        if let Some(decision) = self.sample(view, data) {
            return decision;
        }
        // Step 17.
        if self.interval.is_over() && !frozen && self.is_worth_it(view) && self.may_sample(view, data) {
            self.due = None;
            self.waited = false;
            self.sampling = Some(Sampling::new(view.now, self.round_trip));
            return Decision::Ack(Why::SampleStart);
        }
        if view.unacked() >= self.threshold(view) {
            return Decision::Ack(Why::Threshold);
        }
        let first = view.oldest_unacked.unwrap_or(view.now);
        let due = *self.due.get_or_insert(first + self.delay());
        if due <= view.now {
            self.note_wait(view);
            return Decision::Ack(Why::Timer);
        }
        Decision::Delay(due)
    }

    /// A sender that begins, paused, or sent something again has a small window and needs ACKs
    /// without delay; one that hears of congestion, too. There is one for two segments of the
    /// receive window, as in Linux.
    fn restart_quick(&mut self, view: &RecvView, data: &DataArrival) {
        let pause = self.round_trip.saturating_mul(2).max(congestion::LEAST_PAUSE);
        let paused = self.gaps.last().is_none_or(|last| view.now.since(last) >= pause);
        if paused || data.ce || data.class == DataClass::Duplicate {
            let window = view.edge.saturating_distance_from(view.highest_ack);
            let pairs = window / self.settings.host.mss(view).saturating_mul(2);
            self.quick = self.quick.max(self.settings.quick.min(pairs.max(LEAST_QUICK)));
        }
    }

    /// Step 12: counts out-of-order segments since RCV.NXT last moved. True on the third one. (The
    /// sender counts the ACKs they cause; in a silent sampling there are none.)
    fn count_out_of_order(&mut self, data: &DataArrival) -> bool {
        let before = self.out_of_order;
        match data.class {
            DataClass::New | DataClass::Hole => self.out_of_order = 0,
            DataClass::OutOfOrder if !self.is_silent() => {
                self.out_of_order = before.saturating_add(data.segments);
            }
            _ => {}
        }
        before < 3 && self.out_of_order >= 3
    }

    /// True during a sampling that is silent whatever arrives.
    const fn is_silent(&self) -> bool {
        self.settings.silent && self.sampling.is_some()
    }

    /// Step 15, as in the paper: a sampling that does not report duplicate and out-of-order data,
    /// and ends when one segment arrives three times in a row.
    fn stay_silent(&mut self, view: &RecvView, data: &DataArrival, why: Why) -> Option<Decision> {
        let silent = self.is_silent() && matches!(why, Why::Duplicate | Why::OutOfOrder);
        let sampling = self.sampling.as_mut().filter(|_| silent)?;
        sampling.note(data.start);
        if sampling.is_third() {
            return Some(self.finish(view, Why::SampleEnd));
        }
        let until = sampling.cap(view, self.settings.bound(self.hold_limit));
        Some(if until <= view.now { self.finish(view, Why::SampleEnd) } else { Decision::Hold(until) })
    }

    /// Steps 22 to 25: data in order arrived in a sampling. `None` if there is none.
    fn sample(&mut self, view: &RecvView, data: &DataArrival) -> Option<Decision> {
        let least = self.least_window(view);
        let sampling = self.sampling.as_mut()?;
        sampling.note(data.start);
        let bound = self.settings.bound(self.hold_limit);
        let gaps = self.gaps.mean().map(|ipat| ipat.mul_ratio(13, 10));
        let wait = match self.settings.linger {
            Linger::Gaps => gaps,
            Linger::HalfRoundTrip => gaps.map(|gaps| gaps.min(self.round_trip.div(2))),
        };
        Some(match sampling.on_data(view, least, wait, bound) {
            Step::Full => self.finish(view, Why::SampleFull),
            Step::Over => self.finish(view, Why::SampleEnd),
            Step::Until(deadline) => Decision::Hold(deadline),
        })
    }

    /// A sampling stops the sender for a round trip and ends in a burst: in slow start that costs
    /// more than it is worth. With `when=need` it only happens after an ACK had to wait for its
    /// delay, which indicates a deadlock, or if MUDS demands more ACKs than the cap, possibly too
    /// many; and only if it is no longer than that delay.
    fn is_worth_it(&self, view: &RecvView) -> bool {
        if !self.settings.on_need {
            return true;
        }
        let cap = self.cap(self.settings.host.mss(view));
        let needed = self.waited || self.muds.is_some_and(|muds| sunos::share_of(muds) < cap);
        needed && Sampling::length(self.round_trip) <= self.delay()
    }

    /// Step 21: the buffer has room for what a sampling may receive, and more data is to come. The
    /// data that just arrived may be read before the ACK is sent; that is checked then.
    fn may_sample(&self, view: &RecvView, data: &DataArrival) -> bool {
        view.free.saturating_add(data.end.saturating_distance_from(data.start)) >= self.least_window(view)
            && !self.fin_seen
    }

    /// Steps 21 and 23: the sender's own silly window avoidance sends nothing into a smaller
    /// window.
    fn least_window(&self, view: &RecvView) -> u32 {
        self.settings.host.mss(view).min(view.buffer / 2)
    }

    /// Ends a sampling, and acknowledges everything.
    fn finish(&mut self, view: &RecvView, why: Why) -> Decision {
        if let Some(sampling) = self.sampling.take() {
            self.learn(view, sampling.got());
        }
        Decision::Ack(why)
    }

    /// Steps 28 to 31: evaluates a sampling.
    fn learn(&mut self, view: &RecvView, got: u32) {
        if got == 0 {
            // Step 28: an application that sends nothing does not make a small sender.
            self.interval.restart();
            self.aborted += 1;
            return;
        }
        let mss = self.settings.host.mss(view);
        match self.last_sample {
            // Step 29.
            None => {
                self.interval.shorten(None);
                self.muds = Some(got);
            }
            // Step 30.
            Some(last) if self.are_alike(got, last, mss) => self.interval.lengthen(self.settings.fewer),
            Some(last) => {
                self.interval.shorten(self.settings.fewer.then_some(2));
                if got > last {
                    self.muds = Some(got);
                }
            }
        }
        // Step 31: this becomes the last sample, even if it did not change MUDS. So a small sample
        // lets a later one bring MUDS down, which corrects an estimate that is too large.
        self.last_sample = Some(got);
        self.interval.restart();
        self.samples += 1;
    }

    /// Step 30: samples that differ by less than a segment. With a cap (step 42) also samples that
    /// are both above it: on a fast path no two samples are within a segment, and constant sampling
    /// would gain nothing.
    fn are_alike(&self, got: u32, last: u32, mss: u32) -> bool {
        let cap = self.cap(mss);
        got.abs_diff(last) < mss || sunos::share_of(got.min(last)) >= cap
    }

    /// Steps 15, 26, 27 and 35: aborts a sampling without an estimate.
    fn abort(&mut self) {
        if self.sampling.take().is_some() {
            self.interval.restart();
            self.aborted += 1;
        }
    }

    /// A timer sends the ACK: notes whether its delay ran out. Pushed data waits for less.
    fn note_wait(&mut self, view: &RecvView) {
        self.waited |= view.oldest_unacked.is_none_or(|first| first + self.delay() <= view.now);
    }

    /// Steps 33 to 36.
    fn congested(&mut self, view: &RecvView, trigger: Trigger) {
        let (mss, rtt) = (self.settings.host.mss(view), self.round_trip);
        if let Some(muds) = self.muds
            && let Some(reduced) = self.congestion.reduce(view.now, muds, mss, rtt, trigger)
        {
            self.abort();
            self.muds = Some(reduced);
        }
    }

    /// Pushed data that was read completely is the end of a message, or of what the sender's buffer
    /// holds: the sender may wait for the ACK. It waits for a small part of a round trip at most,
    /// and not at all if it is more than that part of what arrives in one: so a sender with much
    /// outstanding gets fewer ACKs, and none loses by it.
    fn on_pushed_read(&mut self, view: &RecvView) -> Option<AckPlan> {
        let part = self.settings.push?;
        if !self.pushed || view.free < view.buffer || view.unacked() == 0 {
            return None;
        }
        if view.unacked() > self.flow.per_round_trip() / part {
            self.why = Why::Read;
            return Some(self.settings.host.ack());
        }
        let due = view.now + self.round_trip.div(part.into());
        let due = self.due.map_or(due, |earlier| earlier.min(due));
        self.due = Some(due);
        Some(AckPlan::By(due))
    }

    /// Number of unacknowledged bytes that triggers an ACK: 35 % of MUDS, or step 7 before there is
    /// one.
    fn threshold(&self, view: &RecvView) -> u32 {
        let mss = self.settings.host.mss(view);
        let Some(muds) = self.muds else { return sunos::threshold(view.buffer, mss) };
        sunos::share_of(muds).min(self.cap(mss)).max(1)
    }

    /// Step 42: RFC 9293, section 3.8.6.3 (SHLD-18): at least every second full segment. In bytes.
    fn cap(&self, mss: u32) -> u32 {
        self.settings.cap.map_or(u32::MAX, |segments| mss.saturating_mul(segments))
    }

    /// `T_d`: how long data waits for its ACK.
    fn delay(&self) -> Duration {
        self.settings.delay.min(self.hold_limit)
    }
}

/// Steps 15 and 18: why the segment is answered at once. (PSH is set on every segment that empties
/// a BSD sender's buffer, and is ignored here.)
const fn at_once(data: &DataArrival) -> Option<Why> {
    match data.class {
        _ if data.fin => Some(Why::Fin),
        // RFC 5681, section 4.2.
        DataClass::OutOfOrder => Some(Why::OutOfOrder),
        DataClass::Hole => Some(Why::Hole),
        DataClass::Duplicate => Some(Why::Duplicate),
        DataClass::Probe | DataClass::Unacceptable => Some(Why::Probe),
        DataClass::New if data.urg => Some(Why::Urgent),
        DataClass::New => None,
    }
}

impl AckPolicy for Adaptive {
    fn name(&self) -> &'static str {
        self.name
    }

    fn waives(&self) -> SoftObligations {
        let mut waives = SoftObligations::NONE.and_every_second();
        waives.out_of_order = self.settings.silent;
        waives.duplicate = self.settings.silent;
        waives
    }

    fn on_data(&mut self, view: &RecvView, data: &DataArrival) -> AckPlan {
        let host = self.settings.host;
        match self.decide(view, data) {
            Decision::Ack(why) => {
                self.why = why;
                host.ack()
            }
            Decision::Hold(until) => AckPlan::Withhold { until },
            Decision::Delay(due) => sunos::delayed(view, self.threshold(view), due).unwrap_or(host.ack()),
        }
    }

    fn on_ack_sent(&mut self, view: &RecvView, sent: &AckSent) -> AckPlan {
        // Step 32.
        self.due = None;
        self.pushed = false;
        self.edge.on_ack_sent(view);
        self.congestion.on_ack_sent(view.now);
        // Steps 37 and 38.
        if sent.advance > 0
            && let Some(muds) = self.muds
        {
            self.muds = Some(self.congestion.grow(muds, self.settings.host.mss(view)));
        }
        let least = self.least_window(view);
        match self.sampling.as_mut() {
            // Step 21, with the window that the ACK really advertised. The count stays at 0.
            Some(sampling) if sampling.is_pending() && window_left(view) < least => {
                self.sampling = None;
                AckPlan::Keep
            }
            // Step 19: the ACK that starts the sampling has been sent. If it does not cover
            // everything, another one follows.
            Some(sampling) if sampling.is_pending() => {
                let covers_all = view.unacked() == 0;
                if covers_all { AckPlan::Withhold { until: sampling.begin(view.now) } } else { AckPlan::Keep }
            }
            // Steps 26 and 27: any ACK, whatever its reason, ends the silence.
            _ => {
                self.abort();
                AckPlan::Keep
            }
        }
    }

    fn on_app_read(&mut self, view: &RecvView) -> AckPlan {
        // Step 27; the core re-opens a closed window regardless. Step 9.
        if self.sampling.is_some() {
            return AckPlan::Keep;
        }
        if self.edge.gain(view) >= self.threshold(view) {
            self.why = Why::Gain;
            return self.settings.host.ack();
        }
        self.on_pushed_read(view).unwrap_or(AckPlan::Keep)
    }

    /// Step 41: the timer belongs to the sampling, if there is one.
    fn on_timeout(&mut self, view: &RecvView) -> AckPlan {
        match self.sampling {
            // The ACK that starts it has not been sent yet.
            Some(sampling) if sampling.is_pending() => AckPlan::Keep,
            Some(sampling) if view.now < sampling.deadline() => {
                AckPlan::Withhold { until: sampling.deadline() }
            }
            Some(sampling) => {
                self.finish(view, Why::SampleEnd);
                self.why = Why::SampleEnd;
                let silent = sampling.got() == 0 && view.oldest_unacked.is_none();
                if silent { AckPlan::Keep } else { self.settings.host.ack() }
            }
            None => {
                self.due = None;
                self.why = Why::Timer;
                self.note_wait(view);
                self.settings.host.ack()
            }
        }
    }

    fn rule(&self, _view: &RecvView, _cause: AckCause) -> &'static str {
        self.why.text()
    }

    /// Step 25 with the core's bound: what was sampled so far counts.
    fn on_hold_truncated(&mut self, view: &RecvView) {
        match self.sampling.take_if(|sampling| !sampling.is_pending()) {
            Some(sampling) => self.learn(view, sampling.got()),
            None => self.waited = true,
        }
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.bytes("muds", self.muds.unwrap_or(0));
        report.bytes("last_sample", self.last_sample.unwrap_or(0));
        report.number("isp_t", self.interval.length());
        report.number("isp_cnt", self.interval.left());
        report.number("quick", self.quick);
        report.flag("sampling", self.sampling.is_some());
        report.count("samples", self.samples);
        report.count("aborted_samples", self.aborted);
        report.micros("ipat_us", self.gaps.mean().unwrap_or(Duration::ZERO));
        report.micros("rtt_us", self.round_trip);
        if self.settings.signs().is_some() {
            self.congestion.metrics(report);
        }
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let settings = self.settings.with(params)?;
        if settings.silent != self.settings.silent {
            return Err(SpecError::new(
                "sampling=abort or sampling=paper is fixed for the life of a connection: the core asks once what a policy \
                 waives",
            ));
        }
        self.settings = settings;
        self.quick = self.quick.min(settings.quick);
        Ok(())
    }
}
