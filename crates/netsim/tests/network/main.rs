//! Whole networks with real endpoints.

mod apps;
mod capture;
mod common;
mod dumbbell;
mod record;
mod topologies;
