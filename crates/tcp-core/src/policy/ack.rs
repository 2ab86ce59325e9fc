//! ACK policy: when to acknowledge.
//!
//! The policy states a preference; the core owns the obligations. Whatever a policy answers, the
//! core sends an ACK if RFC 9293 demands one, and never holds one longer than the connection's hold
//! limit.
//!
//! | obligation | may be waived |
//! |---|---|
//! | unacceptable segment, challenge ACK, zero-window or keep-alive probe | no |
//! | SYN, FIN; re-opening a closed window; a nearly full buffer; the hold limit | no |
//! | out-of-order, gap-filling or duplicate data; every second full segment | by [`AckPolicy::waives`], and each waiver is counted |

use crate::ecn::Ecn;
use crate::policy::{Metrics, Params, SpecError};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use core::fmt::Debug;

/// An ACK policy of one connection.
///
/// `on_data` is called for every segment with data that reached an established connection, after
/// RCV.NXT moved, or once for a [run](Self::takes_runs) of them; `on_ack_sent` whenever a segment
/// with ACK was sent, whatever its cause. Sending an ACK clears the plan.
pub trait AckPolicy: Debug + Send {
    /// The name under which the policy is chosen (`delayed`).
    fn name(&self) -> &'static str;

    /// The soft obligations that this policy takes over. Called once, when the policy is installed.
    fn waives(&self) -> SoftObligations {
        SoftObligations::NONE
    }

    /// Whether a driver may delay ACKs by some microseconds, so that one covers more data or
    /// piggybacks on the application's answer
    /// ([`TxBudget::keeping_acks`](crate::TxBudget::keeping_acks)). Leave this false, the default,
    /// if the time or number of ACKs matters to the policy.
    fn lets_acks_wait(&self) -> bool {
        false
    }

    /// Whether [`on_data`](Self::on_data) may be called once for a run: segments of full order,
    /// alike in all but their data, none longer than the first, that a driver handed over together
    /// ([`Endpoint::ingest_batch`](crate::Endpoint::ingest_batch)). The view is that after the last
    /// of them, and the arrival tells [how many](DataArrival::packets) there were. True promises
    /// that plan and timer are then the same as after a call for each segment. Asked for each run;
    /// false, the default, means a call for each segment.
    fn takes_runs(&self) -> bool {
        false
    }

    /// How long the policy lets an ACK wait at present for more data or an answer (Linux: `ato`).
    /// `None`, the default, if that is not a time.
    fn delay(&self) -> Option<Duration> {
        None
    }

    /// A segment with data arrived.
    fn on_data(&mut self, view: &RecvView, data: &DataArrival) -> AckPlan;

    /// A segment with ACK was sent.
    fn on_ack_sent(&mut self, view: &RecvView, sent: &AckSent) -> AckPlan {
        let _ = (view, sent);
        AckPlan::Keep
    }

    /// The application read data. Whether to send a window update is up to the policy, unless it
    /// re-opens a closed window or moves the edge by as much as the core's SWS rule requires.
    fn on_app_read(&mut self, view: &RecvView) -> AckPlan {
        let _ = view;
        AckPlan::Keep
    }

    /// The instant that the policy asked for with [`AckPlan::By`] or [`AckPlan::Withhold`] has
    /// come. By default the ACK is sent.
    fn on_timeout(&mut self, view: &RecvView) -> AckPlan {
        let _ = view;
        AckPlan::NOW
    }

    /// The core sent an ACK that the policy was holding back.
    fn on_hold_truncated(&mut self, view: &RecvView) {
        let _ = view;
    }

    /// The rule that asked for the ACK that is sent next, for captures; empty, the default, if it
    /// has no name. `cause` is [`Plan`](AckCause::Plan) or [`Timer`](AckCause::Timer). Called only
    /// if somebody watches, before [`on_ack_sent`](Self::on_ack_sent).
    fn rule(&self, view: &RecvView, cause: AckCause) -> &'static str {
        let _ = (view, cause);
        ""
    }

    /// Reports the policy's own variables, by name.
    fn metrics(&self, report: &mut Metrics<'_>) {
        let _ = report;
    }

    /// Changes parameters of a running connection: all of them or none.
    ///
    /// # Errors
    /// Names the parameter that is unknown, out of range, or fixed for the life of a connection.
    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        params.reject_all(self.name())
    }
}

/// Makes an ACK policy for a connection.
pub type NewAckPolicy = dyn Fn(&AckInit) -> Box<dyn AckPolicy> + Send + Sync;

/// What is known when an ACK policy is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckInit {
    /// The time of the call.
    pub now: Instant,
    /// The peer's segment size in payload bytes, as far as known.
    pub rmss: u32,
    /// RTT of the handshake, if measured.
    pub handshake_rtt: Option<Duration>,
    /// The longest that the core lets an ACK wait, whatever the policy asks for.
    pub hold_limit: Duration,
}

impl AckInit {
    /// A policy that starts at `now`, with the longest possible hold limit: 500 ms.
    #[must_use]
    pub const fn new(now: Instant, rmss: u32, handshake_rtt: Option<Duration>) -> Self {
        Self { now, rmss, handshake_rtt, hold_limit: Duration::from_millis(500) }
    }
}

/// What a policy wants to do about unacknowledged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPlan {
    /// Leave the plan and the timer as they are.
    Keep,
    /// Send an ACK at once.
    Now {
        /// The window it advertises.
        window: WindowHint,
    },
    /// Call [`AckPolicy::on_timeout`] at this instant; the core's soft obligations still apply.
    By(Instant),
    /// As `By`, but without the ACKs that the policy waives.
    Withhold {
        /// When `on_timeout` is due.
        until: Instant,
    },
}

impl AckPlan {
    /// An ACK at once, with the window by RFC 9293's rule.
    pub const NOW: Self = Self::Now { window: WindowHint::Sws };
}

/// The window that an ACK advertises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WindowHint {
    /// The edge moves only as receiver SWS avoidance permits (RFC 9293, section 3.8.6.2.2).
    #[default]
    Sws,
    /// All free space, as in BSD.
    AllFree,
}

/// The obligations that a policy may take over from the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SoftObligations {
    /// RFC 5681, section 4.2: out-of-order data SHOULD be acknowledged at once.
    pub out_of_order: bool,
    /// RFC 5681, section 4.2: data that fills a gap SHOULD be acknowledged at once.
    pub gap_filling: bool,
    /// RFC 9293, section 3.10.7.4: data wholly to the left of the window is answered with an ACK.
    pub duplicate: bool,
    /// RFC 9293, section 3.8.6.3: an ACK SHOULD be sent for at least every second full-sized
    /// segment.
    pub every_second: bool,
}

impl SoftObligations {
    /// Waive nothing.
    pub const NONE: Self =
        Self { out_of_order: false, gap_filling: false, duplicate: false, every_second: false };
    /// Waive all four.
    pub const ALL: Self = Self { out_of_order: true, gap_filling: true, duplicate: true, every_second: true };

    /// The same, and `every_second` is waived too.
    #[must_use]
    pub const fn and_every_second(mut self) -> Self {
        self.every_second = true;
        self
    }
}

/// The receiver as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecvView {
    /// The time of the event.
    pub now: Instant,
    /// Next sequence number expected.
    pub rcv_nxt: SeqNum,
    /// Highest acknowledgment number sent so far.
    pub highest_ack: SeqNum,
    /// Right edge of the last advertised window.
    pub edge: SeqNum,
    /// Limit of the receive buffer in bytes (not what is allocated).
    pub buffer: u32,
    /// Free bytes of it.
    pub free: u32,
    /// Estimate of the peer's segment size in payload bytes: that of the largest segment seen.
    pub rmss: u32,
    /// Largest payload that this side accepts in a segment: the announced MSS less the options that
    /// every segment carries. `rmss` never exceeds it.
    pub mss: u32,
    /// Arrival time of the oldest received byte that is not acknowledged.
    pub oldest_unacked: Option<Instant>,
    /// RTT of the handshake, if measured.
    pub handshake_rtt: Option<Duration>,
    /// Smoothed RTT of the data that this side sends, if any.
    pub srtt: Option<Duration>,
    /// How marks by ECN are echoed.
    pub ecn: Ecn,
}

impl RecvView {
    /// A view of an idle receiver, for tests of policies.
    #[must_use]
    pub const fn new(now: Instant, rcv_nxt: SeqNum, buffer: u32, rmss: u32) -> Self {
        Self {
            now,
            rcv_nxt,
            highest_ack: rcv_nxt,
            edge: SeqNum(rcv_nxt.0.wrapping_add(buffer)),
            buffer,
            free: buffer,
            rmss,
            mss: rmss,
            oldest_unacked: None,
            handshake_rtt: None,
            srtt: None,
            ecn: Ecn::Off,
        }
    }

    /// Bytes received in order and not yet acknowledged.
    #[must_use]
    pub const fn unacked(&self) -> u32 {
        self.rcv_nxt.saturating_distance_from(self.highest_ack)
    }
}

/// How a segment with data relates to RCV.NXT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataClass {
    /// In order, with no data held beyond it.
    New,
    /// In order, with data held beyond it: it fills a gap, or part of one.
    Hole,
    /// Beyond RCV.NXT.
    OutOfOrder,
    /// Nothing in it is new.
    Duplicate,
    /// A zero-window or keep-alive probe.
    Probe,
    /// Outside the window.
    Unacceptable,
}

/// An arriving segment with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataArrival {
    /// First sequence number.
    pub start: SeqNum,
    /// One past the last.
    pub end: SeqNum,
    /// Relation to RCV.NXT before the segment.
    pub class: DataClass,
    /// Number of wire segments (more than 1 for a super-packet or a run).
    pub segments: u32,
    /// Number of packets: 1, or those of a [run](AckPolicy::takes_runs).
    pub packets: u32,
    /// PSH was set, in one of them at least.
    pub psh: bool,
    /// FIN was set.
    pub fin: bool,
    /// URG was set.
    pub urg: bool,
    /// The IP header carried CE.
    pub ce: bool,
    /// CWR was set: the peer has answered the mark that was echoed (RFC 3168, section 6.1.2).
    pub cwr: bool,
    /// RTT measured with the echoed timestamp (TSecr), if possible (RFC 7323).
    pub ts_rtt: Option<Duration>,
}

impl DataArrival {
    /// An arrival of `[start, end)` as one segment without flags.
    #[must_use]
    pub const fn new(start: SeqNum, end: SeqNum, class: DataClass) -> Self {
        Self {
            start,
            end,
            class,
            segments: 1,
            packets: 1,
            psh: false,
            fin: false,
            urg: false,
            ce: false,
            cwr: false,
            ts_rtt: None,
        }
    }
}

/// Why a segment with ACK was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCause {
    /// The policy requested it.
    Plan,
    /// The policy's timer.
    Timer,
    /// It piggybacked on data.
    Piggyback,
    /// It advertises a larger window.
    WindowUpdate,
    /// The core was obliged to send it.
    Obligation,
}

/// An ACK that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckSent {
    /// Why.
    pub cause: AckCause,
    /// Bytes by which it advanced the highest ACK; 0 for a duplicate or a pure window update.
    pub advance: u32,
}

impl AckSent {
    /// An ACK that advanced by `advance` bytes.
    #[must_use]
    pub const fn new(cause: AckCause, advance: u32) -> Self {
        Self { cause, advance }
    }
}
