//! The server of an upstream, as a URL names it.

use super::ConnectError;
use crate::outside::{Stream, WayOut};
use std::fmt;

/// Longest user name and password (RFC 1929, section 2).
const LONGEST: usize = 255;

/// A server, and the credentials for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    host: String,
    port: u16,
    credentials: Option<Credentials>,
}

/// A user name and a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

/// What is wrong with the URL of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// None that is known.
    #[error(
        "no upstream; write direct, socks5://HOST:PORT or http://HOST:PORT, with USER:PASSWORD@ before HOST if it asks for them"
    )]
    Scheme,
    /// The server is missing, or has what no server has.
    #[error("no server; write HOST:PORT, such as proxy.example.org:1080 or [2001:db8::1]:1080")]
    Host,
    /// No number of a port.
    #[error("no port; write a number from 1 to 65535")]
    Port,
    /// User name or password.
    #[error(
        "user and password are USER:PASSWORD@, each of at most 255 bytes; write %40 for @, %3A for : and %25 for %"
    )]
    Credentials,
}

impl Server {
    /// Reads `[USER[:PASSWORD]@]HOST[:PORT][/]`.
    pub(super) fn parse(text: &str, default_port: u16) -> Result<Self, UrlError> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let (credentials, place) = match text.rsplit_once('@') {
            Some((credentials, place)) => (Some(Credentials::parse(credentials)?), place),
            None => (None, text),
        };
        let (host, port) = match place.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((host, port))) => (host, port.strip_prefix(':').or((port.is_empty()).then_some(""))),
            Some(None) => return Err(UrlError::Host),
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, Some("")),
            },
        };
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
        if host.is_empty() || host.len() > 253 || !host.bytes().all(known) {
            return Err(UrlError::Host);
        }
        let port = match port.ok_or(UrlError::Port)? {
            "" if place.ends_with(':') => return Err(UrlError::Port),
            "" => default_port,
            port => port.parse().ok().filter(|port| *port != 0).ok_or(UrlError::Port)?,
        };
        Ok(Self { host: host.to_owned(), port, credentials })
    }

    /// A connection to the server itself.
    pub(super) async fn connect(&self, out: &WayOut) -> Result<Stream, ConnectError> {
        out.connect_to_host(&self.host, self.port).await.map_err(ConnectError::of_server)
    }

    pub(super) const fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
}

impl Credentials {
    fn parse(text: &str) -> Result<Self, UrlError> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let part =
            |text: &str| decode(text).filter(|text| text.len() <= LONGEST).ok_or(UrlError::Credentials);
        let (user, password) = (part(user)?, part(password)?);
        if user.is_empty() {
            return Err(UrlError::Credentials);
        }
        Ok(Self { user, password })
    }
}

/// A text that may be the URL of an upstream, without what may be a user and a password, to be
/// shown.
#[must_use]
pub fn without_credentials(text: &str) -> String {
    let is_scheme =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => (&text[..scheme.len() + 3], rest),
        _ => ("", text),
    };
    match rest.rsplit_once('@') {
        Some((_, place)) => format!("{scheme}...@{place}"),
        // Who has forgotten the host has a password where its port would be.
        None => match rest.split_once(':') {
            Some((user, port))
                if !user.starts_with('[')
                    && !port.trim_end_matches('/').bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                format!("{scheme}{user}:...")
            }
            _ => text.to_owned(),
        },
    }
}

/// Replaces `%40` and the like (RFC 3986, section 2.1).
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = vec![];
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let value = digit()? << 4 | digit()?;
            decoded.push(u8::try_from(value).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

/// Without user and password.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// As for people.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Upstream;
    use super::*;

    #[test]
    fn urls_name_servers_and_who_this_is() {
        for (text, shown, credentials) in [
            ("direct", "direct", None),
            ("socks5://127.0.0.1:9050", "socks5://127.0.0.1:9050", None),
            ("socks5h://proxy.test", "socks5://proxy.test:1080", None),
            ("http://[2001:db8::1]:3128/", "http://[2001:db8::1]:3128", None),
            ("http://[2001:db8::1]", "http://[2001:db8::1]:8080", None),
            ("socks5://me:se%40c%3Aret@h:1", "socks5://h:1", Some(("me", "se@c:ret"))),
            ("http://me@h:1", "http://h:1", Some(("me", ""))),
        ] {
            let upstream: Upstream = text.parse().expect(text);
            assert_eq!(upstream.to_string(), shown);
            assert!(!format!("{upstream:?}").contains("ret"), "no password in {upstream:?}");
            let found = match &upstream {
                Upstream::Direct => None,
                Upstream::Socks5(server) | Upstream::Http(server) => server.credentials(),
            };
            let found = found.map(|Credentials { user, password }| (user.as_str(), password.as_str()));
            assert_eq!(found, credentials, "{text}");
        }
    }

    #[test]
    fn what_is_shown_has_no_password() {
        for (text, shown) in [
            ("socks4://me:secret@h:1", "socks4://...@h:1"),
            ("me:secret@h:1", "...@h:1"),
            ("socks5://me:sec@ret@h:x", "socks5://...@h:x"),
            ("me:sec://ret@h:1", "...@h:1"),
            ("socks5://me:secret", "socks5://me:..."),
            ("me:secret", "me:..."),
            ("socks4://h:1/", "socks4://h:1/"),
            ("socks4://[2001:db8::1]:1", "socks4://[2001:db8::1]:1"),
            ("socks5://", "socks5://"),
            ("office", "office"),
        ] {
            assert_eq!(without_credentials(text), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_url_is_told_with_what_would_be_one() {
        let long = format!("socks5://{}@h:1", "u".repeat(256));
        for (text, error) in [
            ("", UrlError::Scheme),
            ("127.0.0.1:1080", UrlError::Scheme),
            ("https://h:1", UrlError::Scheme),
            ("socks5://", UrlError::Host),
            ("socks5://a b:1", UrlError::Host),
            ("socks5://[::1:1", UrlError::Host),
            ("socks5://h:", UrlError::Port),
            ("socks5://h:0", UrlError::Port),
            ("socks5://h:65536", UrlError::Port),
            ("socks5://[::1]1", UrlError::Port),
            ("socks5://:p@h:1", UrlError::Credentials),
            ("socks5://u%4@h:1", UrlError::Credentials),
            ("socks5://u%zz@h:1", UrlError::Credentials),
            (&long, UrlError::Credentials),
        ] {
            assert_eq!(text.parse::<Upstream>(), Err(error), "{text}");
        }
    }
}
