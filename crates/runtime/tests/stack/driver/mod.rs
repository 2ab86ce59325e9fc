//! The driver: when it runs, for how long, and what happens if it fails.

mod failing;
mod pacing;
mod polling;
mod turns;
mod workers;
