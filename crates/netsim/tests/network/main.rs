//! Whole networks with real endpoints.

mod common;
mod dumbbell;
mod topologies;
