//! Messages of DHCPv6 (RFC 8415, section 8): a type, a transaction, and options, of which some hold
//! options of their own.

/// Types of messages (section 7.3).
pub(super) mod kind {
    pub(in super::super) const SOLICIT: u8 = 1;
    pub(in super::super) const ADVERTISE: u8 = 2;
    pub(in super::super) const REQUEST: u8 = 3;
    pub(in super::super) const CONFIRM: u8 = 4;
    pub(in super::super) const RENEW: u8 = 5;
    pub(in super::super) const REBIND: u8 = 6;
    pub(in super::super) const REPLY: u8 = 7;
    pub(in super::super) const RELEASE: u8 = 8;
    pub(in super::super) const DECLINE: u8 = 9;
    pub(in super::super) const INFORMATION_REQUEST: u8 = 11;
}

/// Codes of options (section 24; RFC 3646).
pub(super) mod option {
    pub(in super::super) const CLIENT_ID: u16 = 1;
    pub(in super::super) const SERVER_ID: u16 = 2;
    pub(in super::super) const IA_NA: u16 = 3;
    pub(in super::super) const IA_TA: u16 = 4;
    pub(in super::super) const IA_ADDRESS: u16 = 5;
    pub(in super::super) const PREFERENCE: u16 = 7;
    pub(in super::super) const STATUS: u16 = 13;
    pub(in super::super) const RAPID_COMMIT: u16 = 14;
    pub(in super::super) const DNS_SERVERS: u16 = 23;
    pub(in super::super) const DOMAIN_LIST: u16 = 24;
    pub(in super::super) const IA_PD: u16 = 25;
}

/// A received message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) kind: u8,
    pub(super) transaction: [u8; 3],
    pub(super) options: Options<'a>,
}

impl<'a> Message<'a> {
    /// `None` unless its options end where it does.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let ([kind, transaction @ ..], options) = bytes.split_first_chunk::<4>()?;
        Some(Self { kind: *kind, transaction: *transaction, options: Options::parse(options)? })
    }
}

/// Options, each of which is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = split(rest)?.2;
        }
        Some(Self(bytes))
    }

    /// Code and contents of each.
    pub(super) fn each(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (code, contents, more) = split(rest)?;
            rest = more;
            Some((code, contents))
        })
    }

    /// The first with this code.
    pub(super) fn get(self, code: u16) -> Option<&'a [u8]> {
        self.each().find(|option| option.0 == code).map(|option| option.1)
    }
}

/// Code and contents of the first option, and what follows.
fn split(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let ([a, b, c, d], rest) = bytes.split_first_chunk()?;
    let (contents, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*c, *d])))?;
    Some((u16::from_be_bytes([*a, *b]), contents, rest))
}

/// Appends an option.
pub(super) fn push(to: &mut Vec<u8>, code: u16, contents: &[u8]) {
    to.extend(code.to_be_bytes());
    // What is sent is short.
    to.extend(u16::try_from(contents.len()).unwrap_or(u16::MAX).to_be_bytes());
    to.extend(contents);
}
