//! Compressed JSON files, of which the same content gives the same bytes.

use ackline_lab::{RunError, write};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::Path;

/// Writes a file whole or not at all.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn save<T: Serialize>(path: &Path, content: &T) -> Result<(), RunError> {
    let fault = |error: io::Error| RunError::file("write", path, error);
    // The header has no time and no name.
    let mut encoder = GzEncoder::new(vec![], Compression::best());
    encoder
        .write_all(&serde_json::to_vec(content).map_err(io::Error::from).map_err(fault)?)
        .map_err(fault)?;
    write(path, &encoder.finish().map_err(fault)?).map_err(fault)
}

/// Reads one.
///
/// # Errors
/// If it is not there, cut short, damaged, or of something else.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let mut text = vec![];
    // Its checksum is compared at the end.
    GzDecoder::new(BufReader::new(File::open(path)?)).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
