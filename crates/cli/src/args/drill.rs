//! `ackline drill`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Run packetdrill scripts against the stack, in virtual time
///
/// A script is a dialogue: system calls, packets into the stack, packets expected from it, each at
/// its time. Scripts of Linux and FreeBSD run unchanged where the stack has what they use; a script
/// that needs anything else is unsupported, never passed. No rights and no device are needed, and
/// the result is the same each time.
///
/// A failure is shown in the script's own notation: the line with those before it, what was
/// expected and what came, the last packets, and what the stack concluded from them. Checksums,
/// reserved bits, payloads and echoed timestamps are verified in every script.
///
/// Python between %{ and }% is run by python3; without it such scripts are unsupported. Shell lines
/// are not run: kernel parameters that they set become settings of the stack.
#[derive(Args)]
#[command(after_long_help = DRILL_EXAMPLES)]
pub(crate) struct DrillArgs {
    /// Scripts, and folders with scripts (*.pkt, recursively)
    #[arg(value_name = "FILE|FOLDER", required_unless_present = "record")]
    pub(crate) paths: Vec<PathBuf>,
    /// Print a script of the first connection in a capture instead of running any
    ///
    /// Packets become lines of the script, and what the application did is inferred: data up to the
    /// next PSH is one write, what comes is read at once.
    #[arg(long, value_name = "CAPTURE", conflicts_with_all = ["paths", "json", "pcap", "watch"])]
    pub(crate) record: Option<PathBuf>,
    /// With --record: the end that the stack plays [default: that which accepts the connection]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "record")]
    pub(crate) end: Option<std::net::SocketAddr>,
    /// Defaults of the stack [default: linux for scripts that run defaults.sh, otherwise rfc]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<DrillProfile>,
    /// Accept answers that differ from the script in this
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) relax: Vec<DrillRelax>,
    /// Replace a word of the scripts: -D NAME=VALUE
    #[arg(short = 'D', long, value_name = "NAME=VALUE", value_parser = define)]
    pub(crate) define: Vec<(String, String)>,
    /// Settings of the stack, such as cc=reno,sack=off (ackline list conn, ackline list host); a
    /// script's own are in its line --ackline=...
    #[arg(short, long, value_name = "KEY=VALUE,...")]
    pub(crate) options: Vec<String>,
    /// Run scripts that do not say --ip_version over IPv6
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Run the scripts against the kernel of this machine instead of the stack, as root
    ///
    /// Each script has a network namespace and a TUN device of its own, and takes as long as it
    /// says. Times may be off by 50 ms more. A script with anything that cannot be asked of the
    /// kernel (settings that are the stack's alone, epoll, control messages) is unsupported.
    #[arg(long, conflicts_with_all = ["options", "watch"])]
    pub(crate) kernel: bool,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write each dialogue to a capture in this folder (pcapng)
    #[arg(long, value_name = "FOLDER")]
    pub(crate) pcap: Option<PathBuf>,
    /// Run again whenever a script changes, until interrupted
    #[arg(long, conflicts_with = "json")]
    pub(crate) watch: bool,
    /// No progress bar
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Defaults of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrillProfile {
    /// Linux with the kernel parameters of its own scripts
    Linux,
    /// This project, which follows the RFCs
    Rfc,
}

/// In what answers may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrillRelax {
    /// TCP options are compared as a set, without padding and the value of the window scale
    Options,
    /// The window
    Window,
    /// The flag PSH
    Psh,
    /// Pure ACKs beside the script's, and ACKs up to 510 ms late
    Ack,
}

fn define(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

const DRILL_EXAMPLES: &str = "\
Examples:
  ackline drill tests/drill                              all scripts of a folder
  ackline drill script.pkt --pcap .                      then:  ackline explain script.pcapng
  ackline drill script.pkt --watch                       while it is being written
  ackline drill packetdrill/gtests/net/tcp --relax options,ack
  sudo ackline drill tests/drill --kernel                what Linux says to the same
  ackline drill tests/drill -o cc=reno,sack=off          the same dialogues with other settings
  ackline drill --record trace.pcapng > bug.pkt          then:  ackline drill bug.pkt
  ackline drill tests/drill --json | jq '.scripts[] | select(.outcome == \"failed\")'

Exit status: 0 if no script failed, 1 if one did or is not written correctly. docs/drill.md has the language, and ten scripts that teach TCP.";
