//! Heat maps: a matrix of numbers as colours, with the numbers in them.

use super::{INK, drawn, with_style};
use crate::error::RunError;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A matrix of numbers.
#[derive(Clone, Debug, Default)]
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
    /// The numbers of the first and the last colour; `None`: the smallest and the largest. What lies outside has the colour of
    /// the end.
    pub range: Option<(f64, f64)>,
    /// Colours follow the logarithm.
    pub log: bool,
    /// Cells with a frame, as row and column.
    pub framed: Vec<(usize, usize)>,
}

const CELL: (i32, i32) = (74, 34);
const LEFT: i32 = 74;
const TOP: i32 = 84;
const MARGIN: i32 = 12;

/// From low to high: dark violet, blue, green, yellow; about equal steps of lightness.
const COLOURS: [(u8, u8, u8); 5] =
    [(0x44, 0x01, 0x54), (0x3b, 0x52, 0x8b), (0x21, 0x90, 0x8d), (0x5d, 0xc8, 0x63), (0xfd, 0xe7, 0x25)];

impl HeatMap {
    /// The map as an SVG element for a page.
    ///
    /// # Errors
    /// Where it cannot be drawn.
    pub fn to_svg(&self) -> Result<String, RunError> {
        drawn(&self.name, &self.title, |text| self.draw(text))
    }

    /// The map as a file of its own, which is dark where the reader's screen is.
    ///
    /// # Errors
    /// Where it cannot be drawn.
    pub fn to_svg_file(&self) -> Result<String, RunError> {
        Ok(with_style(&self.to_svg()?))
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let (columns, rows) = (self.columns.len() as i32, self.rows.len() as i32);
        let width = LEFT + columns * CELL.0 + MARGIN;
        let height = TOP + rows * CELL.1 + MARGIN;
        let root = SVGBackend::with_string(text, (width as u32, height as u32)).into_drawing_area();
        let font = |size: u32| ("sans-serif", size).into_font().color(&INK);
        let middle = Pos::new(HPos::Center, VPos::Center);
        let middle_of =
            |column: i32, row: i32| (LEFT + column * CELL.0 + CELL.0 / 2, TOP + row * CELL.1 + CELL.1 / 2);
        root.draw(&Text::new(self.title.as_str(), (MARGIN, MARGIN), font(18)))?;
        root.draw(&Text::new(self.x_label.as_str(), (LEFT, TOP - 44), font(14)))?;
        root.draw(&Text::new(self.y_label.as_str(), (MARGIN, TOP - 22), font(14)))?;
        for (column, name) in self.columns.iter().enumerate() {
            let (x, _) = middle_of(column as i32, 0);
            root.draw(&Text::new(name.as_str(), (x, TOP - 14), font(14).pos(middle)))?;
        }
        for (row, name) in self.rows.iter().enumerate() {
            let (_, y) = middle_of(0, row as i32);
            root.draw(&Text::new(name.as_str(), (LEFT - 24, y), font(14).pos(middle)))?;
        }
        let (low, high) = self.range();
        for (row, values) in self.values.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let Some(value) = value else { continue };
                let (x, y) = (LEFT + column as i32 * CELL.0, TOP + row as i32 * CELL.1);
                let corners = [(x + 1, y + 1), (x + CELL.0 - 1, y + CELL.1 - 1)];
                let colour = colour(self.share(*value, low, high));
                root.draw(&Rectangle::new(corners, colour.filled()))?;
                let ink = if lightness(colour) > 0.5 { BLACK } else { WHITE };
                let label = format!("{value:.0$}", self.digits);
                let style = ("sans-serif", 15).into_font().color(&ink).pos(middle);
                root.draw(&Text::new(label, middle_of(column as i32, row as i32), style))?;
                if self.framed.contains(&(row, column)) {
                    let inner = [(x + 3, y + 3), (x + CELL.0 - 3, y + CELL.1 - 3)];
                    root.draw(&Rectangle::new(inner, RGBColor(0xe0, 0x3b, 0x3b).stroke_width(3)))?;
                }
            }
        }
        root.present()?;
        Ok(())
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
        // Where all values are the same there is nothing between the ends.
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

fn colour(share: f64) -> RGBColor {
    let place = share * (COLOURS.len() - 1) as f64;
    let first = (place as usize).min(COLOURS.len() - 2);
    let part = place - first as f64;
    let (from, to) = (COLOURS[first], COLOURS[first + 1]);
    let mix =
        |from: u8, to: u8| libm::round(f64::from(from) + (f64::from(to) - f64::from(from)) * part) as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// About how light a colour is to the eye: 0 to 1.
fn lightness(RGBColor(red, green, blue): RGBColor) -> f64 {
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
        let svg = map.to_svg().unwrap();
        assert!(svg.contains("aria-label=\"Rates &lt; 200\"") && svg.contains("currentColor"));
        assert!(svg.contains("171") && svg.contains("#440154") && svg.contains("#FDE725"), "{svg}");
        assert!(svg.contains("#E03B3B"), "a frame");
        assert!(map.to_svg_file().unwrap().contains("prefers-color-scheme"));
    }

    #[test]
    fn values_that_are_all_the_same_have_the_first_colour() {
        let map = HeatMap { values: vec![vec![Some(3.0), None]], ..HeatMap::default() };
        let (low, high) = map.range();
        assert_eq!(map.share(3.0, low, high), 0.0);
    }
}
