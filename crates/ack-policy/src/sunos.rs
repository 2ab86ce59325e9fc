//! `sunos-delayed`: the delayed ACK of SunOS 4.1 and its BSD relatives. Together with Nagle's
//! algorithm at the sender it stalls a connection until a timer expires (Chang, Chan and Yeung,
//! sections 15.2 and 15.3).
//!
//! - Step 7: an ACK at once for 35 % of the receive buffer or two segments, whichever is less.
//! - Step 8: otherwise at the next tick of a free-running clock of 200 ms, shared by all
//!   connections of a host; or, as in the paper's simulation, a time after the first unacknowledged
//!   byte.
//! - Step 9: a read sends an ACK if it could move the window's edge by as much as step 7 asks for.
//!
//! It fails if 35 % of the buffer is more than the sender ever has outstanding: then each tick
//! releases one buffer.

use crate::profile::{Edge, Host, Profile, Profiled, mss, profile, window};
use ackline_tcp_core::policy::ack::{
    AckCause, AckInit, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, RecvView, SoftObligations,
};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed, ParamRow};
use ackline_tcp_core::policy::{Metrics, NewAckPolicy, Params, SpecError};
use ackline_tcp_core::{Duration, Instant};
use alloc::boxed::Box;
use alloc::sync::Arc;

const NAME: &str = "sunos-delayed";

pub(crate) const ENTRY: Entry<NewAckPolicy> = Entry {
    aliases: &["bsd-delayed"],
    summary: "an ACK for 35 % of the receive buffer or two segments, or at a tick of 200 ms",
    source: "SunOS 4.1; Chang, Chan and Yeung, section 15.2",
    keys: ParamRow::of::<Settings>,
    ..Entry::new(NAME, |params| {
        let settings = Settings::from_params(NAME, params)?;
        Ok(Arc::new(move |_: &AckInit| Box::new(SunOsDelayed::new(settings))))
    })
};

/// Percentage of the largest possible outstanding data that triggers an ACK.
pub(crate) const SHARE: u64 = 35;

/// The part of `bytes` that triggers an ACK, rounded up.
pub(crate) fn share_of(bytes: u32) -> u32 {
    u32::try_from((SHARE * u64::from(bytes)).div_ceil(100)).unwrap_or(u32::MAX)
}

/// Step 7: number of unacknowledged bytes that triggers an ACK at once.
pub(crate) fn threshold(buffer: u32, mss: u32) -> u32 {
    share_of(buffer).min(mss.saturating_mul(2)).max(1)
}

/// Step 8: what a delayed ACK waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// The tick of the host's clock.
    Tick,
    /// A time after the first unacknowledged byte.
    Segment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    host: Host,
    timer: Timer,
    /// Between two ticks, or after the first byte.
    delay: Duration,
    /// Of the first tick.
    phase: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(Profile::Default)
    }
}

impl Profiled for Settings {
    fn with_profile(&self, profile: Profile) -> Self {
        Self::new(profile)
    }
}

impl AsRef<Host> for Settings {
    fn as_ref(&self) -> &Host {
        &self.host
    }
}

impl AsMut<Host> for Settings {
    fn as_mut(&mut self) -> &mut Host {
        &mut self.host
    }
}

/// The longest delay.
const LONGEST: Duration = Duration::from_millis(500);

impl Keyed for Settings {
    const KEYS: &'static [Key<Self>] = &[
        profile(),
        Key::choice(
            "timer",
            &["tick", "segment"],
            "a delayed ACK waits for a tick that runs freely, or a time from its first byte",
            |it| it.timer as usize,
            |it, at| it.timer = [Timer::Tick, Timer::Segment][at],
        ),
        Key::time(
            "delay",
            Duration::from_millis(1)..=LONGEST,
            "time between ticks, or from the first byte; the connection's hold limit caps it",
            |it| &mut it.delay,
        ),
        Key::time("phase", Duration::ZERO..=LONGEST, "when the clock first ticks", |it| &mut it.phase),
        mss(),
        window(),
    ];
}

impl Settings {
    const fn new(profile: Profile) -> Self {
        Self {
            host: Host::new(profile),
            timer: Timer::Tick,
            delay: Duration::from_millis(200),
            phase: Duration::ZERO,
        }
    }

    /// When the ACK is due for data that has waited since `since`.
    fn due(&self, since: Instant) -> Instant {
        match self.timer {
            Timer::Segment => since + self.delay,
            Timer::Tick => {
                let (period, phase) = (self.delay.as_nanos().max(1), self.phase.as_nanos());
                let into = (since.as_nanos() % period + period - phase % period) % period;
                since + Duration::from_nanos(period - into)
            }
        }
    }
}

/// The delayed ACK of SunOS.
#[derive(Clone, Debug)]
pub struct SunOsDelayed {
    settings: Settings,
    edge: Edge,
    /// The last segment was urgent.
    urgent: bool,
}

impl SunOsDelayed {
    const fn new(settings: Settings) -> Self {
        Self { settings, edge: Edge::NEW, urgent: false }
    }

    fn threshold(&self, view: &RecvView) -> u32 {
        threshold(view.buffer, self.settings.host.mss(view))
    }
}

impl Default for SunOsDelayed {
    fn default() -> Self {
        Self::new(Settings::new(Profile::Default))
    }
}

impl AckPolicy for SunOsDelayed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn delay(&self) -> Option<Duration> {
        Some(self.settings.delay)
    }

    /// Two announced segments may be more than two received ones.
    fn waives(&self) -> SoftObligations {
        SoftObligations::NONE.and_every_second()
    }

    fn on_data(&mut self, view: &RecvView, data: &DataArrival) -> AckPlan {
        let threshold = self.threshold(view);
        self.urgent = data.urg;
        if data.class != DataClass::New || data.fin || data.urg || view.unacked() >= threshold {
            return self.settings.host.ack();
        }
        let due = self.settings.due(view.oldest_unacked.unwrap_or(view.now));
        delayed(view, threshold, due).unwrap_or(self.settings.host.ack())
    }

    fn on_ack_sent(&mut self, view: &RecvView, _sent: &AckSent) -> AckPlan {
        self.edge.on_ack_sent(view);
        self.urgent = false;
        AckPlan::Keep
    }

    fn on_app_read(&mut self, view: &RecvView) -> AckPlan {
        if self.edge.gain(view) >= self.threshold(view) { self.settings.host.ack() } else { AckPlan::Keep }
    }

    fn on_timeout(&mut self, _view: &RecvView) -> AckPlan {
        self.settings.host.ack()
    }

    fn rule(&self, view: &RecvView, cause: AckCause) -> &'static str {
        match cause {
            AckCause::Timer => "delay",
            _ if view.unacked() >= self.threshold(view) => "35 % of the window",
            // More data came before the timer was served.
            _ if view.oldest_unacked.is_some_and(|since| self.settings.due(since) <= view.now) => "delay",
            _ if self.urgent => "urgent",
            _ if self.edge.gain(view) >= self.threshold(view) => "the window opens by 35 %",
            _ => "",
        }
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.millis("delay_ms", self.settings.delay);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.settings.set(NAME, params)
    }
}

/// The plan for data that waits until `due` or until `threshold` bytes have arrived; `None` if it
/// has waited enough.
///
/// If the threshold exceeds what RFC 9293 (section 3.8.6.3) wants acknowledged at once, the ACK is
/// withheld.
pub(crate) fn delayed(view: &RecvView, threshold: u32, due: Instant) -> Option<AckPlan> {
    if due <= view.now {
        None
    } else if threshold > view.rmss.max(1).saturating_mul(2) {
        Some(AckPlan::Withhold { until: due })
    } else {
        Some(AckPlan::By(due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::SeqNum;

    const MSS: u32 = 9_148;

    fn policy(params: &str) -> SunOsDelayed {
        SunOsDelayed::new(Settings::from_params(NAME, &params.parse().unwrap()).unwrap())
    }

    /// `unacked` bytes wait since `since` ms, and another segment arrives at `now` ms.
    fn arrival(policy: &mut SunOsDelayed, buffer: u32, since: u64, now: u64, unacked: u32) -> AckPlan {
        let mut view = RecvView::new(Instant::from_millis(now), SeqNum(1 << 20), buffer, MSS);
        view.highest_ack = view.rcv_nxt - unacked;
        view.oldest_unacked = Some(Instant::from_millis(since));
        policy.on_data(&view, &DataArrival::new(view.rcv_nxt - 100, view.rcv_nxt, DataClass::New))
    }

    #[test]
    fn the_thresholds_are_those_of_the_paper() {
        let thresholds = [4, 8, 16, 24, 32, 40, 48, 52].map(|kb: u32| threshold(kb * 1_024, MSS));
        assert_eq!(thresholds, [1_434, 2_868, 5_735, 8_602, 11_469, 14_336, 17_204, 2 * MSS]);
    }

    #[test]
    fn step_7_at_the_threshold_and_not_before() {
        let mut policy = policy("profile=paper");
        let now = AckPlan::Now { window: ackline_tcp_core::policy::ack::WindowHint::AllFree };
        assert_eq!(arrival(&mut policy, 16_384, 0, 0, 5_735), now);
        assert!(matches!(arrival(&mut policy, 16_384, 0, 0, 5_734), AckPlan::By(_)));
    }

    #[test]
    fn step_8_all_wait_for_the_next_tick_or_each_for_its_own_time() {
        let by = |ms| AckPlan::By(Instant::from_millis(ms));
        for (params, since, now, expected) in [
            ("", 0, 0, by(200)),
            ("", 1, 1, by(200)),
            ("", 199, 199, by(200)),
            ("", 200, 200, by(400)),
            ("", 199, 250, AckPlan::NOW),
            ("phase=50ms", 49, 49, by(50)),
            ("phase=50ms", 50, 50, by(250)),
            ("phase=450ms,delay=100ms", 20, 20, by(50)),
            ("timer=segment", 199, 250, by(399)),
            ("timer=segment,delay=500ms", 199, 250, by(699)),
        ] {
            assert_eq!(
                arrival(&mut policy(params), 16_384, since, now, 4_096),
                expected,
                "{params} {since} {now}"
            );
        }
    }

    #[test]
    fn each_rule_has_its_words() {
        // Arrives at 10 ms, and is asked for at this time.
        let view = |now, unacked: u32| {
            let mut view = RecvView::new(Instant::from_millis(now), SeqNum(1 << 20), 16_384, MSS);
            view.highest_ack = view.rcv_nxt - unacked;
            view.oldest_unacked = (unacked > 0).then(|| Instant::from_millis(10));
            view
        };
        let policy = policy("");
        assert_eq!(policy.rule(&view(10, 5_735), AckCause::Plan), "35 % of the window");
        assert_eq!(policy.rule(&view(200, 100), AckCause::Timer), "delay");
        assert_eq!(policy.rule(&view(200, 100), AckCause::Plan), "delay");
        assert_eq!(policy.rule(&view(199, 100), AckCause::Plan), "", "a rule of the core's");

        let mut urgent = policy.clone();
        let before = view(10, 100);
        let mut data = DataArrival::new(before.rcv_nxt - 100, before.rcv_nxt, DataClass::New);
        data.urg = true;
        assert_eq!(urgent.on_data(&before, &data), AckPlan::NOW);
        assert_eq!(urgent.rule(&before, AckCause::Plan), "urgent");
        urgent.on_ack_sent(&before, &AckSent::new(AckCause::Plan, 100));
        assert_eq!(urgent.rule(&view(11, 100), AckCause::Plan), "");

        let mut reader = policy;
        let mut full = view(10, 0);
        full.free = 16_384 - 5_735;
        reader.on_ack_sent(&full, &AckSent::new(AckCause::Plan, 5_735));
        assert_eq!(reader.on_app_read(&view(10, 0)), AckPlan::NOW);
        assert_eq!(reader.rule(&view(10, 0), AckCause::Plan), "the window opens by 35 %");
    }

    #[test]
    fn what_is_out_of_order_or_the_end_is_answered_at_once() {
        let view = RecvView::new(Instant::ZERO, SeqNum(5), 16_384, MSS);
        let mut policy = SunOsDelayed::default();
        for class in [DataClass::OutOfOrder, DataClass::Hole, DataClass::Duplicate, DataClass::Probe] {
            assert_eq!(policy.on_data(&view, &DataArrival::new(SeqNum(9), SeqNum(10), class)), AckPlan::NOW);
        }
        let mut fin = DataArrival::new(SeqNum(4), SeqNum(5), DataClass::New);
        fin.fin = true;
        assert_eq!(policy.on_data(&view, &fin), AckPlan::NOW);
    }
}
