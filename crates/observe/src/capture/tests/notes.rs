//! Connections that send nothing take no comments away from those that do.

use super::{blob, place, read, record};
use crate::background::queue::Queue;
use crate::background::run;
use crate::capture::Files;
use crate::capture::notes::{MAX_CONNECTIONS, Notes};
use crate::capture::observer::CopyEvents;
use crate::capture::record::{Record, SentPacket};
use crate::capture::writer::Writer;
use ackline_tcp_core::error::ConnError;
use ackline_tcp_core::events::{TraceEvent, Tracer as _};
use ackline_tcp_core::packet::{SegmentClass, SendReason};
use ackline_tcp_core::{ConnId, Instant, SeqNum};
use std::sync::Arc;

/// Connections that send nothing, twice as many as are remembered, before one that does: true if
/// its comment is whole.
fn speaks_beside(others: &[TraceEvent]) -> bool {
    let (_folder, path, options) = place();
    let queue = Arc::new(Queue::new(64 << 20));
    let mut tracer = CopyEvents(queue.clone());
    for index in 1..=2 * MAX_CONNECTIONS as u32 {
        for event in others {
            tracer.trace(Instant::ZERO, ConnId::for_test(index, 0), event);
        }
    }
    let conn = ConnId::for_test(0, 1);
    tracer.trace(Instant::ZERO, conn, &POLICIES);
    let Record::Packet(mut packet) = record(100) else { unreachable!() };
    let (reason, class) = (SendReason::NewData, SegmentClass::Data);
    packet.sent = Some(SentPacket { conn: Some(conn), class, reason });
    queue.push(Record::Packet(packet), 1, 100, |bytes| bytes.extend(blob(100)));
    queue.close();
    let summary = run(Writer::new(Files::create(path.clone(), options).expect("created"), 0), &queue);
    assert_eq!((summary.packets, summary.dropped), (1, 0));
    read(&path).packets[0].comment.contains("policies: cc=reno")
}

const POLICIES: TraceEvent = TraceEvent::Policies { cc: "reno", ack: "delayed", rto: "conventional" };

#[test]
fn connections_without_a_packet_silence_no_other() {
    // A scanner opens them, and resets them; another one leaves them open.
    assert!(speaks_beside(&[POLICIES, TraceEvent::Closed { error: Some(ConnError::Reset) }]));
    assert!(speaks_beside(&[POLICIES]));
}

#[test]
fn notes_are_few_whatever_happens_to_connections() {
    let mut notes = Notes::default();
    let stale = TraceEvent::StaleAck { ack: SeqNum(1) };
    for round in 0..4 {
        for index in 0..2 * MAX_CONNECTIONS as u32 {
            let conn = ConnId::for_test(index, round);
            notes.keep(conn, Instant::ZERO, &POLICIES);
            for _ in 0..if index == 4 { 1_000 } else { 1 } {
                notes.keep(conn, Instant::ZERO, &stale);
            }
            if index % 2 == 0 {
                assert!(matches!(notes.take(conn, SegmentClass::Data).len(), 1..=32));
            }
        }
        let (connections, places) = notes.sizes();
        assert!(connections <= MAX_CONNECTIONS && places <= 2 * MAX_CONNECTIONS, "{connections}, {places}");
    }
}
