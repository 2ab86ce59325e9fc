//! Experiments that the draft argues about, or leaves out.

pub(super) mod all_lost;
pub(super) mod competing;
pub(super) mod disorder;
pub(super) mod exits;
pub(super) mod subnet;

use super::responses::{RESPONSES, Response};
use crate::ScenarioText;
use crate::error::ReproduceError;
use crate::request::Request;
use ackline_lab::Outcome;
use ackline_lab::Scenario;
use ackline_lab::results::FlowResult;
use std::sync::Arc;

/// Those that are compared here: all whose hosts are those of 2002.
fn compared() -> impl Iterator<Item = &'static Response> {
    RESPONSES.iter().filter(|response| response.id != "linux-today")
}

/// Runs with different seeds.
fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { 5 } else { 10 }).max(1)
}

/// The scenario with what a response sets, for the connections of `conn`: all, or those of an
/// application.
fn scenario(
    text: ScenarioText,
    conn: &str,
    response: &Response,
    sets: &[String],
) -> Result<Arc<Scenario>, ReproduceError> {
    let responses = response.sets.iter().map(|set| match set.strip_prefix("conn.") {
        Some(rest) => format!("{conn}.{rest}"),
        None => (*set).to_owned(),
    });
    let all: Vec<String> = responses.chain(sets.iter().cloned()).collect();
    text.with_set(all)
}

/// The flow of the application called `app`.
fn flow<'a>(outcome: &'a Outcome, app: &str) -> Option<&'a FlowResult> {
    outcome.result.flows.iter().find(|flow| flow.app == app)
}

/// Bytes that reached the flow's receiver again.
fn redundant(flow: &FlowResult) -> u64 {
    flow.transfers.iter().map(|transfer| transfer.redundant_bytes).sum()
}

fn timeouts(flow: &FlowResult) -> u64 {
    flow.transfers.iter().map(|transfer| transfer.timeouts).sum()
}
