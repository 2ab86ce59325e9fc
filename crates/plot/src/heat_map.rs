//! Heat maps: a matrix of numbers as colours, with the numbers in them.

use super::canvas::{Anchor, Canvas, Text};
use super::draw::{WIDTH, font_size};
use super::font::{shortened, width, wrapped};
use super::options::PlotOptions;
use super::palette::Colour;
use super::size::Size;
use super::title::heading;
use serde::{Deserialize, Serialize};

/// A matrix of numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// A short name, fit for a file.
    pub name: String,
    /// What it shows, with the unit.
    pub title: String,
    /// Name of what differs between columns.
    pub x_label: String,
    /// Name of what differs between rows.
    pub y_label: String,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// Headings of the rows, from above.
    pub rows: Vec<String>,
    /// Rows from above; `None` is left blank.
    pub values: Vec<Vec<Option<f64>>>,
    /// Digits behind the point.
    pub digits: usize,
    /// The numbers of the first and the last colour; `None`: the smallest and the largest. What
    /// lies outside has the colour of the end.
    pub range: Option<(f64, f64)>,
    /// Colours follow the logarithm.
    pub log: bool,
    /// Cells with a frame, as row and column.
    pub framed: Vec<(usize, usize)>,
}

/// A matrix of verdicts: a [`HeatMap`] whose values are 0 (pass), 1 (undecided), 2 (warn) and 3
/// (fail), with texts in its cells. Those who confuse red and green can tell the colours apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerdictMap {
    /// Headings and verdicts.
    pub map: HeatMap,
    /// What stands in the cells, row by row.
    pub labels: Vec<Vec<String>>,
    /// Pale colours: these are no verdicts yet.
    pub is_pale: bool,
}

/// From low to high: dark violet, blue, green, yellow; about equal steps of lightness.
const COLOURS: [[u8; 3]; 5] =
    [[0x44, 0x01, 0x54], [0x3b, 0x52, 0x8b], [0x21, 0x90, 0x8d], [0x5d, 0xc8, 0x63], [0xfd, 0xe7, 0x25]];

/// Verdicts: pass, undecided, warn, fail (after Okabe and Ito 2008).
const VERDICTS: [[u8; 3]; 4] =
    [[0x56, 0xb4, 0xe9], [0xc8, 0xc8, 0xc8], [0xf0, 0xe4, 0x42], [0xd5, 0x5e, 0x00]];

/// The same, pale.
const PALE: [[u8; 3]; 4] = [[0xbb, 0xe1, 0xf6], [0xe9, 0xe9, 0xe9], [0xf9, 0xf4, 0xb3], [0xee, 0xbf, 0x99]];

impl VerdictMap {
    pub(super) fn canvas(&self, options: &PlotOptions) -> Canvas {
        let map = HeatMap { range: Some((0.0, 3.0)), ..self.map.clone() };
        map.canvas_with(options, &self.labels, if self.is_pale { &PALE } else { &VERDICTS })
    }
}

/// A frame around a cell.
const FRAME: Colour = Colour::Rgb(0xe0, 0x3b, 0x3b);

impl HeatMap {
    pub(super) fn canvas(&self, options: &PlotOptions) -> Canvas {
        self.canvas_with(options, &[], &COLOURS)
    }

    /// With `labels` in place of numbers, if there are any, and colours between `stops`.
    fn canvas_with(&self, options: &PlotOptions, labels: &[Vec<String>], stops: &[[u8; 3]]) -> Canvas {
        let across = options.size.map_or(WIDTH, |size| size.width * Size::PIXELS);
        let font = font_size(across);
        let margin = font * 0.5;
        let names = self.rows.iter().map(|name| width(name, font)).fold(width(&self.y_label, font), f64::max);
        let left = margin + names.min(across * 0.3) + font * 0.6;
        let (columns, rows) = (self.columns.len().max(1) as f64, self.rows.len().max(1) as f64);
        // Cells of a small map are not stretched over the page.
        let wide = ((across - left - margin) / columns).min(font * 6.0);
        let title_size = font * 1.12;
        let title = wrapped(heading(&self.title, options.untitled), title_size, across - 2.0 * margin);
        let top = margin * 2.0 + title.len() as f64 * title_size * 1.3 + font * 2.8;
        let high = match options.size.and_then(|size| size.height) {
            Some(height) => ((height * Size::PIXELS - top - margin) / rows).max(font),
            None => wide.min(font * 2.6),
        };
        let height = options.size.and_then(|size| size.height).map(|height| height * Size::PIXELS);
        let mut canvas = Canvas::new(across, height.unwrap_or(top + rows * high + margin));
        for (row, line) in title.iter().enumerate() {
            canvas.text(Text::new(
                line.as_str(),
                (margin, margin + title_size * (0.9 + 1.3 * row as f64)),
                title_size,
            ));
        }
        canvas.text(Text::new(self.x_label.as_str(), (left, top - font * 1.9), font));
        canvas.text(Text::new(
            shortened(&self.y_label, font, left - margin),
            (margin, top - font * 0.5),
            font,
        ));
        for (column, name) in self.columns.iter().enumerate() {
            let at = (left + (column as f64 + 0.5) * wide, top - font * 0.5);
            canvas.text(Text::new(shortened(name, font, wide), at, font).anchored(Anchor::Middle));
        }
        for (row, name) in self.rows.iter().enumerate() {
            let at = (left - font * 0.6, top + (row as f64 + 0.5) * high + font * 0.35);
            canvas.text(Text::new(shortened(name, font, left - margin), at, font).anchored(Anchor::End));
        }
        let (low, most) = self.range();
        for (row, values) in self.values.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let Some(value) = value else { continue };
                let (x, y) = (left + column as f64 * wide, top + row as f64 * high);
                let (red, green, blue) = colour(self.share(*value, low, most), stops);
                canvas.rect(
                    (x + 0.8, y + 0.8),
                    (x + wide - 0.8, y + high - 0.8),
                    Colour::Rgb(red, green, blue),
                );
                let ink = if lightness((red, green, blue)) > 0.5 { 0 } else { 255 };
                let given = labels.get(row).and_then(|labels| labels.get(column));
                let label = given.cloned().unwrap_or_else(|| format!("{value:.0$}", self.digits));
                let size = font.min(wide / width(&label, 1.0).max(1.0) * 0.9);
                let at = (x + wide / 2.0, y + high / 2.0 + size * 0.35);
                canvas.text(
                    Text::new(label, at, size).anchored(Anchor::Middle).painted(Colour::Rgb(ink, ink, ink)),
                );
                if self.framed.contains(&(row, column)) {
                    let (right, bottom) = (x + wide - 2.5, y + high - 2.5);
                    let (left, top) = (x + 2.5, y + 2.5);
                    let outline =
                        vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top - 1.0)];
                    canvas.line(outline, FRAME, 2.5, &[]);
                }
            }
        }
        canvas
    }

    fn range(&self) -> (f64, f64) {
        self.range.unwrap_or_else(|| {
            let values = || self.values.iter().flatten().flatten().copied();
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
        })
    }

    /// Where a value stands between the ends: 0 to 1.
    fn share(&self, value: f64, low: f64, high: f64) -> f64 {
        let share = if self.log && low > 0.0 {
            libm::log(value.max(low) / low) / libm::log(high / low)
        } else {
            (value - low) / (high - low)
        };
        // If all values are the same there is nothing between the ends.
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

fn colour(share: f64, stops: &[[u8; 3]]) -> (u8, u8, u8) {
    let place = share * (stops.len() - 1) as f64;
    let first = (place as usize).min(stops.len() - 2);
    let part = place - first as f64;
    let (from, to) = (stops[first], stops[first + 1]);
    let mix = |place: usize| {
        let (from, to) = (f64::from(from[place]), f64::from(to[place]));
        libm::round(from + (to - from) * part) as u8
    };
    (mix(0), mix(1), mix(2))
}

/// About how light a colour is to the eye: 0 to 1.
fn lightness((red, green, blue): (u8, u8, u8)) -> f64 {
    (0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue)) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_numbers_colours_and_frames() {
        let map = HeatMap {
            name: "map".to_owned(),
            title: "Rates < 200".to_owned(),
            columns: vec!["a".to_owned(), "b".to_owned()],
            rows: vec!["1".to_owned()],
            values: vec![vec![Some(6.4), Some(171.0)]],
            framed: vec![(0, 0)],
            log: true,
            ..HeatMap::default()
        };
        let svg = map.to_svg();
        assert!(svg.contains("aria-label=\"Rates &lt; 200\"") && svg.contains("currentColor"));
        assert!(svg.contains("171") && svg.contains("#440154") && svg.contains("#fde725"), "{svg}");
        assert!(svg.contains("#e03b3b"), "a frame");
    }

    #[test]
    fn values_that_are_all_the_same_have_the_first_colour() {
        let map = HeatMap { values: vec![vec![Some(3.0), None]], ..HeatMap::default() };
        let (low, high) = map.range();
        assert_eq!(map.share(3.0, low, high), 0.0);
    }
}
