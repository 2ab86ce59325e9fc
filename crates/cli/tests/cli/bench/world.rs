//! The two ends of a test: `ackline bench` behind a device, and a stock iperf3 on the kernel's
//! side.

use crate::common::{BackgroundCommand, Exit, ackline, until};
use ackline::runtime::Error;
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::{InterfaceAddress, Netlink};
use ackline::runtime::netns::Namespace;
use ackline::runtime::testing::{has_programs, isolated};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};

pub(crate) const KERNEL4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
pub(crate) const KERNEL6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
pub(crate) const STACK4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));
pub(crate) const STACK6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
/// iperf3's own port, as of `ackline bench`.
pub(crate) const PORT: u16 = 5201;

/// The stack's interface and the kernel's, if they are two.
const NEAR: &str = "near0";
const FAR: &str = "far0";

/// What is between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Tun,
    /// A veth pair: AF_PACKET at one end, the kernel behind the other one.
    Ethernet,
}

/// Where a test runs: in a namespace of its own, with a second one for the kernel's side of an
/// Ethernet.
pub(crate) struct World {
    link: Link,
    there: Option<Namespace>,
}

/// Runs a test's `body` in a world of its own; it is skipped if that or iperf3 cannot be had.
pub(crate) fn with(name: &str, link: Link, body: impl FnOnce(&World) + Send) {
    if !has_programs(name, &["iperf3"]) {
        return;
    }
    isolated(name, || {
        body(&World::new(link)?);
        Ok(())
    });
}

/// A test's name as the harness knows it: without the crate's.
pub(crate) fn own_name(path: &str) -> &str {
    path.split_once("::").map_or(path, |(_, name)| name)
}

impl World {
    fn new(link: Link) -> Result<Self, Error> {
        if link == Link::Tun {
            drop(Tun::create(&TunConfig::new().name("probe"))?);
            return Ok(Self { link, there: None });
        }
        let there =
            std::thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))?;
        let mut netlink = Netlink::open()?;
        netlink.add_veth(NEAR, FAR, &there)?;
        let near = netlink.interface(NEAR)?.index;
        there.run(|| {
            let mut netlink = Netlink::open()?;
            let far = netlink.interface(FAR)?.index;
            for net in ["198.18.0.1/24", "fd00::1/64"] {
                netlink.add_address(far, InterfaceAddress::network(net.parse().expect("a network")))?;
            }
            netlink.set_up(far)
        })??;
        netlink.set_up(near)?;
        there.run(|| Netlink::open()?.await_address(KERNEL6))??;
        Ok(Self { link, there: Some(there) })
    }

    /// `ackline bench` with these options, and those of its device.
    pub(crate) fn ours(&self, options: &[&str]) -> BackgroundCommand {
        let device: &[&str] = match self.link {
            Link::Tun => &["--local", "198.18.0.2/24", "--local", "fd00::2/64"],
            Link::Ethernet => &["--dev", NEAR, "--local", "198.18.0.2/24", "--local", "fd00::2/64"],
        };
        BackgroundCommand::start(&mut ackline(&[&["bench"], options, device].concat()))
    }

    /// A stock iperf3 with these options, on the kernel's side.
    pub(crate) fn theirs(&self, options: &[&str]) -> BackgroundCommand {
        self.there(|| {
            let mut command = Command::new("iperf3");
            command.args(options).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            BackgroundCommand::start(&mut command)
        })
    }

    /// Does something on the kernel's side.
    pub(crate) fn there<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        match &self.there {
            None => act(),
            Some(there) => there.run(act).expect("the namespace"),
        }
    }

    /// A stock server of one test, which listens.
    pub(crate) fn their_server(&self, options: &[&str]) -> BackgroundCommand {
        let server = self.theirs(&[&["-s", "-1"], options].concat());
        until("the server", || self.listens().then_some(()));
        server
    }

    /// A socket of the kernel's side listens at the port; nobody has to connect to find out.
    fn listens(&self) -> bool {
        const LISTEN: &str = "0A";
        self.sockets().iter().any(|socket| socket.state == LISTEN)
    }

    /// The kernel's TCP sockets with iperf3's port at either end.
    fn sockets(&self) -> Vec<Socket> {
        let port = format!(":{PORT:04X}");
        let socket = |line: &str| {
            let mut fields = line.split_whitespace().skip(1);
            let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
            let wanted = [local, remote].iter().any(|end| end.ends_with(&port));
            wanted.then(|| Socket { state: state.to_owned() })
        };
        self.there(|| {
            let files = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
            let texts = files.map(|file| std::fs::read_to_string(file).expect("the kernel's sockets"));
            texts.iter().flat_map(|text| text.lines().filter_map(socket)).collect()
        })
    }

    /// Connections of the kernel's side to or from iperf3's port.
    pub(crate) fn connections(&self) -> usize {
        const ESTABLISHED: &str = "01";
        self.sockets().iter().filter(|socket| socket.state == ESTABLISHED).count()
    }

    /// Each connection of the kernel's side has been closed by both ends.
    pub(crate) fn is_done(&self) -> bool {
        const TIME_WAIT: &str = "06";
        self.sockets().iter().all(|socket| socket.state == TIME_WAIT)
    }

    /// `ackline bench` is the client: its end, and the stock server's.
    pub(crate) fn our_client(&self, options: &[&str]) -> Both {
        self.our_client_to(KERNEL4, options)
    }

    pub(crate) fn our_client_to(&self, server: IpAddr, options: &[&str]) -> Both {
        let there = self.their_server(&["-J"]);
        let client = self.ours(&[&["-c", &server.to_string(), "-J"], options].concat()).end();
        Both { client: finished(client), server: finished(there.end()) }
    }

    /// `ackline bench` is the server: its end, and the stock client's.
    pub(crate) fn our_server(&self, options: &[&str]) -> Both {
        self.our_server_at(STACK4, options)
    }

    pub(crate) fn our_server_at(&self, server: IpAddr, options: &[&str]) -> Both {
        let here = self.ours(&["-s", "-1", "-J"]);
        let client = self.their_client(&[&["-c", &server.to_string(), "-J"], options].concat());
        Both { client: finished(client), server: finished(here.end()) }
    }

    /// `ackline bench` at both ends: the server on our side of an Ethernet, the client as one more
    /// host on the other side.
    pub(crate) fn two_of_ours(&self, options: &[&str]) -> Both {
        let here = self.ours(&["-s", "-1", "-J"]);
        let client = until("a server", || {
            let to = STACK4.to_string();
            let own = ["bench", "-c", &to, "-J", "--dev", FAR, "--local", "198.18.0.3/24"];
            let ended =
                self.there(|| BackgroundCommand::start(&mut ackline(&[&own, options].concat()))).end();
            (!ended.stderr.contains("cannot reach")).then_some(ended)
        });
        Both { client: finished(client), server: finished(here.end()) }
    }

    /// A stock client, as soon as our server listens.
    pub(crate) fn their_client(&self, options: &[&str]) -> Exit {
        until("a server", || {
            let ended = self.theirs(options).end();
            let said = [&ended.stdout[..], ended.stderr.as_bytes()].concat();
            (!String::from_utf8_lossy(&said).contains("unable to connect")).then_some(ended)
        })
    }
}

/// A line of the kernel's list.
struct Socket {
    state: String,
}

/// What the two ends of a test said.
#[derive(Debug)]
pub(crate) struct Both {
    pub(crate) client: Value,
    pub(crate) server: Value,
}

/// The document of a test that went well.
fn finished(ended: Exit) -> Value {
    assert_eq!(ended.status, Some(0), "{}", said(&ended));
    let document = ended.json();
    assert!(document.get("error").is_none(), "{document:#}");
    document
}

/// What a command wrote, for people.
pub(crate) fn said(ended: &Exit) -> String {
    format!("status {:?}\n{}\n{}", ended.status, String::from_utf8_lossy(&ended.stdout), ended.stderr)
}
