//! TUN devices against the kernel, each test in a network namespace of its own.

use ackline_runtime::Error;
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::device::tun_tap::TunTap;
use ackline_runtime::device::{Device, OutgoingPacket, RxChecksum, TxChecksum, inherited};
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use ackline_runtime::testing::{isolated, skip};
use std::future::poll_fn;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::num::NonZeroU16;
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::time::Duration;
use tun_tap::{Iface, Mode};

const KERNEL4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const STACK4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const KERNEL6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1));
const STACK6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));

fn config() -> TunConfig {
    TunConfig::new()
        .name("ack0")
        .address(InterfaceAddress::network("10.77.0.1/24".parse().expect("a network")))
        .address(InterfaceAddress::network("fd77::1/64".parse().expect("a network")))
}

/// Runs `work` on a tokio runtime of this thread, for at most ten seconds.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(10), work).await.expect("nothing came within ten seconds")
    })
}

/// The next packet for which `pick` gives something.
async fn receive<D: Device, T>(device: &mut D, mut pick: impl FnMut(&[u8], &Meta) -> Option<T>) -> T {
    loop {
        match device.try_recv() {
            Ok(packet) => {
                let meta = Meta { segment_size: packet.segment_size, checksum: packet.checksum };
                if let Some(found) = pick(packet.head, &meta) {
                    return found;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll_fn(|cx| device.poll_readable(cx)).await.expect("the device lives");
            }
            Err(error) => panic!("receive: {error}"),
        }
    }
}

struct Meta {
    segment_size: Option<NonZeroU16>,
    checksum: RxChecksum,
}

/// RFC 1071.
fn checksum(parts: &[&[u8]]) -> u16 {
    let bytes: Vec<u8> = parts.concat();
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Answers an ICMP echo request by turning it around.
fn echo_reply_v4(packet: &[u8]) -> Option<Vec<u8>> {
    if packet[0] != 0x45 || packet[9] != 1 || packet[20] != 8 {
        return None;
    }
    let mut reply = packet.to_vec();
    reply[12..16].copy_from_slice(&packet[16..20]);
    reply[16..20].copy_from_slice(&packet[12..16]);
    reply[20] = 0;
    reply[22..24].fill(0);
    let sum = checksum(&[&reply[20..]]);
    reply[22..24].copy_from_slice(&sum.to_be_bytes());
    Some(reply)
}

/// Pings from the kernel's side through an ICMP "ping" socket; true if an answer came within two
/// seconds.
fn ping(to: Ipv4Addr) -> io::Result<bool> {
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, sockopt};
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(2)))?;
    let mut request = [8, 0, 0, 0, 0x12, 0x34, 0, 1, 1, 2, 3, 4];
    let sum = checksum(&[&request]);
    request[2..4].copy_from_slice(&sum.to_be_bytes());
    rustix::net::sendto(&socket, &request, SendFlags::empty(), &SocketAddr::from((to, 0)))?;
    let mut buffer = [0; 128];
    loop {
        match rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty()) {
            // Behind the IP header: an echo reply with our identifier and data.
            Ok((n, _)) if buffer[20] == 0 && buffer[24..n] == request[4..] => return Ok(true),
            Ok(_) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(false),
            Err(other) => return Err(other.into()),
        }
    }
}

fn answers_a_ping<D: Device>(device: &mut D) {
    let namespace = Namespace::of_thread().expect("a namespace");
    std::thread::scope(|scope| {
        let kernel = scope.spawn(|| namespace.run(|| ping(Ipv4Addr::new(10, 77, 0, 2))));
        block_on(async {
            let reply = receive(device, |packet, _| echo_reply_v4(packet)).await;
            device
                .try_send(&OutgoingPacket::new(&reply[..20], [&reply[20..24], &reply[24..]]))
                .expect("sent");
        });
        let answered = kernel.join().expect("no panic").expect("in the namespace").expect("a raw socket");
        assert!(answered, "the kernel got no answer");
    });
    assert_eq!(device.stats().tx_packets, 1);
    assert!(device.stats().rx_packets >= 1);
}

#[test]
fn a_queue_holds_as_many_packets_as_it_is_long() {
    isolated("a_queue_holds_as_many_packets_as_it_is_long", || {
        let mut tun = Tun::create(&config().queue_length(3)).expect("a device");
        block_on(async {
            let socket = std::net::UdpSocket::bind((KERNEL4, 0)).expect("a socket");
            for number in 0..10 {
                socket.send_to(&[number; 100], (STACK4, 9)).expect("the device is up");
            }
            let mut received = Vec::new();
            while received.last() != Some(&100) {
                // The last one is sent when there is room again.
                let packet = receive(&mut tun, |packet, _| (packet[9] == 17).then(|| packet[28])).await;
                received.push(packet);
                if received.len() == 3 {
                    socket.send_to(&[100; 100], (STACK4, 9)).expect("the device is up");
                }
            }
            assert_eq!(received, [0, 1, 2, 100]);
        });
        Ok(())
    });
}

#[test]
fn a_device_that_was_made_is_up() {
    isolated("a_device_that_was_made_is_up", || {
        let tun = Tun::create(&config())?;
        assert!(tun.interface().up && !tun.stats().down);
        Ok(())
    });
}

/// Down, up and away, with nobody but the kernel to tell of it.
fn follows_its_interface<D: Device>(mut device: D, name: &str) {
    let mut netlink = Netlink::open().expect("a socket");
    let index = netlink.interface(name).expect("there").index;
    // IPv4 with a header only, to nobody.
    let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1];
    let send = |device: &mut D| device.try_send(&OutgoingPacket::whole(&packet));
    block_on(async {
        send(&mut device).expect("sent");
        netlink.set_down(index).expect("down");
        assert_eq!(send(&mut device).expect_err("down").kind(), io::ErrorKind::NetworkDown);
        assert!(device.stats().down);
        let waits = tokio::time::timeout(Duration::from_millis(50), poll_fn(|cx| device.poll_writable(cx)));
        assert!(waits.await.is_err(), "no room where nothing can be sent");
        netlink.set_up(index).expect("up");
        poll_fn(|cx| device.poll_writable(cx)).await.expect("up again");
        send(&mut device).expect("sent again");
        let stats = device.stats();
        assert_eq!((stats.tx_packets, stats.tx_down, stats.tx_errors, stats.down), (2, 1, 0, false));
        netlink.remove(index).expect("removed");
        let error = loop {
            match device.try_recv() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll_fn(|cx| device.poll_readable(cx)).await.expect("reading tells");
                }
                Err(error) => break error,
                Ok(_) => {}
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::NetworkDown);
        assert_eq!(error.to_string(), format!("the interface {name} was removed"));
    });
}

#[test]
fn devices_follow_their_interface() {
    isolated("devices_follow_their_interface", || {
        follows_its_interface(Tun::create(&config().name("ack1"))?, "ack1");
        follows_its_interface(Tun::create(&config().plain().name("ack2"))?, "ack2");
        follows_its_interface(TunTap::create(&config().name("ack3"))?, "ack3");
        Ok(())
    });
}

/// The same interface by its descriptor alone, as another process would have it.
fn handed_over(config: &TunConfig) -> Tun {
    let descriptor = Tun::create(config).map(|tun| tun.try_clone_fd().expect("a duplicate"));
    Tun::from_fd(descriptor.expect("a device"), config.mtu.unwrap_or(1_500)).expect("a TUN descriptor")
}

#[test]
fn a_descriptor_alone_is_a_device() {
    isolated("a_descriptor_alone_is_a_device", || {
        drop(Tun::create(&config())?);
        for (name, config) in [("ack4", config()), ("ack5", config().plain().mtu(1_400))] {
            let mut device = handed_over(&config.name(name));
            assert_eq!((device.interface().name.as_str(), device.caps().mtu), (name, device.interface().mtu));
            answers_a_ping(&mut device);
            drop(device);
            assert!(Netlink::open()?.interface(name).is_err(), "it goes with its last descriptor");
        }
        follows_its_interface(handed_over(&config().name("ack6")), "ack6");
        Ok(())
    });
}

#[test]
fn packets_with_information_in_front_are_refused_with_what_would_be_right() {
    isolated("packets_with_information_in_front_are_refused_with_what_would_be_right", || {
        drop(Tun::create(&config())?);
        let made = Iface::new("pi0", Mode::Tun).expect("a device");
        let mut netlink = Netlink::open()?;
        let index = netlink.interface("pi0")?.index;
        netlink.add_address(index, InterfaceAddress::network("10.77.0.1/24".parse().expect("a network")))?;
        netlink.set_up(index)?;
        let mut device = Tun::from_fd(inherited(made.as_raw_fd())?, 1_500)?;
        let socket = std::net::UdpSocket::bind((KERNEL4, 0)).expect("a socket");
        socket.send_to(b"a datagram", (STACK4, 9)).expect("the device is up");
        let error = device.try_recv().map(drop).expect_err("not a packet");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().starts_with("packets of pi0 have four bytes in front"), "{error}");
        Ok(())
    });
}

#[test]
fn descriptors_of_other_kinds_are_refused_with_what_would_be_right() {
    isolated("descriptors_of_other_kinds_are_refused_with_what_would_be_right", || {
        drop(Tun::create(&config())?);
        let tap = Iface::without_packet_info("tap0", Mode::Tap).expect("a device");
        let removed = handed_over(&config().name("ack7")).try_clone_fd().expect("a duplicate");
        let index = Netlink::open()?.interface("ack7")?.index;
        Netlink::open()?.remove(index)?;
        let file = std::fs::File::open("/dev/null").expect("it is there");
        for (descriptor, expected) in [
            (inherited(tap.as_raw_fd())?, "its interface tap0 is a TAP"),
            (removed, "it belongs to no interface, or to none any more"),
            (file.into(), "it is none of /dev/net/tun"),
        ] {
            let error = Tun::from_fd(descriptor, 1_500).map(drop).expect_err("refused").to_string();
            assert!(error.starts_with(&format!("TUN descriptor: {expected}")), "{error}");
        }
        let tun = inherited(tap.as_raw_fd())?;
        assert!(
            Tun::from_fd(tun, 67).map(drop).expect_err("refused").to_string().starts_with("MTU: 67 bytes")
        );
        for number in [-1, 1 << 20] {
            let error = inherited(number).expect_err("not open").to_string();
            assert!(error.starts_with(&format!("descriptor: {number} cannot be taken over")), "{error}");
        }
        Ok(())
    });
}

#[test]
fn ping_is_answered_with_offload() {
    isolated("ping_is_answered_with_offload", || {
        answers_a_ping(&mut Tun::create(&config())?);
        Ok(())
    });
}

#[test]
fn ping_is_answered_without_offload() {
    isolated("ping_is_answered_without_offload", || {
        answers_a_ping(&mut Tun::create(&config().plain())?);
        Ok(())
    });
}

#[test]
fn ping_is_answered_through_tun_tap() {
    isolated("ping_is_answered_through_tun_tap", || {
        answers_a_ping(&mut TunTap::create(&config())?);
        Ok(())
    });
}

/// A hand-made passive opener: SYN-ACK for a SYN that comes in, then ACK for data.
struct TinyTcp {
    v6: bool,
    ack: u32,
}

impl TinyTcp {
    fn tcp_at(&self) -> usize {
        if self.v6 { 40 } else { 20 }
    }

    /// Headers of an answer to `packet`, with a pseudo-header sum in the checksum field.
    fn answer(&self, packet: &[u8], seq: u32, flags: u8, options: &[u8]) -> Vec<u8> {
        let at = self.tcp_at();
        let mut out = packet[..at + 20].to_vec();
        out.extend_from_slice(options);
        let tcp_len = (out.len() - at) as u16;
        let (src, dst, addr_len) = if self.v6 { (8, 24, 16) } else { (12, 16, 4) };
        out[src..src + addr_len].copy_from_slice(&packet[dst..dst + addr_len]);
        out[dst..dst + addr_len].copy_from_slice(&packet[src..src + addr_len]);
        if self.v6 {
            out[4..6].copy_from_slice(&tcp_len.to_be_bytes());
        } else {
            let total = out.len() as u16;
            out[2..4].copy_from_slice(&total.to_be_bytes());
            out[10..12].fill(0);
            let sum = checksum(&[&out[..20]]);
            out[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        out[at..at + 2].copy_from_slice(&packet[at + 2..at + 4]);
        out[at + 2..at + 4].copy_from_slice(&packet[at..at + 2]);
        out[at + 4..at + 8].copy_from_slice(&seq.to_be_bytes());
        out[at + 8..at + 12].copy_from_slice(&self.ack.to_be_bytes());
        out[at + 12] = ((tcp_len / 4) as u8) << 4;
        out[at + 13] = flags;
        out[at + 14..at + 16].copy_from_slice(&u16::MAX.to_be_bytes());
        out[at + 16..].iter_mut().take(4).for_each(|b| *b = 0);
        let pseudo = [&out[src..src + 2 * addr_len], &[0, 6], &tcp_len.to_be_bytes()].concat();
        let sum = !checksum(&[&pseudo]);
        out[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
        out
    }

    fn send<D: Device>(&self, device: &mut D, header: &[u8]) {
        let start = self.tcp_at() as u16;
        device
            .try_send(&OutgoingPacket::whole(header).with_checksum(TxChecksum::Partial { start, offset: 16 }))
            .expect("sent");
    }
}

/// A kernel socket sends 256 KiB to a hand-made receiver; returns the largest super-packet that
/// came.
fn largest_from_the_kernel(v6: bool) -> Result<(usize, Option<NonZeroU16>, RxChecksum), Error> {
    let mut device = Tun::create(&config())?;
    let namespace = Namespace::of_thread()?;
    let to = SocketAddr::new(if v6 { STACK6 } else { STACK4 }, 7);
    let largest = std::thread::scope(|scope| {
        let kernel = scope.spawn(|| {
            namespace.run(|| -> io::Result<()> {
                let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(5))?;
                stream.set_write_timeout(Some(Duration::from_secs(5)))?;
                stream.write_all(&vec![7; 256 * 1024])
            })
        });
        let largest = block_on(async {
            let mut tcp = TinyTcp { v6, ack: 0 };
            let at = tcp.tcp_at();
            let syn = receive(&mut device, |packet, meta| {
                let ours = packet[0] >> 4 == if v6 { 6 } else { 4 } && packet.len() >= at + 20;
                let syn = ours && packet[if v6 { 6 } else { 9 }] == 6 && packet[at + 13] & 2 != 0;
                syn.then(|| {
                    assert_eq!(
                        meta.checksum,
                        RxChecksum::Partial,
                        "the kernel leaves its checksum to the device"
                    );
                    packet.to_vec()
                })
            })
            .await;
            let seq = u32::from_be_bytes(syn[at + 4..at + 8].try_into().expect("four bytes"));
            tcp.ack = seq.wrapping_add(1);
            // MSS 1400, and a window scale of 2^7, so that a super-packet fits the window.
            let options = [2, 4, 0x05, 0x78, 1, 3, 3, 7];
            let syn_ack = tcp.answer(&syn, 1000, 0x12, &options);
            tcp.send(&mut device, &syn_ack);

            let mut largest = (0, None, RxChecksum::Verify);
            let mut got = 0;
            while got < 256 * 1024 {
                let (headers, payload, meta) = receive(&mut device, |packet, meta| {
                    let data_at = at + usize::from(packet.get(at + 12)? >> 4) * 4;
                    (packet.len() > data_at).then(|| {
                        let meta = (packet.len(), meta.segment_size, meta.checksum);
                        (packet[..data_at].to_vec(), packet.len() - data_at, meta)
                    })
                })
                .await;
                let seq = u32::from_be_bytes(headers[at + 4..at + 8].try_into().expect("four bytes"));
                if seq != tcp.ack {
                    continue;
                }
                got += payload;
                tcp.ack = tcp.ack.wrapping_add(payload as u32);
                if meta.0 > largest.0 {
                    largest = meta;
                }
                let ack = tcp.answer(&headers, 1001, 0x10, &[]);
                tcp.send(&mut device, &ack);
            }
            largest
        });
        kernel.join().expect("no panic").expect("in the namespace").expect("the kernel's sender");
        largest
    });
    assert_eq!(device.stats().rx_malformed, 0);
    Ok(largest)
}

#[test]
fn the_kernel_hands_over_ipv4_super_packets() {
    isolated("the_kernel_hands_over_ipv4_super_packets", || {
        let (length, segment_size, checksum) = largest_from_the_kernel(false)?;
        assert!(length > 10_000, "the largest packet had {length} bytes");
        assert_eq!(segment_size, NonZeroU16::new(1400));
        assert_eq!(checksum, RxChecksum::Partial);
        Ok(())
    });
}

#[test]
fn the_kernel_hands_over_ipv6_super_packets() {
    isolated("the_kernel_hands_over_ipv6_super_packets", || {
        let (length, segment_size, checksum) = largest_from_the_kernel(true)?;
        assert!(length > 10_000, "the largest packet had {length} bytes");
        assert_eq!(segment_size, NonZeroU16::new(1400));
        assert_eq!(checksum, RxChecksum::Partial);
        Ok(())
    });
}

#[test]
fn the_interface_is_as_configured() {
    isolated("the_interface_is_as_configured", || {
        let config = config().mtu(9000).route("192.0.2.0/24".parse().expect("a network"));
        let device = Tun::create(&config)?;
        assert_eq!(device.interface().name, "ack0");
        assert_eq!(device.interface().mtu, 9000);
        assert!(device.interface().up);
        assert_eq!((device.caps().mtu, device.caps().max_super_packet), (9000, 65_535));
        // A socket can be bound only to an address that the kernel has, and connected only if a
        // route leads.
        for address in [KERNEL4, KERNEL6] {
            let socket =
                std::net::UdpSocket::bind((address, 0)).expect("the address is there, without delay");
            drop(socket);
        }
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
        socket.connect("192.0.2.9:9").expect("the route is there");
        socket.connect("198.51.100.9:9").expect_err("no route leads there");
        Ok(())
    });
}

#[test]
fn a_point_to_point_address_leads_to_its_peer_only() {
    isolated("a_point_to_point_address_leads_to_its_peer_only", || {
        let address = InterfaceAddress::point_to_point(KERNEL4, "172.16.5.9".parse().expect("an address"));
        let _device = Tun::create(&TunConfig::new().address(address))?;
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
        socket.connect("172.16.5.9:9").expect("the peer can be reached");
        assert_eq!(socket.local_addr().expect("bound").ip(), KERNEL4);
        socket.connect("172.16.5.10:9").expect_err("nothing else can");
        Ok(())
    });
}

#[test]
fn the_kernel_keeps_quiet_on_a_fresh_device() {
    isolated("the_kernel_keeps_quiet_on_a_fresh_device", || {
        let mut device = Tun::create(&config())?;
        block_on(async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
        });
        match device.try_recv() {
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            Ok(packet) => panic!("the kernel sent {:02x?}", packet.head),
        }
        Ok(())
    });
}

/// A program that knows nothing of offloads takes the interface after one that had them.
#[test]
fn an_interface_that_stays_forgets_the_offloads_of_the_program_before() {
    let name = "an_interface_that_stays_forgets_the_offloads_of_the_program_before";
    isolated(name, || {
        for line in ["tuntap add dev ack9 mode tun", "address add 10.77.0.1/24 dev ack9", "link set ack9 up"]
        {
            match Command::new("ip").args(line.split(' ')).status() {
                Ok(status) => assert!(status.success(), "ip {line}"),
                Err(why) => {
                    skip(name, &format!("ip: {why}"));
                    return Ok(());
                }
            }
        }
        drop(Tun::open_existing("ack9", true)?);
        let next = Iface::without_packet_info("ack9", Mode::Tun).expect("nobody has it");
        let socket = UdpSocket::bind((KERNEL4, 0)).expect("an address of the interface");
        socket.send_to(b"whole", (STACK4, 9)).expect("sent");
        let mut buffer = [0; 2_000];
        let packet = loop {
            let length = next.recv(&mut buffer).expect("the interface is up");
            // The kernel's own IPv6 packets come, too.
            if buffer[0] == 0x45 && buffer[9] == 17 {
                break &buffer[..length];
            }
        };
        // RFC 768: over addresses, protocol, length and datagram the sum is all ones.
        let datagram = &packet[20..];
        let words = packet[12..20].chunks(2).chain(datagram.chunks(2));
        let sum =
            words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum::<u32>();
        let sum = sum + 17 + datagram.len() as u32;
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{packet:02x?}");
        Ok(())
    });
}

#[test]
fn a_name_in_use_is_refused() {
    isolated("a_name_in_use_is_refused", || {
        let _first = Tun::create(&config())?;
        assert!(matches!(Tun::create(&config()), Err(Error::NameInUse { name }) if name == "ack0"));
        assert!(matches!(TunTap::create(&config()), Err(Error::NameInUse { name }) if name == "ack0"));
        assert!(matches!(Tun::open_existing("ack0", true), Err(Error::NameInUse { .. })));
        Ok(())
    });
}

#[test]
fn bad_requests_are_told_apart() {
    isolated("bad_requests_are_told_apart", || {
        drop(Tun::create(&config())?);
        for name in ["far-too-long-name", "a/b"] {
            let error = Tun::create(&TunConfig::new().name(name)).expect_err("no such name can be");
            assert!(matches!(error, Error::BadName { .. }), "{name}: {error}");
        }
        assert!(matches!(Tun::open_existing("nosuch0", true), Err(Error::NoSuchInterface { .. })));
        assert!(matches!(Tun::open_existing("lo", true), Err(Error::NotATun { .. })));
        let mixed = InterfaceAddress { net: KERNEL4.into(), peer: Some(KERNEL6) };
        assert!(matches!(Tun::create(&config().address(mixed)), Err(Error::MixedFamilies { .. })));
        assert!(matches!(Tun::create(&config().mtu(10)), Err(Error::System { action: "set the MTU", .. })));
        Ok(())
    });
}

#[test]
fn several_queues_open_where_allowed() {
    isolated("several_queues_open_where_allowed", || {
        let first = Tun::create(&config().multi_queue())?;
        let second = first.open_queue()?;
        assert_eq!(second.interface().name, first.interface().name);
        drop((first, second));
        let alone = Tun::create(&config())?;
        alone.open_queue().expect_err("one queue only");
        Ok(())
    });
}

#[test]
fn what_the_device_cannot_carry_is_refused() {
    isolated("what_the_device_cannot_carry_is_refused", || {
        let header = [0x45; 40];
        let body = vec![0; 60_000];
        let partial = TxChecksum::Partial { start: 20, offset: 16 };
        let mut plain = Tun::create(&config().plain())?;
        let refused = |device: &mut Tun, size: Option<u16>, len: usize, checksum| {
            let size = size.and_then(NonZeroU16::new);
            let error = device
                .try_send(
                    &OutgoingPacket::new(&header, [&body[..len], &[]])
                        .with_segment_size(size)
                        .with_checksum(checksum),
                )
                .expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        };
        refused(&mut plain, None, 1461, TxChecksum::Complete);
        refused(&mut plain, None, 100, partial);
        refused(&mut plain, Some(1000), 3000, partial);
        assert_eq!(plain.stats().tx_errors, 3);
        drop(plain);
        let mut offload = Tun::create(&config())?;
        refused(&mut offload, None, 1461, TxChecksum::Complete);
        refused(&mut offload, Some(1000), 3000, TxChecksum::Complete);
        assert_eq!(offload.stats().tx_packets, 0);
        Ok(())
    });
}

#[test]
fn a_device_goes_away_when_dropped() {
    isolated("a_device_goes_away_when_dropped", || {
        drop(Tun::create(&config())?);
        let gone = Netlink::open()?.interface("ack0");
        assert!(matches!(gone, Err(Error::NoSuchInterface { .. })), "{gone:?}");
        Ok(())
    });
}

#[test]
fn a_veth_pair_joins_two_namespaces() {
    isolated("a_veth_pair_joins_two_namespaces", || {
        let there =
            std::thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))?;
        Netlink::open()?.add_veth("near0", "far0", &there)?;
        let again = Netlink::open()?.add_veth("near0", "far1", &there);
        assert!(matches!(again, Err(Error::NameInUse { name }) if name == "near0"));
        let set_up = |name: &str, network: &str| -> Result<(), Error> {
            let mut netlink = Netlink::open()?;
            let index = netlink.interface(name)?.index;
            netlink.add_address(index, InterfaceAddress::network(network.parse().expect("a network")))?;
            netlink.set_up(index)
        };
        set_up("near0", "10.77.0.1/24")?;
        there.run(|| set_up("far0", "10.77.0.2/24"))??;
        let listener = std::net::TcpListener::bind((KERNEL4, 7)).expect("bound");
        let to = SocketAddr::new(KERNEL4, 7);
        let client = there.run(|| TcpStream::connect_timeout(&to, Duration::from_secs(5)))?;
        let (_, peer) = listener.accept().expect("accepted");
        assert_eq!(peer, client.expect("connected").local_addr().expect("bound"));
        assert_eq!(peer.ip(), STACK4);
        Ok(())
    });
}
