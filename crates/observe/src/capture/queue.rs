//! The queue between a stack and the thread that writes: bounded in bytes, and never waited for by the stack.

use crate::pcapng::Direction;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::packet::{SegmentClass, SendReason};
use ackline_tcp_core::{ConnId, Instant};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the thread lets records gather once there is one, so that it wakes up at most so often.
const GATHER: Duration = Duration::from_millis(10);

/// A packet without its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketRecord {
    pub(super) at: Instant,
    pub(super) direction: Direction,
    /// Length on the wire.
    pub(super) original: u32,
    /// Bytes that were copied.
    pub(super) captured: u32,
    /// The device or the peer's kernel completes the checksum, or nobody does.
    pub(super) incomplete_checksum: bool,
    /// Place in a super-packet that was split, and the number of its segments.
    pub(super) segment: Option<(u16, u16)>,
    /// Octets of data per segment of a super-packet that was not.
    pub(super) segment_size: Option<u16>,
    /// Of a packet that was sent.
    pub(super) sent: Option<Sent>,
}

/// What the core says of a packet that it sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) conn: Option<ConnId>,
    pub(super) reason: SendReason,
    pub(super) class: SegmentClass,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Record {
    Packet(PacketRecord),
    Event(ConnId, TraceEvent),
    /// So many packets came while the queue was full.
    Gap(u64),
}

/// Records in order, and the packets' bytes one after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) bytes: Vec<u8>,
}

impl Batch {
    const fn size(&self) -> usize {
        self.bytes.len() + self.records.len() * size_of::<Record>()
    }

    fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
    }
}

/// The queue.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    /// Most bytes of records that wait or are being written.
    limit: usize,
}

#[derive(Debug)]
struct State {
    batch: Batch,
    /// Bytes of the batch that is being written.
    writing: usize,
    /// Size of the batch at which the thread wants to be woken.
    wake_at: usize,
    /// Packets that did not fit since the last one that did.
    gap: u64,
    closed: bool,
}

impl Queue {
    pub(super) const fn new(limit: usize) -> Self {
        let batch = Batch { records: vec![], bytes: vec![] };
        let state = State { batch, writing: 0, wake_at: usize::MAX, gap: 0, closed: false };
        Self { state: Mutex::new(state), filled: Condvar::new(), limit }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panicked under it left whole records.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a packet whose bytes are the first `record.captured` of `slices`, or counts it as lost if there is no room.
    pub(super) fn packet(&self, record: PacketRecord, slices: &[&[u8]]) {
        self.change(|state, room| {
            let needs = record.captured as usize + 2 * size_of::<Record>();
            if needs > room {
                state.gap += 1;
                return;
            }
            if state.gap > 0 {
                state.batch.records.push(Record::Gap(std::mem::take(&mut state.gap)));
            }
            state.batch.records.push(Record::Packet(record));
            let mut left = record.captured as usize;
            for slice in slices {
                let take = left.min(slice.len());
                state.batch.bytes.extend_from_slice(&slice[..take]);
                left -= take;
            }
        });
    }

    /// Adds an event, if there is room: what follows a gap need not be said.
    pub(super) fn event(&self, conn: ConnId, event: &TraceEvent) {
        self.change(|state, room| {
            if state.gap == 0 && size_of::<Record>() <= room {
                state.batch.records.push(Record::Event(conn, *event));
            }
        });
    }

    fn change(&self, add: impl FnOnce(&mut State, usize)) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let room = self.limit.saturating_sub(state.batch.size() + state.writing);
        add(&mut state, room);
        if state.batch.size() >= state.wake_at {
            // Once: it takes all that is there.
            state.wake_at = usize::MAX;
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Takes nothing more. What is there can still be taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// `batch` has been written: its room is free, and its memory is used again.
    pub(super) fn written(&self, batch: &mut Batch) {
        batch.clear();
        self.lock().writing = 0;
    }

    /// Puts what waits into `batch`, which is empty; sleeps until there is something. False if the queue is closed and empty.
    pub(super) fn take(&self, batch: &mut Batch) -> bool {
        let mut state = self.lock();
        state.wake_at = 1;
        let waited = self.filled.wait_while(state, |state| state.batch.records.is_empty() && !state.closed);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let enough = self.limit / 4;
        state.wake_at = enough;
        let waited = self
            .filled
            .wait_timeout_while(state, GATHER, |state| state.batch.size() < enough && !state.closed);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.wake_at = usize::MAX;
        if state.closed && state.gap > 0 {
            let gap = std::mem::take(&mut state.gap);
            state.batch.records.push(Record::Gap(gap));
        }
        std::mem::swap(&mut state.batch, batch);
        state.writing = batch.size();
        !batch.records.is_empty()
    }
}
