//! The thread: it completes checksums, and says of each packet why it was sent and what it did.

use super::files::Files;
use super::record::{PacketRecord, Record};
use super::{CaptureSummary, transport};
use crate::background::Sink;
use crate::background::queue::Batch;
use crate::labels;
use crate::pcapng::Packet;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::packet::{ControlKind, SegmentClass};
use ackline_tcp_core::wire::checksum::Accumulator;
use ackline_tcp_core::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use ackline_tcp_core::{ConnId, Instant};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::mem::discriminant;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Events that wait for a packet; of a connection that sends no more none is wanted.
const MAX_NOTES: usize = 10_000;

/// What happened, and when.
type Note = (Instant, TraceEvent);

/// Writes batches of records.
#[derive(Debug)]
pub(super) struct Writer {
    files: Files,
    epoch_ns: u64,
    /// What happened to connections, for their next packets.
    notes: HashMap<ConnId, Vec<Note>>,
    /// Their number.
    count: usize,
    comment: String,
}

impl Writer {
    pub(super) fn new(files: Files, epoch_ns: u64) -> Self {
        Self { files, epoch_ns, notes: HashMap::new(), count: 0, comment: String::new() }
    }

    /// Keeps an event for its connection's next packet.
    fn keep(&mut self, conn: ConnId, at: Instant, event: &TraceEvent) {
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

    /// Why it was sent, and what its connection did before.
    fn describe(&mut self, record: &PacketRecord) {
        if let Some(sent) = record.sent {
            let (reason, class) = (labels::send_reason(sent.reason), labels::segment_class(sent.class));
            self.say(format_args!("sent: {reason}; class: {class}"));
            if let Some(conn) = sent.conn {
                self.connection(conn);
                for (at, event) in self.take(conn, sent.class) {
                    match labels::departure_event(&event, record.at.since(at)) {
                        Some(text) => self.say(format_args!("{text}")),
                        None => self.note(conn, &event),
                    }
                }
            }
        }
        if let Some((place, count)) = record.segment {
            self.say(format_args!("segment {place} of {count} of a super-packet"));
        }
        if let Some(size) = record.segment_size {
            self.say(format_args!("super-packet: {size} bytes of data per segment"));
        }
    }

    fn connection(&mut self, conn: ConnId) {
        if !self.comment.contains("connection: ") {
            self.say(format_args!("connection: {}", conn.index()));
        }
    }

    fn note(&mut self, conn: ConnId, event: &TraceEvent) {
        if let Some(text) = labels::trace_event(event) {
            self.connection(conn);
            self.say(format_args!("{text}"));
        }
    }

    fn say(&mut self, text: std::fmt::Arguments<'_>) {
        let separator = if self.comment.is_empty() { "" } else { "; " };
        // A string takes everything.
        let _ = write!(self.comment, "{separator}{text}");
    }
}

impl Sink for Writer {
    type Record = Record;
    type Summary = CaptureSummary;

    fn write(&mut self, batch: &mut Batch<Record>) {
        let Batch { records, bytes } = batch;
        let mut rest = &mut bytes[..];
        let mut gap = 0;
        let mut records = records.iter().peekable();
        while let Some(record) = records.next() {
            match record {
                Record::Gap(packets) => gap += packets,
                Record::Event(conn, at, event) => self.keep(*conn, *at, event),
                Record::Packet(record) => {
                    self.comment.clear();
                    self.describe(record);
                    if record.sent.is_none() {
                        while let Some(Record::Event(conn, _, event)) = records
                            .next_if(|next| matches!(next, Record::Event(.., event) if is_of_arrival(event)))
                        {
                            self.note(*conn, event);
                        }
                    }
                    if gap > 0 {
                        self.files.lost(gap);
                        self.say(format_args!(
                            "before this, {gap} packets are missing: the capture's queue was full"
                        ));
                        gap = 0;
                    }
                    let data = rest.split_off_mut(..record.captured as usize).unwrap_or_default();
                    if record.incomplete_checksum && record.captured == record.original {
                        complete_checksum(data);
                    }
                    self.files.packet(&Packet {
                        interface: 0,
                        at_ns: self.epoch_ns.saturating_add(record.at.as_nanos()),
                        original: record.original,
                        data,
                        direction: Some(record.direction),
                        comment: &self.comment,
                    });
                }
            }
        }
        self.files.lost(gap);
        self.files.flush();
    }

    fn counts(&self) -> (u64, u64) {
        (self.files.packets(), self.files.unwritten())
    }

    fn finish(self) -> CaptureSummary {
        self.files.finish()
    }
}

/// The packet before it brought it about, and not a timer, the application or what is sent.
const fn is_of_arrival(event: &TraceEvent) -> bool {
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

/// Completes the checksum of a whole TCP or UDP packet.
fn complete_checksum(packet: &mut [u8]) -> Option<()> {
    let (protocol, start) = transport(packet)?;
    let field = start
        + match protocol {
            PROTOCOL_TCP => 16,
            PROTOCOL_UDP => 6,
            _ => return None,
        };
    let length = packet.len().checked_sub(start)?;
    let mut sum = if packet[0] >> 4 == 4 {
        let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
        Accumulator::pseudo_v4(address(12)?, address(16)?, protocol, length)
    } else {
        let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
        Accumulator::pseudo_v6(address(8)?, address(24)?, protocol, length)
    };
    packet.get_mut(field..field + 2)?.fill(0);
    sum.add(packet.get(start..)?);
    let checksum = match sum.checksum() {
        // A UDP checksum of zero means that there is none (RFC 768).
        0 if protocol == PROTOCOL_UDP => 0xffff,
        checksum => checksum,
    };
    packet.get_mut(field..field + 2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}
