//! Handles that an endpoint gives out.

use core::fmt;

/// A connection of an endpoint. Never given out twice, so a stale handle finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnId {
    /// A handle that names no connection of any endpoint unless `index` and `generation` were given out
    /// together; for tests of schedulers.
    #[must_use]
    pub const fn for_test(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// A dense index, below the largest number of connections that were open at once; reused with another
    /// generation after the connection is gone.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

impl fmt::Debug for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}.{}", self.index, self.generation)
    }
}

/// A listener of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) u32);

/// A packet that was handed to the driver and not yet reported as departed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxId(pub u64);
