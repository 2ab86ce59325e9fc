//! Criteria: what is asked, in which cells, and with which bars. RFC 9743 names what must be asked;
//! each criterion says where its bars come from.
//!
//! *Standard* is the worse of Reno and CUBIC in the same cell with the same seeds, so a bar is
//! mostly what controls on the standards track do already.

use super::cell::Cell;
use super::contestant::{Contestant, PACED};
use super::judgement::{Bars, Test, Verdict, best};
use super::statistics::Interval;
use super::view::View;
use Bars::{AtLeast, AtMost, Within};

/// A column of the table.
pub(super) struct Criterion {
    /// A short name, for headings.
    pub(super) name: &'static str,
    /// A shorter one, for figures.
    pub(super) short: &'static str,
    /// What the number is.
    pub(super) what: &'static str,
    /// Its unit, as it stands behind numbers.
    pub(super) unit: &'static str,
    /// Factor to that unit.
    scale: f64,
    pub(super) bars: &'static str,
    /// RFC, paper, or the decision that the bars are.
    pub(super) source: &'static str,
    /// Contestants of which it is asked.
    asks: fn(&Contestant) -> bool,
    /// Cells in which it is asked.
    cells: fn(&Cell) -> bool,
    judge: fn(&View<'_>, &Contestant, &Cell) -> Option<Judged>,
}

/// The number that is shown, and tests of which the best one counts. No test: shown, and not
/// judged.
struct Judged {
    shown: Vec<f64>,
    log: bool,
    tests: Vec<Test>,
}

/// A criterion in one cell.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) cell: String,
    /// `None` if a run broke.
    pub(super) interval: Option<Interval>,
    /// One per seed, in the criterion's unit.
    pub(super) values: Vec<f64>,
    /// `None`: shown without one.
    pub(super) verdict: Option<Verdict>,
}

/// A criterion of one contestant.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) variants: Vec<Variant>,
}

impl Outcome {
    /// The variant with the worst verdict, of these the first.
    pub(super) fn worst(&self) -> Option<&Variant> {
        let worst = self.variants.iter().map(|variant| variant.verdict).max()?;
        self.variants.iter().find(|variant| variant.verdict == worst)
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.worst().and_then(|variant| variant.verdict)
    }

    pub(super) fn fails(&self) -> bool {
        self.verdict() == Some(Verdict::Fail)
    }

    /// How many variants have a verdict.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.variants.iter().filter(|variant| variant.verdict == Some(verdict)).count()
    }
}

impl Criterion {
    pub(super) fn outcome(&self, view: &View<'_>, contestant: &Contestant) -> Outcome {
        if !(self.asks)(contestant) {
            return Outcome::default();
        }
        let cells = view.matrix.cells.iter().filter(|cell| (self.cells)(cell) && cell.is_for(contestant));
        let variant = |cell: &Cell| {
            if view.is_broken(&contestant.spec, &cell.id) {
                let verdict = Some(Verdict::Fail);
                return Some(Variant { cell: cell.id.clone(), interval: None, values: vec![], verdict });
            }
            let Judged { shown, log, tests } = (self.judge)(view, contestant, cell)?;
            let shown: Vec<f64> = shown.iter().map(|value| value * self.scale).collect();
            Some(Variant {
                cell: cell.id.clone(),
                interval: Interval::of(&shown, log),
                values: shown,
                verdict: best(&tests, !view.matrix.judges()),
            })
        };
        Outcome { variants: cells.filter_map(variant).collect() }
    }
}

const fn everyone(_: &Contestant) -> bool {
    true
}

fn wide(contestant: &Contestant) -> bool {
    !contestant.is_controlled()
}

fn equals(contestant: &Contestant) -> bool {
    !contestant.is_controlled() && !contestant.is_scavenger()
}

fn test(values: Vec<f64>, log: bool, bars: Bars) -> Test {
    Test { values, log, bars }
}

fn over(values: &[f64], standard: &[f64]) -> Vec<f64> {
    values.iter().zip(standard).map(|(value, standard)| value / standard.max(1e-9)).collect()
}

fn above(values: &[f64], standard: &[f64]) -> Vec<f64> {
    values.iter().zip(standard).map(|(value, standard)| value - standard).collect()
}

/// A measure with fixed bars.
fn plain(view: &View<'_>, who: &Contestant, cell: &Cell, measure: &str, bars: Bars) -> Option<Judged> {
    let values = view.values(&who.spec, &cell.id, measure)?;
    Some(Judged { shown: values.clone(), log: false, tests: vec![test(values, false, bars)] })
}

/// A measure by its ratio to the standard, whose better value is the larger one if the bars are
/// lower bounds.
fn by_standard(view: &View<'_>, who: &Contestant, cell: &Cell, measure: &str, bars: Bars) -> Option<Judged> {
    let more_is_better = matches!(bars, AtLeast(..));
    let values = view.values(&who.spec, &cell.id, measure)?;
    let standard = view.standard(&cell.id, measure, more_is_better)?;
    let tests = vec![test(over(&values, &standard), true, bars)];
    Some(Judged { shown: values, log: !more_is_better, tests })
}

fn fill(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    let values = view.values(&who.spec, &cell.id, "fill")?;
    let standard = view.standard(&cell.id, "fill", true)?;
    let of_standard = over(&values, &standard);
    let tests = if cell.family == "S" {
        let (pass, warn) = if cell.facts.buffer < 1.0 { (0.85, 0.75) } else { (0.95, 0.90) };
        vec![test(values.clone(), false, AtLeast(pass, warn)), test(of_standard, true, AtLeast(0.98, 0.95))]
    } else {
        vec![test(of_standard, true, AtLeast(0.95, 0.80))]
    };
    Some(Judged { shown: values, log: false, tests })
}

fn loss(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    let values = view.values(&who.spec, &cell.id, "loss")?;
    let standard = view.standard(&cell.id, "loss", false)?;
    let tests = vec![
        test(values.clone(), false, AtMost(0.005, 0.02)),
        test(over(&values, &standard), true, AtMost(1.5, 3.0)),
    ];
    Some(Judged { shown: values, log: false, tests })
}

fn needless(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    let bars = if cell.family == "J" { AtMost(0.01, 0.05) } else { AtMost(0.001, 0.01) };
    plain(view, who, cell, "needless", bars)
}

fn stability(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    let values = view.values(&who.spec, &cell.id, "cov")?;
    let standard = view.standard(&cell.id, "cov", false)?;
    let tests = vec![test(above(&values, &standard), false, AtMost(0.1, 0.3))];
    Some(Judged { shown: values, log: false, tests })
}

fn jain(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    let warn = if cell.id.starts_with("E-2-") { 0.85 } else { 0.90 };
    plain(view, who, cell, "jain", AtLeast(0.95, warn))
}

/// The harm that A does to the victim: the part of what it has alone that is gone.
fn harms(view: &View<'_>, spec: &str, cell: &Cell) -> Option<Vec<f64>> {
    let with = view.values(spec, &cell.id, "victims")?;
    let alone = view.values("", cell.facts.reference.as_deref()?, "victims")?;
    Some(with.iter().zip(&alone).map(|(with, alone)| ((alone - with) / alone.max(1.0)).max(0.0)).collect())
}

fn harm(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    let ours = harms(view, &who.spec, cell)?;
    let standards: &[&str] = if who.paces { &[PACED] } else { &["reno", "cubic"] };
    let mut worst = vec![0.0; ours.len()];
    for spec in standards {
        for (worst, harm) in worst.iter_mut().zip(harms(view, spec, cell)?) {
            *worst = harm.max(*worst);
        }
    }
    let excess = over(&ours, &worst);
    let mean = worst.iter().sum::<f64>() / worst.len().max(1) as f64;
    if who.is_scavenger() {
        return Some(Judged {
            shown: excess.clone(),
            log: false,
            tests: vec![test(excess, false, AtMost(0.2, 0.5))],
        });
    }
    if mean < 0.05 {
        let tests = vec![test(ours, false, AtMost(0.10, 0.20))];
        return Some(Judged { shown: excess, log: false, tests });
    }
    Some(Judged { shown: excess.clone(), log: true, tests: vec![test(excess, true, AtMost(1.10, 1.25))] })
}

/// The policy's share of the link beside the others: shown, and not judged.
fn suffers(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    let share = view.values(&who.spec, &cell.id, "share")?;
    Some(Judged { shown: share, log: false, tests: vec![] })
}

fn latency(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    by_standard(view, who, cell, "rpc-p50", AtMost(1.05, 1.25))
}

fn path_change(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    // The last change is the one after which more can be sent.
    let measure = format!("settle-{}", cell.facts.changes.len());
    let values = view.values(&who.spec, &cell.id, &measure)?;
    let standard = view.standard(&cell.id, &measure, false)?;
    let tests = vec![
        test(values.clone(), false, AtMost(5.0, 20.0)),
        test(over(&values, &standard), true, AtMost(1.1, 1.5)),
    ];
    Some(Judged { shown: values, log: false, tests })
}

fn outage(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    let (from, until) = cell.facts.outage?;
    let bars = if until - from < 5.0 { AtMost(3.0, 6.0) } else { AtMost(8.0, 15.0) };
    plain(view, who, cell, "recover", bars)
}

fn backs_off(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    plain(view, who, cell, "into-outage", AtMost(12.0, 50.0))
}

fn robust(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    let values = view.values(&who.spec, &cell.id, "fill")?;
    let standard = over(&values, &view.standard(&cell.id, "fill", true)?);
    let without = view.values(&who.spec, cell.facts.reference.as_deref()?, "fill")?;
    let ratio = over(&values, &without);
    let tests = vec![
        test(ratio.clone(), true, AtLeast(0.9, 0.7)),
        // Beside the standards there is no second bar.
        test(standard, true, AtLeast(0.95, 0.95)),
    ];
    Some(Judged { shown: ratio, log: true, tests })
}

fn exponent(view: &View<'_>, who: &Contestant, cell: &Cell) -> Option<Judged> {
    plain(view, who, cell, "exponent", Within((-0.5, 1.4), (-1.0, 1.7)))
}

fn late_queue(cell: &Cell) -> bool {
    cell.family == "S" && cell.facts.buffer >= 1.0
}

/// The columns, in order.
pub(super) const CRITERIA: &[Criterion] = &[
    Criterion {
        name: "fill",
        short: "fill",
        what: "goodput of one flow, of what the link can carry",
        unit: "",
        scale: 1.0,
        bars: "S from 1 BDP on: 0.95 / 0.90, below: 0.85 / 0.75, or 0.98 / 0.95 of the standard; G and I: 0.95 / 0.80 of the standard",
        source: "Reno's sawtooth fills 0.893 of a link with a buffer of 0.25 BDP; decision",
        asks: everyone,
        cells: |cell| matches!(cell.family, "S" | "G" | "I"),
        judge: fill,
    },
    Criterion {
        name: "queue",
        short: "queue",
        what: "95th percentile of the queueing delay that one flow makes",
        unit: "ms",
        scale: 1.0,
        bars: "1.05 / 1.25 times the standard, from 1 BDP of buffer on",
        source: "RFC 9743, section 5.1.2; decision",
        asks: everyone,
        cells: late_queue,
        judge: |view, who, cell| by_standard(view, who, cell, "q95", AtMost(1.05, 1.25)),
    },
    Criterion {
        name: "losses",
        short: "losses",
        what: "packets that the bottleneck drops, of those offered",
        unit: "%",
        scale: 100.0,
        bars: "0.5 % or 1.5 times the standard / 2 % or 3 times",
        source: "RFC 9743, section 5.1.3; draft-ietf-ccwg-bbr has 2 % per round",
        asks: everyone,
        cells: |cell| matches!(cell.family, "S" | "E"),
        judge: loss,
    },
    Criterion {
        name: "random loss",
        short: "random",
        what: "goodput of one flow over a link that loses packets, of what the losses leave",
        unit: "",
        scale: 1.0,
        bars: "0.95 / 0.80 of the standard",
        source: "RFC 9743, section 5.1.4; decision",
        asks: everyone,
        cells: |cell| cell.family == "L",
        judge: |view, who, cell| {
            // Networks of one operator do not lose this much.
            if who.is_controlled()
                && !matches!(cell.id.as_str(), "L-1e-4" | "L-1e-3" | "L-fn-3e-4" | "L-fn-1e-3")
            {
                return None;
            }
            by_standard(view, who, cell, "fill", AtLeast(0.95, 0.80))
        },
    },
    Criterion {
        name: "needless",
        short: "needless",
        what: "retransmissions beyond what was dropped, of the data packets",
        unit: "%",
        scale: 100.0,
        bars: "0.1 % / 1 %; where packets are reordered 1 % / 5 %",
        source: "decision",
        asks: everyone,
        cells: |cell| matches!(cell.family, "S" | "L" | "J"),
        judge: needless,
    },
    Criterion {
        name: "stability",
        short: "stable",
        what: "coefficient of variation of the goodput in seconds",
        unit: "",
        scale: 1.0,
        bars: "0.1 / 0.3 above the standard",
        source: "RFC 5166, section 2.4; decision",
        asks: everyone,
        cells: |cell| cell.family == "S" || cell.id.starts_with("E-2-"),
        judge: stability,
    },
    Criterion {
        name: "fairness",
        short: "fair",
        what: "Jain's index of flows of the same control",
        unit: "",
        scale: 1.0,
        bars: "2 flows: 0.95 / 0.85; more: 0.95 / 0.90",
        source: "decision; Reno and CUBIC have 0.993 to 0.997",
        asks: everyone,
        cells: |cell| cell.family == "E",
        judge: jain,
    },
    Criterion {
        name: "starvation",
        short: "starved",
        what: "blocks of 10 s in which a flow gets less than a hundredth of its share",
        unit: "",
        scale: 1.0,
        bars: "none / one block in one run",
        source: "RFC 9743, section 5.2",
        asks: everyone,
        cells: |cell| matches!(cell.family, "E" | "C" | "R"),
        judge: |view, who, cell| {
            let values = view.values(&who.spec, &cell.id, "starved")?;
            let most = 1.0 / values.len() as f64;
            // The mean over runs is what the bars count.
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let tests = vec![test(vec![mean], false, AtMost(0.0, most))];
            Some(Judged { shown: values, log: false, tests })
        },
    },
    Criterion {
        name: "convergence",
        short: "converge",
        what: "time until a second flow of the same control has at least half of the first one's rate",
        unit: "s",
        scale: 1.0,
        bars: "10 s / 30 s",
        source: "RFC 5166, section 2.3: delta-fair convergence; decision",
        asks: everyone,
        cells: |cell| cell.family == "C",
        judge: |view, who, cell| plain(view, who, cell, "convergence", AtMost(10.0, 30.0)),
    },
    Criterion {
        name: "RTT",
        short: "RTT",
        what: "exponent with which a flow's share falls with its round trip, beside one of the same control",
        unit: "",
        scale: 1.0,
        bars: "-0.5 to 1.4 / -1 to 1.7",
        source: "Xu 2004: 1 / (1 - d) for a response p^-d; decision",
        asks: wide,
        cells: |cell| cell.family == "R",
        judge: exponent,
    },
    Criterion {
        name: "harm to Reno",
        short: "vs Reno",
        what: "what a Reno flow loses beside it, over what it loses beside a standard control",
        unit: "",
        scale: 1.0,
        bars: "1.10 / 1.25; if the standard's harm is below 0.05: harm of 0.10 / 0.20; a scavenger: 0.2 / 0.5. Of a control that paces, the standard is CUBIC with a pacer",
        source: "Ware et al., HotNets 2019; RFC 9743, section 5.2; margins are a decision",
        asks: wide,
        cells: |cell| cell.family == "H" && cell.id.starts_with("H-reno"),
        judge: harm,
    },
    Criterion {
        name: "harm to CUBIC",
        short: "vs CUBIC",
        what: "what a CUBIC flow loses beside it, over what it loses beside a standard control",
        unit: "",
        scale: 1.0,
        bars: "as harm to Reno",
        source: "Ware et al., HotNets 2019; RFC 9743, section 5.2; margins are a decision",
        asks: wide,
        cells: |cell| cell.family == "H" && cell.id.starts_with("H-cubic"),
        judge: harm,
    },
    Criterion {
        name: "own share",
        short: "share",
        what: "its part of the link beside a Reno or CUBIC flow",
        unit: "",
        scale: 1.0,
        bars: "shown, and not judged",
        source: "-",
        asks: everyone,
        cells: |cell| cell.family == "H",
        judge: suffers,
    },
    Criterion {
        name: "web",
        short: "web",
        what: "95th percentile of the time of downloads of CUBIC beside one flow",
        unit: "s",
        scale: 1.0,
        bars: "1.10 / 1.5 times the standard",
        source: "RFC 9743, section 5.1.5; decision",
        asks: wide,
        cells: |cell| cell.family == "W",
        judge: |view, who, cell| by_standard(view, who, cell, "web-p95", AtMost(1.10, 1.5)),
    },
    Criterion {
        name: "short flows",
        short: "short",
        what: "95th percentile of the time of its own downloads on an idle path",
        unit: "s",
        scale: 1.0,
        bars: "1.10 / 1.5 times the standard",
        source: "RFC 9743, section 5.1.5; decision",
        asks: equals,
        cells: |cell| cell.family == "F",
        judge: |view, who, cell| by_standard(view, who, cell, "web-p95", AtMost(1.10, 1.5)),
    },
    Criterion {
        name: "frames",
        short: "frames",
        what: "99th percentile of the time of frames of 2,500 bytes, asked for 20 ms after the last one, beside one flow",
        unit: "ms",
        scale: 1_000.0,
        bars: "1.10 / 1.25 times the standard",
        source: "RFC 9743, section 5.2; margins are a decision",
        asks: wide,
        cells: |cell| cell.family == "H-rt",
        judge: |view, who, cell| by_standard(view, who, cell, "rt-p99", AtMost(1.10, 1.25)),
    },
    Criterion {
        name: "requests",
        short: "requests",
        what: "median time of small requests beside its flows",
        unit: "ms",
        scale: 1_000.0,
        bars: "1.05 / 1.25 times the standard",
        source: "draft-ietf-ippm-responsiveness; decision",
        asks: wide,
        cells: |cell| cell.family == "U",
        judge: latency,
    },
    Criterion {
        name: "path change",
        short: "path",
        what: "time from a change of the path to 0.8 of what the flow then gets",
        unit: "s",
        scale: 1.0,
        bars: "5 s or 1.1 times the standard / 20 s or 1.5 times",
        source: "RFC 9743, section 7.11; decision",
        asks: everyone,
        cells: |cell| cell.family == "P" && !cell.facts.changes.is_empty(),
        judge: path_change,
    },
    Criterion {
        name: "outage",
        short: "outage",
        what: "time from the end of an outage to 0.8 of the rate before it",
        unit: "s",
        scale: 1.0,
        bars: "after 2 s: 3 s / 6 s; after 10 s: 8 s / 15 s",
        source: "RFC 9743, section 5.1.1; decision",
        asks: everyone,
        cells: |cell| cell.facts.outage.is_some(),
        judge: outage,
    },
    Criterion {
        name: "back-off",
        short: "back-off",
        what: "packets sent into an outage after its first second",
        unit: "",
        scale: 1.0,
        bars: "12 / 50",
        source: "RFC 9743, section 5.1.1: full back-off; decision",
        asks: everyone,
        cells: |cell| cell.facts.outage.is_some(),
        judge: backs_off,
    },
    Criterion {
        name: "disturbed",
        short: "disturb",
        what: "goodput with reordering, jitter, bunched ACKs or traffic the other way, of that without",
        unit: "",
        scale: 1.0,
        bars: "0.9 / 0.7, or 0.95 of the standard",
        source: "decision",
        asks: everyone,
        cells: |cell| matches!(cell.family, "J" | "V"),
        judge: robust,
    },
    Criterion {
        name: "policer",
        short: "policer",
        what: "goodput through a policer, of its rate",
        unit: "",
        scale: 1.0,
        bars: "0.8 / 0.5",
        source: "decision",
        asks: wide,
        cells: |cell| cell.family == "O",
        judge: |view, who, cell| plain(view, who, cell, "fill", AtLeast(0.8, 0.5)),
    },
    Criterion {
        name: "wireless",
        short: "wireless",
        what: "goodput over links that change all the time, of the mean rate",
        unit: "",
        scale: 1.0,
        bars: "0.95 / 0.80 of the standard",
        source: "decision",
        asks: everyone,
        cells: |cell| cell.family == "T",
        judge: |view, who, cell| by_standard(view, who, cell, "fill", AtLeast(0.95, 0.80)),
    },
    Criterion {
        name: "AQM",
        short: "AQM",
        what: "95th percentile of the delay of two flows through an AQM",
        unit: "ms",
        scale: 1.0,
        bars: "1.05 / 1.25 times the standard, and the link as full as theirs (0.95 / 0.80)",
        source: "RFC 9743, section 5.3; decision",
        asks: everyone,
        cells: |cell| cell.family == "Q",
        judge: |view, who, cell| {
            let values = view.values(&who.spec, &cell.id, "q95")?;
            let fill = view.values(&who.spec, &cell.id, "fill")?;
            let (Some(queue), Some(full)) =
                (view.standard(&cell.id, "q95", false), view.standard(&cell.id, "fill", true))
            else {
                // Reno and CUBIC have no run where ECN is needed: the queue alone, beside 1 RTT.
                let bars = AtMost(cell.facts.rtt * 1e3, 2e3 * cell.facts.rtt);
                return Some(Judged {
                    shown: values.clone(),
                    log: true,
                    tests: vec![test(values, true, bars)],
                });
            };
            // Both must hold: the worse of the two ratios, seed by seed.
            let full = over(&full, &fill).into_iter().map(|ratio| ratio * 1.05 * 0.95);
            let worse =
                over(&values, &queue).into_iter().zip(full).map(|(queue, full)| queue.max(full)).collect();
            Some(Judged { shown: values, log: true, tests: vec![test(worse, true, AtMost(1.05, 1.25))] })
        },
    },
    Criterion {
        name: "three links",
        short: "3 links",
        what: "goodput over three bottlenecks with a CUBIC flow on each, of a link",
        unit: "",
        scale: 1.0,
        bars: "0.95 / 0.80 of the standard",
        source: "draft-irtf-iccrg-tcpeval; decision",
        asks: equals,
        cells: |cell| cell.family == "M",
        judge: |view, who, cell| by_standard(view, who, cell, "share", AtLeast(0.95, 0.80)),
    },
];
