//! The server's name as a client states it in its first bytes: TLS's *server_name* (RFC 6066,
//! section 3), and HTTP's *Host* (RFC 9110, section 7.2).
//!
//! A client can omit the name, or lie: the name says which server it asks for, not which server has
//! the address.

use rustls::server::Acceptor;
use std::io::Read as _;
use std::sync::Arc;

/// Most bytes that are read to find it. A `ClientHello` with post-quantum keys has about 2,000.
pub(crate) const MOST: usize = 32 << 10;

/// Header fields of a request that are looked at.
const FIELDS: usize = 128;

/// What a client has stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerName {
    /// Not read yet.
    Unread,
    /// A name, in small letters and without a dot at its end.
    Stated(Arc<str>),
    /// None: neither TLS nor HTTP, or without it.
    Absent,
    /// The bytes begin like TLS or HTTP, but are not a valid `ClientHello` or request. A server might
    /// still find a name in them.
    Unreadable,
}

impl ServerName {
    fn stated(name: &str) -> Self {
        match name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase() {
            name if name.is_empty() => Self::Absent,
            name => Self::Stated(name.into()),
        }
    }

    /// The name, if there is one.
    pub(crate) fn name(&self) -> Option<Arc<str>> {
        match self {
            Self::Stated(name) => Some(name.clone()),
            Self::Unread | Self::Absent | Self::Unreadable => None,
        }
    }
}

/// Reads the name as the bytes come.
#[derive(Default)]
pub(crate) struct ServerNameReader {
    tls: Acceptor,
    /// Bytes that have been passed to `tls`.
    taken: usize,
}

impl ServerNameReader {
    /// Reads the name from `head`, all bytes that the client has sent so far. `None` if more are
    /// needed.
    pub(crate) fn read(&mut self, head: &[u8]) -> Option<ServerName> {
        /// Content type and major version of a TLS record with a handshake (RFC 8446, section 5.1).
        const HANDSHAKE: [u8; 2] = [22, 3];
        let found = match head {
            [] => None,
            _ if HANDSHAKE.starts_with(&head[..head.len().min(2)]) => {
                (head.len() > 2).then(|| self.hello(head))?
            }
            _ => request(head),
        };
        found.or((head.len() >= MOST).then_some(ServerName::Unreadable))
    }

    /// Reads the name from a `ClientHello`, which may span several records.
    fn hello(&mut self, head: &[u8]) -> Option<ServerName> {
        let mut rest = &head[self.taken..];
        while !rest.is_empty() {
            let before = rest.len();
            if self.tls.read_tls(&mut rest.by_ref()).is_err() {
                return Some(ServerName::Unreadable);
            }
            self.taken += before - rest.len();
            match self.tls.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let name = accepted.client_hello().server_name().map(ServerName::stated);
                    return Some(name.unwrap_or(ServerName::Absent));
                }
                Err(_) => return Some(ServerName::Unreadable),
            }
        }
        None
    }
}

/// Reads the name from an HTTP request, or finds that it is none.
fn request(head: &[u8]) -> Option<ServerName> {
    // Servers pass over empty lines before a request (RFC 9112, section 2.2).
    let start = head.iter().position(|byte| !b"\r\n".contains(byte))?;
    let head = &head[start..];
    // `token SP target SP HTTP/1.1`, to the end of the line.
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    match head.iter().find(|byte| !is_token(byte)) {
        None if head.len() > 32 => return Some(ServerName::Absent),
        None => return None,
        Some(b' ' | b'\t') => {}
        Some(_) => return Some(ServerName::Absent),
    }
    let Some(end) = head.iter().position(|&byte| byte == b'\n') else {
        // A request line has no other control characters, and is shorter than this.
        let is_line = head.len() < 8 << 10
            && head.iter().all(|byte| !byte.is_ascii_control() || b"\t\r".contains(byte));
        return (!is_line).then_some(ServerName::Absent);
    };
    let line = &head[..end];
    if !line.windows(5).any(|five| five.eq_ignore_ascii_case(b"HTTP/")) {
        return Some(ServerName::Absent);
    }
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        // This includes HTTP/2 without TLS, whose header fields are compressed.
        Err(_) => return Some(ServerName::Unreadable),
    }
    let mut hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let host = match (hosts.next(), hosts.next()) {
        (None, _) => None,
        (Some(field), None) => match std::str::from_utf8(field.value) {
            Ok(host) => Some(host.trim_matches([' ', '\t'])),
            Err(_) => return Some(ServerName::Unreadable),
        },
        // RFC 9112, section 3.2: a server refuses that.
        (Some(_), Some(_)) => return Some(ServerName::Unreadable),
    };
    // An absolute target goes before the field (RFC 9112, section 3.2.2).
    let target = request.path.unwrap_or_default();
    let of_target =
        target.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(rest));
    Some(match (of_target, host) {
        (Some(target), Some(host)) if !target.eq_ignore_ascii_case(host) => ServerName::Unreadable,
        (Some(host), _) | (None, Some(host)) => without_port(host),
        (None, None) => ServerName::Absent,
    })
}

/// The host of `host[:port]`.
fn without_port(authority: &str) -> ServerName {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if host.bytes().all(is_host) { ServerName::stated(host) } else { ServerName::Unreadable }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn be16(length: usize) -> [u8; 2] {
        u16::try_from(length).expect("short").to_be_bytes()
    }

    /// A `ClientHello` of TLS 1.3 (RFC 8446, section 4.1.2) with this extension for the name, in
    /// records of at most so many bytes.
    fn hello(name: Option<&[u8]>, record: usize) -> Vec<u8> {
        let extension = |kind: u16, data: &[u8]| [&kind.to_be_bytes()[..], &be16(data.len()), data].concat();
        let mut extensions = vec![];
        if let Some(name) = name {
            let entry = [&[0][..], &be16(name.len()), name].concat();
            extensions.extend(extension(0, &[&be16(entry.len())[..], &entry].concat()));
        }
        // Versions, groups, signatures, and no key yet.
        extensions.extend(extension(43, &[2, 3, 4]));
        extensions.extend(extension(10, &[0, 2, 0, 29]));
        extensions.extend(extension(13, &[0, 2, 4, 3]));
        extensions.extend(extension(51, &[0, 0]));
        let body =
            [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &be16(extensions.len()), &extensions]
                .concat();
        let message = [&[1, 0][..], &be16(body.len()), &body].concat();
        message.chunks(record).flat_map(|part| [&[22, 3, 1][..], &be16(part.len()), part].concat()).collect()
    }

    /// Reads all at once and in small pieces, which must agree.
    fn read(bytes: &[u8]) -> Option<ServerName> {
        let at_once = ServerNameReader::default().read(bytes);
        for step in [1, 7] {
            let mut reader = ServerNameReader::default();
            let ends = (step..bytes.len()).step_by(step).chain([bytes.len()]);
            let by_parts = ends.into_iter().find_map(|end| reader.read(&bytes[..end]));
            // In pieces, the name may be complete before the invalid part arrives.
            if at_once != Some(ServerName::Unreadable) {
                assert_eq!(by_parts, at_once, "{step}");
            }
        }
        at_once
    }

    #[test]
    fn tls_states_a_name_in_however_many_segments_and_records() {
        let www = Some(ServerName::Stated("www.example.org".into()));
        for record in [1 << 14, 100, 9, 1] {
            assert_eq!(read(&hello(Some(b"WWW.example.org"), record)), www, "{record}");
            assert_eq!(read(&hello(None, record)), Some(ServerName::Absent), "{record}");
        }
        let whole = hello(Some(b"www.example.org"), 1 << 14);
        assert_eq!(read(&whole[..whole.len() - 1]), None);
        // Not a name; something else behind the first record; a message that cannot be one.
        assert_eq!(read(&hello(Some(b"a b"), 1 << 14)), Some(ServerName::Unreadable));
        assert_eq!(read(&[&whole[..30], &[0; 300]].concat()), Some(ServerName::Unreadable));
        assert_eq!(read(&[22, 3, 1, 0, 4, 2, 0, 0, 0]), Some(ServerName::Unreadable));
    }

    #[test]
    fn http_states_a_name_and_what_servers_could_read_otherwise_is_unreadable() {
        let stated = |name: &str| Some(ServerName::Stated(name.into()));
        for (request, expected) in [
            ("GET / HTTP/1.1\r\nHost: Example.org:8080\r\n\r\n", stated("example.org")),
            ("\r\nGET / HTTP/1.1\nhost:example.org.\n\n", stated("example.org")),
            ("GET http://example.org/x HTTP/1.1\r\nHost: example.org\r\n\r\n", stated("example.org")),
            ("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", stated("example.org")),
            ("GET / HTTP/1.0\r\n\r\n", Some(ServerName::Absent)),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", Some(ServerName::Absent)),
            ("GET / HTTP/1.1\r\nHost: a.test\r\n", None),
            ("GET / HT", None),
            ("GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n", Some(ServerName::Unreadable)),
            ("GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n", Some(ServerName::Unreadable)),
            ("GET / HTTP/1.1\r\nHost : a.test\r\n\r\n", Some(ServerName::Unreadable)),
            ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Some(ServerName::Unreadable)),
            ("GET\t/ HTTP/1.1\r\nHost: a.test\r\n\r\n", Some(ServerName::Unreadable)),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(ServerName::Unreadable)),
            // Others.
            ("EHLO example.org\r\n", Some(ServerName::Absent)),
            ("SSH-2.0-x\r\n", Some(ServerName::Absent)),
            ("GET /\r\n", Some(ServerName::Absent)),
            ("\u{0}\u{1}", Some(ServerName::Absent)),
            ("GET \u{0}", Some(ServerName::Absent)),
            ("EHL", None),
            ("", None),
        ] {
            assert_eq!(read(request.as_bytes()), expected, "{request:?}");
        }
        let endless = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(MOST));
        assert_eq!(read(endless.as_bytes()), Some(ServerName::Unreadable));
        for (text, size) in [("X", 40), ("GET x", 8 << 10)] {
            assert_eq!(read(text.repeat(size).as_bytes()), Some(ServerName::Absent), "{text}");
        }
    }

    #[test]
    fn mutated_messages_do_not_panic() {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize
        };
        let whole = hello(Some(b"www.example.org"), 50);
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..=next() % 3 {
                let at = next() % bytes.len();
                bytes[at] = u8::try_from(next() & 0xff).expect("an octet");
            }
            bytes.truncate(next() % (bytes.len() + 1));
            let _ = ServerNameReader::default().read(&bytes);
        }
    }
}
