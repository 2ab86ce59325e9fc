//! Rules by the server's name that a client states in its first bytes, dry runs, and the log of
//! decisions.

use crate::servers::{Request, reply, request};
use crate::world::*;
use ackline_proxy::{Action, Config, Decision, Protocol, Reason, Rule, Rules};
use ackline_runtime::TcpStream;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{self, TcpListener};
use tokio::time::timeout;

fn named(name: &str, action: Action) -> Rule {
    Rule { server_names: vec![name.into()], ..Rule::all(action) }
}

fn get(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// Servers of SOCKS5 that stand for two ways, and a proxy that goes the first one, with these
/// rules.
struct Ways {
    world: World,
    first: TcpListener,
    second: TcpListener,
    decisions: Arc<Mutex<Vec<Decision>>>,
}

/// `rules` makes rules of the actions of both ways.
async fn ways(rules: impl FnOnce(Action, Action) -> Rules, config: Config) -> Ways {
    let ((first, port), (second, other)) = (listener().await, listener().await);
    let action = |port: u16| {
        let upstream = format!("socks5://127.0.0.1:{port}").parse().expect("an upstream");
        Action::Through(Arc::new(upstream))
    };
    let decisions = Arc::new(Mutex::new(vec![]));
    let log = decisions.clone();
    let world = world(Config {
        rules: rules(action(port), action(other)),
        log: Some(Arc::new(move |decision| {
            log.lock().expect("no panic").push(decision.clone());
            true
        })),
        ..config
    });
    Ways { world, first, second, decisions }
}

/// A server takes the next connection to [`FAR`].
async fn taken(server: &TcpListener) -> net::TcpStream {
    let asked = async {
        let (mut stream, asked) = request(server, false).await;
        let Request { host, port, .. } = asked;
        assert_eq!((&*host, port), ("192.0.2.7", 443), "the address, whatever name was stated");
        reply(&mut stream, 0, address(OWN, 0)).await;
        stream
    };
    timeout(PATIENCE, asked).await.expect("in time")
}

async fn receives(stream: &mut (impl tokio::io::AsyncRead + Unpin), expected: &str) {
    let mut read = vec![0; expected.len()];
    timeout(PATIENCE, stream.read_exact(&mut read)).await.expect("in time").expect("received");
    assert_eq!(String::from_utf8_lossy(&read), expected);
}

/// Nothing comes any more: an end or an error.
async fn ends(stream: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let rest = timeout(PATIENCE, stream.read(&mut [0; 9])).await.expect("in time");
    assert!(rest.as_ref().map_or(true, |bytes| *bytes == 0), "{rest:?}");
}

fn far() -> SocketAddr {
    address(FAR, 443)
}

impl Ways {
    async fn connect(&self) -> TcpStream {
        self.world.connect_to(far()).await.expect("connected")
    }

    /// What was decided since this was asked before: name, rule, action, and reason.
    fn decided(&self) -> Vec<(Option<String>, Option<usize>, String, Reason)> {
        let mut decisions = self.decisions.lock().expect("no panic");
        for decision in &*decisions {
            assert_eq!((decision.protocol, decision.destination), (Protocol::Tcp, far()));
            assert_eq!(decision.client.ip(), CLIENT);
        }
        decisions
            .drain(..)
            .map(|one| {
                (one.server_name.map(|name| name.to_string()), one.rule, one.action.to_string(), one.reason)
            })
            .collect()
    }
}

/// By default the first way; for `second.test` the second, and `refused.test` is refused.
fn by_name(first: Action, second: Action) -> Rules {
    Rules {
        rules: vec![named("refused.test", Action::Refuse), named("second.test", second)],
        otherwise: first,
    }
}

#[tokio::test]
async fn a_stated_name_chooses_the_way_and_no_byte_goes_another_one() {
    let ways = ways(by_name, Config::default()).await;
    // No rule has this name: the first way stays, and gets all bytes.
    let (mut client, mut server) = tokio::join!(ways.connect(), taken(&ways.first));
    client.write_all(get("other.test").as_bytes()).await.expect("sent");
    receives(&mut server, &get("other.test")).await;
    talk(&mut client, &mut server).await;
    let decided = ways.decided();
    let [(name, rule, action, reason)] = &decided[..] else { panic!("{decided:?}") };
    assert_eq!((name.as_deref(), *rule, *reason), (Some("other.test"), None, Reason::Default));
    assert!(action.starts_with("socks5://127.0.0.1:"), "{action}");

    // The second way, in however many segments it is stated; the first one has had nothing.
    let (mut client, mut server) = tokio::join!(ways.connect(), taken(&ways.first));
    let text = get("www.second.test");
    let (begin, rest) = text.split_at(30);
    client.write_all(begin.as_bytes()).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.write_all(rest.as_bytes()).await.expect("sent");
    let mut second = taken(&ways.second).await;
    ends(&mut server).await;
    receives(&mut second, &text).await;
    talk(&mut client, &mut second).await;
    assert_eq!((ways.decided()[0].1, ways.world.meter.read().server_name_late), (Some(2), 0));

    // Refused: both ends are reset.
    let (mut client, mut server) = tokio::join!(ways.connect(), taken(&ways.first));
    client.write_all(get("refused.test").as_bytes()).await.expect("sent");
    ends(&mut client).await;
    ends(&mut server).await;
    let refused = (Some("refused.test".to_owned()), Some(1), "refuse".to_owned(), Reason::Rule);
    assert_eq!((ways.decided(), ways.world.meter.read().rule_refused), (vec![refused], 1));

    // A name that servers may read otherwise.
    let (mut client, mut server) = tokio::join!(ways.connect(), taken(&ways.first));
    client.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: refused.test\r\n\r\n").await.expect("sent");
    ends(&mut client).await;
    ends(&mut server).await;
    assert_eq!(ways.decided()[0].3, Reason::ServerNameUnreadable);
    assert_eq!(ways.world.meter.read().server_name_unreadable, 1);
    assert_eq!(ways.world.meter.read().open_connections, 2);
    ways.world.finish(Duration::ZERO).await;
}

#[tokio::test]
async fn a_server_that_speaks_first_is_not_delayed_and_its_client_cannot_change_the_way() {
    let ways = ways(by_name, Config::default()).await;
    for (says, expected_late) in [("EHLO client\r\n".to_owned(), false), (get("second.test"), true)] {
        let (mut client, mut server) = tokio::join!(ways.connect(), taken(&ways.first));
        server.write_all(b"220 ready\r\n").await.expect("sent");
        receives(&mut client, "220 ready\r\n").await;
        client.write_all(says.as_bytes()).await.expect("sent");
        if expected_late {
            ends(&mut client).await;
            ends(&mut server).await;
        } else {
            receives(&mut server, &says).await;
            talk(&mut client, &mut server).await;
        }
        assert_eq!(ways.world.meter.read().server_name_late, u64::from(expected_late));
    }
    // One that says nothing goes like any other; it is logged when it ends.
    let (client, mut server) = tokio::join!(ways.connect(), taken(&ways.first));
    assert_eq!(ways.decided().len(), 2);
    drop(client);
    ends(&mut server).await;
    drop(server);
    let waiting = async {
        loop {
            match ways.decided()[..] {
                [] => tokio::time::sleep(Duration::from_millis(1)).await,
                [(None, None, _, Reason::Default)] => return,
                ref other => panic!("{other:?}"),
            }
        }
    };
    timeout(PATIENCE, waiting).await.expect("in time");
}

#[tokio::test]
async fn what_is_closed_opens_for_a_stated_name_alone() {
    let closed =
        |first: Action, _: Action| Rules { rules: vec![named("open.test", first)], otherwise: Action::Drop };
    let config = Config { connect_timeout: Duration::from_millis(400), ..Config::default() };
    let ways = ways(closed, config).await;
    let mut client = ways.connect().await;
    client.write_all(get("open.test").as_bytes()).await.expect("sent");
    let mut server = taken(&ways.first).await;
    receives(&mut server, &get("open.test")).await;
    talk(&mut client, &mut server).await;
    assert_eq!(ways.decided()[0].1, Some(1));
    // Another name, none, a half of one, and silence.
    let half = "GET / HTTP/1.1\r\nHost: open.test\r\n";
    for (says, is_all) in
        [(&*get("other.test"), false), ("hello\r\n", false), (half, true), ("", true), ("", false)]
    {
        let mut client = ways.connect().await;
        client.write_all(says.as_bytes()).await.expect("sent");
        if is_all {
            client.shutdown().await.expect("sent");
        }
        ends(&mut client).await;
        let decided = ways.decided();
        assert!(
            matches!(&decided[..], [(_, None, _, Reason::Default | Reason::ServerNameUnreadable)]),
            "{decided:?}"
        );
    }
    // None of these was connected outside.
    assert!(timeout(Duration::from_millis(50), ways.first.accept()).await.is_err());
    // Datagrams have no name that could be read.
    let socket = ways.world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.send_to(get("open.test").as_bytes(), far()).await.expect("sent");
    ways.world.until(|stats| stats.rule_dropped >= 4).await;
}

#[tokio::test]
async fn a_dry_run_carries_on_what_rules_would_end_and_logs_it() {
    let rules = |first: Action, second: Action| {
        let Rules { mut rules, otherwise } = by_name(first, second);
        rules.push(Rule { ports: vec![80..=80], ..Rule::all(Action::Drop) });
        Rules { rules, otherwise }
    };
    let ways = ways(rules, Config { dry_run: true, ..Config::default() }).await;
    let (mut client, mut server) = tokio::join!(ways.connect(), taken(&ways.first));
    client.write_all(get("refused.test").as_bytes()).await.expect("sent");
    receives(&mut server, &get("refused.test")).await;
    talk(&mut client, &mut server).await;
    let logged: Vec<Decision> = ways.decisions.lock().expect("no panic").clone();
    let [Decision { rule: Some(1), action: Action::Refuse, reason: Reason::Rule, enforced: false, .. }] =
        &logged[..]
    else {
        panic!("{logged:?}")
    };
    let stats = ways.world.meter.read();
    assert_eq!((stats.not_enforced, stats.rule_refused), (1, 0));
    // What is never carried on is not for rules to allow.
    let error = ways.world.connect_to(address([169, 254, 0, 1], 443)).await.expect_err("refused");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(ways.world.meter.read().not_carried, 1);
}
