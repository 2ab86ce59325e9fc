//! How much arrives in a round trip: what the sender has outstanding, seen without a sampling.
//!
//! Data that arrives within a round trip after an ACK left cannot be an answer to that ACK, so all
//! of it was outstanding at once. It is less than MUDS if the application writes less than the
//! sender could send.

use ackline_tcp_core::policy::ack::RecvView;
use ackline_tcp_core::{Duration, Instant, SeqNum};

/// The arrivals of the last round trip.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// When the current round trip began, and RCV.NXT at that time.
    began: Option<(Instant, SeqNum)>,
    /// In-order bytes of the last complete one; 0 before the first.
    bytes: u32,
}

impl Flow {
    /// In-order data arrived; RCV.NXT has moved.
    pub(super) fn on_data(&mut self, view: &RecvView, rtt: Duration) {
        let Some((began, from)) = self.began else {
            self.began = Some((view.now, view.rcv_nxt));
            return;
        };
        let elapsed = view.now.since(began).as_nanos();
        if elapsed < rtt.as_nanos() {
            return;
        }
        let arrived = u64::from(view.rcv_nxt.saturating_distance_from(from));
        // The first arrival after a pause closes a round that was longer than a round trip.
        let share = u128::from(arrived) * u128::from(rtt.as_nanos()) / u128::from(elapsed.max(1));
        self.bytes = u32::try_from(share).unwrap_or(u32::MAX);
        self.began = Some((view.now, view.rcv_nxt));
    }

    /// In-order bytes per round trip; 0 before the end of the first.
    pub(super) const fn per_round_trip(&self) -> u32 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_count_per_round_trip() {
        let mut flow = Flow::default();
        let mut view = RecvView::new(Instant::ZERO, SeqNum(u32::MAX - 1_500), 64_000, 1_000);
        let rtt = Duration::from_millis(10);
        let found: std::vec::Vec<u32> =
            [(0, 1_000), (5, 1_000), (9, 1_000), (10, 1_000), (30, 2_000), (40, 500)]
                .iter()
                .map(|&(ms, len)| {
                    view.now = Instant::from_millis(ms);
                    view.rcv_nxt += len;
                    flow.on_data(&view, rtt);
                    flow.per_round_trip()
                })
                .collect();
        // 3000 bytes after the first arrival; then 2000 in two round trips; then 500 in one.
        assert_eq!(found, [0, 0, 0, 3_000, 1_000, 500]);
    }
}
