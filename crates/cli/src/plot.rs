//! `ackline plot`: results of several folders in the same plots.

use crate::args::PlotArgs;
use crate::failure::{Exit, Failure};
use crate::output::print;
use ackline_lab::plot::overlay;
use std::fs;

pub(crate) fn run(args: &PlotArgs) -> Result<(), Failure> {
    let charts = overlay(&args.folders)?;
    if charts.is_empty() {
        return Err(Failure::new(Exit::File, "there is nothing to plot in these folders"));
    }
    fs::create_dir_all(&args.out)
        .map_err(|error| Failure::file("make the folder", args.out.display(), &error))?;
    let options = args.figures.options();
    let mut written = String::new();
    for chart in charts {
        let path = args.out.join(format!("{}.{}", chart.name, options.format.ending()));
        ackline_lab::write(&path, &chart.to_file(&options))
            .map_err(|error| Failure::file("write", path.display(), &error))?;
        written += &format!("{}\n", path.display());
    }
    print(&written).map_err(|error| Failure::file("write to", "standard output", &error))
}
