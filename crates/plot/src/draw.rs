//! Draws charts: where titles, legends, axes and lines stand.

use super::canvas::{Anchor, Canvas, OVERHANG, Plot, Point, Role, Shape, Text, Zoom};
use super::chart::{Chart, Line, Panels, Style};
use super::font::{shortened, width, wrapped};
use super::options::PlotOptions;
use super::palette::{BESIDE, Colour, Look, colour, dash};
use super::scale::{Kind, Scale};
use super::size::Size;
use super::title::heading;

/// Width of a figure whose size nobody gave: 190 mm, a page of a journal.
pub(super) const WIDTH: f64 = 720.0;

/// Rows of a legend.
const LEGEND_ROWS: usize = 3;

/// A font size for a width: 7.6 points in a column of 88 mm, 9.4 on a page.
pub(super) fn font_size(width: f64) -> f64 {
    (10.2 + (width - 332.6) * (2.3 / (WIDTH - 332.6))).clamp(9.0, 13.5)
}

pub(super) fn chart(chart: &Chart, options: &PlotOptions) -> Canvas {
    Figure { title: &chart.title, charts: &[chart], columns: 1, same_x: false, same_y: false }.draw(options)
}

pub(super) fn panels(panels: &Panels, options: &PlotOptions) -> Canvas {
    let charts: Vec<&Chart> = panels.charts.iter().collect();
    let columns = panels.columns.clamp(1, charts.len().max(1));
    Figure { title: &panels.title, charts: &charts, columns, same_x: panels.same_x, same_y: panels.same_y }
        .draw(options)
}

struct Figure<'a> {
    title: &'a str,
    charts: &'a [&'a Chart],
    columns: usize,
    same_x: bool,
    same_y: bool,
}

/// The colour and dashes of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pen {
    colour: Colour,
    dash: &'static [f64],
}

impl Pen {
    fn of(look: Look) -> Self {
        match look {
            Look::Series(series) => Self { colour: colour(series), dash: dash(series) },
            Look::Beside(series) => Self { colour: colour(series), dash: BESIDE },
            Look::Auto | Look::Ink => Self { colour: Colour::Ink, dash: &[] },
        }
    }
}

/// The pens of all lines of all charts: a label has one in the whole figure, and no two labels
/// share one.
fn pens(charts: &[&Chart]) -> Vec<Vec<Pen>> {
    let lines = || charts.iter().flat_map(|chart| &chart.lines);
    let taken: Vec<usize> = lines()
        .filter_map(|line| if let Look::Series(series) = line.look { Some(series) } else { None })
        .collect();
    let mut free = (0..).filter(|series| !taken.contains(series));
    let mut known: Vec<(&str, Look)> = vec![];
    let mut look = |line: &'_ Line| -> Look {
        if line.look == Look::Auto { Look::Series(free.next().unwrap_or(0)) } else { line.look }
    };
    let mut pens = vec![];
    for chart in charts {
        let mut own = vec![];
        for line in &chart.lines {
            let before = known.iter().find(|(label, _)| !label.is_empty() && *label == line.label);
            let chosen = match before {
                Some((_, before)) if line.look == Look::Auto => *before,
                _ => look(line),
            };
            known.push((&line.label, chosen));
            own.push(Pen::of(chosen));
        }
        pens.push(own);
    }
    pens
}

/// An entry of a legend.
struct Entry<'a> {
    label: &'a str,
    style: Style,
    pen: Pen,
}

/// What a figure's parts measure.
struct Metrics {
    /// The size of its font.
    font: f64,
    /// The size of small text.
    small: f64,
    line: f64,
}

impl Metrics {
    fn of(width: f64) -> Self {
        let font = font_size(width);
        Self { font, small: font * 0.86, line: font / 13.0 * 1.7 }
    }
}

impl Figure<'_> {
    fn draw(&self, options: &PlotOptions) -> Canvas {
        let across = options.size.map_or(WIDTH, |size| size.width * Size::PIXELS);
        let metrics = Metrics::of(across);
        let pens = pens(self.charts);
        let margin = metrics.font * 0.5;

        let title_size = metrics.font * 1.12;
        let title = wrapped(heading(self.title, options.untitled), title_size, across - 2.0 * margin);
        let legend = self.legend(&pens);
        let rows = legend_rows(&legend, &metrics, across - 2.0 * margin);
        let mut top = margin + title.len() as f64 * title_size * 1.3;
        let legend_top = top + if title.is_empty() { 0.0 } else { metrics.font * 0.2 };
        // The topmost number of the vertical axis reaches above its plot.
        top = legend_top + (rows.len() as f64 * 1.45 + 0.7) * metrics.font;

        let grid = self.grid(
            &metrics,
            across,
            top,
            options.size.and_then(|size| size.height).map(|height| height * Size::PIXELS),
        );
        let mut canvas = Canvas::new(across, grid.height);
        for (row, line) in title.iter().enumerate() {
            let y = margin + title_size * (0.9 + 1.3 * row as f64);
            canvas.text(Text::new(line.as_str(), (margin, y), title_size));
        }
        for (row, entries) in rows.iter().enumerate() {
            draw_legend(
                &mut canvas,
                entries,
                &metrics,
                (margin, legend_top + metrics.font * (1.0 + 1.45 * row as f64)),
            );
        }
        for (place, chart) in self.charts.iter().enumerate() {
            Cell { figure: self, grid: &grid, chart, place, pens: &pens[place], metrics: &metrics }
                .draw(&mut canvas);
        }
        canvas
    }

    fn legend<'a>(&'a self, pens: &[Vec<Pen>]) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'_>> = vec![];
        for (chart, pens) in self.charts.iter().zip(pens) {
            for (line, pen) in chart.lines.iter().zip(pens) {
                if !line.label.is_empty() && !entries.iter().any(|entry| entry.label == line.label) {
                    entries.push(Entry { label: &line.label, style: line.style, pen: *pen });
                }
            }
        }
        entries
    }

    /// The plots above the lowest of each column have no numbers at their horizontal axis if it is
    /// common to all.
    fn is_lowest(&self, place: usize) -> bool {
        !self.same_x || place + self.columns >= self.charts.len()
    }

    fn grid(&self, metrics: &Metrics, across: f64, top: f64, height: Option<f64>) -> Grid {
        let font = metrics.font;
        let rows = self.charts.len().div_ceil(self.columns).max(1);
        let several = self.charts.len() > 1;
        let heading =
            if several && self.charts.iter().any(|chart| !chart.title.is_empty()) { font * 1.5 } else { 0.0 };
        let below = font * 2.9;
        let between = if self.same_x { font * 0.6 } else { below };
        let estimate = across / self.columns as f64 - font * 5.0;
        let natural = estimate
            * if self.columns > 1 {
                0.72
            } else if several {
                0.24
            } else {
                0.40
            };
        let slanted = self.slant(metrics, estimate);
        let rest = top + heading * rows as f64 + between * (rows - 1) as f64 + below + slanted + font * 0.3;
        let plot = height.map_or(natural, |height| (height - rest) / rows as f64).max(font * 2.0);
        let height = height.unwrap_or(rest + plot * rows as f64);
        let y_ticks = (plot / (font * 2.1)).clamp(2.0, 8.0);
        let scales = self.scales(
            |chart| chart.y_scale(y_ticks),
            |low, high| Scale::between(&self.charts[0].y, low, high, y_ticks),
            self.same_y,
        );

        let ticks = scales.iter().flat_map(|scale| &scale.ticks).map(|(_, text)| width(text, font));
        let labels = ticks.fold(0.0, f64::max).max(font * 2.3);
        let label = if self.charts.iter().any(|chart| !chart.y_label.is_empty()) { font * 1.5 } else { 0.0 };
        let left = font * 0.4 + label + labels + font * 0.5;
        let right = font * 1.1;
        let gap = if self.same_y { font * 1.2 } else { left };
        let columns = self.columns as f64;
        let wide = ((across - left - right - gap * (columns - 1.0)) / columns).max(font * 2.0);
        let x_ticks = (wide / (font * 5.0)).clamp(2.0, 10.0);
        let x_scales = self.scales(
            |chart| chart.x_scale(x_ticks),
            |low, high| Scale::between(&self.charts[0].x, low, high, x_ticks),
            self.same_x,
        );
        Grid {
            top: top + heading,
            left,
            wide,
            plot,
            gap,
            between: between + heading,
            height,
            x_scales,
            y_scales: scales,
            slanted: slanted > 0.0,
        }
    }

    /// The scale of each chart; if they are the same, of all that they show.
    fn scales(
        &self,
        own: impl Fn(&Chart) -> Scale,
        around: impl Fn(f64, f64) -> Scale,
        same: bool,
    ) -> Vec<Scale> {
        let mut scales: Vec<Scale> = self.charts.iter().map(|chart| own(chart)).collect();
        if same && scales.len() > 1 {
            let low = scales.iter().map(|scale| scale.low).fold(f64::INFINITY, f64::min);
            let high = scales.iter().map(|scale| scale.high).fold(f64::NEG_INFINITY, f64::max);
            let common = around(low, high);
            scales.fill(common);
        }
        scales
    }

    /// How much room names need below the axis that are too long to stand beside each other; zero
    /// if they are not.
    fn slant(&self, metrics: &Metrics, wide: f64) -> f64 {
        let longest = |chart: &&Chart| match &chart.x {
            Kind::Names(names) => {
                let most = names.iter().map(|name| width(name, metrics.font)).fold(0.0, f64::max);
                if most + metrics.font * 0.6 > wide / names.len().max(1) as f64 {
                    most.min(metrics.font * 9.0) * 0.6
                } else {
                    0.0
                }
            }
            _ => 0.0,
        };
        self.charts.iter().map(longest).fold(0.0, f64::max)
    }
}

/// Where the plots of a figure stand.
struct Grid {
    top: f64,
    left: f64,
    /// Width and height of a plot.
    wide: f64,
    plot: f64,
    gap: f64,
    between: f64,
    height: f64,
    x_scales: Vec<Scale>,
    y_scales: Vec<Scale>,
    /// Names stand aslant.
    slanted: bool,
}

impl Chart {
    /// Least and largest of what is drawn, as far as the axis can show it.
    fn extent(&self, kind: &Kind, of: impl Fn(&Line) -> Vec<f64>) -> Option<(f64, f64)> {
        let fits = |value: &f64| value.is_finite() && (*kind != Kind::Log || *value > 0.0);
        let values = || self.lines.iter().flat_map(&of).filter(fits);
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        (low <= high).then_some((low, high))
    }

    fn x_scale(&self, ticks: f64) -> Scale {
        if let Some((low, high)) = self.x_range {
            return Scale::between(&self.x, low, high, ticks);
        }
        let places = |line: &Line| {
            line.points.iter().map(|point| point.0).chain(line.band.iter().map(|band| band.0)).collect()
        };
        let (low, high) = self.extent(&self.x, places).unwrap_or((0.0, 1.0));
        Scale::around(&self.x, low, high, ticks)
    }

    fn y_scale(&self, ticks: f64) -> Scale {
        if let Some((low, high)) = self.y_range {
            return Scale::between(&self.y, low, high, ticks);
        }
        let values = |line: &Line| {
            let ends = line.band.iter().flat_map(|band| [band.1, band.2]);
            line.points.iter().map(|point| point.1).chain(ends).collect()
        };
        let (mut low, mut high) = self.extent(&self.y, values).unwrap_or((0.0, 1.0));
        if self.from_zero && self.y == Kind::Linear {
            low = low.min(0.0);
        }
        for reference in
            self.references.iter().filter(|reference| !reference.upright && reference.at.is_finite())
        {
            // Further away it would press what is drawn against the bottom.
            if reference.at > high && reference.at <= high * 2.5 {
                high = reference.at;
            }
        }
        Scale::around(&self.y, low, high, ticks)
    }
}

/// One plot with its axes.
struct Cell<'a> {
    figure: &'a Figure<'a>,
    grid: &'a Grid,
    chart: &'a Chart,
    place: usize,
    pens: &'a [Pen],
    metrics: &'a Metrics,
}

impl Cell<'_> {
    fn area(&self) -> (Point, Point) {
        let (row, column) = (self.place / self.figure.columns, self.place % self.figure.columns);
        let left = self.grid.left + column as f64 * (self.grid.wide + self.grid.gap);
        let top = self.grid.top + row as f64 * (self.grid.plot + self.grid.between);
        ((left, top), (left + self.grid.wide, top + self.grid.plot))
    }

    fn x(&self, value: f64) -> f64 {
        let ((left, _), (right, _)) = self.area();
        left + (right - left) * self.grid.x_scales[self.place].share(value)
    }

    fn y(&self, value: f64) -> f64 {
        let ((_, top), (_, bottom)) = self.area();
        bottom - (bottom - top) * self.grid.y_scales[self.place].share(value)
    }

    fn at(&self, (x, y): Point) -> Point {
        (self.x(x), self.y(y))
    }

    fn draw(&self, canvas: &mut Canvas) {
        let ((left, top), (right, bottom)) = self.area();
        let (x, y) = (&self.grid.x_scales[self.place], &self.grid.y_scales[self.place]);
        let grid = y.ticks.iter().map(|(value, _)| vec![(left, self.y(*value)), (right, self.y(*value))]);
        canvas.guides(grid.collect(), Colour::Ink.mix(0.12), self.role(Role::AxisY));
        let zoom = self.chart.over_time.then(|| Zoom {
            x: (x.low, x.high),
            y: (y.low, y.high),
            fit: self.chart.lines.iter().any(|line| line.style == Style::Bars),
        });
        canvas.begin(Plot {
            left: left - OVERHANG,
            top: top - OVERHANG,
            right: right + OVERHANG,
            bottom: bottom + OVERHANG,
            zoom,
        });
        for span in &self.chart.spans {
            let (from, until) = (self.x(span.from).max(left), self.x(span.until).min(right));
            canvas.rect((from, top), (until, bottom), Colour::Ink.mix(0.055));
        }
        for (line, pen) in self.chart.lines.iter().zip(self.pens) {
            self.band(canvas, line, *pen);
        }
        for (place, (line, pen)) in self.chart.lines.iter().zip(self.pens).enumerate() {
            self.line(canvas, line, *pen, place);
        }
        self.references(canvas);
        canvas.end();
        canvas.line(vec![(left, top), (left, bottom), (right, bottom)], Colour::Ink.mix(0.7), 1.0, &[]);
        self.notes(canvas);
        self.axes(canvas);
    }

    /// Straight lines at values to compare with.
    fn references(&self, canvas: &mut Canvas) {
        let ((left, top), (right, bottom)) = self.area();
        for reference in self.visible() {
            let path = if reference.upright {
                let x = self.x(reference.at);
                vec![(x, top), (x, bottom)]
            } else {
                let y = self.y(reference.at);
                vec![(left, y), (right, y)]
            };
            canvas.line(path, Colour::Ink.mix(0.65), self.metrics.font / 13.0, &[4.0, 3.0]);
        }
    }

    fn visible(&self) -> impl Iterator<Item = &super::Reference> {
        let (x, y) = (&self.grid.x_scales[self.place], &self.grid.y_scales[self.place]);
        self.chart.references.iter().filter(move |reference| {
            let scale = if reference.upright { x } else { y };
            (scale.low..=scale.high).contains(&reference.at)
        })
    }

    /// Labels of references and spans.
    fn notes(&self, canvas: &mut Canvas) {
        let ((left, top), (right, bottom)) = self.area();
        let size = self.metrics.small;
        // What is marked in all plots of a column has its label in the topmost one.
        let labelled = !self.figure.same_x || self.place < self.figure.columns;
        // Labels that would meet stand in several rows.
        let mut ends: Vec<f64> = vec![];
        for reference in self.visible().filter(|reference| labelled || !reference.upright) {
            let label = shortened(&reference.label, size, (right - left) * 0.6);
            let wide = width(&label, size);
            let text = if reference.upright {
                let x = self.x(reference.at);
                let (x, anchor, from) = if wide + 4.0 < right - x {
                    (x + 4.0, Anchor::Start, x)
                } else {
                    (x - 4.0, Anchor::End, x - wide - 4.0)
                };
                let row = ends.iter().position(|end| *end < from).unwrap_or(ends.len());
                ends.resize(ends.len().max(row + 1), 0.0);
                ends[row] = from + wide + size;
                let y = top + size * (1.0 + 1.2 * row as f64);
                Text::new(label, (x, y), size).anchored(anchor).of_axis(self.role(Role::Note))
            } else {
                let y = self.y(reference.at) - size * 0.35;
                Text::new(label, (right - 3.0, y), size).anchored(Anchor::End)
            };
            canvas.text(text.painted(Colour::Ink.mix(0.75)));
        }
        for span in self.chart.spans.iter().filter(|_| labelled) {
            let from = self.x(span.from).max(left);
            let label = shortened(&span.label, size, self.x(span.until).min(right) - from - 8.0);
            if label != "…" {
                let text = Text::new(label, (from + 4.0, bottom - size * 0.45), size);
                canvas.text(text.painted(Colour::Ink.mix(0.6)).of_axis(self.role(Role::Note)));
            }
        }
    }

    fn axes(&self, canvas: &mut Canvas) {
        let ((left, top), (right, bottom)) = self.area();
        let font = self.metrics.font;
        let figure = self.figure;
        let column = self.place % figure.columns;
        let tick = font * 0.3;
        let (x, y) = (&self.grid.x_scales[self.place], &self.grid.y_scales[self.place]);
        if figure.charts.len() > 1 && !self.chart.title.is_empty() {
            let title = shortened(&self.chart.title, font, right - left);
            canvas.text(Text::new(title, (left, top - font * 0.45), font));
        }
        let ticks =
            x.ticks.iter().map(|(value, _)| vec![(self.x(*value), bottom), (self.x(*value), bottom + tick)]);
        canvas.guides(ticks.collect(), Colour::Ink.mix(0.7), self.role(Role::AxisX));
        let lowest = figure.is_lowest(self.place);
        for (value, text) in &x.ticks {
            let at = self.x(*value);
            if !lowest {
                continue;
            }
            let below = bottom + font * 1.35;
            if self.grid.slanted {
                let name = shortened(text, font, font * 9.0);
                let at = (at + font * 0.3, bottom + font * 0.95);
                canvas.text(Text::new(name, at, font).anchored(Anchor::End).turned(-35.0));
            } else {
                canvas.text(
                    Text::new(text.as_str(), (at, below), font)
                        .anchored(Anchor::Middle)
                        .of_axis(self.role(Role::AxisX)),
                );
            }
        }
        if column == 0 || !figure.same_y {
            for (value, text) in &y.ticks {
                let at = (left - font * 0.45, self.y(*value) + font * 0.35);
                canvas.text(
                    Text::new(text.as_str(), at, font).anchored(Anchor::End).of_axis(self.role(Role::AxisY)),
                );
            }
            let label = shortened(&self.chart.y_label, font, bottom - top + font * 2.0);
            let at = (left - self.grid.left + font * 1.25, f64::midpoint(top, bottom));
            canvas.text(Text::new(label, at, font).anchored(Anchor::Middle).turned(-90.0));
        }
        if lowest {
            let label = shortened(&self.chart.x_label, font, right - left);
            let slant = if self.grid.slanted { self.grid.height - bottom - font * 2.9 } else { 0.0 };
            let at = (f64::midpoint(left, right), bottom + font * 2.55 + slant);
            canvas.text(Text::new(label, at, font).anchored(Anchor::Middle));
        }
    }

    /// The part of an axis that is drawn again when a reader zooms, if they can.
    fn role(&self, axis: Role) -> Role {
        if self.chart.over_time { axis } else { Role::Fixed }
    }

    fn band(&self, canvas: &mut Canvas, line: &Line, pen: Pen) {
        if line.band.len() > 1 && matches!(line.style, Style::Line | Style::Steps | Style::Marked) {
            let low = line.band.iter().map(|band| self.at((band.0, band.1)));
            let high = line.band.iter().rev().map(|band| self.at((band.0, band.2)));
            canvas.fill(low.chain(high).collect(), pen.colour.mix(0.18));
        }
    }

    /// Where the points of a line stand sideways of their values: lines beside each other above a
    /// name.
    fn aside(&self, line: &Line, place: usize) -> f64 {
        if line.style != Style::Points || !matches!(self.chart.x, Kind::Names(_)) {
            return 0.0;
        }
        let count = self.chart.lines.len() as f64;
        let room = (self.x(1.0) - self.x(0.0)) * 0.6;
        let apart = (room / count).min(self.metrics.font * 1.2);
        (place as f64 - (count - 1.0) / 2.0) * apart
    }

    fn line(&self, canvas: &mut Canvas, line: &Line, pen: Pen, place: usize) {
        let aside = self.aside(line, place);
        let points: Vec<Point> = line
            .points
            .iter()
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .map(|point| self.at(*point))
            .map(|(x, y)| (x + aside, y))
            .collect();
        let font = self.metrics.font;
        let thick = self.metrics.line;
        if line.style == Style::Points || (line.style == Style::Marked && line.band.len() == 1) {
            for (x, low, high) in &line.band {
                let x = self.x(*x) + aside;
                canvas.line(vec![(x, self.y(*low)), (x, self.y(*high))], pen.colour, thick * 0.7, &[]);
            }
        }
        match line.style {
            Style::Line => canvas.line(points, pen.colour, thick, pen.dash),
            Style::Steps => canvas.line(steps(&points), pen.colour, thick, pen.dash),
            Style::Marked => {
                canvas.line(points.clone(), pen.colour, thick, pen.dash);
                canvas.marks(Shape::Dot, font * 0.4, points, pen.colour);
            }
            Style::Points => canvas.marks(Shape::Dot, font * 0.6, points, pen.colour),
            Style::Dots => canvas.marks(Shape::Dot, font * 0.17, points, pen.colour),
            Style::Crosses => canvas.marks(Shape::Cross, font * 0.5, points, pen.colour),
            Style::Triangles => canvas.marks(Shape::Triangle, font * 0.65, points, pen.colour),
            Style::Bars => {
                let bars = line.band.iter().map(|(x, low, high)| (self.x(*x), self.y(*low), self.y(*high)));
                canvas.bars(bars.collect(), pen.colour, thick * 0.8);
                canvas.marks(Shape::Dot, font * 0.3, points, pen.colour);
            }
        }
    }
}

fn steps(points: &[Point]) -> Vec<Point> {
    let mut steps = Vec::with_capacity(points.len() * 2);
    for pair in points.windows(2) {
        steps.push(pair[0]);
        steps.push((pair[1].0, pair[0].1));
    }
    steps.extend(points.last());
    steps
}

/// Lengths of a legend's parts.
impl Metrics {
    fn sample(&self) -> f64 {
        self.font * 1.8
    }

    fn entry(&self, label: &str) -> f64 {
        self.sample() + self.font * 0.45 + width(label, self.font) + self.font * 1.3
    }
}

/// The entries of each row; the last one says how many have no room.
fn legend_rows<'a>(
    entries: &'a [Entry<'a>],
    metrics: &Metrics,
    room: f64,
) -> Vec<Vec<(String, Option<&'a Entry<'a>>)>> {
    let mut rows: Vec<Vec<(String, Option<&Entry<'_>>)>> = vec![];
    let mut used = 0.0;
    for (place, entry) in entries.iter().enumerate() {
        let label = shortened(entry.label, metrics.font, room - metrics.sample() - metrics.font * 2.0);
        let length = metrics.entry(&label);
        let last = rows.len() == LEGEND_ROWS;
        let more = format!("and {} more", entries.len() - place);
        // The last row keeps room for the number of those that are not named.
        let kept = if last && place + 1 < entries.len() { metrics.entry(&more) } else { 0.0 };
        if rows.is_empty() || used + length + kept > room {
            if last {
                if let Some(row) = rows.last_mut() {
                    row.push((more, None));
                }
                break;
            }
            rows.push(vec![]);
            used = 0.0;
        }
        used += length;
        if let Some(row) = rows.last_mut() {
            row.push((label, Some(entry)));
        }
    }
    rows
}

fn draw_legend(
    canvas: &mut Canvas,
    row: &[(String, Option<&Entry<'_>>)],
    metrics: &Metrics,
    (left, base): Point,
) {
    let mut x = left;
    let y = base - metrics.font * 0.33;
    for (label, entry) in row {
        let Some(entry) = entry else {
            canvas.text(Text::new(label.as_str(), (x, base), metrics.font).painted(Colour::Ink.mix(0.75)));
            break;
        };
        let end = x + metrics.sample();
        let middle = vec![(f64::midpoint(x, end), y)];
        let colour = entry.pen.colour;
        let font = metrics.font;
        match entry.style {
            Style::Line | Style::Steps | Style::Marked => {
                canvas.line(vec![(x, y), (end, y)], colour, metrics.line * 1.2, entry.pen.dash);
                if entry.style == Style::Marked {
                    canvas.marks(Shape::Dot, font * 0.4, middle, colour);
                }
            }
            Style::Points | Style::Dots => canvas.marks(Shape::Dot, font * 0.6, middle, colour),
            Style::Crosses => canvas.marks(Shape::Cross, font * 0.5, middle, colour),
            Style::Triangles => canvas.marks(
                Shape::Triangle,
                font * 0.65,
                vec![(f64::midpoint(x, end), y + font * 0.3)],
                colour,
            ),
            Style::Bars => canvas.bars(
                vec![(f64::midpoint(x, end), y - font * 0.35, y + font * 0.35)],
                colour,
                metrics.line,
            ),
        }
        canvas.text(Text::new(label.as_str(), (end + font * 0.45, base), font));
        x += metrics.entry(label);
    }
}
