//! What a link is made of, as a scenario says it.

use super::reader::{Item, Table};
use crate::error::ScenarioError;
use ackline_netsim::impair::{
    Batch, Corrupt, DropList, Duplicate, During, GilbertElliott, Impairment, Jitter, Loss, Policer, Reorder,
    Steps, Which,
};
use ackline_netsim::queue::{
    Action, Adaptive, Arithmetic, CeThreshold, CoDel, CoDelParams, CurvyRed, CurvyRedParams, DropTail,
    DualPi2, DualPi2Params, FqCoDel, FqCoDelParams, L4sRamp, Limit, Pi2, Pi2Params, PiParams, Pie, PieParams,
    Queue, Ramp, Red, RedParams, Step, Turns,
};
use ackline_netsim::{LinkSpec, Service, Trace};
use ackline_tcp_core::{Duration, Instant};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

type Result<T> = std::result::Result<T, ScenarioError>;

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct PathSetup {
    pub(crate) service: Service,
    pub(crate) delay: Duration,
    pub(crate) framing: u32,
    pub(crate) queue: QueueSetup,
    pub(crate) impairments: Vec<ImpairSetup>,
}

/// A queue.
#[derive(Clone, Debug)]
pub(crate) enum QueueSetup {
    DropTail(Limit),
    Step { limit: Limit, threshold: u64, action: Action },
    Ramp { limit: Limit, min: u64, max: u64, action: Action },
    Red(RedParams),
    CoDel(CoDelParams),
    FqCoDel(FqCoDelParams),
    Pie(PieParams),
    Pi2(Pi2Params),
    DualPi2(DualPi2Params),
    CurvyRed(CurvyRedParams),
}

/// An impairment.
#[derive(Clone, Debug)]
pub(crate) enum ImpairSetup {
    Loss(f64),
    GilbertElliott {
        to_bad: f64,
        to_good: f64,
        good: f64,
        bad: f64,
    },
    Nth(Vec<u64>),
    NthData(Vec<u64>),
    Between(Instant, Instant),
    Duplicate(f64),
    Corrupt(f64, u32),
    Reorder(f64, Duration),
    Jitter(Duration, bool),
    Batch(Duration),
    Policer(u64, u64),
    /// Of a named path: so long each, and what is added.
    Steps(Duration, Vec<Duration>),
    /// Another one, from an instant until another one.
    During(Instant, Instant, Box<ImpairSetup>),
}

impl PathSetup {
    /// No rate limit, no delay.
    pub(crate) fn empty() -> Self {
        Self {
            service: Service::Instant,
            delay: Duration::ZERO,
            framing: 0,
            queue: QueueSetup::DropTail(Limit::Packets(1_000)),
            impairments: vec![],
        }
    }

    /// `base` with what the table says. Trace files are found from `folder` on.
    pub(crate) fn read(table: &Table<'_>, base: &Self, folder: &Path) -> Result<Self> {
        let mut path = base.clone();
        if let Some(item) = table.get("rate") {
            path.service = Service::Rate(item.rate()?);
        }
        if let Some(item) = table.get("trace") {
            if table.get("rate").is_some() {
                return Err(item.error("a link has a rate or a trace, not both"));
            }
            path.service = Service::Trace(trace(&item, folder)?);
        }
        path.delay = table.or("delay", path.delay, Item::time)?;
        path.framing = table.or("framing", path.framing, |item| Ok(item.integer()? as u32))?;
        if let Some(item) = table.get("queue") {
            path.queue = queue(&item)?;
        }
        if let Some(item) = table.get("impairments") {
            path.impairments = item.list()?.iter().map(impairment).collect::<Result<_>>()?;
        }
        Ok(path)
    }

    pub(crate) fn build(&self) -> LinkSpec {
        let mut spec = LinkSpec::new(1, self.delay).with_queue(self.queue.build());
        spec.service = self.service.clone();
        spec.framing = self.framing;
        spec.impairments = self.impairments.iter().map(ImpairSetup::build).collect();
        spec
    }
}

/// Bytes of the longest trace. What is longer is none, and may have no end at all.
const LONGEST_TRACE: u64 = 64 << 20;

fn trace(item: &Item<'_>, folder: &Path) -> Result<Trace> {
    let path = folder.join(item.text()?);
    let mut text = String::new();
    let read = File::open(&path).and_then(|file| file.take(LONGEST_TRACE + 1).read_to_string(&mut text));
    let unread = |why: &dyn Display| item.error(format!("cannot read {}: {why}", path.display()));
    match read {
        Ok(_) if text.len() as u64 > LONGEST_TRACE => {
            return Err(unread(&"it is longer than 64 MB; a trace is a list of times, one a line"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(unread(&"it is no text; a trace is a list of times in ms, one a line"));
        }
        Err(error) => return Err(unread(&error)),
    }
    Trace::parse(&text).map_err(|error| item.error(format!("{}: {error}", path.display())))
}

fn queue(item: &Item<'_>) -> Result<QueueSetup> {
    let table = item.table()?;
    let limit = table.or("limit", Limit::Packets(1_000), Item::limit)?;
    let bytes = |key: &str| table.need(key)?.bytes();
    Ok(match table.kind() {
        "step" => QueueSetup::Step { limit, threshold: bytes("threshold")?, action: action(&table)? },
        "ramp" => {
            let (min, max) = thresholds(&table)?;
            QueueSetup::Ramp { limit, min, max, action: action(&table)? }
        }
        "red" => QueueSetup::Red(red(&table, limit)?),
        "codel" => QueueSetup::CoDel(codel(&table, limit)?),
        "fq-codel" => {
            let default = FqCoDelParams::default();
            QueueSetup::FqCoDel(FqCoDelParams {
                codel: codel(&table, limit)?,
                quantum: table.or("quantum", default.quantum, |item| Ok(item.integer()? as u32))?,
                flows: table.or("flows", default.flows, |item| Ok(item.integer()? as usize))?,
            })
        }
        "pie" => {
            let default = PieParams::default();
            QueueSetup::Pie(PieParams {
                limit,
                target: table.or("target", default.target, Item::time)?,
                update: table.or("update", default.update, Item::time)?,
                alpha: table.or("alpha", default.alpha, Item::number)?,
                beta: table.or("beta", default.beta, Item::number)?,
                burst: table.or("burst", default.burst, Item::time)?,
                action: action(&table)?,
            })
        }
        "pi2" => {
            let default = Pi2Params::default();
            QueueSetup::Pi2(Pi2Params {
                limit,
                pi: pi(&table)?,
                coupling: table.or("coupling", default.coupling, Item::number)?,
            })
        }
        "dualpi2" => {
            let default = DualPi2Params::default();
            QueueSetup::DualPi2(DualPi2Params {
                limit,
                pi: pi(&table)?,
                coupling: table.or("coupling", default.coupling, Item::number)?,
                ramp: L4sRamp {
                    min: table.or("mark_from", default.ramp.min, Item::time)?,
                    range: table.or("mark_range", default.ramp.range, Item::time)?,
                    min_packets: table
                        .or("mark_packets", default.ramp.min_packets, |item| Ok(item.integer()? as usize))?,
                },
                turns: match table.get("shift") {
                    Some(shift) if table.get("classic_share").is_some() => {
                        return Err(shift.error("classic_share says it already; give one of the two"));
                    }
                    Some(shift) => Turns::Shifted(shift.time()?),
                    None => {
                        let share = table.get("classic_share").map(|item| item.integer()).transpose()?;
                        Turns::Weighted { classic: share.map_or(10, |share| share as u8) }
                    }
                },
            })
        }
        "curvy-red" => {
            let default = CurvyRedParams::default();
            QueueSetup::CurvyRed(CurvyRedParams {
                limit,
                min: table.or("min", default.min, Item::time)?,
                classic_range: table.or("classic_range", default.classic_range, Item::time)?,
                l4s_range: table.or("l4s_range", default.l4s_range, Item::time)?,
                weight_log: table.or("wlog", default.weight_log, |item| Ok(item.integer()? as u32))?,
                step: table.or("step", default.step, Item::time)?,
                turns: Turns::Shifted(table.or("shift", Duration::from_millis(50), Item::time)?),
            })
        }
        _ => QueueSetup::DropTail(limit),
    })
}

/// The controller of PI2 and DualPI2.
fn pi(table: &Table<'_>) -> Result<PiParams> {
    let default = PiParams::default();
    let arithmetics = [("real", Arithmetic::Real), ("linux", Arithmetic::Linux)];
    Ok(PiParams {
        target: table.or("target", default.target, Item::time)?,
        update: table.or("update", default.update, Item::time)?,
        alpha: table.or("alpha", default.alpha, Item::number)?,
        beta: table.or("beta", default.beta, Item::number)?,
        arithmetic: table.or("arithmetic", default.arithmetic, |item| item.choice(&arithmetics))?,
    })
}

fn codel(table: &Table<'_>, limit: Limit) -> Result<CoDelParams> {
    let default = CoDelParams::default();
    Ok(CoDelParams {
        limit,
        target: table.or("target", default.target, Item::time)?,
        interval: table.or("interval", default.interval, Item::time)?,
        mtu: table.or("mtu", default.mtu, |item| Ok(item.integer()? as u32))?,
        action: action(table)?,
        ce_threshold: ce_threshold(table)?,
    })
}

fn ce_threshold(table: &Table<'_>) -> Result<Option<CeThreshold>> {
    let l4s_only = table.or("ce_l4s_only", false, Item::switch)?;
    match table.get("ce_threshold") {
        Some(item) => Ok(Some(CeThreshold { sojourn: item.time()?, l4s_only })),
        None if l4s_only => Err(table.error("ce_l4s_only needs a ce_threshold")),
        None => Ok(None),
    }
}

/// What happens to a packet that the queue picks.
fn action(table: &Table<'_>) -> Result<Action> {
    let actions = [("mark", Action::Mark), ("drop", Action::Drop), ("nodrop", Action::MarkOnly)];
    table.or("action", Action::Mark, |item| item.choice(&actions))
}

/// `min` and `max`.
fn thresholds(table: &Table<'_>) -> Result<(u64, u64)> {
    let (min, max) = (table.need("min")?.bytes()?, table.need("max")?.bytes()?);
    if max <= min {
        return Err(table.error("max must be larger than min"));
    }
    Ok((min, max))
}

fn red(table: &Table<'_>, limit: Limit) -> Result<RedParams> {
    let (min, max) = thresholds(table)?;
    let avpkt = table.or("avpkt", 1_000, |item| Ok(item.integer()? as u32))?;
    let wlog = match (table.get("wlog"), table.get("burst")) {
        (Some(_), Some(burst)) => return Err(burst.error("wlog says it already; give one of the two")),
        (Some(wlog), None) => wlog.integer()? as u32,
        (None, Some(burst)) => RedParams::wlog_for(min, avpkt, burst.integer()? as u32)
            .ok_or_else(|| burst.error("no weight is that slow; at least min / avpkt packets are needed"))?,
        // Floyd's default weight of 1/512.
        (None, None) => 9,
    };
    let adaptive = table.or("adaptive", false, Item::switch)?.then(Adaptive::default);
    Ok(RedParams {
        limit,
        min,
        max,
        max_p: table.or("max_p", 0.02, Item::number)?,
        wlog,
        avpkt,
        adaptive,
        action: action(table)?,
    })
}

impl QueueSetup {
    /// How much it holds.
    pub(crate) const fn limit(&self) -> Limit {
        match self {
            Self::DropTail(limit) | Self::Step { limit, .. } | Self::Ramp { limit, .. } => *limit,
            Self::Red(params) => params.limit,
            Self::CoDel(params) => params.limit,
            Self::FqCoDel(params) => params.codel.limit,
            Self::Pie(params) => params.limit,
            Self::Pi2(params) => params.limit,
            Self::DualPi2(params) => params.limit,
            Self::CurvyRed(params) => params.limit,
        }
    }

    fn build(&self) -> Box<dyn Queue> {
        match self.clone() {
            Self::DropTail(limit) => Box::new(DropTail::new(limit)),
            Self::Step { limit, threshold, action } => Box::new(Step::new(limit, threshold, action)),
            Self::Ramp { limit, min, max, action } => Box::new(Ramp::new(limit, min, max, action)),
            Self::Red(params) => Box::new(Red::new(params)),
            Self::CoDel(params) => Box::new(CoDel::new(params)),
            Self::FqCoDel(params) => Box::new(FqCoDel::new(params)),
            Self::Pie(params) => Box::new(Pie::new(params)),
            Self::Pi2(params) => Box::new(Pi2::new(params)),
            Self::DualPi2(params) => Box::new(DualPi2::new(params)),
            Self::CurvyRed(params) => Box::new(CurvyRed::new(params)),
        }
    }
}

fn impairment(item: &Item<'_>) -> Result<ImpairSetup> {
    let table = item.table()?;
    let kind = table.kind();
    let share = |key: &str| table.need(key)?.number();
    let setup = match kind {
        "loss" => ImpairSetup::Loss(share("probability")?),
        "gilbert-elliott" => ImpairSetup::GilbertElliott {
            to_bad: share("to_bad")?,
            to_good: share("to_good")?,
            good: table.or("good", 0.0, Item::number)?,
            bad: table.or("bad", 1.0, Item::number)?,
        },
        "drop" => drop_list(&table)?,
        "duplicate" => ImpairSetup::Duplicate(share("probability")?),
        "corrupt" => {
            let bits = table.or("bits", 1, |item| Ok(item.integer()? as u32))?;
            ImpairSetup::Corrupt(share("probability")?, bits)
        }
        "batch" => ImpairSetup::Batch(table.need("every")?.time()?),
        "policer" => ImpairSetup::Policer(table.need("rate")?.rate()?, table.need("bucket")?.bytes()?),
        "reorder" => ImpairSetup::Reorder(share("probability")?, table.need("by")?.time()?),
        _ => {
            let reorders = table.or("reorders", false, Item::switch)?;
            ImpairSetup::Jitter(table.need("limit")?.time()?, reorders)
        }
    };
    // Drops from a list have their own times.
    let times = (table.get("from"), table.get("until"));
    if kind == "drop" || matches!(times, (None, None)) {
        return Ok(setup);
    }
    let at =
        |item: Option<Item<'_>>| item.map(|item| item.time().map(|time| Instant::ZERO + time)).transpose();
    let from = at(times.0)?.unwrap_or(Instant::ZERO);
    let until = at(times.1)?.unwrap_or(Instant::FAR_FUTURE);
    if from >= until {
        return Err(table.error("until must be later than from"));
    }
    Ok(ImpairSetup::During(from, until, Box::new(setup)))
}

fn drop_list(table: &Table<'_>) -> Result<ImpairSetup> {
    let numbers = |item: Item<'_>| -> Result<Vec<u64>> {
        let mut numbers = vec![];
        for item in item.some()? {
            let number = item.integer()?;
            if numbers.contains(&number) {
                return Err(item.error(format!("{number} is there twice; a packet is dropped once")));
            }
            numbers.push(number);
        }
        Ok(numbers)
    };
    match (table.get("packets"), table.get("data"), table.get("from"), table.get("until")) {
        (Some(list), None, None, None) => Ok(ImpairSetup::Nth(numbers(list)?)),
        (None, Some(list), None, None) => Ok(ImpairSetup::NthData(numbers(list)?)),
        (None, None, Some(from), Some(until)) => {
            let (from, until) = (from.time()?, until.time()?);
            if from >= until {
                return Err(table.error("until must be later than from"));
            }
            Ok(ImpairSetup::Between(Instant::ZERO + from, Instant::ZERO + until))
        }
        _ => Err(table.error(
            "give packets = [1, 2] (places among all packets), data = [1, 2] (places among those with data), or from and until (times)",
        )),
    }
}

impl ImpairSetup {
    fn build(&self) -> Box<dyn Impairment> {
        match self.clone() {
            Self::Loss(probability) => Box::new(Loss::new(probability)),
            Self::GilbertElliott { to_bad, to_good, good, bad } => {
                Box::new(GilbertElliott::new(to_bad, to_good, good, bad))
            }
            Self::Nth(list) => Box::new(DropList::new(Which::Nth(list))),
            Self::NthData(list) => Box::new(DropList::new(Which::NthData(list))),
            Self::Between(from, until) => Box::new(DropList::new(Which::Between(from, until))),
            Self::Duplicate(probability) => Box::new(Duplicate::new(probability)),
            Self::Corrupt(probability, bits) => Box::new(Corrupt::new(probability, bits)),
            Self::Reorder(probability, by) => Box::new(Reorder::new(probability, by)),
            Self::Jitter(limit, reorders) => Box::new(Jitter::new(limit, reorders)),
            Self::Batch(every) => Box::new(Batch::new(every)),
            Self::Policer(rate, bucket) => Box::new(Policer::new(rate, bucket)),
            Self::Steps(every, added) => Box::new(Steps::new(every, added)),
            Self::During(from, until, inner) => Box::new(During::new(from, until, inner.build())),
        }
    }
}
