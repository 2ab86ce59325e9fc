//! The `ackline` binary from outside. Tests of `send`, `recv` and `demo` against the kernel's TCP
//! make network namespaces of their own; if those may not be made, each says `SKIPPED` with its
//! name.

mod bench;
mod capture;
mod common;
mod control;
mod demo;
mod dev;
mod emulate;
mod emulate_scenario;
mod evaluate;
mod explain;
mod explain_kernels;
mod fields;
mod frame_socket;
mod json_stream;
mod metrics;
mod net;
mod new;
mod nstat;
mod prometheus;
mod proxy;
mod proxy_places;
mod raw;
mod recv;
mod reproduce;
mod resources;
mod send;
mod sim;
mod terminal;
mod top;
mod trace;
mod usage;
mod worlds;
