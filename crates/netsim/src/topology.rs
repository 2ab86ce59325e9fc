//! Identifiers of nodes and links.

/// A node: a host or a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

impl NodeId {
    /// Index among all nodes, in order of creation.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Index among all links, in order of creation.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
