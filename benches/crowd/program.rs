//! The program of both ends, whatever stack they run on: tasks of one thread, or of each shard's,
//! that read and write as applications do.

use crate::board::Board;
use crate::case::{Act, Asker, CHUNK};
use ackline_runtime::timer;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// A connection, and the runtime for its task.
pub(crate) type Placed<S> = (S, Handle);

/// A runtime that lives on the calling thread alone.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// The measured end: `open` opens connections.
pub(crate) async fn connect<S: Stream>(
    act: Act,
    board: Arc<Board>,
    open: impl AsyncFn() -> io::Result<Placed<S>>,
) -> io::Result<()> {
    let streams = gather(act, open).await?;
    match act {
        Act::Send { .. } => all(streams, |stream| source(stream, CHUNK)).await,
        Act::Receive { .. } => sinks(streams, board).await,
        Act::RoundTrip { asker: Asker::Task } => {
            beside(streams, |stream| ping(stream, board), |stream| source(stream, CHUNK)).await
        }
        Act::RoundTrip { asker: Asker::Main } => {
            let mut senders = streams;
            let (asker, _) = senders.swap_remove(0);
            tokio::select! {
                outcome = ping(asker, board) => outcome,
                outcome = all(senders, |stream| source(stream, CHUNK)) => outcome,
            }
        }
        Act::Write { bytes } => all(streams, |stream| source(stream, bytes)).await,
    }
}

/// The other end: `accept` accepts the same connections in the same order.
pub(crate) async fn serve<S: Stream>(
    act: Act,
    board: Arc<Board>,
    accept: impl AsyncFn() -> io::Result<Placed<S>>,
) -> io::Result<()> {
    let streams = gather(act, accept).await?;
    match act {
        Act::Receive { .. } => all(streams, |stream| source(stream, CHUNK)).await,
        Act::Send { .. } | Act::Write { .. } => sinks(streams, board).await,
        Act::RoundTrip { .. } => beside(streams, echo, |stream| sink(stream, 0, board.clone())).await,
    }
}

/// All connections, before any is used.
async fn gather<S>(act: Act, next: impl AsyncFn() -> io::Result<S>) -> io::Result<Vec<S>> {
    let mut streams = Vec::with_capacity(act.connections());
    for _ in 0..act.connections() {
        streams.push(next().await?);
    }
    Ok(streams)
}

type Task = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// Runs `alone` on the first connection and `others` on the rest.
async fn beside<S: Stream, A, O>(
    streams: Vec<Placed<S>>,
    alone: impl FnOnce(S) -> A,
    others: impl Fn(S) -> O,
) -> io::Result<()>
where
    A: Future<Output = io::Result<()>> + Send + 'static,
    O: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut streams = streams.into_iter();
    let alone = streams.next().map(|(stream, home)| (home, Box::pin(alone(stream)) as Task));
    let others = streams.map(|(stream, home)| (home, Box::pin(others(stream)) as Task));
    first(alone.into_iter().chain(others)).await
}

/// Runs `work` on all connections until one ends.
async fn all<S: Stream, F: Future<Output = io::Result<()>> + Send + 'static>(
    streams: Vec<Placed<S>>,
    mut work: impl FnMut(S) -> F,
) -> io::Result<()> {
    first(streams.into_iter().map(|(stream, home)| (home, work(stream)))).await
}

/// Runs futures as tasks, each in its place, until one ends.
async fn first<F: Future<Output = io::Result<()>> + Send + 'static>(
    futures: impl IntoIterator<Item = (Handle, F)>,
) -> io::Result<()> {
    let mut tasks = JoinSet::new();
    for (home, future) in futures {
        tasks.spawn_on(future, &home);
    }
    tasks.join_next().await.unwrap_or(Ok(Ok(())))?
}

async fn source<S: Stream>(mut stream: S, bytes: usize) -> io::Result<()> {
    static DATA: [u8; CHUNK] = [7; CHUNK];
    loop {
        stream.write_all(&DATA[..bytes]).await?;
    }
}

async fn sinks<S: Stream>(streams: Vec<Placed<S>>, board: Arc<Board>) -> io::Result<()> {
    let mut flows = 0..;
    all(streams, |stream| sink(stream, flows.next().unwrap_or(0), board.clone())).await
}

async fn sink<S: Stream>(mut stream: S, flow: usize, board: Arc<Board>) -> io::Result<()> {
    thread_local! {
        /// One for all connections of the thread.
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
    }
    loop {
        let read = poll_fn(|cx| {
            BUFFER.with_borrow_mut(|buffer| {
                let mut buffer = ReadBuf::new(buffer);
                Pin::new(&mut stream).poll_read(cx, &mut buffer).map_ok(|()| buffer.filled().len())
            })
        });
        match read.await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => board.add(flow, bytes),
        }
    }
}

async fn ping<S: Stream>(mut stream: S, board: Arc<Board>) -> io::Result<()> {
    loop {
        let start = timer::now();
        stream.write_all(&[7]).await?;
        stream.read_exact(&mut [0]).await?;
        board.round_trip(timer::now().since(start));
    }
}

async fn echo<S: Stream>(mut stream: S) -> io::Result<()> {
    loop {
        stream.read_exact(&mut [0]).await?;
        stream.write_all(&[7]).await?;
    }
}
