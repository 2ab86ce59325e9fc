//! The `ackline` binary from outside. Tests of `send`, `recv` and `demo` against the kernel's TCP
//! make network namespaces of their own; if those may not be made, each says `SKIPPED` with its
//! name.

mod bench;
mod common;
mod devices;
mod emulate;
mod emulate_scenario;
mod explain;
mod explain_kernels;
mod fields;
mod lab;
mod net;
mod new;
mod proxy;
mod proxy_places;
mod terminal;
mod transfers;
mod usage;
mod watchers;
mod worlds;
