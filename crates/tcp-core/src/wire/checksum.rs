//! The Internet checksum: the ones' complement of the ones' complement sum of 16-bit words (RFC
//! 1071).
//!
//! The sum does not depend on byte order as long as all words use the same one (RFC 1071, section 2
//! (B)), so words of 32 bits are read in native order and added up in 64 bits, and the sum is
//! swapped once at the end.

use core::net::{Ipv4Addr, Ipv6Addr};

/// A running ones' complement sum over pieces that together form one string of octets.
///
/// A piece with an odd number of octets shifts those after it by one octet (RFC 1071, section 2
/// (B)); the accumulator keeps track of that. Items of fixed size may only be added at an even
/// position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accumulator {
    /// Sum of words in native order. Each addition is below 2^32, so 2^32 of them fit.
    sum: u64,
    odd: bool,
}

impl Accumulator {
    /// The empty sum.
    #[must_use]
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// The sum over the pseudo-header of IPv4 (RFC 9293, section 3.1); `len` is header plus data in
    /// octets.
    #[must_use]
    pub fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len: usize) -> Self {
        let addresses =
            u64::from(u32::from_ne_bytes(src.octets())) + u64::from(u32::from_ne_bytes(dst.octets()));
        Self { sum: addresses + pseudo_tail(protocol, len), odd: false }
    }

    /// The sum over the pseudo-header of IPv6 (RFC 8200, section 8.1); `len` is header plus data in
    /// octets.
    #[must_use]
    pub fn pseudo_v6(src: Ipv6Addr, dst: Ipv6Addr, protocol: u8, len: usize) -> Self {
        Self { sum: sum_16(src.octets()) + sum_16(dst.octets()) + pseudo_tail(protocol, len), odd: false }
    }

    /// Adds a string of octets of any length.
    pub fn add(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.add_sum(sum_words(bytes), bytes.len());
        }
    }

    /// Adds a string of octets while it is copied to `to`, which has its length.
    pub(super) fn add_copied(&mut self, bytes: &[u8], to: &mut [u8]) {
        self.add_sum(copy_words(bytes, to), bytes.len());
    }

    /// Adds the sum of the words of a string of `len` octets.
    fn add_sum(&mut self, sum: u64, len: usize) {
        self.sum +=
            if self.odd { u64::from(fold(sum).swap_bytes()) } else { (sum & 0xffff_ffff) + (sum >> 32) };
        self.odd ^= len % 2 == 1;
    }

    /// Adds a 16-bit field.
    pub fn add_u16(&mut self, field: u16) {
        debug_assert!(!self.odd, "a field at an odd position");
        self.sum += u64::from(field.to_be());
    }

    /// Adds a 32-bit field.
    pub(super) fn add_u32(&mut self, field: u32) {
        debug_assert!(!self.odd, "a field at an odd position");
        self.sum += u64::from(field.to_be());
    }

    /// The ones' complement sum itself, as a number in network order.
    #[must_use]
    pub fn sum(self) -> u16 {
        u16::from_be(fold(self.sum))
    }

    /// The checksum: the complement of the sum.
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.sum()
    }

    /// True if the summed data, including its checksum field, is intact: the sum is all ones.
    #[must_use]
    pub fn is_valid(self) -> bool {
        fold(self.sum) == 0xffff
    }
}

/// The checksum of one string of octets.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    !u16::from_be(fold(sum_words(bytes)))
}

/// The updated checksum of a packet in which one 16-bit field changes `from` one value `to`
/// another, without reading the rest (RFC 1624, section 3, equation 3).
#[must_use]
pub const fn update(checksum: u16, from: u16, to: u16) -> u16 {
    let mut sum = !checksum as u32 + !from as u32 + to as u32;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// [`update`] for a field of 32 bits at an even position.
#[must_use]
pub const fn update_u32(checksum: u16, from: u32, to: u32) -> u16 {
    let high = update(checksum, (from >> 16) as u16, (to >> 16) as u16);
    update(high, from as u16, to as u16)
}

/// The sum over a header of 20 octets, in native order.
pub(super) fn sum_20(bytes: &[u8; 20]) -> u16 {
    let (words, _) = bytes.as_chunks::<4>();
    fold(words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum())
}

fn pseudo_tail(protocol: u8, len: usize) -> u64 {
    u64::from(u16::from(protocol).to_be()) + u64::from((len as u32).to_be())
}

fn sum_16(bytes: [u8; 16]) -> u64 {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

/// 64 bits to 16, with end-around carry: a number and itself with its halves exchanged add up to
/// the sum of the halves, and its carry, in the upper half.
const fn fold(sum: u64) -> u16 {
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// Strings from this length on are worth vectors, in octets. Headers are shorter.
const LONG: usize = 64;

/// The sum of 32-bit words of which two are read at once, in native order.
///
/// One sum is that of both together, which overflows; the other one is that of the upper words
/// alone, which does not below 2^32 pairs. The lower words are what is left of the first without
/// the second. That takes two additions and a shift for two words. The loops have no lanes of their
/// own, for only then do compilers make vectors of them.
#[derive(Default)]
struct PairSum {
    both: u64,
    upper: u64,
}

impl PairSum {
    #[inline(always)]
    fn add(&mut self, pair: [u8; 8]) {
        let pair = u64::from_ne_bytes(pair);
        self.both = self.both.wrapping_add(pair);
        self.upper += pair >> 32;
    }

    const fn sum(self) -> u64 {
        self.both.wrapping_sub(self.upper << 32) + self.upper
    }
}

/// The sum of 32-bit words in native order; the last word is padded with zeros.
fn sum_words(bytes: &[u8]) -> u64 {
    if bytes.len() < LONG {
        return sum_short(bytes);
    }
    let (pairs, rest) = bytes.as_chunks();
    let mut sum = PairSum::default();
    for pair in pairs {
        sum.add(*pair);
    }
    sum.sum() + sum_short(rest)
}

/// [`sum_words`] of a string that is copied to one of the same length, so that each octet is read
/// once.
fn copy_words(bytes: &[u8], to: &mut [u8]) -> u64 {
    let ((pairs, rest), (target, target_rest)) = (bytes.as_chunks(), to.as_chunks_mut());
    let mut sum = PairSum::default();
    for (pair, target) in pairs.iter().zip(target) {
        *target = *pair;
        sum.add(*pair);
    }
    target_rest.copy_from_slice(rest);
    sum.sum() + sum_short(rest)
}

/// [`sum_words`], word by word.
fn sum_short(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    if !rest.is_empty() {
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        sum += u64::from(u32::from_ne_bytes(last));
    }
    sum
}
