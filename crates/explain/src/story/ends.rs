//! Where a connection was captured, how it was opened, and how it ended.

use serde::Serialize;

/// Where a connection was captured, which decides what can be inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Vantage {
    /// Which end it is.
    pub place: PathPosition,
    /// The capture says so itself, by the directions of packets.
    pub stated: bool,
    /// The smallest round trip from the capture to the client.
    pub to_client_ns: Option<u64>,
    /// The smallest round trip from the capture to the server.
    pub to_server_ns: Option<u64>,
}

/// A position on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathPosition {
    /// Unknown: neither the handshake nor timestamps show how far away both ends are.
    #[default]
    Unknown,
    /// At the client, or near to it.
    Client,
    /// Away from both.
    Middle,
    /// At the server, or near to it.
    Server,
    /// The path is so short that both are near.
    Both,
}

/// How a connection was opened.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Handshake {
    /// The SYN was captured.
    pub syn: Option<Offer>,
    /// The SYN-ACK was captured.
    pub syn_ack: Option<Offer>,
    /// From the first SYN to the end of the handshake.
    pub took_ns: Option<u64>,
    /// SYNs sent again.
    pub syn_retransmissions: u32,
    /// SYN-ACKs sent again.
    pub syn_ack_retransmissions: u32,
    /// Octets of data on the SYN (RFC 7413).
    pub data_on_syn: u32,
    /// Of these, what the SYN-ACK acknowledged.
    pub data_on_syn_accepted: u32,
}

/// What a SYN or SYN-ACK offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Largest segment that its sender takes.
    pub mss: Option<u16>,
    /// Window scale, RFC 7323.
    pub window_scale: Option<u8>,
    /// SACK, RFC 2018.
    pub sack: bool,
    /// Timestamps, RFC 7323.
    pub timestamps: bool,
    /// ECN, RFC 3168 or RFC 9768.
    pub ecn: bool,
    /// Accurate ECN, RFC 9768: a SYN asks for it, a SYN-ACK agrees to it if the SYN has.
    pub accurate_ecn: bool,
    /// With accurate ECN, how the SYN had arrived, as the SYN-ACK tells: `Not-ECT`, `ECT(0)`,
    /// `ECT(1)` or `CE`.
    pub syn_arrived_as: Option<&'static str>,
    /// Fast open, RFC 7413: octets of the cookie, zero for a request.
    pub fast_open: Option<u8>,
    /// The window of the packet.
    pub window: u16,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct End {
    /// When each end's first FIN passed: the client's, the server's.
    pub fin_at_ns: [Option<u64>; 2],
    /// Ends whose FIN was acknowledged.
    pub fin_acked: [bool; 2],
    /// Sender of the first RST, and its time.
    pub reset: Option<Reset>,
    /// Keep-alives.
    pub keep_alives: u64,
}

/// A reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reset {
    /// The client sent it, and not the server.
    pub by_client: bool,
    /// When.
    pub at_ns: u64,
}
