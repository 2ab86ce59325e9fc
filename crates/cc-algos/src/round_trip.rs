//! Round trips, told apart by sequence numbers.

use ackline_tcp_core::policy::cc::FlowView;
use ackline_tcp_core::seq::SeqNum;

/// The round trip under way: it ends when data is acknowledged that left after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    /// SND.NXT at its beginning; `None` before the first one.
    end: Option<SeqNum>,
}

impl RoundTrip {
    /// An ACK arrived. True if it ends a round trip; the next one begins.
    pub(crate) fn ends(&mut self, view: &FlowView) -> bool {
        let ended = self.end.map(|end| view.snd_una.gt(end));
        if ended != Some(false) {
            self.end = Some(view.snd_nxt);
        }
        ended == Some(true)
    }
}
