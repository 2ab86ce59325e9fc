//! What a capture says of packets: why they were sent, and what they did.

use super::record::{PacketRecord, Record, Sent};
use crate::labels;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::packet::{ControlKind, SegmentClass};
use ackline_tcp_core::{ConnId, Instant};
use std::collections::HashMap;
use std::fmt::{Arguments, Write as _};
use std::mem::discriminant;

/// Events that wait for a packet; of a connection that sends no more none is wanted.
const MAX_NOTES: usize = 10_000;

/// What happened, and when.
type Note = (Instant, TraceEvent);

/// The comment of the packet that is written.
#[derive(Debug, Default)]
pub(super) struct Comments {
    /// What happened to connections, for their next packets.
    notes: HashMap<ConnId, Vec<Note>>,
    /// Their number.
    count: usize,
    text: String,
    /// Why the last packet was sent, and the words for that: most are sent for the same reason as the one before.
    stated: Option<Sent>,
    statement: String,
}

impl Comments {
    /// Keeps an event for its connection's next packet.
    pub(super) fn keep(&mut self, conn: ConnId, at: Instant, event: &TraceEvent) {
        if matches!(event, TraceEvent::Closed { .. }) {
            // It may never send again, and its notes must not take the place of others'.
            self.count -= self.notes.remove(&conn).map_or(0, |notes| notes.len());
            return;
        }
        if self.count >= MAX_NOTES || labels::trace_event(event).is_none() && !is_of_departure(event) {
            return;
        }
        let notes = self.notes.entry(conn).or_default();
        // A device that refused the packet is offered it again, and the rule and the queue are told again; a wait goes on.
        let same = notes.iter_mut().find(|(_, known)| match (known, event) {
            (TraceEvent::Blocked { cause }, TraceEvent::Blocked { cause: now }) => cause == now,
            (known, now) => is_of_departure(now) && discriminant(known) == discriminant(now),
        });
        match same {
            Some(_) if is_wait(event) => {}
            Some(known) => *known = (at, *event),
            None => {
                notes.push((at, *event));
                self.count += 1;
            }
        }
    }

    /// What the connection's packet of this kind tells of.
    fn take(&mut self, conn: ConnId, class: SegmentClass) -> Vec<Note> {
        let Some(notes) = self.notes.get_mut(&conn) else { return vec![] };
        let data = matches!(
            class,
            SegmentClass::Data | SegmentClass::Retransmit | SegmentClass::Control(ControlKind::Fin)
        );
        let taken: Vec<Note> = notes.extract_if(.., |(_, event)| data || !is_wait(event)).collect();
        if notes.is_empty() {
            self.notes.remove(&conn);
        }
        self.count -= taken.len();
        taken
    }

    /// Begins the comment of a packet with why it was sent.
    pub(super) fn begin(&mut self, record: &PacketRecord) {
        self.text.clear();
        let Some(sent) = record.sent else { return };
        if self.stated != Some(sent) {
            self.state(sent);
        }
        self.text.push_str(&self.statement);
    }

    fn state(&mut self, sent: Sent) {
        let Sent { conn, reason, class } = sent;
        let (reason, class) = (labels::send_reason(reason), labels::segment_class(class));
        self.say(format_args!("sent: {reason}; class: {class}"));
        if let Some(conn) = conn {
            self.connection(conn);
        }
        self.stated = Some(sent);
        std::mem::swap(&mut self.statement, &mut self.text);
        self.text.clear();
    }

    /// What the connection of a packet that was sent did before.
    pub(super) fn departure(&mut self, record: &PacketRecord) {
        let Some(Sent { conn: Some(conn), class, .. }) = record.sent else { return };
        for (at, event) in self.take(conn, class) {
            match labels::departure_event(&event, record.at.since(at)) {
                Some(text) => self.say(format_args!("{text}")),
                None => self.note(conn, &event),
            }
        }
    }

    /// What a packet brought about that has arrived.
    pub(super) fn arrival(&mut self, events: &[Record]) {
        for event in events {
            if let Record::Event(conn, _, event) = event {
                self.note(*conn, event);
            }
        }
    }

    /// The comment.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    fn connection(&mut self, conn: ConnId) {
        if !self.text.contains("connection: ") {
            self.say(format_args!("connection: {}", conn.index()));
        }
    }

    fn note(&mut self, conn: ConnId, event: &TraceEvent) {
        if let Some(text) = labels::trace_event(event) {
            self.connection(conn);
            self.say(format_args!("{text}"));
        }
    }

    /// Adds a part.
    pub(super) fn say(&mut self, text: Arguments<'_>) {
        let separator = if self.text.is_empty() { "" } else { "; " };
        // A string takes everything.
        let _ = write!(self.text, "{separator}{text}");
    }
}

/// The packet before it brought it about, and not a timer, the application or what is sent.
pub(super) const fn is_of_arrival(event: &TraceEvent) -> bool {
    let others = matches!(
        event,
        TraceEvent::Rto { .. } | TraceEvent::Lost { by_timer: true, .. } | TraceEvent::Closed { .. }
    );
    !others && !is_of_departure(event)
}

/// It is about what the connection sends next.
const fn is_of_departure(event: &TraceEvent) -> bool {
    is_wait(event)
        || matches!(event, TraceEvent::Queued { .. } | TraceEvent::Ack { .. } | TraceEvent::Policies { .. })
}

/// It holds back the next data.
const fn is_wait(event: &TraceEvent) -> bool {
    matches!(event, TraceEvent::Blocked { .. })
}
