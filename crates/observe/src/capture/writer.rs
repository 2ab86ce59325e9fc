//! The thread: it completes checksums, and says of each packet why it was sent and what it did.

use super::comments::{Comments, is_of_arrival};
use super::files::Files;
use super::record::{PacketRecord, Record};
use super::{CaptureSummary, checksum, pieces};
use crate::background::Sink;
use crate::background::queue::Batch;
use crate::pcapng::Packet;
use ackline_tcp_core::wire::{HeaderBuf, gso};

/// Writes batches of records.
#[derive(Debug)]
pub(super) struct Writer {
    files: Files,
    epoch_ns: u64,
    comments: Comments,
    /// A segment of a super-packet, and its headers.
    segment: Vec<u8>,
    headers: HeaderBuf,
}

impl Writer {
    pub(super) fn new(files: Files, epoch_ns: u64) -> Self {
        Self { files, epoch_ns, comments: Comments::default(), segment: vec![], headers: HeaderBuf::new() }
    }

    /// Writes a packet, whose pieces are the next of `bytes`; it caused `events`, and came after
    /// `gap` that were lost.
    fn packet(&mut self, record: &PacketRecord, bytes: &mut &mut [u8], events: &[Record], gap: u64) {
        self.comments.begin(record);
        self.comments.departure(record);
        if let Some(headers) = record.split {
            self.segments(record, headers.into(), bytes, events, gap);
            return;
        }
        if let Some(size) = record.segment_size {
            self.comments.say(format_args!("super-packet: {size} bytes of data per segment"));
        }
        self.comments.arrival(events);
        self.say_gap(gap);
        let (length, sums) = (record.original as usize, record.incomplete_checksum);
        let (data, rest) = pieces::take(bytes, length, record.snap_length as usize, sums);
        if sums && let Some(packet) = data.get_mut(record.link.into()..) {
            checksum::complete(packet, length - usize::from(record.link), rest);
        }
        let Self { files, epoch_ns, comments, .. } = self;
        files.packet(&entry(*epoch_ns, record, record.original, data, comments.as_str()));
    }

    /// Writes the segments of a super-packet. The first tells of what was before it, the last of
    /// what came of it.
    fn segments(
        &mut self,
        record: &PacketRecord,
        header_len: usize,
        bytes: &mut &mut [u8],
        events: &[Record],
        gap: u64,
    ) {
        let (snap_length, link_len) = (record.snap_length as usize, usize::from(record.link));
        let front = link_len + header_len;
        let link: &[u8] = bytes.split_off_mut(..link_len).unwrap_or_default();
        let headers: &[u8] = bytes.split_off_mut(..header_len).unwrap_or_default();
        let payload = record.original as usize - front;
        let split = record.segment_size.map(|size| gso::split_headers(headers, payload, size));
        // It has been split before.
        let Some(Ok(mut segments)) = split else { return };
        let count = segments.remaining();
        for place in 1..=count {
            let Some(size) = segments.next_into(&mut self.headers) else { return };
            if place > 1 {
                self.comments.begin(record);
            }
            self.comments.say(format_args!("segment {place} of {count} of a super-packet"));
            if place == count {
                self.comments.arrival(events);
            }
            if place == 1 {
                self.say_gap(gap);
            }
            let (data, rest) = pieces::take(bytes, size, snap_length.saturating_sub(front), true);
            let Self { files, epoch_ns, comments, segment, headers } = self;
            segment.clear();
            segment.extend_from_slice(link);
            segment.extend_from_slice(headers.as_slice());
            segment.extend_from_slice(data);
            checksum::complete(&mut segment[link_len..], header_len + size, rest);
            segment.truncate(snap_length);
            let original = (front + size) as u32;
            files.packet(&entry(*epoch_ns, record, original, segment, comments.as_str()));
        }
    }

    fn say_gap(&mut self, packets: u64) {
        if packets > 0 {
            self.files.lost(packets);
            self.comments.say(format_args!(
                "before this, {packets} packets are missing: the capture's queue was full"
            ));
        }
    }
}

/// A packet of the file.
const fn entry<'a>(
    epoch_ns: u64,
    record: &PacketRecord,
    original: u32,
    data: &'a [u8],
    comment: &'a str,
) -> Packet<'a> {
    Packet {
        interface: 0,
        at_ns: epoch_ns.saturating_add(record.at.as_nanos()),
        original,
        data,
        direction: Some(record.direction),
        comment,
    }
}

impl Sink for Writer {
    type Record = Record;
    type Summary = CaptureSummary;

    fn write(&mut self, batch: &mut Batch<Record>) {
        let Batch { records, bytes } = batch;
        let (mut records, mut bytes) = (&records[..], &mut bytes[..]);
        let mut gap = 0;
        while let [record, rest @ ..] = records {
            records = rest;
            match record {
                Record::Gap(packets) => gap += packets,
                Record::Event(conn, at, event) => self.comments.notes.keep(*conn, *at, event),
                Record::Packet(packet) => {
                    let is_caused =
                        |event: &&Record| matches!(event, Record::Event(.., event) if is_of_arrival(event));
                    let caused = match packet.sent {
                        None => rest.iter().take_while(is_caused).count(),
                        Some(_) => 0,
                    };
                    let (events, after) = rest.split_at(caused);
                    records = after;
                    self.packet(packet, &mut bytes, events, std::mem::take(&mut gap));
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
