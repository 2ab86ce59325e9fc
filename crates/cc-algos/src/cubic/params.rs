//! The parameters of CUBIC.

use ackline_tcp_core::policy::spec::{Key, Keyed};

/// Remaining fraction of the window after a mark with ABE (RFC 8511, section 3.1, for CUBIC).
pub const BETA_ECN: f64 = 0.85;

/// CUBIC's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CubicParams {
    /// Multiplicative decrease factor, 0.1 to 0.95 (RFC 9438, section 4.6: 0.7).
    pub beta: f64,
    /// Aggressiveness in segments per second cubed, 0.001 to 100 (RFC 9438, section 5.1: 0.4).
    pub c: f64,
    /// Release bandwidth for new flows (RFC 9438, section 4.7).
    pub fast_convergence: bool,
    /// What ends slow start before a loss.
    pub hystart: SlowStartExit,
    /// Pace departures at 2 windows per round trip in slow start, at 1.2 above half of `ssthresh`.
    pub pacing: bool,
    /// After ECE in congestion avoidance keep [`BETA_ECN`] of the window if `beta` is less (ABE,
    /// RFC 8511).
    pub abe: bool,
    /// Segments below which ECE does not reduce the window, 1 to 2 (RFC 9438, section 4.6: 1;
    /// Linux: 2).
    pub ecn_floor: f64,
}

/// What ends slow start before a loss does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartExit {
    /// Only a loss or a mark.
    Nothing,
    /// HyStart++ (RFC 9406), in the first slow start.
    HyStartPlusPlus,
    /// HyStart as Linux has it, by delay and by ACK trains, in any slow start.
    Linux,
}

impl Default for CubicParams {
    fn default() -> Self {
        Self {
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            hystart: SlowStartExit::HyStartPlusPlus,
            pacing: false,
            abe: false,
            ecn_floor: 1.0,
        }
    }
}

impl Keyed for CubicParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::number("beta", 0.1..=0.95, "part of the window that is left after a loss", |it| &mut it.beta),
        Key::number("c", 0.001..=100.0, "growth of the curve, in segments per second cubed", |it| &mut it.c),
        Key::switch("fast_convergence", "give up more when the last plateau was not reached", |it| {
            &mut it.fast_convergence
        }),
        Key::choice(
            "hystart",
            &["on", "off", "linux"],
            "leave the first slow start when the RTT rises (HyStart++); linux: each one, by Linux's HyStart",
            |it| EXITS.iter().position(|exit| *exit == it.hystart).unwrap_or(0),
            |it, at| it.hystart = EXITS[at],
        ),
        Key::switch("pacing", "spread departures over the round trip", |it| &mut it.pacing),
        Key::switch("abe", "keep 0.85 of the window after a mark by ECN (ABE)", |it| &mut it.abe),
        Key::number(
            "ecn_floor",
            1.0..=2.0,
            "segments that a mark by ECN leaves at least; 2 as Linux",
            |it| &mut it.ecn_floor,
        ),
    ];
}

/// As `hystart` names them.
const EXITS: [SlowStartExit; 3] =
    [SlowStartExit::HyStartPlusPlus, SlowStartExit::Nothing, SlowStartExit::Linux];

impl CubicParams {
    /// RFC 9438, section 4.3: the additive increase with which AIMD(alpha, beta) is as fast as
    /// Reno's AIMD(1, 0.5).
    #[must_use]
    pub fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }
}
