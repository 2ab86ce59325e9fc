//! Jobs: the independent pieces of a study's work.

use super::error::ReproduceError;
use super::sources;
use super::study::Study;
use ackline_lab::results::RunResult;
use ackline_lab::stage::Stages;
use ackline_lab::{Outcome, Scenario, run_one, run_one_on};
use rustix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;

/// The work of a job: its output, or why there is none.
enum Work {
    /// Simulated, or computed: the same on every machine.
    Pure(Box<dyn Fn() -> Result<Value, String> + Send + Sync>),
    /// A run of a point of a scenario by the real clock.
    Live { scenario: Arc<Scenario>, point: usize, repetition: u32 },
}

/// How often a run by the real clock is tried until it is valid.
const TRIES: u32 = 3;

/// A run by the real clock: the output of [`Job::live`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveRun {
    /// The first valid one; if there is none, the last one.
    pub result: RunResult,
    /// Runs before it, which were INVALID.
    pub before: u32,
}

impl LiveRun {
    /// Why it counts for nothing; empty if it counts.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        self.result.validity.as_ref().map_or(&[], |validity| &validity.reasons)
    }

    /// What it depends on and its scenario does not say, in words.
    #[must_use]
    pub fn conditions(&self) -> &[String] {
        self.result.validity.as_ref().map_or(&[], |validity| &validity.conditions)
    }
}

/// What a job gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Done {
    /// Processor time that it took, s.
    pub(super) cpu_s: f64,
    pub(super) output: Value,
}

/// One piece of work, whose output follows from its identity and from the sources alone.
pub struct Job {
    id: String,
    /// Hash of all on which its output depends, beside the sources.
    identity: String,
    /// The study's file whose code makes its output; `None`: only the crates of the simulation do.
    made_in: Option<String>,
    /// The part that planned it; the engine says which.
    pub(super) part: &'static str,
    work: Work,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, identity, made_in, part, work: _ } = self;
        let mut text = f.debug_struct("Job");
        text.field("id", id).field("identity", identity).field("made_in", made_in).field("part", part);
        text.finish_non_exhaustive()
    }
}

impl Job {
    /// A job of any kind. `id` names it within its study; `identity` holds all on which its output depends, beside the sources:
    /// parameters, seeds, lengths. The code of `work` belongs into the file that calls this, or into one of
    /// [`Study::reading`](super::Study::reading): a change of these files is a change of the job.
    #[track_caller]
    pub fn new<T: Serialize>(
        id: impl Into<String>,
        identity: impl Into<String>,
        work: impl Fn() -> Result<T, String> + Send + Sync + 'static,
    ) -> Self {
        let (id, identity) = (id.into(), identity.into());
        let all = format!("{id}\n{identity}");
        Self {
            id,
            identity: format!("{:032x}", twox_hash::XxHash3_128::oneshot(all.as_bytes())),
            made_in: sources::name_of(Location::caller().file()),
            part: "",
            work: Work::Pure(Box::new(move || rounded(work()?))),
        }
    }

    /// A run of a point of a scenario. Its output is its [`RunResult`](ackline_lab::RunResult).
    pub fn scenario(id: impl Into<String>, scenario: &Arc<Scenario>, point: usize, repetition: u32) -> Self {
        let whole = Self::outcome(id, "result", scenario, point, repetition, |outcome| outcome.result);
        Self { made_in: None, ..whole }
    }

    /// The same, with what `read` takes from the run and its record. `reading` names what is taken; where `read` belongs, see
    /// [`new`](Self::new).
    #[track_caller]
    pub fn outcome<T: Serialize>(
        id: impl Into<String>,
        reading: &str,
        scenario: &Arc<Scenario>,
        point: usize,
        repetition: u32,
        read: impl Fn(Outcome) -> T + Send + Sync + 'static,
    ) -> Self {
        let identity = format!("{reading}\n{}", identity(scenario, point, repetition));
        let scenario = scenario.clone();
        let work =
            move || run_one(&scenario, point, repetition).map(&read).map_err(|error| error.to_string());
        Self::new(id, identity, work)
    }

    /// The same run by the real clock, on the stage of [`Options::live`](super::Options::live). Its output is a [`LiveRun`]. It is
    /// never taken from a cache, and runs by itself.
    pub fn live(id: impl Into<String>, scenario: &Arc<Scenario>, point: usize, repetition: u32) -> Self {
        let like = Self::outcome(id, "live", scenario, point, repetition, |outcome| outcome.result);
        let work = Work::Live { scenario: scenario.clone(), point, repetition };
        Self { made_in: None, work, ..like }
    }

    /// True if its output is that of one machine at one time.
    pub(super) const fn is_live(&self) -> bool {
        matches!(self.work, Work::Live { .. })
    }

    /// Its name within its study.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What its output depends on beside the sources, as 128 bits.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// The sources on which its output depends, as 128 bits.
    pub(super) fn code(&self, study: &dyn Study) -> String {
        let own = self.made_in.as_deref();
        let shared = study.reading().iter().copied().filter(|_| own.is_some());
        let files: Vec<&str> = own.into_iter().chain(shared).filter_map(sources::of_file).collect();
        let all = format!("{}\n{}", sources::ENGINE, files.join("\n"));
        format!("{:032x}", twox_hash::XxHash3_128::oneshot(all.as_bytes()))
    }

    /// True if the build script has seen the file in which it was made.
    #[cfg(test)]
    pub(super) fn is_recognised(&self) -> bool {
        self.made_in.as_deref().is_none_or(|file| sources::of_file(file).is_some())
    }

    /// Runs it; `live` is where runs by the real clock take place.
    pub(super) fn run(&self, live: Option<&dyn Stages>) -> Result<Done, String> {
        let begun = cpu_seconds();
        let work = || match &self.work {
            Work::Pure(work) => work(),
            Work::Live { scenario, point, repetition } => {
                let stages = live.ok_or("it is a run by the real clock, and there is no stage for it")?;
                rounded(by_the_clock(stages, scenario, *point, *repetition)?)
            }
        };
        // A panic is one job's failure: what others of hours of work gave is kept.
        let output = catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err("panicked; the message stands on standard error".to_owned()))?;
        Ok(Done { cpu_s: round_number(cpu_seconds() - begun, 3), output })
    }
}

/// A run that the machine kept up with, if one of a few tries is such a run.
fn by_the_clock(
    stages: &dyn Stages,
    scenario: &Scenario,
    point: usize,
    repetition: u32,
) -> Result<LiveRun, String> {
    let mut before = 0;
    loop {
        let outcome = run_one_on(stages, scenario, point, repetition).map_err(|error| error.to_string())?;
        let run = LiveRun { result: outcome.result, before };
        if run.faults().is_empty() || before + 1 == TRIES {
            return Ok(run);
        }
        before += 1;
    }
}

/// Ends a line of a scenario that states what was the default before: it keeps the run as it was, so it is no part of the run's
/// identity, and data that were made before remain those of this job.
const WAS_THE_DEFAULT: &str = "# was the default";

/// The lines of a text that say more than what was the default.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_end().ends_with(WAS_THE_DEFAULT))
}

/// The scenario's text, as an identity of jobs that run many of its points.
pub(crate) fn identity_of_all(scenario: &Scenario) -> String {
    lines(&scenario.to_toml()).flat_map(|line| [line, "\n"]).collect()
}

/// All on which a run depends beside the sources: the scenario without its comments, and the point of it.
fn identity(scenario: &Scenario, point: usize, repetition: u32) -> String {
    let text = lines(scenario.text()).map(str::trim);
    let text: Vec<&str> = text.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let params = scenario.params(point);
    let params: Vec<String> = params.iter().map(|param| format!("{}={}", param.path, param.value)).collect();
    let given = scenario.given().join("\n");
    format!("{}\n{given}\n{}\n{}", text.join("\n"), params.join("\n"), scenario.seed(repetition))
}

/// Processor time of this thread, s.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Significant digits that are kept of an output: what lies beyond says nothing, and makes the data twice as large.
const DIGITS: usize = 7;

/// An output as it is kept.
fn rounded(output: impl Serialize) -> Result<Value, String> {
    let mut value = serde_json::to_value(output).map_err(|error| error.to_string())?;
    round(&mut value);
    Ok(value)
}

/// Rounds each number that is not whole.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let exact = number.as_f64().filter(|_| number.is_f64()).filter(|number| number.fract() != 0.0);
            if let Some(rounded) = exact.and_then(|exact| Number::from_f64(round_number(exact, DIGITS))) {
                *number = rounded;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn round_number(exact: f64, digits: usize) -> f64 {
    format!("{exact:.*e}", digits - 1).parse().unwrap_or(exact)
}

/// The outputs of a study's jobs, by id.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    study: String,
    values: BTreeMap<String, Value>,
}

impl Outputs {
    pub(super) fn new(study: &str, values: BTreeMap<String, Value>) -> Self {
        Self { study: study.to_owned(), values }
    }

    /// The output of a job, as the type that its work gave.
    ///
    /// # Errors
    /// If no job had this id, or its output is of another type.
    pub fn get<T: DeserializeOwned>(&self, id: &str) -> Result<T, ReproduceError> {
        let fault = |message| ReproduceError::Study { study: self.study.clone(), message };
        let value = self.values.get(id).ok_or_else(|| fault(format!("there was no job {id:?}")))?;
        T::deserialize(value).map_err(|error| fault(format!("the output of job {id:?}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_keep_seven_digits_and_whole_numbers() {
        let mut value = serde_json::json!({ "a": [1.234_567_891, 123_456_789.0, 987_654_321_u64], "b": -0.000_123_456_789 });
        round(&mut value);
        assert_eq!(
            value,
            serde_json::json!({ "a": [1.234_568, 123_456_789.0, 987_654_321_u64], "b": -0.000_123_456_8 })
        );
    }

    #[test]
    fn comments_of_a_scenario_are_no_part_of_its_identity() {
        let parse = |text: &str| Scenario::parse(text, "s.toml").unwrap();
        let text = ackline_lab::EXAMPLES[0].text;
        let one = identity(&parse(text), 0, 0);
        assert_eq!(one, identity(&parse(&format!("# Words.\n\n{text}")), 0, 0));
        let older =
            text.replacen("\n\n", "\n\n[host] # was the default\nsched = \"fifo\"  # was the default\n\n", 1);
        assert_ne!(older, text);
        assert_eq!(one, identity(&parse(&older), 0, 0));
        assert_ne!(one, identity(&parse(&older.replace("# was the default", "")), 0, 0));
        assert_ne!(one, identity(&parse(text), 0, 1));
        let set = parse(text).with_set(["duration=900s"]).unwrap();
        assert_ne!(one, identity(&set, 0, 0));
    }
}
