//! One connection's data into one output.

use super::target::Sink;
use crate::failure::Failure;
use crate::network::peer;
use crate::transfer::copying::{CopyError, copy};
use crate::transfer::progress::Progress;
use ackline::runtime::TcpStream;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// Receives until the sender has finished, and gives the output its name. If this is dropped or
/// fails, the output is deleted, and the sender gets the reset for which the caller has set the
/// linger time to zero.
pub(super) async fn receive(
    stream: &mut TcpStream,
    sink: Sink,
    progress: &Progress,
    timeout: Option<Duration>,
) -> Result<Option<PathBuf>, Failure> {
    let (_, peer) = stream.addresses();
    let (file, (mut from_peer, _)) = (sink.file(), stream.split());
    tokio::select! {
        whole = copy(&mut from_peer, &file, progress) => whole.map_err(|error| match error {
            CopyError::Read(error) => peer::cut_short(peer, progress.bytes(), None, &error),
            CopyError::Write(error) => sink.failure(&error),
        })?,
        () = progress.stalled(timeout) => {
            return Err(peer::stalled(peer, progress.bytes(), None, timeout.unwrap_or_default()));
        }
    }
    // Before this side closes: a sender that waits for that knows that the file is there.
    let path = sink.finish()?;
    let _ = stream.set_linger(None);
    // Fails if the sender is gone already, which takes nothing away from the file.
    let _ = stream.shutdown().await;
    Ok(path)
}
