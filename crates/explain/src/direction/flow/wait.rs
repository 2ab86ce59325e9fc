//! What the sender waited for.

use super::Flow;
use crate::direction::{BURST_NS, Context, SHORTEST_STALL_NS, since};
use crate::story::Cause;

impl Flow {
    /// What the sender waited for before new data up to `end` left.
    pub(super) fn account(&mut self, end: u64, at: u64, context: &Context) {
        let stall = self.stall_ns(context);
        if self.tally.episodes.open().is_some() {
            self.tally.ledger.write(self.repairing(at, stall), at, stall);
            return;
        }
        let rtt = self.waited_path_ns(context);
        // What an ACK lets go follows at once. What is paced follows sometime between two ACKs.
        let spacing = self.view.spacing_ns() / 4;
        let prompt = spacing.min(rtt / 8).clamp(100_000, 2_000_000) + context.to_sender_ns / 4;
        // A sender waits for room for a whole segment (RFC 9293, section 3.8.6.2.1).
        let whole = self.tally.snd_nxt + context.segment_size(self.mss);
        if let Some((raised, zero)) = self.view.held_back(end.max(whole)) {
            let cause = if zero { Cause::ZeroWindow } else { Cause::ReceiverWindow };
            self.tally.slow_start.window_is_full();
            if raised <= self.sent_ns || since(at, raised) <= prompt {
                self.tally.ledger.write(cause, at, stall);
                return;
            }
            self.tally.ledger.write(cause, raised, stall);
        }
        let waited = since(at, self.sent_ns);
        if let Some(drained) = self.view.drained_ns() {
            // Everything was acknowledged, so no window held anything back; but for a flight that
            // fills the window.
            let cause = match () {
                () if self.sent_partial => Cause::Application,
                () if since(at, drained) <= prompt => Self::window_was_full(waited, stall),
                // A queue before the capture may hold what the application has written.
                () if context.is_away() => Cause::Path,
                () => Cause::Application,
            };
            self.pause(cause, at, stall);
            return;
        }
        if self.view.progress_ns() > self.sent_ns && since(at, self.view.progress_ns()) <= prompt {
            self.spaced = 0;
            self.tally.ledger.write(Self::window_was_full(waited, stall), at, stall);
            return;
        }
        if waited <= BURST_NS {
            let cause = self.tally.ledger.last().unwrap_or(Cause::CongestionWindow);
            self.tally.ledger.write(cause, at, stall);
            return;
        }
        let cause = self.spaced_by(waited, rtt, context);
        self.pause(cause, at, stall);
    }

    /// The ACK that let a packet go made room in the congestion window; if it took this long, that
    /// is not what held the packet back.
    const fn window_was_full(waited: u64, stall: u64) -> Cause {
        if waited > stall { Cause::Silence } else { Cause::CongestionWindow }
    }

    /// What a packet of an episode waited for that no timer sent.
    pub(super) fn repairing(&self, at: u64, stall: u64) -> Cause {
        if since(at, self.sent_ns) > stall { Cause::Silence } else { Cause::Recovery }
    }

    fn pause(&mut self, cause: Cause, at: u64, stall: u64) {
        if cause == Cause::Application {
            self.spaced = 0;
            self.tally.slow_start.application_pauses();
        }
        self.tally.ledger.write(cause, at, stall);
    }

    /// Nothing that was heard explains the wait: the application, pacing or the path.
    fn spaced_by(&mut self, waited: u64, rtt: u64, context: &Context) -> Cause {
        if self.sent_partial {
            return Cause::Application;
        }
        let wait = waited as f64;
        let mean = *self.spacing.get_or_insert(wait);
        let even = wait < 3.0 * mean;
        self.spacing = Some(mean + (wait - mean) / 8.0);
        self.spaced += 1;
        match () {
            () if context.is_away() => Cause::Path,
            () if !even && waited > (rtt / 4).max(2_000_000) => Cause::Application,
            () if waited > (rtt * 2).max(SHORTEST_STALL_NS) => Cause::Application,
            () => Cause::Pacing,
        }
    }

    /// The round trip of the whole path, as far as it is known.
    pub(super) fn path_ns(&self, context: &Context) -> u64 {
        self.tally.rtt.smoothed_ns().unwrap_or(context.to_receiver_ns) + context.to_sender_ns
    }

    /// The same as it was when the last packet left: the ACKs that a wait was for have waited as
    /// well.
    fn waited_path_ns(&self, context: &Context) -> u64 {
        match self.sent_rtt_ns {
            Some(rtt) => rtt + context.to_sender_ns,
            None if context.to_receiver_ns > 0 => context.to_receiver_ns + context.to_sender_ns,
            None => self.path_ns(context),
        }
    }

    /// The shortest wait that is a stall.
    pub(super) fn stall_ns(&self, context: &Context) -> u64 {
        (self.waited_path_ns(context) * 2).max(SHORTEST_STALL_NS)
    }
}
