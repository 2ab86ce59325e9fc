//! `ackline reproduce`: papers repeated.

use crate::args::ReproduceArgs;
use crate::failure::{Exit, Failure};
use crate::output::print;
use ackline_lab::reproduce::{
    Options, ReproduceError, Reproduction, STUDIES, Study, StudyResult, listing, reproduce, study, to_json,
    to_text,
};

pub(crate) fn run(args: &ReproduceArgs) -> Result<(), Failure> {
    let Some(name) = args.paper.as_deref() else { return show(&listing(STUDIES)) };
    let studies: Vec<&'static dyn Study> = if name == "all" { STUDIES.to_vec() } else { vec![study(name)?] };
    if studies.len() > 1 && !args.tables.is_empty() {
        return Err(Failure::usage("--table: tables are those of one paper; name it instead of all"));
    }
    let options = Options {
        parts: args.tables.clone(),
        quick: args.quick,
        seeds: args.seeds,
        scale: args.scale,
        threads: usize::from(args.jobs.unwrap_or(0)),
        out: args.out.clone(),
        keep_jobs: args.keep_jobs,
        progress: !args.output.quiet,
    };
    let all = reproduce(&studies, &options)?;
    show(&text(&all, args))?;
    let sum = |of: fn(&Reproduction) -> usize| all.iter().map(|done| of(&done.reproduction)).sum::<usize>();
    let failed = if args.allow_known { sum(Reproduction::unexplained) } else { sum(Reproduction::failed) };
    if failed > 0 && !args.report_only {
        let checks = sum(|found| found.checks.len());
        return Err(Failure::new(Exit::Incomplete, format!("{failed} of {checks} checks failed")));
    }
    Ok(())
}

fn text(all: &[StudyResult], args: &ReproduceArgs) -> String {
    if args.output.json {
        return all.iter().map(|done| to_json(done) + "\n").collect();
    }
    if args.output.quiet {
        return String::new();
    }
    let mut texts: Vec<String> = all.iter().map(to_text).collect();
    let files: Vec<String> =
        all.iter().flat_map(|done| &done.files).map(|file| file.display().to_string() + "\n").collect();
    if !files.is_empty() {
        texts.push(files.concat());
    }
    texts.join("\n")
}

fn show(text: &str) -> Result<(), Failure> {
    print(text).map_err(|error| Failure::file("write to", "standard output", &error))
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        match error {
            ReproduceError::Run(error) => error.into(),
            ReproduceError::Request(_) => Self::usage(error.to_string()),
            _ => Self::new(Exit::Incomplete, error.to_string()),
        }
    }
}
