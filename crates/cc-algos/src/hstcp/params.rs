//! The parameters of HSTCP.

use super::response::LOW_P;
use crate::aimd::{AimdParams, hystart, max_ssthresh, rto};
use ackline_tcp_core::policy::spec::{Key, Keyed};

/// The source of a(w) (H5).
///
/// The RFC gives a(w) three times, and no two agree: as a formula over a line through two points,
/// with that line rounded, and as a table made by a program that drifts. A loss event in a
/// drop-tail queue costs about a(w) packets, so the choice is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwMode {
    /// p(w) is the line through (38, `low_p`) and (83000, 10^-7) in the logarithms of both (RFC
    /// 3649, section 5); as simulators compute it.
    LogLog,
    /// p(w) = 1 / (12.8 w^1.2), the line as the program in RFC 3649, appendix B rounds it.
    Rfc,
    /// The last row of the table in RFC 3649, appendix B, with a window of at most w.
    TableFloor,
    /// The first row of that table with a window of at least w, as in Linux.
    TableCeil,
}

const MODES: [AwMode; 4] = [AwMode::LogLog, AwMode::Rfc, AwMode::TableFloor, AwMode::TableCeil];

/// HSTCP's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct HstcpParams {
    /// The source of a(w).
    pub aw: AwMode,
    /// Loss rate at 38 segments, for [`AwMode::LogLog`], 10^-4 to 10^-2: 1.5 / 38^2, at which HSTCP
    /// meets Reno's response function, or the 10^-3 of RFC 3649, section 5.
    pub low_p: f64,
    pub(crate) window: AimdParams,
}

impl Default for HstcpParams {
    fn default() -> Self {
        Self { aw: AwMode::TableFloor, low_p: LOW_P, window: AimdParams::default() }
    }
}

/// `aw`, among the parameters `C`.
pub(crate) const fn aw<C: AsRef<HstcpParams> + AsMut<HstcpParams>>() -> Key<C> {
    Key::choice(
        "aw",
        &["loglog", "rfc", "table-floor", "table-ceil"],
        "where HSTCP's a(w) comes from: formula, rounded formula, or table read down or up",
        |it| it.as_ref().aw as usize,
        |it, at| it.as_mut().aw = MODES[at],
    )
}

/// `low_p`, among the parameters `C`.
pub(crate) const fn low_p<C: AsMut<HstcpParams>>() -> Key<C> {
    Key::number("low_p", 1e-4..=1e-2, "HSTCP's loss rate at 38 segments with aw=loglog", |it| {
        &mut it.as_mut().low_p
    })
}

impl Keyed for HstcpParams {
    const KEYS: &'static [Key<Self>] = &[aw(), low_p(), max_ssthresh(), hystart(), rto()];
}

impl AsRef<Self> for HstcpParams {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsMut<Self> for HstcpParams {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl AsRef<AimdParams> for HstcpParams {
    fn as_ref(&self) -> &AimdParams {
        &self.window
    }
}

impl AsMut<AimdParams> for HstcpParams {
    fn as_mut(&mut self) -> &mut AimdParams {
        &mut self.window
    }
}
