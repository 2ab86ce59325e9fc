//! One end of the demo's connections on an ackline stack.

use super::payload::{Checker, Payload};
use super::{ReceivedStream, SentStream};
use crate::report::policies::ConnPolicies;
use crate::transfer::progress::Progress;
use crate::transfer::traffic::PathSampler;
use ackline::core::Instant;
use ackline::runtime::{TcpStream, timer};
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

/// Bytes that are made or checked in one go, under the stack's lock and in the second-level cache.
const BITE: usize = 128 << 10;

/// Longest time between two looks at a connection.
const LOOK: Duration = Duration::from_millis(100);

/// Sends all of `payload`, whose time began at `started`, and waits until the other end has
/// acknowledged it.
pub(super) async fn send(
    mut stream: TcpStream,
    mut payload: Payload,
    started: Instant,
    progress: &Progress,
) -> io::Result<SentStream> {
    let mut sampler = PathSampler::default();
    loop {
        let now = timer::now();
        if payload.is_finished(now) {
            break;
        }
        // Behind a slow shaper a full buffer leaves for seconds, and is looked at meanwhile.
        if let Ok(written) = timeout(LOOK, stream.write_with(BITE, |pieces| payload.fill(pieces))).await {
            written?;
        }
        if sampler.is_due(now) {
            look(&stream, &mut sampler, progress)?;
        }
    }
    stream.shutdown().await?;
    loop {
        let flushed = timeout(LOOK, stream.flushed()).await;
        look(&stream, &mut sampler, progress)?;
        if let Ok(flushed) = flushed {
            flushed?;
            break;
        }
    }
    Ok(SentStream {
        bytes: payload.sent().bytes(),
        digest: payload.sent().digest(),
        started,
        path: sampler.path(),
        policies: ConnPolicies::of(&stream),
    })
}

/// Takes what the connection says about itself: the path, and how much of the data has arrived.
fn look(stream: &TcpStream, sampler: &mut PathSampler, progress: &Progress) -> io::Result<()> {
    let info = stream.info()?;
    progress.set(info.bytes_acked);
    sampler.take_info(timer::now(), &info);
    Ok(())
}

/// Receives to the end.
pub(super) async fn receive(mut stream: TcpStream, progress: &Progress) -> io::Result<ReceivedStream> {
    let mut checker = Checker::new();
    loop {
        let count = stream
            .with_readable(|pieces| {
                let mut left = BITE;
                for piece in pieces {
                    let part = &piece[..piece.len().min(left)];
                    checker.update(part);
                    left -= part.len();
                }
                (BITE - left, BITE - left)
            })
            .await?;
        if count == 0 {
            break;
        }
        progress.add(count as u64);
    }
    let finished = timer::now();
    let policies = ConnPolicies::of(&stream);
    stream.shutdown().await?;
    Ok(ReceivedStream { bytes: checker.bytes(), digest: checker.digest(), finished, policies })
}
