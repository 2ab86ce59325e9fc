//! The files of one study.
//!
//! ```text
//!   STEM.md STEM.json     the page, and the document with every check
//!   STEM/*.svg            figures
//!   data/STEM.json.gz     the output of every job, if jobs were run
//! ```

use super::json::to_json_pretty;
use crate::data::Data;
use crate::result::StudyResult;
use crate::study::Study;
use ackline_lab::{RunError, unfinished, write};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of data within one of pages.
const DATA: &str = "data";

/// Writes page, document and figures. Gives the files.
pub(crate) fn save(out: &Path, done: &StudyResult, page: &str) -> Result<Vec<PathBuf>, RunError> {
    let stem = done.study.paper().stem;
    let mut files = vec![];
    let mut save = |name: String, content: &[u8]| {
        let path = out.join(name);
        write(&path, content).map_err(|error| RunError::file("write", &path, error))?;
        files.push(path);
        Ok::<(), RunError>(())
    };
    make(out)?;
    if !done.reproduction.figures.is_empty() {
        make(&out.join(stem))?;
    }
    for figure in &done.reproduction.figures {
        let name = format!("{stem}/{}.{}", figure.name(), done.plot.format.ending());
        save(name, &figure.to_file(&done.plot))?;
    }
    save(format!("{stem}.json"), to_json_pretty(done).as_bytes())?;
    save(format!("{stem}.md"), page.as_bytes())?;
    Ok(files)
}

/// Writes the data of a study's run. Gives the file.
pub(crate) fn save_data(out: &Path, study: &dyn Study, data: &Data) -> Result<PathBuf, RunError> {
    let folder = out.join(DATA);
    make(&folder)?;
    data.save(&folder, study)?;
    Ok(Data::path(&folder, study))
}

/// Makes a folder, or takes the one that is there, without what killed processes left in it.
fn make(path: &Path) -> Result<(), RunError> {
    fs::create_dir_all(path).map_err(|error| RunError::file("make the folder", path, error))?;
    unfinished::delete_leftovers(path, |_| true);
    Ok(())
}
