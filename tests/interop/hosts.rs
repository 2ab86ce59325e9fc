//! What a host owes others beside transfers: ping, refusals, addresses.

use super::support::stream::{read_all, write_all};
use super::support::{Ip, KERNEL4, KERNEL6, STACK4, STACK6, Setup};
use ackline_tcp_core::ListenOn;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, sockopt};
use std::io::ErrorKind::{ConnectionRefused, TimedOut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net;

/// For experiments: RFC 3692.
const EXPERIMENT: rustix::net::Protocol =
    rustix::net::Protocol::from_raw(std::num::NonZeroU32::new(253).expect("not zero"));

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Sends an echo request from the kernel's side with `data`: the socket for the answer, and the
/// message.
pub(crate) fn ask(to: IpAddr, data: &[u8]) -> (OwnedFd, Vec<u8>) {
    let (family, protocol, request) = match to {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, 8),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, 128),
    };
    let socket = rustix::net::socket(family, SocketType::RAW, Some(protocol)).expect("a raw socket");
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(5))).expect("set");
    let mut packet = vec![request, 0, 0, 0, 0x12, 0x34, 0, 1];
    packet.extend_from_slice(data);
    if to.is_ipv4() {
        // The kernel fills in the other version's.
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    rustix::net::sendto(&socket, &packet, SendFlags::empty(), &SocketAddr::new(to, 0)).expect("sent");
    (socket, packet)
}

/// Pings from the kernel's side with `data`; true if the answer came back within five seconds.
fn ping(to: IpAddr, data: &[u8]) -> bool {
    let (socket, packet) = ask(to, data);
    let reply = if to.is_ipv4() { 0 } else { 129 };
    let mut buffer = vec![0; 65_536];
    loop {
        match rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((len, _)) => {
                // An IPv4 raw socket shows the IP header too.
                let answer = &buffer[if to.is_ipv4() { 20 } else { 0 }..len];
                if answer[0] == reply && answer[4..] == packet[4..] {
                    return true;
                }
            }
            Err(rustix::io::Errno::AGAIN) => return false,
            Err(other) => panic!("receive: {other}"),
        }
    }
}

/// A connected UDP socket of the kernel learns from the first datagram that nobody is there.
async fn refused(to: SocketAddr) {
    let own: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = net::UdpSocket::bind((own, 0)).await.expect("bound");
    socket.connect(to).await.expect("a route");
    socket.send(b"anybody there?").await.expect("sent");
    let answer = tokio::time::timeout(Duration::from_secs(5), socket.recv(&mut [0; 100])).await;
    let error = answer.expect("an answer at once").expect_err("nobody is there");
    assert_eq!(error.kind(), ConnectionRefused, "{to}");
}

against_kernel! {
    fn ping_is_answered(world) from Setup::offload(); {
        for to in [STACK4, STACK6] {
            for len in [0, 1, 56, 1400] {
                let data: Vec<u8> = (0..len).map(|byte: u32| byte as u8).collect();
                // The wait blocks a thread, in this namespace, which must not be the stack's.
                let answered = tokio::task::spawn_blocking(move || ping(to, &data)).await.expect("no panic");
                assert!(answered, "no answer from {to} to {len} bytes");
            }
        }
        assert_eq!(world.stack.counters().icmp_out_echo_reps, 8);
    }

    fn a_port_without_a_listener_refuses_the_kernel(world) from Setup::offload(); {
        for to in [STACK4, STACK6] {
            let error = net::TcpStream::connect((to, 4321)).await.expect_err("nobody listens");
            assert_eq!(error.kind(), ConnectionRefused);
        }
        assert_eq!(world.stack.counters().tcp_out_rsts, 2);
    }

    fn the_kernel_refuses_where_nobody_listens(world) from Setup::offload(); {
        for to in [KERNEL4, KERNEL6] {
            let error = world.connect((to, 4321)).await.expect_err("nobody listens");
            assert_eq!(error.kind(), ConnectionRefused);
        }
        assert_eq!(world.stack.counters().tcp_attempt_fails, 2);
    }

    fn a_host_that_is_not_there_times_out(world) from Setup::offload().connections(|config| {
        config.syn_retries = 2;
        config.initial_rto = ackline_tcp_core::Duration::from_millis(100);
    }); {
        // The kernel does not forward, and says nothing.
        let error = world.connect((Ipv4Addr::new(198, 51, 100, 1), 80)).await.expect_err("nobody");
        assert_eq!(error.kind(), TimedOut);
        assert_eq!(world.stack.counters().tcp_syn_retrans, 2);
    }

    fn datagrams_are_refused_at_once(world) from Setup::offload(); {
        for to in [STACK4, STACK6] {
            refused(SocketAddr::new(to, 53)).await;
        }
        let counters = world.stack.counters();
        assert_eq!((counters.udp_no_ports, counters.icmp_out_dest_unreachs), (2, 2));
        // The kernel knows no reason to open a socket of a protocol that it does not have.
        for (to, error) in [(STACK4, Errno::NOPROTOOPT), (STACK6, Errno::PROTO)] {
            let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = rustix::net::socket(family, SocketType::RAW, Some(EXPERIMENT)).expect("a raw socket");
            rustix::net::connect(&socket, &SocketAddr::new(to, 0)).expect("a route");
            // An error that nobody has read yet is not to be taken for the answer.
            rustix::net::send(&socket, &[0; 8], SendFlags::empty()).expect("sent");
            let told = async {
                loop {
                    if let Err(error) = sockopt::socket_error(&socket).expect("a socket") {
                        return error;
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            assert_eq!(tokio::time::timeout(Duration::from_secs(5), told).await, Ok(error), "{to}");
        }
    }

    fn a_tunnel_refuses_datagrams_to_every_address(world) from Setup::plain().tunnel(); {
        for to in ["203.0.113.5:53", "203.0.113.250:65535"] {
            refused(to.parse().expect("an address")).await;
        }
        assert_eq!(world.stack.counters().udp_no_ports, 2);
    }

    fn an_ethernet_refuses_datagrams(world) from Setup::offload().ethernet(); {
        for to in [STACK4, STACK6] {
            refused(SocketAddr::new(to, 53)).await;
        }
        assert_eq!(world.stack.counters().udp_no_ports, 2);
    }

    fn a_stopped_listener_refuses(world) from Setup::offload(); {
        let listener = world.listen(7);
        let _open = net::TcpStream::connect((STACK4, 7)).await.expect("it listens");
        drop(listener);
        let error = net::TcpStream::connect((STACK4, 7)).await.expect_err("it listens no more");
        assert_eq!(error.kind(), ConnectionRefused);
    }

    fn the_same_port_serves_one_connection_after_another(world) from Setup::offload(); {
        let listener = world.listen(7);
        for turn in 0..200 {
            let connect = net::TcpStream::connect((Ip::V4.stack(), 7));
            let (kernel, accepted) = tokio::join!(connect, listener.accept());
            let (mut kernel, mut stack) = (kernel.expect("connected"), accepted.expect("accepted").0);
            tokio::join!(write_all(&mut kernel, turn, 100), read_all(&mut stack, turn, 100));
            tokio::join!(write_all(&mut stack, turn, 100), read_all(&mut kernel, turn, 100));
        }
        assert_eq!(world.stack.counters().tcp_passive_opens, 200);
        assert_eq!(world.stack.counters().tcp_out_rsts, 0);
    }

    fn a_tunnel_takes_every_address_and_port(world) from Setup::offload().tunnel(); {
        let listener = world.stack.listen(ListenOn::Any).expect("listens");
        for to in ["203.0.113.5:80", "203.0.113.250:65535"] {
            let to: SocketAddr = to.parse().expect("an address");
            let (kernel, accepted) = tokio::join!(net::TcpStream::connect(to), listener.accept());
            let (mut kernel, (mut stack, peer)) = (kernel.expect("connected"), accepted.expect("accepted"));
            assert_eq!(stack.local_addr().expect("known"), to, "the address that the peer asked for");
            assert_eq!(peer, kernel.local_addr().expect("bound"));
            tokio::join!(write_all(&mut stack, 1, 100_000), read_all(&mut kernel, 1, 100_000));
        }
    }
}
