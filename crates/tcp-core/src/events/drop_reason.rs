//! Why a received packet was dropped.

use crate::counters::Counters;
use crate::wire::WireError;
use core::fmt;

/// Declares the reasons once: variant, text, the counter that it raises, meaning.
macro_rules! reasons {
    ($($variant:ident, $text:literal, $counter:ident, $doc:literal;)*) => {
        /// Why a packet, or the segment in it, was dropped. Each reason has a counter in
        /// [`Counters`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum DropReason {
            $(#[doc = $doc] #[doc = concat!("Counted in [`Counters::", stringify!($counter), "`].")] $variant,)*
        }

        impl DropReason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// A stable text for traces and captures.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// The counter of this reason.
            fn counter(self, counters: &mut Counters) -> &mut u64 {
                match self {
                    $(Self::$variant => &mut counters.$counter,)*
                }
            }
        }
    };
}

reasons! {
    IpTruncated, "truncated packet", ip_in_truncated_pkts, "The packet ends before its headers do, or before the length that they state.";
    IpHeader, "malformed IP header", ip_in_hdr_errors, "The IP header, or one of its extensions, cannot be.";
    IpChecksum, "bad IPv4 header checksum", ip_in_csum_errors, "The checksum of the IPv4 header is wrong.";
    Fragment, "IP fragment", ip_fragments_dropped, "A fragment that is malformed, overlaps another, is one too many, or finds no memory.";
    NotLocal, "address of another host", ip_in_addr_errors, "The destination is not ours, or an address is no host's.";
    UnknownProtocol, "unknown protocol", ip_in_unknown_protos, "The transport protocol is neither TCP nor ICMP nor UDP.";
    IcmpMalformed, "malformed ICMP message", icmp_in_errors, "The ICMP message is too short, quotes too little, or has a wrong checksum.";
    IcmpUnrelated, "ICMP error about no connection", icmp_in_errors, "The ICMP error quotes a packet of no connection.";
    EchoRefused, "echo request refused", icmp_echo_drops, "The echo request is not answered: switched off, too long, too many, or too many replies wait.";
    UdpMalformed, "malformed UDP datagram", udp_in_errors, "The UDP header cannot be.";
    UdpChecksum, "bad UDP checksum", udp_in_csum_errors, "The UDP checksum is wrong.";
    UdpNoPort, "no UDP port", udp_no_ports, "No UDP socket has the port.";
    UdpQueueFull, "UDP queue full", udp_rcvbuf_errors, "The queue of the UDP socket is full.";
    UdpNoMemory, "no memory for a datagram", udp_mem_errors, "A datagram for which there is no memory.";
    UdpFlowsFull, "too many UDP flows", udp_flows_refused, "A datagram of a new flow while there are as many as there may be.";
    PacketQueueFull, "too many packets wait", packets_dropped, "A packet for the program, while too many wait for it, or for lack of memory.";
    TcpMalformed, "malformed TCP header", tcp_in_errs, "The TCP header cannot be.";
    TcpChecksum, "bad TCP checksum", tcp_in_csum_errors, "The TCP checksum is wrong.";
    NoConnection, "no connection", tcp_unmatched, "The segment is of no connection, and gets no answer.";
    RstLimited, "RST rate limit", tcp_rst_limited, "The segment is of no connection, and the RST that would answer it is over the limit.";
    BacklogFull, "backlog full", listen_overflows, "A SYN, or the ACK of a SYN-ACK, for a listener whose backlog is full.";
    AcceptDeferred, "no data yet", tcp_defer_accept_drop, "The ACK of a SYN-ACK, of a listener that waits for data.";
    HalfOpenFull, "too many half-open connections", tcp_req_q_full_drop, "A SYN while the endpoint has as many half-open connections as it may, and the SYN's source its share of them.";
    HeldSynsFull, "too many held SYNs", held_syns_full, "A SYN for a listener that holds SYNs, while as many are held as may be.";
    EndpointFull, "endpoint full", connections_refused, "A SYN, or the ACK of a SYN-ACK, while the endpoint has as many connections as it may.";
    ForeignTimestamp, "timestamp of no SYN", tcp_paws_active, "A SYN-ACK that echoes a timestamp which no SYN of this connection showed.";
    NoTimestamp, "no timestamp", tcp_no_timestamp, "No timestamp, although both sides agreed to send one (RFC 7323, section 3.2).";
    OldTimestamp, "old timestamp", tcp_paws_estab, "An older timestamp than one that was taken before (PAWS).";
    OutOfWindow, "outside the window", tcp_out_of_window, "The segment, or its text, is outside the receive window.";
    RstOutOfWindow, "RST outside the window", tcp_rst_unacceptable, "An RST outside the receive window.";
    RstNotExpected, "RST not at RCV.NXT", tcp_rst_unacceptable, "An RST inside the window, but not at RCV.NXT (RFC 5961, section 3.2).";
    RstInTimeWait, "RST in TIME-WAIT", tcp_tw_rst_ignored, "An RST in TIME-WAIT (RFC 1337).";
    UnexpectedSyn, "unexpected SYN", tcp_syn_challenge, "A SYN on a connection that has one (RFC 5961, section 4.2).";
    NoAck, "no ACK", tcp_no_ack, "No ACK (RFC 9293, section 3.10.7.4, fifth).";
    BadAck, "ACK out of range", tcp_ack_unacceptable, "An ACK of what was never sent, or too old (RFC 5961, section 5.2).";
    NoMemory, "no memory", tcp_rcv_q_drop, "Data in order for which there is no memory.";
    ConnectionMemory, "no memory for a connection", memory_refusals, "A SYN while the memory budget has no room for another connection.";
    OutOfOrderFull, "no room out of order", tcp_ofo_drop, "Data out of order that finds too many ranges waiting, or no room.";
}

impl DropReason {
    /// Counts a packet dropped for this reason, with the totals that it belongs to.
    pub(crate) fn count(self, counters: &mut Counters) {
        *self.counter(counters) += 1;
        match self {
            Self::IpChecksum => counters.ip_in_hdr_errors += 1,
            Self::Fragment => counters.ip_reasm_fails += 1,
            Self::IcmpMalformed => counters.icmp_in_msgs += 1,
            Self::UdpChecksum | Self::UdpQueueFull | Self::UdpNoMemory => counters.udp_in_errors += 1,
            Self::TcpMalformed => counters.tcp_in_segs += 1,
            Self::TcpChecksum => {
                counters.tcp_in_errs += 1;
                counters.tcp_in_segs += 1;
            }
            Self::BacklogFull
            | Self::EndpointFull
            | Self::HalfOpenFull
            | Self::HeldSynsFull
            | Self::ConnectionMemory => counters.listen_drops += 1,
            _ => {}
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<WireError> for DropReason {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Truncated => Self::IpTruncated,
            WireError::BadVersion
            | WireError::BadHeaderLength
            | WireError::Jumbogram
            | WireError::ExtensionHeaders
            | WireError::UnrecognizedOption
            | WireError::SegmentsLeft => Self::IpHeader,
            WireError::IpChecksum => Self::IpChecksum,
            WireError::Fragment => Self::Fragment,
            WireError::TcpHeader => Self::TcpMalformed,
            WireError::TcpChecksum => Self::TcpChecksum,
            WireError::IcmpHeader | WireError::IcmpChecksum | WireError::Quotation => Self::IcmpMalformed,
            WireError::UdpHeader => Self::UdpMalformed,
            WireError::UdpChecksum => Self::UdpChecksum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DropReason;
    use crate::counters::Counters;
    use std::collections::BTreeSet;

    #[test]
    fn every_reason_is_counted_and_has_a_text_of_its_own() {
        let texts: BTreeSet<_> = DropReason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(texts.len(), DropReason::ALL.len());
        for &reason in DropReason::ALL {
            let mut counters = Counters::new();
            reason.count(&mut counters);
            assert_eq!(*reason.counter(&mut counters), 1, "{reason}");
        }
    }

    /// RFC 4022 and RFC 4293: what is received in error counts as received, and a wrong checksum as
    /// an error.
    #[test]
    fn totals_include_what_is_dropped() {
        let mut counters = Counters::new();
        for reason in [DropReason::TcpChecksum, DropReason::TcpMalformed, DropReason::IpChecksum] {
            reason.count(&mut counters);
        }
        let Counters { tcp_in_segs, tcp_in_errs, tcp_in_csum_errors, ip_in_hdr_errors, .. } = counters;
        assert_eq!((tcp_in_segs, tcp_in_errs, tcp_in_csum_errors, ip_in_hdr_errors), (2, 2, 1, 1));
    }
}
