//! Unusual ways to begin, and bytes out of band.

use crate::support::stream::{read_all, write_all};
use crate::support::{Ip, KERNEL4, Opens, STACK4, Setup, World};
use ackline_runtime::device::impair::{ImpairConfig, Impairment};
use ackline_tcp_core::config::SynCookies;
use ackline_tcp_core::{Duration, Target};
use rustix::net::SendFlags;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net;

/// A socket of the kernel with a port of its own, which may be used again at once.
fn socket_at(port: u16) -> net::TcpSocket {
    let socket = net::TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("set");
    socket.bind(SocketAddr::new(KERNEL4, port)).expect("bound");
    socket
}

/// SYNs cross on a path of 2 x 20 ms.
fn long_path() -> Setup {
    let impairment = Impairment { delay: Duration::from_millis(20), ..Impairment::default() };
    Setup::offload().impair(ImpairConfig::both(impairment, 0))
}

/// The kernel opens over both families, and every SYN is answered with a cookie; then data goes
/// both ways. `full`: the handshake agrees on everything.
async fn open_with_cookies(world: &World, full: bool) {
    for ip in [Ip::V4, Ip::V6] {
        let (mut kernel, mut stack) = world.connection(Opens::Kernel, ip).await;
        assert_eq!(world.stack.stats().half_open, 0);
        let info = stack.info().expect("connected");
        assert_eq!((info.sack, info.timestamps, info.wscale.is_some()), (full, full, full), "{ip:?}");
        assert_eq!(info.snd_mss, if ip == Ip::V4 { 1_460 } else { 1_440 } - if full { 12 } else { 0 });
        tokio::join!(write_all(&mut kernel, 1, 3_000_000), read_all(&mut stack, 1, 3_000_000));
        tokio::join!(write_all(&mut stack, 2, 3_000_000), read_all(&mut kernel, 2, 3_000_000));
    }
    let counters = world.stack.counters();
    assert_eq!((counters.syncookies_sent, counters.syncookies_recv, counters.syncookies_failed), (2, 2, 0));
}

against_kernel! {
    // RFC 4987, section 3.6: the ACK brings back what the SYN said.
    fn the_kernel_brings_cookies_back(world) from Setup::offload().host(|config| config.syn_cookies = SynCookies::Always); {
        open_with_cookies(&world, true).await;
    }

    fn without_timestamps_a_cookie_says_the_segment_size(world)
        from Setup::offload().host(|config| config.syn_cookies = SynCookies::Always).sysctl("tcp_timestamps", "0");
    {
        open_with_cookies(&world, false).await;
    }

    fn both_open_at_once(world) from long_path(); {
        let (kernel_port, stack_port) = (5000, 6000);
        let mut target = Target::new(SocketAddr::new(KERNEL4, kernel_port));
        target.local_port = Some(stack_port);
        let kernel = socket_at(kernel_port).connect(SocketAddr::new(STACK4, stack_port));
        let (kernel, stack) = tokio::join!(kernel, world.stack.connect_to(target, world.stack.connections().clone()));
        let (mut kernel, mut stack) = (kernel.expect("connected"), stack.expect("connected"));
        let counters = world.stack.counters();
        assert_eq!((counters.tcp_active_opens, counters.tcp_passive_opens), (1, 0));
        tokio::join!(write_all(&mut kernel, 1, 100_000), read_all(&mut stack, 1, 100_000));
        tokio::join!(write_all(&mut stack, 2, 100_000), read_all(&mut kernel, 2, 100_000));
    }

    fn a_newer_syn_reopens_a_connection_in_time_wait(world) from Setup::offload(); {
        let listener = world.listen(7);
        for turn in 0..3 {
            let connect = socket_at(5000).connect(SocketAddr::new(STACK4, 7));
            let (kernel, accepted) = tokio::join!(connect, listener.accept());
            let (mut kernel, mut stack) = (kernel.expect("connected"), accepted.expect("accepted").0);
            // The stack closes first, and is left in TIME-WAIT.
            tokio::join!(write_all(&mut stack, turn, 1000), read_all(&mut kernel, turn, 1000));
            tokio::join!(write_all(&mut kernel, turn, 1000), read_all(&mut stack, turn, 1000));
        }
        assert_eq!(world.stack.counters().tcp_tw_reopened, 2);
    }

    fn urgent_bytes_stay_in_the_stream(world) from Setup::offload(); {
        let (mut kernel, mut stack) = world.connection(Opens::Kernel, Ip::V4).await;
        kernel.write_all(b"before").await.expect("written");
        // RFC 6093, section 6: the last byte is marked, and in line all the same.
        rustix::net::send(&kernel, b"urgent", SendFlags::OOB).expect("sent");
        kernel.write_all(b"after").await.expect("written");
        kernel.shutdown().await.expect("closed");
        let mut received = String::new();
        stack.read_to_string(&mut received).await.expect("a stream");
        assert_eq!(received, "beforeurgentafter");
        assert!(world.stack.counters().tcp_urgent > 0, "nothing was marked");
    }

    fn half_a_thousand_connects_in_a_row(world) from Setup::offload(); {
        let listener = net::TcpListener::bind((KERNEL4, 7)).await.expect("bound");
        for _ in 0..500 {
            let (accepted, stack) = tokio::join!(listener.accept(), world.connect((KERNEL4, 7)));
            let (mut kernel, mut stack) = (accepted.expect("accepted").0, stack.expect("connected"));
            tokio::join!(write_all(&mut stack, 1, 10), read_all(&mut kernel, 1, 10));
            // The stack closed first: its port stays in TIME-WAIT, and the next connection takes
            // another.
        }
        assert_eq!(world.stack.counters().tcp_active_opens, 500);
        assert_eq!(world.stack.counters().tcp_attempt_fails, 0);
    }
}
