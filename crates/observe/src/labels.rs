//! Text for the core's enums and events, for records and captures.

use ackline_tcp_core::Duration;
use ackline_tcp_core::config::Ecn;
use ackline_tcp_core::error::ConnError;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::info::Blocked;
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::policy::cc::Phase;
use ackline_tcp_core::policy::rto::{RtoPhase, RtoVerdict};
use ackline_tcp_core::policy::sched::{ControlKind, SegmentClass};

/// Why a packet was sent.
#[must_use]
pub const fn send_reason(reason: SendReason) -> &'static str {
    match reason {
        SendReason::Syn => "syn",
        SendReason::SynAck => "syn-ack",
        SendReason::NewData => "new-data",
        SendReason::LimitedTransmit => "limited-transmit",
        SendReason::FastRetransmit => "fast-retransmit",
        SendReason::RtoRetransmit => "rto-retransmit",
        SendReason::RtoProbe => "rto-probe",
        SendReason::TailLossProbe => "tail-loss-probe",
        SendReason::PathMtuProbe => "path-mtu-probe",
        SendReason::Fin => "fin",
        SendReason::WindowProbe => "window-probe",
        SendReason::KeepAlive => "keep-alive",
        SendReason::AckByPolicy => "ack-by-policy",
        SendReason::AckByTimer => "ack-by-timer",
        SendReason::AckByObligation => "ack-by-obligation",
        SendReason::WindowUpdate => "window-update",
        SendReason::ChallengeAck => "challenge-ack",
        SendReason::Rst => "rst",
        SendReason::EchoReply => "echo-reply",
        SendReason::IcmpError => "icmp-error",
        SendReason::Datagram => "datagram",
        SendReason::Packet => "packet",
        _ => "other",
    }
}

/// The kind of a packet.
#[must_use]
pub const fn segment_class(class: SegmentClass) -> &'static str {
    match class {
        SegmentClass::PureAck => "pure-ack",
        SegmentClass::Data => "data",
        SegmentClass::Retransmit => "retransmit",
        SegmentClass::Control(ControlKind::Syn) => "syn",
        SegmentClass::Control(ControlKind::Fin) => "fin",
        SegmentClass::Control(ControlKind::Rst) => "rst",
        SegmentClass::Control(ControlKind::Probe) => "probe",
        SegmentClass::Control(ControlKind::Other) => "other",
    }
}

/// The phase of loss handling.
#[must_use]
pub const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::Disorder => "disorder",
        Phase::Recovery => "recovery",
        Phase::Loss => "loss",
    }
}

/// The phase of the response to a timeout.
#[must_use]
pub const fn rto_phase(phase: RtoPhase) -> &'static str {
    match phase {
        RtoPhase::Open => "open",
        RtoPhase::Probe => "probe",
        RtoPhase::Repair => "repair",
    }
}

/// The verdict of the response.
#[must_use]
pub const fn rto_verdict(verdict: RtoVerdict) -> &'static str {
    match verdict {
        RtoVerdict::Lossy => "lossy",
        RtoVerdict::Spurious => "spurious",
    }
}

/// Why nothing is sent.
#[must_use]
pub const fn blocked(blocked: Blocked) -> &'static str {
    match blocked {
        Blocked::No => "no",
        Blocked::App => "app",
        Blocked::ReceiveWindow => "receive-window",
        Blocked::CongestionWindow => "congestion-window",
        Blocked::Pacing => "pacing",
        Blocked::Nagle => "nagle",
        Blocked::Scheduler => "scheduler",
        Blocked::State => "state",
        _ => "other",
    }
}

/// The kind of ECN in use.
#[must_use]
pub const fn ecn(mode: Ecn) -> &'static str {
    match mode {
        Ecn::Off => "off",
        Ecn::Classic => "classic",
        Ecn::Dctcp => "dctcp",
        Ecn::Accurate => "accurate",
        _ => "other",
    }
}

/// Why a connection ended, other than in order.
#[must_use]
pub const fn conn_error(error: ConnError) -> &'static str {
    match error {
        ConnError::Refused => "refused",
        ConnError::Reset => "reset",
        ConnError::Aborted => "aborted",
        ConnError::TimedOut => "timed-out",
        ConnError::Unreachable => "unreachable",
        ConnError::OutOfMemory => "out-of-memory",
        ConnError::DataAfterClose => "data-after-close",
        _ => "other",
    }
}

/// What data waits for, if it is worth a word: the application, the congestion window and the
/// handshake are what every sender waits for.
#[must_use]
pub const fn waits_for(cause: Blocked) -> Option<&'static str> {
    match cause {
        Blocked::Pacing => Some("pacing"),
        Blocked::ReceiveWindow => Some("the peer's window"),
        Blocked::Nagle => Some("Nagle's rule"),
        Blocked::Scheduler => Some("the scheduler"),
        _ => None,
    }
}

/// What is known of a packet that is sent, if `event` is that; it happened `ago`.
#[must_use]
pub fn departure_event(event: &TraceEvent, ago: Duration) -> Option<String> {
    let millis = |time: Duration| format!("{:.3} ms", time.as_nanos() as f64 / 1e6);
    Some(match *event {
        TraceEvent::Blocked { cause } => {
            format!("held back by {} for {}", waits_for(cause)?, millis(ago))
        }
        TraceEvent::Queued { delay } => format!("queued for {}", millis(delay)),
        TraceEvent::Ack { policy, rule: "" } => format!("policy: {policy}"),
        TraceEvent::Ack { policy, rule } => format!("policy: {policy}; rule: {rule}"),
        TraceEvent::Policies { cc, ack, rto } => format!("policies: cc={cc}, ack={ack}, rto={rto}"),
        _ => return None,
    })
}

/// What happened inside a connection; `None` for what every packet brings.
#[must_use]
pub fn trace_event(event: &TraceEvent) -> Option<String> {
    Some(match *event {
        TraceEvent::Rto { expiries, rto } => {
            format!("timeout {expiries}, the next after {} ms", rto.as_millis())
        }
        TraceEvent::RtoPhase { from, to } => {
            format!("rto phase: {} to {}", rto_phase(from), rto_phase(to))
        }
        TraceEvent::StaleAck { .. } => "stale ack".to_owned(),
        TraceEvent::RtoVerdict { verdict } => format!("verdict: {}", rto_verdict(verdict)),
        TraceEvent::Undo => "undo".to_owned(),
        TraceEvent::TailLossProbe { new, .. } => {
            format!("tail loss probe: {}", if new { "new data" } else { "the highest segment again" })
        }
        TraceEvent::Lost { bytes, again, by_timer } => {
            let by = if by_timer { " by the reordering timer" } else { "" };
            let again = if again > 0 { format!(", {again} segments again") } else { String::new() };
            format!("lost{by}: {bytes} bytes{again}")
        }
        TraceEvent::Dropped { reason } => format!("dropped: {reason}"),
        TraceEvent::Phase { from, to } => {
            format!("phase: {} to {}", phase(from), phase(to))
        }
        _ => return None,
    })
}
