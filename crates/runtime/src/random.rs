//! The system's random numbers.

use std::io;

/// Of a generator that nobody is to guess.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    Ok(seed)
}
