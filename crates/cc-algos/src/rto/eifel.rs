//! Eifel: the timestamp of the first ACK after a timeout tells which transmission it answers
//! (detection: RFC 3522), and a spurious timeout restores the window (response: RFC 4015).
//!
//! ```text
//!   timeout ──► go-back-N's first step, RetransmitTS = its timestamp
//!   first ACK that advances:  TSecr >= RetransmitTS, or a DSACK         ──► genuine: go-back-N
//!                             otherwise, and more is outstanding (or
//!                             the peer has sent DSACKs before)          ──► spurious: go on with new data
//!   later: a DSACK for what the timeout sent again                      ──► spurious, but late: only the window
//! ```
//!
//! Steps are those of RFC 4015, section 3. Without timestamps it is go-back-N.
//!
//! Where it fails: all data delayed by the stall is acknowledged at once, and the restored window
//! goes into a path that others have filled meanwhile. `restore=full` is the draft of 2002, which
//! restored the whole window at once.

use super::{go_back_n, pipe_prev, reports_twice, reversed_window};
use ackline_tcp_core::policy::cc::{Phase, Undo};
use ackline_tcp_core::policy::rto::{
    AckFacts, RtoCc, RtoPhase, RtoResponse, RtoRtt, RtoStep, RtoTags, RtoVerdict, RtoView,
};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed};
use ackline_tcp_core::policy::{Metrics, NewRtoResponse, Params, SpecError};
use ackline_tcp_core::{Duration, SeqNum, Window};

const NAME: &str = "eifel";

pub(crate) const ENTRY: Entry<NewRtoResponse> = Entry {
    source: "RFC 3522, RFC 4015",
    ..Entry::rto::<Eifel>(
        NAME,
        "timestamps tell a delay from a loss; the window comes back (needs timestamps)",
    )
};

/// The window after a spurious timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Restore {
    /// FlightSize + min(bytes_acked, IW) (RFC 4015, section 3, step 8).
    #[default]
    Rfc4015,
    /// Its value before the timeout, in a burst (the draft of 2002).
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EifelPhase {
    /// No episode.
    Open,
    /// The head was retransmitted, and no ACK has advanced SND.UNA since. `sent`: SND.NXT at the
    /// timeout.
    Waiting { sent: SeqNum },
    /// The timeout was genuine: go-back-N up to here.
    Repair { recovery_point: SeqNum },
}

/// Eifel's detection and response.
#[derive(Clone, Debug)]
pub struct Eifel {
    restore: Restore,
    state: EifelPhase,
    /// Step 0: max(FlightSize, `ssthresh`).
    pipe_prev: Window,
    /// The window before the timeout.
    cwnd_prev: Window,
    /// Step 0: SRTT + 2 G. None before a sample.
    srtt_prev: Option<Duration>,
    /// Step 0: RTTVAR.
    rttvar_prev: Duration,
    /// First sequence number of what the timeout retransmitted, while a DSACK for it would still be
    /// news.
    late: Option<SeqNum>,
    /// SND.NXT at the spurious verdict: the first sample of later data sets the RTO (step 11).
    sample_beyond: Option<SeqNum>,
}

impl Eifel {
    /// Eifel with this response.
    #[must_use]
    pub const fn new(restore: Restore) -> Self {
        Self {
            restore,
            state: EifelPhase::Open,
            pipe_prev: Window::ZERO,
            cwnd_prev: Window::ZERO,
            srtt_prev: None,
            rttvar_prev: Duration::ZERO,
            late: None,
            sample_beyond: None,
        }
    }

    /// RFC 3522, section 3.2, steps 4 to 6, in the order of RFC 4015: true if the ACK is for an
    /// original transmission.
    fn is_spurious(view: &RtoView, ack: &AckFacts) -> bool {
        // An ACK of everything may be for the last original, with earlier ACKs lost (RFC 3522,
        // section 3.3); a peer that sends DSACKs would have reported that.
        let tells = view.dsack_seen || ack.ack.lt(view.flow.snd_nxt);
        ack.echoes_original == Some(true) && ack.dsack.is_none() && tells
    }

    /// Step 8, if the peer reports no congestion.
    fn reversal(&self, view: &RtoView, ack: &AckFacts) -> RtoCc {
        if ack.ece {
            return RtoCc::Untold;
        }
        let window = match self.restore {
            Restore::Rfc4015 => reversed_window(view, ack),
            Restore::Full => self.cwnd_prev,
        };
        RtoCc::Undo(Undo::To { window, ssthresh: self.pipe_prev })
    }

    /// The first ACK that advances SND.UNA decides.
    fn decide(&mut self, view: &RtoView, ack: &AckFacts, sent: SeqNum) -> RtoStep {
        if !Self::is_spurious(view, ack) {
            self.state = EifelPhase::Repair { recovery_point: sent };
            let mut step = RtoStep::pass();
            step.verdict = Some(RtoVerdict::Lossy);
            return step;
        }
        self.state = EifelPhase::Open;
        self.late = None;
        self.sample_beyond = Some(view.flow.snd_nxt);
        // Step 7: continue with new data.
        let mut step = RtoStep::consume();
        step.tags = RtoTags::Unmark;
        step.cc = self.reversal(view, ack);
        step.verdict = Some(RtoVerdict::Spurious);
        step
    }

    /// Step 11: the first sample of data first sent after the spurious timeout makes the RTO
    /// conservative.
    fn adapt(&mut self, ack: &AckFacts) -> Option<RtoStep> {
        self.sample_beyond.filter(|beyond| ack.ack.gt(*beyond) && ack.original.is_some())?;
        self.sample_beyond = None;
        let srtt = self.srtt_prev?;
        let mut step = RtoStep::pass();
        step.rtt = RtoRtt::Rfc4015 { srtt, rttvar: self.rttvar_prev };
        Some(step)
    }
}

impl Default for Eifel {
    fn default() -> Self {
        Self::new(Restore::default())
    }
}

impl Keyed for Eifel {
    const KEYS: &'static [Key<Self>] = &[Key::choice(
        "restore",
        &["rfc4015", "full"],
        "window after a spurious timeout: what is in flight, or all of what it was",
        |it| it.restore as usize,
        |it, at| it.restore = [Restore::Rfc4015, Restore::Full][at],
    )];
}

impl RtoResponse for Eifel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        if !matches!(self.state, EifelPhase::Waiting { .. }) {
            // Step 0.
            self.pipe_prev = pipe_prev(view);
            self.cwnd_prev = view.window;
            self.srtt_prev =
                view.flow.srtt.map(|srtt| srtt.saturating_add(view.granularity.saturating_mul(2)));
            self.rttvar_prev = view.flow.rttvar.unwrap_or(Duration::ZERO);
            self.late = Some(view.flow.snd_una);
            self.sample_beyond = None;
        }
        self.state = EifelPhase::Waiting { sent: view.flow.snd_nxt };
        go_back_n::step(view, true, go_back_n::ssthresh(view))
    }

    fn on_ack(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        let waiting = matches!(self.state, EifelPhase::Waiting { .. });
        if view.flow.phase == Phase::Recovery {
            self.late = None;
        }
        let step = match self.state {
            EifelPhase::Waiting { sent } if ack.acked > 0 => Some(self.decide(view, ack, sent)),
            _ => self.adapt(ack),
        };
        if let EifelPhase::Repair { recovery_point } = self.state
            && ack.ack.ge(recovery_point)
        {
            self.state = EifelPhase::Open;
        }
        if !waiting && step.is_none() && self.late.take_if(|seq| reports_twice(ack, *seq)).is_some() {
            // SpuriousRecovery = LATE_SPUR_TO: transmission has long continued, so only step 8 is
            // left.
            let mut step = RtoStep::pass();
            step.cc = self.reversal(view, ack);
            step.verdict = Some(RtoVerdict::Spurious);
            return Some(step);
        }
        step
    }

    fn phase(&self) -> RtoPhase {
        if self.state == EifelPhase::Open { RtoPhase::Open } else { RtoPhase::Repair }
    }

    fn on_takeover(&mut self) {
        self.state = EifelPhase::Open;
        self.late = None;
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.flag("waiting", matches!(self.state, EifelPhase::Waiting { .. }));
        report.flag("repairing", matches!(self.state, EifelPhase::Repair { .. }));
        report.window("pipe_prev", self.pipe_prev);
        report.window("cwnd_prev", self.cwnd_prev);
        if let Some(srtt) = self.srtt_prev {
            report.micros("srtt_prev_us", srtt);
            report.micros("rttvar_prev_us", self.rttvar_prev);
        }
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.set(NAME, params)
    }
}
