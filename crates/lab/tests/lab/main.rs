//! Scenarios from text to folder.

mod batches;
mod library;
mod runs;
mod tables;
