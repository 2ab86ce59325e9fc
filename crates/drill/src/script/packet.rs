//! Packet lines: direction, what is said of the IP header, and a TCP segment or an ICMP message.

use super::ScriptError;
use super::cursor::Cursor;
use ackline_tcp_core::wire::{Ecn, TcpFlags};

/// A packet of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketLine {
    /// Into the stack, or expected from it.
    pub direction: Direction,
    /// What is said of the IP header.
    pub ip: IpFields,
    /// Source and destination port, if they are given.
    pub ports: Option<(u16, u16)>,
    /// What it carries.
    pub payload: Payload,
}

impl PacketLine {
    /// It is expected from the stack.
    #[must_use]
    pub fn is_outbound(&self) -> bool {
        self.direction == Direction::Out
    }
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into the stack: `<`.
    In,
    /// Expected from the stack: `>`.
    Out,
}

/// Fields of the IP header. What is not given is zero (TTL: 255) inbound, and not checked outbound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpFields {
    /// The ECN field.
    pub ecn: Option<Ecn>,
    /// `ect01`: either ECT codepoint.
    pub any_ect: bool,
    /// TOS or traffic class, all eight bits.
    pub tos: Option<u8>,
    /// TTL or hop limit.
    pub ttl: Option<u8>,
    /// IPv6 flow label.
    pub flow_label: Option<u32>,
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// A TCP segment.
    Tcp(TcpLine),
    /// An ICMP message.
    Icmp(IcmpLine),
}

/// A TCP segment, in the script's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpLine {
    /// The flags.
    pub flags: TcpFlags,
    /// The first sequence number.
    pub seq: u32,
    /// Payload bytes.
    pub len: u32,
    /// The acknowledgment number.
    pub ack: Option<u32>,
    /// The window field.
    pub window: Option<u16>,
    /// The urgent pointer.
    pub urgent: Option<u16>,
    /// The options in their order.
    pub options: Vec<OptionLine>,
    /// `<...>`: the options are not checked.
    pub any_options: bool,
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionLine {
    /// End of list.
    Eol,
    /// No operation.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    WindowScale(u8),
    /// SACK permitted.
    SackOk,
    /// SACK blocks.
    Sack(Vec<(u32, u32)>),
    /// Timestamps.
    Timestamps {
        /// TSval.
        val: u32,
        /// TSecr.
        ecr: u32,
    },
    /// TCP MD5 signature.
    Md5(Vec<u8>),
    /// Fast open; an empty cookie requests one.
    FastOpen {
        /// The cookie; `None`: the one that the stack gives to the peer.
        cookie: Option<Vec<u8>>,
        /// Kind 254 with the experiment's number instead of kind 34.
        experimental: bool,
    },
    /// Accurate ECN: counters of bytes, in the option's order.
    AccEcn {
        /// Kind 174, which begins with ECT(1), instead of kind 172.
        ect1_first: bool,
        /// One to three counters of 24 bits.
        counters: Vec<u32>,
    },
    /// Another option of the stack, which no script can name.
    Other {
        /// Its kind.
        kind: u8,
        /// Its data.
        data: Vec<u8>,
    },
}

/// An ICMP message.
#[derive(Clone, Debug, PartialEq)]
pub struct IcmpLine {
    /// Type, as the script names it.
    pub kind: String,
    /// Code, as the script names it; empty if it is not given.
    pub code: String,
    /// The MTU of the next hop.
    pub mtu: Option<u32>,
    /// The identifier of an echo.
    pub id: Option<u16>,
    /// The quoted segment: its first sequence number and its payload bytes.
    pub quoted: Option<(u32, u32)>,
}

pub(super) fn packet(cursor: &mut Cursor<'_>) -> Result<PacketLine, ScriptError> {
    let direction = if cursor.eat("<")? { Direction::In } else { Direction::Out };
    if direction == Direction::Out {
        cursor.expect(">")?;
    }
    let mut line = PacketLine {
        direction,
        ip: IpFields::default(),
        ports: None,
        payload: Payload::Icmp(IcmpLine {
            kind: String::new(),
            code: String::new(),
            mtu: None,
            id: None,
            quoted: None,
        }),
    };
    let mut quoted = None;
    loop {
        cursor.skip_space()?;
        match cursor.peek() {
            Some('[') => {
                cursor.expect("[")?;
                cursor.skip_space()?;
                if cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
                    quoted = Some(range(cursor)?);
                    cursor.expect("]")?;
                } else {
                    ip_fields(cursor, direction, &mut line.ip, "]")?;
                }
            }
            Some('(') => {
                cursor.expect("(")?;
                ip_fields(cursor, direction, &mut line.ip, ")")?;
            }
            _ => break,
        }
    }
    match cursor.peek_word() {
        "icmp" => line.payload = Payload::Icmp(icmp(cursor, quoted)?),
        word @ ("sctp" | "udp" | "udplite" | "mpls" | "gre" | "ipv4" | "ipv6" | "psp" | "ah" | "esp") => {
            return cursor.unsupported(format!("{word} packets"));
        }
        _ => {
            line.ports = ports(cursor)?;
            line.payload = Payload::Tcp(tcp(cursor, direction)?);
        }
    }
    Ok(line)
}

fn ip_fields(
    cursor: &mut Cursor<'_>,
    direction: Direction,
    ip: &mut IpFields,
    end: &str,
) -> Result<(), ScriptError> {
    while !cursor.eat(end)? {
        cursor.eat(",")?;
        match cursor.word()? {
            "noecn" => ip.ecn = Some(Ecn::NotEct),
            "ect0" => ip.ecn = Some(Ecn::Ect0),
            "ect1" => ip.ecn = Some(Ecn::Ect1),
            "ce" => ip.ecn = Some(Ecn::Ce),
            "ect01" if direction == Direction::Out => ip.any_ect = true,
            "ect01" => return cursor.error("ect01 is for packets that are expected (>)"),
            "tos" => ip.tos = Some(cursor.integer("TOS: 0 to 0xff")?),
            "ttl" => ip.ttl = Some(cursor.integer("TTL: 0 to 255")?),
            "flowlabel" => ip.flow_label = Some(cursor.integer("flow label: 0 to 0xfffff")?),
            _ => return cursor.expected("noecn, ect0, ect1, ect01, ce, tos, ttl or flowlabel"),
        }
    }
    Ok(())
}

/// `sport > dport` in front of the flags.
fn ports(cursor: &mut Cursor<'_>) -> Result<Option<(u16, u16)>, ScriptError> {
    let rest = cursor.rest();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    // A lone digit is the ACE field.
    if after.len() == rest.len() || !after.trim_start().starts_with('>') {
        return Ok(None);
    }
    let source = cursor.integer("port: 0 to 65535")?;
    cursor.expect(">")?;
    Ok(Some((source, cursor.integer("port: 0 to 65535")?)))
}

/// `start:end(len)`: the start and the length.
fn range(cursor: &mut Cursor<'_>) -> Result<(u32, u32), ScriptError> {
    let start: u32 = cursor.integer("sequence number")?;
    cursor.expect(":")?;
    let end: u32 = cursor.integer("sequence number")?;
    cursor.expect("(")?;
    let len: u32 = cursor.integer("length")?;
    cursor.expect(")")?;
    if end.wrapping_sub(start) != len {
        let right = end.wrapping_sub(start);
        return cursor.error(format!("{start}:{end}({len}) does not agree: {start}:{end} are {right} bytes"));
    }
    Ok((start, len))
}

const fn is_flag(c: char) -> bool {
    matches!(c, 'F' | 'S' | 'R' | 'P' | '.' | 'E' | 'W' | 'A' | 'U' | '-' | '0'..='7')
}

fn tcp_flags(cursor: &mut Cursor<'_>) -> Result<TcpFlags, ScriptError> {
    cursor.skip_space()?;
    let text = cursor.take_while(is_flag);
    if text.is_empty() {
        return cursor.expected("flags: letters of FSRP.EWAU, or -");
    }
    let mut flags = TcpFlags::NONE;
    let (mut named, mut counted) = (false, false);
    for c in text.chars() {
        flags |= match c {
            'F' => TcpFlags::FIN,
            'S' => TcpFlags::SYN,
            'R' => TcpFlags::RST,
            'P' => TcpFlags::PSH,
            '.' => TcpFlags::ACK,
            'U' => TcpFlags::URG,
            'E' | 'W' | 'A' => {
                named = true;
                match c {
                    'E' => TcpFlags::ECE,
                    'W' => TcpFlags::CWR,
                    _ => TcpFlags::AE,
                }
            }
            '-' if text.len() == 1 => TcpFlags::NONE,
            digit @ '0'..='7' if !counted => {
                counted = true;
                // RFC 9768, section 3.2.1: AE, CWR and ECE are one field.
                TcpFlags::from_bits((u16::from(digit as u8) & 7) << 6)
            }
            _ => return cursor.error(format!("flags {text:?}: - stands alone, and there is one digit")),
        };
    }
    if named && counted {
        return cursor.error(format!("flags {text:?}: a digit is the three bits of A, W and E together"));
    }
    Ok(flags)
}

fn tcp(cursor: &mut Cursor<'_>, direction: Direction) -> Result<TcpLine, ScriptError> {
    let flags = tcp_flags(cursor)?;
    let (seq, len) = range(cursor)?;
    let mut line = TcpLine {
        flags,
        seq,
        len,
        ack: None,
        window: None,
        urgent: None,
        options: vec![],
        any_options: false,
    };
    loop {
        cursor.skip_space()?;
        match cursor.peek_word() {
            "ack" => {
                cursor.word()?;
                line.ack = Some(cursor.integer("acknowledgment number")?);
            }
            "win" => {
                cursor.word()?;
                line.window = Some(cursor.integer("window: 0 to 65535")?);
            }
            "urg" => {
                cursor.word()?;
                line.urgent = Some(cursor.integer("urgent pointer: 0 to 65535")?);
            }
            _ => break,
        }
    }
    if cursor.peek() == Some('<') {
        cursor.expect("<")?;
        options(cursor, direction, &mut line)?;
    }
    if direction == Direction::In && line.window.is_none() {
        return cursor.error("a packet into the stack needs its window: win N");
    }
    Ok(line)
}

fn options(cursor: &mut Cursor<'_>, direction: Direction, line: &mut TcpLine) -> Result<(), ScriptError> {
    if cursor.eat("...")? {
        if direction == Direction::In {
            return cursor.error("<...> is for packets that are expected (>)");
        }
        line.any_options = true;
        return cursor.expect(">");
    }
    while !cursor.eat(">")? {
        if !line.options.is_empty() {
            cursor.expect(",")?;
        }
        let option = option(cursor)?;
        line.options.push(option);
    }
    let octets: usize = line.options.iter().map(OptionLine::octets).sum();
    if !octets.is_multiple_of(4) || octets > 40 {
        return cursor.error(format!(
            "the options take {octets} bytes: pad them with nop or eol to a multiple of 4, at most 40"
        ));
    }
    Ok(())
}

fn option(cursor: &mut Cursor<'_>) -> Result<OptionLine, ScriptError> {
    Ok(match cursor.word()? {
        "eol" => OptionLine::Eol,
        "nop" => OptionLine::Nop,
        "mss" => OptionLine::Mss(cursor.integer("MSS: 0 to 65535")?),
        "wscale" => OptionLine::WindowScale(cursor.integer("window scale: 0 to 255")?),
        "sackOK" => OptionLine::SackOk,
        "sack" => {
            let mut blocks = vec![];
            cursor.skip_space()?;
            while cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
                let start = cursor.integer("sequence number")?;
                cursor.expect(":")?;
                blocks.push((start, cursor.integer("sequence number")?));
                cursor.skip_space()?;
            }
            OptionLine::Sack(blocks)
        }
        "TS" => {
            word(cursor, "val")?;
            let val = cursor.integer("timestamp")?;
            word(cursor, "ecr")?;
            OptionLine::Timestamps { val, ecr: cursor.integer("timestamp")? }
        }
        "md5" => OptionLine::Md5(hex(cursor)?),
        name @ ("FO" | "FOEXP") => {
            let experimental = name == "FOEXP";
            cursor.skip_space()?;
            let name = cursor.peek_word();
            let live = name.starts_with("TFO_COOKIE") && cursor.defined(name).is_none();
            let cookie = if live {
                cursor.word()?;
                None
            } else {
                Some(hex(cursor)?)
            };
            OptionLine::FastOpen { cookie, experimental }
        }
        "ECN" => {
            cursor.skip_space()?;
            let ect1_first = cursor.peek_word() == "e1b";
            let order = if ect1_first { ["e1b", "ceb", "e0b"] } else { ["e0b", "ceb", "e1b"] };
            let mut counters = vec![];
            for name in order {
                if cursor.eat_word(name)? {
                    counters.push(cursor.integer::<u32>("counter: 24 bits")? & 0xff_ffff);
                }
            }
            OptionLine::AccEcn { ect1_first, counters }
        }
        name @ ("mp_capable" | "mp_capable_no_cs" | "mp_join_syn" | "mp_join_syn_ack" | "mp_join_ack"
        | "dss" | "add_address" | "mp_fastclose" | "ao" | "exp-tarr" | "tarr") => {
            return cursor.unsupported(format!("the TCP option {name}"));
        }
        name => {
            return cursor.error(format!(
                "{name:?} is no TCP option: eol, nop, mss, wscale, sackOK, sack, TS, md5, FO, FOEXP, ECN"
            ));
        }
    })
}

fn word(cursor: &mut Cursor<'_>, word: &str) -> Result<(), ScriptError> {
    if cursor.eat_word(word)? { Ok(()) } else { cursor.expected(word) }
}

/// Hexadecimal octets; none, if no word follows.
fn hex(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, ScriptError> {
    let word = cursor.word()?;
    let text = cursor.defined(word).unwrap_or(word);
    let octets = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    match octets.collect() {
        Some(octets) => Ok(octets),
        None => cursor.error(format!("{text:?} are no hexadecimal octets")),
    }
}

impl OptionLine {
    /// Octets that it takes in a header; a cookie of the stack has eight.
    #[must_use]
    pub fn octets(&self) -> usize {
        match self {
            Self::Eol | Self::Nop => 1,
            Self::Mss(_) => 4,
            Self::WindowScale(_) => 3,
            Self::SackOk => 2,
            Self::Sack(blocks) => 2 + 8 * blocks.len(),
            Self::Timestamps { .. } => 10,
            Self::Md5(digest) => 2 + digest.len(),
            Self::FastOpen { cookie, experimental } => {
                let cookie = cookie.as_ref().map_or(8, Vec::len);
                cookie + if *experimental { 4 } else { 2 }
            }
            Self::AccEcn { counters, .. } => 2 + 3 * counters.len(),
            Self::Other { data, .. } => 2 + data.len(),
        }
    }
}

fn icmp(cursor: &mut Cursor<'_>, quoted: Option<(u32, u32)>) -> Result<IcmpLine, ScriptError> {
    cursor.word()?;
    let kind = cursor.word()?.to_owned();
    let mut line = IcmpLine { kind, code: String::new(), mtu: None, id: None, quoted };
    loop {
        cursor.skip_space()?;
        match cursor.peek_word() {
            "mtu" => {
                cursor.word()?;
                line.mtu = Some(cursor.integer("MTU")?);
            }
            "id" => {
                cursor.word()?;
                line.id = Some(cursor.integer("identifier: 0 to 65535")?);
            }
            code if line.code.is_empty() && code.starts_with(|c: char| c.is_ascii_lowercase()) => {
                line.code = cursor.word()?.to_owned();
            }
            _ if cursor.peek() == Some('[') => {
                cursor.expect("[")?;
                line.quoted = Some(range(cursor)?);
                cursor.expect("]")?;
            }
            _ => return Ok(line),
        }
    }
}

/// Kinds of options that the core does not read (RFC 2385), or that a script may give in lengths
/// of its own (RFC 9768, section 3.2.3).
pub(crate) const MD5: u8 = 19;
pub(crate) const ACC_ECN_0: u8 = 172;
pub(crate) const ACC_ECN_1: u8 = 174;

impl OptionLine {
    /// An option that the core's parser has no name for.
    pub(crate) fn unknown(kind: u8, data: &[u8]) -> Self {
        match kind {
            MD5 => Self::Md5(data.to_vec()),
            _ => Self::Other { kind, data: data.to_vec() },
        }
    }
}
