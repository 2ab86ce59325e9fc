//! The traits of futures-io, for streams that have tokio's.

/// Implements `AsyncRead` and `AsyncWrite` of futures-io by those of tokio.
macro_rules! of_tokio {
    ($stream:ty) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "futures-io")))]
        impl futures_io::AsyncRead for $stream {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &mut [u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let mut buf = tokio::io::ReadBuf::new(buf);
                std::task::ready!(tokio::io::AsyncRead::poll_read(self, cx, &mut buf))?;
                std::task::Poll::Ready(Ok(buf.filled().len()))
            }
        }

        #[cfg_attr(docsrs, doc(cfg(feature = "futures-io")))]
        impl futures_io::AsyncWrite for $stream {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                tokio::io::AsyncWrite::poll_write(self, cx, buf)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                tokio::io::AsyncWrite::poll_write_vectored(self, cx, bufs)
            }

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                tokio::io::AsyncWrite::poll_flush(self, cx)
            }

            fn poll_close(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                tokio::io::AsyncWrite::poll_shutdown(self, cx)
            }
        }
    };
}

pub(crate) use of_tokio;
