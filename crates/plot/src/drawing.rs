//! Draws a figure on a canvas, and writes that to a page or a file.

use super::canvas::Canvas;
use super::chart::{Chart, Panels};
use super::heat_map::{HeatMap, VerdictMap};
use super::options::{Format, PlotOptions};
use super::{draw, pdf, svg};
use std::borrow::Cow;

/// What is drawn on a canvas of its own.
trait Drawing {
    /// What it shows, for those who do not see it.
    fn title(&self) -> Cow<'_, str>;

    fn draw(&self, options: &PlotOptions) -> Canvas;

    fn element(&self) -> String {
        let options = PlotOptions::default();
        svg::element(&self.draw(&options), &self.title(), None)
    }

    fn file(&self, options: &PlotOptions) -> Vec<u8> {
        let canvas = self.draw(options);
        match options.format {
            Format::Svg => svg::file(&svg::element(&canvas, &self.title(), options.size)).into_bytes(),
            Format::Pdf => pdf::file(&canvas, &self.title()),
        }
    }
}

macro_rules! figures {
    ($($figure:ty),*) => {$(
        impl $figure {
            /// The figure as an SVG element for a page.
            #[must_use]
            pub fn to_svg(&self) -> String {
                self.element()
            }

            /// The figure as a file of its own. An SVG is dark if the reader's screen is.
            #[must_use]
            pub fn to_file(&self, options: &PlotOptions) -> Vec<u8> {
                self.file(options)
            }
        }
    )*};
}

figures!(Chart, Panels, HeatMap, VerdictMap);

impl Drawing for Chart {
    fn title(&self) -> Cow<'_, str> {
        self.title.as_str().into()
    }

    fn draw(&self, options: &PlotOptions) -> Canvas {
        draw::chart(self, options)
    }
}

impl Drawing for Panels {
    fn title(&self) -> Cow<'_, str> {
        if !self.title.is_empty() {
            return self.title.as_str().into();
        }
        self.charts.iter().map(|chart| chart.title.as_str()).collect::<Vec<_>>().join("; ").into()
    }

    fn draw(&self, options: &PlotOptions) -> Canvas {
        draw::panels(self, options)
    }
}

impl Drawing for HeatMap {
    fn title(&self) -> Cow<'_, str> {
        self.title.as_str().into()
    }

    fn draw(&self, options: &PlotOptions) -> Canvas {
        self.canvas(options)
    }
}

impl Drawing for VerdictMap {
    fn title(&self) -> Cow<'_, str> {
        self.map.title.as_str().into()
    }

    fn draw(&self, options: &PlotOptions) -> Canvas {
        self.canvas(options)
    }
}
