//! Small servers of SOCKS5 and HTTP, which do what a test asks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// What a client has asked a SOCKS5 server for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) user: Option<(String, String)>,
    pub(crate) command: u8,
    /// An address, or a name.
    pub(crate) host: String,
    pub(crate) port: u16,
}

async fn text(stream: &mut TcpStream) -> String {
    let length = stream.read_u8().await.expect("a length");
    let mut text = vec![0; length.into()];
    stream.read_exact(&mut text).await.expect("a text");
    String::from_utf8(text).expect("UTF-8")
}

/// The server's side up to the request (RFC 1928, sections 3 and 4; RFC 1929).
pub(crate) async fn request(listener: &TcpListener, wants_password: bool) -> (TcpStream, Request) {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    assert_eq!(stream.read_u8().await.expect("a version"), 5);
    let methods = text_of_bytes(&mut stream).await;
    let method = if wants_password { 2 } else { 0 };
    assert!(methods.contains(&method), "{methods:?}");
    stream.write_all(&[5, method]).await.expect("sent");
    let user = if wants_password {
        assert_eq!(stream.read_u8().await.expect("a version"), 1);
        let pair = (text(&mut stream).await, text(&mut stream).await);
        stream.write_all(&[1, 0]).await.expect("sent");
        Some(pair)
    } else {
        None
    };
    let mut head = [0; 4];
    stream.read_exact(&mut head).await.expect("a request");
    assert_eq!((head[0], head[2]), (5, 0));
    let host = match head[3] {
        1 => Ipv4Addr::from(stream.read_u32().await.expect("an address")).to_string(),
        4 => Ipv6Addr::from(stream.read_u128().await.expect("an address")).to_string(),
        3 => text(&mut stream).await,
        kind => panic!("{kind}"),
    };
    let port = stream.read_u16().await.expect("a port");
    (stream, Request { user, command: head[1], host, port })
}

async fn text_of_bytes(stream: &mut TcpStream) -> Vec<u8> {
    text(stream).await.into_bytes()
}

/// Answers a request.
pub(crate) async fn reply(stream: &mut TcpStream, code: u8, bound: SocketAddr) {
    let mut answer = vec![5, code, 0];
    match bound.ip() {
        IpAddr::V4(v4) => {
            answer.push(1);
            answer.extend(v4.octets());
        }
        IpAddr::V6(v6) => {
            answer.push(4);
            answer.extend(v6.octets());
        }
    }
    answer.extend(bound.port().to_be_bytes());
    stream.write_all(&answer).await.expect("sent");
}

/// A SOCKS5 server that connects to the same port of the loopback, whatever the host; it tells of
/// each request.
pub(crate) async fn socks() -> (u16, tokio::sync::mpsc::UnboundedReceiver<Request>) {
    let (listener, port) = crate::world::listener().await;
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, request) = request(&listener, false).await;
            let to = (Ipv4Addr::LOCALHOST, request.port);
            let command = request.command;
            let _ = tell.send(request);
            tokio::spawn(async move {
                match command {
                    1 => {
                        let mut far = TcpStream::connect(to).await.expect("somebody listens");
                        reply(&mut stream, 0, far.local_addr().expect("connected")).await;
                        let _ = tokio::io::copy_bidirectional(&mut stream, &mut far).await;
                    }
                    3 => associate(stream).await,
                    other => panic!("{other}"),
                }
            });
        }
    });
    (port, told)
}

/// Carries datagrams to the ports of the loopback that they name, and back, as long as the
/// connection lasts.
async fn associate(mut stream: TcpStream) {
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    // As a server says it that does not know its address.
    let port = near.local_addr().expect("bound").port();
    reply(&mut stream, 0, (Ipv4Addr::UNSPECIFIED, port).into()).await;
    let (mut there, mut back) = ([0; 10_000], [0; 10_000]);
    let mut last = None;
    loop {
        tokio::select! {
            _ = stream.read_u8() => return,
            received = near.recv_from(&mut there) => {
                let (length, from) = received.expect("a datagram");
                // Reserved, no fragment, IPv4 or a name, address, port.
                let header = match there[3] {
                    1 => 10,
                    3 => 7 + usize::from(there[4]),
                    kind => panic!("{kind}"),
                };
                let port = u16::from_be_bytes([there[header - 2], there[header - 1]]);
                last = Some((from, there[..header].to_vec()));
                far.send_to(&there[header..length], (Ipv4Addr::LOCALHOST, port)).await.expect("sent");
            }
            received = far.recv(&mut back) => {
                // A refusal is nobody's datagram.
                let (Ok(length), Some((to, header))) = (received, &last) else { continue };
                near.send_to(&[&header[..], &back[..length]].concat(), to).await.expect("sent");
            }
        }
    }
}

/// Reads the head of an HTTP request.
pub(crate) async fn http_head(stream: &mut TcpStream) -> String {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a request"));
    }
    String::from_utf8(head).expect("UTF-8")
}
