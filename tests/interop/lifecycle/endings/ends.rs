//! A cell's connections: how they get into the cell, and what happens to them there.

use super::cell::{Cell, Data, Event, SubjectState};
use super::outcome::{self, Of, Operation, PATIENCE, Report};
use crate::support::{KERNEL4, STACK4, World};
use ackline::Registry;
use ackline_runtime::kernel::KernelTcpInfo;
use ackline_runtime::testing::set_deaf;
use ackline_tcp_core::{AcceptConfig, ListenOn, State};
use rustix::net::sockopt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net;
use tokio::time::Instant;

/// What the subject writes that the peer cannot take, and what is written otherwise.
const MUCH: usize = 100_000;
const LITTLE: usize = 1_000;

/// Of the subject if it is the event's.
const USER_TIMEOUT: Duration = Duration::from_millis(500);
/// `SO_LINGER` knows whole seconds.
const LINGER: Duration = Duration::from_secs(1);

/// Whose socket the subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Stack,
    Kernel,
}

#[derive(Debug)]
enum Subject {
    Stack(ackline_runtime::TcpStream),
    Kernel(net::TcpStream),
}

/// One connection in a cell's state.
#[derive(Debug)]
pub(super) struct Sample {
    kind: Kind,
    cell: Cell,
    asked: Operation,
    subject: Option<Subject>,
    peer: Option<net::TcpStream>,
    /// When the subject sent something for which its peer was deaf.
    deaf_since: Instant,
    /// What the subject wrote that the peer has not read, and the other way round.
    to_peer: usize,
    to_subject: usize,
}

impl Sample {
    /// Opens a connection and brings it into the state of `cell`.
    pub(super) async fn prepare(world: &World, kind: Kind, cell: Cell, asked: Operation) -> Self {
        let subject_opens = asked != Operation::Write;
        let (mut subject, mut peer) = open(world, kind, cell, subject_opens).await;
        // Every connection has delivered something.
        subject.write_all(LITTLE).await;
        peer.read_exact(&mut [0; LITTLE]).await.expect("the subject's data");
        let (mut to_peer, mut to_subject) = (0, 0);
        if cell.data == Data::Unread {
            peer.write_all(&[2; LITTLE]).await.expect("a socket takes some data");
            await_that("the subject has the data", || info(&peer).unacked == 0).await;
            to_subject = LITTLE;
        }
        if cell.data == Data::Unsent {
            subject.write_all(MUCH).await;
            to_peer = MUCH;
        }
        await_that("nothing is under way", || subject.unacked() == 0).await;
        let deaf_since = Instant::now();
        let deaf = async |subject: &mut Subject, peer: &net::TcpStream, to_peer: &mut usize| {
            if cell.data != Data::Unsent {
                set_deaf(peer, true).expect("a filter");
            }
            if cell.data == Data::Unacked {
                subject.write_all(LITTLE).await;
                *to_peer = LITTLE;
            }
        };
        match cell.state {
            SubjectState::Established if cell.data == Data::Unacked => {
                deaf(&mut subject, &peer, &mut to_peer).await;
            }
            SubjectState::Established => {}
            SubjectState::FinWait1 => {
                deaf(&mut subject, &peer, &mut to_peer).await;
                subject.shutdown().await;
            }
            SubjectState::FinWait2 => subject.shutdown().await,
            SubjectState::CloseWait => {
                closes(&mut peer).await;
                subject.reaches(State::CloseWait).await;
                if cell.data == Data::Unacked {
                    deaf(&mut subject, &peer, &mut to_peer).await;
                }
            }
            SubjectState::Closing => {
                deaf(&mut subject, &peer, &mut to_peer).await;
                subject.shutdown().await;
                peer.shutdown().await.expect("open");
            }
            SubjectState::LastAck => {
                closes(&mut peer).await;
                subject.reaches(State::CloseWait).await;
                deaf(&mut subject, &peer, &mut to_peer).await;
                subject.shutdown().await;
            }
            SubjectState::TimeWait => {
                subject.shutdown().await;
                subject.reaches(State::FinWait2).await;
                peer.shutdown().await.expect("open");
            }
        }
        subject.reaches(state(cell.state)).await;
        if matches!(cell.data, Data::Unacked) {
            assert!(subject.unacked() > 0, "{kind:?}, {cell}");
        }
        Self { kind, cell, asked, subject: Some(subject), peer: Some(peer), deaf_since, to_peer, to_subject }
    }

    /// Lets the event happen and asks both ends.
    pub(super) async fn run(mut self) -> (Cell, Kind, Report) {
        self.happen().await;
        // Timers back off: what is lost is sent again after as long as it has been tried in vain,
        // or twice that if a FIN follows it.
        let again = |since: Instant| 3 * since.elapsed() + Duration::from_secs(1);
        let settled = match self.cell.event {
            Event::LingerTimeout => LINGER + Duration::from_millis(600),
            Event::UserTimeout => USER_TIMEOUT + Duration::from_millis(2_500),
            Event::DeviceGone => Duration::from_millis(100),
            _ => again(self.deaf_since),
        };
        tokio::time::sleep(settled).await;
        if let Some(peer) = &self.peer {
            set_deaf(peer, false).expect("a filter");
        }
        let Self { kind, cell, asked, mut subject, mut peer, deaf_since, to_peer, to_subject } = self;
        let patience = match cell.event {
            Event::LingerTimeout => again(deaf_since),
            _ => PATIENCE,
        };
        let mut report = Report::default();
        let of_subject = async {
            Some(match (subject.as_mut()?, asked) {
                (Subject::Stack(stream), Operation::Read) => {
                    (Of::Read, outcome::read(stream, to_subject, PATIENCE).await)
                }
                (Subject::Kernel(stream), Operation::Read) => {
                    (Of::Read, outcome::read(stream, to_subject, PATIENCE).await)
                }
                (Subject::Stack(stream), Operation::Write) => (Of::Write, outcome::write(stream).await),
                (Subject::Kernel(stream), Operation::Write) => (Of::Write, outcome::write(stream).await),
                (subject, Operation::End) => (Of::End, subject.end(patience).await),
            })
        };
        let of_peer = async {
            let peer = peer.as_mut()?;
            match asked {
                Operation::Read => Some((Of::PeerRead, outcome::read(peer, to_peer, patience).await)),
                Operation::Write => Some((Of::PeerWrite, outcome::write(peer).await)),
                Operation::End => {
                    outcome::read(peer, to_peer, patience).await;
                    None
                }
            }
        };
        let (of_subject, of_peer) = tokio::join!(of_subject, of_peer);
        report.0.extend(of_subject.into_iter().chain(of_peer));
        (cell, kind, report)
    }

    async fn happen(&mut self) {
        match self.cell.event {
            Event::Rst => {
                let peer = self.peer.take().expect("it is there");
                sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).expect("set");
            }
            Event::Fin => {
                let peer = self.peer.as_mut().expect("it is there");
                peer.shutdown().await.expect("open");
                let subject = self.subject.as_ref().expect("it is there");
                await_that("the FIN has come", || subject.state() != state(self.cell.state)).await;
                self.hear();
            }
            Event::Abort => {
                self.hear();
                match self.subject.as_ref().expect("it is there") {
                    Subject::Stack(stream) => stream.abort(),
                    // RFC 9293's ABORT, in TIME-WAIT refused as the connection is gone.
                    Subject::Kernel(stream) => rustix::net::connect_unspec(stream).expect("disconnected"),
                }
            }
            Event::Drop => {
                self.hear();
                self.subject = None;
            }
            Event::LingerZero => {
                self.hear();
                self.linger(Duration::ZERO);
            }
            Event::LingerTimeout => self.linger(LINGER),
            Event::UserTimeout | Event::DeviceGone => {}
        }
    }

    /// The peer hears again what it was deaf for, before there is time for a retransmission.
    fn hear(&self) {
        set_deaf(self.peer.as_ref().expect("it is there"), false).expect("a filter");
    }

    fn linger(&mut self, limit: Duration) {
        match self.subject.take().expect("it is there") {
            Subject::Stack(stream) => stream.set_linger(Some(limit)).expect("set"),
            Subject::Kernel(stream) => {
                sockopt::set_socket_linger(&stream, Some(limit)).expect("set");
                let stream = stream.into_std().expect("a socket");
                if limit.is_zero() {
                    drop(stream);
                } else {
                    // The kernel has the closing thread wait.
                    tokio::task::spawn_blocking(move || drop(stream));
                }
            }
        }
    }
}

impl Subject {
    async fn write_all(&mut self, len: usize) {
        let data = vec![1; len];
        match self {
            Self::Stack(stream) => stream.write_all(&data).await,
            Self::Kernel(stream) => stream.write_all(&data).await,
        }
        .expect("the send buffer has room");
    }

    async fn shutdown(&mut self) {
        match self {
            Self::Stack(stream) => stream.shutdown().await,
            Self::Kernel(stream) => stream.shutdown().await,
        }
        .expect("open");
    }

    fn state(&self) -> State {
        match self {
            Self::Stack(stream) => stream.info().expect("a connection").state,
            Self::Kernel(stream) => info(stream).state.expect("a state"),
        }
    }

    /// Segments that were sent and not acknowledged.
    fn unacked(&self) -> u32 {
        match self {
            Self::Stack(stream) => stream.info().expect("a connection").unacked,
            Self::Kernel(stream) => info(stream).unacked,
        }
    }

    async fn reaches(&self, state: State) {
        // The kernel's socket in TIME-WAIT is closed; what waits is not a socket.
        let closed = state == State::TimeWait && matches!(self, Self::Kernel(_));
        let expected = if closed { State::Closed } else { state };
        await_that(&format!("{expected:?}"), || self.state() == expected).await;
    }

    /// Whether everything written, and the FIN, was acknowledged.
    async fn end(&mut self, patience: Duration) -> String {
        let ended = async {
            match self {
                Self::Stack(stream) => stream.flushed().await,
                Self::Kernel(stream) => loop {
                    if let Some(error) = stream.take_error()? {
                        return Err(error);
                    }
                    // In these states the FIN was acknowledged; a closed socket without an error
                    // has ended in order.
                    let state = info(stream).state;
                    if matches!(state, Some(State::FinWait2 | State::TimeWait | State::Closed)) {
                        return Ok(());
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                },
            }
        };
        match tokio::time::timeout(patience, ended).await {
            Ok(Ok(())) => "delivered".to_owned(),
            Ok(Err(error)) => outcome::name(&error).to_owned(),
            Err(_) => "open".to_owned(),
        }
    }
}

/// Closes the peer's side, and waits for the ACK of the FIN, which may be a delayed one and would
/// be lost on a deaf peer.
async fn closes(peer: &mut net::TcpStream) {
    peer.shutdown().await.expect("open");
    await_that("the FIN is acknowledged", || info(peer).state == Some(State::FinWait2)).await;
}

fn info(socket: &net::TcpStream) -> KernelTcpInfo {
    KernelTcpInfo::of(socket).expect("a TCP socket")
}

const fn state(state: SubjectState) -> State {
    match state {
        SubjectState::Established => State::Established,
        SubjectState::FinWait1 => State::FinWait1,
        SubjectState::FinWait2 => State::FinWait2,
        SubjectState::CloseWait => State::CloseWait,
        SubjectState::Closing => State::Closing,
        SubjectState::LastAck => State::LastAck,
        SubjectState::TimeWait => State::TimeWait,
    }
}

async fn await_that(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..5_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("not after ten seconds: {what}");
}

/// A connection between a subject and a socket of the kernel.
async fn open(world: &World, kind: Kind, cell: Cell, subject_opens: bool) -> (Subject, net::TcpStream) {
    let small = cell.data == Data::Unsent;
    let user_timeout = (cell.event == Event::UserTimeout).then_some(USER_TIMEOUT);
    match kind {
        Kind::Stack => {
            let mut config = Registry::default().conn_config();
            // The buffer takes all of it at once, as the kernel's does.
            config.min_send_buffer = None;
            if let Some(limit) = user_timeout {
                config.user_timeout = Some(limit.into());
            }
            let config = Arc::new(config);
            let peer = socket(KERNEL4, small).expect("a socket");
            let (peer, subject) = if subject_opens {
                let listener = peer.listen(1).expect("listens");
                let to = listener.local_addr().expect("bound");
                let (accepted, stream) =
                    tokio::join!(listener.accept(), world.stack.connect_with(to, config));
                (accepted.expect("accepted").0, stream.expect("connected"))
            } else {
                // The peer's port is one that no other connection of this test has.
                let port = peer.local_addr().expect("bound").port();
                let listener = world
                    .stack
                    .listen_with(ListenOn::Port(port), AcceptConfig::new(config))
                    .expect("a free port");
                let (stream, accepted) =
                    tokio::join!(peer.connect(SocketAddr::new(STACK4, port)), listener.accept());
                (stream.expect("connected"), accepted.expect("accepted").0)
            };
            (Subject::Stack(subject), peer)
        }
        Kind::Kernel => {
            let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let peer = socket(local, small).expect("a socket");
            let subject = socket(local, false).expect("a socket");
            // A buffer for all that is not sent.
            subject.set_send_buffer_size(4 * MUCH as u32).expect("set");
            let (active, passive) = if subject_opens { (subject, peer) } else { (peer, subject) };
            let listener = passive.listen(1).expect("listens");
            let to = listener.local_addr().expect("bound");
            let (active, passive) = tokio::join!(active.connect(to), listener.accept());
            let (active, passive) = (active.expect("connected"), passive.expect("accepted").0);
            let (subject, peer) = if subject_opens { (active, passive) } else { (passive, active) };
            if let Some(limit) = user_timeout {
                sockopt::set_tcp_user_timeout(&subject, limit.as_millis() as u32).expect("set");
            }
            (Subject::Kernel(subject), peer)
        }
    }
}

/// A socket with a port of its own; `small`: whose receive buffer is soon full.
fn socket(address: IpAddr, small: bool) -> io::Result<net::TcpSocket> {
    let socket = net::TcpSocket::new_v4()?;
    if small {
        socket.set_recv_buffer_size(4 << 10)?;
    }
    socket.bind(SocketAddr::new(address, 0))?;
    Ok(socket)
}
