//! `ackline drill`: packetdrill scripts against the stack.

mod record;
mod watch;

use crate::args::drill::{DrillArgs, DrillProfile, DrillRelax};
use crate::failure::{Exit, Failure};
use crate::output;
use ackline::Registry;
use ackline::runtime::netns::Namespace;
use ackline_drill::kernel::Kernel;
use ackline_drill::{
    IpVersion, Options, Outcome, Profile, Relaxations, Report, judge, run as run_script, run_on,
};
use ackline_observe::pcapng::{Blocks, Direction, LinkType, Packet};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Scripts that run against the kernel at once: they mostly wait.
const AT_ONCE: usize = 12;
const BAR: &str = "{bar:30} {pos} of {len} scripts";

/// A script in its file.
struct Case {
    file: PathBuf,
    text: String,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Results<'a> {
    passed: usize,
    failed: usize,
    unsupported: usize,
    relax: Relaxations,
    scripts: Vec<ScriptResult<'a>>,
}

#[derive(Serialize)]
struct ScriptResult<'a> {
    file: String,
    profile: Profile,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

pub(crate) fn run(args: &DrillArgs, registry: &Registry) -> Result<(), Failure> {
    if let Some(capture) = &args.record {
        return record::run(capture, args.end);
    }
    let options = options(args, registry)?;
    if args.watch {
        return watch::run(args, &options);
    }
    let cases = read(&args.paths)?;
    let reports = if args.kernel {
        may_make_namespaces()?;
        run_all(&cases, AT_ONCE, args.quiet, |text| run_on(text, &options, Kernel::open))
    } else {
        run_in_parallel(&cases, &options, args.quiet)
    };
    if let Some(folder) = &args.pcap {
        write_captures(folder, &cases, &reports)?;
    }
    tell(args, &options, &cases, &reports)
}

/// Tries, on a thread of its own, what each script needs.
fn may_make_namespaces() -> Result<(), Failure> {
    let made = thread::scope(|scope| scope.spawn(|| Namespace::new_for_thread().map(drop)).join());
    match made {
        Ok(made) => Ok(made?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn options(args: &DrillArgs, registry: &Registry) -> Result<Options, Failure> {
    for text in &args.options {
        registry.options(text).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let relaxes = |what| args.relax.contains(&what);
    Ok(Options {
        profile: args.profile.map(|profile| match profile {
            DrillProfile::Linux => Profile::Linux,
            DrillProfile::Rfc => Profile::Rfc,
        }),
        relax: Relaxations {
            options: relaxes(DrillRelax::Options),
            window: relaxes(DrillRelax::Window),
            psh: relaxes(DrillRelax::Psh),
            ack: relaxes(DrillRelax::Ack),
        },
        defines: args.define.clone(),
        stack: args.options.clone(),
        ip_version: args.ipv6.then_some(IpVersion::Ipv6),
        registry: Arc::new(registry.clone()),
    })
}

/// The scripts of files and folders, in the order of their names.
fn read(paths: &[PathBuf]) -> Result<Vec<Case>, Failure> {
    let mut files = vec![];
    for path in paths {
        let before = files.len();
        collect(path, path.is_dir(), &mut files)?;
        if files.len() == before {
            return Err(Failure::usage(format!("{}: there are no scripts (*.pkt)", path.display())));
        }
    }
    let read = |file: PathBuf| match fs::read_to_string(&file) {
        Ok(text) => Ok(Case { file, text }),
        Err(error) => Err(Failure::file("read", file.display(), &error)),
    };
    files.into_iter().map(read).collect()
}

fn collect(path: &Path, is_folder: bool, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !is_folder {
        files.push(path.to_owned());
        return Ok(());
    }
    let unreadable = |error| Failure::file("read", path.display(), &error);
    let entries: Result<Vec<_>, _> = fs::read_dir(path).map_err(unreadable)?.collect();
    let mut entries = entries.map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let is_folder = path.is_dir();
        if is_folder || path.extension().is_some_and(|extension| extension == "pkt") {
            collect(&path, is_folder, files)?;
        }
    }
    Ok(())
}

/// Runs all scripts against the stack, on all processors.
fn run_in_parallel(cases: &[Case], options: &Options, quiet: bool) -> Vec<Report> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    run_all(cases, workers, quiet, |text| run_script(text, options))
}

/// Runs all scripts, `workers` at once.
fn run_all(cases: &[Case], workers: usize, quiet: bool, run: impl Fn(&str) -> Report + Sync) -> Vec<Report> {
    let drawn = !quiet && std::io::stderr().is_terminal();
    let bar = if drawn { ProgressBar::new(cases.len() as u64) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template(BAR) {
        bar.set_style(style.progress_chars("=> "));
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = vec![];
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(at) else { return done };
            done.push((at, run(&case.text)));
            bar.inc(1);
        }
    };
    let workers = workers.min(cases.len());
    let mut numbered = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.flatten().collect::<Vec<_>>()
    });
    bar.finish_and_clear();
    numbered.sort_by_key(|(at, _)| *at);
    let mut reports: Vec<Report> = numbered.into_iter().map(|(_, report)| report).collect();
    let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
    judge(&mut reports, &texts);
    reports
}

/// Prints the results; fails if a script failed.
fn tell(args: &DrillArgs, options: &Options, cases: &[Case], reports: &[Report]) -> Result<(), Failure> {
    let count = |is: fn(&Outcome) -> bool| reports.iter().filter(|report| is(&report.outcome)).count();
    let passed = count(|outcome| *outcome == Outcome::Passed);
    let unsupported = count(|outcome| matches!(outcome, Outcome::Unsupported { .. }));
    let failed = reports.len() - passed - unsupported;
    if args.json {
        let scripts = cases.iter().zip(reports).map(|(case, report)| ScriptResult {
            file: case.file.display().to_string(),
            profile: report.profile,
            outcome: &report.outcome,
        });
        let results =
            Results { passed, failed, unsupported, relax: options.relax, scripts: scripts.collect() };
        output::print(&output::json(&results))?;
    } else {
        output::print(&text(cases, reports))?;
        let relaxed = relaxed(options.relax);
        output::print(&format!("{passed} passed, {failed} failed, {unsupported} unsupported{relaxed}\n"))?;
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(Exit::Incomplete, format!("{failed} of {} failed", reports.len()))),
    }
}

fn relaxed(relax: Relaxations) -> String {
    let Relaxations { options, window, psh, ack } = relax;
    let names = [(options, "options"), (window, "window"), (psh, "psh"), (ack, "ack")];
    let names: Vec<&str> = names.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    if names.is_empty() { String::new() } else { format!(" (relaxed: {})", names.join(", ")) }
}

/// What is to be said of each script that did not pass.
fn text(cases: &[Case], reports: &[Report]) -> String {
    let mut all = String::new();
    for (case, report) in cases.iter().zip(reports) {
        let file = case.file.display();
        match &report.outcome {
            Outcome::Passed => {}
            Outcome::Failed(failure) => all += &format!("{file}:{}: {failure}", failure.line),
            Outcome::Unsupported { line, reason } => {
                all += &format!("{file}:{line}: unsupported: {reason}\n");
            }
            Outcome::Unreadable { line, column, problem } => {
                all += &format!("{file}:{line}:{column}: error: {problem}\n");
            }
        }
    }
    all
}

/// Writes each dialogue to a capture that has the script's name.
fn write_captures(folder: &Path, cases: &[Case], reports: &[Report]) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::file("create", folder.display(), &error))?;
    for (case, report) in cases.iter().zip(reports) {
        let mut blocks = Blocks::default();
        blocks.section(&format!("ackline drill {}", case.file.display()));
        blocks.interface("stack", LinkType::Raw, None);
        for packet in &report.packets {
            blocks.packet(&Packet {
                interface: 0,
                at_ns: packet.at_ns,
                original: packet.octets.len() as u32,
                data: &packet.octets,
                direction: Some(if packet.outbound { Direction::Outbound } else { Direction::Inbound }),
                comment: packet.comment,
            });
        }
        let stem = case.file.file_stem().unwrap_or(case.file.as_os_str());
        let file = folder.join(Path::new(stem).with_extension("pcapng"));
        fs::write(&file, blocks.as_bytes())
            .map_err(|error| Failure::file("write", file.display(), &error))?;
    }
    Ok(())
}
