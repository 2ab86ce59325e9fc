//! smoltcp.

use super::{Act, End, PORT, PREFIX, Role};
use crate::bridge::Wire;
use crate::stream::Received;
use ackline_runtime::device::OutgoingPacket;
use ackline_runtime::timer;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::future::poll_fn;
use std::time::Duration;

/// Of each direction.
const BUFFER: usize = 256 << 10;
/// A client's own port.
const FROM: u16 = 50_000;
/// Longest time between looks at what the application may do.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn start(wire: Wire, act: Act) -> End {
    End::spawn(|say| async move {
        let mut say = Some(say);
        let Act { role, mut bytes, receives, waits, pause, .. } = act;
        let mut port = Port(wire);
        let began = timer::now();
        let now = || Instant::from_micros(timer::now().since(began).as_micros() as i64);
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut port, now());
        interface.update_ip_addrs(|addresses| {
            // The list is empty and has room for two.
            let _ = addresses.push(IpCidr::new(IpAddress::from(role.here()), PREFIX));
        });
        let buffer = || SocketBuffer::new(vec![0; BUFFER]);
        let mut socket = Socket::new(buffer(), buffer());
        // Neither fails for a socket that was just made, with ports that are not zero.
        match role {
            Role::Server => socket.listen(PORT).expect("it is closed"),
            Role::Client => {
                let peer = (IpAddress::from(role.peer()), PORT);
                socket.connect(interface.context(), peer, FROM).expect("it is closed");
            }
        }
        let mut sockets = SocketSet::new(vec![]);
        let handle = sockets.add(socket);
        let mut received = Received::NOTHING;
        let mut unsent = bytes.next_chunk(BUFFER);
        // When it reads again, and whether that was the second pause.
        let (mut reads_at, mut paused_twice, mut established) = (None, false, false);
        loop {
            interface.poll(now(), &mut port, &mut sockets);
            let socket = sockets.get_mut::<Socket<'_>>(handle);
            if socket.may_send() || socket.may_recv() {
                established = true;
                let at = *reads_at.get_or_insert_with(|| now() + pause.into());
                let over = !socket.may_recv() && established;
                while now() >= at && socket.can_recv() {
                    let took = socket.recv(|data| {
                        received.add(data);
                        (data.len(), ())
                    });
                    if took.is_err() {
                        break;
                    }
                    if !paused_twice && received.len >= receives / 2 {
                        paused_twice = true;
                        reads_at = Some(now() + pause.into());
                        break;
                    }
                }
                let may_write = !waits || over;
                while may_write && socket.can_send() && !unsent.is_empty() {
                    let Ok(sent) = socket.send_slice(&unsent) else { break };
                    unsent.drain(..sent);
                    if unsent.is_empty() {
                        unsent = bytes.next_chunk(BUFFER);
                    }
                }
                if may_write && unsent.is_empty() {
                    socket.close();
                }
            }
            let finished = established && !socket.may_recv() && !socket.can_recv() && unsent.is_empty();
            if finished && let Some(say) = say.take() {
                let _ = say.send(Ok(received));
            }
            interface.poll(now(), &mut port, &mut sockets);
            let wait = interface.poll_delay(now(), &sockets).map_or(LOOK, Into::into).min(LOOK);
            // Whichever is first.
            let _ = tokio::time::timeout(wait, poll_fn(|cx| port.0.poll_readable(cx))).await;
        }
    })
}

/// Our device as smoltcp sees it.
struct Port(Wire);

impl phy::Device for Port {
    type RxToken<'a> = RxToken;
    type TxToken<'a> = TxToken<'a>;

    fn receive(&mut self, _: Instant) -> Option<(RxToken, TxToken<'_>)> {
        let packet = self.0.try_recv().ok()?;
        let bytes = [packet.head, packet.more[0], packet.more[1]].concat();
        Some((RxToken(bytes), TxToken(&mut self.0)))
    }

    fn transmit(&mut self, _: Instant) -> Option<TxToken<'_>> {
        Some(TxToken(&mut self.0))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.0.caps().mtu as usize;
        capabilities
    }
}

struct RxToken(Vec<u8>);

impl phy::RxToken for RxToken {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct TxToken<'a>(&'a mut Wire);

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        // A full device loses the packet; smoltcp sends it again.
        let _ = self.0.try_send(&OutgoingPacket::whole(&packet));
        result
    }
}
