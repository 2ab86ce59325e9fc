//! Figures of the page: a heat map of verdicts, and plots of two criteria against each other.

use super::evaluation::Evaluation;
use super::judgement::Verdict;
use super::statistics::Interval;
use super::view::View;
use ackline_plot::{Chart, HUES, HeatMap, Kind, Line, Look, Style, VerdictMap};

impl Evaluation {
    fn view<'a>(&'a self, contestants: &'a [super::Contestant]) -> View<'a> {
        View { matrix: &self.matrix, contestants, finished: &self.finished }
    }

    /// Plots of two criteria against each other.
    pub(super) fn charts(&self) -> Vec<Chart> {
        let contestants: Vec<_> = self.rows.iter().map(|row| row.contestant.clone()).collect();
        delay_against_throughput(&self.view(&contestants))
            .into_iter()
            .chain(harm_against_share(self))
            .collect()
    }

    /// A row a contestant, a column a criterion. The number is that of the worst cell.
    pub(super) fn heat_map(&self) -> VerdictMap {
        let mut criteria = self.criteria();
        criteria.retain(|(at, _)| self.rows.iter().any(|row| row.outcomes[*at].verdict().is_some()));
        let place = |verdict| match verdict {
            Verdict::Pass => 0.0,
            Verdict::Undecided => 1.0,
            Verdict::Warn => 2.0,
            Verdict::Fail => 3.0,
        };
        let (mut values, mut labels) = (vec![], vec![]);
        for row in &self.rows {
            let outcomes = criteria.iter().map(|(at, _)| &row.outcomes[*at]);
            values.push(outcomes.clone().map(|outcome| outcome.verdict().map(place)).collect());
            labels.push(
                outcomes
                    .map(|outcome| {
                        let worst = outcome.worst();
                        worst.map_or(String::new(), |worst| {
                            worst.interval.map_or("x".to_owned(), |it| short(it.mean))
                        })
                    })
                    .collect(),
            );
        }
        let quick = if self.matrix.judges() { "" } else { "; two seeds: colours say where the mean lies" };
        let map = HeatMap {
            name: "verdicts".to_owned(),
            title: format!("The worst cell of each criterion{quick}"),
            columns: criteria.iter().map(|(_, criterion)| criterion.short.to_owned()).collect(),
            rows: self.rows.iter().map(|row| row.contestant.spec.clone()).collect(),
            values,
            ..HeatMap::default()
        };
        VerdictMap { map, labels, is_pale: !self.matrix.judges() }
    }
}

/// A number with about three digits.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size < 5e-4 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}

/// A contestant's place in a plot: x and y with their intervals.
struct Dot {
    name: String,
    x: Interval,
    y: Interval,
}

/// S: the queue that a flow makes against what it gets, mean over the cells with a buffer of 1 BDP
/// and more.
fn delay_against_throughput(view: &View<'_>) -> Option<Chart> {
    let cells: Vec<_> =
        view.matrix.cells.iter().filter(|cell| cell.family == "S" && cell.facts.buffer >= 1.0).collect();
    let dot = |contestant: &super::Contestant| {
        let mut queue: Vec<f64> = vec![];
        let mut fill: Vec<f64> = vec![];
        for cell in &cells {
            let q95 = view.values(&contestant.spec, &cell.id, "q95")?;
            let full = view.values(&contestant.spec, &cell.id, "fill")?;
            // Seed by seed over cells, of which the first one has the most seeds.
            let add = |sums: &mut Vec<f64>, values: Vec<f64>| {
                if sums.is_empty() {
                    *sums = values;
                } else {
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                }
            };
            add(&mut queue, q95.iter().map(|delay| delay / cell.facts.rtt / 1e3).collect());
            add(&mut fill, full);
        }
        let mean = |sums: &[f64]| sums.iter().map(|sum| sum / cells.len() as f64).collect::<Vec<_>>();
        let (x, y) = (Interval::of(&mean(&queue), false)?, Interval::of(&mean(&fill), false)?);
        Some(Dot { name: contestant.spec.clone(), x, y })
    };
    let dots: Vec<Dot> = view.contestants.iter().filter_map(dot).collect();
    (dots.len() > 1).then(|| {
        pareto(
            "delay-throughput",
            "One flow: the queue that it makes, and what it gets (buffers of 1 BDP and more)",
            "95th percentile of the queueing delay [base RTTs]",
            "goodput, of what the link can carry",
            &dots,
        )
    })
}

/// H: excess harm against the own share.
fn harm_against_share(evaluation: &Evaluation) -> Option<Chart> {
    let place = |name: &str| super::criteria::CRITERIA.iter().position(|criterion| criterion.name == name);
    let (reno, cubic, share) = (place("harm to Reno")?, place("harm to CUBIC")?, place("own share")?);
    let mean = |values: Vec<Interval>| {
        let n = values.len() as f64;
        let first = *values.first()?;
        let of = |pick: fn(&Interval) -> f64| values.iter().map(pick).sum::<f64>() / n;
        Some(Interval { mean: of(|it| it.mean), ci95: (of(|it| it.ci95.0), of(|it| it.ci95.1)), ..first })
    };
    let dot = |row: &super::Row| {
        let intervals = |places: &[usize]| {
            let variants = places.iter().flat_map(|place| &row.outcomes[*place].variants);
            mean(variants.filter_map(|variant| variant.interval).collect())
        };
        Some(Dot {
            name: row.contestant.spec.clone(),
            x: intervals(&[reno, cubic])?,
            y: intervals(&[share])?,
        })
    };
    let dots: Vec<Dot> = evaluation.rows.iter().filter_map(dot).collect();
    (dots.len() > 1).then(|| {
        pareto(
            "harm-share",
            "Beside a Reno or CUBIC flow: the harm that it does, and what it gets (means over cells)",
            "harm, of what a standard control does",
            "own share of the link",
            &dots,
        )
    })
}

/// Less of x and more of y is better. A contestant is dominated if another one beats it in both by
/// more than both half-intervals; a line joins the others.
fn pareto(name: &str, title: &str, x_label: &str, y_label: &str, dots: &[Dot]) -> Chart {
    let half = |interval: &Interval| {
        // Of two runs an interval says nothing.
        if interval.n > 2 { (interval.ci95.1 - interval.ci95.0) / 2.0 } else { 0.0 }
    };
    let beats = |one: &Dot, other: &Dot| {
        other.x.mean - one.x.mean > half(&one.x).max(half(&other.x))
            && one.y.mean - other.y.mean > half(&one.y).max(half(&other.y))
    };
    let mut front: Vec<(f64, f64)> = dots
        .iter()
        .filter(|dot| !dots.iter().any(|other| beats(other, dot)))
        .map(|dot| (dot.x.mean, dot.y.mean))
        .collect();
    front.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut lines = vec![Line {
        label: "not dominated".to_owned(),
        points: front,
        style: Style::Line,
        look: Look::Ink,
        ..Line::default()
    }];
    // Shapes tell apart what has the same colour.
    let shape = |place: usize| match place / HUES {
        0 => Style::Points,
        1 => Style::Triangles,
        _ => Style::Crosses,
    };
    lines.extend(dots.iter().enumerate().map(|(place, dot)| Line {
        label: dot.name.clone(),
        points: vec![(dot.x.mean, dot.y.mean)],
        style: shape(place),
        look: Look::Series(place % HUES),
        ..Line::default()
    }));
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        x: Kind::default(),
        y: Kind::default(),
        lines,
        ..Chart::default()
    }
}
