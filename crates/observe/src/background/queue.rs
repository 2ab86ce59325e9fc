//! The queue between a stack and the thread that writes: bounded in bytes, and never waited for by
//! the stack.

use super::meter::Meter;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the thread lets records gather once there is one, so that it wakes up at most so often.
const GATHER: Duration = Duration::from_millis(10);

/// One thing that waits for the thread.
pub(crate) trait QueueEntry {
    /// Entries that came while the queue was full.
    fn gap(count: u64) -> Self;
}

/// Records in order, and their bytes one after the other.
#[derive(Debug)]
pub(crate) struct Batch<R> {
    pub(crate) records: Vec<R>,
    pub(crate) bytes: Vec<u8>,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        Self { records: vec![], bytes: vec![] }
    }
}

impl<R> Batch<R> {
    const fn size(&self) -> usize {
        self.bytes.len() + self.records.len() * size_of::<R>()
    }

    fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
    }
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue<R> {
    state: Mutex<State<R>>,
    filled: Condvar,
    /// Most bytes of records that wait or are being written.
    limit: usize,
    meter: Meter,
}

#[derive(Debug)]
struct State<R> {
    batch: Batch<R>,
    /// Bytes of the batch that is being written.
    writing: usize,
    /// Size of the batch at which the thread wants to be woken.
    wake_at: usize,
    /// Records that did not fit since the last one that did.
    gap: u64,
    closed: bool,
}

impl<R: QueueEntry> Queue<R> {
    pub(crate) fn new(limit: usize) -> Self {
        let batch = Batch { records: vec![], bytes: vec![] };
        let state = State { batch, writing: 0, wake_at: usize::MAX, gap: 0, closed: false };
        Self { state: Mutex::new(state), filled: Condvar::new(), limit, meter: Meter::default() }
    }

    /// What became of records so far.
    pub(crate) const fn meter(&self) -> &Meter {
        &self.meter
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        // Whoever panicked under it left whole records.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record, of whose bytes `fill` appends at most `most`. If there is no room, `count`
    /// records are lost.
    pub(crate) fn push(&self, record: R, count: u64, most: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        self.change(|state, room| {
            if most + 2 * size_of::<R>() > room {
                state.gap += count;
                self.meter.add_dropped(count);
                return;
            }
            if state.gap > 0 {
                state.batch.records.push(R::gap(std::mem::take(&mut state.gap)));
            }
            state.batch.records.push(record);
            fill(&mut state.batch.bytes);
        });
    }

    /// Adds a record that is worth nothing after a gap, if there is room.
    pub(crate) fn push_unless_gap(&self, record: R) {
        self.change(|state, room| {
            if state.gap == 0 && size_of::<R>() <= room {
                state.batch.records.push(record);
            }
        });
    }

    fn change(&self, add: impl FnOnce(&mut State<R>, usize)) {
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
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// `batch` has been written: its room is free, and its memory is used again.
    pub(crate) fn written(&self, batch: &mut Batch<R>) {
        batch.clear();
        self.lock().writing = 0;
    }

    /// Puts what waits into `batch`, which is empty; sleeps until there is something. False if the
    /// queue is closed and empty.
    pub(crate) fn take(&self, batch: &mut Batch<R>) -> bool {
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
            state.batch.records.push(R::gap(gap));
        }
        std::mem::swap(&mut state.batch, batch);
        state.writing = batch.size();
        !batch.records.is_empty()
    }
}
