use super::{CONN, ConfigKey, HOST, find, set, unknown};
use crate::config::{ConnConfig, EndpointConfig};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt::Debug;

/// The names of a list of fields, which a pattern without `..` proves to be all.
macro_rules! fields {
    ($type:ident { $($field:ident),+ $(,)? } of $config:expr) => {{
        let $type { $($field: _),+ } = $config;
        [$(stringify!($field)),+]
    }};
}

#[test]
fn every_field_of_a_connection_has_a_key() {
    let config = ConnConfig::default();
    let fields = fields!(ConnConfig {
        policies,
        mss,
        send_buffer,
        min_send_buffer,
        notsent_lowat,
        recv_buffer,
        initial_recv_window,
        max_out_of_order_ranges,
        nagle,
        sack,
        dsack,
        timestamps,
        require_timestamps,
        window_scale,
        limited_transmit,
        loss,
        tlp,
        prr,
        undo,
        initial_window,
        decrease_from,
        cwnd_cap,
        initial_rto,
        min_rto,
        rto_floor,
        max_rto,
        max_undecided_rtos,
        fast_open,
        fast_open_cookies,
        syn_retries,
        syn_ack_retries,
        defer_accept,
        user_timeout,
        keep_alive,
        time_wait,
        fin_wait_2,
        ack_hold_limit,
        restart_after_idle,
        window_phases,
        cork,
        min_snd_mss,
        path_mtu_probing,
        base_mss,
        mtu_probe_floor,
        path_mtu_expiry,
        dscp,
        ttl,
        ecn,
        accecn_option,
        l4s,
        ecn_control,
    } of config);
    let keys: Vec<&str> = CONN.iter().map(|key| key.name).collect();
    assert_eq!(keys, fields[1..], "all but the policies, whose names a registry resolves");
}

#[test]
fn every_field_of_a_host_has_a_key() {
    let config = EndpointConfig::default();
    let fields = fields!(EndpointConfig {
        addresses,
        any_address,
        mtu,
        max_super_packet,
        tx_checksum,
        default_ttl,
        ephemeral_ports,
        max_port_probes,
        max_connections,
        max_half_open,
        half_open_per_source,
        max_held_syns,
        held_syns_per_source,
        held_syn_timeout,
        syn_cookies,
        max_orphans,
        orphan_timeout,
        max_time_wait,
        time_wait_reuse,
        max_memory,
        memory_low,
        memory_pressure,
        max_path_entries,
        fast_open_queue,
        fast_open_key_lifetime,
        max_fast_open_entries,
        fast_open_blackhole_timeout,
        challenge_acks_per_second,
        resets_per_second,
        answer_ping,
        pings_per_second,
        ping_backlog,
        max_fragment_memory,
        max_fragments,
        fragment_timeout,
        reset_unknown,
        refuse_datagrams,
        icmp_errors_per_second,
        udp_recv_buffer,
        udp_send_buffer,
        packet_buffer,
        max_udp_flows,
        udp_flow_timeout,
        udp_dns_timeout,
        autocorking,
        granularity,
        departure_tick,
        probe_margin,
        pricing,
        max_on_wire,
    } of config);
    let keys: Vec<&str> = HOST.iter().map(|key| key.name).collect();
    assert_eq!(keys, fields);
}

#[test]
fn a_key_means_one_thing() {
    let conn = CONN.iter().flat_map(|key| [&[key.name], key.aliases].concat());
    let host = HOST.iter().flat_map(|key| [&[key.name], key.aliases].concat());
    let mut names: BTreeSet<&str> = ["cc", "ack", "rto", "sched"].into();
    for name in conn.chain(host) {
        assert!(names.insert(name), "{name} stands twice");
    }
}

/// What a key gives, it takes; the two ends of its range too, and nothing outside of it.
fn check<C: Clone + Debug>(table: &'static [ConfigKey<C>], default: &C) {
    for key in table {
        assert!(!key.summary.is_empty(), "{} has no summary", key.name);
        let mut config = default.clone();
        let text = key.get(default);
        if !text.is_empty() {
            key.set(&mut config, &text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(format!("{config:?}"), format!("{default:?}"), "{}={text}", key.name);
        }
        let range = key.range();
        let numbers_and_words = range.strip_suffix(" bytes").unwrap_or(&range).split('|');
        let is_grammar = range.contains(['[', ':', '-']);
        for end in numbers_and_words.flat_map(|part| part.trim_end_matches(" bytes").split("..")) {
            if !is_grammar {
                key.set(&mut config, end).unwrap_or_else(|error| panic!("{range}: {error}"));
                assert_eq!(key.get(&config), end, "{}", key.name);
            }
        }
        let before = format!("{config:?}");
        for wrong in ["", "-1", "nonsense", "99999999999999999999", "1e3", "0x10", "5parsecs"] {
            let error = key.set(&mut config, wrong).expect_err(key.name).to_string();
            assert!(error.contains(key.name) || error.contains(wrong), "{error}");
        }
        assert_eq!(format!("{config:?}"), before, "{} was changed by an error", key.name);
    }
}

#[test]
fn what_a_key_gives_it_takes() {
    check(CONN, &ConnConfig::default());
    check(HOST, &EndpointConfig::default());
}

#[test]
fn values_are_set() {
    let mut config = ConnConfig::default();
    for (key, value, shown) in [
        ("iw", "4", "4"),
        ("send_buffer", "64k", "64k"),
        ("mss", "auto", "auto"),
        ("mss", "1400", "1400"),
        ("user_timeout", "never", "never"),
        ("user_timeout", "2m", "120s"),
        ("time_wait", "0", "0ms"),
        ("keep_alive", "2m:interval=10s,count=3", "120s:interval=10s,count=3"),
        ("keep_alive", "30s", "30s:interval=75s,count=9"),
        ("nagle", "sunos:half=ge", "sunos:test=unsent,half=ge"),
        ("sack", "no", "off"),
        ("ecn", "dctcp", "dctcp"),
    ] {
        set(CONN, &mut config, key, value).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(find(CONN, key).unwrap().get(&config), shown, "{key}={value}");
    }
    let mut host = EndpointConfig::default();
    for (key, value) in [
        ("addresses", "10.0.0.2+fd00::2"),
        ("ephemeral_ports", "1024-2047"),
        ("pricing", "paper:ack=40"),
        ("pricing", "wire:overhead=38"),
    ] {
        set(HOST, &mut host, key, value).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(find(HOST, key).unwrap().get(&host), value);
    }
}

#[test]
fn an_error_says_what_would_be_right() {
    let mut config = ConnConfig::default();
    for (key, value, error) in [
        ("sakc", "on", "unknown option \"sakc\"; did you mean \"sack\"?"),
        ("dscp", "64", "dscp=64 is not possible: dscp must be a whole number from 0 to 63"),
        ("mss", "none", "mss=none is not possible: mss must be a whole number from 1 to 65495, or auto"),
        (
            "min_rto",
            "200",
            "min_rto=200 is not possible: min_rto must be a time from 1ns to 31536000s (units: ns, us, ms, s, m, h, d)",
        ),
        (
            "keep_alive",
            "5",
            "keep_alive=5 is not possible: keep_alive must be off, or a time such as 2m, or 2m:interval=10s,count=3",
        ),
        ("ecn", "on", "ecn=on is not possible: ecn must be one of off, classic, dctcp, accurate"),
        (
            "keep_alive",
            "2m:interva=1s",
            "keep_alive has no parameter \"interva\"; did you mean \"interval\"? (it takes interval, spread, count)",
        ),
    ] {
        assert_eq!(set(CONN, &mut config, key, value).unwrap_err().to_string(), error);
    }
    assert_eq!(unknown("zzz", ["sack"].into_iter()).to_string(), "unknown option \"zzz\"");
}

#[test]
fn settings_that_contradict_each_other_are_found() {
    let mut config = ConnConfig::default();
    assert!(config.check().is_ok());
    set(CONN, &mut config, "max_rto", "100ms").unwrap();
    assert_eq!(config.check().unwrap_err().to_string(), "min_rto=200ms is longer than max_rto=100ms");
}
