//! Notices of a connection for its application, until the endpoint delivers them.

/// A set of notices. Each kind is pending at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Notices(u8);

impl Notices {
    /// A passive open reached ESTABLISHED, or data passes before that.
    pub(crate) const ACCEPTED: Self = Self(1);
    /// An active open reached ESTABLISHED.
    pub(crate) const CONNECTED: Self = Self(2);
    /// Data, or the end of the stream, can be read.
    pub(crate) const READABLE: Self = Self(4);
    /// A partial write can continue.
    pub(crate) const WRITABLE: Self = Self(8);
    /// Everything written and the FIN have been acknowledged.
    pub(crate) const FLUSHED: Self = Self(16);
    /// The connection has ended.
    pub(crate) const CLOSED: Self = Self(32);

    /// Adds `other`.
    pub(crate) const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// True if all of `other` is in the set.
    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if nothing is pending.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Takes the pending notice that occurs first in the life of a connection.
    pub(crate) const fn take_first(&mut self) -> Option<Self> {
        let rest = self.0 & self.0.wrapping_sub(1);
        let first = Self(self.0 & !rest);
        self.0 = rest;
        if first.is_empty() { None } else { Some(first) }
    }
}
