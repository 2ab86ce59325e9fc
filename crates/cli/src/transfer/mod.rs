//! Data from and to connections: how they get into a file, how far they are, and what a transfer is
//! measured by.

pub(crate) mod copying;
pub(crate) mod progress;
pub(crate) mod traffic;
