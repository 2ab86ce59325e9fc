//! The parameters of DCLOR.

use ackline_tcp_core::policy::spec::{Key, Keyed};

/// The effect of stale ACKs (section 4.2, NOTE-1 and NOTE-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StalePolicy {
    /// None: the window stays closed, and is two segments at the exit.
    Silent,
    /// The first one opens a window of the saved pipe for new data.
    Revert,
    /// The first one opens half of that.
    Halve,
    /// None; at the exit the window is the saved pipe, halved for each RTO without an ACK, and at
    /// least two segments.
    Decay,
}

/// What a second timeout sends while the first probe is unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeRepeat {
    /// New data, or the highest outstanding segment; SS_PTR moves.
    New,
    /// The same segment again: careful with a small receive window, but all copies except one are
    /// redundant.
    Same,
}

/// The value whose half becomes `ssthresh` if data was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedWindow {
    /// Pipe (RFC 6675) before the first timeout of the episode.
    Pipe,
    /// FlightSize (RFC 5681) at that time.
    FlightSize,
}

/// How a clean exit treats a probe that was a retransmission, which may itself have repaired the
/// only loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackClean {
    /// `ssthresh` is reduced unless a timestamp or a DSACK proves that the original had arrived.
    Conservative,
    /// `ssthresh` is kept, as in the draft.
    Literal,
}

/// How the ACK of a probe that was new data, and was sent once, is used as an RTT sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeRtt {
    /// Not at all.
    Skip,
    /// As in RFC 4015, section 3, step 11: the RTO grows by the probe's delay. Fewer timeouts are
    /// spurious, but the next genuine loss waits for several stalls.
    Rfc4015,
}

/// DCLOR's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DclorParams {
    /// The effect of stale ACKs.
    pub stale_policy: StalePolicy,
    /// What a repeated timeout sends.
    pub probe_repeat: ProbeRepeat,
    /// A timeout clears the peer's SACK information (as RFC 2018, section 8, says; practice keeps
    /// it).
    pub sack_reset_on_rto: bool,
    /// The value whose half becomes `ssthresh`.
    pub saved_window: SavedWindow,
    /// What a probe that was a retransmission proves.
    pub fallback_clean: FallbackClean,
    /// Go-back-N before the peer has sent its first SACK block (section 6).
    pub require_sack_seen: bool,
    /// Consecutive probes before go-back-N takes over; 0: no limit (other than the connection's).
    pub max_probes: u32,
    /// An unanswered tail loss probe becomes the probe of the first timeout.
    pub reuse_tlp: bool,
    /// How a probe's ACK is used as an RTT sample.
    pub probe_rtt: ProbeRtt,
}

impl Default for DclorParams {
    /// Best for practice: [`Self::paper`], but cautious about probes that were retransmissions, and
    /// limited to three probes. `ackline reproduce dclor --only settings` measures the other
    /// choices of `probe_repeat` and `probe_rtt`.
    fn default() -> Self {
        Self { fallback_clean: FallbackClean::Conservative, max_probes: 3, ..Self::paper() }
    }
}

impl DclorParams {
    /// The draft, as its words and Tables 3 to 6 go together. `probe_repeat` follows its step 5
    /// ("repeat step-2", which sends new data). It says nothing about `probe_rtt`: that is a choice
    /// which fits the tables.
    #[must_use]
    pub const fn paper() -> Self {
        Self {
            stale_policy: StalePolicy::Silent,
            probe_repeat: ProbeRepeat::New,
            sack_reset_on_rto: true,
            saved_window: SavedWindow::Pipe,
            fallback_clean: FallbackClean::Literal,
            require_sack_seen: false,
            max_probes: 0,
            reuse_tlp: false,
            probe_rtt: ProbeRtt::Skip,
        }
    }
}

impl Keyed for DclorParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::choice(
            "profile",
            &["default", "paper"],
            "where the other parameters start from: paper is the draft",
            |it| usize::from(*it == Self::paper()),
            |it, at| *it = if at == 1 { Self::paper() } else { Self::default() },
        ),
        Key::choice(
            "stale_policy",
            &["silent", "revert", "halve", "decay"],
            "what ACKs of data from before the timeout open for new data",
            |it| it.stale_policy as usize,
            |it, at| {
                it.stale_policy =
                    [StalePolicy::Silent, StalePolicy::Revert, StalePolicy::Halve, StalePolicy::Decay][at]
            },
        ),
        Key::choice(
            "probe_repeat",
            &["new", "same"],
            "what a second timeout sends",
            |it| it.probe_repeat as usize,
            |it, at| it.probe_repeat = [ProbeRepeat::New, ProbeRepeat::Same][at],
        ),
        Key::switch("sack_reset_on_rto", "a timeout forgets what the peer has SACKed", |it| {
            &mut it.sack_reset_on_rto
        }),
        Key::choice(
            "saved_window",
            &["pipe", "flight"],
            "what half of becomes ssthresh after a loss",
            |it| it.saved_window as usize,
            |it, at| it.saved_window = [SavedWindow::Pipe, SavedWindow::FlightSize][at],
        ),
        Key::choice(
            "fallback_clean",
            &["conservative", "literal"],
            "reduce ssthresh where the probe may have repaired the loss itself",
            |it| it.fallback_clean as usize,
            |it, at| it.fallback_clean = [FallbackClean::Conservative, FallbackClean::Literal][at],
        ),
        Key::switch("require_sack_seen", "go-back-N before the peer's first SACK block", |it| {
            &mut it.require_sack_seen
        }),
        Key::integer("max_probes", 0..=1_000, "probes in a row before go-back-N; 0: no limit", |it| {
            &mut it.max_probes
        }),
        Key::switch("reuse_tlp", "an unanswered tail loss probe becomes the probe", |it| &mut it.reuse_tlp),
        Key::choice(
            "probe_rtt",
            &["skip", "rfc4015"],
            "whether the ACK of a probe that was new data is an RTT sample",
            |it| it.probe_rtt as usize,
            |it, at| it.probe_rtt = [ProbeRtt::Skip, ProbeRtt::Rfc4015][at],
        ),
    ];
}
