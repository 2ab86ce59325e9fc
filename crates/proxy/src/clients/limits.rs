//! The table `[limits]`.

use crate::clients::Limits;
use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::{Key, Keyed, Params};

/// The table `[limits]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// Limits of clients.
    pub clients: Limits,
    /// See [`Config::connect_timeout`](crate::Config::connect_timeout).
    pub connect_timeout: Duration,
    /// See [`Config::server_timeout`](crate::Config::server_timeout).
    pub server_timeout: Duration,
    /// See [`Config::backlog`](crate::Config::backlog).
    pub backlog: u64,
    /// See [`Config::windows`](crate::Config::windows).
    pub windows: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            clients: Limits::default(),
            connect_timeout: Duration::from_secs(30),
            server_timeout: Duration::from_secs(10),
            backlog: 64 << 20,
            windows: u64::MAX,
        }
    }
}

/// Any number.
const ANY: std::ops::RangeInclusive<u32> = 0..=u32::MAX;
/// Any number of bytes, up to a TiB.
const BYTES: std::ops::RangeInclusive<u64> = 0..=1 << 40;
/// Shorter than a SYN is held (`held_syn_timeout`).
const TIMES: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(50);

impl Keyed for FileLimits {
    const KEYS: &'static [Key<Self>] = &[
        Key::integer("client_connections", ANY, "connections of one client", |it| {
            &mut it.clients.client_connections
        }),
        Key::integer("client_flows", ANY, "UDP flows of one client", |it| &mut it.clients.client_flows),
        Key::integer("client_total", ANY, "both together; at most half of total", |it| {
            &mut it.clients.client_total
        }),
        Key::integer(
            "client_early",
            ANY,
            "outbound connections of one client started before its own handshake is complete",
            |it| &mut it.clients.client_early,
        ),
        Key::integer(
            "early",
            ANY,
            "the same of all clients, concurrently and per second; at most a quarter of total",
            |it| &mut it.clients.early,
        ),
        Key::integer("total", ANY, "connections and flows of all clients", |it| &mut it.clients.total),
        Key::time("connect_timeout", TIMES, "time until the destination answers", |it| {
            &mut it.connect_timeout
        }),
        Key::time(
            "server_timeout",
            TIMES,
            "part of connect_timeout until the upstream server is ready",
            |it| &mut it.server_timeout,
        ),
        Key::size_u64("backlog", BYTES, "send buffers of all connections whose receiver is slow", |it| {
            &mut it.backlog
        }),
        Key::size_u64("windows", BYTES, "receive windows of all clients that send bulk data", |it| {
            &mut it.windows
        }),
    ];
}

impl FileLimits {
    /// Takes `key = value`.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub(crate) fn read(&mut self, key: &str, value: &toml::Value) -> Result<(), String> {
        let text = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            _ => return Err("not a number or a text in quotes".to_owned()),
        };
        self.set("[limits]", &Params::single(key, &text)).map_err(|error| match error.expectation() {
            Some((_, expected)) => format!("{text} is not possible; write {expected}"),
            None => error.to_string(),
        })
    }
}
