//! The engine: jobs of all studies in parallel, then what each study makes of them, then files.

pub(crate) mod sample;
pub(crate) mod work;

use super::data::{self, Data, Origin, Sample, StoredJob};
use super::error::ReproduceError;
use super::job::{Job, Outputs};
use super::judgement::Judgement;
use super::options::Options;
use super::output::store;
use super::page;
use super::pin::{self, Extent};
use super::reproduction::Reproduction;
use super::request::{Knob, Request};
use super::result::StudyResult;
use super::sources;
use super::study::{Study, plan};
use ackline_tcp_core::policy::spec::nearest;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use work::Outcome;

/// Repeats studies. Options that a study does not understand are an error if it is the only one,
/// and ignored if there are several.
///
/// # Errors
/// If something is asked for that a study does not have, a job cannot be run, or a file cannot be
/// written. Checks that fail are no error.
pub fn reproduce(
    studies: &[&'static dyn Study],
    options: &Options,
) -> Result<Vec<StudyResult>, ReproduceError> {
    let several = studies.len() > 1;
    if let Some(folder) = &options.from {
        return each(studies.iter().map(|study| from_data(*study, folder, options, several)));
    }
    let mut plans = vec![];
    for study in studies {
        let request = request(*study, options, several)?;
        let jobs = plan(*study, &request)?;
        plans.push((*study, request, jobs));
    }
    let work: Vec<_> = plans.iter().map(|(study, _, jobs)| (*study, jobs.as_slice())).collect();
    let work::RunResults { outcomes, wall_s, threads } = work::run(&work, options)?;
    each(plans.into_iter().zip(outcomes).map(|((study, request, jobs), outcome)| {
        let Outcome { outputs, cached, unreadable, error } = outcome;
        if let Some(error) = error {
            return Err(error);
        }
        let origin = Origin {
            command: command(study, &request),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: sources::COMMIT.map(str::to_owned),
            engine: sources::ENGINE.to_owned(),
            code: data::code(study, &jobs),
            cpu_s: outputs.values().map(|done| done.cpu_s).sum(),
            wall_s,
            cached,
            threads,
        };
        // What is written and whole can be judged later by a program that has changed.
        let whole = options.out.is_some() && Extent::of(&request) == Some(Extent::Whole);
        let sample = if whole && request.parts.len() == study.parts().len() {
            sample::draw(study, &request, |id| outputs.get(id).map(|done| done.cpu_s), options)?
        } else {
            Sample::default()
        };
        let identities = jobs.iter().map(|job| (job.id(), job.identity())).collect::<BTreeMap<_, _>>();
        let stored = outputs.into_iter().map(|(id, done)| {
            let identity = identities.get(id.as_str()).copied().unwrap_or_default().to_owned();
            (id, StoredJob { identity, done })
        });
        let data = Data::new(origin, &request, sample, stored.collect());
        // First of all: what follows may fail, and can be made again from them.
        let files = options.out.as_deref().map(|out| store::save_data(out, study, &data)).transpose()?;
        let mut done = conclude(study, request, &jobs, &data, options)?;
        done.unreadable = unreadable;
        done.files = files.into_iter().collect();
        save(done, options)
    }))
}

/// The results of all studies, or the first error: one that fails does not keep the others from
/// being written.
fn each(
    results: impl Iterator<Item = Result<StudyResult, ReproduceError>>,
) -> Result<Vec<StudyResult>, ReproduceError> {
    results.collect::<Vec<_>>().into_iter().collect()
}

/// A study from the data of an earlier run.
fn from_data(
    study: &'static dyn Study,
    folder: &Path,
    options: &Options,
    several: bool,
) -> Result<StudyResult, ReproduceError> {
    let wanted = if options.parts.is_empty() { vec![] } else { request(study, options, several)?.parts };
    let mut data = Data::load(folder, study)?;
    let request = data.request(study, &wanted)?;
    let jobs = plan(study, &request)?;
    for job in &jobs {
        let name = study.paper().name;
        let message = match data.jobs.get(job.id()) {
            Some(stored) if stored.identity == job.identity() => continue,
            Some(_) => {
                format!("in the data of {name} the job {:?} is another one than in this program", job.id())
            }
            None => format!("the data of {name} have no output of the job {:?}", job.id()),
        };
        return Err(ReproduceError::Data(format!("{message}; make them again with {}", data::again(study))));
    }
    let mut done = conclude(study, request, &jobs, &data, options)?;
    if options.sample && !jobs.iter().any(Job::is_live) && data.origin.code != data::code(study, &jobs) {
        let sampled = sample::compare(study, &done.request, &data, options)?;
        // From now on the sample is quick, and names what it runs.
        let complete = done.is_complete() && sampled.unnamed > 0 && sampled.differing.is_empty();
        if let Some(out) = options.out.as_deref().filter(|_| complete) {
            let cpu_s = |id: &str| data.jobs.get(id).map(|stored| stored.done.cpu_s);
            data.sample = sample::draw(study, &done.request, cpu_s, options)?;
            done.files.push(store::save_data(out, study, &data)?);
        }
        done.sampled = Some(sampled);
    }
    save(done, options)
}

/// The command that asks this of a study.
fn command(study: &dyn Study, request: &Request) -> String {
    let mut command = format!("ackline reproduce {}", study.paper().name);
    if request.parts.len() < study.parts().len() {
        let _ = write!(command, " --table {}", request.parts.join(","));
    }
    if request.quick {
        command += " --quick";
    }
    if let Some(seeds) = request.seeds {
        let _ = write!(command, " --seeds {seeds}");
    }
    if let Some(scale) = request.scale {
        let _ = write!(command, " --scale {scale}");
    }
    command
}

/// What a study makes of the outputs of its jobs.
fn conclude(
    study: &'static dyn Study,
    request: Request,
    jobs: &[Job],
    data: &Data,
    options: &Options,
) -> Result<StudyResult, ReproduceError> {
    let name = study.paper().name;
    let fault = |message| ReproduceError::Study { study: name.to_owned(), message };
    let values = data.jobs.iter().map(|(id, stored)| (id.clone(), stored.done.output.clone())).collect();
    let reproduction = evaluate(study, &request, &Outputs::new(name, values))?;
    if let Some(message) = reproduction.fault() {
        return Err(fault(message));
    }
    let pins = pin::read(study.pins()).map_err(fault)?;
    let all = request.parts.len() == study.parts().len();
    let judgement = Judgement::new(pins, &request, jobs, &reproduction, all);
    Ok(StudyResult {
        study,
        request,
        reproduction,
        judgement,
        origin: data.origin.clone(),
        unreadable: 0,
        sampled: None,
        plot: options.plot,
        files: vec![],
    })
}

/// Writes page, document and figures of a study, if that is wanted.
fn save(mut done: StudyResult, options: &Options) -> Result<StudyResult, ReproduceError> {
    let name = done.study.paper().name;
    let fault = |message| ReproduceError::Study { study: name.to_owned(), message };
    // Made even if nothing is written: a page with a mistake is found by every run.
    let page = page::to_markdown(&done).map_err(fault)?;
    if let Some(out) = &options.out {
        done.files.extend(store::save(out, &done, &page)?);
    }
    Ok(done)
}

/// What the wanted parts make of their jobs' outputs.
fn evaluate(study: &dyn Study, request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    for part in study.parts().iter().filter(|part| request.wants(part.name)) {
        found.extend((part.evaluate)(request, outputs)?);
    }
    Ok(found)
}

/// The request to one study.
fn request(study: &dyn Study, options: &Options, several: bool) -> Result<Request, ReproduceError> {
    let name = study.paper().name;
    let names = || study.parts().iter().map(|part| part.name);
    if let Some(wrong) = options.parts.iter().find(|part| !names().any(|name| name == part.as_str())) {
        let near = nearest(wrong, names()).map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let all = names().collect::<Vec<_>>().join(", ");
        return Err(ReproduceError::Request(format!("{name} has no table {wrong:?}{near} (it has {all})")));
    }
    let parts = names()
        .filter(|name| options.parts.is_empty() || options.parts.iter().any(|part| part.as_str() == *name))
        .collect();
    let given = [
        (Knob::Quick, options.quick),
        (Knob::Seeds, options.seeds.is_some()),
        (Knob::Scale, options.scale.is_some()),
    ];
    let has = |knob: Knob| study.knobs().contains(&knob);
    if let Some((knob, _)) = given.into_iter().find(|(knob, given)| *given && !has(*knob) && !several) {
        let all: Vec<&str> = study.knobs().iter().map(|knob| knob.option()).collect();
        let instead = if all.is_empty() {
            let parts = names().collect::<Vec<_>>().join(", ");
            format!("it exists in one size only; --table picks parts of it ({parts})")
        } else {
            format!("it has {}", all.join(", "))
        };
        return Err(ReproduceError::Request(format!("{name} has no {}; {instead}", knob.option())));
    }
    Ok(Request {
        parts,
        quick: options.quick && has(Knob::Quick),
        seeds: options.seeds.filter(|_| has(Knob::Seeds)),
        scale: options.scale.filter(|_| has(Knob::Scale)),
    })
}
