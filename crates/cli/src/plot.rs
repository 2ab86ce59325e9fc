//! `ackline plot`: results of several folders in the same plots.

use crate::args::PlotArgs;
use crate::failure::{Exit, Failure};
use crate::output::print;
use ackline_lab::plot::overlay;
use std::fs;
use std::path::Path;

pub(crate) fn run(args: &PlotArgs) -> Result<(), Failure> {
    let charts = overlay(&args.folders)?;
    if charts.is_empty() {
        return Err(Failure::new(Exit::File, "there is nothing to plot in these folders"));
    }
    fs::create_dir_all(&args.out)
        .map_err(|error| Failure::file("make the folder", args.out.display(), &error))?;
    let mut written = String::new();
    for chart in charts {
        let path = args.out.join(format!("{}.svg", chart.name));
        write(&path, &chart.to_svg_file()?)?;
        written += &format!("{}\n", path.display());
    }
    print(&written).map_err(|error| Failure::file("write to", "standard output", &error))
}

/// Writes under another name first, so that what has the name is complete.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    fs::write(partial, text)
        .and_then(|()| fs::rename(partial, path))
        .map_err(|error| Failure::file("write", path.display(), &error))
}
