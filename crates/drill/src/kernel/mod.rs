//! The kernel of this machine as a host of scripts: a TUN device in a network namespace of its own,
//! sockets, and the real clock. Scripts that pass here say what Linux does.
//!
//! The kernel's timers are those of a machine with other work, so times may be off by
//! [`SLACK`] more than a script says.

mod calls;
mod parameters;

use crate::host::{Attempt, Host, OpenCall, Progress, SentPacket};
use crate::outcome::DialoguePacket;
use crate::script::{Action, Call, Script, ScriptTime, Shell, TcpLine};
use crate::settings::Environment;
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::kernel::KernelTcpInfo;
use ackline_runtime::netlink::InterfaceAddress;
use ackline_runtime::netns::Namespace;
use ackline_runtime::timer;
use ackline_tcp_core::{Instant, State};
use calls::Sockets;
use ipnet::IpNet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::SocketAddr;

/// How much more than a script says a time may be off, in microseconds.
pub const SLACK: u64 = 50_000;
/// The longest script that is run, in microseconds.
const LONGEST: u64 = 20_000_000;
/// How often a call that waits is attempted again, in microseconds.
const PATIENCE: u64 = 1_000;

/// The kernel of this machine, reached through a TUN device.
///
/// Each has a network namespace of its own, into which it moves the thread that opens it.
pub struct Kernel {
    tun: OwnedFd,
    /// The interface lives as long as this.
    _device: Tun,
    _namespace: Namespace,
    /// When the script started.
    start: Instant,
    sockets: Sockets,
    sent: VecDeque<SentPacket>,
    passed: Vec<DialoguePacket>,
}

/// How long a script takes at least, in microseconds.
fn length(script: &Script) -> u64 {
    let mut at: u64 = 0;
    for event in &script.events {
        let here = match event.when {
            ScriptTime::At(at) | ScriptTime::Between(at, _) => at,
            ScriptTime::After(after) | ScriptTime::BetweenAfter(after, _) => at.saturating_add(after),
            ScriptTime::Any => at,
        };
        let until = match &event.action {
            Action::Call { until: Some(until), .. } if matches!(event.when, ScriptTime::After(_)) => {
                at + until
            }
            Action::Call { until: Some(until), .. } => *until,
            _ => here,
        };
        at = at.max(here).max(until);
    }
    at
}

impl Kernel {
    /// A namespace with the addresses that the script asks for, and kernel parameters for its
    /// settings and its shell lines. The calling thread is in it afterwards.
    ///
    /// # Errors
    /// What the script asks for and Linux does not have, or what the process may not do.
    pub fn open(script: &Script, environment: &Environment) -> Result<Self, String> {
        let takes = length(script);
        if takes > LONGEST {
            return Err(format!("it takes {} s of real time", takes / 1_000_000));
        }
        let parameters = parameters::of(script, environment.profile)?;
        let told = |error: ackline_runtime::Error| error.to_string();
        let namespace = Namespace::new_for_thread().map_err(told)?;
        let (local, remote) = (environment.local.ip(), environment.remote.ip());
        // All of the script's addresses are behind the device.
        let wide = if local.is_ipv4() { 16 } else { 64 };
        let network = |ip, prefix| IpNet::new(ip, prefix).map_err(|error| error.to_string());
        let config = TunConfig::new()
            .plain()
            .name("tun0")
            .mtu(environment.mtu)
            .address(InterfaceAddress::network(network(local, wide)?))
            .route(network(remote, if remote.is_ipv4() { 24 } else { 64 })?.trunc());
        let device = Tun::create(&config).map_err(told)?;
        let tun = device.try_clone_fd().map_err(|error| error.to_string())?;
        parameters::apply(&parameters)?;
        let mut kernel = Self {
            tun,
            _device: device,
            _namespace: namespace,
            start: timer::now(),
            sockets: Sockets::new(
                environment,
                parameters::congestion_control(&parameters).unwrap_or("cubic"),
            ),
            sent: VecDeque::new(),
            passed: vec![],
        };
        // What the interface says of itself is no answer.
        kernel.receive();
        kernel.passed.clear();
        kernel.sent.clear();
        kernel.start = timer::now();
        Ok(kernel)
    }

    /// Takes the packets that the kernel has sent.
    fn receive(&mut self) -> bool {
        let mut any = false;
        let mut buf = vec![0; 70_000];
        while let Ok(read) = rustix::io::read(&self.tun, &mut buf) {
            let at = self.now();
            let octets = buf.get(..read).unwrap_or_default().to_vec();
            self.passed.push(DialoguePacket {
                at_ns: at * 1_000,
                outbound: true,
                octets: octets.clone(),
                comment: "",
            });
            self.sent.push_back(SentPacket { at, octets });
            any = true;
        }
        any
    }
}

impl Host for Kernel {
    fn now(&self) -> u64 {
        timer::now().since(self.start).as_micros()
    }

    fn step(&mut self, limit: u64, waits: bool) -> bool {
        if self.receive() {
            return true;
        }
        let left = limit.saturating_sub(self.now());
        if left == 0 {
            return false;
        }
        let left = if waits { left.min(PATIENCE) } else { left };
        let time = Timespec { tv_sec: (left / 1_000_000) as i64, tv_nsec: (left % 1_000_000 * 1_000) as _ };
        let _ = poll(&mut [PollFd::new(&self.tun, PollFlags::IN)], Some(&time));
        self.receive();
        self.now() < limit
    }

    fn inject(&mut self, octets: Vec<u8>, _: Option<&TcpLine>) {
        let at = self.now();
        let _ = rustix::io::write(&self.tun, &octets);
        self.passed.push(DialoguePacket { at_ns: at * 1_000, outbound: false, octets, comment: "" });
        self.receive();
    }

    fn slack(&self) -> u64 {
        SLACK
    }

    fn sent(&mut self) -> &mut VecDeque<SentPacket> {
        &mut self.sent
    }

    fn attempt(&mut self, call: &Call, progress: &mut Progress) -> Attempt {
        let now = self.now();
        let attempt = self.sockets.attempt(now, call, progress).unwrap_or_else(Attempt::Unsupported);
        progress.begun = true;
        self.receive();
        attempt
    }

    fn opened(&mut self) -> Vec<OpenCall> {
        std::mem::take(&mut self.sockets.opened)
    }

    fn shell(&mut self, shell: &Shell) -> Result<(), String> {
        let parameters = shell.kernel_parameters()?;
        if let Some(name) = parameters::congestion_control(&parameters) {
            name.clone_into(&mut self.sockets.congestion_control);
        }
        parameters::apply(&parameters)
    }

    fn snapshot(&mut self, _: Option<(SocketAddr, SocketAddr)>) -> Result<String, String> {
        let Some(socket) = self.sockets.latest_conn() else {
            return Err("tcp_info without a socket".to_owned());
        };
        let info = KernelTcpInfo::of(socket);
        info.map(|info| assignments(&info) + closed(&info)).map_err(|error| error.to_string())
    }

    fn may_begin_anew(&mut self, _: SocketAddr, _: SocketAddr) -> bool {
        let info = self.sockets.latest_conn().map(KernelTcpInfo::of);
        let ended = |info: KernelTcpInfo| matches!(info.state, None | Some(State::Closed | State::TimeWait));
        info.map_or(self.sockets.were_closed, |info| info.is_ok_and(ended))
    }

    fn is_over(&mut self, _: SocketAddr, _: SocketAddr) -> bool {
        false
    }

    fn cookie(&mut self, _: SocketAddr, _: SocketAddr) -> Result<Vec<u8>, String> {
        Err("a fast open cookie of the kernel".to_owned())
    }

    fn passed(&self) -> Vec<DialoguePacket> {
        self.passed.clone()
    }

    fn concluded(&mut self) -> Vec<String> {
        vec![]
    }
}

/// The socket of a connection in TIME-WAIT says that it is closed, so that both are the same here.
fn closed(info: &KernelTcpInfo) -> &'static str {
    match info.state {
        Some(State::Closed) => {
            "tcpi_state = type('Closed', (int,), dict(__eq__=lambda s, o: o in (6, 7), __ne__=lambda s, o: o not in (6, 7), __hash__=None))(7)\n"
        }
        _ => "",
    }
}

/// `tcp_info` as assignments of Python, by the names that scripts use. Round trips, and timeouts made
/// from them, are not among them: here they are also the machine's.
fn assignments(info: &KernelTcpInfo) -> String {
    let ca_state = ["open", "disorder", "cwr", "recovery", "loss"];
    let fields = [
        ("state", info.state.map_or(0, crate::info::state)),
        ("ca_state", ca_state.iter().position(|name| *name == info.ca_state).unwrap_or(0) as u64),
        ("retransmits", info.retransmits.into()),
        ("probes", info.probes.into()),
        ("backoff", info.backoff.into()),
        ("options", info.options.into()),
        ("snd_wscale", (info.wscale & 15).into()),
        ("rcv_wscale", (info.wscale >> 4).into()),
        ("snd_mss", info.snd_mss.into()),
        ("advmss", info.advmss.into()),
        ("pmtu", info.pmtu.into()),
        ("unacked", info.unacked.into()),
        ("sacked", info.sacked.into()),
        ("lost", info.lost.into()),
        ("retrans", info.retrans.into()),
        ("snd_ssthresh", info.snd_ssthresh.map_or(0x7fff_ffff, u64::from)),
        ("snd_cwnd", info.snd_cwnd.into()),
        ("reordering", info.reordering.into()),
        ("total_retrans", info.total_retrans.into()),
        ("bytes_acked", info.bytes_acked),
        ("bytes_received", info.bytes_received),
        ("segs_out", info.segs_out.into()),
        ("segs_in", info.segs_in.into()),
        ("notsent_bytes", info.notsent_bytes.into()),
        ("data_segs_in", info.data_segs_in.into()),
        ("data_segs_out", info.data_segs_out.into()),
        ("busy_time", info.busy_time.as_micros() as u64),
        ("rwnd_limited", info.rwnd_limited.as_micros() as u64),
        ("sndbuf_limited", info.sndbuf_limited.as_micros() as u64),
        ("delivered", info.delivered.into()),
        ("delivered_ce", info.delivered_ce.into()),
        ("bytes_sent", info.bytes_sent),
        ("bytes_retrans", info.bytes_retrans),
        ("dsack_dups", info.dsack_dups.into()),
        ("reord_seen", info.reord_seen.into()),
        ("rcv_ooopack", info.rcv_ooopack.into()),
        ("snd_wnd", info.snd_wnd.into()),
        ("total_rto", info.total_rto.into()),
        ("total_rto_recoveries", info.total_rto_recoveries.into()),
    ];
    let mut text = String::new();
    for (name, value) in fields {
        let _ = writeln!(text, "tcpi_{name} = {value}");
    }
    text
}
