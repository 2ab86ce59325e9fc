//! Scenarios from text to folder.

mod batches;
mod bbr;
mod docs;
mod league;
mod league_live;
mod library;
mod reports;
mod runs;
mod stage;
mod tables;
