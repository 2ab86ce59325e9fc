//! What a figure is made of, before it is written as SVG or PDF: paths, marks and texts at places
//! on a page.
//!
//! Lengths are pixels of CSS, 96 to the inch; y grows downwards.

use super::palette::Colour;

/// A page with what is drawn on it, in order.
#[derive(Clone, Debug)]
pub(super) struct Canvas {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) items: Vec<Item>,
}

/// What a plot shows beyond its edges, so that marks and thick lines on them are whole.
pub const OVERHANG: f64 = 5.0;

/// A point on the page.
pub(super) type Point = (f64, f64);

/// One thing that is drawn.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A line through points, or several.
    Stroke {
        paths: Vec<Vec<Point>>,
        paint: Paint,
        width: f64,
        dash: &'static [f64],
        role: Role,
    },
    /// An area.
    Fill {
        outline: Vec<Point>,
        paint: Paint,
    },
    /// The same small shape at many places.
    Marks {
        shape: Shape,
        size: f64,
        places: Vec<Point>,
        paint: Paint,
    },
    /// Vertical strokes: x, and both ends.
    Bars {
        bars: Vec<(f64, f64, f64)>,
        paint: Paint,
        width: f64,
    },
    Text(Text),
    /// Until its end, only what is inside of the plot's area is drawn.
    Begin(Plot),
    /// The end of the last plot that began.
    End,
}

/// A colour, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Paint {
    pub(super) colour: Colour,
    /// 0 to 1.
    pub(super) alpha: f64,
}

impl From<Colour> for Paint {
    fn from(colour: Colour) -> Self {
        Self { colour, alpha: 1.0 }
    }
}

impl Colour {
    pub(super) fn mix(self, alpha: f64) -> Paint {
        Paint { colour: self, alpha }
    }
}

/// A mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Dot,
    Cross,
    /// On its tip.
    Triangle,
}

/// A line of text.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: String,
    /// On the base line.
    pub(super) at: Point,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    /// Degrees, clockwise, about `at`.
    pub(super) turned: f64,
    pub(super) paint: Paint,
    pub(super) role: Role,
}

/// Which point of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// What is drawn again when a reader zooms, because it belongs to an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Fixed,
    /// Numbers and ticks of the horizontal axis.
    AxisX,
    /// Numbers and grid of the vertical axis.
    AxisY,
    /// Stands at a value of the horizontal axis.
    Note,
}

/// The area of a plot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
    /// Values at the left and right edge, and at the lower and upper one, if a reader can zoom
    /// along the horizontal axis.
    pub(super) zoom: Option<Zoom>,
}

/// What a page has to know of a plot to zoom it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zoom {
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
    /// The vertical axis follows what is in view.
    pub(super) fit: bool,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, items: vec![] }
    }

    pub(super) fn line(
        &mut self,
        path: Vec<Point>,
        paint: impl Into<Paint>,
        width: f64,
        dash: &'static [f64],
    ) {
        if path.len() > 1 {
            let role = Role::Fixed;
            self.items.push(Item::Stroke { paths: vec![path], paint: paint.into(), width, dash, role });
        }
    }

    /// The ticks or the grid of an axis: thin lines.
    pub(super) fn guides(&mut self, paths: Vec<Vec<Point>>, paint: Paint, role: Role) {
        if !paths.is_empty() {
            self.items.push(Item::Stroke { paths, paint, width: 1.0, dash: &[], role });
        }
    }

    pub(super) fn fill(&mut self, outline: Vec<Point>, paint: impl Into<Paint>) {
        self.items.push(Item::Fill { outline, paint: paint.into() });
    }

    pub(super) fn rect(&mut self, (left, top): Point, (right, bottom): Point, paint: impl Into<Paint>) {
        self.fill(vec![(left, top), (right, top), (right, bottom), (left, bottom)], paint);
    }

    pub(super) fn marks(&mut self, shape: Shape, size: f64, places: Vec<Point>, paint: impl Into<Paint>) {
        if !places.is_empty() {
            self.items.push(Item::Marks { shape, size, places, paint: paint.into() });
        }
    }

    pub(super) fn bars(&mut self, bars: Vec<(f64, f64, f64)>, paint: impl Into<Paint>, width: f64) {
        if !bars.is_empty() {
            self.items.push(Item::Bars { bars, paint: paint.into(), width });
        }
    }

    pub(super) fn begin(&mut self, plot: Plot) {
        self.items.push(Item::Begin(plot));
    }

    pub(super) fn end(&mut self) {
        self.items.push(Item::End);
    }

    pub(super) fn text(&mut self, text: Text) {
        self.items.push(Item::Text(text));
    }
}

impl Text {
    /// A label that begins at `at`.
    pub(super) fn new(text: impl Into<String>, at: Point, size: f64) -> Self {
        Self {
            text: text.into(),
            at,
            size,
            anchor: Anchor::Start,
            turned: 0.0,
            paint: Colour::Ink.into(),
            role: Role::Fixed,
        }
    }

    pub(super) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(super) fn turned(self, turned: f64) -> Self {
        Self { turned, ..self }
    }

    pub(super) fn painted(self, paint: impl Into<Paint>) -> Self {
        Self { paint: paint.into(), ..self }
    }

    pub(super) fn of_axis(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

impl Shape {
    /// Width of the lines of a cross.
    pub(super) const CROSS_WIDTH: f64 = 1.4;
}
