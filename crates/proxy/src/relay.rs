//! Both directions of a connection between two streams.

use crate::counters::{Count, Counters};
use crate::outside::Stream;
use ackline_runtime::stream as inner;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, Interest, ReadBuf};
use tokio::net;

/// Most that is read before it is written.
const CHUNK: usize = 64 << 10;

thread_local! {
    /// What a task has read and not written yet, within one poll. A connection has a buffer of its own only while its destination
    /// has taken less than was read, although it had room.
    static CHUNK_BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into_boxed_slice());
}

/// The part of a stream that is read.
trait Source: AsyncRead + Unpin {
    /// Waits until the connection has failed. One that ends without an error does not.
    async fn failed(&self);
}

impl Source for inner::ReadHalf<'_> {
    async fn failed(&self) {
        // An error of waiting is that the device has gone.
        let _ = self.ready(Interest::ERROR).await;
    }
}

impl Source for net::tcp::ReadHalf<'_> {
    async fn failed(&self) {
        let _ = self.ready(Interest::ERROR).await;
    }
}

/// The part that is written.
trait Destination: AsyncWrite + Unpin {
    /// Waits until a write would be taken, or fail.
    async fn writable(&self) -> io::Result<()>;
}

impl Destination for inner::WriteHalf<'_> {
    async fn writable(&self) -> io::Result<()> {
        self.writable().await
    }
}

impl Destination for net::tcp::WriteHalf<'_> {
    async fn writable(&self) -> io::Result<()> {
        self.writable().await
    }
}

/// Copies both directions, each to its own FIN, which is passed on. `early`: what the outside has sent already.
///
/// # Errors
/// If one of the connections fails: what it was. Both must be reset then.
pub(crate) async fn relay(
    inside: &mut ackline_runtime::TcpStream,
    outside: &mut Stream,
    early: Vec<u8>,
    counters: &Counters,
) -> io::Result<()> {
    let inside = inside.split();
    match outside {
        Stream::Kernel(outside) => between(inside, outside.split(), early, counters).await,
        Stream::Stack(outside) => between(inside, outside.split(), early, counters).await,
    }
}

/// The same between halves.
async fn between(
    (inside_read, inside_write): (impl Source, impl Destination),
    (outside_read, outside_write): (impl Source, impl Destination),
    early: Vec<u8>,
    counters: &Counters,
) -> io::Result<()> {
    let up = pin!(copy(inside_read, outside_write, vec![], &counters.bytes_up));
    let down = pin!(copy(outside_read, inside_write, early, &counters.bytes_down));
    both(up, down).await
}

/// Waits for both directions. Of one that has ended, the source is watched: its connection may still fail.
async fn both<A: Source, B: Source>(
    mut up: Pin<&mut impl Future<Output = io::Result<A>>>,
    mut down: Pin<&mut impl Future<Output = io::Result<B>>>,
) -> io::Result<()> {
    tokio::select! {
        ended = &mut up => rest(ended?, down).await,
        ended = &mut down => rest(ended?, up).await,
    }
}

/// Waits for the other direction.
async fn rest<A: Source, B: Source>(
    ended: A,
    other: Pin<&mut impl Future<Output = io::Result<B>>>,
) -> io::Result<()> {
    tokio::select! {
        outcome = other => outcome.map(drop),
        () = ended.failed() => Err(ErrorKind::ConnectionReset.into()),
    }
}

/// Copies `pending` and then what `from` reads, passes the end on, and returns `from`.
async fn copy<R: Source>(
    mut from: R,
    mut to: impl Destination,
    mut pending: Vec<u8>,
    count: &Count,
) -> io::Result<R> {
    loop {
        let mut written = 0;
        while written < pending.len() {
            // Nothing is read meanwhile that would tell of a failure.
            let more = tokio::select! {
                more = to.write(&pending[written..]) => more?,
                () = from.failed() => return Err(ErrorKind::ConnectionReset.into()),
            };
            if more == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            count.add(more as u64);
            written += more;
        }
        // What is read now has room there.
        tokio::select! {
            biased;
            writable = to.writable() => writable?,
            () = from.failed() => return Err(ErrorKind::ConnectionReset.into()),
        }
        match poll_fn(|cx| poll_pass(cx, &mut from, &mut to, count)).await? {
            Passed::All => pending = vec![],
            Passed::But(rest) => pending = rest,
            Passed::End => {
                to.shutdown().await?;
                return Ok(from);
            }
        }
    }
}

/// What became of what was read.
enum Passed {
    All,
    /// The destination has not taken this.
    But(Vec<u8>),
    /// There is no more.
    End,
}

/// Reads once, and writes at once what was read.
fn poll_pass(
    cx: &mut Context<'_>,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: &Count,
) -> Poll<io::Result<Passed>> {
    CHUNK_BUFFER.with_borrow_mut(|buffer| {
        let mut read = ReadBuf::new(buffer);
        ready!(Pin::new(from).poll_read(cx, &mut read))?;
        let data = read.filled();
        if data.is_empty() {
            return Poll::Ready(Ok(Passed::End));
        }
        let taken = match Pin::new(to).poll_write(cx, data) {
            Poll::Ready(taken) => taken?,
            Poll::Pending => 0,
        };
        count.add(taken as u64);
        let passed = if taken == data.len() { Passed::All } else { Passed::But(data[taken..].to_vec()) };
        Poll::Ready(Ok(passed))
    })
}
