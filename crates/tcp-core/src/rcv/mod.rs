//! The receiving half of a connection.

#[cfg_attr(not(test), expect(dead_code, reason = "the receiver's data path uses it once it is built"))]
pub(crate) mod assembler;
