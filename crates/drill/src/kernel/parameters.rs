//! Kernel parameters for a script: those of its profile, of its settings (`--ackline`), and of its
//! shell lines.

use crate::script::Script;
use crate::settings::Profile;

/// Challenge ACKs, ICMP and duplicate ACKs are not limited, and nothing is remembered of a peer.
const ALWAYS: &[(&str, &str)] = &[
    ("net.ipv4.tcp_invalid_ratelimit", "0"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.icmp_ratelimit", "0"),
    ("net.ipv4.tcp_fastopen", "3"),
    // The first window is 65,535, and its scale 7.
    ("net.ipv4.tcp_rmem", "4096 540000 6291456"),
];

/// What the scripts that come with Linux begin with.
const LINUX: &[(&str, &str)] = &[
    ("net.ipv4.tcp_rmem", "4096 540000 15728640"),
    ("net.ipv4.tcp_wmem", "4096 262144 4194304"),
    ("net.ipv4.tcp_syn_retries", "5"),
    ("net.ipv4.tcp_synack_retries", "5"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
    ("net.ipv4.tcp_early_retrans", "4"),
    ("net.ipv4.tcp_ecn", "0"),
    ("net.ipv4.tcp_fastopen", "3"),
    ("net.ipv4.tcp_fastopen_key", "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4"),
];

/// The congestion control of new sockets.
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// The congestion control that parameters name.
pub(super) fn congestion_control(parameters: &[(String, String)]) -> Option<&str> {
    parameters.iter().rev().find(|(name, _)| name == CONGESTION_CONTROL).map(|(_, value)| value.as_str())
}

pub(super) type Parameters = Vec<(String, String)>;

/// All parameters of a script, in their order.
///
/// # Errors
/// A setting that Linux does not have.
pub(super) fn of(script: &Script, profile: Profile) -> Result<Parameters, String> {
    let owned = |table: &[(&str, &str)]| -> Parameters {
        table.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let mut all = owned(ALWAYS);
    if profile == Profile::Linux {
        all.extend(owned(LINUX));
    }
    for (name, value) in &script.options {
        if name != "ackline" {
            continue;
        }
        for setting in value.as_deref().unwrap_or_default().split(',') {
            all.extend(setting_of(setting.trim())?);
        }
    }
    for shell in script.init.iter().chain(script.first_shells()) {
        all.extend(shell.kernel_parameters()?);
    }
    Ok(all)
}

/// A setting of the stack as a parameter of the kernel.
fn setting_of(setting: &str) -> Result<Option<(String, String)>, String> {
    let same = |name: &str, value: &str| Ok(Some((format!("net.ipv4.{name}"), value.to_owned())));
    match setting {
        "cc=reno" => same("tcp_congestion_control", "reno"),
        "cc=cubic" => same("tcp_congestion_control", "cubic"),
        "tlp=off" => same("tcp_early_retrans", "0"),
        "loss=dupack" => same("tcp_recovery", "0"),
        "sack=off" => same("tcp_sack", "0"),
        "ts=off" | "timestamps=off" => same("tcp_timestamps", "0"),
        "ecn=off" => same("tcp_ecn", "0"),
        "ecn=classic" => same("tcp_ecn", "1"),
        "restart_after_idle=off" => same("tcp_slow_start_after_idle", "0"),
        "syn_cookies=always" => same("tcp_syncookies", "2"),
        // Linux's rules, without a name.
        "" | "ack=linux-like" | "rto=frto" | "prr=on" => Ok(None),
        _ => Err(format!("Linux has no setting {setting}")),
    }
}

/// Sets parameters of the namespace of this thread.
///
/// # Errors
/// A parameter that this kernel does not have, or a value that it does not take.
pub(super) fn apply(parameters: &[(String, String)]) -> Result<(), String> {
    for (name, value) in parameters {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        // Those of the whole machine stay as they are.
        if !name.starts_with("net.ipv4.") && !name.starts_with("net.ipv6.") {
            continue;
        }
        // Only the first namespace may have any congestion control for all; sockets choose it.
        if name == CONGESTION_CONTROL {
            continue;
        }
        // A kernel may be older than a parameter.
        let may_fail = ALWAYS.iter().chain(LINUX).any(|known| *known == (name.as_str(), value.as_str()));
        if std::fs::write(&path, value).is_err() && !may_fail {
            return Err(format!("this kernel does not take {name}={value}"));
        }
    }
    Ok(())
}
