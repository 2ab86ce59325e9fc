//! CONNECT of HTTP/1.1: RFC 9112, section 3.2.3; RFC 9110, section 9.3.6.

use super::{ConnectError, Server};
use crate::outside::Stream;
use crate::target::Target;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use httparse::{EMPTY_HEADER, Error, ParserConfig, Response, Status};
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Longest head of an answer, with those of interim responses before it.
const LONGEST_HEAD: usize = 16 << 10;
/// Room for so many fields at first: more than most answers have.
const FEW_FIELDS: usize = 32;

/// Asks for a connection to `target`. Returns what has come behind the answer: the destination may
/// speak first.
pub(super) async fn connect(
    stream: &mut Stream,
    server: &Server,
    target: &Target,
) -> Result<Vec<u8>, ConnectError> {
    stream.write_all(request(server, target).as_bytes()).await.map_err(ConnectError::of_server)?;
    let mut answer = vec![];
    loop {
        if answer.len() >= LONGEST_HEAD {
            return Err(ConnectError::Server("its answer has no end".to_owned()));
        }
        // Little is left over, or nothing.
        answer.reserve(512);
        match stream.read_buf(&mut answer).await {
            Ok(0) => return Err(ConnectError::of_server(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {}
            Err(error) => return Err(ConnectError::of_server(error)),
        }
        if let Some(length) = head(&answer)? {
            return Ok(answer.split_off(length));
        }
    }
}

/// The length of the heads up to one that grants the connection; `None` if more must come.
fn head(answer: &[u8]) -> Result<Option<usize>, ConnectError> {
    let mut length = 0;
    loop {
        let Some((code, more)) = response(&answer[length..])? else { return Ok(None) };
        length += more;
        return match code {
            // Nothing was asked for that would switch (RFC 9110, section 7.8).
            101 => Err(ConnectError::Server("it switches protocols (101)".to_owned())),
            // RFC 9110, section 15.2: any number of interim responses may come before the final
            // one.
            100..200 => continue,
            200..300 => Ok(Some(length)),
            // RFC 9110, sections 15.6.3 to 15.6.5: what is behind it has answered wrongly, is not
            // there, or does not answer.
            502 | 503 => Err(ConnectError::Refused),
            504 => Err(ConnectError::TimedOut),
            403 => Err(ConnectError::Unreachable),
            407 => Err(ConnectError::Server("it wants another user and password (407)".to_owned())),
            code => Err(ConnectError::Server(format!("it answers {code}"))),
        };
    }
}

/// The status of a response, and the length of its head; `None` if more of it must come.
fn response(answer: &[u8]) -> Result<Option<(u16, usize)>, ConnectError> {
    let mut parser = ParserConfig::default();
    // RFC 9112, section 5.2: whoever receives a field in several lines takes the rest as part of
    // it.
    parser.allow_obsolete_multiline_headers_in_responses(true);
    let mut fields = vec![EMPTY_HEADER; FEW_FIELDS];
    loop {
        let mut response = Response::new(&mut fields);
        match parser.parse_response(&mut response, answer) {
            Ok(Status::Complete(length)) => return Ok(response.code.map(|code| (code, length))),
            Ok(Status::Partial) => return Ok(None),
            // Each takes several bytes of an answer whose length is limited.
            Err(Error::TooManyHeaders) if fields.len() < answer.len() => {
                let more = 2 * fields.len();
                fields = vec![EMPTY_HEADER; more];
            }
            Err(error) => return Err(ConnectError::Server(format!("its answer is no HTTP: {error}"))),
        }
    }
}

fn request(server: &Server, target: &Target) -> String {
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(credentials) = server.credentials() {
        // RFC 7617.
        let pair = STANDARD.encode(format!("{}:{}", credentials.user, credentials.password));
        request += &format!("Proxy-Authorization: Basic {pair}\r\n");
    }
    request + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_has_the_name_if_there_is_one_and_the_password() {
        let mut target = Target::from(std::net::SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 443)));
        let server = Server::parse("h:1", 1).expect("right");
        assert_eq!(
            request(&server, &target),
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n"
        );
        target.name = Some("example.test".into());
        let server = Server::parse("Aladdin:open%20sesame@h:1", 1).expect("right");
        // RFC 7617, section 2, has this example.
        assert_eq!(
            request(&server, &target),
            "CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\
             Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"
        );
    }

    #[test]
    fn answers_are_read_to_their_end_and_say_what_went_wrong() {
        let granted = b"HTTP/1.1 200 Connection established\r\nA: b\r\n\r\nSSH-2.0";
        assert!(matches!(head(granted), Ok(Some(length)) if granted[length..] == *b"SSH-2.0"));
        for length in 0..granted.len() - 8 {
            assert!(matches!(head(&granted[..length]), Ok(None)), "{length}");
        }
        let refused = |code: u16| head(format!("HTTP/1.1 {code} no\r\n\r\n").as_bytes());
        assert!(matches!(refused(503), Err(ConnectError::Refused)));
        assert!(matches!(refused(504), Err(ConnectError::TimedOut)));
        assert!(matches!(refused(403), Err(ConnectError::Unreachable)));
        assert!(matches!(refused(407), Err(ConnectError::Server(text)) if text.contains("password")));
        assert!(matches!(head(b"SSH-2.0-x\r\n"), Err(ConnectError::Server(_))));
    }

    #[test]
    fn interim_responses_and_any_fields_may_come_before_what_the_destination_says() {
        let final_one = "HTTP/1.1 200 OK\r\n\r\n";
        let many: String = (0..1_000).map(|number| format!("A{number}: b\r\n")).collect();
        for before in [
            "HTTP/1.1 100 Continue\r\n\r\n".to_owned(),
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(9),
            // The grant itself, with folded and with many fields.
            "HTTP/1.1 200 OK\r\nVia: 1.1 a,\r\n \t1.1 b\r\n\r\n".to_owned(),
            format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        ] {
            let granted = if before.contains(" 200 ") { before } else { before + final_one };
            let answer = granted.clone() + "SSH-2.0";
            for length in (0..granted.len()).step_by(1 + granted.len() / 100) {
                let part = head(&answer.as_bytes()[..length]);
                assert!(matches!(part, Ok(None)), "{length}: {part:?}");
            }
            let whole = head(answer.as_bytes());
            assert!(matches!(whole, Ok(Some(length)) if length == granted.len()), "{whole:?}");
        }
        let refused = head(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 no\r\n\r\n");
        assert!(matches!(refused, Err(ConnectError::Refused)), "{refused:?}");
        let switched = head(b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
        assert!(matches!(switched, Err(ConnectError::Server(text)) if text.contains("101")));
    }
}
