//! A stream that exchanges chunks with its connection, for a program that looks at no byte.

use crate::case::CHUNK;
use ackline::TcpStream;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Writes send as many bytes of memory that all streams share, whatever the program writes; reads
/// drop what came, and say how much it was.
pub(crate) struct Chunks(pub(crate) TcpStream);

impl AsyncRead for Chunks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let chunk = self.0.poll_read_chunk(cx, buf.remaining());
        chunk.map_ok(|chunk| buf.advance(chunk.map_or(0, |chunk| chunk.len())))
    }
}

impl AsyncWrite for Chunks {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        static DATA: [u8; CHUNK] = [7; CHUNK];
        // A write of what is left goes on with the same chunk.
        self.0.poll_write_bytes(cx, &mut Bytes::from_static(&DATA).slice(CHUNK - buf.len()..))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
