//! What an endpoint reports: events for the application, wake-ups for the driver, traces for tools.

use crate::drop_reason::DropReason;
use crate::error::ConnError;
use crate::id::{ConnId, ListenerId};
use crate::packet::SendReason;
use crate::policy::cc::Phase;
use crate::policy::rto::{RtoPhase, RtoVerdict};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::TcpFlags;
use core::fmt::Debug;

/// News for the application. Edge-triggered: `Readable` and `Writable` come once per change, until the
/// application has read (or written) what there was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A listener has a new established connection. The application accepts it by the first call of
    /// [`Endpoint::conn`](crate::Endpoint::conn) that names it; until then it counts against the listener's backlog, and is
    /// reset where the listener goes.
    Accepted {
        /// The listener.
        listener: ListenerId,
        /// The connection.
        conn: ConnId,
    },
    /// An active open succeeded.
    Connected(ConnId),
    /// Data (or the end of the stream) can be read.
    Readable(ConnId),
    /// The send buffer has room again after a write was cut short.
    Writable(ConnId),
    /// Everything written, and the FIN, has been acknowledged.
    Flushed(ConnId),
    /// The connection is over: closed by both sides (`None`), or by an error. The handle stays valid for
    /// reading what is left, until [`Endpoint::release`](crate::Endpoint::release).
    Closed {
        /// The connection.
        conn: ConnId,
        /// Why, where it was not an orderly close.
        error: Option<ConnError>,
    },
}

impl Event {
    /// The connection that the event is about.
    #[must_use]
    pub const fn conn(&self) -> ConnId {
        match *self {
            Self::Accepted { conn, .. }
            | Self::Connected(conn)
            | Self::Readable(conn)
            | Self::Writable(conn)
            | Self::Flushed(conn)
            | Self::Closed { conn, .. } => conn,
        }
    }
}

/// When the endpoint must be called again, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wakeup {
    /// The instant, exact to the nanosecond.
    pub at: Instant,
    /// Why.
    pub reason: WakeReason,
    /// For which connection; `None` for the scheduler.
    pub conn: Option<ConnId>,
}

impl Wakeup {
    /// A wake-up at `at`.
    #[must_use]
    pub const fn new(at: Instant, reason: WakeReason, conn: Option<ConnId>) -> Self {
        Self { at, reason, conn }
    }
}

/// Reasons for a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WakeReason {
    /// Retransmission timeout; also of SYN, SYN-ACK and FIN.
    Rto,
    /// Tail loss probe.
    Tlp,
    /// Reordering window of RACK.
    Reorder,
    /// The pacer permits the next departure.
    Pace,
    /// The ACK policy's timer, or the hold limit.
    DelayedAck,
    /// Probe of a closed window.
    Persist,
    /// Sender SWS override (RFC 9293, section 3.8.6.2.1).
    SwsOverride,
    /// Nothing speaks against what ICMP says of the path's MTU.
    PathMtu,
    /// Keep-alive probe.
    KeepAlive,
    /// End of TIME-WAIT.
    TimeWait,
    /// End of FIN-WAIT-2 after the application let go.
    FinWait2,
    /// User timeout.
    UserTimeout,
    /// Congestion control's own timer.
    Policy,
    /// Buffers of an idle connection are given back.
    Trim,
    /// The shaper permits the next departure.
    Shaper,
}

/// Receives trace events. The default is nobody: an endpoint without a tracer makes no event.
pub trait Tracer: Debug + Send {
    /// `event` happened to `conn` at `now`.
    fn trace(&mut self, now: Instant, conn: ConnId, event: &TraceEvent);
}

/// What happened inside a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// A segment was sent; or several with consecutive data, right after one another.
    Sent {
        /// First sequence number.
        seq: SeqNum,
        /// Payload bytes.
        len: u32,
        /// Acknowledgment number.
        ack: SeqNum,
        /// Flags.
        flags: TcpFlags,
        /// Why.
        reason: SendReason,
    },
    /// A segment arrived.
    Received {
        /// First sequence number.
        seq: SeqNum,
        /// Payload bytes.
        len: u32,
        /// Acknowledgment number.
        ack: SeqNum,
        /// Flags.
        flags: TcpFlags,
    },
    /// The state changed.
    State {
        /// From.
        from: crate::State,
        /// To.
        to: crate::State,
    },
    /// The phase of loss handling changed.
    Phase {
        /// From.
        from: Phase,
        /// To.
        to: Phase,
    },
    /// Congestion state after an ACK.
    Congestion {
        /// Congestion window in bytes, rounded down.
        cwnd: u64,
        /// Slow-start threshold in bytes.
        ssthresh: u64,
        /// Bytes in the network.
        pipe: u32,
        /// Smoothed RTT.
        srtt: Option<Duration>,
    },
    /// The handshake agreed on ECN.
    EcnAgreed {
        /// The kind in use.
        mode: crate::ecn::Ecn,
        /// This side's data is ECN-capable; false where it fell back after it had asked.
        capable: bool,
    },
    /// The window was reduced because of ECE, and not again for data before `until`.
    EcnReduced {
        /// SND.NXT at the reduction.
        until: SeqNum,
    },
    /// The retransmission timer fired.
    Rto {
        /// Consecutive expiries.
        expiries: u32,
        /// The timeout in force from here on.
        rto: Duration,
    },
    /// The response to a retransmission timeout changed its phase.
    RtoPhase {
        /// From.
        from: RtoPhase,
        /// To.
        to: RtoPhase,
    },
    /// An ACK came while the response waits for evidence, and was none: it opens nothing and gives no sample.
    StaleAck {
        /// Acknowledgment number.
        ack: SeqNum,
    },
    /// The response found out what the timeout was.
    RtoVerdict {
        /// What.
        verdict: RtoVerdict,
    },
    /// A congestion episode was undone.
    Undo,
    /// A tail loss probe was sent.
    TailLossProbe {
        /// First sequence number.
        start: SeqNum,
        /// It was data that had never left; otherwise the highest outstanding segment.
        new: bool,
    },
    /// Data was found lost.
    Lost {
        /// Bytes newly marked.
        bytes: u32,
        /// Segments among them that had been retransmitted.
        again: u32,
        /// The reordering window passed; otherwise an ACK told.
        by_timer: bool,
    },
    /// An incoming segment, or its text, was dropped.
    Dropped {
        /// Why.
        reason: DropReason,
    },
}
