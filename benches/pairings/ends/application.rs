//! An application on streams of tokio's kind.

use super::Act;
use crate::stream::Received;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Octets written or read at once.
const CHUNK: usize = 64 << 10;

/// Sends and receives everything; closes its direction when all is sent.
pub(super) async fn talk(
    mut reads: impl AsyncRead + Unpin,
    mut writes: impl AsyncWrite + Unpin,
    act: Act,
) -> Result<Received, String> {
    let Act { mut bytes, receives, waits, pause, .. } = act;
    let send = async {
        loop {
            let chunk = bytes.next_chunk(CHUNK);
            if chunk.is_empty() {
                return writes.shutdown().await;
            }
            writes.write_all(&chunk).await?;
        }
    };
    let receive = async {
        let mut received = Received::NOTHING;
        let mut buffer = vec![0; CHUNK];
        for until in [receives / 2, u64::MAX] {
            tokio::time::sleep(pause).await;
            while received.len < until {
                match reads.read(&mut buffer).await? {
                    0 => return Ok(received),
                    len => received.add(&buffer[..len]),
                }
            }
        }
        Ok::<_, io::Error>(received)
    };
    let both = async {
        if waits {
            let received = receive.await?;
            send.await?;
            Ok(received)
        } else {
            tokio::try_join!(receive, send).map(|(received, ())| received)
        }
    };
    both.await.map_err(|error: io::Error| error.to_string())
}
