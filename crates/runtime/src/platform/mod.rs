//! Services of the system and of tokio: the default memory budget, random numbers, kinds of
//! runtimes.

pub(crate) mod memory;
pub(crate) mod random;
pub(crate) mod workers;
