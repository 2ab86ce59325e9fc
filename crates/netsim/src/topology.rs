//! Nodes and links, by their places.

/// A node: a host or a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

impl NodeId {
    /// Position among all nodes, in the order in which they were made.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Position among all links, in the order in which they were made.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
