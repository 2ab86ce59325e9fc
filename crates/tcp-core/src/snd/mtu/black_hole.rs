//! Black holes: packets vanish because of their size, and no ICMP message says so (RFC 2923,
//! section 2.1; RFC 4821, section 7.7; RFC 8899, section 4.3).
//!
//! Repeated timeouts alone show nothing, for an outage looks the same. So they only cut what the
//! timer sends, and the segment size stays. What arrives then decides:
//!
//! ```text
//!   3rd silent expiry: head cut to base_mss ──► nothing arrives: cut it in half at each expiry, down to mtu_probe_floor
//!                     │
//!                     └─ it arrives: go on with full segments ──┬─ one arrives: it was an outage
//!                                                               └─ a timeout: the segment size falls
//! ```
//!
//! An expiry is silent if nothing answers what it sent. A peer that has taken back its window drops
//! the head as one that it cannot take, and says so with an ACK (RFC 9293, section 3.10.7.4): then
//! packets arrive, whatever their size.
//!
//! A connection thus pays for a black hole with one timeout more, and an outage never costs it its
//! segment size. The size falls to the base first, and only if that is not enough to what has
//! arrived.

use crate::config::{ConnConfig, PathMtuProbing};
use crate::scoreboard::AckCx;
use crate::snd::AckSegment;
use crate::snd::flight::Flight;
use crate::snd::measure::path_mtu::{PathMtu, base_smss};
use crate::snd::stream::Stream;
use alloc::boxed::Box;

/// Silent expiries from which on smaller segments are tried: the threshold R1 of RFC 9293, section
/// 3.8.3, which is at least 3 (Linux, `tcp_retries1`).
const R1: u32 = 3;

/// The size that follows if packets of `head` bytes do not arrive and those of `known` bytes do.
pub(in crate::snd) fn step_down(head: u32, known: u32, base: u32) -> u32 {
    if head > base { known.max(base) } else { known }
}

impl Flight {
    /// The retransmission timer has fired, and so many times in a row that nothing
    /// [answered](crate::recovery::rto_host::RtoHost::unanswered): what it sends may have to be
    /// smaller.
    pub(in crate::snd) fn suspect_black_hole(&mut self, snd: &mut Stream, config: &ConnConfig) {
        if config.path_mtu_probing == PathMtuProbing::Off || self.rto.unanswered < R1 {
            return;
        }
        let full = snd.smss();
        let base = base_smss(snd.least_smss, config);
        let floor = u32::from(config.mtu_probe_floor.max(snd.least_smss)).min(base);
        let size = snd.cut().unwrap_or(full).min(u32::from(self.board.head_packet_len()));
        let next = if size > base { base } else { (size / 2).max(floor) };
        // Larger packets that left later have arrived: it is not their size.
        if next >= size || u32::from(self.board.largest_sacked()) > next {
            return;
        }
        snd.path_mtu.get_or_insert_with(|| Box::new(PathMtu::new(full))).cut = Some(next);
    }

    /// An ACK that carries nothing and reports nothing answers what the timer sent: packets of that
    /// size arrive, and the peer does not take them. One with SACK blocks may answer a smaller
    /// packet.
    pub(in crate::snd) fn note_answer(&mut self, snd: &Stream, seg: &AckSegment, ack: &AckCx) {
        let pure = seg.payload_len == 0 && !seg.fin && seg.sack.is_empty();
        if pure && seg.ack == snd.una && ack.acked() == 0 {
            self.rto.on_answer();
        }
    }

    /// An ACK has come after the head was cut.
    pub(in crate::snd) fn judge_cut(&mut self, path: &mut PathMtu, ack: &AckCx) {
        if ack.acked() == 0 {
            // Larger packets that left before arrive: it is not their size.
            path.cut.take_if(|size| u32::from(ack.largest_packet) > *size);
            return;
        }
        let Some(size) = path.cut.take() else { return };
        // More than the cut segment: an earlier copy, which was whole, has arrived after all.
        let whole =
            ack.acked() > size || u32::from(ack.largest_packet.max(self.board.largest_sacked())) > size;
        if !whole {
            path.fallback = Some(size);
            path.silent = true;
            // What arrived before says nothing of the path as it is.
            self.largest_acked = self.largest_acked.min(u16::try_from(size).unwrap_or(u16::MAX));
        }
    }
}
