//! Copies: packets that passed the capture twice, because it has both sides of a mirrored port,
//! several interfaces of one host (Linux's `any`), or a network that doubles. Nobody sent them
//! again.
//!
//! A copy has the TCP header of its original. What a sender sends again has it too, if its
//! timestamp is the same or there is none; but it has an IP identification of its own, and comes no
//! sooner than a round trip later.

use crate::segment::Segment;
use ackline_tcp_core::wire::{TcpFlags, Timestamps};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A copy comes at most so much later: half of the shortest retransmission timeout (Linux).
const LATEST_NS: u64 = 100_000_000;
/// The same if no IP identification tells: IPv6, or IPv4 without fragments (RFC 6864, section 4.1).
const LATEST_ALIKE_NS: u64 = 1_000_000;
/// Packets of a direction among which an original is looked for. Linux hands packets on in batches
/// of up to 64.
const RECENT: usize = 128;

/// A packet that has passed.
#[derive(Clone, Copy, Debug)]
struct PacketDigest {
    header: u64,
    at_ns: u64,
    copied: bool,
}

/// One end's packets.
#[derive(Debug, Default)]
struct Side {
    recent: VecDeque<PacketDigest>,
    /// The last IP identification, and whether there was another one: that of a sender that always
    /// gives the same tells nothing.
    id: Option<u16>,
    ids_differ: bool,
}

/// Finds the copies of a connection.
#[derive(Debug)]
pub(crate) struct Copies {
    sides: [Side; 2],
    /// How many packets of a side are remembered.
    limit: usize,
    passed: u64,
    copies: u64,
    /// Of these, those that take sequence space.
    sequenced: u64,
    sequenced_copies: u64,
}

impl Copies {
    /// Remembers at most `records` packets of each side.
    pub(crate) fn new(records: usize) -> Self {
        Self {
            sides: Default::default(),
            limit: records.min(RECENT),
            passed: 0,
            copies: 0,
            sequenced: 0,
            sequenced_copies: 0,
        }
    }

    /// True if `segment`, of this side, is a copy. It cannot be sent again sooner than
    /// `round_trip_ns` later, if that is known.
    pub(crate) fn is_copy(&mut self, side: usize, segment: &Segment<'_>, round_trip_ns: Option<u64>) -> bool {
        let (at_ns, header) = (segment.at_ns, fingerprint(segment));
        let sequenced = segment.length > 0 || segment.has(TcpFlags::SYN) || segment.has(TcpFlags::FIN);
        let alike = LATEST_ALIKE_NS.min(round_trip_ns.map_or(u64::MAX, |round_trip| round_trip / 2));
        let each_is_twice = self.sequenced_copies > 0 && self.sequenced_copies * 2 >= self.sequenced;
        let side = &mut self.sides[side];
        let has_id = segment.id != 0 && side.ids_differ;
        let original = side.recent.iter_mut().rev().find(|passed| passed.header == header);
        let is_copy = original.is_some_and(|original| {
            let age = at_ns.abs_diff(original.at_ns);
            // A receiver may send the same ACK several times in a row (RFC 5681, section 3.2). If
            // each packet is twice, every second one is a copy.
            let is_copy = if has_id {
                age <= LATEST_NS
            } else {
                age <= alike && (sequenced || each_is_twice && !original.copied)
            };
            original.copied |= is_copy;
            is_copy
        });
        if is_copy {
            self.copies += 1;
            self.sequenced_copies += u64::from(sequenced);
            return true;
        }
        side.ids_differ |= side.id.replace(segment.id).is_some_and(|before| before != segment.id);
        if side.recent.len() >= self.limit {
            side.recent.pop_front();
        }
        side.recent.push_back(PacketDigest { header, at_ns, copied: false });
        self.passed += 1;
        self.sequenced += u64::from(sequenced);
        false
    }

    /// How many there were.
    pub(crate) const fn count(&self) -> u64 {
        self.copies
    }

    /// True if the capture has each packet twice, but for a few that it missed.
    pub(crate) const fn is_all(&self) -> bool {
        self.copies > 0 && self.copies * 10 >= self.passed * 9
    }
}

/// What original and copy share: not the ECN bits and the TTL, which a router between them changes,
/// nor the checksum, which offload leaves open.
fn fingerprint(segment: &Segment<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (segment.id, segment.seq, segment.ack, segment.flags.bits()).hash(&mut hasher);
    (segment.window, segment.length).hash(&mut hasher);
    segment.options.timestamps.map(|Timestamps { val, ecr }| (val, ecr)).hash(&mut hasher);
    for (start, end) in segment.options.sack.iter() {
        (start.0, end.0).hash(&mut hasher);
    }
    hasher.finish()
}
