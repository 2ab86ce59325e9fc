//! Departures in order of time: which record that is still in the network left first.

use super::Scoreboard;
use crate::seq::SeqNum;
use crate::time::Instant;

/// A departure, as long as something of it may be in the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) start: SeqNum,
    pub(super) end: SeqNum,
    pub(super) at: Instant,
}

impl Scoreboard {
    /// Index of the record that left first of those in the network. Drops departures that are not
    /// there any more.
    pub(super) fn oldest_in_network(&mut self) -> Option<usize> {
        while let Some(&departure) = self.order.as_ref()?.front() {
            let mut i = self.index_of(departure.start);
            while let Some(record) = self.records.get(i)
                && record.start.lt(departure.end)
            {
                if record.stamp.sent_at == departure.at && record.in_network() {
                    let start = record.start;
                    if let Some(front) = self.order.as_mut()?.front_mut() {
                        front.start = front.start.max(start);
                    }
                    return Some(i);
                }
                i += 1;
            }
            self.order.as_mut()?.pop_front();
        }
        None
    }

    /// Makes the queue of departures anew, after tags were cleared.
    pub(super) fn reorder(&mut self) {
        self.count(self.records.len());
        let Some(order) = &mut self.order else { return };
        order.clear();
        let in_network = self.records.iter().filter(|record| record.in_network());
        order.extend(in_network.map(|record| Departure {
            start: record.start,
            end: record.end,
            at: record.stamp.sent_at,
        }));
        let Some(first) = order.front().map(|departure| departure.start) else { return };
        order
            .make_contiguous()
            .sort_unstable_by_key(|departure| (departure.at, departure.start.distance_from(first)));
    }
}
