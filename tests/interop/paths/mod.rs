//! Paths that lose, stall, or are slow.

mod impaired;
mod stalls;
mod uplink;
