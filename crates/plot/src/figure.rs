//! Figures: what becomes a file, or a part of a page.

use super::chart::{Chart, Panels};
use super::heat_map::HeatMap;
use super::options::PlotOptions;
use super::title::marked;
use serde::{Deserialize, Serialize};

/// A figure. Its name is that of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Figure {
    /// Lines, dots, bars.
    Chart(Chart),
    /// Several plots with one legend.
    Panels(Panels),
    /// A matrix of colours.
    HeatMap(HeatMap),
}

impl From<Chart> for Figure {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}

impl From<Panels> for Figure {
    fn from(panels: Panels) -> Self {
        Self::Panels(panels)
    }
}

impl From<HeatMap> for Figure {
    fn from(map: HeatMap) -> Self {
        Self::HeatMap(map)
    }
}

impl Figure {
    /// Says in the title why the results are not those of the scenario.
    pub fn mark_invalid(&mut self, why: &str) {
        let title = match self {
            Self::Chart(chart) => &mut chart.title,
            Self::Panels(panels) => &mut panels.title,
            Self::HeatMap(map) => &mut map.title,
        };
        *title = marked(title, why);
    }

    /// Its name, fit for a file.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Chart(chart) => &chart.name,
            Self::Panels(panels) => &panels.name,
            Self::HeatMap(map) => &map.name,
        }
    }

    /// What it shows.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Chart(chart) => &chart.title,
            Self::Panels(panels) => &panels.title,
            Self::HeatMap(map) => &map.title,
        }
    }

    /// The figure as an SVG element for a page.
    #[must_use]
    pub fn to_svg(&self) -> String {
        match self {
            Self::Chart(chart) => chart.to_svg(),
            Self::Panels(panels) => panels.to_svg(),
            Self::HeatMap(map) => map.to_svg(),
        }
    }

    /// The file.
    #[must_use]
    pub fn to_file(&self, options: &PlotOptions) -> Vec<u8> {
        match self {
            Self::Chart(chart) => chart.to_file(options),
            Self::Panels(panels) => panels.to_file(options),
            Self::HeatMap(map) => map.to_file(options),
        }
    }
}
