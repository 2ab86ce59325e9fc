//! The receive window: what is advertised (RFC 9293, section 3.8.6.2.2), how it is scaled (RFC
//! 7323, section 2), when a read deserves a window update, and how the window is auto-tuned.
//!
//! ```text
//!    unread                 left                  gain
//!   ────────┬───────────────────────────────┬──────────────┬──────────► sequence space
//!        RCV.NXT                           edge    RCV.NXT + size - unread
//! ```
//!
//! The edge is a promise: it never moves back, and never exceeds the buffer's room past RCV.NXT. On
//! the wire it can only be expressed in units of the window scale. It is rounded up if the buffer
//! has room; otherwise down, which RFC 7323 (section 2.4) permits as long as data up to the
//! promised edge is accepted, and it is.
//!
//! The size of the window follows the reader ("dynamic right-sizing", Fisk and Feng, 2001): four
//! times what the application read in a round trip. Twice would be enough for a sender in steady
//! state, since an ACK takes effect one round trip later; but a sender in slow start doubles
//! meanwhile. Memory is only allocated when data arrives, so a generous window costs nothing while
//! the reader keeps up.
//!
//! The round trip is the longest of three: that of the handshake, without queueing; this side's own
//! SRTT, if it sends; and the shortest one measured with TSecr in the previous round, which is that
//! of data sent in response to our ACKs, including queueing. Overestimating it only opens the
//! window sooner.
//!
//! While this host takes packets from its device more slowly than they come, a larger window only
//! makes the device's queue longer: the rate is the host's. Then windows that have grown shrink by
//! a quarter per millisecond, down to three super-packets, by staying where they are while data
//! arrives.

use crate::counters::Counters;
use crate::policy::ack::WindowHint;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};

/// The largest value of the header's window field.
const MAX_FIELD: u32 = 0xffff;

/// Reads are counted over at least this long, however short the round trip: a process scheduled
/// every millisecond must be able to leave a millisecond's worth of data in the buffer.
const MIN_ROUND: Duration = Duration::from_millis(1);

/// Window as a multiple of what was read in a round trip.
const HEADROOM: u32 = 4;

/// Segments added to it, so that small transfers never wait for the window.
const HEADROOM_SEGMENTS: u32 = 16;

/// No window shrinks below this because of a backlog: three super-packets, one that the peer makes,
/// one in the device's queue, one that is read.
const BACKLOG_WINDOW: u32 = 3 * MAX_FIELD;

/// The effect of a read on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// Not worth a segment.
    No,
    /// The peer may run out of window soon; a policy that withholds ACKs may delay this one.
    Useful,
    /// The window was closed, or too small for the peer to send into, and re-opens.
    Reopens,
}

/// The receiver's position, for window computations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// Next sequence number expected.
    pub(super) rcv_nxt: SeqNum,
    /// Bytes in order that the application has not read.
    pub(super) unread: u32,
    /// RMSS: the largest payload that this side accepts in a segment.
    pub(super) rmss: u32,
    /// The maximum number of bytes in the receive buffer at present.
    pub(super) limit: u32,
}

/// The receive window of a connection.
#[derive(Debug)]
pub(super) struct RecvWindow {
    /// The furthest right edge ever advertised.
    edge: SeqNum,
    /// The window with nothing unread, in bytes: RCV.BUFF in RFC 9293, section 3.8.6.2.2.
    size: u32,
    /// Bytes read by the application since the round began.
    read: u32,
    /// When the round ends.
    round_end: Instant,
    /// The shortest round trip measured with TSecr in the last round, in microseconds (the
    /// timestamp clock's unit is a millisecond); zero if there was none.
    rtt: u32,
    /// The same for the current round; `MAX` if there was none yet.
    rtt_so_far: u32,
    /// Shift of the window field.
    shift: u8,
    /// The application has set it.
    fixed: bool,
    /// The window field last sent was zero.
    closed: bool,
}

impl RecvWindow {
    /// A window of `size` bytes that has not been advertised.
    pub(super) const fn new(size: u32) -> Self {
        Self {
            edge: SeqNum(0),
            size,
            read: 0,
            round_end: Instant::ZERO,
            rtt: 0,
            rtt_so_far: u32::MAX,
            shift: 0,
            fixed: false,
            closed: false,
        }
    }

    /// The handshake is done: the peer has been told the right edge `edge`, and `shift` applies
    /// from now on.
    pub(super) fn open(&mut self, edge: SeqNum, shift: u8, limit: u32) {
        self.edge = edge;
        self.shift = shift.min(14);
        self.size = self.size.min(self.largest(limit));
    }

    /// Shift of the window field.
    pub(super) const fn shift(&self) -> u8 {
        self.shift
    }

    /// The window with nothing unread, in bytes.
    pub(super) const fn size(&self) -> u32 {
        self.size
    }

    /// The shortest round trip measured with TSecr in the last round, or in the first one so far.
    pub(super) fn rtt(&self) -> Option<Duration> {
        let micros = if self.rtt == 0 { self.rtt_so_far } else { self.rtt };
        (micros != u32::MAX).then(|| Duration::from_micros(u64::from(micros)))
    }

    /// The furthest right edge ever advertised.
    pub(super) const fn edge(&self) -> SeqNum {
        self.edge
    }

    /// RCV.WND: what is left of the window last advertised.
    pub(super) const fn left(&self, rcv_nxt: SeqNum) -> u32 {
        self.edge.saturating_distance_from(rcv_nxt)
    }

    /// `min(Fr * RCV.BUFF, MSS)` with Fr = 1/2: a sender with silly window avoidance sends nothing
    /// into less, so a smaller window is as good as closed.
    pub(super) fn quota(&self, rmss: u32) -> u32 {
        rmss.min(self.size / 2)
    }

    /// The same, if memory may permit less than RCV.BUFF at present.
    fn quota_at(&self, at: &Position) -> u32 {
        at.rmss.min(self.size.min(at.limit) / 2)
    }

    /// The header's window field and the right edge it expresses, which is not before the promised
    /// one unless the scale forces it. `steady`: the edge must not move (so that ACKs count as
    /// duplicates).
    pub(super) fn offer(&self, at: &Position, hint: WindowHint, steady: bool) -> (u16, SeqNum) {
        let left = self.left(at.rcv_nxt);
        let free = self.size.min(at.limit).saturating_sub(at.unread);
        let step = match hint {
            WindowHint::Sws => self.quota_at(at).max(1),
            WindowHint::AllFree => 1,
        };
        let moves = free.saturating_sub(left) >= step && !(steady && left >= self.quota_at(at));
        let window = if moves { free } else { left };

        let up = window.div_ceil(self.unit()).min(MAX_FIELD);
        let units = if up << self.shift <= at.limit.saturating_sub(at.unread) {
            up
        } else {
            (window >> self.shift).min(MAX_FIELD)
        };
        (units as u16, at.rcv_nxt + (units << self.shift))
    }

    /// The window field of an ACK up to `ack` with the right edge `edge`, and the edge that the
    /// field can express.
    pub(super) fn seen_from(&self, ack: SeqNum, edge: SeqNum) -> (u16, SeqNum) {
        let units = edge.saturating_distance_from(ack).div_ceil(self.unit()).min(MAX_FIELD);
        (units as u16, ack + (units << self.shift))
    }

    /// An ACK with this right edge was sent.
    pub(super) fn advertised(&mut self, edge: SeqNum) {
        self.edge = self.edge.max(edge);
    }

    /// A segment with this window field was sent.
    #[inline]
    pub(super) const fn on_field_sent(&mut self, counters: &mut Counters, field: u16) {
        if self.closed != (field == 0) {
            self.closed = field == 0;
            if self.closed {
                counters.tcp_to_zero_window_adv += 1;
            } else {
                counters.tcp_from_zero_window_adv += 1;
            }
        }
    }

    /// Whether the window opened by a read deserves a segment of its own.
    ///
    /// It does if the window at least doubles, by two segments or half of the size. A bulk receiver
    /// that keeps up never sends one: its ACKs refresh the window, so more than half of the size is
    /// always left.
    pub(super) fn update(&self, at: &Position, steady: bool) -> Update {
        let (left, quota) = (self.left(at.rcv_nxt), self.quota_at(at));
        let (_, edge) = self.offer(at, WindowHint::Sws, steady);
        let gain = edge.saturating_distance_from(self.edge);
        if gain == 0 {
            Update::No
        } else if left < quota.max(self.unit()) && gain >= quota {
            Update::Reopens
        } else if gain >= left.max(at.rmss.saturating_mul(2).min(self.size.min(at.limit) / 2)) {
            Update::Useful
        } else {
            Update::No
        }
    }

    /// A TSecr gave a round trip of `rtt`.
    pub(super) fn on_rtt(&mut self, rtt: Duration) {
        let rtt = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        self.rtt_so_far = self.rtt_so_far.min(rtt);
    }

    /// The application read `n` bytes. `rtt` is the round trip as far as known without timestamps;
    /// if it is unknown, the window opens fully. `backlogged`: packets wait in the device.
    pub(super) fn on_read(
        &mut self,
        now: Instant,
        n: u32,
        rmss: u32,
        rtt: Option<Duration>,
        limit: u32,
        backlogged: bool,
    ) {
        if backlogged {
            self.on_backlog(now);
            return;
        }
        let largest = self.largest(limit);
        if self.size >= largest {
            return;
        }
        if now >= self.round_end {
            if self.rtt_so_far != u32::MAX {
                self.rtt = core::mem::replace(&mut self.rtt_so_far, u32::MAX);
            }
            let rtt = rtt.unwrap_or(Duration::ZERO).max(Duration::from_micros(u64::from(self.rtt)));
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

    /// Begins a round in which nothing is counted, with a smaller window.
    fn on_backlog(&mut self, now: Instant) {
        if self.fixed || now < self.round_end {
            return;
        }
        self.round_end = now + MIN_ROUND;
        self.read = 0;
        self.size = (self.size - self.size / 4).max(self.size.min(BACKLOG_WINDOW));
    }

    /// The application has set the buffer's limit: the window is all of it from now on, as far as
    /// the promised edge permits, without auto-tuning.
    pub(super) fn resize(&mut self, limit: u32) {
        self.size = self.largest(limit);
        self.fixed = true;
    }

    /// The largest window: the buffer's limit, or what the window field can say.
    fn largest(&self, limit: u32) -> u32 {
        limit.min(MAX_FIELD << self.shift)
    }

    /// Bytes per unit of the window field.
    const fn unit(&self) -> u32 {
        1 << self.shift
    }
}

#[cfg(test)]
mod tests;
