//! What a run leaves in files: opened before the program starts, named once it has ended.

use crate::args::emulate::EmulateArgs;
use crate::failure::Failure;
use ackline_lab::unfinished::Unfinished;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The files that are asked for. If the run fails none of them is left.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) json: Option<ResultFile>,
    pub(super) pcap: Option<ResultFile>,
}

impl Files {
    pub(super) fn open(args: &EmulateArgs) -> Result<Self, Failure> {
        let (json, pcap) = (args.json.as_deref(), args.pcap.as_deref());
        if let (Some(json), Some(pcap)) = (json, pcap)
            && json == pcap
        {
            let file = json.display();
            return Err(Failure::usage(format!(
                "--json {file}: --pcap has the same file; give each its own"
            )));
        }
        let open = |option, path: Option<&Path>| path.map(|path| ResultFile::open(option, path)).transpose();
        Ok(Self { json: open("--json", json)?, pcap: open("--pcap", pcap)? })
    }

    /// All have been written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        [self.pcap, self.json].into_iter().flatten().try_for_each(ResultFile::finish)
    }
}

/// One file.
#[derive(Debug)]
pub(super) struct ResultFile {
    option: &'static str,
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// It replaces what has its name once it is complete.
    Whole(Unfinished),
    /// A pipe or a device.
    Stream(File),
}

impl ResultFile {
    fn open(option: &'static str, path: &Path) -> Result<Self, Failure> {
        let is_stream = fs::metadata(path).is_ok_and(|found| !found.is_file());
        let kind = if is_stream {
            OpenOptions::new().write(true).open(path).map(Kind::Stream)
        } else {
            Unfinished::create(path).map(Kind::Whole)
        };
        match kind {
            Ok(kind) => Ok(Self { option, path: path.to_owned(), kind }),
            Err(error) => Err(refused(option, path, &error)),
        }
    }

    /// Another handle of the same file, for a writer of its own.
    pub(super) fn writer(&self) -> Result<File, Failure> {
        self.file().try_clone().map_err(|error| self.refused(&error))
    }

    /// Writes the content at once.
    pub(super) fn write(&self, content: &str) -> Result<(), Failure> {
        self.file().write_all(content.as_bytes()).map_err(|error| self.refused(&error))
    }

    fn finish(self) -> Result<(), Failure> {
        let Self { option, path, kind } = self;
        match kind {
            Kind::Whole(unfinished) => {
                unfinished.finish(&path).map_err(|error| refused(option, &path, &error))
            }
            Kind::Stream(_) => Ok(()),
        }
    }

    /// The failure to write it.
    pub(super) fn refused(&self, error: &io::Error) -> Failure {
        refused(self.option, &self.path, error)
    }

    const fn file(&self) -> &File {
        match &self.kind {
            Kind::Whole(unfinished) => unfinished.file(),
            Kind::Stream(file) => file,
        }
    }
}

fn refused(option: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::file("write", format_args!("{option} {}", path.display()), error)
}
