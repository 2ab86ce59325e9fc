//! The peer's receive window (RFC 9293, section 3.10.7.4).

pub(in crate::snd) mod wait;

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

/// The window that a segment announces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowUpdate {
    /// SEG.SEQ.
    pub(crate) seq: SeqNum,
    /// SEG.ACK.
    pub(crate) ack: SeqNum,
    /// SEG.WND, scaled, in bytes.
    pub(crate) wnd: u32,
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

    /// Takes the window of an acceptable segment, unless an older one overtook a newer one. `una`
    /// is SND.UNA before the segment counts.
    ///
    /// Two rules go beyond RFC 9293. An ACK of new data is never old (Linux,
    /// `tcp_may_update_window`). And to a segment at RCV.NXT, SND.WL1 is at most that: by the
    /// letter, after one segment with a sequence number ahead, forged or sent before a loss, no ACK
    /// of a peer that has nothing to send could open the window again.
    pub(crate) fn update(&mut self, update: &WindowUpdate, una: SeqNum, rcv_nxt: SeqNum) {
        let WindowUpdate { seq, ack, wnd } = *update;
        let wl1 = if seq == rcv_nxt { self.wl1.min(rcv_nxt) } else { self.wl1 };
        let newer = ack.gt(una) || wl1.lt(seq) || (wl1 == seq && self.wl2.le(ack));
        if newer {
            self.wnd = wnd;
            self.max = self.max.max(wnd);
            self.wl1 = seq;
            self.wl2 = ack;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PeerWindow, WindowUpdate};
    use crate::seq::SeqNum;

    const UNA: SeqNum = SeqNum(500);
    const RCV_NXT: SeqNum = SeqNum(u32::MAX - 9);

    /// The window after `updates`, each a segment so far from RCV.NXT, so far from SND.UNA, with a
    /// window.
    fn after(updates: &[(i32, i32, u32)]) -> u32 {
        let mut window = PeerWindow::new(1_000, RCV_NXT, UNA);
        for &(seq, ack, wnd) in updates {
            let at = |base: SeqNum, offset: i32| SeqNum(base.0.wrapping_add_signed(offset));
            window.update(&WindowUpdate { seq: at(RCV_NXT, seq), ack: at(UNA, ack), wnd }, UNA, RCV_NXT);
        }
        window.wnd()
    }

    #[test]
    fn an_older_segment_does_not_change_the_window() {
        assert_eq!(after(&[(0, 0, 2_000)]), 2_000, "the same numbers");
        assert_eq!(after(&[(-1, 0, 2_000)]), 1_000, "an older sequence number");
        assert_eq!(after(&[(0, -1, 2_000)]), 1_000, "an older acknowledgment");
        assert_eq!(after(&[(5, -1, 2_000)]), 2_000, "a newer sequence number");
    }

    #[test]
    fn an_ack_of_new_data_is_never_old() {
        assert_eq!(after(&[(20, 0, 0), (-1, 1, 2_000)]), 2_000);
    }

    #[test]
    fn a_sequence_number_ahead_does_not_freeze_the_window() {
        assert_eq!(after(&[(5_000, 0, 0), (0, 0, 3_000)]), 3_000);
        assert_eq!(after(&[(5_000, 0, 0), (-1, 0, 3_000)]), 0, "what is old stays old");
        assert_eq!(after(&[(5_000, 0, 0), (1, 0, 3_000)]), 0, "and what overtook it");
        assert_eq!(after(&[(5_000, 10, 0), (0, 9, 3_000)]), 3_000, "for 9 is new, too");
        assert_eq!(after(&[(5_000, 0, 0), (0, -1, 3_000)]), 0, "an older acknowledgment");
    }
}
