//! F-RTO with SACK (RFC 5682, section 3): after a timeout retransmit the oldest segment, then send
//! new data, and see what the ACKs acknowledge.
//!
//! ```text
//!   timeout ──► (1) head again ──► (2) first ACK that advances ──► two new segments ──► (3) next ACK
//!                                      │ covers everything,                              ├─ of data from before: spurious
//!                                      │ or nothing new to send                          └─ anything else: go-back-N
//!                                      └─► go-back-N
//! ```
//!
//! Steps are those of RFC 5682, section 3.1. If the peer has no SACK, the basic form (section 2.1)
//! follows from the same steps, with one more branch: a duplicate ACK in step 2 is go-back-N at
//! once.
//!
//! Where it fails: without new data, or with a full receive window, it is go-back-N; and data
//! merely delayed by a stall is acknowledged like any other, so that a fully restored window goes
//! into a path that others have filled.

use super::{go_back_n, halved, pipe_prev, reversed_window};
use ackline_tcp_core::policy::cc::{SsthreshRule, Undo};
use ackline_tcp_core::policy::rto::{
    AckFacts, RtoCc, RtoGate, RtoPhase, RtoResponse, RtoRtt, RtoStep, RtoTags, RtoVerdict, RtoView,
};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed};
use ackline_tcp_core::policy::{Metrics, NewRtoResponse, Params, SpecError};
use ackline_tcp_core::{SeqNum, Window};

const NAME: &str = "frto";

pub(crate) const ENTRY: Entry<NewRtoResponse> = Entry {
    aliases: &["f-rto"],
    source: "RFC 5682 section 3, RFC 4015",
    ..Entry::rto::<FRto>(NAME, "two segments of new data after the first ACK tell a delay from a loss")
};

/// The window after a spurious timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Spurious {
    /// RFC 4015: FlightSize + min(bytes_acked, IW), and the previous `ssthresh` (or the flight at
    /// the timeout if that is more).
    #[default]
    Rfc4015,
    /// Window and `ssthresh` are half the flight at the timeout: congestion avoidance from there,
    /// as in the variant of 2002.
    Halve,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrtoPhase {
    /// No episode.
    Open,
    /// The head was retransmitted: step 2 waits for an ACK that advances SND.UNA. `sent`: SND.NXT
    /// at the timeout.
    First { sent: SeqNum },
    /// New data was sent: step 3 waits for an ACK.
    Second { recovery_point: SeqNum },
    /// The timeout was genuine: go-back-N up to here.
    Repair { recovery_point: SeqNum },
}

/// F-RTO.
#[derive(Clone, Debug)]
pub struct FRto {
    spurious: Spurious,
    state: FrtoPhase,
    /// max(FlightSize, `ssthresh`) before the timeout.
    pipe_prev: Window,
    /// FlightSize at the timeout, in bytes.
    flight_prev: u32,
}

impl FRto {
    /// F-RTO with this response to a spurious timeout.
    #[must_use]
    pub const fn new(spurious: Spurious) -> Self {
        Self { spurious, state: FrtoPhase::Open, pipe_prev: Window::ZERO, flight_prev: 0 }
    }

    /// Continues with go-back-N; the ACK is processed as usual. `most`: maximum window in segments
    /// before the ACK increases it.
    fn genuine(&mut self, view: &RtoView, recovery_point: SeqNum, most: u32) -> RtoStep {
        self.state = FrtoPhase::Repair { recovery_point };
        let mut step = RtoStep::pass();
        step.verdict = Some(RtoVerdict::Lossy);
        // Steps 2a and 3a: at most two (three) segments. One ACK that covers many may have grown
        // the window by more.
        let window = Window::from_bytes(u64::from(most * view.flow.smss));
        if view.window > window {
            step.cc = RtoCc::Timeout { window, ssthresh: SsthreshRule::Keep };
        }
        step
    }

    /// Step 2.
    fn on_first(&mut self, view: &RtoView, ack: &AckFacts, sent: SeqNum) -> RtoStep {
        if ack.acked == 0 {
            if !view.sack_permitted && ack.duplicate {
                // Section 2.1, step 2a.
                return self.genuine(view, sent, 1);
            }
            let mut step = RtoStep::consume();
            step.gate = RtoGate::Closed;
            return step;
        }
        let recovery_point = view.flow.snd_nxt;
        if ack.ack.ge(sent) || view.unsent == 0 {
            // Step 2a, and step 2b if nothing new can be sent.
            return self.genuine(view, recovery_point, 1);
        }
        // Step 2b.
        self.state = FrtoPhase::Second { recovery_point };
        let mut step = RtoStep::pass();
        let window = Window::from_bytes(2 * u64::from(view.flow.smss));
        step.gate = RtoGate::NewOnly { window, from: recovery_point };
        step
    }

    /// Step 3. `None` for an ACK without information.
    fn on_second(&mut self, view: &RtoView, ack: &AckFacts, recovery_point: SeqNum) -> Option<RtoStep> {
        let sacks = ack.sack.iter().take(usize::from(ack.sack_count));
        let beyond = ack.ack.gt(recovery_point) || sacks.clone().any(|block| block.1.gt(recovery_point));
        let below = ack.acked > 0 || ack.newly_sacked > 0;
        if beyond || (ack.duplicate && !below) {
            // Step 3a.
            let mut step = self.genuine(view, recovery_point, 2);
            if !view.sack_permitted {
                // Section 2.1: what is not acknowledged goes again, the new data, too.
                step.tags = RtoTags::AllLost;
            }
            return Some(step);
        }
        below.then(|| self.spurious(view, ack))
    }

    /// Step 3b: data from before the timeout arrived without having been retransmitted.
    fn spurious(&mut self, view: &RtoView, ack: &AckFacts) -> RtoStep {
        self.state = FrtoPhase::Open;
        let mut step = RtoStep::consume();
        step.tags = RtoTags::Unmark;
        step.rtt = RtoRtt::Take;
        step.verdict = Some(RtoVerdict::Spurious);
        // RFC 4015, section 3, step 8: not if the peer reports congestion.
        if !ack.ece {
            step.cc = RtoCc::Undo(match self.spurious {
                Spurious::Rfc4015 => {
                    Undo::To { window: reversed_window(view, ack), ssthresh: self.pipe_prev }
                }
                Spurious::Halve => {
                    let half = halved(u64::from(self.flight_prev), view.flow.smss);
                    Undo::To { window: half, ssthresh: half }
                }
            });
        }
        step
    }
}

impl Default for FRto {
    fn default() -> Self {
        Self::new(Spurious::default())
    }
}

impl Keyed for FRto {
    const KEYS: &'static [Key<Self>] = &[Key::choice(
        "response",
        &["rfc4015", "halve"],
        "window after a spurious timeout: what is in flight, or half of it in congestion avoidance",
        |it| it.spurious as usize,
        |it, at| it.spurious = [Spurious::Rfc4015, Spurious::Halve][at],
    )];
}

impl RtoResponse for FRto {
    fn name(&self) -> &'static str {
        NAME
    }

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        let sent = view.flow.snd_nxt;
        // Step 1. The scoreboard is reset; a repeated timeout starts over.
        let mut step = go_back_n::step(view, false, go_back_n::ssthresh(view));
        let repairing = match self.state {
            FrtoPhase::Open => view.in_recovery,
            FrtoPhase::First { .. } => false,
            FrtoPhase::Second { recovery_point } | FrtoPhase::Repair { recovery_point } => {
                recovery_point.ge(view.flow.snd_una)
            }
        };
        if repairing {
            self.state = FrtoPhase::Repair { recovery_point: sent };
            return step;
        }
        if !matches!(self.state, FrtoPhase::First { .. }) {
            self.pipe_prev = pipe_prev(view);
            self.flight_prev = view.flow.flight_size;
        }
        self.state = FrtoPhase::First { sent };
        step.gate = RtoGate::Closed;
        step
    }

    fn on_ack(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        // Anything older than SND.UNA has already been judged.
        let old = ack.ack.lt(ack.prior_una);
        let step = match self.state {
            FrtoPhase::First { sent } if !old => Some(self.on_first(view, ack, sent)),
            FrtoPhase::Second { recovery_point } if !old => self.on_second(view, ack, recovery_point),
            _ => None,
        };
        if let FrtoPhase::Repair { recovery_point } = self.state
            && ack.ack.ge(recovery_point)
        {
            self.state = FrtoPhase::Open;
        }
        step
    }

    fn phase(&self) -> RtoPhase {
        match self.state {
            FrtoPhase::Open => RtoPhase::Open,
            FrtoPhase::First { .. } => RtoPhase::Probe,
            FrtoPhase::Second { .. } | FrtoPhase::Repair { .. } => RtoPhase::Repair,
        }
    }

    fn on_takeover(&mut self) {
        self.state = FrtoPhase::Open;
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        let step: u8 = match self.state {
            FrtoPhase::First { .. } => 2,
            FrtoPhase::Second { .. } => 3,
            FrtoPhase::Open | FrtoPhase::Repair { .. } => 0,
        };
        report.number("frto_step", step);
        report.flag("repairing", matches!(self.state, FrtoPhase::Repair { .. }));
        report.window("pipe_prev", self.pipe_prev);
        report.bytes("flight_prev", self.flight_prev);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.set(NAME, params)
    }
}
