//! Fields of a fixed header in network order, at offsets checked at compile time.

/// Octets of the fixed header of IPv4 and of TCP.
const LEN: usize = 20;

/// The 16-bit field at octet `AT`.
#[inline(always)]
pub(super) fn be16<const AT: usize>(header: &[u8; LEN]) -> u16 {
    const { assert!(AT + 2 <= LEN) };
    u16::from_be_bytes([header[AT], header[AT + 1]])
}

/// The 32-bit field at octet `AT`.
#[inline(always)]
pub(super) fn be32<const AT: usize>(header: &[u8; LEN]) -> u32 {
    const { assert!(AT + 4 <= LEN) };
    u32::from_be_bytes([header[AT], header[AT + 1], header[AT + 2], header[AT + 3]])
}
