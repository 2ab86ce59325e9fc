//! What arrives on a connection, into a file.

use crate::transfer::progress::Progress;
use ackline::runtime::stream::ReadHalf;
use bytes::Bytes;
use std::fs::File;
use std::future::pending;
use std::io::{self, IoSlice, Write as _};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Bytes that one write hands to the file; the next ones are received while it runs.
const CHUNK: usize = 256 << 10;
/// Pieces that one write hands to the file: as many as `writev` takes.
const PIECES: usize = 1_024;

/// Why not everything was copied.
#[derive(Debug)]
pub(crate) enum CopyError {
    /// The connection failed. What had arrived before is written.
    Read(io::Error),
    /// The file took no more.
    Write(io::Error),
}

/// Receives to the end of the stream, some chunks while others are written.
pub(crate) async fn copy(
    from: &mut ReadHalf<'_>,
    to: &Arc<File>,
    progress: &Progress,
) -> Result<(), CopyError> {
    let mut filling = Pieces::default();
    let mut writer = Writer { file: to.clone(), busy: None };
    let mut at_end = None;
    while at_end.is_none() || writer.busy.is_some() || !filling.chunks.is_empty() {
        if writer.busy.is_none() && !filling.chunks.is_empty() {
            writer.start(std::mem::take(&mut filling));
        }
        let room = filling.room();
        tokio::select! {
            biased;
            written = writer.done() => written.map_err(CopyError::Write)?,
            // Nothing is taken from the stream unless this branch completes.
            taken = from.read_chunk(room), if at_end.is_none() && room > 0 => {
                match taken {
                    Ok(None) => at_end = Some(Ok(())),
                    Ok(Some(chunk)) => {
                        progress.add(chunk.len() as u64);
                        filling.push(chunk);
                    }
                    Err(error) => at_end = Some(Err(CopyError::Read(error))),
                }
            }
        }
    }
    at_end.unwrap_or(Ok(()))
}

/// What one write hands to the file.
#[derive(Debug, Default)]
struct Pieces {
    chunks: Vec<Bytes>,
    bytes: usize,
}

impl Pieces {
    /// Bytes that another chunk may have.
    fn room(&self) -> usize {
        if self.chunks.len() < PIECES { CHUNK.saturating_sub(self.bytes) } else { 0 }
    }

    fn push(&mut self, chunk: Bytes) {
        self.bytes += chunk.len();
        self.chunks.push(chunk);
    }

    /// Writes all of them.
    fn write_to(&self, mut file: &File) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = self.chunks.iter().map(|chunk| IoSlice::new(chunk)).collect();
        let mut left = &mut slices[..];
        while !left.is_empty() {
            match file.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Writes to a file on a thread that may block.
struct Writer {
    file: Arc<File>,
    busy: Option<JoinHandle<io::Result<()>>>,
}

impl Writer {
    /// Begins to write. Only while not busy.
    fn start(&mut self, pieces: Pieces) {
        let file = self.file.clone();
        self.busy = Some(tokio::task::spawn_blocking(move || pieces.write_to(&file)));
    }

    /// Completes when what was begun is written; never if nothing was begun.
    async fn done(&mut self) -> io::Result<()> {
        let Some(busy) = &mut self.busy else { return pending().await };
        let written = busy.await?;
        self.busy = None;
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Seek as _};

    #[test]
    fn pieces_are_written_in_order_and_bounded() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.room(), CHUNK);
        let mut expected = Vec::new();
        for number in 0..PIECES {
            assert!(pieces.room() > 0);
            let chunk = vec![number as u8; number % 7 + 1];
            expected.extend_from_slice(&chunk);
            pieces.push(chunk.into());
        }
        assert_eq!(pieces.room(), 0, "there are too many");
        let mut file = tempfile::tempfile().expect("a file");
        pieces.write_to(&file).expect("written");
        let mut written = Vec::new();
        file.rewind().expect("a file");
        file.read_to_end(&mut written).expect("read");
        assert!(written == expected);

        let mut one = Pieces::default();
        one.push(vec![0; CHUNK].into());
        assert_eq!(one.room(), 0, "there is too much");
        Pieces::default().write_to(&file).expect("nothing to write");
    }
}
