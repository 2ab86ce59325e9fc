//! The parameters of CUBIC.

use ackline_tcp_core::policy::spec::ParamInfo;
use ackline_tcp_core::policy::{Params, SpecError};

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

impl CubicParams {
    /// The parameters of [`Self::with`].
    pub const TABLE: &[ParamInfo] = &[
        ParamInfo {
            name: "beta",
            default: "0.7",
            range: "0.1..0.95",
            summary: "part of the window that is left after a loss",
        },
        ParamInfo {
            name: "c",
            default: "0.4",
            range: "0.001..100",
            summary: "growth of the curve, in segments per second cubed",
        },
        ParamInfo {
            name: "fast_convergence",
            default: "on",
            range: "on|off",
            summary: "give up more when the last plateau was not reached",
        },
        ParamInfo {
            name: "hystart",
            default: "on",
            range: "on|off|linux",
            summary: "leave the first slow start when the RTT rises (HyStart++); linux: each one, by Linux's HyStart",
        },
        ParamInfo {
            name: "pacing",
            default: "off",
            range: "on|off",
            summary: "spread departures over the round trip",
        },
        ParamInfo {
            name: "abe",
            default: "off",
            range: "on|off",
            summary: "keep 0.85 of the window after a mark by ECN (ABE)",
        },
        ParamInfo {
            name: "ecn_floor",
            default: "1",
            range: "1..2",
            summary: "segments that a mark by ECN leaves at least; 2 as Linux",
        },
    ];

    /// The same with the given changes.
    ///
    /// # Errors
    /// Names the parameter that is unknown or out of range.
    pub fn with(mut self, params: &Params) -> Result<Self, SpecError> {
        for param in params.iter() {
            match param.key() {
                "beta" => self.beta = param.number(0.1..=0.95)?,
                "c" => self.c = param.number(0.001..=100.0)?,
                "fast_convergence" => self.fast_convergence = param.switch()?,
                "hystart" if param.text() == "linux" => self.hystart = SlowStartExit::Linux,
                "hystart" if param.switch()? => self.hystart = SlowStartExit::HyStartPlusPlus,
                "hystart" => self.hystart = SlowStartExit::Nothing,
                "pacing" => self.pacing = param.switch()?,
                "abe" => self.abe = param.switch()?,
                "ecn_floor" => self.ecn_floor = param.number(1.0..=2.0)?,
                _ => return Err(param.unknown("cubic", Self::TABLE)),
            }
        }
        Ok(self)
    }

    /// RFC 9438, section 4.3: the additive increase with which AIMD(alpha, beta) is as fast as
    /// Reno's AIMD(1, 0.5).
    #[must_use]
    pub fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }
}
