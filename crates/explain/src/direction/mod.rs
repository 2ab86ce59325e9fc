//! The data of one end: what passed, what came back for it, and what its sender waited for.
//!
//! A [`Flow`] infers it from packets; a [`Sender`] and its [`ReceivedData`] are what a trace states.

mod accurate;
mod context;
mod episodes;
mod flow;
mod outstanding;
mod path;
mod positions;
mod received;
mod rtt;
mod segment_size;
mod sender;
mod slow_start;
mod stated_reason;
mod tally;
mod time;
mod view;

pub(crate) use context::Context;
pub(crate) use flow::Flow;
pub(crate) use received::ReceivedData;
pub(crate) use sender::Sender;

/// The largest ordinary segment; what is larger was joined by offload.
const JUMBO: u32 = 9_000;
/// A shorter wait is a burst that goes on.
const BURST_NS: u64 = 60_000;
/// Longer waits are this long, where they are compared.
pub(crate) const LONGEST_NS: u64 = 3_600_000_000_000;
/// The shortest wait that is a stall.
const SHORTEST_STALL_NS: u64 = 100_000_000;

/// From `then` to `at_ns`: at most an hour, so that no clock of a broken file makes a sum overflow.
fn since(at_ns: u64, then: u64) -> u64 {
    at_ns.saturating_sub(then).min(LONGEST_NS)
}
