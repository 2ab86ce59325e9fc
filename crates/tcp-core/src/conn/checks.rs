//! The checks that a segment must pass in a synchronized state before any of it counts (RFC 9293, section 3.10.7.4),
//! with RFC 7323's PAWS in front and RFC 5961's defences.
//!
//! ```text
//!   RST ─► SYN ─► timestamp ─► sequence number ─► ACK ─► acceptable
//! ```
//!
//! RST and SYN come first, since each has its own rule for the sequence number and none for the timestamp.
//!
//! [`Connection::judge`] takes `&self`: whoever can guess only some of the numbers of a connection changes nothing of it.
//! What the segment does is written in [`arrival`](super::arrival), by verdict.

use super::Connection;
use crate::time::Instant;
use crate::wire::{TcpFlags, TcpSegment, Timestamps};

/// What the checks make of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No timestamp, although both sides agreed to send one with every segment: dropped silently (RFC 7323, section
    /// 3.2).
    Unstamped,
    /// An older timestamp than one that was taken before (RFC 7323, section 5.3, R1): dropped, and answered with an ACK.
    Old,
    /// Outside the receive window: dropped, and answered with an ACK.
    OutOfWindow,
    /// Outside the receive window, which is closed, but at its edge: the text is dropped and answered, the ACK counts.
    AckOnly,
    /// An RST outside the window: dropped silently.
    StrayReset,
    /// An RST inside the window, but not at RCV.NXT: dropped, and answered with a challenge ACK.
    GuessedReset,
    /// A SYN: dropped, and answered with a challenge ACK.
    Syn,
    /// No ACK: dropped silently.
    Unacknowledging,
    /// An ACK of what was never sent, or too old: dropped, and answered with a challenge ACK.
    BadAck,
    /// The peer resets the connection.
    Reset,
    /// Everything counts.
    Acceptable,
}

impl Connection {
    /// Checks a segment in a synchronized state. Changes nothing.
    pub(super) fn judge(&self, now: Instant, seg: &TcpSegment<'_>) -> Verdict {
        let flags = seg.flags;
        let rcv_nxt = self.rcv.rcv_nxt();

        // RST (RFC 5961, section 3.2). Neither its timestamp (RFC 7323, section 5.2) nor what it carries counts (RFC
        // 9293, section 3.5.2).
        if flags.contains(TcpFlags::RST) {
            return match seg.seq {
                seq if seq == rcv_nxt => Verdict::Reset,
                seq if self.rcv.acceptable(seq, 0) => Verdict::GuessedReset,
                _ => Verdict::StrayReset,
            };
        }
        // SYN (RFC 5961, section 4.2), irrespective of the sequence number.
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
            // Section 3.10.7.4: "special allowance should be made to accept valid ACKs" while the window is closed. A
            // peer sends into it at its edge (Linux checks for the same).
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

    /// The timestamp of an acceptable segment may become TS.Recent: its ACK is not an old one, so that it takes more
    /// than a sequence number to set the clock against which PAWS judges (Linux, `tcp_ack`).
    pub(super) fn fresh_timestamp(&self, seg: &TcpSegment<'_>) -> Option<Timestamps> {
        seg.options.timestamps.filter(|_| self.ts.enabled() && seg.ack.ge(self.snd.snd_una()))
    }
}
