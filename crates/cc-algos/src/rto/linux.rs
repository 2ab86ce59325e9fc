//! Current practice: go-back-N's first step, with three ways to find out that it was wrong and undo
//! it.
//!
//! | evidence | from |
//! |---|---|
//! | an ACK echoes a timestamp from before the first retransmission | RFC 3522 |
//! | every retransmission is reported as received twice | RFC 2883, RFC 3708 |
//! | data that was not retransmitted is acknowledged: at once, or after new data was sent | RFC 5682, section 3 |
//!
//! Undo restores window and `ssthresh` if they were higher, and unmarks what was marked lost. Tail
//! loss probes, RACK and proportional rate reduction complement it; they are in the core.
//!
//! `ssthresh` follows congestion control's own rule. A timeout in fast recovery does not lower it
//! again. SACK information is kept, unless the head is SACKed, too: then the peer has reneged, and
//! the core has already cleared these tags.

use super::go_back_n;
use ackline_tcp_core::policy::cc::{Phase, SsthreshRule, Undo};
use ackline_tcp_core::policy::rto::{
    AckFacts, RtoCc, RtoGate, RtoPhase, RtoResponse, RtoStep, RtoTags, RtoVerdict, RtoView,
};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed};
use ackline_tcp_core::policy::{Metrics, NewRtoResponse, Params, SpecError};
use ackline_tcp_core::{Instant, SeqNum, Window};

const NAME: &str = "linux";

pub(crate) const ENTRY: Entry<NewRtoResponse> = Entry {
    aliases: &["modern"],
    source: "RFC 6298, RFC 6675, RFC 5682, RFC 3522, RFC 3708",
    ..Entry::rto::<Linux>(NAME, "go-back-N that timestamps, DSACK or F-RTO take back where it was wrong")
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossState {
    /// No episode.
    Open,
    /// Repair up to `high_seq`.
    Loss { high_seq: SeqNum },
}

/// What F-RTO waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// It is off, or has decided.
    None,
    /// An ACK that advances SND.UNA (RFC 5682, section 3.1, step 2).
    First,
    /// The ACK that follows new data (step 3).
    Second,
}

/// The state needed for an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marker {
    /// SND.UNA at the timeout: DSACKs below it are older.
    una: SeqNum,
    /// Segments that the connection had retransmitted before.
    retransmitted: u64,
    /// Segments since then that the peer reported as received twice.
    twice: u64,
    /// The episode started with this timeout, so timestamps distinguish its retransmissions from
    /// the originals.
    whole: bool,
}

/// Current practice.
#[derive(Clone, Debug)]
pub struct Linux {
    frto: bool,
    undo: bool,
    state: LossState,
    test: Test,
    /// Time of the last timeout.
    expired_at: Instant,
    /// Present while the episode can still be undone.
    marker: Option<Marker>,
}

impl Default for Linux {
    fn default() -> Self {
        Self {
            frto: true,
            undo: true,
            state: LossState::Open,
            test: Test::None,
            expired_at: Instant::ZERO,
            marker: None,
        }
    }
}

impl Keyed for Linux {
    const KEYS: &'static [Key<Self>] = &[
        Key::switch("frto", "test with new data whether the timeout was spurious (F-RTO)", |it| &mut it.frto),
        Key::switch(
            "undo",
            "take a timeout back when timestamps or DSACKs show that it was spurious",
            |it| &mut it.undo,
        ),
    ];
}

impl Linux {
    /// True if every retransmission of the episode was unnecessary (RFC 3708, section 2).
    fn all_came_twice(&mut self, view: &RtoView, ack: &AckFacts) -> bool {
        let (Some(marker), Some((start, end))) = (self.marker.as_mut(), ack.dsack) else { return false };
        if start.lt(marker.una) {
            return false;
        }
        marker.twice += u64::from(end.distance_from(start).div_ceil(view.flow.smss).max(1));
        let sent_again = view.retransmitted.saturating_sub(marker.retransmitted);
        sent_again > 0 && marker.twice >= sent_again
    }

    /// Undoes the episode.
    fn take_back(&mut self) -> RtoStep {
        let mut step = RtoStep::pass();
        if self.state != LossState::Open {
            step.tags = RtoTags::Unmark;
        }
        step.cc = RtoCc::Undo(Undo::All);
        step.verdict = Some(RtoVerdict::Spurious);
        self.state = LossState::Open;
        self.test = Test::None;
        self.marker = None;
        step
    }

    /// F-RTO found no evidence that the timeout was spurious.
    fn give_up_test(&mut self) -> RtoStep {
        self.test = Test::None;
        let mut step = RtoStep::pass();
        step.verdict = Some(RtoVerdict::Lossy);
        step
    }

    /// RFC 5682, section 3.1, steps 2 and 3, with one difference from practice: data that was not
    /// retransmitted is proof already in step 2.
    fn test(&mut self, view: &RtoView, ack: &AckFacts, high_seq: SeqNum) -> Option<RtoStep> {
        if self.test == Test::None {
            return None;
        }
        if ack.original.is_some_and(|at| at < self.expired_at) {
            return Some(self.take_back());
        }
        match self.test {
            Test::First if ack.acked > 0 => {
                if ack.ack.ge(high_seq) {
                    self.test = Test::None;
                    return None;
                }
                if view.unsent == 0 {
                    return Some(self.give_up_test());
                }
                self.test = Test::Second;
                let mut step = RtoStep::pass();
                let window = Window::from_bytes(2 * u64::from(view.flow.smss));
                step.gate = RtoGate::NewOnly { window, from: view.flow.snd_nxt };
                Some(step)
            }
            Test::Second if ack.acked > 0 || ack.newly_sacked > 0 || ack.duplicate => {
                let mut step = self.give_up_test();
                if !view.sack_permitted {
                    // Section 2.1, step 3a: what is not acknowledged goes again, the new data, too.
                    step.tags = RtoTags::AllLost;
                }
                Some(step)
            }
            _ => None,
        }
    }
}

impl RtoResponse for Linux {
    fn name(&self) -> &'static str {
        NAME
    }

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        let new_loss = matches!(view.flow.phase, Phase::Open | Phase::Disorder);
        let repeated = view.expiries > 1;
        if self.undo && !repeated {
            self.marker = Some(Marker {
                una: view.flow.snd_una,
                retransmitted: view.retransmitted,
                twice: 0,
                whole: new_loss,
            });
        }
        self.test = if self.frto && (new_loss || repeated) { Test::First } else { Test::None };
        self.state = LossState::Loss { high_seq: view.flow.snd_nxt };
        self.expired_at = view.flow.now;
        let reduced = view.flow.phase == Phase::Recovery;
        go_back_n::step(view, true, if reduced { SsthreshRule::Keep } else { SsthreshRule::ByCc })
    }

    fn on_ack(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        if view.flow.phase == Phase::Recovery || view.ecn_reduced && self.state == LossState::Open {
            // A reduction not caused by the timeout must stand.
            self.marker = None;
        }
        if self.all_came_twice(view, ack) {
            return Some(self.take_back());
        }
        let LossState::Loss { high_seq } = self.state else { return None };
        let whole = self.marker.is_some_and(|marker| marker.whole);
        if whole && ack.acked > 0 && ack.echoes_original == Some(true) {
            return Some(self.take_back());
        }
        let step = self.test(view, ack, high_seq);
        if let LossState::Loss { high_seq } = self.state
            && ack.ack.ge(high_seq)
        {
            self.state = LossState::Open;
            self.test = Test::None;
        }
        step
    }

    fn phase(&self) -> RtoPhase {
        if self.state == LossState::Open { RtoPhase::Open } else { RtoPhase::Repair }
    }

    fn on_takeover(&mut self) {
        self.state = LossState::Open;
        self.test = Test::None;
        self.marker = None;
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        let step: u8 = match self.test {
            Test::None => 0,
            Test::First => 2,
            Test::Second => 3,
        };
        report.number("frto_step", step);
        report.flag("repairing", self.state != LossState::Open);
        report.flag("undo_marker", self.marker.is_some());
        report.count("received_twice", self.marker.map_or(0, |marker| marker.twice));
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.set(NAME, params)
    }
}
