//! What the peer's window or the cork makes an otherwise idle sender wait for: the next probe of a
//! closed window, or the override of a rule that holds small segments back.

use crate::time::{Duration, Instant};

/// How long a small usable window (RFC 9293, section 3.8.6.2.1: 0.1 to 1 s) or a cork holds data
/// back before the override.
const SWS_OVERRIDE: Duration = Duration::from_millis(200);

/// The wait, and its timer.
#[derive(Debug)]
pub(in crate::snd) struct WindowWait {
    /// When it is over; [`Instant::FAR_FUTURE`] while no timer runs.
    pub(in crate::snd) at: Instant,
    pub(in crate::snd) cause: WaitCause,
    /// Probes of a closed window since it was last open.
    pub(in crate::snd) probes: u8,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::snd) enum WaitCause {
    /// Nothing.
    Nothing,
    /// The next probe of a closed window.
    Persist,
    /// The probe is due.
    Probe,
    /// The override of SWS avoidance, or of the cork.
    Override,
    /// The override is due.
    Overridden,
}

impl WindowWait {
    /// There is nothing to wait for.
    pub(in crate::snd) const NONE: Self =
        Self { at: Instant::FAR_FUTURE, cause: WaitCause::Nothing, probes: 0 };

    /// The window of `wnd` bytes, or the cork, keeps the sender from sending although nothing is
    /// outstanding: arms the timer that ends this. `rto`: the timeout in force, without back-off.
    /// True if the wait for a closed window begins.
    pub(in crate::snd) fn begin(&mut self, now: Instant, wnd: u32, rto: Duration, max_rto: Duration) -> bool {
        let closed = wnd == 0;
        let probes = matches!(self.cause, WaitCause::Persist | WaitCause::Probe);
        // A window may close while the override waits, or after it was due.
        if self.cause != WaitCause::Nothing && (probes || !closed) {
            return false;
        }
        if closed {
            // RFC 9293, section 3.8.6.1: the first probe after one RTO, then with exponential
            // back-off.
            self.cause = WaitCause::Persist;
            let backed_off = rto.saturating_mul(1 << self.probes.min(32));
            self.at = now + backed_off.min(max_rto);
            return self.probes == 0;
        }
        self.cause = WaitCause::Override;
        self.at = now + SWS_OVERRIDE;
        false
    }

    /// The window opened, or there is nothing to wait for any more.
    pub(in crate::snd) fn stop(&mut self) {
        *self = Self::NONE;
    }

    /// A probe of the closed window left; the wait for the next one begins anew.
    pub(in crate::snd) fn on_probe_sent(&mut self) {
        *self = Self { probes: self.probes.saturating_add(1), ..Self::NONE };
    }

    /// The timer has fired.
    pub(in crate::snd) fn on_timeout(&mut self) {
        self.at = Instant::FAR_FUTURE;
        self.cause = match self.cause {
            WaitCause::Persist | WaitCause::Probe => WaitCause::Probe,
            WaitCause::Override | WaitCause::Overridden => WaitCause::Overridden,
            WaitCause::Nothing => WaitCause::Nothing,
        };
    }

    /// The wait between two probes has backed off.
    pub(in crate::snd) fn has_backed_off(&self) -> bool {
        self.cause == WaitCause::Persist && self.probes > 0
    }
}
