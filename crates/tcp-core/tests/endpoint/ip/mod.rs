//! Fragments, and packets without a connection.

mod fragments;
mod packets;
mod refusals;
pub(crate) mod stray;
