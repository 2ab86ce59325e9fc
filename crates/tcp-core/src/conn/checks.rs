//! The checks that a segment must pass in a synchronized state before it has any effect (RFC 9293,
//! section 3.10.7.4), preceded by RFC 7323's PAWS and with RFC 5961's defences.
//!
//! ```text
//!   RST ─► SYN ─► timestamp ─► sequence number ─► ACK ─► acceptable
//! ```
//!
//! RST and SYN come first, since each has its own rule for the sequence number and ignores the
//! timestamp.
//!
//! [`Expected::judge`] takes `&self`: an attacker who guesses only some of a connection's numbers
//! cannot change it. [`arrival`](super::arrival) acts on the verdict.

use super::Connection;
use super::timestamps::TimestampClock;
use crate::rcv;
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::wire::{TcpFlags, TcpSegment};

/// The result of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No timestamp, although both sides agreed to send one with every segment, and the settings
    /// insist on it: silently dropped (RFC 7323, section 3.2).
    Unstamped,
    /// An older timestamp than a previous one (RFC 7323, section 5.3, R1): dropped, and answered
    /// with an ACK.
    Old,
    /// Outside the receive window: dropped, and answered with an ACK.
    OutOfWindow,
    /// At the edge of a closed receive window: the data is dropped and answered, the ACK is
    /// processed.
    AckOnly,
    /// An RST outside the window: silently dropped.
    StrayReset,
    /// An RST inside the window, but not at RCV.NXT: dropped, and answered with a challenge ACK.
    GuessedReset,
    /// A SYN: dropped, and answered with a challenge ACK.
    Syn,
    /// No ACK: silently dropped.
    Unacknowledging,
    /// An ACK of data never sent, or too old: dropped, and answered with a challenge ACK.
    BadAck,
    /// The peer resets the connection.
    Reset,
    /// Everything is processed.
    Acceptable,
}

/// What a connection in a synchronized state expects of a segment: all that the checks need to know
/// of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// RCV.NXT.
    pub(super) rcv_nxt: SeqNum,
    /// RCV.WND, in bytes.
    pub(super) window: u32,
    /// SND.NXT.
    pub(super) snd_nxt: SeqNum,
    /// The oldest acceptable acknowledgment number (RFC 5961, section 5.2).
    pub(super) oldest_ack: SeqNum,
    /// The timestamp clock, if both sides agreed on timestamps.
    pub(super) ts: Option<TimestampClock>,
    /// Then, segments without one are not taken
    /// ([`ConnConfig::require_timestamps`](crate::ConnConfig::require_timestamps)).
    pub(super) insists: bool,
}

impl Expected {
    /// Checks a segment. Changes nothing.
    pub(super) fn judge(&self, now: Instant, seg: &TcpSegment<'_>) -> Verdict {
        let flags = seg.flags;
        let acceptable = |len| rcv::acceptable(self.rcv_nxt, self.window, seg.seq, len);

        // RST (RFC 5961, section 3.2). Its timestamp (RFC 7323, section 5.2) and content (RFC 9293,
        // section 3.5.2) are ignored.
        if flags.contains(TcpFlags::RST) {
            return match seg.seq {
                seq if seq == self.rcv_nxt => Verdict::Reset,
                // Inside the window, which ends before its right edge: unlike an ACK, an RST there
                // has no allowance.
                _ if acceptable(1) => Verdict::GuessedReset,
                _ => Verdict::StrayReset,
            };
        }
        // SYN (RFC 5961, section 4.2), regardless of the sequence number.
        if flags.contains(TcpFlags::SYN) {
            return Verdict::Syn;
        }
        if let Some(ts) = &self.ts {
            match seg.options.timestamps {
                Some(stamp) if ts.rejects(now, stamp.val) => return Verdict::Old,
                Some(_) => {}
                None if self.insists => return Verdict::Unstamped,
                // RFC 7323, section 3.2, would drop it, too. Middleboxes that remove options from
                // segments after the handshake, and hosts that keep them out of their probes, would
                // then never get through.
                None => {}
            }
        }
        let acknowledges = flags.contains(TcpFlags::ACK) && self.accepts_ack(seg.ack);
        if !acceptable(seg.seg_len()) {
            // Section 3.10.7.4: "special allowance should be made to accept valid ACKs" while the
            // window is closed. A peer's segments start at its edge then (Linux checks the same).
            let at_edge = self.window == 0 && seg.seq == self.rcv_nxt;
            return if at_edge && acknowledges { Verdict::AckOnly } else { Verdict::OutOfWindow };
        }
        // RFC 5961, section 5.2.
        match (flags.contains(TcpFlags::ACK), acknowledges) {
            (false, _) => Verdict::Unacknowledging,
            (true, false) => Verdict::BadAck,
            (true, true) => Verdict::Acceptable,
        }
    }

    /// The acknowledgment number is acceptable (RFC 5961, section 5.2).
    pub(super) const fn accepts_ack(&self, ack: SeqNum) -> bool {
        ack.le(self.snd_nxt) && ack.ge(self.oldest_ack)
    }
}

impl Connection {
    /// What this connection, in a synchronized state, expects.
    pub(super) fn expected(&self) -> Expected {
        Expected {
            rcv_nxt: self.rcv.rcv_nxt(),
            window: self.rcv.window(),
            snd_nxt: self.snd.snd_nxt(),
            oldest_ack: self.snd.oldest_ack(),
            ts: self.ts.enabled().then_some(self.ts),
            insists: self.config.require_timestamps,
        }
    }

    /// Checks a segment in a synchronized state. Changes nothing.
    pub(super) fn judge(&self, now: Instant, seg: &TcpSegment<'_>) -> Verdict {
        self.expected().judge(now, seg)
    }
}
