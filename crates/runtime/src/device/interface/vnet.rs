//! The virtio network header that precedes every packet of a TUN device with IFF_VNET_HDR, and
//! every frame of a packet socket with PACKET_VNET_HDR.
//!
//! In both directions it says which checksum is partial and how to segment a super-packet: Virtual
//! I/O Device (VIRTIO) 1.2, section 5.1.6. It uses the machine's byte order (legacy header).

pub(in crate::device) use super::RxMeta;
use crate::device::RxChecksum;
#[cfg(any(feature = "tun", feature = "af-packet"))]
use crate::device::TxChecksum;
use std::num::NonZeroU16;

/// Bytes of the header: without `num_buffers`, which only a virtio device with mergeable buffers
/// has.
pub(in crate::device) const LEN: usize = 10;

/// Checksum from `csum_start` to the end is to be stored at `csum_start + csum_offset`.
const NEEDS_CSUM: u8 = 1;
/// The checksum was verified.
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// The first segment carries CWR; the others must not (RFC 3168, section 6.1.2).
const GSO_ECN: u8 = 0x80;

/// Parses the header in front of `packet`; `None` if it does not fit the packet.
pub(in crate::device) fn parse(header: &[u8; LEN], packet: &[u8]) -> Option<RxMeta> {
    let [flags, gso_type, _, _, size_low, size_high, start_low, start_high, offset_low, offset_high] =
        *header;
    let checksum = if flags & NEEDS_CSUM != 0 {
        let start = usize::from(u16::from_ne_bytes([start_low, start_high]));
        let offset = usize::from(u16::from_ne_bytes([offset_low, offset_high]));
        // Both are below 2^16, so the sum cannot overflow.
        if start + offset + 2 > packet.len() {
            return None;
        }
        RxChecksum::Partial
    } else if flags & DATA_VALID != 0 {
        RxChecksum::Trusted
    } else {
        RxChecksum::Verify
    };
    let version = packet.first()? >> 4;
    let segment_size = match (gso_type & !GSO_ECN, version) {
        (GSO_NONE, _) => None,
        (GSO_TCPV4, 4) | (GSO_TCPV6, 6) => Some(NonZeroU16::new(u16::from_ne_bytes([size_low, size_high]))?),
        _ => return None,
    };
    Some(RxMeta { segment_size, checksum })
}

/// The header for a packet to be sent; `header` holds the packet's IP and TCP headers. The error
/// says why the packet cannot be described.
#[cfg(any(feature = "tun", feature = "af-packet"))]
pub(in crate::device) fn build(
    header: &[u8],
    segment_size: Option<NonZeroU16>,
    checksum: TxChecksum,
) -> Result<[u8; LEN], &'static str> {
    let mut out = [0; LEN];
    match checksum {
        TxChecksum::Complete => {
            if segment_size.is_some() {
                return Err("a super-packet needs a partial checksum");
            }
        }
        TxChecksum::Omitted => return Err("the kernel drops packets without a checksum"),
        TxChecksum::Partial { start, offset } => {
            if usize::from(start) + usize::from(offset) + 2 > header.len() {
                return Err("the checksum field lies outside the headers");
            }
            out[0] = NEEDS_CSUM;
            out[6..8].copy_from_slice(&start.to_ne_bytes());
            out[8..10].copy_from_slice(&offset.to_ne_bytes());
            if let Some(size) = segment_size {
                out[1] = match header[0] >> 4 {
                    4 => GSO_TCPV4,
                    6 => GSO_TCPV6,
                    _ => return Err("neither an IPv4 nor an IPv6 packet"),
                };
                if cwr(header, usize::from(start)) {
                    out[1] |= GSO_ECN;
                }
                let length = u16::try_from(header.len()).map_err(|_| "headers of more than 65,535 bytes")?;
                out[2..4].copy_from_slice(&length.to_ne_bytes());
                out[4..6].copy_from_slice(&size.get().to_ne_bytes());
            }
        }
    }
    Ok(out)
}

/// Like [`parse`], with `link` bytes of link header in front of the packet, which the offsets
/// include.
#[cfg(any(feature = "af-packet", feature = "raw"))]
pub(in crate::device) fn parse_behind(link: u16, header: &[u8; LEN], packet: &[u8]) -> Option<RxMeta> {
    let mut header = *header;
    if header[0] & NEEDS_CSUM != 0 {
        let start = u16::from_ne_bytes([header[6], header[7]]).checked_sub(link)?;
        header[6..8].copy_from_slice(&start.to_ne_bytes());
    }
    parse(&header, packet)
}

/// Like [`build`], with `link` bytes of link header in front of the packet. Always gives the length
/// of all headers: a packet socket places that much of the packet where the kernel's protocols look
/// for headers.
#[cfg(feature = "af-packet")]
pub(in crate::device) fn build_behind(
    link: u16,
    header: &[u8],
    segment_size: Option<NonZeroU16>,
    checksum: TxChecksum,
) -> Result<[u8; LEN], &'static str> {
    const TOO_LONG: &str = "headers of more than 65,535 bytes";
    let mut out = build(header, segment_size, checksum)?;
    let length =
        u16::try_from(header.len()).ok().and_then(|length| length.checked_add(link)).ok_or(TOO_LONG)?;
    out[2..4].copy_from_slice(&length.to_ne_bytes());
    if out[0] & NEEDS_CSUM != 0 {
        // Below the length of all headers, which was checked.
        let start = u16::from_ne_bytes([out[6], out[7]]) + link;
        out[6..8].copy_from_slice(&start.to_ne_bytes());
    }
    Ok(out)
}

/// The CWR flag of the TCP header that begins at `tcp`.
#[cfg(any(feature = "tun", feature = "af-packet"))]
fn cwr(header: &[u8], tcp: usize) -> bool {
    header.get(tcp + 13).is_some_and(|flags| flags & 0x80 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: [u8; 60] = {
        let mut packet = [0; 60];
        packet[0] = 0x45;
        packet
    };
    const TCP_OVER_V4: TxChecksum = TxChecksum::Partial { start: 20, offset: 16 };

    fn size(bytes: u16) -> Option<NonZeroU16> {
        NonZeroU16::new(bytes)
    }

    #[test]
    fn what_is_built_reads_back() {
        let header = build(&V4[..40], size(1448), TCP_OVER_V4).expect("a header");
        assert_eq!(header[1], GSO_TCPV4);
        let received = parse(&header, &V4).expect("sense");
        assert_eq!(received, RxMeta { segment_size: size(1448), checksum: RxChecksum::Partial });

        let header = build(&V4[..40], None, TxChecksum::Complete).expect("a header");
        let received = parse(&header, &V4).expect("sense");
        assert_eq!(received, RxMeta { segment_size: None, checksum: RxChecksum::Verify });

        let mut verified = [0; LEN];
        verified[0] = DATA_VALID;
        let received = parse(&verified, &V4).expect("sense");
        assert_eq!(received, RxMeta { segment_size: None, checksum: RxChecksum::Trusted });
    }

    #[cfg(feature = "af-packet")]
    #[test]
    fn a_link_header_moves_the_offsets() {
        let header = build_behind(14, &V4[..40], size(1448), TCP_OVER_V4).expect("a header");
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        assert_eq!((word(2), word(4), word(6), word(8)), (54, 1448, 34, 16));
        let received = parse_behind(14, &header, &V4).expect("sense");
        assert_eq!(received, RxMeta { segment_size: size(1448), checksum: RxChecksum::Partial });
        assert!(parse_behind(14, &header, &V4[..37]).is_none(), "checksum field past the end");
        assert!(parse_behind(35, &header, &V4).is_none(), "checksum in the link header");

        let header = build_behind(14, &V4[..40], None, TxChecksum::Complete).expect("a header");
        assert_eq!(header, {
            let mut expected = [0; LEN];
            expected[2..4].copy_from_slice(&54u16.to_ne_bytes());
            expected
        });
    }

    #[test]
    fn cwr_is_for_the_first_segment_only() {
        let mut packet = V4;
        packet[20 + 13] = 0x80;
        let header = build(&packet[..40], size(1000), TCP_OVER_V4).expect("a header");
        assert_eq!(header[1], GSO_TCPV4 | GSO_ECN);
        assert_eq!(parse(&header, &packet).expect("sense").segment_size, size(1000));
    }

    #[test]
    fn headers_that_make_no_sense_are_refused() {
        let good = build(&V4[..40], size(1448), TCP_OVER_V4).expect("a header");
        let with = |at: usize, value: u8| {
            let mut header = good;
            header[at] = value;
            header
        };
        assert!(parse(&good, &V4).is_some());
        assert!(parse(&good, &[]).is_none(), "no packet");
        assert!(parse(&good, &V4[..37]).is_none(), "checksum field past the end");
        assert!(parse(&with(7, 0xff), &V4).is_none(), "checksum starts past the end");
        assert!(parse(&with(1, GSO_TCPV6), &V4).is_none(), "IPv6 super-packet with an IPv4 header");
        assert!(parse(&with(1, 3), &V4).is_none(), "UDP fragmentation was not asked for");
        let mut zero = good;
        zero[4..6].fill(0);
        assert!(parse(&zero, &V4).is_none(), "segments of no bytes");
    }

    #[test]
    fn no_header_panics() {
        for byte in 0..=255u8 {
            for at in 0..LEN {
                let mut header = [0xff; LEN];
                header[at] = byte;
                for packet in [&V4[..], &V4[..1], &[]] {
                    let _ = parse(&header, packet);
                }
            }
        }
    }

    #[test]
    fn packets_that_cannot_be_described_are_refused() {
        assert!(build(&V4[..40], size(1448), TxChecksum::Complete).is_err());
        assert!(build(&V4[..37], None, TCP_OVER_V4).is_err());
        assert!(build(&[0; 40], size(1448), TCP_OVER_V4).is_err(), "IP version 0");
    }
}
