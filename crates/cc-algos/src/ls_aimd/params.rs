//! The parameters of LS-AIMD.

use super::growth::{C_BITS, C_ONE};
use super::marking::ONE;
use super::prototype::Prototype;
use ackline_tcp_core::policy::spec::{Param, ParamInfo};
use ackline_tcp_core::policy::{Params, SpecError};
use alloc::format;

/// The factor that scales the additive increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Constant, in 2^-16. The thesis measures 1 and 2^-7.
    Fixed(u32),
    /// C = min(1, (1 - alpha) / alpha): reduces growth as marking approaches saturation, and leaves
    /// it alone while at most half of the data is marked.
    Auto,
}

impl Scale {
    /// C in 2^-16 if the fraction of marked data is `alpha` (in 2^-20).
    #[must_use]
    pub fn at(self, alpha: u64) -> u32 {
        match self {
            Self::Fixed(c) => c,
            Self::Auto => {
                let unmarked = ONE.saturating_sub(alpha);
                if unmarked >= alpha { C_ONE } else { ((unmarked << C_BITS) / alpha) as u32 }
            }
        }
    }

    fn read(param: &Param<'_>) -> Result<Self, SpecError> {
        let text = param.text();
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let number = match text.strip_prefix("2^-") {
            Some(power) => power.parse().ok().map(|power: i32| libm::exp2(-f64::from(power))),
            None => text.parse().ok(),
        };
        // A smaller C would be zero in fixed point.
        let smallest = 1.0 / f64::from(C_ONE);
        match number {
            Some(c) if (smallest..=1.0).contains(&c) => Ok(Self::Fixed((c * f64::from(C_ONE)) as u32)),
            _ => Err(SpecError::new(format!(
                "c={text} is not possible: c must be auto, a number from 2^-16 to 1, or 2^-1 to 2^-16"
            ))),
        }
    }
}

/// LS-AIMD's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LsAimdParams {
    /// Scale factor of the additive increase.
    pub c: Scale,
    /// Number of segments that the receiver is assumed to wait for before it acknowledges, 1 to 64:
    /// the departure clock runs below this many, and keeps at most as many in flight (thesis: 2).
    pub delta: u16,
    /// The weight of a round in alpha is 2^-gain, 1 to 10 (thesis: 4, g = 1/16).
    pub gain: u32,
    /// Hysteresis: bytes by which the window must fall below `delta` segments before the departure
    /// clock starts again (thesis: 0).
    pub mode_hyst: u32,
    /// Use one growth curve in segments for all segment sizes, instead of powers of two in bytes.
    pub scale_free: bool,
    /// Smallest window in bytes, 2 to 2^20 (thesis: 2).
    pub floor: u32,
    /// Fraction bits of the logarithm, 9 to 24. With the thesis' 9 the increase of jumbo frames
    /// near the floor vanishes.
    pub precision: u32,
    /// Maximum segments added per ACK in slow start, 1 to 64 (RFC 3465's L).
    pub abc: u32,
    /// Other readings of the thesis.
    pub prototype: Prototype,
}

impl Default for LsAimdParams {
    fn default() -> Self {
        Self {
            c: Scale::Auto,
            delta: 2,
            gain: 4,
            mode_hyst: 0,
            scale_free: false,
            floor: 2,
            precision: 24,
            abc: 1,
            prototype: Prototype::default(),
        }
    }
}

impl LsAimdParams {
    /// The parameters of [`Self::with`].
    pub const TABLE: &[ParamInfo] = &[
        ParamInfo {
            name: "c",
            default: "auto",
            range: "2^-16..1|auto",
            summary: "scale of the increase; the thesis has 1 and 2^-7; auto: min(1, (1 - alpha) / alpha)",
        },
        ParamInfo {
            name: "delta",
            default: "2",
            range: "1..64",
            summary: "below so many segments departures follow a clock; at most so many are in flight then",
        },
        ParamInfo {
            name: "g",
            default: "2^-4",
            range: "2^-1..2^-10",
            summary: "share of the last round in the estimate of marked data",
        },
        ParamInfo {
            name: "mode_hyst",
            default: "0",
            range: "0..1m",
            summary: "bytes below delta segments at which the clock takes over again",
        },
        ParamInfo {
            name: "scale_free",
            default: "off",
            range: "on|off",
            summary: "the same growth in segments whatever the segment size",
        },
        ParamInfo { name: "floor", default: "2", range: "2..1m", summary: "smallest window in bytes" },
        ParamInfo {
            name: "precision",
            default: "24",
            range: "9..24",
            summary: "fraction bits of the logarithm; 9 as in the thesis, for comparison",
        },
        ParamInfo {
            name: "abc",
            default: "1",
            range: "1..64",
            summary: "segments that one ACK adds in slow start at most",
        },
        Prototype::TABLE[0],
        Prototype::TABLE[1],
        Prototype::TABLE[2],
    ];

    /// The same with the given changes. `policy` is the name used in errors.
    ///
    /// # Errors
    /// Names the parameter that is unknown or out of range.
    pub fn with(mut self, policy: &str, params: &Params) -> Result<Self, SpecError> {
        for param in params.iter() {
            match param.key() {
                "c" => self.c = Scale::read(&param)?,
                "delta" => self.delta = param.integer(1..=64)? as u16,
                "g" => self.gain = read_gain(&param)?,
                "mode_hyst" => self.mode_hyst = param.bytes(0..=1 << 20)? as u32,
                "scale_free" => self.scale_free = param.switch()?,
                "floor" => self.floor = param.bytes(2..=1 << 20)? as u32,
                "precision" => self.precision = param.integer(9..=24)? as u32,
                "abc" => self.abc = param.integer(1..=64)? as u32,
                _ if self.prototype.read(&param)? => {}
                _ => return Err(param.unknown(policy, Self::TABLE)),
            }
        }
        Ok(self)
    }
}

/// g as a power of two: `2^-4`, `1/16` or `0.0625`.
fn read_gain(param: &Param<'_>) -> Result<u32, SpecError> {
    let text = param.text();
    (1..=10)
        .find(|gain| {
            text.strip_prefix("2^-").and_then(|power| power.parse().ok()) == Some(*gain)
                || text.strip_prefix("1/").and_then(|whole| whole.parse().ok()) == Some(1_u32 << gain)
                || text.parse().ok() == Some(libm::exp2(-f64::from(*gain)))
        })
        .ok_or_else(|| {
            SpecError::new(format!("g={text} is not possible: g must be a power of two from 2^-1 to 2^-10"))
        })
}
