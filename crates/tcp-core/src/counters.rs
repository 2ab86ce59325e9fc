//! Counters of an endpoint, with the names under which Linux's `nstat` shows them where Linux has them.
//!
//! Every limit of the core has a counter here, so that a refusal is always visible.

/// Declares the counters once: field, nstat name, meaning.
macro_rules! counters {
    ($($field:ident, $name:literal, $doc:literal;)*) => {
        /// The counters of an endpoint. All start at zero and only grow, except where the name says `Curr`.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct Counters {
            $(#[doc = $doc] #[cfg_attr(feature = "serde", serde(rename = $name))] pub $field: u64,)*
        }

        impl Counters {
            /// Name and value of each counter, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
                [$(($name, self.$field)),*].into_iter()
            }
        }
    };
}

counters! {
    ip_in_receives, "IpInReceives", "IP packets received; a super-packet counts once.";
    ip_in_hdr_errors, "IpInHdrErrors", "Packets dropped for a malformed IP header.";
    ip_in_csum_errors, "IpExtInCsumErrors", "Packets dropped for a wrong IPv4 header checksum.";
    ip_in_addr_errors, "IpInAddrErrors", "Packets dropped because their destination is not ours.";
    ip_in_unknown_protos, "IpInUnknownProtos", "Packets refused for a transport protocol that is not TCP, ICMP or UDP.";
    ip_in_ect1_pkts, "IpExtInECT1Pkts", "Packets received with ECT(1), counted as wire packets.";
    ip_in_ect0_pkts, "IpExtInECT0Pkts", "Packets received with ECT(0), counted as wire packets.";
    ip_in_ce_pkts, "IpExtInCEPkts", "Packets received with congestion experienced, counted as wire packets.";
    ip_reasm_fails, "IpReasmFails", "Fragments dropped: this stack does not reassemble.";
    ip_out_requests, "IpOutRequests", "IP packets sent; a super-packet counts once.";
    icmp_in_msgs, "IcmpInMsgs", "ICMP messages received.";
    icmp_in_errors, "IcmpInErrors", "ICMP messages dropped as malformed.";
    icmp_in_echos, "IcmpInEchos", "Echo requests received.";
    icmp_out_echo_reps, "IcmpOutEchoReps", "Echo replies sent.";
    icmp_echo_drops, "IcmpEchoDrops", "Echo requests not answered: switched off, too long, too many, or too many replies wait.";
    icmp_out_dest_unreachs, "IcmpOutDestUnreachs", "Destination unreachable messages sent: ports and protocols that nobody serves.";
    icmp_out_parm_probs, "IcmpOutParmProbs", "Parameter problem messages sent: IPv6 next headers that are not known.";
    icmp_out_limited, "IcmpOutRateLimitGlobal", "ICMP errors not sent because of the rate limit, or because too many wait.";
    udp_no_ports, "UdpNoPorts", "UDP datagrams received: there is no UDP port here.";
    udp_in_csum_errors, "UdpInCsumErrors", "UDP datagrams dropped for a wrong checksum.";
    tcp_active_opens, "TcpActiveOpens", "Connections opened by this side.";
    tcp_passive_opens, "TcpPassiveOpens", "Connections accepted from LISTEN.";
    tcp_attempt_fails, "TcpAttemptFails", "Connections that ended in SYN-SENT or SYN-RECEIVED.";
    tcp_estab_resets, "TcpEstabResets", "Connections reset after they were established.";
    tcp_curr_estab, "TcpCurrEstab", "Connections in ESTABLISHED or CLOSE-WAIT.";
    tcp_in_segs, "TcpInSegs", "TCP segments received, counted as wire segments.";
    tcp_out_segs, "TcpOutSegs", "TCP segments sent with new data or control, counted as wire segments.";
    tcp_retrans_segs, "TcpRetransSegs", "TCP segments retransmitted, counted as wire segments.";
    tcp_in_errs, "TcpInErrs", "TCP segments dropped as malformed.";
    tcp_in_csum_errors, "TcpInCsumErrors", "TCP segments dropped for a wrong checksum.";
    tcp_out_rsts, "TcpOutRsts", "RSTs sent.";
    tcp_rst_limited, "TcpExtRstLimited", "RSTs not sent because of the rate limit.";
    listen_overflows, "TcpExtListenOverflows", "SYNs dropped because a listener's backlog was full.";
    listen_drops, "TcpExtListenDrops", "SYNs dropped for any reason.";
    connections_refused, "TcpExtConnectionsRefused", "SYNs and connects refused because the endpoint is full.";
    req_syn_retrans, "TcpExtTCPSynRetrans", "SYNs and SYN-ACKs retransmitted.";
    delayed_acks, "TcpExtDelayedACKs", "ACKs sent by a policy's timer.";
    delayed_ack_lost, "TcpExtDelayedACKLost", "Duplicate data while an ACK was held: the hold was too long, or the ACK lost.";
    ack_hold_truncated, "TcpExtACKHoldTruncated", "ACKs that the core sent although the policy held them.";
    ack_obligations_waived, "TcpExtACKObligationsWaived", "Soft ACK obligations that a policy waived.";
    tcp_hp_hits, "TcpExtTCPHPHits", "Segments taken by the fast path.";
    tcp_pure_acks, "TcpExtTCPPureAcks", "Pure ACKs received.";
    tcp_sack_recovery, "TcpExtTCPSackRecovery", "Recoveries begun from SACK information.";
    tcp_reno_recovery, "TcpExtTCPRenoRecovery", "Recoveries begun from duplicate ACKs without SACK.";
    tcp_loss_failures, "TcpExtTCPSackFailures", "Timeouts in recovery.";
    tcp_fast_retrans, "TcpExtTCPFastRetrans", "Segments retransmitted in fast recovery.";
    tcp_slow_start_retrans, "TcpExtTCPSlowStartRetrans", "Segments retransmitted after a timeout.";
    tcp_timeouts, "TcpExtTCPTimeouts", "Retransmission timeouts.";
    tcp_spurious_rtos, "TcpExtTCPSpuriousRTOs", "Retransmission timeouts found to be spurious.";
    tcp_stale_acks, "AcklineTcpStaleAcks", "ACKs that a response to a timeout took for none of the evidence that it waits for.";
    tcp_loss_probes, "TcpExtTCPLossProbes", "Tail loss probes sent.";
    tcp_loss_probe_recovery, "TcpExtTCPLossProbeRecovery", "Losses that a tail loss probe repaired.";
    tcp_lost_retransmit, "TcpExtTCPLostRetransmit", "Retransmissions found lost.";
    tcp_sack_reorder, "TcpExtTCPSACKReorder", "Connections whose path was first seen to reorder by SACK or ACK.";
    tcp_ts_reorder, "TcpExtTCPTSReorder", "Connections whose path was first seen to reorder by timestamps.";
    tcp_delivered_ce, "TcpExtTCPDeliveredCE", "Segments delivered whose ACK said ECE, where ECN is in use.";
    tcp_ecn_reductions, "AcklineTcpEcnReductions", "Windows reduced because of ECE.";
    tcp_ce_turns_merged, "AcklineTcpCETurnsMerged", "Runs of marked or unmarked segments not told apart: too many changes waited for an ACK.";
    tcp_dsack_old_sent, "TcpExtTCPDSACKOldSent", "DSACKs sent for data below RCV.NXT.";
    tcp_dsack_ofo_sent, "TcpExtTCPDSACKOfoSent", "DSACKs sent for data beyond RCV.NXT.";
    tcp_dsack_recv, "TcpExtTCPDSACKRecv", "DSACKs received.";
    tcp_sack_reneging, "TcpExtTCPSACKReneging", "SACKed data that the peer dropped.";
    tcp_sack_discard, "TcpExtTCPSACKDiscard", "SACK blocks ignored as impossible.";
    tcp_undo, "TcpExtTCPFullUndo", "Congestion episodes undone.";
    tcp_partial_undo, "TcpExtTCPPartialUndo", "Fast recoveries undone before all that was outstanding was acknowledged.";
    tcp_dsack_undo, "TcpExtTCPDSACKUndo", "Fast recoveries undone because every retransmission was reported as a duplicate.";
    tcp_ofo_queue, "TcpExtTCPOFOQueue", "Segments stored out of order.";
    tcp_ofo_merge, "TcpExtTCPOFOMerge", "Out-of-order segments that overlapped stored data.";
    tcp_ofo_drop, "TcpExtTCPOFODrop", "Out-of-order segments dropped: too many ranges, or no room.";
    tcp_rcv_collapsed, "TcpExtTCPRcvQDrop", "In-order data dropped because the receive buffer was full.";
    tcp_challenge_ack, "TcpExtTCPChallengeACK", "Challenge ACKs sent.";
    tcp_challenge_limited, "TcpExtTCPACKSkippedChallenge", "Challenge ACKs not sent because of the rate limit.";
    tcp_syn_challenge, "TcpExtTCPSYNChallenge", "SYNs received on synchronised connections.";
    tcp_paws_rejected, "TcpExtPAWSEstab", "Segments dropped by PAWS.";
    tcp_paws_active, "TcpExtPAWSActive", "SYN-ACKs dropped because of their timestamp.";
    tcp_ack_unacceptable, "TcpExtTCPAckUnacceptable", "ACKs outside the acceptable range (RFC 5961, section 5).";
    tcp_out_of_window, "TcpExtOutOfWindow", "Segments dropped as outside the window.";
    tcp_rst_unacceptable, "TcpExtTCPRstUnacceptable", "RSTs dropped as outside the window.";
    tcp_tw, "TcpExtTW", "Connections that entered TIME-WAIT.";
    tcp_tw_recycled, "TcpExtTWRecycled", "TIME-WAIT connections reused by a newer SYN (RFC 6191).";
    tcp_tw_rst_ignored, "TcpExtTWRstIgnored", "RSTs ignored in TIME-WAIT (RFC 1337).";
    tcp_abort_on_timeout, "TcpExtTCPAbortOnTimeout", "Connections aborted by a timeout.";
    tcp_abort_on_close, "TcpExtTCPAbortOnClose", "Connections reset because they were dropped with unread data.";
    tcp_abort_on_data, "TcpExtTCPAbortOnData", "Connections reset because data came after the application had closed.";
    tcp_keep_alive, "TcpExtTCPKeepAlive", "Keep-alive probes sent.";
    tcp_win_probe, "TcpExtTCPWinProbe", "Window probes sent.";
    tcp_to_zero_window, "TcpExtTCPToZeroWindowAdv", "Times that the advertised window fell to zero.";
    tcp_from_zero_window, "TcpExtTCPFromZeroWindowAdv", "Times that the advertised window rose from zero.";
    tcp_want_zero_window, "TcpExtTCPWantZeroWindowAdv", "Times that a peer's window fell to zero.";
    tcp_urgent, "TcpExtTCPUrgent", "Segments with URG.";
    tcp_mtu_reduced, "TcpExtTCPMtuReduced", "Segment sizes lowered because of ICMP.";
    tcp_mtu_refused, "AcklineTcpMtuRefused", "Packet Too Big messages ignored: they quote no packet larger than the MTU that they name.";
    tcp_mtu_refuted, "AcklineTcpMtuRefuted", "Packet Too Big messages that an ACK has shown to be wrong.";
    tcp_mtu_raised, "AcklineTcpMtuRaised", "Segment sizes raised again to what the handshake had settled, some time after ICMP.";
    icmp_out_of_window, "TcpExtOutOfWindowIcmps", "ICMP errors ignored because they name no outstanding data (RFC 5927).";
    tcp_unmatched, "AcklineTcpUnmatched", "TCP segments of no connection that got no answer.";
    tx_refused, "AcklineTxRefused", "Packets that the device refused when they were offered.";
    egress_dropped, "AcklineEgressDropped", "ACKs with their own number, RSTs and ICMP messages that found the egress scheduler's queue full.";
    egress_late, "AcklineEgressLate", "Wake-ups for the egress scheduler that came later than it had asked for.";
    egress_thinned, "AcklineEgressThinned", "Queued ACKs whose place a newer one took.";
    departures_missing, "AcklineDeparturesMissing", "Packets counted as departed because the driver reported too few departures.";
}

impl Counters {
    /// All zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
