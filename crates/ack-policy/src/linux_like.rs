//! `linux-like`: the ACKs that a sender gets from a Linux host.
//!
//! ```text
//!   start ──► quick: an ACK for every arrival ──16 ACKs──► delayed: every second segment, or the timer
//!               ▲                                              │        ▲
//!               └─ duplicate, first CE, or a pause of an RTO ──┤        │ timer ran out
//!                                                              └──► interactive: as delayed; wait for a reply
//! ```
//!
//! Quick ACKs let a sender in slow start grow as fast as it may. The delay follows the arrivals: it
//! approaches 40 ms while they are dense, grows with the gaps between them, and doubles if it was
//! too short for a second segment to arrive. A host that answers within the delay is interactive:
//! its ACKs ride on its replies.
//!
//! A sender that answers marks by ECN may have a window of one segment. So the first mark is worth
//! two quick ACKs, the next ones none until the sender says by CWR that it has answered, and CWR is
//! acknowledged at once. A sender of DCTCP does not say it: each mark is worth as many quick ACKs
//! as the start.
//!
//! Based on Linux 6.x (`tcp_event_data_recv`, `tcp_data_ecn_check`, `tcp_ecn_accept_cwr`,
//! `tcp_send_delayed_ack`, `tcp_cleanup_rbuf`). One difference: Linux lets a slow reader's ACKs
//! wait for the read; here the core demands one for every second segment.

use ackline_tcp_core::config::Ecn;
use ackline_tcp_core::policy::ack::{
    AckCause, AckInit, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, RecvView,
};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed, ParamRow};
use ackline_tcp_core::policy::{Metrics, NewAckPolicy, Params, SpecError};
use ackline_tcp_core::{Duration, Instant};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::RangeInclusive;

const NAME: &str = "linux-like";

pub(crate) const ENTRY: Entry<NewAckPolicy> = Entry {
    aliases: &["linux"],
    summary: "quick ACKs at the start, then delayed ones whose delay adapts",
    source: "Linux 6.x",
    keys: ParamRow::of::<Settings>,
    ..Entry::new(NAME, |params| {
        let settings = Arc::new(Settings::from_params(NAME, params)?);
        Ok(Arc::new(move |_: &AckInit| Box::new(LinuxLike::new(settings.clone()))))
    })
};

/// A pause in the arrivals after which a peer restarts in slow start: Linux's minimum RTO, used if
/// no RTT is known.
const LEAST_PAUSE: Duration = Duration::from_millis(200);
/// Fewest quick ACKs at the start, however small the window.
const LEAST_QUICK: u32 = 2;
/// Most quick ACKs for a mark by ECN.
const MARK_QUICK: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    quick: u32,
    min: Duration,
    max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { quick: 16, min: Duration::from_millis(40), max: Duration::from_millis(200) }
    }
}

impl Keyed for Settings {
    const KEYS: &'static [Key<Self>] = &[
        Key::integer("quick", 0..=1_000, "ACKs sent at once at the start and after a pause", |it| {
            &mut it.quick
        }),
        Key::time("min", DELAYS, "shortest delay", |it| &mut it.min),
        Key::time("max", DELAYS, "longest delay", |it| &mut it.max),
    ];

    fn check(&self) -> Result<(), SpecError> {
        if self.min > self.max {
            let text = alloc::format!("min={:?} is longer than max={:?}", self.min, self.max);
            return Err(SpecError::new(text));
        }
        Ok(())
    }
}

/// What the delay may be.
const DELAYS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(499);

/// The ACK policy of a Linux host.
#[derive(Clone, Debug)]
pub struct LinuxLike {
    /// Shared by all connections until they differ.
    settings: Arc<Settings>,
    /// Quick ACKs left.
    quick: u32,
    /// The current delay: Linux's `ato`.
    delay: Duration,
    /// This host answers what it receives, so ACKs wait to ride on the answer.
    interactive: bool,
    /// When data last arrived; [`Instant::FAR_FUTURE`] before the first.
    last_arrival: Instant,
    /// When the delayed ACK is due; [`Instant::FAR_FUTURE`] if none is planned.
    due: Instant,
    /// The peer pushed data that is not acknowledged.
    pushed: bool,
    /// A mark has come, and CWR has not (Linux: `TCP_ECN_DEMAND_CWR`).
    marked: bool,
    /// CWR has come with data that is not acknowledged.
    reduced: bool,
}

impl LinuxLike {
    fn new(settings: Arc<Settings>) -> Self {
        Self {
            quick: 0,
            delay: settings.min,
            interactive: false,
            last_arrival: Instant::FAR_FUTURE,
            due: Instant::FAR_FUTURE,
            pushed: false,
            marked: false,
            reduced: false,
            settings,
        }
    }

    /// One quick ACK per two segments of the window, at most so many.
    fn enter_quick(&mut self, view: &RecvView, most: u32) {
        let window = view.edge.saturating_distance_from(view.highest_ack);
        let pairs = window / view.rmss.max(1).saturating_mul(2);
        self.quick = self.quick.max(most.min(pairs.max(LEAST_QUICK)));
        self.interactive = false;
        self.delay = self.settings.min;
    }

    /// Each arrival is acknowledged.
    const fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// The application has read a message to its end, and a reply is not likely.
    const fn is_read(&self, view: &RecvView) -> bool {
        self.pushed && !self.interactive && view.free == view.buffer
    }

    /// Adapts the delay to the time since the last arrival, and to the others of a run, which came
    /// without a gap.
    fn measure(&mut self, view: &RecvView, packets: u32) {
        let last = core::mem::replace(&mut self.last_arrival, view.now);
        if last == Instant::FAR_FUTURE {
            self.enter_quick(view, self.settings.quick);
        } else {
            self.measure_gap(view, view.now.since(last));
        }
        for _ in 1..packets {
            let before = self.delay;
            self.measure_gap(view, Duration::ZERO);
            if self.delay == before {
                break;
            }
        }
    }

    fn measure_gap(&mut self, view: &RecvView, gap: Duration) {
        let half = self.settings.min.div(2);
        let rtt = view.srtt.or(view.handshake_rtt).unwrap_or(Duration::ZERO);
        if gap <= half {
            self.delay = self.delay.div(2) + half;
        } else if gap < self.delay {
            self.delay = self.delay.div(2) + gap;
        } else if gap > rtt.saturating_mul(2).max(LEAST_PAUSE) {
            self.enter_quick(view, self.settings.quick);
        }
        self.delay = self.delay.min(self.settings.max);
    }

    /// The delay of an ACK planned at this event: no longer than a round trip, which is what the
    /// peer expects, but at least the minimum.
    fn plan(&self, view: &RecvView) -> Duration {
        match view.srtt {
            Some(srtt) => self.delay.min(srtt.max(self.settings.min)),
            None => self.delay,
        }
    }
}

/// Two full segments wait for their ACK.
fn is_second(view: &RecvView) -> bool {
    view.unacked() >= view.rmss.max(1).saturating_mul(2)
}

impl Default for LinuxLike {
    /// 16 quick ACKs, then a delay between 40 and 200 ms.
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl AckPolicy for LinuxLike {
    fn name(&self) -> &'static str {
        "linux-like"
    }

    fn lets_acks_wait(&self) -> bool {
        true
    }

    fn takes_runs(&self) -> bool {
        true
    }

    fn delay(&self) -> Option<Duration> {
        Some(self.delay)
    }

    fn on_data(&mut self, view: &RecvView, data: &DataArrival) -> AckPlan {
        if data.class == DataClass::Duplicate || (data.ce && view.ecn == Ecn::Dctcp) {
            // The peer retransmitted needlessly, or counts marks and may have a window of one
            // segment.
            self.enter_quick(view, self.settings.quick);
        }
        self.reduced |= data.cwr;
        let marked = self.marked && !data.cwr;
        self.marked = marked || data.ce;
        if self.marked && !marked {
            self.enter_quick(view, self.settings.quick.min(MARK_QUICK));
        }
        if data.class != DataClass::New || data.fin {
            return AckPlan::NOW;
        }
        self.measure(view, data.packets);
        self.pushed |= data.psh;
        if self.is_quick() || is_second(view) || self.reduced {
            return AckPlan::NOW;
        }
        let due = (view.now + self.plan(view)).min(self.due);
        if due <= view.now {
            return AckPlan::NOW;
        }
        self.due = due;
        AckPlan::By(due)
    }

    fn on_ack_sent(&mut self, view: &RecvView, sent: &AckSent) -> AckPlan {
        self.due = Instant::FAR_FUTURE;
        self.pushed = false;
        self.reduced = false;
        if sent.advance > 0 {
            self.quick = self.quick.saturating_sub(1);
            let answers =
                self.last_arrival != Instant::FAR_FUTURE && view.now.since(self.last_arrival) < self.delay;
            if sent.cause == AckCause::Piggyback && answers {
                self.interactive = true;
            }
        }
        AckPlan::Keep
    }

    fn on_app_read(&mut self, view: &RecvView) -> AckPlan {
        // Pushed data that the application has read completely is the end of a message: unless a
        // reply is likely, waiting gains nothing.
        let unacked = view.unacked();
        if unacked > view.rmss || (self.is_read(view) && unacked > 0) { AckPlan::NOW } else { AckPlan::Keep }
    }

    fn on_timeout(&mut self, _view: &RecvView) -> AckPlan {
        self.due = Instant::FAR_FUTURE;
        if self.interactive {
            // The reply did not come in time.
            self.interactive = false;
            self.delay = self.settings.min;
        } else {
            self.delay = self.delay.saturating_mul(2).min(self.settings.max);
        }
        AckPlan::NOW
    }

    fn rule(&self, view: &RecvView, cause: AckCause) -> &'static str {
        match cause {
            AckCause::Timer => "delay",
            _ if self.is_quick() => "quick ACK",
            _ if is_second(view) => "second segment",
            _ if self.reduced => "CWR",
            // More data came before the timer was served.
            _ if self.due <= view.now => "delay",
            _ if view.unacked() > view.rmss => "more than a segment was read",
            _ if self.is_read(view) => "the end of a message was read",
            _ => "",
        }
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.number("quick", self.quick);
        report.millis("delay_ms", self.delay);
        report.flag("interactive", self.interactive);
        report.flag("planned", self.due != Instant::FAR_FUTURE);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut settings = *self.settings;
        settings.set(NAME, params)?;
        self.settings = Arc::new(settings);
        self.delay = self.delay.clamp(self.settings.min, self.settings.max);
        self.quick = self.quick.min(self.settings.quick);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::SeqNum;

    const MSS: u32 = 1000;

    /// A receiver, as far as the policy sees it; the application does not read.
    struct Host {
        policy: LinuxLike,
        view: RecvView,
        /// The rule of the last ACK.
        rule: &'static str,
    }

    impl Host {
        fn new() -> Self {
            Self {
                policy: LinuxLike::default(),
                view: RecvView::new(Instant::from_secs(1), SeqNum(u32::MAX - 5000), 1 << 20, MSS),
                rule: "",
            }
        }

        fn at(&mut self, ms: u64) -> &mut Self {
            self.view.now = Instant::from_secs(1) + Duration::from_millis(ms);
            self
        }

        /// `len` bytes arrive in order. An ACK that the policy wants is sent; otherwise the
        /// milliseconds until it is due.
        fn data(&mut self, len: u32) -> Option<u64> {
            self.arrive(len, false)
        }

        fn arrive(&mut self, len: u32, psh: bool) -> Option<u64> {
            let start = self.view.rcv_nxt;
            self.view.rcv_nxt += len;
            self.view.free -= len;
            let mut data = DataArrival::new(start, self.view.rcv_nxt, DataClass::New);
            data.psh = psh;
            let plan = self.policy.on_data(&self.view, &data);
            match plan {
                AckPlan::Now { .. } => {
                    self.ack(AckCause::Plan);
                    None
                }
                AckPlan::By(due) => Some(due.since(self.view.now).as_millis()),
                AckPlan::Keep | AckPlan::Withhold { .. } => panic!("{plan:?}"),
            }
        }

        fn ack(&mut self, cause: AckCause) {
            let advance = self.view.unacked();
            self.rule = self.policy.rule(&self.view, cause);
            self.view.highest_ack = self.view.rcv_nxt;
            self.policy.on_ack_sent(&self.view, &AckSent::new(cause, advance));
        }

        fn timer(&mut self) {
            assert_eq!(self.policy.on_timeout(&self.view), AckPlan::NOW);
            self.ack(AckCause::Timer);
        }

        /// Past the quick ACKs of the start.
        fn settled() -> Self {
            let mut host = Self::new();
            for _ in 0..16 {
                assert_eq!(host.data(MSS), None);
            }
            host
        }
    }

    #[test]
    fn sixteen_quick_acks_then_every_second_segment() {
        let mut host = Host::settled();
        for _ in 0..5 {
            assert_eq!(host.data(MSS), Some(40));
            assert_eq!(host.data(MSS), None);
        }
    }

    #[test]
    fn a_small_window_gets_fewer_quick_acks() {
        let mut host = Host::new();
        host.view.edge = host.view.rcv_nxt + 8 * MSS;
        let quick = (0..20).take_while(|_| host.data(MSS).is_none()).count();
        assert_eq!(quick, 4);
    }

    #[test]
    fn the_delay_follows_the_gaps_between_arrivals() {
        let mut host = Host::settled();
        assert_eq!(host.data(100), Some(40));
        // A gap between half the minimum and the delay: half the delay plus the gap.
        assert_eq!(host.at(30).data(100), Some(10), "the ACK that is planned does not move back");
        host.ack(AckCause::Obligation);
        assert_eq!(host.at(60).data(100), Some(50 / 2 + 30));
        host.ack(AckCause::Obligation);
        // A dense arrival: half the delay plus half the minimum.
        assert_eq!(host.at(61).data(100), Some(55 / 2 + 20));
    }

    #[test]
    fn a_timer_that_runs_out_doubles_the_delay_up_to_the_maximum() {
        let mut host = Host::settled();
        let mut now = 0;
        for expected in [40, 80, 160, 200, 200] {
            assert_eq!(host.at(now).data(100), Some(expected));
            now += expected;
            host.at(now).timer();
        }
    }

    #[test]
    fn the_delay_is_no_longer_than_a_round_trip() {
        let mut host = Host::settled();
        host.view.srtt = Some(Duration::from_millis(60));
        host.data(100);
        host.at(40).timer();
        assert_eq!(host.data(100), Some(60));
        host.ack(AckCause::Obligation);
        host.view.srtt = Some(Duration::from_millis(5));
        assert_eq!(host.data(100), Some(40));
    }

    #[test]
    fn a_pause_of_an_rto_brings_quick_acks_back() {
        let mut host = Host::settled();
        assert_eq!(host.at(200).data(MSS), Some(40));
        host.ack(AckCause::Obligation);
        assert_eq!(host.at(401).data(MSS), None);
        assert_eq!(host.at(402).data(MSS), None);
    }

    #[test]
    fn a_duplicate_brings_quick_acks_back() {
        let mut host = Host::settled();
        let old = DataArrival::new(host.view.rcv_nxt - MSS, host.view.rcv_nxt, DataClass::Duplicate);
        assert_eq!(host.policy.on_data(&host.view, &old), AckPlan::NOW);
        assert_eq!(host.data(100), None);
    }

    #[test]
    fn a_mark_is_worth_two_quick_acks_until_cwr_which_is_acknowledged_at_once() {
        let mut host = Host::settled();
        let mut arrive = |ce, cwr| {
            let start = host.view.rcv_nxt;
            host.view.rcv_nxt += MSS;
            let mut data = DataArrival::new(start, host.view.rcv_nxt, DataClass::New);
            (data.ce, data.cwr) = (ce, cwr);
            let plan = host.policy.on_data(&host.view, &data);
            if plan == AckPlan::NOW {
                host.ack(AckCause::Plan);
            }
            (plan == AckPlan::NOW, host.rule)
        };
        // The first mark, and a segment after it.
        assert_eq!(arrive(true, false), (true, "quick ACK"));
        assert!(arrive(true, false).0);
        // More marks, of which the sender will hear with the next ACK.
        assert!(!arrive(true, false).0);
        assert_eq!(arrive(true, false), (true, "second segment"));
        // The sender has answered; then a new mark.
        assert_eq!(arrive(false, true), (true, "CWR"));
        assert!(!arrive(false, false).0);
        assert_eq!(arrive(true, false), (true, "quick ACK"));
        // Marked and answered at once.
        for _ in 0..4 {
            arrive(true, false);
        }
        assert!(arrive(true, true).0 && arrive(false, false).0);
    }

    #[test]
    fn an_answering_host_waits_for_its_reply_until_one_is_late() {
        let mut host = Host::new();
        assert_eq!(host.data(100), None);
        host.at(1).data(100);
        host.view.highest_ack = host.view.rcv_nxt - 100;
        host.at(2).ack(AckCause::Piggyback);
        // Quick ACKs are left, but a reply is expected.
        assert_eq!(host.at(10).data(100), Some(40));
        host.at(50).timer();
        assert_eq!(host.at(51).data(100), None);
    }

    #[test]
    fn a_pushed_message_is_acknowledged_when_it_is_read() {
        let mut host = Host::settled();
        host.view.free = host.view.buffer;
        assert_eq!(host.arrive(100, true), Some(40));
        host.view.free = host.view.buffer - 50;
        assert_eq!(host.policy.on_app_read(&host.view), AckPlan::Keep, "half of it is read");
        host.view.free = host.view.buffer;
        assert_eq!(host.policy.on_app_read(&host.view), AckPlan::NOW);
        host.ack(AckCause::Plan);
        assert_eq!(host.data(100), Some(40));
        host.view.free = host.view.buffer;
        assert_eq!(host.policy.on_app_read(&host.view), AckPlan::Keep, "nothing was pushed");
    }

    #[test]
    fn each_rule_has_its_words() {
        let mut host = Host::new();
        assert_eq!((host.data(100), host.rule), (None, "quick ACK"));

        let mut host = Host::settled();
        host.data(MSS);
        assert_eq!((host.data(MSS), host.rule), (None, "second segment"));
        let old = DataArrival::new(host.view.rcv_nxt - MSS, host.view.rcv_nxt, DataClass::OutOfOrder);
        assert_eq!(host.policy.on_data(&host.view, &old), AckPlan::NOW);
        host.ack(AckCause::Plan);
        assert_eq!(host.rule, "", "the core's rule");

        let mut host = Host::settled();
        host.data(100);
        host.at(40).timer();
        assert_eq!(host.rule, "delay");
        let mut host = Host::settled();
        host.data(600);
        assert_eq!((host.at(41).data(600), host.rule), (None, "delay"), "the timer is late");

        let mut host = Host::settled();
        host.data(600);
        host.data(600);
        assert_eq!(host.policy.on_app_read(&host.view), AckPlan::NOW);
        host.ack(AckCause::Plan);
        assert_eq!(host.rule, "more than a segment was read");

        host.arrive(100, true);
        host.view.free = host.view.buffer;
        assert_eq!(host.policy.on_app_read(&host.view), AckPlan::NOW);
        host.ack(AckCause::Plan);
        assert_eq!(host.rule, "the end of a message was read");
    }

    #[test]
    fn contradicting_limits_are_refused() {
        let mut policy = LinuxLike::default();
        assert!(policy.configure(&"min=300ms".parse().unwrap()).is_err());
        assert_eq!(*policy.settings, Settings::default());
        policy.configure(&"min=300ms,max=400ms".parse().unwrap()).unwrap();
        assert_eq!(policy.delay, Duration::from_millis(300));
    }
}
