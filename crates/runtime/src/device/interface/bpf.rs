//! Classic BPF programs, put together from blocks: socket(7), `SO_ATTACH_FILTER`.
//!
//! A block goes on behind its end, or decides with [`KEEP`] or [`DROP`].

use libc::sock_filter as Instruction;
use libc::{BPF_ABS, BPF_JA, BPF_JMP, BPF_K, BPF_LD};
#[cfg(any(feature = "af-packet", feature = "raw"))]
use libc::{BPF_JEQ, BPF_JSET, BPF_RET, BPF_W, SKF_AD_OFF, SKF_AD_VLAN_TAG, SKF_AD_VLAN_TAG_PRESENT};
#[cfg(any(feature = "af-packet", feature = "raw"))]
use std::net::Ipv6Addr;

#[cfg(any(feature = "af-packet", feature = "raw"))]
/// Refuses the frame.
pub(in crate::device) const DROP: Instruction = statement(BPF_RET | BPF_K, 0);
#[cfg(any(feature = "af-packet", feature = "raw"))]
/// Accepts all of the frame.
pub(in crate::device) const KEEP: Instruction = statement(BPF_RET | BPF_K, u32::MAX);

#[cfg(any(feature = "af-packet", feature = "raw"))]
/// Drops frames with the tag of a VLAN, which belong to another network. The kernel strips the tag
/// before the program runs.
pub(in crate::device) fn own_vlan() -> Vec<Instruction> {
    vec![
        load(BPF_W, ancillary(SKF_AD_VLAN_TAG_PRESENT)),
        jump(BPF_JEQ, 0, 3, 0),
        load(BPF_W, ancillary(SKF_AD_VLAN_TAG)),
        // The low 12 bits are the VLAN: IEEE 802.1Q, section 9.6. In VLAN 0 the tag only carries a
        // priority.
        jump(BPF_JSET, 0x0fff, 0, 1),
        DROP,
    ]
}

#[cfg(any(feature = "af-packet", feature = "raw"))]
/// Runs `block` if the 16 bytes at this offset are `address`. The accumulator is lost.
pub(in crate::device) fn v6_address(at: u32, address: Ipv6Addr, block: &[Instruction]) -> Vec<Instruction> {
    let bits = address.to_bits();
    let mut equal = block.to_vec();
    for (word, shift) in [(3, 0), (2, 32), (1, 64), (0, 96)] {
        let test = when(BPF_JEQ, (bits >> shift) as u32, &equal);
        equal = [vec![load(BPF_W, at + 4 * word)], test].concat();
    }
    equal
}

#[cfg(any(feature = "af-packet", feature = "raw"))]
/// Continues if the accumulator is one of a few values; otherwise drops the frame.
pub(in crate::device) fn one_of(values: &[u32]) -> Vec<Instruction> {
    let left = |index: usize| (values.len() - index) as u8;
    let tests = values.iter().enumerate().map(|(index, &value)| jump(BPF_JEQ, value, left(index), 0));
    tests.chain([DROP]).collect()
}

/// Runs `block` if the accumulator passes the test, and leaves the accumulator alone if not.
pub(in crate::device) fn when(test: u32, value: u32, block: &[Instruction]) -> Vec<Instruction> {
    // A conditional jump reaches 255 instructions only.
    let over = statement(BPF_JMP | BPF_JA, block.len() as u32);
    [&[jump(test, value, 1, 0), over], block].concat()
}

pub(in crate::device) fn load(size: u32, at: u32) -> Instruction {
    statement(BPF_LD | size | BPF_ABS, at)
}

#[cfg(any(feature = "af-packet", feature = "raw"))]
/// Offset at which the kernel provides metadata about the frame.
pub(in crate::device) const fn ancillary(what: i32) -> u32 {
    (SKF_AD_OFF + what) as u32
}

/// Skips `then` instructions if the accumulator passes the test, else `otherwise`.
pub(in crate::device) const fn jump(test: u32, value: u32, then: u8, otherwise: u8) -> Instruction {
    Instruction { jt: then, jf: otherwise, ..statement(BPF_JMP | test | BPF_K, value) }
}

pub(in crate::device) const fn statement(code: u32, value: u32) -> Instruction {
    Instruction { code: code as u16, jt: 0, jf: 0, k: value }
}
