//! Scenarios from text to folder.

mod batches;
mod docs;
mod library;
mod reports;
mod runs;
mod stage;
mod tables;
