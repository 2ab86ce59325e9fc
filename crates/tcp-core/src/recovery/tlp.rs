//! Tail loss probes (RFC 8985, section 7): if the end of a flight may be lost, and no ACK can tell,
//! one segment is sent after about two round trips. Its acknowledgment shows RACK what is missing,
//! long before the retransmission timer would expire.
//!
//! The probe is new data if there is any, regardless of the congestion window, and otherwise the
//! highest outstanding segment again. In the second case it may have repaired a loss that nobody
//! noticed: the episode ([`Probe`]) stays open until an ACK tells (section 7.4).

use crate::scoreboard::AckCx;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};

/// TLP.max_ack_delay: how long a peer may hold the ACK of a single segment. A smaller floor of the
/// RTO implies that this host's peers hold none for that long (Linux, `tcp_schedule_loss_probe`).
pub(crate) const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// The probe timeout before an RTT sample.
const INITIAL_PTO: Duration = Duration::from_secs(1);

/// An unanswered probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// First sequence number of the probe.
    pub(crate) start: SeqNum,
    /// TLP.end_seq: SND.NXT after it was sent.
    pub(crate) end: SeqNum,
    /// Not TLP.is_retrans: it was new data.
    pub(crate) new: bool,
}

impl Probe {
    /// A DSACK of `[.., end)` reports this probe.
    pub(crate) fn is_reported_by(&self, end: SeqNum) -> bool {
        !self.new && end == self.end
    }
}

/// The state of tail loss probes.
#[derive(Debug)]
pub(crate) struct Tlp {
    /// When the next probe is due; [`Instant::FAR_FUTURE`] if none is.
    pub(crate) at: Instant,
    /// The timer expired, and the probe has not been sent.
    pub(crate) due: bool,
    pub(crate) open: Option<Probe>,
    /// The last probe, answered or not.
    pub(crate) last: Option<Probe>,
    /// No RTT sample has come since the last probe.
    unsampled: bool,
}

/// TLP_calc_PTO, without the host's margin and the bound set by the retransmission timer.
/// `ack_delay`: how long the peer may hold the ACK.
pub(crate) fn probe_timeout(srtt: Option<Duration>, ack_delay: Duration) -> Duration {
    srtt.map_or(INITIAL_PTO, |srtt| srtt.saturating_mul(2).saturating_add(ack_delay))
}

impl Tlp {
    pub(crate) const fn new() -> Self {
        Self { at: Instant::FAR_FUTURE, due: false, open: None, last: None, unsampled: false }
    }

    /// TLP_init (section 7.1): a recovery begins.
    pub(crate) fn reset(&mut self) {
        self.at = Instant::FAR_FUTURE;
        self.due = false;
        self.open = None;
    }

    /// Section 7.2: one probe in flight, and an RTT sample since the last one.
    pub(crate) const fn may_probe(&self) -> bool {
        self.open.is_none() && !self.unsampled
    }

    /// The timer runs up to `at`; [`Instant::FAR_FUTURE`]: it stops.
    pub(crate) fn schedule(&mut self, at: Instant) {
        self.at = at;
        self.due = false;
    }

    /// The timer expired; `due`: the probe is to be sent.
    pub(crate) fn on_timeout(&mut self, due: bool) {
        self.at = Instant::FAR_FUTURE;
        self.due = due;
    }

    /// `probe` was sent; `open`: it waits for an answer.
    pub(crate) fn on_sent(&mut self, probe: Probe, open: bool) {
        self.on_timeout(false);
        self.unsampled = true;
        self.last = Some(probe);
        if open {
            self.open = self.last;
        }
    }

    /// The current ACK gave an RTT sample.
    pub(crate) fn on_rtt_sample(&mut self) {
        self.unsampled = false;
    }

    /// TLP_process_ack (section 7.4): how an ACK, with SND.UNA now at `una`, affects an open probe.
    /// True if the probe repaired a loss: its copy was the only one to arrive.
    pub(crate) fn on_ack(&mut self, ack: &AckCx, una: SeqNum) -> bool {
        let Some(probe) = self.open.filter(|probe| una.ge(probe.end)) else { return false };
        let reported = ack.facts.dsack.is_some_and(|(_, end)| end == probe.end);
        let repaired = !probe.new && !reported && una.gt(probe.end);
        // Without SACK option a duplicate ACK of the end says the same as a DSACK: both copies
        // arrived.
        if probe.new || reported || repaired || (ack.facts.duplicate && !ack.facts.sack_option) {
            self.open = None;
        }
        repaired
    }
}
