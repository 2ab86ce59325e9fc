//! Both directions of a connection between two streams, without a buffer in between.
//!
//! What a client has sent is written to the kernel's socket out of the stack's receive buffer, and
//! the kernel's socket is read into the stack's send buffer: what the destination does not take
//! stays where it is. Between two stacks go chunks.
//!
//! So each byte is copied once less than through a buffer between them, and what is not taken waits
//! where TCP's window sees it. The stack is locked during these system calls, none of which can
//! block. Two stacks exchange chunks because the lock of one inside that of the other could be a
//! deadlock.

use crate::backlog::{Backlog, BacklogShare};
use crate::counters::Count;
use crate::first_flight::FirstFlight;
use crate::outside::Stream;
use crate::shared::Shared;
use crate::throttle::{Gate, Pace, Turn};
use ackline_runtime::stream as inner;
use bytes::{Buf as _, Bytes};
use rustix::io::{Errno, ioctl_fionread, readv};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net;
use tokio::time::timeout;

/// Most that is read and written in one call.
const MOST: usize = 128 << 10;

/// A sender that was silent for this time no longer sends bulk data.
const SILENCE: Duration = Duration::from_secs(1);

/// A read of this size counts as bulk data: more will follow.
const BULK: usize = 16 << 10;

/// The part of a stream that is read.
trait Source {
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

/// The part of a stack's stream that is written, with what it may hold.
struct Destination<'a> {
    stream: inner::WriteHalf<'a>,
    backlog: &'a Backlog,
    /// What the stack's settings let it hold, in bytes, and what it may hold at present.
    usual: u32,
    limit: u32,
}

impl<'a> Destination<'a> {
    fn new(stream: inner::WriteHalf<'a>, backlog: &'a Backlog) -> io::Result<Self> {
        let usual = stream.as_ref().send_buffer_size()?;
        Ok(Self { stream, backlog, usual, limit: usual })
    }

    /// There is something to write. It waits for room until what this returns is dropped, in no
    /// more than its share.
    fn wait(&mut self) -> io::Result<BacklogShare<'a>> {
        let waiting = self.backlog.wait();
        let share = self.backlog.share(self.limit).min(self.usual);
        if share != self.limit {
            self.stream.as_ref().with_core(|conn, now| conn.set_send_buffer(now, share))?;
            self.limit = share;
        }
        Ok(waiting)
    }
}

/// What a client may send, in bytes: its share of what the device's queue holds, while it sends
/// bulk data.
struct Window<'a> {
    windows: &'a Backlog,
    /// What the stack's settings let it send, and what it may at present.
    usual: u32,
    limit: u32,
    /// Bytes since it was silent for [`SILENCE`].
    passed: usize,
    sending: Option<BacklogShare<'a>>,
}

impl<'a> Window<'a> {
    fn new(stream: &ackline_runtime::TcpStream, windows: &'a Backlog) -> io::Result<Self> {
        let usual = stream.recv_buffer_size()?;
        Ok(Self { windows, usual, limit: usual, passed: 0, sending: None })
    }

    /// Notes that `bytes` more have come on `stream`.
    fn on_data(&mut self, stream: &ackline_runtime::TcpStream, bytes: usize) -> io::Result<()> {
        self.passed = self.passed.saturating_add(bytes);
        if self.passed < BULK {
            return Ok(());
        }
        self.sending.get_or_insert_with(|| self.windows.wait());
        let share = self.windows.share(self.limit).min(self.usual);
        if share != self.limit {
            stream.set_recv_buffer_size(share)?;
            self.limit = share;
        }
        Ok(())
    }

    /// Waits for what comes next. If that takes long others have the share meanwhile.
    async fn next<T>(&mut self, coming: impl Future<Output = T>) -> T {
        let mut coming = pin!(coming);
        if self.sending.is_some() {
            if let Ok(came) = timeout(SILENCE, &mut coming).await {
                return came;
            }
            (self.passed, self.sending) = (0, None);
        }
        coming.await
    }
}

/// Passes both directions on, each to its own FIN, which is passed on. `first`: what the client has
/// sent already, or has to send; `early`: what the outside has sent already. `pace`: the rates that
/// both are held to.
///
/// # Errors
/// If one of the connections fails: what it was. Both must be reset then. Or if `first` chooses
/// another way.
pub(crate) async fn relay<'s>(
    inside: &mut ackline_runtime::TcpStream,
    outside: &mut Stream,
    first: FirstFlight<'_>,
    early: Vec<u8>,
    shared: &'s Shared,
    pace: &Pace<'s>,
) -> io::Result<()> {
    let window = Window::new(inside, &shared.windows)?;
    let (mut inside_read, inside_write) = inside.split();
    let inside_write = Destination::new(inside_write, &shared.backlog)?;
    let (up, down) = (&shared.counters.bytes_up, &shared.counters.bytes_down);
    let early = Bytes::from(early);
    match outside {
        Stream::Kernel(outside) => {
            let (outside_read, outside_write) = outside.split();
            let up = pin!(async {
                let first = first.pass(shared, &mut inside_read, pace).await?;
                out(inside_read, outside_write, first, window, up, pace.up()).await
            });
            both(up, pin!(back(outside_read, inside_write, early, down, pace))).await
        }
        Stream::Stack(outside) => {
            let (outside_read, outside_write) = outside.split();
            let outside_write = Destination::new(outside_write, &shared.backlog)?;
            let up = pin!(async {
                let first = first.pass(shared, &mut inside_read, pace).await?;
                hand_over(inside_read, outside_write, first, Some(window), up, || pace.up()).await
            });
            both(up, pin!(hand_over(outside_read, inside_write, early, None, down, || pace.down()))).await
        }
    }
}

/// Waits for both directions. Of one that has ended, the source is watched: its connection may
/// still fail.
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

/// What `ready` waits for, or an error if `from` fails meanwhile: nothing is read then that would
/// tell.
async fn unless_failed<R>(from: &impl Source, ready: impl Future<Output = io::Result<R>>) -> io::Result<R> {
    tokio::select! {
        biased;
        ready = ready => ready,
        () = from.failed() => Err(ErrorKind::ConnectionReset.into()),
    }
}

/// From the stack to the kernel, after `first`. Returns `from` when its end was passed on.
async fn out<'a>(
    mut from: inner::ReadHalf<'a>,
    mut to: net::tcp::WriteHalf<'_>,
    mut first: Bytes,
    mut window: Window<'_>,
    count: &Count,
    gate: Option<Gate<'_>>,
) -> io::Result<inner::ReadHalf<'a>> {
    while !first.is_empty() {
        let mut turn = turn(&from, gate, first.len()).await?;
        match write_from(to.as_ref(), [&first, &[]], most(&turn)) {
            Ok(passed) => {
                spend(&mut turn, passed);
                count.add(passed as u64);
                first.advance(passed);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                drop(turn);
                unless_failed(&from, to.writable()).await?;
            }
            Err(error) => return Err(error),
        }
    }
    loop {
        let mut turn = match gate {
            Some(_) => {
                let waiting = window.next(from.with_readable(|data| (0, length(data)))).await?;
                turn(&from, gate, waiting).await?
            }
            None => None,
        };
        let passed = from.with_readable(|data| {
            let passed = write_from(to.as_ref(), data, most(&turn));
            (passed.as_ref().map_or(0, |&passed| passed), passed)
        });
        match window.next(passed).await? {
            Ok(0) => {
                to.shutdown().await?;
                return Ok(from);
            }
            Ok(passed) => {
                spend(&mut turn, passed);
                count.add(passed as u64);
                window.on_data(from.as_ref(), passed)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                drop(turn);
                unless_failed(&from, to.writable()).await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// From the kernel to the stack. Returns `from` when its end was passed on.
async fn back<'a>(
    from: net::tcp::ReadHalf<'a>,
    mut to: Destination<'_>,
    mut early: Bytes,
    count: &Count,
    pace: &Pace<'_>,
) -> io::Result<net::tcp::ReadHalf<'a>> {
    give(&from, &mut to, &mut early, count, pace.down()).await?;
    let mut before = 0;
    loop {
        from.readable().await?;
        // Bulk data are not asked for their length. Of others there is memory for what there is,
        // and one byte: a socket that does not fill that has no more.
        let gate = pace.down();
        let is_bulk = before >= BULK && gate.is_none();
        let most = if is_bulk { MOST } else { (waiting_in(from.as_ref())? + 1).min(MOST) };
        let (most, mut turn) = match gate {
            Some(_) => {
                // What has its turn has room.
                let waiting = to.wait()?;
                unless_failed(&from, to.stream.writable()).await?;
                drop(waiting);
                let turn = turn(&from, gate, most).await?;
                (self::most(&turn), turn)
            }
            None => (most, None),
        };
        let mut passed = Err(ErrorKind::WouldBlock.into());
        let fill = |room: [&mut [u8]; 2]| {
            passed = read_into(from.as_ref(), room);
            passed.as_ref().map_or(0, |&passed| passed)
        };
        let waiting = to.wait()?;
        unless_failed(&from, to.stream.write_with(most, fill)).await?;
        drop(waiting);
        match passed {
            Ok(0) => {
                to.stream.shutdown().await?;
                return Ok(from);
            }
            Ok(passed) => {
                spend(&mut turn, passed);
                count.add(passed as u64);
                before = passed;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// From one stack to the other: neither is locked for what the other does. Returns `from` when its
/// end was passed on.
async fn hand_over<'a, 'g>(
    mut from: inner::ReadHalf<'a>,
    mut to: Destination<'_>,
    early: Bytes,
    mut window: Option<Window<'_>>,
    count: &Count,
    gate: impl Fn() -> Option<Gate<'g>>,
) -> io::Result<inner::ReadHalf<'a>> {
    let mut chunk = early;
    give(&from, &mut to, &mut chunk, count, gate()).await?;
    loop {
        // What is taken now has room there.
        let waiting = to.wait()?;
        unless_failed(&from, to.stream.writable()).await?;
        drop(waiting);
        let mut turn = match gate() {
            Some(gate) => {
                let readable = from.with_readable(|data| (0, length(data)));
                let waiting = in_window(&mut window, readable).await?;
                turn(&from, Some(gate), waiting).await?
            }
            None => None,
        };
        let next = in_window(&mut window, from.read_chunk(most(&turn))).await?;
        let Some(mut next) = next else {
            to.stream.shutdown().await?;
            return Ok(from);
        };
        spend(&mut turn, next.len());
        drop(turn);
        if let Some(window) = &mut window {
            window.on_data(from.as_ref(), next.len())?;
        }
        give(&from, &mut to, &mut next, count, None).await?;
    }
}

/// Waits for what comes next in `window`, if there is one.
async fn in_window<T>(window: &mut Option<Window<'_>>, coming: impl Future<Output = T>) -> T {
    match window {
        Some(window) => window.next(coming).await,
        None => coming.await,
    }
}

/// Writes all of `chunk`.
async fn give(
    from: &impl Source,
    to: &mut Destination<'_>,
    chunk: &mut Bytes,
    count: &Count,
    gate: Option<Gate<'_>>,
) -> io::Result<()> {
    while !chunk.is_empty() {
        let mut turn = turn(from, gate, chunk.len()).await?;
        let mut part = chunk.split_to(chunk.len().min(turn.as_ref().map_or(usize::MAX, Turn::left)));
        while !part.is_empty() {
            let waiting = to.wait()?;
            let taken = unless_failed(from, poll_fn(|cx| to.stream.poll_write_bytes(cx, &mut part))).await?;
            drop(waiting);
            spend(&mut turn, taken);
            count.add(taken as u64);
        }
    }
    Ok(())
}

/// Waits for the turn of the first of so many bytes of `from`, if there is a rate.
async fn turn<'t>(from: &impl Source, gate: Option<Gate<'t>>, bytes: usize) -> io::Result<Option<Turn<'t>>> {
    match gate {
        // A box of its own keeps the wait out of tasks without a rate.
        Some(gate) => Box::pin(unless_failed(from, async { Ok(Some(gate.turn(bytes).await)) })).await,
        None => Ok(None),
    }
}

/// Most that passes in one call, in this turn.
fn most(turn: &Option<Turn<'_>>) -> usize {
    turn.as_ref().map_or(MOST, Turn::left)
}

fn spend(turn: &mut Option<Turn<'_>>, bytes: usize) {
    if let Some(turn) = turn {
        turn.spend(bytes);
    }
}

fn length(data: [&[u8]; 2]) -> usize {
    data[0].len() + data[1].len()
}

/// Writes of `data` what the socket takes, `most` bytes: nothing if there is none.
///
/// # Errors
/// `WouldBlock` if it takes nothing; what the connection has failed with.
fn write_from(to: &net::TcpStream, data: [&[u8]; 2], most: usize) -> io::Result<usize> {
    let data = few(data, most);
    let len = length(data);
    if len == 0 {
        return Ok(0);
    }
    let data = data.map(IoSlice::new);
    let nothing = &mut SendAncillaryBuffer::default();
    at_once(to, Interest::WRITABLE, len, || sendmsg(to, &data, nothing, SendFlags::NOSIGNAL))
}

/// Reads into `room` what the socket has: nothing at the end.
///
/// # Errors
/// `WouldBlock` if it has nothing; what the connection has failed with.
fn read_into(from: &net::TcpStream, room: [&mut [u8]; 2]) -> io::Result<usize> {
    let len = room[0].len() + room[1].len();
    let mut room = room.map(IoSliceMut::new);
    at_once(from, Interest::READABLE, len, || readv(from, &mut room))
}

/// Bytes that the socket has.
fn waiting_in(socket: &net::TcpStream) -> io::Result<usize> {
    Ok(usize::try_from(ioctl_fionread(socket)?).unwrap_or(usize::MAX - 1))
}

/// Exchanges at most `len` bytes if the socket is ready. One that exchanges less has no more, and
/// need not be asked again to say so.
fn at_once(
    socket: &net::TcpStream,
    interest: Interest,
    len: usize,
    exchange: impl FnOnce() -> rustix::io::Result<usize>,
) -> io::Result<usize> {
    let mut exchanged = Err(Errno::WOULDBLOCK);
    // What it returns tells the socket whether it is still ready.
    let _ = socket.try_io(interest, || {
        exchanged = exchange();
        match exchanged {
            Ok(bytes) if bytes < len => Err(ErrorKind::WouldBlock.into()),
            outcome => Ok(outcome.map(drop)?),
        }
    });
    Ok(exchanged?)
}

/// The first `most` bytes.
fn few([first, second]: [&[u8]; 2], most: usize) -> [&[u8]; 2] {
    let first = &first[..first.len().min(most)];
    [first, &second[..second.len().min(most - first.len())]]
}
