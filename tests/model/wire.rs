//! Segments, read from octets by this model's own rules.

/// A TCP segment over IPv4 without IP options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) seq: u32,
    pub(crate) ack: Option<u32>,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) window: u16,
    pub(crate) wscale: Option<u8>,
    pub(crate) sack: Vec<(u32, u32)>,
    pub(crate) data: Vec<u8>,
}

fn be16(octets: &[u8], at: usize) -> u32 {
    u32::from(octets[at]) << 8 | u32::from(octets[at + 1])
}

fn be32(octets: &[u8], at: usize) -> u32 {
    be16(octets, at) << 16 | be16(octets, at + 2)
}

/// RFC 1071, section 1.
fn ones_complement(octets: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for pair in octets.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A sequence number as a distance from another, below and above it.
pub(crate) fn distance(to: u32, from: u32) -> i64 {
    i64::from(to.wrapping_sub(from) as i32)
}

impl Segment {
    /// Reads a packet that is intact: lengths, and both checksums.
    pub(crate) fn read(octets: &[u8]) -> Result<Self, String> {
        let total = be16(octets, 2) as usize;
        if octets[0] != 0x45 || total != octets.len() || ones_complement(&octets[..20], 0) != 0xffff {
            return Err("the IP header is wrong".to_owned());
        }
        let tcp = &octets[20..];
        let pseudo: u32 = (0..4).map(|word| be16(octets, 12 + 2 * word)).sum::<u32>() + 6 + tcp.len() as u32;
        if ones_complement(tcp, pseudo) != 0xffff {
            return Err("the TCP checksum is wrong".to_owned());
        }
        let (header, flags) = (usize::from(tcp[12] >> 4) * 4, tcp[13]);
        let mut segment = Self {
            seq: be32(tcp, 4),
            ack: (flags & 0x10 != 0).then(|| be32(tcp, 8)),
            syn: flags & 2 != 0,
            fin: flags & 1 != 0,
            rst: flags & 4 != 0,
            window: be16(tcp, 14) as u16,
            wscale: None,
            sack: vec![],
            data: tcp[header..].to_vec(),
        };
        let mut at = 20;
        while at < header {
            match tcp[at] {
                0 => break,
                1 => at += 1,
                kind => {
                    let len = usize::from(tcp[at + 1]);
                    if len < 2 || at + len > header {
                        return Err("an option is longer than the header".to_owned());
                    }
                    let body = &tcp[at + 2..at + len];
                    match kind {
                        3 => segment.wscale = Some(body[0]),
                        5 => {
                            let blocks = body.chunks(8).map(|block| (be32(block, 0), be32(block, 4)));
                            segment.sack = blocks.collect();
                        }
                        _ => {}
                    }
                    at += len;
                }
            }
        }
        Ok(segment)
    }

    /// Sequence numbers that it takes.
    pub(crate) fn len(&self) -> u32 {
        self.data.len() as u32 + u32::from(self.syn) + u32::from(self.fin)
    }
}
