//! One trace event of each kind.

use super::TraceEvent;
use crate::ecn::Ecn;
use crate::error::ConnError;
use crate::events::DropReason;
use crate::four_tuple::FourTuple;
use crate::info::Blocked;
use crate::packet::SendReason;
use crate::policy::cc::Phase;
use crate::policy::rto::{RtoPhase, RtoVerdict};
use crate::seq::SeqNum;
use crate::state::State;
use crate::time::Duration;
use crate::units::Rate;
use crate::wire::TcpFlags;
use core::net::SocketAddr;

impl TraceEvent {
    /// One event of each kind, for tests of what must handle all of them.
    pub fn each_for_test() -> impl Iterator<Item = Self> {
        core::iter::successors(Some(Self::first()), Self::next)
    }

    fn first() -> Self {
        let local = SocketAddr::from(([192, 0, 2, 1], 40_000));
        let remote = SocketAddr::from(([192, 0, 2, 2], 80));
        Self::Opened { tuple: FourTuple::new(local, remote), passive: false }
    }

    /// An event of the kind after this one's. A new kind does not compile without its place here.
    fn next(&self) -> Option<Self> {
        let seq = SeqNum(1_000);
        Some(match self {
            Self::Opened { .. } => Self::State { from: State::SynSent, to: State::Established },
            Self::State { .. } => {
                let flags = TcpFlags::ACK | TcpFlags::PSH;
                Self::Sent { seq, len: 1_448, ack: seq, flags, reason: SendReason::NewData }
            }
            Self::Sent { .. } => Self::Received { seq, len: 0, ack: seq, flags: TcpFlags::ACK },
            Self::Received { .. } => Self::Congestion {
                cwnd: 14_480,
                ssthresh: 28_960,
                pipe: 1_448,
                snd_wnd: 65_535,
                srtt: Some(Duration::from_micros(12_500)),
                min_rtt: Some(Duration::from_millis(10)),
                pacing_rate: Some(Rate::from_bytes_per_second(1_000_000)),
            },
            Self::Congestion { .. } => Self::Phase { from: Phase::Open, to: Phase::Recovery },
            Self::Phase { .. } => Self::Lost { bytes: 2_896, again: 1, by_timer: true },
            Self::Lost { .. } => Self::TailLossProbe { start: seq, new: false },
            Self::TailLossProbe { .. } => Self::Rto { expiries: 2, rto: Duration::from_millis(800) },
            Self::Rto { .. } => Self::RtoPhase { from: RtoPhase::Open, to: RtoPhase::Probe },
            Self::RtoPhase { .. } => Self::RtoVerdict { verdict: RtoVerdict::Spurious },
            Self::RtoVerdict { .. } => Self::StaleAck { ack: seq },
            Self::StaleAck { .. } => Self::Undo,
            Self::Undo => Self::EcnAgreed { mode: Ecn::Classic, capable: true },
            Self::EcnAgreed { .. } => Self::EcnReduced { until: seq },
            Self::EcnReduced { .. } => Self::Blocked { cause: Blocked::ReceiveWindow },
            Self::Blocked { .. } => Self::Queued { delay: Duration::from_micros(310) },
            Self::Queued { .. } => Self::Ack { policy: "delayed", rule: "second segment" },
            Self::Ack { .. } => Self::Policies { cc: "reno", ack: "delayed", rto: "conventional" },
            Self::Policies { .. } => Self::Dropped { reason: DropReason::ALL[0] },
            Self::Dropped { .. } => Self::Closed { error: Some(ConnError::Reset) },
            Self::Closed { .. } => return None,
        })
    }
}
