//! Whole networks with real endpoints.

mod apps;
mod capture;
mod common;
mod dumbbell;
mod laws;
mod random;
mod record;
mod topologies;
