//! Messages of DNS over TCP: RFC 7766.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that may wait to be written before no more messages are taken: one message, and as much
/// again.
const MOST_UNSENT: usize = 2 * 65_537;

/// A connection on which each message has its length before it.
#[derive(Debug)]
pub(crate) struct Framed<S> {
    stream: S,
    /// Bytes received of the next messages.
    read: Vec<u8>,
    /// Bytes that have not been written yet.
    unsent: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Framed<S> {
    pub(crate) fn new(stream: S, early: Vec<u8>) -> Self {
        Self { stream, read: early, unsent: vec![] }
    }

    /// Sends a message while [`recv`](Self::recv) is waited for. One that finds too many before it,
    /// or is none, is lost.
    pub(crate) fn send(&mut self, message: &[u8]) {
        if let Ok(length) = u16::try_from(message.len())
            && self.unsent.len() < MOST_UNSENT
        {
            self.unsent.extend(length.to_be_bytes());
            self.unsent.extend(message);
        }
    }

    /// Waits for a message; `UnexpectedEof` when the peer has closed. Dropping the future loses
    /// none.
    pub(crate) async fn recv(&mut self) -> io::Result<Vec<u8>> {
        std::future::poll_fn(|cx| self.poll_recv(cx)).await
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        while !self.unsent.is_empty()
            && let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(cx, &self.unsent)
        {
            match written? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                written => drop(self.unsent.drain(..written)),
            }
        }
        loop {
            if let Some((length, rest)) = self.read.split_first_chunk()
                && let length = usize::from(u16::from_be_bytes(*length))
                && let Some(message) = rest.get(..length)
            {
                let message = message.to_vec();
                self.read.drain(..2 + length);
                return Poll::Ready(Ok(message));
            }
            let mut some = [0; 4_096];
            let mut some = ReadBuf::new(&mut some);
            match Pin::new(&mut self.stream).poll_read(cx, &mut some) {
                Poll::Ready(Ok(())) if some.filled().is_empty() => {
                    return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
                }
                Poll::Ready(read) => read?,
                Poll::Pending => return Poll::Pending,
            }
            self.read.extend(some.filled());
        }
    }

    /// Writes what is left, and ends this direction.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        use tokio::io::AsyncWriteExt as _;
        self.stream.write_all(&self.unsent).await?;
        self.stream.shutdown().await
    }
}
