//! Slow start: rounds, in which the flight grows by half at least (RFC 5681, section 3.1, with
//! delayed ACKs), until it no longer does.

use crate::story::{SlowStart, SlowStartEnd};

/// Rounds in a row without such growth that end it.
const FLAT_ROUNDS: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct SlowStartWatch {
    /// When everything before is acknowledged, the round is over.
    round_end: u64,
    /// Largest flight of this round, and of the one before.
    peak: u64,
    last_peak: u64,
    /// Largest flight of all.
    most: u64,
    rounds: u32,
    flat: u32,
    /// When growth ended, if it did: time, flight, rounds.
    flat_since: Option<(u64, u64, u32)>,
    /// In this round the receiver's window was full, the application had nothing.
    window: bool,
    application: bool,
    rounds_of_application: u32,
    ended: Option<(u64, u64, u32, SlowStartEnd)>,
    /// Its end is stated, and not inferred from growth.
    stated: bool,
}

impl SlowStartWatch {
    /// One that ends by [`end`](Self::end) alone.
    pub(super) fn stated() -> Self {
        Self { stated: true, ..Self::default() }
    }

    pub(super) const fn window_is_full(&mut self) {
        self.window = true;
    }

    pub(super) const fn application_pauses(&mut self) {
        self.application = true;
    }

    /// Something was sent.
    pub(super) fn sent(&mut self, flight: u64, snd_nxt: u64) {
        if self.rounds == 0 {
            self.rounds = 1;
            self.round_end = snd_nxt;
        }
        self.peak = self.peak.max(flight);
        self.most = self.most.max(flight);
    }

    /// Everything before `snd_una` is acknowledged.
    pub(super) fn acknowledged(&mut self, at_ns: u64, snd_una: u64, snd_nxt: u64) {
        if self.ended.is_some() || self.rounds == 0 || snd_una < self.round_end {
            return;
        }
        if self.application {
            self.rounds_of_application += 1;
            (self.flat, self.flat_since) = (0, None);
        } else if self.last_peak > 0 && self.peak * 10 < self.last_peak * 13 {
            self.flat += 1;
            self.flat_since.get_or_insert((at_ns, self.peak, self.rounds));
        } else {
            (self.flat, self.flat_since) = (0, None);
        }
        if !self.stated
            && self.flat >= FLAT_ROUNDS
            && let Some((at, flight, rounds)) = self.flat_since
        {
            let end = if self.window { SlowStartEnd::ReceiverWindow } else { SlowStartEnd::Plateau };
            self.ended = Some((at, flight, rounds, end));
        }
        self.rounds += 1;
        self.round_end = snd_nxt;
        self.last_peak = self.peak;
        (self.peak, self.window, self.application) = (0, false, false);
    }

    /// A loss was repaired, or a mark echoed.
    pub(super) fn end(&mut self, at_ns: u64, why: SlowStartEnd) {
        // Growth may have ended before, less than the rounds ago that would have told.
        if self.ended.is_none() && self.rounds > 0 {
            self.ended = Some((at_ns, self.most, self.rounds, why));
        }
    }

    /// `None` if there was too little data to tell.
    pub(super) fn finish(&self, start_ns: u64, last_ns: u64) -> Option<SlowStart> {
        let (at, flight, rounds, end) = match self.ended {
            Some(ended) => ended,
            None if self.rounds < 2 => return None,
            None if self.rounds_of_application * 2 > self.rounds => {
                (last_ns, self.most, self.rounds, SlowStartEnd::Application)
            }
            None => (last_ns, self.most, self.rounds, SlowStartEnd::Data),
        };
        Some(SlowStart { end_at_ns: at.saturating_sub(start_ns), flight, rounds, end })
    }
}
