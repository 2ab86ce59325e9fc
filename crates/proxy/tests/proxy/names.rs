//! Names: the resolver behind the proxy's own address, rules by domain, upstreams that are told the name.

use crate::servers::{request, socks};
use crate::world::*;
use ackline_proxy::{Action, Config, Protocol, Resolver, Rule, Rules};
use ackline_runtime::Stack;
use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, ResourceRecord, TYPE};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UdpSocket;
use tokio::time::timeout;

fn question(name: &str) -> Vec<u8> {
    let mut question = Packet::new_query(7);
    let name = Name::new_unchecked(name);
    question.questions.push(Question::new(name, QTYPE::TYPE(TYPE::A), QCLASS::CLASS(CLASS::IN), false));
    question.build_bytes_vec().expect("a message")
}

/// The answer of a resolver that knows so many addresses of each name, from [`FAR`] on.
fn answer(question: &[u8], addresses: u32) -> Vec<u8> {
    let question = Packet::parse(question).expect("a question");
    let mut answer = question.clone().into_reply();
    for number in 0..addresses {
        let data = RData::A(A { address: FAR.to_bits() + number });
        answer.answers.push(ResourceRecord::new(question.questions[0].qname.clone(), CLASS::IN, 60, data));
    }
    answer.build_bytes_vec().expect("a message")
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

fn udp(address: SocketAddr) -> Option<Resolver> {
    Some(Resolver { address, protocol: Protocol::Udp })
}

#[tokio::test]
async fn an_upstream_gets_the_name_and_rules_know_it() {
    let (listener, port) = listener().await;
    let upstream = through(&format!("socks5://127.0.0.1:{port}"));
    let refused = Rule { domains: vec!["refused.test".into()], ..Rule::all(Action::Refuse) };
    let rules = Rules { rules: vec![refused], ..upstream.rules };
    let config =
        Config { rules, resolver: udp(resolver().await), resolver_is_near: true, ..Config::default() };
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
    assert_eq!(world.meter.read().rule_refused, 0);
    ask(&world.client, "a.refused.test").await;
    let error = world.connect_to(address(FAR, 443)).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let stats = world.meter.read();
    assert_eq!((stats.rule_refused, stats.named, stats.dns_questions, stats.dns_answers), (1, 2, 2, 2));
}

#[tokio::test]
async fn questions_reach_a_resolver_through_the_upstream_over_udp_and_tcp() {
    let (socks, mut told) = socks().await;
    let near = resolver().await;
    let url = format!("socks5://127.0.0.1:{socks}");
    // The server connects to the loopback, whatever the address.
    let config = Config { resolver: udp(address(FAR, near.port())), ..through(&url) };
    let own = world(config);
    let said = ask(&own.client, "name.test").await;
    assert_eq!(Packet::parse(&said).expect("an answer").answers.len(), 1);
    assert_eq!(told.recv().await.expect("asked").command, 3);

    let (listener, port) = listener().await;
    let resolver = Some(Resolver { address: address(FAR, port), protocol: Protocol::Tcp });
    let own = world(Config { resolver, ..through(&url) });
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
    let world =
        world(Config { rules, resolver: udp(resolver().await), resolver_is_near: true, ..Config::default() });
    let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.send_to(&question("name.test"), address([192, 0, 2, 53], 53)).await.expect("sent");
    let mut buf = [0; 512];
    let (_, from) = timeout(PATIENCE, socket.recv_from(&mut buf)).await.expect("in time").expect("an answer");
    assert_eq!(from, address([192, 0, 2, 53], 53));
}
