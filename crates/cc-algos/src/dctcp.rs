//! DCTCP (RFC 8257): reduces the window by half the fraction of marked data instead of by half.
//!
//! ```text
//!   per window of data:  M = marked / acknowledged bytes,  alpha = (1 - g) alpha + g M     (section 3.3)
//!   ECE:                 cwnd = cwnd (1 - alpha / 2), once per window                      (section 3.3)
//!   loss, growth:        as NewReno                                                        (sections 3.4 and 3.5)
//! ```
//!
//! It needs a receiver that reports the marks of each ACK separately, [`Ecn::Dctcp`] on both hosts,
//! or [accurate ECN](Ecn::Accurate), and queues that mark at a low threshold (section 3.1). With
//! classic ECN it takes the echo of one mark for a window of marks, and reduces as much as NewReno;
//! without ECN it is NewReno.
//!
//! Where it fails: next to flows that halve, it takes more than its share (section 5); and if there
//! are so many flows that each one's share is below two segments, marks no longer limit the queue.
//!
//! On the ACK that ends an observation window alpha comes first, then the reduction, then growth.
//! An ACK with ECE does not raise the window (RFC 3168, section 6.1.2).
//!
//! [`Ecn::Dctcp`]: ackline_tcp_core::config::Ecn::Dctcp

use ackline_tcp_core::config::Ecn;
use ackline_tcp_core::policy::builtin::NewReno;
use ackline_tcp_core::policy::cc::{CcInit, EcnUse};
use ackline_tcp_core::policy::spec::{Deployment, Entry, Key, Keyed, ParamRow};
use ackline_tcp_core::policy::window::{
    DecreaseCx, GrowthCx, MovedBy, Signal, WindowControl, WindowGrowth, Windows,
};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, Params, SpecError};
use ackline_tcp_core::{SeqNum, Window};
use alloc::boxed::Box;
use alloc::sync::Arc;

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "reduces the window by half the share of data marked by ECN (needs ECN of kind dctcp)",
    source: "RFC 8257",
    keys: ParamRow::of::<DctcpParams>,
    ecn: Ecn::Dctcp,
    deployment: Deployment::Controlled,
    ..Entry::new(Dctcp::NAME, |params| {
        let params = DctcpParams::from_params(Dctcp::NAME, params)?;
        Ok(Arc::new(move |init: &CcInit| Box::new(Dctcp::new(init, params))))
    })
};

/// Fraction bits of alpha.
const ALPHA_BITS: u32 = 30;
/// Alpha if all data is marked.
const ONE: u64 = 1 << ALPHA_BITS;
/// Fraction bits of g.
const G_BITS: u32 = 16;

/// DCTCP's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DctcpParams {
    /// Weight of the last window of data in alpha, 0.001 to 1 (RFC 8257, section 4.2: 1/16).
    pub g: f64,
    /// Initial alpha, 0 to 1 (RFC 8257, section 4.2: 1, so that the first mark halves the window).
    pub alpha: f64,
}

impl Default for DctcpParams {
    fn default() -> Self {
        Self { g: 0.0625, alpha: 1.0 }
    }
}

impl Keyed for DctcpParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::number("g", 0.001..=1.0, "weight of the last window of data in the estimate", |it| &mut it.g),
        Key::number("alpha", 0.0..=1.0, "estimate of the share of marked data to begin with", |it| {
            &mut it.alpha
        }),
    ];
}

impl DctcpParams {
    fn g_fixed(&self) -> u64 {
        (self.g * f64::from(1_u32 << G_BITS)) as u64
    }
}

/// The growth of DCTCP's window, which is NewReno's, and its estimate of marking.
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: NewReno,
    params: DctcpParams,
    /// DCTCP.Alpha in 2^-30, at most [`ONE`].
    alpha: u64,
    /// DCTCP.BytesAcked.
    acked: u64,
    /// DCTCP.BytesMarked.
    marked: u64,
    /// DCTCP.WindowEnd; `None` before the first ACK.
    window_end: Option<SeqNum>,
}

impl Dctcp {
    /// A flow that starts from `init`.
    #[must_use]
    pub fn new(init: &CcInit, params: DctcpParams) -> WindowControl<Self> {
        let growth = Self {
            reno: NewReno::default(),
            params,
            alpha: (params.alpha * ONE as f64) as u64,
            acked: 0,
            marked: 0,
            window_end: None,
        };
        WindowControl::new(init, growth)
    }

    /// The estimated fraction of marked data, 0 to 1.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha as f64 / ONE as f64
    }
}

impl WindowGrowth for Dctcp {
    const NAME: &'static str = "dctcp";

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        self.reno.increase(cx, w);
    }

    /// Sections 3.3 and 3.5: a loss costs half.
    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        if cx.signal == Signal::Ecn {
            self.reno.reduce_to(w.cwnd().mul_ratio(2 * ONE - self.alpha, 2 * ONE), w);
        } else {
            self.reno.decrease(cx, w);
        }
    }

    /// RFC 8257, section 3.3, steps 1 to 8.
    fn observe(&mut self, cx: &GrowthCx<'_>, _w: &Windows) {
        // Step 1: data only counts once it is acknowledged, not when SACK reports it.
        let bytes = u64::from(cx.ack.acked);
        self.acked += bytes;
        self.marked += match cx.ack {
            ack if !ack.ece => 0,
            // Accurate ECN knows how much.
            ack if (1..ack.newly_delivered).contains(&ack.ce) => u64::from(ack.ce).min(bytes),
            _ => bytes,
        };
        if self.acked == 0 || self.window_end.is_some_and(|end| cx.view.snd_una.le(end)) {
            return;
        }
        // At most 2^32 bytes are acknowledged in a window, so nothing here overflows.
        let share = (self.marked << ALPHA_BITS) / self.acked;
        let g = self.params.g_fixed();
        self.alpha = (self.alpha * ((1 << G_BITS) - g) + share * g) >> G_BITS;
        self.window_end = Some(cx.view.snd_nxt);
        (self.acked, self.marked) = (0, 0);
    }

    fn moved(&mut self, by: MovedBy, before: &Windows, w: &Windows) {
        self.reno.moved(by, before, w);
    }

    /// What was observed in the meantime remains true.
    fn undo(&mut self, _before: &Self) {}

    fn ssthresh_after_idle(&self, w: &Windows) -> Window {
        self.reno.ssthresh_after_idle(w)
    }

    fn ecn(&self) -> EcnUse {
        EcnUse::PerAck
    }

    fn metrics(&self, _w: &Windows, report: &mut Metrics<'_>) {
        report.number("alpha", self.alpha());
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut changed = self.params;
        changed.set(Self::NAME, params)?;
        if changed.alpha != self.params.alpha {
            return Err(SpecError::new(
                "alpha of dctcp is where a connection begins, and cannot be set later",
            ));
        }
        self.params = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::Instant;
    use ackline_tcp_core::policy::cc::{AckSample, CongestionControl, CongestionEvent, FlowView, Reaction};
    use ackline_tcp_core::policy::conformance;

    const SMSS: u32 = 1000;

    fn segments(n: u64) -> Window {
        Window::from_bytes(n * u64::from(SMSS))
    }

    /// A flow with `cwnd` segments and no slow start.
    struct Flow {
        dctcp: WindowControl<Dctcp>,
        view: FlowView,
    }

    impl Flow {
        fn new(cwnd: u64, params: &str) -> Self {
            let params = DctcpParams::from_params("dctcp", &params.parse().unwrap()).unwrap();
            let mut init = CcInit::new(Instant::from_secs(1), SMSS, segments(cwnd));
            init.ssthresh = segments(cwnd);
            Self { dctcp: Dctcp::new(&init, params), view: FlowView::new(init.now, SMSS) }
        }

        /// A full window leaves and is acknowledged segment by segment; those whose number is in
        /// `marked` with ECE. Returns the reductions.
        fn window(&mut self, marked: impl Fn(u32) -> bool) -> u32 {
            let n = (self.dctcp.decision().window.bytes() / u64::from(SMSS)) as u32;
            self.view.snd_nxt = self.view.snd_una + n * SMSS;
            let mut reductions = 0;
            for i in 0..n {
                self.view.snd_una += SMSS;
                // The ACK clock keeps the window full.
                self.view.snd_nxt += SMSS;
                let mut ack = AckSample::new(SMSS, 1);
                ack.ece = marked(i);
                reductions += u32::from(self.dctcp.on_ack(&self.view, &ack) == Reaction::Reduced);
            }
            reductions
        }
    }

    #[test]
    fn keeps_the_rules() {
        for params in ["", "g=1", "g=0.001,alpha=0"] {
            let make = (ENTRY.make)(&params.parse().unwrap()).unwrap();
            for seed in 0..20 {
                conformance::congestion_control(&*make, seed);
            }
        }
    }

    #[test]
    fn alpha_is_a_moving_average_of_the_share_of_marks() {
        // One observation window per call: all bytes in one ACK.
        let mut flow = Flow::new(10, "");
        let mut expected = 1.0_f64;
        for share in [0.0, 0.0, 0.5, 1.0, 0.25, 0.0, 1.0, 0.125] {
            let bytes = 80_000;
            let marked = (share * f64::from(bytes)) as u32;
            // The marked part does not reach the end of the window, the rest does.
            flow.view.snd_nxt = flow.view.snd_una + bytes;
            flow.dctcp.growth_mut().window_end = Some(flow.view.snd_nxt - 1);
            for (len, ece) in [(marked, true), (bytes - marked, false)] {
                if len > 0 {
                    flow.view.snd_una += len;
                    let mut ack = AckSample::new(len, 1);
                    ack.ece = ece;
                    flow.dctcp.on_ack(&flow.view, &ack);
                }
            }
            expected = expected * 15.0 / 16.0 + share / 16.0;
            assert!(
                (flow.dctcp.growth().alpha() - expected).abs() < 1e-8,
                "{} {expected}",
                flow.dctcp.growth().alpha()
            );
        }
    }

    #[test]
    fn alpha_settles_at_a_constant_share_and_at_zero() {
        for (every, share) in [(4, 0.25), (2, 0.5), (1, 1.0), (u32::MAX, 0.0)] {
            let mut dctcp = Flow::new(1, "").dctcp;
            let mut view = FlowView::new(Instant::from_secs(1), SMSS);
            for i in 1..40_000_u32 {
                view.snd_una += SMSS;
                view.snd_nxt = view.snd_una + 16 * SMSS;
                let mut ack = AckSample::new(SMSS, 1);
                ack.ece = i % every == 0 && every != u32::MAX;
                dctcp.on_ack(&view, &ack);
            }
            assert!((dctcp.growth().alpha() - share).abs() < 0.02, "{every}: {}", dctcp.growth().alpha());
        }
    }

    #[test]
    fn the_first_mark_halves_the_window() {
        let mut flow = Flow::new(100, "");
        assert_eq!(flow.window(|i| i >= 99), 1);
        let alpha = 15.0 / 16.0;
        let cwnd = flow.dctcp.decision().window.raw() as f64 / 65_536.0;
        // Alpha fell once, at the first ACK; the window grew by less than a segment before the
        // mark.
        let expected = 100_000.0 * (1.0 - alpha / 2.0);
        assert!((cwnd - expected).abs() <= 1_000.0, "{cwnd} {expected}");
        assert_eq!(flow.dctcp.decision().ssthresh, flow.dctcp.decision().window);
    }

    #[test]
    fn a_reduction_takes_half_of_alpha() {
        // (alpha, window before, window after)
        for (alpha, before, after) in [
            ("1", 100, 50_000),
            ("0.5", 100, 75_000),
            ("0.25", 80, 70_000),
            ("0", 100, 100_000),
            ("1", 3, 2_000),
        ] {
            let mut flow = Flow::new(before, &std::format!("alpha={alpha},g=0.001"));
            flow.view.snd_nxt = flow.view.snd_una + 10 * SMSS;
            flow.dctcp.growth_mut().window_end = Some(flow.view.snd_nxt);
            flow.view.snd_una += SMSS;
            let mut ack = AckSample::new(SMSS, 1);
            ack.ece = true;
            assert_eq!(flow.dctcp.on_ack(&flow.view, &ack), Reaction::Reduced);
            assert_eq!(flow.dctcp.decision().window.bytes(), after, "alpha {alpha}, {before}");
        }
    }

    #[test]
    fn one_reduction_per_window() {
        let mut flow = Flow::new(100, "");
        assert_eq!(flow.window(|_| true), 1);
        flow.window(|_| false);
        flow.window(|_| false);
        assert_eq!(flow.window(|i| i % 3 == 0), 1);
    }

    #[test]
    fn without_marks_it_grows_as_reno_does() {
        let mut flow = Flow::new(20, "");
        for n in 21..30 {
            assert_eq!(flow.window(|_| false), 0);
            assert_eq!(flow.dctcp.decision().window, segments(n));
        }
    }

    #[test]
    fn loss_halves_unless_the_window_is_reduced_already() {
        let loss = CongestionEvent::Loss { prior_pipe: 100 * SMSS };
        let mut flow = Flow::new(100, "alpha=0");
        flow.view.snd_nxt = flow.view.snd_una + 100 * SMSS;
        flow.dctcp.on_congestion(&flow.view, &loss);
        assert_eq!(flow.dctcp.decision().window, segments(50));

        let mut flow = Flow::new(100, "alpha=0.5,g=0.001");
        flow.view.snd_nxt = flow.view.snd_una + 100 * SMSS;
        flow.dctcp.growth_mut().window_end = Some(flow.view.snd_nxt);
        flow.view.snd_una += SMSS;
        let mut ack = AckSample::new(SMSS, 1);
        ack.ece = true;
        flow.dctcp.on_ack(&flow.view, &ack);
        flow.dctcp.on_congestion(&flow.view, &loss);
        assert_eq!(flow.dctcp.decision().window.bytes(), 75_000);
    }

    #[test]
    fn alpha_is_fixed_for_the_life_of_a_connection() {
        let mut dctcp = Flow::new(10, "").dctcp;
        dctcp.configure(&"g=0.5".parse().unwrap()).unwrap();
        let error = dctcp.configure(&"alpha=0.5".parse().unwrap()).unwrap_err();
        assert!(std::format!("{error}").contains("alpha"), "{error}");
    }
}
