//! Memory of an endpoint: the rings of its buffers, blocks for reuse, and the budget of both.

pub(crate) mod blocks;
pub(crate) mod budget;
pub(crate) mod ring;
