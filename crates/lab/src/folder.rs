//! The folder of a batch: what is finished stays, and a file is there as a whole or not at all.
//!
//! ```text
//!   scenario.toml   the scenario, with what was set beside it
//!   origin.json     its name, what was set beside it, its seed, and the version of ackline
//!   runs/           one JSON file per finished run, by point and repetition
//!   runs.jsonl      all of them, one per line
//!   flows.csv queues.csv summary.csv summary.md summary.txt
//!   series/ plots/ pcap/ report.html   if asked for
//! ```

use crate::error::RunError;
use crate::results::RunResult;
use crate::run_plots::RunPlots;
use crate::scenario::Scenario;
use crate::unfinished::{self, Unfinished};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// A folder for results.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

/// Files that a run leaves beside its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extras {
    pub(crate) series: bool,
    pub(crate) plots: bool,
    pub(crate) pcap: bool,
    /// Bytes that the capture keeps of each packet; `None`: all.
    #[serde(default)]
    pub(crate) snap_length: Option<NonZeroU32>,
}

impl Extras {
    /// True if a run that left these files need not be run again for those that are wanted.
    pub(crate) fn covers(self, wanted: Self) -> bool {
        let same_capture = self.pcap && self.snap_length == wanted.snap_length;
        (self.series || !wanted.series) && (self.plots || !wanted.plots) && (same_capture || !wanted.pcap)
    }

    /// The folders of these files, and whether a run has one there.
    pub(crate) const fn folders(self) -> [(&'static str, bool); 3] {
        [("series", self.series), ("plots", self.plots), ("pcap", self.pcap)]
    }
}

/// A file of `runs/`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Finished {
    /// Hash of all on which the result depends.
    pub(crate) key: String,
    pub(crate) extras: Extras,
    pub(crate) result: RunResult,
}

/// `origin.json`: of what the folder holds results.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The version of ackline.
    pub(crate) version: String,
    /// Name of the scenario: its file.
    pub(crate) scenario: String,
    /// What was set beside its text.
    pub(crate) set: Vec<String>,
    /// The first seed.
    pub(crate) seed: u64,
    /// Name of the [stage](crate::stage::Stages::name).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) stage: String,
}

impl Origin {
    pub(crate) fn of(scenario: &Scenario, stage: &str) -> Self {
        Self {
            stage: stage.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: scenario.name().to_owned(),
            set: scenario.given().to_vec(),
            seed: scenario.seed(0),
        }
    }
}

/// The name of a run's files.
pub(crate) fn stem(point: usize, repetition: u32) -> String {
    format!("p{point:04}-r{repetition:03}")
}

/// The file with a run's plots as data.
fn plots_of(stem: &str) -> String {
    format!("plots/{stem}.json")
}

/// What a run on a stage depends on, as 128 bits.
pub(crate) fn key(stage: &str, scenario: &Scenario, point: usize, repetition: u32) -> String {
    let identity = stage.to_owned() + &scenario.identity(point, repetition);
    format!("{:032x}", twox_hash::XxHash3_128::oneshot(identity.as_bytes()))
}

impl Folder {
    /// Makes the folder if it is not there.
    pub(crate) fn create(root: &Path) -> Result<Self, RunError> {
        let folder = Self::at(root);
        make(root)?;
        folder.make("runs")?;
        Ok(folder)
    }

    /// A folder for anything. It is made with the first folder in it.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes a folder in it, or takes the one that is there, without what killed processes left in
    /// it.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf, RunError> {
        let path = self.root.join(name);
        make(&path)?;
        Ok(path)
    }

    /// Writes a file below the folder: under another name first, which is then changed.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), RunError> {
        let path = self.root.join(name);
        write(&path, content).map_err(|error| RunError::file("write", &path, error))
    }

    /// A finished run of the scenario, if it is there, whole, and of this very text, values, seed
    /// and version.
    pub(crate) fn run(&self, key: &str, point: usize, repetition: u32) -> Option<Finished> {
        let stem = stem(point, repetition);
        let text = fs::read_to_string(self.root.join(format!("runs/{stem}.json"))).ok()?;
        let finished: Finished = serde_json::from_str(&text).ok()?;
        (finished.key == key).then_some(finished)
    }

    /// Writes of what the folder holds results.
    pub(crate) fn begin(&self, scenario: &Scenario, stage: &str) -> Result<(), RunError> {
        self.write("scenario.toml", scenario.to_toml().as_bytes())?;
        self.write("origin.json", (json(&Origin::of(scenario, stage)) + "\n").as_bytes())
    }

    /// Of what the folder holds results, and the scenario's text.
    pub(crate) fn origin(&self) -> Result<(Origin, String), RunError> {
        let read = |name: &str| {
            let path = self.root.join(name);
            let text = fs::read_to_string(&path).map_err(|error| RunError::file("read", &path, error))?;
            Ok::<_, RunError>((path, text))
        };
        let (path, text) = read("origin.json")?;
        let origin: Origin = serde_json::from_str(&text).map_err(|error| RunError::Content {
            path,
            message: format!("this is not what ackline sim --out writes: {error}"),
        })?;
        let (_, text) = read("scenario.toml")?;
        let lines = text.split_inclusive('\n').skip(origin.set.len());
        Ok((origin, lines.collect()))
    }

    /// Copies what a run has in one of the folders beside `runs`.
    pub(crate) fn copy_of_run(&self, name: &str, stem: &str, into: &Self) -> Result<(), RunError> {
        let path = self.root.join(name);
        let entries = fs::read_dir(&path).map_err(|error| RunError::file("read the folder", &path, error))?;
        let prefix = format!("{stem}.");
        for entry in entries.filter_map(Result::ok) {
            let file = entry.file_name();
            if !file
                .to_str()
                .is_some_and(|file| file.starts_with(&prefix) && !file.ends_with(unfinished::ENDING))
            {
                continue;
            }
            let (from, to) = (path.join(&file), into.root.join(name).join(&file));
            let copied =
                File::open(&from).map_err(|error| RunError::file("read", &from, error)).map(|mut from| {
                    let unfinished = Unfinished::create(&to)?;
                    io::copy(&mut from, &mut unfinished.file())?;
                    unfinished.finish(&to)
                })?;
            copied.map_err(|error| RunError::file("write", &to, error))?;
        }
        Ok(())
    }

    /// Keeps the plots of a run as data, so that they can be drawn again in another size or format.
    pub(crate) fn keep_plots(&self, stem: &str, plots: &RunPlots) -> Result<(), RunError> {
        self.write(&plots_of(stem), json(plots).as_bytes())
    }

    /// The plots of a run; `None` if they are not there as a whole.
    pub(crate) fn plots(&self, stem: &str) -> Option<RunPlots> {
        let text = fs::read_to_string(self.root.join(plots_of(stem))).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub(crate) fn finish(
        &self,
        stem: &str,
        key: &str,
        extras: Extras,
        result: &RunResult,
    ) -> Result<(), RunError> {
        let finished = Finished { key: key.to_owned(), extras, result: result.clone() };
        self.write(&format!("runs/{stem}.json"), json(&finished).as_bytes())
    }
}

fn make(path: &Path) -> Result<(), RunError> {
    fs::create_dir_all(path).map_err(|error| RunError::file("make the folder", path, error))?;
    unfinished::delete_leftovers(path, |_| true);
    Ok(())
}

/// Writes a file that is there as a whole or not at all.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = Unfinished::create(path)?;
    unfinished.file().write_all(content)?;
    unfinished.finish(path)
}

/// One line of JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    // Plain data with text keys; only those fail to serialise that are not.
    serde_json::to_string(value).unwrap_or_default()
}

/// Reads the results of a folder that [`run`](crate::run()) has written.
///
/// # Errors
/// If it has no `runs.jsonl`, or one that does not hold results.
pub fn load(folder: &Path) -> Result<Vec<RunResult>, RunError> {
    let path = folder.join("runs.jsonl");
    let text = fs::read_to_string(&path).map_err(|error| RunError::file("read", &path, error))?;
    let lines = text.lines().enumerate();
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| RunError::Content {
                path: path.clone(),
                message: format!("line {} is no result of a run: {error}", number + 1),
            })
        })
        .collect()
}
