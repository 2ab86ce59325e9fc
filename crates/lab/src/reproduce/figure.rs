//! Figures: what is written as SVG.

use crate::error::RunError;
use crate::plot::{Chart, HeatMap};

/// A figure. Its name is that of its file.
#[derive(Clone, Debug)]
pub enum Figure {
    /// Lines, dots, bars.
    Chart(Chart),
    /// A matrix of colours.
    HeatMap(HeatMap),
}

impl From<Chart> for Figure {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}

impl From<HeatMap> for Figure {
    fn from(map: HeatMap) -> Self {
        Self::HeatMap(map)
    }
}

impl Figure {
    /// Its name, fit for a file.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Chart(chart) => &chart.name,
            Self::HeatMap(map) => &map.name,
        }
    }

    /// What it shows.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Chart(chart) => &chart.title,
            Self::HeatMap(map) => &map.title,
        }
    }

    /// The file.
    ///
    /// # Errors
    /// Where it cannot be drawn.
    pub fn to_svg_file(&self) -> Result<String, RunError> {
        match self {
            Self::Chart(chart) => chart.to_svg_file(),
            Self::HeatMap(map) => map.to_svg_file(),
        }
    }
}
