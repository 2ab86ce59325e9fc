//! Tests that go wrong: each end says why, and a server is there for the next one.

use super::world::{KERNEL4, Link, PORT, STACK4, World, said, with};
use crate::common::{BackgroundCommand, run, until};
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

over_each_device! {
    a_refused_connection
    a_server_that_dies
    a_client_that_dies
    our_server_is_ended
    our_client_is_ended
}

/// A test that would take longer than anybody waits.
const LONG: [&str; 4] = ["-t", "60", "-b", "10M"];

fn our_client(world: &World, options: &[&str]) -> BackgroundCommand {
    world.ours(&[&["-c", &KERNEL4.to_string()], options].concat())
}

fn their_client(world: &World, options: &[&str]) -> BackgroundCommand {
    world.theirs(&[&["-c", &STACK4.to_string()], options].concat())
}

/// The next client is served, whatever came before it.
fn serves(world: &World) {
    let next = world.their_client(&["-c", &STACK4.to_string(), "-n", "1M"]);
    assert_eq!(next.status, Some(0), "{}", said(&next));
    assert!(String::from_utf8_lossy(&next.stdout).contains("iperf Done."), "{}", said(&next));
}

fn a_refused_connection(world: &World) {
    let ended = our_client(world, &["-t", "1"]).end();
    assert_eq!(ended.status, Some(4), "{}", said(&ended));
    assert!(ended.complaint().contains("refused"), "{}", said(&ended));
    let ended = our_client(world, &["-t", "1", "-J"]).end();
    assert_eq!(ended.status, Some(4), "{}", said(&ended));
    let document = ended.json();
    assert!(document["error"].as_str().is_some_and(|error| error.contains("refused")), "{document:#}");
    assert_eq!(document["start"]["connected"], serde_json::json!([]));
}

fn a_server_that_dies(world: &World) {
    let server = world.their_server(&[]);
    let client = our_client(world, &LONG);
    until("a test", || (world.connections() == 2).then_some(()));
    server.signal(Signal::KILL);
    let ended = client.end();
    assert_eq!(ended.status, Some(4), "{}", said(&ended));
    assert!(!ended.complaint().is_empty());
    server.end();
}

fn a_client_that_dies(world: &World) {
    let server = world.ours(&["-s"]);
    serves(world);
    for signal in [Signal::KILL, Signal::INT] {
        let client = their_client(world, &LONG);
        until("a test", || (world.connections() == 2).then_some(()));
        client.signal(signal);
        client.end();
        serves(world);
    }
    server.signal(Signal::TERM);
    let ended = server.end();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(text.contains("(test #5)"), "{}", said(&ended));
}

fn our_server_is_ended(world: &World) {
    for options in [&LONG[..], &["-t", "60"], &["-t", "60", "-R"]] {
        let server = world.ours(&["-s"]);
        serves(world);
        let client = their_client(world, options);
        until("a test", || (world.connections() == 2).then_some(()));
        server.signal(Signal::INT);
        let ended = server.end();
        assert_eq!(ended.status, Some(130), "{options:?}: {}", said(&ended));
        let client = client.end();
        assert!(client.stderr.contains("the server has terminated"), "{options:?}: {}", said(&client));
    }
}

fn our_client_is_ended(world: &World) {
    let server = world.their_server(&[]);
    let mut client = our_client(world, &[&LONG[..], &["-i", "0.1"]].concat());
    let mut lines = BufReader::new(client.child().stdout.take().expect("a pipe")).lines();
    let mut text = String::new();
    for line in &mut lines {
        text += &line.expect("text");
        text.push('\n');
        // Of the first interval: there are results.
        if text.contains("bits/sec") {
            break;
        }
    }
    client.signal(Signal::INT);
    text.extend(lines.map(|line| line.expect("text")));
    let ended = client.end();
    assert_eq!(ended.status, Some(130), "{}", said(&ended));
    assert!(text.contains("sender"), "what there is of results: {text}\n{}", said(&ended));
    let server = server.end();
    assert!(server.stderr.contains("the client has terminated"), "{}", said(&server));
}

/// A connection to our server, with this at its beginning.
fn intruder(world: &World, first: &[u8]) -> TcpStream {
    world.there(|| {
        let mut stream = TcpStream::connect((STACK4, PORT)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
        stream.write_all(first).expect("taken");
        stream
    })
}

/// Reads until the server ends the connection, one way or the other.
fn until_closed(mut stream: TcpStream) -> Vec<u8> {
    let (mut all, mut part) = (vec![], [0; 4096]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => return all,
            Ok(count) => all.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return all,
            Err(error) => panic!("the server keeps the connection: {error}"),
        }
    }
}

/// What a client says first, and the parameters behind it.
fn control(length: u32, parameters: &[u8]) -> Vec<u8> {
    let mut said = b"abcdefghijklmnopqrstuvwxyz0123456789\0".to_vec();
    said.extend(length.to_be_bytes());
    said.extend(parameters);
    said
}

#[test]
fn nonsense_is_turned_away() {
    with("bench::failures::nonsense_is_turned_away", Link::Tun, |world| {
        let server = world.ours(&["-s"]);
        serves(world);
        let measured = |json: &[u8]| control(u32::try_from(json.len()).expect("short"), json);
        for nonsense in [
            control(u32::MAX, b""),
            control(0, b""),
            measured(b"{\"tcp\":"),
            measured(b"[1,2]"),
            measured(b"{}\xff"),
            measured(br#"{"tcp":true,"parallel":4000000000,"len":131072,"time":1}"#),
            measured(br#"{"tcp":true,"parallel":1,"len":-1,"time":1}"#),
            measured(br#"{"tcp":true,"parallel":1,"len":18446744073709551616,"time":1e300}"#),
            measured(br#"{"tcp":"yes","parallel":"many","len":[],"time":{}}"#),
        ] {
            let what = String::from_utf8_lossy(&nonsense).into_owned();
            let reply = until_closed(intruder(world, &nonsense));
            assert!(reply.len() < 64, "{what}: {reply:?}");
            serves(world);
        }
        // A part of a cookie, and nothing more.
        drop(intruder(world, b"abc"));
        serves(world);
        server.signal(Signal::TERM);
        let ended = server.end();
        assert!(!ended.stderr.contains("panicked"), "{}", said(&ended));
    });
}

#[test]
fn a_stranger_does_not_disturb_a_test() {
    with("bench::failures::a_stranger_does_not_disturb_a_test", Link::Tun, |world| {
        let server = world.ours(&["-s"]);
        serves(world);
        let client = their_client(world, &["-t", "5", "-b", "10M", "-J"]);
        until("a test", || (world.connections() == 2).then_some(()));
        // The test's streams are all there: neither another client nor another cookie gets in.
        let reply = until_closed(intruder(world, &[&[b'0'; 36][..], b"\0"].concat()));
        const ACCESS_DENIED: u8 = 0xff;
        assert_eq!(reply, [ACCESS_DENIED]);
        let second = their_client(world, &["-t", "1"]).end();
        assert!(second.stderr.contains("the server is busy running a test"), "{}", said(&second));
        let client = client.end().json();
        assert!(client.get("error").is_none(), "{client:#}");
        assert!(
            client["end"]["sum_received"]["bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000),
            "{client:#}"
        );
        until("the server's end of it", || world.is_done().then_some(()));
        server.signal(Signal::TERM);
        let ended = server.end();
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert_eq!(text.matches("connected to").count(), 2, "one stream for each test: {}", said(&ended));
        assert_eq!(ended.stderr, "", "nothing went wrong");
    });
}

/// A server that says the first octet of an error, and then nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long another process takes needs the clock")]
fn a_signal_ends_the_wait_for_the_rest_of_an_error() {
    with("bench::failures::a_signal_ends_the_wait_for_the_rest_of_an_error", Link::Tun, |world| {
        let listener = world.there(|| TcpListener::bind(("0.0.0.0", PORT)).expect("free"));
        let client = our_client(world, &LONG);
        let (mut control, _) = listener.accept().expect("a client");
        control.read_exact(&mut [0; 37]).expect("a cookie");
        control.write_all(&[9]).expect("taken");
        let mut length = [0; 4];
        control.read_exact(&mut length).expect("a length");
        control.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize]).expect("parameters");
        control.write_all(&[10]).expect("taken");
        let (mut data, _) = listener.accept().expect("a stream");
        control.write_all(&[1, 2]).expect("taken");
        // The test runs.
        data.read_exact(&mut [0; 37 + 1]).expect("data");
        control.write_all(&[254]).expect("taken");
        std::thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        client.signal(Signal::INT);
        let ended = client.end();
        assert_eq!(ended.status, Some(130), "{}", said(&ended));
        assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    });
}

#[test]
fn there_is_a_document_for_what_fails_before_there_is_a_stack() {
    for options in
        [&["-c", "127.0.0.1", "-J"][..], &["-c", "198.18.0.1", "-C", "cubik", "-J"], &["-s", "-u", "-J"]]
    {
        let ended = run(&[&["bench"], options].concat());
        assert_eq!(ended.status, Some(2), "{options:?}: {}", said(&ended));
        let document = ended.json();
        let error = document["error"].as_str().unwrap_or_else(|| panic!("an error in {document:#}"));
        assert!(ended.stderr.contains(error), "{options:?}: {}", said(&ended));
    }
}

#[test]
fn what_is_not_supported_is_said() {
    with("bench::failures::what_is_not_supported_is_said", Link::Tun, |world| {
        let server = world.ours(&["-s"]);
        serves(world);
        let datagrams = their_client(world, &["-u", "-t", "1"]).end();
        assert_ne!(datagrams.status, Some(0), "{}", said(&datagrams));
        serves(world);
        let congestion = their_client(world, &["-C", "cubik", "-t", "1"]).end();
        assert!(congestion.stderr.contains("congestion control"), "{}", said(&congestion));
        serves(world);
        server.signal(Signal::TERM);
        let ended = server.end();
        assert!(ended.stderr.contains("UDP") && ended.stderr.contains("\"cubik\""), "{}", said(&ended));
    });
}

#[test]
fn a_device_in_use_is_said() {
    with("bench::failures::a_device_in_use_is_said", Link::Tun, |world| {
        let _server = world.ours(&["-s"]);
        serves(world);
        let second = world.ours(&["-s"]).end();
        assert_eq!(second.status, Some(3), "{}", said(&second));
        assert!(second.complaint().contains("ack0"), "{}", said(&second));
    });
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (options, wanted) in [
        (&["-s", "-c", "198.18.0.1"][..], "--client"),
        (&["-c", "198.18.0.1", "-u"], "-u: "),
        (&["-c", "198.18.0.1", "-R", "--bidir"], "--bidir"),
        (&["-c", "198.18.0.1", "-n", "1M", "-t", "1"], "--time"),
        (&["-c", "198.18.0.1", "-n", "1X"], "--bytes"),
        (&["-c", "198.18.0.1", "-l", "2M"], "--length"),
        (&["-c", "198.18.0.1", "-b", "10Q"], "--bitrate"),
        (&["-c", "198.18.0.1", "-P", "129"], "--parallel"),
        (&["-c", "198.18.0.1", "-i", "0.01"], "--interval"),
        (&["-c", "198.18.0.1", "-C", "cubik"], "cubik"),
        (&["-c", "198.18.0.1", "-4", "-6"], "--version6"),
        (&["-s", "-t", "5"], "--time"),
        (&[], "--server"),
    ] {
        let ended = run(&[&["bench"], options].concat());
        assert_eq!(ended.status, Some(2), "{options:?}: {}", said(&ended));
        assert!(ended.stderr.contains(wanted), "{options:?}: {}", said(&ended));
    }
}
