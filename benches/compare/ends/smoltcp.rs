//! smoltcp on the same devices, as single packets: it has no segmentation offload.

use super::{CHUNK, Meter, runtime};
use crate::case::Act;
use crate::net::{HERE, PEER, PORT, PREFIX};
use ackline_runtime::device::{Device, OutgoingPacket};
use ackline_runtime::timer;
use ackline_tcp_core::Instant;
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::future::poll_fn;
use std::io;
use std::time::Duration;

const MTU: usize = 1500;
/// Of a socket's buffers if one connection sends: more makes it no faster.
const BUFFER: usize = 4 << 20;
/// If one receives: fewer packets than wait in a TUN device (500) before it drops one. It answers
/// no loss with selective acknowledgments, and is slower with larger buffers.
const RECEIVE_BUFFER: usize = 512 << 10;
/// If there are many: what passes through is still several megabytes.
const BUFFER_OF_MANY: usize = 256 << 10;
/// Of connections that carry one byte.
const SMALL_BUFFER: usize = 4 << 10;
const FIRST_PORT: u16 = 1024;

/// The measured end.
pub(crate) fn connect(device: Box<dyn Device>, act: Act, meter: &Meter) -> io::Result<()> {
    let (sockets, buffer) = match act {
        Act::Send { flows: 1 } => (1, BUFFER),
        Act::Receive { flows: 1 } => (1, RECEIVE_BUFFER),
        Act::Send { flows } | Act::Receive { flows } => (flows, BUFFER_OF_MANY),
        Act::RoundTrip { .. } => (1, SMALL_BUFFER),
        Act::Open { at_once } => (at_once, SMALL_BUFFER),
    };
    runtime()?.block_on(Host::new(device, sockets, buffer).run(act, meter))
}

struct Host {
    port: Port,
    interface: Interface,
    sockets: SocketSet<'static>,
    handles: Vec<SocketHandle>,
    /// Of each socket: the byte of its connection was written.
    written: Vec<bool>,
    next_port: u16,
    began: Instant,
    /// When the byte of a round trip was sent.
    sent: Option<Instant>,
}

impl Host {
    fn new(device: Box<dyn Device>, count: usize, buffer: usize) -> Self {
        let began = timer::now();
        let mut port = Port { device, packet: vec![0; MTU] };
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut port, since(began));
        interface.update_ip_addrs(|addresses| {
            // The list is empty and has room for two.
            let _ = addresses.push(IpCidr::new(IpAddress::from(HERE), PREFIX));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let buffers = || SocketBuffer::new(vec![0; buffer]);
        let handles = (0..count).map(|_| sockets.add(Socket::new(buffers(), buffers()))).collect();
        Self {
            port,
            interface,
            sockets,
            handles,
            written: vec![false; count],
            next_port: FIRST_PORT,
            began,
            sent: None,
        }
    }

    async fn run(mut self, act: Act, meter: &Meter) -> io::Result<()> {
        for at in 0..self.handles.len() {
            self.open(at)?;
            self.sockets
                .get_mut::<Socket<'_>>(self.handles[at])
                .set_nagle_enabled(!matches!(act, Act::RoundTrip { .. } | Act::Open { .. }));
        }
        loop {
            let now = since(self.began);
            self.interface.poll(now, &mut self.port, &mut self.sockets);
            for at in 0..self.handles.len() {
                self.work(at, act, meter)?;
            }
            // Once more, for what the sockets have to say.
            let polled = self.interface.poll(since(self.began), &mut self.port, &mut self.sockets);
            if polled == PollResult::SocketStateChanged {
                // Packets came meanwhile; the application has to look first.
                continue;
            }
            let longest = Duration::from_secs(1);
            let wait = self.interface.poll_delay(since(self.began), &self.sockets);
            let wait = wait.map_or(longest, Duration::from).min(longest);
            if !wait.is_zero() {
                // A timeout is as good as a packet: smoltcp looks at its timers.
                let _ = tokio::time::timeout(wait, poll_fn(|cx| self.port.device.poll_readable(cx))).await;
            }
        }
    }

    fn open(&mut self, at: usize) -> io::Result<()> {
        let near = self.next_port;
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        self.written[at] = false;
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handles[at]);
        socket
            .connect(self.interface.context(), (IpAddress::from(PEER), PORT), near)
            .map_err(|error| io::Error::other(format!("smoltcp refused to connect: {error}")))
    }

    /// What the application does with a socket whenever it looks.
    fn work(&mut self, at: usize, act: Act, meter: &Meter) -> io::Result<()> {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handles[at]);
        match act {
            Act::Send { .. } => {
                while let Ok(1..) = socket.send(|room| {
                    let length = room.len().min(CHUNK);
                    room[..length].fill(7);
                    (length, length)
                }) {}
            }
            Act::Receive { .. } => {
                while let Ok(read @ 1..) = socket.recv(|data| (data.len(), data.len())) {
                    meter.add(read as u64);
                }
            }
            Act::RoundTrip { .. } => {
                if socket.can_recv() {
                    let _ = socket.recv(|data| (data.len(), ()));
                    if let Some(sent) = self.sent.take() {
                        meter.round_trip(timer::now().since(sent));
                    }
                }
                if self.sent.is_none() && socket.can_send() {
                    self.sent = Some(timer::now());
                    let _ = socket.send_slice(&[7]);
                }
            }
            Act::Open { .. } => match socket.state() {
                State::Established if !self.written[at] => {
                    self.written[at] = socket.send_slice(&[7]).is_ok();
                }
                State::CloseWait => {
                    socket.close();
                    meter.add(1);
                }
                State::Closed => self.open(at)?,
                _ => {}
            },
        }
        Ok(())
    }
}

fn since(began: Instant) -> smoltcp::time::Instant {
    smoltcp::time::Instant::from_micros(timer::now().since(began).as_micros() as i64)
}

/// A device as smoltcp sees it.
struct Port {
    device: Box<dyn Device>,
    packet: Vec<u8>,
}

impl phy::Device for Port {
    type RxToken<'a> = RxToken<'a>;
    type TxToken<'a> = TxToken<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(RxToken<'_>, TxToken<'_>)> {
        let packet = self.device.try_recv().ok()?;
        self.packet.clear();
        self.packet.extend_from_slice(packet.head);
        Some((RxToken(&self.packet), TxToken(&mut *self.device)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<TxToken<'_>> {
        Some(TxToken(&mut *self.device))
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

struct TxToken<'a>(&'a mut dyn Device);

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = [0; MTU];
        let packet = &mut packet[..len];
        let result = f(packet);
        // A full device loses the packet; smoltcp sends it again.
        let _ = self.0.try_send(&OutgoingPacket::whole(packet));
        result
    }
}
