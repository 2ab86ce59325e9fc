//! A host: an endpoint with settings that the script chooses, and what its application remembers.

use super::START;
use ackline::Registry;
use ackline::core::config::LossDetection;
use ackline::core::policy::spec::PolicyKind;
use ackline::core::policy::{EgressScheduler, Policies};
use ackline::core::wire::TxChecksumMode;
use ackline::core::{
    AcceptConfig, ConnConfig, ConnId, Endpoint, EndpointConfig, Instant, ListenOn, ListenerId,
};
use std::net::IpAddr;
use std::sync::Arc;

/// The port that both hosts listen on.
pub(super) const PORT: u16 = 80;
/// Connections that a host's application opens.
pub(super) const OPENED: usize = 12;
/// Connections that a host may have.
pub(super) const MAX_CONNECTIONS: u32 = 16;

pub(super) struct Host {
    pub(super) endpoint: Endpoint,
    pub(super) address: IpAddr,
    pub(super) listener: Option<ListenerId>,
    /// What the application opened or accepted and has not let go of.
    pub(super) conns: Vec<ConnId>,
    /// Those whose end it was told.
    pub(super) closed: Vec<ConnId>,
    /// Octets.
    pub(super) largest_packet: usize,
    /// Of the send and the receive buffer, octets.
    pub(super) buffer_limits: (usize, usize),
    pub(super) conn_config: Arc<ConnConfig>,
}

impl Host {
    /// The host `index` with the settings in `octets`.
    pub(super) fn new(index: usize, v6: bool, octets: [u8; 4]) -> Self {
        let number = index as u8 + 1;
        let address: IpAddr = match v6 {
            true => [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number].into(),
            false => [10, 0, 0, number].into(),
        };
        let [link, options, buffers, policies] = octets;
        let mut config = EndpointConfig::default();
        config.addresses = vec![address];
        config.max_connections = MAX_CONNECTIONS;
        config.mtu = [1_500, 9_000, 1_280, 1_492][usize::from(link % 4)];
        config.max_super_packet = if link & 4 == 0 { 0 } else { 65_535 };
        config.tx_checksum = match link >> 3 & 3 {
            0 => TxChecksumMode::Partial,
            1 => TxChecksumMode::Omit,
            _ => TxChecksumMode::Complete,
        };
        let largest_packet = config.mtu.max(config.max_super_packet) as usize;

        let mut conn = ConnConfig::default();
        conn.policies = chosen_policies(policies);
        conn.sack = options & 1 == 0;
        conn.timestamps = options & 2 == 0;
        conn.window_scale = options & 4 == 0;
        conn.dsack = options & 8 == 0;
        conn.limited_transmit = options & 16 == 0;
        conn.restart_after_idle = options & 32 == 0;
        // Few bits are left: the recovery of RFC 6675 comes with some of the others.
        if options & 0b1010_0000 == 0b1000_0000 {
            conn.loss = LossDetection::DupAck;
        }
        conn.tlp = options & 0b1001_0000 != 0b1001_0000;
        conn.prr = options & 0b1100_0000 != 0b1000_0000;
        conn.undo = options & 0b1000_0100 != 0b1000_0100;
        conn.user_timeout = None;
        conn.max_out_of_order_ranges = if options & 64 == 0 { 512 } else { 2 };
        conn.send_buffer = [1 << 20, 60_000, 3_000, 65_536][usize::from(buffers % 4)];
        conn.recv_buffer = [1 << 20, 60_000, 3_000, 200_000][usize::from(buffers >> 2 & 3)];
        conn.initial_recv_window = if buffers & 16 == 0 { Some(65_535.min(conn.recv_buffer)) } else { None };
        let buffer_limits = (conn.send_buffer as usize, conn.recv_buffer as usize);

        let mut host = Self {
            endpoint: Endpoint::new(config, chosen_scheduler(policies), [number; 32]),
            address,
            listener: None,
            conns: Vec::new(),
            closed: Vec::new(),
            largest_packet,
            buffer_limits,
            conn_config: Arc::new(conn),
        };
        host.listen(START);
        host
    }

    /// Listens at [`PORT`].
    pub(super) fn listen(&mut self, now: Instant) {
        let mut accept = AcceptConfig::new(self.conn_config.clone());
        accept.backlog = 8;
        self.listener = Some(self.endpoint.listen(now, ListenOn::Port(PORT), accept).expect("a free port"));
    }
}

/// Policies from the tables of all names.
pub(super) fn chosen_policies(octet: u8) -> Policies {
    let cc = Registry::default()
        .list(PolicyKind::Cc)
        .into_iter()
        .cycle()
        .nth(octet.into())
        .expect("there are some");
    let ack = Registry::default().list(PolicyKind::Ack).into_iter().cycle().nth((octet >> 2).into());
    let rto = Registry::default().list(PolicyKind::Rto).into_iter().cycle().nth((octet >> 4).into());
    let (ack, rto) = (ack.expect("there are some"), rto.expect("there are some"));
    Registry::default().named(cc.name, ack.name, rto.name).expect("names of the tables")
}

/// FIFO, also behind a slow link.
fn chosen_scheduler(octet: u8) -> Box<dyn EgressScheduler> {
    let spec = if octet < 192 { "fifo" } else { "fifo:rate=10mbit,burst=3ms" };
    Registry::default().sched(spec).expect("a name of the tables")()
}
