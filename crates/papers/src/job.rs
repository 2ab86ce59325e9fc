//! Jobs: the independent pieces of a study's work.

use super::error::ReproduceError;
use super::sources;
use ackline_lab::results::RunResult;
use ackline_lab::stage::Stages;
use ackline_lab::{Outcome, Scenario, run_one, run_one_on, simulation};
use ackline_netsim::{LinkId, Observer, Packet, PacketEvent};
use ackline_tcp_core::Instant;
use rustix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use twox_hash::XxHash3_128;

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

/// A job that takes longer is sampled by the beginning of its run that takes so long, s of
/// processor time.
pub(super) const LONG_S: f64 = 0.8;

/// The beginning of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Beginning {
    /// Virtual time at which it ends, ms.
    pub(super) until_ms: u64,
    /// Of every packet that arrived anywhere until then.
    pub(super) digest: String,
}

/// What a job gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct JobOutput {
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
    /// The run of a scenario that it reads, if it is one: point and repetition.
    reads: Option<(Arc<Scenario>, usize, u32)>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, identity, made_in, part, work: _, reads: _ } = self;
        let mut text = f.debug_struct("Job");
        text.field("id", id).field("identity", identity).field("made_in", made_in).field("part", part);
        text.finish_non_exhaustive()
    }
}

impl Job {
    /// A job of any kind. `id` names it within its study; `identity` holds all on which its output
    /// depends, beside the sources: parameters, seeds, lengths. The code of `work` belongs into the
    /// file that calls this, or into one of [`Study::reading`](super::Study::reading): a change of
    /// these files is a change of the job.
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
            identity: format!("{:032x}", XxHash3_128::oneshot(all.as_bytes())),
            made_in: sources::name_of(Location::caller().file()),
            part: "",
            work: Work::Pure(Box::new(move || rounded(work()?))),
            reads: None,
        }
    }

    /// A run of a point of a scenario. Its output is its [`RunResult`](ackline_lab::RunResult).
    pub fn scenario(id: impl Into<String>, scenario: &Arc<Scenario>, point: usize, repetition: u32) -> Self {
        let whole = Self::outcome(id, "result", scenario, point, repetition, |outcome| outcome.result);
        Self { made_in: None, ..whole }
    }

    /// The same, with what `read` takes from the run and its record. `reading` names what is taken;
    /// where `read` belongs, see [`new`](Self::new).
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
        let reads = Some((scenario.clone(), point, repetition));
        let scenario = scenario.clone();
        let work =
            move || run_one(&scenario, point, repetition).map(&read).map_err(|error| error.to_string());
        Self { reads, ..Self::new(id, identity, work) }
    }

    /// The same run by the real clock, on the stage of [`Options::live`](super::Options::live). Its
    /// output is a [`LiveRun`]. It is never taken from a cache, and runs by itself.
    pub fn live(id: impl Into<String>, scenario: &Arc<Scenario>, point: usize, repetition: u32) -> Self {
        let like = Self::outcome(id, "live", scenario, point, repetition, |outcome| outcome.result);
        let work = Work::Live { scenario: scenario.clone(), point, repetition };
        Self { made_in: None, work, ..like }
    }

    /// True if its output is that of one machine at one time.
    pub(super) const fn is_live(&self) -> bool {
        matches!(self.work, Work::Live { .. })
    }

    /// True if it is a run that can end early.
    pub(super) const fn can_begin(&self) -> bool {
        self.reads.is_some()
    }

    /// The beginning of its run, up to a virtual time in ms; without one as much of it as
    /// [`LONG_S`] of processor time give.
    pub(super) fn begin(&self, until_ms: Option<u64>) -> Result<Beginning, String> {
        let (scenario, point, repetition) = self.reads.as_ref().ok_or("it is no run of a scenario")?;
        let mut sim = simulation(scenario, *point, *repetition).map_err(|error| error.to_string())?;
        let packets = sim.add_observer(Packets::default());
        let begun = cpu_seconds();
        let mut ms = until_ms.unwrap_or(0);
        sim.run_until(Instant::from_millis(ms));
        while until_ms.is_none() && cpu_seconds() - begun < LONG_S && sim.next_at().is_some() {
            ms += STEP_MS;
            sim.run_until(Instant::from_millis(ms));
        }
        let digest = sim.take_observer::<Packets>(packets).map(|packets| packets.0.finish_128());
        Ok(Beginning { until_ms: ms, digest: format!("{:032x}", digest.unwrap_or_default()) })
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

    /// The sources on which its output depends, as 128 bits. `reading` is that of its study.
    pub(super) fn code(&self, reading: &[&str]) -> String {
        let own = self.made_in.as_deref();
        let shared = reading.iter().copied().filter(|_| own.is_some());
        let files: Vec<&str> = own.into_iter().chain(shared).filter_map(sources::of_file).collect();
        let all = format!("{}\n{}", sources::ENGINE, files.join("\n"));
        format!("{:032x}", XxHash3_128::oneshot(all.as_bytes()))
    }

    /// True if the build script has seen the file in which it was made.
    #[cfg(test)]
    pub(super) fn is_recognised(&self) -> bool {
        self.made_in.as_deref().is_none_or(|file| sources::of_file(file).is_some())
    }

    /// Runs it; `live` is where runs by the real clock take place.
    pub(super) fn run(&self, live: Option<&dyn Stages>) -> Result<JobOutput, String> {
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
        Ok(JobOutput { cpu_s: round_number(cpu_seconds() - begun, 3), output })
    }
}

/// The beginnings of runs end at multiples of this.
const STEP_MS: u64 = 50;

/// A digest of every packet that arrives anywhere, with its instant, its link and its length.
#[derive(Default)]
struct Packets(XxHash3_128);

impl fmt::Debug for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packets").finish_non_exhaustive()
    }
}

impl Observer for Packets {
    fn watches_departures(&self, _: LinkId) -> bool {
        false
    }

    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        if event == PacketEvent::Delivered {
            self.0.write(&now.as_nanos().to_le_bytes());
            self.0.write(&(link.index() as u64).to_le_bytes());
            self.0.write(&(packet.len() as u64).to_le_bytes());
        }
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

/// Ends a line of a scenario that states what was the default before: it keeps the run as it was,
/// so it is no part of the run's identity, and data that were made before remain those of this job.
const WAS_THE_DEFAULT: &str = "# was the default";

/// The lines of a text that say more than what was the default.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_end().ends_with(WAS_THE_DEFAULT))
}

/// The scenario's text, as an identity of jobs that run many of its points.
pub(crate) fn identity_of_all(scenario: &Scenario) -> String {
    lines(&scenario.to_toml()).flat_map(|line| [line, "\n"]).collect()
}

/// All on which a run depends beside the sources: the scenario without its comments, and the point
/// of it.
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

/// Significant digits that are kept of an output: what lies beyond says nothing, and makes the data
/// twice as large.
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
    fn the_beginning_of_a_run_is_the_same_each_time_and_another_one_with_another_setting() {
        let begin = |set: &str, until_ms| {
            let parsed = Scenario::parse(ackline_lab::EXAMPLES[0].text, "s.toml").unwrap();
            let scenario = Arc::new(parsed.with_set(Some(set).filter(|set| !set.is_empty())).unwrap());
            Job::scenario("a", &scenario, 0, 0).begin(until_ms).unwrap()
        };
        let first = begin("", Some(2_000));
        assert_eq!(begin("", Some(2_000)), first);
        assert_ne!(begin("", Some(1_000)).digest, first.digest);
        assert_ne!(begin("conn.initial_window=3", Some(2_000)).digest, first.digest);
        let chosen = begin("", None);
        assert_eq!(begin("", Some(chosen.until_ms)), chosen);
        assert!(chosen.until_ms > 0);
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
