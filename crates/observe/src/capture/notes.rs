//! Notes: what happened to connections, kept for the comments of their next packets.
//!
//! A connection that sends nothing keeps its notes. Whoever opens many of those must not silence
//! others, so the oldest make room.

use crate::labels;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::packet::{ControlKind, SegmentClass};
use ackline_tcp_core::{ConnId, Instant};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::mem::discriminant;

/// Most connections with notes.
pub(super) const MAX_CONNECTIONS: usize = 10_000;
/// Most notes of a connection; more happens to none before it sends.
const MAX_NOTES: usize = 32;

/// What happened, and when.
type Note = (Instant, TraceEvent);

/// The notes of connections that have not sent a packet since.
#[derive(Debug, Default)]
pub(super) struct Notes {
    of: HashMap<ConnId, ConnectionNotes>,
    /// Connections in the order of their first notes; those that are not in `of` with this number
    /// have sent or ended.
    order: VecDeque<(u64, ConnId)>,
    /// Connections that have had notes.
    begun: u64,
}

#[derive(Debug)]
struct ConnectionNotes {
    /// Of `begun`.
    number: u64,
    notes: Vec<Note>,
}

impl Notes {
    /// Keeps an event for its connection's next packet.
    pub(super) fn keep(&mut self, conn: ConnId, at: Instant, event: &TraceEvent) {
        if matches!(event, TraceEvent::Closed { .. }) {
            // It may never send again.
            self.of.remove(&conn);
            return;
        }
        if !is_of_departure(event) && labels::trace_event(event).is_none() {
            return;
        }
        let ConnectionNotes { notes, .. } = match self.of.entry(conn) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.begun += 1;
                self.order.push_back((self.begun, conn));
                entry.insert(ConnectionNotes { number: self.begun, notes: vec![] })
            }
        };
        // A device that refused the packet is offered it again, and the rule and the queue are told
        // again; a wait goes on.
        let has_room = notes.len() < MAX_NOTES;
        let same = notes.iter_mut().find(|(_, known)| match (known, event) {
            (TraceEvent::Blocked { cause }, TraceEvent::Blocked { cause: now }) => cause == now,
            (known, now) => is_of_departure(now) && discriminant(known) == discriminant(now),
        });
        match same {
            Some(_) if is_wait(event) => {}
            Some(known) => *known = (at, *event),
            None if has_room => notes.push((at, *event)),
            None => {}
        }
        self.make_room();
    }

    /// What the connection's packet of this kind tells of.
    pub(super) fn take(&mut self, conn: ConnId, class: SegmentClass) -> Vec<Note> {
        let Some(ConnectionNotes { notes, .. }) = self.of.get_mut(&conn) else { return vec![] };
        let data = matches!(
            class,
            SegmentClass::Data | SegmentClass::Retransmit | SegmentClass::Control(ControlKind::Fin)
        );
        let taken = notes.extract_if(.., |(_, event)| data || !is_wait(event)).collect();
        if notes.is_empty() {
            self.of.remove(&conn);
        }
        taken
    }

    /// Connections with notes, and places in their order.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.of.len(), self.order.len())
    }

    /// Gives up the oldest notes if there are too many.
    fn make_room(&mut self) {
        while self.of.len() > MAX_CONNECTIONS
            && let Some((number, conn)) = self.order.pop_front()
        {
            if let Entry::Occupied(entry) = self.of.entry(conn)
                && entry.get().number == number
            {
                entry.remove();
            }
        }
        // Half of them or more are gone then, so a connection costs O(1).
        if self.order.len() > 2 * MAX_CONNECTIONS {
            self.order
                .retain(|(number, conn)| self.of.get(conn).is_some_and(|known| known.number == *number));
        }
    }
}

/// It is about what the connection sends next.
pub(super) const fn is_of_departure(event: &TraceEvent) -> bool {
    is_wait(event)
        || matches!(event, TraceEvent::Queued { .. } | TraceEvent::Ack { .. } | TraceEvent::Policies { .. })
}

/// It holds back the next data.
const fn is_wait(event: &TraceEvent) -> bool {
    matches!(event, TraceEvent::Blocked { .. })
}
