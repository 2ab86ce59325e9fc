//! The peer's receive window (RFC 9293, section 3.10.7.4).

use crate::seq::SeqNum;

/// SND.WND and what decides about its updates.
#[derive(Debug)]
pub(crate) struct PeerWindow {
    /// SND.WND, scaled, in bytes.
    wnd: u32,
    /// The largest window seen: MAX.SND.WND of RFC 5961, section 5.2, and of the SWS rule.
    max: u32,
    /// SND.WL1: sequence number of the last update.
    wl1: SeqNum,
    /// SND.WL2: acknowledgment number of the last update.
    wl2: SeqNum,
}

impl PeerWindow {
    pub(crate) const fn new(wnd: u32, wl1: SeqNum, wl2: SeqNum) -> Self {
        Self { wnd, max: wnd, wl1, wl2 }
    }

    pub(crate) const fn wnd(&self) -> u32 {
        self.wnd
    }

    pub(crate) const fn max(&self) -> u32 {
        self.max
    }

    /// Takes the window of an acceptable segment, unless an older one overtook a newer one.
    pub(crate) fn update(&mut self, seq: SeqNum, ack: SeqNum, wnd: u32) {
        let newer = self.wl1.lt(seq) || (self.wl1 == seq && self.wl2.le(ack));
        if newer {
            self.wnd = wnd;
            self.max = self.max.max(wnd);
            self.wl1 = seq;
            self.wl2 = ack;
        }
    }
}
