//! Settings of an endpoint, a listener and a connection. If an RFC leaves the choice open, the
//! defaults are those of a modern Linux host.

mod nagle;
pub mod options;

pub use crate::published::{HalfRule, NagleTest, SunOs};
pub use nagle::Nagle;

pub use crate::ecn::Ecn;
use crate::policy::Policies;
pub use crate::policy::cc::DecreaseFrom;
use crate::published::paper_price;
use crate::reserve::{Limit, Pool};
use crate::time::Duration;
use crate::wire::TxChecksumMode;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

/// Settings of an endpoint: the host that its connections live on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointConfig {
    /// Addresses that belong to this endpoint. Packets to others are dropped and counted, unless
    /// [`any_address`](Self::any_address) is set.
    pub addresses: Vec<IpAddr>,
    /// Answer for every destination address, like a tunnel endpoint.
    pub any_address: bool,
    /// Largest IP packet that the device carries, in bytes; at least 68. Below 1280 IPv6 is
    /// disabled (RFC 8200, section 5): the endpoint ignores its IPv6 addresses.
    pub mtu: u32,
    /// Largest IP packet that the device segments itself (TSO), headers included, at most 65,535; 0
    /// if it cannot.
    pub max_super_packet: u32,
    /// Whether the stack or the device computes TCP checksums of outgoing packets.
    pub tx_checksum: TxChecksumMode,
    /// Hop limit of outgoing packets.
    pub default_ttl: u8,
    /// Ports for connections that do not ask for one (RFC 6056).
    pub ephemeral_ports: core::ops::RangeInclusive<u16>,
    /// Maximum number of ports tried for a connection that does not ask for one. The next
    /// connection goes on where this one ended, so with many ports taken each costs no more than
    /// this.
    pub max_port_probes: u32,
    /// Maximum number of connections in any state; further SYNs and connects are refused and
    /// counted. Half-open connections and released ones in TIME-WAIT are records, which do not
    /// count.
    pub max_connections: u32,
    /// Maximum number of half-open connections, whose SYN-ACK is not acknowledged yet, each a
    /// record of at most 128 bytes (RFC 4987, section 3.3; Linux: `tcp_max_syn_backlog`). Beyond it
    /// SYNs are answered with cookies; without [`syn_cookies`](Self::syn_cookies) the oldest makes
    /// room, and is counted.
    pub max_half_open: u32,
    /// Half-open connections of one source (an IPv4 address, or an IPv6 prefix of 64 bits) with
    /// which it has its share: while all [`max_half_open`](Self::max_half_open) are in use, no
    /// others make room for more of its SYNs.
    pub half_open_per_source: u32,
    /// Maximum number of SYNs held for the application's answer ([`AcceptConfig::hold_syns`]), each
    /// a record of some 200 bytes. Further ones are dropped and counted, and clients repeat them.
    pub max_held_syns: u32,
    /// SYNs of one source (an IPv4 address, or an IPv6 prefix of 64 bits) beyond which, while more
    /// than half of [`max_held_syns`](Self::max_held_syns) are held, none of its are: one source
    /// can take half of the places, not all.
    pub held_syns_per_source: u32,
    /// How long a SYN is held. Then it is refused with an RST, as if the application had dropped
    /// it. A Linux client waits for an answer for 67 to 131 s (`tcp_syn_retries`).
    pub held_syn_timeout: Duration,
    /// When SYNs are answered with SYN cookies, which take no memory (RFC 4987, section 3.6; Linux:
    /// `tcp_syncookies`).
    pub syn_cookies: SynCookies,
    /// Maximum number of orphans: connections that the application has released and that still have
    /// something to deliver, or wait for the peer's FIN. Beyond it, the one whose last progress is
    /// the longest ago is reset and counted (Linux: `tcp_max_orphans`).
    pub max_orphans: u32,
    /// Time after which an orphan is reset if the peer acknowledges nothing new, even if it answers
    /// probes of its closed window (RFC 9293, section 3.8.6.1, and RFC 6429, section 4, allow it).
    /// FIN-WAIT-2 has a limit of its own, [`ConnConfig::fin_wait_2`]. `None`: never.
    pub orphan_timeout: Option<Duration>,
    /// Maximum number of released connections in TIME-WAIT, each a record of 70 to 76 bytes; 0:
    /// none waits. The one closest to its end makes room for a new one, and is counted. (Linux,
    /// `tcp_max_tw_buckets`: half of what its table of connections has room for, with much memory
    /// as many as here.)
    pub max_time_wait: u32,
    /// A connect may use addresses and ports in TIME-WAIT again after a second if both connections
    /// have timestamps, with which neither side takes an old segment for a new one (RFC 6191).
    /// Without a given port, only if several others are taken.
    pub time_wait_reuse: bool,
    /// Budget of memory in bytes, for connections with their buffers and records, and for the
    /// endpoint's tables; `None`: no limit. (Linux, `tcp_mem`: the highest of its three.)
    pub max_memory: Option<u64>,
    /// Memory in use at or below which pressure ends, in percent of the budget (Linux, `tcp_mem`:
    /// the first).
    pub memory_low: u8,
    /// Memory in use above which it is under pressure, in percent of the budget (Linux, `tcp_mem`:
    /// the second).
    pub memory_pressure: u8,
    /// Maximum number of destinations whose path MTU is remembered for later connections, 32 bytes
    /// each; 0: none. A multiple of four; memory for all is allocated with the first.
    pub max_path_entries: u32,
    /// Maximum number of connections that a SYN with a valid fast open cookie has made and whose
    /// handshake is not complete. Beyond it such SYNs begin an ordinary handshake, and their data
    /// is ignored (RFC 7413, section 5.1; Linux: the value of `TCP_FASTOPEN`).
    pub fast_open_queue: u32,
    /// How long the endpoint makes fast open cookies with one key. Those of the key before are
    /// accepted, too (RFC 7413, section 4.1.2). Not for [keys that the caller
    /// sets](crate::Endpoint::set_fast_open_keys).
    pub fast_open_key_lifetime: Duration,
    /// Maximum number of servers whose fast open cookie is remembered for later connections (RFC
    /// 7413, section 4.1.3.1), 64 bytes each; 0: none, and connects do without fast open. A
    /// multiple of four; memory for all is allocated with the first.
    pub max_fast_open_entries: u32,
    /// How long connects to a server do without fast open after two SYNs with it, one after the
    /// other, were dropped, and ones without were not (RFC 7413, section 4.1.3). It doubles each
    /// time that the next one is dropped as well, up to 64 times (Linux:
    /// `tcp_fastopen_blackhole_timeout_sec`, for all servers together).
    pub fast_open_blackhole_timeout: Duration,
    /// Challenge ACKs per second, over all connections (RFC 5961, section 10).
    pub challenge_acks_per_second: u32,
    /// RSTs per second for segments that belong to no connection. Each second draws a limit between
    /// half of this and all of it: with a known one, a stranger could count how many others got
    /// (CVE-2016-5696, CVE-2020-25705).
    pub resets_per_second: u32,
    /// Answer ICMP echo requests.
    pub answer_ping: bool,
    /// Echo replies per second.
    pub pings_per_second: u32,
    /// Maximum number of echo replies waiting for the device.
    pub ping_backlog: usize,
    /// Bytes that fragments of incomplete packets may take; beyond it the packet that began first
    /// is given up (Linux: `ipfrag_high_thresh`). 0: fragments are dropped.
    pub max_fragment_memory: u32,
    /// Maximum number of fragments of a packet; with more it is refused.
    pub max_fragments: u16,
    /// How long the fragments of a packet wait for the rest, from the first to arrive on. RFC 8200,
    /// section 4.5, says 60 s; Linux and the default use 30 s (`ipfrag_time`).
    pub fragment_timeout: Duration,
    /// Answer segments to ports that nobody listens on with RST (RFC 9293, section 3.10.7.1).
    pub reset_unknown: bool,
    /// Answer UDP datagrams and unsupported protocols with ICMP errors (RFC 1122, section 3.2.2.1;
    /// RFC 4443, sections 3.1 and 3.4). Switch this off, as well as
    /// [`reset_unknown`](Self::reset_unknown), if another stack answers for the same addresses.
    pub refuse_datagrams: bool,
    /// ICMP errors per second. Each second draws a limit between half of this and all of it
    /// (CVE-2020-25705).
    pub icmp_errors_per_second: u32,
    /// Bytes that may wait in a UDP socket, or flow, for the application; a datagram counts with
    /// some 100 bytes more. A datagram always fits an empty queue (Linux: `net.core.rmem_default`).
    pub udp_recv_buffer: u32,
    /// Bytes of a UDP socket, or flow, that may wait for the device, counted the same way (Linux:
    /// `net.core.wmem_default`).
    pub udp_send_buffer: u32,
    /// Bytes of packets that may wait for a program that [takes
    /// them](crate::endpoint::RawPackets::take). One always fits an empty queue.
    pub packet_buffer: u32,
    /// Maximum number of UDP flows ([`Datagrams::take_flows`](crate::endpoint::Datagrams::take_flows)),
    /// those included that the application has not accepted. Beyond it a new one takes the place of
    /// the flow that has been silent for longest among those that the application has not answered;
    /// if there is none, it is refused (Linux: `nf_conntrack_max`).
    pub max_udp_flows: u32,
    /// A UDP flow ends if nothing has passed in either direction for this long. RFC 4787, REQ-5,
    /// has NATs wait for two minutes at least unless the port is well known, and recommends five,
    /// the default; Linux waits for 30 s, and for 120 s after an answer
    /// (`nf_conntrack_udp_timeout`).
    pub udp_flow_timeout: Duration,
    /// The same for flows to port 53, which are a question and an answer (RFC 4787, section 4.3).
    pub udp_dns_timeout: Duration,
    /// A driver may hold back small segments of new data while applications run
    /// ([`TxBudget::corking`](crate::TxBudget::corking); Linux: `tcp_autocorking`).
    pub autocorking: bool,
    /// Granularity of the driver's clock and timers: RFC 6298's G.
    pub granularity: Duration,
    /// Departures closer together than this are treated as one: a paced departure sends as many
    /// segments as the pace allows in this time, at least one.
    pub departure_tick: Duration,
    /// Added to the timeout of tail loss probes, which is two round trips otherwise (RFC 8985,
    /// section 7.2): how much later than usual a peer on a busy machine may acknowledge. Linux adds
    /// two ticks of its clock.
    pub probe_margin: Duration,
    /// Size of a packet on the link, as links and schedulers count it.
    pub pricing: Pricing,
    /// For drivers that report departures: maximum number of packets taken but not yet reported, at
    /// least 1. Beyond that the oldest counts as departed, and a counter is raised.
    pub max_on_wire: usize,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            addresses: vec![],
            any_address: false,
            mtu: 1500,
            max_super_packet: 0,
            tx_checksum: TxChecksumMode::Complete,
            default_ttl: 64,
            ephemeral_ports: 32_768..=60_999,
            max_port_probes: 1_024,
            max_connections: 1 << 20,
            max_half_open: 1 << 14,
            half_open_per_source: 256,
            max_held_syns: 1 << 14,
            held_syns_per_source: 256,
            held_syn_timeout: Duration::from_secs(60),
            syn_cookies: SynCookies::default(),
            max_orphans: 1 << 16,
            orphan_timeout: Some(Duration::from_secs(60)),
            max_time_wait: 1 << 18,
            time_wait_reuse: true,
            max_memory: Some(1 << 30),
            memory_low: 50,
            memory_pressure: 66,
            max_path_entries: 4_096,
            fast_open_queue: 256,
            fast_open_key_lifetime: Duration::from_secs(86_400),
            max_fast_open_entries: 1_024,
            fast_open_blackhole_timeout: Duration::from_secs(3_600),
            challenge_acks_per_second: 1_000,
            resets_per_second: 1_000,
            answer_ping: true,
            pings_per_second: 1_000,
            ping_backlog: 64,
            max_fragment_memory: 4 << 20,
            max_fragments: 128,
            fragment_timeout: Duration::from_secs(30),
            reset_unknown: true,
            refuse_datagrams: true,
            icmp_errors_per_second: 1_000,
            udp_recv_buffer: 212_992,
            udp_send_buffer: 212_992,
            packet_buffer: 212_992,
            max_udp_flows: 4_096,
            udp_flow_timeout: Duration::from_secs(300),
            udp_dns_timeout: Duration::from_secs(10),
            autocorking: true,
            granularity: Duration::from_nanos(1),
            departure_tick: Duration::from_nanos(1),
            probe_margin: Duration::ZERO,
            pricing: Pricing::default(),
            max_on_wire: 1_024,
        }
    }
}

impl EndpointConfig {
    /// The settings of one of `shards` endpoints of a host whose settings these are, for what they
    /// do not have [together](crate::endpoint::Host). The tables of paths and of fast open cookies
    /// are divided, rounded up, because each endpoint learns its own; and what one source may have
    /// ([`half_open_per_source`](Self::half_open_per_source),
    /// [`held_syns_per_source`](Self::held_syns_per_source)), rounded down but at least one: to
    /// count together, all would have to write to one table for every SYN, and the hash spreads the
    /// connections of a source evenly anyway. What [the first
    /// one](crate::steering::Steering::shard_for) alone has (UDP, pings, fragments) is not divided.
    #[must_use]
    pub fn share(&self, shards: usize) -> Self {
        let shards = shards.max(1) as u64;
        let of_source = |limit: u32| (u64::from(limit) / shards).max(limit.min(1).into()) as u32;
        // A table has sets of four.
        let table = |entries: u32| (u64::from(entries).div_ceil(shards) as u32).next_multiple_of(4);
        Self {
            half_open_per_source: of_source(self.half_open_per_source),
            held_syns_per_source: of_source(self.held_syns_per_source),
            max_path_entries: table(self.max_path_entries),
            max_fast_open_entries: table(self.max_fast_open_entries),
            ..self.clone()
        }
    }
}

/// Size of a packet on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pricing {
    /// IP bytes plus a fixed overhead per wire packet (Ethernet: 38 with preamble and gap).
    Wire {
        /// Bytes added to each packet.
        overhead: u16,
    },
    /// For papers that measure windows and packets in the same unit: a data packet counts its
    /// payload, so that one of L bytes takes L bytes of the link and L bytes of the window;
    /// everything else has a fixed size.
    Paper {
        /// Size of an ACK in bytes.
        ack: u16,
    },
}

impl Default for Pricing {
    fn default() -> Self {
        Self::Wire { overhead: 0 }
    }
}

impl Pricing {
    /// The size of a packet of `ip_bytes` (of a super-packet: the sum over its wire packets) with
    /// `payload` bytes of the stream, sent as `segments` wire packets.
    #[must_use]
    pub fn price(self, ip_bytes: u32, payload: u32, segments: u32) -> u32 {
        match self {
            Self::Wire { overhead } => ip_bytes.saturating_add(u32::from(overhead).saturating_mul(segments)),
            Self::Paper { ack } => paper_price(payload, ack),
        }
    }
}

/// The smallest buffer limit of a running connection, in bytes.
pub const MIN_BUFFER: u32 = 2_048;

/// The largest buffer limit of a connection, in bytes: the largest window that TCP can offer (RFC
/// 7323, section 2.3).
pub const MAX_BUFFER: u32 = 1 << 30;

/// Settings of a connection. Shared by all connections made from it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnConfig {
    /// Makers of congestion control, ACK policy and RTO response.
    pub policies: Policies,
    /// Limit of the send buffer in bytes; the buffer grows on demand.
    pub send_buffer: u32,
    /// Bytes that may be written and not acknowledged even if the congestion window is small: more
    /// than this only up to twice the window, and at most [`send_buffer`](Self::send_buffer).
    /// `None`: always all of that. The default is the largest super-packet; Linux starts with about
    /// 45 or 85 kB (`tcp_init_buffer_space`).
    pub min_send_buffer: Option<u32>,
    /// Limit of bytes written and not sent (`TCP_NOTSENT_LOWAT` of Linux): at or above it, writes
    /// take nothing. `None`: no limit.
    pub notsent_lowat: Option<u32>,
    /// Limit of the receive buffer in bytes, at most 2^30 (RFC 7323, section 2.3); the buffer grows
    /// on demand.
    pub recv_buffer: u32,
    /// Initial receive window in bytes; auto-tuning raises it towards `recv_buffer` on demand.
    /// `None`: all of `recv_buffer` at once, without auto-tuning.
    pub initial_recv_window: Option<u32>,
    /// Maximum number of out-of-order ranges held; further data is dropped and counted.
    pub max_out_of_order_ranges: u16,
    /// Nagle's algorithm.
    pub nagle: Nagle,
    /// Offer and use selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Report duplicate data by DSACK (RFC 2883).
    pub dsack: bool,
    /// Offer and use timestamps (RFC 7323).
    pub timestamps: bool,
    /// Drop segments that lack the timestamp which both sides agreed to send with each one. RFC
    /// 7323, section 3.2, says that a host SHOULD; Linux and the default take them, because some
    /// middleboxes and hosts leave it out.
    pub require_timestamps: bool,
    /// Offer and use window scaling (RFC 7323).
    pub window_scale: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// How losses are detected from ACKs if SACK is in use.
    pub loss: LossDetection,
    /// Tail loss probes (RFC 8985, section 7), if SACK is in use.
    pub tlp: bool,
    /// Proportional Rate Reduction in fast recovery (RFC 9937); without it only the window bounds
    /// pipe (RFC 6675).
    pub prr: bool,
    /// Undo a reduction if timestamps (RFC 3522) or DSACK show that nothing was lost.
    pub undo: bool,
    /// Maximum segment size to announce and to send, in bytes without options (RFC 6691); `None`:
    /// derived from the MTU.
    pub mss: Option<u16>,
    /// Initial window in segments (RFC 6928: 10, within its byte limits).
    pub initial_window: u32,
    /// What congestion control reduces if the window does not limit the flow.
    pub decrease_from: DecreaseFrom,
    /// Limit of the congestion window in bytes; `None`: unlimited.
    pub cwnd_cap: Option<u64>,
    /// RTO before the first sample (RFC 6298, 2.1: 1 s).
    pub initial_rto: Duration,
    /// Floor of the RTO, applied as [`rto_floor`](Self::rto_floor) says. RFC 6298 (2.4) says 1 s
    /// SHOULD; Linux and the default use 200 ms.
    pub min_rto: Duration,
    /// What [`min_rto`](Self::min_rto) is the floor of.
    pub rto_floor: RtoFloor,
    /// Largest RTO, with back-off; at least 60 s (RFC 6298, 2.5).
    pub max_rto: Duration,
    /// Consecutive timeouts without a verdict after which the conventional response takes over; 0:
    /// never.
    pub max_undecided_rtos: u32,
    /// Data in the SYN (RFC 7413; Linux: `tcp_fastopen`).
    pub fast_open: FastOpen,
    /// Fast open with cookies, which show a server that the client's address is not forged. Without
    /// them connects send data with every SYN, without an option, and listeners accept what a SYN
    /// brings from anybody: only for networks in which nobody can forge addresses, since an answer
    /// may be many times as long as the request (RFC 7413, section 5.2; Linux:
    /// `TCP_FASTOPEN_NO_COOKIE`).
    pub fast_open_cookies: bool,
    /// SYN retransmissions before giving up (Linux: 6).
    pub syn_retries: u8,
    /// SYN-ACK retransmissions before giving up (Linux: 5). After a simultaneous open it is
    /// [`syn_retries`](Self::syn_retries).
    pub syn_ack_retries: u8,
    /// A passive open does not become a connection with the ACK of its SYN-ACK, but with the first
    /// data: until then it stays a half-open connection, a record of some 100 bytes. If none has
    /// come after this long, the next SYN-ACK asks for it once more, and a bare ACK of that is
    /// enough (Linux: `TCP_DEFER_ACCEPT`). A FIN counts as data. `None`: the ACK is enough.
    pub defer_accept: Option<Duration>,
    /// Time without progress on unacknowledged data after which the connection is aborted (RFC
    /// 9293, section 3.8.3: R2, at least 100 s). Local only: the option of RFC 5482 is neither sent
    /// nor read. `None`: never.
    pub user_timeout: Option<Duration>,
    /// Keep-alive (RFC 9293, section 3.8.4); `None`: off.
    pub keep_alive: Option<KeepAlive>,
    /// How long TIME-WAIT lasts; longer, if the application keeps the connection meanwhile and then
    /// releases it. RFC 9293 says 2 MSL = 4 minutes; Linux and the default use 60 s.
    pub time_wait: Duration,
    /// Duration of FIN-WAIT-2 after the application has released the connection (Linux: 60 s).
    pub fin_wait_2: Duration,
    /// Longest time that an ACK is held, whatever the policy asks for; below 500 ms (RFC 9293,
    /// section 3.8.6.3; 500 ms itself only to repeat measurements of that delay). The default is
    /// below a peer's usual 200 ms minimum RTO.
    pub ack_hold_limit: Duration,
    /// Restart from the initial window after an idle RTO (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
    /// Instead of that restart, keep an unused window for up to five minutes (RFC 7661). Only
    /// controls made of a [`WindowGrowth`](crate::policy::window::WindowGrowth) do.
    pub window_phases: bool,
    /// Send only full segments until the send buffer fills, the cork is removed, or data has waited
    /// for 200 ms with nothing outstanding (`TCP_CORK` of Linux).
    pub cork: bool,
    /// Smallest MSS of a peer that is accepted, in bytes with TCP options, as far as the MTU
    /// permits: a smaller one is raised to it. Tiny segments multiply headers and records
    /// (CVE-2019-11479; Linux, `tcp_min_snd_mss`).
    pub min_snd_mss: u16,
    /// What is done if packets of the segment size do not arrive and no ICMP message says so (RFC
    /// 4821).
    pub path_mtu_probing: PathMtuProbing,
    /// Payload bytes of a segment that is sent in place of larger ones which do not arrive (Linux,
    /// `tcp_base_mss`); over IPv6 at least what a packet of 1280 bytes carries.
    pub base_mss: u16,
    /// Payload bytes down to which the segment size is halved if that does not arrive either (RFC
    /// 4821, section 7.7; Linux, `tcp_mtu_probe_floor`, where it is 48). By default what an IPv4
    /// packet of 552 bytes carries, as for ICMP: a path that drops so small a packet drops all, and
    /// a long outage is no reason for tiny ones.
    pub mtu_probe_floor: u16,
    /// How long a reduced segment size is kept before the full size is tried again. RFC 1191,
    /// section 6.3: at least 5 minutes, and 10 by default.
    pub path_mtu_expiry: Duration,
    /// DSCP of outgoing packets, 0 to 63.
    pub dscp: u8,
    /// Hop limit of outgoing packets, 1 to 255; `None`: the
    /// [endpoint's](EndpointConfig::default_ttl).
    pub ttl: Option<u8>,
    /// The kind of explicit congestion notification to request and to accept.
    pub ecn: Ecn,
    /// When the option of accurate ECN is sent (RFC 9768, section 3.2.3): 0 never, 1 after changes
    /// and on marks, 2 on every ACK if one of its counters has grown, 3 as 2, although options seem
    /// to be why segments are lost.
    pub accecn_option: u8,
    /// With accurate ECN, data leaves with ECT(1) whatever the congestion control asks for: for
    /// scalable controls other than Prague in networks of one's own (RFC 9331, section 4.1).
    pub l4s: bool,
    /// Control packets and retransmissions are ECN-capable as data is (ECN++,
    /// draft-ietf-tcpm-generalized-ecn): FIN, RST, probes, and with accurate ECN also SYN, SYN-ACK
    /// and, with SACK, pure ACKs. Not so what an expired timer sends, in case the path drops
    /// packets that are.
    pub ecn_control: bool,
}

impl Default for ConnConfig {
    fn default() -> Self {
        Self {
            policies: Policies::default(),
            send_buffer: 4 << 20,
            min_send_buffer: Some(64 << 10),
            notsent_lowat: None,
            recv_buffer: 6 << 20,
            initial_recv_window: Some(65_535),
            max_out_of_order_ranges: 512,
            nagle: Nagle::Minshall,
            sack: true,
            dsack: true,
            timestamps: true,
            require_timestamps: false,
            window_scale: true,
            limited_transmit: true,
            loss: LossDetection::Rack,
            tlp: true,
            prr: true,
            undo: true,
            mss: None,
            initial_window: 10,
            decrease_from: DecreaseFrom::default(),
            cwnd_cap: None,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            rto_floor: RtoFloor::default(),
            max_rto: Duration::from_secs(120),
            max_undecided_rtos: 3,
            fast_open: FastOpen::default(),
            fast_open_cookies: true,
            syn_retries: 6,
            syn_ack_retries: 5,
            defer_accept: None,
            user_timeout: Some(Duration::from_secs(15 * 60)),
            keep_alive: None,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            ack_hold_limit: Duration::from_millis(180),
            restart_after_idle: true,
            window_phases: false,
            cork: false,
            min_snd_mss: 48,
            path_mtu_probing: PathMtuProbing::default(),
            base_mss: 1_024,
            mtu_probe_floor: 500,
            path_mtu_expiry: Duration::from_secs(600),
            dscp: 0,
            ttl: None,
            ecn: Ecn::Off,
            accecn_option: 2,
            l4s: false,
            ecn_control: false,
        }
    }
}

/// How losses are detected from ACKs. Without SACK always by duplicate ACKs (RFC 6582).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LossDetection {
    /// By time: a segment is lost if one sent a reordering window after it has been delivered (RFC
    /// 8985).
    #[default]
    Rack,
    /// By count: three duplicate ACKs, or as much data SACKed above it (RFC 6675).
    DupAck,
}

/// TCP Fast Open (RFC 7413): data in the SYN, which saves a round trip.
///
/// **A SYN can be repeated.** If it arrives again after its connection is gone, the server's
/// application gets the data once more. So only data that may be processed twice should be sent
/// this way (section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FastOpen {
    /// Nothing of it.
    #[default]
    Off,
    /// A connect asks the server for a cookie; if there is one from an earlier connection, the SYN
    /// carries what has been written.
    Client,
    /// A listener gives out cookies, and accepts a connection with its data when a SYN brings one
    /// back.
    Server,
    /// Both.
    Both,
}

impl FastOpen {
    /// Connects use it.
    #[must_use]
    pub const fn connects(self) -> bool {
        matches!(self, Self::Client | Self::Both)
    }

    /// Listeners use it.
    #[must_use]
    pub const fn serves(self) -> bool {
        matches!(self, Self::Server | Self::Both)
    }
}

/// Packetization layer path MTU discovery (RFC 4821), as `tcp_mtu_probing` of Linux sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PathMtuProbing {
    /// Only ICMP messages lower the segment size.
    Off,
    /// Black holes are detected: the segment size is lowered if repeated timeouts end with a
    /// smaller segment. Then probes find how much the path carries, every
    /// [`path_mtu_expiry`](ConnConfig::path_mtu_expiry) anew.
    #[default]
    BlackHole,
    /// The same, and segments begin with [`base_mss`](ConnConfig::base_mss): probes find what the
    /// path carries.
    Always,
}

/// What the floor of the retransmission timeout applies to.
///
/// On a path with a constant RTT of 300 ms, RTTVAR decays to nothing. With a floor of 200 ms on the
/// sum, a delayed ACK then always comes too late; with the floor on the variance it has 200 ms on
/// every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RtoFloor {
    /// RTO = SRTT + max(G, 4 RTTVAR, `min_rto`): Linux's rule.
    #[default]
    Variance,
    /// RTO = max(SRTT + max(G, 4 RTTVAR), `min_rto`): the rule of RFC 6298 (2.3 and 2.4), and of
    /// BSD.
    Sum,
}

/// Keep-alive settings, with the names and defaults of the socket options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe; RFC 9293 requires a default of at least 2 hours.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Each probe but the first leaves later by up to this, by another part of it each time: probes
    /// at equal distances may all meet the same phase of a path that comes and goes. Linux has no
    /// such spread.
    pub spread: Duration,
    /// Unanswered probes before the connection is aborted; 0: it is not, and after 255 of them
    /// there are no more.
    pub count: u8,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(7_200),
            interval: Duration::from_secs(75),
            spread: Duration::ZERO,
            count: 9,
        }
    }
}

/// When SYNs are answered with SYN cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SynCookies {
    /// Never.
    Off,
    /// While [`max_half_open`](EndpointConfig::max_half_open) connections are half-open.
    #[default]
    WhenFull,
    /// Always, except where a SYN follows a connection in TIME-WAIT: no cookie can be above its
    /// numbers.
    Always,
}

/// Addresses and ports of a listener. Port 0 picks a free ephemeral port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListenOn {
    /// One address and port.
    Address(SocketAddr),
    /// A port on every address of the endpoint.
    Port(u16),
    /// Every port of every address, for tunnels. More specific listeners take precedence.
    Any,
}

/// Settings of a listener.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AcceptConfig {
    /// Settings of the accepted connections.
    pub conn: Arc<ConnConfig>,
    /// Maximum number of established connections, and of those accepted with their SYN by fast
    /// open, that wait for the application to accept them with
    /// [`Endpoint::conn`](crate::Endpoint::conn). Beyond it SYNs are dropped and counted, and
    /// clients retry. So are ACKs that would complete a handshake: the client answers the next
    /// SYN-ACK, or repeats its data. Half-open connections have a limit of their own,
    /// [`EndpointConfig::max_half_open`].
    pub backlog: u32,
    /// Nothing is answered before the application has decided: each SYN is held for it
    /// ([`IncomingSyns::next`](crate::endpoint::IncomingSyns::next)). Such a listener does without fast open;
    /// SYN cookies are for SYNs that it [lets go](crate::endpoint::IncomingSyns::release).
    pub hold_syns: bool,
    /// Maximum number of SYNs of this listener that are held, beside
    /// [`EndpointConfig::max_held_syns`] for all.
    pub max_held_syns: u32,
    /// The same limits, if the listeners of several endpoints have them together.
    of_host: Option<ListenerPools>,
}

/// The limits of a listener that is on several endpoints.
#[derive(Clone, Debug)]
struct ListenerPools {
    backlog: Arc<Pool>,
    held_syns: Arc<Pool>,
}

impl Default for AcceptConfig {
    fn default() -> Self {
        Self {
            conn: Arc::new(ConnConfig::default()),
            backlog: 1024,
            hold_syns: false,
            max_held_syns: 1 << 13,
            of_host: None,
        }
    }
}

impl AcceptConfig {
    /// The settings of a listener that is on each of `shards` endpoints of a host, which get a
    /// clone each: then the limits hold for all of them together. Who changes one later changes
    /// what this endpoint may have, within what all were given.
    #[must_use]
    pub fn share(&self, shards: usize) -> Self {
        let pool = |limit| Arc::new(Pool::new(limit, shards));
        let pools = ListenerPools { backlog: pool(self.backlog), held_syns: pool(self.max_held_syns) };
        Self { of_host: Some(pools), ..self.clone() }
    }

    /// What the listeners may have of [`backlog`](Self::backlog) together.
    pub(crate) fn backlog_of_host(&self) -> Limit {
        let pools = self.of_host.as_ref();
        pools.map_or(Limit::own(u32::MAX), |pools| Limit::of_host(pools.backlog.clone()))
    }

    /// What they may have of [`max_held_syns`](Self::max_held_syns) together.
    pub(crate) fn held_syns_of_host(&self) -> Limit {
        let pools = self.of_host.as_ref();
        pools.map_or(Limit::own(u32::MAX), |pools| Limit::of_host(pools.held_syns.clone()))
    }

    /// The defaults, with the given settings for accepted connections.
    #[must_use]
    pub fn new(conn: Arc<ConnConfig>) -> Self {
        Self { conn, ..Self::default() }
    }
}

/// The addresses of a connection to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// The peer.
    pub remote: SocketAddr,
    /// Local address; `None`: the endpoint's first address of the peer's family.
    pub local_address: Option<IpAddr>,
    /// Local port; `None`: an ephemeral port.
    pub local_port: Option<u16>,
}

impl Target {
    /// To `remote`, from an address and port chosen by the endpoint.
    #[must_use]
    pub const fn new(remote: SocketAddr) -> Self {
        Self { remote, local_address: None, local_port: None }
    }
}

impl From<SocketAddr> for Target {
    fn from(remote: SocketAddr) -> Self {
        Self::new(remote)
    }
}
