//! `ackline plot`: results of several folders in the same plots.

use crate::args::PlotArgs;
use crate::failure::{Exit, Failure};
use crate::output::print;
use ackline_lab::figures::overlay;
use ackline_plot::PlotOptions;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &PlotArgs) -> Result<(), Failure> {
    let written = overlaid(&args.folders, &args.out, &args.figures.options())?;
    print(&written)
}

/// Draws the results of `folders` over each other into the folder `out`: the names of the files, a
/// line each.
pub(crate) fn overlaid(folders: &[PathBuf], out: &Path, options: &PlotOptions) -> Result<String, Failure> {
    let charts = overlay(folders)?;
    if charts.is_empty() {
        return Err(Failure::new(Exit::File, "there is nothing to plot in these folders"));
    }
    fs::create_dir_all(out).map_err(|error| Failure::file("make the folder", out.display(), &error))?;
    let mut written = String::new();
    for chart in charts {
        let path = out.join(format!("{}.{}", chart.name, options.format.ending()));
        ackline_lab::write(&path, &chart.to_file(options))
            .map_err(|error| Failure::file("write", path.display(), &error))?;
        written += &format!("{}\n", path.display());
    }
    Ok(written)
}
