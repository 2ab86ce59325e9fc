//! Names: the resolver behind the proxy's own address, rules by domain, upstreams that are told the
//! name.

use crate::servers::{request, socks};
use crate::world::*;
use ackline_proxy::{Action, Config, Hosts, NameUse, Protocol, Resolver, Resolvers, Rule, Rules};
use ackline_runtime::Stack;
use simple_dns::rdata::{A, OPT, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UdpSocket;
use tokio::time::timeout;

pub(crate) fn question(name: &str) -> Vec<u8> {
    question_of(name, TYPE::A, None)
}

fn question_of(name: &str, kind: TYPE, edns: Option<u16>) -> Vec<u8> {
    let mut question = Packet::new_query(7);
    let name = Name::new_unchecked(name);
    question.questions.push(Question::new(name, QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN), false));
    *question.opt_mut() = edns.map(|udp_packet_size| OPT { opt_codes: vec![], udp_packet_size, version: 0 });
    question.build_bytes_vec().expect("a message")
}

/// The answer of a resolver that knows so many addresses of each name, from [`FAR`] on.
pub(crate) fn answer(question: &[u8], addresses: u32) -> Vec<u8> {
    answer_from(question, FAR, addresses)
}

fn answer_from(question: &[u8], first: Ipv4Addr, addresses: u32) -> Vec<u8> {
    let question = Packet::parse(question).expect("a question");
    let mut answer = question.clone().into_reply();
    for number in 0..addresses {
        let data = RData::A(A { address: first.to_bits() + number });
        answer.answers.push(ResourceRecord::new(question.questions[0].qname.clone(), CLASS::IN, 60, data));
    }
    answer.build_bytes_vec_compressed().expect("a message")
}

/// A resolver over UDP.
async fn resolver() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let at = socket.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut buf = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buf).await {
            let _ = socket.send_to(&answer(&buf[..length], 1), from).await;
        }
    });
    at
}

/// Asks the proxy for a name over UDP.
async fn ask(client: &Stack, name: &str) -> Vec<u8> {
    let socket = client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.send_to(&question(name), (OWN, 53)).await.expect("sent");
    let mut buf = [0; 2_000];
    let (length, from) =
        timeout(PATIENCE, socket.recv_from(&mut buf)).await.expect("in time").expect("an answer");
    assert_eq!(from, address(OWN, 53));
    buf[..length].to_vec()
}

fn udp(address: SocketAddr) -> Resolvers {
    Resolver { address, protocol: Protocol::Udp }.into()
}

#[tokio::test]
async fn an_upstream_gets_the_name_and_rules_know_it() {
    let (listener, port) = listener().await;
    let upstream = through(&format!("socks5://127.0.0.1:{port}"));
    let refused = Rule { domains: vec!["refused.test".into()], ..Rule::all(Action::Refuse) };
    let rules = Rules { rules: vec![refused], ..upstream.rules };
    let config =
        Config { rules, resolvers: udp(resolver().await), resolver_is_near: true, ..Config::default() };
    let world = world(config);
    // Nobody has asked for a name yet.
    let connect = async |expected: &str| {
        let asked = async {
            let (mut stream, request) = request(&listener, false).await;
            assert_eq!((&*request.host, request.port), (expected, 443));
            crate::servers::reply(&mut stream, 5, address(OWN, 0)).await;
        };
        let (outcome, ()) = tokio::join!(world.connect_to(address(FAR, 443)), asked);
        assert_eq!(outcome.expect_err("refused").kind(), ErrorKind::ConnectionRefused);
    };
    connect("192.0.2.7").await;
    ask(&world.client, "WWW.example.test").await;
    connect("www.example.test").await;
    // Another zone may give its name the same address, and takes nobody's place.
    ask(&world.client, "evil.test").await;
    connect("192.0.2.7").await;
    assert_eq!(world.meter.read().rule_refused, 0);
    ask(&world.client, "a.refused.test").await;
    let error = world.connect_to(address(FAR, 443)).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let stats = world.meter.read();
    assert_eq!((stats.rule_refused, stats.named, stats.several_names), (1, 3, 2));
    assert_eq!((stats.dns_questions, stats.dns_answers, stats.dns_unasked), (3, 3, 0));
}

/// A host asks over IPv4, and connects over IPv6.
#[tokio::test]
async fn names_hold_for_all_addresses_of_one_host_and_no_others() {
    for one_host in [true, false] {
        let (listener, port) = listener().await;
        let mut hosts = Hosts::default();
        let far = address(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7), 443);
        hosts.add("refused.test", far.ip()).expect("a name");
        let upstream = through(&format!("socks5://127.0.0.1:{port}"));
        let refused = Rule { domains: vec!["refused.test".into()], ..Rule::all(Action::Refuse) };
        let rules = Rules { rules: vec![refused], ..upstream.rules };
        let world = world(Config { rules, hosts, one_host, ..Config::default() });
        let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
        socket.send_to(&question_of("refused.test", TYPE::AAAA, None), (OWN, 53)).await.expect("sent");
        let mut buf = [0; 512];
        let answered = timeout(PATIENCE, socket.recv_from(&mut buf)).await.expect("in time");
        let (length, _) = answered.expect("an answer");
        assert_eq!(Packet::parse(&buf[..length]).expect("an answer").answers.len(), 1);
        let reaches_upstream = tokio::select! {
            refused = world.connect_to(far) => {
                assert_eq!(refused.expect_err("refused").kind(), ErrorKind::ConnectionRefused);
                false
            }
            _ = listener.accept() => true,
        };
        assert_eq!(reaches_upstream, !one_host);
        assert_eq!(world.meter.read().rule_refused, u64::from(one_host));
    }
}

#[tokio::test]
async fn questions_reach_a_resolver_through_the_upstream_over_udp_and_tcp() {
    let (socks, mut told) = socks().await;
    let near = resolver().await;
    let url = format!("socks5://127.0.0.1:{socks}");
    // The server connects to the loopback, whatever the address.
    let config = Config { resolvers: udp(address(FAR, near.port())), ..through(&url) };
    let own = world(config);
    let said = ask(&own.client, "name.test").await;
    assert_eq!(Packet::parse(&said).expect("an answer").answers.len(), 1);
    assert_eq!(told.recv().await.expect("asked").command, 3);

    let (listener, port) = listener().await;
    let resolvers = Resolver { address: address(FAR, port), protocol: Protocol::Tcp }.into();
    let own = world(Config { resolvers, ..through(&url) });
    let server = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        for addresses in [2, 100] {
            let mut question = vec![0; stream.read_u16().await.expect("a length").into()];
            stream.read_exact(&mut question).await.expect("a question");
            let answer = answer(&question, addresses);
            let framed = [&u16::try_from(answer.len()).expect("short").to_be_bytes(), &answer[..]].concat();
            // In two pieces.
            stream.write_all(&framed[..1]).await.expect("sent");
            tokio::task::yield_now().await;
            stream.write_all(&framed[1..]).await.expect("sent");
        }
        stream
    };
    let client = async {
        let socket = own.client.bind_udp((CLIENT, 0).into()).expect("free");
        socket.connect((OWN, 53)).await.expect("an address");
        let mut buf = [0; 2_000];
        for (name, answers) in [("a.test", 2), ("b.test", 0)] {
            socket.send(&question(name)).await.expect("sent");
            let length = timeout(PATIENCE, socket.recv(&mut buf)).await.expect("in time").expect("an answer");
            let answer = Packet::parse(&buf[..length]).expect("an answer");
            assert_eq!(answer.answers.len(), answers);
            // One that is longer than this client takes says so, and no more.
            assert_eq!(answer.has_flags(PacketFlag::TRUNCATION), answers == 0);
            assert_eq!(answer.questions.len(), 1);
        }
    };
    tokio::join!(server, client);
    assert_eq!(told.recv().await.expect("asked").command, 1);
}

#[tokio::test]
async fn a_rule_sends_questions_to_the_resolver_whomever_they_are_for() {
    let rule = Rule { ports: vec![53..=53], ..Rule::all(Action::Resolver) };
    let through = |url: &str| Action::Through(Arc::new(url.parse().expect("an upstream")));
    let rules = Rules { rules: vec![rule], otherwise: through("direct") };
    let world = world(Config {
        rules,
        resolvers: udp(resolver().await),
        resolver_is_near: true,
        ..Config::default()
    });
    let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.send_to(&question("name.test"), address([192, 0, 2, 53], 53)).await.expect("sent");
    let mut buf = [0; 512];
    let (_, from) = timeout(PATIENCE, socket.recv_from(&mut buf)).await.expect("in time").expect("an answer");
    assert_eq!(from, address([192, 0, 2, 53], 53));
}

/// What a SOCKS5 server is asked for when the client connects to [`FAR`].
async fn told_upstream(world: &World, listener: &tokio::net::TcpListener) -> String {
    let asked = async {
        let (mut stream, request) = request(listener, false).await;
        crate::servers::reply(&mut stream, 5, address(OWN, 0)).await;
        request.host
    };
    tokio::join!(world.connect_to(address(FAR, 443)), asked).1
}

#[tokio::test]
async fn an_upstream_gets_the_address_if_networks_had_a_say_or_names_are_not_for_it() {
    let (listener, port) = listener().await;
    let office = through(&format!("socks5://127.0.0.1:{port}"));
    let network = |ports| Rule {
        to: vec!["10.0.0.0/8".parse().expect("a network")],
        ports: vec![ports],
        ..Rule::all(Action::Refuse)
    };
    for (names, rules, expected) in [
        (NameUse::Upstreams, vec![], "name.test"),
        (NameUse::Upstreams, vec![network(22..=22)], "name.test"),
        // The name may have an address of that network where the upstream is.
        (NameUse::Upstreams, vec![network(443..=443)], "192.0.2.7"),
        (NameUse::Rules, vec![], "192.0.2.7"),
        (NameUse::Off, vec![], "192.0.2.7"),
    ] {
        let rules = Rules { rules, ..office.rules.clone() };
        let world = world(Config {
            rules,
            names,
            resolvers: udp(resolver().await),
            resolver_is_near: true,
            ..Config::default()
        });
        ask(&world.client, "name.test").await;
        assert_eq!(told_upstream(&world, &listener).await, expected, "{names:?}");
    }
}

/// 230 questions of one client took the names of all others, and with them the rules by domain.
#[tokio::test]
async fn a_client_that_asks_for_much_forgets_its_own_names_and_is_refused_what_they_may_have_been() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let at = socket.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut buf = [0; 512];
        for number in 0.. {
            let (length, from) = socket.recv_from(&mut buf).await.expect("a question");
            let name = Packet::parse(&buf[..length]).expect("a question").questions[0].qname.to_string();
            let (first, addresses) = match &*name {
                "www.refused.test" => (FAR, 1),
                _ => (Ipv4Addr::from_bits(0x2000_0000 + number * 256), 72),
            };
            let _ = socket.send_to(&answer_from(&buf[..length], first, addresses), from).await;
        }
    });
    let rule = Rule { domains: vec!["refused.test".into()], ..Rule::all(Action::Refuse) };
    let (_listener, port) = listener().await;
    let rules = Rules { rules: vec![rule], ..through(&format!("socks5://127.0.0.1:{port}")).rules };
    let world = world(Config { rules, resolvers: udp(at), resolver_is_near: true, ..Config::default() });
    let ask = async |own: Ipv4Addr, name: &str| {
        let socket = world.client.bind_udp((own, 0).into()).expect("free");
        socket.connect((OWN, 53)).await.expect("an address");
        socket.send(&question_of(name, TYPE::A, Some(4_096))).await.expect("sent");
        let mut buf = [0; 2_000];
        let length = timeout(PATIENCE, socket.recv(&mut buf)).await.expect("in time").expect("an answer");
        assert!(!Packet::parse(&buf[..length]).expect("an answer").has_flags(PacketFlag::TRUNCATION));
    };
    ask(CLIENT, "www.refused.test").await;
    ask(OTHER, "www.refused.test").await;
    for number in 0..230 {
        ask(OTHER, &format!("{number}.test")).await;
    }
    let stats = world.meter.read();
    // 16,384 are remembered.
    assert_eq!(stats.names_forgotten, 2 + 230 * 72 - 16_384);
    let connect = async |own: Ipv4Addr| {
        let mut target = ackline_tcp_core::Target::new(address(FAR, 443));
        target.local_address = Some(own.into());
        let connect = world.client.connect_to(target, Arc::default());
        let outcome = timeout(PATIENCE, connect).await.expect("an answer");
        assert_eq!(outcome.expect_err("refused").kind(), ErrorKind::ConnectionRefused);
        let stats = world.meter.read();
        (stats.rule_refused, stats.forgotten_refused)
    };
    assert_eq!(connect(CLIENT).await, (1, 0));
    assert_eq!(connect(OTHER).await, (1, 1));
    assert!(world.lines()[0].contains("100.64.0.3 has asked for so many"), "{:?}", world.lines());
}

/// As resolv.conf(5) has it: in their order, and the next if one is silent, refuses, or cannot
/// help.
#[tokio::test]
async fn the_next_resolver_is_asked_if_one_does_not_help() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let closed =
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket").local_addr().expect("bound");
    let failing = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let failing_at = failing.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut buf = [0; 512];
        while let Ok((length, from)) = failing.recv_from(&mut buf).await {
            let mut failed = Packet::parse(&buf[..length]).expect("a question").into_reply();
            *failed.rcode_mut() = RCODE::ServerFailure;
            let _ = failing.send_to(&failed.build_bytes_vec().expect("a message"), from).await;
        }
    });
    let good = resolver().await;
    for first in [silent.local_addr().expect("bound"), closed, failing_at] {
        let servers = [first, good].map(|address| Resolver { address, protocol: Protocol::Udp });
        let resolvers =
            Resolvers { servers: servers.into(), timeout: Duration::from_millis(200), attempts: 2 };
        let world = world(Config { resolvers, resolver_is_near: true, ..Config::default() });
        for _ in 0..2 {
            let said = ask(&world.client, "name.test").await;
            assert_eq!(Packet::parse(&said).expect("an answer").answers.len(), 1, "{first}");
        }
    }
    // The silent one was asked once: it is the last for a while.
    let mut buf = [0; 512];
    assert!(silent.try_recv(&mut buf).is_ok() && silent.try_recv(&mut buf).is_err());
    // If no other helps, the client learns what one has said.
    let world = world(Config { resolvers: udp(failing_at), resolver_is_near: true, ..Config::default() });
    let said = ask(&world.client, "name.test").await;
    assert_eq!(Packet::parse(&said).expect("an answer").rcode(), RCODE::ServerFailure);
}

/// RFC 7766, section 6.2.4: a server may close at any time, and what it has not answered is asked
/// again.
#[tokio::test]
async fn questions_are_asked_again_if_a_resolver_closes_after_each_answer() {
    let (listener, port) = listener().await;
    let resolvers = Resolver { address: address(Ipv4Addr::LOCALHOST, port), protocol: Protocol::Tcp }.into();
    let world = world(Config { resolvers, resolver_is_near: true, ..Config::default() });
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut question = vec![0; stream.read_u16().await.expect("a length").into()];
            stream.read_exact(&mut question).await.expect("a question");
            // The others are read and not answered, so that it closes in good order.
            let mut others = [0; 500];
            let _ = timeout(Duration::from_millis(50), stream.read(&mut others)).await;
            let answer = answer(&question, 1);
            let framed = [&u16::try_from(answer.len()).expect("short").to_be_bytes(), &answer[..]].concat();
            stream.write_all(&framed).await.expect("sent");
        }
    });
    let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.connect((OWN, 53)).await.expect("an address");
    // More than there are attempts at a question.
    let names = ["a.test", "b.test", "c.test", "d.test", "e.test", "f.test"];
    for name in names {
        socket.send(&question(name)).await.expect("sent");
    }
    let mut answered = vec![];
    let mut buf = [0; 2_000];
    for _ in names {
        let length = timeout(PATIENCE, socket.recv(&mut buf)).await.expect("in time").expect("an answer");
        answered.push(Packet::parse(&buf[..length]).expect("an answer").questions[0].qname.to_string());
    }
    answered.sort();
    assert_eq!(answered, names);
    // One that never answers is given up, and the client is told.
    let (silent, port) = crate::world::listener().await;
    tokio::spawn(async move { while silent.accept().await.is_ok() {} });
    let resolvers = Resolver { address: address(Ipv4Addr::LOCALHOST, port), protocol: Protocol::Tcp }.into();
    let world = crate::world::world(Config { resolvers, resolver_is_near: true, ..Config::default() });
    let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.connect((OWN, 53)).await.expect("an address");
    socket.send(&question("a.test")).await.expect("sent");
    let error = timeout(PATIENCE, socket.recv(&mut buf)).await.expect("in time").expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

/// Over TCP a client gets long answers, and their names count as well.
#[tokio::test]
async fn an_answer_that_is_too_long_says_so_and_comes_whole_over_tcp_with_its_names() {
    let (near, port) = listener().await;
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = near.accept().await.expect("a connection");
            tokio::spawn(async move {
                while let Ok(length) = stream.read_u16().await {
                    let mut question = vec![0; length.into()];
                    stream.read_exact(&mut question).await.expect("a question");
                    let answer = answer(&question, 100);
                    let length = u16::try_from(answer.len()).expect("short").to_be_bytes();
                    stream.write_all(&[&length, &answer[..]].concat()).await.expect("sent");
                }
            });
        }
    });
    let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).await.expect("a socket");
    tokio::spawn(async move {
        let mut buf = [0; 512];
        while let Ok((length, from)) = far.recv_from(&mut buf).await {
            let _ = far.send_to(&answer(&buf[..length], 100), from).await;
        }
    });
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        let (listener, socks) = listener().await;
        let upstream = through(&format!("socks5://127.0.0.1:{socks}"));
        let resolvers = Resolver { address: address(Ipv4Addr::LOCALHOST, port), protocol }.into();
        let world = world(Config { resolvers, resolver_is_near: true, ..upstream });
        let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
        socket.connect((OWN, 53)).await.expect("an address");
        let mut buf = [0; 2_000];
        // More than the MTU, whatever the client would take (RFC 2181, section 9; RFC 6891, section
        // 6.2.3).
        for edns in [None, Some(4_096)] {
            socket.send(&question_of("big.test", TYPE::A, edns)).await.expect("sent");
            let length = timeout(PATIENCE, socket.recv(&mut buf)).await.expect("in time").expect("an answer");
            let short = Packet::parse(&buf[..length]).expect("an answer");
            assert!(short.has_flags(PacketFlag::TRUNCATION) && short.answers.is_empty(), "{protocol:?}");
            assert_eq!(short.opt().is_some(), edns.is_some());
        }
        assert_eq!(told_upstream(&world, &listener).await, "192.0.2.7");
        let mut stream = world.connect(53).await.expect("connected");
        let asked = question("big.test");
        let length = u16::try_from(asked.len()).expect("short").to_be_bytes();
        stream.write_all(&[&length, &asked[..]].concat()).await.expect("sent");
        let mut whole =
            vec![0; timeout(PATIENCE, stream.read_u16()).await.expect("in time").expect("a length").into()];
        stream.read_exact(&mut whole).await.expect("an answer");
        assert_eq!(Packet::parse(&whole).expect("an answer").answers.len(), 100);
        stream.shutdown().await.expect("closed");
        assert_eq!(stream.read(&mut [0]).await.expect("closed"), 0);
        assert_eq!(told_upstream(&world, &listener).await, "big.test");
    }
}

#[tokio::test]
async fn open_questions_of_a_flow_are_few() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let resolvers = udp(server.local_addr().expect("bound"));
    let world = world(Config { resolvers, resolver_is_near: true, ..Config::default() });
    let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.connect((OWN, 53)).await.expect("an address");
    for number in 0..200 {
        socket.send(&question(&format!("{number}.test"))).await.expect("sent");
    }
    world.until(|stats| stats.dns_too_many == 200 - 64).await;
    // Long ones are fewer, and what is no question is dropped.
    let other = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    other.connect((OWN, 53)).await.expect("an address");
    for number in 0..20 {
        let mut long = question(&format!("{number}.long.test"));
        long.resize(1_400, 0);
        other.send(&long).await.expect("sent");
    }
    world.until(|stats| stats.dns_too_many == 200 - 64 + 20 - 11).await;
    other.send(b"no question").await.expect("sent");
    world.until(|stats| stats.dns_malformed == 1).await;
    assert_eq!(world.meter.read().dns_questions, 64 + 11);
}

/// Names of the proxy's own: `db.test` is at [`FAR`].
fn own_names() -> Hosts {
    let mut hosts = Hosts::default();
    hosts.add("db.test", FAR.into()).expect("a name");
    hosts
}

#[tokio::test]
async fn a_name_of_the_proxys_own_needs_no_resolver_and_rules_know_it() {
    let (listener, port) = listener().await;
    let upstream = through(&format!("socks5://127.0.0.1:{port}"));
    // Nothing else is let through, not even to a resolver.
    let action = upstream.rules.otherwise.clone();
    let rules = Rules {
        rules: vec![Rule { domains: vec!["db.test".into()], ..Rule::all(action) }],
        otherwise: Action::Refuse,
    };
    for resolvers in [Resolvers::default(), udp(resolver().await)] {
        let world =
            world(Config { rules: rules.clone(), hosts: own_names(), resolvers, ..Config::default() });
        let told = ask(&world.client, "DB.test").await;
        let told = Packet::parse(&told).expect("a message");
        assert_eq!(told.rcode(), RCODE::NoError);
        assert!(matches!(&told.answers[..], [only] if only.rdata == RData::A(A { address: FAR.to_bits() })));
        let other = ask(&world.client, "example.test").await;
        assert_eq!(Packet::parse(&other).expect("a message").rcode(), RCODE::Refused);

        let asked = async {
            let (mut stream, request) = request(&listener, false).await;
            assert_eq!((&*request.host, request.port), ("db.test", 443));
            crate::servers::reply(&mut stream, 5, address(OWN, 0)).await;
        };
        let (outcome, ()) = tokio::join!(world.connect_to(address(FAR, 443)), asked);
        assert_eq!(outcome.expect_err("refused").kind(), ErrorKind::ConnectionRefused);
    }
}

#[tokio::test]
async fn a_name_of_the_proxys_own_goes_before_the_resolvers_over_tcp_too() {
    // There is no server at the resolver's address.
    for resolvers in
        [Resolvers::default(), Resolver { address: address(FAR, 9), protocol: Protocol::Tcp }.into()]
    {
        let world = world(Config {
            hosts: own_names(),
            resolvers,
            resolver_is_near: true,
            rules: Rules { rules: vec![], otherwise: Action::Refuse },
            ..Config::default()
        });
        let mut stream =
            timeout(PATIENCE, world.client.connect((OWN, 53))).await.expect("in time").expect("connected");
        let question = question("db.test");
        let mut message = (question.len() as u16).to_be_bytes().to_vec();
        message.extend(&question);
        stream.write_all(&message).await.expect("written");
        stream.shutdown().await.expect("closed");
        let mut answer = vec![];
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("in time").expect("an answer");
        let answer = Packet::parse(answer.get(2..).expect("a length")).expect("a message");
        assert_eq!(answer.answers.len(), 1);
    }
}
