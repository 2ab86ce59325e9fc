//! Where the clients of `ackline proxy` may be: behind a descriptor, in a namespace that others
//! have made, on the Ethernet of a socket.

use crate::common::{BackgroundCommand, Exit, ackline, run, scratch, text, until};
use crate::emulate::resolver;
use crate::net::*;
use crate::proxy::{FAR, as_ordinary_user, http, serve, socks, stdout};
use crate::usage::refused;
use ackline::Stack;
use ackline::runtime::device::frame_socket::{FrameSocket, FrameSocketConfig};
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::kernel::KernelTcpInfo;
use ackline::runtime::netlink::{InterfaceAddress, Netlink};
use ackline::runtime::netns::Namespace;
use ackline::runtime::testing::has_programs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// `ackline proxy` with a descriptor as its standard input.
fn proxy_with(descriptor: impl Into<OwnedFd>, args: &[&str]) -> BackgroundCommand {
    let mut command = ackline(&[&["proxy", "--fd", "0", "--no-control"], args].concat());
    BackgroundCommand::start(command.stdin(Stdio::from(descriptor.into())))
}

/// What the server at `FAR` says to the kernel's TCP of this thread's namespace, once a proxy
/// carries that there.
fn page(port: u16) -> String {
    until("a page", || {
        // A SYN that has left another way is not waited for.
        let to = SocketAddr::new(FAR.parse().expect("an address"), port);
        let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(2)).ok()?;
        stream.write_all(GET).ok()?;
        String::from_utf8(read_all(stream).ok()?).ok().filter(|page| !page.is_empty())
    })
}

/// Routes to `FAR` by a TUN interface of this name.
fn device(name: &str) -> TunConfig {
    let own = InterfaceAddress::network("10.9.0.1/24".parse().expect("a network"));
    TunConfig::new().name(name).address(own).route("192.0.2.0/24".parse().expect("a network"))
}

#[test]
fn a_descriptor_of_a_tun_interface_is_served_until_that_is_removed() {
    let name = "proxy_places::a_descriptor_of_a_tun_interface_is_served_until_that_is_removed";
    if !has_programs(name, &["ip"]) {
        return;
    }
    with_tun(name, || {
        let (web, (socks, told)) = (http("a page\n"), socks());
        let upstream = format!("socks5://127.0.0.1:{socks}");
        for (name, config) in [("far0", device("far0")), ("far1", device("far1").plain().mtu(1_280))] {
            let tun = Tun::create(&config).expect("a device");
            let mtu = config.mtu.unwrap_or(1_500).to_string();
            let descriptor = tun.try_clone_fd().expect("a duplicate");
            // A device reads what is meant for its duplicate.
            drop(tun);
            let proxy = proxy_with(descriptor, &["--mtu", &mtu, "--upstream", &upstream]);
            assert!(page(web).ends_with("a page\n"));
            assert_eq!(told.recv(), Ok(FAR.to_owned()));
            let removed = Command::new("ip").args(["link", "delete", name]).status().expect("ip is there");
            assert!(removed.success());
            let ended = proxy.end();
            assert_eq!(ended.status, Some(3), "{ended:?}");
            assert!(ended.complaint().contains("the interface of descriptor 0 is gone"), "{ended:?}");
        }
    });
}

#[test]
fn a_descriptor_that_is_no_tun_interfaces_is_refused_with_what_would_be_right() {
    let complaint = refused(&["proxy", "--fd", "0"], 3);
    assert_eq!(
        complaint,
        "ackline: TUN descriptor: it is none of /dev/net/tun; open that and attach it to an interface"
    );
    let complaint = refused(&["proxy", "--fd", "977"], 3);
    assert!(complaint.starts_with("ackline: descriptor: 977 cannot be taken over: "), "{complaint}");
    let ended = proxy_with(UnixStream::pair().expect("a pair").0, &[]).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.complaint().contains("--fd 0 is an Ethernet and needs --local CIDR"), "{ended:?}");
    for (arguments, part) in [
        (&["--fd", "0", "--local", "10.0.2.2/24"][..], "descriptor 0 is no socket"),
        (&["--socket", "/tmp/vm"], "--socket /tmp/vm is an Ethernet and needs --local CIDR"),
        (
            &["--socket", "/tmp/vm", "--local", "10.0.2.2/24", "--local", "10.0.3.2/24"],
            "only one per IP version",
        ),
    ] {
        let complaint = refused(&[&["proxy"], arguments].concat(), 2);
        assert!(complaint.contains(part), "{complaint}");
    }
    let guests = ["proxy", "--socket", "/nowhere", "--local", "10.0.2.2/24", "--search", "a..b"];
    let complaint = refused(&guests, 3);
    assert!(complaint.contains("\"a..b\" is no domain: labels of 1 to 63 octets"), "{complaint}");
}

/// A guest on the Ethernet at whose other end the proxy is the router.
async fn guest(socket: impl Into<OwnedFd>) -> Stack {
    let config = FrameSocketConfig::default().address("10.0.2.15/24".parse().expect("a network"));
    let (socket, config) = (socket.into(), config.gateway([10, 0, 2, 2].into()));
    let open = tokio::task::spawn_blocking(move || FrameSocket::new(socket, "the guest's", &config));
    let device = open.await.expect("no panic").expect("nobody else has the address");
    Stack::builder(device).address([10, 0, 2, 15]).spawn().expect("a stack")
}

#[tokio::test]
async fn guests_on_the_ethernet_of_a_socket_have_the_proxy_as_their_router() {
    let (web, (socks, told)) = (http("a page\n"), socks());
    let upstream = format!("socks5://127.0.0.1:{socks}");
    let options = ["--local", "10.0.2.2/24", "--upstream", &upstream];
    let (_directory, path) = scratch("vm.sock");
    let listener = UnixListener::bind(&path).expect("free");
    let connecting = ["proxy", "--no-control", "--socket", text(&path)];
    let proxy = BackgroundCommand::start(&mut ackline(&[&connecting[..], &options].concat()));
    let (accepted, _) = listener.accept().expect("the command connects");
    let (near, far) = UnixStream::pair().expect("a pair");
    let inheriting = proxy_with(far, &options);
    for (name, socket, proxy) in [(text(&path), accepted, proxy), ("descriptor 0", near, inheriting)] {
        let guest = guest(socket).await;
        let mut stream =
            guest.connect((FAR.parse::<Ipv4Addr>().expect("an address"), web)).await.expect("connected");
        stream.write_all(GET).await.expect("sent");
        let mut page = String::new();
        stream.read_to_string(&mut page).await.expect("received");
        assert!(page.ends_with("a page\n"), "{page}");
        assert_eq!(told.recv(), Ok(FAR.to_owned()));
        // The machine is switched off.
        drop((stream, guest));
        let ended = tokio::task::spawn_blocking(|| proxy.end()).await.expect("no panic");
        assert_eq!(ended.status, Some(3), "{ended:?}");
        let expected =
            format!("the Ethernet behind {name} is gone: the other side of the frame socket {name} is gone");
        assert!(ended.complaint().contains(&expected), "{ended:?}");
    }
}

#[test]
fn systemd_understands_the_unit() {
    if !has_programs("proxy_places::systemd_understands_the_unit", &["systemd-analyze"]) {
        return;
    }
    let unit = include_str!("../../../../examples/systemd/ackline-proxy.service");
    let (_directory, path) = scratch("ackline-proxy.service");
    // The program must be there.
    std::fs::write(&path, unit.replace("/usr/local/bin/ackline", env!("CARGO_BIN_EXE_ackline")))
        .expect("ours");
    let mut verify = Command::new("systemd-analyze");
    let ended = Exit::from(verify.args(["--man=no", "verify"]).arg(&path).output().expect("it runs"));
    let complaints: Vec<_> =
        ended.stderr.lines().filter(|line| line.contains("ackline-proxy.service")).collect();
    assert!(complaints.is_empty(), "{ended:?}");
    // So does ackline, as far as it goes without the rights.
    let words = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    let there = |word| if word == "/etc/ackline/proxy.toml" { "/nonexistent" } else { word };
    let words: Vec<_> = words.split_whitespace().skip(1).map(there).collect();
    assert!(refused(&words, 5).contains("cannot read --config /nonexistent"));
}

/// A network namespace that lasts until this is dropped.
struct PersistentNamespace {
    path: PathBuf,
    _end: mpsc::Sender<()>,
}

impl PersistentNamespace {
    fn new() -> Self {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        thread::spawn(move || {
            let namespace = Namespace::new_for_thread().expect("a namespace");
            let thread = rustix::thread::gettid().as_raw_nonzero();
            let _ = tell.send(format!("/proc/{}/task/{thread}/ns/net", std::process::id()));
            // Fails when the sender is dropped.
            let _ = ended.recv();
            drop(namespace);
        });
        Self { path: told.recv().expect("a path").into(), _end: end }
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        Namespace::open(&self.path).and_then(|namespace| namespace.run(work)).expect("it is there")
    }
}

#[test]
fn the_proxy_is_the_way_out_of_a_namespace_that_others_have_made() {
    with_tun("proxy_places::the_proxy_is_the_way_out_of_a_namespace_that_others_have_made", || {
        let (web, (socks, told)) = (http("a page\n"), socks());
        let upstream = format!("socks5://127.0.0.1:{socks}");
        let place = PersistentNamespace::new();
        let proxy = ["proxy", "--netns", text(&place.path), "--no-control", "--upstream", &upstream];
        let running = BackgroundCommand::start(&mut ackline(&proxy));
        let page = place.run(|| page(web));
        assert!(page.ends_with("a page\n"), "{page}");
        assert_eq!(told.recv(), Ok(FAR.to_owned()));
        let ended: Exit = running.end_while_signalled(|| {});
        succeeded(&ended);
        let expected =
            format!("proxy on the interface ackline0 of the network namespace {}", place.path.display());
        assert!(ended.stderr.contains(&expected), "{ended:?}");
        let interfaces =
            place.run(|| Netlink::open().and_then(|mut netlink| netlink.interfaces()).expect("a list"));
        let names: Vec<_> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
        assert!(!names.contains(&"ackline0"), "{names:?}");
        // A way out that is there already is nobody's to take away; but a part of the world may go
        // another way.
        let config = TunConfig::new().name("other").route("0.0.0.0/0".parse().expect("a network"));
        let _other = place.run(|| Tun::create(&config).expect("a device"));
        let complaint = refused(&proxy, 3);
        assert!(
            complaint.contains("has a default route by other: delete that, or say with --route"),
            "{complaint}"
        );
        let running =
            BackgroundCommand::start(&mut ackline(&[&proxy[..], &["--route", "192.0.2.0/24"]].concat()));
        let page = place.run(|| self::page(web));
        assert!(page.ends_with("a page\n"), "{page}");
        succeeded(&running.end_while_signalled(|| {}));
    });
}

#[test]
fn clients_of_a_plain_interface_share_what_its_queue_holds() {
    const QUEUE: u32 = 200;
    let name = "proxy_places::clients_of_a_plain_interface_share_what_its_queue_holds";
    if !has_programs(name, &["ip"]) {
        return;
    }
    with_tun(name, || {
        assert!(ip("tuntap add dev own0 mode tun"));
        assert!(ip(&format!("link set own0 txqueuelen {QUEUE} up")));
        assert!(ip("addr add 10.9.0.1/24 dev own0") && ip("route add 192.0.2.0/24 dev own0"));
        let upstream = format!("socks5://127.0.0.1:{}", socks().0);
        let server = serve(|mut stream| io::copy(&mut stream, &mut io::sink()).map(drop));
        let window = |device: &[&str]| {
            let proxy = ["proxy", "--tun", "own0", "--no-control", "--upstream", &upstream];
            let running = BackgroundCommand::start(&mut ackline(&[&proxy[..], device].concat()));
            let to = SocketAddr::new(FAR.parse().expect("an address"), server);
            let mut client =
                until("a connection", || TcpStream::connect_timeout(&to, Duration::from_secs(2)).ok());
            // Its window has grown as far as it will.
            client.write_all(&vec![7; 30_000_000]).expect("carried");
            let window = KernelTcpInfo::of(&client).expect("an answer").snd_wnd;
            drop(client);
            succeeded(&running.end_while_signalled(|| {}));
            window
        };
        let most = QUEUE * 1_500 / 2;
        let plain = window(&["--plain"]);
        assert!(plain <= most, "{plain} bytes where {most} have room");
        let offload = window(&[]);
        assert!(offload > most, "super-packets wait as one: {offload} bytes");
    });
}

#[test]
fn connections_of_an_interface_with_two_queues_are_carried_on() {
    with_tun("proxy_places::connections_of_an_interface_with_two_queues_are_carried_on", || {
        const PAGES: u64 = 16;
        let (web, (socks, _told)) = (http("a page\n"), socks());
        let upstream = format!("socks5://127.0.0.1:{socks}");
        let (_directory, json) = scratch("summary");
        let device = ["proxy", "--tun", "ack0", "--route", "192.0.2.0/24", "--no-control", "--shards", "2"];
        let options = ["--upstream", &upstream, "--json", text(&json)];
        let running = BackgroundCommand::start(&mut ackline(&[&device[..], &options].concat()));
        for _ in 0..PAGES {
            assert!(page(web).ends_with("a page\n"));
        }
        succeeded(&running.end_while_signalled(|| {}));
        let summary: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        assert_eq!(summary["finished"], PAGES, "{summary}");
    });
}

#[test]
fn a_guest_fully_behind_the_proxy_pings_resolves_fetches_and_measures() {
    let name = "proxy_places::a_guest_fully_behind_the_proxy_pings_resolves_fetches_and_measures";
    if !has_programs(name, &["curl", "iperf3", "ping"]) {
        return;
    }
    with_tun(name, || {
        let (web, (socks, told)) = (http("a page\n"), socks());
        let words = ["-s", "--bind", "127.0.0.1", "--port", "5201"];
        let mut iperf3 = Command::new("iperf3");
        let iperf3 =
            BackgroundCommand::try_start(iperf3.args(words).stdout(Stdio::null())).expect("iperf3 is there");
        let resolver = resolver(FAR.parse().expect("an address"));
        let (_directory, rules) = scratch("rules.toml");
        // Rules for ports, so that they have no say in the page's name.
        let [measured, asked] = [5201, resolver.port()]
            .map(|port| format!("[[rule]]\nto = '127.0.0.1'\nport = {port}\naction = 'direct'\n"));
        let file = format!(
            "default = 'office'\ndns = '{resolver}'\nupstream.office = 'socks5://127.0.0.1:{socks}'\n\
             {measured}{asked}"
        );
        std::fs::write(&rules, file).expect("ours");
        let script = format!(
            "set -e\n\
             ping -c 1 -W 30 $ACKLINE_BASE >&2\n\
             getent ahostsv4 server.test | grep -q {FAR}\n\
             curl -sS --noproxy '*' http://server.test:{web}/\n\
             for more in '--bytes 2M' '--bytes 2M --reverse' '--udp --bitrate 1M --time 1'; do\n\
                 for wait in $(seq 300); do\n\
                     if iperf3 --client $ACKLINE_BASE --port 5201 $more >&2; then break; fi\n\
                     sleep 0.1\n\
                 done\n\
                 echo measured\n\
             done"
        );
        let proxy = ["proxy", "--loopback", "--config", text(&rules), "--", "sh", "-c", &script];
        let ended = BackgroundCommand::start(&mut ackline(&proxy)).end();
        drop(iperf3);
        succeeded(&ended);
        assert_eq!(stdout(&ended), "a page\nmeasured\nmeasured\nmeasured\n");
        assert_eq!(told.recv(), Ok("server.test".to_owned()));
        assert_eq!(ended.stderr.matches("iperf Done.").count(), 3, "{ended:?}");
    });
}

#[test]
fn a_namespace_that_is_none_is_refused() {
    for (at, expected) in [
        ("4194305", "--netns process 4194305: there is no process 4194305"),
        ("no-such", "--netns no-such: there is no /run/netns/no-such"),
        ("/dev/no-such", "--netns /dev/no-such: there is no /dev/no-such"),
    ] {
        assert_eq!(refused(&["proxy", "--netns", at], 3), format!("ackline: {expected}"));
    }
    with_tun("proxy_places::a_namespace_that_is_none_is_refused", || {
        let complaint = refused(&["proxy", "--netns", "/dev/null"], 3);
        assert_eq!(complaint, "ackline: --netns /dev/null: /dev/null is no network namespace");
    });
}

#[test]
fn an_ordinary_user_is_the_way_out_of_a_container_of_that_user() {
    let name = "proxy_places::an_ordinary_user_is_the_way_out_of_a_container_of_that_user";
    if !has_programs(name, &["curl"]) {
        return;
    }
    let (web, (socks, told)) = (http("a page\n"), socks());
    // The container is a process in a user namespace and a network namespace of its own.
    let script = "unshare --user --map-root-user --net sleep 1000 & container=$!\n\
                  trap 'kill $container $proxy' EXIT\n\
                  for wait in $(seq 600); do\n\
                      if [ \"$(cat /proc/$container/comm)\" = sleep ]; then break; fi\n\
                      sleep 0.1\n\
                  done\n\
                  \"$program\" proxy --netns $container --upstream \"$1\" >&2 & proxy=$!\n\
                  for wait in $(seq 300); do\n\
                      if nsenter --target $container --user --net --preserve-credentials curl -sS --noproxy '*' \"$2\"; then exit 0; fi\n\
                      sleep 0.1\n\
                  done\n\
                  exit 2";
    let (upstream, url) = (format!("socks5://127.0.0.1:{socks}"), format!("http://{FAR}:{web}/"));
    let Some(ended) = as_ordinary_user(name, script, &[&upstream, &url]) else { return };
    succeeded(&ended);
    assert_eq!((stdout(&ended).as_str(), told.recv()), ("a page\n", Ok(FAR.to_owned())));
}

#[test]
fn connections_leave_by_an_ethernet_as_those_of_another_host() {
    let name = "proxy_places::connections_leave_by_an_ethernet_as_those_of_another_host";
    if !has_programs(name, &["curl"]) {
        return;
    }
    with_tun(name, || {
        // The far end is in a namespace of its own, behind a pair of interfaces.
        let far = PersistentNamespace::new();
        let there = Namespace::open(&far.path).expect("it is there");
        let mut netlink = Netlink::open().expect("a socket");
        netlink.add_veth("wan0", "far0", &there).expect("a pair");
        let up = |netlink: &mut Netlink, name: &str, net: &str| {
            let index = netlink.interface(name).expect("there").index;
            let address = InterfaceAddress::network(net.parse().expect("a network"));
            netlink.add_address(index, address).expect("an address");
            netlink.set_up(index).expect("up");
        };
        up(&mut netlink, "wan0", "10.8.0.1/24");
        let server = far.run(|| {
            up(&mut Netlink::open().expect("a socket"), "far0", "10.8.0.9/24");
            TcpListener::bind("10.8.0.9:0").expect("free")
        });
        let port = server.local_addr().expect("bound").port();
        let serving = thread::spawn(move || {
            let (mut stream, from) = server.accept().expect("a connection");
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\na page\n").map(|()| from.ip())
        });
        let url = format!("http://10.8.0.9:{port}/");
        let out = ["proxy", "-q", "--out-dev", "wan0", "--out-local", "10.8.0.2/24"];
        let shaped = ["--sched", "kalampoukas:f=0.5", "--egress-rate", "1mbit"];
        let curl = ["--", "curl", "-sS", "--noproxy", "*", &url];
        let ended = BackgroundCommand::start(&mut ackline(&[&out[..], &shaped, &curl].concat())).end();
        succeeded(&ended);
        assert_eq!(stdout(&ended), "a page\n");
        let from = serving.join().expect("no panic").expect("sent");
        assert_eq!(from, Ipv4Addr::new(10, 8, 0, 2));
        let complaint = refused(&[&out[..5], &["10.8.0.1/24", "--", "true"]].concat(), 3);
        assert!(
            complaint.starts_with("ackline: --out-dev: 10.8.0.1 is this machine's own address"),
            "{complaint}"
        );
        let missing = ["proxy", "--out-dev", "no-such0", "--out-local", "10.8.0.2/24", "--", "true"];
        assert!(refused(&missing, 3).starts_with("ackline: --out-dev: there is no interface no-such0"));
    });
}

/// A server that tells each client its address, and a client that asks by a published port.
#[test]
fn a_program_is_reached_by_published_ports_and_sees_its_clients_addresses() {
    const SERVER: &str = "import socket\n\
        s = socket.create_server(('', 8000))\n\
        while True:\n\
        \x20   c, a = s.accept()\n\
        \x20   c.sendall(a[0].encode())\n\
        \x20   c.close()\n";
    let name = "proxy_places::a_program_is_reached_by_published_ports_and_sees_its_clients_addresses";
    if !has_programs(name, &["ip", "python3"]) {
        return;
    }
    with_tun(name, || {
        let host = ["address", "add", "203.0.113.1/32", "dev", "lo"];
        let added = Command::new("ip").args(host).status().expect("ip is there");
        assert!(added.success());
        let (_directory, control) = scratch("control.sock");
        let options = ["proxy", "--control", text(&control), "--publish", "8080:8000"];
        let proxy = BackgroundCommand::start(&mut ackline(
            &[&options[..], &["--", "python3", "-c", SERVER]].concat(),
        ));
        let ask = |at: &str| {
            let to: SocketAddr = at.parse().expect("an address");
            let stream = TcpStream::connect_timeout(&to, Duration::from_secs(2)).ok()?;
            String::from_utf8(read_all(stream).ok()?).ok().filter(|told| !told.is_empty())
        };
        assert_eq!(until("the server", || ask("203.0.113.1:8080")), "203.0.113.1");
        let publish = |args: &[&str]| run(&[&["publish", "--control", text(&control)], args].concat());
        let listed = publish(&[]);
        assert!(stdout(&listed).starts_with("8080:100.64.0.2:8000  pid="), "{listed:?}");
        let added = publish(&["127.0.0.1:8081:8000"]);
        assert!(stdout(&added).contains("127.0.0.1:8081:100.64.0.2:8000"), "{added:?}");
        // The loopback's clients come from the proxy's own address.
        assert_eq!(until("the server", || ask("127.0.0.1:8081")), "100.64.0.1");
        let removed = publish(&["--remove", "8080:8000"]);
        assert!(!stdout(&removed).contains("8080:"), "{removed:?}");
        assert_eq!(ask("203.0.113.1:8080"), None);
        for (arguments, part) in [
            (&["8082:10.0.2.15:http"][..], "write [ADDR:]PORT[:GUEST][:PORT][/udp]"),
            (&["--remove", "8080:8000"], "8080:100.64.0.2:8000 is not published"),
            (&["127.0.0.1:8081:8000"], "is published already"),
        ] {
            let refused = publish(arguments);
            assert!(refused.status == Some(2) && refused.complaint().contains(part), "{refused:?}");
        }
        drop(proxy);
    });
    let complaint = refused(&["proxy", "--tun", "no", "--publish", "80:81"], 2);
    assert_eq!(complaint, "ackline: --publish 80:81: name the guest, as in 80:10.0.2.15:81");
}

/// The kernel as a guest: an Ethernet of its own behind a Unix socket, DHCP by hand, SLAAC by
/// itself, and a page over each version.
const GUEST: &str = r#"
import fcntl, os, socket, struct, subprocess, sys, threading, time
path, web = sys.argv[1:]
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"eth0", 0x1002))
def ip(*words): return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
ip("link", "set", "lo", "up")
ip("link", "set", "eth0", "address", "52:54:00:12:34:56", "up")
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
wire, _ = listener.accept()
stream = wire.makefile("rb")
def up():
    while True:
        frame = os.read(tap, 2000)
        wire.sendall(struct.pack("!I", len(frame)) + frame)
def down():
    while True:
        head = stream.read(4)
        if len(head) < 4: return
        os.write(tap, stream.read(struct.unpack("!I", head)[0]))
for pump in (up, down): threading.Thread(target=pump, daemon=True).start()

client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
client.bind(("0.0.0.0", 68))
client.settimeout(2)
def ask(options, wanted):
    mac = bytes.fromhex("525400123456")
    message = struct.pack("!4BIHH16s16s192xI", 1, 1, 6, 0, 7, 0, 0x8000, b"", mac, 0x63825363)
    while True:
        client.sendto(message + options + b"\xff", ("255.255.255.255", 67))
        try: answer = client.recv(2000)
        except TimeoutError: continue
        rest, found = answer[240:], {}
        while rest[0] != 255:
            found[rest[0]], rest = rest[2:2 + rest[1]], rest[2 + rest[1]:]
        # Of a question that was asked twice, the second answer may come when another has been asked.
        if found[53] == wanted: return answer[16:20], found
OFFER, ACK = b"\x02", b"\x05"
offered, _ = ask(b"\x35\x01\x01", OFFER)
address, options = ask(b"\x35\x01\x03\x32\x04" + offered + b"\x36\x04\x0a\x00\x02\x02", ACK)
own, router = socket.inet_ntoa(address), socket.inet_ntoa(options[3])
ip("address", "add", own + "/24", "dev", "eth0")
ip("link", "set", "eth0", "mtu", str(int.from_bytes(options[26], "big")))
ip("route", "add", "default", "via", router)
print("DHCP", own, router, socket.inet_ntoa(options[6]))
while True:
    addresses = [line.split()[3] for line in ip("-6", "-o", "address", "show", "dev", "eth0", "scope", "global").splitlines() if "tentative" not in line]
    routes = ip("-6", "route", "show", "default")
    if addresses and "via fe80::" in routes: break
    time.sleep(0.1)
print("SLAAC", *addresses)
for host in ("192.0.2.7", "[2001:db8::7]"):
    page = ["curl", "-sS", "--noproxy", "*", "--max-time", "30", f"http://{host}:{web}/"]
    print(subprocess.run(page, check=True, capture_output=True, text=True).stdout.strip())
"#;

#[test]
fn a_guest_boots_into_a_network_without_any_configuration() {
    let name = "proxy_places::a_guest_boots_into_a_network_without_any_configuration";
    if !has_programs(name, &["curl", "ip", "python3", "unshare"]) {
        return;
    }
    with_tun(name, || {
        let (web, (socks, told)) = (http("a page\n"), socks());
        let (_directory, path) = scratch("vm.sock");
        let mut guest = Command::new("unshare");
        guest.args(["--net", "python3", "-c", GUEST, text(&path), &web.to_string()]);
        guest.stdout(Stdio::piped());
        let guest = BackgroundCommand::try_start(&mut guest).expect("a namespace");
        until("the guest's socket", || path.exists().then_some(()));
        let upstream = format!("socks5://127.0.0.1:{socks}");
        let options =
            ["proxy", "--no-control", "--socket", text(&path), "--upstream", &upstream, "--mtu", "1400"];
        let networks =
            ["--local", "10.0.2.2/24", "--local", "fd00::2/64", "--dhcp-host", "52:54:00:12:34:56=10.0.2.15"];
        let proxy = BackgroundCommand::start(&mut ackline(&[&options[..], &networks].concat()));
        let ended = guest.end();
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let said = stdout(&ended);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "DHCP 10.0.2.15 10.0.2.2 10.0.2.2");
        assert!(lines[1].starts_with("SLAAC fd00::"), "{said}");
        assert_eq!(lines[2..], ["a page", "a page"], "{said}");
        assert_eq!(told.recv(), Ok(FAR.to_owned()));
        assert_eq!(proxy.end().status, Some(3), "the machine is off");
    });
}
