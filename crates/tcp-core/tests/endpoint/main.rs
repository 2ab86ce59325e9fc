//! Endpoints as a driver sees them.

mod adversary;
mod chunks;
mod closing;
mod corking;
mod device_mtu;
mod egress;
mod ip;
mod limits;
mod managed;
mod memory;
mod net;
mod opens;
mod path_mtu;
mod quiet;
mod shards;
mod transfer;
mod udp;
