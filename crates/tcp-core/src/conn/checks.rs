//! The checks that a segment must pass in a synchronized state before it has any effect (RFC 9293, section
//! 3.10.7.4), preceded by RFC 7323's PAWS and with RFC 5961's defences.
//!
//! ```text
//!   RST ─► SYN ─► timestamp ─► sequence number ─► ACK ─► acceptable
//! ```
//!
//! RST and SYN come first, since each has its own rule for the sequence number and ignores the timestamp.
//!
//! [`Connection::judge`] takes `&self`: an attacker who guesses only some of a connection's numbers cannot
//! change it. [`arrival`](super::arrival) acts on the verdict.

use super::Connection;
use crate::time::Instant;
use crate::wire::{TcpFlags, TcpSegment, Timestamps};

/// The result of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No timestamp, although both sides agreed to send one with every segment: silently dropped (RFC 7323,
    /// section 3.2).
    Unstamped,
    /// An older timestamp than a previous one (RFC 7323, section 5.3, R1): dropped, and answered with an ACK.
    Old,
    /// Outside the receive window: dropped, and answered with an ACK.
    OutOfWindow,
    /// At the edge of a closed receive window: the data is dropped and answered, the ACK is processed.
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

impl Connection {
    /// Checks a segment in a synchronized state. Changes nothing.
    pub(super) fn judge(&self, now: Instant, seg: &TcpSegment<'_>) -> Verdict {
        let flags = seg.flags;
        let rcv_nxt = self.rcv.rcv_nxt();

        // RST (RFC 5961, section 3.2). Its timestamp (RFC 7323, section 5.2) and content (RFC 9293, section
        // 3.5.2) are ignored.
        if flags.contains(TcpFlags::RST) {
            return match seg.seq {
                seq if seq == rcv_nxt => Verdict::Reset,
                seq if self.rcv.acceptable(seq, 0) => Verdict::GuessedReset,
                _ => Verdict::StrayReset,
            };
        }
        // SYN (RFC 5961, section 4.2), regardless of the sequence number.
        if flags.contains(TcpFlags::SYN) {
            return Verdict::Syn;
        }
        if self.ts.enabled() {
            match seg.options.timestamps {
                Some(ts) if self.ts.rejects(now, ts.val) => return Verdict::Old,
                Some(_) => {}
                None => return Verdict::Unstamped,
            }
        }
        let acknowledges = flags.contains(TcpFlags::ACK) && self.snd.accepts(seg.ack);
        if !self.rcv.acceptable(seg.seq, seg.seg_len()) {
            // Section 3.10.7.4: "special allowance should be made to accept valid ACKs" while the window is
            // closed. A peer's segments start at its edge then (Linux checks the same).
            let at_edge = self.rcv.window() == 0 && seg.seq == rcv_nxt;
            return if at_edge && acknowledges { Verdict::AckOnly } else { Verdict::OutOfWindow };
        }
        // RFC 5961, section 5.2.
        match (flags.contains(TcpFlags::ACK), acknowledges) {
            (false, _) => Verdict::Unacknowledging,
            (true, false) => Verdict::BadAck,
            (true, true) => Verdict::Acceptable,
        }
    }

    /// The timestamp of an acceptable segment if it may become TS.Recent: its ACK must not be an old one, so
    /// that setting the PAWS clock takes more than a sequence number (Linux, `tcp_ack`).
    pub(super) fn fresh_timestamp(&self, seg: &TcpSegment<'_>) -> Option<Timestamps> {
        seg.options.timestamps.filter(|_| self.ts.enabled() && seg.ack.ge(self.snd.snd_una()))
    }
}
