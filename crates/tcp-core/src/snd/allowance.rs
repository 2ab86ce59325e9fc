//! How much the application may write: send buffers that follow the congestion window.
//!
//! A sender needs a window's worth of data in the network, and another one to send when ACKs open
//! the window: more only waits in memory. So the bytes written and not yet acknowledged may be
//!
//! ```text
//!   min(send_buffer, max(min_send_buffer, 2 cwnd + gone))
//! ```
//!
//! as in Linux (`tcp_sndbuf_expand`). `gone` is what is unacknowledged but no longer in the
//! network, because it is lost or was SACKed: the congestion window has no place for it either, and
//! without this term a sender in recovery would have to wait for the application. Unlike Linux's,
//! the allowance falls with the window; what was written stays.
//!
//! A writer that has to wait because of the window has more to send, so the end of what it wrote is
//! not the end of its data: a small segment is not sent for it while ACKs are to come
//! ([`Stream::more_follows`]).
//!
//! [`notsent_lowat`](ConnConfig::notsent_lowat) limits the unsent part of it. As in Linux, a writer
//! that had to wait is told when a third of the allowance is free and less than half of
//! `notsent_lowat` is unsent, so that not every ACK wakes it; and earlier if what is unsent is
//! about to run out.
//!
//! Whether a waiting writer may go on is asked once when its connection is settled, because
//! acknowledgments, departures, a larger window and settings can all make space.

use super::Sender;
use super::data::write_space::WriteSpace;
use super::flight::Flight;
use super::stream::Stream;
use crate::config::ConnConfig;
use crate::policy::cc::Clock;

impl Sender {
    /// Bytes that may be written and not acknowledged.
    pub(crate) fn allowance(&self, config: &ConnConfig) -> u32 {
        self.stream.allowance(self.flight.as_deref(), config)
    }

    /// Bytes that may be written now.
    pub(crate) fn write_space(&self, config: &ConnConfig) -> usize {
        self.stream.write_space(self.flight.as_deref(), config)
    }

    /// The last write took all that there was, or only a part of it: then the writer waits.
    pub(crate) fn note_write(&mut self, complete: bool) {
        self.stream.cut_short = !complete;
        if !complete {
            self.want_space(WriteSpace::USUAL);
        }
    }

    /// The writer waits for `wanted`.
    pub(crate) fn want_space(&mut self, wanted: WriteSpace) {
        self.stream.wanted = Some(wanted);
    }

    /// True if a writer waits for space.
    pub(crate) const fn is_space_wanted(&self) -> bool {
        self.stream.wanted.is_some()
    }

    /// True if a writer waited, and need not any more. For lack of memory the buffer takes at most
    /// `most` bytes.
    pub(crate) fn take_offer(&mut self, config: &ConnConfig, most: u32) -> bool {
        let offered = self.stream.wanted.is_some_and(|wanted| self.has_space(config, wanted, most));
        if offered {
            self.stream.wanted = None;
        }
        offered
    }

    /// True if there is the space that a writer waits for.
    pub(super) fn has_space(&self, config: &ConnConfig, wanted: WriteSpace, most: u32) -> bool {
        let (snd, allowance, lowat) =
            (&self.stream, self.allowance(config).min(most), lowat(config).unwrap_or(u32::MAX));
        if wanted == WriteSpace::USUAL {
            let (unsent, free) = (snd.unsent(), snd.buffer.space(allowance as usize));
            let third = (allowance / 3).max(1) as usize;
            // In recovery the window has fallen below what is outstanding, so a third may be free
            // too late.
            let runs_out = allowance < config.send_buffer && unsent < allowance / 8;
            let enough = if runs_out { third.min(allowance as usize / 16) } else { third };
            return unsent <= (lowat - 1) / 2 && free >= enough.max(1);
        }
        let free = self.write_space(config).min(snd.buffer.space(most as usize));
        free >= wanted.0.get().min(allowance).min(lowat).max(1) as usize
    }
}

impl Stream {
    /// Bytes that may be written now. `flight`: that of the same sender.
    pub(super) fn write_space(&self, flight: Option<&Flight>, config: &ConnConfig) -> usize {
        let free = self.buffer.space(self.allowance(flight, config) as usize);
        let Some(lowat) = lowat(config) else { return free };
        // The last write may go beyond the mark by as much as makes it a full segment.
        let room = match lowat.saturating_sub(self.unsent()) {
            0 => 0,
            room => room.max(self.smss()),
        };
        free.min(room as usize)
    }

    /// True if the window, and not the limit of the buffer, keeps the writer from writing more.
    pub(super) fn more_follows(&self, flight: Option<&Flight>, config: &ConnConfig) -> bool {
        self.cut_short
            && !self.buffer.has_fin()
            && config.notsent_lowat.is_none()
            && self.allowance(flight, config) < config.send_buffer
    }

    fn allowance(&self, flight: Option<&Flight>, config: &ConnConfig) -> u32 {
        let limit = config.send_buffer;
        match config.min_send_buffer {
            Some(floor) if floor < limit => self.two_windows(flight, config).clamp(floor, limit),
            _ => limit,
        }
    }

    /// Twice the congestion window, and what has left the network unacknowledged.
    fn two_windows(&self, flight: Option<&Flight>, config: &ConnConfig) -> u32 {
        let decision = match flight {
            Some(Flight { decision, decision_is_stale: false, .. }) => *decision,
            _ => self.ask_for_decision(),
        };
        let mut window = decision.window.bytes();
        if let Clock::Departure { max_outstanding } = decision.clock {
            window = window.max(u64::from(max_outstanding) * u64::from(self.smss));
        }
        let window = window.min(config.cwnd_cap.unwrap_or(u64::MAX));
        // Not less what was sent again: what a writer is told must not depend on how far a burst
        // has come.
        let gone = flight.map_or(0, |flight| flight.board.gone());
        u32::try_from(window.saturating_mul(2).saturating_add(gone.into())).unwrap_or(u32::MAX)
    }

    /// Bytes written and not sent yet.
    fn unsent(&self) -> u32 {
        self.buffer.end().saturating_distance_from(self.nxt)
    }
}

/// The limit of unsent bytes; with 0 nothing could ever be written.
fn lowat(config: &ConnConfig) -> Option<u32> {
    config.notsent_lowat.map(|lowat| lowat.max(1))
}
