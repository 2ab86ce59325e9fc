//! Plots as SVG and PDF.
//!
//! A [`Chart`] has one plot, [`Panels`] have several with common axes and one legend, a [`HeatMap`]
//! is a matrix of colours. No font of the machine is needed, and the same figure gives the same
//! bytes everywhere.
//!
//! A figure is laid out on a canvas, which becomes either format. The files are written here, with
//! `pdf-writer` and `ttf-parser`: plotters rounds to whole pixels, cannot measure text without a
//! system font, has no groups to clip or zoom, and writes no PDF.
//!
//! ```
//! use ackline_plot::{Chart, Line, PlotOptions};
//!
//! let chart = Chart {
//!     name: "window".to_owned(),
//!     x_label: "time (s)".to_owned(),
//!     y_label: "window (kB)".to_owned(),
//!     lines: vec![Line {
//!         label: "reno".to_owned(),
//!         points: vec![(0.0, 15.0), (1.0, 60.0), (2.0, 30.0)],
//!         ..Line::default()
//!     }],
//!     ..Chart::default()
//! };
//! assert!(chart.to_file(&PlotOptions::default()).starts_with(b"<svg"));
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod canvas;
mod draw;
mod figure;
mod font;
mod heat_map;
mod palette;
mod pdf;
mod scale;
mod size;
mod svg;
#[cfg(test)]
mod tests;
mod unit;

pub use canvas::OVERHANG;
pub use figure::{Figure, marked};
pub use heat_map::{HeatMap, VerdictMap};
pub use palette::{HUES, Look};
pub use scale::Kind;
pub use size::Size;
pub use svg::escaped;
pub use unit::{prefixed, short};

use canvas::Canvas;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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

/// How a figure becomes a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlotOptions {
    /// SVG or PDF.
    pub format: Format,
    /// Its size on paper. `None`: 190 mm wide, and as high as it needs.
    pub size: Option<Size>,
    /// Leave its title out: the paper has a caption.
    pub untitled: bool,
}

/// A format of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Scalable vector graphics: text stays text, in the font that the reader's machine has.
    #[default]
    Svg,
    /// Portable document format, with its font.
    Pdf,
}

impl Format {
    /// The ending of its files.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pdf => "pdf",
        }
    }
}

/// What is drawn on a canvas of its own.
trait Drawing {
    /// What it shows, for those who do not see it.
    fn title(&self) -> Cow<'_, str>;

    fn draw(&self, options: &PlotOptions) -> Canvas;

    fn element(&self) -> String {
        let options = PlotOptions::default();
        svg::element(&self.draw(&options), &self.title(), None)
    }

    fn file(&self, options: &PlotOptions) -> Vec<u8> {
        let canvas = self.draw(options);
        match options.format {
            Format::Svg => svg::file(&svg::element(&canvas, &self.title(), options.size)).into_bytes(),
            Format::Pdf => pdf::file(&canvas, &self.title()),
        }
    }
}

macro_rules! figures {
    ($($figure:ty),*) => {$(
        impl $figure {
            /// The figure as an SVG element for a page.
            #[must_use]
            pub fn to_svg(&self) -> String {
                self.element()
            }

            /// The figure as a file of its own. An SVG is dark if the reader's screen is.
            #[must_use]
            pub fn to_file(&self, options: &PlotOptions) -> Vec<u8> {
                self.file(options)
            }
        }
    )*};
}

figures!(Chart, Panels, HeatMap, VerdictMap);

impl Drawing for Chart {
    fn title(&self) -> Cow<'_, str> {
        self.title.as_str().into()
    }

    fn draw(&self, options: &PlotOptions) -> Canvas {
        draw::chart(self, options)
    }
}

impl Drawing for Panels {
    fn title(&self) -> Cow<'_, str> {
        if !self.title.is_empty() {
            return self.title.as_str().into();
        }
        self.charts.iter().map(|chart| chart.title.as_str()).collect::<Vec<_>>().join("; ").into()
    }

    fn draw(&self, options: &PlotOptions) -> Canvas {
        draw::panels(self, options)
    }
}

impl Drawing for HeatMap {
    fn title(&self) -> Cow<'_, str> {
        self.title.as_str().into()
    }

    fn draw(&self, options: &PlotOptions) -> Canvas {
        self.canvas(options)
    }
}

impl Drawing for VerdictMap {
    fn title(&self) -> Cow<'_, str> {
        self.map.title.as_str().into()
    }

    fn draw(&self, options: &PlotOptions) -> Canvas {
        self.canvas(options)
    }
}

impl Chart {
    /// True if there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.is_empty() && line.band.is_empty())
    }
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

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
