//! The parameters of LS-AIMD.

use super::growth::{C_BITS, C_ONE};
use super::marking::ONE;
use super::prototype::{Prototype, clock_rtt, divisor, reclock};
use ackline_tcp_core::policy::SpecError;
use ackline_tcp_core::policy::spec::{Key, Keyed, Param};
use alloc::format;
use alloc::string::{String, ToString as _};

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

    fn written(self) -> String {
        match self {
            Self::Fixed(c) if c.is_power_of_two() => match C_BITS - c.ilog2() {
                0 => "1".into(),
                power => format!("2^-{power}"),
            },
            Self::Fixed(c) => (f64::from(c) / f64::from(C_ONE)).to_string(),
            Self::Auto => "auto".into(),
        }
    }

    fn read(param: Param<'_>) -> Result<Self, SpecError> {
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
            _ => Err(param.expected("auto, a number from 2^-16 to 1, or 2^-1 to 2^-16")),
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
    pub delta: u32,
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

impl AsRef<Prototype> for LsAimdParams {
    fn as_ref(&self) -> &Prototype {
        &self.prototype
    }
}

impl AsMut<Prototype> for LsAimdParams {
    fn as_mut(&mut self) -> &mut Prototype {
        &mut self.prototype
    }
}

impl Keyed for LsAimdParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::text(
            "c",
            "2^-16..1|auto",
            "scale of the increase; the thesis has 1 and 2^-7; auto: min(1, (1 - alpha) / alpha)",
            |it| it.c.written(),
            |it, param| Scale::read(param).map(|c| it.c = c),
        ),
        Key::integer(
            "delta",
            1..=64,
            "below so many segments departures follow a clock; at most so many are in flight then",
            |it| &mut it.delta,
        ),
        Key::text(
            "g",
            "2^-1..2^-10",
            "share of the last round in the estimate of marked data",
            |it| format!("2^-{}", it.gain),
            |it, param| read_gain(param).map(|gain| it.gain = gain),
        ),
        Key::size(
            "mode_hyst",
            0..=1 << 20,
            "bytes below delta segments at which the clock takes over again",
            |it| &mut it.mode_hyst,
        ),
        Key::switch("scale_free", "the same growth in segments whatever the segment size", |it| {
            &mut it.scale_free
        }),
        Key::size("floor", 2..=1 << 20, "smallest window in bytes", |it| &mut it.floor),
        Key::integer(
            "precision",
            9..=24,
            "fraction bits of the logarithm; 9 as in the thesis, for comparison",
            |it| &mut it.precision,
        ),
        Key::integer("abc", 1..=64, "segments that one ACK adds in slow start at most", |it| &mut it.abc),
        reclock(),
        divisor(),
        clock_rtt(),
    ];
}

/// g as a power of two: `2^-4`, `1/16` or `0.0625`.
fn read_gain(param: Param<'_>) -> Result<u32, SpecError> {
    let text = param.text();
    (1..=10)
        .find(|gain| {
            text.strip_prefix("2^-").and_then(|power| power.parse().ok()) == Some(*gain)
                || text.strip_prefix("1/").and_then(|whole| whole.parse().ok()) == Some(1_u32 << gain)
                || text.parse().ok() == Some(libm::exp2(-f64::from(*gain)))
        })
        .ok_or_else(|| param.expected("a power of two from 2^-1 to 2^-10"))
}
