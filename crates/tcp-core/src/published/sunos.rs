//! The output rule of SunOS 4.1, after Chang, Chan and Yeung, figure 15.2: steps 4 and 5 of the
//! adaptive ACK model.

use crate::policy::spec::{Key, Keyed};
use core::fmt;

/// The output rule of SunOS 4.1 (Chang, Chan and Yeung, figure 15.2).
///
/// Let L be the minimum of the unsent data, a full segment and the usable window. L bytes are sent
/// if nothing is outstanding, if a full segment is unsent, or if the unsent data exceeds half of
/// the largest window that the peer ever offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SunOs {
    /// What is compared with a full segment and with half the window.
    pub test: NagleTest,
    /// When half of the peer's largest window is enough to send.
    pub half: HalfRule,
}

/// What the output rule of SunOS compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NagleTest {
    /// All unsent data, whether or not it fits the window.
    #[default]
    Unsent,
    /// The size of the next segment, as in 4.4BSD.
    Segment,
}

/// When half of the peer's largest window is enough to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HalfRule {
    /// More than half.
    #[default]
    Gt,
    /// Half or more, as in BSD.
    Ge,
    /// Never.
    Off,
}

impl Keyed for SunOs {
    const KEYS: &'static [Key<Self>] = &[
        Key::choice(
            "test",
            &["unsent", "segment"],
            "compare all unsent data, or what the next segment would hold",
            |it| it.test as usize,
            |it, at| it.test = pick(&[NagleTest::Unsent, NagleTest::Segment], at),
        ),
        Key::choice(
            "half",
            &["gt", "ge", "off"],
            "send what is more than (or at least) half of the largest window",
            |it| it.half as usize,
            |it, at| it.half = pick(&[HalfRule::Gt, HalfRule::Ge, HalfRule::Off], at),
        ),
    ];
}

impl SunOs {
    /// Whether a segment of `len` bytes of the unsent `data` may be sent although data is
    /// outstanding.
    pub(crate) const fn lets_out(self, data: u32, len: u32, smss: u32, max_wnd: u32) -> bool {
        let tested = match self.test {
            NagleTest::Unsent => data,
            NagleTest::Segment => len,
        };
        tested >= smss || self.half.allows(tested, max_wnd)
    }
}

impl fmt::Display for SunOs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, key) in Self::KEYS.iter().enumerate() {
            write!(f, "{}{}={}", if at == 0 { "" } else { "," }, key.name, key.get(self))?;
        }
        Ok(())
    }
}

impl HalfRule {
    /// Whether `bytes` are enough, given a largest window of `max_wnd` bytes.
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

/// The choice at `position`, which [`Param::choice`](crate::policy::spec::Param::choice) took from
/// as many names.
fn pick<T: Copy + Default>(choices: &[T], position: usize) -> T {
    choices.get(position).copied().unwrap_or_default()
}
