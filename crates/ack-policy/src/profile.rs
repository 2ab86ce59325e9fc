//! Profiles of the policies that repeat published measurements: today's hosts, and the measured
//! ones.
//!
//! | | `default` | `paper` |
//! |---|---|---|
//! | segment size | the largest seen, as RFC 5681 (section 4.2) counts full segments | the announced one, BSD's `t_maxseg` |
//! | window that an ACK advertises | by RFC 9293's silly window avoidance (section 3.8.6.2.2) | all that is free |
//! | delays and limits | within those of RFC 9293 | as measured |

use ackline_tcp_core::policy::ack::{AckPlan, RecvView, WindowHint};
use ackline_tcp_core::policy::spec::Key;

/// Initial values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Default,
    Paper,
}

/// Parameters that begin with the values of a profile.
pub(crate) trait Profiled: PartialEq + Sized {
    /// The same policy with the values of `profile`.
    fn with_profile(&self, profile: Profile) -> Self;
}

/// `profile`, which sets everything that is not given.
pub(crate) const fn profile<C: Profiled>() -> Key<C> {
    Key::choice(
        "profile",
        &["default", "paper"],
        "values to begin with: fit for real networks, or those of the paper",
        |it| usize::from(*it == it.with_profile(Profile::Paper)),
        |it, at| *it = it.with_profile(if at == 1 { Profile::Paper } else { Profile::Default }),
    )
}

/// `mss`, among the parameters `C`.
pub(crate) const fn mss<C: AsRef<Host> + AsMut<Host>>() -> Key<C> {
    Key::choice(
        "mss",
        &["seen", "announced"],
        "a full segment: the largest seen, or (paper) what was announced",
        |it| usize::from(it.as_ref().announced),
        |it, at| it.as_mut().announced = at == 1,
    )
}

/// `window`, among the parameters `C`.
pub(crate) const fn window<C: AsRef<Host> + AsMut<Host>>() -> Key<C> {
    Key::choice(
        "window",
        &["sws", "all"],
        "an ACK shows: what RFC 9293's rule permits, or (paper) all that is free",
        |it| usize::from(it.as_ref().window == WindowHint::AllFree),
        |it, at| it.as_mut().window = if at == 1 { WindowHint::AllFree } else { WindowHint::Sws },
    )
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
