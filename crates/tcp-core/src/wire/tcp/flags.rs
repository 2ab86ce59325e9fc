//! The control bits of the TCP header (RFC 9293, section 3.1; AE: RFC 9768, section 3.1).

use crate::wire::Ecn;
use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// A set of TCP control bits.
///
/// Only contains the nine assigned bits: the three reserved ones are ignored on receipt and sent as
/// zero (RFC 9293, section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpFlags(u16);

impl TcpFlags {
    /// No bit at all.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x001);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x002);
    /// Reset the connection.
    pub const RST: Self = Self(0x004);
    /// Push: hand what has arrived to the application.
    pub const PSH: Self = Self(0x008);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x020);
    /// ECN-Echo (RFC 3168, section 6.1).
    pub const ECE: Self = Self(0x040);
    /// Congestion Window Reduced (RFC 3168, section 6.1).
    pub const CWR: Self = Self(0x080);
    /// Accurate ECN (RFC 9768), the bit that RFC 3540 called NS.
    pub const AE: Self = Self(0x100);

    /// The field ACE of accurate ECN: AE, CWR and ECE (RFC 9768, section 3.2.2).
    pub const ACE: Self = Self(0x1c0);

    const ALL: u16 = 0x1ff;
    const ACE_SHIFT: u32 = 6;

    /// The set of these bits of the header's flag field; unassigned ones are dropped.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & Self::ALL)
    }

    /// The bits as in the header, at most `0x1ff`.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The lowest three bits of a counter, as ACE.
    #[must_use]
    pub const fn ace_of(counter: u32) -> Self {
        Self(((counter & 7) << Self::ACE_SHIFT) as u16)
    }

    /// What ACE says in a handshake of a packet that arrived with `ecn` (RFC 9768, section 3.2.2.1,
    /// table 3).
    #[must_use]
    pub const fn ace_code(ecn: Ecn) -> Self {
        Self::ace_of(match ecn {
            Ecn::NotEct => 0b010,
            Ecn::Ect1 => 0b011,
            Ecn::Ect0 => 0b100,
            Ecn::Ce => 0b110,
        })
    }

    /// ACE as a number, 0 to 7.
    #[must_use]
    pub const fn ace(self) -> u8 {
        (self.0 >> Self::ACE_SHIFT & 7) as u8
    }

    /// True if the set contains every bit of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if the set contains at least one bit of `other`.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set without the bits of `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// True if the set has no bits.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Sequence numbers that the bits occupy: one for SYN, one for FIN (RFC 9293, section 3.4).
    #[must_use]
    pub const fn sequence_len(self) -> u32 {
        self.contains(Self::SYN) as u32 + self.contains(Self::FIN) as u32
    }
}

impl BitOr for TcpFlags {
    type Output = Self;
    fn bitor(self, rhs: Self) -> Self {
        self.union(rhs)
    }
}

impl BitOrAssign for TcpFlags {
    fn bitor_assign(&mut self, rhs: Self) {
        *self = self.union(rhs);
    }
}

/// One letter per bit: `SA` for SYN and ACK; `W` is CWR, `e` is AE, and `-` the empty set.
impl fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        for (bit, letter) in ["F", "S", "R", "P", "A", "U", "E", "W", "e"].into_iter().enumerate() {
            if self.0 >> bit & 1 == 1 {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
