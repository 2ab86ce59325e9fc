//! Outputs of jobs that were run before, by content: what a job is, and the sources that decide
//! what it gives.
//!
//! ```text
//!   DIR/papers/IDENTITY-CODE.json.gz     one file per job
//! ```
//!
//! Any number of processes can share the folder; files are written whole and never changed. Nothing
//! is deleted: to make room, delete the folder. A file that cannot be read counts as none.

use super::archive;
use crate::job::{Job, JobOutput};
use ackline_lab::{RunError, unfinished};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of outputs.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    /// Files by the identities of their jobs, whatever the code.
    known: BTreeMap<String, PathBuf>,
}

/// What became of a look-up.
pub(crate) enum Lookup {
    /// The output.
    Done(JobOutput),
    /// There is none.
    Nothing,
    /// There is a file, which is damaged.
    Unreadable,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    /// The job, for people.
    job: String,
    identity: String,
    #[serde(flatten)]
    done: JobOutput,
}

impl Cache {
    /// The folder within `parent`, made if it is not there.
    pub(crate) fn open(parent: &Path) -> Result<Self, RunError> {
        let folder = parent.join("papers");
        fs::create_dir_all(&folder).map_err(|error| RunError::file("make the folder", &folder, error))?;
        unfinished::delete_leftovers(&folder, |_| true);
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if let Some((identity, _)) = name.to_str().and_then(|name| name.split_once('-')) {
                known.insert(identity.to_owned(), entry.path());
            }
        }
        Ok(Self { folder, known })
    }

    fn path(&self, job: &Job, code: &str) -> PathBuf {
        self.folder.join(format!("{}-{code}.json.gz", job.identity()))
    }

    /// The output of a job that this code gave.
    pub(crate) fn find(&self, job: &Job, code: &str) -> Lookup {
        let path = self.path(job, code);
        match archive::load::<Entry>(&path) {
            Ok(entry) if entry.identity == job.identity() => Lookup::Done(entry.done),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Lookup::Nothing,
            _ => Lookup::Unreadable,
        }
    }

    /// What the job took when it was run last, with whatever code.
    pub(crate) fn estimate(&self, job: &Job) -> Option<f64> {
        let entry: Entry = archive::load(self.known.get(job.identity())?).ok()?;
        Some(entry.done.cpu_s)
    }

    /// Keeps an output.
    pub(crate) fn keep(&self, study: &str, job: &Job, code: &str, done: &JobOutput) -> Result<(), RunError> {
        let entry = Entry {
            job: format!("{study} {}", job.id()),
            identity: job.identity().to_owned(),
            done: done.clone(),
        };
        archive::save(&self.path(job, code), &entry)
    }
}
