//! Go-back-N (RFC 5681 section 3.1, RFC 6675 section 5.1, RFC 6298 section 5): a timeout means that
//! everything is lost. The window falls to one segment, and everything not SACKed is retransmitted
//! in slow start.
//!
//! Where it fails: a timeout that was only a delay retransmits a whole window, each copy released
//! by the ACK of an original, twice as fast as the path drains; the copies and what they release
//! overflow the shared queue.

use super::halved;
use ackline_tcp_core::policy::NewRtoResponse;
use ackline_tcp_core::policy::cc::SsthreshRule;
use ackline_tcp_core::policy::rto::{FirstStep, RtoCc, RtoStep, RtoTags, RtoView};
use ackline_tcp_core::policy::spec::{Entry, Key};

pub(crate) const ENTRY: Entry<NewRtoResponse> = Entry {
    aliases: &["gbn"],
    source: "RFC 5681 section 3.1, RFC 6675 section 5.1, RFC 6298 section 5",
    ..Entry::rto_step::<GoBackN>("everything outstanding is lost and goes out again in slow start")
};

/// The first step of go-back-N with the given rule for `ssthresh`.
pub(super) fn step(view: &RtoView, keep_sack: bool, ssthresh: SsthreshRule) -> RtoStep {
    let mut step = RtoStep::conventional(view.flow.smss);
    step.tags = if keep_sack { RtoTags::UnsackedLost } else { RtoTags::AllLost };
    if let RtoCc::Timeout { ssthresh: rule, .. } = &mut step.cc {
        *rule = ssthresh;
    }
    step
}

/// RFC 5681, section 3.1: half the flight, and not again if the same segment times out again.
pub(super) fn ssthresh(view: &RtoView) -> SsthreshRule {
    if view.expiries > 1 {
        SsthreshRule::Keep
    } else {
        SsthreshRule::To(halved(u64::from(view.flow.flight_size), view.flow.smss))
    }
}

/// Go-back-N.
#[derive(Clone, Debug)]
pub struct GoBackN {
    /// Do not retransmit what is SACKed.
    keep_sack: bool,
}

impl Default for GoBackN {
    fn default() -> Self {
        Self { keep_sack: true }
    }
}

impl FirstStep for GoBackN {
    const NAME: &'static str = "go-back-n";
    const KEYS: &'static [Key<Self>] =
        &[Key::switch("keep_sack", "do not send again what the peer has SACKed", |it| &mut it.keep_sack)];

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        step(view, self.keep_sack, ssthresh(view))
    }
}
