//! Messages of DNS over TCP: RFC 7766.

use super::Connected;
use crate::outside::Stream;
use simple_dns::{Packet, PacketFlag};
use std::io::{self, ErrorKind};
use std::ops::Range;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// What a client takes over UDP that says nothing else (RFC 1035, section 4.2.1).
const USUAL_ROOM: usize = 512;

/// A connection to a resolver, on which each message has its length before it.
#[derive(Debug)]
pub(crate) struct Framed {
    stream: Stream,
    /// What has come of the next answers.
    read: Vec<u8>,
    /// Longest answer that the client takes, by its latest question.
    room: usize,
}

impl Framed {
    pub(super) fn new(Connected { stream, early }: Connected) -> Self {
        Self { stream, read: early, room: USUAL_ROOM }
    }

    pub(super) async fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let Ok(length) = u16::try_from(message.len()) else { return Err(ErrorKind::InvalidInput.into()) };
        // RFC 6891, section 6.2.3.
        let question = Packet::parse(message).ok();
        let room = question.as_ref().and_then(|question| question.opt()).map_or(0, |opt| opt.udp_packet_size);
        self.room = USUAL_ROOM.max(room.into());
        // In one piece (RFC 7766, section 8).
        self.stream.write_all(&[&length.to_be_bytes(), message].concat()).await
    }

    pub(super) async fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Range<usize>> {
        loop {
            if let Some((length, rest)) = self.read.split_first_chunk()
                && let length = usize::from(u16::from_be_bytes(*length))
                && let Some(message) = rest.get(..length)
            {
                let fits = length <= self.room.min(buffer.len());
                let message = if fits { message.to_vec() } else { truncated(message)? };
                self.read.drain(..2 + length);
                let room = buffer.get_mut(..message.len()).ok_or(ErrorKind::InvalidData)?;
                room.copy_from_slice(&message);
                return Ok(0..message.len());
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// An answer without its records: the client asks again over TCP.
fn truncated(message: &[u8]) -> io::Result<Vec<u8>> {
    let wrong = |_| io::Error::from(ErrorKind::InvalidData);
    let mut answer = Packet::parse(message).map_err(wrong)?;
    answer.set_flags(PacketFlag::TRUNCATION);
    answer.answers.clear();
    answer.name_servers.clear();
    answer.additional_records.clear();
    answer.build_bytes_vec().map_err(wrong)
}
