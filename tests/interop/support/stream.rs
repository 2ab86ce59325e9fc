//! The bytes that tests send, and how they are checked.

use std::io;
use std::sync::LazyLock;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// A prime, so that no multiple of a segment's, a window's or a buffer's size is one of the period:
/// a byte in the wrong place differs.
const PERIOD: usize = 1_048_583;
/// Most bytes of one write or read.
const CHUNK: usize = 128 << 10;

/// Random bytes, twice over, so that any chunk is one slice.
static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let period: Vec<u8> = std::iter::repeat_with(|| {
        // xorshift64 (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(PERIOD)
    .collect();
    [&period[..], &period[..]].concat()
});

/// The bytes of a stream from `offset` on, at most `len` of them. Streams of different `key`s
/// differ.
pub(crate) fn bytes(key: u64, offset: u64, len: usize) -> &'static [u8] {
    let start = ((key.wrapping_mul(7919) % PERIOD as u64 + offset) % PERIOD as u64) as usize;
    &BYTES[start..][..len.min(CHUNK)]
}

/// Writes a stream of `len` bytes.
pub(crate) async fn write(to: &mut (impl AsyncWrite + Unpin), key: u64, len: u64) -> io::Result<()> {
    let mut offset = 0;
    while offset < len {
        let left = usize::try_from(len - offset).unwrap_or(CHUNK);
        offset += to.write(bytes(key, offset, left)).await? as u64;
    }
    to.flush().await
}

/// Writes a stream and its end, which comes once there is no `more`.
pub(crate) async fn write_while(to: &mut (impl AsyncWrite + Unpin), key: u64, more: impl Fn() -> bool) {
    let mut offset = 0;
    while more() {
        offset += to.write(bytes(key, offset, CHUNK)).await.expect("the stream takes everything") as u64;
    }
    to.shutdown().await.expect("the stream takes its end");
}

/// Writes a stream of `len` bytes and its end.
pub(crate) async fn write_all(to: &mut (impl AsyncWrite + Unpin), key: u64, len: u64) {
    write(to, key, len).await.expect("the stream takes everything");
    to.shutdown().await.expect("the stream takes its end");
}

/// Reads `len` bytes of a stream and compares each.
pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin), key: u64, len: u64) {
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    while offset < len {
        let most = usize::try_from(len - offset).unwrap_or(CHUNK).min(CHUNK);
        let got = from.read(&mut buffer[..most]).await;
        let got = got.unwrap_or_else(|error| panic!("after {offset} of {len} bytes: {error}"));
        assert_ne!(got, 0, "the stream ended after {offset} of {len} bytes");
        check(&buffer[..got], key, offset);
        offset += got as u64;
    }
}

/// Reads a stream of `len` bytes to its end and compares each byte.
pub(crate) async fn read_all(from: &mut (impl AsyncRead + Unpin), key: u64, len: u64) {
    read(from, key, len).await;
    let more = from.read(&mut [0]).await.expect("the end of the stream");
    assert_eq!(more, 0, "the stream goes on after its {len} bytes");
}

/// Reads a stream to its end and compares each byte.
pub(crate) async fn read_to_end(from: &mut (impl AsyncRead + Unpin), key: u64) {
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let got = from.read(&mut buffer).await;
        let got = got.unwrap_or_else(|error| panic!("after {offset} bytes: {error}"));
        if got == 0 {
            return;
        }
        check(&buffer[..got], key, offset);
        offset += got as u64;
    }
}

/// Compares received bytes with the stream's from `offset` on.
pub(crate) fn check(received: &[u8], key: u64, offset: u64) {
    let expected = bytes(key, offset, received.len());
    if received != expected {
        let at = received.iter().zip(expected).position(|(got, want)| got != want).unwrap_or(0);
        panic!("byte {} of the stream differs", offset + at as u64);
    }
}
