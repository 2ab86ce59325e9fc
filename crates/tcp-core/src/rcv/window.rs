//! The receive window: what is advertised (RFC 9293, section 3.8.6.2.2), how it is scaled (RFC 7323, section
//! 2), when a read is worth a window update, and how the window grows with need.
//!
//! ```text
//!    unread                 left                  gain
//!   ────────┬───────────────────────────────┬──────────────┬──────────► sequence space
//!        RCV.NXT                           edge    RCV.NXT + size - unread
//! ```
//!
//! The edge is a promise: it never moves back, and it never lies further from RCV.NXT than the buffer has room.
//! On the wire it can only be expressed in units of the window scale. It is rounded up where the buffer has
//! the room; otherwise down, which RFC 7323 (section 2.4) permits as long as data up to the promised edge is
//! taken, and it is.
//!
//! The size of the window follows the reader ("dynamic right-sizing", Fisk and Feng, 2001): four times what
//! the application read in a round trip. Twice would do for a sender in steady state, since an ACK shows its
//! effect one round trip later; a sender in slow start doubles meanwhile. Memory is not taken before data
//! arrives, so a generous window costs nothing while the reader keeps up.
//!
//! The round trip is the longest of three: that of the handshake, which knows no queue yet; this side's own
//! SRTT, where it sends; and the shortest that TSecr showed in the round before, which is that of data sent on
//! our ACKs, queue included. Too long a round trip only opens the window sooner.

use crate::policy::ack::WindowHint;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};

/// The largest value of the header's window field.
const MAX_FIELD: u32 = 0xffff;

/// Reads are counted over at least this long, however short the round trip: a process that is scheduled every
/// millisecond must be able to leave a millisecond's worth of data in the buffer.
const MIN_ROUND: Duration = Duration::from_millis(1);

/// Window over what was read in a round trip.
const HEADROOM: u32 = 4;

/// Segments added to it, so that small transfers never wait for the window.
const HEADROOM_SEGMENTS: u32 = 16;

/// What a read makes of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// Nothing worth a segment.
    No,
    /// The peer may be short of window soon; a policy that withholds ACKs may postpone this one.
    Useful,
    /// The window was closed, or too small for the peer to send into, and opens again.
    Reopens,
}

/// Where the receiver stands when the window is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// Next sequence number expected.
    pub(super) rcv_nxt: SeqNum,
    /// Bytes in order that the application has not read.
    pub(super) unread: u32,
    /// RMSS: the most payload bytes that this side takes in a segment.
    pub(super) rmss: u32,
    /// The most bytes that the receive buffer takes.
    pub(super) limit: u32,
}

/// The receive window of a connection.
#[derive(Debug)]
pub(super) struct RecvWindow {
    /// The furthest right edge ever advertised.
    edge: SeqNum,
    /// What the window may be with nothing unread, in bytes: RFC 9293's RCV.BUFF for this section.
    size: u32,
    /// Bytes read by the application since the round began.
    read: u32,
    /// When the round ends.
    round_end: Instant,
    /// The shortest round trip that TSecr showed in the last round; zero where there was none.
    rtt: Duration,
    /// The same for this round, so far; `MAX` where there was none.
    rtt_so_far: Duration,
    /// Shift of the window field.
    shift: u8,
}

impl RecvWindow {
    /// A window of `size` bytes that nobody was told yet.
    pub(super) const fn new(size: u32) -> Self {
        Self {
            edge: SeqNum(0),
            size,
            read: 0,
            round_end: Instant::ZERO,
            rtt: Duration::ZERO,
            rtt_so_far: Duration::MAX,
            shift: 0,
        }
    }

    /// The handshake is done: the peer knows the right edge `edge`, and `shift` scales from here on.
    pub(super) fn open(&mut self, edge: SeqNum, shift: u8, limit: u32) {
        self.edge = edge;
        self.shift = shift.min(14);
        self.size = self.size.min(self.largest(limit));
    }

    /// The furthest right edge ever advertised.
    pub(super) const fn edge(&self) -> SeqNum {
        self.edge
    }

    /// RCV.WND: what is left of the window last advertised.
    pub(super) const fn left(&self, rcv_nxt: SeqNum) -> u32 {
        self.edge.saturating_distance_from(rcv_nxt)
    }

    /// `min(Fr * RCV.BUFF, MSS)` with Fr = 1/2: a sender that avoids the silly window syndrome sends nothing
    /// into less, so that a window below this is as good as closed.
    pub(super) fn quota(&self, rmss: u32) -> u32 {
        rmss.min(self.size / 2)
    }

    /// The header's window field and the right edge that it stands for, which is not before the promised one
    /// unless the scale forces it. `steady`: the edge must not move (so that ACKs count as duplicates).
    pub(super) fn offer(&self, at: &Position, hint: WindowHint, steady: bool) -> (u16, SeqNum) {
        let left = self.left(at.rcv_nxt);
        let free = self.size.saturating_sub(at.unread);
        let step = match hint {
            WindowHint::Sws => self.quota(at.rmss).max(1),
            WindowHint::AllFree => 1,
        };
        let moves = free.saturating_sub(left) >= step && !(steady && left >= self.quota(at.rmss));
        let window = if moves { free } else { left };

        let up = window.div_ceil(self.unit()).min(MAX_FIELD);
        let units = if up << self.shift <= at.limit.saturating_sub(at.unread) {
            up
        } else {
            (window >> self.shift).min(MAX_FIELD)
        };
        (units as u16, at.rcv_nxt + (units << self.shift))
    }

    /// The window field of an ACK up to `ack` that shows the right edge `edge`, and the edge that the field can say.
    pub(super) fn seen_from(&self, ack: SeqNum, edge: SeqNum) -> (u16, SeqNum) {
        let units = edge.saturating_distance_from(ack).div_ceil(self.unit()).min(MAX_FIELD);
        (units as u16, ack + (units << self.shift))
    }

    /// An ACK with this right edge left.
    pub(super) fn advertised(&mut self, edge: SeqNum) {
        self.edge = self.edge.max(edge);
    }

    /// Whether the window that a read opened is worth a segment of its own.
    ///
    /// It is where the window at least doubles, by two segments or half of the size. A bulk receiver that keeps
    /// up never sends one: its ACKs refresh the window, so what is left stays above half of the size.
    pub(super) fn update(&self, at: &Position, steady: bool) -> Update {
        let (left, quota) = (self.left(at.rcv_nxt), self.quota(at.rmss));
        let (_, edge) = self.offer(at, WindowHint::Sws, steady);
        let gain = edge.saturating_distance_from(self.edge);
        if gain == 0 {
            Update::No
        } else if left < quota.max(self.unit()) && gain >= quota {
            Update::Reopens
        } else if gain >= left.max(at.rmss.saturating_mul(2).min(self.size / 2)) {
            Update::Useful
        } else {
            Update::No
        }
    }

    /// Data arrived whose TSecr is so old.
    pub(super) fn on_rtt(&mut self, rtt: Duration) {
        self.rtt_so_far = self.rtt_so_far.min(rtt);
    }

    /// The application read `n` bytes. `rtt` is the round trip as far as it is known without timestamps; where
    /// it is not known at all, the window opens fully.
    pub(super) fn on_read(&mut self, now: Instant, n: u32, rmss: u32, rtt: Option<Duration>, limit: u32) {
        let largest = self.largest(limit);
        if self.size >= largest {
            return;
        }
        if now >= self.round_end {
            if self.rtt_so_far != Duration::MAX {
                self.rtt = self.rtt_so_far;
                self.rtt_so_far = Duration::MAX;
            }
            let rtt = rtt.unwrap_or(Duration::ZERO).max(self.rtt);
            if rtt.is_zero() {
                self.size = largest;
                return;
            }
            self.round_end = now + rtt.max(MIN_ROUND);
            self.read = 0;
        }
        self.read = self.read.saturating_add(n);
        let need = self.read.saturating_mul(HEADROOM).saturating_add(rmss.saturating_mul(HEADROOM_SEGMENTS));
        self.size = self.size.max(need.min(largest));
    }

    /// The application has chosen the buffer's limit: the window is all of it from here on, as far as the promised edge
    /// permits, and does not wait for need.
    pub(super) fn resize(&mut self, limit: u32) {
        self.size = self.largest(limit);
    }

    /// The largest window: the buffer's limit, or what the window field can say.
    fn largest(&self, limit: u32) -> u32 {
        limit.min(MAX_FIELD << self.shift)
    }

    /// Bytes that one unit of the window field stands for.
    const fn unit(&self) -> u32 {
        1 << self.shift
    }
}

#[cfg(test)]
mod tests;
