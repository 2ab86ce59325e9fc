//! The conditions beyond the paper's, and their runs.

use super::super::reading::Detail;
use super::super::runs::run;
use super::bursts;
use crate::error::ReproduceError;
use crate::job::Job;
use crate::request::Request;
use crate::{ScenarioText, scenario};

const FURTHER: ScenarioText = scenario!("acwap/further");

/// What differs from the scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    /// As `ackline sim --set` takes it.
    set: &'static [&'static str],
}

/// A congestion control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub(super) id: &'static str,
    pub(super) cc: &'static str,
}

/// The scenario as it stands: drop-tail, 0.2 ms of noise on the ACKs' way, an ACK for each packet,
/// one flow.
const BASE: Condition = Condition { id: "base", name: "drop-tail, 250 kB", set: &[] };

/// Noise on the ACKs' way.
pub(super) const NOISES: [Condition; 3] = [
    Condition { id: "noise-0.1", name: "0.1 ms", set: &["link.acks.impairments.0.limit=100us"] },
    Condition { id: "noise-1", name: "1 ms", set: &["link.acks.impairments.0.limit=1ms"] },
    Condition { id: "noise-5", name: "5 ms", set: &["link.acks.impairments.0.limit=5ms"] },
];

/// Queues.
pub(super) const QUEUES: [Condition; 5] = [
    BASE,
    Condition {
        id: "red",
        name: "RED, 60 to 180 kB",
        set: &[
            r#"link.bottleneck.queue={ kind = "red", limit = "250k", min = "60k", max = "180k", max_p = "10%", action = "drop" }"#,
        ],
    },
    Condition {
        id: "codel",
        name: "CoDel, 5 ms",
        set: &[r#"link.bottleneck.queue={ kind = "codel", limit = "250k", action = "drop" }"#],
    },
    Condition {
        id: "codel-ecn",
        name: "CoDel, 5 ms, marks",
        set: &[r#"link.bottleneck.queue={ kind = "codel", limit = "250k" }"#, "conn.ecn=classic"],
    },
    Condition {
        id: "step-ecn",
        name: "marks above 60 kB",
        set: &[
            r#"link.bottleneck.queue={ kind = "step", limit = "250k", threshold = "60k" }"#,
            "conn.ecn=classic",
        ],
    },
];

/// When the receiver acknowledges.
pub(super) const ACKS: [Condition; 3] = [
    Condition { name: "each packet", ..BASE },
    Condition { id: "delayed", name: "every second (RFC 5681)", set: &["conn.ack=delayed"] },
    Condition { id: "linux-like", name: "as Linux does", set: &["conn.ack=linux-like"] },
];

/// Sizes of the buffer, in bandwidth-delay products of 1.25 MB.
pub(super) const BUFFERS: [(f64, Condition); 6] = [
    (0.05, Condition { id: "buffer-0.05", name: "0.05", set: &["link.bottleneck.queue.limit=62.5k"] }),
    (0.1, Condition { id: "buffer-0.1", name: "0.1", set: &["link.bottleneck.queue.limit=125k"] }),
    (0.2, Condition { name: "0.2", ..BASE }),
    (0.5, Condition { id: "buffer-0.5", name: "0.5", set: &["link.bottleneck.queue.limit=625k"] }),
    (1.0, Condition { id: "buffer-1", name: "1", set: &["link.bottleneck.queue.limit=1250k"] }),
    (2.0, Condition { id: "buffer-2", name: "2", set: &["link.bottleneck.queue.limit=2500k"] }),
];

/// Ten flows.
pub(super) const TEN: Condition =
    Condition { id: "ten", name: "ten flows", set: &["app.flow.count=10", "app.flow.stagger=100ms"] };

/// From the first packet on, for half a minute: on the scenario's line, and on a slower one with a
/// buffer of a round trip.
pub(super) const LINES: [Condition; 2] = [
    Condition { id: "start", name: "100 Mbit/s, 100 ms, 250 kB", set: &["measure.from=0s", "duration=30s"] },
    Condition {
        id: "start-slow",
        name: "40 Mbit/s, 40 ms, 200 kB",
        set: &[
            "measure.from=0s",
            "duration=30s",
            "link.bottleneck.rate=40mbit",
            "link.bottleneck.delay=20ms",
            "link.bottleneck.queue.limit=200k",
            "link.acks.delay=20ms",
        ],
    },
];

pub(super) const HSTCP: Control = Control { id: "hstcp", cc: "hstcp" };
pub(super) const ACWAP: Control = Control { id: "acwap", cc: "acwap" };

/// HSTCP and ACWAP around it.
pub(super) const BOTH: [Control; 2] = [HSTCP, ACWAP];

/// A control alone, and under ACWAP.
pub(super) const INNER: [[Control; 2]; 4] = [
    BOTH,
    [
        Control { id: "scalable", cc: "scalable" },
        Control { id: "acwap-scalable", cc: "acwap:inner=scalable" },
    ],
    [Control { id: "reno", cc: "reno" }, Control { id: "acwap-reno", cc: "acwap:inner=reno" }],
    [Control { id: "cubic", cc: "cubic" }, Control { id: "acwap-cubic", cc: "acwap:inner=cubic" }],
];

/// ACWAP over beta.
const BETAS: [Control; 8] = [
    Control { id: "beta-0.2", cc: "acwap:beta=0.2" },
    Control { id: "beta-0.3", cc: "acwap:beta=0.3" },
    Control { id: "beta-0.4", cc: "acwap:beta=0.4" },
    Control { id: "beta-0.5", cc: "acwap:beta=0.5" },
    Control { id: "beta-0.6", cc: "acwap:beta=0.6" },
    Control { id: "beta-0.7", cc: "acwap:beta=0.7" },
    Control { id: "beta-0.8", cc: "acwap:beta=0.8" },
    Control { id: "beta-0.9", cc: "acwap:beta=0.9" },
];

/// Limited slow start, HyStart++ in it, and HyStart++ alone.
pub(super) const STARTS: [[Control; 3]; 3] = [
    [
        HSTCP,
        Control { id: "hstcp-hystart", cc: "hstcp:hystart=on" },
        Control { id: "hstcp-hystart-alone", cc: "hstcp:hystart=on,max_ssthresh=off" },
    ],
    [
        Control { id: "scalable", cc: "scalable" },
        Control { id: "scalable-hystart", cc: "scalable:hystart=on" },
        Control { id: "scalable-hystart-alone", cc: "scalable:hystart=on,max_ssthresh=off" },
    ],
    [
        ACWAP,
        Control { id: "acwap-hystart", cc: "acwap:hystart=on" },
        Control { id: "acwap-hystart-alone", cc: "acwap:hystart=on,max_ssthresh=off" },
    ],
];

/// Runs with different seeds.
pub(super) fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { 1 } else { 5 })
}

/// The values of beta: tenths, and the control.
pub(super) fn betas(request: &Request) -> Vec<(u32, Control)> {
    let all = (2..).zip(BETAS);
    if request.quick { all.filter(|(tenths, _)| tenths % 3 == 2).collect() } else { all.collect() }
}

/// The id of a run.
pub(super) fn id(condition: &Condition, control: &Control, seed: u32) -> String {
    format!("further-{}-{}-{seed}", condition.id, control.id)
}

/// All of them.
pub(in super::super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut all: Vec<(Condition, Control)> = vec![];
    let mut pair = |condition: &Condition, controls: &[Control]| {
        all.extend(controls.iter().map(|control| (*condition, *control)));
    };
    for condition in &NOISES {
        pair(condition, &[HSTCP]);
        for (_, control) in betas(request) {
            pair(condition, &[control]);
        }
    }
    QUEUES.iter().chain(&ACKS).for_each(|condition| pair(condition, &BOTH));
    BUFFERS.iter().for_each(|(_, condition)| pair(condition, &BOTH));
    pair(&TEN, &BOTH);
    INNER.iter().for_each(|controls| pair(&BASE, controls));
    for line in &LINES {
        STARTS.iter().for_each(|controls| pair(line, controls));
    }
    let mut jobs = vec![];
    for (condition, control) in all {
        let mut given = vec![format!("conn.cc=\"{}\"", control.cc)];
        given.extend(condition.set.iter().map(|set| (*set).to_owned()));
        let scenario = FURTHER.with_set(given)?;
        jobs.extend(
            (0..seeds(request))
                .map(|seed| run(id(&condition, &control, seed), &scenario, seed, Detail::Numbers)),
        );
    }
    jobs.extend(bursts::plan(&FURTHER)?);
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_run_can_be_built() {
        // Conditions times controls, with the base conditions' HSTCP and ACWAP once.
        let pairs = |betas: usize| 3 * (1 + betas) + 2 * (1 + 4 + 2 + 5 + 1) + 6 + 18;
        for (quick, betas, seeds) in [(true, 3, 1), (false, 8, 5)] {
            let request = Request { quick, ..Request::default() };
            let jobs = plan(&request).expect("scenarios");
            let ids: BTreeSet<&str> = jobs.iter().map(Job::id).collect();
            assert_eq!(ids.len(), pairs(betas) * seeds + bursts::SENDERS.len(), "{ids:?}");
        }
    }
}
