//! Steps 33 to 39, CSA3: what the receiver makes of signs that the sender's window fell.
//!
//! After a timeout the sender has one segment outstanding, which may be less than 35 % of MUDS: A3 then waits for its timer,
//! time after time. CSA3 sets MUDS to one segment, and with each ACK that moves on lets it grow as the sender's window will:
//! twofold up to half of what it was, then by a segment per MUDS of data.
//!
//! A pause of the application looks like congestion, too: it costs a few more ACKs.

use super::settings::Csa3;
use ackline_tcp_core::policy::Metrics;
use ackline_tcp_core::{Duration, Instant};

/// The default floor of `T_inact`.
const LEAST_PAUSE: Duration = Duration::from_millis(200);

/// Step 33: a sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// (i) The third duplicate ACK for one hole was sent.
    ThirdDupAck,
    /// (ii) Nothing came for a while.
    Pause,
    /// (iii) A segment came again.
    Duplicate,
}

/// A reduction that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Episode {
    /// When the last sign came.
    pub(super) since: Instant,
    /// Up to where MUDS doubles, in bytes.
    pub(super) r_ss: u32,
    /// MUDS before the first sign, in bytes: there it ends.
    pub(super) target: u32,
}

/// The state of CSA3.
#[derive(Clone, Debug, Default)]
pub(super) struct Congestion {
    episode: Option<Episode>,
    /// When an ACK last left.
    last_ack: Option<Instant>,
    /// Reductions by each sign.
    reductions: [u64; 3],
}

impl Congestion {
    /// Steps 10 and 33 (ii): data arrives after a pause. `last`: when the data before it arrived.
    pub(super) fn is_pause(&self, csa3: &Csa3, now: Instant, last: Option<Instant>, rtt: Duration) -> bool {
        let Some(last) = last else { return false };
        let since = if csa3.pause_from_ack { last.max(self.last_ack.unwrap_or(last)) } else { last };
        csa3.pause
            .threshold(|| rtt.saturating_mul(2).max(LEAST_PAUSE))
            .is_some_and(|least| now.since(since) >= least)
    }

    /// Steps 34 to 36: MUDS after a sign of congestion; `None` if it changes nothing.
    pub(super) fn reduce(
        &mut self,
        now: Instant,
        muds: u32,
        mss: u32,
        rtt: Duration,
        trigger: Trigger,
    ) -> Option<u32> {
        // Step 34: a sender with small buffers has nothing to reduce, and a burst of signs is one event.
        let again = self.episode.is_some_and(|episode| now.since(episode.since) < rtt);
        if muds < mss || again {
            return None;
        }
        // Steps 35 and 36: a sign in an episode halves what there is; the end of the episode stays, or MUDS would ratchet down.
        let target = self.episode.map_or(muds, |episode| episode.target);
        self.episode = Some(Episode { since: now, r_ss: (muds / 2).max(mss), target });
        if let Some(count) = self.reductions.get_mut(trigger as usize) {
            *count += 1;
        }
        Some(mss)
    }

    /// Sampling and its interval stand still.
    pub(super) const fn is_recovering(&self) -> bool {
        self.episode.is_some()
    }

    /// An ACK left.
    pub(super) const fn on_ack_sent(&mut self, now: Instant) {
        self.last_ack = Some(now);
    }

    /// Step 37: MUDS after an ACK that moved on.
    pub(super) fn grow(&mut self, muds: u32, mss: u32) -> u32 {
        let Some(Episode { r_ss, target, .. }) = self.episode else { return muds };
        let grown = if muds <= r_ss {
            muds.saturating_mul(2)
        } else {
            // Multiplied before it is divided: MSS/MUDS alone is 0 in integers.
            let square = u64::from(mss) * u64::from(mss);
            let step = square.checked_div(u64::from(muds)).unwrap_or(0).max(1);
            u32::try_from(u64::from(muds) + step).unwrap_or(u32::MAX)
        };
        if grown < target {
            return grown;
        }
        self.episode = None;
        target
    }

    pub(super) fn metrics(&self, report: &mut Metrics<'_>) {
        let [dupacks, pauses, duplicates] = self.reductions;
        report.report("recovering", f64::from(u8::from(self.episode.is_some())));
        report.report("r_ss", f64::from(self.episode.map_or(0, |episode| episode.r_ss)));
        report.report("target", f64::from(self.episode.map_or(0, |episode| episode.target)));
        report.report("reductions_by_dupacks", dupacks as f64);
        report.report("reductions_by_pauses", pauses as f64);
        report.report("reductions_by_duplicates", duplicates as f64);
    }

    #[cfg(test)]
    pub(super) const fn episode(&self) -> Option<Episode> {
        self.episode
    }
}
