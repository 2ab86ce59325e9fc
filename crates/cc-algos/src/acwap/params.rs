//! The parameters of ACWAP.

use crate::aimd::{HYSTART, MAX_SSTHRESH, RTO};
use crate::hstcp::{AW, LOW_P_INFO};
use ackline_tcp_core::policy::SpecError;
use ackline_tcp_core::policy::spec::{Param, ParamInfo};

/// When to pace (P2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingMode {
    /// After the first slow start, at r_c / w; a late departure delays all later ones.
    Paper,
    /// Always: at r_c / (2 w) in slow start, otherwise r_c / (gain w); late departures are made up
    /// for.
    Stack,
    /// Data is sent as soon as the window allows.
    Off,
}

/// ACWAP's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcwapParams {
    /// Position in the known RTT range, in millionths, below which the inner control grows freely,
    /// 0 to 1,000,000.
    pub beta: u32,
    /// Grow by one segment per round trip in the upper part of the range (W2).
    pub clamp: bool,
    /// When to pace.
    pub pacing: PacingMode,
    /// Thousandths of w per r_c at which [`PacingMode::Stack`] paces in congestion avoidance, 500
    /// to 4000.
    pub gain: u32,
    /// As published, including the flaws that the guards W3, W4 and W5 fix.
    pub literal: bool,
    /// Forget the range: the minimum after 10 s, the maximum at every eighth congestion event (W8).
    pub windowed: bool,
    /// Reduce a from a(w) to 1 gradually across the upper part of the range, not at once.
    pub taper: bool,
}

impl Default for AcwapParams {
    fn default() -> Self {
        Self {
            beta: 800_000,
            clamp: true,
            pacing: PacingMode::Stack,
            gain: 1000,
            literal: false,
            windowed: false,
            taper: false,
        }
    }
}

/// The names of the controls that can be wrapped.
pub(super) const INNER: [&str; 4] = ["hstcp", "scalable", "reno", "cubic"];

/// `inner` in tables.
pub(super) const INNER_INFO: ParamInfo = ParamInfo {
    name: "inner",
    default: "hstcp",
    range: "hstcp|scalable|reno|cubic",
    summary: "the control whose growth is held back near a full queue",
};

impl AcwapParams {
    /// The parameters of `acwap`.
    pub const TABLE: &[ParamInfo] = &[
        INNER_INFO,
        ParamInfo {
            name: "beta",
            default: "0.8",
            range: "0..1",
            summary: "part of the known range of the RTT above which the window grows by one segment",
        },
        ParamInfo {
            name: "clamp",
            default: "on",
            range: "on|off",
            summary: "hold growth back at all; off: the inner control, paced",
        },
        ParamInfo {
            name: "pacing",
            default: "stack",
            range: "paper|stack|off",
            summary: "pace departures: after the first slow start, always, or never",
        },
        ParamInfo {
            name: "gain",
            default: "1",
            range: "0.5..4",
            summary: "windows per round trip at which pacing=stack sends beyond slow start",
        },
        ParamInfo {
            name: "literal",
            default: "off",
            range: "on|off",
            summary: "as published: a loss in slow start spoils the range for good",
        },
        ParamInfo {
            name: "windowed",
            default: "off",
            range: "on|off",
            summary: "forget the smallest RTT after 10 s, the largest at every eighth congestion",
        },
        ParamInfo { name: "taper", default: "off", range: "on|off", summary: "hold growth back gradually" },
        AW,
        LOW_P_INFO,
        MAX_SSTHRESH,
        HYSTART,
        RTO,
    ];

    /// Takes one parameter; `None` if the key is not one of these.
    pub(super) fn set(&mut self, param: &Param<'_>) -> Result<Option<()>, SpecError> {
        match param.key() {
            "beta" => self.beta = (param.number(0.0..=1.0)? * 1e6 + 0.5) as u32,
            "clamp" => self.clamp = param.switch()?,
            "pacing" => {
                self.pacing = match param.choice(&["paper", "stack", "off"])? {
                    0 => PacingMode::Paper,
                    1 => PacingMode::Stack,
                    _ => PacingMode::Off,
                }
            }
            "gain" => self.gain = (param.number(0.5..=4.0)? * 1e3 + 0.5) as u32,
            "literal" => self.literal = param.switch()?,
            "windowed" => self.windowed = param.switch()?,
            "taper" => self.taper = param.switch()?,
            _ => return Ok(None),
        }
        Ok(Some(()))
    }
}
