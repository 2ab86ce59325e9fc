//! ECN at the sender: the effect of ECE, once per window of data, and the CWR that reports it.
//!
//! ```text
//!   ECE ──► reduction, unless one was made in this window (RFC 3168, section 6.1.2)
//!             └──► until = SND.NXT; CWR on the next new data
//!   ECE for data before `until` is not heard; that on the first ACK beyond it answers the segment with CWR
//! ```
//!
//! Loss and timeouts reduce the window too: they also start such a window, and a loss within one
//! started by ECE causes no further reduction. Congestion control that handles every ACK
//! ([`EcnUse::PerAck`](crate::policy::cc::EcnUse::PerAck)) keeps that account itself.

use crate::config::Ecn;
use crate::seq::SeqNum;

/// The sender's ECN state.
#[derive(Debug)]
pub(crate) struct EcnSender {
    /// Segments with ECE received.
    pub(super) ece_received: u64,
    /// Wire segments delivered whose ACK carried ECE.
    pub(super) delivered_ce: u64,
    /// SND.NXT at the last reduction, or just before SND.UNA.
    pub(super) until: SeqNum,
    /// New data is ECN-capable.
    pub(crate) capable: bool,
    /// The next new data carries CWR.
    pub(crate) cwr_due: bool,
}

/// What the handshake agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EcnAgreement {
    /// Classic or DCTCP.
    pub(crate) mode: Ecn,
    /// This side may set ECT (RFC 3168, section 6.1.1).
    pub(crate) capable: bool,
}

impl EcnSender {
    pub(super) const fn new(agreed: EcnAgreement, una: SeqNum) -> Self {
        Self {
            ece_received: 0,
            delivered_ce: 0,
            until: SeqNum(una.0.wrapping_sub(1)),
            capable: agreed.capable,
            cwr_due: false,
        }
    }

    /// SND.UNA moved: keeps the mark within half the sequence space of it.
    pub(super) fn on_advance(&mut self, una: SeqNum) {
        self.until = self.until.max(una - 1);
    }

    pub(super) fn on_reduction(&mut self, nxt: SeqNum) {
        self.until = nxt;
        self.cwr_due = true;
    }
}
