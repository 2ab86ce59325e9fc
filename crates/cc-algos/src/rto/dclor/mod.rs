//! DCLOR, de-correlated loss recovery (Y. Swami, K. Le: "DCLOR: De-correlated Loss Recovery using
//! SACK option for spurious timeouts", draft-swami-tsvwg-tcp-dclor-00, 2002): first determine what
//! the network lost, then decide how much and what to send.
//!
//! ```text
//!                      ┌───────── stale ACKs: tags only ────────┐
//!   timeout: one probe │                                        ▼
//!   above all that is ─┴─► Probe ── ACK above SS_PTR ─────────► Open     window 2, ssthresh kept
//!   outstanding              │                                   ▲
//!                            └───── SACK of SS_PTR ──► Repair ───┘       window 2, ssthresh = pipe / 2,
//!                                                                        only the holes are sent again
//! ```
//!
//! SS_PTR is the probe's first sequence number. Steps are numbered as follows, with the draft's own
//! numbers (section 4) in parentheses.
//!
//! | step | rule |
//! |---|---|
//! | R1 (1) | before the handshake is complete nothing changes: the core's |
//! | R2 (section 6) | without SACK, with nothing but a FIN outstanding, or after too many probes: go-back-N |
//! | R3 (2) | pipe before the episode's first timeout is saved |
//! | R4 (2) | the window is 0, `ssthresh` stays |
//! | R5 (3) | tags are cleared |
//! | R6 (4, 5) | the probe: new data; else the highest outstanding segment; the same for a repeated one |
//! | R7 (4), R8 | SS_PTR; the timer backs off; one segment per expiry |
//! | A1 (6) | what the ACK and its SACK blocks cover is tagged: the core's |
//! | A2, A3 (7) | the ACK covers SS_PTR: clean exit; a SACK block covers it: lossy exit |
//! | A4 (6, 7) | otherwise it is stale: nothing is sent, sampled or counted; the timer restarts on progress |
//! | A5 | if both cover SS_PTR, A2 wins |
//! | A6 (section 6) | the probe was new data and causes a duplicate ACK without SACK: the peer does not send SACK |
//! | L1 to L5 (8 to 10) | lossy exit: everything not SACKed is lost; `ssthresh` = saved / 2; window 2; repair |
//! | C1 to C3 (10) | clean exit: window 2; new data; at most the probe's ACK gives an RTT sample |
//! | P1 to P4 | repair: slow start; no second reduction; a timeout starts a new episode |
//!
//! Where the draft is ambiguous or wrong:
//!
//! - I-1, A2: the octet SS_PTR itself must be covered; an ACK *of* SS_PTR is stale (I-8: one octet
//!   is enough).
//! - I-2: pipe or flight size is saved ([`SavedWindow`]). I-3: repeated timeouts keep the first
//!   value.
//! - I-4: less than a segment of new data is enough, if it fits the peer's window completely. I-5:
//!   a FIN rides on it, but is no probe by itself. I-6: step 5 says "repeat step-2", so a repeated
//!   probe is new data again ([`ProbeRepeat`]). I-7: their number is limited.
//! - I-9: stale ACKs that make progress restart the timer, with its back-off. I-10: `ssthresh` is
//!   at least two segments. I-11: the draft does not say whether the probe's ACK is an RTT sample
//!   ([`ProbeRtt`]). It is none here: as one it is as long as the stall, and the next genuine loss
//!   waits for three of them.
//! - I-12: if ECE arrived and the window was not reduced for it, a clean exit reduces `ssthresh`
//!   and sends CWR.
//! - I-13: a timeout in Repair does not raise `ssthresh`.
//! - I-14: a probe that was a retransmission may itself have repaired the only loss, so its ACK
//!   proves nothing ([`FallbackClean`]). A later DSACK for it restores `ssthresh`.
//! - I-15: the draft's advice to wait for a first SACK block would prevent DCLOR on flows that only
//!   stall (`require_sack_seen`).
//!
//! RFC 8961, section 4, requires a timeout to send one packet and back off; it does not say which
//! packet.
//!
//! Where it fails: every spurious timeout costs the window, which slow start must regain, even if
//! the path could have carried it; if a whole window is lost, delivery takes one round trip longer
//! than with go-back-N (section 5).

mod params;

pub use params::{DclorParams, FallbackClean, ProbeRepeat, ProbeRtt, SavedWindow, StalePolicy};

use super::{go_back_n, halved, reports_twice};
use ackline_tcp_core::policy::cc::{Phase, SsthreshRule, Undo};
use ackline_tcp_core::policy::rto::{
    AckFacts, RtoCc, RtoGate, RtoPhase, RtoResponse, RtoRtt, RtoSend, RtoStep, RtoTags, RtoTimer, RtoVerdict,
    RtoView,
};
use ackline_tcp_core::policy::spec::{Entry, Keyed as _, ParamRow};
use ackline_tcp_core::policy::{Metrics, NewRtoResponse, Params, SpecError};
use ackline_tcp_core::{Duration, SeqNum, Window};
use alloc::boxed::Box;
use alloc::sync::Arc;

const NAME: &str = "dclor";

/// Segments of the window at an exit (the restart window RW).
const RESTART_SEGMENTS: u32 = 2;

pub(crate) const ENTRY: Entry<NewRtoResponse> = Entry {
    summary: "one probe above all that is outstanding tells what is lost, before anything else is sent (needs SACK)",
    source: "draft-swami-tsvwg-tcp-dclor-00 (2002)",
    keys: ParamRow::of::<DclorParams>,
    ..Entry::new(NAME, |params| {
        let params = DclorParams::from_params(NAME, params)?;
        Ok(Arc::new(move || Box::new(Dclor::new(params))))
    })
};

/// DCLOR.
#[derive(Clone, Debug)]
pub struct Dclor {
    params: DclorParams,
    phase: RtoPhase,
    /// First sequence number of the probe, in the Probe phase.
    ss_ptr: SeqNum,
    /// The probe was new data when the episode began.
    ss_ptr_is_new: bool,
    /// SND.NXT at the episode's first timeout.
    episode_start: SeqNum,
    /// Bytes in the network just before the episode's first timeout.
    saved: u64,
    /// Consecutive timeouts in Probe.
    probe_count: u32,
    /// The probe has left once.
    sent_once: bool,
    /// SND.NXT at the lossy exit, in the Repair phase.
    recovery_point: SeqNum,
    /// ECE arrived in the Probe phase.
    ece_in_probe: bool,
    /// The window had been reduced for ECN before the episode.
    ecn_reduced: bool,
    /// Stale ACKs opened the window, under [`StalePolicy::Revert`] and [`StalePolicy::Halve`].
    opened: bool,
    /// RTOs of the episode without any ACK.
    silent_periods: u32,
    /// An ACK arrived since the last timeout.
    heard: bool,
    /// Upper limit of `ssthresh`: the episode started in Repair.
    cap: Option<Window>,
    /// SRTT and RTTVAR before the episode.
    srtt_prev: (Duration, Duration),
    /// Go-back-N has taken over the episode.
    go_back_n: bool,
    /// The peer does not send SACK: go-back-N for the rest of the connection.
    unable: bool,
    /// A clean exit treated as a lossy one for lack of proof.
    unproved: Option<Unproved>,
}

/// I-14: what a DSACK for the probe would restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unproved {
    /// SS_PTR of a probe that was a retransmission.
    ss_ptr: SeqNum,
    /// `ssthresh` before it was reduced.
    ssthresh: Window,
    /// SND.NXT at the exit. When later data is acknowledged, the DSACK can no longer arrive.
    until: SeqNum,
}

impl Dclor {
    /// DCLOR with these parameters.
    #[must_use]
    pub const fn new(params: DclorParams) -> Self {
        Self {
            params,
            phase: RtoPhase::Open,
            ss_ptr: SeqNum(0),
            ss_ptr_is_new: false,
            episode_start: SeqNum(0),
            saved: 0,
            probe_count: 0,
            sent_once: false,
            recovery_point: SeqNum(0),
            ece_in_probe: false,
            ecn_reduced: false,
            opened: false,
            silent_periods: 0,
            heard: false,
            cap: None,
            srtt_prev: (Duration::ZERO, Duration::ZERO),
            go_back_n: false,
            unable: false,
            unproved: None,
        }
    }

    /// The current parameters.
    #[must_use]
    pub const fn params(&self) -> &DclorParams {
        &self.params
    }

    /// R2.
    fn must_delegate(&self, view: &RtoView) -> bool {
        let DclorParams { require_sack_seen, max_probes, .. } = self.params;
        // I-5: only a FIN is outstanding.
        let only_fin = view.fin_outstanding && view.flow.flight_size <= 1;
        let worn_out = self.phase == RtoPhase::Probe && max_probes != 0 && self.probe_count >= max_probes;
        self.unable
            || self.go_back_n
            || !view.sack_permitted
            || (require_sack_seen && !view.sack_seen)
            || view.flow.flight_size == 0
            || only_fin
            || worn_out
    }

    /// Hands the episode over to go-back-N.
    fn delegate(&mut self, view: &RtoView) -> RtoStep {
        let ssthresh = if self.phase == RtoPhase::Probe {
            SsthreshRule::To(self.reduced(view))
        } else {
            match go_back_n::ssthresh(view) {
                SsthreshRule::To(half) if self.phase == RtoPhase::Repair => {
                    SsthreshRule::To(half.min(view.ssthresh))
                }
                rule => rule,
            }
        };
        self.go_back_n = true;
        self.enter_repair(view);
        go_back_n::step(view, !self.params.sack_reset_on_rto, ssthresh)
    }

    fn enter_repair(&mut self, view: &RtoView) {
        self.phase = RtoPhase::Repair;
        self.recovery_point = view.flow.snd_nxt;
        self.probe_count = 0;
    }

    /// R3: the start of a new episode.
    fn begin(&mut self, view: &RtoView) {
        self.saved = u64::from(match self.params.saved_window {
            SavedWindow::Pipe => view.flow.pipe,
            SavedWindow::FlightSize => view.flow.flight_size,
        });
        // P4, I-13.
        self.cap = (self.phase == RtoPhase::Repair).then_some(view.ssthresh);
        self.srtt_prev =
            (view.flow.srtt.unwrap_or(Duration::ZERO), view.flow.rttvar.unwrap_or(Duration::ZERO));
        self.episode_start = view.flow.snd_nxt;
        self.probe_count = 0;
        self.ece_in_probe = false;
        self.ecn_reduced = view.ecn_reduced;
        self.opened = false;
        self.silent_periods = 0;
        self.heard = false;
        self.unproved = None;
    }

    /// R6 and R7: the probe, and its position.
    fn choose_probe(&mut self, view: &RtoView) -> RtoSend {
        if self.phase == RtoPhase::Probe && self.params.probe_repeat == ProbeRepeat::Same {
            self.sent_once = false;
            return RtoSend::Again(self.ss_ptr);
        }
        if self.phase != RtoPhase::Probe
            && self.params.reuse_tlp
            && let Some((seq, new)) =
                view.tlp.filter(|tlp| tlp.0.within(view.flow.snd_una, view.flow.snd_nxt))
        {
            (self.ss_ptr, self.ss_ptr_is_new, self.sent_once) = (seq, new, false);
            return RtoSend::Again(seq);
        }
        self.sent_once = view.unsent > 0;
        (self.ss_ptr, self.ss_ptr_is_new) = if self.sent_once {
            (view.flow.snd_nxt, true)
        } else {
            // What an earlier probe of the episode sent as new data remains so.
            (view.highest, view.highest.ge(self.episode_start))
        };
        RtoSend::NewElseHighest
    }

    /// L3, I-10, I-13.
    fn reduced(&self, view: &RtoView) -> Window {
        let half = halved(self.saved, view.flow.smss);
        self.cap.map_or(half, |cap| half.min(cap))
    }

    /// The window that stale ACKs have opened, or may open.
    fn stale_window(&self, view: &RtoView) -> Window {
        let least = restart_window(view);
        let bytes = match self.params.stale_policy {
            StalePolicy::Silent | StalePolicy::Decay => return least,
            StalePolicy::Revert => self.saved,
            StalePolicy::Halve => self.saved / 2,
        };
        Window::from_bytes(bytes).max(least)
    }

    /// L4 and C1: the window at the exit.
    fn exit_window(&self, view: &RtoView) -> Window {
        let restart = restart_window(view);
        match self.params.stale_policy {
            StalePolicy::Silent => restart,
            StalePolicy::Revert | StalePolicy::Halve if self.opened => self.stale_window(view),
            StalePolicy::Revert | StalePolicy::Halve => restart,
            StalePolicy::Decay => {
                let left = self.saved.checked_shr(self.silent_periods).unwrap_or(0);
                Window::from_bytes(left).max(restart)
            }
        }
    }

    /// C3, I-11: Karn's algorithm only leaves the sample of a probe that was new data and was sent
    /// once.
    fn sample(&self, ack: &AckFacts) -> RtoRtt {
        let takes = self.params.probe_rtt == ProbeRtt::Rfc4015;
        if takes && self.sent_once && ack.covers(self.ss_ptr) {
            let (srtt, rttvar) = self.srtt_prev;
            RtoRtt::Rfc4015 { srtt, rttvar }
        } else {
            RtoRtt::Skip
        }
    }

    /// A4.
    fn stale(&mut self, view: &RtoView, ack: &AckFacts) -> RtoStep {
        let mut step = RtoStep::consume();
        let opens = matches!(self.params.stale_policy, StalePolicy::Revert | StalePolicy::Halve);
        self.opened |= opens && ack.acked > 0;
        step.gate = if self.opened {
            RtoGate::NewOnly { window: self.stale_window(view), from: self.ss_ptr.max(view.flow.snd_una) }
        } else {
            RtoGate::Closed
        };
        if ack.acked > 0 || ack.newly_sacked > 0 {
            step.timer = RtoTimer::Restart;
        }
        step
    }

    /// L1 to L5.
    fn lossy(&mut self, view: &RtoView, ack: &AckFacts) -> RtoStep {
        let mut step = RtoStep::consume();
        step.tags = if self.opened {
            // The fate of data sent after the probe is unknown.
            RtoTags::LostBefore(self.ss_ptr.max(view.flow.snd_una))
        } else {
            RtoTags::UnsackedLost
        };
        step.cc =
            RtoCc::Timeout { window: self.exit_window(view), ssthresh: SsthreshRule::To(self.reduced(view)) };
        step.rtt = self.sample(ack);
        step.timer = RtoTimer::Restart;
        step.verdict = Some(RtoVerdict::Lossy);
        self.enter_repair(view);
        step
    }

    /// C1 to C3.
    fn clean(&mut self, view: &RtoView, ack: &AckFacts) -> RtoStep {
        let mut step = RtoStep::consume();
        let window = self.exit_window(view);
        let proved = self.ss_ptr_is_new
            || self.params.fallback_clean == FallbackClean::Literal
            || ack.echoes_original == Some(true)
            || reports_twice(ack, self.ss_ptr);
        // I-12.
        let marked = self.ece_in_probe && !self.ecn_reduced;
        step.cc = if proved && !marked {
            RtoCc::CleanTimeout { window }
        } else {
            RtoCc::Timeout { window, ssthresh: SsthreshRule::To(self.reduced(view)) }
        };
        step.tags = RtoTags::Unmark;
        step.rtt = self.sample(ack);
        step.timer = RtoTimer::Stop;
        step.cwr = marked;
        step.verdict = Some(if proved { RtoVerdict::Spurious } else { RtoVerdict::Lossy });
        self.unproved = (!proved && !marked).then_some(Unproved {
            ss_ptr: self.ss_ptr,
            ssthresh: view.ssthresh,
            until: view.flow.snd_nxt,
        });
        self.phase = RtoPhase::Open;
        self.probe_count = 0;
        step
    }

    /// A6.
    fn peer_sends_no_sack(&self, view: &RtoView, ack: &AckFacts) -> bool {
        self.ss_ptr_is_new && ack.duplicate && !ack.sack_option && !view.sack_seen
    }

    fn on_ack_in_probe(&mut self, view: &RtoView, ack: &AckFacts) -> RtoStep {
        self.heard = true;
        self.ece_in_probe |= ack.ece;
        // A2, A5. If the peer shrank its window before the probe was sent, everything may be
        // acknowledged without it.
        if ack.ack.gt(self.ss_ptr) || ack.ack.ge(view.flow.snd_nxt) {
            return self.clean(view, ack);
        }
        // A3.
        if ack.covers(self.ss_ptr) {
            return self.lossy(view, ack);
        }
        if self.peer_sends_no_sack(view, ack) {
            self.unable = true;
            let mut step = self.delegate(view);
            // Not a timeout: the head is sent within a window of one segment, and there is no
            // back-off.
            step.send = RtoSend::Nothing;
            step.timer = RtoTimer::Restart;
            step.verdict = Some(RtoVerdict::Lossy);
            return step;
        }
        self.stale(view, ack)
    }

    /// I-14: the original of a probe that counted as the repair of a loss had arrived after all.
    fn late_proof(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        let too_late = |unproved: &Unproved| ack.ack.gt(unproved.until) || view.flow.phase == Phase::Recovery;
        self.unproved = self.unproved.filter(|unproved| !too_late(unproved));
        let Unproved { ssthresh, .. } =
            self.unproved.take_if(|unproved| reports_twice(ack, unproved.ss_ptr))?;
        let mut step = RtoStep::pass();
        step.cc = RtoCc::Undo(Undo::To { window: Window::ZERO, ssthresh });
        step.verdict = Some(RtoVerdict::Spurious);
        Some(step)
    }
}

/// The restart window: two segments.
fn restart_window(view: &RtoView) -> Window {
    Window::from_bytes(u64::from(RESTART_SEGMENTS * view.flow.smss))
}

impl RtoResponse for Dclor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        if self.must_delegate(view) {
            return self.delegate(view);
        }
        if self.phase != RtoPhase::Probe {
            self.begin(view);
        }
        if !self.heard {
            self.silent_periods += 1;
        }
        self.heard = false;
        let mut step = RtoStep::consume();
        step.send = self.choose_probe(view);
        self.phase = RtoPhase::Probe;
        self.probe_count += 1;
        step.tags = if self.params.sack_reset_on_rto { RtoTags::ClearSack } else { RtoTags::Keep };
        step.gate = RtoGate::Closed;
        step.timer = RtoTimer::Backoff;
        step
    }

    fn on_ack(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        match self.phase {
            RtoPhase::Probe => Some(self.on_ack_in_probe(view, ack)),
            RtoPhase::Open => self.late_proof(view, ack),
            RtoPhase::Repair => {
                // P3.
                if ack.ack.ge(self.recovery_point) {
                    self.phase = RtoPhase::Open;
                    self.go_back_n = false;
                }
                None
            }
        }
    }

    fn phase(&self) -> RtoPhase {
        self.phase
    }

    fn on_takeover(&mut self) {
        self.phase = RtoPhase::Open;
        self.go_back_n = false;
        self.probe_count = 0;
        self.unproved = None;
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.number("phase", self.phase as u8);
        if self.phase == RtoPhase::Probe {
            report.number("ss_ptr", self.ss_ptr.0);
            report.flag("ss_ptr_is_new", self.ss_ptr_is_new);
        }
        report.bytes("saved_pipe", self.saved as f64);
        report.number("probe_count", self.probe_count);
        report.flag("probe_sent_once", self.sent_once);
        report.number("silent_periods", self.silent_periods);
        report.flag("opened", self.opened);
        report.flag("unproved", self.unproved.is_some());
        report.flag("go_back_n", self.go_back_n || self.unable);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.params.set(NAME, params)
    }
}
