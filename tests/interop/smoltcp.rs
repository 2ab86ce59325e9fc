//! smoltcp at the other end of a device in memory.

use super::support::stream::{self, bytes, read_all, write_all};
use super::support::watchdog::Watchdog;
use super::support::{KERNEL4, STACK4, seed};
use ackline::Registry;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::impair::{ImpairConfig, Impaired, Impairment};
use ackline_runtime::device::{Device, OutgoingPacket};
use ackline_runtime::{Stack, TcpStream, timer};
use ackline_tcp_core::{Duration, ListenOn};
use smoltcp::iface::{Config, Context, Interface, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::future::poll_fn;
use std::net::IpAddr;

const MIB: u64 = 1 << 20;
/// The other end's address, as the kernel's in other tests.
const SMOLTCP: IpAddr = KERNEL4;
const PORT: u16 = 7;

/// Who opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opens {
    Smoltcp,
    Stack,
}

/// One socket of smoltcp that sends a stream, and reads one to its end; it closes its side when all
/// is sent.
struct Peer<D> {
    port: Port<D>,
    sends: u64,
    receives: u64,
    seed: u64,
}

impl<D: Device> Peer<D> {
    async fn run(self, open: impl FnOnce(&mut Socket<'_>, &mut Context)) {
        let Self { mut port, sends, receives, seed } = self;
        let began = timer::now();
        let now = || smoltcp::time::Instant::from_micros(timer::now().since(began).as_micros() as i64);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut port, now());
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(IpAddress::from(SMOLTCP), 24)).expect("room for an address");
        });
        let buffer = || SocketBuffer::new(vec![0; 300_000]);
        let mut socket = Socket::new(buffer(), buffer());
        open(&mut socket, interface.context());
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        let (mut sent, mut received) = (0, 0);
        loop {
            interface.poll(now(), &mut port, &mut sockets);
            let socket = sockets.get_mut::<Socket<'_>>(handle);
            while socket.can_send() && sent < sends {
                let left = usize::try_from(sends - sent).expect("fits");
                sent += socket.send_slice(bytes(2, sent, left)).expect("open") as u64;
                if sent == sends {
                    socket.close();
                }
            }
            while socket.can_recv() {
                let got = socket.recv(|data| {
                    stream::check(&data[..data.len().min(65_536)], 1, received);
                    (data.len().min(65_536), data.len().min(65_536))
                });
                received += got.expect("open") as u64;
            }
            interface.poll(now(), &mut port, &mut sockets);
            let socket = sockets.get_mut::<Socket<'_>>(handle);
            if sent == sends && received == receives && !socket.may_recv() && !socket.is_active() {
                return;
            }
            let longest = std::time::Duration::from_millis(100);
            let wait = interface.poll_delay(now(), &sockets).map_or(longest, Into::into).min(longest);
            let _ = tokio::time::timeout(wait, poll_fn(|cx| port.0.poll_readable(cx))).await;
        }
    }
}

/// One of our devices as smoltcp sees it.
struct Port<D>(D, Vec<u8>);

impl<D: Device> phy::Device for Port<D> {
    type RxToken<'a>
        = RxToken<'a>
    where
        D: 'a;
    type TxToken<'a>
        = TxToken<'a, D>
    where
        D: 'a;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(RxToken<'_>, TxToken<'_, D>)> {
        let packet = self.0.try_recv().ok()?;
        self.1.clear();
        self.1.extend_from_slice(packet.head);
        Some((RxToken(&self.1), TxToken(&mut self.0)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<TxToken<'_, D>> {
        Some(TxToken(&mut self.0))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.0.caps().mtu as usize;
        capabilities
    }
}

struct RxToken<'a>(&'a [u8]);

impl phy::RxToken for RxToken<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

struct TxToken<'a, D>(&'a mut D);

impl<D: Device> phy::TxToken for TxToken<'_, D> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        // A full device loses the packet; smoltcp sends it again.
        let _ = self.0.try_send(&OutgoingPacket::whole(&packet));
        result
    }
}

/// `len` bytes each way at once between the stack and smoltcp, over a path with these impairments.
fn exchange(name: &str, opens: Opens, len: u64, impairment: Impairment) {
    let seed = seed(0x530);
    let limit = std::time::Duration::from_secs(120);
    let _watchdog = Watchdog::start(name, limit + limit / 4);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let work = async {
        let (near, far) = Channel::pair(ChannelConfig::default().plain());
        let near = Impaired::new(near, ImpairConfig::both(impairment, seed));
        let stack = Stack::builder(near)
            .address(STACK4)
            .connections(Registry::default().conn_config())
            .spawn()
            .expect("a stack");
        let listener = stack.listen(ListenOn::Port(PORT)).expect("listens");
        let peer = Peer { port: Port(far, Vec::new()), sends: len, receives: len, seed };
        let peer = peer.run(|socket, cx| match opens {
            Opens::Smoltcp => socket.connect(cx, (IpAddress::from(STACK4), PORT), 50_000).expect("connects"),
            Opens::Stack => socket.listen(PORT).expect("listens"),
        });
        let application = async {
            let mut stream = match opens {
                Opens::Smoltcp => listener.accept().await.expect("accepted").0,
                Opens::Stack => stack.connect((SMOLTCP, PORT)).await.expect("connected"),
            };
            exchange_on(&mut stream, len).await;
            stream.flushed().await.expect("acknowledged");
        };
        tokio::join!(peer, application);
        assert_eq!(stack.counters().tcp_estab_resets, 0);
    };
    runtime.block_on(async {
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| panic!("no end in {limit:?}"));
    });
}

async fn exchange_on(stream: &mut TcpStream, len: u64) {
    let (mut reads, mut writes) = stream.split();
    tokio::join!(write_all(&mut writes, 1, len), read_all(&mut reads, 2, len));
}

#[test]
fn smoltcp_opens() {
    exchange("smoltcp::smoltcp_opens", Opens::Smoltcp, 8 * MIB, Impairment::default());
}

#[test]
fn stack_opens() {
    exchange("smoltcp::stack_opens", Opens::Stack, 8 * MIB, Impairment::default());
}

#[test]
#[ignore = "slow"]
fn over_a_bad_path() {
    let impairment = Impairment {
        loss: 1.0,
        duplicate: 2.0,
        reorder: 2.0,
        reorder_by: Duration::from_millis(1),
        corrupt: 1.0,
        delay: Duration::from_micros(200),
        jitter: Duration::ZERO,
        ..Impairment::default()
    };
    exchange("smoltcp::over_a_bad_path", Opens::Stack, MIB, impairment);
    exchange("smoltcp::over_a_bad_path", Opens::Smoltcp, MIB, impairment);
}
