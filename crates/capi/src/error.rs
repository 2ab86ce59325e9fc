//! Error codes, and the text of the last error.
//!
//! Codes are Linux's error numbers, negated, on every platform.

use ackline_tcp_core::error::{AcceptError, ConnError, ConnectError, ListenError, StreamError, UdpError};
use ackline_tcp_core::policy::SpecError;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

/// I/O error: the operating system provided no descriptor or no random numbers.
pub const ACKLINE_EIO: i32 = -5;
/// Not a socket of this stack, or already closed.
pub const ACKLINE_EBADF: i32 = -9;
/// The call would block: nothing to read, no room to write, no connection to accept. An event is
/// reported when that changes.
pub const ACKLINE_EAGAIN: i32 = -11;
/// Out of memory: the memory budget is exhausted, or the connection exceeded its share of it.
pub const ACKLINE_ENOMEM: i32 = -12;
/// A required pointer is null.
pub const ACKLINE_EFAULT: i32 = -14;
/// The stack is in use: another thread is calling it, or its callback called it.
pub const ACKLINE_EBUSY: i32 = -16;
/// Invalid argument: an address, option, length or time.
pub const ACKLINE_EINVAL: i32 = -22;
/// The stack's limit on connections is reached.
pub const ACKLINE_ENFILE: i32 = -23;
/// Sending has been shut down on this side.
pub const ACKLINE_EPIPE: i32 = -32;
/// The datagram is larger than the path or the buffer allows.
pub const ACKLINE_EMSGSIZE: i32 = -90;
/// Not supported by this kind of socket, or on this platform.
pub const ACKLINE_EOPNOTSUPP: i32 = -95;
/// The address and port are in use.
pub const ACKLINE_EADDRINUSE: i32 = -98;
/// The address is not one of the stack's, the stack has no address of the peer's family, or no port
/// is free.
pub const ACKLINE_EADDRNOTAVAIL: i32 = -99;
/// This side aborted the connection.
pub const ACKLINE_ECONNABORTED: i32 = -103;
/// The peer reset the connection.
pub const ACKLINE_ECONNRESET: i32 = -104;
/// The connection is not established, or the UDP socket has no peer.
pub const ACKLINE_ENOTCONN: i32 = -107;
/// The peer sent data after this side had closed, and the connection was reset (RFC 9293, section
/// 3.6.1).
pub const ACKLINE_ESHUTDOWN: i32 = -108;
/// The peer did not answer in time.
pub const ACKLINE_ETIMEDOUT: i32 = -110;
/// The peer refused the connection or the datagram.
pub const ACKLINE_ECONNREFUSED: i32 = -111;
/// ICMP reported that the peer is unreachable.
pub const ACKLINE_EHOSTUNREACH: i32 = -113;
/// An earlier call hit a bug in ackline. The stack is unusable and can only be freed.
pub const ACKLINE_ENOTRECOVERABLE: i32 = -131;

/// Describes an error code, as in "connection refused", or "unknown error code". The string is
/// static.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_strerror(code: i32) -> *const c_char {
    meaning(code).as_ptr()
}

/// Describes the calling thread's last failed call: what was wrong, and what would be right. Empty
/// if none has failed. Valid until the thread's next failed call.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_last_error() -> *const c_char {
    // While a thread ends, its text may have been dropped already.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

thread_local! {
    static LAST: RefCell<Cow<'static, CStr>> = const { RefCell::new(Cow::Borrowed(c"")) };
}

const fn meaning(code: i32) -> &'static CStr {
    match code {
        0 => c"success",
        ACKLINE_EIO => c"input/output error",
        ACKLINE_EBADF => c"not an open socket of this stack",
        ACKLINE_EAGAIN => c"operation would block",
        ACKLINE_ENOMEM => c"out of memory",
        ACKLINE_EFAULT => c"null pointer",
        ACKLINE_EBUSY => c"the stack is in use",
        ACKLINE_EINVAL => c"invalid argument",
        ACKLINE_ENFILE => c"too many connections",
        ACKLINE_EPIPE => c"sending has been shut down",
        ACKLINE_EMSGSIZE => c"datagram too long",
        ACKLINE_EOPNOTSUPP => c"not supported",
        ACKLINE_EADDRINUSE => c"address in use",
        ACKLINE_EADDRNOTAVAIL => c"address not available",
        ACKLINE_ECONNABORTED => c"connection aborted",
        ACKLINE_ECONNRESET => c"connection reset by peer",
        ACKLINE_ENOTCONN => c"not connected",
        ACKLINE_ESHUTDOWN => c"peer sent data after this side had closed",
        ACKLINE_ETIMEDOUT => c"timed out",
        ACKLINE_ECONNREFUSED => c"connection refused",
        ACKLINE_EHOSTUNREACH => c"host or network unreachable",
        ACKLINE_ENOTRECOVERABLE => c"a bug in ackline left the stack unusable; free it",
        _ => c"unknown error code",
    }
}

/// A call that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// An argument is wrong.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(ACKLINE_EINVAL, text)
    }

    /// The call would block. No text of its own: programs run into this in every loop, and it must
    /// not allocate.
    pub(crate) const fn not_now() -> Self {
        Self { code: ACKLINE_EAGAIN, text: String::new() }
    }

    /// Keeps the text for [`ackline_last_error`].
    pub(crate) fn remember(self) -> i32 {
        let text = if self.text.is_empty() {
            Cow::Borrowed(meaning(self.code))
        } else {
            Cow::Owned(CString::new(self.text.replace('\0', "\\0")).unwrap_or_default())
        };
        let _ended = LAST.try_with(|last| *last.borrow_mut() = text);
        self.code
    }
}

/// The code of the error that ended a connection.
pub(crate) const fn code_of(error: ConnError) -> i32 {
    match error {
        ConnError::Refused => ACKLINE_ECONNREFUSED,
        ConnError::Reset => ACKLINE_ECONNRESET,
        ConnError::TimedOut => ACKLINE_ETIMEDOUT,
        ConnError::Unreachable => ACKLINE_EHOSTUNREACH,
        ConnError::OutOfMemory => ACKLINE_ENOMEM,
        ConnError::DataAfterClose => ACKLINE_ESHUTDOWN,
        _ => ACKLINE_ECONNABORTED,
    }
}

impl From<ConnError> for Failure {
    fn from(error: ConnError) -> Self {
        Self::new(code_of(error), error.to_string())
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Connection(error) => error.into(),
            StreamError::SendClosed => Self::new(ACKLINE_EPIPE, error.to_string()),
            _ => Self::new(ACKLINE_ENOTCONN, error.to_string()),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let code = match error {
            ConnectError::BadRemote => ACKLINE_EINVAL,
            ConnectError::InUse => ACKLINE_EADDRINUSE,
            ConnectError::OutOfMemory => ACKLINE_ENOMEM,
            ConnectError::TooManyConnections => ACKLINE_ENFILE,
            // No local address, no free port.
            _ => ACKLINE_EADDRNOTAVAIL,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        let code = match error {
            ListenError::InUse | ListenError::NoFreePort => ACKLINE_EADDRINUSE,
            _ => ACKLINE_EADDRNOTAVAIL,
        };
        Self::new(code, error.to_string())
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        let code = match error {
            AcceptError::TooManyConnections => ACKLINE_ENFILE,
            AcceptError::OutOfMemory => ACKLINE_ENOMEM,
            _ => ACKLINE_ENOTCONN,
        };
        Self::new(code, error.to_string())
    }
}

impl From<UdpError> for Failure {
    fn from(error: UdpError) -> Self {
        let code = match error {
            UdpError::NoRoom => return Self::not_now(),
            UdpError::InUse | UdpError::NoFreePort => ACKLINE_EADDRINUSE,
            UdpError::NotLocal => ACKLINE_EADDRNOTAVAIL,
            UdpError::BadRemote => ACKLINE_EINVAL,
            UdpError::TooLong => ACKLINE_EMSGSIZE,
            UdpError::OutOfMemory => ACKLINE_ENOMEM,
            UdpError::Refused => ACKLINE_ECONNREFUSED,
            UdpError::Unreachable => ACKLINE_EHOSTUNREACH,
            UdpError::Ended => ACKLINE_ETIMEDOUT,
            UdpError::Closed => ACKLINE_EBADF,
            _ => ACKLINE_ENOTCONN,
        };
        Self::new(code, error.to_string())
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Self::invalid(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_connection_has_a_code_of_its_own() {
        let ends = [
            ConnError::Refused,
            ConnError::Reset,
            ConnError::Aborted,
            ConnError::TimedOut,
            ConnError::Unreachable,
            ConnError::OutOfMemory,
            ConnError::DataAfterClose,
        ];
        let mut codes: Vec<i32> = ends.into_iter().map(code_of).collect();
        assert!(codes.iter().all(|code| meaning(*code) != c"unknown error code"));
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ends.len());
    }

    #[test]
    fn the_last_text_is_that_of_this_thread() {
        Failure::invalid("a\0b").remember();
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
        assert_eq!(last(), "a\\0b");
        Failure::not_now().remember();
        assert_eq!(last(), "operation would block");
    }

    fn last() -> String {
        LAST.with(|last| last.borrow().to_str().unwrap().to_owned())
    }
}
