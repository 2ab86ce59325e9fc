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

/// What a flow's two applications do: one opens connections, the other accepts them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AppKind {
    /// The opener sends as fast as TCP takes it, `transfers` times, each on a connection of its
    /// own.
    Bulk {
        /// How much each time.
        amount: Amount,
        /// How often.
        transfers: u64,
        /// From the end of one transfer to the next, s.
        wait: Draw,
        /// How the acceptor reads.
        reading: Reading,
    },
    /// The opener asks, the acceptor answers.
    Request {
        /// What, and how often.
        options: ClientOptions,
    },
    /// The acceptor sends a file on each connection, and closes it.
    Download {
        /// Bytes of a file.
        size: Draw,
        /// From the end of one download to the next, s.
        wait: Draw,
        /// How many; `None`: until the run ends.
        files: Option<u64>,
    },
    /// The opener writes by a schedule.
    Source {
        /// When, and how much.
        schedule: Schedule,
        /// How the acceptor reads.
        reading: Reading,
    },
    /// The opener writes as a process of 4.3BSD did: the kernel copies into a small buffer, by a
    /// rule and at a cost.
    Bsd {
        /// When it copies.
        rule: CopyRule,
        /// What that costs.
        costs: HostCosts,
        /// Bytes; `None`: until the run ends.
        size: Option<u64>,
        /// How the acceptor reads.
        reading: Reading,
    },
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

/// `"instant"`, or a table: `{ bytes, interval }` for a slow reader, `{ wake_up, copy_kb }` for a
/// host's costs.
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

/// A value, or how it is drawn: `{ uniform = [low, high] }`, `{ exponential = mean }`,
/// `{ pareto = smallest, shape = 1.5 }`.
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

/// An end of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// An application in the simulation.
    Inside(AppId),
    /// One that is not, by its place among those.
    Outside(usize),
}

/// The two ends of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// Node that opens the connection.
    pub(crate) opener: End,
    /// Node that accepts it.
    pub(crate) acceptor: End,
}

/// Where and when one opens a flow.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) on: NodeId,
    pub(crate) target: Target,
    pub(crate) start: Instant,
    pub(crate) conn: Arc<ConnConfig>,
}

impl AppKind {
    /// True if data flows from the one who accepts to the one who opens.
    #[must_use]
    pub const fn pulls(&self) -> bool {
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

    /// Adds the end that accepts; it listens from the beginning.
    pub(crate) fn add_acceptor(
        &self,
        sim: &mut Sim,
        node: NodeId,
        port: u16,
        conn: Arc<ConnConfig>,
    ) -> AppId {
        let (on, accept) = (ListenOn::Port(port), AcceptConfig::new(conn));
        let begin = Instant::ZERO;
        match *self {
            Self::Bulk { reading, .. } | Self::Source { reading, .. } | Self::Bsd { reading, .. } => {
                sim.add_app(node, begin, Sink::new(on, accept, reading))
            }
            Self::Request { ref options } => {
                sim.add_app(node, begin, Server::new(on, accept, options.exchange))
            }
            Self::Download { size, .. } => sim.add_app(node, begin, FileServer::new(on, accept, size)),
        }
    }

    /// Adds the end that opens.
    pub(crate) fn add_opener(&self, sim: &mut Sim, opening: Opening) -> AppId {
        let Opening { on, target, start, conn } = opening;
        match self.clone() {
            Self::Bulk { amount, transfers, wait, .. } => {
                sim.add_app(on, start, Bulk::new(target, conn, amount).repeated(transfers, wait))
            }
            Self::Request { options } => sim.add_app(on, start, Client::new(target, conn, options)),
            Self::Download { wait, files, .. } => {
                sim.add_app(on, start, Downloader::new(target, conn, wait, files))
            }
            Self::Source { schedule, .. } => sim.add_app(on, start, Source::new(target, conn, schedule)),
            Self::Bsd { rule, costs, size, .. } => {
                sim.add_app(on, start, BsdWriter::new(target, conn, rule, costs, size))
            }
        }
    }
}
