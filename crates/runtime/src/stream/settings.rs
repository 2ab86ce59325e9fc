//! Socket options and policies of a connection, named as in [`tokio::net::TcpStream`],
//! [`tokio::net::TcpSocket`] and the socket2 crate.

use super::TcpStream;
use ackline_tcp_core::config::{KeepAlive, Nagle};
use ackline_tcp_core::policy::{NewAckPolicy, NewCongestionControl, NewRtoResponse};
use std::io::{self, ErrorKind};
use std::time::Duration;

impl TcpStream {
    /// True if small segments are sent at once: `TCP_NODELAY`.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.conn.ask(|conn| conn.config().nagle == Nagle::Off)
    }

    /// `TCP_NODELAY`: small segments are sent at once (no Nagle's algorithm).
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_nodelay(now, on))
    }

    /// True if only full segments are sent: `TCP_CORK`.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn cork(&self) -> io::Result<bool> {
        self.conn.ask(|conn| conn.config().cork)
    }

    /// `TCP_CORK`: only full segments are sent until it is cleared.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_cork(&self, on: bool) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_cork(now, on))
    }

    /// As set by [`set_quickack`](Self::set_quickack).
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn quickack(&self) -> io::Result<bool> {
        self.conn.ask(|conn| conn.quick_acks())
    }

    /// `TCP_QUICKACK`: sends an ACK that the ACK policy holds back at once, and acknowledges each
    /// data segment on arrival, until this is cleared (Linux clears it by itself).
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_quickack(&self, on: bool) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_quick_acks(now, on))
    }

    /// The hop limit of outgoing packets: `IP_TTL`, `IPV6_UNICAST_HOPS`.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn ttl(&self) -> io::Result<u32> {
        let mut state = self.conn.shard.lock();
        let own = state.conn(self.conn.id)?.config().ttl;
        Ok(own.unwrap_or(state.endpoint.config().default_ttl).into())
    }

    /// Sets the hop limit of outgoing packets, 1 to 255.
    ///
    /// # Errors
    /// `InvalidInput` for another number; `NetworkDown` if the device is gone.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let ttl = ttl_of(ttl)?;
        self.conn.with(|conn, now| conn.set_ttl(now, Some(ttl)))
    }

    /// The type of service of an IPv4 connection; its upper six bits are the DSCP: `IP_TOS`.
    ///
    /// # Errors
    /// `Unsupported` over IPv6; `NetworkDown` if the device is gone.
    pub fn tos_v4(&self) -> io::Result<u32> {
        self.over(true)?;
        self.conn.ask(|conn| u32::from(conn.config().dscp) << 2)
    }

    /// Sets the type of service of an IPv4 connection. The lower two bits belong to ECN and are
    /// ignored.
    ///
    /// # Errors
    /// `InvalidInput` above 255; `Unsupported` over IPv6; `NetworkDown` if the device is gone.
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        self.over(true)?;
        let dscp = dscp_of_tos(tos)?;
        self.conn.with(|conn, now| conn.set_dscp(now, dscp))
    }

    /// The traffic class of an IPv6 connection; its upper six bits are the DSCP: `IPV6_TCLASS`.
    ///
    /// # Errors
    /// `Unsupported` over IPv4; `NetworkDown` if the device is gone.
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.over(false)?;
        self.conn.ask(|conn| u32::from(conn.config().dscp) << 2)
    }

    /// Sets the traffic class of an IPv6 connection. The lower two bits belong to ECN and are
    /// ignored.
    ///
    /// # Errors
    /// `InvalidInput` above 255; `Unsupported` over IPv4; `NetworkDown` if the device is gone.
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        self.over(false)?;
        let dscp = dscp_of_tos(tclass)?;
        self.conn.with(|conn, now| conn.set_dscp(now, dscp))
    }

    fn over(&self, ipv4: bool) -> io::Result<()> {
        check_family(self.conn.addresses.remote().is_ipv4(), ipv4)
    }

    /// The limit of the send buffer in bytes: `SO_SNDBUF`.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.conn.ask(|conn| conn.config().send_buffer)
    }

    /// Sets the limit of the send buffer in bytes, from 2,048 to 2^30. As in the kernel, the buffer
    /// no longer follows the congestion window. Data already written stays, even if it exceeds the
    /// limit.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_send_buffer_size(&self, bytes: u32) -> io::Result<()> {
        self.conn.with(|conn, now| {
            conn.set_send_buffer(now, bytes);
            conn.set_min_send_buffer(now, None);
        })
    }

    /// The limit of bytes written and not sent, if there is one: `TCP_NOTSENT_LOWAT`.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn notsent_lowat(&self) -> io::Result<Option<u32>> {
        self.conn.ask(|conn| conn.config().notsent_lowat)
    }

    /// Sets the limit of bytes written and not sent; `None`: none. At or above it the stream is not
    /// writable, and as in the kernel a writer that waits goes on when less than half of it is
    /// unsent. What is written late can still be changed until then, and takes no memory.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_notsent_lowat(&self, bytes: Option<u32>) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_notsent_lowat(now, bytes))
    }

    /// The limit of the receive buffer in bytes: `SO_RCVBUF`.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.conn.ask(|conn| conn.config().recv_buffer)
    }

    /// Sets the limit of the receive buffer in bytes, from 2,048 to 2^30. As in the kernel, this
    /// ends auto-tuning, and the whole buffer is offered as window. A smaller window takes effect
    /// as data arrives, and never takes back window already offered to the peer (RFC 9293, section
    /// 3.8.6); received data stays. The handshake's window scale limits a larger one: set a size
    /// above it before the connection starts.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_recv_buffer_size(&self, bytes: u32) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_recv_buffer(now, bytes))
    }

    /// True if an idle peer is probed: `SO_KEEPALIVE`.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn keepalive(&self) -> io::Result<bool> {
        self.tcp_keepalive().map(|times| times.is_some())
    }

    /// `SO_KEEPALIVE`, with the current times, or the default ones.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_keepalive(&self, on: bool) -> io::Result<()> {
        self.conn.with(|conn, now| {
            let times = conn.config().keep_alive.unwrap_or_default();
            conn.set_keep_alive(now, on.then_some(times));
        })
    }

    /// The times of keep-alive: `TCP_KEEPIDLE`, `TCP_KEEPINTVL` and `TCP_KEEPCNT`. `None`: it is
    /// off.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn tcp_keepalive(&self) -> io::Result<Option<KeepAlive>> {
        self.conn.ask(|conn| conn.config().keep_alive)
    }

    /// Enables keep-alive with these times. Idle time counts from the last arrival.
    ///
    /// # Errors
    /// `InvalidInput` if one of the times is zero; `NetworkDown` if the device is gone.
    pub fn set_tcp_keepalive(&self, times: &KeepAlive) -> io::Result<()> {
        check_keepalive(times)?;
        self.conn.with(|conn, now| conn.set_keep_alive(now, Some(*times)))
    }

    /// As set by [`set_tcp_user_timeout`](Self::set_tcp_user_timeout).
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn tcp_user_timeout(&self) -> io::Result<Option<Duration>> {
        self.conn.ask(|conn| conn.config().user_timeout.map(Duration::from))
    }

    /// `TCP_USER_TIMEOUT`: how long written data may wait for an ACK without any progress before
    /// the connection ends with `TimedOut`. `None`: forever.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_tcp_user_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_user_timeout(now, limit.map(Into::into)))
    }

    /// As set by [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    /// None.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.conn.shard.lock().linger(self.conn.id).map(Duration::from))
    }

    /// Sets what dropping the stream does. `None`, the default: it closes in the background,
    /// however long the peer takes. `Some(zero)`: it resets. `Some(limit)`: it closes in the
    /// background and is reset after `limit`.
    ///
    /// # Errors
    /// None.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.conn.shard.lock().set_linger(self.conn.id, linger.map(Into::into));
        Ok(())
    }

    /// Makes dropping the stream reset the connection: `set_linger(Some(Duration::ZERO))`.
    ///
    /// # Errors
    /// None.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Replaces the congestion control; the new one starts with the old one's window and threshold.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_congestion_control(&self, make: &NewCongestionControl) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_congestion_control(now, make))
    }

    /// Replaces the ACK policy.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_ack_policy(&self, make: &NewAckPolicy) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_ack_policy(now, make))
    }

    /// Replaces the response to retransmission timeouts. The new one takes effect at the next
    /// expiry; an episode of the old one ends in the conventional way.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn set_rto_response(&self, make: &NewRtoResponse) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_rto_response(now, make))
    }
}

/// Checks a hop limit.
pub(crate) fn ttl_of(ttl: u32) -> io::Result<u8> {
    let ttl = u8::try_from(ttl).ok().filter(|ttl| *ttl > 0);
    ttl.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "a hop limit is from 1 to 255"))
}

/// The DSCP in a type of service or traffic class.
pub(crate) fn dscp_of_tos(tos: u32) -> io::Result<u8> {
    let tos = u8::try_from(tos);
    tos.map(|tos| tos >> 2)
        .map_err(|_| io::Error::new(ErrorKind::InvalidInput, "a type of service has eight bits"))
}

/// Checks that an option for IPv4 (`wants_ipv4`) or IPv6 matches the connection's IP version.
pub(crate) fn check_family(is_ipv4: bool, wants_ipv4: bool) -> io::Result<()> {
    let version = if wants_ipv4 { "IPv4" } else { "IPv6" };
    match is_ipv4 == wants_ipv4 {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::Unsupported, format!("that is an option of {version}"))),
    }
}

/// Checks keep-alive times.
pub(crate) fn check_keepalive(times: &KeepAlive) -> io::Result<()> {
    let KeepAlive { idle, interval, spread: _, count } = times;
    if idle.is_zero() || interval.is_zero() || *count == 0 {
        return Err(io::Error::new(ErrorKind::InvalidInput, "keep-alive needs times and a number of probes"));
    }
    Ok(())
}
