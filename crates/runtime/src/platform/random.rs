//! Random numbers from the system.

use std::io;

/// A seed for an unpredictable generator.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    Ok(seed)
}
