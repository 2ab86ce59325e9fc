//! Waiting for the client's first bytes, if its way depends on the server name in them.
//!
//! What a rule by the server's name might refuse, or send another way, is connected as if no such
//! rule matched. What the destination sends is passed on meanwhile, so a protocol in which the
//! server speaks first is not delayed; the client's first bytes are kept until they have been read.

use crate::rules::server_name::{MOST, ServerName, ServerNameReader};
use crate::shared::{Choice, Shared, Way};
use crate::target::Protocol;
use crate::throttle::Pace;
use crate::upstream::Upstream;
use ackline_runtime::stream as inner;
use bytes::Bytes;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

/// The client's first bytes, when its connection to the outside begins.
pub(crate) enum FirstFlight<'a> {
    /// These have been read, or none.
    Read(Bytes),
    /// They decide whether the connection goes on.
    Awaited(&'a mut PendingChoice),
}

impl FirstFlight<'_> {
    /// The bytes that go out first. Settles the connection's pace.
    ///
    /// # Errors
    /// If the connection fails, or they choose another way.
    pub(crate) async fn pass<'s>(
        self,
        shared: &'s Shared,
        from: &mut inner::ReadHalf<'_>,
        pace: &Pace<'s>,
    ) -> io::Result<Bytes> {
        match self {
            Self::Read(bytes) => Ok(bytes),
            Self::Awaited(pending) => pending.pass(shared, from, pace).await,
        }
    }
}

/// A way that another one may replace, once the client has stated the server's name.
pub(crate) struct PendingChoice {
    client: SocketAddr,
    wanted: SocketAddr,
    upstream: Arc<Upstream>,
    /// What has been chosen instead, with the bytes that were read.
    pub(crate) other: Option<(Choice, Bytes)>,
    /// Nothing has been stated yet.
    pub(crate) is_open: bool,
}

impl PendingChoice {
    /// `client` goes to `wanted` through `upstream`, as long as it states nothing else.
    pub(crate) const fn new(client: SocketAddr, wanted: SocketAddr, upstream: Arc<Upstream>) -> Self {
        Self { client, wanted, upstream, other: None, is_open: true }
    }

    async fn pass<'s>(
        &mut self,
        shared: &'s Shared,
        from: &mut inner::ReadHalf<'_>,
        pace: &Pace<'s>,
    ) -> io::Result<Bytes> {
        // Large, and over before the connection idles.
        let (bytes, server_name) = Box::pin(read(from)).await?;
        let choice = shared.choose(self.client, self.wanted, Protocol::Tcp, &server_name);
        shared.settle(&choice.decision);
        self.is_open = false;
        pace.settle(shared.throttle(&choice.decision));
        match &choice.way {
            Way::Through(upstream, _) if *upstream == self.upstream => Ok(bytes),
            _ => {
                self.other = Some((choice, bytes));
                Err(ErrorKind::ConnectionAborted.into())
            }
        }
    }
}

/// The first bytes of a client, as many as it takes to read the server's name.
///
/// # Errors
/// If the connection fails.
pub(crate) async fn read(from: &mut inner::ReadHalf<'_>) -> io::Result<(Bytes, ServerName)> {
    let (mut bytes, mut reader) = (Vec::new(), ServerNameReader::default());
    loop {
        let Some(chunk) = from.read_chunk(MOST - bytes.len()).await? else {
            // A server might accept an incomplete message, and find a name in it.
            let name = if bytes.is_empty() { ServerName::Absent } else { ServerName::Unreadable };
            return Ok((bytes.into(), name));
        };
        bytes.extend_from_slice(&chunk);
        if let Some(name) = reader.read(&bytes) {
            return Ok((bytes.into(), name));
        }
    }
}
