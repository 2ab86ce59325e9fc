//! What an egress scheduler was given and has not handed back.
//!
//! A scheduler is a plug-in and may be wrong: say that it has nothing, hand a packet out twice, or
//! name one that it was never given. So whoever asks it keeps this list, and believes the list.
//!
//! ```text
//!   serial     4     7     8     11    12          pushed in this order
//!            [ D ] [ · ] [ D ] [ · ] [ D ]         · was taken
//!              ▲
//!            the oldest, never taken
//! ```
//!
//! Serial numbers increase, so an entry is found by bisection, and the oldest at once. An entry
//! that was taken stays as a gap until those before it are gone, or until there are more gaps than
//! packets: a call costs O(log n), and the list is at most about twice as long as what is queued.

use super::sched::{Backlog, Descriptor};
use crate::ConnId;
use alloc::collections::VecDeque;

/// Gaps that are not worth the work of closing them.
const FEW_GAPS: usize = 64;

/// The packets that an egress scheduler holds, as whoever pushed them knows it.
///
/// Call [`push`](Self::push) with each packet that is pushed to the scheduler, and
/// [`take`](Self::take) with the serial number of each that it pops or forgets.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By serial number; the first one was not taken.
    entries: VecDeque<Entry>,
    held: Backlog,
}

#[derive(Debug)]
struct Entry {
    packet: Descriptor,
    taken: bool,
}

impl Ledger {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: VecDeque::new(), held: Backlog { packets: 0, bytes: 0 } }
    }

    /// The scheduler was given `packet`, whose serial number is larger than all before.
    #[inline]
    pub fn push(&mut self, packet: Descriptor) {
        debug_assert!(self.entries.back().is_none_or(|last| last.packet.id.serial < packet.id.serial));
        self.held.packets += 1;
        self.held.bytes += u64::from(packet.len);
        self.entries.push_back(Entry { packet, taken: false });
    }

    /// Takes the packet with this serial number, as it was pushed; `None` if the scheduler does not
    /// have it.
    #[inline]
    pub fn take(&mut self, serial: u64) -> Option<Descriptor> {
        let place = match self.entries.front() {
            Some(first) if first.packet.id.serial == serial => 0,
            _ => self.entries.binary_search_by_key(&serial, |entry| entry.packet.id.serial).ok()?,
        };
        let entry = self.entries.get_mut(place).filter(|entry| !entry.taken)?;
        entry.taken = true;
        let packet = entry.packet;
        self.left(&packet);
        self.close_gaps();
        Some(packet)
    }

    /// Takes the packet that was pushed first of those that are left.
    pub fn take_oldest(&mut self) -> Option<Descriptor> {
        let serial = self.entries.front()?.packet.id.serial;
        self.take(serial)
    }

    /// Takes the packets of a connection, of which there are at most `most`. Costs a walk over the
    /// list until so many are found.
    pub fn take_conn(&mut self, conn: ConnId, most: usize) {
        let mut gone = Backlog::default();
        for Entry { packet, taken } in &mut self.entries {
            if gone.packets == most {
                break;
            }
            if packet.conn == Some(conn) && !*taken {
                *taken = true;
                gone.packets += 1;
                gone.bytes += u64::from(packet.len);
            }
        }
        self.held.packets -= gone.packets;
        self.held.bytes -= gone.bytes;
        self.close_gaps();
    }

    /// What the scheduler holds.
    #[must_use]
    pub const fn held(&self) -> Backlog {
        self.held
    }

    /// True if the scheduler holds nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.held.packets == 0
    }

    /// Number of packets that the scheduler holds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.held.packets
    }

    /// Bytes of memory that the list needs.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.entries.len() * size_of::<Entry>()
    }

    fn left(&mut self, packet: &Descriptor) {
        self.held.packets -= 1;
        self.held.bytes -= u64::from(packet.len);
    }

    fn close_gaps(&mut self) {
        while self.entries.front().is_some_and(|first| first.taken) {
            self.entries.pop_front();
        }
        if self.entries.len() > 2 * self.held.packets + FEW_GAPS {
            self.entries.retain(|entry| !entry.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeqNum;
    use crate::policy::sched::{DescriptorId, SegmentClass};

    fn packet(serial: u64, conn: u32) -> Descriptor {
        let id = DescriptorId::new(serial, SeqNum(0), 60);
        Descriptor::new(id, Some(ConnId::for_test(conn, 0)), SegmentClass::Data, 100)
    }

    fn with(serials: impl IntoIterator<Item = u64>) -> Ledger {
        let mut ledger = Ledger::new();
        for serial in serials {
            ledger.push(packet(serial, serial as u32 % 3));
        }
        ledger
    }

    #[test]
    fn each_packet_is_taken_once() {
        let mut ledger = with([3, 5, 6, 9]);
        assert_eq!(ledger.take(4), None);
        assert_eq!(ledger.take(6), Some(packet(6, 0)));
        assert_eq!(ledger.take(6), None);
        assert_eq!(ledger.take_oldest(), Some(packet(3, 0)));
        assert_eq!(ledger.take(3), None);
        assert_eq!(ledger.held(), Backlog { packets: 2, bytes: 200 });
        assert_eq!((ledger.take(9), ledger.take_oldest()), (Some(packet(9, 0)), Some(packet(5, 2))));
        assert!(ledger.is_empty() && ledger.take_oldest().is_none() && ledger.memory() == 0);
    }

    #[test]
    fn a_connection_takes_its_packets_along() {
        let mut ledger = with(0..9);
        ledger.take(4);
        ledger.take_conn(ConnId::for_test(1, 0), 2);
        assert_eq!(ledger.held(), Backlog { packets: 6, bytes: 600 });
        assert_eq!((ledger.take(1), ledger.take(7)), (None, None));
        ledger.take_conn(ConnId::for_test(0, 0), 1);
        assert_eq!((ledger.take(0), ledger.take(3)), (None, Some(packet(3, 0))), "one was all it had");
    }

    /// One packet that never leaves does not keep the place of a million others.
    #[test]
    fn gaps_are_closed() {
        let mut ledger = with([0, 1, 2]);
        for serial in 3..100_000 {
            ledger.push(packet(serial, 0));
            assert!(ledger.take(serial - 1).is_some());
            assert!(ledger.entries.len() <= 2 * ledger.len() + FEW_GAPS);
        }
        assert_eq!((ledger.len(), ledger.take_oldest()), (3, Some(packet(0, 0))));
    }
}
