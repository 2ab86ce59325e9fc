//! `ackline send`, `recv` and `demo`.

mod demo;
mod json_stream;
mod recv;
mod resources;
mod send;
