//! Proportional Rate Reduction (RFC 9937, section 6): in fast recovery, how much may be sent for
//! what has arrived.
//!
//! While the flight exceeds the congestion control's window, data is sent in the proportion of that
//! window to the flight at the start, so that the flight shrinks to it over one round trip instead
//! of pausing first. Once the flight is smaller, as after heavy losses, no more is sent than
//! arrived (PRR-CRB), or one segment more per ACK that shows progress and no further loss
//! (PRR-SSRB).
//!
//! The window itself stays that of the congestion control: PRR only limits how much of it may be
//! used. RFC 9937's `ssthresh` is that window, `cwnd` is [`Prr::window`].

/// The state of one recovery, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prr {
    /// RecoverFS: what was in flight at the start, at least 1.
    recover_fs: u64,
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    out: u64,
    /// The flight up to which data may be sent: inflight + SndCnt of the last ACK.
    window: u64,
}

/// The facts of an ACK in recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// DeliveredData: bytes that this ACK newly reports.
    pub(crate) delivered: u32,
    /// SafeACK: SND.UNA advanced, and no further loss was found.
    pub(crate) safe: bool,
    /// `inflight` after the ACK.
    pub(crate) inflight: u32,
    /// The congestion control's window.
    pub(crate) target: u64,
    pub(crate) smss: u32,
}

impl Prr {
    /// Recovery starts with `recover_fs` bytes not known to have arrived before this ACK,
    /// `inflight` of them still in the network.
    pub(crate) fn new(recover_fs: u32, inflight: u32) -> Self {
        Self { recover_fs: u64::from(recover_fs).max(1), delivered: 0, out: 0, window: u64::from(inflight) }
    }

    /// Bytes that may be in flight.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// An ACK in recovery, including the one that started it.
    pub(crate) fn on_ack(&mut self, ack: &Progress) {
        if ack.delivered == 0 {
            return;
        }
        let (delivered, inflight, smss) =
            (u64::from(ack.delivered), u64::from(ack.inflight), u64::from(ack.smss));
        self.delivered += delivered;
        let count = if inflight > ack.target {
            // In 128 bits: the factors, a peer's window and a stream's length, are only bounded by
            // 2^64.
            let share =
                (u128::from(self.delivered) * u128::from(ack.target)).div_ceil(u128::from(self.recover_fs));
            u64::try_from(share).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            let mut count = self.delivered.saturating_sub(self.out).max(delivered);
            if ack.safe {
                count += smss;
            }
            count.min(ack.target - inflight)
        };
        // The first retransmission of a recovery is always sent.
        let count = if self.out == 0 && count == 0 { smss } else { count };
        self.window = inflight.saturating_add(count);
    }

    /// `bytes` were sent, new or retransmitted.
    pub(crate) fn on_sent(&mut self, bytes: u32) {
        self.out += u64::from(bytes);
    }

    /// `bytes` left the flight because they are lost, not because they arrived: nothing may be sent
    /// for them.
    pub(crate) fn on_lost(&mut self, bytes: u32) {
        self.window = self.window.saturating_sub(u64::from(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Prr};

    const SMSS: u32 = 1_000;

    /// A recovery of packets, one per line of the tables of RFC 6937, section 4: `pipe` and what
    /// leaves per ACK.
    struct Run {
        prr: Prr,
        pipe: u32,
        target: u32,
    }

    impl Run {
        /// One segment arrives, and what may leave does. Segments sent.
        fn ack(&mut self, safe: bool) -> u32 {
            self.pipe -= SMSS;
            self.prr.on_ack(&Progress {
                delivered: SMSS,
                safe,
                inflight: self.pipe,
                target: u64::from(self.target),
                smss: SMSS,
            });
            self.send()
        }

        fn send(&mut self) -> u32 {
            let mut sent = 0;
            while u64::from(self.pipe + SMSS) <= self.prr.window() {
                self.prr.on_sent(SMSS);
                self.pipe += SMSS;
                sent += 1;
            }
            sent
        }
    }

    /// 20 segments in flight, the first lost, ssthresh 10: every second ACK lets a segment go, and
    /// the flight ends at ssthresh. RecoverFS counts what the first three ACKs SACKed no more than
    /// the triggering one.
    #[test]
    fn light_loss_sends_in_proportion() {
        // Two SACKed before; the third ACK begins: 20 - 3 + 1, of which one is lost and one has
        // just arrived.
        let mut run = Run { prr: Prr::new(18 * SMSS, 16 * SMSS), pipe: 17 * SMSS, target: 10 * SMSS };
        let sent: u32 = (0..17).map(|_| run.ack(true)).sum();
        assert!((9..=10).contains(&sent), "{sent}");
        assert!(run.pipe <= 10 * SMSS && run.pipe >= 9 * SMSS, "{}", run.pipe);
    }

    #[test]
    fn proportion_is_exact_over_time() {
        let mut prr = Prr::new(100_000, 100_000);
        let mut inflight = 100_000;
        for i in 1..=40 {
            inflight -= 700;
            prr.on_ack(&Progress { delivered: 700, safe: false, inflight, target: 70_000, smss: SMSS });
            // ceil(700 i * 0.7)
            let out = u64::from(490 * i as u32);
            let room = prr.window() - u64::from(inflight);
            assert_eq!(prr.out + room, out);
            prr.on_sent(room as u32);
            inflight += room as u32;
        }
    }

    /// 15 of 20 are lost: with five in flight, far below ssthresh, each ACK lets two segments go if
    /// it is safe, and one if not.
    #[test]
    fn heavy_loss_is_bounded_by_what_arrives() {
        let start = || Run { prr: Prr::new(20 * SMSS, 5 * SMSS), pipe: 5 * SMSS, target: 10 * SMSS };
        let mut run = start();
        assert_eq!((0..4).map(|_| run.ack(true)).collect::<std::vec::Vec<_>>(), [2, 2, 2, 2], "slow start");
        let mut run = start();
        assert_eq!(
            (0..4).map(|_| run.ack(false)).collect::<std::vec::Vec<_>>(),
            [1, 1, 1, 1],
            "conservation"
        );
    }

    #[test]
    fn never_beyond_the_target_from_below() {
        let mut run = Run { prr: Prr::new(20 * SMSS, 5 * SMSS), pipe: 5 * SMSS, target: 8 * SMSS };
        for _ in 0..50 {
            run.ack(true);
            assert!(run.pipe <= 8 * SMSS);
        }
        assert_eq!(run.pipe, 8 * SMSS);
    }

    /// While the path is silent and then reports much at once, what was not used is made up for.
    #[test]
    fn unused_credit_is_kept() {
        let mut prr = Prr::new(20_000, 20_000);
        prr.on_ack(&Progress { delivered: 10_000, safe: false, inflight: 4_000, target: 10_000, smss: SMSS });
        assert_eq!(prr.window(), 10_000, "10 have arrived, 6 fit");
    }

    #[test]
    fn the_first_retransmission_always_leaves() {
        let mut prr = Prr::new(20_000, 10_000);
        prr.on_ack(&Progress { delivered: 1, safe: false, inflight: 10_000, target: 10_000, smss: SMSS });
        assert_eq!(prr.window(), 11_000);
    }

    #[test]
    fn losses_open_no_window() {
        let mut prr = Prr::new(20_000, 20_000);
        prr.on_ack(&Progress { delivered: 2_000, safe: true, inflight: 17_000, target: 10_000, smss: SMSS });
        assert_eq!(prr.window(), 18_000);
        prr.on_lost(5_000);
        assert_eq!(prr.window(), 13_000);
        prr.on_ack(&Progress { delivered: 0, safe: true, inflight: 12_000, target: 10_000, smss: SMSS });
        assert_eq!(prr.window(), 13_000, "an ACK that reports nothing changes nothing");
    }
}
