//! Nagle's algorithm and its relatives: when a small segment may follow unacknowledged data.

use crate::policy::SpecError;
use crate::policy::spec::{ParamInfo, PolicySpec, nearest};
use alloc::format;
use core::fmt;
use core::str::FromStr;

/// When a small segment may follow unacknowledged data.
///
/// In text: `off`, `rfc896`, `minshall`, or `sunos` with the parameters of [`SunOs::PARAMS`], such as
/// `sunos:test=segment,half=ge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Nagle {
    /// Always (`TCP_NODELAY`).
    Off,
    /// Not while any data is unacknowledged (RFC 896; RFC 9293, section 3.7.4).
    Rfc896,
    /// Not while a small segment is unacknowledged (Minshall's variant, as Linux has it).
    #[default]
    Minshall,
    /// The sender of SunOS 4.1, to repeat measurements of the 1990s: it also decides how much leaves into a small
    /// window, without the sender's silly window avoidance of RFC 9293, section 3.8.6.2.1.
    SunOs(SunOs),
}

/// The output rule of SunOS 4.1 (Chang, Chan and Yeung, figure 15.2).
///
/// With L the least of the data that waits, a full segment and the usable window, L bytes leave if nothing is
/// outstanding, if a full segment waits, or if more than half of the largest window that the peer ever had waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SunOs {
    /// What is compared with a full segment and with half of the window.
    pub test: NagleTest,
    /// When half of the peer's largest window is enough.
    pub half: HalfRule,
}

/// What the output rule of SunOS compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NagleTest {
    /// All data that was never sent, whether or not the window takes it.
    #[default]
    Unsent,
    /// What the next segment would hold, as 4.4BSD has it.
    Segment,
}

/// When half of the peer's largest window is enough to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HalfRule {
    /// More than half.
    #[default]
    Gt,
    /// Half or more, as BSD has it.
    Ge,
    /// Never.
    Off,
}

impl SunOs {
    /// The parameters in text.
    pub const PARAMS: &[ParamInfo] = &[
        ParamInfo {
            name: "test",
            default: "unsent",
            range: "unsent|segment",
            summary: "compare all unsent data, or what the next segment would hold",
        },
        ParamInfo {
            name: "half",
            default: "gt",
            range: "gt|ge|off",
            summary: "send what is more than (or at least) half of the largest window",
        },
    ];
}

impl HalfRule {
    /// Whether `bytes` are enough beside a largest window of `max_wnd` bytes.
    #[must_use]
    pub const fn allows(self, bytes: u32, max_wnd: u32) -> bool {
        let (twice, max_wnd) = (bytes as u64 * 2, max_wnd as u64);
        match self {
            Self::Gt => twice > max_wnd,
            Self::Ge => twice >= max_wnd,
            Self::Off => false,
        }
    }
}

impl fmt::Display for Nagle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Rfc896 => f.write_str("rfc896"),
            Self::Minshall => f.write_str("minshall"),
            Self::SunOs(SunOs { test, half }) => {
                let test = match test {
                    NagleTest::Unsent => "unsent",
                    NagleTest::Segment => "segment",
                };
                let half = match half {
                    HalfRule::Gt => "gt",
                    HalfRule::Ge => "ge",
                    HalfRule::Off => "off",
                };
                write!(f, "sunos:test={test},half={half}")
            }
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
            "sunos" => {
                let mut rule = SunOs::default();
                for param in params.iter() {
                    match param.key() {
                        "test" => {
                            let tests = [NagleTest::Unsent, NagleTest::Segment];
                            rule.test = pick(&tests, param.choice(&["unsent", "segment"])?);
                        }
                        "half" => {
                            let halves = [HalfRule::Gt, HalfRule::Ge, HalfRule::Off];
                            rule.half = pick(&halves, param.choice(&["gt", "ge", "off"])?);
                        }
                        _ => return Err(param.unknown("sunos", SunOs::PARAMS)),
                    }
                }
                return Ok(Self::SunOs(rule));
            }
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

/// The choice at `position`, which [`Param::choice`](crate::policy::spec::Param::choice) took from as many names.
fn pick<T: Copy + Default>(choices: &[T], position: usize) -> T {
    choices.get(position).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
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
