//! Handles issued by an endpoint.

use core::fmt;

/// A connection of an endpoint. Handles are never reused, so a stale handle matches no connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnId {
    /// A handle for tests of schedulers. It matches no connection of any endpoint, unless `index`
    /// and `generation` happen to have been issued together.
    #[must_use]
    pub const fn for_test(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// A dense index, below the maximum number of connections open at once; reused with another
    /// generation after the connection is gone.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// The handle, which one of `shards` endpoints of a host has issued, as one that is unique
    /// among them. Its index is as dense.
    #[must_use]
    pub const fn of_shard(self, shard: usize, shards: usize) -> Self {
        Self { index: self.index.wrapping_mul(shards as u32).wrapping_add(shard as u32), ..self }
    }

    /// The endpoint that has issued a handle made by [`of_shard`](Self::of_shard), and its own
    /// handle. `shards` is at least 1.
    #[must_use]
    pub const fn in_shard(self, shards: usize) -> (usize, Self) {
        let shards = if shards == 0 { 1 } else { shards as u32 };
        ((self.index % shards) as usize, Self { index: self.index / shards, ..self })
    }

    /// How many connections had this index before: with it, the handle is unique within its
    /// endpoint.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
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

/// A UDP socket, or flow, of an endpoint. Handles are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// A packet handed to the driver whose departure has not been reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxId(pub u64);
