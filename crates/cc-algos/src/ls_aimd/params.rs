//! What can be set about LS-AIMD.

use super::growth::{C_BITS, C_ONE};
use super::marking::ONE;
use ackline_tcp_core::policy::spec::{Param, ParamInfo};
use ackline_tcp_core::policy::{Params, SpecError};
use alloc::format;

/// The factor that scales the additive increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The same all the time, in 2^-16. The thesis measures 1 and 2^-7.
    Fixed(u32),
    /// C = min(1, (1 - alpha) / alpha): growth shrinks as marking nears saturation, and is whole while at most half of
    /// the data is marked.
    Auto,
}

impl Scale {
    /// C in 2^-16 if the share of marked data is `alpha` (in 2^-20).
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
        // Below this C would be nought in its fixed point.
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
    /// Segments after which the receiver is taken to acknowledge, 1 to 64: below so many, the departure clock runs, and
    /// keeps at most so many in flight (thesis: 2).
    pub delta: u16,
    /// The share of a round in alpha is 2^-gain, 1 to 10 (thesis: 4, g = 1/16).
    pub gain: u32,
    /// Bytes by which the window must fall below `delta` segments before the departure clock takes over again (thesis: 0).
    pub mode_hyst: u32,
    /// One curve of growth in segments for all segment sizes, instead of powers of two in bytes.
    pub scale_free: bool,
    /// Smallest window in bytes, 2 to 2^20 (thesis: 2).
    pub floor: u32,
    /// Fraction bits of the logarithm, 9 to 24. The thesis' 9 loses the increase of jumbo frames near the floor.
    pub precision: u32,
    /// Segments that one ACK may add in slow start, 1 to 64 (RFC 3465's L).
    pub abc: u32,
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
        }
    }
}

impl LsAimdParams {
    /// What [`Self::with`] takes.
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
    ];

    /// The same with the given changes. `policy` is the name for errors.
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
