//! UDP sockets.

use super::{Host, wrong_kind};
use crate::boundary::copy;
use crate::error::{ACKLINE_EMSGSIZE, Failure};
use crate::sockets::{Name, Socket};
use crate::types::{ACKLINE_READABLE, ACKLINE_WRITABLE, ackline_socket};
use ackline_tcp_core::UdpId;
use ackline_tcp_core::endpoint::{UdpEvent, UdpReceived};
use std::mem::MaybeUninit;
use std::net::SocketAddr;

impl Host {
    pub(crate) fn udp_bind(&mut self, local: SocketAddr, now: u64) -> Result<ackline_socket, Failure> {
        let now = self.at(now)?;
        let id = self.endpoint.udp().bind(now, local)?;
        Ok(self.sockets.add(Socket::Udp(id)))
    }

    fn udp(&self, socket: ackline_socket) -> Result<UdpId, Failure> {
        match self.sockets.get(socket)? {
            Socket::Udp(id) => Ok(*id),
            _ => Err(wrong_kind("of UDP")),
        }
    }

    pub(crate) fn udp_connect(
        &mut self,
        socket: ackline_socket,
        remote: SocketAddr,
        now: u64,
    ) -> Result<i32, Failure> {
        let id = self.udp(socket)?;
        let now = self.at(now)?;
        self.endpoint.udp().connect(now, id, remote)?;
        Ok(0)
    }

    pub(crate) fn udp_send(
        &mut self,
        socket: ackline_socket,
        data: &[u8],
        to: Option<SocketAddr>,
        now: u64,
    ) -> Result<i64, Failure> {
        let id = self.udp(socket)?;
        let now = self.at(now)?;
        self.endpoint.udp().send(now, id, to, data)?;
        Ok(data.len() as i64)
    }

    /// Takes the next datagram, and copies its data to `room`. If it does not fit, it stays queued.
    pub(crate) fn udp_receive(
        &mut self,
        socket: ackline_socket,
        room: &mut [MaybeUninit<u8>],
    ) -> Result<UdpReceived, Failure> {
        let id = self.udp(socket)?;
        if let Some(next) = self.endpoint.udp().peek(id).filter(|next| next.data.len() > room.len()) {
            return Err(Failure::new(
                ACKLINE_EMSGSIZE,
                format!("the datagram has {} bytes, but the buffer {}", next.data.len(), room.len()),
            ));
        }
        let received = self.endpoint.udp().recv(id)?.ok_or_else(Failure::not_now)?;
        copy(&received.data, room);
        Ok(received)
    }

    pub(super) fn collect_datagrams(&mut self) {
        while let Some(event) = self.endpoint.udp().poll_event() {
            // The C interface does not take flows.
            let UdpEvent::Socket(id) = event else { continue };
            let readable = if self.endpoint.udp().is_readable(id) { ACKLINE_READABLE } else { 0 };
            let writable = if self.endpoint.udp().is_writable(id, 1) { ACKLINE_WRITABLE } else { 0 };
            self.tell(Name::Udp(id), readable | writable);
        }
    }
}
