//! The wire codec beside three independent ones: smoltcp's, etherparse and pnet_packet.

mod decoders;
mod emit;
mod extension_headers;
mod foreign;
mod gso;
mod icmp;
mod options;
mod partial;
mod robustness;
mod strategies;
