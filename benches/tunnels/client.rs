//! What the clients do.

use crate::board::Board;
use crate::ending::{Ending, Side};
use crate::net::client;
use crate::service::{self, Service};
use ackline::core::Duration;
use ackline_runtime::timer;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A connection that has no byte back by then has failed.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Connects as the client with this number.
async fn connect(number: usize, service: Service) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((client(number), 0)))?;
    let stream = socket.connect(SocketAddr::from(service.address())).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A connection that got a byte back, and the time from `connect()` until then.
async fn connect_and_ask(number: usize) -> io::Result<(TcpStream, Duration)> {
    let began = timer::now();
    let ask = async {
        let mut stream = connect(number, Service::Echo).await?;
        stream.write_all(&[7]).await?;
        stream.read_exact(&mut [0]).await?;
        Ok::<_, io::Error>(stream)
    };
    let stream = timeout(PATIENCE, ask).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    Ok((stream, timer::now().since(began)))
}

/// Waits until a connection gets through: everything has started.
pub(crate) async fn await_terminator() -> io::Result<()> {
    connect_and_ask(0).await.map(drop)
}

/// Bulk data on so many flows, until the tasks are dropped.
pub(crate) async fn bulk(upload: bool, flows: usize, board: &Arc<Board>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for number in 0..flows {
        let board = board.clone();
        tasks.spawn(async move {
            // A flow that fails is missing in the result.
            let _ = if upload {
                match connect(number, Service::Sink).await {
                    Ok(stream) => service::source(stream).await,
                    Err(error) => Err(error),
                }
            } else {
                match connect(number, Service::Source).await {
                    Ok(stream) => service::sink(stream, &board).await,
                    Err(error) => Err(error),
                }
            };
        });
    }
    tasks
}

/// Connections one after the other, so many at a time, until the tasks are dropped.
pub(crate) fn connects(at_a_time: usize, board: &Arc<Board>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for number in 0..at_a_time {
        let board = board.clone();
        tasks.spawn(async move {
            loop {
                let took = connect_and_ask(number).await.ok().map(|(_, took)| took);
                board.connection(took);
                if took.is_none() {
                    // A refusal takes no time, and nobody else would have a turn.
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    tasks
}

/// So many connections at the same moment.
pub(crate) async fn burst(clients: usize, board: &Arc<Board>) {
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        let board = board.clone();
        tasks.spawn(async move {
            board.connection(connect_and_ask(number).await.ok().map(|(_, took)| took));
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// So many connections that stay, of which this many are opened at a time.
pub(crate) async fn idle(connections: usize, at_a_time: usize) -> Vec<TcpStream> {
    let mut tasks = JoinSet::new();
    let mut streams = Vec::with_capacity(connections);
    for number in 0..connections {
        if tasks.len() >= at_a_time {
            streams.extend(tasks.join_next().await.into_iter().flatten().flatten());
        }
        tasks.spawn(async move { connect_and_ask(number).await.map(|(stream, _)| stream) });
    }
    while let Some(outcome) = tasks.join_next().await {
        streams.extend(outcome.into_iter().flatten());
    }
    streams
}

/// Connections that end in one way: how many did so at the client in time.
pub(crate) async fn end(ending: Ending) -> usize {
    let mut tasks = JoinSet::new();
    for number in 0..Ending::EACH {
        tasks.spawn(timeout(Ending::IN_TIME, async move {
            let mut stream = connect(number, Service::End(ending)).await?;
            ending.play(Side::Client, &mut stream).await
        }));
    }
    let mut ended = 0;
    while let Some(outcome) = tasks.join_next().await {
        ended += usize::from(matches!(outcome, Ok(Ok(Ok(())))));
    }
    ended
}
