//! How evenly the sender's packets leave: how many follow one another within half of the time that
//! one takes on the link.

use crate::ScenarioText;
use crate::error::ReproduceError;
use crate::job::Job;
use ackline_lab::Outcome;
use serde::{Deserialize, Serialize};

/// Who sends, and with what timers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    set: &'static [&'static str],
}

/// Their ACKs come for every second packet, as they usually do.
pub(super) const SENDERS: [Sender; 5] = [
    Sender { id: "hstcp", name: "HSTCP", set: &["conn.cc=hstcp"] },
    Sender { id: "unpaced", name: "ACWAP, not paced", set: &["conn.cc=\"acwap:pacing=off\""] },
    Sender { id: "paced", name: "ACWAP", set: &["conn.cc=acwap"] },
    Sender {
        id: "paced-10us",
        name: "ACWAP, timers of 10 us",
        set: &["conn.cc=acwap", "host.granularity=10us", "host.departure_tick=10us"],
    },
    Sender {
        id: "paced-1ms",
        name: "ACWAP, timers of 1 ms",
        set: &["conn.cc=acwap", "host.granularity=1ms", "host.departure_tick=1ms"],
    },
];

/// Seconds before the window, which holds some twenty thousand packets a second.
const FROM: f64 = 10.0;

/// Half of the time that 1500 bytes take at 100 Mbit/s, in nanoseconds.
const APART: u64 = 60_000;

/// How often so many packets left together: the first is how often one left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Histogram {
    pub(super) bursts: Vec<u64>,
}

impl Histogram {
    /// The share of packets that left in bursts of `from` packets or more.
    pub(super) fn share_from(&self, from: usize) -> f64 {
        let packets = |from: usize| -> u64 {
            let sizes = self.bursts.iter().zip(1u64..);
            sizes.skip(from.saturating_sub(1)).map(|(times, size)| times * size).sum()
        };
        packets(from) as f64 / packets(1).max(1) as f64
    }

    fn of(departures: &[u64]) -> Self {
        let mut bursts = vec![];
        for burst in departures.chunk_by(|first, second| second - first < APART) {
            if bursts.len() < burst.len() {
                bursts.resize(burst.len(), 0);
            }
            bursts[burst.len() - 1] += 1;
        }
        Self { bursts }
    }
}

fn read(outcome: Outcome) -> Histogram {
    let rows = outcome.record.trace.map_or(vec![], |trace| trace.rows);
    let data = rows.iter().filter(|row| row.tcp.is_some_and(|tcp| tcp.payload > 0));
    let departures: Vec<u64> = data.map(|row| row.at_ns).filter(|at| *at as f64 / 1e9 >= FROM).collect();
    Histogram::of(&departures)
}

pub(super) fn id(sender: &Sender) -> String {
    format!("further-bursts-{}", sender.id)
}

/// A run of twenty seconds of each sender.
pub(super) fn plan(scenario: &ScenarioText) -> Result<Vec<Job>, ReproduceError> {
    let jobs = SENDERS.iter().map(|sender| {
        let common = [
            "conn.ack=delayed",
            "duration=20s",
            "measure.from=10s",
            "measure.queues=access",
            "measure.trace=400000",
        ];
        let scenario = scenario.with_set(common.iter().chain(sender.set))?;
        Ok(Job::outcome(id(sender), "acwap bursts", &scenario, 0, 0, read))
    });
    jobs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_closer_than_half_a_packets_time_are_one_burst() {
        let micros = |times: &[u64]| times.iter().map(|at| at * 1000).collect::<Vec<_>>();
        let seen = Histogram::of(&micros(&[0, 120, 130, 140, 260, 380, 439, 500]));
        assert_eq!(seen.bursts, [3, 1, 1], "0; 120 to 140; 260; 380 and 439; 500");
        assert!((seen.share_from(2) - 5.0 / 8.0).abs() < 1e-12);
        assert!((seen.share_from(3) - 3.0 / 8.0).abs() < 1e-12);
        assert_eq!(Histogram::of(&[]).share_from(1), 0.0);
    }
}
