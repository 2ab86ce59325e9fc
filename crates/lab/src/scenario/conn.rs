//! `conn` tables: the settings of a connection.

use super::reader::{Item, Table};
use crate::error::ScenarioError;
use crate::policies::{DEFAULT_ACK, DEFAULT_CC, DEFAULT_RTO, PolicyTables};
use ackline_cc_algos::ecn_for;
use ackline_tcp_core::config::{Ecn, KeepAlive, LossDetection, RtoFloor};
use ackline_tcp_core::policy::Policies;
use ackline_tcp_core::policy::spec::SpecError;
use ackline_tcp_core::{ConnConfig, Duration};

type Result<T> = std::result::Result<T, ScenarioError>;

/// The keys of a `conn` table, and what they are, for the documentation of the format.
pub const CONN_KEYS: &[(&str, &str)] = &[
    ("cc", "congestion control, such as \"cubic\" or \"cubic:beta=0.8\""),
    ("ack", "ACK policy"),
    ("rto", "response to a retransmission timeout"),
    ("mss", "largest segment in bytes without options"),
    ("send_buffer", "limit of the send buffer in bytes"),
    ("recv_buffer", "limit of the receive buffer in bytes"),
    ("initial_recv_window", "receive window to begin with in bytes, or \"full\""),
    ("max_out_of_order_ranges", "ranges of out-of-order data held"),
    (
        "nagle",
        "\"off\", \"rfc896\", \"minshall\", or \"sunos\": \"sunos:test=unsent|segment,half=gt|ge|off\"",
    ),
    ("sack", "RFC 2018"),
    ("dsack", "RFC 2883"),
    ("timestamps", "RFC 7323"),
    ("window_scale", "RFC 7323"),
    ("limited_transmit", "RFC 3042"),
    ("loss", "how losses are found where SACK is in use: \"rack\" (RFC 8985) or \"dupack\" (RFC 6675)"),
    ("tlp", "tail loss probes (RFC 8985)"),
    ("prr", "proportional rate reduction (RFC 9937)"),
    ("undo", "take back a needless reduction (RFC 3522, RFC 2883)"),
    ("initial_window", "segments"),
    ("cwnd_cap", "bytes"),
    ("initial_rto", "time"),
    ("min_rto", "time"),
    (
        "rto_floor",
        "what min_rto is the floor of: \"variance\" (Linux: RTO = SRTT + max(min_rto, 4 RTTVAR)) or \"sum\" (RFC 6298, 2.4: the RTO itself)",
    ),
    ("max_rto", "time"),
    ("max_undecided_rtos", "timeouts, 0: never"),
    ("syn_retries", "retransmissions"),
    ("user_timeout", "time, or \"never\""),
    ("keep_alive", "idle time, or \"off\""),
    ("time_wait", "time"),
    ("fin_wait_2", "time"),
    ("ack_hold_limit", "time, below 500ms; 500ms itself to repeat measurements of that delay"),
    ("restart_after_idle", "RFC 5681 section 4.1"),
    ("cork", "only full segments"),
    ("path_mtu_expiry", "time, at least 300s: how long a segment size stays that ICMP has lowered"),
    ("dscp", "0 to 63"),
    (
        "ecn",
        "\"off\", \"classic\" (RFC 3168) or \"dctcp\" (RFC 8257); without it what cc is made for: \"dctcp\" for dctcp and ls-aimd-dctcp, \"classic\" for ls-aimd-reno",
    ),
];

/// The defaults of a scenario's connections: those of a modern host.
pub(crate) fn defaults(tables: &PolicyTables) -> std::result::Result<ConnConfig, SpecError> {
    let mut config = ConnConfig::default();
    config.policies =
        Policies { cc: tables.cc(DEFAULT_CC)?, ack: tables.ack(DEFAULT_ACK)?, rto: tables.rto(DEFAULT_RTO)? };
    Ok(config)
}

/// `base` with what the table says.
pub(crate) fn read(item: &Item<'_>, tables: &PolicyTables, base: &ConnConfig) -> Result<ConnConfig> {
    let table = item.table()?;
    let keys: Vec<&str> = CONN_KEYS.iter().map(|(key, _)| *key).collect();
    table.only(&keys)?;
    let mut config = base.clone();
    policies(&table, tables, &mut config.policies)?;
    // A congestion control that lives on marks asks for them, unless the scenario says otherwise.
    if let Some(cc) = table.get("cc")
        && config.ecn == Ecn::Off
    {
        config.ecn = ecn_for(cc.text()?);
    }
    for (key, item) in table.iter() {
        set(&mut config, key, &item)?;
    }
    if config.min_rto > config.max_rto {
        return Err(table.error("min_rto is longer than max_rto"));
    }
    if config.initial_rto > config.max_rto {
        return Err(table.error("initial_rto is longer than max_rto"));
    }
    Ok(config)
}

fn policies(table: &Table<'_>, tables: &PolicyTables, policies: &mut Policies) -> Result<()> {
    if let Some(item) = table.get("cc") {
        policies.cc = item.policy(|spec| tables.cc(spec))?;
    }
    if let Some(item) = table.get("ack") {
        policies.ack = item.policy(|spec| tables.ack(spec))?;
    }
    if let Some(item) = table.get("rto") {
        policies.rto = item.policy(|spec| tables.rto(spec))?;
    }
    Ok(())
}

/// RFC 7323, section 2.3: a window has at most 2^30 bytes.
const MAX_BUFFER: u64 = 1 << 30;

fn set(config: &mut ConnConfig, key: &str, item: &Item<'_>) -> Result<()> {
    let buffer = || item.bytes(1..=MAX_BUFFER).map(|bytes| bytes as u32);
    let word = |word: &str| item.text().is_ok_and(|text| text == word);
    match key {
        "mss" => config.mss = Some(item.integer(1..=65_495)? as u16),
        "send_buffer" => config.send_buffer = buffer()?,
        "recv_buffer" => config.recv_buffer = buffer()?,
        "initial_recv_window" => {
            config.initial_recv_window = if word("full") { None } else { Some(buffer()?) };
        }
        "max_out_of_order_ranges" => {
            config.max_out_of_order_ranges = item.integer(0..=65_535)? as u16;
        }
        "nagle" => config.nagle = item.policy(str::parse)?,
        "sack" => config.sack = item.switch()?,
        "dsack" => config.dsack = item.switch()?,
        "timestamps" => config.timestamps = item.switch()?,
        "window_scale" => config.window_scale = item.switch()?,
        "limited_transmit" => config.limited_transmit = item.switch()?,
        "loss" => {
            config.loss = item.choice(&[("rack", LossDetection::Rack), ("dupack", LossDetection::DupAck)])?;
        }
        "tlp" => config.tlp = item.switch()?,
        "prr" => config.prr = item.switch()?,
        "undo" => config.undo = item.switch()?,
        "initial_window" => config.initial_window = item.integer(1..=65_535)? as u32,
        "cwnd_cap" => config.cwnd_cap = Some(item.bytes(1..=MAX_BUFFER)?),
        "initial_rto" => config.initial_rto = item.some_time()?,
        "min_rto" => config.min_rto = item.some_time()?,
        "rto_floor" => {
            config.rto_floor = item.choice(&[("variance", RtoFloor::Variance), ("sum", RtoFloor::Sum)])?;
        }
        "max_rto" => config.max_rto = item.some_time()?,
        "max_undecided_rtos" => config.max_undecided_rtos = item.integer(0..=1_000)? as u32,
        "syn_retries" => config.syn_retries = item.integer(0..=255)? as u8,
        "user_timeout" => {
            config.user_timeout = if word("never") { None } else { Some(item.some_time()?) };
        }
        "keep_alive" => {
            config.keep_alive = if word("off") {
                None
            } else {
                Some(KeepAlive { idle: item.some_time()?, ..KeepAlive::default() })
            };
        }
        "time_wait" => config.time_wait = item.time()?,
        "fin_wait_2" => config.fin_wait_2 = item.time()?,
        "ack_hold_limit" => {
            let limit = item.some_time()?;
            if limit > Duration::from_millis(500) {
                return Err(
                    item.error("an ACK must not be held for longer than 500ms (RFC 9293, section 3.8.6.3)")
                );
            }
            config.ack_hold_limit = limit;
        }
        "restart_after_idle" => config.restart_after_idle = item.switch()?,
        "cork" => config.cork = item.switch()?,
        "ecn" => {
            config.ecn =
                item.choice(&[("off", Ecn::Off), ("classic", Ecn::Classic), ("dctcp", Ecn::Dctcp)])?;
        }
        "path_mtu_expiry" => {
            config.path_mtu_expiry = item.some_time()?;
            if config.path_mtu_expiry < Duration::from_secs(300) {
                return Err(
                    item.error("a path MTU must not be forgotten within 300s (RFC 1191, section 6.3)")
                );
            }
        }
        "dscp" => config.dscp = item.integer(0..=63)? as u8,
        _ => {}
    }
    Ok(())
}
