//! The format pcap (draft-ietf-opsawg-pcap): a header of the file, then a header of 16 bytes before
//! each packet.

use super::{Frame, Order, ReadError, Source};
use std::io::Read;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// What the header of the file says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    order: Order,
    /// Nanoseconds of a unit of the fraction.
    unit: u64,
    link_type: u16,
}

impl Header {
    /// Reads the header behind `magic`; `None` if that is not pcap's.
    pub(super) fn read<R: Read>(source: &mut Source<R>, magic: [u8; 4]) -> Result<Option<Self>, ReadError> {
        let found = [Order::Little, Order::Big].into_iter().find_map(|order| match order.u32(magic) {
            MICROSECONDS => Some((order, 1_000)),
            NANOSECONDS => Some((order, 1)),
            _ => None,
        });
        let Some((order, unit)) = found else { return Ok(None) };
        let Some(rest) = source.array::<20>()? else {
            return Err(source.damaged("the file ends within its header of 24 bytes".to_owned()));
        };
        // The upper bits state the length of a frame check sequence.
        let link_type = (order.u32_at(&rest, 16) & 0xffff) as u16;
        Ok(Some(Self { order, unit, link_type }))
    }

    pub(super) fn next_frame<'a, R: Read>(
        &self,
        source: &'a mut Source<R>,
    ) -> Result<Option<Frame<'a>>, ReadError> {
        let Some(header) = source.array::<16>()? else { return Ok(None) };
        let number = |at| self.order.u32_at(&header, at);
        let (seconds, fraction, captured, original) = (number(0), number(4), number(8), number(12));
        if !source.block(captured as usize)? {
            return Ok(None);
        }
        Ok(Some(Frame {
            at_ns: u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit,
            link_type: self.link_type,
            interface: 0,
            outbound: None,
            original: original.max(captured),
            data: &source.block,
            comment: "",
        }))
    }
}
