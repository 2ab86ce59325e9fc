//! Table 15.2: 64 pairs of buffers under three policies.

use super::conditions::{is_bold, matrix};
use super::equations::{Buffers, Class, SIZES};
use super::numbers::Matrix;
use super::runs::{self, Copies, Policy};
use crate::{Cell, Check, Finding, Job, Outputs, ReproduceError, Reproduction, Table};
use ackline_lab::stats::{mean, quantile};
use ackline_plot::HeatMap;

pub(super) fn plan() -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for copies in Copies::ALL {
        jobs.extend(runs::throughput_jobs(copies)?);
    }
    Ok(jobs)
}

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let whole = MeasuredRates::read(outputs, Copies::Whole)?;
    let partial = MeasuredRates::read(outputs, Copies::Partial)?;
    let mut found = Reproduction { findings: whole.findings(), ..Reproduction::default() };
    found.checks.extend(whole.against_paper());
    found.checks.extend(whole.shape());
    for measured in [&whole, &partial] {
        found.checks.push(measured.deadlocks());
        found.checks.extend(measured.against_model());
    }
    for policy in Policy::ALL {
        found.tables.push(whole.table(policy, Some(&found.checks)));
        found.figures.push(whole.heat_map(policy).into());
    }
    for policy in Policy::ALL {
        found.tables.push(partial.table(policy, None));
    }
    Ok(found)
}

/// The mean of |ln(measured/paper)| over all pairs.
pub(super) fn score(measured: &Matrix, paper: &Matrix) -> f64 {
    let distances: Vec<f64> =
        Buffers::all().map(|at| libm::log(at.of(measured) / at.of(paper)).abs()).collect();
    mean(&distances)
}

/// True if delayed acknowledgments bring less than half of what A3 does.
pub(super) fn is_locked(delayed: f64, a3: f64) -> bool {
    delayed < 0.5 * a3
}

/// Rates with one copy rule, KB/s.
struct MeasuredRates {
    copies: Copies,
    rates: [Matrix; 3],
}

impl MeasuredRates {
    fn read(outputs: &Outputs, copies: Copies) -> Result<Self, ReproduceError> {
        let [delayed, a3, fewer] = Policy::ALL.map(|policy| runs::throughput(outputs, copies, policy));
        Ok(Self { copies, rates: [delayed?, a3?, fewer?] })
    }

    fn of(&self, policy: Policy) -> &Matrix {
        &self.rates[policy as usize]
    }

    fn rate(&self, policy: Policy, at: Buffers) -> f64 {
        at.of(self.of(policy))
    }

    fn findings(&self) -> Vec<Finding> {
        let locked = |delayed: &Matrix, a3: &Matrix| {
            let locked = || Buffers::all().filter(|at| is_locked(at.of(delayed), at.of(a3)));
            let of = |rates: &Matrix| {
                let rates = || locked().map(|at| at.of(rates));
                (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max))
            };
            let ((low, high), (a3_low, a3_high)) = (of(delayed), of(a3));
            format!(
                "{} of 64 pairs lock at {low:.0} to {high:.0} KB/s, and have {a3_low:.0} to {a3_high:.0} under A3",
                locked().count()
            )
        };
        let ratio = |fewer: &Matrix, a3: &Matrix| {
            let ratios: Vec<f64> = Buffers::all().map(|at| at.of(fewer) / at.of(a3)).collect();
            let (low, high) = ratios
                .iter()
                .fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(*one), high.max(*one)));
            format!("{low:.2} to {high:.2} times A3")
        };
        let [delayed, a3, fewer] = &self.rates;
        let paper = Policy::ALL.map(Policy::paper);
        vec![
            Finding::new(
                "Table 15.2: delayed ACKs and A3",
                locked(paper[0], paper[1]),
                locked(delayed, a3),
                "15.2/whole/",
            )
            .and_checks("15.2/delayed/")
            .and_checks("15.2/a3/")
            .and_checks("15.2/shape/"),
            Finding::new(
                "Table 15.2: A3 with fewer samplings",
                ratio(paper[2], paper[1]),
                ratio(fewer, a3),
                "15.2/fewer/",
            ),
            Finding::new(
                "The independent model, all cells",
                "(not in the paper)",
                format!("largest deviation of a free pair {:.1} %", self.model_distance() * 100.0),
                "15.2/model/",
            ),
        ]
    }

    /// The largest deviation of a free pair from the independent model.
    fn model_distance(&self) -> f64 {
        let cells = Policy::ALL.into_iter().flat_map(|policy| Buffers::all().map(move |at| (policy, at)));
        cells
            .filter(|(policy, at)| *policy != Policy::Delayed || !is_bold(*at))
            .map(|(policy, at)| (self.rate(policy, at) / at.of(policy.model(self.copies)) - 1.0).abs())
            .fold(0.0, f64::max)
    }

    /// Each cell within its tolerance, and the mean distance from the paper.
    fn against_paper(&self) -> Vec<Check> {
        let mut checks = vec![];
        for policy in Policy::ALL {
            for at in Buffers::all() {
                let (rate, paper) = (self.rate(policy, at), at.of(policy.paper()));
                let (id, what) = (cell_id(policy, at), format!("S/R = {at}, {}, KB/s", policy.words()));
                let check = match Tolerance::of(policy, at) {
                    Tolerance::Share(share) => {
                        let narrow = Check::near(id.clone(), what.clone(), rate, paper, share);
                        if narrow.ok {
                            narrow
                        } else {
                            Check::within(id, what, rate, self.wide_enough(policy, at, share))
                                .expected(paper)
                                .widened("the independent model misses the paper's number by as much")
                        }
                    }
                    Tolerance::Within(low, high) => Check::within(id, what, rate, (low, high)),
                    // The paper has whole KB/s, and so has this tolerance.
                    Tolerance::Rounded(low, high) => {
                        Check::within(id, format!("{what}, rounded"), libm::round(rate), (low, high))
                    }
                };
                checks.push(check.paper(paper));
            }
            let limit = [0.12, 0.10, 0.11][policy as usize];
            let what = format!("mean of |ln(measured/paper)|, {}", policy.words());
            let id = format!("15.2/{}/distance", policy.id());
            checks.push(Check::at_most(id, what, score(self.of(policy), policy.paper()), limit));
        }
        for policy in [Policy::Delayed, Policy::A3] {
            let others = Buffers::all().filter(|at| is_other(policy, *at));
            let mut errors: Vec<f64> = others
                .map(|at| (self.rate(policy, at) / at.of(policy.paper()) - 1.0).abs() * 100.0)
                .collect();
            errors.sort_by(f64::total_cmp);
            checks.push(Check::at_most(
                format!("15.2/{}/median", policy.id()),
                format!("median deviation of free pairs with R > 16 KB and S > 4 KB, {}, %", policy.words()),
                quantile(&errors, 0.5),
                9.0,
            ));
        }
        checks
    }

    /// The share of the paper's number, but never so near that a rate within 3 % of the independent
    /// model's would fail: that model, whose parameters these are, stands at the edge of 31 %
    /// itself (106 against 80 KB/s at 32/24, 130 against 99 at 40/32).
    fn wide_enough(&self, policy: Policy, at: Buffers, share: f64) -> (f64, f64) {
        let (paper, model) = (at.of(policy.paper()), at.of(policy.model(self.copies)));
        ((paper * (1.0 - share)).min(model * 0.97), (paper * (1.0 + share)).max(model * 1.03))
    }

    /// What does not depend on the parameters that the paper leaves open.
    fn shape(&self) -> Vec<Check> {
        let smallest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let gain = |at: Buffers| self.rate(Policy::A3, at) / self.rate(Policy::Delayed, at);
        let fewer = |at: Buffers| self.rate(Policy::Fewer, at) / self.rate(Policy::A3, at);
        vec![
            Check::at_least(
                "15.2/shape/bold",
                "smallest ratio of A3 to delayed acknowledgments in a bold pair",
                smallest(&mut Buffers::all().filter(|at| is_bold(*at)).map(gain)),
                3.0,
            ),
            Check::at_least(
                "15.2/shape/free",
                "smallest ratio of A3 to delayed acknowledgments in a free pair",
                smallest(&mut Buffers::all().filter(|at| !is_bold(*at)).map(gain)),
                0.9,
            ),
            Check::at_most(
                "15.2/shape/fewer",
                "largest deviation of A3 with fewer samplings from A3, %",
                Buffers::all().map(|at| (fewer(at) - 1.0).abs() * 100.0).fold(0.0, f64::max),
                10.0,
            ),
            Check::at_most(
                "15.2/shape/monotonic",
                "largest fall of A3's rate where a buffer grows, %",
                self.largest_fall() * 100.0,
                20.0,
            ),
        ]
    }

    fn largest_fall(&self) -> f64 {
        let rates = self.of(Policy::A3);
        let rows = rates.iter().flat_map(|row| row.windows(2).map(|pair| (pair[0], pair[1])));
        let columns = (0..SIZES.len())
            .flat_map(|column| rates.windows(2).map(move |pair| (pair[0][column], pair[1][column])));
        rows.chain(columns).map(|(small, large)| 1.0 - large / small).fold(0.0, f64::max)
    }

    /// Which pairs lock.
    fn deadlocks(&self) -> Check {
        let expected = |at: Buffers| match self.copies {
            Copies::Whole => is_bold(at),
            // Class III needs residues that are multiples of the copy.
            Copies::Partial => is_bold(at) && at.class() != Some(Class::Three),
        };
        let locked = |at: &Buffers| is_locked(self.rate(Policy::Delayed, *at), self.rate(Policy::A3, *at));
        let wrong = Buffers::all().filter(|at| locked(at) != expected(*at)).count();
        let which = match self.copies {
            Copies::Whole => "the 19 bold ones",
            Copies::Partial => "the 15 bold ones outside class III",
        };
        Check::exactly(
            format!("15.2/{}/locked", self.copies.id()),
            format!("pairs by which those that lock differ from {which}, {} copies", self.copies.id()),
            wrong as f64,
            0.0,
        )
    }

    /// Each cell beside the independent model's.
    fn against_model(&self) -> Vec<Check> {
        let copies = self.copies;
        let cells = Policy::ALL.into_iter().flat_map(|policy| Buffers::all().map(move |at| (policy, at)));
        cells
            .map(|(policy, at)| {
                let bold = policy == Policy::Delayed && is_bold(at);
                Check::near(
                    format!("15.2/model/{}/{}/{}", copies.id(), policy.id(), at.id()),
                    format!(
                        "S/R = {at}, {}, {} copies, against the independent model, KB/s",
                        policy.words(),
                        copies.id()
                    ),
                    self.rate(policy, at),
                    at.of(policy.model(copies)),
                    if bold { 0.1 } else { 0.03 },
                )
            })
            .collect()
    }

    /// The paper's numbers beside ours; with the bounds of `checks`.
    fn table(&self, policy: Policy, checks: Option<&[Check]>) -> Table {
        let copies = self.copies;
        let id = format!("15.2-{}-{}", copies.id(), policy.id());
        let number = policy as usize + 1;
        let title = format!("Table 15.2 ({number}): KB/s, {}, {} copies", policy.words(), copies.id());
        matrix(&id, &title, |at| {
            let cell = Cell::beside(self.rate(policy, at), at.of(policy.paper()), 0)
                .marked(policy == Policy::Delayed && is_bold(at));
            let check = checks.and_then(|checks| checks.iter().find(|check| check.id == cell_id(policy, at)));
            match check.map(|check| (check.low, check.high)) {
                // A rounded number is compared, and shown.
                Some((Some(low), Some(high))) => cell.within((low - rounding(policy, at), high + rounding(policy, at))),
                _ => cell,
            }
        })
        .note(match checks {
            Some(_) => "Measured (paper), deviation; `*`: deadlock in the paper, `!`: outside the tolerance.",
            None => "Measured (paper), deviation; `*`: deadlock in the paper. Not held to tolerances: the paper fits whole copies.",
        })
    }

    fn heat_map(&self, policy: Policy) -> HeatMap {
        let names = || SIZES.iter().map(ToString::to_string).collect();
        HeatMap {
            name: format!("table-15.2-{}", policy.id()),
            title: format!("Table 15.2, {}: KB/s", policy.words()),
            x_label: "receive buffer [KB]".to_owned(),
            y_label: "send [KB]".to_owned(),
            columns: names(),
            rows: names(),
            values: self.of(policy).iter().map(|row| row.iter().copied().map(Some).collect()).collect(),
            digits: 0,
            range: Some((5.0, 170.0)),
            log: true,
            framed: Buffers::all()
                .enumerate()
                .filter(|(_, at)| is_locked(self.rate(policy, *at), self.rate(Policy::A3, *at)))
                .map(|(place, _)| (place / 8, place % 8))
                .collect(),
        }
    }
}

fn cell_id(policy: Policy, at: Buffers) -> String {
    format!("15.2/{}/{}", policy.id(), at.id())
}

/// How far a cell may be from the paper.
enum Tolerance {
    /// A share of the paper's number.
    Share(f64),
    /// Between two numbers, KB/s.
    Within(f64, f64),
    /// Between two numbers, in whole KB/s.
    Rounded(f64, f64),
}

/// Half a unit if a rounded number is compared.
fn rounding(policy: Policy, at: Buffers) -> f64 {
    if matches!(Tolerance::of(policy, at), Tolerance::Rounded(..)) { 0.5 } else { 0.0 }
}

impl Tolerance {
    fn of(policy: Policy, at: Buffers) -> Self {
        let bold = policy == Policy::Delayed && is_bold(at);
        match (at.send, at.receive) {
            (4 | 8, _) if bold => Self::Within(5.4, 6.6),
            (16, _) if bold => Self::Rounded(11.0, 19.0),
            _ if bold => Self::Rounded(23.0, 26.0),
            (_, 4) => Self::Within(18.0, 22.0),
            (8, 8 | 16) => Self::Share(0.20),
            (16, 16) => Self::Share(0.30),
            (4, _) | (_, 8 | 16) => Self::Share(0.10),
            (8, _) if policy != Policy::Delayed => Self::Share(0.20),
            (16, _) if policy != Policy::Delayed => Self::Share(0.25),
            _ => Self::Share(0.31),
        }
    }
}

/// A free pair whose rate depends on the parameters that are inferred.
fn is_other(policy: Policy, at: Buffers) -> bool {
    at.receive > 16 && at.send > 4 && !(policy == Policy::Delayed && is_bold(at))
}
