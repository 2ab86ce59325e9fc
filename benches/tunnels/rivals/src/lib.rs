//! What the programs have in common: the TUN device that they inherit, and the way out.

use rustix::fd::OwnedFd;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, copy_bidirectional};
use tokio::net::TcpStream;

/// Of the device, in bytes.
pub const MTU: u16 = 1500;

/// Carries a connection on to its destination, until both directions have ended; returns the way
/// out.
///
/// # Errors
/// If the destination does not answer, or either side fails.
pub async fn carry_on<S>(stream: &mut S, destination: SocketAddr) -> io::Result<TcpStream>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut out = TcpStream::connect(destination).await?;
    // As the example of netstack-smoltcp does.
    out.set_nodelay(true)?;
    copy_bidirectional(stream, &mut out).await?;
    Ok(out)
}

/// The device on standard input: each read and each write is one packet.
pub struct Tun(AsyncFd<OwnedFd>);

impl Tun {
    /// # Errors
    /// If standard input is nothing that can be polled.
    pub fn inherited() -> io::Result<Self> {
        let fd = io::stdin().as_fd().try_clone_to_owned()?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        #[expect(deprecated, reason = "its successor is unsafe; the descriptor stays open as long as this")]
        Ok(Self(AsyncFd::new(fd)?))
    }

    /// Reads one packet.
    ///
    /// # Errors
    /// If the device is gone.
    pub async fn read_packet(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.async_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut *buffer)?)).await
    }

    /// Writes one packet.
    ///
    /// # Errors
    /// If the device does not take it.
    pub async fn write_packet(&self, packet: &[u8]) -> io::Result<usize> {
        self.0.async_io(Interest::WRITABLE, |fd| Ok(rustix::io::write(fd, packet)?)).await
    }
}

impl AsyncRead for Tun {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            let free = buffer.initialize_unfilled();
            if let Ok(read) = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), free)?)) {
                buffer.advance(read?);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Tun {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, packet: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(cx))?;
            if let Ok(written) = ready.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), packet)?)) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
