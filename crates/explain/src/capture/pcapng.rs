//! The format pcapng (draft-ietf-opsawg-pcapng): blocks, whose types say what they are. Those
//! without a packet are skipped, but for what they say of time.

use super::{Frame, Order, ReadError, Source};
use std::io::Read;

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Options of all blocks, and of each kind.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_FLAGS: u16 = 2;
const ISB_IFDROP: u16 = 5;
/// More interfaces than any capture has.
const MAX_INTERFACES: usize = 65_536;

/// The section that is read.
#[derive(Debug)]
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Interface>,
    /// Missed packets of the interfaces of sections that have ended.
    missed_before: u64,
}

#[derive(Debug)]
struct Interface {
    link_type: u16,
    snap_length: u32,
    resolution: Resolution,
    /// Seconds to add to each time.
    offset: i64,
    missed: u64,
}

/// What a unit of time is.
#[derive(Clone, Copy, Debug)]
enum Resolution {
    /// 10^-n s.
    Decimal(u8),
    /// 2^-n s.
    Binary(u8),
}

impl Resolution {
    fn nanoseconds(self, units: u64) -> u64 {
        let units = u128::from(units);
        let nanos = match self {
            Self::Decimal(power @ ..=9) => units * 10_u128.pow(u32::from(9 - power)),
            Self::Decimal(power) => units / 10_u128.pow(u32::from(power - 9).min(30)),
            Self::Binary(power) => (units * 1_000_000_000) >> power,
        };
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

impl Section {
    /// Reads the first section's header behind its type.
    pub(super) fn read<R: Read>(source: &mut Source<R>) -> Result<Self, ReadError> {
        let mut section = Self { order: Order::Little, interfaces: vec![], missed_before: 0 };
        if section.begin(source)? {
            Ok(section)
        } else {
            Err(source.damaged("the file ends within its first header".to_owned()))
        }
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed_before + self.interfaces.iter().map(|interface| interface.missed).sum::<u64>()
    }

    /// Reads a section's header behind its type; false if the file ends there.
    fn begin<R: Read>(&mut self, source: &mut Source<R>) -> Result<bool, ReadError> {
        self.missed_before = self.missed();
        self.interfaces.clear();
        let Some([a, b, c, d, order @ ..]) = source.array::<8>()? else { return Ok(false) };
        self.order = match [Order::Little, Order::Big].into_iter().find(|o| o.u32(order) == BYTE_ORDER) {
            Some(found) => found,
            None => {
                return Err(source.damaged("the section's byte order is neither little nor big".to_owned()));
            }
        };
        let length = self.order.u32([a, b, c, d]) as usize;
        // Type, length and byte order have been read.
        let Some(rest) = length.checked_sub(12) else {
            return Err(source.damaged(format!("a section header of {length} bytes; it has at least 28")));
        };
        source.block(rest)
    }

    pub(super) fn next_frame<'a, R: Read>(
        &mut self,
        source: &'a mut Source<R>,
    ) -> Result<Option<Frame<'a>>, ReadError> {
        let kind = loop {
            let Some(kind) = source.array::<4>()? else { return Ok(None) };
            if kind == SECTION_HEADER.to_le_bytes() {
                if !self.begin(source)? {
                    return Ok(None);
                }
                continue;
            }
            let kind = self.order.u32(kind);
            let Some(length) = source.array::<4>()? else { return Ok(None) };
            let length = self.order.u32(length) as usize;
            if length < 12 || !length.is_multiple_of(4) {
                return Err(
                    source.damaged(format!("a block of {length} bytes; lengths are multiples of 4, from 12"))
                );
            }
            if !source.block(length - 8)? {
                return Ok(None);
            }
            match kind {
                INTERFACE_DESCRIPTION => self.interface(source)?,
                INTERFACE_STATISTICS => self.statistics(&source.block),
                ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET => break kind,
                _ => {}
            }
        };
        self.frame(kind, source).map(Some)
    }

    fn interface<R: Read>(&mut self, source: &Source<R>) -> Result<(), ReadError> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(source.damaged(format!("more than {MAX_INTERFACES} interfaces")));
        }
        let block = body(&source.block);
        let mut interface = Interface {
            link_type: self.order.u16_at(block, 0),
            snap_length: self.order.u32_at(block, 4),
            resolution: Resolution::Decimal(6),
            offset: 0,
            missed: 0,
        };
        for (code, value) in self.options(block.get(8..).unwrap_or_default()) {
            match (code, value) {
                (IF_TSRESOL, [power, ..]) => {
                    let binary = power & 0x80 != 0;
                    let power = power & 0x7f;
                    interface.resolution =
                        if binary { Resolution::Binary(power) } else { Resolution::Decimal(power) };
                }
                (IF_TSOFFSET, value) => interface.offset = self.u64(value).cast_signed(),
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn statistics(&mut self, block: &[u8]) {
        let block = body(block);
        let place = self.order.u32_at(block, 0) as usize;
        let missed = self
            .options(block.get(12..).unwrap_or_default())
            .filter(|(code, _)| *code == ISB_IFDROP)
            .map(|(_, value)| self.u64(value))
            .last();
        if let (Some(interface), Some(missed)) = (self.interfaces.get_mut(place), missed) {
            interface.missed = missed;
        }
    }

    /// The packet in the source's block.
    fn frame<'a, R: Read>(&self, kind: u32, source: &'a Source<R>) -> Result<Frame<'a>, ReadError> {
        let block = body(&source.block);
        let number = |at| self.order.u32_at(block, at);
        let (interface, header) = match kind {
            SIMPLE_PACKET => (0, 4),
            // The old block has 16 bits for the interface, and counts drops in the other 16.
            OBSOLETE_PACKET => (u32::from(self.order.u16_at(block, 0)), 20),
            _ => (number(0), 20),
        };
        let Some(described) = self.interfaces.get(interface as usize) else {
            let known = self.interfaces.len();
            return Err(
                source.damaged(format!("a packet of interface {interface}; {known} are described before it"))
            );
        };
        let Some(rest) = block.get(header..) else {
            return Err(source.damaged("a packet's block is shorter than its header".to_owned()));
        };
        let (units, captured, original) = if kind == SIMPLE_PACKET {
            let limit = if described.snap_length == 0 { u32::MAX } else { described.snap_length };
            (0, number(0).min(limit).min(rest.len() as u32), number(0))
        } else {
            (u64::from(number(4)) << 32 | u64::from(number(8)), number(12), number(16))
        };
        let Some((data, options)) = rest.split_at_checked(captured as usize) else {
            let have = rest.len();
            return Err(
                source.damaged(format!("a packet of {captured} captured bytes in a block with {have}"))
            );
        };
        let padding = captured.wrapping_neg() as usize & 3;
        let (mut outbound, mut comment) = (None, "");
        for (code, value) in self.options(options.get(padding..).unwrap_or_default()) {
            match code {
                COMMENT if comment.is_empty() => comment = str::from_utf8(value).unwrap_or_default(),
                EPB_FLAGS => {
                    outbound = match self.order.u32_at(value, 0) & 3 {
                        1 => Some(false),
                        2 => Some(true),
                        _ => None,
                    }
                }
                _ => {}
            }
        }
        let nanos = described.resolution.nanoseconds(units);
        Ok(Frame {
            at_ns: nanos.saturating_add_signed(described.offset.saturating_mul(1_000_000_000)),
            link_type: described.link_type,
            interface,
            outbound,
            original: original.max(captured),
            data,
            comment,
        })
    }

    fn u64(&self, value: &[u8]) -> u64 {
        let Some(bytes) = value.first_chunk() else { return 0 };
        match self.order {
            Order::Little => u64::from_le_bytes(*bytes),
            Order::Big => u64::from_be_bytes(*bytes),
        }
    }

    /// The options in `bytes`, up to the first that does not fit.
    fn options<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let order = self.order;
        std::iter::from_fn(move || {
            let (header, rest) = bytes.split_first_chunk::<4>()?;
            let (code, length) = (order.u16_at(header, 0), usize::from(order.u16_at(header, 2)));
            if code == END_OF_OPTIONS {
                return None;
            }
            let value = rest.get(..length)?;
            bytes = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            Some((code, value))
        })
    }
}

/// A block without the length at its end.
fn body(block: &[u8]) -> &[u8] {
    &block[..block.len().saturating_sub(4)]
}
