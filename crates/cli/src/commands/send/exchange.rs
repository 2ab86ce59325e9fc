//! Moves the data of a connection that `send` has opened: the source to the peer, and what the peer
//! says to standard output or nowhere.

use super::Tally;
use super::source::{Chunks, Source};
use crate::failure::Failure;
use crate::network::peer;
use crate::output::numbers::bytes;
use crate::transfer::copying::{CopyError, copy};
use ackline::runtime::TcpStream;
use ackline::runtime::stream::{ReadHalf, WriteHalf};
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;

/// Time for a peer whose answer nobody wants to close its side after it has acknowledged
/// everything.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// Time between two looks at what the peer has acknowledged: half of that between two pictures of
/// the progress bar.
const LOOK: Duration = Duration::from_millis(100);

/// What becomes of the peer's answer.
pub(super) enum Answer {
    /// It is read, because a peer that nobody reads may stop listening, too.
    Dropped,
    /// It goes to this file, which is standard output.
    Into(Arc<File>),
}

/// Why the exchange ended early.
pub(super) enum Trouble {
    /// The connection failed before everything was acknowledged.
    Sending(io::Error),
    /// The connection failed in the middle of the answer.
    Receiving(io::Error),
    /// A file could not be read or written.
    File(Failure),
}

impl Trouble {
    pub(super) fn failure(self, peer: SocketAddr, total: Option<u64>, tally: &Tally) -> Failure {
        match self {
            Self::Sending(error) => peer::cut_short(peer, tally.acknowledged.bytes(), total, &error),
            Self::Receiving(error) => {
                let failure = peer::lost(peer, &error);
                let far = bytes(tally.answered.bytes());
                Failure::new(failure.exit, format!("{failure} after {far} of its answer"))
            }
            Self::File(failure) => failure,
        }
    }
}

/// Sends everything and waits until the peer has it; then, if its answer is wanted, until that has
/// ended, too. An answer whose reader goes away is wanted no more.
pub(super) async fn exchange(
    stream: &mut TcpStream,
    source: Source,
    answer: Answer,
    tally: &Tally,
) -> Result<(), Trouble> {
    let wanted = matches!(answer, Answer::Into(_));
    let unwanted = Notify::new();
    let (mut from_peer, mut to_peer) = stream.split();
    let mut sending = std::pin::pin!(send(&mut to_peer, source, tally));
    let mut receiving = std::pin::pin!(receive(&mut from_peer, answer, tally, &unwanted));
    let mut peer_has_closed = false;
    loop {
        tokio::select! {
            biased;
            sent = &mut sending => match sent {
                Ok(()) => break,
                Err(Trouble::Sending(error)) => {
                    // What came before the end is the peer's word on why.
                    if wanted && !peer_has_closed {
                        let _ = tokio::time::timeout(CLOSE_WAIT, receiving).await;
                    }
                    return Err(Trouble::Sending(error));
                }
                other => return other,
            },
            received = &mut receiving, if !peer_has_closed => match received {
                Ok(()) => peer_has_closed = true,
                Err(Trouble::Receiving(error)) => return Err(Trouble::Sending(error)),
                other => return other,
            }
        }
    }
    tally.all_acknowledged();
    if peer_has_closed {
        return Ok(());
    }
    if wanted {
        tokio::select! {
            biased;
            received = &mut receiving => return received,
            () = unwanted.notified() => {}
        }
    }
    // A peer that keeps its side open, or resets it, has all the data nevertheless.
    let _ = tokio::time::timeout(CLOSE_WAIT, receiving).await;
    Ok(())
}

async fn send(to_peer: &mut WriteHalf<'_>, source: Source, tally: &Tally) -> Result<(), Trouble> {
    let mut chunks = Chunks::of(source);
    loop {
        let chunk = {
            let mut next = std::pin::pin!(chunks.next());
            loop {
                tokio::select! {
                    biased;
                    chunk = &mut next => break chunk,
                    () = tokio::time::sleep(LOOK) => tally.look(to_peer),
                }
            }
        };
        let Some(mut rest) = chunk.map_err(Trouble::File)? else { break };
        while !rest.is_empty() {
            let taken = poll_fn(|cx| to_peer.poll_write_bytes(cx, &mut rest));
            if let Ok(taken) = tokio::time::timeout(LOOK, taken).await {
                taken.map_err(Trouble::Sending)?;
            }
            tally.look(to_peer);
        }
    }
    to_peer.shutdown().await.map_err(Trouble::Sending)?;
    let flushed = loop {
        if let Ok(flushed) = tokio::time::timeout(LOOK, to_peer.flushed()).await {
            break flushed;
        }
        tally.look(to_peer);
    };
    flushed.map_err(Trouble::Sending)
}

async fn receive(
    from_peer: &mut ReadHalf<'_>,
    answer: Answer,
    tally: &Tally,
    unwanted: &Notify,
) -> Result<(), Trouble> {
    if let Answer::Into(file) = answer {
        match copy(from_peer, &file, &tally.answered).await {
            Ok(()) => return Ok(()),
            Err(CopyError::Read(error)) => return Err(Trouble::Receiving(error)),
            Err(CopyError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                unwanted.notify_one()
            }
            Err(CopyError::Write(error)) => {
                let failure = Failure::file("write to", "standard output", &error);
                return Err(Trouble::File(failure));
            }
        }
    }
    let mut buffer = [0; 4096];
    while from_peer.read(&mut buffer).await.map_err(Trouble::Receiving)? > 0 {}
    Ok(())
}
