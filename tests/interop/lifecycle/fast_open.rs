//! TCP Fast Open against the kernel's: the first connection gets a cookie, and the next one sends
//! with its SYN.

use crate::support::{Ip, Setup, World};
use ackline_runtime::device::impair::{ImpairConfig, Impairment};
use ackline_runtime::kernel::KernelTcpInfo;
use ackline_tcp_core::config::FastOpen;
use ackline_tcp_core::{ConnConfig, Duration, State};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net;

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.0 200 OK\r\n\r\n";

/// `MSG_FASTOPEN`: connect, and send with the SYN if there is a cookie.
const FAST: SendFlags = SendFlags::from_bits_retain(0x2000_0000);
/// `TCPI_OPT_SYN_DATA`: the SYN carried data that was acknowledged.
const SYN_DATA: u8 = 32;

/// A kernel whose clients may use fast open, and whose listeners all do (`tcp_fastopen`: 1, 2 and
/// 0x400), on a path of 2 x 100 ms.
fn fast() -> Setup {
    let impairment = Impairment { delay: Duration::from_millis(100), ..Impairment::default() };
    Setup::offload().impair(ImpairConfig::both(impairment, 0)).sysctl("tcp_fastopen", "1027")
}

fn config(fast_open: FastOpen) -> impl FnOnce(&mut ConnConfig) {
    move |config| config.fast_open = fast_open
}

/// The kernel's counter of this name in the group `TcpExt`.
fn kernel_counter(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").expect("the kernel's counters");
    // A line of names, and a line of values.
    let lines: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("TcpExt:"))
        .map(|line| line.split(' ').collect())
        .collect();
    let column =
        lines[0].iter().position(|it| *it == name).unwrap_or_else(|| panic!("{name} is not counted"));
    lines[1][column].parse().expect("a number")
}

/// The kernel connects and sends the request with its SYN, as `sendto` with `MSG_FASTOPEN` does.
async fn kernel_connects(to: SocketAddr) -> net::TcpStream {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None).expect("a socket");
    let sent = sendto(&socket, REQUEST, FAST, &to);
    let mut stream = net::TcpStream::from_std(socket.into()).expect("a stream");
    match sent {
        Ok(sent) => assert_eq!(sent, REQUEST.len()),
        // It asks for a cookie, and takes no data before it is connected.
        Err(rustix::io::Errno::INPROGRESS) => {
            stream.writable().await.expect("connected");
            stream.write_all(REQUEST).await.expect("written");
        }
        Err(error) => panic!("{error}"),
    }
    stream
}

/// Request and answer between a client of the kernel's and the stack. Returns the state in which
/// the stack's application had read the request.
async fn ask_stack(listener: &ackline_runtime::TcpListener, to: SocketAddr) -> State {
    let server = async {
        let (mut stream, _) = listener.accept().await.expect("accepted");
        let mut request = vec![0; REQUEST.len()];
        stream.read_exact(&mut request).await.expect("the request");
        assert_eq!(request, REQUEST);
        let info = stream.info().expect("it lives");
        assert_eq!(info.syn_data, info.state == State::SynReceived);
        stream.write_all(ANSWER).await.expect("written");
        stream.shutdown().await.expect("closed");
        assert_eq!(stream.read(&mut request).await.expect("the end"), 0);
        info.state
    };
    let client = async {
        let mut stream = kernel_connects(to).await;
        let mut answer = vec![];
        stream.read_to_end(&mut answer).await.expect("the answer");
        assert_eq!(answer, ANSWER);
    };
    tokio::join!(server, client).0
}

/// Request and answer between the stack and a server of the kernel's. Returns whether the kernel
/// took the request with the SYN.
async fn ask_kernel(world: &World, listener: &net::TcpListener) -> bool {
    let mut config = (**world.stack.connections()).clone();
    config.fast_open = FastOpen::Client;
    let to = listener.local_addr().expect("bound");
    let server = async {
        let (mut stream, _) = listener.accept().await.expect("accepted");
        let mut request = vec![0; REQUEST.len()];
        stream.read_exact(&mut request).await.expect("the request");
        assert_eq!(request, REQUEST);
        let info = KernelTcpInfo::of(&stream).expect("a TCP socket");
        stream.write_all(ANSWER).await.expect("written");
        stream.shutdown().await.expect("closed");
        assert_eq!(stream.read(&mut request).await.expect("the end"), 0);
        let fast = info.options & SYN_DATA > 0;
        assert_eq!(fast, info.state == Some(State::SynReceived));
        fast
    };
    let client = async {
        let connect = world.stack.connect_to_with_data(to, Arc::new(config), REQUEST);
        let mut stream = connect.await.expect("connected");
        let fast = stream.info().expect("it lives").syn_data;
        let mut answer = vec![];
        stream.read_to_end(&mut answer).await.expect("the answer");
        assert_eq!(answer, ANSWER);
        fast
    };
    let (server, client) = tokio::join!(server, client);
    assert_eq!(server, client);
    server
}

against_kernel! {
    fn the_kernels_syn_brings_the_request(world) from fast().connections(config(FastOpen::Server)); {
        let listener = world.listen(7);
        for ip in [Ip::V4, Ip::V6] {
            let to = SocketAddr::new(ip.stack(), 7);
            assert_eq!(ask_stack(&listener, to).await, State::Established, "it has to ask for a cookie");
            assert_eq!(ask_stack(&listener, to).await, State::SynReceived);
            assert_eq!(ask_stack(&listener, to).await, State::SynReceived);
        }
        let stats = world.stack.stats();
        let counters = &stats.counters;
        assert_eq!((counters.tcp_fast_open_cookie_reqd, counters.tcp_fast_open_passive), (2, 4));
        assert_eq!((counters.tcp_fast_open_passive_fail, stats.fast_open_pending), (0, 0));
        assert_eq!((kernel_counter("TCPFastOpenActive"), kernel_counter("TCPFastOpenActiveFail")), (4, 0));
        // The cookie is not valid any more: the request is sent again, and there is a new cookie.
        world.stack.set_fast_open_keys([1; 16], None);
        let to = SocketAddr::new(Ip::V4.stack(), 7);
        assert_eq!(ask_stack(&listener, to).await, State::Established);
        assert_eq!(ask_stack(&listener, to).await, State::SynReceived);
        assert_eq!(kernel_counter("TCPFastOpenActiveFail"), 1);
    }

    fn the_kernel_takes_the_request_with_the_syn(world) from fast(); {
        for ip in [Ip::V4, Ip::V6] {
            let listener = net::TcpListener::bind((ip.kernel(), 7)).await.expect("bound");
            assert!(!ask_kernel(&world, &listener).await, "it has to ask for a cookie");
            assert!(ask_kernel(&world, &listener).await);
            assert!(ask_kernel(&world, &listener).await);
        }
        let counters = world.stack.counters();
        assert_eq!((counters.tcp_fast_open_active, counters.tcp_fast_open_active_fail), (4, 0));
        assert_eq!((kernel_counter("TCPFastOpenPassive"), kernel_counter("TCPFastOpenCookieReqd")), (4, 2));
        assert_eq!(counters.tcp_retrans_segs, 0);
        // A server that has changed its mind: the request follows when the handshake is complete.
        std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", "0").expect("set");
        let listener = net::TcpListener::bind((Ip::V4.kernel(), 8)).await.expect("bound");
        assert!(!ask_kernel(&world, &listener).await);
        assert_eq!(world.stack.counters().tcp_fast_open_active_fail, 1);
    }
}
