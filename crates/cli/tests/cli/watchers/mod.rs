//! Captures, traces, metrics and control sockets of running commands, and what reads them.

pub(crate) mod capture;
mod control;
mod metrics;
mod nstat;
mod prometheus;
mod top;
mod trace;
