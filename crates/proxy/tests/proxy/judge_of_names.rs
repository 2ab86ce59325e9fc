//! A judge of answers: what answers no open question changes nothing, neither at the client nor in
//! what the proxy knows of names.

use crate::names::{answer, question};
use crate::servers::request;
use crate::world::*;
use ackline_proxy::{Config, Protocol, Resolver, Resolvers};
use ackline_runtime::Stack;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use simple_dns::{Packet, PacketFlag};
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Numbers for tests: SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// What `message` says of the question, read by another hand than the proxy's.
fn answers(message: &[u8], question: &[u8]) -> bool {
    let asked = Packet::parse(question).expect("a question");
    let Ok(answer) = Packet::parse(message) else { return false };
    let [question] = &answer.questions[..] else { return false };
    let name = |question: &simple_dns::Question<'_>| question.qname.to_string().to_ascii_lowercase();
    answer.has_flags(PacketFlag::RESPONSE)
        && (answer.id(), answer.opcode()) == (asked.id(), asked.opcode())
        && name(question) == name(&asked.questions[0])
        && (question.qtype, question.qclass) == (asked.questions[0].qtype, asked.questions[0].qclass)
}

/// A right answer with one thing or several changed, so that it answers nothing.
fn mutated(random: &mut Random, right: &[u8], question: &[u8]) -> Vec<u8> {
    loop {
        let mut message = right.to_vec();
        // Header and question.
        let head = question.len();
        match random.below(6) {
            0 => message.truncate(random.below(head)),
            1 => message[..2].copy_from_slice(&random.next().to_be_bytes()[..2]),
            2 => message[4..12].copy_from_slice(&random.next().to_be_bytes()),
            3 => message[2] ^= 1 << random.below(8),
            4 => message = (0..random.below(600)).map(|_| random.next() as u8).collect(),
            _ => {
                for _ in 0..=random.below(4) {
                    message[random.below(head)] ^= 1 << random.below(8);
                }
            }
        }
        if !answers(&message, question) {
            return message;
        }
    }
}

#[tokio::test]
async fn ten_thousand_answers_that_answer_nothing_change_nothing() {
    let seed = std::env::var("ACKLINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_127);
    println!("ACKLINE_SEED={seed}");
    let mut random = Random(seed);
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let resolver = Resolver { address: server.local_addr().expect("bound"), protocol: Protocol::Udp };
    let resolvers = Resolvers { timeout: Duration::from_secs(3_000), ..resolver.into() };
    let (listener, port) = listener().await;
    let upstream = through(&format!("socks5://127.0.0.1:{port}"));
    // However long the judge takes, the flow is there.
    let (device, end) = Channel::pair(ChannelConfig::default());
    let stack = Stack::builder(device)
        .any_address()
        .configure(|host| host.udp_dns_timeout = ackline_tcp_core::Duration::from_secs(3_000))
        .spawn()
        .expect("a stack");
    let near = Stack::builder(end).address(CLIENT).spawn().expect("a stack");
    let world = between(near, &stack, Config { resolvers, resolver_is_near: true, ..upstream });
    let client = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    client.connect((OWN, 53)).await.expect("an address");
    client.send(&question("bank.test")).await.expect("sent");
    let mut buf = [0; 600];
    let (length, from) = server.recv_from(&mut buf).await.expect("a question");
    let asked = buf[..length].to_vec();
    let right = answer(&asked, 1);
    assert!(answers(&right, &asked));
    let host_told = async || {
        let asked = async {
            let (mut stream, request) = request(&listener, false).await;
            crate::servers::reply(&mut stream, 5, address(OWN, 0)).await;
            request.host
        };
        tokio::join!(world.connect_to(address(FAR, 443)), asked).1
    };
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    for number in 0..10_000_u64 {
        server.send_to(&mutated(&mut random, &right, &asked), from).await.expect("sent");
        // Who is not the resolver may know everything else.
        let _ = stranger.send_to(&right, from).await;
        if number % 50 == 49 {
            // No queue overflows.
            world.until(|stats| stats.dns_unasked == number + 1).await;
        }
    }
    assert_eq!(host_told().await, "192.0.2.7", "no name was learnt");
    assert_eq!(client.try_recv(&mut buf).expect_err("nothing").kind(), ErrorKind::WouldBlock);
    assert_eq!(world.meter.read().dns_answers, 0);
    // The question is still open, and has one answer.
    for _ in 0..3 {
        server.send_to(&right, from).await.expect("sent");
    }
    let length = timeout(PATIENCE, client.recv(&mut buf)).await.expect("in time").expect("an answer");
    assert_eq!(buf[..length], right);
    world.until(|stats| stats.dns_unasked == 10_002).await;
    assert_eq!(host_told().await, "bank.test");
    // What nobody asks any more teaches nothing either, wherever it comes from.
    let forged = question("evil.test");
    server.send_to(&answer(&forged, 1), from).await.expect("sent");
    world.until(|stats| stats.dns_unasked == 10_003 || stats.open_flows == 0).await;
    assert_eq!(host_told().await, "bank.test");
    assert_eq!(world.meter.read().dns_answers, 1);
}

/// A SOCKS5 server says who has answered (RFC 1928, section 7).
#[tokio::test]
async fn an_answer_through_socks_counts_from_the_resolver_alone() {
    let (listener, port) = listener().await;
    let resolver = Resolver { address: address(FAR, 53), protocol: Protocol::Udp };
    let upstream = through(&format!("socks5://127.0.0.1:{port}"));
    let world = world(Config { resolvers: resolver.into(), ..upstream });
    let client = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    client.connect((OWN, 53)).await.expect("an address");
    client.send(&question("bank.test")).await.expect("sent");
    let (mut stream, _) = timeout(PATIENCE, request(&listener, false)).await.expect("in time");
    let relay = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    crate::servers::reply(&mut stream, 0, relay.local_addr().expect("bound")).await;
    let mut buf = [0; 600];
    let (length, from) =
        timeout(PATIENCE, relay.recv_from(&mut buf)).await.expect("in time").expect("a question");
    let header = b"\0\0\0\x01\xc0\0\x02\x07\0\x35";
    let asked = buf[..length].strip_prefix(header).expect("to the resolver").to_vec();
    // Another host, another port, a fragment, a name.
    for other in [
        &b"\0\0\0\x01\xc0\0\x02\x08\0\x35"[..],
        b"\0\0\0\x01\xc0\0\x02\x07\0\x36",
        b"\0\0\x01\x01\xc0\0\x02\x07\0\x35",
        b"\0\0\0\x03\x06a.test\0\x35",
    ] {
        relay.send_to(&[other, &answer(&asked, 2)].concat(), from).await.expect("sent");
    }
    let right = answer(&asked, 1);
    relay.send_to(&[header, &right[..]].concat(), from).await.expect("sent");
    let length = timeout(PATIENCE, client.recv(&mut buf)).await.expect("in time").expect("an answer");
    assert_eq!(buf[..length], right);
}
