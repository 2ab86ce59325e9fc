//! One plot: lines, references, shaded spans; and panels, several of them as one figure.

use super::palette::Look;
use super::scale::Kind;
use serde::{Deserialize, Serialize};

/// A plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// A short name, fit for a file.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Name and unit of the horizontal axis.
    pub x_label: String,
    /// Name and unit of the vertical axis.
    pub y_label: String,
    /// The horizontal axis.
    pub x: Kind,
    /// The vertical axis.
    pub y: Kind,
    /// The vertical axis begins at zero.
    pub from_zero: bool,
    /// Ends of the horizontal axis; `None`: those of what is drawn.
    pub x_range: Option<(f64, f64)>,
    /// Ends of the vertical axis; `None`: those of what is drawn.
    pub y_range: Option<(f64, f64)>,
    /// The horizontal axis is a run's time: a reader of the report can zoom along it.
    pub over_time: bool,
    /// What is drawn.
    pub lines: Vec<Line>,
    /// Values to compare with.
    pub references: Vec<Reference>,
    /// Parts of the horizontal axis that are shaded.
    pub spans: Vec<Span>,
}

impl Chart {
    /// True if there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.is_empty() && line.band.is_empty())
    }
}

/// One line of a plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// What it is; empty: not in the legend. Lines of a figure with the same label look the same.
    pub label: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Confidence bands: x, low, high; empty if there are none.
    pub band: Vec<(f64, f64, f64)>,
    /// How points are drawn.
    pub style: Style,
    /// Its colour and dashes.
    pub look: Look,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Style {
    /// Joined.
    #[default]
    Line,
    /// Joined, each with a dot.
    Marked,
    /// Large dots. Above a name, those of several lines stand beside each other.
    Points,
    /// Each value holds until the next.
    Steps,
    /// Dots.
    Dots,
    /// Crosses: something was lost or sent again.
    Crosses,
    /// Triangles on their tips: something happened here.
    Triangles,
    /// The band as vertical strokes, and points as dots.
    Bars,
}

/// A value to compare with: a straight line across the plot, with a label beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Where it meets its axis.
    pub at: f64,
    /// What it is.
    pub label: String,
    /// It stands upright, at a value of the horizontal axis.
    pub upright: bool,
}

impl Reference {
    /// At a value of the vertical axis. The axis reaches up to it, unless that would press what is
    /// drawn against the bottom.
    #[must_use]
    pub fn level(at: f64, label: impl Into<String>) -> Self {
        Self { at, label: label.into(), upright: false }
    }

    /// At a value of the horizontal axis, if that is in view.
    #[must_use]
    pub fn upright(at: f64, label: impl Into<String>) -> Self {
        Self { at, label: label.into(), upright: true }
    }
}

/// A part of the horizontal axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Its begin.
    pub from: f64,
    /// Its end.
    pub until: f64,
    /// What it is.
    pub label: String,
}

/// Several plots as one figure, with one legend. In the same column they stand under each other
/// edge to edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Panels {
    /// A short name, fit for a file.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The plots, row by row; their titles are headings.
    pub charts: Vec<Chart>,
    /// Plots beside each other, at least 1.
    pub columns: usize,
    /// All have the same horizontal axis, with numbers at the bottom alone.
    pub same_x: bool,
    /// All have the same vertical axis, with numbers at the left alone.
    pub same_y: bool,
}

/// At most about four thousand points that look like all of them: of each of a thousand columns the
/// first, the least, the largest and the last.
#[must_use]
pub fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const COLUMNS: f64 = 1_000.0;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return vec![] };
    if points.len() as f64 <= COLUMNS * 2.0 || last.0 <= first.0 {
        return points.to_vec();
    }
    let column = |point: &(f64, f64)| libm::floor((point.0 - first.0) / (last.0 - first.0) * COLUMNS) as i64;
    let mut kept = vec![];
    for group in points.chunk_by(|a, b| column(a) == column(b)) {
        let least = (0..group.len()).min_by(|a, b| group[*a].1.total_cmp(&group[*b].1)).unwrap_or(0);
        let largest = (0..group.len()).max_by(|a, b| group[*a].1.total_cmp(&group[*b].1)).unwrap_or(0);
        let mut places = vec![0, least, largest, group.len() - 1];
        places.sort_unstable();
        places.dedup();
        kept.extend(places.into_iter().map(|place| group[place]));
    }
    kept
}
