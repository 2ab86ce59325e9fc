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

pub(crate) mod accecn;
pub(crate) mod agreement;

use crate::config::Ecn;
use crate::seq::SeqNum;
use accecn::Feedback;
use agreement::EcnAgreement;

/// The sender's ECN state.
#[derive(Debug)]
pub(crate) struct EcnSender {
    /// What both sides agreed on.
    pub(super) mode: Ecn,
    /// Segments with ECE received; with accurate ECN, ACKs that told of marks.
    pub(super) ece_received: u64,
    /// Wire segments delivered whose ACK carried ECE; with accurate ECN, those that were marked.
    pub(super) delivered_ce: u64,
    /// SND.NXT at the last reduction, or just before SND.UNA.
    pub(super) until: SeqNum,
    /// New data is ECN-capable.
    pub(crate) capable: bool,
    /// The next new data carries CWR.
    pub(crate) cwr_due: bool,
    /// What the peer has told by accurate ECN, if that is in use.
    pub(super) accurate: Option<Feedback>,
}

impl EcnSender {
    pub(super) fn new(agreed: &EcnAgreement, una: SeqNum) -> Self {
        Self {
            mode: agreed.mode,
            ece_received: 0,
            delivered_ce: 0,
            until: SeqNum(una.0.wrapping_sub(1)),
            capable: agreed.capable,
            cwr_due: false,
            accurate: (agreed.mode == Ecn::Accurate).then(|| Feedback::new(agreed)),
        }
    }

    /// SND.UNA moved: keeps the mark within half the sequence space of it.
    pub(super) fn on_advance(&mut self, una: SeqNum) {
        self.until = self.until.max(una - 1);
    }

    pub(super) fn on_reduction(&mut self, nxt: SeqNum) {
        self.until = nxt;
        // RFC 9768, section 3.1.5: with accurate ECN the bit is part of a counter.
        self.cwr_due = self.accurate.is_none();
    }
}
