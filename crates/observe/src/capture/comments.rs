//! What a capture says of packets: why they were sent, and what they did.

use super::notes::{Notes, is_of_departure};
use super::record::{PacketRecord, Record, SentPacket};
use crate::labels;
use ackline_tcp_core::ConnId;
use ackline_tcp_core::events::TraceEvent;
use std::fmt::{Arguments, Write as _};

/// The comment of the packet that is written.
#[derive(Debug, Default)]
pub(super) struct Comments {
    /// For the next packets of connections.
    pub(super) notes: Notes,
    text: String,
    /// Why the last packet was sent, and the words for that: most are sent for the same reason as
    /// the one before.
    stated: Option<SentPacket>,
    statement: String,
}

impl Comments {
    /// Begins the comment of a packet with why it was sent.
    pub(super) fn begin(&mut self, record: &PacketRecord) {
        self.text.clear();
        let Some(sent) = record.sent else { return };
        if self.stated != Some(sent) {
            self.state(sent);
        }
        self.text.push_str(&self.statement);
    }

    fn state(&mut self, sent: SentPacket) {
        let SentPacket { conn, reason, class } = sent;
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
        let Some(SentPacket { conn: Some(conn), class, .. }) = record.sent else { return };
        for (at, event) in self.notes.take(conn, class) {
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
