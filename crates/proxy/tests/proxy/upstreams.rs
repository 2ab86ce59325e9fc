//! SOCKS5 and HTTP.

use crate::servers::{Request, http_head, reply, request, socks};
use crate::world::*;
use ackline_proxy::Config;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

#[tokio::test]
async fn a_client_waits_for_the_answer_of_a_socks_server_and_is_told_its_password() {
    let (listener, port) = listener().await;
    let world = world(through(&format!("socks5://me:se%40cret@127.0.0.1:{port}")));
    let mut connecting = Box::pin(world.connect_to(address(FAR, 443)));
    let (mut stream, request) = tokio::select! {
        asked = request(&listener, true) => asked,
        answered = &mut connecting => panic!("{answered:?}"),
    };
    let user = Some(("me".to_owned(), "se@cret".to_owned()));
    assert_eq!(request, Request { user, command: 1, host: FAR.to_string(), port: 443 });
    // Nothing is said to the client, however long it takes.
    assert!(timeout(Duration::from_millis(100), &mut connecting).await.is_err());
    let established = world.client.stats().counters.tcp_active_opens;
    assert_eq!((established, world.meter.read().open_connections), (1, 0));
    reply(&mut stream, 0, address(Ipv4Addr::UNSPECIFIED, 0)).await;
    talk(connecting.await.expect("connected"), stream).await;
}

#[tokio::test]
async fn refusals_of_a_socks_server_reach_the_client_as_what_they_mean() {
    let (listener, port) = listener().await;
    let world = world(through(&format!("socks5://127.0.0.1:{port}")));
    for (code, kind) in [
        (1, ErrorKind::ConnectionRefused),
        (2, ErrorKind::HostUnreachable),
        (3, ErrorKind::HostUnreachable),
        (4, ErrorKind::HostUnreachable),
        (5, ErrorKind::ConnectionRefused),
        (6, ErrorKind::HostUnreachable),
        (8, ErrorKind::HostUnreachable),
        (99, ErrorKind::HostUnreachable),
    ] {
        let server = async {
            let (mut stream, _) = request(&listener, false).await;
            reply(&mut stream, code, address(Ipv4Addr::UNSPECIFIED, 0)).await;
        };
        let (error, ()) = tokio::join!(world.connect_to(address(FAR, 443)), server);
        assert_eq!(error.expect_err("refused").kind(), kind, "{code}");
    }
    let stats = world.meter.read();
    assert_eq!((stats.upstream_refused, stats.upstream_unreachable, stats.upstream_failed), (2, 4, 2));
    // Each trouble of an upstream is told once for some time.
    let expected = format!("socks5://127.0.0.1:{port}: it does not know addresses of this type");
    assert_eq!(world.lines(), [expected]);
}

#[tokio::test]
async fn an_upstream_that_is_down_or_speaks_something_else_is_told_in_one_line() {
    let port = closed_port().await;
    let down = world(through(&format!("socks5://127.0.0.1:{port}")));
    for _ in 0..3 {
        let error = down.connect_to(address(FAR, 443)).await.expect_err("unreachable");
        assert_eq!(error.kind(), ErrorKind::HostUnreachable);
    }
    assert_eq!(down.meter.read().upstream_failed, 3);
    let lines = down.lines();
    assert!(lines.len() == 1 && lines[0].contains("refused"), "{lines:?}");

    let (listener, port) = listener().await;
    for (url, expected) in [
        (format!("socks5://127.0.0.1:{port}"), "it does not speak SOCKS5"),
        (format!("http://127.0.0.1:{port}"), "its answer is no HTTP"),
    ] {
        let world = world(through(&url));
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            stream.write_all(b"\x01SSH-2.0-x\r\n\r\n").await.expect("sent");
            stream
        };
        let (error, _stream) = tokio::join!(world.connect_to(address(FAR, 443)), server);
        assert_eq!(error.expect_err("unreachable").kind(), ErrorKind::HostUnreachable);
        let lines = world.lines();
        assert!(lines.len() == 1 && lines[0].contains(expected), "{lines:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_is_silent_or_breaks_off_counts_as_down_and_is_told_in_one_line() {
    let limit = Duration::from_millis(100);
    for (scheme, silent) in [("socks5", true), ("socks5", false), ("http", false)] {
        let (listener, port) = listener().await;
        let config = Config { server_timeout: limit, ..through(&format!("{scheme}://127.0.0.1:{port}")) };
        let world = world(config);
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            // The greeting of SOCKS5, or the request.
            stream.read_exact(&mut [0; 3]).await.expect("something");
            if !silent {
                stream.set_zero_linger().expect("an option");
                return None;
            }
            Some(stream)
        };
        let (error, _stream) = tokio::join!(world.connect_to(address(FAR, 443)), server);
        assert_eq!(error.expect_err("unreachable").kind(), ErrorKind::HostUnreachable, "{scheme}");
        let stats = world.meter.read();
        assert_eq!((stats.upstream_failed, stats.upstream_timeouts), (1, 0), "{scheme}");
        let expected = if silent { "it does not answer within 100ms" } else { "reset" };
        let lines = world.lines();
        assert!(lines.len() == 1 && lines[0].contains(expected), "{lines:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_never_answers_leaves_the_client_without_an_answer() {
    let (listener, port) = listener().await;
    let limit = Duration::from_millis(50);
    let config = Config { connect_timeout: limit, ..through(&format!("socks5://127.0.0.1:{port}")) };
    let world = world(config);
    let mut connecting = Box::pin(world.client.connect(address(FAR, 443)));
    tokio::select! {
        answered = &mut connecting => panic!("{answered:?}"),
        () = world.until(|stats| stats.upstream_timeouts > 0) => {}
    }
    // The next SYN is another request, and no word was said.
    assert!(timeout(limit, &mut connecting).await.is_err());
    drop(connecting);
    drop(listener);
}

#[tokio::test]
async fn a_client_that_goes_away_is_not_waited_for() {
    let (listener, port) = listener().await;
    let world = world(through(&format!("socks5://127.0.0.1:{port}")));
    let connecting = world.client.connect(address(FAR, 443));
    let (mut stream, _) = tokio::select! {
        asked = request(&listener, false) => asked,
        answered = connecting => panic!("{answered:?}"),
    };
    // Dropping the client's future resets the held SYN, or leaves it to the proxy to find that
    // nobody is there.
    reply(&mut stream, 0, address(Ipv4Addr::UNSPECIFIED, 0)).await;
    let read = timeout(PATIENCE, stream.read(&mut [0; 1])).await.expect("in time");
    assert!(read.is_err() || read.is_ok_and(|read| read == 0));
    world.until(|stats| stats.abandoned == 1 && stats.open_connections == 0).await;
}

#[tokio::test]
async fn an_http_proxy_is_asked_by_connect_and_what_the_destination_says_first_arrives() {
    let (listener, port) = listener().await;
    let world = world(through(&format!("http://Aladdin:open%20sesame@127.0.0.1:{port}")));
    let server = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let head = http_head(&mut stream).await;
        assert!(head.starts_with("CONNECT 192.0.2.7:22 HTTP/1.1\r\nHost: 192.0.2.7:22\r\n"), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"), "{head}");
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nSSH-2.0").await.expect("sent");
        stream
    };
    let (inside, stream) = tokio::join!(world.connect_to(address(FAR, 22)), server);
    let mut inside = inside.expect("connected");
    let mut first = [0; 7];
    inside.read_exact(&mut first).await.expect("received");
    assert_eq!(&first, b"SSH-2.0");
    talk(inside, stream).await;

    for (answer, kind) in [
        ("HTTP/1.1 503 Service Unavailable\r\n\r\n", ErrorKind::ConnectionRefused),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", ErrorKind::HostUnreachable),
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", ErrorKind::HostUnreachable),
    ] {
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            http_head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.expect("sent");
        };
        let (error, ()) = tokio::join!(world.connect_to(address(FAR, 22)), server);
        assert_eq!(error.expect_err("refused").kind(), kind, "{answer}");
    }
}

#[tokio::test]
async fn half_closes_pass_through_a_socks_server() {
    let (port, mut told) = socks().await;
    let world = world(through(&format!("socks5://127.0.0.1:{port}")));
    let (server, port) = listener().await;
    let mut inside = world.connect_to(address(FAR, port)).await.expect("connected");
    let (mut outside, _) = server.accept().await.expect("a connection");
    let mut text = vec![];
    let exchange = async {
        inside.write_all(b"question").await.expect("sent");
        inside.shutdown().await.expect("closed");
        outside.read_to_end(&mut text).await.expect("the end");
        outside.write_all(b"answer").await.expect("sent");
        drop(outside);
        inside.read_to_end(&mut text).await.expect("the end");
    };
    timeout(PATIENCE, exchange).await.expect("in time");
    assert_eq!(text, b"questionanswer");
    assert_eq!(told.recv().await.expect("asked").host, FAR.to_string());
    world.until(|stats| stats.finished == 1).await;
}
