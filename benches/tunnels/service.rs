//! What the servers do, each on a port of its own.

use crate::board::{Board, Flow};
use crate::ending::{Ending, Side};
use crate::net::{BACKLOG, SERVER};
use rustix::net::sockopt;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Of the first service; each of the others has the next one.
pub(crate) const PORT: u16 = 7000;
/// Of all services.
pub(crate) const PORTS: u16 = 3 + Ending::ALL.len() as u16;
/// Bytes of a write and of a read of bulk data.
const CHUNK: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// Takes bulk data.
    Sink,
    /// Sends bulk data.
    Source,
    /// Sends each byte back.
    Echo,
    End(Ending),
}

impl Service {
    fn all() -> impl Iterator<Item = Self> {
        [Self::Sink, Self::Source, Self::Echo].into_iter().chain(Ending::ALL.map(Self::End))
    }

    pub(crate) const fn address(self) -> (std::net::Ipv4Addr, u16) {
        let number = match self {
            Self::Sink => 0,
            Self::Source => 1,
            Self::Echo => 2,
            Self::End(ending) => 3 + ending as u16,
        };
        (SERVER, PORT + number)
    }

    /// What becomes of a connection is the client's to notice.
    async fn serve(self, stream: TcpStream, board: Arc<Board>) {
        let _ = match self {
            Self::Sink => sink(stream, &board).await,
            Self::Source => source(stream).await,
            Self::Echo => echo(stream).await,
            Self::End(ending) => end(ending, stream, &board).await,
        };
    }
}

/// Serves until accepting fails; `listens` is told when all ports are open.
pub(crate) async fn serve_all(board: Arc<Board>, listens: &Sender<()>) -> io::Result<()> {
    let mut listeners = JoinSet::new();
    for service in Service::all() {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(service.address()))?;
        listeners.spawn(accept(service, socket.listen(BACKLOG)?, board.clone()));
    }
    // Whoever waits for it is there, or the process ends.
    let _ = listens.send(());
    listeners.join_next().await.unwrap_or(Ok(Ok(())))?
}

async fn accept(service: Service, listener: TcpListener, board: Arc<Board>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        // A client may have gone already.
        let _ = stream.set_nodelay(true);
        tokio::spawn(service.serve(stream, board.clone()));
    }
}

/// Takes bulk data until it ends.
pub(crate) async fn sink(stream: TcpStream, board: &Board) -> io::Result<()> {
    thread_local! {
        /// One for all connections of the thread.
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
    }
    prompt(&stream)?;
    let mut flow = Flow::new(board);
    loop {
        stream.readable().await?;
        match BUFFER.with_borrow_mut(|buffer| stream.try_read(buffer)) {
            Ok(0) => return Ok(()),
            Ok(bytes) => flow.add(bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sends bulk data until nobody takes it.
pub(crate) async fn source(mut stream: TcpStream) -> io::Result<()> {
    static DATA: [u8; CHUNK] = [7; CHUNK];
    prompt(&stream)?;
    loop {
        stream.write_all(&DATA).await?;
    }
}

/// What nobody will acknowledge is not kept when the measurement is over: it would hold the
/// kernel's memory for minutes, and slow down the measurements after this one.
fn prompt(stream: &TcpStream) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {
        stream.write_all(&byte).await?;
    }
    Ok(())
}

async fn end(ending: Ending, mut stream: TcpStream, board: &Board) -> io::Result<()> {
    ending.play(Side::Server, &mut stream).await?;
    board.server_ended();
    Ok(())
}
