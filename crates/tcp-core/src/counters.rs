//! Counters of an endpoint. A name without the prefix `Ackline` is that of the Linux counter
//! (`nstat`) that counts the same; names of IPv4 count both families.
//!
//! `TcpInSegs` counts each wire segment (RFC 4022), while Linux counts segments merged by receive
//! offload as one. Every limit of the core has a counter here, so that a refusal is always visible.

/// Declares the counters once: field, nstat name, meaning.
macro_rules! counters {
    ($($field:ident, $name:literal, $doc:literal;)*) => {
        /// Counters of an endpoint. They start at zero and only grow, except those with `Curr` in
        /// the name.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct Counters {
            $(#[doc = $doc] #[cfg_attr(feature = "serde", serde(rename = $name))] pub $field: u64,)*
        }

        impl Counters {
            /// What each counter is called and counts, in the order of [`iter`](Self::iter).
            pub const DESCRIPTIONS: &'static [Description] =
                &[$(Description { field: stringify!($field), name: $name, meaning: $doc }),*];

            /// Adds the counters of another endpoint of the same host.
            pub fn add(&mut self, other: &Self) {
                $(self.$field = self.$field.saturating_add(other.$field);)*
            }

            /// Name and value of each counter, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
                [$(($name, self.$field)),*].into_iter()
            }
        }

    };
}

/// What a counter is called and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// Its field in [`Counters`].
    pub field: &'static str,
    /// Its name in `nstat`.
    pub name: &'static str,
    /// What it counts: a sentence or two.
    pub meaning: &'static str,
}

counters! {
    ip_in_receives, "IpInReceives", "IP packets received; a super-packet counts once.";
    ip_in_hdr_errors, "IpInHdrErrors", "Packets dropped for a malformed IP header or a wrong IPv4 header checksum.";
    ip_in_truncated_pkts, "IpExtInTruncatedPkts", "Packets dropped because they end before their headers do, or before the length that these state.";
    ip_in_csum_errors, "IpExtInCsumErrors", "Packets dropped for a wrong IPv4 header checksum.";
    ip_in_addr_errors, "IpInAddrErrors", "Packets dropped because their destination is not ours.";
    ip_in_unknown_protos, "IpInUnknownProtos", "Packets refused for a transport protocol that is not TCP, ICMP or UDP.";
    ip_in_ect1_pkts, "IpExtInECT1Pkts", "Packets received with ECT(1), counted as wire packets.";
    ip_in_ect0_pkts, "IpExtInECT0Pkts", "Packets received with ECT(0), counted as wire packets.";
    ip_in_ce_pkts, "IpExtInCEPkts", "Packets received with congestion experienced, counted as wire packets.";
    ip_reasm_reqds, "IpReasmReqds", "Fragments received.";
    ip_reasm_oks, "IpReasmOKs", "Packets put together from fragments.";
    ip_reasm_fails, "IpReasmFails", "Fragments dropped, and packets given up because not all of their fragments came in time, or for lack of room.";
    ip_reasm_timeout, "IpReasmTimeout", "Packets given up because not all of their fragments came in time.";
    ip_reasm_overlaps, "IpExtReasmOverlaps", "Fragments that overlap another one of their packet, which is refused.";
    ip_fragments_dropped, "AcklineIpFragmentsDropped", "Fragments dropped: malformed, overlapping others, too many, or for lack of memory.";
    ip_out_requests, "IpOutRequests", "IP packets sent; a super-packet counts once.";
    icmp_in_msgs, "IcmpInMsgs", "ICMP messages received, malformed ones included.";
    icmp_in_errors, "IcmpInErrors", "ICMP messages dropped: malformed, or errors about no connection.";
    icmp_in_echos, "IcmpInEchos", "Echo requests received.";
    icmp_out_echo_reps, "IcmpOutEchoReps", "Echo replies sent.";
    icmp_echo_drops, "AcklineIcmpEchoDrops", "Echo requests not answered: switched off, too long, too many, or too many replies wait.";
    icmp_out_dest_unreachs, "IcmpOutDestUnreachs", "Destination unreachable messages sent: ports and protocols that nobody serves.";
    icmp_out_parm_probs, "IcmpOutParmProbs", "Parameter problem messages sent: IPv6 next headers that are not known.";
    icmp_out_time_excds, "IcmpOutTimeExcds", "Time exceeded messages sent: fragments whose packet was not complete in time.";
    icmp_out_rate_limit_global, "IcmpOutRateLimitGlobal", "ICMP errors not sent because of the rate limit.";
    icmp_errors_dropped, "AcklineIcmpErrorsDropped", "ICMP errors not sent because too many wait for the device.";
    udp_in_datagrams, "UdpInDatagrams", "UDP datagrams that the application has received.";
    udp_no_ports, "UdpNoPorts", "UDP datagrams dropped because no socket has their port.";
    udp_in_errors, "UdpInErrors", "UDP datagrams dropped as malformed, for a wrong checksum, or for lack of room or memory.";
    udp_out_datagrams, "UdpOutDatagrams", "UDP datagrams sent.";
    udp_rcvbuf_errors, "UdpRcvbufErrors", "UDP datagrams dropped because the queue of their socket was full.";
    udp_sndbuf_errors, "UdpSndbufErrors", "UDP datagrams not sent yet because too many of their socket wait for the device.";
    udp_in_csum_errors, "UdpInCsumErrors", "UDP datagrams dropped for a wrong checksum.";
    udp_mem_errors, "UdpMemErrors", "UDP datagrams dropped, or not sent, because the memory budget was used up.";
    udp_curr_flows, "AcklineUdpCurrFlows", "UDP flows that the application has, or has not accepted yet.";
    udp_flows_begun, "AcklineUdpFlowsBegun", "UDP flows begun by a datagram of a four-tuple that was new.";
    udp_flows_idle, "AcklineUdpFlowsIdle", "UDP flows ended because nothing passed for too long.";
    udp_flows_evicted, "AcklineUdpFlowsEvicted", "UDP flows without an answer, each the one silent for longest, that made room for another.";
    udp_flows_refused, "AcklineUdpFlowsRefused", "UDP datagrams dropped because there were too many flows for another one.";
    packets_taken, "AcklinePacketsTaken", "Packets that are neither TCP nor UDP and that the program has taken.";
    packets_dropped, "AcklinePacketsDropped", "Packets for the program dropped because too many waited, or for lack of memory.";
    packets_sent, "AcklinePacketsSent", "Packets sent that the program has made itself.";
    tcp_active_opens, "TcpActiveOpens", "Connections opened by this side.";
    tcp_passive_opens, "TcpPassiveOpens", "Connections accepted from LISTEN, once the SYN-ACK is acknowledged, or with the SYN by fast open.";
    tcp_attempt_fails, "TcpAttemptFails", "Connections that ended in SYN-SENT or SYN-RECEIVED.";
    tcp_estab_resets, "TcpEstabResets", "Connections that went from ESTABLISHED or CLOSE-WAIT straight to CLOSED: reset by either side, or timed out.";
    tcp_curr_estab, "TcpCurrEstab", "Connections in ESTABLISHED or CLOSE-WAIT.";
    tcp_in_segs, "TcpInSegs", "TCP segments received, those in error included, counted as wire segments.";
    tcp_out_segs, "TcpOutSegs", "TCP segments sent with new data or control, counted as wire segments.";
    tcp_retrans_segs, "TcpRetransSegs", "TCP segments retransmitted, counted as wire segments.";
    tcp_in_errs, "TcpInErrs", "TCP segments dropped as malformed or for a wrong checksum.";
    tcp_in_csum_errors, "TcpInCsumErrors", "TCP segments dropped for a wrong checksum.";
    tcp_out_rsts, "TcpOutRsts", "RSTs sent.";
    tcp_rst_limited, "AcklineTcpRstLimited", "RSTs not sent because of the rate limit.";
    listen_overflows, "TcpExtListenOverflows", "SYNs, and ACKs of SYN-ACKs, dropped because a listener's backlog was full.";
    listen_drops, "TcpExtListenDrops", "SYNs, and ACKs of SYN-ACKs, dropped for any reason.";
    tcp_req_q_full_drop, "TcpExtTCPReqQFullDrop", "SYNs dropped because there were too many half-open connections, and those of the same source had their share.";
    tcp_req_q_full_do_cookies, "TcpExtTCPReqQFullDoCookies", "SYNs answered with a cookie because there were too many half-open connections.";
    syncookies_sent, "TcpExtSyncookiesSent", "SYN cookies sent.";
    syncookies_recv, "TcpExtSyncookiesRecv", "ACKs of a valid SYN cookie.";
    syncookies_failed, "TcpExtSyncookiesFailed", "ACKs that came while SYN cookies could be valid, and acknowledged none.";
    half_open_evicted, "AcklineHalfOpenEvicted", "Half-open connections, each the oldest one, that made room for another.";
    tcp_defer_accept_drop, "TcpExtTCPDeferAcceptDrop", "ACKs of SYN-ACKs that completed no handshake because their listener waits for data.";
    embryonic_rsts, "TcpExtEmbryonicRsts", "Half-open connections that an RST or a new SYN of the peer ended.";
    curr_held_syns, "AcklineCurrHeldSyns", "SYNs held for the application's answer.";
    held_syns, "AcklineHeldSyns", "SYNs that were held for the application's answer.";
    held_syn_repeats, "AcklineHeldSynRepeats", "Repetitions of held SYNs, which got no answer.";
    held_syns_refused, "AcklineHeldSynsRefused", "Held SYNs that the application refused.";
    held_syns_released, "AcklineHeldSynsReleased", "Held SYNs that were answered as those of a listener that holds none.";
    held_syns_cancelled, "AcklineHeldSynsCancelled", "Held SYNs that an RST or a new SYN of the peer ended.";
    held_syns_expired, "AcklineHeldSynsExpired", "Held SYNs refused because the application had not answered in time.";
    held_syns_evicted, "AcklineHeldSynsEvicted", "Held SYNs dropped for lack of memory.";
    held_syns_full, "AcklineHeldSynsFull", "SYNs dropped because too many were held, in all, of their listener or of their source.";
    port_probes, "AcklinePortProbes", "Ports tried for connections that named none.";
    ports_exhausted, "AcklinePortsExhausted", "Connects refused because no port was free among those tried.";
    connections_refused, "AcklineConnectionsRefused", "SYNs, ACKs of SYN-ACKs and connects refused because the endpoint is full.";
    tcp_syn_retrans, "TcpExtTCPSynRetrans", "SYNs and SYN-ACKs retransmitted.";
    tcp_fast_open_active, "TcpExtTCPFastOpenActive", "Connections opened by this side whose SYN carried data, all of which the SYN-ACK acknowledged.";
    tcp_fast_open_active_fail, "TcpExtTCPFastOpenActiveFail", "Connections opened by this side whose SYN carried data that had to be sent again.";
    tcp_fast_open_passive, "TcpExtTCPFastOpenPassive", "Connections accepted with the SYN, because it brought a valid fast open cookie.";
    tcp_fast_open_passive_fail, "TcpExtTCPFastOpenPassiveFail", "SYNs whose fast open cookie was not valid.";
    tcp_fast_open_passive_alt_key, "TcpExtTCPFastOpenPassiveAltKey", "Of the connections accepted with the SYN, those whose cookie was made with the previous key.";
    tcp_fast_open_listen_overflow, "TcpExtTCPFastOpenListenOverflow", "SYNs with a valid fast open cookie that only began a handshake, because too many were pending.";
    tcp_fast_open_cookie_reqd, "TcpExtTCPFastOpenCookieReqd", "SYNs that requested a fast open cookie.";
    tcp_fast_open_blackhole, "TcpExtTCPFastOpenBlackhole", "Times that a server was connected to without fast open for a while, because SYNs with it had been dropped.";
    tcp_fast_open_replaced, "AcklineTcpFastOpenReplaced", "Fast open cookies forgotten because others needed the place.";
    delayed_acks, "TcpExtDelayedACKs", "ACKs sent by a policy's timer.";
    ack_hold_duplicates, "AcklineAckHoldDuplicates", "Duplicate data while an ACK was held: the hold was too long, or the ACK lost.";
    ack_hold_truncated, "AcklineAckHoldTruncated", "ACKs that the core sent although the policy held them.";
    ack_obligations_waived, "AcklineAckObligationsWaived", "Soft ACK obligations that a policy waived.";
    tcp_hp_hits, "TcpExtTCPHPHits", "Packets with data taken by the fast path; a super-packet counts once.";
    tcp_pure_acks, "TcpExtTCPPureAcks", "Pure ACKs received.";
    tcp_sack_recovery, "TcpExtTCPSackRecovery", "Recoveries begun from SACK information.";
    tcp_reno_recovery, "TcpExtTCPRenoRecovery", "Recoveries begun from duplicate ACKs without SACK.";
    tcp_sack_recovery_fail, "TcpExtTCPSackRecoveryFail", "Timeouts in a recovery with SACK.";
    tcp_reno_recovery_fail, "TcpExtTCPRenoRecoveryFail", "Timeouts in a recovery without SACK.";
    tcp_fast_retrans, "TcpExtTCPFastRetrans", "Segments retransmitted in fast recovery.";
    tcp_slow_start_retrans, "TcpExtTCPSlowStartRetrans", "Segments retransmitted after a timeout, without those that the timer itself sends.";
    segments_merged, "AcklineSegmentsMerged", "Segments taken together with the one before them, because the driver handed them over in one batch.";
    tcp_auto_corking, "TcpExtTCPAutoCorking", "Times that a small segment waited for more from the application.";
    tcp_timeouts, "TcpExtTCPTimeouts", "Retransmission timeouts, those of SYN and SYN-ACK included.";
    tcp_spurious_rtos, "TcpExtTCPSpuriousRTOs", "Retransmission timeouts found to be spurious.";
    tcp_stale_acks, "AcklineTcpStaleAcks", "ACKs that a response to a timeout took for none of the evidence that it waits for.";
    tcp_loss_probes, "TcpExtTCPLossProbes", "Tail loss probes sent.";
    tcp_loss_probe_recovery, "TcpExtTCPLossProbeRecovery", "Losses that a tail loss probe repaired.";
    tcp_lost_retransmit, "TcpExtTCPLostRetransmit", "Retransmissions found lost.";
    tcp_sack_reorder, "AcklineTcpSackReorder", "Connections whose path was first seen to reorder by SACK or ACK.";
    tcp_ts_reorder, "AcklineTcpTsReorder", "Connections whose path was first seen to reorder by timestamps.";
    tcp_delivered_ce, "TcpExtTCPDeliveredCE", "Segments delivered whose ACK said ECE, where ECN is in use.";
    tcp_ecn_reductions, "AcklineTcpEcnReductions", "Windows reduced because of ECE.";
    acc_ecn_agreed, "AcklineAccEcnAgreed", "Connections that use accurate ECN.";
    acc_ecn_safe_readings, "AcklineAccEcnSafeReadings", "ACKs of so many segments that ACE may have wrapped, and was taken to have.";
    acc_ecn_options_sent, "AcklineAccEcnOptionsSent", "Options of accurate ECN sent.";
    acc_ecn_options_omitted, "AcklineAccEcnOptionsOmitted", "Options of accurate ECN left out, because there was no room beside SACK blocks or data.";
    acc_ecn_option_failed, "AcklineAccEcnOptionFailed", "Times that options of accurate ECN seemed to be why segments are lost, or arrived with impossible counters.";
    acc_ecn_mangled, "AcklineAccEcnMangled", "Connections that stopped to set ECT, because the path or the peer changes what ECN says.";
    acc_ecn_ace_zero, "AcklineAccEcnAceZero", "Connections whose ACE was cleared on the way, so that it tells nothing.";
    tcp_ce_turns_merged, "AcklineTcpCETurnsMerged", "Runs of marked or unmarked segments not told apart: too many changes waited for an ACK.";
    tcp_dsack_old_sent, "TcpExtTCPDSACKOldSent", "DSACKs sent for data below RCV.NXT.";
    tcp_dsack_ofo_sent, "TcpExtTCPDSACKOfoSent", "DSACKs sent for data beyond RCV.NXT.";
    tcp_dsack_recv, "TcpExtTCPDSACKRecv", "DSACKs received for data that was acknowledged.";
    tcp_dsack_ofo_recv, "TcpExtTCPDSACKOfoRecv", "DSACKs received for data that was not acknowledged yet.";
    tcp_sack_reneging, "TcpExtTCPSACKReneging", "Times that the peer was found to have dropped SACKed data.";
    tcp_sack_discard, "TcpExtTCPSACKDiscard", "SACK blocks ignored as impossible.";
    tcp_full_undo, "TcpExtTCPFullUndo", "Fast recoveries undone when all that was outstanding was acknowledged.";
    tcp_partial_undo, "TcpExtTCPPartialUndo", "Fast recoveries undone before all that was outstanding was acknowledged.";
    tcp_dsack_undo, "TcpExtTCPDSACKUndo", "Fast recoveries undone because every retransmission was reported as a duplicate.";
    tcp_loss_undo, "TcpExtTCPLossUndo", "Timeouts undone.";
    tcp_ofo_queue, "TcpExtTCPOFOQueue", "Segments received out of order that found room.";
    tcp_ofo_merge, "TcpExtTCPOFOMerge", "Out-of-order segments of which all waits already, and ranges that wait already of which a segment repeats all.";
    tcp_ofo_drop, "TcpExtTCPOFODrop", "Out-of-order segments dropped: too many ranges, or no room.";
    tcp_zero_window_drop, "TcpExtTCPZeroWindowDrop", "In-order data dropped because the receive window was closed.";
    tcp_cut_to_window, "AcklineTcpCutToWindow", "Segments whose data past the receive window was cut off.";
    tcp_challenge_ack, "TcpExtTCPChallengeACK", "Challenge ACKs sent.";
    tcp_ack_skipped_challenge, "TcpExtTCPACKSkippedChallenge", "Challenge ACKs not sent because of the rate limits.";
    tcp_ack_skipped_syn_recv, "TcpExtTCPACKSkippedSynRecv", "SYN-ACKs not sent again, and ACKs not sent, in SYN-RECEIVED because of the rate limits.";
    tcp_ack_skipped_paws, "TcpExtTCPACKSkippedPAWS", "ACKs of segments dropped by PAWS not sent because of the rate limit.";
    tcp_ack_skipped_seq, "TcpExtTCPACKSkippedSeq", "ACKs of segments outside the window not sent because of the rate limit.";
    tcp_ack_skipped_fin_wait2, "TcpExtTCPACKSkippedFinWait2", "ACKs not sent because of the rate limits by orphans in FIN-WAIT-2.";
    tcp_ack_skipped_time_wait, "TcpExtTCPACKSkippedTimeWait", "ACKs not sent because of the rate limits in TIME-WAIT.";
    tcp_syn_challenge, "TcpExtTCPSYNChallenge", "SYNs received on synchronised connections.";
    tcp_paws_estab, "TcpExtPAWSEstab", "Segments dropped by PAWS in any state but SYN-SENT.";
    tcp_paws_active, "TcpExtPAWSActive", "SYN-ACKs dropped because of their timestamp.";
    tcp_no_timestamp, "AcklineTcpNoTimestamp", "Segments dropped because they lack the timestamp that was agreed on.";
    tcp_no_ack, "AcklineTcpNoAck", "Segments dropped because they lack the ACK that every later segment has.";
    tcp_ack_unacceptable, "AcklineTcpAckUnacceptable", "ACKs outside the acceptable range (RFC 5961, section 5).";
    tcp_out_of_window, "AcklineTcpOutOfWindow", "Segments dropped as outside the window.";
    tcp_rst_unacceptable, "AcklineTcpRstUnacceptable", "RSTs dropped as not at RCV.NXT (RFC 5961, section 3).";
    tcp_tw, "TcpExtTW", "Connections that entered TIME-WAIT, for more than 4 s.";
    tcp_tw_killed, "TcpExtTWKilled", "Connections that entered TIME-WAIT, for 4 s or less.";
    tcp_time_wait_overflow, "TcpExtTCPTimeWaitOverflow", "Connections that left TIME-WAIT early, or did not begin it, because its table was full.";
    tcp_tw_recycled, "TcpExtTWRecycled", "TIME-WAIT connections whose addresses and ports this side used again (RFC 6191).";
    tcp_tw_reopened, "AcklineTcpTwReopened", "TIME-WAIT connections reused by a newer SYN of the peer (RFC 6191).";
    tcp_tw_rst_ignored, "AcklineTcpTwRstIgnored", "RSTs ignored in TIME-WAIT (RFC 1337).";
    tcp_abort_on_timeout, "TcpExtTCPAbortOnTimeout", "Connections aborted by a timeout.";
    tcp_abort_on_memory, "TcpExtTCPAbortOnMemory", "Connections reset because there were too many orphans, or too little memory.";
    tcp_orphan_timeouts, "AcklineTcpOrphanTimeouts", "Of the connections aborted by a timeout, orphans without progress.";
    tcp_curr_orphans, "AcklineTcpCurrOrphans", "Orphans: connections released by the application that still have something to deliver, or wait for the peer's FIN.";
    curr_memory, "AcklineCurrMemory", "Bytes of memory held for connections and tables.";
    tcp_memory_pressures, "TcpExtTCPMemoryPressures", "Times that memory came under pressure.";
    tcp_memory_pressures_chrono, "TcpExtTCPMemoryPressuresChrono", "Milliseconds that it was under pressure, added when pressure ends.";
    memory_refusals, "AcklineMemoryRefusals", "SYNs and connects refused because the memory budget had no room for another connection.";
    prune_called, "TcpExtPruneCalled", "Times that memory was short and something had to go.";
    ofo_pruned, "TcpExtOfoPruned", "Connections whose out-of-order data was dropped for lack of memory, although a SACK had reported it.";
    tcp_rcv_collapsed, "TcpExtTCPRcvCollapsed", "Receive buffers moved to smaller memory under pressure.";
    tcp_rcv_q_drop, "TcpExtTCPRcvQDrop", "In-order segments dropped, as a whole or in part, for lack of memory.";
    tcp_memory_evictions, "AcklineTcpMemoryEvictions", "Connections reset for lack of memory, orphans not included.";
    tcp_abort_on_close, "TcpExtTCPAbortOnClose", "Connections reset because they were dropped with unread data.";
    tcp_abort_on_data, "TcpExtTCPAbortOnData", "Connections reset because data came after the application had closed.";
    tcp_keep_alive, "TcpExtTCPKeepAlive", "Keep-alive probes sent.";
    tcp_win_probe, "TcpExtTCPWinProbe", "Window probes sent.";
    tcp_to_zero_window_adv, "TcpExtTCPToZeroWindowAdv", "Times that the advertised window fell to zero.";
    tcp_from_zero_window_adv, "TcpExtTCPFromZeroWindowAdv", "Times that the advertised window rose from zero.";
    tcp_peer_zero_window, "AcklineTcpPeerZeroWindow", "Times that a peer's window fell to zero.";
    tcp_urgent, "AcklineTcpUrgent", "Segments with URG.";
    tcp_min_snd_mss, "AcklineTcpMinSndMss", "Connections whose peer announced a smaller MSS than the least that is accepted.";
    tcp_mtu_reduced, "AcklineTcpMtuReduced", "Segment sizes lowered, because of ICMP or of a black hole.";
    tcp_mtu_black_holes, "AcklineTcpMtuBlackHoles", "Of these, lowered because larger packets vanished without ICMP.";
    tcp_mtu_fragmented, "AcklineTcpMtuFragmented", "Of these, paths so narrow that their routers must fragment segments.";
    tcp_mtup_success, "TcpExtTCPMTUPSuccess", "Probes of the path MTU that have arrived.";
    tcp_mtup_fail, "TcpExtTCPMTUPFail", "Probes of the path MTU that alone were lost.";
    tcp_path_mtu_reused, "AcklineTcpPathMtuReused", "Connections that began with the path MTU that an earlier one to the same host had found.";
    tcp_path_mtu_replaced, "AcklineTcpPathMtuReplaced", "Path MTUs forgotten before their time because others needed the place.";
    tcp_mtu_refused, "AcklineTcpMtuRefused", "Packet Too Big messages ignored: they quote no packet larger than the MTU that they name.";
    tcp_mtu_refuted, "AcklineTcpMtuRefuted", "Packet Too Big messages that an ACK has shown to be wrong.";
    tcp_mtu_raised, "AcklineTcpMtuRaised", "Segment sizes raised to what the device and the peer permit: some time after they were lowered, or because the device's MTU has become larger.";
    tcp_mtu_followed, "AcklineTcpMtuFollowed", "Segment sizes lowered because the device's MTU has become smaller.";
    mtu_changes, "AcklineMtuChanges", "Times that the device's MTU has changed.";
    out_of_window_icmps, "TcpExtOutOfWindowIcmps", "ICMP errors ignored because they name no outstanding data (RFC 5927).";
    tcp_unmatched, "AcklineTcpUnmatched", "TCP segments of no connection that got no answer.";
    tx_refused, "AcklineTxRefused", "Packets that the device refused when they were offered.";
    egress_dropped, "AcklineEgressDropped", "ACKs with their own number, RSTs and ICMP messages that found the egress scheduler's queue full.";
    egress_late, "AcklineEgressLate", "Wake-ups for the egress scheduler that came later than it had asked for.";
    egress_overruled, "AcklineEgressOverruled", "Answers of the egress scheduler that could not be true: it had nothing although packets were queued, or named one that was not. The oldest left instead.";
    egress_marked, "AcklineEgressMarked", "Packets that the egress scheduler marked with CE; super-packets count once.";
    egress_lost, "AcklineEgressLost", "Packets that the egress scheduler dropped to signal congestion.";
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

#[cfg(test)]
mod tests {
    use super::{Counters, Description};
    use std::fs;
    use std::io::Write;
    use std::string::String;
    use std::vec::Vec;

    /// The counters of the kernel that runs this, by the names of `nstat`. `None` if there is no
    /// such kernel.
    fn of_the_kernel() -> Option<Vec<String>> {
        let read = |name| fs::read_to_string(name).ok();
        let text = [read("/proc/net/snmp")?, read("/proc/net/netstat")?].concat();
        // Two lines a group: names, then values.
        let names = text.lines().step_by(2).filter_map(|line| line.split_once(':'));
        Some(
            names
                .flat_map(|(group, names)| names.split_whitespace().map(move |name| [group, name].concat()))
                .collect(),
        )
    }

    #[test]
    fn names_without_our_prefix_are_the_kernels() {
        let Some(kernel) = of_the_kernel() else {
            // Not `eprintln!`, which the harness captures.
            let skipped =
                "SKIPPED: counters::tests::names_without_our_prefix_are_the_kernels: no /proc/net/snmp";
            let _ = writeln!(std::io::stderr(), "{skipped}");
            return;
        };
        let counters = Counters::new();
        let foreign = counters.iter().map(|(name, _)| name).filter(|name| !name.starts_with("Ackline"));
        let unknown: Vec<_> = foreign.filter(|name| !kernel.iter().any(|it| it == name)).collect();
        assert!(unknown.is_empty(), "Linux has no {unknown:?}: what it does not count is named Ackline...");
    }

    /// `TcpExtTCPPureAcks` is `tcp_pure_acks`, `TcpExtListenDrops` is `listen_drops`.
    #[test]
    fn fields_are_named_as_the_counters() {
        for Description { field, name, .. } in Counters::DESCRIPTIONS {
            let bare =
                ["TcpExt", "Ackline"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
            let bare = bare.replacen("IpExt", "Ip", 1).to_ascii_lowercase();
            let field = field.replace('_', "");
            assert!(field == bare || field.strip_prefix("tcp") == Some(&bare), "{field} holds {name}");
        }
    }
}
