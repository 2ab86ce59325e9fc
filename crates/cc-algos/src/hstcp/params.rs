//! The parameters of HSTCP.

use super::response::LOW_P;
use crate::aimd::{HYSTART, MAX_SSTHRESH, RTO};
use ackline_tcp_core::policy::SpecError;
use ackline_tcp_core::policy::spec::{Param, ParamInfo};

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
}

impl Default for HstcpParams {
    fn default() -> Self {
        Self { aw: AwMode::TableFloor, low_p: LOW_P }
    }
}

/// `aw` in tables.
pub(crate) const AW: ParamInfo = ParamInfo {
    name: "aw",
    default: "table-floor",
    range: "loglog|rfc|table-floor|table-ceil",
    summary: "where HSTCP's a(w) comes from: formula, rounded formula, or table read down or up",
};

/// `low_p` in tables.
pub(crate) const LOW_P_INFO: ParamInfo = ParamInfo {
    name: "low_p",
    default: "0.001038781163434903",
    range: "0.0001..0.01",
    summary: "HSTCP's loss rate at 38 segments with aw=loglog",
};

impl HstcpParams {
    /// The parameters of `hstcp`.
    pub const TABLE: &[ParamInfo] = &[AW, LOW_P_INFO, MAX_SSTHRESH, HYSTART, RTO];

    /// Sets one parameter; `None` if the key is not one of these.
    pub(crate) fn set(&mut self, param: &Param<'_>) -> Result<Option<()>, SpecError> {
        match param.key() {
            "aw" => {
                let choice = param.choice(&["loglog", "rfc", "table-floor", "table-ceil"])?;
                self.aw = MODES.get(choice).copied().unwrap_or(self.aw);
            }
            "low_p" => self.low_p = param.number(1e-4..=1e-2)?,
            _ => return Ok(None),
        }
        Ok(Some(()))
    }
}
