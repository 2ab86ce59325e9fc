//! What a stack asks the system and the runtime of tokio: memory, random numbers, kinds of threads.

pub(crate) mod memory;
pub(crate) mod random;
pub(crate) mod workers;
