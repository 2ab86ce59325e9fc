//! What a handshake has agreed on for ECN.

use crate::config::Ecn;
use crate::wire;

/// What the handshake agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EcnAgreement {
    pub(crate) mode: Ecn,
    /// This side may set ECT (RFC 3168, section 6.1.1).
    pub(crate) capable: bool,
    /// Accurate ECN: what the peer's ACE says is ignored (RFC 9768, section 3.2.2.4).
    pub(crate) deaf: bool,
    /// Accurate ECN: ACE of the segment that completed the handshake is no counter.
    pub(crate) is_code: bool,
    /// Accurate ECN: marked packets that the peer has counted, from 5 on.
    pub(crate) delivered: u32,
    /// Accurate ECN: marked packets that this side has counted, from 5 on.
    pub(crate) received: u32,
    /// Accurate ECN: the codepoint of the SYN-ACK, of which our next ACK must tell.
    pub(crate) echo: Option<wire::Ecn>,
    /// Accurate ECN: our SYN or SYN-ACK was ECN-capable, and was marked.
    pub(crate) syn_marked: bool,
    /// Accurate ECN: the segment that completed the handshake had the option.
    pub(crate) option_seen: bool,
}

/// Where the counters of marked packets start (RFC 9768, section 3.2.1): not at 0, so that a
/// middlebox that clears ACE is found.
pub(in crate::snd) const FIRST_COUNT: u32 = 5;

impl EcnAgreement {
    /// On `mode`; `capable`: this side may set ECT.
    pub(crate) const fn new(mode: Ecn, capable: bool) -> Self {
        Self {
            mode,
            capable,
            deaf: false,
            is_code: false,
            delivered: FIRST_COUNT,
            received: FIRST_COUNT,
            echo: None,
            syn_marked: false,
            option_seen: false,
        }
    }
}
