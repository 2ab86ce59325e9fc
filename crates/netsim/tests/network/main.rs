//! Whole networks with real endpoints.

mod capture;
mod common;
mod dumbbell;
mod record;
mod topologies;
