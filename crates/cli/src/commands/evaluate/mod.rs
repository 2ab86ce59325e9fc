//! `ackline evaluate`: the league.

mod live;

use crate::args::MergeArgs;
use crate::args::evaluate::EvaluateArgs;
use crate::failure::{Exit, Failure};
use crate::output::{print, say};
use ackline::Registry;
use ackline_lab::RunError;
use ackline_lab::league::{
    Cell, Contestant, Evaluation, LeagueResult, Matrix, Options, evaluate, merge as join, write_pages,
};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where the page of a checkout is.
const DOCS: &str = "docs";

pub(crate) fn run(args: &EvaluateArgs, registry: &Registry) -> Result<(), Failure> {
    if args.live {
        return live::run(args, registry);
    }
    let matrix = if args.quick { Matrix::quick() } else { Matrix::whole() };
    let matrix = some(matrix, args)?;
    if args.list {
        return print(&list(&matrix));
    }
    if let Some(id) = &args.scenario {
        return print(&scenario(&matrix, id, args, registry)?);
    }
    let work = folders(args)?;
    let evaluation = match &args.from {
        Some(file) => Evaluation::of_result(matrix.clone(), &LeagueResult::read(file, &matrix)?),
        None => {
            let options = options(args, &work);
            evaluate(matrix.clone(), contestants(args, registry)?, registry, &options)?
        }
    };
    let evaluation = args.overlay.iter().try_fold(evaluation, |evaluation, file| {
        let theirs = LeagueResult::read(file, &matrix)?;
        let label = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok::<_, RunError>(evaluation.with_overlay(&theirs, &label))
    })?;
    let mut files = vec![];
    if let Some(pages) = work.pages.as_ref().filter(|_| evaluation.missing == 0) {
        files = write_pages(&evaluation, pages)?;
    }
    work.forget(args)?;
    if args.output.json {
        print(&(evaluation.to_json() + "\n"))?;
    } else if !args.output.quiet {
        let names: String = files.iter().map(|file| file.display().to_string() + "\n").collect();
        print(&format!("{}\n{names}", evaluation.to_text()))?;
    }
    verdict(&evaluation, args.bars)
}

/// The cells of `matrix` that --cell names.
fn some(matrix: Matrix, args: &EvaluateArgs) -> Result<Matrix, Failure> {
    matrix.only(&args.cells).map_err(|error| Failure::usage(format!("--cell: {error}")))
}

fn options(args: &EvaluateArgs, work: &Folders) -> Options {
    Options {
        engine: ackline_papers::ENGINE.to_owned(),
        program: program(),
        threads: usize::from(args.jobs.unwrap_or(0)),
        out: work.runs.clone(),
        seeds: args.seeds,
        points: args.points,
        progress: !args.output.quiet,
    }
}

/// Where finished runs and pages go.
struct Folders {
    runs: Option<PathBuf>,
    pages: Option<PathBuf>,
}

impl Folders {
    /// Deletes finished runs, if --refresh has made a page of them.
    fn forget(&self, args: &EvaluateArgs) -> Result<(), Failure> {
        let Some(runs) = self.runs.as_ref().filter(|_| args.refresh) else { return Ok(()) };
        fs::remove_dir_all(runs).map_err(|error| Failure::file("delete", runs.display(), &error))
    }
}

fn folders(args: &EvaluateArgs) -> Result<Folders, Failure> {
    if !args.refresh {
        return Ok(Folders {
            runs: args.out.clone().filter(|_| args.from.is_none()),
            pages: args.out.clone(),
        });
    }
    let docs = Path::new(DOCS);
    if !docs.join("congestion-control.md").is_file() {
        return Err(Failure::usage(
            "--refresh: there is no folder docs of ackline here; run it in a checkout, or name --out DIR",
        ));
    }
    let runs = if args.live { "league/refresh-live" } else { "league/refresh" };
    Ok(Folders { runs: Some(docs.join(runs)), pages: Some(docs.to_owned()) })
}

fn contestants(args: &EvaluateArgs, registry: &Registry) -> Result<Vec<Contestant>, Failure> {
    let all = if args.names.is_empty() {
        Contestant::all(registry)
    } else {
        Contestant::named(&args.names, registry)
    };
    let kernel = args.names.iter().find(|name| name.starts_with("linux:"));
    all.map_err(|error| no_control(&error, kernel.map_or("", String::as_str)))
}

/// The hash of this program, of which policies are that ackline does not have. If it cannot be read
/// its name and length stand for it.
fn program() -> String {
    let path = env::current_exe().unwrap_or_default();
    match fs::read(&path) {
        Ok(bytes) => ackline_lab::league::hash(&bytes),
        Err(_) => path.display().to_string(),
    }
}

fn list(matrix: &Matrix) -> String {
    let mut text = format!("{} {}\n", matrix.name, matrix.hash());
    for cell in &matrix.cells {
        text += &format!("{:14} {:3} seeds, {:.3} million packets each\n", cell.id, cell.seeds, cell.packets);
    }
    text
}

fn scenario(matrix: &Matrix, id: &str, args: &EvaluateArgs, registry: &Registry) -> Result<String, Failure> {
    let spec = args.names.first().map_or("cubic", String::as_str);
    let contestant = Contestant::cc(spec, registry).map_err(|error| no_control(&error, spec))?;
    Ok(the_cell(matrix, id)?.text(&contestant))
}

/// The cell that --scenario names.
fn the_cell(matrix: &Matrix, id: &str) -> Result<Cell, Failure> {
    let only = matrix.clone().only(&[id.to_owned()]);
    let only = only.map_err(|error| Failure::usage(format!("--scenario: {error}")))?;
    only.cell(id).cloned().ok_or_else(|| {
        Failure::usage(format!("--scenario: {id:?} is a family; name one of its cells (--list)"))
    })
}

/// The error for a control that the registry does not have.
fn no_control(error: &impl Display, spec: &str) -> Failure {
    if spec.starts_with("linux:") {
        return Failure::usage(format!("{spec} is a control of the kernel, which takes part with --live"));
    }
    Failure::usage(error.to_string())
}

/// True if the folder is one of `ackline evaluate`.
pub(crate) fn has_runs(folder: &Path) -> bool {
    folder.join("runs").is_dir() && !folder.join("origin.json").exists()
}

/// `ackline merge` of such folders.
pub(crate) fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let count = join(&args.folders, &args.out)?;
    if !args.output.quiet {
        say(&format!("{count} runs; ackline evaluate --out {} makes the table", args.out.display()));
    }
    Ok(())
}

/// An error if something is not as it should be.
fn verdict(evaluation: &Evaluation, bars: bool) -> Result<(), Failure> {
    ended(&evaluation.failures(bars))
}

/// An error if there are failures: by name as far as a line can hold it.
fn ended(failures: &[String]) -> Result<(), Failure> {
    const NAMED: usize = 8;
    if failures.is_empty() {
        return Ok(());
    }
    let mut named = failures.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if failures.len() > NAMED {
        named += &format!(", and {} more", failures.len() - NAMED);
    }
    Err(Failure::new(Exit::Incomplete, named))
}
