//! The control connection.

use super::cookie::Cookie;
use super::state::{ServerError, TestState};
use crate::failure::{Exit, Failure};
use crate::network::peer;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Longest wait for the peer's next step, if that is not the end of the test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Longest JSON document that is sent, or taken from a server, whose results may hold all that it
/// showed; in bytes.
pub(crate) const MAX_JSON: usize = 16 << 20;
/// Longest document with a client's parameters that a server takes, in bytes.
pub(crate) const MAX_PARAMETERS: usize = 64 << 10;
/// Longest document with a client's results that a server takes, in bytes: thousands of streams
/// have room.
pub(crate) const MAX_CLIENT_RESULTS: usize = 1 << 20;
/// Bytes by which memory for a document grows, whatever length its peer announces.
const STEP: usize = 64 << 10;

/// The connection on which the two ends talk about the test.
#[derive(Debug)]
pub(crate) struct Control<S> {
    stream: S,
    peer: SocketAddr,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Control<S> {
    pub(crate) const fn new(stream: S, peer: SocketAddr) -> Self {
        Self { stream, peer }
    }

    pub(crate) const fn stream(&self) -> &S {
        &self.stream
    }

    pub(crate) const fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    pub(crate) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Says which test this is.
    pub(crate) async fn send_cookie(&mut self, cookie: &Cookie) -> Result<(), Failure> {
        self.send_all(cookie.octets()).await
    }

    /// Says what comes next.
    pub(crate) async fn send(&mut self, state: TestState) -> Result<(), Failure> {
        self.send_all(&[state.octet()]).await
    }

    /// Says why this server refuses.
    pub(crate) async fn send_error(&mut self, error: ServerError) -> Result<(), Failure> {
        let mut message = vec![TestState::ServerError.octet()];
        message.extend(error.code.to_be_bytes());
        message.extend(error.errno.to_be_bytes());
        self.send_all(&message).await
    }

    /// Waits for the peer to say what comes next, however long that takes. If this is dropped,
    /// nothing is lost.
    pub(crate) async fn receive(&mut self) -> Result<TestState, Failure> {
        let mut octet = [0];
        match self.stream.read(&mut octet).await {
            Ok(0) => Err(self.closed()),
            Ok(_) => TestState::from_octet(octet[0]).ok_or_else(|| {
                let octet = octet[0].cast_signed();
                self.wrong(&format!("state {octet}, which means nothing in iperf3's protocol"))
            }),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// As [`receive`](Self::receive), for at most [`PATIENCE`]; refusals are errors.
    pub(crate) async fn receive_soon(&mut self) -> Result<TestState, Failure> {
        let state = match tokio::time::timeout(PATIENCE, self.receive()).await {
            Ok(state) => state?,
            Err(_) => return Err(self.silent()),
        };
        self.unless_refused(state).await
    }

    /// Waits for one state for at most [`PATIENCE`].
    pub(crate) async fn expect(&mut self, wanted: TestState) -> Result<(), Failure> {
        match self.receive_soon().await? {
            state if state == wanted => Ok(()),
            other => Err(self.wrong(&format!("{other:?} in place of {wanted:?}"))),
        }
    }

    /// Turns what ends a test into the failure that says so.
    pub(crate) async fn unless_refused(&mut self, state: TestState) -> Result<TestState, Failure> {
        let peer = self.peer;
        let why = match state {
            TestState::AccessDenied => format!("{peer} is busy with another test; try again later"),
            TestState::ServerTerminate => "the server was stopped".to_owned(),
            TestState::ClientTerminate => "the client was stopped".to_owned(),
            TestState::ServerError => format!("{peer} refuses: {}", self.receive_error().await?.words()),
            other => return Ok(other),
        };
        Err(Failure::new(Exit::Network, why))
    }

    /// Sends a document.
    pub(crate) async fn send_json(&mut self, document: &Value) -> Result<(), Failure> {
        // Fails only for maps with keys that are no strings.
        let text = serde_json::to_vec(document).unwrap_or_default();
        let length = u32::try_from(text.len()).ok().filter(|length| *length as usize <= MAX_JSON);
        let Some(length) = length else {
            return Err(
                self.wrong_here(&format!("a document of {} bytes is too long to be sent", text.len()))
            );
        };
        let mut message = length.to_be_bytes().to_vec();
        message.extend(text);
        self.send_all(&message).await
    }

    /// True if a document is not too long to be sent.
    pub(crate) fn fits(document: &Value) -> bool {
        serde_json::to_vec(document).is_ok_and(|text| text.len() <= MAX_JSON)
    }

    /// Receives a document of at most `most` bytes. As values it takes some multiple of them.
    pub(crate) async fn receive_json(&mut self, most: usize) -> Result<Value, Failure> {
        let received = tokio::time::timeout(PATIENCE, self.document(most)).await;
        received.unwrap_or_else(|_| Err(self.silent()))
    }

    async fn document(&mut self, most: usize) -> Result<Value, Failure> {
        let length = self.number().await? as usize;
        if length > most {
            return Err(self.wrong(&format!("a document of {length} bytes; the limit is {most}")));
        }
        let mut text = Vec::new();
        while text.len() < length {
            let from = text.len();
            text.resize(length.min(from + STEP), 0);
            let outcome = self.stream.read_exact(text.get_mut(from..).unwrap_or_default()).await;
            outcome.map_err(|error| self.failed(&error))?;
        }
        serde_json::from_slice(&text)
            .map_err(|error| self.wrong(&format!("a document that is no JSON: {error}")))
    }

    async fn receive_error(&mut self) -> Result<ServerError, Failure> {
        let both = async { Ok(ServerError { code: self.number().await?, errno: self.number().await? }) };
        let received = tokio::time::timeout(PATIENCE, both).await;
        received.unwrap_or_else(|_| Err(self.silent()))
    }

    async fn number(&mut self) -> Result<u32, Failure> {
        let mut octets = [0; 4];
        match self.stream.read_exact(&mut octets).await {
            Ok(_) => Ok(u32::from_be_bytes(octets)),
            Err(error) => Err(self.failed(&error)),
        }
    }

    async fn send_all(&mut self, octets: &[u8]) -> Result<(), Failure> {
        match tokio::time::timeout(PATIENCE, self.stream.write_all(octets)).await {
            Ok(sent) => sent.map_err(|error| self.failed(&error)),
            Err(_) => Err(self.silent()),
        }
    }

    /// What a peer said that no peer should say.
    pub(crate) fn wrong(&self, what: &str) -> Failure {
        Failure::new(Exit::Network, format!("{} sent {what}", self.peer))
    }

    fn wrong_here(&self, what: &str) -> Failure {
        Failure::new(Exit::Network, format!("to {}: {what}", self.peer))
    }

    fn closed(&self) -> Failure {
        Failure::new(Exit::Network, format!("{} closed the control connection", self.peer))
    }

    fn silent(&self) -> Failure {
        let limit = PATIENCE.as_secs();
        Failure::new(
            Exit::Network,
            format!("{} was silent for {limit} s on the control connection", self.peer),
        )
    }

    fn failed(&self, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            self.closed()
        } else {
            peer::lost(self.peer, error)
        }
    }
}
