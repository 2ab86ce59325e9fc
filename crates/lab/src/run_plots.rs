//! The plots of a run, as figures of a report.

use ackline_plot::{Chart, Figure, Panels};
use serde::{Deserialize, Serialize};

/// What the time-sequence diagram is called among the plots of a run.
pub(crate) const TIME_SEQUENCE: &str = "sequence";

/// Whether a chart is a time-sequence diagram.
pub(crate) fn is_time_sequence(chart: &Chart) -> bool {
    chart.name == TIME_SEQUENCE
}

/// The plots of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPlots {
    /// All, those first that answer the question of the scenario.
    pub charts: Vec<Chart>,
    /// How many answer it.
    pub leading: usize,
}

impl RunPlots {
    /// The figures of the charts before `leading`, and of those after.
    #[must_use]
    pub fn figures(&self) -> (Vec<Figure>, Vec<Figure>) {
        let (leading, others) = self.charts.split_at(self.leading.min(self.charts.len()));
        (figures(leading), figures(others))
    }
}

/// Charts over time that follow each other are one figure with a common axis; a time-sequence
/// diagram stands by itself.
fn figures(charts: &[Chart]) -> Vec<Figure> {
    let stacked = |chart: &Chart| chart.over_time && !is_time_sequence(chart);
    let groups = charts.chunk_by(|a, b| stacked(a) && stacked(b));
    let figure = |group: &[Chart]| match group {
        [chart] => chart.clone().into(),
        _ => Panels {
            name: "over-time".to_owned(),
            charts: group.to_vec(),
            columns: 1,
            same_x: true,
            ..Panels::default()
        }
        .into(),
    };
    groups.map(figure).collect()
}
