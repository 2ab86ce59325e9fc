//! What an endpoint reports: events for the application, wake-ups for the driver, trace events for
//! tools.

use crate::error::ConnError;
use crate::four_tuple::FourTuple;
use crate::id::{ConnId, ListenerId};
use crate::info::Blocked;
use crate::packet::{SendReason, TxPacket};
use crate::policy::cc::Phase;
use crate::policy::rto::{RtoPhase, RtoVerdict};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::wire::{RxPacket, TcpFlags};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

mod drop_reason;
mod for_test;

pub use drop_reason::DropReason;

/// An event for the application. Edge-triggered: `Readable` and `Writable` are reported once, and
/// again only after the application has read (or written) everything it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A listener has a new connection. It is established, or in SYN-RECEIVED if its SYN brought a
    /// valid fast open cookie: then data passes as well, but the peer's address may be forged. The
    /// application accepts it by its first call of [`Endpoint::conn`](crate::Endpoint::conn) for
    /// it. Until then it counts against the listener's backlog, and is reset if the listener is
    /// removed.
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
    /// The send buffer has room again after a partial write.
    Writable(ConnId),
    /// Everything written and the FIN have been acknowledged.
    Flushed(ConnId),
    /// The connection has ended: closed by both sides (`None`), or by an error. The handle stays
    /// valid for reading remaining data, until [`Endpoint::release`](crate::Endpoint::release).
    Closed {
        /// The connection.
        conn: ConnId,
        /// The error, unless it was closed in order.
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
    /// The instant, to the nanosecond.
    pub at: Instant,
    /// Why.
    pub reason: WakeReason,
    /// The connection; `None` for the scheduler, for a half-open connection or a held SYN, and for
    /// one in TIME-WAIT that is only a record.
    pub conn: Option<ConnId>,
}

impl Wakeup {
    /// A wake-up at `at`.
    #[must_use]
    pub const fn new(at: Instant, reason: WakeReason, conn: Option<ConnId>) -> Self {
        Self { at, reason, conn }
    }
}

/// The reason for a wake-up.
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
    /// The smaller path MTU reported by ICMP takes effect, since nothing contradicted it.
    PathMtu,
    /// Keep-alive probe.
    KeepAlive,
    /// End of TIME-WAIT.
    TimeWait,
    /// End of FIN-WAIT-2 after the application released the connection.
    FinWait2,
    /// An orphan has made no progress for too long.
    Orphan,
    /// User timeout.
    UserTimeout,
    /// The congestion control's own timer.
    Policy,
    /// Buffers of an idle connection are released.
    Trim,
    /// The shaper permits the next departure.
    Shaper,
    /// A UDP flow has been idle for too long.
    UdpFlow,
    /// A SYN has been held for too long.
    HeldSyn,
    /// Fragments have waited for too long for the rest of their packet.
    Reassembly,
}

/// Receives trace events. Without a tracer, the endpoint does not create them. A passive open is a
/// connection, and traced, from the ACK of its SYN-ACK on.
pub trait Tracer: Debug + Send {
    /// `event` happened to `conn` at `now`.
    fn trace(&mut self, now: Instant, conn: ConnId, event: &TraceEvent);
}

/// Each of them receives every event, in order.
impl Tracer for Vec<Box<dyn Tracer>> {
    fn trace(&mut self, now: Instant, conn: ConnId, event: &TraceEvent) {
        for tracer in self {
            tracer.trace(now, conn, event);
        }
    }
}

/// Sees packets as they pass the device. The driver calls it, not the endpoint: a packet that the
/// device refused has not been sent.
pub trait PacketObserver: Send {
    /// `packet` was received at `now`, and the endpoint gets it next: trace events of it follow.
    /// `link` is the header of the link in front of it, such as Ethernet's; empty if there was
    /// none.
    fn received(&mut self, now: Instant, link: &[u8], packet: &RxPacket<'_>);

    /// `packet` was sent at `now`, behind the header `link`.
    fn sent(&mut self, now: Instant, link: &[u8], packet: &TxPacket<'_>);
}

/// What happened inside a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// The connection exists from here on: the first of its events.
    Opened {
        /// Its addresses and ports.
        tuple: FourTuple,
        /// A peer opened it; otherwise the application did.
        passive: bool,
    },
    /// The connection has ended, as [`Event::Closed`] reports it: in TIME-WAIT, segments can still
    /// follow.
    Closed {
        /// The error, unless it was closed in order.
        error: Option<ConnError>,
    },
    /// A segment was sent, or several with consecutive data back to back.
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
        /// Slow-start threshold in bytes; that of [`Window::MAX`](crate::Window::MAX) if there is
        /// none.
        ssthresh: u64,
        /// Bytes in the network.
        pipe: u32,
        /// The peer's receive window in bytes.
        snd_wnd: u32,
        /// Smoothed RTT.
        srtt: Option<Duration>,
        /// Smallest RTT of the last five minutes.
        min_rtt: Option<Duration>,
        /// Rate of departures; `None` if they are not paced.
        pacing_rate: Option<Rate>,
    },
    /// The handshake agreed on ECN.
    EcnAgreed {
        /// The kind in use.
        mode: crate::ecn::Ecn,
        /// This side's data is ECN-capable; false if it fell back after requesting ECN.
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
        /// The timeout now in force.
        rto: Duration,
    },
    /// The response to a retransmission timeout changed its phase.
    RtoPhase {
        /// From.
        from: RtoPhase,
        /// To.
        to: RtoPhase,
    },
    /// An ACK that arrived while the response waited for evidence, and is none: it releases no data
    /// and gives no sample.
    StaleAck {
        /// Acknowledgment number.
        ack: SeqNum,
    },
    /// The response classified the timeout.
    RtoVerdict {
        /// The classification.
        verdict: RtoVerdict,
    },
    /// A congestion episode was undone.
    Undo,
    /// A tail loss probe was sent.
    TailLossProbe {
        /// First sequence number.
        start: SeqNum,
        /// It sent new data; otherwise it repeated the highest outstanding segment.
        new: bool,
    },
    /// Data was declared lost.
    Lost {
        /// Bytes newly marked.
        bytes: u32,
        /// Segments among them that were retransmissions.
        again: u32,
        /// The reordering timer detected it; otherwise an ACK did.
        by_timer: bool,
    },
    /// The connection has nothing more to send for now. Traced after each burst, so the same cause
    /// comes again.
    Blocked {
        /// Why.
        cause: Blocked,
    },
    /// The packet that is sent next waited for so long in the egress scheduler, or for the device.
    Queued {
        /// For how long.
        delay: Duration,
    },
    /// A pure ACK that the receiver owes is sent next.
    Ack {
        /// Name of the ACK policy.
        policy: &'static str,
        /// The rule that asked for the ACK: of the policy or, with [`SendReason::AckByObligation`],
        /// of the core. Empty if it has no name.
        rule: &'static str,
    },
    /// The policies of the connection, when it is established and when one is replaced.
    Policies {
        /// Name of the congestion control.
        cc: &'static str,
        /// Name of the ACK policy.
        ack: &'static str,
        /// Name of the RTO response.
        rto: &'static str,
    },
    /// An incoming segment, or its payload, was dropped.
    Dropped {
        /// Why.
        reason: DropReason,
    },
}
