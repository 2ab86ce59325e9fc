//! Congestion window and slow-start threshold.

use crate::policy::cc::{CcInit, DecreaseFrom};
use crate::units::Window;

/// The two windows of a flow, and the size of its segments.
///
/// The congestion window has 32 fraction bits, since one ACK raises a large window by less than a
/// thousandth of a byte, and is below 4 GiB, four times the largest TCP window (RFC 7323, section
/// 2.3). `f64` holds 53 bits of it. All arithmetic here is exact or rounded as IEEE 754 demands, so
/// every machine computes the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Bytes times 2^32.
    cwnd: u64,
    ssthresh: Window,
    smss: u32,
    /// What a decrease starts from.
    decrease_from: DecreaseFrom,
}

/// 2^32.
const ONE: f64 = 4_294_967_296.0;
/// Fraction bits beyond those of a [`Window`].
const FINER: u32 = 32 - Window::FRACTION_BITS;

const fn from_window(window: Window) -> u64 {
    let raw = window.raw();
    if raw >> (64 - FINER) != 0 { u64::MAX } else { raw << FINER }
}

/// Rounded down to 2^-32 byte; saturates; negative numbers and NaN are zero.
const fn from_bytes(bytes: f64) -> u64 {
    (bytes * ONE) as u64
}

const fn to_bytes(fixed: u64) -> f64 {
    fixed as f64 / ONE
}

impl Windows {
    /// The windows of a flow that starts from `init`.
    #[must_use]
    pub const fn new(init: &CcInit) -> Self {
        Self {
            cwnd: from_window(init.initial_window),
            ssthresh: init.ssthresh,
            smss: init.smss,
            decrease_from: init.decrease_from,
        }
    }

    /// What the connection's decreases start from.
    pub(super) const fn decrease_from(&self) -> DecreaseFrom {
        self.decrease_from
    }

    /// The congestion window, rounded down to 2^-16 byte.
    #[must_use]
    pub const fn cwnd(&self) -> Window {
        Window::from_raw(self.cwnd >> FINER)
    }

    /// The congestion window in bytes.
    #[must_use]
    pub const fn bytes(&self) -> f64 {
        to_bytes(self.cwnd)
    }

    /// The congestion window in segments.
    #[must_use]
    pub const fn segments(&self) -> f64 {
        self.bytes() / self.smss as f64
    }

    /// The slow-start threshold; [`Window::MAX`] before the first congestion.
    #[must_use]
    pub const fn ssthresh(&self) -> Window {
        self.ssthresh
    }

    /// Sender maximum segment size in payload bytes (RFC 5681, section 2).
    #[must_use]
    pub const fn smss(&self) -> u32 {
        self.smss
    }

    /// True if the window is below `ssthresh`.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd() < self.ssthresh
    }

    /// Raises the window by `bytes`. Ignores negative numbers and NaN.
    pub const fn grow(&mut self, bytes: f64) {
        self.cwnd = self.cwnd.saturating_add(from_bytes(bytes));
    }

    /// Slow start: raises the window by `bytes`, up to `ssthresh`. Returns the bytes left over.
    #[must_use = "what is left counts in congestion avoidance"]
    pub fn open(&mut self, bytes: f64) -> f64 {
        let step = from_bytes(bytes);
        let room = from_window(self.ssthresh).saturating_sub(self.cwnd);
        self.cwnd = self.cwnd.saturating_add(step.min(room));
        to_bytes(step.saturating_sub(room))
    }

    /// Lowers `ssthresh` to `bytes`, but not below two segments (RFC 5681, equation 4), and the
    /// window to `ssthresh` unless it is smaller already.
    pub fn reduce_to(&mut self, bytes: f64) {
        let least = Window::from_bytes(2 * u64::from(self.smss));
        self.ssthresh = Window::from_f64(bytes).max(least);
        self.limit(self.ssthresh);
    }

    /// Lowers both windows to `window`, unless they are smaller already; `ssthresh` not below two
    /// segments (RFC 5681, equation 4).
    pub(super) fn halve_to(&mut self, window: Window) {
        let least = Window::from_bytes(2 * u64::from(self.smss));
        self.ssthresh = self.ssthresh.min(window.max(least));
        self.limit(window.max(Window::from_bytes(u64::from(self.smss))));
    }

    /// Sets the window to `bytes`, but not below one segment.
    pub fn set_bytes(&mut self, bytes: f64) {
        self.cwnd = from_bytes(bytes).max(from_window(Window::from_bytes(u64::from(self.smss))));
    }

    /// Sets `ssthresh`.
    pub const fn set_ssthresh(&mut self, ssthresh: Window) {
        self.ssthresh = ssthresh;
    }

    /// Lowers the window to `window`, unless it is smaller already.
    pub fn limit(&mut self, window: Window) {
        self.cwnd = self.cwnd.min(from_window(window));
    }

    /// Restarts from `window` after a timeout: the window is at most that. If it was below two
    /// segments (RFC 5681, section 3.1, after a lost SYN or an earlier timeout), a restart window
    /// of two or more raises it to two.
    pub fn restart(&mut self, window: Window) {
        let two = Window::from_bytes(2 * u64::from(self.smss));
        if window >= two {
            self.raise(two);
        }
        self.limit(window);
    }

    /// Raises the window to at least `window`.
    pub fn raise(&mut self, window: Window) {
        self.cwnd = self.cwnd.max(from_window(window));
    }

    /// Takes back all growth of the window since `before`, and any decrease below one segment.
    pub(super) fn hold_below(&mut self, before: &Self) {
        let segment = from_window(Window::from_bytes(u64::from(self.smss)));
        self.cwnd = self.cwnd.max(segment).min(before.cwnd);
    }

    /// Raises both windows to at least those of `before`.
    pub(super) fn raise_to(&mut self, before: &Self) {
        self.cwnd = self.cwnd.max(before.cwnd);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
    }

    pub(super) const fn set_cwnd_of(&mut self, other: &Self) {
        self.cwnd = other.cwnd;
    }

    pub(super) const fn set_smss(&mut self, smss: u32) {
        self.smss = smss;
    }
}
