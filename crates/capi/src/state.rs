//! The states of a connection as numbers.

use ackline_tcp_core::State;

/// No connection, or one that has ended.
pub const ACKLINE_CLOSED: i32 = 0;
/// Listening for connections.
pub const ACKLINE_LISTEN: i32 = 1;
/// A SYN has been sent; no answer yet.
pub const ACKLINE_SYN_SENT: i32 = 2;
/// A SYN has been received; the handshake is not complete.
pub const ACKLINE_SYN_RECEIVED: i32 = 3;
/// The connection is open in both directions.
pub const ACKLINE_ESTABLISHED: i32 = 4;
/// This side has closed; its FIN is not acknowledged yet, and the peer may still send.
pub const ACKLINE_FIN_WAIT_1: i32 = 5;
/// This side has closed and its FIN is acknowledged; the peer may still send.
pub const ACKLINE_FIN_WAIT_2: i32 = 6;
/// The peer has closed; this side may still send.
pub const ACKLINE_CLOSE_WAIT: i32 = 7;
/// Both sides have closed at the same time; this side's FIN is not acknowledged yet.
pub const ACKLINE_CLOSING: i32 = 8;
/// The peer has closed, then this side, whose FIN is not acknowledged yet.
pub const ACKLINE_LAST_ACK: i32 = 9;
/// Both sides have closed; the connection waits for old segments to expire.
pub const ACKLINE_TIME_WAIT: i32 = 10;

/// The number of a state (RFC 9293, section 3.3.2).
pub(crate) const fn number_of(state: State) -> i32 {
    match state {
        State::Closed => ACKLINE_CLOSED,
        State::Listen => ACKLINE_LISTEN,
        State::SynSent => ACKLINE_SYN_SENT,
        State::SynReceived => ACKLINE_SYN_RECEIVED,
        State::Established => ACKLINE_ESTABLISHED,
        State::FinWait1 => ACKLINE_FIN_WAIT_1,
        State::FinWait2 => ACKLINE_FIN_WAIT_2,
        State::CloseWait => ACKLINE_CLOSE_WAIT,
        State::Closing => ACKLINE_CLOSING,
        State::LastAck => ACKLINE_LAST_ACK,
        State::TimeWait => ACKLINE_TIME_WAIT,
    }
}
