//! What a script runs with: its option lines, its profile, and the kernel parameters that its
//! shell lines set. No shell runs.

use crate::script::{Position, Script, ScriptError, Shell};
use ackline_registry::Registry;
use ackline_tcp_core::config::{Ecn, KeepAlive, LossDetection, PathMtuProbing, SynCookies};
use ackline_tcp_core::policy::NewCongestionControl;
use ackline_tcp_core::{ConnConfig, Duration, EndpointConfig};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Stack whose defaults a script assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Those of Linux with the kernel parameters of its own scripts.
    Linux,
    /// Those of this project, which follow the RFCs.
    Rfc,
}

impl Profile {
    /// The congestion control that the profile's host calls `name`.
    pub(crate) fn cc(self, registry: &Registry, name: &str) -> Result<Arc<NewCongestionControl>, String> {
        let spec = match (self, name) {
            (Self::Linux, "cubic") => "cubic:hystart=linux",
            _ => name,
        };
        registry.cc(spec).map_err(|error| error.to_string())
    }
}

/// In what an answer may differ from the script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Relaxations {
    /// TCP options are compared as a set, without padding and the value of the window scale.
    pub options: bool,
    /// The window is not compared.
    pub window: bool,
    /// PSH is not compared.
    pub psh: bool,
    /// A pure ACK that is not in the script is skipped, and one that is may come up to 510 ms late:
    /// RFC 1122, section 4.2.3.2, lets a receiver choose.
    pub ack: bool,
}

/// How scripts are run, beside what they say themselves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The profile; `None`: Linux for scripts that run `defaults.sh`, otherwise the RFCs.
    pub profile: Option<Profile>,
    /// In what answers may differ.
    pub relax: Relaxations,
    /// Words that are replaced: name and value.
    pub defines: Vec<(String, String)>,
    /// Settings of the stack for all scripts, as `-o` of the command takes them; a script's own
    /// come after.
    pub stack: Vec<String>,
    /// The version of IP for scripts that do not say it; with IPv6 the MTU is then 1520, so that
    /// segments are as large as over IPv4.
    pub ip_version: Option<IpVersion>,
    /// The policies that can be named.
    pub registry: Arc<Registry>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: None,
            relax: Relaxations::default(),
            defines: vec![],
            stack: vec![],
            ip_version: None,
            registry: Arc::new(Registry::default()),
        }
    }
}

/// The version of IP that carries the dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// The settings of one run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) profile: Profile,
    pub(crate) host: EndpointConfig,
    pub(crate) conn: ConnConfig,
    /// The ECN that is asked for, if it is another than the one that is accepted (`tcp_ecn` of 2, 4
    /// and 5).
    pub(crate) asked_ecn: Option<Ecn>,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) tolerance_usecs: u64,
    pub(crate) tolerance_percent: f64,
    pub(crate) strict_segments: bool,
    pub(crate) ts_tick_usecs: u64,
    /// `tcp_fastopen`: 1, connects; 2, listeners.
    pub(crate) fast_open: i64,
    pub(crate) fast_open_keys: Option<([u8; 16], Option<[u8; 16]>)>,
}

const DEFAULT_PORT: u16 = 8080;
/// With an IPv6 header, which is 20 bytes longer, it leaves 1460 bytes for data.
const MTU_OF_SAME_MSS: u32 = 1_520;

impl Settings {
    /// The settings of `script`.
    pub(crate) fn of(script: &Script, options: &Options) -> Result<Self, ScriptError> {
        let start = Position { line: 1, column: 1 };
        let unsupported = |problem: String| ScriptError::unsupported(start, problem);
        let init = script.init.as_ref().map_or("", |init| init.text.as_str());
        let named = script.options.iter().any(|(name, value)| {
            name == "init_scripts" && value.as_ref().is_some_and(|value| value.contains("defaults.sh"))
        });
        let is_linux = named || init.contains("defaults.sh");
        let profile = options.profile.unwrap_or(if is_linux { Profile::Linux } else { Profile::Rfc });
        let mut conn = options.registry.conn_config();
        let mut host = EndpointConfig::default();
        if profile == Profile::Linux {
            linux(&mut host, &mut conn);
            conn.policies.cc = profile.cc(&options.registry, "cubic").map_err(&unsupported)?;
        }
        let v4 = (Ipv4Addr::new(192, 168, 0, 1).into(), Ipv4Addr::new(192, 0, 2, 1).into());
        let mut settings = Self {
            profile,
            host,
            conn,
            asked_ecn: None,
            local: SocketAddr::new(v4.0, DEFAULT_PORT),
            remote: SocketAddr::new(v4.1, DEFAULT_PORT),
            tolerance_usecs: 4_000,
            tolerance_percent: 12.5,
            strict_segments: false,
            ts_tick_usecs: 0,
            fast_open: 3,
            fast_open_keys: None,
        };
        for text in &options.stack {
            settings.stack(&options.registry, text).map_err(&unsupported)?;
        }
        let mut version = None;
        let mut addresses: (Option<IpAddr>, Option<IpAddr>) = (None, None);
        for (name, value) in &script.options {
            let value = value.as_deref().unwrap_or_default();
            let wrong = || ScriptError::new(start, format!("--{name}={value}: no such value"));
            match name.as_str() {
                "ip_version" => {
                    version = match value {
                        "ipv4" | "ipv4-mapped-ipv6" => Some(IpVersion::Ipv4),
                        "ipv6" => Some(IpVersion::Ipv6),
                        _ => return Err(wrong()),
                    };
                }
                "local_ip" => addresses.0 = Some(value.parse().map_err(|_| wrong())?),
                "remote_ip" => addresses.1 = Some(value.parse().map_err(|_| wrong())?),
                "bind_port" => settings.local.set_port(value.parse().map_err(|_| wrong())?),
                "connect_port" => settings.remote.set_port(value.parse().map_err(|_| wrong())?),
                "mtu" => settings.host.mtu = value.parse().map_err(|_| wrong())?,
                "tolerance_usecs" => settings.tolerance_usecs = value.parse().map_err(|_| wrong())?,
                "tolerance_percent" => settings.tolerance_percent = value.parse().map_err(|_| wrong())?,
                "tcp_ts_tick_usecs" => settings.ts_tick_usecs = value.parse().map_err(|_| wrong())?,
                "strict_segments" => settings.strict_segments = true,
                "ackline" => {
                    settings
                        .stack(&options.registry, value)
                        .map_err(|problem| ScriptError::new(start, problem))?;
                }
                "gateway_ip" | "netmask_ip" | "mss" | "init_scripts" | "verbose" | "debug" | "speed"
                | "no_cleanup" | "send_omit_free" | "code_command" | "code_format" | "code_sockopt"
                | "foreground" => {}
                _ => return Err(unsupported(format!("the option --{name}"))),
            }
        }
        let says_mtu = script.options.iter().any(|(name, _)| name == "mtu");
        if version.is_none() && options.ip_version == Some(IpVersion::Ipv6) && !says_mtu {
            settings.host.mtu = MTU_OF_SAME_MSS;
        }
        let version = version.or(options.ip_version).unwrap_or(IpVersion::Ipv4);
        if version == IpVersion::Ipv6 {
            let v6 = |segments: [u16; 8]| IpAddr::V6(Ipv6Addr::from(segments));
            settings.local.set_ip(v6([0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1]));
            settings.remote.set_ip(v6([0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1]));
        }
        let fits = |ip: &IpAddr| ip.is_ipv4() == (version == IpVersion::Ipv4);
        if let Some(ip) = addresses.0.filter(fits) {
            settings.local.set_ip(ip);
        }
        if let Some(ip) = addresses.1.filter(fits) {
            settings.remote.set_ip(ip);
        }
        settings.host.addresses = vec![settings.local.ip()];
        for shell in script.init.iter().chain(&script.cleanup).chain(script.first_shells()) {
            settings.shell(shell, &options.registry)?;
        }
        Ok(settings)
    }

    /// What other hosts than the stack are told.
    pub(crate) fn environment(&self) -> Environment {
        Environment { local: self.local, remote: self.remote, mtu: self.host.mtu, profile: self.profile }
    }

    /// Settings of the stack in text.
    fn stack(&mut self, registry: &Registry, text: &str) -> Result<(), String> {
        let options = registry.options(text).map_err(|error| error.to_string())?;
        self.conn = options.conn(&self.conn).map_err(|error| error.to_string())?;
        self.host = options.host(&self.host).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Takes kernel parameters from the lines for a shell.
    pub(crate) fn shell(&mut self, shell: &Shell, registry: &Registry) -> Result<(), ScriptError> {
        let take = |settings: &mut Self| -> Result<(), String> {
            for (name, value) in shell.kernel_parameters()? {
                settings.kernel_parameter(&name, &value, registry)?;
            }
            Ok(())
        };
        take(self).map_err(|problem| ScriptError::unsupported(shell.place, problem))
    }

    /// A kernel parameter, as `sysctl` names it.
    fn kernel_parameter(&mut self, name: &str, value: &str, registry: &Registry) -> Result<(), String> {
        let key = name.strip_prefix("net.ipv4.").unwrap_or(name);
        if let Some(key) = name.strip_prefix("net.inet.tcp.") {
            return self.freebsd_parameter(key, value, registry);
        }
        let wrong = || format!("the kernel parameter {name}={value}");
        let number = || -> Result<i64, String> {
            let hex = value.strip_prefix("0x");
            hex.map_or_else(|| value.parse().ok(), |hex| i64::from_str_radix(hex, 16).ok()).ok_or_else(wrong)
        };
        let is_on = || number().map(|value| value != 0);
        let small = || u8::try_from(number()?).map_err(|_| wrong());
        let bytes = || u32::try_from(number()?).map_err(|_| wrong());
        let seconds = || Ok::<_, String>(Duration::from_secs(u64::try_from(number()?).map_err(|_| wrong())?));
        let three = || -> Result<(u32, u32), String> {
            let numbers: Option<Vec<u32>> = value.split_whitespace().map(|word| word.parse().ok()).collect();
            match numbers.as_deref() {
                Some([_, default, max]) => Ok((*default, *max)),
                _ => Err(wrong()),
            }
        };
        let (conn, host) = (&mut self.conn, &mut self.host);
        match key {
            "tcp_timestamps" => conn.timestamps = is_on()?,
            "tcp_sack" => conn.sack = is_on()?,
            "tcp_dsack" => conn.dsack = is_on()?,
            "tcp_window_scaling" => conn.window_scale = is_on()?,
            "tcp_ecn" => {
                (conn.ecn, self.asked_ecn) = match number()? {
                    0 => (Ecn::Off, None),
                    1 => (Ecn::Classic, None),
                    2 => (Ecn::Classic, Some(Ecn::Off)),
                    3 => (Ecn::Accurate, None),
                    4 => (Ecn::Accurate, Some(Ecn::Classic)),
                    5 => (Ecn::Accurate, Some(Ecn::Off)),
                    _ => return Err(wrong()),
                };
            }
            "tcp_ecn_option" => conn.accecn_option = small()?.min(3),
            "tcp_wmem" => {
                let (default, max) = three()?;
                (conn.min_send_buffer, conn.send_buffer) = (Some(default), max);
            }
            "tcp_rmem" => {
                let (default, max) = three()?;
                conn.recv_buffer = max;
                // Half of it is for data (`tcp_win_from_space`), and no SYN offers more.
                conn.initial_recv_window = Some((default / 2).min(65_535));
            }
            "tcp_syn_retries" => conn.syn_retries = small()?,
            "tcp_synack_retries" => conn.syn_ack_retries = small()?,
            "tcp_fin_timeout" => conn.fin_wait_2 = seconds()?,
            "tcp_slow_start_after_idle" => conn.restart_after_idle = is_on()?,
            "tcp_congestion_control" => {
                conn.policies.cc = self.profile.cc(registry, value)?;
            }
            "tcp_early_retrans" => conn.tlp = number()? >= 3,
            "tcp_recovery" => {
                conn.loss = if number()? & 1 == 1 { LossDetection::Rack } else { LossDetection::DupAck };
            }
            "tcp_mtu_probing" => {
                conn.path_mtu_probing = match number()? {
                    0 => PathMtuProbing::Off,
                    1 => PathMtuProbing::BlackHole,
                    _ => PathMtuProbing::Always,
                };
            }
            "tcp_base_mss" => conn.base_mss = u16::try_from(number()?).map_err(|_| wrong())?,
            "tcp_min_snd_mss" => conn.min_snd_mss = u16::try_from(number()?).map_err(|_| wrong())?,
            "tcp_notsent_lowat" => {
                conn.notsent_lowat = u32::try_from(number()?).ok().filter(|limit| *limit <= 1 << 30);
            }
            "tcp_keepalive_time" => keep_alive(conn).idle = seconds()?,
            "tcp_keepalive_intvl" => keep_alive(conn).interval = seconds()?,
            "tcp_keepalive_probes" => keep_alive(conn).count = small()?,
            "tcp_rto_min_us" => {
                conn.min_rto = Duration::from_micros(u64::try_from(number()?).map_err(|_| wrong())?);
            }
            "tcp_rto_max_ms" => {
                conn.max_rto = Duration::from_millis(u64::try_from(number()?).map_err(|_| wrong())?);
            }
            "tcp_fastopen" => {
                self.fast_open = number()?;
                // 4: a SYN carries data without a cookie; 0x200: listeners take it so.
                conn.fast_open_cookies = self.fast_open & 0x204 == 0;
            }
            "tcp_fastopen_key" => {
                self.fast_open_keys = Some(fast_open_keys(value).ok_or_else(wrong)?);
            }
            "tcp_syncookies" => {
                host.syn_cookies = match number()? {
                    0 => SynCookies::Off,
                    1 => SynCookies::WhenFull,
                    _ => SynCookies::Always,
                };
            }
            "tcp_max_syn_backlog" => host.max_half_open = bytes()?,
            "tcp_challenge_ack_limit" => {
                host.challenge_acks_per_second = bytes()?.min(1 << 20);
            }
            "tcp_tw_reuse" => host.time_wait_reuse = is_on()?,
            "ip_default_ttl" => host.default_ttl = small()?,
            "icmp_echo_ignore_all" => host.answer_ping = !is_on()?,
            // What these parameters change is not what a segment looks like, or has no counterpart
            // whose value matters.
            "tcp_fack"
            | "tcp_min_tso_segs"
            | "tcp_tso_win_divisor"
            | "tcp_tso_rtt_log"
            | "tcp_no_metrics_save"
            | "tcp_pacing_ss_ratio"
            | "tcp_pacing_ca_ratio"
            | "tcp_limit_output_bytes"
            | "tcp_autocorking"
            | "tcp_invalid_ratelimit"
            | "tcp_moderate_rcvbuf"
            | "tcp_early_demux"
            | "tcp_mem"
            | "tcp_available_congestion_control"
            | "tcp_allowed_congestion_control"
            | "tcp_max_tw_buckets"
            | "tcp_fastopen_blackhole_timeout_sec"
            | "net.core.somaxconn"
            | "net.core.default_qdisc"
            | "net.core.optmem_max"
            | "net.core.wmem_max"
            | "net.core.rmem_max"
            | "kern.timecounter.alloweddeviation" => {}
            "tcp_frto" if is_on()? => {}
            "tcp_syn_linear_timeouts" if number()? == 0 => {}
            "tcp_reordering" if number()? == 3 => {}
            "tcp_adv_win_scale" if number()? == 1 => {}
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

impl Settings {
    /// A parameter of FreeBSD (tcp(4)), by its name behind `net.inet.tcp.`.
    fn freebsd_parameter(&mut self, key: &str, value: &str, registry: &Registry) -> Result<(), String> {
        let wrong = || format!("the kernel parameter net.inet.tcp.{key}={value}");
        let number = || value.parse::<u64>().map_err(|_| wrong());
        let millis = || number().map(Duration::from_millis);
        let conn = &mut self.conn;
        match key {
            "rfc1323" => {
                conn.timestamps = matches!(number()?, 1 | 3);
                conn.window_scale = matches!(number()?, 1 | 2);
            }
            "sack.enable" => conn.sack = number()? != 0,
            "ecn.enable" => {
                self.asked_ecn = (number()? == 2).then_some(Ecn::Off);
                conn.ecn = if number()? == 0 { Ecn::Off } else { Ecn::Classic };
            }
            "cc.algorithm" => {
                let name = if value == "newreno" { "reno" } else { value };
                conn.policies.cc = self.profile.cc(registry, name)?;
            }
            "delayed_ack" => {
                let policy = if number()? == 0 { "immediate" } else { "delayed" };
                conn.policies.ack = registry.ack(policy).map_err(|error| error.to_string())?;
            }
            "initcwnd_segments" => conn.initial_window = u32::try_from(number()?).map_err(|_| wrong())?,
            "rexmit_initial" => conn.initial_rto = millis()?,
            "rexmit_min" => conn.min_rto = millis()?,
            "keepidle" => keep_alive(conn).idle = millis()?,
            "keepintvl" => keep_alive(conn).interval = millis()?,
            "finwait2_timeout" => conn.fin_wait_2 = millis()?,
            "msl" => conn.time_wait = millis()?.saturating_mul(2),
            "syncookies" => {
                self.host.syn_cookies = if number()? == 0 { SynCookies::Off } else { SynCookies::WhenFull };
            }
            "syncookies_only" => {
                if number()? != 0 {
                    self.host.syn_cookies = SynCookies::Always;
                }
            }
            "functions_default"
            | "hostcache.purgenow"
            | "hostcache.enable"
            | "nolocaltimewait"
            | "always_keepalive"
            | "icmp_may_rst"
            | "per_cpu_timers"
            | "fast_finwait2_recycle"
            | "path_mtu_discovery"
            | "rexmit_slop"
            | "recvspace"
            | "sendspace"
            | "sendbuf_auto"
            | "recvbuf_auto" => {}
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

fn keep_alive(conn: &mut ConnConfig) -> &mut KeepAlive {
    conn.keep_alive.get_or_insert_default()
}

/// The kernel parameters of the scripts that come with Linux.
fn linux(host: &mut EndpointConfig, conn: &mut ConnConfig) {
    (conn.min_send_buffer, conn.send_buffer) = (Some(256 << 10), 4 << 20);
    (conn.recv_buffer, conn.initial_recv_window) = (15 << 20, Some(65_535));
    conn.restart_after_idle = false;
    (conn.syn_retries, conn.syn_ack_retries) = (5, 5);
    conn.path_mtu_probing = PathMtuProbing::Off;
    // `TCP_TIMEOUT_MIN`: two ticks of its clock.
    host.probe_margin = Duration::from_millis(2);
    host.challenge_acks_per_second = 1 << 20;
}

/// One key or two, as `tcp_fastopen_key` has them: `a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4,...`.
pub(crate) fn fast_open_keys(text: &str) -> Option<([u8; 16], Option<[u8; 16]>)> {
    let key = |text: &str| -> Option<[u8; 16]> {
        let mut octets = [0; 16];
        let words: Vec<&str> = text.trim().split('-').collect();
        if words.len() != 4 {
            return None;
        }
        for (place, word) in octets.chunks_mut(4).zip(words) {
            // The kernel keeps words of the machine: little endian.
            place.copy_from_slice(&u32::from_str_radix(word, 16).ok()?.to_le_bytes());
        }
        Some(octets)
    };
    match text.split_once(',') {
        Some((current, previous)) => Some((key(current)?, Some(key(previous)?))),
        None => Some((key(text)?, None)),
    }
}

impl Shell {
    /// The kernel parameters that these lines set: names as `sysctl` has them, and values.
    ///
    /// # Errors
    /// A command that does something else.
    pub fn kernel_parameters(&self) -> Result<Vec<(String, String)>, String> {
        let mut all = vec![];
        for words in commands(&self.text) {
            let Some(program) = words.first() else { continue };
            let program = program.rsplit('/').next().unwrap_or_default();
            match program {
                "defaults.sh" | "sleep" | "true" | ":" | "nstat" | "tc" | "sync" | "kldload" => {}
                "ip" if words.get(1).is_some_and(|word| word == "tcp_metrics") => {}
                _ if program.starts_with("sysctl_restore_") => {}
                "sysctl" | "set_sysctls.py" => {
                    for word in words.iter().skip(1).filter(|word| !word.starts_with('-')) {
                        let Some((name, value)) = word.split_once('=') else { continue };
                        let name = name.trim();
                        let name = name.strip_prefix("/proc/sys/").unwrap_or(name).replace('/', ".");
                        all.push((name, value.trim().to_owned()));
                    }
                }
                _ => return Err(format!("the shell command {:?}", words.join(" "))),
            }
        }
        Ok(all)
    }
}

/// The commands of lines for a shell, in words, without redirections.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut all = vec![];
    let (mut words, mut word, mut quote) = (vec![], String::new(), None);
    let mut in_word = false;
    let joined = text.replace("\\\n", " ").replace("&&", ";");
    for c in joined.chars().chain(['\n']) {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.push(c),
            ('"' | '\'', None) => (quote, in_word) = (Some(c), true),
            (c, None) if c.is_whitespace() || c == ';' => {
                if in_word || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                in_word = false;
                if c == '\n' || c == ';' {
                    all.push(std::mem::take(&mut words));
                }
            }
            (c, None) => word.push(c),
        }
    }
    for words in &mut all {
        if let Some(comment) = words.iter().position(|word| word.starts_with('#')) {
            words.truncate(comment);
        }
        let redirection = words.iter().position(|word: &String| word.contains('>'));
        words.truncate(redirection.unwrap_or(words.len()));
    }
    all.retain(|words| !words.is_empty());
    all
}

/// What a script asks of its surroundings, for hosts that are not the stack.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The host's address, with the port that `bind` takes.
    pub local: SocketAddr,
    /// The script's address, with the port that `connect` takes.
    pub remote: SocketAddr,
    /// The MTU between them.
    pub mtu: u32,
    /// Stack whose defaults the script assumes.
    pub profile: Profile,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_lines_are_cut_into_words() {
        let text =
            "./defaults.sh\nsysctl -q net.ipv4.tcp_wmem=\"4096 50000 4194304\" > /dev/null; sleep 1 # wait";
        let expected: Vec<Vec<&str>> = vec![
            vec!["./defaults.sh"],
            vec!["sysctl", "-q", "net.ipv4.tcp_wmem=4096 50000 4194304"],
            vec!["sleep", "1"],
        ];
        assert_eq!(commands(text), expected);
    }

    #[test]
    fn fast_open_keys_are_words_of_the_machine() {
        let (current, previous) = fast_open_keys("a1a1a1a1-b2b2b2b2-c3c3c3c3-00000001").unwrap();
        assert_eq!(current[..4], [0xa1; 4]);
        assert_eq!(current[12..], [1, 0, 0, 0]);
        assert_eq!(previous, None);
        assert_eq!(fast_open_keys("a1a1a1a1-b2b2b2b2"), None);
    }
}
