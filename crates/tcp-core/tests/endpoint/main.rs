//! Endpoints as a driver sees them.

mod adversary;
mod egress;
mod limits;
mod net;
mod orphans;
mod path_mtu;
mod refusals;
mod stray;
mod time_wait;
mod transfer;
