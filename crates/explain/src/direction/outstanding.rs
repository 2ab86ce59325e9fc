//! What has passed and is not acknowledged, in the order of sequence numbers. The number of records
//! is bounded: beyond it, neighbours that share a fate become one.

use std::collections::VecDeque;

/// Octets that passed together. Positions count octets of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) start: u64,
    pub(super) end: u64,
    /// When they passed first; for a gap, when it was found.
    pub(super) first_ns: u64,
    /// When they passed last.
    pub(super) last_ns: u64,
    /// How often they passed; zero: what came before and after did, but not they.
    pub(super) times: u32,
    /// Octets in flight when they passed first.
    pub(super) flight: u64,
    /// The timestamp of the first retransmission, if it differs from the original's.
    pub(super) again_tsval: Option<u32>,
    pub(super) sacked: bool,
    /// When something behind them was SACKed first.
    pub(super) overtaken_ns: Option<u64>,
}

impl Record {
    const fn length(&self) -> u64 {
        self.end - self.start
    }
}

#[derive(Debug)]
pub(super) struct OutstandingData {
    records: VecDeque<Record>,
    limit: usize,
    merged: bool,
    sacked: u64,
}

impl OutstandingData {
    pub(super) const fn new(limit: usize) -> Self {
        Self { records: VecDeque::new(), limit, merged: false, sacked: 0 }
    }

    /// True if neighbours had to become one.
    pub(super) const fn is_merged(&self) -> bool {
        self.merged
    }

    /// Octets that SACK reported.
    pub(super) const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Octets that passed.
    pub(super) fn passed(&self) -> u64 {
        self.records.iter().filter(|record| record.times > 0).map(Record::length).sum()
    }

    pub(super) fn push(&mut self, record: Record) {
        if self.records.len() >= self.limit {
            self.merge();
        }
        self.records.push_back(record);
    }

    /// Takes out what lies before `ack`, and shows it to `each`.
    pub(super) fn acknowledge(&mut self, ack: u64, mut each: impl FnMut(&Record)) {
        while let Some(front) = self.records.front_mut() {
            if front.start >= ack {
                return;
            }
            let end = front.end.min(ack);
            // Of what left together, the rest was in flight behind it.
            let taken = Record { end, flight: front.flight.saturating_sub(front.end - end), ..*front };
            if taken.sacked {
                self.sacked -= taken.length();
            }
            if front.end > ack {
                front.start = ack;
            } else {
                self.records.pop_front();
            }
            each(&taken);
        }
    }

    /// The records from `start` to `end`, cut there.
    pub(super) fn range_mut(&mut self, start: u64, end: u64) -> impl Iterator<Item = &mut Record> {
        self.cut(start);
        self.cut(end);
        let from = self.records.partition_point(|record| record.start < start);
        let until = self.records.partition_point(|record| record.start < end);
        self.records.range_mut(from..until.max(from))
    }

    /// Marks what lies from `start` to `end`, and shows what was not marked before to `each`.
    pub(super) fn sack(&mut self, start: u64, end: u64, mut each: impl FnMut(&Record)) {
        let mut marked = 0;
        for record in self.range_mut(start, end).filter(|record| !record.sacked) {
            record.sacked = true;
            marked += record.length();
            each(record);
        }
        self.sacked += marked;
    }

    /// Notes that something behind `before` has arrived, and what is between `ack` and there has
    /// not.
    pub(super) fn overtake(&mut self, ack: u64, before: u64, at_ns: u64) {
        // Those in front were overtaken earlier, so the walk ends where the last one did.
        let until = self.records.partition_point(|record| record.start < before);
        for record in self.records.range_mut(..until).rev() {
            if record.overtaken_ns.is_some() || record.end <= ack {
                break;
            }
            if !record.sacked {
                record.overtaken_ns = Some(at_ns);
            }
        }
    }

    /// Makes `at` a boundary of records.
    fn cut(&mut self, at: u64) {
        let place = self.records.partition_point(|record| record.end <= at);
        let Some(record) = self.records.get_mut(place).filter(|record| record.start < at) else { return };
        let behind = Record { start: at, ..*record };
        record.end = at;
        self.records.insert(place + 1, behind);
        if self.records.len() > self.limit {
            self.merge();
        }
    }

    /// Joins pairs of neighbours with the same fate.
    fn merge(&mut self) {
        self.merged = true;
        let mut kept: VecDeque<Record> = VecDeque::with_capacity(self.records.len() / 2 + 1);
        let mut joined = false;
        for record in self.records.drain(..) {
            match kept.back_mut() {
                Some(last)
                    if !joined
                        && last.end == record.start
                        && last.sacked == record.sacked
                        && last.times == record.times =>
                {
                    last.end = record.end;
                    last.last_ns = last.last_ns.max(record.last_ns);
                    joined = true;
                }
                _ => {
                    kept.push_back(record);
                    joined = false;
                }
            }
        }
        // Where nothing can be joined, the oldest give way: memory has the last word.
        if kept.len() >= self.limit {
            for record in kept.drain(..self.limit / 2) {
                if record.sacked {
                    self.sacked -= record.end - record.start;
                }
            }
        }
        self.records = kept;
    }
}
