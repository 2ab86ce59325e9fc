//! Scenarios from text to folder.

mod batches;
mod docs;
mod library;
mod runs;
mod tables;
