//! A congestion window with 32 fraction bits.

use ackline_tcp_core::Window;

/// Bytes times 2^32; saturates below 4 GiB, which is four times what a TCP window can be (RFC 7323, section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cwnd(u64);

/// 2^32.
const ONE: f64 = 4_294_967_296.0;
/// Fraction bits that a [`Window`] lacks.
const FINER: u32 = 32 - Window::FRACTION_BITS;

impl Cwnd {
    /// `bytes`, rounded down to 2^-32; saturates, and what is negative or no number is zero.
    pub(crate) const fn from_bytes(bytes: f64) -> Self {
        Self((bytes * ONE) as u64)
    }

    pub(crate) const fn from_window(window: Window) -> Self {
        let raw = window.raw();
        if raw >> (64 - FINER) != 0 { Self(u64::MAX) } else { Self(raw << FINER) }
    }

    /// Rounded down to 2^-16 byte.
    pub(crate) const fn window(self) -> Window {
        Window::from_raw(self.0 >> FINER)
    }

    /// Bytes, to the 53 bits of an `f64`.
    pub(crate) const fn bytes(self) -> f64 {
        self.0 as f64 / ONE
    }

    pub(crate) const fn saturating_add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }

    pub(crate) const fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}
