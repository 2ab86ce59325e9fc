//! The connections that carry data: tasks that send or receive as fast as they can, in the
//! connections' own buffers, and counters that others read.

mod goal;
mod pace;
mod payload;

pub(super) use goal::Goal;
pub(super) use pace::{Bitrate, Restarts};

use ackline::runtime::stream::{OwnedReadHalf, OwnedWriteHalf};
use ackline::runtime::{Info, TcpStream};
use pace::Pace;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::task::JoinSet;

/// How data is sent, the same for each stream of a test.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    /// Bytes per write.
    pub(super) block: usize,
    pub(super) bitrate: Option<Bitrate>,
    pub(super) restarts: Restarts,
    /// Both ends know that the test is over: whoever is stopped from here on ends what it sent with
    /// a FIN.
    pub(super) ended: Arc<AtomicBool>,
}

/// What the task of a stream has come to.
pub(super) struct Stopped {
    /// Of the stream, as the protocol counts them.
    pub(super) id: u32,
    /// `Ok`: a sender has sent what was asked for, or a receiver has met the end of the stream.
    pub(super) outcome: io::Result<()>,
}

/// A connection that carries data one way. Dropping it resets the connection.
pub(super) struct DataStream {
    /// As the protocol counts: 1, 3, 4, 5 and so on.
    pub(super) id: u32,
    /// This end sends.
    pub(super) sends: bool,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// What the application gave to TCP, or got from it.
    moved: Arc<AtomicU64>,
    halves: Halves,
}

/// The half that works goes to a task; the other one answers questions.
enum Halves {
    Idle(TcpStream),
    Working(Idle),
    /// Between two states.
    Gone,
}

enum Idle {
    Read(OwnedReadHalf),
    Write(Sender),
}

/// A half that sends a FIN only once the test has ended, wherever it is dropped before.
struct Sender {
    half: Option<OwnedWriteHalf>,
    ended: Arc<AtomicBool>,
}

impl Sender {
    fn half(&mut self) -> io::Result<&mut OwnedWriteHalf> {
        self.half.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn info(&self) -> io::Result<Info> {
        self.half.as_ref().map_or_else(|| Err(io::ErrorKind::NotConnected.into()), OwnedWriteHalf::info)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if let Some(half) = self.half.take()
            && !self.ended.load(Ordering::Relaxed)
        {
            half.forget();
        }
    }
}

impl DataStream {
    /// The `index`th of a test, from 0.
    pub(super) fn new(index: u32, sends: bool, stream: TcpStream) -> Self {
        // Whatever is under way when a test is over is of no use to anybody.
        let _ = stream.set_zero_linger();
        let (local, remote) = stream.addresses();
        Self {
            id: Self::id_of(index),
            sends,
            local,
            remote,
            moved: Arc::new(AtomicU64::new(0)),
            halves: Halves::Idle(stream),
        }
    }

    /// The protocol's number of the `index`th stream from 0: there is no 2.
    pub(super) const fn id_of(index: u32) -> u32 {
        if index == 0 { 1 } else { index + 2 }
    }

    /// The number that people see, as between two iperf3 that have nothing else open.
    pub(super) const fn shown(&self) -> u32 {
        if self.id == 1 { 5 } else { 2 * self.id + 1 }
    }

    /// Begins to send or to receive, as a task of `tasks` beside the connection's driver.
    pub(super) fn start(&mut self, sending: &Sending, goal: &Arc<Goal>, tasks: &mut JoinSet<Stopped>) {
        let Halves::Idle(stream) = std::mem::replace(&mut self.halves, Halves::Gone) else { return };
        let beside = stream.runtime().clone();
        let (read, write) = stream.into_split();
        let write = Sender { half: Some(write), ended: sending.ended.clone() };
        let (id, moved, goal) = (self.id, self.moved.clone(), goal.clone());
        if self.sends {
            self.halves = Halves::Working(Idle::Read(read));
            let sending = sending.clone();
            let work = async move {
                let outcome = send(write, &sending, &goal, &moved).await;
                Stopped { id, outcome }
            };
            tasks.spawn_on(work, &beside);
        } else {
            self.halves = Halves::Working(Idle::Write(write));
            let work = async move {
                let outcome = receive(read, &goal, &moved).await;
                Stopped { id, outcome }
            };
            tasks.spawn_on(work, &beside);
        }
    }

    /// What the application gave to TCP, or got from it, in bytes.
    pub(super) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// The connection as it is.
    pub(super) fn info(&self) -> io::Result<Info> {
        match &self.halves {
            Halves::Idle(stream) => stream.info(),
            Halves::Working(Idle::Read(half)) => half.info(),
            Halves::Working(Idle::Write(half)) => half.info(),
            Halves::Gone => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

async fn send(mut half: Sender, sending: &Sending, goal: &Goal, moved: &AtomicU64) -> io::Result<()> {
    let mut pace = sending.bitrate.map(|bitrate| Pace::new(bitrate, sending.restarts.clone()));
    while goal.claim(sending.block as u64) {
        if let Some(pace) = &mut pace {
            pace.wait(sending.block as u64).await;
        }
        let mut left = sending.block;
        while left > 0 {
            let sent = half.half()?.write_with(left, |room| payload::put(room, left)).await?;
            moved.fetch_add(sent as u64, Ordering::Relaxed);
            left = left.saturating_sub(sent);
        }
    }
    Ok(())
}

async fn receive(mut half: OwnedReadHalf, goal: &Goal, moved: &AtomicU64) -> io::Result<()> {
    loop {
        let take = |pieces: [&[u8]; 2]| {
            let there = pieces[0].len() + pieces[1].len();
            (there, there)
        };
        let received = half.with_readable(take).await? as u64;
        if received == 0 {
            return Ok(());
        }
        moved.fetch_add(received, Ordering::Relaxed);
        goal.received(received);
    }
}
