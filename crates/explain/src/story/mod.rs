//! What is told of connections. Text, JSON and pages print this and nothing else.
//!
//! Times are nanoseconds. Those with `at` in their name count from the connection's first packet.

mod direction;
mod ends;
mod losses;
mod time;

pub use crate::loss_detection::LossDetection;
pub use direction::{
    AccurateMarks, Acks, ArrivalCounts, Congestion, Direction, Marks, PathChange, Rtt, SlowStart,
    SlowStartEnd, Window,
};
pub use ends::{End, Handshake, Offer, PathPosition, Reset, Vantage};
pub use losses::{Episode, Losses};
pub use time::{Cause, Interval, Share};

use crate::segment::SkippedPackets;
use serde::Serialize;
use std::net::SocketAddr;

/// What a capture tells.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Story {
    /// Packets read.
    pub packets: u64,
    /// Those of TCP.
    pub tcp_packets: u64,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// Packets left out.
    pub skipped: SkippedPackets,
    /// Packets that the capture says it has missed.
    pub missed: u64,
    /// How often the clock of the capture stepped back, by a millisecond or more, and the longest
    /// of these steps.
    pub steps_back: u64,
    /// See `steps_back`.
    pub longest_step_back_ns: u64,
    /// The file ends in the middle of a packet.
    pub cut_short: bool,
    /// Connections seen, those left out included.
    pub connections_seen: u64,
    /// Stories that were dropped because there were too many: those that had lost and waited least.
    pub left_out: u64,
    /// Connections whose story ends early, because too many were open at once: those silent for the
    /// longest time.
    pub evicted: u64,
    /// What was read of traces.
    pub traces: Traces,
    /// The stories, in the order of the first packets.
    pub connections: Vec<Connection>,
}

/// What was read of traces, and what is missing in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traces {
    /// Events.
    pub events: u64,
    /// Events that the trace says it has missed.
    pub missed: u64,
    /// Events that are not known.
    pub unknown: u64,
    /// Records that cannot be read.
    pub damaged: u64,
    /// Events of connections whose begin is not in the trace; these have no story.
    pub unopened: u64,
    /// Why a trace ends before its stack did, as it says itself.
    pub cut_short: Option<String>,
}

/// What a story was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Packets.
    Capture,
    /// What a stack said of itself (`--trace`).
    Trace,
}

/// The story of a connection.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// Its number in the capture, from 1.
    pub number: u64,
    /// What its story was read from.
    pub source: Source,
    /// The client; without a SYN, the sender of the first packet.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// When it began: nanoseconds since 1970, since the start of a simulation, or since the begin
    /// of a trace.
    pub start_ns: u64,
    /// From its first packet to its last.
    pub duration_ns: u64,
    /// Where it was captured.
    pub vantage: Vantage,
    /// How it was opened.
    pub handshake: Handshake,
    /// The data of the client, and that of the server.
    pub directions: [Direction; 2],
    /// How it ended.
    pub end: End,
    /// The error that the application was told, if a trace states one.
    pub error: Option<String>,
    /// Some packets say by a comment why they were sent.
    pub stated: bool,
    /// The story ends early: too many connections were open at once.
    pub evicted: bool,
    /// Packets that passed the capture twice. They count once.
    pub copies: u64,
    /// What is strange.
    pub anomalies: Vec<Anomaly>,
}

impl Connection {
    /// The place in `directions` of the one with more data; the client's if both have as much.
    #[must_use]
    pub const fn main_direction(&self) -> usize {
        let [client, server] = &self.directions;
        (server.bytes > client.bytes) as usize
    }

    /// How much there is to tell: time without progress, ns, and then what was lost and waited for.
    #[must_use]
    pub fn badness(&self) -> (u64, u64, u64) {
        let stalled = |direction: &Direction| {
            let bad = |share: &&Share| {
                matches!(share.cause, Cause::Timer | Cause::ZeroWindow | Cause::Silence | Cause::Recovery)
            };
            direction.time.iter().filter(bad).fold(0, |sum: u64, share| sum.saturating_add(share.time_ns))
        };
        let sum = |of: fn(&Direction) -> u64| self.directions.iter().map(of).sum();
        (
            self.directions.iter().map(stalled).max().unwrap_or(0),
            sum(|direction| direction.losses.retransmissions),
            sum(|direction| direction.bytes),
        )
    }
}

/// Something strange about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anomaly {
    /// The SYN offered a window scale and the SYN-ACK did not: no window above 64 KiB.
    NoWindowScale,
    /// The SYN offered SACK, and the SYN-ACK did not.
    NoSack,
    /// The SYN offered timestamps, and the SYN-ACK did not.
    NoTimestamps,
    /// The SYN offered ECN, and the SYN-ACK refused.
    NoEcn,
    /// Timestamps were agreed on, and segments came without.
    TimestampsStripped,
    /// Nobody answered the SYN.
    NoAnswer,
    /// The SYN was refused by a RST.
    Refused,
    /// The SYN-ACK was not acknowledged.
    HalfOpen,
    /// The capture ends without FIN or RST.
    NoEnd,
    /// Packets passed several interfaces of the capture; those of the first are taken.
    SeveralInterfaces,
    /// The capture has each packet twice.
    EachPacketTwice,
    /// The clock of the capture stepped back within the connection.
    ClockStepsBack,
}
