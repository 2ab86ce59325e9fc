//! The Internet checksum: the ones' complement of the ones' complement sum of 16-bit words (RFC 1071).
//!
//! The sum does not depend on byte order as long as all words use the same one (RFC 1071, section 2 (B)), so
//! words of 32 bits are read in native order and added up in 64 bits, and the sum is swapped once at the end.

use core::net::{Ipv4Addr, Ipv6Addr};

/// A running ones' complement sum over pieces that together form one string of octets.
///
/// A piece with an odd number of octets shifts those after it by one octet (RFC 1071, section 2 (B)); the
/// accumulator keeps track of that. Items of fixed size may only be added at an even position.
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

    /// The sum over the pseudo-header of IPv4 (RFC 9293, section 3.1); `len` is header plus data in octets.
    #[must_use]
    pub fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len: usize) -> Self {
        let addresses =
            u64::from(u32::from_ne_bytes(src.octets())) + u64::from(u32::from_ne_bytes(dst.octets()));
        Self { sum: addresses + pseudo_tail(protocol, len), odd: false }
    }

    /// The sum over the pseudo-header of IPv6 (RFC 8200, section 8.1); `len` is header plus data in octets.
    #[must_use]
    pub fn pseudo_v6(src: Ipv6Addr, dst: Ipv6Addr, protocol: u8, len: usize) -> Self {
        Self { sum: sum_16(src.octets()) + sum_16(dst.octets()) + pseudo_tail(protocol, len), odd: false }
    }

    /// Adds a string of octets of any length.
    pub fn add(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let sum = sum_words(bytes);
        if self.odd {
            self.sum += u64::from(fold(sum).swap_bytes());
        } else {
            self.sum += (sum & 0xffff_ffff) + (sum >> 32);
        }
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// Adds a 16-bit field.
    pub fn add_u16(&mut self, field: u16) {
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

/// The updated checksum of a packet in which one 16-bit field changes `from` one value `to` another, without
/// reading the rest (RFC 1624, section 3, equation 3).
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

/// 64 bits to 16, with end-around carry.
const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// The sum of the 32-bit words of whole blocks, in native order.
///
/// Two words are read at once. One sum is that of both together, which overflows; the other one is that of the upper words alone,
/// which does not below 2^32 blocks. The lower words are what is left of the first without the second. That takes two additions
/// and a shift for two words. The loop has no lanes of its own, for only then do compilers make vectors of it.
fn sum_blocks(blocks: &[[u8; 64]]) -> u64 {
    let (pairs, _) = blocks.as_flattened().as_chunks::<8>();
    let (mut both, mut upper) = (0u64, 0u64);
    for pair in pairs {
        let pair = u64::from_ne_bytes(*pair);
        both = both.wrapping_add(pair);
        upper += pair >> 32;
    }
    both.wrapping_sub(upper << 32) + upper
}

/// The sum of 32-bit words in native order; the last word is padded with zeros.
fn sum_words(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<64>();
    // A header has no whole block, and need not pay for the lanes.
    let mut sum = if blocks.is_empty() { 0 } else { sum_blocks(blocks) };
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    sum + u64::from(u32::from_ne_bytes(last))
}
