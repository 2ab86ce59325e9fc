//! How figures become files.

use ackline_plot::{Format, PlotOptions, Size};
use clap::{Args, ValueEnum};

#[derive(Args)]
#[command(next_help_heading = "Figures")]
pub(crate) struct FigureArgs {
    /// Format of the files with plots
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    plot_format: FileFormat,
    /// Size on paper: 88mm, 88mmx60mm, 16x9cm, 3.5x2.5in, 252x180pt, 800x400px [default: 190 mm
    /// wide]
    ///
    /// Without a height each figure is as high as it needs. Letters fit the width: 7.6 points in a
    /// column of 88 mm.
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = str::parse::<Size>)]
    plot_size: Option<Size>,
    /// Leave the titles out, for figures with a caption
    #[arg(long)]
    plot_untitled: bool,
}

/// A format of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    /// Vector graphics for pages and slides
    #[default]
    Svg,
    /// For papers, with the font in it
    Pdf,
}

impl FigureArgs {
    pub(crate) fn options(&self) -> PlotOptions {
        let format = match self.plot_format {
            FileFormat::Svg => Format::Svg,
            FileFormat::Pdf => Format::Pdf,
        };
        PlotOptions { format, size: self.plot_size, untitled: self.plot_untitled }
    }
}
