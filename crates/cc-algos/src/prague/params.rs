//! Prague's parameters.

use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::ParamInfo;
use ackline_tcp_core::policy::{Params, SpecError};

/// What is done about a queue that seems to mark as RFC 3168 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassicQueue {
    /// Nothing.
    Off,
    /// It is reported.
    Detect,
    /// Marks are answered with at least five eighths of what NewReno does.
    Fallback,
}

/// Parameters of [`Prague`](super::Prague).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PragueParams {
    /// The share of marked bytes begins at 1, so that the first mark halves (draft, section 2.3.2);
    /// otherwise at 0 (Linux).
    pub alpha0: bool,
    /// Rounds after slow start until growth follows the virtual round trip (section 2.4.4: 500).
    pub transition: u32,
    /// The least virtual round trip, 0 to 1 s (section 2.4.4: 25 ms).
    pub virtual_rtt: Duration,
    /// Data is sent with ECT(1). Without, queues must be the network's own, as for DCTCP (section
    /// 2.2).
    pub ect1: bool,
    /// What is done about a classic queue.
    pub classic: ClassicQueue,
    /// Bytes of growth per round trip; 0: a segment (the draft; Linux: 1,500).
    pub ai_bytes: u32,
}

impl Default for PragueParams {
    fn default() -> Self {
        Self {
            alpha0: true,
            transition: 500,
            virtual_rtt: Duration::from_millis(25),
            ect1: true,
            classic: ClassicQueue::Detect,
            ai_bytes: 0,
        }
    }
}

impl PragueParams {
    /// The parameters of [`Self::with`].
    pub const TABLE: &[ParamInfo] = &[
        ParamInfo {
            name: "alpha0",
            default: "1",
            range: "0, 1",
            summary: "estimate of the share of marked data to begin with",
        },
        ParamInfo {
            name: "transition",
            default: "500",
            range: "0..1000000",
            summary: "rounds after slow start until growth follows the virtual round trip",
        },
        ParamInfo {
            name: "virtual_rtt",
            default: "25ms",
            range: "0s..1s",
            summary: "shorter round trips count as this",
        },
        ParamInfo {
            name: "ect",
            default: "1",
            range: "0, 1",
            summary: "codepoint of data: 0 for networks of one's own",
        },
        ParamInfo {
            name: "classic",
            default: "detect",
            range: "off, detect, fallback",
            summary: "a queue that marks late: not looked for, reported, or answered as it expects",
        },
        ParamInfo {
            name: "ai_bytes",
            default: "smss",
            range: "smss, 1..65535",
            summary: "growth per round trip",
        },
    ];

    /// The same with the given changes.
    ///
    /// # Errors
    /// Names the parameter that is unknown or out of range.
    pub fn with(mut self, params: &Params) -> Result<Self, SpecError> {
        for param in params.iter() {
            match param.key() {
                "alpha0" => self.alpha0 = param.choice(&["0", "1"])? == 1,
                "transition" => self.transition = param.integer(0..=1_000_000)? as u32,
                "virtual_rtt" => {
                    self.virtual_rtt = param.duration(Duration::ZERO..=Duration::from_secs(1))?;
                }
                "ect" => self.ect1 = param.choice(&["0", "1"])? == 1,
                "classic" => {
                    self.classic = match param.choice(&["off", "detect", "fallback"])? {
                        0 => ClassicQueue::Off,
                        1 => ClassicQueue::Detect,
                        _ => ClassicQueue::Fallback,
                    };
                }
                "ai_bytes" if param.text() == "smss" => self.ai_bytes = 0,
                "ai_bytes" => self.ai_bytes = param.integer(1..=65_535)? as u32,
                _ => return Err(param.unknown("prague", Self::TABLE)),
            }
        }
        Ok(self)
    }
}
