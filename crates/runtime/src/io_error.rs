//! Maps the core's errors to `std::io::Error`, with the kinds that the kernel's sockets would
//! return.

use ackline_tcp_core::error::{
    AcceptError, ConnError, ConnectError, ListenError, PacketError, StreamError, UdpError,
};
use std::io::{Error, ErrorKind};

/// The [`std::io`] error kind for the end of a connection.
pub(crate) const fn kind_of(error: ConnError) -> ErrorKind {
    match error {
        ConnError::Refused => ErrorKind::ConnectionRefused,
        ConnError::Reset => ErrorKind::ConnectionReset,
        ConnError::TimedOut => ErrorKind::TimedOut,
        ConnError::Unreachable => ErrorKind::HostUnreachable,
        // Aborted, out of memory, and data after close: this side reset the connection.
        _ => ErrorKind::ConnectionAborted,
    }
}

pub(crate) fn conn(error: ConnError) -> Error {
    Error::new(kind_of(error), error)
}

pub(crate) fn stream(error: StreamError) -> Error {
    match error {
        StreamError::Connection(error) => conn(error),
        StreamError::SendClosed => Error::new(ErrorKind::BrokenPipe, error),
        _ => Error::new(ErrorKind::NotConnected, error),
    }
}

pub(crate) fn connect(error: ConnectError) -> Error {
    let kind = match error {
        ConnectError::BadRemote => ErrorKind::InvalidInput,
        ConnectError::InUse => ErrorKind::AddrInUse,
        ConnectError::TooManyConnections | ConnectError::OutOfMemory => ErrorKind::QuotaExceeded,
        // No local address, no free port.
        _ => ErrorKind::AddrNotAvailable,
    };
    Error::new(kind, error)
}

pub(crate) fn accept(error: AcceptError) -> Error {
    let kind = match error {
        AcceptError::TooManyConnections | AcceptError::OutOfMemory => ErrorKind::QuotaExceeded,
        _ => ErrorKind::NotConnected,
    };
    Error::new(kind, error)
}

pub(crate) fn listen(error: ListenError) -> Error {
    let kind = match error {
        ListenError::InUse | ListenError::NoFreePort => ErrorKind::AddrInUse,
        _ => ErrorKind::AddrNotAvailable,
    };
    Error::new(kind, error)
}

pub(crate) fn udp(error: UdpError) -> Error {
    let kind = match error {
        UdpError::InUse | UdpError::NoFreePort => ErrorKind::AddrInUse,
        UdpError::NotLocal => ErrorKind::AddrNotAvailable,
        UdpError::BadRemote | UdpError::TooLong => ErrorKind::InvalidInput,
        UdpError::NoRoom => ErrorKind::WouldBlock,
        UdpError::OutOfMemory => ErrorKind::OutOfMemory,
        UdpError::Refused => ErrorKind::ConnectionRefused,
        UdpError::Unreachable => ErrorKind::HostUnreachable,
        UdpError::Ended => ErrorKind::TimedOut,
        // Not connected, closed.
        _ => ErrorKind::NotConnected,
    };
    Error::new(kind, error)
}

pub(crate) fn packet(error: PacketError) -> Error {
    let kind = match error {
        PacketError::InUse => ErrorKind::AddrInUse,
        PacketError::NotLocal => ErrorKind::AddrNotAvailable,
        PacketError::NoRoom => ErrorKind::WouldBlock,
        PacketError::OutOfMemory => ErrorKind::OutOfMemory,
        // Malformed, another's protocol or address, too long.
        _ => ErrorKind::InvalidInput,
    };
    Error::new(kind, error)
}

/// A host name that resolves to no address.
pub(crate) fn no_address() -> Error {
    Error::new(ErrorKind::InvalidInput, "there is no such address")
}

/// A handle whose connection no longer exists.
pub(crate) fn gone() -> Error {
    Error::new(ErrorKind::NotConnected, "the connection is gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_kernel_sockets() {
        let kinds = [
            (ConnError::Refused, ErrorKind::ConnectionRefused),
            (ConnError::Reset, ErrorKind::ConnectionReset),
            (ConnError::Aborted, ErrorKind::ConnectionAborted),
            (ConnError::OutOfMemory, ErrorKind::ConnectionAborted),
            (ConnError::TimedOut, ErrorKind::TimedOut),
            (ConnError::Unreachable, ErrorKind::HostUnreachable),
        ];
        for (error, kind) in kinds {
            assert_eq!(stream(StreamError::Connection(error)).kind(), kind);
        }
        assert_eq!(stream(StreamError::SendClosed).kind(), ErrorKind::BrokenPipe);
        assert_eq!(stream(StreamError::NotConnected).kind(), ErrorKind::NotConnected);
        assert_eq!(connect(ConnectError::NoFreePort).kind(), ErrorKind::AddrNotAvailable);
        assert_eq!(connect(ConnectError::OutOfMemory).kind(), ErrorKind::QuotaExceeded);
        assert_eq!(accept(AcceptError::Gone).kind(), ErrorKind::NotConnected);
        assert_eq!(accept(AcceptError::OutOfMemory).kind(), ErrorKind::QuotaExceeded);
        assert_eq!(listen(ListenError::InUse).kind(), ErrorKind::AddrInUse);
        assert_eq!(listen(ListenError::NoFreePort).kind(), ErrorKind::AddrInUse);
        assert_eq!(udp(UdpError::Refused).kind(), ErrorKind::ConnectionRefused);
        assert_eq!(udp(UdpError::NoRoom).kind(), ErrorKind::WouldBlock);
        assert_eq!(udp(UdpError::NotConnected).kind(), ErrorKind::NotConnected);
    }

    #[test]
    fn the_text_is_the_cores() {
        assert_eq!(conn(ConnError::Refused).to_string(), "connection refused");
    }
}
