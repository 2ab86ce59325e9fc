//! A program in a network namespace of its own, whose only way out is a TUN device.

use crate::failure::{Exit, Failure, plain};
use crate::network::interfaces;
use crate::output;
use crate::signals::Signals;
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::InterfaceAddress;
use ackline::runtime::netns::{
    Namespace, drop_capabilities, end_with_thread, enter_user_namespace, permit_ping, replace_file_for_thread,
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::mpsc;
use std::thread;
use tokio::process::{Child, Command};

/// Where programs look for their resolvers.
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The name of the program's interface.
pub(crate) const INTERFACE: &str = "ackline0";
/// The variable that tells the program how to reach this machine.
const BASE: &str = "ACKLINE_BASE";

/// The address of the program, and the one that stands for this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) program: Ipv4Addr,
    pub(crate) base: Ipv4Addr,
}

impl Addresses {
    /// Of the shared address space (RFC 6598) the first four that this machine does not have: of
    /// `taken`.
    pub(crate) fn apart_from(taken: &[IpNet]) -> Option<Self> {
        let space = Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10);
        let mut nets = space.subnets(30).ok()?;
        let free = nets.find(|net| {
            let net = IpNet::V4(*net);
            // A default route is everybody's.
            taken
                .iter()
                .all(|other| other.prefix_len() == 0 || !(other.contains(&net) || net.contains(other)))
        })?;
        let [a, b, c, d] = free.addr().octets();
        let address = |number| Ipv4Addr::new(a, b, c, d + number);
        Some(Self { program: address(2), base: address(1) })
    }

    /// What stands for this machine, in both versions of IP.
    pub(crate) fn base(self) -> [IpAddr; 2] {
        let [_, base] = self.ipv6();
        [self.base.into(), base.into()]
    }

    /// The program's, in both versions of IP.
    pub(crate) fn guest(self) -> [IpAddr; 2] {
        let [program, _] = self.ipv6();
        [self.program.into(), program.into()]
    }

    /// The same in IPv6: in a network of this program's own (RFC 4193), with the IPv4 address at
    /// its end.
    pub(crate) fn ipv6(self) -> [Ipv6Addr; 2] {
        const NET: u128 = 0xfd61_636b_6c69_6e65 << 64;
        [self.program, self.base].map(|address| Ipv6Addr::from(NET | u128::from(address.to_bits())))
    }
}

/// What the program finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inside<'a> {
    pub(crate) addresses: Addresses,
    /// What it is told to stand for this machine.
    pub(crate) base: Ipv4Addr,
    /// IPv6, too, if this machine's kernel has it.
    pub(crate) ipv6: bool,
    /// What is routed to the device; nothing stands for everything.
    pub(crate) routes: &'a [IpNet],
    /// The file that names its resolvers.
    pub(crate) resolv_conf: &'a str,
    /// Super-packets and partial checksums.
    pub(crate) offload: bool,
    pub(crate) mtu: u32,
    /// It has the capabilities of this process, with which it can leave its namespace.
    pub(crate) capabilities: bool,
}

impl Inside<'_> {
    /// A TUN device for a namespace. It leads to the base addresses whatever else is routed there.
    pub(crate) fn device(&self) -> TunConfig {
        let Self { addresses: Addresses { program, base }, routes, .. } = *self;
        let mut pairs = vec![(IpAddr::V4(program), IpAddr::V4(base), IpAddr::V4(Ipv4Addr::UNSPECIFIED))];
        if self.ipv6 && has_ipv6() {
            let [program, base] = self.addresses.ipv6().map(IpAddr::V6);
            pairs.push((program, base, Ipv6Addr::UNSPECIFIED.into()));
        }
        let mut config = TunConfig::new().name(INTERFACE).mtu(self.mtu);
        for (program, base, any) in pairs {
            config = config.address(InterfaceAddress::network(program.into()));
            config = config.route(if routes.is_empty() { everything(any) } else { base.into() });
        }
        for &network in routes {
            config = config.route(network);
        }
        if self.offload { config } else { config.plain() }
    }
}

/// The network of all addresses that are of one version with `any`, the unspecified one.
fn everything(any: IpAddr) -> IpNet {
    match any {
        IpAddr::V4(any) => Ipv4Net::new_assert(any, 0).into(),
        IpAddr::V6(any) => Ipv6Net::new_assert(any, 0).into(),
    }
}

/// The kernel gives interfaces of the thread's namespace IPv6 addresses.
fn has_ipv6() -> bool {
    let disabled = std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    disabled.is_ok_and(|text| text.trim() == "0")
}

/// Gains the rights to make a namespace, if they are missing: inside a user namespace. To be called
/// while the process has one thread.
pub(crate) fn prepare() -> Result<(), Failure> {
    if has_rights() {
        return Ok(());
    }
    enter_user_namespace().map_err(|error| match env::var_os(BASE) {
        Some(_) => Failure::new(
            Exit::Device,
            format!("{error}; a program of ackline emulate or proxy needs --keep-capabilities for that"),
        ),
        None => error.into(),
    })
}

/// What stands for the machine if this process is such a program itself: it was told, and the path
/// that it is behind leads there.
pub(crate) fn outer_base() -> Result<Option<Ipv4Addr>, Failure> {
    let told = env::var(BASE).ok().and_then(|told| told.parse().ok());
    // Whoever is not inside has the variable from somewhere else.
    let inside = told.is_some() && interfaces::all()?.iter().any(|interface| interface.name == INTERFACE);
    Ok(told.filter(|_| inside))
}

/// The thread may make and enter namespaces.
pub(crate) fn has_rights() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::SYS_ADMIN))
}

/// A process that is killed with this one.
pub(crate) struct Program {
    child: Child,
    /// The thread that started it ends without this.
    _started_by: mpsc::Sender<()>,
}

/// The program, and the way out of its namespace.
pub(crate) struct IsolatedProgram {
    pub(crate) program: Program,
    pub(crate) tun: Tun,
    pub(crate) overruns: Overruns,
}

/// Starts the program in a new network namespace whose only way out is a TUN device.
pub(crate) fn start(command: &[OsString], place: Inside<'_>) -> Result<IsolatedProgram, Failure> {
    let [name, arguments @ ..] = command else { return Err(Failure::usage("no command")) };
    let mut command = Command::new(name);
    // It has no network without this process.
    command.args(arguments).env(BASE, place.base.to_string()).kill_on_drop(true);
    end_with_thread(command.as_std_mut());
    if !place.capabilities {
        drop_capabilities(command.as_std_mut());
    }
    let (name, device, resolv_conf) =
        (name.to_string_lossy().into_owned(), place.device(), place.resolv_conf.to_owned());
    let mut inside = move || -> Result<_, Failure> {
        Namespace::new_for_thread()?;
        let tun = Tun::create(&device)?;
        let overruns = Overruns::open();
        // Without that, only those can ping who keep their capabilities.
        let _ = permit_ping();
        // A container may permit namespaces and forbid mounts. Addresses work all the same.
        if let Err(error) = replace_file_for_thread(RESOLV_CONF, resolv_conf.as_bytes()) {
            output::say(&format!("warning: names are not resolved inside: {error}"));
        }
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::new(Exit::File, format!("{name}: no such program")),
            _ => Failure::new(Exit::File, format!("cannot run {name}: {}", plain(&error))),
        })?;
        Ok((child, tun, overruns))
    };
    // A namespace belongs to a thread, and the program ends with the thread that started it. That
    // one waits until the program is not needed any more; the program and the device keep the
    // namespace.
    let (started_by, ended) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let handle = tokio::runtime::Handle::current();
    let work = move || {
        let entered = handle.enter();
        let outcome = inside();
        drop(entered);
        if tell.send(outcome).is_ok() {
            let _ = ended.recv();
        }
    };
    thread::Builder::new()
        .name("program".into())
        .spawn(work)
        .map_err(|error| Failure::system("start a thread", &error))?;
    let gone = || Failure::system("start the program", &io::ErrorKind::BrokenPipe.into());
    let (child, tun, overruns) = told.recv().map_err(|_| gone())??;
    Ok(IsolatedProgram { program: Program { child, _started_by: started_by }, tun, overruns })
}

/// Counts the packets that found no room in the program's interface because this process had not
/// read those before.
pub(crate) struct Overruns {
    /// The interfaces of the namespace in which it was opened; `None` without proc(5).
    counters: Option<File>,
}

impl Overruns {
    /// Of the namespace of the calling thread.
    fn open() -> Self {
        Self { counters: File::open("/proc/thread-self/net/dev").ok() }
    }

    /// How many so far.
    pub(crate) fn read(&self) -> u64 {
        let mut text = [0; 4_096];
        let read = self.counters.as_ref().and_then(|counters| counters.read_at(&mut text, 0).ok());
        let text = read.and_then(|length| std::str::from_utf8(&text[..length]).ok());
        text.and_then(Self::parse).unwrap_or(0)
    }

    /// `net/dev` of proc(5): behind an interface's name eight counters of what it received, then
    /// bytes, packets, errors and drops of what it sent.
    fn parse(text: &str) -> Option<u64> {
        let counters =
            text.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'))?;
        counters.split_ascii_whitespace().nth(11)?.parse().ok()
    }
}

/// Waits for the program, and passes signals on to it that end this process otherwise.
pub(crate) async fn wait(program: Program, signals: &mut Signals) -> Result<ExitStatus, Failure> {
    let Program { mut child, _started_by } = program;
    loop {
        tokio::select! {
            status = child.wait() => return status.map_err(|error| Failure::system("wait for the program", &error)),
            signal = signals.next() => {
                let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
                if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal.number().into())) {
                    // The terminal has sent it to the program, too; twice does no harm. It may have
                    // ended just now.
                    let _ = kill_process(pid, signal);
                }
            }
        }
    }
}

/// The exit status of this process.
pub(crate) fn outcome(status: ExitStatus) -> Result<(), Failure> {
    let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (None, Some(signal)) => {
            let message = format!("the program was ended by signal {signal}");
            Err(Failure::new(Exit::Signal(byte(signal)), message))
        }
        (code, _) => Err(Failure::of_program(code.map_or(u8::MAX, byte))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_nobody_has() {
        let taken =
            |nets: &[&str]| -> Vec<IpNet> { nets.iter().map(|net| net.parse().expect("right")).collect() };
        let first = Addresses::apart_from(&taken(&["192.168.1.4/24", "0.0.0.0/0"])).expect("free");
        assert_eq!(first, Addresses { program: [100, 64, 0, 2].into(), base: [100, 64, 0, 1].into() });
        let second = Addresses::apart_from(&taken(&["100.64.0.2/30"])).expect("free");
        assert_eq!(second.program, Ipv4Addr::new(100, 64, 0, 6));
        assert_eq!(Addresses::apart_from(&taken(&["100.64.0.0/10"])), None);
    }

    #[test]
    fn packets_without_room_are_the_interfaces_drops() {
        let text = "Inter-|   Receive                            |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
             lo:       0       0    0    0    0     0          0         0        0       0    0    3    0     0       0          0\n\
             ackline0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(Overruns::parse(text), Some(12));
        assert_eq!(Overruns::parse("lo: 1 2"), None);
    }
}
