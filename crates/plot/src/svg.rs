//! A canvas as SVG. Text and axes take the colour of their surroundings (`currentColor`), so that a
//! figure fits a light and a dark page.

use super::canvas::{Anchor, Canvas, Item, Paint, Plot, Point, Role, Shape, Text};
use super::palette::Colour;
use super::size::Size;
use std::fmt::Write as _;

/// Fonts that are as wide as the one that texts are measured with.
const FONTS: &str = "Roboto,'Helvetica Neue',Helvetica,Arial,sans-serif";

/// An SVG element for a page, with the title for those who cannot see it. `size` is that on paper,
/// if one was asked for.
pub(super) fn element(canvas: &Canvas, title: &str, size: Option<Size>) -> String {
    let (width, height) = (short(canvas.width), short(canvas.height));
    let (wide, high) = match size {
        Some(size) => {
            (format!("{}mm", short(size.width)), format!("{}mm", short(canvas.height / Size::PIXELS)))
        }
        None => (width.clone(), height.clone()),
    };
    let mut writer = Writer {
        text: format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{}\" width=\"{wide}\" height=\"{high}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\" fill=\"none\" stroke-linejoin=\"round\">\n",
            escaped(title)
        ),
        zoomable: false,
    };
    for item in &canvas.items {
        writer.item(item);
    }
    writer.text + "</svg>\n"
}

/// The element as a file of its own, which is dark if the reader's screen is.
pub(super) fn file(element: &str) -> String {
    let style = "<style>svg{color:#1d2228;background:#fff}\
                 @media(prefers-color-scheme:dark){svg{color:#d8dde3;background:#15181c}}\
                 @media print{svg{color:#000;background:none}}</style>";
    match element.find('>') {
        Some(end) => format!("{}\n{style}{}", &element[..=end], &element[end + 1..]),
        None => element.to_owned(),
    }
}

/// Text for HTML and SVG, in which no character has a meaning.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

struct Writer {
    text: String,
    /// What is drawn can be stretched by the page's script.
    zoomable: bool,
}

impl Writer {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Stroke { paths, paint, width, dash, role } => {
                let mut data = Data::new(self.zoomable);
                for path in paths {
                    data.path(path);
                }
                let dash = dashes(dash, *width);
                let class = match role {
                    Role::Fixed | Role::Note => self.class("z"),
                    Role::AxisX => " class=\"gx\"".to_owned(),
                    Role::AxisY => " class=\"gy\"".to_owned(),
                };
                let stroke = stroked(*paint, *width);
                let _ = writeln!(self.text, "<path{class}{stroke}{dash} d=\"{}\"/>", data.text);
            }
            Item::Fill { outline, paint } => {
                let mut data = Data::new(self.zoomable);
                data.path(outline);
                let class = self.class("z");
                let fill = filled(*paint);
                let _ = writeln!(self.text, "<path{class}{fill} d=\"{}z\"/>", data.text);
            }
            Item::Marks { shape, size, places, paint } => self.marks(*shape, *size, places, *paint),
            Item::Bars { bars, paint, width } => {
                let mut data = Data::new(self.zoomable);
                for (x, low, high) in bars {
                    data.bar(*x, *low, *high);
                }
                // Round ends show strokes that are shorter than wide.
                let class = self.class("z b");
                let stroke = stroked(*paint, *width);
                let _ = writeln!(
                    self.text,
                    "<path{class}{stroke} stroke-linecap=\"round\" d=\"{}\"/>",
                    data.text
                );
            }
            Item::Text(text) => self.label(text),
            Item::Begin(plot) => self.begin(plot),
            Item::End => {
                self.text += "</svg>\n";
                self.zoomable = false;
            }
        }
    }

    fn class(&self, class: &str) -> String {
        if self.zoomable { format!(" class=\"{class}\"") } else { String::new() }
    }

    /// An inner `svg` clips what it holds without a name, which would have to differ from those of
    /// all other figures of a page.
    fn begin(&mut self, plot: &Plot) {
        let (left, top) = (short(plot.left), short(plot.top));
        let (width, height) = (short(plot.right - plot.left), short(plot.bottom - plot.top));
        let zoom = plot.zoom.map_or(String::new(), |zoom| {
            let fit = if zoom.fit { " data-fit=\"1\"" } else { "" };
            let (x, y) = (zoom.x, zoom.y);
            format!(" class=\"p\" data-x=\"{} {}\" data-y=\"{} {}\"{fit}", x.0, x.1, y.0, y.1)
        });
        let _ = writeln!(
            self.text,
            "<svg x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" viewBox=\"{left} {top} {width} {height}\"{zoom}>"
        );
        self.zoomable = plot.zoom.is_some();
    }

    fn marks(&mut self, shape: Shape, size: f64, places: &[Point], paint: Paint) {
        let r = size / 2.0;
        let (look, data) = match shape {
            // A line without length has round ends.
            Shape::Dot => (format!("{} stroke-linecap=\"round\"", stroked(paint, size)), "h0".to_owned()),
            Shape::Cross => {
                let (r, d) = (short(r), short(size));
                (stroked(paint, Shape::CROSS_WIDTH), format!("m-{r}-{r}l{d} {d}m0-{d}l-{d} {d}"))
            }
            Shape::Triangle => {
                let (r, d) = (short(r), short(size));
                (filled(paint), format!("m-{r}-{d}h{d}l-{r} {d}z"))
            }
        };
        let class = self.class("m");
        let mut text = String::new();
        let digits = if self.zoomable { 2 } else { 1 };
        for (x, y) in places {
            let _ = write!(text, "M{}{}{data}", number(*x, digits), spaced(*y, digits));
        }
        let _ = writeln!(self.text, "<path{class}{look} d=\"{text}\"/>");
    }

    fn label(&mut self, text: &Text) {
        let (x, y) = (short(text.at.0), short(text.at.1));
        let class = match text.role {
            Role::Fixed => "",
            Role::AxisX => " class=\"tx\"",
            Role::AxisY => " class=\"ty\"",
            Role::Note => " class=\"nx\"",
        };
        let anchor = match text.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let turned = if text.turned == 0.0 {
            String::new()
        } else {
            format!(" transform=\"rotate({} {x} {y})\"", short(text.turned))
        };
        let _ = writeln!(
            self.text,
            "<text{class} x=\"{x}\" y=\"{y}\" font-size=\"{}\"{anchor}{turned}{}>{}</text>",
            short(text.size),
            filled(text.paint),
            escaped(&text.text)
        );
    }
}

/// The data of a path: each point by its distance from the one before, as the text gives that one,
/// so that rounding does not add up.
struct Data {
    text: String,
    digits: i32,
    /// The last point, in the smallest steps that are written.
    at: Option<(i64, i64)>,
}

impl Data {
    fn new(fine: bool) -> Self {
        Self { text: String::new(), digits: if fine { 2 } else { 1 }, at: None }
    }

    fn path(&mut self, points: &[Point]) {
        for (place, point) in points.iter().enumerate() {
            self.step(if place == 0 { 'm' } else { 'l' }, *point);
        }
    }

    fn bar(&mut self, x: f64, from: f64, to: f64) {
        self.step('m', (x, from));
        self.step('l', (x, to));
    }

    fn step(&mut self, kind: char, (x, y): Point) {
        let unit = libm::pow(10.0, f64::from(self.digits));
        let to = (libm::round(x * unit) as i64, libm::round(y * unit) as i64);
        let Some(at) = self.at.replace(to) else {
            let _ = write!(self.text, "M{}{}", number(x, self.digits), spaced(y, self.digits));
            return;
        };
        let (x, y) = ((to.0 - at.0) as f64 / unit, (to.1 - at.1) as f64 / unit);
        let _ = match kind {
            'l' if y == 0.0 => write!(self.text, "h{}", number(x, self.digits)),
            'l' if x == 0.0 => write!(self.text, "v{}", number(y, self.digits)),
            kind => write!(self.text, "{kind}{}{}", number(x, self.digits), spaced(y, self.digits)),
        };
    }
}

fn stroked(paint: Paint, width: f64) -> String {
    format!(
        " stroke=\"{}\" stroke-width=\"{}\"{}",
        named(paint.colour),
        short(width),
        opacity("stroke", paint)
    )
}

fn filled(paint: Paint) -> String {
    format!(" fill=\"{}\"{}", named(paint.colour), opacity("fill", paint))
}

fn opacity(of: &str, paint: Paint) -> String {
    if paint.alpha < 1.0 { format!(" {of}-opacity=\"{}\"", number(paint.alpha, 2)) } else { String::new() }
}

fn dashes(dash: &[f64], width: f64) -> String {
    if dash.is_empty() {
        return String::new();
    }
    let lengths: Vec<String> = dash.iter().map(|length| short(length * width)).collect();
    format!(" stroke-dasharray=\"{}\"", lengths.join(" "))
}

fn named(colour: Colour) -> String {
    match colour {
        Colour::Ink => "currentColor".to_owned(),
        Colour::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
    }
}

/// A number with a digit or two, and no zero that can be left out.
fn number(value: f64, digits: i32) -> String {
    let text = format!("{value:.0$}", digits as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    match text {
        "-0" | "" => "0".to_owned(),
        _ => match text.strip_prefix("-0.") {
            Some(rest) => format!("-.{rest}"),
            None => text.strip_prefix("0.").map_or_else(|| text.to_owned(), |rest| format!(".{rest}")),
        },
    }
}

/// A number behind another one: a minus sign parts them, too.
fn spaced(value: f64, digits: i32) -> String {
    let text = number(value, digits);
    if text.starts_with('-') { text } else { format!(" {text}") }
}

fn short(value: f64) -> String {
    number(value, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, -0.01, 0.5, -0.5, 12.0, 12.34, -7.96].map(|value| number(value, 1));
        assert_eq!(texts, ["0", "0", ".5", "-.5", "12", "12.3", "-8"]);
        assert_eq!(spaced(-1.0, 1) + &spaced(1.0, 1), "-1 1");
    }

    #[test]
    fn rounding_does_not_add_up() {
        let mut data = Data::new(false);
        let points: Vec<Point> = (0..=1_000).map(|place| (f64::from(place) * 0.26, 0.0)).collect();
        data.path(&points);
        // The distances add up to where the last point is: 260.
        let moved: f64 = data.text.split('h').skip(1).map(|step| step.parse::<f64>().unwrap()).sum();
        assert!((moved - 260.0).abs() < 0.05, "{moved}");
    }
}
