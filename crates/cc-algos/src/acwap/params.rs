//! The parameters of ACWAP.

use crate::aimd::{AimdParams, hystart, max_ssthresh, rto};
use crate::hstcp::{HstcpParams, aw, low_p};
use ackline_tcp_core::policy::SpecError;
use ackline_tcp_core::policy::spec::{Key, Keyed};
use alloc::format;

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

/// The control that ACWAP wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// HSTCP.
    Hstcp,
    /// Scalable TCP.
    Scalable,
    /// Reno.
    Reno,
    /// CUBIC.
    Cubic,
}

/// Their names.
const INNER: [&str; 4] = ["hstcp", "scalable", "reno", "cubic"];

impl Inner {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        INNER[self as usize]
    }
}

/// ACWAP's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AcwapParams {
    /// The control that is wrapped, fixed for the life of a connection.
    pub inner: Inner,
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
    /// The parameters of HSTCP as the inner control.
    pub hstcp: HstcpParams,
}

impl Default for AcwapParams {
    fn default() -> Self {
        Self {
            inner: Inner::Hstcp,
            beta: 800_000,
            clamp: true,
            pacing: PacingMode::Stack,
            gain: 1000,
            literal: false,
            windowed: false,
            taper: false,
            hstcp: HstcpParams::default(),
        }
    }
}

impl Keyed for AcwapParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::choice(
            "inner",
            &INNER,
            "the control whose growth is held back near a full queue",
            |it| it.inner as usize,
            |it, at| it.inner = [Inner::Hstcp, Inner::Scalable, Inner::Reno, Inner::Cubic][at],
        ),
        Key::parts(
            "beta",
            0.0..=1.0,
            1_000_000,
            "part of the known range of the RTT above which the window grows by one segment",
            |it| &mut it.beta,
        ),
        Key::switch("clamp", "hold growth back at all; off: the inner control, paced", |it| &mut it.clamp),
        Key::choice(
            "pacing",
            &["paper", "stack", "off"],
            "pace departures: after the first slow start, always, or never",
            |it| it.pacing as usize,
            |it, at| it.pacing = [PacingMode::Paper, PacingMode::Stack, PacingMode::Off][at],
        ),
        Key::parts(
            "gain",
            0.5..=4.0,
            1_000,
            "windows per round trip at which pacing=stack sends beyond slow start",
            |it| &mut it.gain,
        ),
        Key::switch("literal", "as published: a loss in slow start spoils the range for good", |it| {
            &mut it.literal
        }),
        Key::switch(
            "windowed",
            "forget the smallest RTT after 10 s, the largest at every eighth congestion",
            |it| &mut it.windowed,
        ),
        Key::switch("taper", "hold growth back gradually", |it| &mut it.taper),
        aw(),
        low_p(),
        max_ssthresh(),
        hystart(),
        rto(),
    ];

    fn check(&self) -> Result<(), SpecError> {
        let (hstcp, default) = (self.hstcp, HstcpParams::default());
        let key = match self.inner {
            Inner::Hstcp => return Ok(()),
            _ if hstcp.aw != default.aw => "aw",
            _ if hstcp.low_p != default.low_p => "low_p",
            _ => return Ok(()),
        };
        let inner = self.inner.name();
        Err(SpecError::new(format!("acwap: {key} is for inner=hstcp, not for inner={inner}")))
    }
}

impl AsRef<HstcpParams> for AcwapParams {
    fn as_ref(&self) -> &HstcpParams {
        &self.hstcp
    }
}

impl AsMut<HstcpParams> for AcwapParams {
    fn as_mut(&mut self) -> &mut HstcpParams {
        &mut self.hstcp
    }
}

impl AsRef<AimdParams> for AcwapParams {
    fn as_ref(&self) -> &AimdParams {
        &self.hstcp.window
    }
}

impl AsMut<AimdParams> for AcwapParams {
    fn as_mut(&mut self) -> &mut AimdParams {
        &mut self.hstcp.window
    }
}
