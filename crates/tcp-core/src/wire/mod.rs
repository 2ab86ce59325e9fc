//! Wire formats.

use core::num::NonZeroU16;

/// TCP flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TcpFlags(pub u16);

/// Who completes a TCP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxChecksum {
    /// It is complete.
    Complete,
    /// The device sums from `start` and stores at `start + offset`.
    Partial {
        /// First byte of the sum.
        start: u16,
        /// Where the result goes, from `start`.
        offset: u16,
    },
}

/// What is known of a received packet's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxChecksum {
    /// Nothing.
    Verify,
    /// It is right.
    Trusted,
    /// Only the pseudo-header's sum is filled in.
    Partial,
}

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct RxPacket<'a> {
    /// Headers, and payload.
    pub head: &'a [u8],
    /// More payload.
    pub more: [&'a [u8]; 2],
    /// Payload bytes per wire packet of a super-packet.
    pub segment_size: Option<NonZeroU16>,
    /// Checksum state.
    pub checksum: RxChecksum,
}
