//! Nagle's algorithm and its variants: when a small segment may follow unacknowledged data.

use crate::policy::SpecError;
use crate::policy::spec::{Keyed, PolicySpec, nearest};
use crate::published::SunOs;
use alloc::format;
use core::fmt;
use core::str::FromStr;

/// When a small segment may follow unacknowledged data.
///
/// In text: `off`, `rfc896`, `minshall`, or `sunos` with the [keys](Keyed) of [`SunOs`], such as
/// `sunos:test=segment,half=ge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Nagle {
    /// Always (`TCP_NODELAY`).
    Off,
    /// Not while any data is unacknowledged (RFC 896; RFC 9293, section 3.7.4).
    Rfc896,
    /// Not while a small segment is unacknowledged (Minshall's variant, used by Linux).
    #[default]
    Minshall,
    /// The sender of SunOS 4.1, to repeat measurements of the 1990s. It also decides how much to
    /// send into a small window, and has no sender's silly window avoidance (RFC 9293, section
    /// 3.8.6.2.1).
    SunOs(SunOs),
}

impl fmt::Display for Nagle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Rfc896 => f.write_str("rfc896"),
            Self::Minshall => f.write_str("minshall"),
            Self::SunOs(rule) => write!(f, "sunos:{rule}"),
        }
    }
}

impl FromStr for Nagle {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        const NAMES: [&str; 4] = ["off", "rfc896", "minshall", "sunos"];
        let PolicySpec { name, params } = text.parse()?;
        let fixed = match name.as_str() {
            "off" => Self::Off,
            "rfc896" => Self::Rfc896,
            "minshall" => Self::Minshall,
            "sunos" => return Ok(Self::SunOs(SunOs::from_params("sunos", &params)?)),
            _ => {
                let near = nearest(&name, NAMES.into_iter());
                let meant = near.map_or_else(Default::default, |near| format!("; did you mean {near:?}?"));
                let allowed = NAMES.join(", ");
                return Err(SpecError::new(format!(
                    "unknown variant of Nagle's algorithm {name:?}{meant} (allowed: {allowed})"
                )));
            }
        };
        params.reject_all(&name)?;
        Ok(fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HalfRule, NagleTest};
    use alloc::string::ToString;

    #[test]
    fn every_variant_has_a_name() {
        let sunos = |test, half| Ok(Nagle::SunOs(SunOs { test, half }));
        for (text, expected) in [
            ("off", Ok(Nagle::Off)),
            ("rfc896", Ok(Nagle::Rfc896)),
            ("minshall", Ok(Nagle::Minshall)),
            ("sunos", sunos(NagleTest::Unsent, HalfRule::Gt)),
            ("sunos:half=off", sunos(NagleTest::Unsent, HalfRule::Off)),
            ("sunos:test=segment,half=ge", sunos(NagleTest::Segment, HalfRule::Ge)),
        ] {
            assert_eq!(text.parse::<Nagle>(), expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_name_or_parameter_is_explained() {
        for (text, expected) in [
            ("minshal", "did you mean \"minshall\"?"),
            ("off:test=unsent", "off takes no parameter \"test\""),
            ("sunos:hal=gt", "sunos has no parameter \"hal\"; did you mean \"half\"?"),
            ("sunos:half=lt", "half must be one of gt, ge, off"),
        ] {
            let error = text.parse::<Nagle>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
