//! Steps 33 to 39, CSA3: the receiver's response to signs that the sender's window fell.
//!
//! After a timeout the sender has one segment outstanding, which may be less than 35 % of MUDS: A3
//! then waits for its timer again and again. CSA3 sets MUDS to one segment, and with each ACK that
//! advances lets it grow as the sender's window will: doubling up to half of its former value, then
//! by a segment per MUDS of data.
//!
//! An application pause also looks like congestion: that costs a few more ACKs.

use super::settings::Signs;
use ackline_tcp_core::policy::Metrics;
use ackline_tcp_core::{Duration, Instant};

/// The default floor of `T_inact`.
pub(super) const LEAST_PAUSE: Duration = Duration::from_millis(200);

/// Step 33: a sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// (i) The third duplicate ACK for one hole was sent.
    ThirdDupAck,
    /// (ii) Nothing arrived for a while.
    Pause,
    /// (iii) A segment arrived again.
    Duplicate,
}

/// A reduction in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Episode {
    /// When the last sign came.
    pub(super) since: Instant,
    /// MUDS doubles up to here, in bytes.
    pub(super) r_ss: u32,
    /// MUDS before the first sign, in bytes: the episode ends there.
    pub(super) target: u32,
}

/// The state of CSA3.
#[derive(Clone, Debug, Default)]
pub(super) struct Congestion {
    episode: Option<Episode>,
    /// When the last ACK was sent.
    last_ack: Option<Instant>,
    /// Number of reductions by each sign.
    reductions: [u64; 3],
}

impl Congestion {
    /// Steps 10 and 33 (ii): true if data arrives after a pause. `last`: when the previous data
    /// arrived.
    pub(super) fn is_pause(&self, signs: &Signs, now: Instant, last: Option<Instant>, rtt: Duration) -> bool {
        let Some(last) = last else { return false };
        let since = if signs.pause_from_ack { last.max(self.last_ack.unwrap_or(last)) } else { last };
        signs
            .pause
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
        // Step 34: a sender with small buffers has nothing to reduce, and a burst of signs counts
        // as one event.
        let again = self.episode.is_some_and(|episode| now.since(episode.since) < rtt);
        if muds < mss || again {
            return None;
        }
        // Steps 35 and 36: a sign within an episode halves the current value; the end of the
        // episode stays, or MUDS would ratchet down.
        let target = self.episode.map_or(muds, |episode| episode.target);
        self.episode = Some(Episode { since: now, r_ss: (muds / 2).max(mss), target });
        if let Some(count) = self.reductions.get_mut(trigger as usize) {
            *count += 1;
        }
        Some(mss)
    }

    /// Sampling and its interval are suspended.
    pub(super) const fn is_recovering(&self) -> bool {
        self.episode.is_some()
    }

    /// An ACK was sent.
    pub(super) const fn on_ack_sent(&mut self, now: Instant) {
        self.last_ack = Some(now);
    }

    /// Step 37: MUDS after an ACK that advances.
    pub(super) fn grow(&mut self, muds: u32, mss: u32) -> u32 {
        let Some(Episode { r_ss, target, .. }) = self.episode else { return muds };
        let grown = if muds <= r_ss {
            muds.saturating_mul(2)
        } else {
            // Multiply before dividing: MSS/MUDS alone is 0 in integers.
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
        report.flag("recovering", self.episode.is_some());
        report.bytes("r_ss", self.episode.map_or(0, |episode| episode.r_ss));
        report.bytes("target", self.episode.map_or(0, |episode| episode.target));
        report.count("reductions_by_dupacks", dupacks);
        report.count("reductions_by_pauses", pauses);
        report.count("reductions_by_duplicates", duplicates);
    }

    #[cfg(test)]
    pub(super) const fn episode(&self) -> Option<Episode> {
        self.episode
    }
}
