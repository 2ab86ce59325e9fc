//! The socket of a published UDP port. Answers leave from the address that the client has sent to
//! (RFC 1122, section 4.1.3.5). For a socket that is bound to all addresses, Linux tells which one
//! that was (`IP_PKTINFO`, ip(7)).

use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::UdpSocket;

/// The address of this machine that a datagram was for, if the socket has several.
pub(super) type Local = Option<IpAddr>;

/// A socket of the kernel.
pub(super) struct Port {
    socket: UdpSocket,
    /// It takes datagrams of all addresses.
    takes_all: bool,
}

impl Port {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::UdpSocket::from(rustix::net::socket_with(
            if address.is_ipv4() {
                rustix::net::AddressFamily::INET
            } else {
                rustix::net::AddressFamily::INET6
            },
            rustix::net::SocketType::DGRAM,
            rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK,
            None,
        )?);
        if address.is_ipv6() {
            rustix::net::sockopt::set_ipv6_v6only(&socket, true)?;
        }
        rustix::net::bind(&socket, &address)?;
        let takes_all = address.ip().is_unspecified();
        if takes_all {
            info::ask(&socket, address.is_ipv4())?;
        }
        Ok(Self { socket: UdpSocket::from_std(socket)?, takes_all })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next datagram: its length, its sender, and the address that it was for.
    pub(super) async fn recv(&self, datagram: &mut [u8]) -> io::Result<(usize, (SocketAddr, Local))> {
        if !self.takes_all {
            let (length, client) = self.socket.recv_from(datagram).await?;
            return Ok((length, (client, None)));
        }
        self.socket.async_io(tokio::io::Interest::READABLE, || info::recv(&self.socket, datagram)).await
    }

    /// Sends an answer from the address that the client has sent to, if the socket takes it now.
    pub(super) fn try_send(&self, datagram: &[u8], client: SocketAddr, from: Local) -> io::Result<()> {
        match from {
            None => self.socket.try_send_to(datagram, client).map(drop),
            Some(from) => self
                .socket
                .try_io(tokio::io::Interest::WRITABLE, || info::send(&self.socket, datagram, client, from)),
        }
    }
}

#[cfg(target_os = "linux")]
mod info {
    use super::Local;
    use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
    use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};
    use nix::sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    };
    use std::io::{self, IoSlice, IoSliceMut};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::os::fd::{AsFd, AsRawFd};

    /// The socket is told from now on.
    pub(super) fn ask(socket: &impl AsFd, is_v4: bool) -> io::Result<()> {
        if is_v4 {
            setsockopt(socket, Ipv4PacketInfo, &true)?;
        } else {
            setsockopt(socket, Ipv6RecvPacketInfo, &true)?;
        }
        Ok(())
    }

    pub(super) fn recv(
        socket: &impl AsRawFd,
        datagram: &mut [u8],
    ) -> io::Result<(usize, (SocketAddr, Local))> {
        let mut data = [IoSliceMut::new(datagram)];
        let mut control = nix::cmsg_space!(in6_pktinfo);
        let flags = MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut data, Some(&mut control), flags)?;
        let local = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                Some(IpAddr::V4(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes())))
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                Some(IpAddr::V6(Ipv6Addr::from(info.ipi6_addr.s6_addr)))
            }
            _ => None,
        });
        let client = message.address.and_then(|client| {
            let v4 = client.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
            v4.or_else(|| client.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
        });
        Ok((message.bytes, (client.ok_or(io::ErrorKind::InvalidData)?, local)))
    }

    pub(super) fn send(
        socket: &impl AsRawFd,
        datagram: &[u8],
        client: SocketAddr,
        from: IpAddr,
    ) -> io::Result<()> {
        let (v4, v6);
        let control = match from {
            IpAddr::V4(from) => {
                let nothing = in_addr { s_addr: 0 };
                let from = in_addr { s_addr: u32::from_ne_bytes(from.octets()) };
                v4 = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: from, ipi_addr: nothing };
                ControlMessage::Ipv4PacketInfo(&v4)
            }
            IpAddr::V6(from) => {
                v6 = in6_pktinfo { ipi6_addr: in6_addr { s6_addr: from.octets() }, ipi6_ifindex: 0 };
                ControlMessage::Ipv6PacketInfo(&v6)
            }
        };
        let client = SockaddrStorage::from(client);
        let flags = MsgFlags::MSG_DONTWAIT;
        sendmsg(socket.as_raw_fd(), &[IoSlice::new(datagram)], &[control], flags, Some(&client))?;
        Ok(())
    }
}

/// Elsewhere the kernel chooses the address.
#[cfg(not(target_os = "linux"))]
mod info {
    use super::Local;
    use std::io;
    use std::net::{IpAddr, SocketAddr};
    use tokio::net::UdpSocket;

    pub(super) const fn ask<S>(_: &S, _: bool) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn recv(socket: &UdpSocket, datagram: &mut [u8]) -> io::Result<(usize, (SocketAddr, Local))> {
        socket.try_recv_from(datagram).map(|(length, client)| (length, (client, None)))
    }

    pub(super) fn send(socket: &UdpSocket, datagram: &[u8], client: SocketAddr, _: IpAddr) -> io::Result<()> {
        socket.try_send_to(datagram, client).map(drop)
    }
}
