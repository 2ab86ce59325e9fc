//! When Nagle's algorithm and delayed acknowledgments lock: the conditions of the paper's section
//! 15.2.
//!
//! The sender holds a small segment back while something is outstanding; the receiver holds its ACK
//! back until 35 % of its buffer, or two full segments, have come. A sender that cannot bring so
//! much waits for the delayed-ACK timer.

use std::fmt;

/// The largest segment, bytes.
pub(super) const MSS: u32 = 9_148;
/// What the socket layer copies before it calls TCP, bytes.
const COPY: u32 = 4_096;
/// The buffers of the tables, KiB.
pub(super) const SIZES: [u32; 8] = [4, 8, 16, 24, 32, 40, 48, 52];

/// A pair of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffers {
    /// The send buffer, KiB.
    pub(super) send: u32,
    /// The receive buffer, KiB.
    pub(super) receive: u32,
}

impl fmt::Display for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.send, self.receive)
    }
}

impl Buffers {
    /// All pairs of the tables, row by row.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        SIZES.into_iter().flat_map(|send| SIZES.into_iter().map(move |receive| Self { send, receive }))
    }

    /// `16-24`.
    pub(super) fn id(self) -> String {
        format!("{}-{}", self.send, self.receive)
    }

    /// Its cell of a matrix.
    pub(super) fn of(self, matrix: &super::numbers::Matrix) -> f64 {
        let place = |size| SIZES.iter().position(|other| *other == size).unwrap_or(0);
        matrix[place(self.send)][place(self.receive)]
    }

    /// A hundred times 35 % of the receive buffer: all comparisons are exact in hundredths of a
    /// byte.
    fn hundredths(self) -> u32 {
        35 * self.receive * 1_024
    }

    const fn send_bytes(self) -> u32 {
        self.send * 1_024
    }

    /// Equation (1): S < min(2 MSS, 0.35 R). The whole buffer is less than what is acknowledged at
    /// once.
    pub(super) fn equation_1(self) -> bool {
        100 * self.send_bytes() < self.hundredths().min(200 * MSS)
    }

    /// Equation (2): S < min(3 MSS, 0.35 R + MSS). What can be sent before a small segment is held
    /// back is less than that.
    pub(super) fn equation_2(self) -> bool {
        100 * self.send_bytes() < self.bound_2()
    }

    /// The right side of equation (2), in hundredths of a byte.
    fn bound_2(self) -> u32 {
        (300 * MSS).min(self.hundredths() + 100 * MSS)
    }

    /// The right side of equation (2), rounded to a byte.
    pub(super) fn bound_2_bytes(self) -> u32 {
        (self.bound_2() + 50) / 100
    }

    /// Equation (2), and one copy of the socket layer does not by itself reach what is acknowledged
    /// at once.
    pub(super) fn locks(self) -> bool {
        self.equation_2() && 100 * COPY.min(self.send_bytes()) < self.hundredths()
    }

    /// The class of a pair that locks, by the sizes of the segments at which it does.
    pub(super) fn class(self) -> Option<Class> {
        self.locks().then_some(match (self.send, self.receive) {
            (8, 16) | (16, 40) => Class::Two,
            (16, 24 | 32) | (24, 48 | 52) => Class::Three,
            _ => Class::One,
        })
    }

    /// The region of Table 15.3.
    pub(super) fn region(self) -> Region {
        match self.send.min(self.receive) {
            0..=8 => Region::Free,
            9..=24 => Region::ProneOne,
            _ => Region::ProneTwo,
        }
    }

    /// True if A3 must wait for its timer after a timeout: MUDS, which is at most min(S, R), is so
    /// large that one segment, which is all that the sender then sends, does not reach 35 % of it.
    pub(super) fn stalls_after_timeout(self) -> bool {
        35 * self.send.min(self.receive) * 1_024 > 100 * MSS
    }
}

/// Kinds of deadlock, section 15.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The buffer is too small from the beginning on.
    One,
    /// The buffer's rest is held back.
    Two,
    /// Comes about only by a residue in the buffer that an ACK of the timer leaves.
    Three,
}

/// Regions of Table 15.3: what becomes of A3 when the network is congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// Never locks.
    Free,
    /// May lock.
    ProneOne,
    /// Locks after each timeout.
    ProneTwo,
}

impl Region {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::ProneOne => "I",
            Self::ProneTwo => "II",
        }
    }
}
