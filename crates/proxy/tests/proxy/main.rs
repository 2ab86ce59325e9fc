//! A proxy between a client's stack, over a device in memory, and sockets of the kernel.

#![allow(clippy::missing_docs_in_private_items, reason = "tests")]

mod connections;
mod exits;
mod flows;
mod judge_of_connections;
mod judge_of_names;
mod judge_of_translation;
mod limits;
mod names;
mod published;
mod rates;
mod server_names;
mod servers;
mod upstreams;
mod world;
