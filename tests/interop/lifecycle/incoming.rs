//! Accepting in three steps: what the kernel's clients are told, and when.

use crate::support::{Ip, Setup, World};
use ackline_runtime::{HeldSyn, Incoming, Refusal};
use ackline_tcp_core::ListenOn;
use std::io::ErrorKind::{ConnectionRefused, HostUnreachable};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const PORT: u16 = 4_322;

/// What must not take long.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("an answer at once")
}

fn incoming(world: &World) -> Incoming {
    world.stack.listen(ListenOn::Any).expect("nobody else").incoming().expect("a device")
}

/// A client of the kernel connects, and its SYN is held.
async fn client(incoming: &Incoming, to: SocketAddr) -> (JoinHandle<std::io::Result<TcpStream>>, HeldSyn) {
    let client = tokio::spawn(TcpStream::connect(to));
    let syn = soon(incoming.next()).await.expect("a SYN");
    assert_eq!(syn.local_addr(), to);
    (client, syn)
}

fn foreign() -> SocketAddr {
    ([203, 0, 113, 9], 443).into()
}

against_kernel! {
    fn a_client_is_connected_when_the_upstream_has_connected(world) from Setup::plain().tunnel(); {
        let incoming = incoming(&world);
        for to in [foreign(), SocketAddr::new(Ip::V4.stack(), PORT), SocketAddr::new(Ip::V6.stack(), PORT)] {
            let (client, syn) = client(&incoming, to).await;
            let options = &syn.syn().options;
            assert_eq!(options.mss, Some(if to.is_ipv4() { 1_460 } else { 1_440 }));
            assert!(options.sack_permitted && options.timestamps.is_some() && options.window_scale.is_some());
            assert_eq!(syn.syn().ttl, 64);
            // The kernel repeats its SYN after a second, and gets no answer.
            let repeats = world.stack.counters().held_syn_repeats;
            let upstream = async {
                while world.stack.counters().held_syn_repeats == repeats {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            soon(syn.hold(upstream)).await.expect("the client waits");
            assert!(!client.is_finished());
            let mut stack = soon(syn.accept()).await.expect("connected");
            let mut kernel = soon(client).await.expect("no panic").expect("connected");
            assert_eq!(stack.addresses(), (to, kernel.local_addr().expect("connected")));
            kernel.write_all(b"question").await.expect("sent");
            let mut buf = [0; 8];
            soon(stack.read_exact(&mut buf)).await.expect("received");
            stack.write_all(&buf).await.expect("sent");
            soon(kernel.read_exact(&mut buf)).await.expect("received");
            assert_eq!(&buf, b"question");
        }
    }

    fn each_refusal_is_an_error_of_its_own(world) from Setup::offload().tunnel(); {
        let incoming = incoming(&world);
        let own = SocketAddr::new(Ip::V4.stack(), PORT);
        let table = [
            (own, Refusal::Rst, ConnectionRefused),
            (foreign(), Refusal::Rst, ConnectionRefused),
            (own, Refusal::Unreachable, ConnectionRefused),
            (foreign(), Refusal::Unreachable, HostUnreachable),
            (SocketAddr::new(Ip::V6.stack(), PORT), Refusal::Unreachable, ConnectionRefused),
        ];
        for (to, how, kind) in table {
            let (client, syn) = client(&incoming, to).await;
            syn.refuse(how);
            let error = soon(client).await.expect("no panic").expect_err("refused");
            assert_eq!(error.kind(), kind, "{to} {how:?}");
        }
        assert_eq!((world.stack.stats().held_syns, world.stack.counters().held_syns_refused), (0, 5));
    }

    fn a_dropped_syn_comes_again(world) from Setup::plain(); {
        let incoming = incoming(&world);
        let to = SocketAddr::new(Ip::V4.stack(), PORT);
        let (client, syn) = client(&incoming, to).await;
        syn.refuse(Refusal::Drop);
        let syn = soon(incoming.next()).await.expect("the SYN, a second later");
        soon(syn.accept()).await.expect("connected");
        soon(client).await.expect("no panic").expect("connected");
    }

    /// The client's socket is closed meanwhile: it says nothing, and its RST answers the SYN-ACK.
    fn a_client_that_has_gone_resets_the_answer(world) from Setup::plain(); {
        let incoming = incoming(&world);
        let to = SocketAddr::new(Ip::V4.stack(), PORT);
        let (client, syn) = client(&incoming, to).await;
        client.abort();
        assert!(client.await.expect_err("aborted").is_cancelled());
        let error = soon(syn.accept()).await.expect_err("nobody is there");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert_eq!((world.stack.stats().half_open, world.stack.stats().connections), (0, 0));
    }
}
