//! Profiles of the policies that repeat published measurements: today's hosts, and the measured
//! ones.
//!
//! | | `default` | `paper` |
//! |---|---|---|
//! | segment size | the largest seen, as RFC 5681 (section 4.2) counts full segments | the announced one, BSD's `t_maxseg` |
//! | window that an ACK advertises | by RFC 9293's silly window avoidance (section 3.8.6.2.2) | all that is free |
//! | delays and limits | within those of RFC 9293 | as measured |

use ackline_tcp_core::policy::SpecError;
use ackline_tcp_core::policy::ack::{AckPlan, RecvView, WindowHint};
use ackline_tcp_core::policy::spec::{Param, ParamInfo};

pub(crate) const PROFILE: ParamInfo = ParamInfo {
    name: "profile",
    default: "default",
    range: "default|paper",
    summary: "values to begin with: fit for real networks, or those of the paper",
};

pub(crate) const MSS: ParamInfo = ParamInfo {
    name: "mss",
    default: "seen",
    range: "seen|announced",
    summary: "a full segment: the largest seen, or (paper) what was announced",
};

pub(crate) const WINDOW: ParamInfo = ParamInfo {
    name: "window",
    default: "sws",
    range: "sws|all",
    summary: "an ACK shows: what RFC 9293's rule permits, or (paper) all that is free",
};

/// Initial values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Default,
    Paper,
}

impl Profile {
    pub(crate) fn read(param: Param<'_>) -> Result<Self, SpecError> {
        Ok(if param.choice(&["default", "paper"])? == 1 { Self::Paper } else { Self::Default })
    }
}

/// The rows of the table above that all policies with a profile share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    announced: bool,
    window: WindowHint,
}

impl Host {
    pub(crate) const fn new(profile: Profile) -> Self {
        match profile {
            Profile::Default => Self { announced: false, window: WindowHint::Sws },
            Profile::Paper => Self { announced: true, window: WindowHint::AllFree },
        }
    }

    /// Sets [`MSS`] or [`WINDOW`]; false for any other parameter.
    pub(crate) fn take(&mut self, param: Param<'_>) -> Result<bool, SpecError> {
        match param.key() {
            "mss" => self.announced = param.choice(&["seen", "announced"])? == 1,
            "window" => {
                let all = param.choice(&["sws", "all"])? == 1;
                self.window = if all { WindowHint::AllFree } else { WindowHint::Sws };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The size of a full segment, at least 1.
    pub(crate) fn mss(&self, view: &RecvView) -> u32 {
        if self.announced { view.mss } else { view.rmss }.max(1)
    }

    /// An ACK at once.
    pub(crate) const fn ack(&self) -> AckPlan {
        AckPlan::Now { window: self.window }
    }
}

/// How far the window's edge could move: decides about a window update after a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// Free bytes of the buffer at the last ACK; `None` before the first.
    free: Option<u32>,
}

impl Edge {
    /// Before the first ACK.
    pub(crate) const NEW: Self = Self { free: None };

    /// An ACK left.
    pub(crate) const fn on_ack_sent(&mut self, view: &RecvView) {
        self.free = Some(view.free);
    }

    /// Bytes by which an ACK would move the edge.
    pub(crate) fn gain(&self, view: &RecvView) -> u32 {
        let end = u64::from(view.unacked()) + u64::from(view.free);
        let gain = end.saturating_sub(u64::from(self.free.unwrap_or(view.buffer)));
        u32::try_from(gain).unwrap_or(u32::MAX)
    }
}
