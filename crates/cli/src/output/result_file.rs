//! A file with results: tried before the work, named once it is complete.

use crate::failure::Failure;
use ackline_lab::unfinished::Unfinished;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// One file.
#[derive(Debug)]
pub(crate) struct ResultFile {
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
    pub(crate) fn open(option: &'static str, path: &Path) -> Result<Self, Failure> {
        Self::open_as(option, path, Unfinished::create)
    }

    /// [`Self::open`] for what others have said: nobody but the file's owner can read it.
    pub(crate) fn open_private(option: &'static str, path: &Path) -> Result<Self, Failure> {
        Self::open_as(option, path, Unfinished::create_private)
    }

    fn open_as(
        option: &'static str,
        path: &Path,
        create: fn(&Path) -> io::Result<Unfinished>,
    ) -> Result<Self, Failure> {
        let is_stream = fs::metadata(path).is_ok_and(|found| !found.is_file());
        let kind = if is_stream {
            OpenOptions::new().write(true).open(path).map(Kind::Stream)
        } else {
            create(path).map(Kind::Whole)
        };
        match kind {
            Ok(kind) => Ok(Self { option, path: path.to_owned(), kind }),
            Err(error) => Err(refused(option, path, &error)),
        }
    }

    /// Another handle of the same file, for a writer of its own.
    pub(crate) fn writer(&self) -> Result<File, Failure> {
        self.file().try_clone().map_err(|error| self.refused(&error))
    }

    /// Writes the content at once.
    pub(crate) fn write(&self, content: &str) -> Result<(), Failure> {
        self.file().write_all(content.as_bytes()).map_err(|error| self.refused(&error))
    }

    /// It has been written.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self { option, path, kind } = self;
        match kind {
            Kind::Whole(unfinished) => {
                unfinished.finish(&path).map_err(|error| refused(option, &path, &error))
            }
            Kind::Stream(_) => Ok(()),
        }
    }

    /// The failure to write it.
    pub(crate) fn refused(&self, error: &io::Error) -> Failure {
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
