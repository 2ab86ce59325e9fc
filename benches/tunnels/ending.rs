//! The ways in which a connection ends (RFC 9293, sections 3.6 and 3.10.7.4): each direction by
//! itself, or both by a reset.

use crate::metric::Metric;
use rustix::net::sockopt;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The client ends its direction, and the server sends after that.
    ClientFirst,
    /// The other way round.
    ServerFirst,
    /// Each ends its direction as soon as it has sent.
    Both,
    ClientReset,
    ServerReset,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClientFirst => "client ends first",
            Self::ServerFirst => "server ends first",
            Self::Both => "both at once",
            Self::ClientReset => "client resets",
            Self::ServerReset => "server resets",
        })
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// What each side sends before it ends its direction.
static DATA: [u8; 64 << 10] = [7; 64 << 10];

impl Ending {
    pub(crate) const ALL: [Self; 5] =
        [Self::ClientFirst, Self::ServerFirst, Self::Both, Self::ClientReset, Self::ServerReset];
    /// Connections that end in each way, at the same time.
    pub(crate) const EACH: usize = 20;
    /// For all of them to end.
    pub(crate) const IN_TIME: Duration = Duration::from_secs(5);

    /// How many did not.
    pub(crate) const fn metric(self) -> Metric {
        match self {
            Self::ClientFirst => Metric::ClientFirst,
            Self::ServerFirst => Metric::ServerFirst,
            Self::Both => Metric::Both,
            Self::ClientReset => Metric::ClientReset,
            Self::ServerReset => Metric::ServerReset,
        }
    }

    /// Plays one side; returns when the connection has ended there.
    ///
    /// # Errors
    /// Bytes are missing.
    pub(crate) async fn play(self, side: Side, stream: &mut TcpStream) -> io::Result<()> {
        match (self, side) {
            (Self::Both, _) | (Self::ClientFirst, Side::Client) | (Self::ServerFirst, Side::Server) => {
                send(stream).await?;
                receive(stream).await
            }
            (Self::ClientFirst, Side::Server) | (Self::ServerFirst, Side::Client) => {
                receive(stream).await?;
                send(stream).await
            }
            (Self::ClientReset, Side::Client) | (Self::ServerReset, Side::Server) => {
                stream.read_exact(&mut [0]).await?;
                // So that it is reset when it is closed.
                Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
            }
            (Self::ClientReset, Side::Server) | (Self::ServerReset, Side::Client) => {
                stream.write_all(&[7]).await?;
                // Some stacks pass a reset on as one, others as an end.
                let _ = stream.read(&mut [0]).await;
                Ok(())
            }
        }
    }
}

async fn send(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(&DATA).await?;
    stream.shutdown().await
}

async fn receive(stream: &mut TcpStream) -> io::Result<()> {
    let mut received = Vec::with_capacity(DATA.len());
    stream.read_to_end(&mut received).await?;
    if received == DATA { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
