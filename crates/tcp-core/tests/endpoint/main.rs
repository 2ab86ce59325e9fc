//! Endpoints as a driver sees them.

mod adversary;
mod chunks;
mod corking;
mod device_mtu;
mod egress;
mod ended;
mod fast_open;
mod fragments;
mod half_open;
mod incoming;
mod limits;
mod managed;
mod memory;
mod net;
mod option_bombs;
mod orphans;
mod packets;
mod path_mtu;
mod quiet;
mod refusals;
mod shards;
mod stray;
mod syn_cookies;
mod time_wait;
mod transfer;
mod udp;
