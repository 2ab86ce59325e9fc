//! Stacks that talk to each other over a pair of devices in memory.

mod chunks;
mod churn;
mod closing;
mod common;
mod connecting;
mod datagrams;
mod exchanging;
mod failing;
mod fast_open;
mod impaired;
mod incoming;
mod observing;
mod options;
mod pacing;
mod packets;
mod polling;
mod printing;
mod settings;
mod shards;
mod spans;
mod turns;
mod waiting;
mod workers;
