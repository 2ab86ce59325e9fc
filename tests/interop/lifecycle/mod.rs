//! How connections begin and end.

mod close;
mod endings;
mod fast_open;
mod incoming;
mod open;
