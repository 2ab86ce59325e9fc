//! TCP options: MSS (RFC 9293, section 3.2), window scale and timestamps (RFC 7323), SACK (RFC
//! 2018), fast open (RFC 7413), [accurate ECN](crate::wire::AccEcnOption), and any other option as
//! kind and data.
//!
//! Two views of the same octets: [`TcpOptions`] is what a connection uses, small and `Copy`;
//! [`OptionIter`] and [`emit_option_list`] preserve order and unknown options, for tools.

use super::accecn::{AccEcnOption, AccEcnOrder};
use super::fast_open::FastOpenCookie;
use crate::SeqNum;
use crate::wire::EmitError;
use core::fmt;

/// Maximum octets of options: a data offset of 15 words less the fixed header.
pub const MAX_OPTIONS_LEN: usize = 40;

const END_OF_LIST: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const FAST_OPEN: u8 = 34;
const EXPERIMENT: u8 = 254;
/// The experiment identifier of fast open (RFC 6994; the drafts of RFC 7413).
const FAST_OPEN_EXID: [u8; 2] = [0xf9, 0x89];

/// The timestamps option (RFC 7323, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's timestamp clock.
    pub val: u32,
    /// TSecr: the echoed timestamp of the peer; only valid with ACK.
    pub ecr: u32,
}

/// Up to four SACK blocks, in the order of the option (RFC 2018, section 3): the first sequence
/// number of a block of received data, and the one after its last.
///
/// Received blocks are not validated: an edge may lie anywhere, even before its partner.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    blocks: [(SeqNum, SeqNum); Self::MAX],
    len: u32,
}

impl SackBlocks {
    /// Maximum number of blocks in an option.
    pub const MAX: usize = 4;
    /// No blocks: the option is absent.
    pub const EMPTY: Self = Self { blocks: [(SeqNum(0), SeqNum(0)); Self::MAX], len: 0 };

    /// How many blocks fit into `octets` of the option area behind options that are aligned to four
    /// octets, and behind `counters`.
    pub(crate) fn that_fit(octets: usize, counters: Option<&AccEcnOption>) -> usize {
        let head = sack_at(counters.map_or(0, AccEcnOption::option_len)) + 2;
        (octets.saturating_sub(head) / 8).min(Self::MAX)
    }

    /// The first four blocks of a slice.
    #[must_use]
    pub fn from_slice(blocks: &[(SeqNum, SeqNum)]) -> Self {
        blocks.iter().copied().collect()
    }

    /// Appends a block; returns false, and changes nothing, if there are already four.
    pub fn push(&mut self, start: SeqNum, end: SeqNum) -> bool {
        match self.blocks.get_mut(self.len as usize) {
            Some(slot) => {
                *slot = (start, end);
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// The number of blocks, 0 to 4.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// True if there are no blocks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The blocks in order.
    #[must_use]
    pub fn as_slice(&self) -> &[(SeqNum, SeqNum)] {
        self.blocks.get(..self.len()).unwrap_or_default()
    }

    /// The blocks in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (SeqNum, SeqNum)> + DoubleEndedIterator + '_ {
        self.as_slice().iter().copied()
    }
}

impl FromIterator<(SeqNum, SeqNum)> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = (SeqNum, SeqNum)>>(iter: I) -> Self {
        let mut blocks = Self::EMPTY;
        for (start, end) in iter.into_iter().take(Self::MAX) {
            blocks.push(start, end);
        }
        blocks
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The options that a connection understands.
///
/// Received values are raw: clamp a window scale above 14 (RFC 7323, section 2.3), and ignore MSS,
/// window scale and SACK-permitted unless they are on a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Maximum segment size, octets of data.
    pub mss: Option<u16>,
    /// Window scale: the shift count in the option.
    pub window_scale: Option<u8>,
    /// SACK may be sent (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Counters of accurate ECN.
    pub accecn: Option<AccEcnOption>,
    /// SACK blocks.
    pub sack: SackBlocks,
}

impl TcpOptions {
    /// No options.
    pub const NONE: Self = Self {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        accecn: None,
        sack: SackBlocks::EMPTY,
    };

    /// Parses the option area of a header. The flag tells whether the list ended at an option with
    /// an invalid length; the options before it count (RFC 9293, section 3.1 and MUST-7).
    ///
    /// An option of a known kind with a wrong length for its kind is skipped. If a kind occurs
    /// twice, the last one counts.
    #[must_use]
    pub fn parse(raw: &[u8]) -> (Self, bool) {
        let mut options = Self::NONE;
        let mut iter = OptionIter::new(raw);
        for option in &mut iter {
            match option {
                TcpOption::MaximumSegmentSize(mss) => options.mss = Some(mss),
                TcpOption::WindowScale(shift) => options.window_scale = Some(shift),
                TcpOption::SackPermitted => options.sack_permitted = true,
                TcpOption::Sack(blocks) => options.sack = blocks,
                TcpOption::Timestamps(timestamps) => options.timestamps = Some(timestamps),
                TcpOption::AccEcn(counters) => options.accecn = Some(counters),
                TcpOption::EndOfList
                | TcpOption::Nop
                | TcpOption::FastOpen(_)
                | TcpOption::Unknown { .. } => {}
            }
        }
        (options, iter.is_malformed())
    }

    /// Octets that [`emit_tcp`](crate::wire::emit_tcp) uses for these options in the standard
    /// layout: a multiple of four, at most 40.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        let fixed = self.fixed_len();
        match self.sack_that_fit(fixed) {
            0 => fixed.next_multiple_of(4),
            blocks => sack_at(fixed) + 2 + 8 * blocks,
        }
    }

    /// Writes the standard layout and returns its length. Everything but the counters of accurate
    /// ECN is aligned to four octets: MSS; SACK-permitted before the timestamps; window scale; the
    /// counters; then as many SACK blocks as fit, first ones first (three with timestamps, RFC
    /// 2018, section 3).
    #[inline(always)]
    pub(in crate::wire) fn emit(&self, out: &mut [u8; MAX_OPTIONS_LEN]) -> usize {
        let mut writer = OptionWriter { out, len: 0 };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            writer.put([MSS, 4, high, low]);
        }
        match (self.sack_permitted, self.timestamps) {
            (permitted, Some(Timestamps { val, ecr })) => {
                writer.put(if permitted {
                    [SACK_PERMITTED, 2, TIMESTAMPS, 10]
                } else {
                    [NOP, NOP, TIMESTAMPS, 10]
                });
                writer.put(val.to_be_bytes());
                writer.put(ecr.to_be_bytes());
            }
            (true, None) => {
                writer.put([NOP, NOP, SACK_PERMITTED, 2]);
            }
            (false, None) => {}
        }
        if let Some(shift) = self.window_scale {
            writer.put([NOP, WINDOW_SCALE, 3, shift]);
        }
        if let Some(counters) = &self.accecn {
            writer.put_counters(counters);
        }
        let blocks = self.sack_that_fit(writer.len);
        if blocks > 0 {
            while writer.len < sack_at(writer.len) {
                writer.put([NOP]);
            }
            writer.put([SACK, 2 + 8 * blocks as u8]);
            for (start, end) in self.sack.iter().take(blocks) {
                writer.put(start.0.to_be_bytes());
                writer.put(end.0.to_be_bytes());
            }
        }
        while !writer.len.is_multiple_of(4) {
            writer.put([NOP]);
        }
        writer.len
    }

    /// Writes the standard layout and a fast open option behind it, padded to a multiple of four,
    /// and returns the length. The options of a SYN and the longest cookie fit.
    #[cold]
    pub(in crate::wire) fn emit_with_cookie(
        &self,
        cookie: &FastOpenCookie,
        out: &mut [u8; MAX_OPTIONS_LEN],
    ) -> Result<usize, EmitError> {
        let len = self.emit(out);
        let mut writer = OptionWriter { out, len };
        let nops = cookie.padded_len() - cookie.option_len();
        let fits = writer.put_cookie(cookie) && (0..nops).all(|_| writer.put([NOP]));
        if fits { Ok(writer.len) } else { Err(EmitError::OptionsTooLong) }
    }

    /// These options as the standard layout has them: without the SACK blocks for which it has no
    /// room.
    #[inline]
    pub(in crate::wire) fn as_written(mut self) -> Self {
        self.sack.len = self.sack.len.min(self.sack_that_fit(self.fixed_len()) as u32);
        self
    }

    const fn fixed_len(&self) -> usize {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        if self.timestamps.is_some() {
            len += 12;
        } else if self.sack_permitted {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4;
        }
        if let Some(counters) = &self.accecn {
            len += counters.option_len();
        }
        len
    }

    const fn sack_that_fit(&self, fixed: usize) -> usize {
        let room = (MAX_OPTIONS_LEN - 2).saturating_sub(sack_at(fixed)) / 8;
        if self.sack.len() < room { self.sack.len() } else { room }
    }
}

/// Where a SACK option begins behind `fixed` octets of options: its blocks are aligned to four
/// octets.
const fn sack_at(fixed: usize) -> usize {
    (fixed + 2).next_multiple_of(4) - 2
}

/// The timestamps, if the option area is exactly NOP, NOP, timestamps: the layout of RFC 7323,
/// appendix A, which nearly every segment has.
#[inline(always)]
pub(in crate::wire) fn lone_timestamps(raw: &[u8]) -> Option<Timestamps> {
    let raw: &[u8; 12] = raw.try_into().ok()?;
    match *raw {
        [NOP, NOP, TIMESTAMPS, 10, v0, v1, v2, v3, e0, e1, e2, e3] => Some(Timestamps {
            val: u32::from_be_bytes([v0, v1, v2, v3]),
            ecr: u32::from_be_bytes([e0, e1, e2, e3]),
        }),
        _ => None,
    }
}

/// One option of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpOption<'a> {
    /// Kind 0: the end of the list; the rest of the option area is padding.
    EndOfList,
    /// Kind 1: no operation, one octet.
    Nop,
    /// Kind 2: maximum segment size in octets of data.
    MaximumSegmentSize(u16),
    /// Kind 3: window scale, the shift count in the option.
    WindowScale(u8),
    /// Kind 4: SACK permitted.
    SackPermitted,
    /// Kind 5: one to four SACK blocks.
    Sack(SackBlocks),
    /// Kind 8: timestamps.
    Timestamps(Timestamps),
    /// Kind 34, or 254 with the experiment identifier 0xF989: TCP Fast Open.
    FastOpen(FastOpenCookie),
    /// Kind 172 or 174: counters of accurate ECN.
    AccEcn(AccEcnOption),
    /// Any other option, including a known kind with a wrong length.
    Unknown {
        /// The kind; not 0 or 1.
        kind: u8,
        /// The octets after the length octet.
        data: &'a [u8],
    },
}

impl<'a> TcpOption<'a> {
    fn decode(kind: u8, data: &'a [u8]) -> Self {
        match (kind, data) {
            (MSS, &[a, b]) => Self::MaximumSegmentSize(u16::from_be_bytes([a, b])),
            (WINDOW_SCALE, &[shift]) => Self::WindowScale(shift),
            (SACK_PERMITTED, []) => Self::SackPermitted,
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => Self::Timestamps(Timestamps {
                val: u32::from_be_bytes([a, b, c, d]),
                ecr: u32::from_be_bytes([e, f, g, h]),
            }),
            (SACK, _) => match data.as_chunks::<8>() {
                (blocks, []) if (1..=SackBlocks::MAX).contains(&blocks.len()) => Self::Sack(
                    blocks
                        .iter()
                        .map(|&[a, b, c, d, e, f, g, h]| {
                            let edge = |bytes| SeqNum(u32::from_be_bytes(bytes));
                            (edge([a, b, c, d]), edge([e, f, g, h]))
                        })
                        .collect(),
                ),
                _ => Self::Unknown { kind, data },
            },
            (FAST_OPEN, _) => match FastOpenCookie::new(data) {
                Some(cookie) => Self::FastOpen(cookie),
                None => Self::Unknown { kind, data },
            },
            (EXPERIMENT, [0xf9, 0x89, cookie @ ..]) => match FastOpenCookie::new(cookie) {
                Some(cookie) => Self::FastOpen(cookie.experimental(true)),
                None => Self::Unknown { kind, data },
            },
            _ => match AccEcnOrder::of_kind(kind) {
                Some(order) => Self::AccEcn(AccEcnOption::decode(order, data)),
                None => Self::Unknown { kind, data },
            },
        }
    }

    fn emit(&self, writer: &mut OptionWriter<'_>) -> bool {
        match *self {
            Self::EndOfList => writer.put([END_OF_LIST]),
            Self::Nop => writer.put([NOP]),
            Self::MaximumSegmentSize(mss) => writer.put([MSS, 4]) && writer.put(mss.to_be_bytes()),
            Self::WindowScale(shift) => writer.put([WINDOW_SCALE, 3, shift]),
            Self::SackPermitted => writer.put([SACK_PERMITTED, 2]),
            Self::Sack(blocks) => {
                writer.put([SACK, 2 + 8 * blocks.len as u8])
                    && blocks.iter().all(|(start, end)| {
                        writer.put(start.0.to_be_bytes()) && writer.put(end.0.to_be_bytes())
                    })
            }
            Self::Timestamps(Timestamps { val, ecr }) => {
                writer.put([TIMESTAMPS, 10]) && writer.put(val.to_be_bytes()) && writer.put(ecr.to_be_bytes())
            }
            Self::FastOpen(ref cookie) => writer.put_cookie(cookie),
            Self::AccEcn(ref counters) => writer.put_counters(counters),
            Self::Unknown { kind, data } => writer.put_data(kind, data),
        }
    }
}

/// The options of an option area in order, known and unknown.
///
/// Ends after the end-of-list option, at the end of the area, or at an option with an invalid
/// length: shorter than its own two octets, or longer than the rest. In that case
/// [`is_malformed`](Self::is_malformed) returns true.
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
    malformed: bool,
}

impl<'a> OptionIter<'a> {
    /// The options in the area between the fixed header and the data.
    #[must_use]
    pub const fn new(raw: &'a [u8]) -> Self {
        Self { rest: raw, malformed: false }
    }

    /// True if the list ended at an invalid length.
    #[must_use]
    pub const fn is_malformed(&self) -> bool {
        self.malformed
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        let (&kind, rest) = self.rest.split_first()?;
        match kind {
            END_OF_LIST => {
                self.rest = &[];
                Some(TcpOption::EndOfList)
            }
            NOP => {
                self.rest = rest;
                Some(TcpOption::Nop)
            }
            _ => {
                let framed = rest.split_first().and_then(|(&len, rest)| {
                    let data_len = usize::from(len).checked_sub(2)?;
                    rest.split_at_checked(data_len)
                });
                let Some((data, rest)) = framed else {
                    self.malformed = true;
                    self.rest = &[];
                    return None;
                };
                self.rest = rest;
                Some(TcpOption::decode(kind, data))
            }
        }
    }
}

/// Writes options in the given order, octet for octet, pads with zeros (end of list) to a multiple
/// of four, and returns the length.
///
/// # Errors
/// [`EmitError::OptionsTooLong`] if they exceed 40 octets.
pub fn emit_option_list(
    options: &[TcpOption<'_>],
    out: &mut [u8; MAX_OPTIONS_LEN],
) -> Result<usize, EmitError> {
    let mut writer = OptionWriter { out, len: 0 };
    if !options.iter().all(|option| option.emit(&mut writer)) {
        return Err(EmitError::OptionsTooLong);
    }
    while !writer.len.is_multiple_of(4) {
        writer.put([END_OF_LIST]);
    }
    Ok(writer.len)
}

struct OptionWriter<'b> {
    out: &'b mut [u8; MAX_OPTIONS_LEN],
    len: usize,
}

impl OptionWriter<'_> {
    /// Appends octets; returns false, and changes nothing, if they do not fit.
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> bool {
        match self.out.get_mut(self.len..).and_then(|room| room.first_chunk_mut::<N>()) {
            Some(room) => {
                *room = bytes;
                self.len += N;
                true
            }
            None => false,
        }
    }

    /// Appends a fast open option; returns false if not all of it fits.
    fn put_cookie(&mut self, cookie: &FastOpenCookie) -> bool {
        if !cookie.is_experimental() {
            return self.put_data(FAST_OPEN, cookie.as_slice());
        }
        let [high, low] = FAST_OPEN_EXID;
        self.put([EXPERIMENT, cookie.option_len() as u8, high, low])
            && cookie.as_slice().iter().all(|octet| self.put([*octet]))
    }

    /// Appends counters of accurate ECN; returns false if not all of them fit.
    fn put_counters(&mut self, counters: &AccEcnOption) -> bool {
        self.put([counters.order().kind(), counters.option_len() as u8])
            && counters.fields().iter().all(|field| {
                let [_, high, middle, low] = field.to_be_bytes();
                self.put([high, middle, low])
            })
    }

    /// Appends an option with this data; returns false if not all of it fits.
    fn put_data(&mut self, kind: u8, data: &[u8]) -> bool {
        u8::try_from(data.len() + 2).is_ok_and(|len| self.put([kind, len]))
            && data.iter().all(|octet| self.put([*octet]))
    }
}
