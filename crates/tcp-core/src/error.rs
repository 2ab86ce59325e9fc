//! Errors as the application sees them.

use thiserror::Error;

/// Why `listen` failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another listener has the same address and port.
    #[error("the address is already listened on")]
    InUse,
    /// It is not an address of the endpoint.
    #[error("the address is not one of this endpoint's")]
    NotLocal,
    /// All ephemeral ports are listened on.
    #[error("no free port to listen on")]
    NoFreePort,
}

/// Why `connect` failed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint has no address of the peer's family, or does not have the given one.
    #[error("no local address for this peer")]
    NoLocalAddress,
    /// The peer's address or port is invalid (unspecified, multicast, port 0).
    #[error("the peer's address cannot be connected to")]
    BadRemote,
    /// The four-tuple is taken.
    #[error("a connection between these two addresses and ports already exists")]
    InUse,
    /// All ephemeral ports for this peer are taken.
    #[error("no free local port for this peer")]
    NoFreePort,
    /// The endpoint's memory budget has no room for another connection.
    #[error("the memory budget is used up")]
    OutOfMemory,
    /// The endpoint has reached its configured number of connections.
    #[error("the endpoint is full")]
    TooManyConnections,
}

/// Why a SYN could not be accepted. It is not held any more; unless it is gone, its client repeats
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The client has ended it, or it was held for too long, or its listener is gone.
    #[error("the client is not waiting any more")]
    Gone,
    /// There are as many connections, or half-open ones, as there may be.
    #[error("the endpoint is full")]
    TooManyConnections,
    /// The endpoint's memory budget has no room for another connection.
    #[error("the memory budget is used up")]
    OutOfMemory,
}

/// Why a connection ended, other than by both sides closing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnError {
    /// The peer refused the connection (RST in answer to SYN).
    #[error("connection refused")]
    Refused,
    /// The peer reset the connection.
    #[error("connection reset by peer")]
    Reset,
    /// The application aborted it.
    #[error("connection aborted")]
    Aborted,
    /// No answer: SYN retries, the user timeout or keep-alive probes are exhausted.
    #[error("connection timed out")]
    TimedOut,
    /// ICMP reported it, and no answer came before the timeout (RFC 5927, section 5.2: a soft
    /// error).
    #[error("host or network unreachable")]
    Unreachable,
    /// The endpoint's memory budget was used up, and this connection held more than its share
    /// without moving.
    #[error("connection aborted: the memory budget is used up")]
    OutOfMemory,
    /// Data arrived after the application had closed its receiving side (RFC 9293, section 3.6.1).
    #[error("the peer sent data after this side had closed")]
    DataAfterClose,
}

/// Why a UDP socket refused something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UdpError {
    /// Another socket has the address and port; or the endpoint gives its flows to somebody else.
    #[error("the address is in use")]
    InUse,
    /// It is not an address of the endpoint, or the endpoint has none of the peer's family.
    #[error("the address is not one of this endpoint's")]
    NotLocal,
    /// All ephemeral ports are in use.
    #[error("no free port")]
    NoFreePort,
    /// The peer's address or port is invalid (unspecified, multicast, port 0, another family).
    #[error("the peer's address cannot be sent to")]
    BadRemote,
    /// There is no peer: the socket is not connected, and no destination is given.
    #[error("not connected")]
    NotConnected,
    /// The datagram is longer than the device or the path carries, and is not fragmented.
    #[error("the datagram is longer than the path carries")]
    TooLong,
    /// Too many datagrams of the socket wait for the device.
    #[error("no room for the datagram")]
    NoRoom,
    /// The endpoint's memory budget has no room.
    #[error("the memory budget is used up")]
    OutOfMemory,
    /// ICMP reported that nobody listens where an earlier datagram went.
    #[error("connection refused")]
    Refused,
    /// ICMP reported that earlier datagrams may not pass.
    #[error("host or network unreachable")]
    Unreachable,
    /// The flow has been idle for too long, or made room for another.
    #[error("the flow has ended")]
    Ended,
    /// The socket is closed.
    #[error("the socket is closed")]
    Closed,
}

/// Why a packet of the program was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PacketError {
    /// Somebody takes the packets already.
    #[error("the packets are taken already")]
    InUse,
    /// Its headers, lengths or checksums are wrong, or it is a fragment.
    #[error("malformed packet")]
    Malformed,
    /// TCP and UDP are the stack's own.
    #[error("the protocol is the stack's own")]
    Protocol,
    /// Its source is not an address of the endpoint.
    #[error("the source address is not one of this endpoint's")]
    NotLocal,
    /// Its destination is not a single host.
    #[error("the destination address cannot be sent to")]
    BadRemote,
    /// It is longer than the device carries.
    #[error("the packet is longer than the device carries")]
    TooLong,
    /// Too many packets wait for the device.
    #[error("no room for the packet")]
    NoRoom,
    /// The endpoint's memory budget has no room.
    #[error("the memory budget is used up")]
    OutOfMemory,
}

/// Why a write or read was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The handshake is not finished.
    #[error("not connected yet")]
    NotConnected,
    /// This side has shut down sending.
    #[error("sending side is closed")]
    SendClosed,
    /// The connection ended with an error.
    #[error(transparent)]
    Connection(#[from] ConnError),
}
