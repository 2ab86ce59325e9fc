//! Memory of an endpoint: the rings of its buffers, blocks to take again, and the budget of both.

pub(crate) mod blocks;
pub(crate) mod budget;
pub(crate) mod ring;
