//! The kernel behind a TAP device, from which a thread carries frames to the socket, as a virtual
//! machine's network does.

use super::{PORT, config, exchange, soon, stack, v4, v6};
use ackline_runtime::Error;
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::testing::isolated;
use ackline_tcp_core::ListenOn;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use tokio::net;
use tun_tap::{Iface, Mode};

/// Carries frames until the socket's other side is gone.
fn carry(tap: &Iface, mut socket: UnixStream) {
    let mut buffer = vec![0; 1 << 17];
    let mut unread = Vec::new();
    loop {
        loop {
            match tap.recv(&mut buffer) {
                Ok(length) => {
                    let frame = [&(length as u32).to_be_bytes()[..], &buffer[..length]].concat();
                    if socket.write_all(&frame).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("read the TAP device: {error}"),
            }
        }
        let moment = Timespec { tv_sec: 0, tv_nsec: 500_000 };
        if poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&moment)).expect("a socket") == 0 {
            continue;
        }
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(length) => unread.extend_from_slice(&buffer[..length]),
        }
        while let Some((prefix, rest)) = unread.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*prefix) as usize;
            let Some(frame) = rest.get(..length) else { break };
            tap.send(frame).expect("the interface is up");
            unread.drain(..4 + length);
        }
    }
}

#[test]
fn the_kernel_talks_over_a_stream() {
    isolated("kernel::the_kernel_talks_over_a_stream", || {
        let tap = Iface::without_packet_info("frames0", Mode::Tap).map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => Error::NotAdmin { action: "make a TAP device" },
            ErrorKind::NotFound => Error::TunMissing,
            _ => Error::System { action: "make a TAP device", source },
        })?;
        tap.set_non_blocking().expect("set");
        let mut netlink = Netlink::open()?;
        let index = netlink.interface("frames0")?.index;
        for own in [format!("{}/24", v4(1)), format!("{}/64", v6(1))] {
            netlink.add_address(index, InterfaceAddress::network(own.parse().expect("a network")))?;
        }
        netlink.set_up(index)?;
        for own in [v4(1), v6(1)] {
            netlink.await_address(own)?;
        }
        let (near, far) = UnixStream::pair().expect("a pair");
        std::thread::scope(|scope| {
            scope.spawn(|| carry(&tap, far));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let stack = stack(near, 2, &config(2));
                let listener = stack.listen(ListenOn::Port(PORT)).expect("free");
                for (own, others) in [(v4(1), v4(2)), (v6(1), v6(2))] {
                    let kernel = net::TcpListener::bind((own, 0)).await.expect("free");
                    let to = kernel.local_addr().expect("bound");
                    let (near, far) = soon(async { tokio::join!(stack.connect(to), kernel.accept()) }).await;
                    let ends = (near.expect("connected"), far.expect("accepted").0);
                    soon(exchange(ends.0, ends.1, 1_000_000)).await;
                    let (near, far) = soon(async {
                        tokio::join!(net::TcpStream::connect((others, PORT)), listener.accept())
                    })
                    .await;
                    let ends = (near.expect("connected"), far.expect("accepted").0);
                    soon(exchange(ends.0, ends.1, 1_000_000)).await;
                }
                let stats = stack.stats();
                assert_eq!((stats.device.rx_malformed, stats.device.tx_errors), (0, 0));
                assert!(stats.device.neighbours.resolved > 0, "the kernel has said who it is");
            });
        });
        Ok(())
    });
}
