//! What a receiver tells by accurate ECN (RFC 9768): ACE, three bits of its count of marked packets,
//! and the option's counts of bytes.

use crate::segment::Segment;
use crate::story::AccurateMarks;
use ackline_tcp_core::wire::AccEcnOption;

/// The receiver's counts so far, from its segments in order.
#[derive(Clone, Copy, Debug)]
pub(in crate::direction) struct Feedback {
    /// ACE of the latest segment. Counts begin at 5 (section 3.2.1).
    ace: u8,
    /// The option's counters, which begin at 1, 0 and 1.
    ect0: u64,
    ce: u64,
    ect1: u64,
    marks: AccurateMarks,
}

impl Default for Feedback {
    fn default() -> Self {
        Self { ace: 5, ect0: 1, ce: 0, ect1: 1, marks: AccurateMarks::default() }
    }
}

impl Feedback {
    /// A segment of the receiver, not older than one before it. True if it tells of marks.
    pub(in crate::direction) fn hear(&mut self, segment: &Segment<'_>) -> bool {
        let ace = segment.flags.ace();
        // At least: the count may have wrapped around.
        let grown = u64::from(ace.wrapping_sub(self.ace) & 7);
        self.ace = ace;
        self.marks.told += grown;
        if let Some(option) = &segment.options.accecn {
            self.marks.options += 1;
            let take = |counter: &mut u64, field: Option<u32>, total: &mut u64| {
                let more = u64::from(field.map_or(0, |field| AccEcnOption::growth(*counter, field)));
                *counter += more;
                *total += more;
            };
            take(&mut self.ect0, option.ect0(), &mut self.marks.ect0_bytes);
            take(&mut self.ce, option.ce(), &mut self.marks.ce_bytes);
            take(&mut self.ect1, option.ect1(), &mut self.marks.ect1_bytes);
        }
        grown > 0
    }

    pub(in crate::direction) const fn marks(&self) -> AccurateMarks {
        self.marks
    }
}
