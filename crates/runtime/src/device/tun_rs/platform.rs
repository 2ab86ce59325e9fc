//! Waiting for a device of `tun-rs`. On Unix it has a descriptor that becomes ready. On Windows it
//! has a ring, on which a thread waits.

#[cfg(unix)]
pub(super) use unix::Io;
#[cfg(windows)]
pub(super) use windows::Io;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::task::{Context, Poll};
    use tun_rs::AsyncDevice;

    pub(in super::super) struct Io(AsyncDevice);

    impl Io {
        pub(in super::super) const fn new(device: AsyncDevice) -> Self {
            Self(device)
        }

        pub(in super::super) const fn device(&self) -> &AsyncDevice {
            &self.0
        }

        pub(in super::super) fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.try_recv(buffer) {
                // The descriptor belongs to no interface any more.
                Ok(0) => Err(io::Error::new(io::ErrorKind::NetworkDown, "the interface was removed")),
                outcome => outcome,
            }
        }

        pub(in super::super) fn try_send(&self, packet: &[u8]) -> io::Result<()> {
            self.0.try_send(packet).map(|_| ())
        }

        pub(in super::super) fn poll_readable(
            &self,
            cx: &mut Context<'_>,
            _buffer: &mut [u8],
        ) -> Poll<io::Result<()>> {
            self.0.poll_readable(cx)
        }

        pub(in super::super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.poll_writable(cx)
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;
    use tokio::time::Sleep;
    use tun_rs::AsyncDevice;

    /// The ring does not tell when it has room again: the next try is after this time.
    const RETRY: Duration = Duration::from_millis(1);

    pub(in super::super) struct Io {
        device: AsyncDevice,
        ahead: Ahead,
        retry: Option<Pin<Box<Sleep>>>,
    }

    /// A wait for a packet ends with the packet, which the next receive then takes.
    enum Ahead {
        Nothing,
        /// A thread waits, and will have the next packet: one that is taken meanwhile would
        /// overtake it.
        Awaited,
        Packet(usize),
    }

    impl Io {
        pub(in super::super) const fn new(device: AsyncDevice) -> Self {
            Self { device, ahead: Ahead::Nothing, retry: None }
        }

        pub(in super::super) const fn device(&self) -> &AsyncDevice {
            &self.device
        }

        pub(in super::super) fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.ahead {
                Ahead::Nothing => self.device.try_recv(buffer),
                Ahead::Awaited => Err(io::ErrorKind::WouldBlock.into()),
                Ahead::Packet(length) => {
                    self.ahead = Ahead::Nothing;
                    Ok(length)
                }
            }
        }

        pub(in super::super) fn try_send(&self, packet: &[u8]) -> io::Result<()> {
            self.device.try_send(packet).map(|_| ())
        }

        /// The packet, if one comes, is in `buffer`, which the next [`try_recv`](Self::try_recv)
        /// must be given.
        pub(in super::super) fn poll_readable(
            &mut self,
            cx: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<()>> {
            if matches!(self.ahead, Ahead::Packet(_)) {
                return Poll::Ready(Ok(()));
            }
            let received = self.device.poll_recv(cx, buffer);
            self.ahead = match received {
                Poll::Pending => Ahead::Awaited,
                Poll::Ready(Ok(length)) => Ahead::Packet(length),
                Poll::Ready(Err(_)) => Ahead::Nothing,
            };
            received.map_ok(|_| ())
        }

        pub(in super::super) fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let retry = self.retry.get_or_insert_with(|| Box::pin(tokio::time::sleep(RETRY)));
            std::task::ready!(retry.as_mut().poll(cx));
            self.retry = None;
            Poll::Ready(Ok(()))
        }
    }
}
