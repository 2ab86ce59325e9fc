//! `ackline merge`: parts of a sweep become one folder.

use super::report::Files;
use crate::args::MergeArgs;
use crate::failure::Failure;
use crate::output::print;
use ackline::Registry;

pub(crate) fn run(args: &MergeArgs, registry: &Registry) -> Result<(), Failure> {
    if args.folders.iter().all(|folder| crate::commands::evaluate::has_runs(folder)) {
        return crate::commands::evaluate::merge(args);
    }
    let (scenario, done) = ackline_lab::merge(&args.folders, &args.out, registry)?;
    let has = |name: &str| args.out.join(name).exists();
    let files = Files { plots: has("report.html"), plot_runs: false, pcap: has("pcap") };
    let text = super::shown(args.output, &scenario, &done, Some(&args.out), files);
    print(&text)
}
