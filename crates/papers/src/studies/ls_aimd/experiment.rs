//! The experiments of Table 5.1, and what follows from their parameters alone.

use super::readings::{PROTOTYPE, Reading};
use std::fmt;

/// Octets of a frame beyond its packet.
const FRAMING: u32 = 18;
/// Headers of a segment with timestamps.
const HEADERS: u32 = 52;

/// One experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Experiment {
    pub(super) name: &'static str,
    pub(super) rate_mbit: u32,
    /// Without queue, and without what the hosts add.
    pub(super) base_us: u32,
    pub(super) mtu: u32,
    pub(super) flows: u32,
    /// Length of the run, s; flows begin a second apart.
    pub(super) seconds: u32,
    /// The receiver acknowledges every second segment.
    pub(super) stretch: bool,
}

const fn experiment(
    name: &'static str,
    (rate_mbit, base_us, mtu): (u32, u32, u32),
    flows: u32,
    seconds: u32,
) -> Experiment {
    Experiment { name, rate_mbit, base_us, mtu, flows, seconds, stretch: false }
}

/// All, in the order of the thesis' tables.
pub(super) const EXPERIMENTS: [Experiment; 12] = [
    experiment("1", (200, 300, 1500), 1, 10),
    experiment("2", (200, 300, 1500), 2, 20),
    experiment("3A", (200, 100, 1500), 8, 40),
    Experiment { stretch: true, ..experiment("3B", (200, 100, 1500), 8, 40) },
    experiment("4A", (600, 250, 1500), 16, 40),
    experiment("4B", (600, 500, 1500), 16, 40),
    experiment("4C", (600, 750, 1500), 16, 40),
    experiment("4D", (600, 1000, 1500), 16, 40),
    experiment("4E", (600, 250, 9000), 16, 40),
    experiment("4F", (600, 500, 9000), 16, 40),
    experiment("4G", (600, 750, 9000), 16, 40),
    experiment("4H", (600, 1000, 9000), 16, 40),
];

impl Experiment {
    pub(super) const fn frame(&self) -> u32 {
        self.mtu + FRAMING
    }

    pub(super) const fn smss(&self) -> u32 {
        self.mtu - HEADERS
    }

    pub(super) const fn jumbo(&self) -> bool {
        self.mtu > 1500
    }

    /// One of the eight that vary base RTT and segment size.
    pub(super) const fn varies(&self) -> bool {
        self.flows == 16
    }

    /// Time that a frame takes on the link, us.
    pub(super) fn frame_us(&self) -> f64 {
        f64::from(self.frame() * 8) / f64::from(self.rate_mbit)
    }

    /// The queue at which the step marks, and the ramps begin, us.
    pub(super) const fn target_us(&self) -> u32 {
        if self.rate_mbit == 200 { 500 } else { 250 }
    }

    /// What the testbed's hosts and wires add to the base RTT, a packet's own serialisation at the
    /// link's rate included, us: the value with which the thesis' saturated runs agree at every
    /// rate and base RTT.
    pub(super) const fn residue_us(&self) -> u32 {
        if self.jumbo() { 195 } else { 107 }
    }

    /// Bytes that the link carries in `us`.
    pub(super) const fn bytes(&self, us: u32) -> u32 {
        self.rate_mbit * us / 8
    }

    /// Eq. 2.3: segments per flow and round trip if the queue is `queue_us`.
    pub(super) fn window_segments(&self, queue_us: u32) -> f64 {
        f64::from(self.rate_mbit) * f64::from(self.base_us + queue_us)
            / f64::from(self.flows * self.frame() * 8)
    }

    /// The queue that flows keep which cannot go below two segments, us: what two segments of each
    /// take on the link, less what the path holds.
    pub(super) fn floor_queue_us(&self, residue_us: f64) -> f64 {
        f64::from(2 * self.flows) * self.frame_us() - f64::from(self.base_us) - residue_us
    }
}

/// How the link marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aqm {
    /// RED's average between two thresholds, adaptive.
    Ramp,
    /// All above a threshold.
    Step,
    /// The instantaneous queue between two thresholds.
    Instantaneous,
}

pub(super) const AQMS: [Aqm; 3] = [Aqm::Ramp, Aqm::Step, Aqm::Instantaneous];

impl Aqm {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ramp => "ramp",
            Self::Step => "step",
            Self::Instantaneous => "inst",
        }
    }

    /// For people.
    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Ramp => "RED on the averaged queue",
            Self::Step => "marking above a step",
            Self::Instantaneous => "RED on the instantaneous queue",
        }
    }

    /// The table that has its queueing delays.
    pub(super) const fn table(self) -> &'static str {
        match self {
            Self::Ramp => "9.1",
            Self::Step => "9.2",
            Self::Instantaneous => "9.3",
        }
    }

    /// The share of marks is told, and the decrease follows it.
    const fn dctcp(self) -> bool {
        !matches!(self, Self::Ramp)
    }

    /// The queue of a scenario.
    pub(super) fn queue(self, of: &Experiment) -> String {
        let target = of.target_us();
        let common = "limit = \"15000000\", action = \"nodrop\"";
        let bytes = |us| of.bytes(us);
        match self {
            Self::Step => format!("{{ kind = \"step\", {common}, threshold = \"{}\" }}", bytes(target)),
            Self::Instantaneous => format!(
                "{{ kind = \"ramp\", {common}, min = \"{}\", max = \"{}\" }}",
                bytes(target),
                bytes(2 * target)
            ),
            Self::Ramp => format!(
                "{{ kind = \"red\", {common}, min = \"{}\", max = \"{}\", max_p = 0.1, adaptive = true, burst = {} }}",
                bytes(target),
                bytes(3 * target),
                if of.rate_mbit == 200 { 20 } else { 31 }
            ),
        }
    }
}

/// The senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sender {
    /// Reno or DCTCP, which keep two segments in flight.
    Aimd,
    /// LS-AIMD with C = 2^-7.
    Slow,
    /// LS-AIMD with C = 1.
    Full,
    /// LS-AIMD with C = min(1, (1 - alpha) / alpha).
    Auto,
}

impl Sender {
    /// In the thesis' tables.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Aimd => "aimd",
            Self::Slow => "c2-7",
            Self::Full => "c1",
            Self::Auto => "auto",
        }
    }

    /// For people.
    pub(super) fn name(self, aqm: Aqm) -> String {
        let base = if aqm.dctcp() { "DCTCP" } else { "Reno" };
        match self {
            Self::Aimd => base.to_owned(),
            Self::Slow => format!("LS-AIMD {base} C=2^-7"),
            Self::Full => format!("LS-AIMD {base} C=1"),
            Self::Auto => format!("LS-AIMD {base} C=auto"),
        }
    }

    /// Without what they have in common.
    pub(super) const fn short(self) -> &'static str {
        match self {
            Self::Aimd => "AIMD",
            Self::Slow => "C=2^-7",
            Self::Full => "C=1",
            Self::Auto => "C=auto",
        }
    }

    /// The thesis ran it there.
    pub(super) const fn runs(self, of: &Experiment) -> bool {
        matches!(self, Self::Aimd | Self::Full) || of.varies()
    }

    fn control(self, aqm: Aqm, reading: Reading) -> String {
        let base = if aqm.dctcp() { "dctcp" } else { "reno" };
        let c = match self {
            Self::Aimd => return base.to_owned(),
            Self::Slow => "2^-7",
            Self::Full => "1",
            Self::Auto => "auto",
        };
        format!("ls-aimd-{base}:c={c}{}", reading.params)
    }
}

/// One set-up: an experiment, its AQM, its sender, and how the thesis is read if that is LS-AIMD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) of: Experiment,
    pub(super) aqm: Aqm,
    pub(super) sender: Sender,
    pub(super) reading: Reading,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reading != PROTOTYPE {
            write!(f, "{}/", self.reading.name)?;
        }
        write!(f, "{}/{}/{}", self.aqm.table(), self.sender.key(), self.of.name)
    }
}

impl Case {
    /// What a path that adds nothing but a packet's own serialisation has otherwise.
    pub(super) fn ideal_path(&self) -> String {
        format!("link.base.delay={}us", self.of.base_us)
    }
}

/// How long runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// As the thesis has it.
    Whole,
    /// Ten seconds, flows beginning a tenth of a second apart.
    Short,
}

impl Case {
    /// What the scenario is to be set to.
    pub(super) fn settings(&self, length: Length) -> Vec<String> {
        let of = &self.of;
        let inner = if of.stretch { "delayed" } else { "immediate" };
        let (ecn, ack) = if self.aqm.dctcp() {
            ("dctcp", format!("ce-echo:inner={inner}"))
        } else {
            ("classic", inner.to_owned())
        };
        let extra_us = f64::from(of.residue_us()) - of.frame_us();
        let delay_ns = (f64::from(of.base_us) + extra_us) * 1e3;
        let (seconds, stagger_ms) = match length {
            Length::Whole => (of.seconds, 1_000),
            Length::Short => (of.seconds.min(10), 100),
        };
        // From the second after the last flow has begun. RED's max_p needs 11 s for its way down.
        let started = f64::from(of.flows * stagger_ms) / 1e3;
        let from = if self.aqm == Aqm::Ramp && seconds > 20 { started.max(15.0) } else { started };
        vec![
            format!("duration={seconds}s"),
            format!("measure.from={from}s"),
            format!("conn.cc={}", self.sender.control(self.aqm, self.reading)),
            format!("conn.ecn={ecn}"),
            format!("conn.ack={ack}"),
            format!("node.server.mtu={}", of.mtu),
            format!("node.client.mtu={}", of.mtu),
            format!("link.base.delay={delay_ns:.0}ns"),
            format!("link.port.rate={}mbit", of.rate_mbit),
            format!("link.port.queue={}", self.aqm.queue(of)),
            format!("app.bulk.count={}", of.flows),
            format!("app.bulk.stagger={stagger_ms}ms"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn named(name: &str) -> Experiment {
        EXPERIMENTS.into_iter().find(|of| of.name == name).unwrap()
    }

    /// Rows "min W_s", "max W_s" and "step W_s" of Table 5.1.
    #[test]
    fn windows_of_table_5_1() {
        let rows: [(&str, [f64; 3]); 5] = [
            ("1", [13.18, 21.41, 29.64]),
            ("3A", [1.24, 2.26, 3.29]),
            ("4A", [1.54, 2.32, 3.09]),
            ("4D", [3.86, 4.63, 5.40]),
            ("4H", [0.65, 0.78, 0.91]),
        ];
        for (name, windows) in rows {
            let of = named(name);
            for (times, expected) in (1..).zip(windows) {
                let window = of.window_segments(times * of.target_us());
                assert!((window - expected).abs() < 0.0051, "{name}: {window}");
            }
        }
        assert_eq!((named("4E").smss(), named("1").smss()), (8948, 1448));
    }

    /// An independent model's values for flows that keep two segments.
    #[test]
    fn floor_of_two_segments() {
        let vectors = include_str!("vectors.jsonl");
        let rows = vectors.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut seen = 0;
        for row in rows {
            let of = named(row["exp"].as_str().unwrap());
            let number = |key: &str| row[key].as_f64().unwrap();
            assert_eq!(f64::from(of.residue_us()), number("calibrated_x_us"), "{row}");
            assert!(
                (of.floor_queue_us(number("calibrated_x_us")) - number("calibrated_us")).abs() < 0.01,
                "{row}"
            );
            // The ideal path adds nothing but the frame itself.
            assert!((of.floor_queue_us(of.frame_us()) - number("ideal_us")).abs() < 0.3, "{row}");
            seen += 1;
        }
        assert_eq!(seen, 6);
    }
}
