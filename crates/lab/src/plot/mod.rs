//! Plots as SVG. Lines and text take the colour of their surroundings (`currentColor`), so that a plot fits a light and a dark
//! page; no font is needed to draw them.

mod heat_map;
mod of_run;
mod of_sweep;
mod overlay;
mod scale;

pub use heat_map::HeatMap;
pub(crate) use of_run::order;
pub use of_run::run_charts;
pub use of_sweep::sweep_charts;
pub use overlay::overlay;
pub use scale::Kind;

use crate::error::RunError;
use plotters::coord::Shift;
use plotters::prelude::*;
use scale::Scale;

/// A plot.
#[derive(Clone, Debug, Default)]
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
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// One line of a plot.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// What it is; empty: not in the legend.
    pub label: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Confidence bands: x, low, high; empty where there are none.
    pub band: Vec<(f64, f64, f64)>,
    /// How points are drawn.
    pub style: Style,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Joined.
    #[default]
    Line,
    /// Joined, each with a dot.
    Marked,
    /// Large dots.
    Points,
    /// Each value holds until the next.
    Steps,
    /// Dots.
    Dots,
    /// Crosses.
    Crosses,
}

/// Stands for the colour of the page's text until the plot is drawn.
const INK: RGBColor = RGBColor(1, 2, 3);
const INK_TEXT: &str = "#010203";

/// Colours that are told apart on white and on black, also by most people who do not see all colours.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x3b, 0x82, 0xc4),
    RGBColor(0xe0, 0x7b, 0x39),
    RGBColor(0x2f, 0xa0, 0x77),
    RGBColor(0xc7, 0x50, 0x8f),
    RGBColor(0x8a, 0x6f, 0xd1),
    RGBColor(0xb3, 0x96, 0x1c),
    RGBColor(0x3a, 0xa9, 0xbd),
    RGBColor(0xd1, 0x49, 0x5b),
];

const WIDTH: u32 = 860;
const HEIGHT: u32 = 340;
const LEGEND: i32 = 190;
/// Lines named in a legend.
const MAX_LEGEND: usize = 14;

impl Chart {
    fn extent(&self, of: impl Fn(&Line) -> Vec<f64>, kind: &Kind) -> (f64, f64) {
        let fits = |value: &f64| value.is_finite() && (*kind != Kind::Log || *value > 0.0);
        let values = || self.lines.iter().flat_map(&of).filter(fits);
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        if low > high { (0.0, 1.0) } else { (low, high) }
    }

    /// True where there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.is_empty())
    }

    /// The plot as an SVG element for a page.
    ///
    /// # Errors
    /// Where it cannot be drawn.
    pub fn to_svg(&self) -> Result<String, RunError> {
        drawn(&self.name, &self.title, |text| self.draw(text))
    }

    /// The plot as a file of its own, which is dark where the reader's screen is.
    ///
    /// # Errors
    /// Where it cannot be drawn.
    pub fn to_svg_file(&self) -> Result<String, RunError> {
        Ok(with_style(&self.to_svg()?))
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(text, (WIDTH, HEIGHT)).into_drawing_area();
        let named = self.lines.iter().any(|line| !line.label.is_empty());
        let width = WIDTH as i32 - if named { LEGEND } else { 10 };
        let (plot, legend) = root.split_horizontally(width);
        let (x_low, x_high) = self.extent(|line| line.points.iter().map(|point| point.0).collect(), &self.x);
        let (mut y_low, y_high) = self.extent(
            |line| {
                let ends = line.band.iter().flat_map(|band| [band.1, band.2]);
                line.points.iter().map(|point| point.1).chain(ends).collect()
            },
            &self.y,
        );
        if self.from_zero && self.y == Kind::Linear {
            y_low = y_low.min(0.0);
        }
        let mut chart = ChartBuilder::on(&plot)
            .margin(8)
            .caption(&self.title, ("sans-serif", 21).into_font().color(&INK))
            .x_label_area_size(42)
            .y_label_area_size(62)
            .build_cartesian_2d(Scale::new(&self.x, x_low, x_high), Scale::new(&self.y, y_low, y_high))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(INK.mix(0.13))
            .axis_style(INK.mix(0.6))
            .label_style(("sans-serif", 16).into_font().color(&INK))
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .draw()?;
        for (place, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[place % COLOURS.len()];
            if line.band.len() > 1 && line.style != Style::Points {
                let low = line.band.iter().map(|band| (band.0, band.1));
                let high = line.band.iter().rev().map(|band| (band.0, band.2));
                let outline: Vec<_> = low.chain(high).collect();
                chart.draw_series([Polygon::new(outline, colour.mix(0.2).filled())])?;
            }
            for (x, low, high) in &line.band {
                chart
                    .draw_series([PathElement::new(vec![(*x, *low), (*x, *high)], colour.stroke_width(1))])?;
            }
            let points = line.points.iter().copied();
            if matches!(line.style, Style::Line | Style::Marked) {
                chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
            }
            match line.style {
                Style::Line => {}
                Style::Steps => {
                    chart.draw_series(LineSeries::new(steps(&line.points), colour.stroke_width(2)))?;
                }
                Style::Marked => {
                    chart.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?;
                }
                Style::Points => {
                    chart.draw_series(points.map(|point| Circle::new(point, 5, colour.filled())))?;
                }
                Style::Dots => {
                    chart.draw_series(points.map(|point| Circle::new(point, 1, colour.filled())))?;
                }
                Style::Crosses => {
                    chart.draw_series(points.map(|point| Cross::new(point, 4, colour.stroke_width(2))))?;
                }
            }
        }
        if named {
            self.draw_legend(&legend)?;
        }
        root.present()?;
        Ok(())
    }

    fn draw_legend(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let named = || self.lines.iter().enumerate().filter(|(_, line)| !line.label.is_empty());
        let style = ("sans-serif", 16).into_font().color(&INK);
        for (row, (place, line)) in named().take(MAX_LEGEND).enumerate() {
            let y = 46 + 19 * row as i32;
            let colour = COLOURS[place % COLOURS.len()];
            area.draw(&PathElement::new(vec![(4, y), (22, y)], colour.stroke_width(3)))?;
            area.draw(&Text::new(shortened(&line.label), (28, y - 7), style.clone()))?;
        }
        let more = named().count().saturating_sub(MAX_LEGEND);
        if more > 0 {
            let y = 46 + 19 * MAX_LEGEND as i32;
            area.draw(&Text::new(format!("and {more} more"), (28, y - 7), style))?;
        }
        Ok(())
    }
}

fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut steps = Vec::with_capacity(points.len() * 2);
    for pair in points.windows(2) {
        steps.push(pair[0]);
        steps.push((pair[1].0, pair[0].1));
    }
    steps.extend(points.last());
    steps
}

/// As much of a label as fits the legend.
fn shortened(label: &str) -> String {
    const MOST: usize = 24;
    if label.chars().count() <= MOST {
        return label.to_owned();
    }
    label.chars().take(MOST - 1).chain(['…']).collect()
}

/// At most about a thousand points, at equal distances.
fn thinned<T: Copy>(points: &[T]) -> Vec<T> {
    let every = points.len().div_ceil(1_000).max(1);
    points.iter().step_by(every).copied().collect()
}

/// An SVG element in the colours of its page, with its title for those who do not see it.
/// What `draw` writes as an SVG element, with the title for those who cannot see it.
fn drawn(
    name: &str,
    title: &str,
    draw: impl FnOnce(&mut String) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<String, RunError> {
    let mut text = String::new();
    draw(&mut text).map_err(|error| RunError::Plot { what: name.to_owned(), message: error.to_string() })?;
    Ok(described(&text, title))
}

fn described(svg: &str, title: &str) -> String {
    let text = svg.replace(INK_TEXT, "currentColor");
    text.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{}\" ", escaped(title)), 1)
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn with_style(svg: &str) -> String {
    let style = "<style>svg{color:#1d2228;background:#fff}\
                 @media(prefers-color-scheme:dark){svg{color:#d8dde3;background:#15181c}}</style>";
    match svg.find('>') {
        Some(end) => format!("{}{style}{}", &svg[..=end], &svg[end + 1..]),
        None => svg.to_owned(),
    }
}

/// A plot's file without what makes it stand alone.
pub(crate) fn without_style(file: &str) -> String {
    match (file.find("<style>"), file.find("</style>")) {
        (Some(begin), Some(end)) => format!("{}{}", &file[..begin], &file[end + "</style>".len()..]),
        _ => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        Chart {
            name: "test".to_owned(),
            title: "A < B".to_owned(),
            x_label: "time [s]".to_owned(),
            lines: vec![
                Line { label: "one".to_owned(), points: vec![(0.0, 1.0), (1.0, 3.0)], ..Line::default() },
                Line {
                    points: vec![(0.0, 2.0)],
                    band: vec![(0.0, 1.5, 2.5), (1.0, 1.0, 2.0)],
                    style: Style::Crosses,
                    ..Line::default()
                },
            ],
            ..Chart::default()
        }
    }

    #[test]
    fn a_plot_takes_the_colour_of_its_page() {
        let svg = chart().to_svg().unwrap();
        assert!(svg.starts_with("<svg role=\"img\" aria-label=\"A &lt; B\""), "{}", &svg[..80]);
        assert!(svg.contains("currentColor") && !svg.contains(INK_TEXT));
        assert!(svg.contains("A &lt; B") && svg.contains("time [s]") && svg.contains("polygon"));
        let file = chart().to_svg_file().unwrap();
        assert!(file.contains("prefers-color-scheme"));
        assert!(without_style(&file) == svg);
    }

    #[test]
    fn nothing_to_draw_is_no_error() {
        let empty = Chart { x: Kind::Log, y: Kind::Log, ..Chart::default() };
        assert!(empty.is_empty());
        assert!(empty.to_svg().is_ok());
    }
}
