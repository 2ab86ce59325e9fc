//! What the paper, the closed forms and an independent event model say of each experiment.

use super::formulas::{Efficiency, Line};

/// Which packet leaves the near host next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Discipline {
    /// One queue.
    Fifo,
    /// ACKs first.
    AckPriority,
    /// Data packets of a connection that IP holds.
    Backpressure(u32),
    /// Data has this share of the bytes.
    Allocation(f64),
}

impl Discipline {
    /// ACKs between two data packets of the slow direction, as the formulas have it: (4.3), (5.1)
    /// to (5.4), (6.1). `None` if there are no data packets.
    pub(crate) fn acks_per_data(self, line: &Line) -> Option<f64> {
        let first = line.priority_burst().map(|burst| burst.all);
        match self {
            Self::Fifo => Some(line.packets_j() / line.packets_i()),
            Self::AckPriority => first,
            Self::Backpressure(b) => Some(line.backpressure_acks(b) / f64::from(b)),
            Self::Allocation(f) => Some(first.unwrap_or(f64::INFINITY).min(line.allocation_ratio(f))),
        }
    }

    /// As it stands in tables.
    pub(crate) fn label(self) -> String {
        match self {
            Self::Fifo => "one queue".to_owned(),
            Self::AckPriority => "ACKs first".to_owned(),
            Self::Backpressure(b) => format!("backpressure, b = {b}"),
            Self::Allocation(f) => format!("allocation, f = {}", (f * 1e3).round() / 1e3),
        }
    }

    /// What the paper's formulas give.
    pub(crate) fn printed(self, line: &Line) -> Efficiency {
        match self {
            Self::Fifo => line.fifo(0.0),
            Self::AckPriority => line.priority_printed(),
            Self::Backpressure(b) => line.backpressure_printed(b),
            Self::Allocation(f) => line.allocation_printed(f),
        }
    }

    /// What they give once they are put right.
    pub(crate) fn corrected(self, line: &Line) -> Efficiency {
        match self {
            // Nothing is held back if a whole window may be with IP.
            Self::Fifo => line.backpressure(line.packets_i() as u32),
            Self::AckPriority => line.priority(),
            Self::Backpressure(b) => line.backpressure(b),
            Self::Allocation(f) => line.allocation(f),
        }
    }
}

/// One experiment: a point of a scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The figure, or what the row is.
    pub(crate) name: &'static str,
    /// Name of the scenario.
    pub(crate) scenario: &'static str,
    /// Point of its sweep.
    pub(crate) point: usize,
    pub(crate) discipline: Discipline,
    /// Sizes in bytes: data of i, data of j, ACK.
    pub(crate) sizes: [u32; 3],
    /// What the paper says of `F_i` and `F_j`, in its own numbers.
    pub(crate) paper: [&'static str; 2],
    /// The event model; `None`: it was not asked, and the closed form counts.
    pub(crate) model: Option<Efficiency>,
    /// By how much the simulation may differ from it.
    pub(crate) tolerance: Efficiency,
    /// The paper's band for `F_i` and `F_j`, if it is one.
    pub(crate) band: Option<[(f64, f64); 2]>,
}

impl Row {
    pub(crate) fn line(&self) -> Line {
        let [data_i, data_j, ack] = self.sizes;
        Line::of_paper(data_i, data_j, ack)
    }

    /// Its name as it stands in the names of checks: `5.5-1500-1500`.
    pub(crate) fn slug(&self) -> String {
        let words = self.name.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").to_ascii_lowercase()
    }

    /// True if it is one of the paper's figures, or a variant of one.
    pub(crate) fn is_figure(&self) -> bool {
        self.name.starts_with(|first: char| first.is_ascii_digit())
    }

    /// `Figure 5.3`, or what the row is.
    pub(crate) fn title(&self) -> String {
        if self.is_figure() {
            return format!("Figure {}", self.name);
        }
        let (first, rest) = self.name.split_at(1);
        first.to_ascii_uppercase() + rest
    }

    /// What is expected.
    pub(crate) fn expected(&self) -> Efficiency {
        self.model.unwrap_or_else(|| self.discipline.corrected(&self.line()))
    }
}

const fn row(
    name: &'static str,
    (scenario, point): (&'static str, usize),
    discipline: Discipline,
    sizes: [u32; 3],
    paper: [&'static str; 2],
    model: (f64, f64),
    tolerance: (f64, f64),
) -> Row {
    Row {
        name,
        scenario,
        point,
        discipline,
        sizes,
        paper,
        model: Some(Efficiency::new(model.0, model.1)),
        tolerance: Efficiency::new(tolerance.0, tolerance.1),
        band: None,
    }
}

const LARGE: [u32; 3] = [1500, 1500, 28];
const SMALL_UP: [u32; 3] = [256, 1500, 28];
const SMALL: [u32; 3] = [256, 512, 28];
const UNSAID: [&str; 2] = ["", ""];

/// All of them, in the order of the paper.
pub(crate) const ROWS: &[Row] = &[
    row("2.3", ("fifo", 0), Discipline::Fifo, LARGE, ["1.00", "< 0.02"], (0.980, 0.0206), (0.01, 0.004)),
    row(
        "4.2",
        ("ack-priority", 0),
        Discipline::AckPriority,
        [1500, 1500, 15],
        ["> 0.50", "0.92"],
        (0.546, 0.907),
        (0.02, 0.03),
    ),
    row(
        "4.3",
        ("ack-priority", 1),
        Discipline::AckPriority,
        LARGE,
        ["severely degraded", "about 1"],
        (0.080, 0.986),
        (0.01, 0.01),
    ),
    row(
        "4.4",
        ("ack-priority", 2),
        Discipline::AckPriority,
        [1500, 1500, 40],
        ["0", "0.75"],
        (0.0, 0.750),
        (0.005, 0.005),
    ),
    row(
        "5.3",
        ("backpressure", 0),
        Discipline::Backpressure(1),
        LARGE,
        ["0.56", "0.48"],
        (0.556, 0.477),
        (0.01, 0.01),
    ),
    row(
        "5.4",
        ("backpressure", 1),
        Discipline::Backpressure(1),
        SMALL_UP,
        ["0.172 (also 0.18, 0.20)", "0.87 (also 0.85)"],
        (0.175, 0.884),
        (0.01, 0.015),
    ),
    row(
        "5.5, 1500/1500",
        ("six-connections", 0),
        Discipline::Backpressure(1),
        LARGE,
        ["as one connection", "as one connection"],
        (0.556, 0.477),
        (0.01, 0.01),
    ),
    row(
        "5.5, 256/1500",
        ("six-connections", 1),
        Discipline::Backpressure(1),
        SMALL_UP,
        ["as one connection", "as one connection"],
        (0.175, 0.884),
        (0.01, 0.01),
    ),
    row(
        "5.6",
        ("backpressure", 2),
        Discipline::Backpressure(1),
        SMALL,
        ["0.06 (also 0.07)", "reduced"],
        (0.067, 0.341),
        (0.005, 0.01),
    ),
    Row {
        band: Some([(0.50, 0.56), (0.46, 0.54)]),
        ..row(
            "6.2",
            ("allocation", 0),
            Discipline::Allocation(0.5),
            LARGE,
            ["0.54", "0.46"],
            (0.500, 0.536),
            (0.01, 0.01),
        )
    },
    row(
        "6.2, ACKs of 30 B",
        ("allocation", 1),
        Discipline::Allocation(0.5),
        [1500, 1500, 30],
        UNSAID,
        (0.500, 0.500),
        (0.01, 0.01),
    ),
    row(
        "6.3",
        ("allocation", 2),
        Discipline::Allocation(0.5),
        SMALL_UP,
        ["about 0.50", "about 0.50"],
        (0.4997, 0.5357),
        (0.005, 0.01),
    ),
    row(
        "6.4",
        ("allocation", 3),
        Discipline::Allocation(0.5),
        SMALL,
        ["about 0.50", "lower"],
        (0.500, 0.183),
        (0.005, 0.01),
    ),
    row(
        "6.5",
        ("allocation", 4),
        Discipline::Allocation(0.18),
        SMALL_UP,
        ["0.18", "0.85"],
        (0.180, 0.878),
        (0.005, 0.02),
    ),
    row(
        "f = 4/5",
        ("allocation", 5),
        Discipline::Allocation(0.8),
        SMALL_UP,
        UNSAID,
        (0.800, 0.214),
        (0.005, 0.01),
    ),
    row(
        "f = 3/10, ACKs of 15 B",
        ("allocation", 6),
        Discipline::Allocation(0.3),
        [1500, 1500, 15],
        UNSAID,
        (0.546, 0.907),
        (0.02, 0.03),
    ),
    Row {
        model: None,
        ..row(
            "f = 15/29, equal",
            ("allocation", 7),
            Discipline::Allocation(15.0 / 29.0),
            LARGE,
            UNSAID,
            (0.0, 0.0),
            (0.01, 0.01),
        )
    },
    row(
        "both hosts hold back",
        ("backpressure", 3),
        Discipline::Backpressure(1),
        LARGE,
        ["no effect", "no effect"],
        (0.556, 0.477),
        (0.01, 0.01),
    ),
    threshold("b = 2", 0, 2, (0.714, 0.307)),
    threshold("b = 3", 1, 3, (0.789, 0.226)),
    threshold("b = 4", 2, 4, (0.833, 0.179)),
    threshold("b = 8", 3, 8, (0.909, 0.098)),
    threshold("b = 16", 4, 16, (0.952, 0.051)),
    threshold("b = 43", 5, 43, (0.982, 0.020)),
];

const fn threshold(name: &'static str, point: usize, b: u32, model: (f64, f64)) -> Row {
    row(name, ("thresholds", point), Discipline::Backpressure(b), LARGE, UNSAID, model, (0.005, 0.005))
}

/// Backpressure over a distance: what the event model gives for a propagation of so many
/// milliseconds one way. The scenario has all distances of the first sizes before those of the
/// second.
pub(crate) const DISTANCES: &[([u32; 3], u32, Efficiency)] = &[
    (LARGE, 0, Efficiency::new(0.556, 0.477)),
    (LARGE, 5, Efficiency::new(0.556, 0.477)),
    (LARGE, 20, Efficiency::new(0.554, 0.477)),
    (LARGE, 50, Efficiency::new(0.554, 0.478)),
    (LARGE, 100, Efficiency::new(0.714, 0.306)),
    (SMALL_UP, 0, Efficiency::new(0.175, 0.884)),
    (SMALL_UP, 5, Efficiency::new(0.175, 0.884)),
    (SMALL_UP, 20, Efficiency::new(0.228, 0.827)),
    (SMALL_UP, 50, Efficiency::new(0.379, 0.666)),
    (SMALL_UP, 100, Efficiency::new(0.567, 0.465)),
];

/// How far the simulation may be from them.
pub(crate) const DISTANCE_TOLERANCE: f64 = 0.02;
