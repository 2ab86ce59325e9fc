//! A file of records that ends with a whole one: if it cannot be written, its last records make
//! room for one that says so.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Bytes that are written at once, and at most a record more. A disk that is full then costs as
/// much.
pub(crate) const CHUNK: usize = 32 << 10;
/// Room for the last record of a file, which says what was counted.
pub(crate) const LAST_RECORD: u64 = 512;

/// Why a file ended before its stack.
#[derive(Debug)]
#[non_exhaustive]
pub enum EarlyEnd {
    /// The file has reached its size.
    FileSize,
    /// A file could not be written.
    Error(io::Error),
}

impl fmt::Display for EarlyEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileSize => f.write_str("the file has reached its size"),
            Self::Error(error) => error.fmt(f),
        }
    }
}

/// Records that were not written, or were taken back.
#[derive(Debug)]
pub(crate) struct LostRecords {
    pub(crate) records: u64,
    pub(crate) error: io::Error,
}

/// A file that is being written. Its user buffers whole records, and says where they begin.
#[derive(Debug)]
pub(crate) struct RecordFile {
    file: File,
    /// Where each record in the user's buffer begins.
    starts: Vec<usize>,
    /// Bytes that are in the file.
    written: u64,
    /// Where a record begins behind which there is room for the last record, and the number of
    /// records before it.
    safe: (u64, u64),
    /// Records in the file.
    records: u64,
}

impl RecordFile {
    /// Creates a file that begins with `head`, which is no record and stays in any case. A new one
    /// can be read by its owner alone, for it holds what others have said.
    pub(crate) fn create(path: &Path, head: &[u8]) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        options.mode(0o600);
        let mut file = options.open(path)?;
        file.write_all(head)?;
        let written = head.len() as u64;
        Ok(Self { file, starts: vec![], written, safe: (written, 0), records: 0 })
    }

    /// A record begins at `start` of the buffer.
    pub(crate) fn begin(&mut self, start: usize) {
        self.starts.push(start);
    }

    /// True if the file with `pending` bytes of buffer leaves room for the last record below
    /// `limit`.
    pub(crate) const fn has_room(&self, pending: usize, limit: u64) -> bool {
        self.written + pending as u64 + LAST_RECORD <= limit
    }

    /// Records in the file.
    pub(crate) const fn records(&self) -> u64 {
        self.records
    }

    /// Writes the buffer. If that fails, takes back the last records, so that there is room for a
    /// last one on a full disk.
    pub(crate) fn write(&mut self, buffer: &[u8]) -> Result<(), LostRecords> {
        if let Err(error) = self.file.write_all(buffer) {
            let had = self.records + self.starts.len() as u64;
            self.starts.clear();
            // A pipe has nothing to take back.
            let _ = self.take_back();
            return Err(LostRecords { records: had - self.records, error });
        }
        let end = self.written + buffer.len() as u64;
        let after = self.starts.iter().rposition(|start| self.written + *start as u64 + LAST_RECORD <= end);
        if let Some(index) = after {
            self.safe = (self.written + self.starts[index] as u64, self.records + index as u64);
        }
        self.records += self.starts.len() as u64;
        self.written = end;
        self.starts.clear();
        Ok(())
    }

    fn take_back(&mut self) -> io::Result<()> {
        let (end, records) = self.safe;
        self.file.set_len(end)?;
        self.file.seek(SeekFrom::Start(end))?;
        (self.written, self.records) = (end, records);
        Ok(())
    }
}
