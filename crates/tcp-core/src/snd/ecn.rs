//! ECN at the sender: what ECE does, once per window of data, and the CWR that tells of it.
//!
//! ```text
//!   ECE ──► reduction, unless one was made in this window (RFC 3168, section 6.1.2)
//!             └──► until = SND.NXT; CWR on the next new data
//!   ECE for data before `until` is not heard; that on the first ACK beyond it answers the segment with CWR
//! ```
//!
//! Loss and timeouts reduce the window too: they begin such a window as well, and loss within one that ECE began does
//! not reduce again. Congestion control that takes every ACK ([`EcnUse::PerAck`]) keeps that account itself.

use super::Sender;
use super::on_ack::Tagged;
use crate::config::Ecn;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::cc::{CongestionEvent, EcnUse};
use crate::seq::SeqNum;

/// What the sender of a connection that uses ECN remembers.
#[derive(Debug)]
pub(crate) struct EcnSender {
    /// Segments with ECE received.
    pub(super) ece_received: u64,
    /// Wire segments delivered whose ACK said ECE.
    pub(super) delivered_ce: u64,
    /// SND.NXT at the last reduction, or just before SND.UNA.
    until: SeqNum,
    /// New data is ECN-capable.
    pub(crate) capable: bool,
    /// The next new data carries CWR.
    pub(crate) cwr_due: bool,
}

/// What the handshake agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Classic or DCTCP.
    pub(crate) mode: Ecn,
    /// This side may set ECT (RFC 3168, section 6.1.1).
    pub(crate) capable: bool,
}

impl EcnSender {
    pub(super) const fn new(agreed: Agreed, una: SeqNum) -> Self {
        Self {
            ece_received: 0,
            delivered_ce: 0,
            until: SeqNum(una.0.wrapping_sub(1)),
            capable: agreed.capable,
            cwr_due: false,
        }
    }

    /// SND.UNA moved: the mark stays within half the sequence space of it.
    pub(super) fn on_advance(&mut self, una: SeqNum) {
        self.until = self.until.max(una - 1);
    }

    fn on_reduction(&mut self, nxt: SeqNum) {
        self.until = nxt;
        self.cwr_due = true;
    }
}

impl Sender {
    /// What ECN puts into outgoing data; `None` where ECN is not in use.
    pub(crate) fn ecn(&self) -> Option<&EcnSender> {
        self.ecn.as_deref()
    }

    /// An ACK that is not older than SND.UNA was said ECE.
    pub(super) fn on_ece(&mut self, ctx: &mut Ctx<'_>, tagged: &Tagged) {
        let una = self.snd_una;
        let in_episode = self.flight.as_deref().is_some_and(|flight| flight.recovery.in_episode());
        let mut view = self.flow_view(ctx.now);
        view.cwnd_limited = tagged.cwnd_limited;
        let (Some(ecn), Some(cc)) = (self.ecn.as_deref_mut(), self.cc.as_deref_mut()) else { return };
        let delivered = u64::from(tagged.covered.segments);
        ecn.ece_received += 1;
        ecn.delivered_ce += delivered;
        ctx.counters.tcp_delivered_ce += delivered;
        // The ACK of `until` itself still answers data from before the segment with CWR.
        if in_episode || una.le(ecn.until) || cc.decision().ecn == EcnUse::PerAck {
            return;
        }
        cc.on_congestion(&view, &CongestionEvent::Ecn);
        self.on_ecn_reduction(ctx);
    }

    /// Congestion control reduced its window because of ECE.
    pub(super) fn on_ecn_reduction(&mut self, ctx: &mut Ctx<'_>) {
        let until = self.snd_nxt;
        if self.ecn.is_some() {
            ctx.counters.tcp_ecn_reductions += 1;
            ctx.trace(|| TraceEvent::EcnReduced { until });
            self.on_reduction();
        }
    }

    /// The window was reduced, for whatever reason: RFC 3168, section 6.1.2, has CWR sent for each.
    pub(crate) fn on_reduction(&mut self) {
        let nxt = self.snd_nxt;
        if let Some(ecn) = self.ecn.as_deref_mut() {
            ecn.on_reduction(nxt);
        }
    }

    /// The window was reduced already since what is lost had left, and congestion control leaves that account to the
    /// core.
    pub(super) fn is_reduced_for_ecn(&self) -> bool {
        let Some(ecn) = self.ecn.as_deref() else { return false };
        self.snd_una.lt(ecn.until)
            && self.cc.as_deref().is_some_and(|cc| cc.decision().ecn == EcnUse::PerWindow)
    }
}
