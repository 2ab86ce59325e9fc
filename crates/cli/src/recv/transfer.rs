//! One connection's data into one output.

use super::target::Sink;
use crate::failure::Failure;
use crate::peer;
use crate::progress::Progress;
use ackline::runtime::TcpStream;
use std::fs::File;
use std::future::pending;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinHandle;

/// Bytes that one write hands to the file; the next ones are received while it runs.
const CHUNK: usize = 256 << 10;

/// Receives until the sender has finished, and gives the output its name. Where this is dropped or fails, the
/// output is deleted and the sender gets a reset.
pub(super) async fn receive(
    stream: &mut TcpStream,
    sink: Sink,
    progress: &Progress,
    timeout: Option<Duration>,
) -> Result<Option<PathBuf>, Failure> {
    let peer = stream.peer_addr();
    stream.set_linger(Some(Duration::ZERO));
    tokio::select! {
        whole = copy(stream, &sink, progress) => whole?,
        () = progress.stalled(timeout) => {
            return Err(peer::stalled(peer, progress.bytes(), None, timeout.unwrap_or_default()));
        }
    }
    // Before this side closes: a sender that waits for that knows that the file is there.
    let path = sink.finish()?;
    stream.set_linger(None);
    // Fails where the sender is gone already, which takes nothing away from the file.
    let _ = stream.shutdown().await;
    Ok(path)
}

/// Receives into one buffer while another is written.
async fn copy(stream: &mut TcpStream, sink: &Sink, progress: &Progress) -> Result<(), Failure> {
    let peer = stream.peer_addr();
    let mut filling = Vec::with_capacity(CHUNK);
    let mut writer = Writer { file: sink.file(), spare: Vec::with_capacity(CHUNK), busy: None };
    let mut at_end = false;
    while !at_end || writer.busy.is_some() || !filling.is_empty() {
        if writer.busy.is_none() && !filling.is_empty() {
            filling = writer.start(filling);
        }
        let room = CHUNK - filling.len();
        tokio::select! {
            biased;
            written = writer.done() => written.map_err(|error| sink.failure(&error))?,
            // Nothing is taken from the stream unless this branch completes.
            taken = stream.with_readable(|pieces| take(pieces, room, &mut filling)), if !at_end && room > 0 => {
                match taken {
                    Ok(0) => at_end = true,
                    Ok(taken) => progress.add(taken as u64),
                    Err(error) => return Err(peer::cut_short(peer, progress.bytes(), None, &error)),
                }
            }
        }
    }
    Ok(())
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

    /// Completes when what was begun is written; never where nothing was.
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
