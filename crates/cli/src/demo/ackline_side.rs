//! One end of the demo's connections on an ackline stack.

use super::payload::{Checker, Payload};
use super::{Received, Sent};
use crate::progress::Progress;
use crate::traffic::PathSampler;
use ackline::runtime::{TcpStream, timer};
use std::io;
use tokio::io::AsyncWriteExt as _;

/// Bytes that are made or checked in one go, under the stack's lock and in the second-level cache.
const BITE: usize = 128 << 10;

/// Sends all of `payload` and waits until the other end has acknowledged it.
pub(super) async fn send(
    mut stream: TcpStream,
    mut payload: Payload,
    progress: &Progress,
) -> io::Result<Sent> {
    let started = timer::now();
    let mut sampler = PathSampler::default();
    loop {
        let now = timer::now();
        if payload.is_finished(now) {
            break;
        }
        let count = stream.write_with(BITE, |pieces| payload.fill(pieces)).await?;
        progress.add(count as u64);
        if sampler.is_due(now) {
            sampler.take_info(now, &stream.info()?);
        }
    }
    stream.shutdown().await?;
    stream.flushed().await?;
    sampler.take_info(timer::now(), &stream.info()?);
    Ok(Sent { bytes: payload.sent().bytes(), digest: payload.sent().digest(), started, path: sampler.path() })
}

/// Receives to the end.
pub(super) async fn receive(mut stream: TcpStream, progress: &Progress) -> io::Result<Received> {
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
    stream.shutdown().await?;
    Ok(Received { bytes: checker.bytes(), digest: checker.digest(), finished })
}
