//! smoltcp over a TUN device without offload.

use super::{KERNEL, OTHER, Outcome, PORT, Rate, join, kernel_reads, kernel_writes, tun_config};
use ackline_runtime::Device as _;
use ackline_runtime::device::TxChecksum;
use ackline_runtime::device::tun::Tun;
use ackline_runtime::timer;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::time::Duration;

const MTU: usize = 1500;
/// Of each socket buffer: more makes it no faster.
const BUFFER: usize = 4 << 20;

pub(super) fn sends(length: Duration) -> Outcome<Rate> {
    let tun = Tun::create(&tun_config().plain())?;
    let listener = TcpListener::bind((KERNEL, PORT))?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| kernel_reads(&listener, length));
        let stack = runtime()?.block_on(async {
            let data = vec![0; 64 << 10];
            let mut open = false;
            drive(
                tun,
                |socket, cx| socket.connect(cx, (IpAddress::from(KERNEL), PORT), PORT + 1).is_ok(),
                |socket| {
                    while socket.can_send() {
                        open = true;
                        if socket.send_slice(&data).is_err() {
                            break;
                        }
                    }
                    open && !socket.may_recv()
                },
            )
            .await
        });
        let rate = join(reader);
        stack?;
        rate
    })
}

pub(super) fn receives(length: Duration) -> Outcome<Rate> {
    let tun = Tun::create(&tun_config().plain())?;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| kernel_writes((OTHER, PORT).into()));
        let mut start = None;
        let mut rate = Rate { bytes: 0, seconds: 0.0 };
        let stack = runtime()?.block_on(drive(
            tun,
            |socket, _| socket.listen(PORT).is_ok(),
            |socket| {
                while let Ok(read) = socket.recv(|data| (data.len(), data.len())) {
                    if read == 0 {
                        break;
                    }
                    let start = *start.get_or_insert_with(timer::now);
                    rate.bytes += read as u64;
                    rate.seconds = timer::now().since(start).as_secs_f64();
                }
                let enough = rate.seconds >= length.as_secs_f64();
                if enough {
                    socket.abort();
                }
                enough
            },
        ));
        join(writer)?;
        stack?;
        Ok(rate)
    })
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Runs one socket until `work` says that it is done.
async fn drive(
    tun: Tun,
    open: impl FnOnce(&mut Socket<'_>, &mut smoltcp::iface::Context) -> bool,
    mut work: impl FnMut(&mut Socket<'_>) -> bool,
) -> io::Result<()> {
    let mut port = Port { tun, packet: vec![0; MTU] };
    let began = timer::now();
    let now = || smoltcp::time::Instant::from_micros(timer::now().since(began).as_micros() as i64);
    let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut port, now());
    interface.update_ip_addrs(|addresses| {
        // The list is empty and has room for two.
        let _ = addresses.push(IpCidr::new(IpAddress::from(OTHER), 24));
    });
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    let mut sockets = SocketSet::new(Vec::new());
    let mut socket = Socket::new(buffer(), buffer());
    if !open(&mut socket, interface.context()) {
        return Err(io::Error::other("smoltcp refused the socket"));
    }
    let handle = sockets.add(socket);
    loop {
        interface.poll(now(), &mut port, &mut sockets);
        let done = work(sockets.get_mut(handle));
        // Once more, for what the socket has to say.
        interface.poll(now(), &mut port, &mut sockets);
        if done {
            return Ok(());
        }
        let longest = Duration::from_secs(1);
        let wait = interface.poll_delay(now(), &sockets).map_or(longest, Duration::from).min(longest);
        if !wait.is_zero() {
            // A timeout is as good as a packet: smoltcp looks at its timers.
            let _ = tokio::time::timeout(wait, poll_fn(|cx| port.tun.poll_readable(cx))).await;
        }
    }
}

/// A TUN device as smoltcp sees it.
struct Port {
    tun: Tun,
    packet: Vec<u8>,
}

impl phy::Device for Port {
    type RxToken<'a> = RxToken<'a>;
    type TxToken<'a> = TxToken<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(RxToken<'_>, TxToken<'_>)> {
        let packet = self.tun.try_recv().ok()?;
        self.packet.clear();
        self.packet.extend_from_slice(packet.head);
        Some((RxToken(&self.packet), TxToken(&mut self.tun)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<TxToken<'_>> {
        Some(TxToken(&mut self.tun))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

struct RxToken<'a>(&'a [u8]);

impl phy::RxToken for RxToken<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

struct TxToken<'a>(&'a mut Tun);

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = [0; MTU];
        let packet = &mut packet[..len];
        let result = f(packet);
        // A full device loses the packet; smoltcp sends it again.
        let _ = self.0.try_send(packet, [&[], &[]], None, TxChecksum::Complete);
        result
    }
}
