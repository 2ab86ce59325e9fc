//! Endpoints as a driver sees them.

mod adversary;
mod egress;
mod limits;
mod net;
mod refusals;
mod stray;
mod transfer;
