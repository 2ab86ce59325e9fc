//! A program on workers that never meets the stack's lock: the stack has a thread of its own, with
//! a task for each stream, to which a queue of chunks leads. The program copies into chunks, or out
//! of them.

use super::ackline::COPY;
use super::{Meter, runtime};
use ackline::TcpStream;
use bytes::Bytes;
use std::future::pending;
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::thread;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Chunks that wait in a queue: as many as a turn of the driver moves.
const ROOM: usize = 16;

/// The stack's thread, for as long as the process runs.
pub(super) fn thread_of_the_stack() -> io::Result<Handle> {
    let runtime = runtime()?;
    let handle = runtime.handle().clone();
    thread::spawn(move || runtime.block_on(pending::<()>()));
    Ok(handle)
}

pub(super) async fn source(mut stream: TcpStream) -> io::Result<()> {
    let (queue, mut chunks) = mpsc::channel(ROOM);
    let sending = stream.runtime().clone().spawn(async move {
        while let Some(chunk) = chunks.recv().await {
            stream.write_bytes(chunk).await?;
        }
        Ok(())
    });
    let data = vec![7; COPY];
    while queue.send(Bytes::copy_from_slice(&data)).await.is_ok() {}
    sending.await?
}

pub(super) async fn sink(mut stream: TcpStream, meter: Arc<Meter>) -> io::Result<()> {
    let (queue, mut chunks) = mpsc::channel::<Bytes>(ROOM);
    let receiving = stream.runtime().clone().spawn(async move {
        while let Some(chunk) = stream.read_chunk(COPY).await?
            && queue.send(chunk).await.is_ok()
        {}
        Err(io::ErrorKind::UnexpectedEof.into())
    });
    let mut data = vec![0; COPY];
    while let Some(chunk) = chunks.recv().await {
        data[..chunk.len()].copy_from_slice(&chunk);
        black_box(&mut data);
        meter.add(chunk.len() as u64);
    }
    receiving.await?
}
