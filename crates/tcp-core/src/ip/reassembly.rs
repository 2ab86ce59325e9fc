//! The fragments of IP packets that are not complete yet.
//!
//! A packet begins with its first fragment to arrive, whichever that is, and has one deadline. Its
//! fragments are kept as they came, so that an octet at the end of a packet costs an octet, in
//! order and without overlap. One that overlaps another ends the packet (RFC 5722; RFC 8200,
//! section 4.5): what is held of it goes, and what comes of it until its deadline is dropped. A
//! fragment that repeats another one exactly is ignored.
//!
//! **Cost.** O(log n) for the fragments of one packet, which are limited in number, and O(1)
//! otherwise. If there is no room, the packet that began first makes some: fragments of an honest
//! packet come one after the other, so whoever fills the store to displace one has to be faster
//! than that.

use crate::share::spread;
use crate::share::{DeadlineTable, Hashed};
use crate::time::{Duration, Instant};
use crate::wire::{Ecn, Fragment, make_whole};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use siphasher::sip::SipHasher13;

/// The store of an endpoint.
pub(crate) struct Reassembly {
    /// A lane for the timeout, and one for packets that began before it was changed.
    packets: DeadlineTable<Partial, 2>,
    /// What fragments hold beside their packets' records, in bytes.
    held: usize,
    /// Bytes of everything. They are asked for after each burst, and computed when they change.
    memory: usize,
    hasher: SipHasher13,
}

/// What the fragments of a packet have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    src: IpAddr,
    dst: IpAddr,
    identification: u32,
    /// RFC 791: part of the name; RFC 8200: not, and 0 here.
    protocol: u8,
}

/// A packet that is not complete.
#[derive(Debug)]
struct Partial {
    hash: u32,
    name: Name,
    first: Option<First>,
    /// In order; none overlaps the next.
    pieces: Vec<Piece>,
    /// Octets of all pieces.
    received: u32,
    /// Octets of the packet's data, once the last fragment has come.
    end: Option<u32>,
    /// Codepoints seen: a bit for each.
    ecn: u8,
    /// Nothing of it is accepted any more.
    refused: bool,
}

/// The headers of the first fragment.
#[derive(Debug)]
struct First {
    octets: Box<[u8]>,
    /// Octets of headers that the whole packet begins with.
    whole: u16,
    named_at: u16,
    protocol: u8,
    /// An ICMP error may be sent about it.
    may_be_answered: bool,
}

#[derive(Debug)]
struct Piece {
    offset: u32,
    data: Box<[u8]>,
}

impl Piece {
    const fn end(&self) -> u32 {
        self.offset + self.data.len() as u32
    }
}

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It waits for the others.
    Waiting,
    /// It repeats another one.
    Repeated,
    /// It overlaps another one, which refuses its packet.
    Overlap,
    /// It belongs to a packet that is refused, or refuses it for another reason.
    Refused,
    /// It was the last that was missing: the whole packet.
    Whole(Vec<u8>),
}

/// A packet that has waited for too long.
#[derive(Debug)]
pub(crate) struct Expired {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    /// The first fragment, if it has come and its sender may be told; nothing of a packet that was
    /// refused.
    pub(crate) first: Option<Box<[u8]>>,
    /// Its loss has been counted.
    pub(crate) refused: bool,
}

/// What a fragment holds beside its data, in bytes.
const PIECE: usize = size_of::<Piece>();

/// What a fragment of this many octets holds at most, with its packet's record, in bytes.
pub(crate) const fn cost(len: usize) -> usize {
    len + 2 * PIECE + 2 * size_of::<Partial>()
}

impl Reassembly {
    /// Empty. The secret must be random if peers are not trusted.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self {
            packets: DeadlineTable::default(),
            held: 0,
            memory: 0,
            hasher: SipHasher13::new_with_key(&secret),
        }
    }

    /// Number of packets.
    pub(crate) const fn len(&self) -> usize {
        self.packets.len()
    }

    /// Bytes held.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    /// Bytes that count against the limit: without spare capacity.
    pub(crate) const fn used(&self) -> usize {
        self.held + self.packets.len() * size_of::<Partial>()
    }

    /// Takes a fragment, whose packet waits for `timeout` from the first of its fragments on and
    /// has at most `most` of them.
    pub(crate) fn place(
        &mut self,
        now: Instant,
        fragment: &Fragment<'_>,
        timeout: Duration,
        most: usize,
    ) -> Placed {
        let name = Name::of(fragment);
        let hash = self.hash(&name);
        let found = self.packets.find(spread(hash), |partial| partial.name == name);
        let place = found.unwrap_or_else(|| {
            let partial = Partial {
                hash,
                name,
                first: None,
                pieces: Vec::new(),
                received: 0,
                end: None,
                ecn: 0,
                refused: false,
            };
            self.packets.insert(partial, now, timeout, usize::MAX)
        });
        let Some(partial) = self.packets.get_mut(place) else { return Placed::Refused };
        let before = partial.held();
        let placed = partial.place(fragment, most).unwrap_or_else(|| match partial.whole() {
            Some(whole) => Placed::Whole(whole),
            None if partial.refused => Placed::Refused,
            None => Placed::Waiting,
        });
        self.held = self.held + partial.held() - before;
        if let Placed::Whole(_) = placed {
            self.forget(place);
        }
        self.memory = self.packets.memory() + self.held;
        placed
    }

    /// Forgets the packet that began first; false if there is none.
    pub(crate) fn evict(&mut self) -> bool {
        let oldest = self.packets.oldest();
        if let Some(oldest) = oldest {
            self.forget(oldest);
        }
        oldest.is_some()
    }

    /// When a packet has waited for too long.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.packets.next().map(|(at, _)| at)
    }

    /// Takes out a packet that has waited for too long at `now`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Expired> {
        let (_, place) = self.packets.next().filter(|(at, _)| *at <= now)?;
        let partial = self.forget(place)?;
        let Name { src, dst, .. } = partial.name;
        let first = partial.first.filter(|first| first.may_be_answered).zip(partial.pieces.first());
        let first = first.map(|(first, piece)| [&*first.octets, &*piece.data].concat().into());
        Some(Expired { src, dst, first, refused: partial.refused })
    }

    fn forget(&mut self, place: u32) -> Option<Partial> {
        let partial = self.packets.remove(place)?;
        self.held -= partial.held();
        self.memory = self.packets.memory() + self.held;
        Some(partial)
    }

    fn hash(&self, name: &Name) -> u32 {
        let mut text = [0; 16 + 16 + 4 + 1];
        let mut put = |at: usize, octets: &[u8]| text[at..at + octets.len()].copy_from_slice(octets);
        for (at, address) in [(0, name.src), (16, name.dst)] {
            match address {
                IpAddr::V4(address) => put(at, &address.octets()),
                IpAddr::V6(address) => put(at, &address.octets()),
            }
        }
        put(32, &name.identification.to_be_bytes());
        put(36, &[name.protocol]);
        self.hasher.hash(&text) as u32
    }
}

impl Name {
    const fn of(fragment: &Fragment<'_>) -> Self {
        let protocol = if fragment.ip.src.is_ipv4() { fragment.protocol } else { 0 };
        Self { src: fragment.ip.src, dst: fragment.ip.dst, identification: fragment.identification, protocol }
    }
}

impl Partial {
    /// What its fragments hold, in bytes.
    fn held(&self) -> usize {
        let headers = self.first.as_ref().map_or(0, |first| first.octets.len());
        self.pieces.capacity() * PIECE + self.received as usize + headers
    }

    /// Adds a fragment; `None` if it was new and the packet may be complete.
    fn place(&mut self, fragment: &Fragment<'_>, most: usize) -> Option<Placed> {
        if self.refused {
            return Some(Placed::Refused);
        }
        let len = fragment.payload.len() as u32;
        let (offset, end) = (fragment.offset, fragment.offset + len);
        let at = self.pieces.partition_point(|piece| piece.offset < offset);
        if let Some(same) = self.pieces.get(at)
            && (same.offset, same.end()) == (offset, end)
            && same.data.iter().copied().eq(fragment.payload.iter())
            && self.ends_at(end, fragment.more)
        {
            return Some(Placed::Repeated);
        }
        let overlaps =
            at.checked_sub(1).and_then(|before| self.pieces.get(before)).is_some_and(|it| it.end() > offset)
                || self.pieces.get(at).is_some_and(|it| it.offset < end);
        let last = self.pieces.last().map_or(0, Piece::end);
        let contradicts = match self.end {
            Some(known) => end > known || (!fragment.more && end != known),
            None => !fragment.more && last > end,
        };
        if overlaps || contradicts || self.pieces.len() >= most {
            self.refuse();
            return Some(if overlaps { Placed::Overlap } else { Placed::Refused });
        }
        if !fragment.more {
            self.end = Some(end);
        }
        self.ecn |= 1 << fragment.ip.ecn.bits();
        if offset == 0 {
            self.first = Some(First {
                octets: fragment.headers.into(),
                whole: fragment.whole_headers,
                named_at: fragment.named_at,
                protocol: fragment.protocol,
                may_be_answered: fragment.may_be_answered(),
            });
        }
        let mut data = vec![0; len as usize];
        fragment.payload.copy_to(&mut data);
        self.pieces.insert(at, Piece { offset, data: data.into() });
        self.received += len;
        None
    }

    /// True if a fragment that ends there says what is known of the packet's end.
    fn ends_at(&self, end: u32, more: bool) -> bool {
        (self.end == Some(end)) != more
    }

    /// Nothing of it is accepted any more, and nothing is held.
    fn refuse(&mut self) {
        self.refused = true;
        self.first = None;
        self.pieces = Vec::new();
        self.received = 0;
    }

    /// The packet, if it is complete. Of its fragments, all or none may be ECN-capable if one was
    /// marked (RFC 3168, section 5.3); otherwise it is refused.
    fn whole(&mut self) -> Option<Vec<u8>> {
        let first = self.first.as_ref()?;
        if self.end != Some(self.received) {
            return None;
        }
        let mut packet = first.octets.get(..usize::from(first.whole))?.to_vec();
        let saw = |codepoint: Ecn| self.ecn & 1 << codepoint.bits() != 0;
        if saw(Ecn::Ce) && saw(Ecn::NotEct) {
            self.refuse();
            return None;
        }
        let ecn = if saw(Ecn::Ce) { Some(Ecn::Ce) } else { None };
        make_whole(&mut packet, first.named_at, first.protocol, self.received as usize, ecn);
        packet.reserve_exact(self.received as usize);
        for piece in &self.pieces {
            packet.extend_from_slice(&piece.data);
        }
        Some(packet)
    }
}

impl Hashed for Partial {
    fn table_hash(&self) -> u64 {
        spread(self.hash)
    }
}

impl core::fmt::Debug for Reassembly {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reassembly")
            .field("len", &self.len())
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}
