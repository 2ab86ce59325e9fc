//! Joins folders that hold parts of the same sweep.

use crate::batch::points::listed;
use crate::batch::{Batch, Report};
use crate::error::RunError;
use crate::folder::{Extras, Finished, Folder, Origin, key, stem};
use crate::scenario::Scenario;
use ackline_registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A run and the folder that holds it.
struct Part<'a> {
    folder: &'a Path,
    finished: Finished,
}

/// Joins the results of `folders` in `out`, which then holds what one [`run`](crate::run()) of the
/// whole scenario would have written, byte for byte. A run that several folders hold must be the
/// same in all of them. Time series, plots and captures are taken over if every folder has them.
///
/// # Errors
/// If the folders are not of the same scenario, values, seed and version; if a run differs or is
/// missing; if a file cannot be read or written. Nothing is written before all runs are found to be
/// there and to agree.
pub fn merge(folders: &[PathBuf], out: &Path, registry: &Registry) -> Result<(Scenario, Report), RunError> {
    let (scenario, stage) = common_scenario(folders, out, registry)?;
    let mut runs: BTreeMap<(usize, u32), Part<'_>> = BTreeMap::new();
    for folder in folders {
        collect(&scenario, &stage, folder, &mut runs)?;
    }
    complete(&scenario, folders, &runs)?;

    let (extras, drawn) = common_extras(folders, &runs);
    let into = Folder::create(out)?;
    let batch = Batch::in_folder(&stage, &scenario, into.clone(), extras, drawn)?;
    let mut results = vec![];
    for ((point, repetition), part) in runs {
        let stem = stem(point, repetition);
        let from = Folder::at(part.folder);
        let extras = batch.extras_of(point, repetition);
        from.copy_of_run("runs", &stem, &into)?;
        for (name, _) in extras.folders().iter().filter(|(_, wanted)| *wanted) {
            from.copy_of_run(name, &stem, &into)?;
        }
        into.finish(&stem, &part.finished.key, extras, &part.finished.result)?;
        results.push(part.finished.result);
    }
    let report = Report::of(results, 0);
    batch.conclude(&report)?;
    Ok((scenario, report))
}

fn refused(message: impl Into<String>) -> RunError {
    RunError::Merge(message.into())
}

/// The scenario of all folders, and the name of the stage.
fn common_scenario(
    folders: &[PathBuf],
    out: &Path,
    registry: &Registry,
) -> Result<(Scenario, String), RunError> {
    let mut first: Option<(&Path, Origin, String)> = None;
    for folder in folders {
        let same = |path: &Path| fs::canonicalize(path).ok();
        if same(folder).is_some_and(|folder| Some(folder) == same(out)) {
            return Err(refused(format!(
                "{} is both read and written; give --out another name",
                out.display()
            )));
        }
        let (origin, text) = Folder::at(folder).origin()?;
        if origin.version != env!("CARGO_PKG_VERSION") {
            return Err(refused(format!(
                "{} was written by ackline {}, and this is {}: another version may give other results",
                folder.display(),
                origin.version,
                env!("CARGO_PKG_VERSION")
            )));
        }
        let Some((at, other, other_text)) = &first else {
            first = Some((folder, origin, text));
            continue;
        };
        let differs = |what: &str, one: &dyn std::fmt::Display, two: &dyn std::fmt::Display| {
            Err(refused(format!(
                "{} and {} are not of the same sweep: {what} differs ({one}; {two})",
                at.display(),
                folder.display()
            )))
        };
        let set = |origin: &Origin| match origin.set.as_slice() {
            [] => "none".to_owned(),
            set => set.join(" "),
        };
        let clock = |origin: &Origin| if origin.stage.is_empty() { "virtual" } else { "real" };
        if origin.seed != other.seed {
            return differs("the seed", &other.seed, &origin.seed);
        }
        if origin.stage != other.stage {
            return differs("the clock", &clock(other), &clock(&origin));
        }
        if origin.set != other.set {
            return differs("what --set gave", &set(other), &set(&origin));
        }
        if text != *other_text {
            let line = text.lines().zip(other_text.lines()).take_while(|(one, two)| one == two).count() + 1;
            return differs(
                "the scenario",
                &other.scenario,
                &format!("{}, from line {line} on", origin.scenario),
            );
        }
    }
    let Some((_, origin, text)) = first else { return Err(refused("there is no folder to merge")) };
    let folder = Path::new(&origin.scenario).parent().unwrap_or(Path::new(""));
    let scenario = Scenario::parse_with(&text, &origin.scenario, folder, registry.clone())?;
    let scenario = if origin.set.is_empty() { scenario } else { scenario.with_set(&origin.set)? };
    Ok((scenario, origin.stage))
}

/// Adds the finished runs of a folder.
fn collect<'a>(
    scenario: &Scenario,
    stage: &str,
    folder: &'a Path,
    runs: &mut BTreeMap<(usize, u32), Part<'a>>,
) -> Result<(), RunError> {
    let files = Folder::at(folder);
    for point in 0..scenario.points() {
        for repetition in 0..scenario.repetitions() {
            let Some(mut finished) = files.run(&key(stage, scenario, point, repetition), point, repetition)
            else {
                continue;
            };
            // The same file may have another path on another machine.
            scenario.name().clone_into(&mut finished.result.scenario);
            match runs.get(&(point, repetition)) {
                None => {
                    runs.insert((point, repetition), Part { folder, finished });
                }
                Some(other) if other.finished.result == finished.result => {}
                Some(other) => {
                    let name = format!("runs/{}.json", stem(point, repetition));
                    return Err(refused(format!(
                        "{} and {} differ; the same scenario and seed give the same results: one of them was changed",
                        other.folder.join(&name).display(),
                        folder.join(&name).display()
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Every run of the scenario is there.
fn complete(
    scenario: &Scenario,
    folders: &[PathBuf],
    runs: &BTreeMap<(usize, u32), Part<'_>>,
) -> Result<(), RunError> {
    let repetitions = 0..scenario.repetitions();
    let held =
        |point| repetitions.clone().filter(|repetition| runs.contains_key(&(point, *repetition))).count();
    let all = repetitions.len();
    let (mut missing, mut partly) = (vec![], vec![]);
    for point in 0..scenario.points() {
        match held(point) {
            0 => missing.push(point),
            some if some < all => partly.push(point),
            _ => {}
        }
    }
    if missing.is_empty() && partly.is_empty() {
        return Ok(());
    }
    let mut what = vec![];
    if !missing.is_empty() {
        what.push(format!("no run of {} {}", points_word(missing.len()), listed(&missing)));
    }
    if !partly.is_empty() {
        what.push(format!("not all {all} runs of {} {}", points_word(partly.len()), listed(&partly)));
    }
    let first = missing.iter().chain(&partly).min().copied().unwrap_or(0);
    let name = scenario.name();
    let folder = folders.first().map(|folder| folder.display().to_string()).unwrap_or_default();
    Err(refused(format!(
        "of {} points of {name} there is {}; ackline sim {name} --points {first} --out {folder} adds the first of them",
        scenario.points(),
        what.join(", and ")
    )))
}

const fn points_word(count: usize) -> &'static str {
    if count == 1 { "point" } else { "points" }
}

/// What every run has beside its numbers, and the points whose runs are drawn.
fn common_extras(folders: &[PathBuf], runs: &BTreeMap<(usize, u32), Part<'_>>) -> (Extras, BTreeSet<usize>) {
    let of_runs = || runs.values().map(|part| part.finished.extras);
    let snap_length = of_runs().next().and_then(|extras| extras.snap_length);
    let extras = Extras {
        series: of_runs().all(|extras| extras.series),
        plots: folders.iter().all(|folder| folder.join("report.html").exists()),
        pcap: of_runs().all(|extras| extras.pcap && extras.snap_length == snap_length),
        snap_length,
    };
    let extras = Extras { snap_length: snap_length.filter(|_| extras.pcap), ..extras };
    let drawn = runs.iter().filter(|(_, part)| part.finished.extras.plots).map(|((point, _), _)| *point);
    (extras, if extras.plots { drawn.collect() } else { BTreeSet::new() })
}
