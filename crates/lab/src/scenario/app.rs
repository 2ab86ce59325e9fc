//! Applications, as a scenario says them.

use super::keys::Accepts;
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

/// Reads what the application does.
pub(crate) fn kind(table: &Table<'_>) -> Result<AppKind> {
    let many = |key: &str| table.maybe(key, Item::integer);
    let reading = || table.or("reader", Reading::Instant, reading);
    Ok(match table.kind() {
        "bulk" => AppKind::Bulk {
            amount: amount(table)?,
            transfers: many("transfers")?.unwrap_or(1),
            wait: table.or("wait", Draw::ZERO, draw)?,
            reading: reading()?,
        },
        "request" => AppKind::Request {
            options: ClientOptions {
                exchange: Exchange {
                    request: table.need("request")?.bytes()?,
                    response: table.need("response")?.bytes()?,
                },
                think: table.or("think", Draw::ZERO, draw)?,
                count: many("requests")?,
                reconnect: table.or("reconnect", false, Item::switch)?,
            },
        },
        "download" => AppKind::Download {
            size: draw(&table.need("size")?)?,
            wait: table.or("wait", Draw::ZERO, draw)?,
            files: many("files")?,
        },
        "writes" => AppKind::Source {
            schedule: Schedule::Writes {
                size: draw(&table.need("size")?)?,
                interval: draw(&table.need("interval")?)?,
                count: many("writes")?,
            },
            reading: reading()?,
        },
        "on-off" => AppKind::Source {
            schedule: Schedule::OnOff {
                on: draw(&table.need("on")?)?,
                off: draw(&table.need("off")?)?,
                count: many("rounds")?,
            },
            reading: reading()?,
        },
        _ => AppKind::Bsd {
            rule: copy_rule(table)?,
            costs: costs(table)?,
            size: table.maybe("size", Item::bytes)?,
            reading: reading()?,
        },
    })
}

fn amount(table: &Table<'_>) -> Result<Amount> {
    match (table.get("size"), table.get("duration")) {
        (Some(_), Some(duration)) => Err(duration.error("give size or duration, not both")),
        (Some(size), None) => Ok(Amount::Bytes(size.bytes()?)),
        (None, Some(duration)) => Ok(Amount::For(duration.time()?)),
        (None, None) => Ok(Amount::Endless),
    }
}

fn copy_rule(table: &Table<'_>) -> Result<CopyRule> {
    let rules = [("whole", true), ("partial", false)];
    let whole = table.or("copy", true, |item| item.choice(&rules))?;
    let unit = table.maybe("unit", |item| Ok(item.bytes()? as u32))?;
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
    if item.is_word()? {
        return Ok(Reading::Instant);
    }
    let table = item.table()?;
    if table.has("wake_up") || table.has("copy_kb") {
        if let Some(item) = table.get("bytes").or_else(|| table.get("interval")) {
            return Err(item.error(
                "a reader is slow (bytes and interval) or has costs (wake_up and copy_kb); write two of the four keys",
            ));
        }
        return Ok(Reading::Copying(costs(&table)?));
    }
    Ok(Reading::Slow {
        bytes: table.need("bytes")?.bytes()? as usize,
        interval: table.need("interval")?.time()?,
    })
}

/// A time in seconds, or a size in bytes, as the key's row says.
fn fixed(item: &Item<'_>) -> Result<f64> {
    match item.accepts() {
        Accepts::Bytes(..) => item.bytes().map(|bytes| bytes as f64),
        _ => item.time().map(Duration::as_secs_f64),
    }
}

/// A value, or how it is drawn: `{ uniform = [low, high] }`, `{ exponential = mean }`, `{ pareto = smallest, shape = 1.5 }`.
fn draw(item: &Item<'_>) -> Result<Draw> {
    let of = item.drawn().unwrap_or_else(|| item.accepts());
    if !item.is_table() {
        return fixed(&item.as_if(of)).map(Draw::Fixed);
    }
    let table = item.table()?;
    match (table.get("uniform"), table.get("exponential"), table.get("pareto")) {
        (Some(ends), None, None) => match ends.list()?.as_slice() {
            [low, high] => {
                let (low, high) = (fixed(&low.as_if(of))?, fixed(&high.as_if(of))?);
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
        (None, Some(mean), None) => Ok(Draw::Exponential(above_zero(&mean.as_if(of))?)),
        (None, None, Some(scale)) => {
            let shape = table.need("shape")?.number()?;
            Ok(Draw::Pareto { scale: above_zero(&scale.as_if(of))?, shape })
        }
        _ => Err(table.error(
            "write a value, { uniform = [low, high] }, { exponential = mean } or { pareto = smallest, shape = 1.5 }",
        )),
    }
}

/// What is drawn around zero is always zero.
fn above_zero(item: &Item<'_>) -> Result<f64> {
    let value = fixed(item)?;
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
    /// True if data flows from the one who accepts to the one who opens.
    pub(crate) const fn pulls(&self) -> bool {
        matches!(self, Self::Request { .. } | Self::Download { .. })
    }

    /// True if it sends one stream as fast as TCP takes it.
    pub(crate) const fn is_greedy(&self) -> bool {
        matches!(self, Self::Bulk { transfers: 1, .. } | Self::Bsd { .. })
    }

    /// Bytes of one answer, if received bytes are counted in answers.
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
