//! The path of the draft on DCLOR, as a node of a scenario.
//!
//! ```toml
//! [[node]]
//! name = "path"
//! kind = "stis"
//! rate = "50kbit"             # of each flow in each direction
//! buffer = "74KiB"            # of all flows
//! delay = "200ms"
//! flow = "service"            # or "hosts", "connection"
//! route = { change = 0.12, adds = "20ms" }
//! stalls = [{ probability = 0.005, lasts = "8s" }, { probability = 0.05, lasts = "5s" }]
//! stall_every = "1s"
//! stall_stops_service = true
//! ```
//!
//! These values are the defaults.

use super::reader::{Item, Table};
use crate::error::ScenarioError;
use ackline_netsim::stis::{FlowBy, StallKind, StisParams};

type Result<T> = std::result::Result<T, ScenarioError>;

pub(super) fn read(table: &Table<'_>) -> Result<StisParams> {
    let default = StisParams::default();
    let flows = [("service", FlowBy::Service), ("hosts", FlowBy::Hosts), ("connection", FlowBy::Connection)];
    let mut params = StisParams {
        flow: table.or("flow", default.flow, |item| item.choice(&flows))?,
        rate: table.or("rate", default.rate, Item::rate)?,
        buffer: table.or("buffer", default.buffer, Item::bytes)?,
        delay: table.or("delay", default.delay, Item::time)?,
        stalls: table.or("stalls", default.stalls, stalls)?,
        stall_every: table.or("stall_every", default.stall_every, Item::time)?,
        stall_stops_service: table.or("stall_stops_service", default.stall_stops_service, Item::switch)?,
        ..default
    };
    if let Some(item) = table.get("route") {
        let route = item.table()?;
        params.route_switch = route.or("change", params.route_switch, Item::number)?;
        params.route_delay = route.or("adds", params.route_delay, Item::time)?;
    }
    Ok(params)
}

fn stalls(item: &Item<'_>) -> Result<Vec<StallKind>> {
    let mut sum = 0.0;
    let mut kinds = vec![];
    for kind in item.list()? {
        let table = kind.table()?;
        let probability = table.need("probability")?.number()?;
        sum += probability;
        if sum > 1.0 {
            return Err(kind.error("the probabilities of all stalls are more than 1 together"));
        }
        kinds.push(StallKind { probability, lasts: table.need("lasts")?.time()? });
    }
    Ok(kinds)
}
