//! Two smoltcp interfaces, and packet buffers that stay where they are.

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

/// Buffers of a queue, the first `ready` of which hold packets.
#[derive(Default)]
struct FrameQueue {
    packets: Vec<Vec<u8>>,
    head: usize,
    ready: usize,
}

impl FrameQueue {
    fn clear(&mut self) {
        (self.head, self.ready) = (0, 0);
    }
}

/// One end of the link: writes to `tx`, reads from `rx`.
struct End {
    rx: FrameQueue,
    tx: FrameQueue,
    checksums: bool,
    mtu: usize,
}

struct Rx<'a>(&'a [u8]);
struct Tx<'a>(&'a mut FrameQueue);

impl RxToken for Rx<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

impl TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let queue = self.0;
        if queue.ready == queue.packets.len() {
            queue.packets.push(Vec::with_capacity(1_600));
        }
        let buffer = &mut queue.packets[queue.ready];
        buffer.resize(len, 0);
        queue.ready += 1;
        f(buffer)
    }
}

impl Device for End {
    type RxToken<'a> = Rx<'a>;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Rx<'_>, Tx<'_>)> {
        if self.rx.head == self.rx.ready {
            return None;
        }
        self.rx.head += 1;
        Some((Rx(&self.rx.packets[self.rx.head - 1]), Tx(&mut self.tx)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        Some(Tx(&mut self.tx))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        if !self.checksums {
            capabilities.checksum = ChecksumCapabilities::ignored();
        }
        capabilities
    }
}

struct Host {
    end: End,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
}

impl Host {
    fn new(address: IpAddress, checksums: bool, stamps: bool) -> Self {
        // Segments have 1,460 bytes, with timestamps or without.
        let mtu = if stamps { 1_512 } else { 1_500 };
        let mut end = End { rx: FrameQueue::default(), tx: FrameQueue::default(), checksums, mtu };
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut end, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address, 24)).expect("room for one address");
        });
        let buffer = || tcp::SocketBuffer::new(vec![0; 1 << 18]);
        let mut sockets = SocketSet::new(vec![]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        if stamps {
            // A call for each segment, as cheap as one can be.
            socket.set_tsval_generator(Some(|| 7));
        }
        let handle = sockets.add(socket);
        Self { end, interface, sockets, handle }
    }

    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    fn poll(&mut self, now: Instant) {
        self.interface.poll(now, &mut self.end, &mut self.sockets);
    }
}

/// A client that writes and a server that reads.
pub(crate) struct Pair {
    client: Host,
    server: Host,
    now: Instant,
    data: Vec<u8>,
}

impl Pair {
    /// One established connection; every batch carries `batch` bytes.
    pub(crate) fn new(checksums: bool, stamps: bool, batch: usize) -> Self {
        let (a, b) = (IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2));
        let mut client = Host::new(a, checksums, stamps);
        let mut server = Host::new(b, checksums, stamps);
        server.socket().listen(5_001).expect("the socket is closed");
        let Host { interface, sockets, handle, .. } = &mut client;
        let socket = sockets.get_mut::<tcp::Socket<'_>>(*handle);
        socket.connect(interface.context(), (b, 5_001), 40_000).expect("the socket is closed");
        let mut pair = Self {
            client,
            server,
            now: Instant::ZERO,
            data: (0..batch).map(|at| (at % 251) as u8).collect(),
        };
        for _ in 0..10 {
            pair.exchange();
        }
        assert!(pair.client.socket().may_send());
        pair
    }

    fn exchange(&mut self) {
        self.now += smoltcp::time::Duration::from_micros(100);
        self.client.poll(self.now);
        std::mem::swap(&mut self.client.end.tx, &mut self.server.end.rx);
        self.client.end.tx.clear();
        self.server.poll(self.now);
        std::mem::swap(&mut self.server.end.tx, &mut self.client.end.rx);
        self.server.end.tx.clear();
    }

    /// Writes one batch from a slice, sends it, acknowledges it, consumes it in place: the bytes
    /// that arrived.
    pub(crate) fn batch(&mut self) -> usize {
        let Self { client, data, .. } = self;
        client.socket().send_slice(data).expect("it is open");
        self.exchange();
        // What is there may lie in two pieces.
        let mut read = 0;
        while let socket = self.server.socket()
            && socket.can_recv()
        {
            read += socket.recv(|piece| (piece.len(), piece.len())).expect("it is open");
        }
        read
    }

    /// Batches until each one arrives whole.
    pub(crate) fn warm_up(&mut self) {
        for _ in 0..1_000 {
            self.batch();
        }
        assert_eq!(self.batch(), self.data.len(), "a batch must leave in one go");
    }
}
