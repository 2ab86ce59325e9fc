//! `--watch`: the scripts again whenever one of them changes.

use super::{read, run_in_parallel, tell, write_captures};
use crate::args::drill::DrillArgs;
use crate::failure::{Exit, Failure};
use ackline_drill::Options;
use std::time::Duration;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(300);

pub(super) fn run(args: &DrillArgs, options: &Options) -> Result<(), Failure> {
    let mut seen: Vec<String> = vec![];
    loop {
        match read(&args.paths) {
            Ok(cases) => {
                let texts: Vec<String> = cases.iter().map(|case| case.text.clone()).collect();
                if texts != seen {
                    seen = texts;
                    let reports = run_in_parallel(&cases, options, true);
                    if let Some(folder) = &args.pcap {
                        write_captures(folder, &cases, &reports)?;
                    }
                    match tell(args, options, &cases, &reports) {
                        Err(failure) if failure.exit == Exit::Incomplete => {}
                        told => told?,
                    }
                }
            }
            // An editor may replace a file by moving another one there.
            Err(failure) if failure.exit == Exit::File && !seen.is_empty() => {}
            Err(failure) => return Err(failure),
        }
        wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing else runs in this process meanwhile")]
fn wait() {
    std::thread::sleep(LOOK);
}
