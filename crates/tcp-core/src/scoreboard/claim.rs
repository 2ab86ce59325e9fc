//! A claim that the path does not carry a packet, as an ACK's records tell of it.

use super::record::{Record, sent_after};
use crate::seq::SeqNum;
use crate::time::Instant;

/// A message that is neither proven nor refuted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// What the path is said to carry.
    pub(crate) payload: u32,
    /// Payload bytes below which segments do not shrink: routers must fragment them.
    pub(crate) floor: u32,
    /// Where the packet begins that it did not carry.
    pub(crate) quoted: SeqNum,
    /// When that left last.
    pub(crate) sent_at: Instant,
    /// When the claim is believed although nothing else shows a loss; [`Instant::FAR_FUTURE`]: not
    /// before something does.
    pub(crate) believe_at: Instant,
    /// No packet has arrived that is larger than what the path is said to carry.
    pub(crate) initial: bool,
}

impl Claim {
    /// `record`, which left only once, has arrived, and shows that the path carries more.
    pub(super) fn is_refuted_by(&self, record: &Record) -> bool {
        u32::from(record.packet_len()) > self.payload && self.is_older_than(record)
    }

    /// `record` left after the packet that is said not to have arrived.
    pub(super) fn is_older_than(&self, record: &Record) -> bool {
        sent_after((record.stamp.sent_at, record.end), (self.sent_at, self.quoted))
    }
}
