//! What an application is told.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// After so long without news there will be none, unless a timer has backed off further.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// What a connection is asked at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// Both read to the end.
    Read,
    /// Both write twice.
    Write,
    /// The subject: whether everything was delivered (`flushed`, `SO_ERROR`).
    End,
}

impl Operation {
    pub(super) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::End];
}

/// Who is asked what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    Read,
    Write,
    End,
    PeerRead,
    PeerWrite,
}

/// What a cell's ends were told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report(pub(super) BTreeMap<Of, String>);

impl Report {
    pub(super) fn add(&mut self, more: Self) {
        self.0.extend(more.0);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (of, told)) in self.0.iter().enumerate() {
            write!(f, "{}{of:?} {told:?}", if place > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

pub(super) fn name(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ConnectionReset => "reset",
        ErrorKind::ConnectionAborted => "aborted",
        ErrorKind::BrokenPipe => "broken pipe",
        ErrorKind::TimedOut => "timed out",
        ErrorKind::NotConnected => "not connected",
        ErrorKind::NetworkDown => "network down",
        other => panic!("{other:?}: {error}"),
    }
}

/// Reads to the end: how much of the `expected` bytes came, and what then.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin), expected: usize, patience: Duration) -> String {
    let mut buffer = vec![0; 64 << 10];
    let mut got = 0;
    let end = loop {
        match timeout(patience, from.read(&mut buffer)).await {
            Ok(Ok(0)) => break "end",
            Ok(Ok(more)) => got += more,
            Ok(Err(error)) => break name(&error),
            Err(_) => break "open",
        }
    };
    match got {
        _ if expected == 0 => end.to_owned(),
        0 => format!("nothing, {end}"),
        _ if got < expected => format!("a part, {end}"),
        _ => format!("all, {end}"),
    }
}

/// Writes twice.
pub(super) async fn write(to: &mut (impl AsyncWrite + Unpin)) -> String {
    let first = write_once(to).await;
    // The peer may have an answer to what was sent.
    tokio::time::sleep(Duration::from_millis(200)).await;
    format!("{first}, {}", write_once(to).await)
}

async fn write_once(to: &mut (impl AsyncWrite + Unpin)) -> &'static str {
    match timeout(PATIENCE, to.write(b"x")).await {
        Ok(Ok(_)) => "ok",
        Ok(Err(error)) => name(&error),
        Err(_) => "full",
    }
}
