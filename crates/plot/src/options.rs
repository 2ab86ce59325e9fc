//! How a figure becomes a file: its format, its size, and what is left out.

use super::size::Size;

/// How a figure becomes a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlotOptions {
    /// SVG or PDF.
    pub format: Format,
    /// Its size on paper. `None`: 190 mm wide, and as high as it needs.
    pub size: Option<Size>,
    /// Leave its title out: the paper has a caption.
    pub untitled: bool,
}

/// A format of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Scalable vector graphics: text stays text, in the font that the reader's machine has.
    #[default]
    Svg,
    /// Portable document format, with its font.
    Pdf,
}

impl Format {
    /// The ending of its files.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pdf => "pdf",
        }
    }
}
