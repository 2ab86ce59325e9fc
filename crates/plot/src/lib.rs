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
mod chart;
mod draw;
mod drawing;
mod figure;
mod font;
mod heat_map;
mod options;
mod palette;
mod pdf;
mod scale;
mod size;
mod svg;
#[cfg(test)]
mod tests;
mod title;
mod unit;

pub use canvas::OVERHANG;
pub use chart::{Chart, Line, Panels, Reference, Span, Style, thinned};
pub use figure::Figure;
pub use heat_map::{HeatMap, VerdictMap};
pub use options::{Format, PlotOptions};
pub use palette::{HUES, Look};
pub use scale::Kind;
pub use size::Size;
pub use svg::escaped;
pub use title::marked;
pub use unit::{prefixed, short};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
