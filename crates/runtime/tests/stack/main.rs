//! Stacks that talk to each other over a pair of devices in memory.

mod chunks;
mod churn;
mod closing;
mod common;
mod connecting;
mod datagrams;
mod driver;
mod exchanging;
mod fast_open;
mod impaired;
mod incoming;
mod options;
mod packets;
mod reports;
mod settings;
mod shards;
mod waiting;
