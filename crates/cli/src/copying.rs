//! What arrives on a connection, into a file.

use crate::progress::Progress;
use ackline::runtime::stream::ReadHalf;
use std::fs::File;
use std::future::pending;
use std::io::{self, Write as _};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Bytes that one write hands to the file; the next ones are received while it runs.
const CHUNK: usize = 256 << 10;

/// Why not everything was copied.
#[derive(Debug)]
pub(crate) enum CopyError {
    /// The connection failed. What had arrived before is written.
    Read(io::Error),
    /// The file took no more.
    Write(io::Error),
}

/// Receives to the end of the stream, into one buffer while another is written.
pub(crate) async fn copy(
    from: &mut ReadHalf<'_>,
    to: &Arc<File>,
    progress: &Progress,
) -> Result<(), CopyError> {
    let mut filling = Vec::with_capacity(CHUNK);
    let mut writer = Writer { file: to.clone(), spare: Vec::with_capacity(CHUNK), busy: None };
    let mut at_end = None;
    while at_end.is_none() || writer.busy.is_some() || !filling.is_empty() {
        if writer.busy.is_none() && !filling.is_empty() {
            filling = writer.start(filling);
        }
        let room = CHUNK - filling.len();
        tokio::select! {
            biased;
            written = writer.done() => written.map_err(CopyError::Write)?,
            // Nothing is taken from the stream unless this branch completes.
            taken = from.with_readable(|pieces| take(pieces, room, &mut filling)), if at_end.is_none() && room > 0 => {
                match taken {
                    Ok(0) => at_end = Some(Ok(())),
                    Ok(taken) => progress.add(taken as u64),
                    Err(error) => at_end = Some(Err(CopyError::Read(error))),
                }
            }
        }
    }
    at_end.unwrap_or(Ok(()))
}

/// Moves at most `room` bytes; says how many twice: to the stream, and to the caller.
fn take(pieces: [&[u8]; 2], room: usize, into: &mut Vec<u8>) -> (usize, usize) {
    let before = into.len();
    for piece in pieces {
        let left = room - (into.len() - before);
        into.extend_from_slice(&piece[..piece.len().min(left)]);
    }
    (into.len() - before, into.len() - before)
}

/// Writes to a file on a thread that may block.
struct Writer {
    file: Arc<File>,
    spare: Vec<u8>,
    busy: Option<JoinHandle<(Vec<u8>, io::Result<()>)>>,
}

impl Writer {
    /// Begins to write `data`; returns an empty buffer. Only while not busy.
    fn start(&mut self, data: Vec<u8>) -> Vec<u8> {
        let file = self.file.clone();
        self.busy = Some(tokio::task::spawn_blocking(move || {
            let written = (&*file).write_all(&data);
            (data, written)
        }));
        std::mem::take(&mut self.spare)
    }

    /// Completes when what was begun is written; never if nothing was begun.
    async fn done(&mut self) -> io::Result<()> {
        let Some(busy) = &mut self.busy else { return pending().await };
        let (mut buffer, written) = busy.await?;
        self.busy = None;
        buffer.clear();
        self.spare = buffer;
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is_room() {
        let mut into = b"ab".to_vec();
        assert_eq!(take([b"cd", b"efg"], 3, &mut into), (3, 3));
        assert_eq!(into, b"abcde");
        assert_eq!(take([b"", b""], 3, &mut into), (0, 0));
        assert_eq!(take([b"xyz", b"w"], 2, &mut into), (2, 2));
        assert_eq!(into, b"abcdexy");
    }
}
