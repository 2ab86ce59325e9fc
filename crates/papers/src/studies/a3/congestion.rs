//! Figures 15.4 to 15.9: A3 and CSA3 while the network is congested for short times. Their curves
//! are not in the paper's text: what it says of them is checked.

use super::equations::Buffers;
use super::runs::{Copies, Course, Episodes, Receiver, Run};
use crate::{Cell, Check, Figure, Finding, Job, Outputs, ReproduceError, Reproduction, Table};
use ackline_plot::{Chart, Line};

/// The pairs of the figures.
const PAIRS: [Buffers; 4] = [
    Buffers { send: 4, receive: 4 },
    Buffers { send: 24, receive: 24 },
    Buffers { send: 24, receive: 48 },
    Buffers { send: 52, receive: 52 },
];
const SMALL: Buffers = PAIRS[0];
const LARGE: Buffers = PAIRS[3];

/// Length of a run and of a bin, s.
const DURATION: f64 = 2_500.0;
const BIN: f64 = 10.0;

/// All runs of the part.
fn runs() -> Vec<Run> {
    let mut runs = vec![];
    for buffers in PAIRS {
        for copies in Copies::ALL {
            for receiver in [Receiver::A3, Receiver::Csa3, Receiver::Csa3FromAck] {
                for episodes in
                    [Episodes::None, Episodes::Five, Episodes::Twenty, Episodes::BothWays, Episodes::Marking]
                {
                    let run = Run { buffers, receiver, episodes, copies };
                    // Only what a figure or the table shows.
                    let unwanted = matches!(
                        (receiver, copies, episodes),
                        (Receiver::Csa3FromAck, _, Episodes::Five | Episodes::BothWays | Episodes::Marking)
                            | (_, Copies::Partial, Episodes::Five | Episodes::BothWays)
                    );
                    runs.extend((!unwanted).then_some(run));
                }
            }
        }
    }
    runs
}

pub(super) fn plan() -> Result<Vec<Job>, ReproduceError> {
    runs().into_iter().map(Run::job).collect()
}

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let view = View { outputs };
    let mut found = Reproduction { checks: view.small()?, ..Reproduction::default() };
    found.checks.extend(view.drops()?);
    found.checks.extend(view.recovery()?);
    found.findings = view.findings()?;
    found.tables.push(view.table()?);
    found.figures = view.figures()?;
    Ok(found)
}

/// The outputs, and what is read from them.
struct View<'a> {
    outputs: &'a Outputs,
}

impl View<'_> {
    fn course(
        &self,
        buffers: Buffers,
        receiver: Receiver,
        episodes: Episodes,
        copies: Copies,
    ) -> Result<Course, ReproduceError> {
        Run { buffers, receiver, episodes, copies }.course(self.outputs)
    }

    /// A figure's run: five episodes or none.
    fn figure(
        &self,
        buffers: Buffers,
        receiver: Receiver,
        episodes: Episodes,
    ) -> Result<Course, ReproduceError> {
        self.course(buffers, receiver, episodes, Copies::Whole)
    }

    /// Seconds of transfer that an episode costs, and ACKs of the timer in it.
    fn cost(
        &self,
        buffers: Buffers,
        receiver: Receiver,
        episodes: Episodes,
        copies: Copies,
    ) -> Result<(f64, f64), ReproduceError> {
        let without = self.course(buffers, receiver, Episodes::None, copies)?;
        let with = self.course(buffers, receiver, episodes, copies)?;
        let count = episodes.times().len() as f64;
        let rate = without.received as f64 / DURATION;
        let lost = (without.received as f64 - with.received as f64) / rate / count;
        Ok((lost, with.timer_acks as f64 / count))
    }

    /// Figure 15.4: a pair that nothing can lock.
    fn small(&self) -> Result<Vec<Check>, ReproduceError> {
        let plain = self.figure(SMALL, Receiver::A3, Episodes::None)?;
        let congested = self.figure(SMALL, Receiver::A3, Episodes::Five)?;
        let csa3 = self.figure(SMALL, Receiver::Csa3, Episodes::Five)?;
        let differ = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(a, b)| a != b).count() as f64;
        let before = (Episodes::Five.times()[0] / BIN) as usize;
        let after = (2_010.0 / BIN) as usize;
        let total = |course: &Course| course.bins[after.min(course.bins.len())..].iter().sum::<u64>() as f64;
        Ok(vec![
            Check::exactly(
                "figures/15.4/before",
                "4/4, A3: bins before the first episode that differ with and without congestion",
                differ(&plain.bins[..before.min(plain.bins.len())], &congested.bins),
                0.0,
            ),
            Check::near(
                "figures/15.4/after",
                "4/4, A3: bytes after 2010 s with congestion, to those without",
                total(&congested) / total(&plain),
                1.0,
                0.005,
            ),
            Check::exactly(
                "figures/15.4/csa3",
                "4/4: bins that differ between A3 and CSA3 under congestion",
                differ(&congested.bins, &csa3.bins) + (congested.bins.len().abs_diff(csa3.bins.len())) as f64,
                0.0,
            ),
            Check::exactly(
                "figures/15.4/timer",
                "4/4, A3: ACKs of the timer in the episodes",
                congested.timer_acks as f64,
                0.0,
            ),
        ])
    }

    /// Figures 15.5 and 15.6: each episode is a drop, and is over soon.
    fn drops(&self) -> Result<Vec<Check>, ReproduceError> {
        let mut checks = vec![];
        for (figure, buffers) in [("15.5", LARGE), ("15.6", PAIRS[1])] {
            let plain = self.figure(buffers, Receiver::A3, Episodes::None)?;
            let congested = self.figure(buffers, Receiver::A3, Episodes::Five)?;
            let usual = plain.received as f64 / DURATION * BIN;
            let share = |from: f64, bins: usize| {
                let first = (from / BIN) as usize;
                let range = congested.bins.get(first..first + bins).unwrap_or_default();
                range.iter().sum::<u64>() as f64 / (usual * bins as f64)
            };
            for from in Episodes::Five.times() {
                // The last episode begins at the end of a bin.
                let deepest = share(from, 1).min(share(from + BIN, 1));
                checks.push(Check::at_most(
                    format!("figures/{figure}/drop-{from:.0}"),
                    format!("{buffers}, A3: rate in the 10 s of the episode at {from:.0} s, to that without"),
                    deepest,
                    0.95,
                ));
                checks.push(Check::at_least(
                    format!("figures/{figure}/recovery-{from:.0}"),
                    format!("{buffers}, A3: rate 20 s to 60 s later, to that without"),
                    share(from + 2.0 * BIN, 4),
                    0.98,
                ));
            }
        }
        let lost = |buffers| self.cost(buffers, Receiver::A3, Episodes::Twenty, Copies::Whole);
        checks.push(Check::at_most(
            "figures/15.6/smaller",
            "24/24, A3: seconds lost per episode, to those of 52/52",
            lost(PAIRS[1])?.0 / lost(LARGE)?.0,
            0.9,
        ));
        Ok(checks)
    }

    /// Figures 15.7 to 15.9: what CSA3 gains and costs.
    fn recovery(&self) -> Result<Vec<Check>, ReproduceError> {
        let mut checks = vec![];
        for copies in Copies::ALL {
            let cost = |buffers, receiver| self.cost(buffers, receiver, Episodes::Twenty, copies);
            let (a3, csa3) = (cost(LARGE, Receiver::A3)?, cost(LARGE, Receiver::Csa3)?);
            let name = copies.id();
            checks.push(Check::at_least(
                format!("figures/15.7/{name}/gain"),
                format!("52/52, {name} copies: seconds per episode that CSA3 loses less than A3"),
                a3.0 - csa3.0,
                0.2,
            ));
            checks.push(Check::at_most(
                format!("figures/15.7/{name}/timer"),
                format!("52/52, {name} copies: timer ACKs per episode of CSA3 less those of A3"),
                csa3.1 - a3.1,
                -0.1,
            ));
            for (figure, buffers) in [("15.8", PAIRS[1]), ("15.9", PAIRS[2])] {
                let (a3, csa3) = (cost(buffers, Receiver::A3)?.0, cost(buffers, Receiver::Csa3)?.0);
                checks.push(Check::at_most(
                    format!("figures/{figure}/{name}/cost"),
                    format!("{buffers}, {name} copies: seconds that CSA3 loses per episode, to those of A3"),
                    csa3 / a3,
                    1.12,
                ));
            }
        }
        let a3 = self.figure(LARGE, Receiver::A3, Episodes::Five)?;
        let csa3 = self.figure(LARGE, Receiver::Csa3, Episodes::Five)?;
        for from in Episodes::Five.times() {
            let first = (from / BIN) as usize;
            let bytes = |course: &Course| course.bins.iter().skip(first).take(2).sum::<u64>() as f64;
            checks.push(Check::at_least(
                format!("figures/15.7/episode-{from:.0}"),
                format!("52/52: bytes of CSA3 to those of A3, in the bin of the episode at {from:.0} s and the next one"),
                bytes(&csa3) / bytes(&a3),
                1.0,
            ));
        }
        Ok(checks)
    }

    fn findings(&self) -> Result<Vec<Finding>, ReproduceError> {
        let lost = |buffers: Buffers| -> Result<(f64, f64), ReproduceError> {
            let [a3, csa3] = [Receiver::A3, Receiver::Csa3]
                .map(|receiver| self.cost(buffers, receiver, Episodes::Twenty, Copies::Whole));
            Ok((a3?.0, csa3?.0))
        };
        let mut findings = vec![];
        for (figure, buffers, paper) in [
            ("15.4", SMALL, "A3 at 4/4: no deadlock, the same before and after congestion"),
            ("15.5", LARGE, "A3 at 52/52: a drop at each episode, then recovery"),
            ("15.6", PAIRS[1], "A3 at 24/24: smaller drops, recovers sooner"),
        ] {
            let ours = format!("{:.2} s lost per episode", lost(buffers)?.0);
            findings.push(Finding::new(
                format!("Figure {figure}"),
                paper,
                ours,
                format!("figures/{figure}/"),
            ));
        }
        for (figure, buffers, paper) in [
            ("15.7", LARGE, "52/52: CSA3 recovers faster than A3"),
            ("15.8", PAIRS[1], "24/24: CSA3 costs next to nothing"),
            ("15.9", PAIRS[2], "24/48: CSA3 costs next to nothing"),
        ] {
            let (a3, csa3) = lost(buffers)?;
            let ours = format!("lost per episode: A3 {a3:.2} s, CSA3 {csa3:.2} s");
            findings.push(Finding::new(
                format!("Figure {figure}"),
                paper,
                ours,
                format!("figures/{figure}/"),
            ));
        }
        Ok(findings)
    }

    fn table(&self) -> Result<Table, ReproduceError> {
        let mut table = Table::new(
            "congestion",
            "Seconds of transfer lost per episode, and ACKs of the 500 ms timer per episode",
        )
        .columns([
            "S/R, copies, what is lost",
            "A3",
            "CSA3",
            "gain",
            "model's gain",
            "pause from ACK",
            "timer: A3",
            "CSA3",
            "pause from ACK",
        ]);
        // Gains of the independent model, s: whole copies, partial copies.
        let model = [[0.0, 0.0], [-0.05, -0.03], [-0.19, 0.02], [0.44, 0.54]];
        for (episodes, lost) in [
            (Episodes::Twenty, "data"),
            (Episodes::BothWays, "data and ACKs"),
            (Episodes::Marking, "data; no go-back-N"),
        ] {
            for (place, copies) in Copies::ALL.into_iter().enumerate() {
                if episodes == Episodes::BothWays && copies == Copies::Partial {
                    continue;
                }
                for (buffers, model) in PAIRS.into_iter().zip(model) {
                    let (a3, a3_timer) = self.cost(buffers, Receiver::A3, episodes, copies)?;
                    let (csa3, csa3_timer) = self.cost(buffers, Receiver::Csa3, episodes, copies)?;
                    let from_ack = if episodes == Episodes::Twenty {
                        let (lost, timer) = self.cost(buffers, Receiver::Csa3FromAck, episodes, copies)?;
                        [Cell::number(lost, 2), Cell::number(timer, 2)]
                    } else {
                        [Cell::from("-"), Cell::from("-")]
                    };
                    let [from_ack, from_ack_timer] = from_ack;
                    let of_model = if episodes == Episodes::Twenty {
                        Cell::number(model[place], 2)
                    } else {
                        Cell::from("-")
                    };
                    table.row(
                        format!("{buffers}, {}, {lost}", copies.id()),
                        [
                            Cell::number(a3, 2),
                            Cell::number(csa3, 2),
                            Cell::number(a3 - csa3, 2),
                            of_model,
                            from_ack,
                            Cell::number(a3_timer, 2),
                            Cell::number(csa3_timer, 2),
                            from_ack_timer,
                        ],
                    );
                }
            }
        }
        Ok(table.note(
            "Means of 20 episodes of all phases. No go-back-N: after a timeout the sender marks what is lost instead of going \
             back to the oldest byte. Pause from ACK: CSA3 that counts the sender's silence from its own last ACK \
             where that is later than the data, so that what it withheld itself is no sign of congestion.",
        ))
    }

    fn figures(&self) -> Result<Vec<Figure>, ReproduceError> {
        let mut figures = vec![];
        for (number, buffers) in [("15.4", SMALL), ("15.5", LARGE), ("15.6", PAIRS[1])] {
            let plain = self.figure(buffers, Receiver::A3, Episodes::None)?;
            let congested = self.figure(buffers, Receiver::A3, Episodes::Five)?;
            let lines = [("A3", &plain), ("A3 under congestion", &congested)];
            figures.push(cumulative(number, buffers, &lines).into());
        }
        for (number, buffers) in [("15.7", LARGE), ("15.8", PAIRS[1]), ("15.9", PAIRS[2])] {
            let a3 = self.figure(buffers, Receiver::A3, Episodes::Five)?;
            let csa3 = self.figure(buffers, Receiver::Csa3, Episodes::Five)?;
            let lines = [("A3", &a3), ("CSA3", &csa3)];
            figures.push(cumulative(number, buffers, &lines).into());
            figures.push(binned(number, buffers, &lines).into());
        }
        Ok(figures)
    }
}

/// Throughput from the beginning on. The first minutes, in which it rises, are left out: an episode
/// is one part in a hundred.
fn cumulative(number: &str, buffers: Buffers, courses: &[(&str, &Course)]) -> Chart {
    const FROM: f64 = 300.0;
    let line = |(label, course): &(&str, &Course)| {
        let mut total = 0.0;
        let points = course.bins.iter().enumerate().map(|(place, bytes)| {
            total += *bytes as f64;
            let at = (place + 1) as f64 * BIN;
            (at, total / 1_024.0 / at)
        });
        Line {
            label: (*label).to_owned(),
            points: points.filter(|(at, _)| *at >= FROM).collect(),
            ..Line::default()
        }
    };
    Chart {
        name: format!("figure-{number}"),
        title: format!("Figure {number}: throughput of {buffers} KB"),
        x_label: "time [s]".to_owned(),
        y_label: "KB/s since the beginning".to_owned(),
        lines: courses.iter().map(line).collect(),
        ..Chart::default()
    }
}

/// Throughput in bins of 10 s.
fn binned(number: &str, buffers: Buffers, courses: &[(&str, &Course)]) -> Chart {
    let line = |(label, course): &(&str, &Course)| Line {
        label: (*label).to_owned(),
        points: course
            .bins
            .iter()
            .enumerate()
            .map(|(place, bytes)| ((place as f64 + 0.5) * BIN, *bytes as f64 / 1_024.0 / BIN))
            .collect(),
        ..Line::default()
    };
    Chart {
        name: format!("figure-{number}-bins"),
        title: format!("Figure {number}: throughput of {buffers} KB in bins of 10 s"),
        x_label: "time [s]".to_owned(),
        y_label: "KB/s".to_owned(),
        from_zero: true,
        lines: courses.iter().map(line).collect(),
        ..Chart::default()
    }
}
