//! The columns of `ackline top`.

use clap::ValueEnum;

/// A column that the table can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    /// Process of the stack
    Pid,
    /// Address and port of the peer
    Peer,
    /// State, as ss abbreviates it
    State,
    /// Congestion control
    Cc,
    /// Payload acknowledged, in bit/s
    Tx,
    /// Payload received, in bit/s
    Rx,
    /// Congestion window, in bytes
    Cwnd,
    /// Smoothed round-trip time, in milliseconds
    Rtt,
    /// Bytes written and not acknowledged
    Sendq,
    /// Bytes received and not read
    Recvq,
    /// Segments retransmitted since the connection began
    Retr,
}
