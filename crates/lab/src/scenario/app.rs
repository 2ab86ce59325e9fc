//! Applications, as a scenario says them.

use super::reader::{Item, Table};
use crate::error::ScenarioError;
use ackline_netsim::app::{
    Amount, BsdWriter, Bulk, Client, ClientOptions, CopyRule, Downloader, Draw, Exchange, FileServer,
    HostCosts, Reading, Schedule, Server, Sink, Source,
};
use ackline_netsim::{AppId, NodeId, Sim};
use ackline_tcp_core::config::{AcceptConfig, ConnConfig, ListenOn, Target};
use ackline_tcp_core::{Duration, Instant};
use std::sync::Arc;

type Result<T> = std::result::Result<T, ScenarioError>;

/// What an application does.
#[derive(Clone, Debug)]
pub(crate) enum AppKind {
    Bulk { amount: Amount, transfers: u64, wait: Draw, reading: Reading },
    Request { options: ClientOptions },
    Download { size: Draw, wait: Draw, files: Option<u64> },
    Source { schedule: Schedule, reading: Reading },
    Bsd { rule: CopyRule, costs: HostCosts, size: Option<u64>, reading: Reading },
}

/// Keys of every kind.
const COMMON: &[&str] =
    &["kind", "name", "from", "to", "start", "count", "stagger", "jitter", "conn", "accept"];

const KINDS: &[(&str, &[&str])] = &[
    ("bulk", &["size", "duration", "transfers", "wait", "reader"]),
    ("request", &["request", "response", "think", "requests", "reconnect"]),
    ("download", &["size", "wait", "files"]),
    ("writes", &["size", "interval", "writes", "reader"]),
    ("on-off", &["on", "off", "rounds", "reader"]),
    ("bsd-writer", &["size", "copy", "unit", "wake_up", "copy_kb", "reader"]),
];

/// Reads what the application does, and checks the keys of its table.
pub(crate) fn kind(table: &Table<'_>) -> Result<AppKind> {
    let choices: Vec<_> = KINDS.iter().enumerate().map(|(place, (name, _))| (*name, place)).collect();
    let (name, keys) = KINDS[table.need("kind")?.choice(&choices)?];
    let all: Vec<&str> = COMMON.iter().chain(keys).copied().collect();
    table.only_for(name, &all)?;
    let many = |key: &str| table.maybe(key, |item| item.integer(1..=u64::MAX >> 1));
    let reading = || table.or("reader", Reading::Instant, reading);
    Ok(match name {
        "bulk" => AppKind::Bulk {
            amount: amount(table)?,
            transfers: many("transfers")?.unwrap_or(1),
            wait: table.or("wait", Draw::ZERO, |item| draw(item, &seconds))?,
            reading: reading()?,
        },
        "request" => AppKind::Request {
            options: ClientOptions {
                exchange: Exchange {
                    request: table.need("request")?.bytes(1..=1 << 40)?,
                    response: table.need("response")?.bytes(1..=1 << 40)?,
                },
                think: table.or("think", Draw::ZERO, |item| draw(item, &seconds))?,
                count: many("requests")?,
                reconnect: table.or("reconnect", false, Item::switch)?,
            },
        },
        "download" => AppKind::Download {
            size: draw(&table.need("size")?, &bytes)?,
            wait: table.or("wait", Draw::ZERO, |item| draw(item, &seconds))?,
            files: many("files")?,
        },
        "writes" => AppKind::Source {
            schedule: Schedule::Writes {
                size: draw(&table.need("size")?, &bytes)?,
                interval: draw(&table.need("interval")?, &positive_seconds)?,
                count: many("writes")?,
            },
            reading: reading()?,
        },
        "on-off" => AppKind::Source {
            schedule: Schedule::OnOff {
                on: draw(&table.need("on")?, &positive_seconds)?,
                off: draw(&table.need("off")?, &positive_seconds)?,
                count: many("rounds")?,
            },
            reading: reading()?,
        },
        _ => AppKind::Bsd {
            rule: copy_rule(table)?,
            costs: costs(table)?,
            size: table.maybe("size", |item| item.bytes(1..=1 << 50))?,
            reading: reading()?,
        },
    })
}

fn amount(table: &Table<'_>) -> Result<Amount> {
    match (table.get("size"), table.get("duration")) {
        (Some(_), Some(duration)) => Err(duration.error("give size or duration, not both")),
        (Some(size), None) => Ok(Amount::Bytes(size.bytes(1..=1 << 50)?)),
        (None, Some(duration)) => Ok(Amount::For(duration.some_time()?)),
        (None, None) => Ok(Amount::Endless),
    }
}

fn copy_rule(table: &Table<'_>) -> Result<CopyRule> {
    let rules = [("whole", true), ("partial", false)];
    let whole = table.or("copy", true, |item| item.choice(&rules))?;
    let unit = table.maybe("unit", |item| Ok(item.bytes(1..=1 << 30)? as u32))?;
    Ok(if whole { CopyRule::Whole(unit.unwrap_or(4_096)) } else { CopyRule::Partial(unit.unwrap_or(512)) })
}

fn costs(table: &Table<'_>) -> Result<HostCosts> {
    Ok(HostCosts {
        wake_up: table.or("wake_up", Duration::ZERO, Item::time)?,
        copy_kb: table.or("copy_kb", Duration::ZERO, Item::time)?,
    })
}

/// `"instant"`, or a table: `{ bytes, interval }` for a slow reader, `{ wake_up, copy_kb }` for a host's costs.
fn reading(item: &Item<'_>) -> Result<Reading> {
    if item.text().is_ok() {
        return item.choice(&[("instant", Reading::Instant)]);
    }
    let table = item.table()?;
    table.only(&["bytes", "interval", "wake_up", "copy_kb"])?;
    if table.get("wake_up").is_some() || table.get("copy_kb").is_some() {
        table.only_for("a reader with costs", &["wake_up", "copy_kb"])?;
        return Ok(Reading::Copying(costs(&table)?));
    }
    Ok(Reading::Slow {
        bytes: table.need("bytes")?.bytes(1..=1 << 30)? as usize,
        interval: table.need("interval")?.some_time()?,
    })
}

type Unit = dyn Fn(&Item<'_>) -> Result<f64>;

fn seconds(item: &Item<'_>) -> Result<f64> {
    item.time().map(Duration::as_secs_f64)
}

/// A schedule that takes no time would never end.
fn positive_seconds(item: &Item<'_>) -> Result<f64> {
    item.some_time().map(Duration::as_secs_f64)
}

fn bytes(item: &Item<'_>) -> Result<f64> {
    item.bytes(1..=1 << 50).map(|bytes| bytes as f64)
}

/// A value, or how it is drawn: `{ uniform = [low, high] }`, `{ exponential = mean }`, `{ pareto = smallest, shape = 1.5 }`.
fn draw(item: &Item<'_>, unit: &Unit) -> Result<Draw> {
    if !item.is_table() {
        return unit(item).map(Draw::Fixed);
    }
    let table = item.table()?;
    table.only(&["uniform", "exponential", "pareto", "shape"])?;
    match (table.get("uniform"), table.get("exponential"), table.get("pareto")) {
        (Some(ends), None, None) => match ends.list()?.as_slice() {
            [low, high] => {
                let (low, high) = (unit(low)?, unit(high)?);
                if low > high {
                    return Err(ends.error("the first must not be larger than the second"));
                }
                if low == high {
                    return Err(ends.error("both ends are the same: nothing is drawn; write the value alone"));
                }
                Ok(Draw::Uniform(low, high))
            }
            _ => Err(ends.error("write uniform = [smallest, largest]")),
        },
        (None, Some(mean), None) => Ok(Draw::Exponential(above_zero(&mean, unit)?)),
        (None, None, Some(scale)) => {
            let shape = table.need("shape")?.number(0.05..=100.0)?;
            Ok(Draw::Pareto { scale: above_zero(&scale, unit)?, shape })
        }
        _ => Err(table.error(
            "write a value, { uniform = [low, high] }, { exponential = mean } or { pareto = smallest, shape = 1.5 }",
        )),
    }
}

/// What is drawn around zero is always zero.
fn above_zero(item: &Item<'_>, unit: &Unit) -> Result<f64> {
    let value = unit(item)?;
    if value > 0.0 { Ok(value) } else { Err(item.error("it must be larger than zero, or nothing is drawn")) }
}

/// The two ends of a flow, as applications.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// Who opens the connection.
    pub(crate) opener: AppId,
    /// Who accepts it.
    pub(crate) acceptor: AppId,
}

/// What both ends of a flow need.
#[derive(Debug)]
pub(crate) struct Wiring {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) target: Target,
    pub(crate) start: Instant,
    pub(crate) conn: Arc<ConnConfig>,
    pub(crate) accept: Arc<ConnConfig>,
}

impl AppKind {
    /// True where data flows from the one who accepts to the one who opens.
    pub(crate) const fn pulls(&self) -> bool {
        matches!(self, Self::Request { .. } | Self::Download { .. })
    }

    /// True where it sends one stream as fast as TCP takes it.
    pub(crate) const fn is_greedy(&self) -> bool {
        matches!(self, Self::Bulk { transfers: 1, .. } | Self::Bsd { .. })
    }

    /// Bytes of one answer, where received bytes are counted in answers.
    pub(crate) const fn answer(&self) -> Option<u64> {
        match self {
            Self::Request { options } => Some(options.exchange.response),
            _ => None,
        }
    }

    /// Adds both ends; the acceptor listens from the beginning.
    pub(crate) fn add(&self, sim: &mut Sim, wiring: Wiring) -> Ends {
        let Wiring { from, to, target, start, conn, accept } = wiring;
        let on = ListenOn::Port(target.remote.port());
        let accept = AcceptConfig::new(accept);
        let listens = Instant::ZERO;
        match self.clone() {
            Self::Bulk { amount, transfers, wait, reading } => Ends {
                acceptor: sim.add_app(to, listens, Sink::new(on, accept, reading)),
                opener: sim.add_app(from, start, Bulk::new(target, conn, amount).repeated(transfers, wait)),
            },
            Self::Request { options } => Ends {
                acceptor: sim.add_app(to, listens, Server::new(on, accept, options.exchange)),
                opener: sim.add_app(from, start, Client::new(target, conn, options)),
            },
            Self::Download { size, wait, files } => Ends {
                acceptor: sim.add_app(to, listens, FileServer::new(on, accept, size)),
                opener: sim.add_app(from, start, Downloader::new(target, conn, wait, files)),
            },
            Self::Source { schedule, reading } => Ends {
                acceptor: sim.add_app(to, listens, Sink::new(on, accept, reading)),
                opener: sim.add_app(from, start, Source::new(target, conn, schedule)),
            },
            Self::Bsd { rule, costs, size, reading } => Ends {
                acceptor: sim.add_app(to, listens, Sink::new(on, accept, reading)),
                opener: sim.add_app(from, start, BsdWriter::new(target, conn, rule, costs, size)),
            },
        }
    }
}
