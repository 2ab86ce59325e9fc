//! UDP against the kernel's.

use super::hosts::ask;
use super::support::{Ip, KERNEL4, Setup};
use ackline_runtime::UdpSocket;
use std::io::ErrorKind::{ConnectionRefused, InvalidInput};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net;

const PORT: u16 = 4_321;

/// What must not take long.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("an answer at once")
}

/// `len` bytes, different for each `seed`.
fn data(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

/// Echoes between a socket of the stack and one of the kernel, with datagrams of these lengths.
async fn echo(world: &super::support::World, ip: Ip, mtu: usize) {
    let stack = UdpSocket::bind(&world.stack, (ip.stack(), PORT)).await.expect("free");
    let kernel = net::UdpSocket::bind((ip.kernel(), 0)).await.expect("free");
    let (stack_at, kernel_at) = (stack.local_addr().expect("bound"), kernel.local_addr().expect("bound"));
    let longest = mtu - if ip == Ip::V4 { 28 } else { 48 };
    let mut buf = vec![0; 65_536];
    for (seed, len) in [0, 1, 2, 63, 1_000, longest - 1, longest].into_iter().enumerate() {
        let sent = data(seed, len);
        kernel.send_to(&sent, stack_at).await.expect("sent");
        let (got, from) = soon(stack.recv_from(&mut buf)).await.expect("received");
        assert!(buf[..got] == sent && from == kernel_at, "{len} bytes from the kernel");
        stack.send_to(&sent, from).await.expect("sent");
        let (got, from) = soon(kernel.recv_from(&mut buf)).await.expect("received");
        assert!(buf[..got] == sent && from == stack_at, "{len} bytes from the stack");
    }
    let error = stack.send_to(&vec![0; longest + 1], kernel_at).await.expect_err("nothing is fragmented");
    assert_eq!(error.kind(), InvalidInput);
}

/// Datagrams of the kernel that are longer than the MTU.
async fn fragments_from_the_kernel(world: &super::support::World) {
    let mut buf = vec![0; 65_536];
    for (ip, longest) in [(Ip::V4, 65_507), (Ip::V6, 65_527)] {
        let stack = UdpSocket::bind(&world.stack, (ip.stack(), PORT)).await.expect("free");
        let kernel = net::UdpSocket::bind((ip.kernel(), 0)).await.expect("free");
        for (seed, len) in [1_473, 5_000, longest].into_iter().enumerate() {
            let sent = data(seed, len);
            kernel.send_to(&sent, stack.local_addr().expect("bound")).await.expect("sent");
            let (got, _) = soon(stack.recv_from(&mut buf)).await.expect("received");
            assert!(buf[..got] == sent, "{len} bytes from the kernel");
        }
    }
    let counters = world.stack.counters();
    assert!(counters.ip_reasm_oks >= 5 && counters.ip_reasm_fails == 0, "{}", counters.ip_reasm_fails);
}

against_kernel! {
    fn datagrams_pass_both_ways_with_offload(world) from Setup::offload(); {
        for ip in [Ip::V4, Ip::V6] {
            echo(&world, ip, 1_500).await;
        }
        assert_eq!(world.stack.counters().udp_in_errors, 0);
    }

    fn datagrams_pass_both_ways_without_offload(world) from Setup::plain(); {
        for ip in [Ip::V4, Ip::V6] {
            echo(&world, ip, 1_500).await;
        }
        assert_eq!(world.stack.counters().udp_in_errors, 0);
    }

    fn datagrams_as_large_as_a_jumbo_frame_pass(world) from Setup::offload().mtu(9_000); {
        for ip in [Ip::V4, Ip::V6] {
            echo(&world, ip, 9_000).await;
        }
    }

    fn datagrams_pass_an_ethernet(world) from Setup::offload().ethernet(); {
        for ip in [Ip::V4, Ip::V6] {
            echo(&world, ip, 1_500).await;
        }
    }

    fn fragments_of_the_kernel_are_put_together_with_offload(world) from Setup::offload(); {
        fragments_from_the_kernel(&world).await;
    }

    fn fragments_of_the_kernel_are_put_together_without_offload(world) from Setup::plain(); {
        fragments_from_the_kernel(&world).await;
    }

    fn fragments_of_the_kernel_are_put_together_on_an_ethernet(world) from Setup::offload().ethernet(); {
        fragments_from_the_kernel(&world).await;
    }

    fn a_long_ping_for_somebody_else_comes_whole_to_the_program(world) from Setup::offload().tunnel(); {
        let packets = world.stack.packets().expect("nobody else takes them");
        for to in ["10.79.0.9", "fd79::9"].map(|text| text.parse::<IpAddr>().expect("an address")) {
            let sent = data(4, 4_000);
            let asked = tokio::task::spawn_blocking(move || ask(to, &sent)).await.expect("no panic");
            let packet = soon(packets.recv()).await.expect("received");
            let (header, message) = packet.split_at(packet.len() - asked.1.len());
            assert_eq!(header.len(), if to.is_ipv4() { 20 } else { 40 });
            assert!(message[4..] == asked.1[4..]);
        }
        assert_eq!(world.stack.counters().ip_reasm_oks, 2);
    }

    fn each_side_refuses_the_others_connected_socket(world) from Setup::offload(); {
        for ip in [Ip::V4, Ip::V6] {
            let stack = UdpSocket::bind(&world.stack, (ip.stack(), 0)).await.expect("free");
            stack.connect((ip.kernel(), PORT)).await.expect("an address");
            stack.send(b"anybody there?").await.expect("sent");
            let error = soon(stack.recv(&mut [0; 9])).await.expect_err("nobody is there");
            assert_eq!(error.kind(), ConnectionRefused);
            let kernel = net::UdpSocket::bind((ip.kernel(), 0)).await.expect("free");
            kernel.connect((ip.stack(), PORT)).await.expect("a route");
            kernel.send(b"anybody there?").await.expect("sent");
            let error = soon(kernel.recv(&mut [0; 9])).await.expect_err("nobody is there");
            assert_eq!(error.kind(), ConnectionRefused);
        }
    }

    fn a_flow_answers_for_an_address_that_is_nowhere(world) from Setup::plain().tunnel(); {
        let incoming = world.stack.incoming_udp().expect("nobody else");
        let kernel = net::UdpSocket::bind((KERNEL4, 0)).await.expect("free");
        for port in [53, 443] {
            let to: SocketAddr = ([203, 0, 113, 9], port).into();
            kernel.send_to(b"question", to).await.expect("sent");
            let flow = soon(incoming.accept()).await.expect("a flow");
            assert_eq!((flow.local_addr().ok(), flow.peer_addr().ok()), (Some(to), kernel.local_addr().ok()));
            let mut buf = [0; 100];
            assert_eq!(soon(flow.recv(&mut buf)).await.expect("received"), 8);
            flow.send(b"answer").await.expect("sent");
            let (len, from) = soon(kernel.recv_from(&mut buf)).await.expect("received");
            assert_eq!((&buf[..len], from), (&b"answer"[..], to));
        }
        // The kernel believes a refusal that quotes no more than addresses and ports.
        let kernel = net::UdpSocket::bind((KERNEL4, 0)).await.expect("free");
        kernel.connect("203.0.113.9:1").await.expect("a route");
        kernel.send(b"question").await.expect("sent");
        soon(incoming.accept()).await.expect("a flow").refuse();
        assert_eq!(soon(kernel.recv(&mut [0; 9])).await.expect_err("refused").kind(), ConnectionRefused);
    }

    fn a_flood_from_the_kernel_is_bounded_and_tcp_goes_on(world) from Setup::plain().host(|host| {
        host.udp_recv_buffer = 100_000;
    }); {
        let stack = UdpSocket::bind(&world.stack, (Ip::V4.stack(), PORT)).await.expect("free");
        let kernel = net::UdpSocket::bind((KERNEL4, 0)).await.expect("free");
        let before = world.stack.stats().memory;
        for _ in 0..100 {
            for _ in 0..100 {
                // The device's queue may be full.
                let _ = kernel.try_send_to(&[7; 1_400], (Ip::V4.stack(), PORT).into());
            }
            tokio::task::yield_now().await;
        }
        let (_kernel, _stack) = world.connection(super::support::Opens::Kernel, Ip::V4).await;
        let stats = world.stack.stats();
        assert!(stats.counters.udp_rcvbuf_errors > 0, "{}", stats.counters.udp_rcvbuf_errors);
        assert!(stats.memory - before < 200_000, "{}", stats.memory - before);
        let mut received = 0;
        while stack.try_recv(&mut [0; 2_000]).is_ok() {
            received += 1;
        }
        assert!((50..=71).contains(&received), "{received}");
    }
}
