//! Reading a trace, one record at a time.

use super::header::{FILE_SCHEMA, Header};
use super::record::Record;
use super::writer::RECORD_SEPARATOR;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fmt;
use std::io::{self, BufRead};

/// Most bytes of a record; longer ones are skipped.
const MAX_RECORD: usize = 64 << 10;

/// Why something is no trace.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// It could not be read.
    Io(io::Error),
    /// It does not begin with the header of a trace.
    NotATrace,
    /// qlog, but of another kind: that it is named here.
    OtherSchema(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotATrace => {
                write!(f, "not a trace: it does not begin with a record separator (1e) and a header of qlog")
            }
            Self::OtherSchema(schema) => {
                write!(f, "a qlog file of \"{schema}\"; \"{FILE_SCHEMA}\" is needed")
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::NotATrace | Self::OtherSchema(_) => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a trace as it comes, in memory for one record: an iterator of its records.
///
/// A file need not be whole: a last record that is cut off is left out, and damaged ones are
/// skipped to the next separator (RFC 7464, section 2.1).
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    /// Of the current record.
    text: Vec<u8>,
    unknown: u64,
    damaged: u64,
    truncated: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If `input` cannot be read, or is no trace.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        if !matches!(input.fill_buf()?, [RECORD_SEPARATOR, ..]) {
            return Err(ReadError::NotATrace);
        }
        input.consume(1);
        let mut text = vec![];
        read_text(&mut input, &mut text)?;
        let header: Header = serde_json::from_slice(&text).map_err(|_| ReadError::NotATrace)?;
        if header.file_schema != FILE_SCHEMA {
            return Err(ReadError::OtherSchema(header.file_schema));
        }
        Ok(Self { input, header, text, unknown: 0, damaged: 0, truncated: false })
    }

    /// What the file says of itself.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Records so far whose events are not [ours](super::Event).
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Records so far that were skipped because they are not what the format asks for.
    pub const fn damaged(&self) -> u64 {
        self.damaged
    }

    /// True if the last record is cut off.
    pub const fn is_truncated(&self) -> bool {
        self.truncated
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<io::Result<Record>> {
        loop {
            let is_last = match read_text(&mut self.input, &mut self.text) {
                Ok(Some(is_last)) => is_last,
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            };
            // Separators may follow one another.
            if self.text.is_empty() {
                continue;
            }
            match serde_json::from_slice(&self.text) {
                Ok(record) => return Some(Ok(record)),
                Err(_) if is_last && !self.text.ends_with(b"\n") => self.truncated = true,
                Err(_) if serde_json::from_slice::<AnyEvent>(&self.text).is_ok() => self.unknown += 1,
                Err(_) => self.damaged += 1,
            }
        }
    }
}

/// Any event of qlog.
#[derive(Deserialize)]
struct AnyEvent {
    #[serde(rename = "time")]
    _time: f64,
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "data")]
    _data: IgnoredAny,
}

/// Reads a text and the separator behind it; the separator before it has been read. True if it is
/// the last one, `None` if there is none. Of one that is too long, the beginning.
fn read_text(input: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<Option<bool>> {
    text.clear();
    let mut is_there = false;
    loop {
        let bytes = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            return Ok(is_there.then_some(true));
        }
        is_there = true;
        let end = bytes.iter().position(|byte| *byte == RECORD_SEPARATOR);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        text.extend_from_slice(&part[..part.len().min(MAX_RECORD - text.len())]);
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(false));
        }
    }
}
